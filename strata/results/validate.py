"""Whether a record is that of its path, of the plan and of its log: the one judge for tables, paper and archive."""

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
from strata.vm.acceleration import CALLED

# A message names so many files.
SHOWN = 20
# Whole numbers of records and plans have so many digits at most: no count or hash of ours has more.
DIGITS = 40
# What records have in common or each for itself → the first one's, and its name.
Shared = dict[tuple[Any, ...], tuple[Any, str]]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, in which each key stands once: other readers would take another of two."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _whole(digits: str) -> int:
    if len(digits) > DIGITS:
        raise ValueError(f"a number has more than {DIGITS} digits")
    return int(digits)


def load(folder: str, name: str) -> Any:
    """The object in a JSON file below a folder.  Raises UserError that names it."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            value = json.load(file, object_pairs_hook=_once, parse_int=_whole)
    except FileNotFoundError:
        raise UserError(f"{name}: missing") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}: is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UserError(f"{name}: is not a JSON object")
    return value


def measured(cells: Iterable[Cell], folder: str = ".") -> list[Cell]:
    """Those cells that have a log."""
    return [
        cell
        for cell in cells
        if os.path.exists(os.path.join(folder, paths.cell_path("raw", *cell, "log")))
    ]


def faults(experiment: Plan, cells: Iterable[Cell], folder: str = ".") -> dict[Cell, list[str]]:
    """What is wrong with the records of measured cells, by the cell: sentences that each name a file.

    folder: holds `results`.  Cells without a fault are left out.  A record is compared with those of the cells
    before it only where both are good by themselves.
    """
    manifest = _manifest(experiment, folder)
    first: Shared = {("image",): (manifest, paths.IMAGE)} if manifest else {}
    found = {}
    for cell in cells:
        name, log = (paths.cell_path("raw", *cell, kind) for kind in ("json", "log"))
        try:
            record = load(folder, name)
        except UserError as error:
            found[cell] = [str(error)]
            continue
        layout = validation.findings(validation.schema("record"), record)
        wrong = [f"{key or 'the whole'}: {sentence}" for key, sentence in layout]
        wrong = (
            wrong
            or [*_of_plan(experiment, cell, record)]
            or _beside(first, experiment, cell, name, record)
        )
        sentences = [f"{name}: {sentence}" for sentence in wrong]
        if not _is_log(record, os.path.join(folder, log)):
            sentences.append(
                f"{log}: it is not the log that {name} records: size or SHA-256 differ"
            )
        if sentences:
            found[cell] = sentences
    return found


def _manifest(experiment: Plan, folder: str) -> str | None:
    """The digest of the image's manifest; None where no image was published.  Raises UserError for another image."""
    if not os.path.exists(os.path.join(folder, paths.IMAGE)):
        return None
    try:
        image = load(folder, paths.IMAGE)
        if image.get("recipe") == experiment["image"]["recipe"]:
            digest: str | None = image.get("manifest_sha256")
            return digest
        wrong = f"{paths.IMAGE}: is of another image than the plan's"
    except UserError as error:
        wrong = str(error)
    raise UserError(f"{wrong}: remove it, and snakemake makes it again")


def _of_plan(experiment: Plan, cell: Cell, record: Record) -> Iterator[str]:
    """Where a record is not what its path and the plan say."""
    environment, workload, repetition = cell
    place, asked = (
        experiment["environments"][environment],
        plan.of_environment(experiment, environment, workload),
    )
    fixed = {
        key: value for key, value in asked["parameters"].items() if not isinstance(value, dict)
    }
    expected: dict[str, object] = {
        "environment": environment,
        "workload": workload,
        "repetition": repetition,
        "seed": plan.cell_seed(experiment, workload, repetition),
        "fingerprint": plan.fingerprint(experiment, environment, workload),
        "scale": plan.scale(experiment, environment),
        "parameters": fixed,
        "layers": place["layers"],
    }
    parameters = {key: record["parameters"].get(key) for key in fixed}
    has = {**record, "parameters": parameters, "layers": record["system"]["layers"]}
    for key, wants in expected.items():
        if has[key] != wants:
            verb = "are" if key.endswith("s") else "is"
            yield f"its {key} {verb} {has[key]}, and the plan's {verb} {wants}"
    if (
        registry.forms(name for entry in place["layers"] for name in entry)
        and None in record["image"].values()
    ):
        yield "it does not say in which image it was measured"
    # Emulation and hardware never share a name.
    machine, planned = record["system"]["vm"], place.get("accelerator")
    if planned is not None and (machine or {}).get("accelerator") != planned:
        told = CALLED[machine["accelerator"]] if machine else "no virtual machine"
        yield f"it was measured with {told}, and the plan says {CALLED[planned]}"
    if "cannot" in record and not place.get("doubtful"):
        yield "it says that its environment cannot do the workload, and that one has to"


def _beside(first: Shared, experiment: Plan, cell: Cell, name: str, record: Record) -> list[str]:
    """What of a good record is not as in those before it, or is theirs alone; it is noted where that is nothing."""
    planned = plan.of_environment(experiment, *cell[:2])["parameters"]
    derived = {
        key: record["parameters"].get(key)
        for key, value in planned.items()
        if isinstance(value, dict)
    }
    image = record["image"]["manifest_sha256"]
    shared: list[tuple[str, tuple[Any, ...], Any]] = [
        ("it was measured in an image with other files than that of", ("image",), image),
        ("its derived parameters are others than those of", ("parameters", *cell[:2]), derived),
    ][image is None :]
    found = [
        f"{words} {first[key][1]}"
        for words, key, value in shared
        if first.get(key, (value,))[0] != value
    ]
    for _, key, value in shared if not found else []:
        first.setdefault(key, (value, name))
    return found


def _is_log(record: Record, path: str) -> bool:
    """Whether a log is the one that a record tells; of a record that tells of none it is not asked."""
    told = record.get("log")
    if not isinstance(told, dict):
        return True
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    return told.get("bytes") == os.path.getsize(path) and told.get("sha256") == found


def complaint(found: dict[Cell, list[str]]) -> list[str]:
    """What to tell of refused records, and what would mend them: lines."""
    logs = shortened([paths.cell_path("raw", *cell, "log") for cell in found])
    sentences = [sentence for wrong in found.values() for sentence in wrong]
    return [
        *sentences,
        f"remove what is not as it was measured, and snakemake measures it again: {logs}",
    ]


def shortened(names: list[str]) -> str:
    """Some files in one line."""
    return " ".join(names[:SHOWN]) + (
        f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    )
