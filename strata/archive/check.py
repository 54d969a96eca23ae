"""Check an archive: whether it is whole, and whether its tables follow from its logs.

The code of this checkout judges, and no code of the archive runs: tables are made again from the
logs, descriptions from plan and records, and the source is compared with the commit that it names.
"""

import os
import shutil
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from strata.archive import checksums, crate, light, metadata, remake, source, zip_file
from strata.experiment import blocks, plan
from strata.image import manifest
from strata.results import outputs, validate
from strata.results.validate import load_object
from strata.util import paths, programs, progress, validation
from strata.util.data_types import Fields
from strata.util.errors import MachineError, UserError

_DECISIONS = "results/precision"


@contextmanager
def convert_to_machine_error(path: str) -> Iterator[None]:
    """Convert every exception in the `with` block, except UserError, to MachineError.

    path: the path of the archive, which the message names.
    A UserError that is no MachineError describes a fault of the archive, and is raised unchanged.
    All other exceptions come from this machine (a full disk, no memory, a missing program) or a bug
    of Strata.
    """
    try:
        yield
    # Keep this order: shutil.Error is an OSError, and MachineError is a UserError.
    except shutil.Error as error:
        # One row (source, target, reason) for each file that could not be copied.
        rows = error.args[0]
        _, _, last_reason = rows[-1]
        reason = str(last_reason)
    except (MachineError, OSError, MemoryError) as error:
        reason = str(error) or "not enough memory"
    except UserError:
        raise
    except Exception as error:
        *_, frame = traceback.extract_tb(error.__traceback__)
        place = f"{os.path.relpath(frame.filename, paths.PROJECT)}:{frame.lineno}"
        reason = f"Strata itself failed at {place}, perhaps because of an unusual file: {error!r}"
    else:
        return
    # Some messages begin with the path already.
    raise MachineError(f"{path}: could not be checked: {reason.removeprefix(f'{path}: ')}")


@contextmanager
def open_archive(path: str) -> Iterator[str]:
    """Yield the folder of an archive, which is unpacked first if it is a file.

    path: the archive's file, or the folder of an unpacked one, which is yielded itself.
    Unpacks into a temporary folder, which is removed when the block ends.
    Raises UserError for a file that cannot be unpacked safely, and MachineError if this machine
    cannot read the file or write the folder.
    """
    if os.path.isdir(path):
        yield path
        return
    with programs.create_temporary_folder("archive") as folder:
        zip_file.unpack_archive(path, folder)
        yield folder


def verify_archive(path: str, papers: bool = False) -> int:
    """Check an archive, and print each fault or, if it has none, notes on its origin.

    path: the archive's file, or the folder of an unpacked one.
    papers: whether papers are computed again and compared too, and not only tables.
    Returns the command's exit status, which docs/archive.md promises: 0 for a good archive, 1 for
    one with faults.
    Raises MachineError if a check was not possible; the command then exits with status 2.
    The parameters must have the names that ``add_verify_options`` of strata/options.py gives to the
    options.
    """
    notes: list[str] = []
    with convert_to_machine_error(path), open_archive(path) as folder:
        if light.is_light_archive(folder):
            good_properties = "every file is as it was archived, and every row has its session"
            faults = light.find_light_archive_faults(folder)
            notes.append(light.NOTE)
        else:
            good_properties = (
                "every file is as it was archived, every record fits its log, and all tables "
                "follow from the logs"
            )
            faults = find_archive_faults(folder, papers)
            if not faults:
                facts = metadata.read_facts(folder)
                notes = [*metadata.describe_origin(facts), *_describe_missing_commit(facts)]
    if faults:
        for fault in faults:
            progress.print_line(fault)
        count = f"{len(faults)} finding{'s' if len(faults) > 1 else ''}"
        progress.print_message(f"{path}: NOT good: {count}")
        return 1
    for note in notes:
        progress.print_message(f"{path}: note: {note}")
    progress.print_message(f"{path}: good: {good_properties}")
    return 0


def find_archive_faults(folder: str, papers: bool = False) -> list[str]:
    """Return a sentence for each fault of an unpacked archive; an empty list for a good one.

    folder: the folder of the unpacked archive.
    papers: whether papers are computed again and compared too, and not only tables.
    The order of the checks must stay: each relies on the results of the earlier ones.  The first
    check with faults is therefore the last that runs.
    Raises any error except UserError if a check was not possible; callers convert it by
    :func:`convert_to_machine_error`.
    """
    if light.is_light_archive(folder):
        return [
            f"{light.FACTS}: this is a light archive, without logs; `python3 -m strata pool` reads "
            "it"
        ]
    if not any(
        os.path.exists(os.path.join(folder, name)) for name in (metadata.FACTS, checksums.NAME)
    ):
        return [f"{metadata.FACTS}: missing; this is not an archive of Strata"]
    for find_faults in (
        checksums.find_checksum_faults,
        _find_format_faults,
        _find_measurement_faults,
        _find_image_faults,
        _find_source_faults,
        _find_description_faults,
    ):
        if faults := _collect_faults(find_faults(folder)):
            return faults
    return _collect_faults(_find_output_faults(folder, papers))


def _collect_faults(faults: Iterable[str]) -> list[str]:
    """Return the faults that a check yields or, if it raises UserError, the error's sentences.

    A MachineError, which is a UserError too, is not a fault of the archive, and is raised.
    """
    try:
        return list(faults)
    except MachineError:
        raise
    except UserError as error:
        return [*error.args]


def _find_format_faults(folder: str) -> Iterator[str]:
    """Yield a sentence if archive.json has another format; raise UserError if it breaks the schema.

    Later checks rely on the schema's keys.
    """
    version = load_object(folder, metadata.FACTS).get("format")
    if version == metadata.FORMAT:
        metadata.read_facts(folder)
    else:
        supported = f"this version reads format {metadata.FORMAT}"
        yield f"{metadata.FACTS}: its format is {version}; {supported}"


def _find_measurement_faults(folder: str) -> Iterator[str]:
    """Yield a sentence for each fault of the plan, decisions, records, logs and order of cells.

    Mistakes in the plan or the decisions end the check, since the order of cells follows from both,
    and records are found by it.  plan.csv must be byte-identical to that order.
    """
    experiment = load_object(folder, paths.PLAN)
    mistakes = plan.find_plan_mistakes(experiment) or _find_wrong_decisions(folder)
    yield from mistakes
    if mistakes:
        return
    order = blocks.Order(experiment, os.path.join(folder, "results"))
    measured = validate.list_measured_cells(order.list_cells(), folder)
    for sentences in validate.find_record_faults(experiment, measured, folder).values():
        yield from sentences
    if _read_file(folder, paths.CELLS) != order.format_csv().encode():
        yield f"{paths.CELLS}: it is not the order that {paths.PLAN} gives"


def _find_wrong_decisions(folder: str) -> list[str]:
    """Return a sentence for each key of a decision that breaks the schema.

    results/precision/N.json is the decision after round N, from which the order of cells follows.
    """
    schema = validation.load_schema("decision")
    faults = []
    for name in zip_file.list_files(os.path.join(folder, _DECISIONS)):
        decision = f"{_DECISIONS}/{name}"
        for key, sentence in validation.find_schema_faults(schema, load_object(folder, decision)):
            faults.append(f"{decision}: {key}: {sentence}")
    return faults


def _read_file(folder: str, name: str) -> bytes:
    """Return the bytes of a file in an archive's folder; raise UserError if it is missing."""
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        raise UserError(f"{name}: missing")
    with open(path, "rb") as file:
        return file.read()


def _find_image_faults(folder: str) -> Iterator[str]:
    """Yield a sentence if the manifest of the image's files does not fit the digest in image.json.

    An archive that was written with the option ``--without-source`` has no manifest, and passes.
    """
    if os.path.exists(os.path.join(folder, paths.MANIFEST)):
        digest = manifest.hash_manifest(load_object(folder, paths.MANIFEST))
        if digest != load_object(folder, paths.IMAGE).get("manifest_sha256"):
            yield f"{paths.MANIFEST}: it is not the manifest that {paths.IMAGE} names"


def _find_source_faults(folder: str) -> Iterator[str]:
    """Yield a sentence for each fault of the source, which is packed or named by its commit.

    Compares the source with its SWHID, the copies at the archive's top (`metadata.ON_TOP`) with the
    source and, if this repository has the commit, each packed file with the file of the commit.
    Yields no sentence if the archive holds no source and this repository lacks the commit;
    :func:`verify_archive` then prints a note.
    """
    source_facts = metadata.read_facts(folder)["source"]
    commit = source.read_commit(paths.PROJECT, source_facts["revision"])
    tree = commit
    if source_facts["packed"]:
        source_folder = os.path.join(folder, "source")
        if not os.path.isdir(source_folder):
            yield f"source: missing, and {metadata.FACTS} says that it is packed"
            return
        tree = source.read_tree(source_folder)
    if tree is None:
        return
    if source_facts["swhid"] != tree.swhid:
        yield (
            f"{metadata.FACTS}: the SWHID of the source is {source_facts['swhid']}, and the source "
            f"that it names has {tree.swhid}"
        )
        return
    for name in metadata.ON_TOP:
        path = os.path.join(folder, name)
        _, source_id = tree.files.get(name, ("", ""))
        if os.path.exists(path) and source.hash_blob(path) != source_id:
            yield f"{name}: it differs from the source's file of that name"
    if commit is not None:
        # Items are (path, (mode, ID)).  A file that only one side has differs, too.
        differing_items = tree.files.items() ^ commit.files.items()
        differing_names = {name for name, _ in differing_items}
        for name in sorted(differing_names - set(source_facts["changed"])):
            yield (
                f"source/{name}: it is not that of commit {source_facts['revision']}, and "
                f"{metadata.FACTS} does not say so"
            )


def _describe_missing_commit(facts: Fields) -> list[str]:
    """Return a list with a note if this repository lacks the commit that an archive names.

    The list is empty if the repository has the commit, or the archive names none.
    facts: the object of archive.json.
    """
    revision = facts["source"]["revision"]
    if revision is None or source.read_commit(paths.PROJECT, revision) is not None:
        return []
    reason = source.explain_missing_commit(paths.PROJECT, revision)
    return [f"{reason}; so the archive's source was not compared with it."]


def _find_description_faults(folder: str) -> Iterator[str]:
    """Yield a sentence for each description of the archive that does not follow from its files.

    The keys of archive.json follow from plan and records, except `metadata.GIVEN`.  README.md and
    the RO-Crate follow from archive.json and the list of files, and must be byte-identical.
    """
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


def _find_output_faults(folder: str, papers: bool) -> Iterator[str]:
    """Yield a sentence for each table, or paper if requested, that does not follow from the logs.

    The code of this checkout computes them again, in a temporary folder.
    Raises UserError if a log is refused or `remake.LIMIT` is exceeded.  Raises MachineError if this
    checkout lacks a workload, or if papers differ and other fonts or versions of R, pandoc or LaTeX
    may be the reason.
    """
    experiment = load_object(folder, paths.PLAN)
    for name in experiment["workloads"]:
        if not os.path.isdir(f"{paths.PROJECT}/workloads/{name}"):
            raise MachineError(f"this checkout has no workloads/{name}, which reads its logs")
    names = (
        outputs.list_output_paths(experiment) if papers else outputs.list_table_paths(experiment)
    )
    with programs.create_temporary_folder("derived") as work:
        remake.copy_own_code(work)
        remake.copy_measurements(folder, work)
        with programs.limit_program_time(
            remake.LIMIT, "results: making the tables again from the logs"
        ):
            remake.compute_outputs(folder, work, papers)
        states = remake.compare_outputs(folder, work, names)
    different = [name for name, state in states.items() if state in ("different", "missing")]
    for name in different:
        yield f"{name}: it is not what the code of this checkout makes of the logs"
    if not different and remake.NOT_COMPARABLE in states.values():
        reasons = "; ".join(metadata.list_software_differences(folder))
        raise MachineError(
            f"all is good but the papers, which are {remake.NOT_COMPARABLE}: {reasons}"
        )
