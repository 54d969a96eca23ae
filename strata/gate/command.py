"""The command ``gate``: it measures until each budget is decided, or the time is over."""

import contextlib
import os
import time
from collections.abc import Iterable, Sequence

from strata import __version__
from strata.archive import compare
from strata.archive.checksums import hash_file
from strata.experiment import config, plan, planning
from strata.gate import reports
from strata.gate.budgets import Budget, read_budgets
from strata.gate.measure import Pair, Session, session_config
from strata.host import capacity, node
from strata.util import paths, programs, progress, yaml_files
from strata.util.clock import Clock
from strata.util.data_types import Fields
from strata.util.errors import MachineError
from strata.util.files import read_json, write_json, write_text

# After so many blocks a budget is judged; each look takes its share of the error rate.
LOOKS = (8, 16, 32, 64, 128)
# With a baseline a session has so many blocks, and after so many sessions a budget is judged.
SESSION_BLOCKS = 16
SESSION_LOOKS = (3, 4, 6, 8, 12)
WITHIN, BEYOND, NOT_COMPARABLE, UNDECIDED = 0, 1, 2, 3
# The file of a session that is complete: what it is a session of.
_DONE = "gate.json"


def run_gate(file: str, out: str, overrides: Fields) -> int:
    """Measure and judge the budgets of a file, write the reports, and return the exit status.

    file: path of the budgets.  out: the folder for reports and sessions.
    overrides: values that replace those of config.yaml.
    Returns 0 if all budgets are kept, 1 if one is surely exceeded, 2 if one cannot be compared, 3
    if one is undecided.
    Raises UserError for mistakes in the files, and MachineError if measuring fails.
    """
    begun = time.monotonic()
    settings = config.read_config(overrides)
    seconds, budgets = read_budgets(file, settings)
    content = config.merge_mappings(yaml_files.read_mapping(config.FILE), overrides)
    verdicts: list[Fields] = [{} for _ in budgets]
    open_budgets = _refuse_unavailable(budgets, verdicts, content)
    session = None
    with contextlib.ExitStack() as stack:
        baselines = {
            path: os.path.abspath(stack.enter_context(compare.open_results(path)))
            for path in sorted({path for budget in budgets for path in budget.sessions})
        }
        for budget in budgets:
            compare.require_starts(budget.baseline, [baselines[path] for path in budget.sessions])
        if open_budgets:
            pairs = _list_pairs([budgets[number] for number in open_budgets])
            folder = _choose_folder(out)
            session = Session(folder, session_config(content, pairs, LOOKS[-1]))
            gate = _Gate(out, session, budgets, verdicts, baselines, seconds)
            gate.measure_until_decided(open_budgets)
    spent = time.monotonic() - begun
    return _report(file, out, session, budgets, verdicts, spent)


def _refuse_unavailable(
    budgets: Sequence[Budget], verdicts: list[Fields], content: Fields
) -> list[int]:
    """Give a verdict to each budget whose environments are not available here.

    Returns the numbers of the others.
    """
    names = [name for budget in budgets for name in (budget.environment, budget.reference)]
    only = {
        "environments": [*dict.fromkeys(names)],
        "workloads": [*dict.fromkeys(budget.workload for budget in budgets)],
    }
    narrowed = config.read_config({**content, "only": only, "emulation": False})
    planned = planning.make_plan(narrowed, capacity.read_facts())["environments"]
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


def _list_pairs(budgets: Iterable[Budget]) -> list[Pair]:
    """Return the environments and workloads that budgets need, each once."""
    pairs: list[Pair] = []
    for budget in budgets:
        pairs += [(name, budget.workload) for name in (budget.reference, budget.environment)]
    return [*dict.fromkeys(pairs)]


def _list_session_folders(out: str) -> list[str]:
    """Return the paths of the folders of a gate's sessions, in their order."""
    base = os.path.join(out, "sessions")
    names = os.listdir(base) if os.path.isdir(base) else []
    numbers = sorted(int(name) for name in names if name.isdecimal())
    return [os.path.join(base, str(number)) for number in numbers]


def _choose_folder(out: str) -> str:
    """Return the folder of the session that begins.

    It is new, unless a call was interrupted since the machine started: its session is continued.
    """
    folders = _list_session_folders(out)
    if folders and read_json(os.path.join(folders[-1], _DONE)) is None:
        starts = compare.read_starts(os.path.join(folders[-1], "results"))
        if all(start.startswith(f"{node.boot_id()} ") for start in starts):
            return folders[-1]
    number = int(os.path.basename(folders[-1])) + 1 if folders else 1
    return os.path.join(out, "sessions", str(number))


class _Gate:
    """The looks of one call at the blocks that it measures."""

    def __init__(
        self,
        out: str,
        session: Session,
        budgets: Sequence[Budget],
        verdicts: list[Fields],
        baselines: dict[str, str],
        seconds: float,
    ) -> None:
        """Set what is judged.

        out: the folder of the gate.  session: measured now.  verdicts: one for each budget, which
        are set.  baselines: path of a session → its folder of results.
        seconds: for measuring, once the image is built and the first block is measured.
        """
        self._out = out
        self._session = session
        self._budgets = budgets
        self._verdicts = verdicts
        self._baselines = baselines
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._blocks: dict[str, int] = {}

    def measure_until_decided(self, numbers: Sequence[int]) -> None:
        """Measure in planned steps, and judge after each, until nothing is open or time is over.

        numbers: of the budgets that are judged.  Those with a baseline are judged once, when the
        session is complete.
        """
        by_session = [number for number in numbers if self._budgets[number].baseline]
        remaining = [number for number in numbers if number not in by_session]
        # The first block tells how long blocks take; before it, an image may have to be built.
        self._measure(numbers, 1)
        self._end = time.monotonic() + self._seconds - sum(self._session.block_seconds().values())
        for look in LOOKS:
            short = by_session if look <= SESSION_BLOCKS else []
            in_time = self._measure([*remaining, *short], look)
            remaining = self._judge(remaining, [self._session.folder])
            if not in_time or not (remaining or (look < SESSION_BLOCKS and by_session)):
                break
        description = self._session.describe()
        write_json(os.path.join(self._session.folder, _DONE), description)
        sessions = self._list_sessions(description)
        if reason := _explain_no_look(len(sessions)):
            for number in by_session:
                self._verdicts[number] = {"verdict": reports.NOT_COMPARABLE, "why": reason}
        else:
            self._judge(by_session, sessions)

    def _measure(self, remaining: Sequence[int], blocks: int) -> bool:
        """Measure so many blocks in all for the open budgets, as far as the time allows.

        Returns whether all of them were measured.
        """
        budgets = [self._budgets[number] for number in remaining]
        wanted = {
            budget.workload: max(blocks, self._blocks.get(budget.workload, 0)) for budget in budgets
        }
        added = {name: number - self._blocks.get(name, 0) for name, number in wanted.items()}
        costs = self._session.block_seconds() if self._blocks else {}
        left = self._end - time.monotonic()
        cost = sum(added[name] * costs.get(name, 0.0) for name in added)
        share = min(1.0, max(left, 0.0) / cost) if cost > 0 else 1.0
        for name, number in added.items():
            wanted[name] -= number - int(number * share)
        if any(number > self._blocks.get(name, 0) for name, number in wanted.items()):
            self._session.measure(_list_pairs(budgets), wanted)
            self._blocks |= wanted
        return share == 1.0

    def _judge(self, numbers: Sequence[int], sessions: Sequence[str]) -> list[int]:
        """Judge budgets by the blocks so far, print a line for each, and return the open ones.

        numbers: of the budgets.  sessions: the folders of the sessions that count.
        """
        for number, verdict in zip(numbers, self._judge_in_r(numbers, sessions), strict=True):
            self._verdicts[number] = verdict
            sentence = reports.describe_verdict(self._budgets[number], verdict)
            progress.print_message(f"gate: {sentence}")
        return [
            number for number in numbers if self._verdicts[number]["verdict"] == reports.UNDECIDED
        ]

    def _list_sessions(self, description: Fields) -> list[str]:
        """Return the folders of the sessions of the same versions, this one last.

        description: of this session.  Of several within one start of kernel and Docker the last
        one counts.
        """
        of_start: dict[str, str] = {}
        for folder in _list_session_folders(self._out):
            done = read_json(os.path.join(folder, _DONE))
            if done and done["subject"] == description["subject"]:
                of_start.pop(done["start"], None)
                of_start[done["start"]] = folder
        return [*of_start.values()]

    def _judge_in_r(self, numbers: Sequence[int], sessions: Sequence[str]) -> list[Fields]:
        """Return the verdicts of R on some budgets, in their order.

        numbers: of the budgets.  sessions: the folders of the sessions that count.
        Raises MachineError if R does not write a verdict for each.
        """
        if not numbers:
            return []
        entries = []
        for number in numbers:
            budget = self._budgets[number]
            entry = {
                "environment": budget.environment,
                "workload": budget.workload,
                "reference": budget.reference,
                "at_most": budget.at_most,
                "baseline": [self._baselines[path] for path in budget.sessions],
                "blocks": self._blocks[budget.workload],
            }
            if budget.metric:
                entry["metric"] = budget.metric
            entries.append(entry)
        request = {
            "looks": len(LOOKS),
            "gate": len(self._budgets),
            "sessions": [os.path.abspath(os.path.join(path, "results")) for path in sessions],
            "budgets": entries,
        }
        with programs.temporary_folder("gate") as folder:
            question, answer = (os.path.join(folder, name) for name in ("in.json", "out.json"))
            write_json(question, request)
            programs.run_r(os.path.join(paths.PROJECT, "analysis/gate.R"), question, answer)
            verdicts = (read_json(answer) or {}).get("verdicts")
        if not isinstance(verdicts, list) or len(verdicts) != len(numbers):
            raise MachineError("analysis/gate.R: it ended without writing its verdicts")
        return verdicts


def _explain_no_look(sessions: int) -> str:
    """Return why so many sessions are not judged, with the remedy; "" if they are judged."""
    if sessions in SESSION_LOOKS:
        return ""
    later = [number for number in SESSION_LOOKS if number > sessions]
    if not later:
        return (
            f"{sessions} sessions are more than the planned {SESSION_LOOKS[-1]}; a further look "
            "would find a difference in the end by chance: begin anew with another --to"
        )
    return (
        f"{sessions} of {later[0]} sessions are measured: restart the machine, or Docker if that "
        "is what changed, and run the same command again"
    )


def _report(
    file: str,
    out: str,
    session: Session | None,
    budgets: Sequence[Budget],
    verdicts: Sequence[Fields],
    seconds: float,
) -> int:
    """Write the reports, print the outcome, and return the exit status.

    file: path of the budgets.  out: the folder of the gate.
    session: measured now; None if no budget could be measured.  verdicts: one for each budget.
    seconds: how long the call took.
    """
    outcomes = [verdict["verdict"] for verdict in verdicts]
    # The first of these that a budget has decides the exit status.
    statuses = {
        reports.FAILED: BEYOND,
        reports.NOT_COMPARABLE: NOT_COMPARABLE,
        reports.UNDECIDED: UNDECIDED,
        reports.PASSED: WITHIN,
    }
    status = next(code for outcome, code in statuses.items() if outcome in outcomes)
    counts = [
        f"{outcomes.count(outcome)} {outcome}"
        for outcome in (reports.PASSED, *statuses)
        if outcome in outcomes
    ]
    counts = [*dict.fromkeys(counts)]
    text = f"Of {len(budgets)} budgets: {', '.join(counts)}."
    write_text(os.path.join(out, "junit.xml"), reports.make_junit(budgets, verdicts, seconds))
    write_text(os.path.join(out, "summary.md"), reports.make_summary(text, budgets, verdicts))
    source = plan.read_source(os.getcwd())
    entry = {
        "date": Clock().now(),
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
    reports.append_history(os.path.join(out, "history.jsonl"), entry)
    for budget, verdict in zip(budgets, verdicts, strict=True):
        progress.print_line(reports.describe_verdict(budget, verdict))
    progress.print_line(text)
    return status
