"""The configuration that measures the experiment of a plan on this machine."""

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
# Keys of the image that depend on the site, or follow from the workloads.
_SITE_KEYS = ("mirror", "workloads")
# Options of layers that name a program, or are passed on to one: they run others' code here.
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

    original: the plan, which was checked.
    base: the content of config.yaml here; only `client`, `image.mirror` and `interference` are
    taken from it.
    repetitions: how many blocks are measured, in the form of config.yaml.
    machine: the facts of :func:`strata.host.capacity.read_host_facts`.
    Parameters that followed from the plan's machine are computed again for this machine.
    The working directory must be the project, whose workloads are read.
    Raises UserError if the load came from a second machine, and config.yaml names none.
    """
    restored = Restored({key: value for key, value in original.items() if key in _SAME_KEYS})
    environments = _restore_environments(original, restored)
    workloads = _restore_workloads(original, machine, restored)
    settings_of_image = original["image"]["settings"]
    image = {key: value for key, value in settings_of_image.items() if key not in _SITE_KEYS}
    if "mirror" in base.get("image", {}):
        image["mirror"] = base["image"]["mirror"]
    if "docker" in image:
        restored.foreign.append(f"image.docker: {image['docker']}")
    # The image holds the programs of all workloads of a configuration.  So the configuration names
    # workloads of the plan's image that are not measured, too.
    unmeasured_names = set(workload.list_workloads()) - set(workloads)
    names_in_image = settings_of_image.get("workloads", [])
    unmeasured: Fields = {name: {} for name in names_in_image if name in unmeasured_names}
    leave_out: dict[str, list[str]] = {}
    for environment in environments:
        left_out = original.get("leave_out", {}).get(environment, [])
        if names := [name for name in left_out if name in workloads]:
            leave_out[environment] = names
    # Each layer is a mapping with one key, the layer's name.
    layers = [layer for environment in environments.values() for layer in environment["layers"]]
    uses_vm = any("vm" in layer for layer in layers)
    restored.settings |= {
        "repetitions": repetitions,
        **({"image": image} if image else {}),
        "environments": environments,
        "workloads": {**workloads, **unmeasured},
        "only": {"environments": [*environments], "workloads": [*workloads]},
        **({"leave_out": leave_out} if leave_out else {}),
        **({"vm": original["vm"]} if uses_vm else {}),
        "client": _restore_client(original, base),
        "emulation": False,
        **({"interference": base["interference"]} if "interference" in base else {}),
    }
    return restored


def _restore_environments(original: Plan, restored: Restored) -> Fields:
    """Return the environments of a plan that were measured in blocks, as in config.yaml.

    Adds environments with unknown layers to ``omitted`` of `restored`, and options of
    _PROGRAM_OPTIONS to its ``foreign``.
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
            ((layer_name, resolved),) = layer.items()
            options = registry.load_layer_class(layer_name).restore_options(resolved)
            layers.append({layer_name: options})
            restored.foreign += [
                f"environments.{name}.{layer_name}.{key}: {options[key]}"
                for key in _PROGRAM_OPTIONS
                if key in options
            ]
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

    base: the content of config.yaml here.  If the plan's client was a second machine, the second
    machine of `base` takes its place.
    Returns "namespace", or a mapping with `rate`, or with `ssh` and its options.
    Raises UserError if the plan's client was a second machine, and `base` names none.
    """
    planned = original["client"]
    rate = {"rate": planned["rate"]} if planned["rate"] else {}
    if planned["kind"] == "namespace":
        return rate or "namespace"
    configured = base.get("client")
    if not isinstance(configured, dict) or "ssh" not in configured:
        raise UserError(
            "the load came from a second machine: name one in config.yaml, as in "
            "`client: {ssh: user@host}` (docs/client.md)"
        )
    connection = {key: configured[key] for key in ("ssh", "ssh_config") if key in configured}
    return {**connection, **rate}


def _restore_workloads(original: Plan, machine: HostFacts, restored: Restored) -> Fields:
    """Return ``{workload: {parameter: value}}`` with the parameters that a configuration set.

    machine: the facts of this machine.
    A workload that does not fit this version or machine, or one of whose parameters does not, is
    left out and added to ``omitted`` of `restored`.  Parameters that are free texts are added to
    its ``foreign``, and names of files to its ``files``.
    """
    workloads: Fields = {}
    known_names = set(workload.list_workloads())
    for name, planned in original["workloads"].items():
        if name not in known_names:
            restored.omitted["", name] = f"this version of Strata has no workload {name}"
            continue
        declared = workload.read_declaration(name)["parameters"]
        try:
            overrides = _find_overrides(name, original, declared)
            # A check of a file would fail, since files are not copied yet.
            checked = {
                key: value for key, value in overrides.items() if "file" not in declared[key]
            }
            if mistakes := [*workload.list_override_mistakes(name, checked)]:
                # One reason is enough.
                raise UserError(": ".join(mistakes[0]))
            workload.resolve_parameters(name, overrides, original["scale"], machine)
        except UserError as error:
            # The message should not name config.yaml, since the reader has none with this key.
            restored.omitted["", name] = str(error).removeprefix(f"{config.FILE}: ")
            continue
        workloads[name] = overrides
        restored.foreign += _list_free_texts(name, overrides, declared)
        restored.files |= {overrides[key] for key in planned["cell"]["files"] if overrides.get(key)}
    return workloads


def _find_overrides(name: str, original: Plan, declared: Fields) -> Fields:
    """Return ``{parameter: value}`` for the parameters that a workload's configuration set.

    All other parameters have the value that the workload's declaration and rules give on the plan's
    machine.
    name: the name of the workload.
    declared: the parameters in the workload's declaration, in this version of Strata.
    Raises UserError for a parameter that the workload no longer has.
    """
    values: Fields = dict(original["workloads"][name]["parameters"])
    if unknown := [key for key in values if key not in declared]:
        raise UserError(f"{name} has no parameter {unknown[0]} in this version of Strata")
    scale = original["scale"]
    overrides: Fields = {}
    for key, value in values.items():
        parameter = declared[key]
        default = parameter["value"] if "value" in parameter else parameter[scale]
        # A mapping is a rule that derives the parameter from the machine.
        is_rule = any(isinstance(item, dict) for item in convert_to_list(default))
        if not is_rule and value != default:
            overrides[key] = value
    # Rules may depend on the other values.
    derived, _ = workload.resolve_parameters(name, overrides, scale, original["machine"])
    differing = {key: value for key, value in values.items() if value != derived[key]}
    return overrides | differing


def _list_free_texts(name: str, overrides: Fields, declared: Fields) -> Iterator[str]:
    """Yield ``KEY: value`` for the parameters that are free texts, such as a command line.

    overrides: the values that are set, by parameter.
    declared: the parameters in the workload's declaration.
    A text is not free if its schema lists the values, or has a pattern for the whole text.
    """
    for key, value in overrides.items():
        # A pattern that does not end with "$" lets any text follow.
        schema = declared[key]["schema"]
        accepted = schema.get("items", schema)
        is_free = "enum" not in accepted and not accepted.get("pattern", "").endswith("$")
        if is_free and any(isinstance(item, str) for item in convert_to_list(value)):
            yield f"workloads.{name}.{key}: {value}"


def find_parameter_files(restored: Restored, results: str) -> dict[str, str]:
    """Return ``{name: path}`` of the files that parameters name, in the project of the results.

    results: the folder of results; an archive holds the files in its source.
    A workload whose file is missing or outside the project is removed from the settings of
    `restored`, and its ``omitted`` gets the reason.
    """
    project_folder = os.path.dirname(os.path.abspath(results))
    paths_by_name: dict[str, str] = {}
    for name in sorted(restored.files):
        is_inside = not os.path.isabs(name) and ".." not in name.split("/")
        candidates = [os.path.join(project_folder, folder, name) for folder in ("source", "")]
        if is_inside and (path := next(filter(os.path.isfile, candidates), None)):
            paths_by_name[name] = path
            continue
        # A copy of the items, since workloads are removed.
        for workload_name, values in [*restored.settings["workloads"].items()]:
            if name in values.values():
                del restored.settings["workloads"][workload_name]
                restored.settings["only"]["workloads"].remove(workload_name)
                restored.omitted["", workload_name] = f"its file {name} is not in the archive"
    return paths_by_name


def list_differing_facts(original_facts: Fields, facts_here: Fields) -> list[Fields]:
    """Return ``[{item, there, here}, …]`` of the facts that differ between two machines.

    original_facts, facts_here: nested mappings of the original's machine and of this one.  A fact
    that is missing on one side is not a difference.
    `item` are the keys that lead to the fact, with spaces between; `there` and `here` are the facts
    as texts.  analysis/reproduce.R reads the rows, which are in the order of `original_facts`.
    """
    original_texts, texts_here = _flatten_mapping(original_facts), _flatten_mapping(facts_here)
    return [
        {"item": item, "there": text, "here": texts_here[item]}
        for item, text in original_texts.items()
        if texts_here.get(item, text) != text
    ]


def _flatten_mapping(value: Any) -> dict[str, str]:
    """Return a nested mapping as ``{keys: text}``, with one entry for each value in it.

    The keys that lead to a value are joined by spaces.  Lists become texts.  For a value that is
    not a mapping, the result has the single key "".
    """
    if not isinstance(value, dict):
        return {"": " ".join(str(value).split())}
    texts: dict[str, str] = {}
    for key, inner in value.items():
        for item, text in _flatten_mapping(inner).items():
            texts[f"{key} {item}".strip()] = text
    return texts


def describe_plan(original: Plan) -> Fields:
    """Return the facts of a plan that may differ on another machine, as nested mappings.

    The keys are `image`, `sizes` (the parameters of each workload) and `environment` (the layers of
    each).  Users see them: the items of :func:`list_differing_facts` begin with these keys.
    """
    return {
        "image": {key: original["image"][key] for key in ("distribution", "release")},
        "sizes": {name: entry["parameters"] for name, entry in original["workloads"].items()},
        "environment": {
            name: {
                layer_name: resolved
                for layer in entry["layers"]
                for layer_name, resolved in layer.items()
            }
            for name, entry in original["environments"].items()
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
