"""What Snakemake shows of the experiment: titles, captions and labels of its report, and what would be measured."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from strata.experiment import figures, sets

EVERYTHING = "All workloads"
# What the figures of all workloads together are called, and show.
_SHARED = {
    "answers": ("Answers", "For each question what containers and machines cost, within which limits."),
    "order": (
        "Order",
        "Every value as its deviation from the mean of its environment and metric, in the order in which it was "
        "measured. A trend or a step would show that the machine changed under the experiment.",
    ),
    "drift": (
        "Drift",
        "The level of every set in the order of measurement: the mean over its environments of the value relative to "
        "the environment's own mean.",
    ),
    "ratios": (
        "Ratios",
        "Ratios to native of everything that was measured, paired by set, with 95 % intervals. Hollow: published in "
        "2014, on other hardware and without an interval.",
    ),
    "claims": (
        "Claims",
        "Published claims and what was measured: the ratio of the two environments of each, with the interval that "
        "decides. Grey: the tolerance. Diamonds: what was published.",
    ),
    "footprint": (
        "Footprint",
        "How long it takes to bring an environment up: the mean, a thick bar for its 95 % interval, and a thin one "
        "from the least to the most.",
    ),
}
_KINDS = {
    "runs": "Every point is a run, below them the mean (of percentiles the median) and its 95 % interval. The dashed "
    "line is that of native; an axis that does not start at zero says so.",
    "sweep": "{metric} against {along}, with 95 % intervals.",
    "against": "{metric} against {against}; the line joins its points along {along}.",
    "cdf": "The distribution of {metric}: the median over the runs of each percentile. Both axes are stretched.",
}


def plain(text: str) -> str:
    """A text in which reStructuredText finds no markup."""
    return re.sub(r"([\\`*_|<>])", r"\\\1", text)


def titles(plan: dict) -> dict[str, str]:
    """What the workloads are called, by their names."""
    return {name: plain(entry["title"]) for name, entry in plan["workloads"].items()}


def captions(plan: dict) -> dict[str, str]:
    """The captions of all figures, by the stems of their files."""
    found = {stem: text for stem, (_, text) in _SHARED.items()}
    for name, entry in plan["workloads"].items():
        for stem, figure in figures.of_workload(name, entry).items():
            words = {key: _named(entry, key, value) for key, value in figure.items() if isinstance(value, str)}
            title = ", ".join([entry["title"], *([figure["title"]] if "title" in figure else [])])
            found[stem] = plain(f"{title}. {_KINDS[figure['kind']].format_map(words)}")
    return found


def _named(entry: dict, key: str, value: str) -> str:
    """What a key of a figure's declaration names, in words."""
    label = entry["metrics"][value]["label"] if key in ("metric", "against") else value.replace("_", " ")
    within = key != "metric" and not label[1:2].isupper()
    return label[:1].lower() + label[1:] if within else label


class Shown:
    """How the files of an experiment stand in a report of Snakemake's: the arguments of its `report`."""

    def __init__(self, plan: dict) -> None:
        self.plan = plan

    def figure(self, drawing: str) -> dict[str, Any]:
        """Of the figures, as this: a drawing, or the numbers that it draws."""
        return {
            "caption": "report/figure.rst",
            "category": "Figures",
            "subcategory": lambda wildcards: self._section(figures.of_plan(self.plan).get(wildcards.figure)),
            "labels": lambda wildcards: {"figure": self._label(wildcards.figure), "as": drawing},
        }

    def table(self, name: str) -> dict[str, Any]:
        """Of the tables of this name."""
        return {
            "caption": f"report/{name}.rst",
            "category": "Tables",
            "subcategory": lambda wildcards: self._section(dict(wildcards.items()).get("workload")),
            "labels": {"table": name},
        }

    def paper(self, form: str) -> dict[str, Any]:
        """Of a paper in this form."""
        return {"caption": "report/paper.rst", "category": "Papers", "labels": {"paper": form}}

    def _section(self, workload: str | None) -> str:
        return self.plan["workloads"][workload]["title"] if workload else EVERYTHING

    def _label(self, stem: str) -> str:
        if stem in _SHARED:
            return _SHARED[stem][0]
        name = figures.of_plan(self.plan)[stem]
        return figures.of_workload(name, self.plan["workloads"][name])[stem].get("title") or stem


def forecast(plan: dict, cells: Iterable[sets.Cell], made: int, partial: bool = False) -> str:
    """What a run would measure and make, as a dry run tells it.

    made: how many jobs make tables, figures and papers.  partial: whether they are made of the cells that are there.
    """
    counts: dict[str, Counter] = {}
    for environment, load, _ in cells:
        counts.setdefault(environment, Counter())[load] += 1
    lines = [f"Cells to measure: {sum(count.total() for count in counts.values())}"]
    width = max((len(name) for name in counts), default=0)
    for name in (name for name in plan["environments"] if name in counts):
        told = ", ".join(f"{load} {count}" for load, count in sorted(counts[name].items()))
        lines.append(f"  {name:{width}} {counts[name].total():5d}  ({told})")
    precision = None if partial or not counts else plan.get("precision")
    if precision and precision["target"] is not None:
        lines.append("  and more sets, whose number is decided once these were measured")
    elif precision:
        lines.append("  and again the sets in which something else uses the machine")
    lines.append(f"Jobs that make tables, figures and papers of them: {made}")
    for name, entry in plan["environments"].items():
        if not entry["available"]:
            lines.append(f"Not available here: {name}: {entry['reason']}")
    return "\n".join(lines)
