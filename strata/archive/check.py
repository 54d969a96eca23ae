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

from strata.archive import checksums, crate, metadata, remake, source, zip_file
from strata.experiment import blocks, plan
from strata.image import manifest
from strata.results import outputs, validate
from strata.results.validate import load
from strata.util import paths, programs, progress, validation
from strata.util.data_types import Fields
from strata.util.errors import MachineError, UserError

_DECISIONS = "results/precision"
# Seconds in which all tables, and papers if requested, must be made again from the logs.
LIMIT = 3600


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
        name = os.path.relpath(at.filename, paths.PROJECT)
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
        zip_file.unpack(path, folder)
        yield folder


def verify(path: str, papers: bool = False) -> int:
    """Say what is wrong with an archive, or with the folder of an unpacked one, or what to know of a good one.

    papers: whether they are made again too, not tables alone.  Returns the exit status: 1 for an archive with findings.
    Raises MachineError where it could not be checked, which is status 2.
    """
    with blameless(path), unpacked(path) as folder:
        found = findings(folder, papers)
        notes = (
            [] if found else [*metadata.notes(facts := metadata.read(folder)), *_of_commit(facts)]
        )
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
    if not os.path.exists(os.path.join(folder, metadata.FACTS)) and not os.path.exists(
        os.path.join(folder, checksums.NAME)
    ):
        return [f"{metadata.FACTS}: missing; this is not an archive of Strata"]
    derived = functools.partial(_derived, papers=papers)
    checks: list[Callable[[str], list[str]]] = [
        checksums.findings,
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
    told = load(folder, metadata.FACTS).get("format")
    if told != metadata.FORMAT:
        return [
            f"{metadata.FACTS}: its format is {told}; this version reads format {metadata.FORMAT}"
        ]
    metadata.read(folder)
    return []


def _of_plan(folder: str) -> list[str]:
    """The plan against its own order and the records, and these against their logs."""
    experiment = load(folder, paths.PLAN)
    if wrong := plan.faults(experiment):
        return wrong
    decision = validation.schema("decision")
    for name in zip_file.files_below(os.path.join(folder, _DECISIONS)):
        found = load(folder, f"{_DECISIONS}/{name}")
        wrong += [
            f"{_DECISIONS}/{name}: {key}: {words}"
            for key, words in validation.findings(decision, found)
        ]
    if wrong:
        return wrong
    order = blocks.Order(experiment, os.path.join(folder, "results"))
    faults = validate.faults(experiment, validate.measured(order.cells(), folder), folder)
    found = [sentence for sentences in faults.values() for sentence in sentences]
    if _content(folder, paths.CELLS) != order.as_csv().encode():
        found.append(f"{paths.CELLS}: it is not the order that {paths.PLAN} gives")
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
    if not os.path.exists(os.path.join(folder, paths.MANIFEST)):
        return []
    if manifest.digest(load(folder, paths.MANIFEST)) == load(folder, paths.IMAGE).get(
        "manifest_sha256"
    ):
        return []
    return [f"{paths.MANIFEST}: it is not the manifest that {paths.IMAGE} names"]


def _of_source(folder: str) -> list[str]:
    """The source, or the commit that stands for it, against its SWHID, and against the commit that it is said to be."""
    told = metadata.read(folder)["source"]
    if told["packed"] and not os.path.isdir(os.path.join(folder, "source")):
        return [f"source: missing, and {metadata.FACTS} says that it is packed"]
    commit = source.committed(paths.PROJECT, told["revision"])
    here = source.tree(os.path.join(folder, "source")) if told["packed"] else commit
    if here is None:
        return []
    if told["swhid"] != here.swhid:
        return [
            f"{metadata.FACTS}: the SWHID of the source is {told['swhid']}, and that of what it names is {here.swhid}"
        ]
    found = [
        f"{name}: it is not the file of the source"
        for name in metadata.ON_TOP
        if os.path.exists(path := os.path.join(folder, name))
        and source.blob(path) != here.files.get(name, ("", ""))[1]
    ]
    if commit is not None:
        names = here.files.keys() | commit.files.keys()
        differ = {name for name in names if here.files.get(name) != commit.files.get(name)}
        found += [
            f"source/{name}: it is not that of commit {told['revision']}, and {metadata.FACTS} does not say so"
            for name in sorted(differ - set(told["changed"]))
        ]
    return found


def _of_commit(facts: Fields) -> list[str]:
    """What could not be checked of an archive's source here."""
    revision = facts["source"]["revision"]
    if revision is None or source.committed(paths.PROJECT, revision) is not None:
        return []
    return [
        f"{source.lacking(paths.PROJECT, revision)}; so the archive's source was not compared with it."
    ]


def _described(folder: str) -> list[str]:
    """What describes the archive against what it follows from: plan and records."""
    told = metadata.read(folder)
    again = metadata.facts(folder, {key: told[key] for key in metadata.GIVEN})
    found = [
        f"{metadata.FACTS}: {key}: does not follow from plan and records"
        for key in sorted(told.keys() | again.keys())
        if told.get(key) != again.get(key)
    ]
    for name, text in (
        (metadata.README, metadata.readme(told)),
        (crate.FILE, crate.text(folder, told)),
    ):
        if _content(folder, name) != text.encode():
            found.append(
                f"{name}: it is not what follows from {metadata.FACTS} and the archive's files"
            )
    return found


def _derived(folder: str, papers: bool) -> list[str]:
    """Tables, and papers if asked, against those that follow from the logs."""
    experiment = load(folder, paths.PLAN)
    lacking = [
        name
        for name in experiment["workloads"]
        if not os.path.isdir(f"{paths.PROJECT}/workloads/{name}")
    ]
    if lacking:
        raise MachineError(
            f"this checkout has no workloads/{lacking[0]}, by which its logs could be read"
        )
    with programs.scratch("derived") as work:
        remake.own_code(work)
        with programs.time_limit(LIMIT, "results: making the tables again from the logs"):
            remake.remake(folder, work, papers)
        states = remake.states(
            folder, work, outputs.made(experiment) if papers else outputs.tables(experiment)
        )
        found = [
            f"{name}: it is not what the code of this checkout makes of the logs"
            for name, state in states.items()
            if state not in ("identical", remake.NOT_COMPARABLE)
        ]
        if not found and remake.NOT_COMPARABLE in states.values():
            unlike = "; ".join(metadata.unlike(folder))
            raise MachineError(
                f"all is good but the papers, which are {remake.NOT_COMPARABLE}: {unlike}"
            )
    return found
