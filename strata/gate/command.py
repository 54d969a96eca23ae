"""The command ``gate``: it measures until each budget is decided, or the time is up."""

import contextlib
import glob
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from strata import __version__
from strata.archive import compare
from strata.archive.checksums import hash_file
from strata.experiment import config, measuring, plan, planning
from strata.gate import reports
from strata.gate.budgets import Budget, read_budgets
from strata.gate.measure import Pair, Session, build_session_config
from strata.host import capacity, node
from strata.util import access, locks, paths, programs, progress, yaml_files
from strata.util.clock import Clock
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.files import read_json, write_json, write_text

# The numbers of blocks after which a budget is judged: the planned interim analyses ("looks"), of
# which each takes an equal share of the error rate.  analysis/budgets.R divides the rate by their
# number, and studies/gate.R simulates both series; it mirrors LOOKS and SESSION_LOOKS.
LOOKS = (8, 16, 32, 64, 128)
# The number of blocks of a session for a budget with a baseline, and the numbers of sessions after
# which this budget is judged.  LOOKS and SESSION_LOOKS have the same length, since R divides the
# error rate of both by the same number.
SESSION_BLOCKS = 16
SESSION_LOOKS = (3, 4, 6, 8, 12)
# Verdict → exit status, which CI reads.  The first verdict here that any budget has decides.
STATUSES = {
    reports.FAILED: 1,
    reports.NOT_COMPARABLE: 2,
    reports.UNDECIDED: 3,
    reports.PASSED: 0,
}
# The file in the folder of a complete session: its description (Session.describe).
_DONE = "gate.json"
# The files in the folder of a gate: those of its last call, and the outcomes of all calls.
_REPORTS = ("junit.xml", "summary.md")
_HISTORY = "history.jsonl"
_LOCK = ".lock"


def run_gate(file: str, out: str, overrides: Fields) -> int:
    """Measure and judge the budgets of a file, write the reports, and return the exit status.

    file: the path of the file of budgets.
    out: the path of the folder for reports and sessions, which is created; its old reports are
    removed.
    overrides: key of config.yaml → the value that replaces its own.
    Each call measures its own session, or continues one that was interrupted.
    The status is 0 if all budgets are kept, 1 if one is exceeded, 2 if one cannot be compared, and
    3 if one is undecided; the first of 1, 2 and 3 that applies is returned.
    Raises UserError for mistakes in the files, and MachineError if measuring fails.
    """
    started = time.monotonic()
    _remove_reports(out)
    settings = config.read_config(overrides)
    seconds, budgets = read_budgets(file, settings)
    content = config.merge_mappings(yaml_files.read_yaml_mapping(config.FILE), overrides)
    # One verdict for each budget, in the same order; the calls below replace the empty ones.
    verdicts: list[Fields] = [{} for _ in budgets]
    budget_indices = _set_unavailable_verdicts(budgets, verdicts, content)
    session = None
    with contextlib.ExitStack() as stack:
        baselines = _open_baselines(stack, budgets, settings["scale"])
        if budget_indices:
            if not stack.enter_context(locks.hold_lock(os.path.join(out, _LOCK), wait=False)):
                raise UserError(
                    f"{out}: another gate is active in this folder; wait for its end, or name "
                    "another folder with --to"
                )
            pairs = _list_needed_pairs([budgets[index] for index in budget_indices])
            folder = _choose_session_folder(out)
            session = Session(folder, build_session_config(content, pairs, LOOKS[-1]))
            gate = _Gate(out, session, budgets, verdicts, baselines, seconds)
            gate.measure_until_decided(budget_indices)
    elapsed_seconds = time.monotonic() - started
    return _write_and_print_outcome(file, out, session, budgets, verdicts, elapsed_seconds)


def _open_baselines(
    stack: contextlib.ExitStack, budgets: Sequence[Budget], scale: str
) -> dict[str, str]:
    """Open and check the sessions of all baselines; return ``{session's path: results folder}``.

    stack: closes the sessions; temporary copies of archives exist until then.
    scale: the scale of this project, "standard" or "paper".
    Raises UserError if two sessions of a baseline have the same start, if one has another scale, or
    if one has no run that its budget compares.
    """
    session_paths = sorted({path for budget in budgets for path in budget.sessions})
    baselines = {
        path: os.path.abspath(stack.enter_context(compare.open_results(path)))
        for path in session_paths
    }
    for budget in budgets:
        compare.check_session_starts(budget.baseline, [baselines[path] for path in budget.sessions])
        _check_baseline_scale(budget, baselines, scale)
        _check_baseline_runs(budget, baselines)
    return baselines


def _check_baseline_scale(budget: Budget, baselines: Mapping[str, str], scale: str) -> None:
    """Raise UserError if a session of a budget's baseline has another scale than this project.

    baselines: the path of a session → its folder of results.
    scale: the scale of this project.
    A session without a readable plan, or whose plan has no scale, passes.
    """
    for path in budget.sessions:
        plan_path = os.path.join(baselines[path], os.path.basename(paths.PLAN))
        session_plan = read_json(plan_path) or {}
        session_scale = session_plan.get("scale", scale)
        if session_scale != scale:
            raise UserError(
                f"{path}: is at the scale {session_scale}, and this project at {scale}; measure "
                "both at one scale"
            )


def _check_baseline_runs(budget: Budget, baselines: Mapping[str, str]) -> None:
    """Raise UserError if a session of a budget's baseline has not all runs for the comparison.

    It needs a run of the workload in the budget's environment and in its reference.
    baselines: the path of a session → its folder of results.
    """
    for path in budget.sessions:
        for environment in (budget.reference, budget.environment):
            runs = os.path.join(baselines[path], "raw", environment, budget.workload)
            if not glob.glob("*.log", root_dir=runs):
                raise UserError(
                    f"{path}: has no run of {budget.workload} in {environment}, which the budget "
                    "compares; name a baseline that has both sides of the ratio"
                )


def _remove_reports(out: str) -> None:
    """Remove the reports of an earlier call, which CI would mistake for those of this call.

    out: the path of the gate's folder, which may not exist yet.
    Raises UserError if the folder, or its nearest existing parent, cannot be written, or if an old
    report cannot be removed.
    """
    remedy = "so the gate cannot write its reports there; name another folder with --to"
    folder = paths.find_nearest_existing_path(os.path.abspath(out))
    if not os.path.isdir(folder):
        raise UserError(f"{folder}: is not a folder, {remedy}")
    if obstacle := access.explain_denied_write(folder):
        raise UserError(f"{obstacle}, {remedy}")
    for name in _REPORTS:
        path = os.path.join(out, name)
        try:
            if os.path.lexists(path):
                os.remove(path)
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}, {remedy}") from None


def _set_unavailable_verdicts(
    budgets: Sequence[Budget], verdicts: list[Fields], content: Fields
) -> list[int]:
    """Set the verdict on each budget that needs an environment that is not available here.

    budgets: all budgets of the gate.
    verdicts: one for each budget, in the same order; the function replaces some of them.
    content: the content of config.yaml with the caller's overrides.
    Returns the positions (from 0) of the budgets that can be measured.
    Emulated machines do not count as available: their costs say nothing of hardware.
    """
    pairs = _list_needed_pairs(budgets)
    only = {
        "environments": [*dict.fromkeys(environment for environment, _ in pairs)],
        "workloads": [*dict.fromkeys(workload for _, workload in pairs)],
    }
    settings = config.read_config({**content, "only": only, "emulation": False})
    environments = planning.build_plan(settings, capacity.read_host_facts())["environments"]
    budget_indices = []
    for index, budget in enumerate(budgets):
        reasons = [
            f"{name} is not available here: {environments[name].get('reason')}"
            for name in (budget.environment, budget.reference)
            if not environments[name]["available"]
        ]
        if reasons:
            verdicts[index] = {"verdict": reports.NOT_COMPARABLE, "why": "; ".join(reasons)}
        else:
            budget_indices.append(index)
    return budget_indices


def _list_needed_pairs(budgets: Iterable[Budget]) -> list[Pair]:
    """Return the (environment, workload) pairs that budgets need, without repetitions.

    A budget needs its workload in its environment and in its reference.
    """
    pairs: list[Pair] = []
    for budget in budgets:
        pairs += [(name, budget.workload) for name in (budget.reference, budget.environment)]
    return [*dict.fromkeys(pairs)]


def _list_session_folders(out: str) -> list[str]:
    """Return the paths of a gate's session folders, in the order of their numbers."""
    parent = os.path.join(out, "sessions")
    names = os.listdir(parent) if os.path.isdir(parent) else []
    numbers = sorted(int(name) for name in names if name.isdecimal())
    return [os.path.join(parent, str(number)) for number in numbers]


def _choose_session_folder(out: str) -> str:
    """Return the path of the folder for the session of this call, which may not exist yet.

    out: the path of the gate's folder, which holds sessions/1, sessions/2 and so on.
    The folder has the next number, unless the last session was interrupted and the machine has not
    been restarted since: then this session is continued.
    """
    folders = _list_session_folders(out)
    if folders and read_json(os.path.join(folders[-1], _DONE)) is None:
        starts = compare.list_starts(os.path.join(folders[-1], "results"))
        # A start is "BOOT-ID …" (archive/compare.py).
        if all(start.startswith(f"{node.read_boot_id()} ") for start in starts):
            return folders[-1]
    number = int(os.path.basename(folders[-1])) + 1 if folders else 1
    return os.path.join(out, "sessions", str(number))


@dataclass
class _Gate:
    """The measurement of one call, which judges the budgets after planned numbers of blocks.

    out: the path of the gate's folder.
    session: the session that is measured.
    budgets: all budgets of the gate, in the order of the file.
    verdicts: one for each budget, in the order of the budgets; the methods set them, and
    :func:`run_gate` reports them.
    baselines: the path of a session of a baseline → its folder of results.
    seconds: the time for measuring.  It begins before the first block, once the image is built.
    end: when the time is up, by the monotonic clock; infinite until the first block is measured.
    blocks: workload → the number of its measured blocks.
    """

    out: str
    session: Session
    budgets: Sequence[Budget]
    verdicts: list[Fields]
    baselines: dict[str, str]
    seconds: float
    end: float = math.inf
    blocks: dict[str, int] = field(default_factory=dict)

    def measure_until_decided(self, budget_indices: Sequence[int]) -> None:
        """Measure in planned steps, and judge after each, until no budget is open or time is up.

        budget_indices: the positions of the budgets that are judged.  Those with a baseline are
        judged once, when the session is complete, and only after planned numbers of sessions.
        Sets `verdicts`, and writes the session's description, which marks the session as complete
        for later calls.
        """
        self._measure_first_block(budget_indices)
        budget_indices = self._set_size_verdicts(budget_indices)
        baseline_indices = [index for index in budget_indices if self.budgets[index].baseline]
        other_indices = [index for index in budget_indices if not self.budgets[index].baseline]
        self._measure_and_judge_in_steps(other_indices, baseline_indices)
        description = self.session.describe()
        write_json(os.path.join(self.session.folder, _DONE), description)
        self._judge_against_baselines(baseline_indices, description)

    def _measure_first_block(self, budget_indices: Sequence[int]) -> None:
        """Measure the first block of each workload, and start the time for measuring.

        budget_indices: the positions of the budgets whose workloads are measured.
        Sets `blocks` and `end`.  Blocks that an interrupted call measured are kept and counted.
        """
        pairs = _list_needed_pairs([self.budgets[index] for index in budget_indices])
        block_counts = self.session.count_blocks(pairs)
        self.blocks = {name: max(count, 1) for name, count in block_counts.items()}
        # An image may have to be built before the first block, which is not measuring.  The first
        # block itself counts, and shows how long further blocks take.
        self.session.measure_pairs(pairs, self.blocks)
        first_block_seconds = sum(self.session.compute_block_seconds().values())
        self.end = time.monotonic() + self.seconds - first_block_seconds

    def _measure_and_judge_in_steps(
        self, open_indices: Sequence[int], baseline_indices: Sequence[int]
    ) -> None:
        """Measure up to each number of LOOKS, and judge the budgets without a baseline after each.

        open_indices: the positions of the budgets without a baseline.
        baseline_indices: the positions of the budgets with one; their workloads get SESSION_BLOCKS,
        and they are not judged here.
        Ends once all budgets are decided and complete, or prints that the time is up.
        """
        for block_count in LOOKS:
            # A session for a baseline has SESSION_BLOCKS, however many blocks other budgets need.
            incomplete_indices = baseline_indices if block_count <= SESSION_BLOCKS else []
            is_in_time = self._measure_blocks([*open_indices, *incomplete_indices], block_count)
            open_indices = self._judge_budgets(open_indices, [self.session.folder])
            is_session_incomplete = bool(baseline_indices) and block_count < SESSION_BLOCKS
            if not open_indices and not is_session_incomplete:
                return
            if not is_in_time:
                progress.print_message(
                    f"gate: the time is too short for {block_count} blocks of each workload, and "
                    "measuring ends; set a longer `time` in the file of budgets"
                )
                return

    def _judge_against_baselines(self, budget_indices: Sequence[int], description: Fields) -> None:
        """Judge the budgets with a baseline, if the number of sessions is a planned one.

        budget_indices: the positions of these budgets.
        description: the current session's, as :meth:`Session.describe` returns it.
        Sets their verdicts: "not comparable", with the reason, if they are not judged now.
        """
        sessions = self._list_judged_sessions(description)
        reason = _explain_unjudged_sessions(len(sessions))
        if not reason:
            self._judge_budgets(budget_indices, sessions)
            return
        for index in budget_indices:
            self.verdicts[index] = {"verdict": reports.NOT_COMPARABLE, "why": reason}

    def _set_size_verdicts(self, budget_indices: Sequence[int]) -> list[int]:
        """Set the verdict on each budget whose workload has a size that breaks a rule.

        budget_indices: the positions of the budgets, whose first block is measured.
        Returns the positions of the other budgets.
        """
        # Workload → the last of its broken rules, as an entry of `sizes` in a record.
        outcomes: dict[str, Fields] = {}
        for record in measuring.read_records(self.session.results):
            for outcome in record.get("sizes", []):
                # None, for a rule that cannot be checked, is not a broken rule.
                if outcome["holds"] is False:
                    outcomes[record["workload"]] = outcome
        valid_indices = []
        for index in budget_indices:
            workload = self.budgets[index].workload
            if workload not in outcomes:
                valid_indices.append(index)
                continue
            outcome = outcomes[workload]
            why = (
                f"its size breaks a rule: {outcome['rule']} (it is {outcome['value']:g}, and "
                f"must be {outcome['least']:g} at least)"
            )
            self.verdicts[index] = {"verdict": reports.NOT_COMPARABLE, "why": why}
        return valid_indices

    def _measure_blocks(self, budget_indices: Sequence[int], block_count: int) -> bool:
        """Measure blocks of the workloads of some budgets, as far as the time allows.

        budget_indices: the positions of the budgets.
        block_count: the number of blocks of each workload after this call, measured ones included.
        Sets their numbers in `self.blocks`, from which R learns how many blocks count.
        Returns whether the time sufficed for all of them.
        """
        budgets = [self.budgets[index] for index in budget_indices]
        counts_before = {budget.workload: self.blocks[budget.workload] for budget in budgets}
        missing_counts = {
            name: max(block_count - count, 0) for name, count in counts_before.items()
        }
        # A workload without a record has no seconds: its blocks count as 0 seconds.
        block_seconds = self.session.compute_block_seconds()
        needed_seconds = sum(
            count * block_seconds.get(name, 0.0) for name, count in missing_counts.items()
        )
        share = 1.0
        if needed_seconds > 0:
            seconds_left = max(self.end - time.monotonic(), 0.0)
            share = min(1.0, seconds_left / needed_seconds)
        # If time is short, each workload gets the same share of its blocks, rounded down.
        new_counts = {name: int(count * share) for name, count in missing_counts.items()}
        if any(new_counts.values()):
            counts_after = {name: counts_before[name] + new_counts[name] for name in new_counts}
            self.session.measure_pairs(_list_needed_pairs(budgets), counts_after)
            self.blocks |= counts_after
        return share == 1.0

    def _judge_budgets(self, budget_indices: Sequence[int], sessions: Sequence[str]) -> list[int]:
        """Judge budgets by the blocks so far, and return the positions of the undecided budgets.

        budget_indices: the positions of the budgets.
        sessions: the folders of the sessions that count, the current one last.
        Sets their verdicts, and prints a line for each.
        """
        undecided_indices = []
        verdicts = self._judge_in_r(budget_indices, sessions)
        for index, verdict in zip(budget_indices, verdicts, strict=True):
            self.verdicts[index] = verdict
            sentence = reports.describe_verdict(self.budgets[index], verdict)
            progress.print_message(f"gate: {sentence}")
            if verdict["verdict"] == reports.UNDECIDED:
                undecided_indices.append(index)
        return undecided_indices

    def _list_judged_sessions(self, description: Fields) -> list[str]:
        """Return the folders of the complete sessions with the same versions, the current one last.

        description: the current session's ``{start, subject, …}`` from :meth:`Session.describe`;
        sessions with the same versions have an equal `subject`.
        Sessions without a readable description, gate.json, are incomplete, and left out.  If
        several sessions follow one start of kernel and Docker, only the last one counts.  A session
        is left out if its start is also in a baseline.
        """
        folders_by_start: dict[str, str] = {}
        starts_of_baselines = {
            start for results in self.baselines.values() for start in compare.list_starts(results)
        }
        for folder in _list_session_folders(self.out):
            stored = read_json(os.path.join(folder, _DONE))
            if not stored or stored["start"] in starts_of_baselines:
                continue
            if stored["subject"] == description["subject"]:
                # The earlier entry is removed first, so that the folder comes last.
                folders_by_start.pop(stored["start"], None)
                folders_by_start[stored["start"]] = folder
        return [*folders_by_start.values()]

    def _judge_in_r(self, budget_indices: Sequence[int], sessions: Sequence[str]) -> list[Fields]:
        """Return the verdicts of analysis/gate.R on some budgets, in their order.

        budget_indices: the positions of the budgets.
        sessions: the folders of the sessions that count, the current one last, as R expects.
        A verdict has the keys that judge_budget in analysis/budgets.R returns; analysis/gate.R
        reads the question, whose keys it describes.
        """
        if not budget_indices:
            return []
        requests = [self._build_request(self.budgets[index]) for index in budget_indices]
        question = {
            # The interim analyses share the error rate, and so do all budgets of the gate.
            "looks": len(LOOKS),
            "gate": len(self.budgets),
            "sessions": [os.path.abspath(os.path.join(path, "results")) for path in sessions],
            "budgets": requests,
        }
        with programs.create_temporary_folder("gate") as folder:
            question_path = os.path.join(folder, "in.json")
            answer_path = os.path.join(folder, "out.json")
            write_json(question_path, question)
            script = os.path.join(paths.PROJECT, "analysis/gate.R")
            programs.run_r(script, question_path, answer_path)
            verdicts: list[Fields] = read_json(answer_path)["verdicts"]
        return verdicts

    def _build_request(self, budget: Budget) -> Fields:
        """Return an entry of `budgets` in the question that analysis/gate.R reads."""
        request = {
            "environment": budget.environment,
            "workload": budget.workload,
            "reference": budget.reference,
            "at_most": budget.at_most,
            "baseline": [self.baselines[path] for path in budget.sessions],
            "blocks": self.blocks[budget.workload],
        }
        if budget.metric:
            request["metric"] = budget.metric
        return request


def _explain_unjudged_sessions(session_count: int) -> str:
    """Return why the sessions are not judged now, with the remedy; "" if they are judged.

    session_count: how many sessions with the same versions are complete.
    Only the planned numbers of SESSION_LOOKS are judged, since each further test raises the error
    rate.  An example of the result: "2 of 3 sessions are measured: restart the machine, …".
    """
    if session_count in SESSION_LOOKS:
        return ""
    larger_counts = [count for count in SESSION_LOOKS if count > session_count]
    if not larger_counts:
        return (
            f"{session_count} sessions are more than the planned {SESSION_LOOKS[-1]}; a further "
            "test would find a difference in the end by chance: begin again with another --to"
        )
    return (
        f"{session_count} of {larger_counts[0]} sessions are measured: restart the machine, or "
        "Docker if that is what changed, and run the same command again"
    )


def _write_and_print_outcome(
    file: str,
    out: str,
    session: Session | None,
    budgets: Sequence[Budget],
    verdicts: Sequence[Fields],
    seconds: float,
) -> int:
    """Write the reports, print the outcome, and return the exit status.

    file: the path of the file of budgets.
    out: the path of the gate's folder, which gets junit.xml, summary.md and a line of
    history.jsonl.
    session: the session that was measured; None if no budget could be measured.
    budgets: all budgets of the gate.
    verdicts: one for each budget, in the same order.
    seconds: how long the call took.
    CI reads these files (docs/how-to/gate-a-change.md, docs/files.md).
    """
    kinds = [verdict["verdict"] for verdict in verdicts]
    status = next(code for kind, code in STATUSES.items() if kind in kinds)
    summary = _summarize_verdicts(kinds)
    junit_path, summary_path = (os.path.join(out, name) for name in _REPORTS)
    write_text(junit_path, reports.format_junit(budgets, verdicts, seconds))
    write_text(summary_path, reports.format_summary(summary, budgets, verdicts))
    source = plan.read_source_revision(os.getcwd())
    outcome = {
        "date": Clock().format_now(),
        "strata": __version__,
        "commit": source["revision"],
        "changed": source["changed"],
        "budgets": hash_file(file),
        "status": status,
        "seconds": round(seconds),
        **({"session": session.folder, **session.describe()} if session else {}),
        "verdicts": [
            {"budget": budget.name, "limit": budget.limit, **verdict}
            for budget, verdict in zip(budgets, verdicts, strict=True)
        ],
    }
    reports.append_history(os.path.join(out, _HISTORY), outcome)
    for budget, verdict in zip(budgets, verdicts, strict=True):
        progress.print_line(reports.describe_verdict(budget, verdict))
    progress.print_line(summary)
    return status


def _summarize_verdicts(kinds: Sequence[str]) -> str:
    """Return a sentence such as "Of 3 budgets: 2 within, 1 undecided."

    kinds: the verdict of each budget, a key of STATUSES.
    """
    # The passed budgets come first, and the others in the order of STATUSES.
    ordered_kinds = dict.fromkeys((reports.PASSED, *STATUSES))
    counts = [f"{kinds.count(kind)} {kind}" for kind in ordered_kinds if kind in kinds]
    return f"Of {len(kinds)} budgets: {', '.join(counts)}."
