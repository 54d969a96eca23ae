"""What a cell is made of, and the plan in results/ that says so of all of them."""

import json
import os
from collections.abc import Iterable
from hashlib import sha256

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import read_json, write_if_changed
from strata.base.placeholders import several
from strata.base.process import capture
from strata.experiment import sets

# Equal systems at the same time, at most, and laps of a cell.
MOST_SYSTEMS = 64
MOST_LAPS = 1000
FORMAT = 5


def daemons(plan: dict) -> set[str]:
    """Names of the processes that work for any environment of the plan."""
    return {name for entry in plan["environments"].values() for name in entry["daemons"]}


def of_environment(plan: dict, environment: str, workload: str) -> dict:
    """A workload of the plan, of the size that it has in an environment: emulated machines have one of their own."""
    entry = plan["workloads"][workload]
    return {**entry, **entry.get("small", {})} if sets.is_apart(plan["environments"][environment]) else entry


def scale(plan: dict, environment: str) -> str:
    """The scale of an environment's sizes."""
    return sets.SMALL if sets.is_apart(plan["environments"][environment]) else plan["scale"]


def cell_seed(plan: dict, workload: str, repetition: int) -> int:
    """A cell's seed (below 2^31), the same in every environment so that all do equal work."""
    text = f"{plan['seed']}/{workload}/{repetition}"
    return int.from_bytes(sha256(text.encode()).digest()[:4], "big") >> 1


def fingerprint(plan: dict, environment: str, workload: str) -> str:
    """What decides a cell's result besides chance; a cell is measured again when it changes."""
    planned = of_environment(plan, environment, workload)
    cell = planned["cell"]
    parts = {
        "seed": plan["seed"],
        "scale": scale(plan, environment),
        "image": plan["image"]["recipe"],
        "layers": plan["environments"][environment]["layers"],
        "parameters": planned["parameters"],
        "steps": [_signature(step) for step in cell["steps"]],
    }
    if "servers" in cell or "data" in cell:
        commands = [[server[key].get("argv") for key in ("ready", "stop")] for server in cell.get("servers", [])]
        parts["servers"] = [[server["argv"] for server in cell.get("servers", [])], commands]
        parts["data"] = cell.get("data", {}).get("argv")
    if uses_client(cell):
        parts["client"] = plan["client"]
    if systems(planned) > 1:
        parts["systems"] = systems(planned)
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _signature(step: dict) -> list:
    """What of a planned step decides a result: all but its time limit."""
    if "argv" in step:
        extra = [f"{key} {step[key]}" for key in ("at", "fresh") if key in step]
        return [step["step"], *step["argv"], *extra]
    if "observe" in step:
        return [step["step"], {"observe": step["observe"]}]
    return [step["step"], {"for": step["for"], "steps": [_signature(inner) for inner in step["steps"]]}]


def uses_client(cell: dict) -> bool:
    """Whether a cell of this plan has a part at the client."""

    def at_client(steps: list[dict]) -> bool:
        return any(step.get("at") == "client" or at_client(step.get("steps", [])) for step in steps)

    return at_client(cell["steps"]) or any(server["ready"].get("at") == "client" for server in cell.get("servers", []))


def systems(planned: dict) -> int:
    """In how many systems a workload of the plan runs at the same time: equal ones, or groups of such with roles."""
    name = planned["cell"].get("systems")
    return (1 if name is None else planned["parameters"][name]) * len(groups(planned["cell"], planned["parameters"]))


def laps(plan: dict, environment: str, workload: str) -> int:
    """How many times a cell takes its run; once in emulated machines and beside them, which test no claim."""
    planned = of_environment(plan, environment, workload)
    name = planned["cell"].get("laps")
    return 1 if name is None or sets.is_apart(plan["environments"][environment]) else planned["parameters"][name]


def groups(cell: dict, values: dict) -> list[list[str]]:
    """The roles of each of the systems that work together; without roles there is one, which has none.

    cell: of the plan.  values: of its parameters.
    """
    roles = cell.get("roles")
    return [group.split("+") for group in values[roles["parameter"]]] if roles else [[]]


def ports(plan: dict, workloads: Iterable[str], number: int = 1) -> list[int]:
    """All ports on which servers of those of some workloads listen that have this number of systems, in order.

    They are those of the first system; in each further one all are higher by one (:func:`shifted`).
    """
    entries = [plan["workloads"][name] for name in workloads]
    return sorted({port for entry in entries if systems(entry) == number for _, port in _ports_of(entry)})


def _ports_of(planned: dict) -> list[tuple[str, int]]:
    """(parameter, port) of every port of a workload of the plan."""
    return [(name, port) for name in planned["cell"].get("ports", []) for port in several(planned["parameters"][name])]


def shifted(ports: int | list[int], part: int) -> int | list[int]:
    """A port or a list of ports as they are in the system with a number (from 0)."""
    return [port + part for port in ports] if isinstance(ports, list) else ports + part


def check_ports(workloads: dict) -> None:
    """Raise UserError where the ports of one of several equal systems would be those of another.

    workloads: those of a plan; the ones with as many systems share these.
    """
    taken: dict[tuple[int, int], str] = {}
    for name, entry in workloads.items():
        number = systems(entry)
        for parameter, port in _ports_of(entry) if number > 1 else []:
            where = f"config.yaml: workloads.{name}.{parameter}"
            if port + number > 65536:
                raise UserError(f"{where}: port {port} + {number} systems exceeds 65535")
            for (count, other), owner in taken.items():
                if count == number and 0 < abs(other - port) < number:
                    near = f"{port} is too close to {other} of {owner}"
                    raise UserError(f"{where}: {near}: {number} systems have {number} ports in a row; choose another")
            taken.setdefault((number, port), f"{name}.{parameter}")


def source(project: str) -> dict:
    """``{revision, changed}`` of the project's source: the commit, and whether files that git tracks differ from it."""
    try:
        asked = (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        revision, status = (capture(["git", "-C", project, *words], check=False) for words in asked)
    except UserError:
        return {"revision": None, "changed": None}
    if revision.returncode != 0:
        return {"revision": None, "changed": None}
    return {"revision": revision.stdout.strip(), "changed": bool(status.stdout.strip())}


def spread() -> bool:
    """Whether the plan in results/ is measured on several nodes: once it was, its cells stay of several."""
    return (read_json(places.PLAN) or {}).get("spread") is True


def faults(plan: dict) -> list[str]:
    """Where a plan is not as schemas/plan.schema.json says: sentences that name file and key."""
    from strata.base import checking

    if plan.get("format") != FORMAT:
        given = checking.describe(plan.get("format"))
        return [f"{places.PLAN}: format: is {given}; this version of the project reads and makes format {FORMAT}"]
    found = checking.findings(checking.schema("plan"), plan)
    for name, entry in plan["workloads"].items() if not found else []:
        for key, most in (("systems", MOST_SYSTEMS), ("laps", MOST_LAPS)):
            parameter = entry["cell"].get(key)
            number = 1 if parameter is None else entry["parameters"].get(parameter)
            if not isinstance(number, int) or not 1 <= number <= most:
                wrong = f"is {checking.describe(number)}; must be a number of {key} from 1 to {most}"
                found.append((f"workloads.{name}.parameters.{parameter}", wrong))
    return [f"{places.PLAN}: {key}: {sentence}" for key, sentence in found]


def write(plan: dict) -> None:
    """Write results/plan.json and plan.csv, each only where it changed.  Raises UserError for what is no plan."""
    _refuse(plan)
    write_cells(plan)
    write_if_changed(places.PLAN, json.dumps(plan, indent=1, ensure_ascii=False) + "\n")


def write_cells(plan: dict) -> None:
    """Write results/plan.csv, as far as the order is decided."""
    write_if_changed(places.PLAN.replace(".json", ".csv"), sets.Order(plan).as_csv())


def read() -> dict:
    """The plan in results/, of which a cell looks only at the format.  Raises UserError where there is none."""
    plan = read_json(places.PLAN)
    if plan is None or plan.get("format") != FORMAT:
        wrong = f"no plan of format {FORMAT}: remove it and" if os.path.exists(places.PLAN) else "there is no plan yet:"
        raise UserError(f"{places.PLAN}: {wrong} run `python3 -m strata plan` or snakemake")
    return plan


def read_checked() -> dict:
    """The plan in results/, checked against its schema.  Raises UserError that names file and key."""
    return _refuse(read())


def _refuse(plan: dict) -> dict:
    """A plan that is as its schema says.  Raises UserError for another."""
    if wrong := faults(plan):
        raise UserError("\n".join(wrong))
    return plan
