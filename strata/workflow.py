"""Provide the experiment to Snakemake's rules: the order of cells, inputs of rules, and runs."""

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
from strata.experiment import blocks, config, plan, planning
from strata.host import capacity
from strata.image import cache, kvm_trial
from strata.measure import pending
from strata.reanalysis import source
from strata.results import outputs, pairs
from strata.testbed import lifecycle
from strata.util import access, paths, progress, run, signals
from strata.util.constants import get_result_path
from strata.util.data_types import Fields, Plan
from strata.util.errors import UserError
from strata.util.files import read_json
from strata.vm import acceleration

# The priority of a cell is this number minus its position in the plan: cells run in the order of
# the plan, after checkpoints, whose priority is higher (rules/measure.smk).  No plan has as many
# cells.
MAX_CELLS = 10**7
# How many failed cells are listed at the end of a run; results/failed has all of them.
MAX_SHOWN = 5
# Snakemake's triggers without which results would not follow: "params" for cells, "mtime" for all
# that is made of them.
TRIGGERS = ("mtime", "params")

# The experiments that this process has read, for :func:`start_run`.
_experiments: list["Experiment"] = []


def start_run() -> None:
    """Start the run of the experiment that this process read last.

    The `onstart` of a workflow that imports this one calls it (docs/snakemake.md).
    Raises UserError as :meth:`Experiment.start_run` does.
    """
    _experiments[-1].start_run()


class Experiment:
    """Provide the experiment of config.yaml to the rules of Snakemake.

    settings: the checked configuration.
    plan: the object of results/plan.json.
    order: the order of the cells, as far as the number of cells is decided.
    digest: a hash that changes with the plan; tables and papers are made again with it.
    rests_on: a hash of the part of the plan on which decisions on further blocks depend.
    tables: the paths of all tables.
    partial: whether tables and papers are made from the cells that exist.
    get_triggers: a function that returns the rerun triggers of this Snakemake.
    makes_environments: a function that returns whether this Snakemake creates the software
    environments of rules.
    """

    def __init__(
        self,
        overrides: Fields,
        project: str,
        makes_files: Callable[[], bool] = lambda: True,
        names: Sequence[str] = (),
    ) -> None:
        """Read the experiment, and prepare this process for the commands of the rules.

        Sets PATH, PYTHONPATH and STRATA_CPUS, which the commands inherit, and declares the run.
        overrides: values that replace values of config.yaml, from files and from --config.
        project: the path of the project's folder, which must be the working directory.
        makes_files: a function that returns whether this Snakemake makes files; a dry run does not.
        names: the paths of the configuration files in `overrides`.
        Raises UserError with all mistakes, or if Snakemake could not work in this folder.
        """
        self._makes_files = makes_files
        _prepare_process(project)
        files = [*map(os.path.relpath, names)]
        self.settings: dict[str, Any] = config.read_config(config.Overrides(overrides, files))
        self.partial: bool = self.settings["partial"]
        # The state of the decisions, and the torn blocks that were found for it.
        self._torn_cache: tuple[Any, pairs.Torn] = (None, {})
        # The open file whose lock the run holds; None before the run starts.
        self._lock: int | None = None
        self.get_triggers: Callable[[], Iterable[str]] = lambda: TRIGGERS
        self.makes_environments: Callable[[], bool] = lambda: False
        self._build_plan()
        # profiles/slurm requests this number of CPUs for a job.
        os.environ["STRATA_CPUS"] = str(self.plan["machine"]["cpus"])
        _experiments.append(self)

    def _build_plan(self) -> None:
        """Build the plan from the configuration, and set the attributes that follow from it."""
        self.plan = planning.build_plan(self.settings, capacity.read_host_facts())
        self.digest = seal.hash_plan(self.plan)
        self.rests_on = blocks.hash_decision_basis(self.plan)
        self.tables = outputs.list_table_paths(self.plan)
        self._fingerprints: dict[tuple[str, str], str] = {}
        self.order = blocks.Order(self.plan)

    # For the rule `cell`.

    def compute_cell_priority(self, environment: str, workload: str, repetition: str) -> int:
        """Return the priority of a cell, which is higher the earlier the cell is in the plan.

        repetition: a string of digits, as Snakemake passes wildcards.
        On several nodes, a cell that failed has the lowest priority, 0.  The job of a block ends
        with its first failing cell, which would otherwise delay the cells after it in every run.
        A cell that is not planned has the priority 0, too: its own rule reports it
        (:meth:`check_cell_is_planned`).
        """
        cell = (environment, workload, int(repetition))
        if self.plan.get("spread") and os.path.exists(paths.get_cell_path("failed", *cell, "json")):
            return 0
        if cell not in self.order.places:
            return 0
        position, _ = self.order.places[cell]
        return MAX_CELLS - position

    def check_cell_is_planned(self, environment: str, workload: str, repetition: str) -> None:
        """Raise UserError unless a cell is planned; the message names its log and the reason.

        repetition: a string of digits, as Snakemake passes wildcards; others raise ValueError.
        A cell that a decision added since the order was read is planned, too.
        """
        cell = (environment, workload, int(repetition))
        if cell in self.order.places:
            return
        # A decision may have added blocks since the order was read.
        order = blocks.Order(self.plan)
        if cell not in order.places:
            log = paths.get_cell_path("raw", *cell, "log")
            raise UserError(f"{log}: {order.explain_missing_cell(*cell)}")

    def compute_cell_fingerprint(self, environment: str, workload: str, repetition: str) -> str:
        """Return the hash of everything that decides a cell's result; a change makes the cell due.

        environment: the name of the cell's environment.
        workload: the name of its workload.
        repetition: a string of digits, as Snakemake passes wildcards.
        If the cell needs KVM, and KVM was not tried yet, this method boots a guest to try KVM, and
        builds the plan again, unless this is a dry run.
        Raises UserError unless the cell is planned.
        """
        self.check_cell_is_planned(environment, workload, repetition)
        if self._makes_files() and kvm_trial.is_kvm_trial_needed(self.plan, [environment]):
            # A cell that is its own target does not depend on the checkpoint `machine`.  The
            # new plan follows from the answer that the trial keeps.
            kvm_trial.determine_accelerator(self.settings["image"])
            self._build_plan()
        key = (environment, workload)
        if key not in self._fingerprints:
            self._fingerprints[key] = plan.compute_fingerprint(self.plan, *key)
        return self._fingerprints[key]

    # For the rules that need many cells.

    def resolve_order(self, checkpoints: Any) -> blocks.Order:
        """Return the order of all cells once their number is decided, and set ``order`` to it.

        checkpoints: the object `checkpoints` of the workflow, with `machine` and `decide`
        (rules/measure.smk).
        Until the number is decided, `get` of a checkpoint raises an exception of Snakemake.
        Snakemake then runs this checkpoint and calls the method again.
        If KVM has been tried meanwhile, the plan is built again; during a run it is also written.
        Raises UserError if an option of Snakemake would keep results of other parameters or logs.
        """
        missing_triggers = set(TRIGGERS) - set(self.get_triggers())
        if missing_triggers:
            raise UserError(
                f"rerun-triggers: leaves out {' and '.join(sorted(missing_triggers))}, so that "
                "results of other parameters or logs would stay: run without this option, or say "
                f"`--rerun-triggers {' '.join(TRIGGERS)}`"
            )
        if kvm_trial.is_kvm_trial_needed(self.plan, blocks.list_available_environments(self.plan)):
            checkpoints.machine.get()
            self._build_plan()
            if self._lock is not None:
                # The run has begun, and its cells read the plan in results/.
                self._write_plan()
        # Snakemake asks for the priorities of cells after this: these follow from the order.
        self.order = blocks.Order(self.plan)
        if not self._is_decided(self.order):
            checkpoints.decide.get(round=self.order.last)
        return self.order

    def _is_decided(self, order: blocks.Order) -> bool:
        """Return whether an order is final: no further decision adds cells to it.

        In a partial run every order is final.
        """
        return self.partial or (order.decided and not self._find_torn_blocks(order))

    def _find_torn_blocks(self, order: blocks.Order) -> pairs.Torn:
        """Return the torn blocks that must be replaced, as :func:`pairs.find_torn_blocks` does.

        The result is cached in `_torn_cache` until the next decision: Snakemake calls this method
        often, and finding torn blocks reads the records of all cells.
        """
        path = get_result_path("precision", round=order.last)
        modification_time = os.stat(path).st_mtime_ns if os.path.exists(path) else None
        decision_state = (self.rests_on, order.last, modification_time)
        cached_state, torn = self._torn_cache
        if decision_state != cached_state:
            torn = pairs.find_torn_blocks(self.plan, order)
            self._torn_cache = (decision_state, torn)
        return torn

    def list_logs(self, checkpoints: Any) -> list[str]:
        """Return the paths of all cells' logs; in a partial run, of the existing logs.

        checkpoints: the workflow's, for :meth:`resolve_order`, whose exceptions this method raises.
        """
        cells = self.resolve_order(checkpoints).list_cells()
        logs = [paths.get_cell_path("raw", *cell, "log") for cell in cells]
        return [log for log in logs if os.path.exists(log)] if self.partial else logs

    def list_measurement_files(self, checkpoints: Any) -> list[str]:
        """Return the paths of all logs, records and decisions on further blocks.

        checkpoints: the workflow's, for :meth:`resolve_order`, whose exceptions this method raises.
        """
        logs = self.list_logs(checkpoints)
        return [*logs, *_list_records(logs), *outputs.list_decision_paths(self.plan)]

    def list_decision_inputs(self, round_number: str) -> list[str]:
        """Return the paths of the logs and records that a decision on further blocks needs.

        The list is empty after the decision, so that later changes of logs do not repeat it.  The
        last decision, which added no block, is made again if a block was torn since.
        round_number: the round after which the decision is due, a string of digits, as Snakemake
        passes wildcards.
        """
        order = blocks.Order(self.plan)
        if self._is_decided(order) or int(round_number) < order.last:
            return []
        logs = [paths.get_cell_path("raw", *cell, "log") for cell in order.list_cells()]
        return [*logs, *_list_records(logs)]

    def describe_basis(self, round_number: str) -> str:
        """Return a hash of the part of the plan on which the decision after a round depends.

        round_number: the number of the round, a string of digits, as Snakemake passes wildcards.
        Without a valid decision after the round, the result is the hash for a decision made now.
        The hash is a parameter of the rule `decide`, so a decision is made again when it changes.
        """
        return blocks.Order(self.plan).bases.get(int(round_number), self.rests_on)

    def list_log_folders(self) -> list[str]:
        """Create the missing folders of all logs, and return the paths of all of them.

        In a dry run, no folder is created, and only existing folders are returned.
        The folders are inputs of tables: removing a log makes its folder newer than the tables, so
        that these are made again.
        """
        logs = [paths.get_cell_path("raw", *cell, "log") for cell in self.order.list_cells()]
        folders = sorted({os.path.dirname(log) for log in logs})
        if not self._makes_files():
            return [folder for folder in folders if os.path.isdir(folder)]
        for folder in folders:
            os.makedirs(folder, exist_ok=True)
        return folders

    def list_archive_inputs(self, papers: bool = True) -> list[str]:
        """Return the paths of the tables, and of the papers if requested, for an archive.

        papers: whether the archive contains the papers.
        Raises UserError if making them would measure cells, unless the key `measure` is set or the
        run is partial.
        """
        order = blocks.Order(self.plan)
        torn = pairs.find_torn_blocks(self.plan, order)
        order.add_replacements(torn)
        due_count = sum(pending.is_due(self.plan, cell) for cell in order.list_cells())
        is_trial_needed = kvm_trial.is_kvm_trial_needed(
            self.plan, blocks.list_available_environments(self.plan)
        )
        is_complete = not due_count and order.decided and not is_trial_needed
        if is_complete or self.partial or self.settings.get("measure"):
            return [*self.tables, *(outputs.PAPERS if papers else ())]
        raise UserError(self._explain_incomplete_archive(order, torn, due_count))

    def _explain_incomplete_archive(
        self, order: blocks.Order, torn: pairs.Torn, due_count: int
    ) -> str:
        """Return why an archive would be incomplete, and which command completes it.

        order: the order of cells, with the blocks that replace torn ones.
        torn: the torn blocks.
        due_count: the number of cells that are not measured; if it is 0, and no decision is due,
        the reason is that KVM was not tried.
        """
        remedy = "measures them"
        if due_count:
            reason = f"{due_count} of {len(order.list_cells())} cells are not measured"
            if not order.decided:
                reason += " so far"
        elif not order.decided:
            reason = "the decision on further blocks is due"
            remedy = "makes it, and measures the blocks that it adds"
        else:
            reason = "KVM was not tried here yet"
            remedy = "tries it"
        if torn:
            reason += f" ({'; '.join(pairs.describe_torn_blocks(torn))})"
        # If there is no plan of a last run, its configuration is not compared.
        last_plan = read_json(paths.PLAN) or self.plan
        last_names = _list_plan_names(last_plan)
        if _list_plan_names(self.plan) != last_names:
            reason += (
                f"; the last run had another configuration ({', '.join(last_names)}): repeat its "
                "--configfile and --config to archive that"
            )
        return (
            f"{reason}; `{run.format_target_command('cells')}` {remedy}, "
            "and partial=true (--config) archives the cells that exist"
        )

    # For the rules that make products.

    def list_image_files(self) -> list[str]:
        """Return the paths of the files that describe the image; empty if none is used."""
        layer_names: list[str] = []
        for environment in blocks.list_available_environments(self.plan):
            for layer in self.plan["environments"][environment]["layers"]:
                layer_names += layer
        return [paths.IMAGE, paths.MANIFEST] if registry.collect_image_forms(layer_names) else []

    def format_kvm_circumstances(self) -> str:
        """Return the circumstances in which a test of KVM is valid, as a string of JSON.

        The string is a parameter of the rule `machine`, which runs again if it changes.  An example
        is ``{"boot": "0f3c…", "device": true}``; see
        :func:`strata.vm.acceleration.read_trial_conditions`.
        """
        return json.dumps(acceleration.read_trial_conditions())

    def hash_project_source(self) -> str:
        """Return a hash of the project's source, or "" if git does not list its files.

        A UserError of git is ignored here: the command that makes the archive reports it.  The hash
        is a parameter of the archive's rules, which run again if it changes.
        """
        from strata.archive import source as project_source

        with contextlib.suppress(UserError):
            return project_source.hash_source(os.getcwd())
        return ""

    def get_published_results(self) -> tuple[str, str]:
        """Return ``(folder, hash)``: the path of published raw results, and a hash of its files.

        Raises UserError if the folder does not exist.
        """
        folder = source.get_required_folder(self.settings)
        return folder, source.hash_published_files(folder)

    # A run.

    def start_run(self) -> None:
        """Lock the project's folder for this run, check the image, and write the plan.

        Prints torn blocks, and a note if R is missing.  Snakemake calls it through `onstart`, and
        not in a dry run.
        Raises UserError if another run is active in the folder, or if the image was changed.
        """
        self._lock_project_folder()
        image = cache.find_image(self.plan["image"]["recipe"]) if self.list_image_files() else None
        if image:
            cache.require_unchanged_tree(image)
        self._write_plan()
        # Filled when Snakemake asked for the inputs of its rules; empty if no rule needed torn
        # blocks.
        _, torn = self._torn_cache
        for sentence in pairs.describe_torn_blocks(torn):
            progress.print_topic_message("plan", sentence)
        if shutil.which("Rscript") is None and not self.makes_environments():
            progress.print_topic_message(
                "setup",
                "R is missing, which decisions on more blocks, tables and papers need: "
                "run `make setup`",
            )

    def _lock_project_folder(self) -> None:
        """Lock the project's folder for this run, and set `_lock`, the file that holds the lock.

        Creates results/tmp.  The kernel releases the lock when this process ends.
        Raises UserError if another run is active in the folder, or if `clean` removed the file.
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
        # `clean` may have removed the file after it was opened; its lock then has no effect.
        if not os.fstat(self._lock).st_nlink:
            raise UserError("`python3 -m strata clean` was at work in this folder: run again")

    def _write_plan(self) -> None:
        """Write the plan, with its source and seal, and the settings of the connection to a client.

        Also records how many cells are measured already, from which later messages count.
        """
        complete: Plan = {**self.plan, "source": plan.read_source_revision(os.getcwd())}
        seal_entry = seal.read_seal(self.plan)
        if seal_entry:
            complete["sealed"] = seal_entry
        plan.write_plan(complete)
        client.write_client_connection(self.settings["client"])
        cells = blocks.Order(self.plan).list_cells()
        progress.record_run_start(sum(not pending.is_due(self.plan, cell) for cell in cells))

    def list_missing_decisions(self) -> list[str]:
        """Return the paths of decisions that are due or possible now, and that no file holds."""
        rounds = blocks.Order(self.plan).decision_rounds
        decision_paths = [get_result_path("precision", round=number) for number in rounds]
        return [path for path in decision_paths if not os.path.exists(path)]

    def finish_run(self, is_good: bool) -> None:
        """Clean up after the run, and print the cells that failed if not all jobs succeeded.

        is_good: whether all jobs succeeded.
        Removes systems that killed cells left, and pending results whose copies are in results/raw.
        Also prints the torn blocks that the next run for tables replaces.
        """
        lifecycle.clean_up_after_run(run.identify_run_process())
        cells = self.order.list_cells()
        pending.remove_copied_results(self.plan, cells)
        if not self.partial:
            torn = pairs.find_torn_blocks(self.plan, blocks.Order(self.plan))
            for sentence in pairs.describe_torn_blocks(torn):
                progress.print_topic_message(
                    "plan", f"{sentence} by the next run for tables or papers"
                )
        if not is_good:
            _print_failed_cells(cells)


def _print_failed_cells(cells: Sequence[blocks.Cell]) -> None:
    """Print up to MAX_SHOWN cells that failed, with their reasons; nothing if no cell failed.

    cells: all planned cells.
    A line is, for example, "docker · stream · 2: its server ended before it was ready".
    """
    failures = []
    for cell in cells:
        # measure/block.py writes these records, with the reason as `error`.
        if record := read_json(paths.get_cell_path("failed", *cell, "json")):
            failures.append(f"{' · '.join(map(str, cell))}: {record['error']}")
    if not failures:
        return
    lines = failures[:MAX_SHOWN]
    if len(failures) > MAX_SHOWN:
        lines.append(f"and {len(failures) - MAX_SHOWN} more: see results/failed")
    progress.print_message(
        f"strata: {len(failures)} of {len(cells)} cells failed; once the causes are gone, the "
        "same command measures them again:\n  " + "\n  ".join(lines)
    )


def _prepare_process(project: str) -> None:
    """Prepare this process, which is Snakemake's, for the commands of the rules.

    project: the path of the project's folder.
    Sets PATH and PYTHONPATH, and the variables that identify the run (util/run.py); the commands
    inherit all of them.
    Raises UserError if the path contains braces, if the project is not the working directory, or if
    it cannot be written.
    """
    run.remove_steering_variables()
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
    access.require_writable_project()
    run.declare_run_owner(sys.argv)


def _list_records(logs: Iterable[str]) -> list[str]:
    """Return the paths of the records that belong to some logs, in the same order."""
    return [log.removesuffix("log") + "json" for log in logs]


def _list_plan_names(experiment: Any) -> list[str]:
    """Return the names of the environments of a plan, and then of its workloads.

    experiment: a mapping; a plan of another format may have neither key.
    """
    return [*experiment.get("environments", ()), *experiment.get("workloads", ())]


def list_code(*patterns: str) -> list[str]:
    """Return the sorted paths of the project's files that match some patterns, without tests.

    patterns: patterns of :func:`glob.glob`, in which ``**`` matches any folders.
    The rules have these files as inputs, so that a change of one makes their products again.
    """
    matches: set[str] = set()
    for pattern in patterns:
        matches.update(glob.glob(pattern, recursive=True))
    return sorted(path for path in matches if os.path.isfile(path) and "/tests/" not in path)


def format_error_message(error: UserError | OSError) -> str:
    """Return the message of an error that the user can correct, as one or more lines."""
    return access.explain_os_error(error) if isinstance(error, OSError) else str(error)


def exit_with_error(error: UserError | OSError) -> None:
    """Print an error that the user can correct, and end this process with status 1."""
    progress.print_error(
        error if isinstance(error, UserError) else UserError(format_error_message(error))
    )
    sys.exit(1)
