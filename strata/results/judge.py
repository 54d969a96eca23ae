"""Whether a record is that of its path, of the plan and of its log: the one judge for tables, paper and archive."""

import hashlib
import json
import os
from collections.abc import Iterable
from typing import Any

from strata import layers
from strata.base import checking, places
from strata.base.errors import UserError
from strata.cell.steps import expanded
from strata.experiment import plan
from strata.host import node
from strata.vm.acceleration import shown

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
        raise UserError(f"{name}: is not a JSON object")
    return value


def measured(cells: Iterable[Cell], folder: str = ".") -> list[Cell]:
    """Those cells that have a log."""
    return [cell for cell in cells if os.path.exists(os.path.join(folder, places.cell_path("raw", *cell, "log")))]


def faults(experiment: dict, cells: Iterable[Cell], folder: str = ".") -> dict[Cell, list[str]]:
    """What is wrong with the records of measured cells, by the cell: sentences that each name a file.

    folder: holds `results`.  Cells without a fault are left out.  A record is compared with those of the cells
    before it only where both are good by themselves.
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
        wrong = _layout(record) or _of_plan(experiment, cell, record) or among.add(cell, name, record)
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
    return [
        f"{key or 'the whole'}: {sentence}" for key, sentence in checking.findings(checking.schema("record"), record)
    ]


def _of_plan(experiment: dict, cell: Cell, record: dict) -> list[str]:
    """Where a record is not what its path and the plan say."""
    environment, load_name, repetition = cell
    planned = plan.of_environment(experiment, environment, load_name)
    place = experiment["environments"][environment]
    fixed = {key: value for key, value in planned["parameters"].items() if not isinstance(value, dict)}
    parameters = record["parameters"]
    expected: list[tuple[str, Any, Any]] = [
        ("environment", record["environment"], environment),
        ("workload", record["workload"], load_name),
        ("repetition", record["repetition"], repetition),
        ("scale", record["scale"], plan.scale(experiment, environment)),
        ("seed", record["seed"], plan.cell_seed(experiment, load_name, repetition)),
        ("names of parameters", sorted(parameters), sorted(planned["parameters"])),
        ("parameters", {key: parameters.get(key) for key in fixed}, fixed),
        ("image's recipe", record["image"]["recipe"], experiment["image"]["recipe"]),
        ("number of systems", record["system"]["parts"], plan.systems(planned)),
    ]
    found = [
        f"its {what} is {_short(has)}, and the plan's is {_short(wants)}"
        for what, has, wants in expected
        if has != wants
    ]
    if layers.forms(name for entry in place["layers"] for name in entry):
        found += ["it does not say in which image it was measured"] * (None in record["image"].values())
    if record["block"] < repetition:
        found.append(
            f"its block is {record['block']}, and that of set {repetition} is {repetition} or a later one, since each "
            "set before it has a block of its own"
        )
    emulated = _accelerator_fault(record, place.get("accelerator"))
    if emulated:
        return [*found, emulated]
    if record["system"]["layers"] != place["layers"]:
        wants = _short(place["layers"])
        found.append(f"its layers are {_short(record['system']['layers'])}, and the plan's are {wants}")
    if "cannot" in record and not place.get("doubtful"):
        found.append("it says that its environment cannot do the workload, and that one has to")
    if not found and "cannot" not in record:
        steps = [(command["step"], command.get("lap"), command.get("system")) for command in record["commands"]]
        wanted = _steps(planned, parameters, plan.laps(experiment, environment, load_name))
        if steps != wanted:
            found.append(f"its steps are {_short(steps)}, and the plan's are {_short(wanted)}")
    if not found and record.get("fingerprint", "") not in ("", plan.fingerprint(experiment, environment, load_name)):
        found.append("its fingerprint is not the plan's: something that decides its result has changed since")
    return found


def _accelerator_fault(record: dict, planned: str | None) -> str | None:
    """What is wrong with the accelerator of a record's machine: emulation and hardware never share a name."""
    machine = record["system"]["vm"]
    if planned is None or (machine or {}).get("accelerator") == planned:
        return None
    told = shown(machine["accelerator"]) if machine else "no virtual machine"
    return f"it was measured with {told}, and the plan says {shown(planned)}"


def _steps(planned: dict, parameters: dict, laps: int) -> list[tuple[str, int | None, int | None]]:
    """What a cell's commands are of, in order: the part of the workload, of several laps and systems their numbers."""
    several = plan.systems(planned)
    steps = planned["cell"]["steps"]
    before = [step for step in steps if step["step"] != "run"]
    taken = [(None if laps == 1 else lap, steps[len(before) :]) for lap in range(1, laps + 1)]
    found: list[tuple[str, int | None, int | None]] = []
    for lap, part in [(None, before), *taken]:
        for step, _ in expanded(part, parameters):
            if "argv" in step:
                one = several == 1 or step.get("at") == "client"
                found += [(step["step"], lap, system) for system in ([None] if one else range(several))]
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
        environment, load_name, _ = cell
        derived = {
            key: record["parameters"][key]
            for key, value in plan.of_environment(self.experiment, environment, load_name)["parameters"].items()
            if isinstance(value, dict)
        }
        image = record["image"]["manifest_sha256"]
        machine = (record["system"]["vm"] or {}).get("accelerator")
        # Of several nodes each counts for itself.
        own = node.of_record(record) if self.experiment.get("spread") else None
        place = ("position", own, record["position"]["actual"])
        shared: list[tuple[str, tuple, Any]] = [
            ("it was measured in an image with other files than that of {other}", ("image",), image),
            ("its derived parameters are others than those of {other}", ("parameters", *cell[:2]), derived),
            ("it was measured with another accelerator than {other}", ("machine", environment), machine),
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
