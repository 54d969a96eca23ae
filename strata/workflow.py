"""What the rules ask of the experiment: its cells in their order, what a product is made of, and how a run begins."""

import contextlib
import fcntl
import glob
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from strata import client
from strata.environments.common import registry
from strata.experiment import blocks, config, plan, seal
from strata.host import capacity
from strata.image import build, cache
from strata.measure import pending
from strata.reanalysis import source
from strata.results import outputs
from strata.testbed import lifecycle
from strata.util import access, paths, progress, run, signals
from strata.util.data_types import Fields, Plan
from strata.util.errors import UserError
from strata.util.files import read_json
from strata.vm import acceleration

# Before any other job, and after all of them the cells, the first of the plan first.
MOST_CELLS = 10**7
# How many failed cells are listed at the end of a run.
MOST_SHOWN = 5
# By what Snakemake sees that a job is due: a cell by its parameters, what follows by times.
TRIGGERS = ("mtime", "params")

begun: list["Workflow"] = []


def begin() -> None:
    """Begin the run of the experiment that was read last: for a workflow that imports this one, in its `onstart`."""
    begun[-1].begin()


class Workflow:
    """The experiment as the rules see it.

    settings: the checked config.  plan: the object of results/plan.json.  known: the order as far as it is decided.
    digest: what changes with the plan, so that tables are made again.  rests_on: what of it a decision on more blocks
    rests on.  tables: the files of all tables.
    triggers: gives those that this run of Snakemake heeds.
    """

    def __init__(
        self,
        over: Fields,
        project: str,
        makes: Callable[[], bool] = lambda: True,
        names: Sequence[str] = (),
    ) -> None:
        """Read the experiment: config.yaml, and the values `over` it.  Raises UserError with all that is wrong.

        makes: whether this Snakemake makes anything; a dry run, a summary or a graph does not.
        names: the configuration files of which `over` is made, besides --config.
        """
        self._makes = makes
        run.forget()
        signals.hear_children()
        # The rules' commands find this interpreter and this package, and know whose end to outlive.
        os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
        os.environ["PYTHONPATH"] = project
        if {"{", "}"} & set(project):
            raise UserError(
                f"{project}: Snakemake takes braces in a folder's path for wildcards: use another folder"
            )
        if not os.path.samefile(project, os.getcwd()):
            raise UserError(
                f"results and papers lie in the project's folder, and this is {os.getcwd()}: add `--directory "
                f'{project}`, or in a workflow that imports this one `workdir: "{project}"`'
            )
        access.require_project()
        run.begin(sys.argv)
        self.settings: dict[str, Any] = config.read(
            config.Over(over, [*map(os.path.relpath, names)])
        )
        self.partial: bool = self.settings["partial"]
        self._lock: int | None = None
        self.triggers: Callable[[], Iterable[str]] = lambda: TRIGGERS
        # Whether Snakemake makes the environments of the rules.
        self.brings_software: Callable[[], bool] = lambda: False
        self._make()
        # What profiles/slurm asks for.
        os.environ["STRATA_CPUS"] = str(self.plan["machine"]["cpus"])
        begun.append(self)

    def _make(self) -> None:
        self.plan = config.experiment(self.settings, capacity.facts())
        self.digest = seal.digest(self.plan)
        self.rests_on = blocks.rests_on(self.plan)
        self.tables = outputs.tables(self.plan)
        self._fingerprints: dict[tuple[str, str], str] = {}
        self.known = blocks.Order(self.plan)

    # What a cell's rule asks.

    def priority(self, environment: str, workload: str, repetition: str) -> int:
        """The earlier in the plan the higher.

        On nodes a cell that failed comes last: the job of a block ends with the first that fails, which would otherwise
        be in the way of those behind it in every run.
        """
        cell = (environment, workload, int(repetition))
        if self.plan.get("spread") and os.path.exists(paths.cell_path("failed", *cell, "json")):
            return 0
        place = self.known.places.get(cell)
        return MOST_CELLS - place[0] if place else 0

    def fingerprint(self, environment: str, workload: str, repetition: str) -> str:
        """What decides a cell's result besides chance: the cell is measured again when it changes.

        Raises UserError for a cell that is not planned.
        """
        cell = (environment, workload, int(repetition))
        if cell not in self.known.places and cell not in (order := blocks.Order(self.plan)).places:
            raise UserError(f"{paths.cell_path('raw', *cell, 'log')}: {order.missing(*cell)}")
        if self._makes() and untried(self.plan, [environment]):
            # The cell was named by itself, so that the checkpoint was not asked.
            build.probe(self.settings["image"])
            self._make()
        key = (environment, workload)
        if key not in self._fingerprints:
            self._fingerprints[key] = plan.fingerprint(self.plan, *key)
        return self._fingerprints[key]

    # What is measured.

    def order(self, checkpoints: Any) -> blocks.Order:
        """The order of all cells, once it is decided how many there are; until then raises Snakemake's exception.

        Raises UserError where results of another plan or of other logs would be taken for these.
        """
        if without := set(TRIGGERS) - set(self.triggers()):
            raise UserError(
                f"rerun-triggers: leaves out {' and '.join(sorted(without))}, so that results of "
                "other parameters or logs would stay: run without this option, or say "
                f"`--rerun-triggers {' '.join(TRIGGERS)}`"
            )
        if untried(self.plan, blocks.available(self.plan)):
            checkpoints.machine.get()
            self._make()
            if self._lock is not None:
                self._write()
        # Cells of further rounds have their places in it before Snakemake asks for their priorities.
        self.known = blocks.Order(self.plan)
        if not self.partial and not self.known.decided:
            checkpoints.decide.get(round=self.known.last)
        return self.known

    def logs(self, checkpoints: Any) -> list[str]:
        """The logs of all cells; in a partial run those that are there."""
        logs = [paths.cell_path("raw", *cell, "log") for cell in self.order(checkpoints).cells()]
        return [log for log in logs if os.path.exists(log)] if self.partial else logs

    def measured(self, checkpoints: Any) -> list[str]:
        """The logs of all cells, their records, and the decisions on the way to them."""
        logs = self.logs(checkpoints)
        return [
            *logs,
            *(log.removesuffix("log") + "json" for log in logs),
            *outputs.decisions(self.plan),
        ]

    def logs_before(self, round: str) -> list[str]:
        """The logs that a decision rests on; none once it was made, since a decision stands."""
        order = blocks.Order(self.plan)
        if order.decided or int(round) < order.last:
            return []
        return [paths.cell_path("raw", *cell, "log") for cell in order.cells()]

    def folders(self) -> list[str]:
        """The folders of all logs, which are made here: one is newer than the tables once a log in it was deleted.

        Where nothing is made, they are those that are there.
        """
        found = sorted(
            {os.path.dirname(paths.cell_path("raw", *cell, "log")) for cell in self.known.cells()}
        )
        if not self._makes():
            return [folder for folder in found if os.path.isdir(folder)]
        for folder in found:
            os.makedirs(folder, exist_ok=True)
        return found

    def to_archive(self) -> list[str]:
        """What an archive is made of.  Raises UserError where that would measure, and nobody asked for it."""
        order = blocks.Order(self.plan)
        due = sum(pending.due(self.plan, cell) for cell in order.cells())
        complete = not due and order.decided and not untried(self.plan, blocks.available(self.plan))
        if complete or self.partial or self.settings.get("measure"):
            return [*self.tables, *outputs.PAPERS]
        count = f"{due} of {len(order.cells())} cells are not measured" + (
            "" if order.decided else " so far"
        )
        pages: list[Any] = [self.plan, read_json(paths.PLAN) or self.plan]
        names, other = (
            [name for key in ("environments", "workloads") for name in one.get(key, ())]
            for one in pages
        )
        if names != other:
            words = f"the last run had another page ({', '.join(other)}): repeat its --configfile and --config"
            count = f"{count}; {words} to archive that"
        raise UserError(
            f"{count}; `{run.again('cells')}` measures them, and partial=true (--config) archives what there is"
        )

    # What is made of it.

    def image(self) -> list[str]:
        """What says which image it was; nothing where no environment runs anything of it (the bare host does not)."""
        entries = [self.plan["environments"][name] for name in blocks.available(self.plan)]
        used = [kind for entry in entries for layer in entry["layers"] for kind in layer]
        return [paths.IMAGE, paths.MANIFEST] if registry.forms(used) else []

    def circumstances(self) -> str:
        """What it holds for that KVM runs a guest here, or does not."""
        return json.dumps(acceleration.circumstances())

    def source(self) -> str:
        """What changes when a file of the project's source does; where no file is known, the command says why."""
        from strata.archive import source as own

        with contextlib.suppress(UserError):
            return own.state(os.getcwd())
        return ""

    def published_raw(self) -> tuple[str, str]:
        """Where the published raw results are, and what changes when they do.  Raises UserError where they are not."""
        folder = source.named(self.settings)
        return folder, source.state(folder)

    # How a run begins and ends.

    def begin(self) -> None:
        """Take this folder for this run, and write the plan.  The kernel frees the folder when the run ends."""
        os.makedirs("results/tmp", exist_ok=True)
        # Open for writing, without which a network's disk lets nobody lock.
        self._lock = os.open(paths.RUN_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                "another run is active in this folder; wait for its end (nothing needs to be unlocked)"
            ) from None
        if not os.fstat(self._lock).st_nlink:
            raise UserError("`python3 -m strata clean` was at work in this folder: run again")
        if self.image() and (image := cache.find(self.plan["image"]["recipe"])):
            cache.verify(image)
        pending.begin()
        self._write()
        if shutil.which("Rscript") is None and not self.brings_software():
            progress.say(
                "setup",
                "R is missing, which decisions on more blocks, tables and papers need: `make setup`",
            )

    def _write(self) -> None:
        found: Plan = {**self.plan, "source": plan.source(os.getcwd())}
        if sealed := seal.told(self.plan):
            found["sealed"] = sealed
        plan.write(found)
        client.write_way(self.settings["client"])
        progress.begin(
            sum(not pending.due(self.plan, cell) for cell in blocks.Order(self.plan).cells())
        )

    def end(self, good: bool) -> None:
        """Remove what killed cells of the run left up, and what waited and was taken; list the cells that failed."""
        lifecycle.end_run(run.owner())
        pending.end(self.plan, self.known.cells(), good)
        reasons = {
            cell: read_json(paths.cell_path("failed", *cell, "json")) for cell in self.known.cells()
        }
        failed = [
            f"{' · '.join(map(str, cell))}: {known['error']}"
            for cell, known in reasons.items()
            if known
        ]
        if failed and not good:
            more = (
                f"\n  and {len(failed) - MOST_SHOWN} more: see results/failed"
                if len(failed) > MOST_SHOWN
                else ""
            )
            shown = "\n  ".join(failed[:MOST_SHOWN])
            again = "once the causes are gone, the same command measures them again"
            progress.shown(
                f"strata: {len(failed)} of {len(reasons)} cells failed; {again}:\n  {shown}{more}"
            )


def untried(experiment: Plan, environments: Iterable[str]) -> bool:
    """Whether one of these environments has a machine of which it is not known what accelerates it."""
    stacks = [experiment["environments"][name] for name in environments]
    return any("accelerator" in entry and entry["accelerator"] is None for entry in stacks)


def code(*patterns: str) -> list[str]:
    """The files of the project that these patterns name, without tests: those that a product is made by or of."""
    found = {name for pattern in patterns for name in glob.glob(pattern, recursive=True)}
    return sorted(name for name in found if os.path.isfile(name) and "/tests/" not in name)
