"""The command ``gate``: it measures until each budget is decided, or the time is over."""

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

# The numbers of blocks after which a budget is judged.  Each look takes its share of the error
# rate: analysis/budgets.R divides the rate by the number of looks.
LOOKS = (8, 16, 32, 64, 128)
# The number of blocks of a session for a budget with a baseline, and the numbers of sessions after
# which this budget is judged: as many looks as LOOKS has, since both share the rate in equal parts.
SESSION_BLOCKS = 16
SESSION_LOOKS = (3, 4, 6, 8, 12)
# The exit status for each verdict; CI relies on it.  The first of these that a budget has decides.
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
    out: the folder for reports and sessions, which is created; its old reports are removed.
    overrides: values that replace values of config.yaml.
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
    open_budgets = _set_unavailable_verdicts(budgets, verdicts, content)
    session = None
    with contextlib.ExitStack() as stack:
        baselines = {
            path: os.path.abspath(stack.enter_context(compare.open_results(path)))
            for path in sorted({path for budget in budgets for path in budget.sessions})
        }
        for budget in budgets:
            compare.check_session_starts(
                budget.baseline, [baselines[path] for path in budget.sessions]
            )
            _check_baseline_scale(budget, baselines, settings["scale"])
            _check_baseline_runs(budget, baselines)
        if open_budgets:
            pairs = _list_needed_pairs([budgets[number] for number in open_budgets])
            if not stack.enter_context(locks.hold_lock(os.path.join(out, _LOCK), wait=False)):
                raise UserError(
                    f"{out}: another gate is active in this folder; wait for its end, or name "
                    "another folder with --to"
                )
            folder = _choose_session_folder(out)
            session = Session(folder, build_session_config(content, pairs, LOOKS[-1]))
            gate = _Gate(out, session, budgets, verdicts, baselines, seconds)
            gate.measure_until_decided(open_budgets)
    seconds_spent = time.monotonic() - started
    return _write_and_print_outcome(file, out, session, budgets, verdicts, seconds_spent)


def _check_baseline_scale(budget: Budget, baselines: Mapping[str, str], scale: str) -> None:
    """Raise UserError if a session of a budget's baseline has another scale than this project.

    baselines: the path of a session → its folder of results.
    """
    for path in budget.sessions:
        plan_there = read_json(os.path.join(baselines[path], os.path.basename(paths.PLAN))) or {}
        scale_there = plan_there.get("scale", scale)
        if scale_there != scale:
            raise UserError(
                f"{path}: is at the scale {scale_there}, and this project at {scale}; measure both "
                "at one scale"
            )


def _check_baseline_runs(budget: Budget, baselines: Mapping[str, str]) -> None:
    """Raise UserError if a session of a budget's baseline lacks runs that the budget compares.

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

    out: the folder of the gate, which may not exist yet.
    Raises UserError if reports cannot be written into the folder.
    """
    remedy = "so the gate cannot write its reports there; name another folder with --to"
    folder = paths.find_nearest_existing_path(os.path.abspath(out))
    if not os.path.isdir(folder):
        raise UserError(f"{folder}: is no folder, {remedy}")
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

    verdicts: one for each budget, in the same order; the function replaces some of them.
    content: the content of config.yaml with the caller's overrides.
    Returns the positions of the budgets that can be measured, from 0.
    """
    pairs = _list_needed_pairs(budgets)
    only = {
        "environments": [*dict.fromkeys(environment for environment, _ in pairs)],
        "workloads": [*dict.fromkeys(workload for _, workload in pairs)],
    }
    narrowed = config.read_config({**content, "only": only, "emulation": False})
    planned = planning.build_plan(narrowed, capacity.read_host_facts())["environments"]
    remaining = []
    for number, budget in enumerate(budgets):
        reasons = [
            f"{name} is not available here: {planned[name].get('reason')}"
            for name in (budget.environment, budget.reference)
            if not planned[name]["available"]
        ]
        if reasons:
            verdicts[number] = {"verdict": reports.NOT_COMPARABLE, "why": "; ".join(reasons)}
        else:
            remaining.append(number)
    return remaining


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

    The folder has a new number, unless the last session was interrupted and the machine has not
    been restarted since: then this session is continued.
    """
    folders = _list_session_folders(out)
    if folders and read_json(os.path.join(folders[-1], _DONE)) is None:
        starts = compare.list_starts(os.path.join(folders[-1], "results"))
        if all(start.startswith(f"{node.read_boot_id()} ") for start in starts):
            return folders[-1]
    number = int(os.path.basename(folders[-1])) + 1 if folders else 1
    return os.path.join(out, "sessions", str(number))


@dataclass
class _Gate:
    """The measurement of one call, which judges the budgets after planned numbers of blocks.

    out: the folder of the gate.  session: the session that is measured.
    verdicts: one for each budget, in the order of the budgets; the methods set them, and
    :func:`run_gate` reports them.
    baselines: the path of a session of a baseline → its folder of results.
    seconds: the time for measuring.  It begins before the first block, once the image is built.
    end: when the time is over, by the monotonic clock; infinite until the first block is measured.
    blocks: the number of measured blocks of each workload.
    """

    out: str
    session: Session
    budgets: Sequence[Budget]
    verdicts: list[Fields]
    baselines: dict[str, str]
    seconds: float
    end: float = math.inf
    blocks: dict[str, int] = field(default_factory=dict)

    def measure_until_decided(self, numbers: Sequence[int]) -> None:
        """Measure in planned steps, and judge after each, until no budget is open or time is over.

        numbers: the positions of the budgets that are judged.  Those with a baseline are judged
        once, when the session is complete, and only after planned numbers of sessions.
        Writes the session's description, which marks it as complete for later calls.
        """
        pairs = _list_needed_pairs([self.budgets[number] for number in numbers])
        # The first block shows how long blocks take; before it, an image may have to be built.
        # Blocks that an interrupted call measured count, too.
        measured = self.session.count_blocks(pairs)
        self.blocks = {name: max(count, 1) for name, count in measured.items()}
        self.session.measure_pairs(pairs, self.blocks)
        numbers = self._set_size_verdicts(numbers)
        with_baseline = [number for number in numbers if self.budgets[number].baseline]
        undecided = [number for number in numbers if number not in with_baseline]
        first_seconds = sum(self.session.compute_block_seconds().values())
        self.end = time.monotonic() + self.seconds - first_seconds
        for look in LOOKS:
            # A session for a baseline has SESSION_BLOCKS, however many blocks other budgets need.
            unfinished = with_baseline if look <= SESSION_BLOCKS else []
            is_in_time = self._measure_blocks([*undecided, *unfinished], look)
            undecided = self._judge_budgets(undecided, [self.session.folder])
            needs_blocks = undecided or (with_baseline and look < SESSION_BLOCKS)
            if not needs_blocks:
                break
            if not is_in_time:
                progress.print_message(
                    f"gate: the time does not suffice for {look} blocks of each workload, so that "
                    "measuring ends here; `time` in the file of budgets gives more"
                )
                break
        description = self.session.describe()
        write_json(os.path.join(self.session.folder, _DONE), description)
        sessions = self._list_judged_sessions(description)
        if reason := _explain_unjudged_sessions(len(sessions)):
            for number in with_baseline:
                self.verdicts[number] = {"verdict": reports.NOT_COMPARABLE, "why": reason}
        else:
            self._judge_budgets(with_baseline, sessions)

    def _set_size_verdicts(self, numbers: Sequence[int]) -> list[int]:
        """Set the verdict on each budget whose workload has a size that breaks a rule.

        numbers: the positions of the budgets, whose first block is measured.
        Returns the positions of the other budgets.
        """
        broken: dict[str, Fields] = {}
        for record in measuring.read_records(self.session.results):
            for outcome in record.get("sizes", []):
                if outcome["holds"] is False:
                    broken[record["workload"]] = outcome
        for number in numbers:
            if outcome := broken.get(self.budgets[number].workload):
                why = (
                    f"its size breaks a rule: {outcome['rule']} (it is {outcome['value']:g}, and "
                    f"must be {outcome['least']:g} at least)"
                )
                self.verdicts[number] = {"verdict": reports.NOT_COMPARABLE, "why": why}
        return [number for number in numbers if self.budgets[number].workload not in broken]

    def _measure_blocks(self, numbers: Sequence[int], blocks: int) -> bool:
        """Measure blocks of the workloads of some budgets, as far as the time allows.

        numbers: the positions of the budgets.
        blocks: the wanted number of blocks of each workload, measured ones included.
        Sets their numbers in `self.blocks`, from which R learns how many blocks count.
        Returns whether the time sufficed for all of them.
        """
        budgets = [self.budgets[number] for number in numbers]
        measured = {budget.workload: self.blocks[budget.workload] for budget in budgets}
        added = {name: max(blocks - count, 0) for name, count in measured.items()}
        seconds = self.session.compute_block_seconds()
        needed_seconds = sum(count * seconds.get(name, 0.0) for name, count in added.items())
        share = 1.0
        if needed_seconds > 0:
            seconds_left = max(self.end - time.monotonic(), 0.0)
            share = min(1.0, seconds_left / needed_seconds)
        # If time is short, each workload gets the same share of its blocks.
        affordable = {name: int(count * share) for name, count in added.items()}
        if any(affordable.values()):
            wanted = {name: measured[name] + count for name, count in affordable.items()}
            self.session.measure_pairs(_list_needed_pairs(budgets), wanted)
            self.blocks |= wanted
        return share == 1.0

    def _judge_budgets(self, numbers: Sequence[int], sessions: Sequence[str]) -> list[int]:
        """Judge budgets by the blocks so far, and return the positions of the undecided budgets.

        Sets their verdicts, and prints a line for each.
        numbers: the positions of the budgets.
        sessions: the folders of the sessions that count, the current one last.
        """
        for number, verdict in zip(numbers, self._judge_in_r(numbers, sessions), strict=True):
            self.verdicts[number] = verdict
            sentence = reports.describe_verdict(self.budgets[number], verdict)
            progress.print_message(f"gate: {sentence}")
        return [
            number for number in numbers if self.verdicts[number]["verdict"] == reports.UNDECIDED
        ]

    def _list_judged_sessions(self, description: Fields) -> list[str]:
        """Return the folders of the complete sessions with the same versions, the current one last.

        description: of the current session, as :meth:`Session.describe` returns it; sessions with
        the same versions have an equal `subject`.
        If several sessions follow one start of kernel and Docker, only the last one counts.  A
        session is left out if its start is also in a baseline.
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

    def _judge_in_r(self, numbers: Sequence[int], sessions: Sequence[str]) -> list[Fields]:
        """Return the verdicts of analysis/gate.R on some budgets, in their order.

        numbers: the positions of the budgets.
        sessions: the folders of the sessions that count, the current one last, as R expects.
        A verdict has the keys that judge_budget in analysis/budgets.R returns; analysis/gate.R
        describes the keys of the question.
        """
        if not numbers:
            return []
        requests = []
        for number in numbers:
            budget = self.budgets[number]
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
            requests.append(request)
        question = {
            # The looks share the error rate, and so do all budgets of the gate.
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


def _explain_unjudged_sessions(session_count: int) -> str:
    """Return why the sessions are not judged now, with the remedy; "" if they are judged.

    session_count: how many sessions with the same versions are complete.
    Only the planned numbers of SESSION_LOOKS are judged, since each further test raises the error
    rate.
    """
    if session_count in SESSION_LOOKS:
        return ""
    later = [number for number in SESSION_LOOKS if number > session_count]
    if not later:
        return (
            f"{session_count} sessions are more than the planned {SESSION_LOOKS[-1]}; a further "
            "look would find a difference in the end by chance: begin again with another --to"
        )
    return (
        f"{session_count} of {later[0]} sessions are measured: restart the machine, or Docker if "
        "that is what changed, and run the same command again"
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
    out: the folder of the gate, which gets junit.xml, summary.md and a line of history.jsonl.
    session: the session that was measured; None if no budget could be measured.
    verdicts: one for each budget, in the order of the budgets.
    seconds: how long the call took.
    CI reads these files (docs/how-to/gate-a-change.md, docs/files.md).
    """
    outcomes = [verdict["verdict"] for verdict in verdicts]
    status = next(code for outcome, code in STATUSES.items() if outcome in outcomes)
    # In the text, the passed budgets come first, and the others in the order of STATUSES.
    kinds = dict.fromkeys((reports.PASSED, *STATUSES))
    counts = [f"{outcomes.count(kind)} {kind}" for kind in kinds if kind in outcomes]
    text = f"Of {len(budgets)} budgets: {', '.join(counts)}."
    junit, summary = (os.path.join(out, name) for name in _REPORTS)
    write_text(junit, reports.format_junit(budgets, verdicts, seconds))
    write_text(summary, reports.format_summary(text, budgets, verdicts))
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
    progress.print_line(text)
    return status
