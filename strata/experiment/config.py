"""The experiment on one page: read config.yaml, check it, and fill in what it leaves open."""

import contextlib
import copy
import functools
import re
from collections.abc import Iterator, Sequence

from strata import client, layers
from strata.base import checking, pages
from strata.base.amounts import size
from strata.base.checking import Finding, unknown
from strata.base.errors import UserError
from strata.experiment import plan, published, quiet, recipe, sets, workload
from strata.vm import card, settings
from strata.vm.settings import GIB, MIB

FILE = "config.yaml"
# Where a key is left out.
DEFAULTS = {
    "client": "namespace",
    "order": "blocks",
    "partial": False,
    "emulation": True,
    "published_raw": None,
    "vm": {"profiles": {"default": {}}},
    "archive_image": False,
    "archive_allow": [],
}


def merge(base: dict, over: dict) -> dict:
    """`base` with the values of `over` laid over it, mapping by mapping (as Snakemake does with --config)."""
    merged = copy.copy(base)
    for key, value in over.items():
        inner = merged.get(key)
        merged[key] = merge(inner, value) if isinstance(value, dict) and isinstance(inner, dict) else value
    return merged


def read_pages(names: Sequence[str], words: dict) -> dict:
    """What pages say, each laid over those before it, and over them the words of the command line.

    Raises UserError that names the page and, where there is one, the line.
    """
    return functools.reduce(merge, [*map(pages.read, names), words], {})


def read(over: dict | None = None, path: str = FILE) -> dict:
    """The checked config: the page at `path`, and `over` laid over it.

    over: values of some keys, or all of the page with such values in it, as Snakemake's ``config`` is.  A number or
    true may stand in it as text, as words of the command line do.
    Layers come out as ``[{name: options}, …]``, workloads as ``{name: {parameter: value}}``.
    Raises UserError with one line for each mistake: file, key, what is wrong, what would be right.
    """
    schema = checking.schema("config")
    data = checking.converted(schema, merge(pages.read(path), over or {}))
    checking.complain(path, checking.findings(schema, data))
    stacks = {name: [_normal(layer) for layer in entry["layers"]] for name, entry in data["environments"].items()}
    data["environments"] = {
        name: {**entry, "label": entry.get("label", name), "layers": stacks[name]}
        for name, entry in data["environments"].items()
    }
    declared = [functools.partial(workload.load, name) for name in data["workloads"] if name in workload.known()]
    checking.together(lambda: checking.complain(path, [*_cross_check(data)]), *declared)
    # Of the whole page: an experiment that is narrowed down has the same image.
    image = {**data.get("image", {}), "workloads": list(data["workloads"])}
    only = data.pop("only", {})
    for section in ("environments", "workloads"):
        wanted = only.get(section, data[section])
        data[section] = {name: entry for name, entry in data[section].items() if name in wanted}
    return {
        **DEFAULTS,
        **data,
        "image": image,
        # Where sets are added, so are those that are measured again.
        "quiet": quiet.complete(data.get("quiet"), again=isinstance(data["repetitions"], dict)),
        "workloads": {name: workload.given(name, chosen or {}) for name, chosen in data["workloads"].items()},
    }


def percent(text: str) -> float:
    """The share that a text such as ``5%`` means."""
    return float(text.removesuffix("%")) / 100


def seconds(text: str) -> float:
    """The seconds that a text such as ``25min`` means."""
    number, unit = re.fullmatch(r"([0-9.]+)(s|min|h)", text).groups()  # type: ignore[union-attr]
    return float(number) * {"s": 1, "min": 60, "h": 3600}[unit]


def _normal(layer: str | dict) -> dict:
    """A layer as ``{name: options}``."""
    ((name, options),) = ({layer: {}} if isinstance(layer, str) else layer).items()
    options = {} if options is None else options
    if name in layers.names():
        options = checking.converted(checking.validator(layers.kind(name).options_schema), options)
    return {name: options}


def _cross_check(data: dict) -> Iterator[Finding]:
    """What a schema cannot say: which layers and workloads there are, and what goes together."""
    yield from _check_repetitions(data)
    labels: dict[str, str] = {}
    for name, entry in data["environments"].items():
        yield from _check_stack(f"environments.{name}.layers", entry["layers"], data)
        shown = " ".join(entry["label"].split())
        if shown in labels:
            yield f"environments.{name}.label", f"is also that of {labels[shown]}; each needs its own"
        labels[shown] = name
    if sets.BESIDE in data["environments"]:
        yield f"environments.{sets.BESIDE}", "is the name of native beside emulated machines; choose another"
    named = [(f"only.{section}", names, section) for section, names in data.get("only", {}).items()]
    for key, names, section in [*named, ("not_emulated", data.get("not_emulated", []), "workloads")]:
        for number, name in enumerate(names):
            yield from unknown(f"{key}.{number}", name, data[section], f"name of {section}")
    for name, entry in data["environments"].items():
        machines = [kind for layer in entry["layers"] for kind in layer if kind == "vm"]
        if "{vm}" in entry["label"] and not machines:
            words = (
                f"is '{entry['label']}', and no layer of the environment is a virtual machine; must be without {{vm}}"
            )
            yield f"environments.{name}.label", words
    steal = data.get("quiet", {}).get("steal")
    if steal is not None and percent(steal) > 1:
        yield "quiet.steal", f"is {steal}; must be at most 100%"
    for name, profile in data.get("vm", {}).get("profiles", {}).items():
        key, memory = f"vm.profiles.{name}", (profile or {}).get("memory", "host")
        for scale, text in memory.items() if isinstance(memory, dict) else [("", memory)]:
            if text != "host" and size(text) < settings.LEAST_MEMORY:
                least = f"{settings.LEAST_MEMORY // MIB}MiB, in which a system boots"
                yield f"{key}.memory.{scale}".rstrip("."), f"is {text}; must be at least {least}"
        yield from ((f"{key}.{part}", words) for part, words in card.complaints(profile or {}))
    if "published_raw" in data and (complaint := published.complaint(data["published_raw"])):
        yield "published_raw", complaint
    known = workload.known()
    declared: dict[str, dict] = {}
    for name in data["workloads"]:
        yield from unknown(f"workloads.{name}", name, known, "folder of workloads/")
        # Mistakes in the workload's own file are reported of that file.
        with contextlib.suppress(UserError):
            declared |= {name: workload.load(name)} if name in known else {}
    for name in declared:
        yield from workload.check_overrides(name, data["workloads"][name] or {})


def _check_repetitions(data: dict) -> Iterator[Finding]:
    asked = data["repetitions"]
    if isinstance(asked, int):
        return
    if asked["max"] < asked["min"]:
        yield "repetitions.max", f"is {asked['max']}; must be at least min, {asked['min']}"
    if not 0 < percent(asked["target"]) <= 10:
        yield "repetitions.target", f"is {asked['target']}; must be more than 0%, and at most 1000%"
    if asked.get("budget") and not 0 < seconds(asked["budget"]) <= 30 * 24 * 3600:
        yield "repetitions.budget", f"is {asked['budget']}; must be more than 0s, and at most 720h"
    if data.get("order") == "sequential":
        yield "order", "is sequential, which needs a fixed number of repetitions; must be blocks"


def _check_stack(key: str, stack: list[dict], data: dict) -> Iterator[Finding]:
    below = "host"
    for number, entry in enumerate(stack):
        where = f"{key}.{number}"
        ((name, options),) = entry.items()
        if name not in layers.names():
            yield from unknown(where, name, layers.names(), "layer")
            continue
        layer = layers.kind(name)
        wrong = checking.findings(checking.validator(layer.options_schema), options, f"{where}.{name}")
        yield from wrong or [(f"{where}.{name}.{at}", words) for at, words in layer.check(options, data, below)]
        if name == "host" and number > 0:
            yield where, "'host' is the bottom of a stack; it stands first or is left out"
        elif name != "host" and below not in layer.stands_on:
            yield where, f"'{name}' cannot stand on '{below}'; it stands on {' or '.join(layer.stands_on)}"
        below = name


def _check_memory(config: dict, machine: dict, workloads: dict) -> None:
    """Check the memory of machines against the host's, and what workloads hold against that to which layers are bound.

    Raises UserError.
    """
    found = []
    for name, entry in config["environments"].items():
        for number, given in enumerate(entry["layers"]):
            ((kind, options),) = given.items()
            layer = layers.kind(kind)
            if layer.kind == "machine":
                profile = options.get("profile", "default")
                memory = settings.complete(config["vm"]["profiles"][profile], config["scale"])["memory"]
                if memory != "host" and size(memory) > machine["memory_bytes"]:
                    there = f"this machine has {machine['memory_bytes'] / GIB:.1f} GiB: choose less"
                    found.append((f"vm.profiles.{profile}.memory", f"is {memory}; {there}"))
            most = layer.memory(options)
            for load, planned in workloads.items():
                for key, needs in workload.memory_needed(load, planned["parameters"]):
                    if most is not None and needs > 0.9 * most:
                        where = f"environments.{name}.layers.{number}.{kind}.memory"
                        wants = f"{load} ({key}: {planned['parameters'][key]}) needs {needs / MIB:,.0f} MiB"
                        found.append((where, f"is {options['memory']}, and {wants}: give more, or choose less there"))
    checking.complain(FILE, found)


def experiment(config: dict, machine: dict) -> dict:
    """The object of results/plan.json for a checked config on this machine (docs/files.md).

    machine: as of :func:`strata.host.capacity.facts`.
    Raises UserError where no environment at all can be measured here, or where something does not fit.
    """
    workloads: dict[str, dict] = {}

    def planned(name: str) -> None:
        workloads[name] = workload.planned(name, config["workloads"][name], config["scale"], machine)

    checking.together(*(functools.partial(planned, name) for name in config["workloads"]))
    environments = {name: _planned(entry, config, machine) for name, entry in config["environments"].items()}
    if not any(entry["available"] for entry in environments.values()):
        reasons = "; ".join(f"{name}: {entry['reason']}" for name, entry in environments.items())
        raise UserError(f"{FILE}: environments: none can be measured on this machine ({reasons})")
    _add_beside(config, machine, environments, workloads)
    _check_memory(config, machine, workloads)
    plan.check_ports(workloads)
    described = recipe.describe(config["image"])
    left_out = [name for name in config.get("not_emulated", []) if name in workloads]
    return {
        "format": plan.FORMAT,
        "scale": config["scale"],
        "seed": config["seed"],
        "order": config["order"],
        **_repetitions(config),
        "client": client.settle(config["client"]),
        "quiet": config["quiet"],
        "image": {key: value for key, value in described.items() if key != "base"},
        "vm": config["vm"],
        "machine": machine,
        "environments": environments,
        **({"not_emulated": left_out} if left_out else {}),
        "workloads": workloads,
    }


def _add_beside(config: dict, machine: dict, environments: dict, workloads: dict) -> None:
    """Where machines are emulated: the workloads' sizes there, and native at these, which they are compared with."""
    reference = environments.get(sets.REFERENCE)
    if config["scale"] == sets.SMALL or not any(one["emulated"] and one["available"] for one in environments.values()):
        return
    for name, entry in workloads.items():
        entry["small"] = workload.small(name, config["workloads"][name], machine)
    if reference is not None:
        environments[sets.BESIDE] = {**reference, "label": f"{reference['label']}, tiny sizes", "beside": True}


def _planned(entry: dict, config: dict, machine: dict) -> dict:
    """An environment as the plan holds it."""
    reason: str | None = None
    stack: list[dict] = []
    told: list[dict] = []
    daemons: list[str] = []
    described: dict = {}
    doubtful, below = False, "host"
    for given in entry["layers"]:
        ((kind, options),) = given.items()
        layer = layers.kind(kind)
        settled = layer.settle(options, config)
        reason = reason or layer.unavailable() or layer.refusal(settled, below, machine)
        machine = layer.grants(settled, machine)
        below = kind
        stack.append({kind: settled})
        described |= layer.describe(settled)
        told.append({"kind": layer.kind, "title": layer.title, **layer.labels(settled)})
        daemons += layer.daemons
        doubtful = doubtful or layer.doubtful(settled)
    emulated = described.get("accelerator") == "tcg"
    if emulated and not config["emulation"]:
        reason = reason or "KVM runs no guest here, and emulation is switched off (emulation: false)"
    return {
        "label": entry["label"].replace("{vm}", described.pop("shown", "VM")),
        "layers": stack,
        "available": reason is None,
        "reason": reason,
        "told": told,
        "daemons": daemons,
        **described,
        "emulated": emulated,
        **({"doubtful": True} if doubtful else {}),
    }


def _repetitions(config: dict) -> dict:
    """How many sets there are, and what more of them depends on: ``repetitions`` and ``precision`` of the plan."""
    asked = config["repetitions"]
    retries = sets.RETRIES if config["quiet"]["action"] == "retry" and config["order"] != "sequential" else 0
    if isinstance(asked, dict):
        precision = {
            "min": asked["min"],
            "max": asked["max"],
            "target": percent(asked["target"]),
            "budget": seconds(asked["budget"]) if asked.get("budget") else None,
            **({"claims": True} if asked.get("claims") else {}),
        }
    else:
        precision = {"min": asked, "max": asked * (1 + retries), "target": None, "budget": None}
        if retries == 0:
            return {"repetitions": asked}
    return {"repetitions": precision["max"], "precision": {**precision, "retries": retries}}
