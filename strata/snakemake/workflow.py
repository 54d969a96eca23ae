"""What the Snakefile asks of the package: the experiment, its cells, their order and their inputs."""

import atexit
import contextlib
import fcntl
import functools
import hashlib
import inspect
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from strata import layers
from strata.base import checking, places, progress, run
from strata.base.contracts import result
from strata.base.errors import UserError
from strata.base.files import read_json
from strata.experiment import claims, config, figures, plan, published, sets
from strata.experiment.workload import check_files
from strata.host import capacity
from strata.image import build, cache, depot
from strata.results import accept, digests, made, products
from strata.snakemake import interrupts, nodes
from strata.system import keeper, testbed, turn


def started_by(program: str) -> str:
    """The words by which Snakemake was started, as a person types them; the README's where that can't be said."""

    def near(path: str) -> str:
        beside = os.path.relpath(path)
        return shlex.quote(path if beside.startswith("..") else beside)

    if os.path.basename(program) == "__main__.py":
        return f"{near(sys.executable)} -m snakemake"
    if os.path.basename(program) != "snakemake":
        return ".venv/bin/snakemake"
    found = shutil.which("snakemake")
    return "snakemake" if found and os.path.abspath(found) == os.path.abspath(program) else near(program)


def laid_words(pages: Sequence[str], words: dict) -> str:
    """Snakemake's options for what lies over the page of the experiment, as a person types them."""
    given = [f"{key}={value if isinstance(value, bool) else json.dumps(value)}" for key, value in words.items()]
    options = [("--configfile", list(pages)), ("--config", given)]
    return " ".join(f"{option} {shlex.join(values)}" for option, values in options if values)


class Workflow:
    """The experiment as the rules see it.

    settings: the checked config.  plan: the object of results/plan.json.
    """

    def __init__(
        self,
        over: dict,
        project: str,
        part: bool = False,
        spread: Callable[[], bool] = lambda: False,
        laid: Callable[[], tuple[Sequence[str], dict]] | None = None,
    ) -> None:
        """Read the experiment.

        part: whether this Snakemake was started on a node for some cells of a run.  spread: says, once all is read,
        whether cells go to nodes.  laid: says of what `over` was made: pages, and the words of the command line; all
        are such words without it.
        """
        if not part:
            os.environ[run.SNAKEMAKE] = started_by(sys.argv[0])
        # The rules' commands find this interpreter and this package, and know whose end to outlive.
        os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
        os.environ["PYTHONPATH"] = project
        run.begin(part)
        self.project, self._spread = project, spread
        self.rebuilding = over.get("rebuild") in (True, "true")
        # An archive may be older than the Snakemake that would be asked.
        pages, words = ([], over) if self.rebuilding or laid is None else laid()
        checking.complain("--config", checking.plain(words))
        if not part:
            os.environ[run.OVER] = laid_words(pages, words)
        over = config.laid_over(pages, words)
        if self.rebuilding or part:
            if self.rebuilding:
                os.environ[made.KEEP] = "1"
            # The plan that is there counts: neither this machine nor the page of the experiment is asked.
            self.settings: dict[str, Any] = {
                "published_raw": None,
                "archive_image": False,
                "partial": over.get("partial") is True,
            }
            self.plan = plan.read_checked()
            self._source = self.plan.pop("source", None)
        else:
            claims.check()
            self.settings = config.read(over)
            self.plan = config.experiment(self.settings, capacity.facts())
            self._source = plan.source(project)
            # Cells that were measured on nodes stay of nodes.
            self.plan |= {"spread": True} if plan.spread() else {}
        # What profiles/slurm asks for.
        os.environ["STRATA_CPUS"] = str(self.plan["machine"]["cpus"])
        self.partial = self.settings["partial"]
        self.workloads = sorted(self.plan["workloads"])
        self.environments = sorted(sets.available(self.plan))
        self._fingerprint = functools.cache(lambda *cell: plan.fingerprint(self.plan, *cell))
        self._order = sets.Order(self.plan)
        self._places = {} if part else self._rank()
        self._coming: set[sets.Cell] = set()
        self._lock: int | None = None
        # Snakemake asks for the signature of these again and again for every job: they have it ready.
        self.fingerprint = lambda wildcards: self._fingerprint(wildcards.environment, wildcards.workload)
        self.priority = lambda wildcards: self._places.get(
            (wildcards.environment, wildcards.workload, int(wildcards.repetition)), 0
        )
        if part:
            self.priority = lambda wildcards: (
                -(self._order.position(wildcards.environment, wildcards.workload, int(wildcards.repetition)) or 0)
            )
            self._prepare_node(over)
        for function in (self.fingerprint, self.priority):
            vars(function)["__signature__"] = inspect.signature(function)

    def _rank(self) -> dict[sets.Cell, int]:
        """The priority of every cell that is decided: the earlier the higher."""
        cells = self._order.cells()
        return {cell: len(cells) - place for place, cell in enumerate(cells)}

    def _prepare_node(self, over: dict) -> None:
        """See that this node is as the plan has its machine, and has the image; nothing stays up after its job."""
        nodes.check(self.plan)
        there = not self.needs_image() or cache.find(self.plan["image"]["recipe"])
        if self.needs_image():
            depot.take(self.plan["image"]["recipe"])
        # Of the page a node asks only how its machines' disks would be made, and that only where there are machines.
        if any("accelerator" in self.plan["environments"][name] for name in self.environments):
            accelerator = build.ensure_machines(config.read(over)["image"], layers.forms(self.layers()))
            if accelerator:
                nodes.check_accelerator(self.plan, accelerator)
        if not there:
            testbed.tidy()
        if run.owner()["pid"] == os.getpid():
            atexit.register(self.end)

    def job_options(self) -> dict[str, Callable]:
        """Resources of a cell that tell Slurm where the rest of its set was measured; none before any was."""
        if not self.plan.get("spread"):
            return {}
        return {
            "slurm_extra": lambda wildcards: nodes.options(
                self._order,
                (wildcards.environment, wildcards.workload, int(wildcards.repetition)),
                self._coming,
            )
        }

    @functools.cached_property
    def _state(self) -> made.State:
        """The products as they are now."""
        if self._spread():
            self.plan["spread"] = True
        return made.State({**self.plan, "source": self._source}, found=digests.Digests(digests.MEMORY))

    @functools.cached_property
    def _products(self) -> dict[str, products.Product]:
        """Everything that is made of the cells, by its name."""
        return {**self._state.products(self.measured()), **products.of_reanalysis()}

    def _of_product(self, told: Callable[[products.Product], Any], name: str) -> Callable:
        """A function of a job's wildcards, which stand in the name of its product."""

        def of_job(wildcards: Any) -> Any:
            return told(made.find(self._products, self.plan, name.format(**dict(wildcards.items()))))

        return of_job

    def files(self, name: str) -> list[str]:
        """The files of a product that follows from no plan."""
        return list(products.of_reanalysis()[name].files)

    def made_by(self, name: str) -> Callable:
        """What changes with the plan, the code and the texts that make a product."""
        return self._of_product(lambda product: self._state.made_by(product), name)

    def again(self, name: str) -> Callable:
        """What changes where a product, or what it was made of, is not what it was when it was made."""
        return self._of_product(lambda product: self._state.again(product), name)

    def reads(self, name: str) -> Callable:
        """The files of other products that a product is made of."""
        return self._of_product(self._tables, name)

    def notes(self, name: str) -> Callable:
        """What was noted of the products that a product is made of."""

        def noted(product: products.Product) -> list[str]:
            read = set(self._tables(product))
            return [other.note for other in self._products.values() if read & set(other.files)]

        return self._of_product(noted, name)

    def _tables(self, product: products.Product) -> list[str]:
        # Whether there are enough sets is known before: that is a checkpoint's.
        return [file for file in product.reads if not file.startswith("results/precision/")]

    def everything(self) -> list[str]:
        """All that an archive holds of what was made, and what was noted of it."""
        found = [product for product in self._state.products(self.measured()).values() if not product.blocks]
        return [file for product in found for file in (*product.files, product.note)]

    def cells(self, workload: str, checkpoints: Any = None) -> list[str]:
        """Logs of a workload's cells: all that are planned, or in a partial run those that are there.

        Where sets are added, `checkpoints` (Snakemake's) tell how many.
        """
        logs = self.logs(workload, None if self.partial else self.blocks(checkpoints))
        return [log for log in logs if os.path.exists(log)] if self.partial else logs

    def logs(self, workload: str, blocks: int | None) -> list[str]:
        """Logs of a workload's cells in the first blocks of the plan, without those that this run has given up."""
        # They are given up before the last block only where sets are added, and nobody asks for them again.
        refused = accept.refused_by(workload, run.owner()) if self.adaptive else set()
        logs = [
            places.cell_path("raw", environment, workload, repetition, "log")
            for environment in self.environments
            for repetition in self._order.repetitions(environment, workload, blocks)
        ]
        return [log for log in logs if log not in refused]

    def all_logs(self, blocks: int | None) -> list[str]:
        """Logs of every workload's cells in the first blocks of the plan."""
        return [log for workload in self.workloads for log in self.logs(workload, blocks)]

    @property
    def adaptive(self) -> bool:
        """Whether sets are added."""
        return "precision" in self.plan and not self.partial

    def blocks(self, checkpoints: Any) -> int | None:
        """The last block that is to be measured; raises Snakemake's own exception while that is open."""
        if not self.adaptive:
            return None
        order = sets.Order(self.plan, results=None)
        while True:
            known = order.last
            decision = read_json(checkpoints.precision.get(block=known).output.state)
            if decision is None or not order.extend(decision):
                return known
            if order.rounds != self._order.rounds[: len(order.rounds)]:
                self._order = order.copy()
                self._places = self._rank()

    def _budget(self) -> float | None:
        """Seconds of the budget that earlier runs left, by decisions and by what was measured; None without one."""
        budget = self.plan["precision"]["budget"] if self.adaptive else None
        if budget is None:
            return None
        known = (read_json(result("precision", block=block)) or {} for block in self._order.asked)
        decided = max(decision.get("spent_seconds", 0.0) for decision in known)
        return max(0.0, budget - max(decided, sum(self._seconds())))

    def _seconds(self) -> Iterator[float]:
        """What each cell took whose record is there and says so."""
        for folder in (folder for workload in self.workloads for folder in self.folders(workload)):
            for entry in os.scandir(folder):
                if entry.name.endswith(".json"):
                    # A record that is damaged is told elsewhere.
                    with contextlib.suppress(ValueError, TypeError, KeyError):
                        yield float((read_json(entry.path) or {})["seconds"])

    def decided_before(self, block: int) -> list[str]:
        """What was decided before the decision after a block."""
        return [result("precision", block=other) for other in self._order.asked if other < block]

    def folders(self, workload: str) -> list[str]:
        """Those folders of a workload's logs that are there."""
        logs = [places.cell_path("raw", environment, workload, 1, "log") for environment in self.environments]
        return [os.path.dirname(log) for log in logs if os.path.isdir(os.path.dirname(log))]

    def layers(self) -> set[str]:
        """Names of the layers of the environments that are measured."""
        return {
            kind for name in self.environments for entry in self.plan["environments"][name]["layers"] for kind in entry
        }

    def needs_image(self) -> bool:
        """Whether a configured environment runs anything of the image (the bare host does not)."""
        return bool(layers.forms(self.layers()))

    def measured(self) -> list[str]:
        """Workloads that have a cell to show."""
        return [workload for workload in self.workloads if not self.partial or self.cells(workload)]

    def figures(self) -> dict[str, str]:
        """The workload of every figure that can be drawn, by the stem of its file."""
        return figures.of_plan(self.plan)

    def shared_figures(self) -> list[str]:
        """The stems of the figures that are of all workloads."""
        return figures.SHARED

    def published_raw(self) -> str:
        """Where the published raw results are.  Raises UserError where the config does not say."""
        return published.named(self.settings)

    def published_state(self) -> str:
        """What changes when the published raw results do."""
        return published.state(self.published_raw())

    def tested_claims(self) -> str:
        """The option that names the claims as they were tested on this machine; none where they were not."""
        return f"--claims {result('claims')}" if os.path.exists(result("claims")) else ""

    def tested_state(self) -> str | None:
        """What changes when the claims are tested again."""
        return self._state.digests.of(result("claims"))

    def source_state(self) -> str:
        """What changes when a file of the project's source does."""
        from strata.archive import source

        found = hashlib.sha256()
        listed = source.listing(self.project)
        for name in [*listed.files, *listed.apart]:
            with open(os.path.join(self.project, name), "rb") as file:
                found.update(f"{name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode(errors="replace"))
        return found.hexdigest()

    def begin(self, cells: Sequence[sets.Cell], measuring: bool = True) -> None:
        """Take this folder for the run of these cells, write the plan, see that the image is there.

        What is known of the machine then may change the order of the cells.

        The kernel frees the folder when the run ends, however it does.  Where nothing of the experiment is wanted
        (`measuring` is false), neither plan nor image is needed; where a paper is made again, they are as they are.
        """
        os.makedirs("results/tmp", exist_ok=True)
        self._lock = os.open("results/tmp/run.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                "another run is at work in this folder; wait for it to end (nothing needs to be unlocked)"
            ) from None
        self._state.digests.save()
        if not measuring or self.rebuilding:
            return
        for workload in self.workloads:
            check_files(workload, self.plan["workloads"][workload]["parameters"])
        if self.needs_image() and (cells or not os.path.exists(places.IMAGE)):
            there = cache.find(self.plan["image"]["recipe"])
            build.publish(build.ensure(self.settings["image"]))
            if build.ensure_machines(self.settings["image"], layers.forms(self.layers())):
                # What accelerates a machine may be known only now.
                several = {"spread": True} if self.plan.get("spread") else {}
                self.plan = config.experiment(self.settings, capacity.facts()) | several
                self._fingerprint.cache_clear()
                self._order = sets.Order(self.plan)
                self._places = self._rank()
                for known in ("_state", "_products"):
                    self.__dict__.pop(known, None)
            if there is None:
                testbed.tidy()
        if self._spread():
            self._prepare_nodes(cells)
        plan.write({**self.plan, "source": self._source})
        turns = [(cell[0], self._order.turn(*cell)) for cell in cells]
        progress.begin(os.getpid(), list(cells), turns, self.adaptive, self._budget())
        interrupts.pass_on()

    def _prepare_nodes(self, cells: Sequence[sets.Cell]) -> None:
        """See that cells can be measured on other machines, and that none is on this one."""
        self.plan["spread"] = True
        self._coming = set(cells)
        # All of a node's memory, whatever a job gets without being asked.
        os.environ.setdefault("SBATCH_MEM_PER_NODE", "0")
        if self.needs_image() and cells:
            depot.put(self.plan["image"]["recipe"])
        bound = {(cell[1:], one) for cell in cells if (one := nodes.of_set(self._order, cell, self._coming))}
        for (workload, repetition), one in sorted(bound):
            progress.say(
                "set",
                f"{workload} {repetition} is completed on node {one}, where the rest of it was measured; if that is "
                f"gone, remove results/raw/*/{workload}/{repetition}.log, and it is measured as a whole on another",
            )

    def end(self) -> None:
        """Remove what the run left up, where its last cell did not: at once, rather than by the keeper.

        It does not wait for the measurements of another run: what is up then is the keeper's to remove.
        """
        owner = run.owner()
        if self.rebuilding or not testbed.left_by(owner):
            return
        try:
            with testbed.exclusive(wait=not keeper.is_there(owner)):
                testbed.remove_of(owner)
        except turn.Taken as taken:
            progress.say("testbed", f"{taken}; what this run left up is removed as soon as that has ended")
