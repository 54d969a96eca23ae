"""The experiment for the rules: its cells and their order, the inputs of products, and its runs."""

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
from strata.archive import seal
from strata.environments.common import registry
from strata.experiment import blocks, config, plan
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

# The priority of a cell is this number less its place in the plan: cells run in the order of the
# plan, after checkpoints, whose priority is higher.
MOST_CELLS = 10**7
# How many failed cells are listed at the end of a run.
MOST_SHOWN = 5
# Snakemake's triggers without which results would not follow: "params" for cells, "mtime" for all
# that is made of them.
TRIGGERS = ("mtime", "params")

_experiments: list["Experiment"] = []


def begin() -> None:
    """Start the run of the experiment: for the `onstart` of a workflow that imports this one."""
    _experiments[-1].start_run()


class Experiment:
    """The experiment of config.yaml, as the rules see it.

    settings: the checked configuration.  plan: the object of results/plan.json.
    order: all cells as far as it is decided how many there are.
    digest: changes with the plan.  rests_on: the part of the plan on which decisions on more blocks
    rest.  tables: the files of all tables.  partial: whether products are made of the cells that
    exist.
    get_triggers: returns the rerun triggers of this Snakemake.
    makes_environments: returns whether this Snakemake makes the software environments of rules.
    """

    def __init__(
        self,
        overrides: Fields,
        project: str,
        makes_files: Callable[[], bool] = lambda: True,
        names: Sequence[str] = (),
    ) -> None:
        """Read the experiment, and prepare this process for the rules' commands.

        overrides: values laid over config.yaml, of the configuration files `names` and of --config.
        project: the folder of the project.
        makes_files: returns whether this Snakemake makes anything; a dry run does not.
        Raises UserError with all mistakes, or where Snakemake could not work in this folder.
        """
        self._makes_files = makes_files
        run.drop_steering_variables()
        signals.restore_child_signal()
        # The rules' commands find this interpreter and this package.
        os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
        os.environ["PYTHONPATH"] = project
        if {"{", "}"} & set(project):
            raise UserError(
                f"{project}: Snakemake takes braces in a path for wildcards: use another folder"
            )
        if not os.path.samefile(project, os.getcwd()):
            raise UserError(
                f"results and papers lie in the project's folder, and this is {os.getcwd()}: "
                f"add `--directory {project}`, or in a workflow that imports this one "
                f'`workdir: "{project}"`'
            )
        access.require_project()
        run.declare_run(sys.argv)
        files = [*map(os.path.relpath, names)]
        self.settings: dict[str, Any] = config.read_config(config.Overrides(overrides, files))
        self.partial: bool = self.settings["partial"]
        self._lock: int | None = None
        self.get_triggers: Callable[[], Iterable[str]] = lambda: TRIGGERS
        self.makes_environments: Callable[[], bool] = lambda: False
        self._make_plan()
        # profiles/slurm requests so many CPUs.
        os.environ["STRATA_CPUS"] = str(self.plan["machine"]["cpus"])
        _experiments.append(self)

    def _make_plan(self) -> None:
        self.plan = config.make_plan(self.settings, capacity.read_facts())
        self.digest = seal.hash_plan(self.plan)
        self.rests_on = blocks.hash_decision_basis(self.plan)
        self.tables = outputs.table_paths(self.plan)
        self._fingerprints: dict[tuple[str, str], str] = {}
        self.order = blocks.Order(self.plan)

    # For the rule `cell`.

    def cell_priority(self, environment: str, workload: str, repetition: str) -> int:
        """Return the priority of a cell: the earlier in the plan, the higher.

        On several nodes a cell that failed comes last.  The job of a block ends with the first cell
        that fails; otherwise one would hold up the cells behind it in every run.
        """
        cell = (environment, workload, int(repetition))
        if self.plan.get("spread") and os.path.exists(paths.cell_path("failed", *cell, "json")):
            return 0
        place = self.order.places.get(cell)
        return MOST_CELLS - place[0] if place else 0

    def require_cell(self, environment: str, workload: str, repetition: str) -> None:
        """Raise UserError for a cell that is not planned."""
        cell = (environment, workload, int(repetition))
        if cell in self.order.places:
            return
        # A decision may have added blocks since the order was read.
        order = blocks.Order(self.plan)
        if cell not in order.places:
            log = paths.cell_path("raw", *cell, "log")
            raise UserError(f"{log}: {order.explain_missing(*cell)}")

    def cell_fingerprint(self, environment: str, workload: str, repetition: str) -> str:
        """Return the digest of all that decides a cell's result: if it changes, the cell is due.

        Raises UserError for a cell that is not planned.
        """
        self.require_cell(environment, workload, repetition)
        if self._makes_files() and is_untried(self.plan, [environment]):
            # A cell that is a target of its own does not depend on the checkpoint `machine`.
            build.probe_acceleration(self.settings["image"])
            self._make_plan()
        key = (environment, workload)
        if key not in self._fingerprints:
            self._fingerprints[key] = plan.fingerprint(self.plan, *key)
        return self._fingerprints[key]

    # For the rules that need many cells.

    def resolve_order(self, checkpoints: Any) -> blocks.Order:
        """Return the order of all cells, once it is decided how many there are.

        checkpoints: Snakemake's, which raise an exception of Snakemake while they are not made.
        Raises UserError where an option of Snakemake would keep results of other logs.
        """
        missing = set(TRIGGERS) - set(self.get_triggers())
        if missing:
            raise UserError(
                f"rerun-triggers: leaves out {' and '.join(sorted(missing))}, so that results of "
                "other parameters or logs would stay: run without this option, or say "
                f"`--rerun-triggers {' '.join(TRIGGERS)}`"
            )
        if is_untried(self.plan, blocks.available_environments(self.plan)):
            checkpoints.machine.get()
            self._make_plan()
            if self._lock is not None:
                self._write_plan()
        # Snakemake asks for the priorities of cells after this: they find their places in it.
        self.order = blocks.Order(self.plan)
        if not self.partial and not self.order.decided:
            checkpoints.decide.get(round=self.order.last)
        return self.order

    def list_logs(self, checkpoints: Any) -> list[str]:
        """Return the logs of all cells; in a partial run those that exist."""
        cells = self.resolve_order(checkpoints).cells()
        logs = [paths.cell_path("raw", *cell, "log") for cell in cells]
        return [log for log in logs if os.path.exists(log)] if self.partial else logs

    def list_measured(self, checkpoints: Any) -> list[str]:
        """Return all logs and records, and the decisions on further blocks."""
        logs = self.list_logs(checkpoints)
        records = [log.removesuffix("log") + "json" for log in logs]
        return [*logs, *records, *outputs.decision_paths(self.plan)]

    def list_logs_before(self, round: str) -> list[str]:
        """Return the logs on which a decision rests; none once it is made, since it then stands."""
        order = blocks.Order(self.plan)
        if order.decided or int(round) < order.last:
            return []
        return [paths.cell_path("raw", *cell, "log") for cell in order.cells()]

    def list_folders(self) -> list[str]:
        """Return the folders of all logs, and make them; a dry run returns those that exist.

        The deletion of a log makes its folder newer than the tables.
        """
        logs = [paths.cell_path("raw", *cell, "log") for cell in self.order.cells()]
        folders = sorted({os.path.dirname(log) for log in logs})
        if not self._makes_files():
            return [folder for folder in folders if os.path.isdir(folder)]
        for folder in folders:
            os.makedirs(folder, exist_ok=True)
        return folders

    def list_archived(self) -> list[str]:
        """Return the tables and papers of an archive.

        Raises UserError where making them would measure cells, and `measure` is not set.
        """
        order = blocks.Order(self.plan)
        due = sum(pending.is_due(self.plan, cell) for cell in order.cells())
        is_complete = not due and order.decided
        if is_untried(self.plan, blocks.available_environments(self.plan)):
            is_complete = False
        if is_complete or self.partial or self.settings.get("measure"):
            return [*self.tables, *outputs.PAPERS]
        reason = f"{due} of {len(order.cells())} cells are not measured"
        if not order.decided:
            reason += " so far"
        last_plan = read_json(paths.PLAN) or self.plan
        names, last_names = _list_names(self.plan), _list_names(last_plan)
        if names != last_names:
            reason += (
                f"; the last run had another configuration ({', '.join(last_names)}): repeat its "
                "--configfile and --config to archive that"
            )
        raise UserError(
            f"{reason}; `{run.format_command('cells')}` measures them, "
            "and partial=true (--config) archives the cells that exist"
        )

    # For the rules that make products.

    def list_image_files(self) -> list[str]:
        """Return the files that describe the image; none where only the bare host is measured."""
        names = []
        for environment in blocks.available_environments(self.plan):
            for layer in self.plan["environments"][environment]["layers"]:
                names += list(layer)
        return [paths.IMAGE, paths.MANIFEST] if registry.image_forms(names) else []

    def describe_circumstances(self) -> str:
        """Return the circumstances for which a trial of KVM holds, as JSON."""
        return json.dumps(acceleration.current_circumstances())

    def describe_source(self) -> str:
        """Return a digest of the project's source; empty where git does not list its files.

        The command that archives then says why.
        """
        from strata.archive import source as project_source

        with contextlib.suppress(UserError):
            return project_source.hash_source(os.getcwd())
        return ""

    def locate_published_raw(self) -> tuple[str, str]:
        """Return the folder of the published raw results, and a digest of its state.

        Raises UserError where it does not exist.
        """
        folder = source.require_folder(self.settings)
        return folder, source.hash_files(folder)

    # A run.

    def start_run(self) -> None:
        """Lock the project's folder for this run, and write the plan.

        The kernel frees the lock when this process ends.
        """
        os.makedirs("results/tmp", exist_ok=True)
        # Network file systems refuse the lock of a file that is not open for writing.
        self._lock = os.open(paths.RUN_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                "another run is active in this folder; "
                "wait for its end (nothing needs to be unlocked)"
            ) from None
        if not os.fstat(self._lock).st_nlink:
            raise UserError("`python3 -m strata clean` was at work in this folder: run again")
        image = cache.find_image(self.plan["image"]["recipe"]) if self.list_image_files() else None
        if image:
            cache.require_unchanged(image)
        self._write_plan()
        if shutil.which("Rscript") is None and not self.makes_environments():
            progress.print_topic(
                "setup",
                "R is missing, which decisions on more blocks, tables and papers need: "
                "run `make setup`",
            )

    def _write_plan(self) -> None:
        complete: Plan = {**self.plan, "source": plan.read_source(os.getcwd())}
        sealed = seal.read_seal(self.plan)
        if sealed:
            complete["sealed"] = sealed
        plan.write_plan(complete)
        client.write_connection(self.settings["client"])
        cells = blocks.Order(self.plan).cells()
        progress.start_count(sum(not pending.is_due(self.plan, cell) for cell in cells))

    def finish_run(self, is_good: bool) -> None:
        """Remove what killed cells and pending results left, and list the cells that failed.

        is_good: whether all jobs succeeded.
        """
        lifecycle.clean_up_run(run.identify_run())
        cells = [*self.order.cells()]
        pending.remove_placed(self.plan, cells)
        failures = []
        for cell in cells:
            record = read_json(paths.cell_path("failed", *cell, "json"))
            if record:
                failures.append(f"{' · '.join(map(str, cell))}: {record['error']}")
        if not failures or is_good:
            return
        shown = failures[:MOST_SHOWN]
        if len(failures) > MOST_SHOWN:
            shown.append(f"and {len(failures) - MOST_SHOWN} more: see results/failed")
        progress.print_message(
            f"strata: {len(failures)} of {len(cells)} cells failed; once the causes are gone, the "
            "same command measures them again:\n  " + "\n  ".join(shown)
        )


def _list_names(experiment: Any) -> list[str]:
    """Return the names of a plan's environments and workloads."""
    return [*experiment.get("environments", ()), *experiment.get("workloads", ())]


def is_untried(experiment: Plan, environments: Iterable[str]) -> bool:
    """Return whether one of the environments has a virtual machine, and KVM was not tried yet."""
    entries = [experiment["environments"][name] for name in environments]
    return any("accelerator" in entry and entry["accelerator"] is None for entry in entries)


def list_code(*patterns: str) -> list[str]:
    """Return the project's files that some patterns match, without those of tests."""
    names: set[str] = set()
    for pattern in patterns:
        names.update(glob.glob(pattern, recursive=True))
    return sorted(name for name in names if os.path.isfile(name) and "/tests/" not in name)


def describe_error(error: UserError | OSError) -> str:
    """Return the message of an error that a user can mend."""
    return access.explain_error(error) if isinstance(error, OSError) else str(error)


def end_with(error: UserError | OSError) -> None:
    """Print an error that a user can mend, and end this process with status 1."""
    if isinstance(error, OSError):
        error = UserError(access.explain_error(error))
    progress.print_error(error)
    sys.exit(1)
