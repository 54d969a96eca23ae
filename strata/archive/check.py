"""Whether an archive holds together, and whether what it says follows from what was measured.

What is judged is judged by the code of this checkout, never by the archive's: its tables are made again of its logs,
its description of its plan and records, and its source is held against the commit that it names.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from strata.archive import container, crate, derive, guide, source, sums
from strata.base import places
from strata.base.errors import UserError
from strata.base.shapes import Fields, Plan
from strata.experiment import blocks, plan
from strata.image import manifest
from strata.results import judge, products
from strata.results.judge import load

# What a file that is not laid out as it should be makes its reader stumble over.
MISSHAPEN = (KeyError, TypeError, AttributeError, ValueError, IndexError)


@contextmanager
def unpacked(path: str) -> Iterator[tuple[str, list[str]]]:
    """The folder of an archive, unpacked for as long as it is needed, and what is wrong with the file itself.

    An archive that is unpacked already is taken as it is.  Raises UserError for what cannot be unpacked safely.
    """
    if os.path.isdir(path):
        yield path, _links(path)
        return
    with tempfile.TemporaryDirectory(prefix="strata-archive-") as folder:
        yield folder, container.unpack(path, folder)


def _links(folder: str) -> list[str]:
    found = []
    for where, folders, names in os.walk(folder):
        for name in folders + names:
            path = os.path.join(where, name)
            if os.path.islink(path) or not (os.path.isfile(path) or os.path.isdir(path)):
                found.append(f"{os.path.relpath(path, folder)}: it is a link or a special file, not a file")
    return found


def verify(path: str, papers: bool = False) -> tuple[list[str], list[str]]:
    """What is wrong with an archive, or with the folder of an unpacked one, and what else a reader should know.

    papers: whether they are made again too, not tables alone.
    """
    with unpacked(path) as (folder, found):
        found = found + findings(folder, papers)
        try:
            facts = load(folder, guide.FACTS)
            return found, [*guide.notes(facts), *_of_commit(facts)]
        except (UserError, *MISSHAPEN):
            return found, []


def findings(folder: str, papers: bool = False) -> list[str]:
    """Everything that is wrong with an unpacked archive, a sentence each."""
    if not os.path.exists(os.path.join(folder, guide.FACTS)) and not os.path.exists(os.path.join(folder, sums.NAME)):
        return [f"{guide.FACTS}: missing; this is not an archive of Strata"]
    found = sums.findings(folder)
    checks: list[tuple[str, Callable[[str], list[str]]]] = [
        (places.PLAN, _of_plan),
        (places.IMAGE, _of_image),
        (guide.FACTS, _of_source),
        (guide.FACTS, _described),
    ]
    for name, check in checks:
        try:
            found += check(folder)
        except UserError as error:
            found.append(str(error))
        except MISSHAPEN:
            found.append(f"{name}: it is not laid out as in an archive")
    # What is made of files that are wrong themselves says nothing more.
    return list(dict.fromkeys(found)) or _derived(folder, papers)


def _of_plan(folder: str) -> list[str]:
    """The plan against its own order and the records, and these against their logs."""
    facts, experiment = load(folder, guide.FACTS), load(folder, places.PLAN)
    if facts["format"] != guide.FORMAT:
        return [f"{guide.FACTS}: its format is {facts['format']}; this version reads format {guide.FORMAT}"]
    wrong = plan.faults(experiment)
    if wrong:
        return wrong
    found = []
    order = blocks.Order(experiment, os.path.join(folder, "results"))
    with open(os.path.join(folder, places.CELLS), "rb") as file:
        if file.read() != order.as_csv().encode():
            found.append(f"{places.CELLS}: it is not the order that {places.PLAN} gives")
    cells = order.cells()
    faults = judge.faults(experiment, judge.measured(cells, folder), folder)
    found += [sentence for sentences in faults.values() for sentence in sentences]
    planned = {places.cell_path("raw", *cell, "log").removesuffix("log") for cell in cells}
    for name in container.files_below(os.path.join(folder, "results", "raw")):
        where, _, file_name = f"results/raw/{name}".rpartition("/")
        if f"{where}/{file_name.split('.')[0]}." not in planned:
            found.append(f"results/raw/{name}: the plan does not hold its cell")
    return found + [f"{name}: no file of this plan's archive" for name in _strange(folder, experiment)]


def _strange(folder: str, experiment: Plan) -> list[str]:
    """Files that no archive of a plan holds."""
    known = {guide.FACTS, guide.README, crate.FILE, sums.NAME, *guide.ON_TOP, places.PLAN, places.CELLS}
    known |= {places.IMAGE, places.MANIFEST, *products.decisions(experiment, folder), *products.made(experiment)}
    packed = ["source/"] if load(folder, guide.FACTS)["source"]["packed"] else []
    apart = (*packed, "image/", "environment/", "results/raw/", "results/failed/")
    return [name for name in container.files_below(folder) if name not in known and not name.startswith(apart)]


def _of_image(folder: str) -> list[str]:
    """The image's list of files against its digest."""
    if not os.path.exists(os.path.join(folder, places.MANIFEST)):
        return []
    if manifest.digest(load(folder, places.MANIFEST)) == load(folder, places.IMAGE)["manifest_sha256"]:
        return []
    return [f"{places.MANIFEST}: it is not the manifest that {places.IMAGE} names"]


def _of_source(folder: str) -> list[str]:
    """The source, or the commit that stands for it, against its SWHID, and against the commit that it is said to be."""
    told = load(folder, guide.FACTS)["source"]
    commit = source.committed(places.PROJECT, told["revision"])
    here = source.tree(os.path.join(folder, "source")) if told["packed"] else commit
    if here is None:
        return []
    if told["swhid"] != here.swhid:
        return [f"{guide.FACTS}: the SWHID of the source is {told['swhid']}, and that of what it names is {here.swhid}"]
    found = [
        f"{name}: it is not the file of the source"
        for name in guide.ON_TOP
        if os.path.exists(path := os.path.join(folder, name)) and source.blob(path) != here.files.get(name, ("", ""))[1]
    ]
    if commit is not None:
        names = here.files.keys() | commit.files.keys()
        differ = {name for name in names if here.files.get(name) != commit.files.get(name)}
        found += [
            f"source/{name}: it is not that of commit {told['revision']}, and {guide.FACTS} does not say so"
            for name in sorted(differ - set(told["changed"]) - set(told["left_out"]))
        ]
    return found


def _of_commit(facts: Fields) -> list[str]:
    """What could not be checked of an archive's source here."""
    revision = facts["source"]["revision"]
    if revision is None or source.committed(places.PROJECT, revision) is not None:
        return []
    return [f"This repository has no commit {revision}, with which the archive's source could be compared."]


def _described(folder: str) -> list[str]:
    """What describes the archive against what it follows from: plan, records and claims."""
    told = load(folder, guide.FACTS)
    if plan.faults(load(folder, places.PLAN)):
        return []
    again = guide.facts(folder, {key: told[key] for key in guide.GIVEN})
    found = [
        f"{guide.FACTS}: {key}: does not follow from plan and records"
        for key in sorted(told.keys() | again.keys())
        if told.get(key) != again.get(key)
    ]
    for name, text in ((guide.README, guide.readme(folder, told)), (crate.FILE, crate.text(folder, told))):
        with open(os.path.join(folder, name), "rb") as file:
            if file.read() != text.encode():
                found.append(f"{name}: it is not what follows from {guide.FACTS} and the archive's files")
    return found


def _derived(folder: str, papers: bool) -> list[str]:
    """Tables, and papers if asked, against those that follow from the logs."""
    experiment = load(folder, places.PLAN)
    lacking = [name for name in experiment["workloads"] if not os.path.isdir(f"{places.PROJECT}/workloads/{name}")]
    if lacking:
        return [f"workloads/{name}: this checkout has none by which its logs could be read" for name in lacking]
    with tempfile.TemporaryDirectory(prefix="strata-derived-") as work:
        derive.own_code(work)
        try:
            derive.remake(folder, work, papers)
        except UserError as error:
            return [str(error)]
        names = products.made(experiment) if papers else products.tables(experiment)
        states = derive.states(folder, work, names)
    return [
        f"{name}: it is not what the code of this checkout makes of the logs"
        for name, state in states.items()
        if state != "identical"
    ]
