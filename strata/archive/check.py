"""Whether an archive holds together: its bytes, its crate, its plan and records, its records and logs."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from strata.archive import container, crate, guide, sums, swhid
from strata.base import places
from strata.base.errors import UserError
from strata.experiment import plan, sets
from strata.image import manifest
from strata.results import judge, products
from strata.results.judge import load

# What a file that is not laid out as it should be makes its reader stumble over.
MISSHAPEN = (KeyError, TypeError, AttributeError, ValueError, IndexError)
ORDER = "results/plan.csv"


@contextmanager
def unpacked(path: str) -> Iterator[tuple[str, list[str]]]:
    """The folder of an archive, unpacked for as long as it is needed, and what is wrong with the file itself.

    An archive that is unpacked already is taken as it is.  Raises UserError for what cannot be unpacked safely.
    """
    if os.path.isdir(path):
        yield path, _links(path)
        return
    with tempfile.TemporaryDirectory(prefix="strata-archive-") as folder:
        found = container.unpack(path, folder)
        if not found:
            stray = container.stray_byte(path, folder)
            found = [stray] if stray else []
        yield folder, found


def _links(folder: str) -> list[str]:
    found = []
    for where, folders, names in os.walk(folder):
        for name in folders + names:
            path = os.path.join(where, name)
            if os.path.islink(path) or not (os.path.isfile(path) or os.path.isdir(path)):
                found.append(f"{os.path.relpath(path, folder)}: it is a link or a special file, not a file")
    return found


def verify(path: str) -> list[str]:
    """Everything that is wrong with an archive, or with the folder of an unpacked one, a sentence each."""
    with unpacked(path) as (folder, found):
        return found + findings(folder)


def findings(folder: str) -> list[str]:
    """Everything that is wrong with an unpacked archive, a sentence each."""
    if not os.path.exists(os.path.join(folder, guide.FACTS)) and not os.path.exists(os.path.join(folder, sums.NAME)):
        return [f"{guide.FACTS}: missing; this is not an archive of Strata"]
    found = sums.findings(folder)
    checks: list[tuple[str, Callable[[str], list[str]]]] = [
        (crate.FILE, crate.findings),
        (places.PLAN, _of_plan),
        (guide.FACTS, _of_source),
        (places.IMAGE, _of_image),
    ]
    for name, check in checks:
        try:
            found += check(folder)
        except UserError as error:
            found.append(str(error))
        except MISSHAPEN:
            found.append(f"{name}: it is not laid out as in an archive")
    return list(dict.fromkeys(found))


def _of_plan(folder: str) -> list[str]:
    """The plan against its own order, the facts of the archive, the records, and what was made of them."""
    facts, experiment = load(folder, guide.FACTS), load(folder, places.PLAN)
    if facts["format"] != guide.FORMAT:
        return [f"{guide.FACTS}: its format is {facts['format']}; this version reads format {guide.FORMAT}"]
    wrong = plan.faults(experiment)
    if wrong:
        return wrong
    found = []
    results = os.path.join(folder, "results")
    order = os.path.join(folder, ORDER)
    if not os.path.isfile(order):
        found.append(f"{ORDER}: missing")
    elif not _holds(order, sets.Order(experiment, results).as_csv()):
        found.append(f"{ORDER}: it is not the order that {places.PLAN} gives")
    cells = sets.Order(experiment, results).cells()
    measured = judge.measured(cells, folder)
    found += [sentence for wrong in judge.faults(experiment, measured, folder).values() for sentence in wrong]
    missing = ["/".join(map(str, cell)) for cell in cells if cell not in set(measured)]
    if missing != facts["missing"] or bool(missing) != facts["partial"]:
        strange = sorted(set(missing) ^ set(facts["missing"])) or ["their order"]
        found.append(f"{guide.FACTS}: the cells that it calls missing are not those that are: {', '.join(strange)}")
    return found + _unplanned(folder, cells) + sums.of_tables(folder, products.tables(experiment))


def _of_source(folder: str) -> list[str]:
    """The SWHID of the source."""
    told, found = load(folder, guide.FACTS)["source"]["swhid"], swhid.of_folder(os.path.join(folder, "source"))
    if told == found:
        return []
    return [f"{guide.FACTS}: the SWHID of the source is {told}, and that of the folder source is {found}"]


def _holds(path: str, text: str) -> bool:
    with open(path, "rb") as file:
        return file.read() == text.encode()


def _unplanned(folder: str, cells: list[tuple[str, str, int]]) -> list[str]:
    """Logs and records of no planned cell."""
    planned = {places.cell_path("raw", *cell, "log").removesuffix("log") for cell in cells}
    found = []
    for name in container.files_below(os.path.join(folder, "results", "raw")):
        where, _, file = f"results/raw/{name}".rpartition("/")
        if f"{where}/{file.split('.')[0]}." not in planned:
            found.append(f"results/raw/{name}: the plan does not hold its cell")
    return found


def _of_image(folder: str) -> list[str]:
    """The image's manifest against its digest, the recipe against the source, the image against what is archived."""
    found = []
    if os.path.exists(os.path.join(folder, places.IMAGE)):
        about = load(folder, places.IMAGE)
        listing = load(folder, "results/image-manifest.json")
        if manifest.digest(listing) != about["manifest_sha256"]:
            found.append(f"results/image-manifest.json: it is not the manifest that {places.IMAGE} names")
    if os.path.exists(os.path.join(folder, "image/recipe.json")):
        told = load(folder, "image/recipe.json")
        if told["recipe"] != load(folder, places.PLAN)["image"]["recipe"]:
            found.append("image/recipe.json: it is of another image than the plan's")
        for name, checksum in told["files"].items():
            path = os.path.join(folder, "source", name)
            if not os.path.isfile(path) or sums.digest(path) != checksum:
                found.append(f"source/{name}: it is not the file that image/recipe.json names")
    return found
