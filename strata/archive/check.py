"""Whether an archive holds together, and whether what it says follows from what was measured.

What is judged is judged by the code of this checkout, never by the archive's: its tables are made again of its logs,
its description of its plan and records, and its source is held against the commit that it names.
"""

import functools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from strata.archive import container, crate, derive, guide, source, sums
from strata.base import places
from strata.base.errors import UserError
from strata.base.shapes import Fields
from strata.experiment import blocks, plan
from strata.image import manifest
from strata.results import judge, products
from strata.results.judge import load

# What a file that is not laid out as it should be makes its reader stumble over.
MISSHAPEN = (KeyError, TypeError, AttributeError, ValueError, IndexError, OSError)


@contextmanager
def unpacked(path: str) -> Iterator[str]:
    """The folder of an archive, unpacked for as long as it is needed; an unpacked one is taken as it is.

    Raises UserError for what cannot be unpacked safely.
    """
    if os.path.isdir(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="strata-archive-") as folder:
        container.unpack(path, folder)
        yield folder


def verify(path: str, papers: bool = False) -> int:
    """Say what is wrong with an archive, or with the folder of an unpacked one, or what to know of a good one.

    papers: whether they are made again too, not tables alone.  Returns the exit status: 1 for an archive with findings.
    """
    with unpacked(path) as folder:
        found = findings(folder, papers)
        facts = {} if found else load(folder, guide.FACTS)
    for sentence in found:
        print(sentence)
    for note in [] if found else [*guide.notes(facts), *_of_commit(facts)]:
        print(f"{path}: note: {note}", file=sys.stderr)
    outcome = f"NOT good: {len(found)} {'finding' if len(found) == 1 else 'findings'}"
    good = "good: every file is as it was archived, every record fits its log, and all tables follow from the logs"
    print(f"{path}: {outcome if found else good}", file=sys.stderr)
    return 1 if found else 0


def findings(folder: str, papers: bool = False) -> list[str]:
    """What is wrong with an unpacked archive, a sentence each.

    What is made of files that are wrong themselves says nothing more, so the first check that finds something ends it.
    """
    if not os.path.exists(os.path.join(folder, guide.FACTS)) and not os.path.exists(os.path.join(folder, sums.NAME)):
        return [f"{guide.FACTS}: missing; this is not an archive of Strata"]
    checks: list[tuple[str, Callable[[str], list[str]]]] = [
        (sums.NAME, sums.findings),
        (guide.FACTS, _of_format),
        (places.PLAN, _of_plan),
        (places.IMAGE, _of_image),
        (guide.FACTS, _of_source),
        (guide.FACTS, _described),
        (places.PLAN, functools.partial(_derived, papers=papers)),
    ]
    for name, check in checks:
        try:
            found = check(folder)
        except UserError as error:
            found = [str(error)]
        except MISSHAPEN:
            found = [f"{name}: it is not laid out as in an archive"]
        if found:
            return found
    return []


def _of_format(folder: str) -> list[str]:
    told = load(folder, guide.FACTS)["format"]
    if told == guide.FORMAT:
        return []
    return [f"{guide.FACTS}: its format is {told}; this version reads format {guide.FORMAT}"]


def _of_plan(folder: str) -> list[str]:
    """The plan against its own order and the records, and these against their logs."""
    experiment = load(folder, places.PLAN)
    if wrong := plan.faults(experiment):
        return wrong
    order = blocks.Order(experiment, os.path.join(folder, "results"))
    faults = judge.faults(experiment, judge.measured(order.cells(), folder), folder)
    found = [sentence for sentences in faults.values() for sentence in sentences]
    with open(os.path.join(folder, places.CELLS), "rb") as file:
        if file.read() != order.as_csv().encode():
            found.append(f"{places.CELLS}: it is not the order that {places.PLAN} gives")
    return found


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
            for name in sorted(differ - set(told["changed"]))
        ]
    return found


def _of_commit(facts: Fields) -> list[str]:
    """What could not be checked of an archive's source here."""
    revision = facts["source"]["revision"]
    if revision is None or source.committed(places.PROJECT, revision) is not None:
        return []
    return [f"This repository has no commit {revision}, with which the archive's source could be compared."]


def _described(folder: str) -> list[str]:
    """What describes the archive against what it follows from: plan and records."""
    told = load(folder, guide.FACTS)
    again = guide.facts(folder, {key: told[key] for key in guide.GIVEN})
    found = [
        f"{guide.FACTS}: {key}: does not follow from plan and records"
        for key in sorted(told.keys() | again.keys())
        if told.get(key) != again.get(key)
    ]
    for name, text in ((guide.README, guide.readme(told)), (crate.FILE, crate.text(folder, told))):
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
        derive.remake(folder, work, papers)
        states = derive.states(folder, work, products.made(experiment) if papers else products.tables(experiment))
    return [
        f"{name}: it is not what the code of this checkout makes of the logs"
        for name, state in states.items()
        if state != "identical"
    ]
