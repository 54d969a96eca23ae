"""Workloads: what a folder of workloads/ declares, and its parameters for one experiment."""

import functools
import os
from collections.abc import Iterator
from typing import Any

from strata.experiment import blocks, sizes
from strata.host import sizing
from strata.util import constants, validation, yaml_files
from strata.util.data_types import Fields, HostFacts, Step
from strata.util.errors import UserError
from strata.util.placeholders import BUILT_IN, placeholder, several
from strata.util.validation import Finding, unknown

FOLDER = "workloads"
SCALES = ("value", "tiny", "standard", "paper")
# What a plan's cell has as it is declared, where it is.
AS_DECLARED = ("systems", "laps", "turn", "log_limit", "ports", "roles", "sizes", "facts")


def known() -> list[str]:
    """Names of the workloads of this project."""
    if not os.path.isdir(FOLDER):
        return []
    return sorted(
        name for name in os.listdir(FOLDER) if os.path.isfile(f"{FOLDER}/{name}/workload.yaml")
    )


@functools.cache
def load(name: str) -> Fields:
    """The declaration of a workload, checked.  Raises UserError that names file and key."""
    path = f"{FOLDER}/{name}/workload.yaml"
    if not os.path.isfile(path):
        raise UserError(
            f"{path}: there is no such file: write one (docs/adding-a-workload.md), or remove "
            f"{name} from config.yaml"
        )
    data = yaml_files.read(path)
    roles = data.get("roles")
    others = {
        "questions": constants.read("questions"),
        "role": roles.get("ports") if isinstance(roles, dict) else {},
    }
    others |= {"facts of the machine": [*sizes.FACTS], "laps": ["laps"]}
    validation.complain(
        path, validation.findings(validation.schema("workload"), data, names=others)
    )
    validation.complain(path, [*_cross_check(data)])
    return {"packages": [], "parameters": {}, "warmup": {"about": "none"}, **data}


def _cross_check(data: Fields) -> Iterator[Finding]:
    """What the schema cannot say of a declaration that fits it."""
    parameters = data.get("parameters", {})
    for name, parameter in parameters.items():
        for scale in SCALES:
            if not isinstance(value := parameter.get(scale, {}), dict):
                own = validation.validator(parameter["schema"])
                yield from validation.findings(own, value, f"parameters.{name}.{scale}")
    roles = data.get("roles", {}).get("ports", {})
    for where, words in _commands(data):
        # What is made once for all systems is made in none of them.
        of_cell = (
            ["seed"]
            if where == "data.argv"
            else [*BUILT_IN, *(f"address.{role}" for role in roles)]
        )
        for word in words:
            if name := placeholder(word):
                yield from unknown(where, name, [*parameters, *of_cell], "parameter")
            elif any(f"{{{name}}}" in word for name in parameters):
                yield where, f"'{word}' holds a parameter; a parameter stands for a whole word"
    placed = [port for names in roles.values() for port in names]
    for port in data.get("ports", []) if roles else []:
        if placed.count(port) != 1:
            yield (
                "roles.ports",
                f"'{port}' is in {placed.count(port)} roles; each port must be in one",
            )


def sections(data: Fields) -> list[tuple[str, list[Any]]]:
    """The declared steps in the order in which a cell takes them."""
    return [
        ("prepare", data.get("prepare", [])),
        ("warmup", data.get("warmup", {}).get("steps", [])),
        ("run", data.get("run", [])),
    ]


def _commands(data: Fields) -> Iterator[tuple[str, list[str]]]:
    """Every declared command with its key."""

    def within(where: str, steps: list[Step]) -> Iterator[tuple[str, list[str]]]:
        for number, step in enumerate(steps):
            if "argv" in step:
                yield f"{where}.{number}.argv", step["argv"]
            yield from within(f"{where}.{number}.steps", step.get("steps", []))

    for section, steps in sections(data):
        yield from within(f"{section}.steps" if section == "warmup" else section, steps)
    if "data" in data:
        yield "data.argv", data["data"]["argv"]
    for number, server in enumerate(data.get("servers", [])):
        for key, part in {"argv": server, "ready.argv": server["ready"]}.items():
            if "argv" in part:
                yield f"servers.{number}.{key}", part["argv"]


def _of_page(name: str) -> Any:
    """What the config may set of a workload."""
    schemas = {key: entry["schema"] for key, entry in load(name)["parameters"].items()}
    return validation.validator(
        {"type": "object", "properties": schemas, "additionalProperties": False}
    )


def given(name: str, overrides: Fields) -> Fields:
    """The parameters that the config sets for a workload, each of the kind that its schema asks for."""
    found: Fields = validation.converted(
        _of_page(name), {str(key): value for key, value in overrides.items()}
    )
    return found


def check_overrides(name: str, overrides: Fields) -> Iterator[Finding]:
    """Findings about the parameters that the config sets for a workload."""
    values, where = given(name, overrides), f"workloads.{name}"
    yield from (found := validation.findings(_of_page(name), values, where))
    for key, value in values.items() if not found else ():
        if any(isinstance(item, dict | list) for item in several(value)):
            yield (
                f"{where}.{key}",
                f"is {value!r}; must be text, a number, true or false, or a list of these",
            )
        elif (
            "file" in load(name)["parameters"][key]
            and value is not None
            and not os.path.isfile(value)
        ):
            yield f"{where}.{key}", f"is {value!r}; there is no such file"


def planned(name: str, overrides: Fields, scale: str, machine: HostFacts) -> Fields:
    """A workload as the plan holds it.

    overrides: parameters that the config sets.  machine: as of :func:`strata.host.capacity.facts`.
    Raises UserError where its parameters do not fit the machine.
    """
    declared = load(name)
    parameters, notes = resolve(name, overrides, scale, machine)
    return {
        **{key: declared[key] for key in ("title", "about", "metrics")},
        "parameters": parameters,
        "notes": notes,
        "warmup": declared["warmup"]["about"],
        "cell": cell(name, scale),
        **_held(name, parameters),
        # What a workload does not declare is no key, so that the analysis takes its own choice.
        **{
            key: declared[key]
            for key in ("question", "figures", "headline", "storage")
            if key in declared
        },
    }


def small(name: str, overrides: Fields, machine: HostFacts) -> Fields:
    """What of a workload in the plan is another in emulated machines: `parameters` and `cell` at the smallest scale.

    Parameters that the scale decides are that scale's, whatever the config says.
    """
    declared = load(name)["parameters"]
    kept = {key: value for key, value in overrides.items() if "value" in declared[key]}
    parameters = resolve(name, kept, blocks.SMALL, machine)[0]
    return {"parameters": parameters, "cell": cell(name, blocks.SMALL), **_held(name, parameters)}


def _held(name: str, parameters: Fields) -> Fields:
    """`memory_bytes` of a workload with these parameters, in each of its systems, where it says so."""
    needed = memory_needed(name, parameters)
    return {"memory_bytes": sum(each for _, each in needed)} if needed else {}


def resolve(
    name: str, overrides: Fields, scale: str, machine: HostFacts
) -> tuple[Fields, list[str]]:
    """Parameters of a workload on this machine and sentences on how they came about.

    Several equal systems share the machine's memory evenly.
    Raises UserError if a value needs more memory than the machine has.
    """
    whole, notes = load(name), []
    values: dict[str, Any] = {
        key: overrides.get(key, entry["value"] if "value" in entry else entry[scale])
        for key, entry in whole["parameters"].items()
    }
    if "roles" in whole:
        key, roles = whole["roles"]["parameter"], list(whole["roles"]["ports"])
        if sorted(role for group in values[key] for role in str(group).split("+")) != sorted(roles):
            raise UserError(
                f"config.yaml: workloads.{name}.{key}: is {', '.join(map(str, values[key]))}; must name each of "
                f"{', '.join(roles)} once, a system in each entry, roles that share one with + between them"
            )
    systems = values[whole["systems"]] if "systems" in whole else 1
    memory, share = machine["memory_bytes"], sizes.share_of(dict(machine), systems)
    for key in values:
        if key not in overrides:
            values[key], note = sizing.resolve(values[key], share)
            notes += [note] if note else []
    for key, value in values.items():
        if isinstance(value, dict) and value["rule"] == sizing.SMALLEST:
            least = sizes.smallest(whole, key, values, share, value["at_least"], value["multiple"])
            values[key] = (
                [least] if whole["parameters"][key]["schema"]["type"] == "array" else least
            )
    for key in values.keys() - overrides.keys():
        if not isinstance(values[key], dict):
            at = "value" if "value" in whole["parameters"][key] else scale
            accepted = validation.validator(whole["parameters"][key]["schema"])
            mistakes = validation.findings(accepted, values[key], f"parameters.{key}.{at}")
            validation.complain(f"{FOLDER}/{name}/workload.yaml", mistakes)
    for key, needs in memory_needed(name, values):
        if needs * systems > 0.9 * memory:
            where = f" in {systems} systems" if systems > 1 else ""
            raise UserError(
                f"config.yaml: workloads.{name}.{key}: {values[key]}{where} needs {needs * systems / 1e9:.1f} GB of "
                f"memory, of which this machine has {memory / 1e9:.1f}; choose a smaller value"
            )
    return values, notes


def memory_needed(name: str, values: Fields) -> list[tuple[str, int]]:
    """(parameter, bytes) of what a workload with these parameters holds in each system."""
    declared = load(name)["parameters"]
    return [
        (key, int(sizes.in_bytes(declared[key]["memory"], max(several(value), default=0))))
        for key, value in values.items()
        if "memory" in declared[key] and isinstance(value, (int, list))
    ]


def cell(name: str, scale: str) -> Fields:
    """What a cell of the workload does (docs/files.md): its steps and checks, and what only some have.

    `files` names the parameters whose values are files of the host, `ports` those that hold ports, `systems` the
    one that says in how many equal systems it is done at the same time, `laps` the one that says how many times its run
    is taken, and `turn` is for how many seconds a run goes on while those beside it are frozen.
    """
    declared = load(name)

    def planned(section: str, step: Fields) -> Any:
        inner = (
            {"steps": [planned(section, one) for one in step["steps"]]} if "steps" in step else {}
        )
        return timed({"step": section, **step, **inner})

    def timed(part: Fields) -> Fields:
        return (
            {**part, "timeout": sizing.at_scale(part["timeout"], scale)}
            if "timeout" in part
            else part
        )

    servers = [
        {"exits": [0], **server, "ready": timed(server["ready"]), "stop": timed(server["stop"])}
        for server in declared.get("servers", [])
    ]
    return {
        "steps": [
            planned(section, step) for section, steps in sections(declared) for step in steps
        ],
        "checks": declared["checks"],
        "files": [key for key, parameter in declared["parameters"].items() if "file" in parameter],
        **{key: declared[key] for key in AS_DECLARED if key in declared},
        **({"servers": servers} if servers else {}),
        **({"data": timed(declared["data"])} if "data" in declared else {}),
    }
