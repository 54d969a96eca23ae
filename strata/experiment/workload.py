"""Workloads: what a folder of workloads/ declares, and its parameters for one experiment."""

import ast
import functools
import hashlib
import inspect
import os
import re
from typing import Any

from strata.base import checking, contracts, pages
from strata.base.checking import Finding, describe, nearest
from strata.base.errors import UserError
from strata.base.placeholders import BUILT_IN, placeholder
from strata.experiment import figures, plan
from strata.host import sizing

FOLDER = "workloads"
SCALES = ("value", "smoke", "quick", "paper")
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
    checking.complain(path, checking.findings(checking.schema("workload"), data) or _cross_check(data))
    return data


def check(name: str) -> None:
    """Check a workload with all that lies beside its declaration.  Raises UserError with all that is wrong."""
    folder = f"{FOLDER}/{name}"

    def beside() -> None:
        data = load(name)
        checking.complain(f"{folder}/workload.yaml", _missing_programs(folder, data) + _missing_factors(folder, data))

    checking.together(lambda: checking.complain(folder, parser_faults(name)), beside)


def parser_faults(name: str) -> list[Finding]:
    """(file, what is wrong) where a workload has no parser; it is read, and not run."""
    folder = f"{FOLDER}/{name}"
    text = _text(f"{folder}/parse.py")
    if text is None and _text(f"{folder}/parse.R") is not None:
        return []
    if text is None:
        return [("parse.py", "missing; must define parse(lines, parameters), which makes values of a log")]
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [("parse.py", f"line {getattr(error, 'lineno', '?')}: not valid Python: {error.args[0]}")]
    if not any(isinstance(node, ast.FunctionDef) and node.name == "parse" for node in tree.body):
        return [("parse.py", "does not define parse(lines, parameters), which makes values of a log")]
    return []


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def _missing_programs(folder: str, data: dict) -> list[Finding]:
    """Findings about programs of the workload's own or of the project's that nothing brings into the image."""
    build, common = _text(f"{folder}/build.sh") or "", f"{FOLDER}/common"
    shared = [file.removesuffix(".sh") for file in os.listdir(common)] if os.path.isdir(common) else []
    found = []
    for where, (program, *_) in commands(data):
        own = program.removeprefix("/opt/strata/bin/")
        if own != program and own not in shared:
            found.append((f"{where}.0", f"there is no {common}/{own}.sh; {nearest(own, shared)}"))
        elif "/" not in program and not _is_built(folder, program, build):
            found.append((f"{where}.0", f"is '{program}', which build.sh neither installs nor names"))
    return found


def _is_built(folder: str, program: str, build: str) -> bool:
    """Whether a build script names a program, or its ending for one that lies beside it."""
    ending = os.path.splitext(program)[1]
    named = re.search(rf"(?<![\w.-]){re.escape(program)}(?![\w.-])", build) is not None
    return (named or f"*{ending}" in build) and os.path.isfile(f"{folder}/{program}") if ending else named


def _missing_factors(folder: str, data: dict) -> list[Finding]:
    """Findings about factors of figures that the parser never names (``factor=value``)."""
    parser = _text(f"{folder}/parse.py") or _text(f"{folder}/parse.R") or ""
    factors = sorted({*re.findall(r"\b([a-z][a-z0-9_]*)=", parser), *(["system"] if "systems" in data else [])})
    named = []
    for section in ("figures", "headline"):
        for number, point in enumerate(data.get(section, [])):
            named += [(f"{section}.{number}.along", point["along"])] if "along" in point else []
            named += [(f"{section}.{number}.where.{name}", name) for name in point.get("where", {})]
    return _unknown(named, factors, "factor of the parser")


def _unknown(named: list[tuple[str, str]], names: list[str], kind: str) -> list[Finding]:
    """Findings about (key, name) whose name is not known."""
    return [(key, f"'{name}' is no {kind}; {nearest(name, names)}") for key, name in named if name not in names]


def _cross_check(data: dict) -> list[Finding]:
    """What the schema cannot say of a declaration that fits it."""
    parameters = data["parameters"]
    found = [finding for name in parameters for finding in _check_parameter(name, parameters)]
    found += _unknown(
        [("question", data["question"])] if "question" in data else [], [*contracts.read("questions")], "question"
    )
    found += _unknown(
        [(f"ports.{at}", name) for at, name in enumerate(data.get("ports", []))], [*parameters], "parameter"
    )
    for where, words in commands(data):
        # What is made once for all systems is made in none of them.
        roles = [f"address.{role}" for role in data.get("roles", {}).get("ports", {})]
        names = [*parameters, *(["seed"] if where == "data.argv" else [*BUILT_IN, *roles])]
        found += _unknown([(where, name) for word in words if (name := placeholder(word))], names, "parameter")
        inside = [word for word in words if not placeholder(word) and any(f"{{{name}}}" in word for name in parameters)]
        found += [(where, f"'{word}' holds a parameter; a parameter stands for a whole word") for word in inside]
    lists = [name for name, entry in parameters.items() if "array" in entry["schema"].get("type", "")]
    starts = [name for name, entry in parameters.items() if entry["schema"].get("enum") == STARTS]
    for where, step in _walk(data):
        found += _unknown(
            [(f"{where}.for", step["for"])] if "for" in step else [], lists, "parameter that holds a list"
        )
        fresh = [(f"{where}.fresh", step["fresh"])] if "fresh" in step else []
        found += _unknown(fresh, starts, f"parameter with the choice of {' and '.join(STARTS)}")
        if fresh and ("systems" in data or "roles" in data):
            found.append(
                (fresh[0][0], "cannot be in a workload with systems or roles: one system is brought up afresh")
            )
        if "roles" in data and step.get("at") == "client" and "{address}" in step.get("argv", []):
            found.append((f"{where}.argv", "'{address}' may be of several systems; name a role, as in {address.ROLE}"))
    for number, entry in enumerate(data["checks"]):
        if re.search(entry["pattern"], ""):
            found.append((f"checks.{number}.pattern", "matches an empty line; must match what is meant alone"))
    found += _check_number(data, "systems", plan.MOST_SYSTEMS) if "systems" in data else []
    found += _check_laps(data) if "laps" in data else []
    return found + _check_roles(data) + figures.findings(data)


def _check_parameter(name: str, parameters: dict) -> list[Finding]:
    """Findings about a parameter: its values, the rules that they follow from, and what it says of them."""
    parameter, key, found = parameters[name], f"parameters.{name}", []
    schema = parameter["schema"]
    if name in BUILT_IN:  # which would hide it
        found.append((key, "is the name of what every cell knows by itself; choose another"))
    held = schema.get("items", {}) if schema.get("type") == "array" else schema
    if "memory" in parameter and held.get("type") != "integer":
        found.append((f"{key}.memory", "belongs to a parameter whose schema asks for whole numbers, or a list of them"))
    given = parameter.get("file", name)
    if "file" in parameter and (
        given == name or parameters.get(given, {"schema": {}})["schema"].get("type") != "string"
    ):
        found.append(
            (f"{key}.file", f"'{given}' is no other parameter that holds text; must name the one with its SHA-1")
        )
    for scale in SCALES:
        if scale in parameter:
            value, where = parameter[scale], f"{key}.{scale}"
            found += _check_rule(value, where) if isinstance(value, dict) else value_findings(schema, value, where)
    return found


def _check_rule(value: dict, key: str) -> list[Finding]:
    """Findings about a rule by which a value follows from the machine, and its arguments."""
    known = [*sizing.OF_THE_CELL, *sizing.RULES]
    if value.get("rule") not in known:
        return _unknown([(f"{key}.rule", str(value.get("rule")))], known, "rule")
    rule, given = value["rule"], {name: one for name, one in value.items() if name != "rule"}
    takes = list(inspect.signature(sizing.RULES[rule]).parameters)[1:] if rule in sizing.RULES else []
    numbers = [(name, each) for name, one in given.items() for each in (one if name == "values" else [one])]
    if sorted(given) != sorted(takes) or not all(type(each) in (int, float) and each > 0 for _, each in numbers):
        return [(key, f"the rule {rule} takes {', '.join(takes) or 'nothing'}, all of them numbers above 0")]
    return []


def value_findings(schema: dict, value: object, key: str) -> list[Finding]:
    """Findings about a value for a parameter with this schema."""
    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, dict | list) for item in items):
        return [(key, f"is {describe(value)}; must be text, a number, true or false, or a list of these")]
    return checking.findings(checking.validator(schema), value, key)


def _check_number(data: dict, key: str, most: int) -> list[Finding]:
    """Findings about the parameter that says how many of something there are, which is asked before any is."""
    name, parameters = data[key], data["parameters"]
    if name not in parameters:
        return _unknown([(key, name)], list(parameters), "parameter")
    declared, found = parameters[name], []
    schema = declared["schema"]
    if schema.get("type") != "integer" or schema.get("minimum") != 1 or not 1 <= schema.get("maximum", 0) <= most:
        wanted = f"{{type: integer, minimum: 1, maximum: {most}}}, or with a smaller maximum"
        found.append((f"parameters.{name}.schema", f"must be {wanted}, as it is the number of {key}"))
    ruled = [scale for scale in SCALES if isinstance(declared.get(scale), dict)]
    return found + [(f"parameters.{name}.{scale}", f"must be a number: it is the number of {key}") for scale in ruled]


def _check_laps(data: dict) -> list[Finding]:
    """Findings about laps, in which a cell stands idle while others of its set run."""
    found = _check_number(data, "laps", plan.MOST_LAPS)
    wrong = "cannot be in a workload with laps"
    found += [(key, f"{wrong}: nothing of a cell may run between them") for key in ("servers", "roles") if key in data]
    for where, step in _walk(data):
        if step.get("at") == "client" or "fresh" in step or "observe" in step:
            found.append((where, f"{wrong}: it is of a cell that has the machine alone"))
    for name, metric in data["metrics"].items():
        if metric.get("statistic") == "percentile":
            found.append((f"metrics.{name}.statistic", f"{wrong}: no mean of percentiles is taken"))
    return found


def _check_roles(data: dict) -> list[Finding]:
    """Findings about roles: who has which ports and servers, and the parameter that says where each is."""
    servers, declared = data.get("servers", []), data.get("ports", [])
    if "roles" not in data:
        wrong = "names a role, and the workload declares none (roles)"
        return [(f"servers.{number}.role", wrong) for number, server in enumerate(servers) if "role" in server]
    name, ports = data["roles"]["parameter"], data["roles"]["ports"]
    lists = [key for key, value in data["parameters"].items() if value["schema"].get("type") == "array"]
    found = _unknown([("roles.parameter", name)], lists, "parameter that holds a list")
    for number, server in enumerate(servers):
        if server.get("role") not in ports:
            right = f"must be one of {', '.join(ports)} (roles)"
            found.append((f"servers.{number}.role", f"is {describe(server.get('role'))}; {right}"))
    given = [port for names in ports.values() for port in names]
    found += [("roles.ports", f"{port} must be of one role") for port in declared if given.count(port) != 1]
    return found + _unknown([("roles.ports", port) for port in given], declared, "port of the workload")


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
        parts = {"argv": server, "ready.argv": server["ready"], "stop.argv": server["stop"]}
        found += [(f"servers.{number}.{key}", part["argv"]) for key, part in parts.items() if "argv" in part]
    return found


def given(name: str, overrides: dict) -> dict:
    """The parameters that the config sets for a workload, each of the kind that its schema asks for."""
    declared = load(name)["parameters"]
    return {
        key: checking.converted(checking.validator(declared[key]["schema"]), value) if key in declared else value
        for key, value in overrides.items()
    }


def check_overrides(name: str, overrides: dict) -> list[Finding]:
    """Findings about the parameters that the config sets for a workload."""
    declared = load(name)["parameters"]
    found = []
    for key, value in given(name, overrides).items():
        where = f"workloads.{name}.{key}"
        if key not in declared:
            found.append((where, f"unknown parameter; {nearest(str(key), list(declared))}"))
            continue
        wrong = value_findings(declared[key]["schema"], value, where)
        found += wrong
        if not wrong and declared[key].get("file") and value is not None and not os.path.isfile(value):
            found.append((where, f"is {describe(value)}; there is no such file"))
    return found


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
    memory = machine["memory_bytes"]
    share = {**machine, "memory_bytes": memory // systems, "systems": systems}
    for key in values:
        if key not in overrides:
            values[key], note = sizing.resolve(values[key], share)
            notes += [note] if note else []
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
        (key, sizing.memory_needed(declared[key]["memory"], value))
        for key, value in values.items()
        if "memory" in declared[key] and isinstance(value, (int, list))
    ]


def cell(name: str, scale: str) -> dict:
    """What a cell of the workload does (docs/contracts.md): its steps and checks, and what only some have.

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
        **{key: declared[key] for key in ("systems", "laps", "ports", "roles") if key in declared},
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
