"""Whether a record is that of its path, of the plan and of its log: the one judge for tables, paper and archive."""

import hashlib
import json
import os
from collections.abc import Iterable
from typing import Any

from strata.base import checking, places
from strata.base.errors import UserError
from strata.experiment import plan
from strata.host import node

Cell = tuple[str, str, int]


def load(folder: str, name: str) -> dict:
    """The object in a JSON file below a folder.  Raises UserError that names it."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            value = json.load(file)
    except FileNotFoundError:
        raise UserError(f"{name}: missing") from None
    except (ValueError, RecursionError):
        raise UserError(f"{name}: is not JSON") from None
    if not isinstance(value, dict):
        raise UserError(f"{name}: is no JSON object")
    return value


def measured(cells: Iterable[Cell], folder: str = ".") -> list[Cell]:
    """Those cells that have a log."""
    return [cell for cell in cells if os.path.exists(os.path.join(folder, places.cell_path("raw", *cell, "log")))]


def faults(experiment: dict, cells: Iterable[Cell], folder: str = ".", layout: bool = False) -> dict[Cell, list[str]]:
    """What is wrong with the records of measured cells, by the cell: sentences that each name a file.

    folder: holds `results`.  layout: whether records are held against their schema, since they may be anybody's.
    Cells without a fault are left out.  A record is compared with those before it only where both are good by
    themselves.
    """
    among = _Among(experiment, _manifest(experiment, folder))
    found = {}
    for cell in cells:
        name = places.cell_path("raw", *cell, "json")
        try:
            record = load(folder, name)
        except UserError as error:
            found[cell] = [str(error)]
            continue
        try:
            wrong = _layout(record) if layout else []
            wrong = wrong or _of_plan(experiment, cell, record) or among.add(cell, name, record)
        except (KeyError, TypeError, AttributeError):
            wrong = ["it is not laid out as a record"]
        sentences = [f"{name}: {sentence}" for sentence in wrong]
        if not _is_log(record, os.path.join(folder, places.cell_path("raw", *cell, "log"))):
            log = places.cell_path("raw", *cell, "log")
            sentences.append(f"{log}: it is not the log that {name} records: size or SHA-256 differ")
        if sentences:
            found[cell] = sentences
    return found


def _manifest(experiment: dict, folder: str) -> str | None:
    """The digest of the image's manifest; None where no image was published.  Raises UserError for another image."""
    if not os.path.exists(os.path.join(folder, places.IMAGE)):
        return None
    try:
        image = load(folder, places.IMAGE)
        if image.get("recipe") == experiment["image"]["recipe"]:
            return image.get("manifest_sha256")
        wrong = f"{places.IMAGE}: is of another image than the plan's"
    except UserError as error:
        wrong = str(error)
    raise UserError(f"{wrong}: remove it, and snakemake makes it again")


def _layout(record: dict) -> list[str]:
    """Where a record breaks its schema."""
    found = checking.findings(checking.schema("record"), record)
    return [f"{key or 'the whole'}: {sentence}" for key, sentence in found]


def _of_plan(experiment: dict, cell: Cell, record: dict) -> list[str]:
    """Where a record is not what its path and the plan say.  The fingerprint stands for all that decides a result."""
    environment, load_name, repetition = cell
    expected: list[tuple[str, Any, Any]] = [
        ("environment", record["environment"], environment),
        ("workload", record["workload"], load_name),
        ("repetition", record["repetition"], repetition),
        ("fingerprint", record["fingerprint"], plan.fingerprint(experiment, environment, load_name)),
        ("parameters' names", sorted(record["parameters"]), sorted(experiment["workloads"][load_name]["parameters"])),
    ]
    accelerator = experiment["environments"][environment].get("accelerator")
    if accelerator is not None:
        # Emulation and hardware never share a name.
        expected.append(("accelerator", (record["system"]["vm"] or {}).get("accelerator"), accelerator))
    found = [
        f"its {what} is {_short(has)}, and the plan's is {_short(wants)}"
        for what, has, wants in expected
        if has != wants
    ]
    if "cannot" in record and not experiment["environments"][environment].get("doubtful"):
        found.append("it says that its environment cannot do the workload, and that one has to")
    return found


def _is_log(record: dict, path: str) -> bool:
    """Whether a log is the one that a record tells; of a record that tells of none it is not asked."""
    told = record.get("log")
    if not isinstance(told, dict):
        return True
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    return told.get("bytes") == os.path.getsize(path) and told.get("sha256") == found


class _Among:
    """Records that are good by themselves, and what one more has to share with them, or has to have for itself."""

    def __init__(self, experiment: dict, manifest: str | None) -> None:
        self.experiment = experiment
        self.first: dict[tuple, tuple[Any, str]] = {("image",): (manifest, places.IMAGE)} if manifest else {}

    def add(self, cell: Cell, name: str, record: dict) -> list[str]:
        """What is wrong with a record beside those that were added before; it is added where that is nothing."""
        derived = {
            key: record["parameters"][key]
            for key, value in self.experiment["workloads"][cell[1]]["parameters"].items()
            if isinstance(value, dict)
        }
        image = record["image"]["manifest_sha256"]
        # Of several nodes each counts for itself.
        own = node.of_record(record) if self.experiment.get("spread") else None
        place = ("position", own, record["position"]["actual"])
        shared: list[tuple[str, tuple, Any]] = [
            ("it was measured in an image with other files than that of {other}", ("image",), image),
            ("its derived parameters are others than those of {other}", ("parameters", *cell[:2]), derived),
        ]
        if image is None:
            shared = shared[1:]
        found = [
            words.format(other=self.first[key][1])
            for words, key, value in shared
            if key in self.first and self.first[key][0] != value
        ]
        if place in self.first:
            found.append(f"its place in the order of measurement is that of {self.first[place][1]}")
        if not found:
            for _, key, value in [*shared, ("", place, None)]:
                self.first.setdefault(key, (value, name))
        return found


def complaint(found: dict[Cell, list[str]]) -> str:
    """What to tell of refused records, and what would mend them."""
    logs = [places.cell_path("raw", *cell, "log") for cell in found]
    shown = " ".join(logs[:20]) + (f" and {len(logs) - 20} more" if len(logs) > 20 else "")
    sentences = [sentence for wrong in found.values() for sentence in wrong]
    return "\n".join([*sentences, f"remove what is not as it was measured, and snakemake measures it again: {shown}"])


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= 80 else text[:77] + "…"
