"""What a cell is made of, and the plan in results/ that says so of all of them."""

import json
import os
from collections.abc import Iterator
from hashlib import sha256

from strata.experiment import blocks
from strata.util import paths
from strata.util.data_types import Any, CellWork, Fields, Plan, PlannedWorkload, Source, Step
from strata.util.errors import UserError
from strata.util.files import read_json, write_if_changed
from strata.util.placeholders import several

FORMAT = 9
# How many equal parts a system may have at most, as schemas/workload.schema.json says.
PARTS = 64
LAST_PORT = 65535


def daemons(plan: Plan) -> set[str]:
    """Names of the processes that work for any environment of the plan."""
    return {name for entry in plan["environments"].values() for name in entry["daemons"]}


def of_environment(plan: Plan, environment: str, workload: str) -> PlannedWorkload:
    """A workload of the plan, of the size that it has in an environment: emulated machines have one of their own."""
    entry = plan["workloads"][workload]
    small: Any = entry.get("small", {})
    return {**entry, **small} if blocks.is_apart(plan["environments"][environment]) else entry


def scale(plan: Plan, environment: str) -> str:
    """The scale of an environment's sizes."""
    return blocks.SMALL if blocks.is_apart(plan["environments"][environment]) else plan["scale"]


def cell_seed(plan: Plan, workload: str, repetition: int) -> int:
    """A cell's seed (below 2^31), the same in every environment so that all do equal work."""
    text = f"{plan['seed']}/{workload}/{repetition}"
    return int.from_bytes(sha256(text.encode()).digest()[:4], "big") >> 1


def fingerprint(plan: Plan, environment: str, workload: str) -> str:
    """What decides a cell's result besides chance; a cell is measured again when it changes.

    How it is measured is part of that: in how many laps, and for how long its run goes on at once.
    """
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
        commands = [
            [server[key].get("argv") for key in ("ready", "stop")]
            for server in cell.get("servers", [])
        ]
        parts["servers"] = [[server["argv"] for server in cell.get("servers", [])], commands]
        parts["data"] = cell.get("data", {}).get("argv")
    if uses_client(cell):
        parts["client"] = plan["client"]
    if mask := plan["machine"]["mask"]:
        parts["mask"] = mask
    if systems(planned) > 1:
        parts["systems"] = systems(planned)
    if (count := laps(plan, environment, workload)) > 1:
        parts["laps"] = count
    if seconds := slice_seconds(plan, environment, workload):
        parts["slice"] = seconds
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _signature(step: Step) -> list[Any]:
    """What of a planned step decides a result: all but its time limit."""
    if "argv" in step:
        extra = [f"{key} {step[key]}" for key in ("at", "fresh") if key in step]
        return [step["step"], *step["argv"], *extra]
    if "observe" in step:
        return [step["step"], {"observe": step["observe"]}]
    return [
        step["step"],
        {"for": step["for"], "steps": [_signature(inner) for inner in step["steps"]]},
    ]


def uses_client(cell: CellWork) -> bool:
    """Whether a cell of this plan has a part at the client."""

    def at_client(steps: list[Step]) -> bool:
        return any(step.get("at") == "client" or at_client(step.get("steps", [])) for step in steps)

    return at_client(cell["steps"]) or any(
        server["ready"].get("at") == "client" for server in cell.get("servers", [])
    )


def systems(planned: PlannedWorkload) -> int:
    """In how many systems a workload of the plan runs at the same time: equal ones, or groups of such with roles."""
    name = planned["cell"].get("systems")
    return (1 if name is None else planned["parameters"][name]) * len(
        groups(planned["cell"], planned["parameters"])
    )


def laps(plan: Plan, environment: str, workload: str) -> int:
    """How many times a cell takes its run; once in emulated machines and beside them, which test no claim."""
    planned = of_environment(plan, environment, workload)
    name = planned["cell"].get("laps")
    return (
        1
        if name is None or blocks.is_apart(plan["environments"][environment])
        else planned["parameters"][name]
    )


def slice_seconds(plan: Plan, environment: str, workload: str) -> float | None:
    """How many seconds a slice of a cell's run lasts; None where the run goes on to its end."""
    planned = of_environment(plan, environment, workload)
    if systems(planned) > 1 or blocks.is_apart(plan["environments"][environment]):
        return None
    return planned["cell"].get("slice")


def groups(cell: CellWork, values: Fields) -> list[list[str]]:
    """The roles of each of the systems that work together; without roles there is one, which has none.

    cell: of the plan.  values: of its parameters.
    """
    roles = cell.get("roles")
    return [group.split("+") for group in values[roles["parameter"]]] if roles else [[]]


def ports_of(planned: PlannedWorkload) -> list[tuple[str, int]]:
    """(parameter, port) of every port of a workload of the plan."""
    return [
        (name, port)
        for name in planned["cell"].get("ports", [])
        for port in several(planned["parameters"][name])
    ]


def shifted(ports: int | list[int], part: int) -> int | list[int]:
    """A port or a list of ports as they are in the system with a number (from 0)."""
    return [port + part for port in ports] if isinstance(ports, list) else ports + part


def apart(ports: list[int]) -> int:
    """How far the ports of systems that are up together lie apart, for those of one."""
    return (ports[-1] - ports[0] + PARTS - 1) // PARTS * PARTS + PARTS if ports else 0


def wrong_ports(workloads: Fields, together: int) -> Iterator[tuple[str, str]]:
    """(key, what is wrong) of ports that some system would have with another, or above the last one that there is.

    together: how many environments are up together for workloads of several laps.
    """
    for name, entry in workloads.items():
        number, cell, named = systems(entry), entry["cell"], ports_of(entry)
        has_laps = "laps" in cell and entry["parameters"][cell["laps"]] > 1
        shift = (
            max(together - 1 if has_laps else 0, 0) * apart(sorted(port for _, port in named))
            + number
            - 1
        )
        for place, (parameter, port) in enumerate(named):
            where = f"workloads.{name}.{parameter}"
            for other, near in [one for one in named[:place] if 0 < abs(one[1] - port) < number]:
                words = f"{port} is too close to {near} of {other}"
                yield (
                    where,
                    f"{words}: {number} systems have {number} ports in a row; choose another",
                )
            if port + shift > LAST_PORT:
                words = f"port {port} becomes {port + shift} in the last of the systems that are up together"
                yield where, f"{words}; must be at most {LAST_PORT - shift}"


def source(project: str) -> Source:
    """``{revision, changed}`` of the project's source: the commit, and whether files that git tracks differ from it.

    Both are None where no repository tracks the project's files in this very place.  Where it has a repository that
    git refuses to read, git's words are said on standard error.
    """
    from strata.util import programs, progress

    try:
        # No commit of a repository in which the project only happens to lie.
        tracked = programs.git(project, "ls-files", "--error-unmatch", "--", "Snakefile")
        told = programs.git(
            project, "describe", "--exclude=*", "--always", "--abbrev=40", "--dirty"
        )
        revision = told.stdout.strip() if tracked.returncode == 0 else ""
        why = tracked.stderr.strip() if tracked.returncode > 1 else ""
    except UserError as error:
        revision, why = "", str(error)
    if why and os.path.lexists(os.path.join(project, ".git")):
        progress.say("source", f"the commit is not known: {why}")
    revision, _, changed = revision.partition("-")
    return {"revision": revision or None, "changed": bool(changed) if revision else None}


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def faults(plan: Plan) -> list[str]:
    """Where a plan is not as schemas/plan.schema.json says: sentences that name file and key."""
    from strata.util import validation

    found = validation.findings(validation.schema("plan"), plan)
    for load, planned in plan["workloads"].items() if not found else ():
        cell, values = planned["cell"], planned["parameters"]
        for name in {cell.get("systems"), cell.get("laps")} - {None}:
            if type(value := values.get(str(name))) is not int or value < 1:
                found.append(
                    (f"workloads.{load}.parameters.{name}", "missing, or no whole number above 0")
                )
        if (roles := cell.get("roles")) and not _is_texts(values.get(roles["parameter"])):
            found.append(
                (
                    f"workloads.{load}.parameters.{roles['parameter']}",
                    "missing, or no list of texts",
                )
            )
    return [f"{paths.PLAN}: {key}: {sentence}" for key, sentence in found]


def write(plan: Plan) -> None:
    """Write results/plan.json and plan.csv, each only where it changed."""
    write_cells(plan)
    write_if_changed(paths.PLAN, json.dumps(plan, indent=1, ensure_ascii=False) + "\n")


def write_cells(plan: Plan) -> None:
    """Write results/plan.csv, as far as the order is decided."""
    write_if_changed(paths.PLAN.replace(".json", ".csv"), blocks.Order(plan).as_csv())


def read() -> Plan:
    """The plan in results/, of which a cell looks only at the format.  Raises UserError where there is none."""
    plan: Plan | None = read_json(paths.PLAN)
    if plan is None or plan.get("format") != FORMAT:
        wrong = (
            f"is no plan of format {FORMAT}: remove it;"
            if os.path.exists(paths.PLAN)
            else "there is no plan yet:"
        )
        raise UserError(
            f"{paths.PLAN}: {wrong} `snakemake --cores 1 cells` writes one and measures it"
        )
    return plan


def read_checked() -> Plan:
    """The plan in results/, checked against its schema.  Raises UserError that names file and key."""
    plan = read()
    if wrong := faults(plan):
        raise UserError(*wrong)
    return plan
