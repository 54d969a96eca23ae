"""The reports of a gate: JUnit XML, a summary in Markdown, and a line of history."""

import json
import os
from collections.abc import Sequence
from xml.etree import ElementTree

from strata.gate.budgets import Budget
from strata.util.data_types import Fields
from strata.util.errors import escape_control_characters

# The verdicts that judge_budget in analysis/budgets.R returns.
PASSED, FAILED, NOT_COMPARABLE, UNDECIDED = "within", "beyond", "not comparable", "undecided"
# If deciding a budget takes more further blocks than this, its cost is reported to lie at the
# budget.
_MAX_BLOCKS = 10000
_MARKS = {PASSED: "✅", FAILED: "❌", NOT_COMPARABLE: "⚠️", UNDECIDED: "❔"}


def describe_verdict(budget: Budget, verdict: Fields) -> str:
    """Return a sentence about a budget and its verdict, for the terminal and JUnit XML.

    verdict: as judge_budget in analysis/budgets.R returns it, with all its keys; or only
    ``{verdict, why}``, if the budget cannot be compared.
    An example of the result: "docker, stream: costs 1.2 % [−0.3, 2.7] (8 blocks): within the budget
    (at most 5 % of the performance of native)".
    """
    if verdict["verdict"] == NOT_COMPARABLE:
        return f"{budget.name}: cannot be compared: {verdict['why']}"
    cost = describe_cost(verdict)
    series_count = verdict.get("parts") or 1
    basis = _count_units(verdict)
    if series_count > 1:
        basis = f"{verdict['series']}, of {series_count} series; {basis}"
    baseline = f" more than in {budget.baseline}" if budget.baseline else ""
    outcome = f"{verdict['verdict']} the budget"
    if verdict["verdict"] == UNDECIDED:
        needed, unit = verdict.get("more"), verdict["unit"]
        if verdict.get("low") is None:
            outcome = f"undecided, as {verdict['why']} were measured"
        elif needed is None or needed > _MAX_BLOCKS:
            outcome = f"undecided, as it lies at the budget, where no number of {unit} tells"
        else:
            outcome = f"undecided, about {needed:,.0f} more {unit} would tell"
    return f"{budget.name}: costs {cost}{baseline} ({basis}): {outcome} ({budget.limit})"


def describe_cost(verdict: Fields) -> str:
    """Return a cost with its 95 % interval, such as "1.2 % [−0.3, 2.7]".

    verdict: the verdict on a budget that can be compared, as for :func:`describe_verdict`; its
    `ratio`, `low` and `high` are ratios of performance.
    A gain in performance has a cost below 0.  Without a ratio the result is "an unknown share", and
    without `low` it has no interval.
    """
    if verdict.get("ratio") is None:
        return "an unknown share"
    interval = ""
    if verdict.get("low") is not None:
        # The highest performance is the lowest cost.
        lowest, highest = _format_cost(verdict["high"]), _format_cost(verdict["low"])
        interval = f" [{lowest}, {highest}]"
    return f"{_format_cost(verdict['ratio'])} %{interval}"


def _count_units(verdict: Fields) -> str:
    """Return the number of blocks or sessions behind a verdict, such as "1 block"."""
    # The unit is "blocks" or "sessions".
    unit = verdict["unit"] if verdict["n"] != 1 else verdict["unit"].removesuffix("s")
    return f"{verdict['n']} {unit}"


def _format_cost(ratio: float) -> str:
    """Return the cost, in per cent, of a ratio of performance, such as "1.2" for 0.988.

    A gain has the minus sign "−" in place of a hyphen.
    """
    return f"{100 * (1 - ratio):.1f}".replace("-", "−")


def format_junit(budgets: Sequence[Budget], verdicts: Sequence[Fields], seconds: float) -> str:
    """Return the text of junit.xml, with a test case for each budget.

    verdicts: one for each budget, in the same order, as for :func:`describe_verdict`.
    seconds: how long the call took.
    CI systems read the file.  A budget that is exceeded is a failure, one that cannot be compared
    an error, and one that is undecided a skipped test.
    """
    outcomes = [verdict["verdict"] for verdict in verdicts]
    suite = ElementTree.Element(
        "testsuite",
        name="strata gate",
        tests=str(len(budgets)),
        failures=str(outcomes.count(FAILED)),
        errors=str(outcomes.count(NOT_COMPARABLE)),
        skipped=str(outcomes.count(UNDECIDED)),
        time=f"{seconds:.0f}",
    )
    elements = {FAILED: "failure", NOT_COMPARABLE: "error", UNDECIDED: "skipped"}
    for budget, verdict in zip(budgets, verdicts, strict=True):
        name = escape_control_characters(f"{budget.name}: {budget.limit}")
        case = ElementTree.SubElement(suite, "testcase", classname="strata.gate", name=name)
        sentence = escape_control_characters(describe_verdict(budget, verdict))
        if verdict["verdict"] in elements:
            ElementTree.SubElement(case, elements[verdict["verdict"]], message=sentence)
        else:
            ElementTree.SubElement(case, "system-out").text = sentence
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def format_summary(text: str, budgets: Sequence[Budget], verdicts: Sequence[Fields]) -> str:
    """Return the text of summary.md: the outcome, and a row for each budget.

    text: the outcome as a sentence.
    verdicts: one for each budget, in the same order, as for :func:`describe_verdict`.
    """
    lines = [
        f"**{_escape_markdown(text)}**",
        "",
        "| | budget | cost [95 %] | rests on |",
        "|---|---|---|---|",
    ]
    for budget, verdict in zip(budgets, verdicts, strict=True):
        mark = f"{_MARKS[verdict['verdict']]} {verdict['verdict']}"
        if verdict["verdict"] == NOT_COMPARABLE:
            cost, basis = verdict["why"], ""
        else:
            cost, basis = describe_cost(verdict), _count_units(verdict)
        cells = (mark, f"{budget.name}: {budget.limit}", cost, basis)
        lines.append("| " + " | ".join(map(_escape_markdown, cells)) + " |")
    return "\n".join(lines) + "\n"


def _escape_markdown(text: str) -> str:
    """Return a text in one line, escaped so that Markdown shows it literally.

    Names in it may come from files of others, and must not become links or HTML.
    """
    text = " ".join(escape_control_characters(text).split())
    for character in "\\`*_[]<>|":
        text = text.replace(character, f"\\{character}")
    return text


def append_history(path: str, outcome: Fields) -> None:
    """Append a JSON object as a line to the history; earlier lines stay as they are.

    path: the path of history.jsonl, which is created if it is missing.
    outcome: the outcome of one call; docs/files.md lists its keys.
    The line is flushed to the disk.
    """
    with open(path, "ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            # A call that was killed may have left a part of a line.
            if file.read() != b"\n":
                file.write(b"\n")
        file.write(json.dumps(outcome, ensure_ascii=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
