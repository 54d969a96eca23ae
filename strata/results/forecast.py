"""What a run would do: which cells are due, what would be built, and about how long it takes.  Nothing is written."""

import itertools
import statistics
from collections import Counter, defaultdict

from strata import layers
from strata.base import places
from strata.base.files import read_json
from strata.base.progress import duration
from strata.base.shapes import Fields, Plan, Record
from strata.cell import spool
from strata.experiment import blocks
from strata.image import cache
from strata.vm import disk

# Minutes that building takes about, where nothing of it is in the cache.
IMAGE = 2


def show(experiment: Plan, order: bool = False) -> None:
    """Print what is due of a plan; with `order` every cell in the order of measurement."""
    found = blocks.Order(experiment)
    if order:
        for place, round, environment, load, repetition in found.rows():
            print(f"{place:6d}  round {round:<5d} {environment} · {load} · repetition {repetition}")
    cells = found.cells()
    due = [cell for cell in cells if spool.due(experiment, cell)]
    more = "" if found.decided else "; further ones are decided once these are measured"
    print(f"{len(due)} of {len(cells)} cells are due at {experiment['scale']} scale{more}")
    of_environment: dict[str, Counter[str]] = defaultdict(Counter)
    for environment, load, _ in due:
        of_environment[environment][load] += 1
    width = max(map(len, experiment["environments"]))
    for name, entry in experiment["environments"].items():
        if not entry["available"]:
            print(f"  {name:{width}}  not available here: {entry['reason']}")
        elif name in of_environment:
            loads = ", ".join(f"{load} {count}" for load, count in sorted(of_environment[name].items()))
            print(f"  {name:{width}}  {of_environment[name].total()}: {loads}")
    for words in _built(experiment, of_environment):
        print(f"to build: {words}")
    print(f"time: {_time(experiment, due, found.decided)}")


def _built(experiment: Plan, environments: Fields) -> list[str]:
    """What has to be built for cells in these environments."""
    recipe = experiment["image"]["recipe"]
    entries = {name: experiment["environments"][name] for name in environments}
    forms = {name: layers.forms(key for layer in entry["layers"] for key in layer) for name, entry in entries.items()}
    found = []
    if any(forms.values()) and cache.find(recipe) is None:
        found.append(f"the image {recipe[:12]}, about {IMAGE} min")
    if any("disk" in of for of in forms.values()) and not disk.whole(recipe):
        found.append("the machines' disk, less than a minute")
    return found


def _time(experiment: Plan, due: list[blocks.Cell], decided: bool) -> str:
    """About how long the due cells take, by what others took."""
    took: dict[tuple[str, str], list[float]] = defaultdict(list)
    for cell in itertools.product(experiment["environments"], experiment["workloads"], range(1, 6)):
        record: Record | None = read_json(places.cell_path("raw", *cell, "json"))
        took[cell[:2]] += [record["seconds"]] if record else []
    known = [statistics.fmean(took[cell[:2]]) for cell in due if took[cell[:2]]]
    budget = experiment["precision"]["budget"] if "precision" in experiment else None
    bound = f"; blocks are added until {duration(budget)} were measured" if budget and not decided else ""
    if not due:
        return "nothing to measure"
    if not known:
        return f"not known before the first cells are measured{bound}"
    rest = f"; nothing like the other {len(due) - len(known)} was measured yet" if len(known) < len(due) else ""
    return f"about {duration(sum(known))} for {len(known)} of these cells{rest}{bound}"
