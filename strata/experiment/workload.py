"""Workloads: what a folder of workloads/ declares, and its parameters for one experiment."""

import functools
import hashlib
import os
import re

from strata.base import checking, contracts
from strata.base.errors import UserError
from strata.base.placeholders import BUILT_IN, placeholder
from strata.experiment import declaration, figures, plan
from strata.host import sizing

FOLDER = "workloads"
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
    data = checking.read_yaml(path)
    found = checking.plain(data, lines=True)
    if not found:
        # What fits is looked at further, also where something does not: all is told at once.
        found, rest = checking.examined(checking.schema("workload"), data)
        rest = {"parameters": {}, "metrics": {}, "warmup": {}, "run": [], "checks": []} | rest
        senseless = declaration.findings(rest)
        # A parameter that makes no sense by itself is known by its name alone.
        of = {key.split(".")[1] for key, _ in senseless if key.startswith("parameters.")}
        rest["parameters"] = {name: entry for name, entry in rest["parameters"].items() if name not in of}
        parameters = data.get("parameters")
        names = list(parameters) if isinstance(parameters, dict) else []
        found += senseless + [one for one in _cross_check(rest, names) if one[0] not in dict(senseless)]
    checking.complain(path, found)
    return data


def check(name: str) -> None:
    """Check a workload with all that lies beside its declaration.  Raises UserError with all that is wrong."""
    checking.together(functools.partial(load, name), functools.partial(_check_folder, name))


def _check_folder(name: str) -> None:
    """That the parser is there and gives the factors of figures, and that the programs are there or made."""
    folder = f"{FOLDER}/{name}"
    try:
        data = load(name)
    except UserError:
        data = checking.fitting(checking.schema("workload"), checking.read_yaml(f"{folder}/workload.yaml"))
    parser, function = _text(f"{folder}/parse.R"), f"parse_{name.replace('-', '_')}"
    if parser is None:
        wrong = f"missing; must define {function}(lines, parameters), which makes values of a log"
        checking.complain(folder, [("parse.R", wrong)])
    found = []
    if not re.search(rf"(?m)^{function}\s*(<-|=)", parser or ""):
        found.append(("parse.R", f"does not define {function}(lines, parameters), which makes values of a log"))
    checking.together(
        lambda: checking.complain(folder, found),
        lambda: checking.complain(
            f"{folder}/workload.yaml", [*_missing_programs(folder, data), *_missing_factors(parser or "", data)]
        ),
    )


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def _missing_programs(folder: str, data: dict) -> list[tuple[str, str]]:
    """Findings about programs of the workload's own or of the project's that nothing brings into the image."""
    build = _text(f"{folder}/build.sh")
    common = f"{FOLDER}/common"
    shared = [file.removesuffix(".sh") for file in os.listdir(common)] if os.path.isdir(common) else []
    found = []
    for where, words in commands(data):
        program = words[0]
        own = program.removeprefix("/opt/strata/bin/")
        if own != program:
            if own not in shared:
                hint = checking.nearest(own, shared)
                found.append((f"{where}.0", f"there is no {FOLDER}/common/{own}.sh, which would be it; {hint}"))
        elif "/" not in program and placeholder(program) is None and not _is_built(folder, program, build):
            wrong = "there is no build.sh" if build is None else "neither a file that build.sh installs nor named in it"
            found.append((f"{where}.0", f"is '{program}', a program of the workload's own; {wrong}"))
    return found


def _is_built(folder: str, program: str, build: str | None) -> bool:
    """Whether a build script names a program, or its ending for one that lies beside it."""
    if build is None:
        return False
    ending = os.path.splitext(program)[1]
    by_ending = bool(ending) and f"*{ending}" in build and os.path.isfile(f"{folder}/{program}")
    named = re.search(rf"(?<![\w.-]){re.escape(program)}(?![\w.-])", build) is not None
    return by_ending or (named and (not ending or os.path.isfile(f"{folder}/{program}")))


def _missing_factors(parser: str, data: dict) -> list[tuple[str, str]]:
    """Findings about factors of figures that the parser never names (``factor=value``)."""
    known = sorted({*re.findall(r"\b([a-z][a-z0-9_]*)=", parser), *(["system"] if "systems" in data else [])})
    named = []
    for section in ("figures", "headline"):
        for number, point in enumerate(data.get(section, [])):
            named += [(f"{section}.{number}.along", point["along"])] if "along" in point else []
            named += [(f"{section}.{number}.where.{name}", name) for name in point.get("where", {})]
    return [
        (key, f"'{name}' is no factor that parse.R gives; {checking.nearest(name, known)}")
        for key, name in named
        if name not in known
    ]


def _cross_check(data: dict, names: list[str]) -> list[tuple[str, str]]:
    # Of those that don't fit the schema the names alone are known.
    misfits = set(names) - set(data["parameters"])
    parameters = {**{key: {"schema": {}} for key in names}, **data["parameters"]}
    found = []
    for name, parameter in parameters.items():
        key = f"parameters.{name}"
        if parameter.get("file", name) not in parameters:
            found.append(
                (f"{key}.file", f"names no parameter; {checking.nearest(parameter['file'], list(parameters))}")
            )
        for scale in ("value", "smoke", "quick", "paper"):
            value = parameter.get(scale)
            rules = [*sizing.OF_THE_CELL, *sizing.RULES]
            if isinstance(value, dict) and value.get("rule") not in rules:
                hint = checking.nearest(str(value.get("rule")), rules)
                found.append((f"{key}.{scale}.rule", f"is no rule; {hint}"))
    for where, words in commands(data):
        # What is made once for all systems is made in none of them.
        roles = data.get("roles", {}).get("ports", {})
        built_in = ("seed",) if where == "data.argv" else (*BUILT_IN, *(f"address.{role}" for role in roles))
        for word in words:
            name = placeholder(word)
            if name and name not in parameters and name not in built_in:
                hint = checking.nearest(name, [*parameters, *built_in])
                found.append((where, f"'{word}' names no parameter; {hint}"))
    for where, step in _walk(data):
        name = step.get("for", "")
        if (
            "for" in step
            and name not in misfits
            and "array" not in parameters.get(name, {"schema": {}})["schema"].get("type", "")
        ):
            lists = [key for key, value in parameters.items() if "array" in value["schema"].get("type", "")]
            found.append(
                (f"{where}.for", f"'{name}' is no parameter that holds a list; {checking.nearest(name, lists)}")
            )
        if (
            "fresh" in step
            and step["fresh"] not in misfits
            and parameters.get(step["fresh"], {"schema": {}})["schema"].get("enum") != STARTS
        ):
            found.append(
                (f"{where}.fresh", f"'{step['fresh']}' is no parameter with the choice of {' and '.join(STARTS)}")
            )
    asked = contracts.read("questions")
    if data.get("question", next(iter(asked))) not in asked:
        hint = checking.nearest(data["question"], list(asked))
        found.append(("question", f"'{data['question']}' is none of contracts/questions.json; {hint}"))
    for number, name in enumerate(data.get("ports", [])):
        if name not in parameters:
            hint = checking.nearest(name, list(parameters))
            found.append((f"ports.{number}", f"'{name}' names no parameter; {hint}"))
    found += _check_systems(data) if "systems" in data and data["systems"] not in misfits else []
    found += _check_laps(data) if "laps" in data and data["laps"] not in misfits else []
    found += _check_roles(data, parameters)
    return found + figures.findings(data)


def _check_systems(data: dict) -> list[tuple[str, str]]:
    """Findings about the parameter that says how many systems there are, which is asked before any is up."""
    found = _check_number(data, "systems", plan.MOST_SYSTEMS)
    for where, step in _walk(data):
        if "fresh" in step:
            found.append((f"{where}.fresh", "cannot be in a workload with systems: one system is brought up afresh"))
    return found


def _check_number(data: dict, key: str, most: int) -> list[tuple[str, str]]:
    """Findings about the parameter that says how many of something there are, which is asked before any is."""
    name, parameters = data[key], data["parameters"]
    if name not in parameters:
        return [(key, f"'{name}' names no parameter; {checking.nearest(name, list(parameters))}")]
    declared, found = parameters[name], []
    schema = declared["schema"]
    if schema.get("type") != "integer" or schema.get("minimum") != 1 or not 1 <= schema.get("maximum", 0) <= most:
        wanted = f"{{type: integer, minimum: 1, maximum: {most}}}, or with a smaller maximum"
        found.append((f"parameters.{name}.schema", f"must be {wanted}, as it is the number of {key}"))
    for scale in ("value", "smoke", "quick", "paper"):
        if isinstance(declared.get(scale), dict):
            found.append((f"parameters.{name}.{scale}", f"must be a number, as it is the number of {key}"))
    return found


def _check_laps(data: dict) -> list[tuple[str, str]]:
    """Findings about laps, in which a cell stands idle while others of its set run."""
    found = _check_number(data, "laps", plan.MOST_LAPS)
    for key in ("servers", "roles"):
        if key in data:
            found.append((key, "cannot be in a workload with laps: between these nothing of a cell may run"))
    for where, step in _walk(data):
        if step.get("at") == "client" or "fresh" in step or "observe" in step:
            kind = "a step at the client" if "at" in step else "fresh" if "fresh" in step else "observe"
            found.append((where, f"cannot be in a workload with laps: {kind} is of a cell that has the machine alone"))
    for name, metric in data["metrics"].items():
        if metric.get("statistic") == "percentile":
            wrong = "cannot be a percentile in a workload with laps: no mean of percentiles is taken"
            found.append((f"metrics.{name}.statistic", wrong))
    return found


def _check_roles(data: dict, parameters: dict) -> list[tuple[str, str]]:
    """Findings about roles: who has which ports and servers, and the parameter that says where each is."""
    declared = data.get("servers", [])
    if "roles" not in data:
        wrong = "names a role, and the workload declares none (roles)"
        return [(f"servers.{number}.role", wrong) for number, server in enumerate(declared) if "role" in server]
    name, ports = data["roles"]["parameter"], data["roles"]["ports"]
    found = []
    if parameters.get(name, {}).get("schema", {}).get("type") != "array":
        lists = [key for key, value in parameters.items() if value["schema"].get("type") == "array"]
        hint = checking.nearest(name, lists)
        found.append(("roles.parameter", f"'{name}' is no parameter that holds a list; {hint}"))
    for number, server in enumerate(declared):
        if server.get("role") not in ports:
            of = f"one of {', '.join(ports)}, which are declared (roles)"
            found.append((f"servers.{number}.role", f"is {checking.describe(server.get('role'))}; must be {of}"))
    given = [port for names in ports.values() for port in names]
    for port in data.get("ports", []):
        if given.count(port) != 1:
            found.append(("roles.ports", f"{port} is of {given.count(port)} roles; each port must be of one"))
    found += [
        ("roles.ports", f"'{port}' is none of the workload's ports ({', '.join(data.get('ports', []))})")
        for port in given
        if port not in data.get("ports", [])
    ]
    for where, step in _walk(data):
        if "fresh" in step:
            found.append((f"{where}.fresh", "cannot be in a workload with roles: one system is brought up afresh"))
        if step.get("at") == "client" and "{address}" in step.get("argv", []):
            found.append((f"{where}.argv", "'{address}' may be of several systems; name a role: {address.ROLE}"))
    return found


def _check_groups(name: str, data: dict, values: dict) -> None:
    """Raise UserError unless each role is in one of the systems that work together."""
    if "roles" not in data:
        return
    parameter, roles = data["roles"]["parameter"], list(data["roles"]["ports"])
    placed = [role for group in values[parameter] for role in str(group).split("+")]
    if sorted(placed) != sorted(roles):
        raise UserError(
            f"config.yaml: workloads.{name}.{parameter}: is {checking.describe(values[parameter])}; must name each of "
            f"{', '.join(roles)} once, a system in each entry, roles that share one with + between them"
        )


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
    if "data" in data:
        found.append(("data.argv", data["data"]["argv"]))
    for number, server in enumerate(data.get("servers", [])):
        parts = {"argv": server, "ready.argv": server.get("ready", {}), "stop.argv": server.get("stop", {})}
        found += [(f"servers.{number}.{key}", part["argv"]) for key, part in parts.items() if "argv" in part]
    return found


def check_overrides(name: str, overrides: dict) -> list[tuple[str, str]]:
    """Findings about the parameters that the config sets for a workload."""
    declared = load(name)["parameters"]
    found = []
    for key, value in overrides.items():
        where = f"workloads.{name}.{key}"
        if key not in declared:
            found.append((where, f"unknown parameter; {checking.nearest(str(key), list(declared))}"))
            continue
        wrong = declaration.value_findings(declared[key]["schema"], value, where)
        found += wrong
        if not wrong and declared[key].get("file") and value is not None and not os.path.isfile(value):
            found.append((where, f"is {checking.describe(value)}; there is no such file"))
    return found


def resolve(name: str, overrides: dict, scale: str, machine: dict) -> tuple[dict, list[str]]:
    """Parameters of a workload on this machine and sentences on how they came about.

    Several equal systems share the machine's memory evenly.
    Raises UserError if a value needs more memory than the machine has.
    """
    values, notes = {}, []
    whole = load(name)

    def chosen(key: str) -> object:
        declared = whole["parameters"][key]
        return overrides[key] if key in overrides else declared["value"] if "value" in declared else declared[scale]

    systems = chosen(whole["systems"]) if "systems" in whole else 1
    assert isinstance(systems, int)
    if "roles" in whole:
        key = whole["roles"]["parameter"]
        _check_groups(name, whole, {key: chosen(key)})
    share = {**machine, "memory_bytes": machine["memory_bytes"] // systems, "systems": systems}
    for key in whole["parameters"]:
        values[key] = chosen(key)
        if key not in overrides:
            values[key], note = sizing.resolve(values[key], share)
            notes += [note] if note else []
    for key, needs in memory_needed(name, values):
        if needs * systems > 0.9 * machine["memory_bytes"]:
            where = f" in {systems} systems" if systems > 1 else ""
            raise UserError(
                f"config.yaml: workloads.{name}.{key}: {values[key]}{where} needs {needs * systems / 1e9:.1f} GB of "
                f"memory, of which this machine has {machine['memory_bytes'] / 1e9:.1f}; choose a smaller value"
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
        **{key: declared[key] for key in ("systems", "laps") if key in declared},
        **({"ports": declared["ports"]} if "ports" in declared else {}),
        **({"roles": declared["roles"]} if "roles" in declared else {}),
        **({"servers": servers} if servers else {}),
        **({"data": timed(declared["data"])} if "data" in declared else {}),
    }


def check_files(name: str, values: dict) -> None:
    """Check the files that parameters name against their SHA-1.  Raises UserError with both hashes."""
    for key, parameter in load(name)["parameters"].items():
        if "file" not in parameter or values[key] is None:
            continue
        try:
            with open(values[key], "rb") as file:
                found = hashlib.file_digest(file, "sha1").hexdigest()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UserError(f"config.yaml: workloads.{name}.{key}: {values[key]} cannot be read: {reason}") from None
        if found != values[parameter["file"]]:
            raise UserError(
                f"config.yaml: workloads.{name}.{key}: {values[key]} has SHA-1 {found}, not "
                f"{values[parameter['file']]}; give that file, or its hash as {parameter['file']}"
            )
