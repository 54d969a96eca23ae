"""Whether an archive holds together, and whether what it says follows from what was measured.

What is judged is judged by the code of this checkout, never by the archive's: its tables are made again of its logs,
its description of its plan and records, and its source is held against the commit that it names.
"""

import functools
import os
import shutil
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from strata.archive import container, crate, derive, guide, source, sums
from strata.base import checking, places, programs, progress
from strata.base.errors import MachineError, UserError
from strata.base.shapes import Fields
from strata.experiment import blocks, plan
from strata.image import manifest
from strata.results import judge, products
from strata.results.judge import load

_DECISIONS = "results/precision"


@contextmanager
def blameless(path: str) -> Iterator[None]:
    """What fails within for a reason of this machine, or by a fault of ours, says nothing of the archive.

    Raises MachineError that says so.
    """
    try:
        yield
    except shutil.Error as trouble:
        # Of a tree, all that could not be copied: the last of it says why.
        words = str(trouble.args[0][-1][-1])
    except (MachineError, OSError, MemoryError) as trouble:
        words = str(trouble) or "not enough memory"
    except UserError:
        raise
    except Exception as fault:
        *_, at = traceback.extract_tb(fault.__traceback__)
        name = os.path.relpath(at.filename, places.PROJECT)
        words = f"Strata itself failed at {name}:{at.lineno}, perhaps on a file of an odd form: {fault!r}"
    else:
        return
    raise MachineError(f"{path}: could not be checked: {words}")


@contextmanager
def unpacked(path: str) -> Iterator[str]:
    """The folder of an archive, unpacked for as long as it is needed; an unpacked one is taken as it is.

    Raises UserError for what cannot be unpacked safely.
    """
    if os.path.isdir(path):
        yield path
        return
    with programs.scratch("archive") as folder:
        container.unpack(path, folder)
        yield folder


def verify(path: str, papers: bool = False) -> int:
    """Say what is wrong with an archive, or with the folder of an unpacked one, or what to know of a good one.

    papers: whether they are made again too, not tables alone.  Returns the exit status: 1 for an archive with findings.
    Raises MachineError where it could not be checked, which is status 2.
    """
    with blameless(path), unpacked(path) as folder:
        found = findings(folder, papers)
        notes = [] if found else [*guide.notes(facts := guide.read(folder)), *_of_commit(facts)]
    for sentence in found:
        progress.printed(sentence)
    for note in notes:
        progress.shown(f"{path}: note: {note}")
    outcome = f"NOT good: {len(found)} {'finding' if len(found) == 1 else 'findings'}"
    good = "good: every file is as it was archived, every record fits its log, and all tables follow from the logs"
    progress.shown(f"{path}: {outcome if found else good}")
    return 1 if found else 0


def findings(folder: str, papers: bool = False) -> list[str]:
    """What is wrong with an unpacked archive, a sentence each.

    What is made of files that are wrong themselves says nothing more, so the first check that finds something ends it.
    Raises MachineError, and what else goes wrong here (`blameless`).
    """
    if not os.path.exists(os.path.join(folder, guide.FACTS)) and not os.path.exists(os.path.join(folder, sums.NAME)):
        return [f"{guide.FACTS}: missing; this is not an archive of Strata"]
    derived = functools.partial(_derived, papers=papers)
    checks: list[Callable[[str], list[str]]] = [
        sums.findings,
        _of_format,
        _of_plan,
        _of_image,
        _of_source,
        _described,
        derived,
    ]
    for check in checks:
        try:
            found = check(folder)
        except MachineError:
            raise
        except UserError as error:
            found = [*error.args]
        if found:
            return found
    return []


def _of_format(folder: str) -> list[str]:
    told = load(folder, guide.FACTS).get("format")
    if told != guide.FORMAT:
        return [f"{guide.FACTS}: its format is {told}; this version reads format {guide.FORMAT}"]
    guide.read(folder)
    return []


def _of_plan(folder: str) -> list[str]:
    """The plan against its own order and the records, and these against their logs."""
    experiment = load(folder, places.PLAN)
    if wrong := plan.faults(experiment):
        return wrong
    decision = checking.schema("decision")
    for name in container.files_below(os.path.join(folder, _DECISIONS)):
        found = load(folder, f"{_DECISIONS}/{name}")
        wrong += [f"{_DECISIONS}/{name}: {key}: {words}" for key, words in checking.findings(decision, found)]
    if wrong:
        return wrong
    order = blocks.Order(experiment, os.path.join(folder, "results"))
    faults = judge.faults(experiment, judge.measured(order.cells(), folder), folder)
    found = [sentence for sentences in faults.values() for sentence in sentences]
    if _content(folder, places.CELLS) != order.as_csv().encode():
        found.append(f"{places.CELLS}: it is not the order that {places.PLAN} gives")
    return found


def _content(folder: str, name: str) -> bytes:
    """The bytes of a file of the archive.  Raises UserError where it has none of that name."""
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        raise UserError(f"{name}: missing")
    with open(path, "rb") as file:
        return file.read()


def _of_image(folder: str) -> list[str]:
    """The image's list of files against its digest."""
    if not os.path.exists(os.path.join(folder, places.MANIFEST)):
        return []
    if manifest.digest(load(folder, places.MANIFEST)) == load(folder, places.IMAGE).get("manifest_sha256"):
        return []
    return [f"{places.MANIFEST}: it is not the manifest that {places.IMAGE} names"]


def _of_source(folder: str) -> list[str]:
    """The source, or the commit that stands for it, against its SWHID, and against the commit that it is said to be."""
    told = guide.read(folder)["source"]
    if told["packed"] and not os.path.isdir(os.path.join(folder, "source")):
        return [f"source: missing, and {guide.FACTS} says that it is packed"]
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
    return [f"{source.lacking(places.PROJECT, revision)}; so the archive's source was not compared with it."]


def _described(folder: str) -> list[str]:
    """What describes the archive against what it follows from: plan and records."""
    told = guide.read(folder)
    again = guide.facts(folder, {key: told[key] for key in guide.GIVEN})
    found = [
        f"{guide.FACTS}: {key}: does not follow from plan and records"
        for key in sorted(told.keys() | again.keys())
        if told.get(key) != again.get(key)
    ]
    for name, text in ((guide.README, guide.readme(told)), (crate.FILE, crate.text(folder, told))):
        if _content(folder, name) != text.encode():
            found.append(f"{name}: it is not what follows from {guide.FACTS} and the archive's files")
    return found


def _derived(folder: str, papers: bool) -> list[str]:
    """Tables, and papers if asked, against those that follow from the logs."""
    experiment = load(folder, places.PLAN)
    lacking = [name for name in experiment["workloads"] if not os.path.isdir(f"{places.PROJECT}/workloads/{name}")]
    if lacking:
        raise MachineError(f"this checkout has no workloads/{lacking[0]}, by which its logs could be read")
    with programs.scratch("derived") as work:
        derive.own_code(work)
        derive.remake(folder, work, papers)
        states = derive.states(folder, work, products.made(experiment) if papers else products.tables(experiment))
        found = [
            f"{name}: it is not what the code of this checkout makes of the logs"
            for name, state in states.items()
            if state not in ("identical", derive.NOT_COMPARABLE)
        ]
        if not found and derive.NOT_COMPARABLE in states.values():
            unlike = "; ".join(guide.unlike(folder))
            raise MachineError(f"all is good but the papers, which are {derive.NOT_COMPARABLE}: {unlike}")
    return found
