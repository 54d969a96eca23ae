"""Build the configuration that measures the experiment of another machine's plan here."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from strata.environments.common import registry
from strata.experiment import blocks, config, plan, workload
from strata.results.validate import load_object
from strata.util import paths
from strata.util.data_types import Fields, HostFacts, Plan
from strata.util.errors import UserError
from strata.util.placeholders import convert_to_list
from strata.vm import acceleration

# Keys that a plan and config.yaml have in the same form.
_SAME_KEYS = ("title", "question", "about", "scale", "seed", "order", "ways")
# Keys of the image in a plan that are not copied: the mirror is chosen at each site, and the
# workloads follow from the configuration.
_SITE_KEYS = ("mirror", "workloads")
# Options of layers that name a program, or are passed on to one.  They run code of others here.
_PROGRAM_OPTIONS = ("options", "program", "dockerd", "image")


@dataclass
class Restored:
    """The experiment of a plan as a configuration, and the parts that cannot be measured here.

    settings: the content of config.yaml.
    omitted: the reason for each (environment, workload) that is left out; "" stands for any.
    foreign: commands, programs and options that the plan brings along, as ``KEY: value``; they run
    only with the user's trust.
    files: the values of parameters that name files, which are in the project of the plan's results;
    their paths are not checked yet.
    """

    settings: Fields
    omitted: dict[tuple[str, str], str] = field(default_factory=dict)
    foreign: list[str] = field(default_factory=list)
    files: set[str] = field(default_factory=set)


def build_configuration(
    original: Plan, base: Fields, repetitions: Fields, machine: HostFacts
) -> Restored:
    """Return a configuration that measures the experiment of another machine's plan here.

    original: the plan of the other machine, which was checked.
    base: the content of config.yaml here; only `client`, `image.mirror` and `interference` are
    taken from it.
    repetitions: the value of `repetitions` in config.yaml.
    machine: the facts of :func:`strata.host.capacity.read_host_facts`.
    Raises UserError if the load came from a second machine, and config.yaml names none.
    Parameters that followed from the plan's machine are computed again for this machine.
    The working directory must be the project, whose workloads are read.
    """
    restored = Restored({key: value for key, value in original.items() if key in _SAME_KEYS})
    environments = _restore_environments(original, restored)
    workloads = _restore_workloads(original, machine, restored)
    image = _restore_image(original, base, restored)
    settings = restored.settings
    settings["repetitions"] = repetitions
    if image:
        settings["image"] = image
    settings["environments"] = environments
    settings["workloads"] = workloads | _list_other_workloads_in_image(original, workloads)
    settings["only"] = {"environments": [*environments], "workloads": [*workloads]}
    if leave_out := _restore_leave_out(original, environments, workloads):
        settings["leave_out"] = leave_out
    # Each layer is a mapping with one key, the layer's name.
    layers = [layer for environment in environments.values() for layer in environment["layers"]]
    if any("vm" in layer for layer in layers):
        settings["vm"] = original["vm"]
    settings["client"] = _restore_client(original, base)
    settings["emulation"] = False
    if "interference" in base:
        settings["interference"] = base["interference"]
    return restored


def _restore_image(original: Plan, base: Fields, restored: Restored) -> Fields:
    """Return the value of `image` in a configuration for the image of a plan; it may be empty.

    original: the plan of the other machine.
    base: the content of config.yaml here, whose mirror is used.
    restored: the experiment; its ``foreign`` gets the plan's Docker image, if it names one.
    """
    planned_image = original["image"]["settings"]
    image = {key: value for key, value in planned_image.items() if key not in _SITE_KEYS}
    if "mirror" in base.get("image", {}):
        image["mirror"] = base["image"]["mirror"]
    if "docker" in image:
        restored.foreign.append(f"image.docker: {image['docker']}")
    return image


def _list_other_workloads_in_image(original: Plan, workloads: Fields) -> Fields:
    """Return ``{workload: {}}`` of the workloads in a plan's image that are not measured here.

    original: the plan of the other machine.
    workloads: the workloads that are measured here; only their names are used.
    Workloads that this version of Strata does not have are left out.
    The image holds the programs of all workloads that a configuration names.  So these names make
    the image the same as the plan's.
    """
    names_in_image = original["image"]["settings"].get("workloads", [])
    names_here = set(workload.list_workloads())
    return {name: {} for name in names_in_image if name in names_here and name not in workloads}


def _restore_leave_out(
    original: Plan, environments: Fields, workloads: Fields
) -> dict[str, list[str]]:
    """Return the value of `leave_out` for the environments and workloads that are measured here.

    original: the plan of the other machine.
    environments: the environments that are measured here; only their names are used.
    workloads: the workloads that are measured here; only their names are used.
    Returns ``{environment: [workload, …]}`` without empty lists.
    """
    leave_out: dict[str, list[str]] = {}
    for environment in environments:
        planned_names = original.get("leave_out", {}).get(environment, [])
        if names := [name for name in planned_names if name in workloads]:
            leave_out[environment] = names
    return leave_out


def _restore_environments(original: Plan, restored: Restored) -> Fields:
    """Return the environments of a plan that were measured in blocks, as in config.yaml.

    original: the plan of the other machine.
    restored: the experiment.  Its ``omitted`` gets environments with a layer that this version of
    Strata does not have, and its ``foreign`` gets the layers' options of _PROGRAM_OPTIONS.
    Returns ``{name: {label, layers}}``, where a layer is ``{name: options}``.
    """
    environments: Fields = {}
    for name, planned in original["environments"].items():
        if not planned["available"] or blocks.is_unpaired(planned):
            # Such an environment has no ratio to native.
            continue
        layer_names = [layer_name for layer in planned["layers"] for layer_name in layer]
        unknown = [layer for layer in layer_names if layer not in registry.list_layer_names()]
        if unknown:
            restored.omitted[name, ""] = f"this version of Strata has no layer {unknown[0]}"
            continue
        layers = []
        for layer in planned["layers"]:
            # A layer has one key, its name.
            [layer_name] = layer
            layer_class = registry.load_layer_class(layer_name)
            options = layer_class.restore_options(layer[layer_name])
            layers.append({layer_name: options})
            for key in _PROGRAM_OPTIONS:
                if key in options:
                    setting = f"environments.{name}.{layer_name}.{key}"
                    restored.foreign.append(f"{setting}: {options[key]}")
        environments[name] = {"label": _restore_label(planned), "layers": layers}
    return environments


def _restore_label(environment: Any) -> str:
    """Return the label of a planned environment as config.yaml had it.

    Planning (experiment/planning.py) adds `otherwise` in parentheses, and replaces ``{vm}`` by the
    name of the accelerator; both are undone.
    """
    label: str = environment["label"]
    if "otherwise" in environment:
        label = label.removesuffix(f" ({environment['otherwise']})")
    if "accelerator" in environment:
        label = label.replace(acceleration.MACHINE_NAMES[environment["accelerator"]], "{vm}")
    return label


def _restore_client(original: Plan, base: Fields) -> str | Fields:
    """Return the value of `client` in config.yaml for the client of a plan.

    original: the plan of the other machine.
    base: the content of config.yaml here.  If the plan's client was a second machine, the second
    machine of `base` takes its place.
    Returns "namespace", or a mapping with `rate`, or with `ssh` and its options.
    Raises UserError if the plan's client was a second machine, and `base` names none.
    """
    planned_client = original["client"]
    rate_option = {"rate": planned_client["rate"]} if planned_client["rate"] else {}
    if planned_client["kind"] == "namespace":
        return rate_option if rate_option else "namespace"
    client_here = base.get("client")
    if not isinstance(client_here, dict) or "ssh" not in client_here:
        raise UserError(
            "the load came from a second machine. Name one in config.yaml, as in "
            "`client: {ssh: user@host}` (docs/client.md)."
        )
    connection = {key: client_here[key] for key in ("ssh", "ssh_config") if key in client_here}
    return {**connection, **rate_option}


def _restore_workloads(original: Plan, machine: HostFacts, restored: Restored) -> Fields:
    """Return ``{workload: {parameter: value}}`` with the parameters that the other machine set.

    original: the plan of the other machine.
    machine: the facts of this machine.
    restored: the experiment.  Its ``omitted`` gets each workload that is left out, its ``foreign``
    the parameters that are free strings, and its ``files`` the names of files.
    A workload is left out if this version of Strata does not have it, or if one of its parameters
    does not fit this version or this machine.
    """
    workloads: Fields = {}
    names_here = set(workload.list_workloads())
    for name, planned in original["workloads"].items():
        if name not in names_here:
            restored.omitted["", name] = f"this version of Strata has no workload {name}"
            continue
        parameters = workload.read_declaration(name)["parameters"]
        try:
            overrides = _find_overrides(name, original, parameters)
            # A check of a file would fail, since files are not copied yet.
            values_without_files = {
                key: value for key, value in overrides.items() if "file" not in parameters[key]
            }
            if mistakes := [*workload.list_override_mistakes(name, values_without_files)]:
                # One reason is enough.  A mistake is (key, sentence).
                key, sentence = mistakes[0]
                raise UserError(f"{key}: {sentence}")
            workload.resolve_parameters(name, overrides, original["scale"], machine)
        except UserError as error:
            # The message should not name config.yaml, since the reader has none with this key.
            restored.omitted["", name] = str(error).removeprefix(f"{config.FILE}: ")
            continue
        workloads[name] = overrides
        restored.foreign += _list_free_strings(name, overrides, parameters)
        restored.files |= {overrides[key] for key in planned["cell"]["files"] if overrides.get(key)}
    return workloads


def _find_overrides(name: str, original: Plan, parameters: Fields) -> Fields:
    """Return ``{parameter: value}`` for the parameters that the other machine's configuration set.

    name: the name of the workload.
    original: the plan of the other machine.
    parameters: the parameters in the workload's declaration, in this version of Strata.
    Raises UserError for a parameter that the workload no longer has.
    The plan holds only values, and not their sources.  So a parameter counts as set if its value is
    not that of the declaration or of the declaration's rules on the plan's machine.
    """
    values: Fields = dict(original["workloads"][name]["parameters"])
    for key in values:
        if key not in parameters:
            raise UserError(f"{name} has no parameter {key} in this version of Strata")
    scale = original["scale"]
    overrides: Fields = {}
    for key, value in values.items():
        parameter = parameters[key]
        default = parameter["value"] if "value" in parameter else parameter[scale]
        # A mapping is a rule that derives the parameter from the machine.
        is_rule = any(isinstance(item, dict) for item in convert_to_list(default))
        if not is_rule and value != default:
            overrides[key] = value
    # Rules may depend on the parameters without rules, which must therefore be known first.
    derived_values, _ = workload.resolve_parameters(name, overrides, scale, original["machine"])
    for key, value in values.items():
        if value != derived_values[key]:
            overrides[key] = value
    return overrides


def _list_free_strings(name: str, overrides: Fields, parameters: Fields) -> Iterator[str]:
    """Yield ``KEY: value`` for the parameters that are free strings, such as a command line.

    name: the name of the workload.
    overrides: ``{parameter: value}`` of the parameters that are set.
    parameters: the parameters in the workload's declaration.
    A string is not free if its schema lists the values, or has a pattern that ends with "$".
    An example is "workloads.command.command: ./bench 100".
    """
    for key, value in overrides.items():
        schema = parameters[key]["schema"]
        item_schema = schema.get("items", schema)
        # A pattern that does not end with "$" lets any text follow.
        is_limited = "enum" in item_schema or item_schema.get("pattern", "").endswith("$")
        has_string = any(isinstance(item, str) for item in convert_to_list(value))
        if has_string and not is_limited:
            yield f"workloads.{name}.{key}: {value}"


def find_parameter_files(restored: Restored, results: str) -> dict[str, str]:
    """Find the files that parameters name, and remove workloads whose files are missing.

    restored: the experiment.  If a file is missing or outside the project, the workloads that name
    it are removed from ``settings``, and ``omitted`` gets the reason.
    results: the folder of results.  Its project, or the folder ``source`` of an archive, holds the
    files.
    Returns ``{name: path}`` of the files that exist.
    """
    project_folder = os.path.dirname(os.path.abspath(results))
    paths_by_name: dict[str, str] = {}
    for name in sorted(restored.files):
        path = _find_project_file(project_folder, name)
        if path is not None:
            paths_by_name[name] = path
            continue
        # A copy of the items, since workloads are removed.
        for workload_name, values in [*restored.settings["workloads"].items()]:
            if name in values.values():
                del restored.settings["workloads"][workload_name]
                restored.settings["only"]["workloads"].remove(workload_name)
                restored.omitted["", workload_name] = f"its file {name} is not in the archive"
    return paths_by_name


def _find_project_file(project_folder: str, name: str) -> str | None:
    """Return the path of a file in a project or in an archive's source; None if there is none.

    project_folder: the folder of the project, or of the unpacked archive.
    name: the path of the file as a parameter has it.  An absolute path, or one with ``..``, may
    lead out of the project, and gives None.
    """
    if os.path.isabs(name) or ".." in name.split("/"):
        return None
    for folder in (os.path.join(project_folder, "source"), project_folder):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    return None


def list_differing_facts(original_facts: Fields, facts_here: Fields) -> list[Fields]:
    """Return ``[{item, there, here}, …]`` of the facts that differ between two machines.

    original_facts: the facts of the original's machine, as nested mappings.
    facts_here: the facts of this machine, as nested mappings.
    Returns the rows in the order of `original_facts`.  `item` has the keys that lead to the fact,
    space-separated, such as "machine cpu_model"; `there` and `here` are the facts as strings.
    A fact that is missing on one side is not a difference.
    analysis/reproduce.R reads the rows.
    """
    original_strings = _flatten_mapping(original_facts)
    strings_here = _flatten_mapping(facts_here)
    return [
        {"item": item, "there": original, "here": strings_here[item]}
        for item, original in original_strings.items()
        if item in strings_here and strings_here[item] != original
    ]


def _flatten_mapping(value: Any) -> dict[str, str]:
    """Return ``{keys: string}`` with one entry for each value in a nested mapping.

    value: the mapping, or a value in it; lists count as values.
    The keys that lead to a value are joined by spaces: ``{"a": {"b": [1, 2]}}`` becomes ``{"a b":
    "[1, 2]"}``.  White space in a string becomes single spaces.  A value that is not a mapping
    gives the single key "".
    """
    if not isinstance(value, dict):
        return {"": " ".join(str(value).split())}
    strings: dict[str, str] = {}
    for key, inner_value in value.items():
        for inner_keys, string in _flatten_mapping(inner_value).items():
            # Of a value that is not a mapping, the inner keys are empty.
            strings[f"{key} {inner_keys}".strip()] = string
    return strings


def describe_plan(experiment: Plan) -> Fields:
    """Return the facts of a plan that may differ on another machine, as nested mappings.

    experiment: the plan, of the original's machine or of this one.
    Returns ``{image, sizes, environment}``: distribution and release of the image, the parameters
    of each workload, and the options of each layer of each environment.
    Users see the keys: the items of :func:`list_differing_facts` begin with them.
    """
    return {
        "image": {key: experiment["image"][key] for key in ("distribution", "release")},
        "sizes": {name: entry["parameters"] for name, entry in experiment["workloads"].items()},
        "environment": {
            name: {
                layer_name: resolved
                for layer in entry["layers"]
                for layer_name, resolved in layer.items()
            }
            for name, entry in experiment["environments"].items()
        },
    }


def read_checked_plan(results: str) -> Plan:
    """Return the plan in a folder of results, checked against its format and schema.

    Raises UserError with all mistakes.
    """
    original: Plan = load_object(results, os.path.basename(paths.PLAN))
    if mistakes := plan.find_plan_mistakes(original):
        raise UserError(*mistakes)
    return original
