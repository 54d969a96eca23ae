"""Make the plan of an experiment from its checked configuration, for this machine."""

import functools
import math
import re
from collections.abc import Iterator
from typing import cast

from strata import client
from strata.environments.common import registry
from strata.experiment import blocks, plan, recipe, workload
from strata.experiment.config import DESCRIPTIONS, FILE
from strata.experiment.precision import LOOKS
from strata.util import validation
from strata.util.data_types import Any, Fields, HostFacts, Plan, Stack
from strata.util.errors import UserError
from strata.util.units import parse_amount, parse_size
from strata.util.validation import Finding
from strata.vm.settings import GIB, MOST_OF_MEMORY

# Keys of `repetitions` that may hold a share or a duration.
_AMOUNTS = ("target", "margin", "budget", "claims")


def make_plan(config: Fields, machine: HostFacts) -> Plan:
    """Return the plan (the object of results/plan.json) of a checked configuration on this machine.

    config: as :func:`strata.experiment.config.read_config` returns it.
    machine: the facts of :func:`strata.host.capacity.read_facts`.
    Raises UserError if no environment can be measured on this machine, or if the sizes, ports or
    memory do not fit it.  The message names the file that sets the key.
    """
    try:
        return _make_plan(config, machine)
    except UserError as error:
        # Rules of workloads, images and hosts know the key, but not which file sets it.
        message = re.sub(
            rf"(?m)^{re.escape(FILE)}: ([^ :]+): ",
            lambda match: f"{config['source'](match[1])}: {match[1]}: ",
            str(error),
        )
        raise type(error)(message) from None


def _make_plan(config: Fields, machine: HostFacts) -> Plan:
    """Return the plan, as :func:`make_plan` does, but with config.yaml in all messages."""
    workloads: dict[str, Fields] = {}

    def add_workload(name: str) -> None:
        workloads[name] = workload.plan_workload(
            name, config["workloads"][name], config["scale"], machine
        )

    validation.check_all(*(functools.partial(add_workload, name) for name in config["workloads"]))
    config = {**config, "takes": max(entry.get("memory_bytes", 0) for entry in workloads.values())}
    environments = {
        name: _plan_environment(entry, config, machine)
        for name, entry in config["environments"].items()
    }
    available = [name for name, entry in environments.items() if entry["available"]]
    if not available:
        reasons = "; ".join(f"{name}: {entry['reason']}" for name, entry in environments.items())
        raise UserError(f"{FILE}: environments: none can be measured on this machine ({reasons})")
    _add_small_sizes(config, machine, environments, workloads)
    together = 1 if config["order"] == "sequential" else _count_interleaved(environments)
    validation.raise_findings(FILE, [*plan.check_ports(workloads, together)])
    described = recipe.describe_image(config["image"])
    made: Any = {
        "format": plan.FORMAT,
        **{key: config[key] for key in DESCRIPTIONS if key in config},
        **{key: config[key] for key in ("scale", "seed", "order", "interference", "vm")},
        **_plan_repetitions(config),
        "client": client.resolve_options(config["client"]),
        "image": {
            **{key: value for key, value in described.items() if key != "base"},
            "settings": config["image"],
        },
        "machine": machine,
        "environments": environments,
        **_plan_omissions(config, available, workloads),
        **({"spread": True} if config.get("spread") else {}),
        **({"ways": "both"} if config["ways"] == "both" else {}),
        "workloads": workloads,
    }
    pairs = sorted({cell[:2] for cell in blocks.Order(made).places})
    findings = [*_check_memory(made, pairs), *_check_image(made, pairs)]
    validation.raise_findings(FILE, [*findings, *_check_own_image(config["image"], pairs)])
    return cast(Plan, made)


def _check_memory(made: Plan, pairs: list[tuple[str, str]]) -> Iterator[Finding]:
    """Yield a mistake for each VM profile whose memory does not fit the host or a workload.

    pairs: the environments and workloads that are measured.
    """
    # Profile and its memory → the bytes that workloads need there, and these workloads.
    needs: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for environment, workload_name in pairs:
        for layer in made["environments"][environment]["layers"]:
            memory = layer.get("vm", {}).get("settings", {}).get("memory")
            # A machine with memory "host" takes as much as the host has.
            if memory not in (None, "host"):
                entry = plan.workload_in_environment(made, environment, workload_name)
                need = (entry.get("memory_bytes", 0), workload_name)
                needs.setdefault((layer["vm"]["profile"], memory), []).append(need)
    host_bytes = made["machine"]["memory_bytes"]
    for (profile, memory), profile_needs in needs.items():
        needed_bytes, workload_name = max(profile_needs)
        key = f"vm.profiles.{profile}.memory"
        if parse_size(memory) > host_bytes:
            yield key, f"is {memory}; this machine has {host_bytes / GIB:.1f} GiB: choose less"
        elif needed_bytes > MOST_OF_MEMORY * parse_size(memory):
            smallest = math.ceil(needed_bytes / MOST_OF_MEMORY / GIB)
            yield (
                key,
                f"is {memory}; {workload_name} takes {needed_bytes / GIB:.1f} GiB of it: choose "
                f"{smallest}GiB or more",
            )


def _check_own_image(image: Fields, pairs: list[tuple[str, str]]) -> Iterator[Finding]:
    """Yield a mistake for each workload that needs Strata's own image, if another is configured.

    pairs: the environments and workloads that are measured.
    """
    if "docker" not in image:
        return
    for name in sorted({workload_name for _, workload_name in pairs}):
        if needs := workload.list_image_needs(name):
            yield (
                f"workloads.{name}",
                f"needs {', '.join(needs)} of Strata’s own image, and image.docker is "
                f"{image['docker']}: leave the workload or image.docker out; programs of that "
                "image, and files that a parameter names, can be measured in it",
            )


def _check_image(made: Plan, pairs: list[tuple[str, str]]) -> Iterator[Finding]:
    """Yield a mistake for each environment that lacks the image although a workload needs it.

    A workload needs the image for its client or its data set.
    pairs: the environments and workloads that are measured.
    """
    for environment, workload_name in pairs:
        cell = made["workloads"][workload_name]["cell"]
        needs_image = plan.uses_client(cell) or "data" in cell
        layers = [name for layer in made["environments"][environment]["layers"] for name in layer]
        if registry.image_forms(layers) or not needs_image:
            continue
        yield (
            f"environments.{environment}.layers",
            f"is [{', '.join(layers)}], which runs nothing of the image, and {workload_name} "
            "needs it for its client or data: add a layer such as chroot, or leave the workload "
            f"out (leave_out: {{{environment}: [{workload_name}]}})",
        )


def _plan_omissions(config: Fields, available: list[str], workloads: Fields) -> Fields:
    """Return the plan's ``not_emulated`` and ``leave_out``, without keys that omit nothing.

    available: the names of the environments that can be measured here.
    workloads: the planned workloads by name; other workloads are no omissions.
    Raises UserError if every available environment leaves a workload out.
    """
    leave_out = {}
    for environment in config["environments"]:
        left_out = config.get("leave_out", {}).get(environment, [])
        leave_out[environment] = [name for name in left_out if name in workloads]
    mistake = (
        "every environment that can be measured here leaves it out: measure it in one, "
        "or drop the workload"
    )
    unmeasured = [name for name in workloads if all(name in leave_out[key] for key in available)]
    validation.raise_findings(FILE, [(f"leave_out.{name}", mistake) for name in unmeasured])
    omissions: Fields = {
        "not_emulated": [name for name in config.get("not_emulated", []) if name in workloads],
        "leave_out": {key: names for key, names in leave_out.items() if names},
    }
    return {key: value for key, value in omissions.items() if value}


def _count_interleaved(environments: Fields) -> int:
    """Return how many environments may be up at the same time, idle while another is measured."""
    count = 0
    for entry in environments.values():
        layer_classes = [registry.layer_class(name) for layer in entry["layers"] for name in layer]
        paired = entry["available"] and not blocks.is_unpaired(entry)
        count += paired and all(layer_class.stands_idle for layer_class in layer_classes)
    return count


def _add_small_sizes(
    config: Fields, machine: HostFacts, environments: Fields, workloads: Fields
) -> None:
    """Add the small sizes of emulated machines, and a native environment with these sizes.

    Changes `environments` and `workloads`, unless no machine is emulated or all sizes are small.
    """
    reference = environments.get(blocks.REFERENCE)
    emulated = any(entry["emulated"] and entry["available"] for entry in environments.values())
    if config["scale"] == blocks.SMALL_SCALE or not emulated:
        return
    for name, entry in workloads.items():
        entry["small"] = workload.plan_small_sizes(name, config["workloads"][name], machine)
    if reference is not None:
        environments[blocks.SMALL_REFERENCE] = {
            **reference,
            "label": f"{reference['label']}, tiny sizes",
            "counterpart": True,
        }


def _plan_environment(entry: Fields, config: Fields, machine: HostFacts) -> Fields:
    """Return an environment as the plan holds it: its resolved layers and its availability.

    entry: the value in the configuration's `environments`.
    config: the whole configuration.
    machine: the facts of the host.
    """
    reason: str | None = None
    stack: Stack = []
    labels: list[Fields] = []
    daemons: list[str] = []
    described: Fields = {}
    below = "host"
    for layer in entry["layers"]:
        ((name, options),) = layer.items()
        if name == "host" and len(entry["layers"]) > 1:
            # It is at the bottom of every stack.
            continue
        layer_class = registry.layer_class(name)
        settled = layer_class.add_observations(layer_class.resolve_options(options, config), below)
        if "docker" in config["image"]:
            reason = reason or layer_class.refuses_own_images
        reason = (
            reason
            or layer_class.unavailable_reason()
            or layer_class.refusal_reason(settled, below, machine)
        )
        machine = layer_class.machine_above(settled, machine)
        below = name
        stack.append({name: settled})
        described |= layer_class.describe(settled)
        labels.append(
            {
                "kind": layer_class.isolation,
                "title": layer_class.title,
                **layer_class.labels(settled),
            }
        )
        daemons += layer_class.daemons
    emulated = described.get("accelerator") == "tcg"
    if emulated and not config["emulation"] and reason is None:
        reason = "KVM runs no guest here, and emulation is switched off (emulation: false)"
    label = entry["label"].replace("{vm}", described.pop("shown", "VM"))
    return {
        "label": f"{label} ({described['otherwise']})" if "otherwise" in described else label,
        "layers": stack,
        "available": reason is None,
        "reason": reason,
        "descriptions": labels,
        "daemons": daemons,
        **described,
        "emulated": emulated,
    }


def _plan_repetitions(config: Fields) -> Fields:
    """Return ``repetitions`` (the largest number of blocks) and, if it is open, ``precision``.

    The number is open if a precision is the target, or if disturbed blocks are measured again.
    """
    rule = config["repetitions"]
    repeats = config["interference"]["action"] == "retry" and config["order"] != "sequential"
    retries = blocks.MAX_RETRIES if repeats else 0
    if isinstance(rule, dict):
        precision = {**rule, "target": None, "budget": None}
        precision |= {key: parse_amount(rule[key]) for key in _AMOUNTS if key in rule}
        if "margin" in rule:
            precision["looks"] = len(LOOKS)
    elif retries:
        precision = {"min": rule, "max": rule * (1 + retries), "target": None, "budget": None}
    else:
        return {"repetitions": rule}
    return {"repetitions": precision["max"], "precision": {**precision, "retries": retries}}
