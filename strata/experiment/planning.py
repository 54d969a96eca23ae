"""Build the plan of an experiment from its checked configuration, for this machine."""

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
from strata.util.units import parse_quantity, parse_size
from strata.util.validation import Finding
from strata.vm.settings import GIB, MAX_MEMORY_SHARE

# Keys of `repetitions` that may hold a share or a duration.
_AMOUNTS = ("target", "margin", "budget", "claims")


def build_plan(config: Fields, machine: HostFacts) -> Plan:
    """Return the plan (the object of results/plan.json) of a checked configuration on this machine.

    config: as :func:`strata.experiment.config.read_config` returns it.
    machine: the facts of :func:`strata.host.capacity.read_host_facts`.
    Raises UserError if no environment can be measured on this machine, or if the sizes, ports or
    memory do not fit it.  The message names the file that sets the key.
    """

    def format_prefix(old_prefix: re.Match[str]) -> str:
        """Return the prefix "FILE: KEY: " of a message, with the file that sets the key."""
        return f"{config['source'](old_prefix['key'])}: {old_prefix['key']}: "

    try:
        return _build_plan(config, machine)
    except UserError as error:
        # Messages begin with "config.yaml: KEY: ", whichever file sets the key.
        beginning = rf"(?m)^{re.escape(FILE)}: (?P<key>[^ :]+): "
        raise type(error)(re.sub(beginning, format_prefix, str(error))) from None


def _build_plan(config: Fields, machine: HostFacts) -> Plan:
    """Return the plan of a checked configuration; every error message names the file config.yaml.

    config: the checked configuration, as for :func:`build_plan`, which corrects the file in the
    messages.
    machine: the facts of :func:`strata.host.capacity.read_host_facts`.
    """
    workloads = _plan_workloads(config, machine)
    # The layer vm reads `takes`: the memory of machines whose profile says "needed".
    config = {**config, "takes": max(entry.get("memory_bytes", 0) for entry in workloads.values())}
    environments = {
        name: _plan_environment(entry, config, machine)
        for name, entry in config["environments"].items()
    }
    available_names = [name for name, entry in environments.items() if entry["available"]]
    if not available_names:
        reasons = "; ".join(f"{name}: {entry['reason']}" for name, entry in environments.items())
        raise UserError(f"{FILE}: environments: none can be measured on this machine ({reasons})")
    _add_small_sizes(config, machine, environments, workloads)
    # In the sequential order only one environment is up.
    up_together = 1
    if config["order"] != "sequential":
        up_together = _count_interleaved_environments(environments)
    validation.raise_for_findings(FILE, [*plan.list_port_mistakes(workloads, up_together)])
    described = recipe.describe_image(config["image"])
    experiment: Any = {
        "format": plan.FORMAT,
        **{key: config[key] for key in DESCRIPTIONS if key in config},
        **{key: config[key] for key in ("scale", "seed", "order", "interference", "vm")},
        **_plan_repetitions(config),
        "client": client.resolve_client_options(config["client"]),
        "image": {
            **{key: value for key, value in described.items() if key != "base"},
            "settings": config["image"],
        },
        "machine": machine,
        "environments": environments,
        **_plan_omissions(config, available_names, workloads),
        # These two keys are only in plans that use them, so that the hashes of others stay.
        **({"spread": True} if config.get("spread") else {}),
        **({"ways": "both"} if config["ways"] == "both" else {}),
        "workloads": workloads,
    }
    validation.raise_for_findings(FILE, [*_list_plan_mistakes(experiment, config["image"])])
    return cast(Plan, experiment)


def _plan_workloads(config: Fields, machine: HostFacts) -> dict[str, Fields]:
    """Return ``{name: planned workload}`` for the configured workloads, in their order.

    config: the checked configuration.
    machine: the facts of :func:`strata.host.capacity.read_host_facts`.
    Raises UserError with the mistakes of all workloads.
    """
    workloads: dict[str, Fields] = {}

    def add_workload(name: str) -> None:
        """Add a planned workload to `workloads`, or raise UserError."""
        workloads[name] = workload.plan_workload(
            name, config["workloads"][name], config["scale"], machine
        )

    validation.run_all_checks(
        *(functools.partial(add_workload, name) for name in config["workloads"])
    )
    return workloads


def _list_plan_mistakes(experiment: Plan, image: Fields) -> Iterator[Finding]:
    """Yield the mistakes of a plan that depend on which workload is measured in which environment.

    experiment: the whole plan, which is not written yet.
    image: the value of `image` in the configuration.
    """
    pairs = sorted({cell[:2] for cell in blocks.Order(experiment).places})
    yield from _list_memory_mistakes(experiment, pairs)
    yield from _list_layer_mistakes(experiment, pairs)
    yield from _list_image_mistakes(image, pairs)


def _list_memory_mistakes(experiment: Plan, pairs: list[tuple[str, str]]) -> Iterator[Finding]:
    """Yield a mistake for each VM profile whose memory does not fit the host or a workload.

    experiment: the plan, which is not written yet.
    pairs: the (environment, workload) of all cells.
    """
    # (Profile, its memory such as "4GiB") → (needed bytes, workload) of each workload there.
    needs: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for environment, workload_name in pairs:
        for layer in experiment["environments"][environment]["layers"]:
            memory = layer.get("vm", {}).get("settings", {}).get("memory")
            # A machine with memory "host" takes as much as the host has.  None: no virtual machine.
            if memory not in (None, "host"):
                planned = plan.select_workload(experiment, environment, workload_name)
                need = (planned.get("memory_bytes", 0), workload_name)
                needs.setdefault((layer["vm"]["profile"], memory), []).append(need)
    host_bytes = experiment["machine"]["memory_bytes"]
    for (profile, memory), profile_needs in needs.items():
        # The largest need; of equal needs, that of the last name in alphabetical order.
        needed_bytes, workload_name = max(profile_needs)
        key = f"vm.profiles.{profile}.memory"
        if parse_size(memory) > host_bytes:
            yield key, f"is {memory}; this machine has {host_bytes / GIB:.1f} GiB: choose less"
        elif needed_bytes > MAX_MEMORY_SHARE * parse_size(memory):
            smallest = math.ceil(needed_bytes / MAX_MEMORY_SHARE / GIB)
            yield (
                key,
                f"is {memory}; {workload_name} takes {needed_bytes / GIB:.1f} GiB of it: choose "
                f"{smallest}GiB or more",
            )


def _list_image_mistakes(image: Fields, pairs: list[tuple[str, str]]) -> Iterator[Finding]:
    """Yield a mistake for each workload that needs Strata's own image, if another is configured.

    pairs: the (environment, workload) of all cells.
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


def _list_layer_mistakes(experiment: Plan, pairs: list[tuple[str, str]]) -> Iterator[Finding]:
    """Yield a mistake for each (environment, workload) whose layers do not suit the workload.

    A workload with a client or a data set needs a layer that uses the image.  A workload with a RAM
    disk needs layers whose /data is a folder of the host.
    experiment: the plan, which is not written yet.
    pairs: the (environment, workload) of all cells.
    """
    for environment, workload_name in pairs:
        cell = experiment["workloads"][workload_name]["cell"]
        needs_image = plan.has_client_commands(cell) or "data" in cell
        layer_names: list[str] = []
        has_data_on_host = True
        for layer in experiment["environments"][environment]["layers"]:
            layer_names += layer
            for name, resolved in layer.items():
                layer_class = registry.load_layer_class(name)
                has_data_on_host &= layer_class.has_data_on_host(resolved)
        if "ram_disk" in cell and not has_data_on_host:
            yield (
                f"environments.{environment}.layers",
                f"is [{', '.join(layer_names)}], whose /data is not a folder of the host, and "
                f"{workload_name} measures a RAM disk of the host: leave the workload out "
                f"(leave_out: {{{environment}: [{workload_name}]}})",
            )
        if registry.collect_image_forms(layer_names) or not needs_image:
            continue
        yield (
            f"environments.{environment}.layers",
            f"is [{', '.join(layer_names)}], which runs nothing of the image, and {workload_name} "
            "needs it for its client or data: add a layer such as chroot, or leave the workload "
            f"out (leave_out: {{{environment}: [{workload_name}]}})",
        )


def _plan_omissions(config: Fields, available_names: list[str], workloads: Fields) -> Fields:
    """Return the plan's ``not_emulated`` and ``leave_out``; a key without entries is missing.

    config: the checked configuration.
    available_names: the names of the environments that can be measured here.
    workloads: the planned workloads by name.  Names of other workloads in `leave_out` and
    `not_emulated` are dropped without a message.
    Raises UserError if every available environment leaves a workload out.
    """
    leave_out: dict[str, list[str]] = {}
    for environment in config["environments"]:
        configured_names = config.get("leave_out", {}).get(environment, [])
        names = [name for name in configured_names if name in workloads]
        if names:
            leave_out[environment] = names
    sentence = (
        "every environment that can be measured here leaves it out: measure it in one, "
        "or drop the workload"
    )
    mistakes = [
        (f"leave_out.{name}", sentence)
        for name in workloads
        if all(name in leave_out.get(environment, ()) for environment in available_names)
    ]
    validation.raise_for_findings(FILE, mistakes)
    not_emulated = [name for name in config.get("not_emulated", []) if name in workloads]
    omissions: Fields = {"not_emulated": not_emulated, "leave_out": leave_out}
    return {key: value for key, value in omissions.items() if value}


def _count_interleaved_environments(environments: Fields) -> int:
    """Return how many environments may be up at the same time, idle while another is measured.

    environments: the planned environments by name.
    Only environments in blocks count whose layers use no CPU time between commands.  Each of their
    systems needs its own ports, which :func:`strata.experiment.plan.list_port_mistakes` checks with
    this number.
    """
    count = 0
    for environment in environments.values():
        if not environment["available"] or blocks.is_unpaired(environment):
            continue
        layer_classes = [
            registry.load_layer_class(name) for layer in environment["layers"] for name in layer
        ]
        if all(layer_class.stands_idle for layer_class in layer_classes):
            count += 1
    return count


def _add_small_sizes(
    config: Fields, machine: HostFacts, environments: Fields, workloads: Fields
) -> None:
    """Add the small sizes of emulated machines, and a native environment with these sizes.

    config: the checked configuration.
    machine: the facts of the host.
    environments: the planned environments by name; the native one is added.
    workloads: the planned workloads by name; each gets `small`.
    Nothing is changed if no machine is emulated, or if the scale is the small one.
    :func:`strata.experiment.plan.select_workload` reads the key `small` that workloads get.
    """
    has_emulated = any(
        environment["emulated"] and environment["available"]
        for environment in environments.values()
    )
    if config["scale"] == blocks.SMALL_SCALE or not has_emulated:
        return
    for name, planned in workloads.items():
        planned["small"] = workload.plan_small_sizes(name, config["workloads"][name], machine)
    reference = environments.get(blocks.REFERENCE)
    if reference is not None:
        environments[blocks.SMALL_REFERENCE] = {
            **reference,
            "label": f"{reference['label']}, tiny sizes",
            "counterpart": True,
        }


def _plan_environment(environment: Fields, config: Fields, machine: HostFacts) -> Fields:
    """Return an environment as the plan holds it: its resolved layers and its availability.

    schemas/plan.schema.json describes the keys, under ``environments``.
    environment: the value in the configuration's `environments`.
    config: the whole configuration.
    machine: the facts of the host.
    An environment that cannot be measured here stays in the plan, since papers list it.  Its
    `reason` is the first that a layer gives, from the lowest layer up.
    """
    reason: str | None = None
    stack: Stack = []
    descriptions: list[Fields] = []
    daemons: list[str] = []
    facts: Fields = {}
    below = "host"
    for layer in environment["layers"]:
        ((name, options),) = layer.items()
        if name == "host" and len(environment["layers"]) > 1:
            # The host is at the bottom of every stack, and adds nothing to others.
            continue
        layer_class = registry.load_layer_class(name)
        resolved = layer_class.add_observations(layer_class.resolve_options(options, config), below)
        if "docker" in config["image"] and not reason:
            reason = layer_class.refuses_own_images
        # Some of these tests take long: none is made once there is a reason.
        if not reason:
            reason = layer_class.explain_unavailability()
        if not reason:
            reason = layer_class.explain_refusal(resolved, below, machine)
        # The next layer runs on the machine that this layer provides.
        machine = layer_class.describe_machine_above(resolved, machine)
        below = name
        stack.append({name: resolved})
        facts |= layer_class.describe_for_plan(resolved)
        labels = layer_class.get_labels(resolved)
        descriptions.append({"kind": layer_class.isolation, "title": layer_class.title, **labels})
        daemons += layer_class.daemons
    is_emulated = facts.get("accelerator") == "tcg"
    if is_emulated and not config["emulation"] and reason is None:
        reason = "KVM runs no guest here, and emulation is switched off (emulation: false)"
    # `shown` is the name of the kind of virtual machine; it is not a key of the plan.
    label = environment["label"].replace("{vm}", facts.pop("shown", "VM"))
    if "otherwise" in facts:
        label = f"{label} ({facts['otherwise']})"
    return {
        "label": label,
        "layers": stack,
        "available": reason is None,
        "reason": reason,
        "descriptions": descriptions,
        "daemons": daemons,
        **facts,
        "emulated": is_emulated,
    }


def _plan_repetitions(config: Fields) -> Fields:
    """Return the plan's ``repetitions`` and, if the number of blocks is open, ``precision``.

    config: the checked configuration.
    `repetitions` is the largest number of blocks.  The number is open if the configuration gives a
    range, or if disturbed blocks are measured again.
    experiment/blocks.py and results/decide.py read the keys of `precision`; the analysis in R reads
    `margin`, `looks` and `target`.
    """
    rule = config["repetitions"]
    is_retried = config["interference"]["action"] == "retry" and config["order"] != "sequential"
    retries = blocks.MAX_RETRIES if is_retried else 0
    if isinstance(rule, dict):
        precision = {**rule, "target": None, "budget": None}
        precision |= {key: parse_quantity(rule[key]) for key in _AMOUNTS if key in rule}
        if "margin" in rule:
            precision["looks"] = len(LOOKS)
    elif retries:
        precision = {"min": rule, "max": rule * (1 + retries), "target": None, "budget": None}
    else:
        return {"repetitions": rule}
    return {"repetitions": precision["max"], "precision": {**precision, "retries": retries}}
