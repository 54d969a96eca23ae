"""What may go into tables: records that the judge finds good, and logs that their parsers take.

A log that its parser refuses is a failed cell.  It goes to results/failed with the parser's words, and is measured
again once; if that is refused too, it is left out and named.  What was taken once stays what it is: where a changed
parser refuses it, the parser is to be mended, and nothing is measured again.
"""

import os
import subprocess
import sys
from collections.abc import Callable

from strata.base import places, progress, run
from strata.base.errors import UserError
from strata.base.files import move, read_json, write_json
from strata.experiment import sets
from strata.results import judge
from strata.results.judge import Cell

# Cell → why its parser refuses its log.
Refusals = dict[Cell, str]


def state_path(workload: str) -> str:
    """The file that says which logs of a workload were taken, by their digest, and which were refused by whose run."""
    return f"results/logs/accepted/{workload}.json"


def refused_by(workload: str, owner: dict) -> set[str]:
    """The logs of a workload that were refused for good in the run of a process."""
    state = read_json(state_path(workload)) or {}
    refused = state.get("refused")
    known = refused if isinstance(refused, list) and state.get("run") == owner else []
    return {log for log in known if isinstance(log, str)}


def accept(
    experiment: dict,
    workloads: list[str],
    blocks: int | None,
    partial: bool = False,
    parse: Callable[[list[Cell]], Refusals] | None = None,
    measure: Callable[[Cell], bool] | None = None,
) -> None:
    """See that tables can be made of the cells of workloads in the first blocks; what cannot is a failed cell.

    blocks: how many; all that are planned where it is None.  In a `partial` paper, which is made of what is there, a
    record that is not good makes a failed cell too, and nothing is measured again; nor is it where cells are
    measured on several nodes.  Raises UserError that names what is wrong.
    """
    parse, measure = parse or _parse, measure or _measure
    again = not partial and not experiment.get("spread")
    cells = [cell for cell in sets.Order(experiment).cells(blocks) if cell[1] in workloads]
    for workload in workloads:
        own = [cell for cell in cells if cell[1] == workload]
        there = _judged(experiment, own, partial)
        taken = _taken(workload)
        new = [cell for cell in there if taken.get(_log(cell)) != _digest(cell) and not _cannot(cell)]
        refused = parse(new) if new else {}
        if len(refused) > 1 and len(refused) == len(there):
            cell, words = next(iter(refused.items()))
            raise UserError(
                f"workloads/{workload}/parse.R refuses all {len(there)} logs, and so it is not the cells that failed: "
                f"mend it; the first is {_log(cell)}: {words}"
            )
        last: Refusals = {}
        for cell, words in refused.items():
            fail(cell, words)
            last |= _again(experiment, cell, words, parse, measure) if again else {cell: words}
        for cell, words in last.items():
            _tell(cell, words)
        good = {_log(cell): _digest(cell) for cell in there if cell not in last}
        if good or last:
            gone = {log for log in refused_by(workload, run.owner()) if not os.path.exists(log)}
            given_up = sorted(gone | {_log(cell) for cell in last})
            state = {"format": 1, "taken": good, "refused": given_up, "run": run.owner()}
            write_json(state_path(workload), state)


def _judged(experiment: dict, cells: list[Cell], partial: bool) -> list[Cell]:
    """The measured ones among cells, all of which are good."""
    there = judge.measured(cells)
    wrong = judge.faults(experiment, there)
    if wrong and not partial:
        raise UserError(judge.complaint(wrong))
    for cell, sentences in wrong.items():
        fail(cell, "; ".join(sentences))
        _tell(cell, "; ".join(sentences))
    return [cell for cell in there if cell not in wrong]


def fail(cell: Cell, words: str) -> None:
    """Make a failed cell of a measured one; `words` say why it is refused."""
    record = places.cell_path("raw", *cell, "json")
    told = {key: value for key, value in (read_json(record) or {}).items() if key != "error"}
    write_json(places.cell_path("failed", *cell, "json"), {**told, "error": words, "refused": True})
    move(_log(cell), places.cell_path("failed", *cell, "log"))
    if os.path.exists(record):
        os.unlink(record)


def _again(
    experiment: dict, cell: Cell, words: str, parse: Callable[[list[Cell]], Refusals], measure: Callable[[Cell], bool]
) -> Refusals:
    """Measure a refused cell once more; what its parser, the judge or the cell itself says if that is no better."""
    progress.say("cell", f"{_name(cell)} is measured again, since its parser refuses its log: {words}")
    if not measure(cell):
        failure = places.cell_path("failed", *cell, "json")
        told = read_json(failure) or {}
        write_json(failure, {**told, "refused": True})
        return {cell: str(told.get("error", words))}
    wrong = judge.faults(experiment, [cell]).get(cell)
    refused = {cell: "; ".join(wrong)} if wrong else parse([cell])
    for _, reason in refused.items():
        fail(cell, reason)
    return refused


def _measure(cell: Cell) -> bool:
    """Measure a cell as the workflow does; whether that went well.  Raises UserError where a person ended it."""
    done = subprocess.run([sys.executable, "-S", "-m", "strata", "cell", *map(str, cell)], check=False)
    if done.returncode != 0 and progress.interrupted():
        raise UserError(f"{_name(cell)} was interrupted")
    return done.returncode == 0


def _parse(cells: list[Cell]) -> Refusals:
    """Let the parsers of the workloads read logs, all in one process."""
    listing, verdict = "results/tmp/to-read.json", "results/tmp/refused.json"
    write_json(listing, {"logs": [_log(cell) for cell in cells]})
    script = os.path.join("analysis", "accept.R")
    try:
        done = subprocess.run(
            ["Rscript", script, "--plan", places.PLAN, "--logs", listing, "--out", verdict],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError:
        raise UserError("Rscript is missing; `make setup-paper` installs it") from None
    if done.returncode != 0:
        raise UserError((done.stderr or done.stdout).strip())
    found = (read_json(verdict) or {}).get("refused")
    if not isinstance(found, dict):
        raise UserError(f"{verdict}: does not say which logs are refused")
    return {cell: found[_log(cell)] for cell in cells if _log(cell) in found}


def _taken(workload: str) -> dict:
    taken = (read_json(state_path(workload)) or {}).get("taken")
    return taken if isinstance(taken, dict) else {}


def _digest(cell: Cell) -> str | None:
    """The digest of a log, as the record has it, which was judged."""
    record = read_json(places.cell_path("raw", *cell, "json"))
    return record["log"]["sha256"] if record else None


def _cannot(cell: Cell) -> bool:
    """Whether a cell is the finding that its environment cannot do the workload, of which no parser is asked."""
    return "cannot" in (read_json(places.cell_path("raw", *cell, "json")) or {})


def _log(cell: Cell) -> str:
    return places.cell_path("raw", *cell, "log")


def _name(cell: Cell) -> str:
    return f"{cell[0]} · {cell[1]} · repetition {cell[2]}"


def _tell(cell: Cell, words: str) -> None:
    log = places.cell_path("failed", *cell, "log")
    print(
        f"cell failed: {_name(cell)}: {words}\n  log:   {log}\n  rerun: {run.again(_log(cell))}",
        file=sys.stderr,
        flush=True,
    )
