"""Check that records match their paths, the plan and their logs."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from strata.environments.common import registry
from strata.experiment import plan
from strata.experiment.blocks import Cell
from strata.util import paths, validation
from strata.util.data_types import Plan, PlannedEnvironment, Record
from strata.util.errors import UserError
from strata.vm.acceleration import MACHINE_NAMES

# The largest number of files that a message names.
SHOWN = 20
# The largest number of digits of a whole number in records and plans: no count or hash of Strata
# has more, and converting a very long number takes quadratic time.
_MAX_DIGITS = 40
# Key of a value that records must share → the value and the first file that has it.
SharedValues = dict[tuple[Any, ...], tuple[Any, str]]


def _build_json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the JSON object with these keys and values, as `object_pairs_hook` of json.load.

    Raises ValueError if a key is repeated: readers of JSON differ in which value they take.
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key is repeated")
    return content


def _parse_whole_number(digits: str) -> int:
    """Return a whole number of JSON; raise ValueError if it has more than `_MAX_DIGITS` digits."""
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number has more than {_MAX_DIGITS} digits")
    return int(digits)


def load_object(folder: str, name: str) -> Any:
    """Return the object in a JSON file, read strictly: repeated keys and huge numbers are errors.

    folder: the folder that holds the file.
    name: the file's path in that folder, which messages give.
    Raises UserError, which names the file, if it is missing or does not hold a JSON object.
    """
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            value = json.load(
                file, object_pairs_hook=_build_json_object, parse_int=_parse_whole_number
            )
    except FileNotFoundError:
        raise UserError(f"{name}: missing") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}: is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UserError(f"{name}: is not a JSON object")
    return value


def list_measured_cells(cells: Iterable[Cell], folder: str = ".") -> list[Cell]:
    """Return the cells that have a log, and so are measured, in the given order.

    folder: the folder that holds `results`.
    """
    return [
        cell
        for cell in cells
        if os.path.exists(os.path.join(folder, paths.get_cell_path("raw", *cell, "log")))
    ]


def find_record_faults(
    experiment: Plan, cells: Iterable[Cell], folder: str = "."
) -> dict[Cell, list[str]]:
    """Return ``{cell: sentences}`` on the faults of records and logs; each sentence names a file.

    experiment: the plan.
    cells: measured cells; cells without a fault are left out of the result.
    folder: the folder that holds `results`.
    A record must match its schema, then the plan, and then the records of earlier cells without a
    fault.  After a fault in one step, the next of these steps are skipped, since they rely on it.
    The size and hash of the log are always compared.
    Raises UserError if the published image is not the plan's.
    """
    shared: SharedValues = {}
    digest = _read_manifest_digest(experiment, folder)
    if digest:
        shared["image",] = (digest, paths.IMAGE)
    schema = validation.load_schema("record")
    faults = {}
    for cell in cells:
        name = paths.get_cell_path("raw", *cell, "json")
        log = paths.get_cell_path("raw", *cell, "log")
        try:
            record = load_object(folder, name)
        except UserError as error:
            faults[cell] = [str(error)]
            continue
        cell_faults = [
            f"{key or 'the whole'}: {sentence}"
            for key, sentence in validation.find_schema_faults(schema, record)
        ]
        if not cell_faults:
            cell_faults = [*_compare_with_plan(experiment, cell, record)]
        if not cell_faults:
            cell_faults = _compare_with_records(shared, experiment, cell, name, record)
        sentences = [f"{name}: {sentence}" for sentence in cell_faults]
        if not _has_recorded_digest(record, os.path.join(folder, log)):
            sentences.append(
                f"{log}: it is not the log that {name} records: size or SHA-256 differ"
            )
        if sentences:
            faults[cell] = sentences
    return faults


def _read_manifest_digest(experiment: Plan, folder: str) -> str | None:
    """Return the SHA-256 of the published image's manifest; None if no image was published.

    experiment: the plan.
    folder: the folder that holds `results`.
    The published image is the one that results/image.json describes.
    Raises UserError if the published image is not the plan's.
    """
    if not os.path.exists(os.path.join(folder, paths.IMAGE)):
        return None
    try:
        image = load_object(folder, paths.IMAGE)
        if image.get("recipe") == experiment["image"]["recipe"]:
            digest: str | None = image.get("manifest_sha256")
            return digest
        reason = f"{paths.IMAGE}: is of another image than the plan's"
    except UserError as error:
        reason = str(error)
    raise UserError(f"{reason}: remove it, and snakemake makes it again")


def _compare_with_plan(experiment: Plan, cell: Cell, record: Record) -> Iterator[str]:
    """Yield a sentence for each contradiction between a record and its path or the plan.

    cell: the cell that the path of the record names.
    record: the record, which matches its schema (schemas/record.schema.json).
    Parameters whose values follow from rules on the system's size are not compared here, but by
    :func:`_compare_with_records`.
    """
    environment, workload, repetition = cell
    entry = experiment["environments"][environment]
    planned_parameters = plan.select_workload(experiment, environment, workload)["parameters"]
    # The value of a rule is a mapping.
    fixed_parameters = {
        key: value for key, value in planned_parameters.items() if not isinstance(value, dict)
    }
    expected: dict[str, object] = {
        "environment": environment,
        "workload": workload,
        "repetition": repetition,
        "seed": plan.compute_cell_seed(experiment, workload, repetition),
        "fingerprint": plan.compute_fingerprint(experiment, environment, workload),
        "scale": plan.select_scale(experiment, environment),
        "parameters": fixed_parameters,
        "layers": entry["layers"],
    }
    parameters = {key: record["parameters"].get(key) for key in fixed_parameters}
    actual = {**record, "parameters": parameters, "layers": record["system"]["layers"]}
    for key, value in expected.items():
        if actual[key] != value:
            # The keys `parameters` and `layers` are plurals.
            verb = "are" if key.endswith("s") else "is"
            yield f"its {key} {verb} {actual[key]}, and the plan's {verb} {value}"
    yield from _compare_systems(entry, record)


def _compare_systems(entry: PlannedEnvironment, record: Record) -> Iterator[str]:
    """Yield a sentence for each contradiction between a record's system and its environment.

    entry: the environment in the plan.
    record: the record, which matches its schema.
    """
    names = [name for layer in entry["layers"] for name in layer]
    if registry.collect_image_forms(names) and None in record["image"].values():
        yield "it does not say in which image it was measured"
    # Results of an emulated machine and of hardware never share a name.
    accelerator = entry.get("accelerator")
    if accelerator is not None:
        machine = record["system"]["vm"] or {}
        actual_accelerator = machine.get("accelerator")
        if actual_accelerator != accelerator:
            name = MACHINE_NAMES[actual_accelerator] if machine else "no virtual machine"
            yield f"it was measured with {name}, and the plan says {MACHINE_NAMES[accelerator]}"
    if "cannot" in record and not entry.get("doubtful"):
        yield "it says that its environment cannot run the workload; only a doubtful one may say so"


def _compare_with_records(
    shared: SharedValues, experiment: Plan, cell: Cell, name: str, record: Record
) -> list[str]:
    """Return a sentence for each contradiction between a record and the records of earlier cells.

    shared: the values that records must share, with the file that each comes from.  If the record
    has no contradiction, this function adds the record's values.
    experiment: the plan.
    cell: the cell of the record.
    record: the record, which matches its schema and the plan.
    name: the path of the record's file, which later messages give.
    The SHA-256 of the image's manifest must be equal in all records, and the parameters that follow
    from rules in all records of an environment and workload.
    """
    planned_parameters = plan.select_workload(experiment, *cell[:2])["parameters"]
    rule_keys = [key for key, value in planned_parameters.items() if isinstance(value, dict)]
    values: dict[tuple[Any, ...], Any] = {}
    # Environments that need no image have no manifest.
    if record["image"]["manifest_sha256"] is not None:
        values["image",] = record["image"]["manifest_sha256"]
    values["parameters", *cell[:2]] = {key: record["parameters"].get(key) for key in rule_keys}
    # The first item of a key of `values` → the beginning of the sentence.
    beginnings = {
        "image": "it was measured in an image with other files than that of",
        "parameters": "its derived parameters are others than those of",
    }
    sentences = []
    for key, value in values.items():
        first_value, first_name = shared.get(key, (value, name))
        if first_value != value:
            sentences.append(f"{beginnings[key[0]]} {first_name}")
    if not sentences:
        for key, value in values.items():
            shared.setdefault(key, (value, name))
    return sentences


def _has_recorded_digest(record: Record, path: str) -> bool:
    """Return whether a log has the size and SHA-256 that its record states.

    record: the record, which may not match its schema.
    path: the log's path.
    Returns True if the record states neither: that fault is reported when the schema is checked.
    """
    log_facts = record.get("log")
    if not isinstance(log_facts, dict):
        return True
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return log_facts.get("bytes") == os.path.getsize(path) and log_facts.get("sha256") == digest


def join_names(names: list[str], limit: int = SHOWN, separator: str = " ") -> str:
    """Join the first names into one line, with the number of further ones, as in "a b and 3 more".

    limit: the largest number of names that are shown.
    separator: the string between two names.
    """
    line = separator.join(names[:limit])
    return f"{line} and {len(names) - limit} more" if len(names) > limit else line
