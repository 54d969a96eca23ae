"""Check an archive: whether it is whole, and whether its tables follow from its logs.

The code of this checkout judges, and no code of the archive runs: tables are made again from the
logs, descriptions from plan and records, and the source is compared with the commit that it names.
"""

import os
import shutil
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from strata.archive import checksums, crate, metadata, remake, source, zip_file
from strata.experiment import blocks, plan
from strata.image import manifest
from strata.results import outputs, validate
from strata.results.validate import load_object
from strata.util import paths, programs, progress, validation
from strata.util.data_types import Fields
from strata.util.errors import MachineError, UserError

_DECISIONS = "results/precision"
# Seconds in which all tables, and papers if requested, must be made again from the logs.
LIMIT = 3600


@contextmanager
def report_machine_failures(path: str) -> Iterator[None]:
    """Turn failures of this block that are no fault of the archive at `path` into MachineError.

    Reasons are this machine (a full disk, no memory, a missing program) and faults of Strata
    itself. A UserError is a finding, and passes.
    """
    try:
        yield
    except shutil.Error as error:
        # One row for each file that could not be copied: the last field of a row is the reason.
        reason = str(error.args[0][-1][-1])
    except (MachineError, OSError, MemoryError) as error:
        reason = str(error) or "not enough memory"
    except UserError:
        raise
    except Exception as error:
        *_, frame = traceback.extract_tb(error.__traceback__)
        place = f"{os.path.relpath(frame.filename, paths.PROJECT)}:{frame.lineno}"
        reason = f"Strata itself failed at {place}, perhaps on a file of an odd form: {error!r}"
    else:
        return
    raise MachineError(f"{path}: could not be checked: {reason.removeprefix(f'{path}: ')}")


@contextmanager
def open_archive(path: str) -> Iterator[str]:
    """Yield the folder of an archive: `path`, or a temporary one into which it is unpacked.

    Raises UserError for a file that cannot be unpacked safely.
    """
    if os.path.isdir(path):
        yield path
        return
    with programs.temporary_folder("archive") as folder:
        zip_file.unpack_archive(path, folder)
        yield folder


def verify(path: str, papers: bool = False) -> int:
    """Print all that is wrong with an archive, or, of a good one, what its reader should know.

    path: the file, or the folder of an unpacked one.
    papers: whether papers are made again too, and not only tables.

    Returns the exit status: 0 for a good archive, 1 for one with findings.
    Raises MachineError, which is status 2, if it could not be checked.
    """
    notes: list[str] = []
    with report_machine_failures(path), open_archive(path) as folder:
        faults = find_faults(folder, papers)
        if not faults:
            facts = metadata.read_facts(folder)
            notes = [*metadata.describe_origin(facts), *_note_missing_commit(facts)]
    for fault in faults:
        progress.print_line(fault)
    for note in notes:
        progress.print_message(f"{path}: note: {note}")
    if faults:
        count = f"{len(faults)} finding{'s' if len(faults) > 1 else ''}"
        progress.print_message(f"{path}: NOT good: {count}")
        return 1
    progress.print_message(
        f"{path}: good: every file is as it was archived, every record fits its log, and all "
        "tables follow from the logs"
    )
    return 0


def find_faults(folder: str, papers: bool = False) -> list[str]:
    """Return a sentence for each fault of an unpacked archive.

    The first check that finds faults is the last: files that are wrong say nothing about others.
    Raises MachineError, and any error of `report_machine_failures`, if a check could not be made.
    """
    if not any(
        os.path.exists(os.path.join(folder, name)) for name in (metadata.FACTS, checksums.NAME)
    ):
        return [f"{metadata.FACTS}: missing; this is not an archive of Strata"]
    for check in (
        checksums.find_faults,
        _check_format,
        _check_plan,
        _check_image,
        _check_source,
        _check_descriptions,
    ):
        if faults := _list_faults(check(folder)):
            return faults
    return _list_faults(_check_products(folder, papers))


def _list_faults(faults: Iterable[str]) -> list[str]:
    """Return the faults that a check yields, and those that it raises as a UserError."""
    try:
        return list(faults)
    except MachineError:
        raise
    except UserError as error:
        return [*error.args]


def _check_format(folder: str) -> Iterator[str]:
    version = load_object(folder, metadata.FACTS).get("format")
    if version == metadata.FORMAT:
        metadata.read_facts(folder)
    else:
        reads = f"this version reads format {metadata.FORMAT}"
        yield f"{metadata.FACTS}: its format is {version}; {reads}"


def _check_plan(folder: str) -> Iterator[str]:
    """Check the plan, its decisions, its order, and the records with their logs."""
    experiment = load_object(folder, paths.PLAN)
    faults = plan.find_mistakes(experiment)
    schema = validation.load_schema("decision")
    if not faults:
        for name in zip_file.list_files(os.path.join(folder, _DECISIONS)):
            decision = f"{_DECISIONS}/{name}"
            for key, sentence in validation.find_faults(schema, load_object(folder, decision)):
                faults.append(f"{decision}: {key}: {sentence}")
    yield from faults
    if faults:
        return
    order = blocks.Order(experiment, os.path.join(folder, "results"))
    measured = validate.measured_cells(order.cells(), folder)
    for sentences in validate.find_faults(experiment, measured, folder).values():
        yield from sentences
    if _read_file(folder, paths.CELLS) != order.as_csv().encode():
        yield f"{paths.CELLS}: it is not the order that {paths.PLAN} gives"


def _read_file(folder: str, name: str) -> bytes:
    """Return the content of a file of the archive.  Raises UserError if it is missing."""
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        raise UserError(f"{name}: missing")
    with open(path, "rb") as file:
        return file.read()


def _check_image(folder: str) -> Iterator[str]:
    """Check the list of the image's files against the digest in the image's facts."""
    if os.path.exists(os.path.join(folder, paths.MANIFEST)):
        digest = manifest.manifest_digest(load_object(folder, paths.MANIFEST))
        if digest != load_object(folder, paths.IMAGE).get("manifest_sha256"):
            yield f"{paths.MANIFEST}: it is not the manifest that {paths.IMAGE} names"


def _check_source(folder: str) -> Iterator[str]:
    """Check the source against its SWHID and, where this repository has it, against its commit."""
    origin = metadata.read_facts(folder)["source"]
    packed = os.path.join(folder, "source")
    if origin["packed"] and not os.path.isdir(packed):
        yield f"source: missing, and {metadata.FACTS} says that it is packed"
        return
    commit = source.read_commit(paths.PROJECT, origin["revision"])
    tree = source.read_tree(packed) if origin["packed"] else commit
    if tree is None:
        return
    if origin["swhid"] != tree.swhid:
        yield (
            f"{metadata.FACTS}: the SWHID of the source is {origin['swhid']}, and the source that "
            f"it names has {tree.swhid}"
        )
        return
    for name in metadata.ON_TOP:
        path = os.path.join(folder, name)
        if os.path.exists(path) and source.hash_blob(path) != tree.files.get(name, ("", ""))[1]:
            yield f"{name}: it is not the file of the source"
    if commit is not None:
        names = tree.files.keys() | commit.files.keys()
        changed = {name for name in names if tree.files.get(name) != commit.files.get(name)}
        for name in sorted(changed - set(origin["changed"])):
            yield (
                f"source/{name}: it is not that of commit {origin['revision']}, and "
                f"{metadata.FACTS} does not say so"
            )


def _note_missing_commit(facts: Fields) -> list[str]:
    """Return a note where the source could not be compared with its commit."""
    revision = facts["source"]["revision"]
    if revision is None or source.read_commit(paths.PROJECT, revision) is not None:
        return []
    reason = source.explain_missing_commit(paths.PROJECT, revision)
    return [f"{reason}; so the archive's source was not compared with it."]


def _check_descriptions(folder: str) -> Iterator[str]:
    """Check archive.json, README.md and the crate against the plan, the records and the files."""
    facts = metadata.read_facts(folder)
    expected = metadata.collect_facts(folder, {key: facts[key] for key in metadata.GIVEN})
    for key in sorted(facts.keys() | expected.keys()):
        if facts.get(key) != expected.get(key):
            yield f"{metadata.FACTS}: {key}: does not follow from plan and records"
    texts = {
        metadata.README: metadata.format_readme(facts),
        crate.FILE: crate.format_crate(folder, facts),
    }
    for name, text in texts.items():
        if _read_file(folder, name) != text.encode():
            yield f"{name}: it is not what follows from {metadata.FACTS} and the archive's files"


def _check_products(folder: str, papers: bool) -> Iterator[str]:
    """Check tables, and papers if requested, by making them again from the logs."""
    experiment = load_object(folder, paths.PLAN)
    for name in experiment["workloads"]:
        if not os.path.isdir(f"{paths.PROJECT}/workloads/{name}"):
            raise MachineError(
                f"this checkout has no workloads/{name}, by which its logs could be read"
            )
    names = outputs.output_paths(experiment) if papers else outputs.table_paths(experiment)
    with programs.temporary_folder("derived") as work:
        remake.copy_own_code(work)
        remake.copy_measurements(folder, work)
        with programs.time_limit(LIMIT, "results: making the tables again from the logs"):
            remake.make_outputs(folder, work, papers)
        states = remake.compare_products(folder, work, names)
    different = [
        name for name, state in states.items() if state not in ("identical", remake.NOT_COMPARABLE)
    ]
    for name in different:
        yield f"{name}: it is not what the code of this checkout makes of the logs"
    if not different and remake.NOT_COMPARABLE in states.values():
        reasons = "; ".join(metadata.list_differences(folder))
        raise MachineError(
            f"all is good but the papers, which are {remake.NOT_COMPARABLE}: {reasons}"
        )
