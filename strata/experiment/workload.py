"""Read the declarations of workloads, and plan their parameters and commands."""

import functools
import os
import re
from collections.abc import Iterator
from typing import Any

from strata.experiment import blocks, sizes
from strata.host import sizing
from strata.util import constants, validation, yaml_files
from strata.util.data_types import Fields, HostFacts, Step
from strata.util.errors import UserError
from strata.util.placeholders import BUILT_IN, convert_to_list, parse_placeholder
from strata.util.validation import Finding, describe_value, find_unknown_name
from strata.vm.settings import MAX_MEMORY_SHARE

FOLDER = "workloads"
# Keys of a parameter's declaration that hold values: one value for all scales, or one for each.
VALUE_KEYS = ("value", "tiny", "standard", "paper")
# The folder of the image where Strata's own programs are.
STRATA = "/opt/strata/"
# Keys of a declaration that the plan's `cell` holds unchanged.
AS_DECLARED = (
    "systems", "laps", "slice", "ram_disk", "log_limit", "ports", "roles", "sizes", "facts",
)  # fmt: skip


def list_workloads() -> list[str]:
    """Return the sorted names of this project's workloads; empty without a workloads folder.

    Folders that this user may not read are included, so that :func:`read_declaration` reports them.
    """
    if not os.path.isdir(FOLDER):
        return []
    names = []
    for entry in os.scandir(FOLDER):
        is_unreadable = os.path.isdir(entry.path) and not os.access(entry.path, os.X_OK)
        if is_unreadable or os.path.isfile(f"{entry.path}/workload.yaml"):
            names.append(entry.name)
    return sorted(names)


@functools.cache
def read_declaration(name: str) -> Fields:
    """Return the checked declaration of a workload (workload.yaml, docs/workload-reference.md).

    name: the name of the workload, and of its folder.
    Keys that may be missing in the file get defaults.
    The same object is returned for every call: callers must not change it.
    Raises UserError that names the file and key of each mistake.
    """
    path = f"{FOLDER}/{name}/workload.yaml"
    try:
        os.stat(path)
    except PermissionError:
        raise UserError(
            f"{FOLDER}/{name}: cannot be read by this user: type `chmod -R a+rX {FOLDER}/{name}` "
            "as its owner"
        ) from None
    except OSError:
        # A missing file, which the next lines report.  os.path.isfile returns False for both
        # errors.
        pass
    if not os.path.isfile(path):
        raise UserError(
            f"{path}: there is no such file: write one (docs/adding-a-workload.md), or remove "
            f"{name} from the configuration"
        )
    declaration = yaml_files.read_yaml_mapping(path)
    roles = declaration.get("roles")
    # The keyword `known` of the schema refers to names by these keys.
    names: dict[str, Any] = {
        "role": roles.get("ports") if isinstance(roles, dict) else {},
        "facts of the machine": [*sizes.FACTS],
        "laps": ["laps"],
    }
    mistakes = validation.find_schema_faults(
        validation.load_schema("workload"), declaration, names=names
    )
    validation.raise_for_findings(path, mistakes)
    validation.raise_for_findings(path, [*_list_declaration_mistakes(declaration)])
    return {"packages": [], "parameters": {}, "warmup": {"about": "none"}, **declaration}


def _list_declaration_mistakes(declaration: Fields) -> Iterator[Finding]:
    """Yield (key, sentence) for each mistake of a declaration that its schema cannot express.

    declaration: the content of workload.yaml, which matches the schema.
    These are an unknown question, invalid values of parameters, unknown placeholders, conditions
    that no list fulfils, and ports that are not in exactly one role.
    """
    yield from _list_question_mistakes(declaration)
    for name, parameter in declaration.get("parameters", {}).items():
        validator = validation.build_validator(parameter["schema"])
        for value_key in VALUE_KEYS:
            # A mapping is a rule, whose result is checked when the workload is planned.
            if value_key not in parameter or isinstance(parameter[value_key], dict):
                continue
            yield from validation.find_schema_faults(
                validator, parameter[value_key], f"parameters.{name}.{value_key}"
            )
    yield from _list_placeholder_mistakes(declaration)
    yield from _list_condition_mistakes(declaration)
    yield from _list_role_mistakes(declaration)


def _list_question_mistakes(declaration: Fields) -> Iterator[Finding]:
    """Yield a mistake if the question is neither a name of the table nor ends with "?".

    schemas/constants/questions.json lists the names.  A workload needs no question.
    """
    question = declaration.get("question")
    if question is None or question.rstrip().endswith("?"):
        return
    names = constants.read_constants("questions")
    for key, sentence in find_unknown_name("question", question, names, "question"):
        yield key, f"{sentence} (a question of its own ends with a question mark)"


def _list_role_mistakes(declaration: Fields) -> Iterator[Finding]:
    """Yield a mistake for each port that is not in exactly one role, if there are roles."""
    roles = declaration.get("roles", {}).get("ports", {})
    if not roles:
        return
    ports_of_roles = [port for ports in roles.values() for port in ports]
    for port in declaration.get("ports", []):
        count = ports_of_roles.count(port)
        if count != 1:
            yield "roles.ports", f"'{port}' is in {count} roles; each port must be in one"


def _list_placeholder_mistakes(declaration: Fields) -> Iterator[Finding]:
    """Yield a mistake for each ``{name}`` in a command that is unknown, or only a part of a word.

    declaration: the content of workload.yaml.
    A cell replaces only whole words (measure/arguments.py): by parameters, and by the names in
    BUILT_IN.
    """
    parameters = declaration.get("parameters", {})
    roles = declaration.get("roles", {}).get("ports", {})
    for key, argv in _iterate_commands(declaration):
        built_in = [*BUILT_IN, *(f"address.{role}" for role in roles)]
        if key == "data.argv":
            # The data set is made once for all systems, and in none of them.
            built_in = ["seed"]
        for word in argv:
            if name := parse_placeholder(word):
                yield from find_unknown_name(key, name, [*parameters, *built_in], "parameter")
            elif any(f"{{{name}}}" in word for name in parameters):
                yield key, f"'{word}' contains a parameter; a parameter must be a whole word"


def _list_condition_mistakes(declaration: Fields) -> Iterator[Finding]:
    """Yield a mistake for each condition (``when``) that can never be fulfilled.

    Such a condition has a value that breaks the schema for the items of the list parameter.
    declaration: the content of workload.yaml.
    """
    for key, step in _iterate_steps(declaration):
        for name, value in step.get("when", {}).items():
            item_schema = declaration["parameters"][name]["schema"].get("items", {})
            yield from validation.find_schema_faults(
                validation.build_validator(item_schema), value, f"{key}.when.{name}"
            )


def list_step_sections(declaration: Fields) -> list[tuple[str, list[Any]]]:
    """Return the (section, steps) of a workload's declaration in the order of their execution.

    Logs, records and fingerprints hold the names of the sections, as the steps' `step`.
    """
    # Only a warm-up has keys besides its steps.
    return [
        ("prepare", declaration.get("prepare", [])),
        ("warmup", declaration.get("warmup", {}).get("steps", [])),
        ("run", declaration.get("run", [])),
    ]


def _iterate_commands(declaration: Fields) -> Iterator[tuple[str, list[str]]]:
    """Yield the (key, argv) of every command in a workload's declaration.

    The key is the place of the argv in workload.yaml, such as ``run.0.steps.1.argv``.
    """
    for key, step in _iterate_steps(declaration):
        if "argv" in step:
            yield f"{key}.argv", step["argv"]
    if "data" in declaration:
        yield "data.argv", declaration["data"]["argv"]
    for number, server in enumerate(declaration.get("servers", [])):
        yield f"servers.{number}.argv", server["argv"]
        yield f"servers.{number}.ready.argv", server["ready"]["argv"]


def _iterate_steps(declaration: Fields) -> Iterator[tuple[str, Step]]:
    """Yield the (key, step) of every step and group of steps in a workload's declaration."""
    for section, steps in list_step_sections(declaration):
        key = f"{section}.steps" if section == "warmup" else section
        yield from _iterate_nested_steps(key, steps)


def _iterate_nested_steps(key: str, steps: list[Step]) -> Iterator[tuple[str, Step]]:
    """Yield the (key, step) of each step in a list, and of the steps within it, at any depth.

    key: the key of the list in workload.yaml; its position is appended for each step.
    """
    for number, step in enumerate(steps):
        yield f"{key}.{number}", step
        yield from _iterate_nested_steps(f"{key}.{number}.steps", step.get("steps", []))


def is_portable(name: str) -> bool:
    """Return whether a workload's programs run in any image.

    Scripts for sh and static programs do; the declaration has ``portable: true``.
    """
    return bool(read_declaration(name).get("portable"))


def list_image_needs(name: str) -> list[str]:
    """Return the needs of a workload that only Strata's own image meets, as words for a message.

    The needs are packages, programs that a build script makes, and "servers" for the program
    `serve`.  The programs of a portable workload are not needs: they are copied into any image.
    An example of the result is ["servers", "nginx"]; it has no repetitions.
    """
    declaration = read_declaration(name)
    needs = ["servers"] if "servers" in declaration else []
    if is_portable(name):
        return needs
    needs += declaration["packages"]
    for _, argv in _iterate_commands(declaration):
        program = argv[0]
        if not parse_placeholder(program) and ("/" not in program or program.startswith(STRATA)):
            needs.append(program)
    return [*dict.fromkeys(needs)]


def _build_overrides_validator(name: str) -> Any:
    """Return a validator for the parameters that the configuration sets for a workload.

    It rejects parameters that the workload does not declare.
    """
    parameters = read_declaration(name)["parameters"]
    schemas = {key: parameter["schema"] for key, parameter in parameters.items()}
    return validation.build_validator(
        {"type": "object", "properties": schemas, "additionalProperties": False}
    )


def convert_overrides(name: str, overrides: Fields) -> Fields:
    """Return a workload's configured parameters, converted to the types of their schemas.

    overrides: parameter → value; values from the command line are strings.
    Values that cannot be converted stay as they are: :func:`list_override_mistakes` reports them.
    """
    # YAML may have keys that are numbers.
    with_text_keys = {str(key): value for key, value in overrides.items()}
    converted: Fields = validation.convert_text_values(
        _build_overrides_validator(name), with_text_keys
    )
    return converted


def list_override_mistakes(name: str, overrides: Fields) -> Iterator[Finding]:
    """Yield (key, sentence) for each mistake in the configured parameters of a workload.

    overrides: parameter → value, as the configuration sets them.
    Raises UserError for mistakes in the workload's own declaration.
    """
    values = convert_overrides(name, overrides)
    key_of_workload = f"workloads.{name}"
    mistakes = validation.find_schema_faults(
        _build_overrides_validator(name), values, key_of_workload
    )
    yield from mistakes
    if mistakes:
        return
    parameters = read_declaration(name)["parameters"]
    for parameter, value in values.items():
        key = f"{key_of_workload}.{parameter}"
        if any(isinstance(item, dict | list) for item in convert_to_list(value)):
            # A mapping would be taken for a rule.
            accepted = "text, a number, true or false, or a list of these"
            yield key, f"is {describe_value(value)}; must be {accepted}"
        elif "file" in parameters[parameter] and value is not None and not os.path.isfile(value):
            yield key, f"is {describe_value(value)}; there is no such file"


def plan_workload(name: str, overrides: Fields, scale: str, machine: HostFacts) -> Fields:
    """Return a workload as the plan holds it.

    name: the name of the workload.
    overrides: the parameters that the configuration sets.
    scale: "tiny", "standard" or "paper".
    machine: the facts of :func:`strata.host.capacity.read_host_facts`.
    schemas/plan.schema.json describes the keys, under ``workloads``; the analysis in R reads them.
    Raises UserError if the parameters do not fit the machine.
    """
    declaration = read_declaration(name)
    parameters, notes = resolve_parameters(name, overrides, scale, machine)
    optional_keys = ("question", "figures", "headline", "storage")
    # The parameter that `more_metrics` names holds patterns; each declares a metric.
    patterns = parameters.get(declaration.get("more_metrics", ""), ())
    metrics_of_patterns = dict(map(parse_metric_pattern, patterns))
    headline = {}
    if metrics_of_patterns:
        headline["headline"] = [{"metric": key} for key in metrics_of_patterns]
    return {
        **{key: declaration[key] for key in ("title", "about")},
        "metrics": {**declaration["metrics"], **metrics_of_patterns},
        "parameters": parameters,
        "notes": notes,
        "warmup": declaration["warmup"]["about"],
        "cell": plan_cell(name, scale),
        **_describe_memory(name, parameters),
        # If such a key is missing, the analysis makes its own choice.
        **{key: declaration[key] for key in optional_keys if key in declaration},
        # It replaces a declared headline.
        **headline,
    }


def parse_metric_pattern(text: str) -> tuple[str, Fields]:
    """Return the (name, metric) that ``NAME[:UNIT[:lower|higher]]=REGEX`` declares.

    text: the declaration, such as ``speed:req/s:higher=([0-9.]+) req/s``.  Without a unit, the unit
    is "units"; without a direction, more is better.
    The metric's value is the number that the regular expression finds in a program's output.
    workloads/command/parse.py splits the string in the same way: change both together.
    Raises UserError unless the expression is valid and has exactly one group.
    """
    declaration, _, regex = text.partition("=")
    name, *settings = declaration.split(":")
    unit = settings[0] if settings else "units"
    better = settings[1] if len(settings) > 1 else "higher"
    try:
        groups = re.compile(regex).groups
    except re.error as error:
        raise UserError(f"{name}: {regex!r} is not a regular expression: {error}") from None
    if groups != 1:
        raise UserError(
            f"{name}: {regex!r} has {groups} groups; put the number alone into parentheses, as in "
            "'([0-9.]+) req/s', and write (?:…) for others"
        )
    return name, {"label": name, "unit": unit, "better": better}


def plan_small_sizes(name: str, overrides: Fields, machine: HostFacts) -> Fields:
    """Return ``{parameters, cell, memory_bytes}``, a planned workload's keys at the tiny scale.

    name: the name of the workload.
    overrides: the parameters that the configuration sets.
    machine: the facts of :func:`strata.host.capacity.read_host_facts`.
    Emulated machines use these keys in place of the planned ones.  `memory_bytes` is missing if no
    parameter declares a need of memory.
    Parameters that depend on the scale have the tiny value, even if the configuration sets them.
    """
    declaration = read_declaration(name)["parameters"]
    fixed_overrides = {
        key: value for key, value in overrides.items() if "value" in declaration[key]
    }
    parameters, _ = resolve_parameters(name, fixed_overrides, blocks.SMALL_SCALE, machine)
    tiny_cell = plan_cell(name, blocks.SMALL_SCALE)
    return {"parameters": parameters, "cell": tiny_cell, **_describe_memory(name, parameters)}


def _describe_memory(name: str, parameters: Fields) -> Fields:
    """Return ``{memory_bytes}``, the memory that a workload needs in each system.

    The mapping is empty if no parameter declares a need of memory.
    parameters: the resolved parameters by name; the needs of all of them are added.
    """
    needs = _list_memory_needs(name, parameters)
    return {"memory_bytes": sum(size for _, size in needs)} if needs else {}


def resolve_parameters(
    name: str, overrides: Fields, scale: str, machine: HostFacts
) -> tuple[Fields, list[str]]:
    """Return a workload's parameters on this machine, and sentences that explain their values.

    name: the name of the workload.
    overrides: the parameters that the configuration sets; the caller has checked them
    (:func:`list_override_mistakes`).
    scale: "tiny", "standard" or "paper".
    machine: the facts of :func:`strata.host.capacity.read_host_facts`.
    Rules that only a cell can resolve remain mappings.  The values that rules give are checked
    here.  Several equal systems share the machine's memory evenly.
    Raises UserError if a value needs more memory than the machine has, or breaks its schema.
    """
    declaration = read_declaration(name)
    values: dict[str, Any] = {}
    for key, parameter in declaration["parameters"].items():
        default = parameter["value"] if "value" in parameter else parameter[scale]
        values[key] = overrides.get(key, default)
    _check_roles(name, declaration, values)
    systems = values[declaration["systems"]] if "systems" in declaration else 1
    share = sizes.compute_machine_share(dict(machine), systems)
    notes: list[str] = []
    default_keys = [key for key in values if key not in overrides]
    # First the rules that need only the machine: `smallest` needs the other values, too.
    for key in default_keys:
        values[key], note = sizing.resolve_rule(values[key], share)
        if note:
            notes.append(note)
    for key, value in values.items():
        if isinstance(value, dict) and value["rule"] == sizing.SMALLEST:
            size = sizes.find_smallest_valid_size(
                declaration, key, values, share, value["at_least"], value["multiple"]
            )
            is_list = declaration["parameters"][key]["schema"]["type"] == "array"
            # Only a value is replaced, and no key added, while the mapping is iterated.
            values[key] = [size] if is_list else size
    for key in default_keys:
        _check_value_of_rule(name, key, values[key], scale)
    _check_memory(name, values, systems, machine["memory_bytes"])
    return values, notes


def _check_memory(name: str, values: Fields, systems: int, machine_bytes: int) -> None:
    """Raise UserError if a parameter needs more than MAX_MEMORY_SHARE of the machine's memory.

    name: the name of the workload, for the message.
    values: the parameters by name.  Each is compared alone, not their sum.
    systems: the number of equal systems; each needs the memory.
    machine_bytes: the memory of the machine.
    """
    for key, needed_bytes in _list_memory_needs(name, values):
        if needed_bytes * systems > MAX_MEMORY_SHARE * machine_bytes:
            count = f" in {systems} systems" if systems > 1 else ""
            raise UserError(
                f"config.yaml: workloads.{name}.{key}: {values[key]}{count} needs "
                f"{needed_bytes * systems / 1e9:.1f} GB of memory, of which this machine has "
                f"{machine_bytes / 1e9:.1f}; choose a smaller value"
            )


def _check_roles(name: str, declaration: Fields, values: Fields) -> None:
    """Raise UserError unless the parameter that assigns roles to systems names each role once.

    declaration: the declaration of the workload; one without roles passes.
    values: the parameters by name.  The parameter is a list with a string ROLE+ROLE for each
    system.
    """
    if "roles" not in declaration:
        return
    key, roles = declaration["roles"]["parameter"], list(declaration["roles"]["ports"])
    assigned_roles = [role for group in values[key] for role in str(group).split("+")]
    if sorted(assigned_roles) != sorted(roles):
        role_names = ", ".join(map(str, values[key]))
        raise UserError(
            f"config.yaml: workloads.{name}.{key}: is {role_names[:100]!r}; must name each of "
            f"{', '.join(roles)} once, a system in each entry, with + between roles that share one"
        )


def _check_value_of_rule(name: str, parameter: str, value: Any, scale: str) -> None:
    """Raise UserError if the value that a rule gave breaks the schema of its parameter.

    parameter: the name of the parameter.
    scale: the scale of the experiment, which may be the key of the rule in workload.yaml.
    A value that is a mapping is not checked: it is a rule that only the cell can resolve.
    """
    if not isinstance(value, dict):
        declaration = read_declaration(name)["parameters"][parameter]
        key = f"parameters.{parameter}.{'value' if 'value' in declaration else scale}"
        mistakes = validation.find_schema_faults(
            validation.build_validator(declaration["schema"]), value, key
        )
        validation.raise_for_findings(f"{FOLDER}/{name}/workload.yaml", mistakes)


def _list_memory_needs(name: str, values: Fields) -> list[tuple[str, int]]:
    """Return (parameter, bytes) for each parameter that needs memory, in each system.

    values: the workload's parameters by name; the largest value of a list counts.
    """
    declaration = read_declaration(name)["parameters"]
    needs = []
    for key, value in values.items():
        if "memory" in declaration[key] and isinstance(value, (int, list)):
            largest = max(convert_to_list(value), default=0)
            needs.append(
                (key, int(sizes.compute_memory_bytes(declaration[key]["memory"], largest)))
            )
    return needs


def plan_cell(name: str, scale: str) -> Fields:
    """Return the work of a cell of a workload, for the plan's `cell` (docs/files.md).

    scale: decides the time limits of commands.
    Two keys are always present:
    - ``steps``: the planned steps, in the order of execution;
    - ``files``: the names of parameters whose values are files of the host.
    Others are present if declared:
    - ``servers`` and ``data``: with time limits in seconds;
    - ``ports``: the names of parameters that hold ports;
    - ``systems`` and ``laps``: the names of the parameters with the numbers of equal systems and of
      laps;
    - ``slice``: the seconds of a slice;
    - ``ram_disk``: the name of the parameter with the bytes of a RAM disk;
    - further keys of AS_DECLARED.
    The fingerprints of cells hash the steps.
    """
    declaration = read_declaration(name)

    def plan_step(section: str, step: Fields) -> Fields:
        """Return a step with its section and time limit added, also to its inner steps."""
        planned = resolve_time_limit({"step": section, **step})
        if "steps" in step:
            planned["steps"] = [plan_step(section, inner_step) for inner_step in step["steps"]]
        return planned

    def resolve_time_limit(command: Fields) -> Fields:
        """Return a command with its declared `timeout` replaced by the seconds at `scale`."""
        if "timeout" not in command:
            return command
        return {**command, "timeout": sizing.select_value_at_scale(command["timeout"], scale)}

    steps = []
    for section, declared_steps in list_step_sections(declaration):
        steps += [plan_step(section, step) for step in declared_steps]
    servers = []
    for server in declaration.get("servers", []):
        probes = {key: resolve_time_limit(server[key]) for key in ("ready", "stop")}
        servers.append({"exits": [0], **server, **probes})
    return {
        "steps": steps,
        "files": [
            key for key, parameter in declaration["parameters"].items() if "file" in parameter
        ],
        **{key: declaration[key] for key in AS_DECLARED if key in declaration},
        **({"servers": servers} if servers else {}),
        **({"data": resolve_time_limit(declaration["data"])} if "data" in declaration else {}),
    }
