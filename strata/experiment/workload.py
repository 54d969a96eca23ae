"""Workloads: what a folder of workloads/ declares, and its parameters for one experiment."""

import ast
import functools
import hashlib
import inspect
import os
import re
from collections.abc import Iterator
from typing import Any

from strata.base import checking, constants, pages
from strata.base.checking import Finding, describe, nearest, unknown
from strata.base.errors import UserError
from strata.base.placeholders import BUILT_IN, placeholder, several
from strata.experiment import figures, plan, sets, sizes
from strata.host import sizing

FOLDER = "workloads"
SCALES = ("value", "tiny", "standard", "paper")
# How a system may start for a step that asks for a fresh one.
STARTS = ["restored", "booted"]


def known() -> list[str]:
    """Names of the workloads of this project."""
    if not os.path.isdir(FOLDER):
        return []
    return sorted(name for name in os.listdir(FOLDER) if os.path.isfile(f"{FOLDER}/{name}/workload.yaml"))


@functools.cache
def load(name: str) -> dict:
    """The declaration of a workload, checked.  Raises UserError that names file and key."""
    path = f"{FOLDER}/{name}/workload.yaml"
    data = pages.read(path)
    checking.complain(path, checking.findings(checking.schema("workload"), data))
    data = {"packages": [], "parameters": {}, "warmup": {"about": "none"}, **data}
    checking.complain(path, [*_cross_check(data)])
    return data


def check(name: str) -> None:
    """Check a workload with all that lies beside its declaration.  Raises UserError with all that is wrong."""
    folder = f"{FOLDER}/{name}"

    checking.together(
        lambda: checking.complain(folder, parser_faults(name)),
        lambda: checking.complain(f"{folder}/workload.yaml", [*_missing_programs(folder, load(name))]),
    )


def parser_faults(name: str) -> list[Finding]:
    """(file, what is wrong) where a workload has no parser; it is read, and not run."""
    path, wanted = f"{FOLDER}/{name}/parse", "parse(lines, parameters), which makes values of a log"
    text = _text(f"{path}.py")
    if text is None:
        return [] if os.path.isfile(f"{path}.R") else [("parse.py", f"missing; must define {wanted}")]
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [("parse.py", f"line {getattr(error, 'lineno', '?')}: not valid Python: {getattr(error, 'msg', error)}")]
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [] if "parse" in defined else [("parse.py", f"does not define {wanted}")]


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def _missing_programs(folder: str, data: dict) -> Iterator[Finding]:
    """Findings about programs of the workload's own or of the project's that nothing brings into the image."""
    build, common = _text(f"{folder}/build.sh") or "", f"{FOLDER}/common"
    shared = [file.removesuffix(".sh") for file in os.listdir(common)] if os.path.isdir(common) else []
    for where, (program, *_) in commands(data):
        own = program.removeprefix("/opt/strata/bin/")
        if own != program:
            yield from unknown(f"{where}.0", own, shared, f"program of {common}")
        elif "/" not in program and not _is_built(folder, program, build):
            yield f"{where}.0", f"is '{program}', which build.sh neither installs nor names"


def _is_built(folder: str, program: str, build: str) -> bool:
    """Whether a build script names a program, or its ending for one that lies beside it."""
    ending = os.path.splitext(program)[1]
    named = re.search(rf"(?<![\w.-]){re.escape(program)}(?![\w.-])", build) is not None
    return (named or f"*{ending}" in build) and os.path.isfile(f"{folder}/{program}") if ending else named


def _cross_check(data: dict) -> Iterator[Finding]:
    """What the schema cannot say of a declaration that fits it."""
    parameters = data["parameters"]
    for name in parameters:
        yield from _check_parameter(name, parameters)
    if "question" in data:
        yield from unknown("question", data["question"], constants.read("questions"), "question")
    for number, name in enumerate(data.get("ports", [])):
        yield from unknown(f"ports.{number}", name, parameters, "parameter")
    roles = [f"address.{role}" for role in data.get("roles", {}).get("ports", {})]
    for where, words in commands(data):
        # What is made once for all systems is made in none of them.
        known = [*parameters, *(["seed"] if where == "data.argv" else [*BUILT_IN, *roles])]
        for word in words:
            if name := placeholder(word):
                yield from unknown(where, name, known, "parameter")
            elif any(f"{{{name}}}" in word for name in parameters):
                yield where, f"'{word}' holds a parameter; a parameter stands for a whole word"
    yield from _check_steps(data)
    for number, entry in enumerate(data["checks"]):
        if re.search(entry["pattern"], ""):
            yield f"checks.{number}.pattern", "matches an empty line; must match what is meant alone"
    for key, most in (("systems", plan.MOST_SYSTEMS), ("laps", plan.MOST_LAPS)):
        if key in data:
            counts = [name for name, entry in parameters.items() if _is_count(entry, most)]
            yield from unknown(key, data[key], counts, f"parameter with a whole number from 1 to {most}")
    if "laps" in data:
        yield from _check_laps(data)
    yield from _check_roles(data)
    yield from _check_sizes(data)
    yield from figures.findings(data)


def _check_parameter(name: str, parameters: dict) -> Iterator[Finding]:
    """Findings about a parameter: its values, the rules that they follow from, and what it says of them."""
    parameter, key = parameters[name], f"parameters.{name}"
    schema = parameter["schema"]
    if name in BUILT_IN:  # which would hide it
        yield key, "is the name of what every cell knows by itself; choose another"
    held = schema.get("items", {}) if schema.get("type") == "array" else schema
    if "memory" in parameter and held.get("type") != "integer":
        yield f"{key}.memory", "belongs to a parameter whose schema asks for whole numbers, or a list of them"
    if "file" in parameter:
        texts = [other for other, entry in parameters.items() if entry["schema"].get("type") == "string"]
        yield from unknown(f"{key}.file", parameter["file"], {*texts} - {name}, "other parameter that holds text")
    for scale in SCALES:
        if scale in parameter:
            value, where = parameter[scale], f"{key}.{scale}"
            yield from _check_rule(value, where) if isinstance(value, dict) else value_findings(schema, value, where)


def _check_rule(value: dict, key: str) -> Iterator[Finding]:
    """Findings about a rule by which a value follows from the machine, and its arguments."""
    rule, given = str(value.get("rule")), {name: one for name, one in value.items() if name != "rule"}
    yield from unknown(f"{key}.rule", rule, [sizing.SMALLEST, *sizing.OF_THE_CELL, *sizing.RULES], "rule")
    takes = [*inspect.signature(sizing.RULES[rule]).parameters][1:] if rule in sizing.RULES else []
    takes = ["at_least", "multiple"] if rule == sizing.SMALLEST else takes
    lists = [name for name, one in given.items() if isinstance(one, list)]
    numbers = [type(each) in (int, float) and each > 0 for one in given.values() for each in several(one)]
    if sorted(given) != sorted(takes) or lists != [name for name in given if name == "values"] or not all(numbers):
        yield key, f"the rule {rule} takes {', '.join(takes) or 'nothing'} (numbers above 0; values: a list)"


def value_findings(schema: dict, value: object, key: str) -> list[Finding]:
    """Findings about a value for a parameter with this schema."""
    if any(isinstance(item, dict | list) for item in several(value)):
        return [(key, f"is {describe(value)}; must be text, a number, true or false, or a list of these")]
    return checking.findings(checking.validator(schema), value, key)


def _check_steps(data: dict) -> Iterator[Finding]:
    """Findings about what single steps ask for."""
    schemas = {name: parameter["schema"] for name, parameter in data["parameters"].items()}
    lists = [name for name, schema in schemas.items() if "array" in schema.get("type", "")]
    starts = [name for name, schema in schemas.items() if schema.get("enum") == STARTS]
    for where, step in _walk(data):
        if "for" in step:
            yield from unknown(f"{where}.for", step["for"], lists, "parameter that holds a list")
        if "fresh" in step:
            kind = f"parameter with the choice of {' and '.join(STARTS)}"
            yield from unknown(f"{where}.fresh", step["fresh"], starts, kind)
            if "systems" in data or "roles" in data:
                yield f"{where}.fresh", "cannot be in a workload with systems or roles: one is brought up afresh"
        if "roles" in data and step.get("at") == "client" and "{address}" in step.get("argv", []):
            yield f"{where}.argv", "'{address}' may be of several systems; name a role, as in {address.ROLE}"


def _check_sizes(data: dict) -> Iterator[Finding]:
    """Findings about the size rules: names that they are about."""
    parameters, facts = data["parameters"], data.get("facts", {})
    for name, fact in facts.items():
        yield from unknown(f"facts.{name}.of", fact["of"], parameters, "parameter")
    for number, rule in enumerate(data.get("sizes", [])):
        known = {"value": [*parameters, *data["metrics"], "laps"], "of": [*parameters, *facts, *sizes.FACTS]}
        for key, names in known.items():
            for name in several(rule.get(key, [])):
                yield from unknown(f"sizes.{number}.{key}", name, names, "parameter, metric or fact")


def _is_count(parameter: dict, most: int) -> bool:
    """Whether a parameter is a number from 1 to `most` and follows from no rule, as no system is up yet."""
    schema, ruled = parameter["schema"], any(isinstance(parameter.get(scale), dict) for scale in SCALES)
    within = schema.get("minimum", 0) >= 1 and schema.get("maximum", most + 1) <= most
    return schema.get("type") == "integer" and within and not ruled


def _check_laps(data: dict) -> Iterator[Finding]:
    """Findings about laps, in which a cell stands idle while others of its set run."""
    wrong = "cannot be in a workload with laps"
    for key in {"servers", "roles"} & data.keys():
        yield key, f"{wrong}: nothing of a cell may run between them"
    for where, step in _walk(data):
        if step.get("at") == "client" or "fresh" in step or "observe" in step:
            yield where, f"{wrong}: it is of a cell that has the machine alone"
    for name, metric in data["metrics"].items():
        if metric.get("statistic") == "percentile":
            yield f"metrics.{name}.statistic", f"{wrong}: no mean of percentiles is taken"


def _check_roles(data: dict) -> Iterator[Finding]:
    """Findings about roles: who has which ports and servers, and the parameter that says where each is."""
    ports: dict[str, list] = data.get("roles", {}).get("ports", {})
    for number, server in enumerate(data.get("servers", [])):
        if ports or "role" in server:
            yield from unknown(f"servers.{number}.role", server.get("role", ""), ports, "role of the workload (roles)")
    if ports:
        schemas = {name: parameter["schema"] for name, parameter in data["parameters"].items()}
        lists = [name for name, schema in schemas.items() if schema.get("type") == "array"]
        yield from unknown("roles.parameter", data["roles"]["parameter"], lists, "parameter that holds a list")
        given, declared = [port for names in ports.values() for port in names], data.get("ports", [])
        for port in {*given, *declared}:
            yield from unknown("roles.ports", port, declared, "port of the workload")
            if given.count(port) != 1:
                yield "roles.ports", f"'{port}' is in {given.count(port)} roles; each port must be in one"


def sections(data: dict) -> list[tuple[str, list]]:
    """The declared steps in the order in which a cell takes them."""
    return [
        ("prepare", data.get("prepare", [])),
        ("warmup", data.get("warmup", {}).get("steps", [])),
        ("run", data.get("run", [])),
    ]


def _walk(data: dict) -> list[tuple[str, dict]]:
    """Every declared step with its key, those in groups behind their group."""
    found = []

    def visit(where: str, steps: list) -> None:
        for number, step in enumerate(steps):
            found.append((f"{where}.{number}", step))
            visit(f"{where}.{number}.steps", step.get("steps", []))

    for section, steps in sections(data):
        visit(f"{section}.steps" if section == "warmup" else section, steps)
    return found


def commands(data: dict) -> list[tuple[str, list[str]]]:
    """Every declared command with its key."""
    found = [(f"{where}.argv", step["argv"]) for where, step in _walk(data) if "argv" in step]
    found += [("data.argv", data["data"]["argv"])] if "data" in data else []
    for number, server in enumerate(data.get("servers", [])):
        parts = {"argv": server, "ready.argv": server["ready"]}
        found += [(f"servers.{number}.{key}", part["argv"]) for key, part in parts.items() if "argv" in part]
    return found


def given(name: str, overrides: dict) -> dict:
    """The parameters that the config sets for a workload, each of the kind that its schema asks for."""
    schemas = {key: entry["schema"] for key, entry in load(name)["parameters"].items()}
    return {key: checking.converted(checking.validator(schemas.get(key, {})), one) for key, one in overrides.items()}


def check_overrides(name: str, overrides: dict) -> Iterator[Finding]:
    """Findings about the parameters that the config sets for a workload."""
    declared = load(name)["parameters"]
    for key, value in given(name, overrides).items():
        where = f"workloads.{name}.{key}"
        if key not in declared:
            yield where, f"unknown parameter; {nearest(str(key), list(declared))}"
        elif wrong := value_findings(declared[key]["schema"], value, where):
            yield from wrong
        elif "file" in declared[key] and value is not None and not os.path.isfile(value):
            yield where, f"is {describe(value)}; there is no such file"


def planned(name: str, overrides: dict, scale: str, machine: dict) -> dict:
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
        # What a workload does not declare is no key, so that the analysis takes its own choice.
        **{key: declared[key] for key in ("question", "figures", "headline", "storage") if key in declared},
    }


def small(name: str, overrides: dict, machine: dict) -> dict:
    """What of a workload in the plan is another in emulated machines: `parameters` and `cell` at the smallest scale.

    Parameters that the scale decides are that scale's, whatever the config says.
    """
    declared = load(name)["parameters"]
    kept = {key: value for key, value in overrides.items() if "value" in declared[key]}
    return {"parameters": resolve(name, kept, sets.SMALL, machine)[0], "cell": cell(name, sets.SMALL)}


def resolve(name: str, overrides: dict, scale: str, machine: dict) -> tuple[dict, list[str]]:
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
    memory, share = machine["memory_bytes"], sizes.share_of(machine, systems)
    for key in values:
        if key not in overrides:
            values[key], note = sizing.resolve(values[key], share)
            notes += [note] if note else []
    for key, value in values.items():
        if isinstance(value, dict) and value["rule"] == sizing.SMALLEST:
            least = sizes.smallest(whole, key, values, share, value["at_least"], value["multiple"])
            values[key] = [least] if whole["parameters"][key]["schema"]["type"] == "array" else least
    for key, needs in memory_needed(name, values):
        if needs * systems > 0.9 * memory:
            where = f" in {systems} systems" if systems > 1 else ""
            raise UserError(
                f"config.yaml: workloads.{name}.{key}: {values[key]}{where} needs {needs * systems / 1e9:.1f} GB of "
                f"memory, of which this machine has {memory / 1e9:.1f}; choose a smaller value"
            )
    return values, notes


def memory_needed(name: str, values: dict) -> list[tuple[str, int]]:
    """(parameter, bytes) of what a workload with these parameters holds in each system."""
    declared = load(name)["parameters"]
    return [
        (key, int(sizes.in_bytes(declared[key]["memory"], max(several(value), default=0))))
        for key, value in values.items()
        if "memory" in declared[key] and isinstance(value, (int, list))
    ]


def cell(name: str, scale: str) -> dict:
    """What a cell of the workload does (docs/files.md): its steps and checks, and what only some have.

    `files` names the parameters whose values are files of the host, `ports` those that hold ports, `systems` the
    one that says in how many equal systems it is done at the same time, `laps` the one that says how many times its run
    is taken.
    """
    declared = load(name)

    def planned(section: str, step: dict) -> dict:
        step = {"step": section, **step}
        if "steps" in step:
            step["steps"] = [planned(section, inner) for inner in step["steps"]]
        return timed(step)

    def timed(part: dict) -> dict:
        return {**part, "timeout": sizing.at_scale(part["timeout"], scale)} if "timeout" in part else part

    servers = [
        {"exits": [0], **server, "ready": timed(server["ready"]), "stop": timed(server["stop"])}
        for server in declared.get("servers", [])
    ]
    return {
        "steps": [planned(section, step) for section, steps in sections(declared) for step in steps],
        "checks": declared["checks"],
        "files": [key for key, parameter in declared["parameters"].items() if "file" in parameter],
        **{key: declared[key] for key in ("systems", "laps", "ports", "roles", "sizes", "facts") if key in declared},
        **({"servers": servers} if servers else {}),
        **({"data": timed(declared["data"])} if "data" in declared else {}),
    }


def check_files(name: str, values: dict) -> None:
    """Check the files that parameters name against their SHA-1.  Raises UserError with both hashes."""
    for key, parameter in load(name)["parameters"].items():
        if "file" not in parameter or values[key] is None:
            continue
        where, wanted = f"config.yaml: workloads.{name}.{key}: {values[key]}", values[parameter["file"]]
        try:
            with open(values[key], "rb") as file:
                found = hashlib.file_digest(file, "sha1").hexdigest()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UserError(f"{where} cannot be read: {reason}") from None
        if found != wanted:
            raise UserError(
                f"{where} has SHA-1 {found}, not {wanted}; give that file, or its hash as {parameter['file']}"
            )
