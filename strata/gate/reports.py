"""What a gate writes for others: JUnit XML, a summary in Markdown, and a line of history."""

import json
import os
from collections.abc import Sequence
from xml.etree import ElementTree

from strata.gate.budgets import Budget
from strata.util.data_types import Fields
from strata.util.errors import escape_controls
from strata.util.files import write_text

PASSED, FAILED, NOT_COMPARABLE, UNDECIDED = "within", "beyond", "not comparable", "undecided"
# More blocks than anybody measures.
_TOO_MANY = 10000
_MARKS = {PASSED: "✅", FAILED: "❌", NOT_COMPARABLE: "⚠️", UNDECIDED: "❔"}


def describe_verdict(budget: Budget, verdict: Fields) -> str:
    """Return a sentence about a budget and its verdict.

    verdict: an object of analysis/gate.R, or ``{verdict, why}``.
    """
    if verdict["verdict"] == NOT_COMPARABLE:
        return f"{budget.name}: cannot be compared: {verdict['why']}"
    cost = describe_cost(verdict)
    series_count = verdict.get("parts") or 1
    rests = _count(verdict)
    if series_count > 1:
        rests = f"{verdict['series']}, of {series_count} series; {rests}"
    than = f" more than in {budget.baseline}" if budget.baseline else ""
    outcome = f"{verdict['verdict']} the budget"
    if verdict["verdict"] == UNDECIDED:
        needed, unit = verdict.get("more"), verdict["unit"]
        outcome = f"undecided, about {needed or 0:,.0f} more {unit} would tell"
        if verdict.get("low") is None:
            outcome = f"undecided, as {verdict['why']} were measured"
        elif needed is None or needed > _TOO_MANY:
            outcome = f"undecided, as it lies at the budget, where no number of {unit} tells"
    return f"{budget.name}: costs {cost}{than} ({rests}): {outcome} ({budget.limit})"


def describe_cost(verdict: Fields) -> str:
    """Return the cost with its interval, such as "1.2 % [−0.3, 2.7]"."""
    if verdict.get("ratio") is None:
        return "an unknown share"
    ends = ""
    if verdict.get("low") is not None:
        ends = f" [{_percent(verdict['high'])}, {_percent(verdict['low'])}]"
    return f"{_percent(verdict['ratio'])} %{ends}"


def _count(verdict: Fields) -> str:
    """Return how many blocks or sessions a verdict rests on, in words."""
    unit = verdict["unit"] if verdict["n"] != 1 else verdict["unit"].removesuffix("s")
    return f"{verdict['n']} {unit}"


def _percent(ratio: float) -> str:
    """Return the cost of a ratio of performance in per cent."""
    return f"{100 * (1 - ratio):.1f}".replace("-", "−")


def make_junit(budgets: Sequence[Budget], verdicts: Sequence[Fields], seconds: float) -> str:
    """Return JUnit XML: a test case for each budget; an undecided one is skipped."""
    counts = {kind: sum(entry["verdict"] == kind for entry in verdicts) for kind in _MARKS}
    suite = ElementTree.Element(
        "testsuite",
        name="strata gate",
        tests=str(len(budgets)),
        failures=str(counts[FAILED]),
        errors=str(counts[NOT_COMPARABLE]),
        skipped=str(counts[UNDECIDED]),
        time=f"{seconds:.0f}",
    )
    kinds = {FAILED: "failure", NOT_COMPARABLE: "error", UNDECIDED: "skipped"}
    for budget, verdict in zip(budgets, verdicts, strict=True):
        name = escape_controls(f"{budget.name}: {budget.limit}")
        case = ElementTree.SubElement(suite, "testcase", classname="strata.gate", name=name)
        sentence = escape_controls(describe_verdict(budget, verdict))
        if verdict["verdict"] in kinds:
            ElementTree.SubElement(case, kinds[verdict["verdict"]], message=sentence)
        else:
            ElementTree.SubElement(case, "system-out").text = sentence
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def make_summary(text: str, budgets: Sequence[Budget], verdicts: Sequence[Fields]) -> str:
    """Return a summary in Markdown: the outcome, and a row for each budget.

    text: the outcome as a sentence.
    """
    lines = [
        f"**{_escape(text)}**",
        "",
        "| | budget | cost [95 %] | rests on |",
        "|---|---|---|---|",
    ]
    for budget, verdict in zip(budgets, verdicts, strict=True):
        mark = f"{_MARKS[verdict['verdict']]} {verdict['verdict']}"
        if verdict["verdict"] == NOT_COMPARABLE:
            cost, rests = verdict["why"], ""
        else:
            cost, rests = describe_cost(verdict), _count(verdict)
        cells = (mark, f"{budget.name}: {budget.limit}", cost, rests)
        lines.append("| " + " | ".join(map(_escape, cells)) + " |")
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    """Return a text that Markdown shows as it is, in one line."""
    text = " ".join(escape_controls(text).split())
    for character in "\\`*_[]<>|":
        text = text.replace(character, f"\\{character}")
    return text


def append_history(path: str, entry: Fields) -> None:
    """Add a line to the history: a JSON object for each run; old lines stay as they are."""
    text = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
    if text and not text.endswith("\n"):
        text += "\n"
    write_text(path, text + json.dumps(entry, ensure_ascii=False) + "\n", lasting=True)
