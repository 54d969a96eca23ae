"""What a run would do: which cells are due, what would be built, and about how long it takes.  Nothing is written."""

from collections import Counter, defaultdict

from strata.environments.common import registry
from strata.experiment import blocks, precision
from strata.image import cache
from strata.measure import pending
from strata.util import paths, progress
from strata.util.data_types import Plan
from strata.util.files import read_json
from strata.util.progress import duration
from strata.vm import vagrant_box

# How many repetitions of a cell tell how long one takes.
ASKED = 5


def show(experiment: Plan, order: bool = False) -> None:
    """Print what is due of a plan; with `order` every cell in the order of measurement."""
    found = blocks.Order(experiment)
    if order:
        for (environment, load, repetition), (place, round) in found.places.items():
            progress.printed(
                f"{place:6d}  round {round:<5d} {environment} · {load} · repetition {repetition}"
            )
    due = [cell for cell in found.places if pending.due(experiment, cell)]
    more = "" if found.decided else "; further ones are decided once these are measured"
    progress.printed(
        f"{len(due)} of {len(found.places)} cells are due at {experiment['scale']} scale{more}"
    )
    of_environment: dict[str, Counter[str]] = defaultdict(Counter)
    for environment, load, _ in due:
        of_environment[environment][load] += 1
    width = max(map(len, experiment["environments"]))
    forms: set[str] = set()
    for name, entry in experiment["environments"].items():
        if not entry["available"]:
            progress.printed(f"  {name:{width}}  not available here: {entry['reason']}")
        elif name in of_environment:
            loads = ", ".join(
                f"{load} {count}" for load, count in sorted(of_environment[name].items())
            )
            other = f"; {entry['otherwise']}" if "otherwise" in entry else ""
            progress.printed(f"  {name:{width}}  {of_environment[name].total()}: {loads}{other}")
            forms |= registry.forms(kind for layer in entry["layers"] for kind in layer)
    used = {
        next(iter(entry["layers"][0]))
        for name, entry in experiment["environments"].items()
        if name in of_environment and entry["layers"]
    }
    barred = {reason for name in used if (reason := registry.kind(name).barred())}
    for reason in sorted(barred):
        progress.printed(f"before that can be measured: {reason}")
    recipe = experiment["image"]["recipe"]
    if forms and cache.find(recipe) is None:
        progress.printed(f"to build: the image {recipe[:12]}, about 2 min")
    if "disk" in forms and not vagrant_box.whole(recipe):
        progress.printed("to build: the machines' disk, less than a minute")
    progress.printed(f"time: {_time(experiment, found, due)}")


def _time(experiment: Plan, order: blocks.Order, due: list[blocks.Cell]) -> str:
    """About how long the due cells take, by what others took."""
    asked = [cell for cell in order.places if cell[2] <= ASKED]
    records = {
        cell: record
        for cell in asked
        if (record := read_json(paths.cell_path("raw", *cell, "json")))
    }
    took = precision.costs(records)
    known = [took[cell[:2]] for cell in due if cell[:2] in took]
    budget = experiment["precision"]["budget"] if "precision" in experiment else None
    bound = (
        f"; blocks are added until {duration(budget)} were measured"
        if budget and not order.decided
        else ""
    )
    if not due:
        return "nothing to measure"
    if not known:
        return f"not known before the first cells are measured{bound}"
    rest = (
        f"; no timing yet for the other {len(due) - len(known)} cells"
        if len(known) < len(due)
        else ""
    )
    return f"about {duration(sum(known))} for {len(known)} of these cells{rest}{bound}"
