"""Check that records fit their path, the plan and their log, for tables, paper and archive."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from strata.environments.common import registry
from strata.experiment import plan
from strata.experiment.blocks import Cell
from strata.util import paths, validation
from strata.util.data_types import Plan, Record
from strata.util.errors import UserError
from strata.vm.acceleration import MACHINE_NAMES

# The number of files that a message names.
SHOWN = 20
# The most digits of a whole number in records and plans: no count or hash of ours has more.
DIGITS = 40
# Name of a value that records must share → the value and the first file that has it.
Shared = dict[tuple[Any, ...], tuple[Any, str]]


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of JSON that has these keys and values.

    Raises ValueError where a key is repeated: readers would differ in which value they take.
    """
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key is repeated")
    return value


def _parse_whole_number(digits: str) -> int:
    """Return a whole number of JSON.  Raises ValueError where it has more than DIGITS digits."""
    if len(digits) > DIGITS:
        raise ValueError(f"a number has more than {DIGITS} digits")
    return int(digits)


def load_object(folder: str, name: str) -> Any:
    """Return the object in a JSON file, read strictly: repeated keys and huge numbers are errors.

    folder: the folder that holds the file.  name: the file's path in that folder.
    Raises UserError, which names the file, where it is missing or is no such object.
    """
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            value = json.load(file, object_pairs_hook=_unique_keys, parse_int=_parse_whole_number)
    except FileNotFoundError:
        raise UserError(f"{name}: missing") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}: is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UserError(f"{name}: is not a JSON object")
    return value


def measured_cells(cells: Iterable[Cell], folder: str = ".") -> list[Cell]:
    """Return those of the cells that have a log, in the given order.

    folder: the folder that holds `results`.
    """
    return [
        cell
        for cell in cells
        if os.path.exists(os.path.join(folder, paths.cell_path("raw", *cell, "log")))
    ]


def find_faults(
    experiment: Plan, cells: Iterable[Cell], folder: str = "."
) -> dict[Cell, list[str]]:
    """Return cell → the faults of its record and log, as sentences that each name a file.

    cells: measured cells; those without a fault are left out of the result.
    folder: the folder that holds `results`.
    A record is compared with those of earlier cells only where both have no fault of their own.
    Raises UserError where the published image is not that of the plan.
    """
    digest = _manifest_digest(experiment, folder)
    shared: Shared = {("image",): (digest, paths.IMAGE)} if digest else {}
    faults = {}
    for cell in cells:
        name, log = (paths.cell_path("raw", *cell, suffix) for suffix in ("json", "log"))
        try:
            record = load_object(folder, name)
        except UserError as error:
            faults[cell] = [str(error)]
            continue
        layout = validation.find_faults(validation.load_schema("record"), record)
        wrong = [f"{key or 'the whole'}: {sentence}" for key, sentence in layout]
        wrong = wrong or [*_contradictions_to_plan(experiment, cell, record)]
        wrong = wrong or _contradictions_to_others(shared, experiment, cell, name, record)
        sentences = [f"{name}: {sentence}" for sentence in wrong]
        if not _is_log_of(record, os.path.join(folder, log)):
            sentences.append(
                f"{log}: it is not the log that {name} records: size or SHA-256 differ"
            )
        if sentences:
            faults[cell] = sentences
    return faults


def _manifest_digest(experiment: Plan, folder: str) -> str | None:
    """Return the SHA-256 of the published image's manifest; None where no image was published.

    Raises UserError where the published image is not that of the plan.
    """
    if not os.path.exists(os.path.join(folder, paths.IMAGE)):
        return None
    try:
        image = load_object(folder, paths.IMAGE)
        if image.get("recipe") == experiment["image"]["recipe"]:
            digest: str | None = image.get("manifest_sha256")
            return digest
        wrong = f"{paths.IMAGE}: is of another image than the plan's"
    except UserError as error:
        wrong = str(error)
    raise UserError(f"{wrong}: remove it, and snakemake makes it again")


def _contradictions_to_plan(experiment: Plan, cell: Cell, record: Record) -> Iterator[str]:
    """Yield a sentence for each contradiction of a record to its path or to the plan.

    The record fits its schema.
    """
    environment, workload, repetition = cell
    entry = experiment["environments"][environment]
    planned = plan.workload_in_environment(experiment, environment, workload)["parameters"]
    # The values of rules are the cell's: another function compares them.
    fixed = {key: value for key, value in planned.items() if not isinstance(value, dict)}
    expected: dict[str, object] = {
        "environment": environment,
        "workload": workload,
        "repetition": repetition,
        "seed": plan.cell_seed(experiment, workload, repetition),
        "fingerprint": plan.fingerprint(experiment, environment, workload),
        "scale": plan.scale_in_environment(experiment, environment),
        "parameters": fixed,
        "layers": entry["layers"],
    }
    parameters = {key: record["parameters"].get(key) for key in fixed}
    recorded = {**record, "parameters": parameters, "layers": record["system"]["layers"]}
    for key, value in expected.items():
        if recorded[key] != value:
            verb = "are" if key.endswith("s") else "is"
            yield f"its {key} {verb} {recorded[key]}, and the plan's {verb} {value}"
    names = [name for layer in entry["layers"] for name in layer]
    if registry.image_forms(names) and None in record["image"].values():
        yield "it does not say in which image it was measured"
    # Results of an emulated machine and of hardware never share a name.
    machine, accelerator = record["system"]["vm"], entry.get("accelerator")
    if accelerator is not None and (machine or {}).get("accelerator") != accelerator:
        used = MACHINE_NAMES[machine["accelerator"]] if machine else "no virtual machine"
        yield f"it was measured with {used}, and the plan says {MACHINE_NAMES[accelerator]}"
    if "cannot" in record and not entry.get("doubtful"):
        yield "it says that its environment cannot run the workload; only a doubtful one may say so"


def _contradictions_to_others(
    shared: Shared, experiment: Plan, cell: Cell, name: str, record: Record
) -> list[str]:
    """Return a sentence for each contradiction of a record to the records of earlier cells.

    shared: the values that records must share, to which this record's new ones are added where the
    record contradicts none.
    name: the path of the record's file.
    """
    planned = plan.workload_in_environment(experiment, *cell[:2])["parameters"]
    rules = [key for key, value in planned.items() if isinstance(value, dict)]
    derived = {key: record["parameters"].get(key) for key in rules}
    image = record["image"]["manifest_sha256"]
    values: list[tuple[str, tuple[Any, ...], Any]] = [
        ("its derived parameters are others than those of", ("parameters", *cell[:2]), derived)
    ]
    if image is not None:
        sentence = "it was measured in an image with other files than that of"
        values.insert(0, (sentence, ("image",), image))
    wrong = []
    for sentence, key, value in values:
        first_value, first_name = shared.get(key, (value, name))
        if first_value != value:
            wrong.append(f"{sentence} {first_name}")
    if not wrong:
        for _, key, value in values:
            shared.setdefault(key, (value, name))
    return wrong


def _is_log_of(record: Record, path: str) -> bool:
    """Return whether a log has the size and SHA-256 in its record; true where the record has none.

    path: the log's path.
    """
    described = record.get("log")
    if not isinstance(described, dict):
        return True
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return described.get("bytes") == os.path.getsize(path) and described.get("sha256") == digest


def complaint(faults: dict[Cell, list[str]]) -> list[str]:
    """Return the lines of an error message about faults of cells, the last one with the remedy.

    faults: as of :func:`find_faults`.
    """
    logs = shortened([paths.cell_path("raw", *cell, "log") for cell in faults])
    sentences = [sentence for wrong in faults.values() for sentence in wrong]
    return [
        *sentences,
        f"remove what is not as it was measured, and snakemake measures it again: {logs}",
    ]


def shortened(names: list[str]) -> str:
    """Return the first :data:`SHOWN` names in one line, and how many more there are."""
    line = " ".join(names[:SHOWN])
    return f"{line} and {len(names) - SHOWN} more" if len(names) > SHOWN else line
