"""The configuration that measures the experiment of a plan on this machine."""

import functools
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
from strata.util.placeholders import as_list
from strata.vm import acceleration

# Keys of a plan that config.yaml has in the same form.
_KEPT = ("title", "question", "about", "scale", "seed", "order", "ways")
# Keys of the image that are of a site, or follow from the workloads.
_OF_SITE = ("mirror", "workloads")
# Options of layers that name a program, or are passed on to one.
_OF_PROGRAMS = ("options", "program")


@dataclass
class Restored:
    """The experiment of a plan as a configuration, with what of it cannot be measured here.

    settings: the content of config.yaml.
    omitted: the reason for each (environment, workload) that is left out; "" stands for any.
    foreign: commands, programs and options that the plan brings along, as ``KEY: value``.
    files: the values of parameters that name files, which lie beside the plan's results.
    """

    settings: Fields
    omitted: dict[tuple[str, str], str] = field(default_factory=dict)
    foreign: list[str] = field(default_factory=list)
    files: set[str] = field(default_factory=set)


def restore_experiment(
    made: Plan, base: Fields, repetitions: Fields, machine: HostFacts
) -> Restored:
    """Return the experiment of a checked plan as a configuration for this machine.

    made: the plan.
    base: config.yaml of this project, whose client, mirror and thresholds of interference count.
    repetitions: how many blocks are measured, as in config.yaml.
    machine: the facts of :func:`strata.host.capacity.read_facts`.
    Parameters that the plan's machine decided follow this machine.  Raises UserError if the load
    came from a second machine, and config.yaml names none.
    """
    restored = Restored({key: value for key, value in made.items() if key in _KEPT})
    environments = _restore_environments(made, restored)
    chosen = _restore_workloads(made, machine, restored)
    image = {key: value for key, value in made["image"]["settings"].items() if key not in _OF_SITE}
    if "mirror" in base.get("image", {}):
        image["mirror"] = base["image"]["mirror"]
    if "docker" in image:
        restored.foreign.append(f"image.docker: {image['docker']}")
    # These are not measured; with them the image is the same.
    provisioned = made["image"]["settings"].get("workloads", [])
    known = set(workload.list_workloads())
    extra: Fields = {name: {} for name in provisioned if name in known and name not in chosen}
    only = {"environments": [*environments], "workloads": [*chosen]}
    leave_out = {
        name: loads
        for name in environments
        if (loads := [load for load in made.get("leave_out", {}).get(name, []) if load in chosen])
    }
    uses_vm = any("vm" in layer for entry in environments.values() for layer in entry["layers"])
    restored.settings |= {
        "repetitions": repetitions,
        **({"image": image} if image else {}),
        "environments": environments,
        "workloads": {**chosen, **extra},
        "only": only,
        **({"leave_out": leave_out} if leave_out else {}),
        **({"vm": made["vm"]} if uses_vm else {}),
        "client": _restore_client(made, base),
        "emulation": False,
        **({"interference": base["interference"]} if "interference" in base else {}),
    }
    return restored


def _restore_environments(made: Plan, restored: Restored) -> Fields:
    """Return the environments of a plan that were measured, as in config.yaml."""
    environments: Fields = {}
    for name, entry in made["environments"].items():
        if not entry["available"] or blocks.is_unpaired(entry):
            # It has no ratio to native.
            continue
        kinds = [kind for layer in entry["layers"] for kind in layer]
        unknown = [kind for kind in kinds if kind not in registry.layer_names()]
        if unknown:
            restored.omitted[name, ""] = f"this version of Strata has no layer {unknown[0]}"
            continue
        layers = []
        for kind, resolved in (pair for layer in entry["layers"] for pair in layer.items()):
            options = registry.layer_class(kind).restore_options(resolved)
            layers.append({kind: options})
            restored.foreign += [
                f"environments.{name}.{kind}.{key}: {options[key]}"
                for key in _OF_PROGRAMS
                if key in options
            ]
        environments[name] = {"label": _restore_label(entry), "layers": layers}
    return environments


def _restore_label(entry: Any) -> str:
    """Return the label of a planned environment without what its machine added."""
    label: str = entry["label"]
    if "otherwise" in entry:
        label = label.removesuffix(f" ({entry['otherwise']})")
    if "accelerator" in entry:
        label = label.replace(acceleration.MACHINE_NAMES[entry["accelerator"]], "{vm}")
    return label


def _restore_client(made: Plan, base: Fields) -> str | Fields:
    """Return the client of a plan as in config.yaml; a second machine is the project's own."""
    given: Fields = dict(made["client"])
    rate = {"rate": given["rate"]} if given["rate"] else {}
    if given["kind"] == "namespace":
        return rate or "namespace"
    own = base.get("client")
    if not isinstance(own, dict) or "ssh" not in own:
        raise UserError(
            "the load came from a second machine: name one in config.yaml, as in "
            "`client: {ssh: user@host}` (docs/client.md)"
        )
    kept = {key: own[key] for key in ("ssh", "ssh_config") if key in own}
    return {**kept, **rate}


def _restore_workloads(made: Plan, machine: HostFacts, restored: Restored) -> Fields:
    """Return the workloads of a plan with the parameters that its configuration set."""
    chosen: Fields = {}
    known = set(workload.list_workloads())
    for name, planned in made["workloads"].items():
        if name not in known:
            restored.omitted["", name] = f"this version of Strata has no workload {name}"
            continue
        declared = workload.read_declaration(name)["parameters"]
        try:
            given = _find_overrides(name, made, declared)
            if mistakes := [*workload.check_overrides(name, _without_files(given, declared))]:
                raise UserError(": ".join(mistakes[0]))
            workload.resolve_parameters(name, given, made["scale"], machine)
        except UserError as error:
            restored.omitted["", name] = str(error).removeprefix(f"{config.FILE}: ")
            continue
        chosen[name] = given
        restored.foreign += _list_texts(name, given, declared)
        restored.files |= {given[key] for key in planned["cell"]["files"] if given.get(key)}
    return chosen


def _without_files(given: Fields, declared: Fields) -> Fields:
    """Return parameters without those that name files, which are not copied yet."""
    return {key: value for key, value in given.items() if "file" not in declared[key]}


def _find_overrides(name: str, made: Plan, declared: Fields) -> Fields:
    """Return the parameters of a planned workload that its configuration set.

    Any other has the value that the workload's rules give on the plan's machine.
    Raises UserError for a parameter that the workload no longer has.
    """
    values: Fields = dict(made["workloads"][name]["parameters"])
    if unknown := [key for key in values if key not in declared]:
        raise UserError(f"{name} has no parameter {unknown[0]} in this version of Strata")
    scale = made["scale"]

    def default(key: str) -> Any:
        entry = declared[key]
        return entry["value"] if "value" in entry else entry[scale]

    given = {
        key: value
        for key, value in values.items()
        if not _is_rule(default(key)) and value != default(key)
    }
    # Rules may depend on the other values.
    ruled, _ = workload.resolve_parameters(name, given, scale, made["machine"])
    return given | {
        key: value for key, value in values.items() if key not in given and value != ruled[key]
    }


def _is_rule(value: object) -> bool:
    """Return whether the value of a parameter is a rule, by which it follows the machine."""
    return any(isinstance(item, dict) for item in as_list(value))


def _list_texts(name: str, given: Fields, declared: Fields) -> Iterator[str]:
    """Yield the parameters of a workload that are free texts, such as a command line."""
    for key, value in given.items():
        schema = declared[key]["schema"]
        accepted = schema.get("items", schema)
        is_free = "enum" not in accepted and not accepted.get("pattern", "").endswith("$")
        if is_free and any(isinstance(item, str) for item in as_list(value)):
            yield f"workloads.{name}.{key}: {value}"


def find_files(restored: Restored, results: str) -> dict[str, str]:
    """Return the path of each file that a parameter names, beside the results of a plan.

    results: the folder of results; an archive holds the files in its source.
    A workload whose file is not there is left out.
    """
    above = os.path.dirname(os.path.abspath(results))
    located: dict[str, str] = {}
    for name in sorted(restored.files):
        plain = not os.path.isabs(name) and ".." not in name.split("/")
        paths_there = [os.path.join(above, *place, name) for place in (("source",), ())]
        if plain and (path := next(filter(os.path.isfile, paths_there), None)):
            located[name] = path
            continue
        for load, values in [*restored.settings["workloads"].items()]:
            if name in values.values():
                del restored.settings["workloads"][load]
                restored.settings["only"]["workloads"].remove(load)
                restored.omitted["", load] = f"its file {name} is not in the archive"
    return located


def list_differences(there: Fields, here: Fields) -> list[Fields]:
    """Return ``[{item, there, here}, …]`` of the facts that are not the same.

    there, here: nested mappings; a fact that one side lacks counts for none.
    """
    first, second = _flatten(there), _flatten(here)
    return [
        {"item": item, "there": first[item], "here": second[item]}
        for item in first
        if item in second and first[item] != second[item]
    ]


def _flatten(value: Any) -> dict[str, str]:
    """Return the texts of a nested mapping, by the words that lead to each."""
    if not isinstance(value, dict):
        return {"": " ".join(str(value).split())}
    flat = [
        {f"{key} {item}".strip(): text for item, text in _flatten(inner).items()}
        for key, inner in value.items()
    ]
    return functools.reduce(lambda one, other: one | other, flat, {})


def describe_plan(made: Plan) -> Fields:
    """Return what of a plan may differ on another machine, for :func:`list_differences`."""
    return {
        "image": {key: made["image"][key] for key in ("distribution", "release")},
        "sizes": {name: entry["parameters"] for name, entry in made["workloads"].items()},
        "environment": {
            name: {kind: resolved for layer in entry["layers"] for kind, resolved in layer.items()}
            for name, entry in made["environments"].items()
        },
    }


def read_plan(results: str) -> Plan:
    """Return the plan in a folder of results, checked.  Raises UserError with its mistakes."""
    made: Plan = load_object(results, os.path.basename(paths.PLAN))
    if mistakes := plan.find_mistakes(made):
        raise UserError(*mistakes)
    return made
