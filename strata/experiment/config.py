"""The experiment on one page: read config.yaml, check it, and fill in what it leaves open."""

import contextlib
import copy
import functools
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import cast

from strata import client
from strata.environments.common import registry
from strata.experiment import blocks, plan, recipe, workload
from strata.util import paths, validation, yaml_files
from strata.util.data_types import Any, Fields, HostFacts, Plan, Quiet, Stack
from strata.util.errors import UserError
from strata.util.units import amount, size
from strata.util.validation import Finding
from strata.vm.settings import GIB, MOST_OF_MEMORY

FILE = "config.yaml"


def merge(base: Fields, over: Fields) -> Fields:
    """`base` with the values of `over` laid over it, mapping by mapping (as Snakemake does with --config)."""
    merged = copy.copy(base)
    for key, value in over.items():
        inner = merged.get(key)
        merged[key] = (
            merge(inner, value) if isinstance(value, dict) and isinstance(inner, dict) else value
        )
    return merged


class Over(dict[str, Any]):
    """Values laid over config.yaml: those of the configuration files `names`, and over them those of --config."""

    def __init__(self, values: Fields, names: Sequence[str]) -> None:
        super().__init__(values)
        self.names = names


def laid_over(names: Sequence[str], words: Sequence[str]) -> Over:
    """Merge configuration files, of which later ones win, and over them words ``KEY=VALUE``.

    Raises UserError that names the file and the line, or the word.
    """
    said = [*map(yaml_files.read, names)]
    for word in words:
        key, given, text = word.partition("=")
        if not given:
            raise UserError(
                f"--config: {word[:60]!r} is not KEY=VALUE; put the whole of KEY=VALUE in quotes if it has spaces"
            )
        said.append({key: yaml_files.parse(f"--config {key}", text)})
    return Over(functools.reduce(merge, said, {}), names)


def _source(path: str, over: Fields) -> Callable[[str], str]:
    """Return the function that names the file, or --config, from which the value of a key comes."""
    if not isinstance(over, Over):
        return lambda key: path
    names = [path, *over.names]
    files = [*map(yaml_files.read, names)]
    merged, whole = functools.reduce(merge, files), merge(files[0], over)

    def source(key: str) -> str:
        depth, value = _walk(whole, key.split("."))
        parts = key.split(".")[:depth]
        if not parts:
            return path
        if _walk(merged, parts) != (depth, value):
            return "--config"
        return next(
            name
            for name, data in zip(names[::-1], files[::-1], strict=True)
            if _walk(data, parts)[0] == depth
        )

    return source


def _walk(data: Any, parts: Sequence[str]) -> tuple[int, Any]:
    """``(depth, value)``: how many parts of a key exist in nested mappings and lists, and the value of the last."""
    for depth, part in enumerate(parts):
        if isinstance(data, dict) and part in data:
            data = data[part]
        elif isinstance(data, list) and part.isdecimal() and int(part) < len(data):
            data = data[int(part)]
        else:
            return depth, data
    return len(parts), data


def read(over: Fields | None = None, path: str = FILE) -> Fields:
    """The checked config: the page at `path`, and `over` laid over it.

    over: values of some keys, or all of the page with such values in it, as Snakemake's ``config`` is.  A number or
    true may stand in it as text, as words of the command line do.
    Layers come out as ``[{name: options}, …]``, workloads as ``{name: {parameter: value}}``; ``source`` is the function
    that names the file of a key.
    Raises UserError with one line for each mistake: file, key, what is wrong, what would be right.
    """
    if not os.path.exists(path):
        remedy = f"go to the folder of a project, such as {paths.PROJECT}"
        if os.path.samefile(paths.PROJECT, os.getcwd()):
            remedy = f"`git checkout {path}` brings it back"
        raise UserError(f"{path}: missing in {os.getcwd()}: {remedy}")
    schema = validation.schema("config")
    page, over = yaml_files.read(path), over or {}
    source = _source(path, over)
    data = validation.converted(schema, merge(page, over))
    # Of a folder without a declaration, `workload.load` says what is missing.
    chosen = data.get("workloads") if isinstance(data.get("workloads"), dict) else {}
    present = [name for name in chosen if os.path.lexists(f"{workload.FOLDER}/{name}")]
    others = {"declared": [*workload.known(), *present], "kinds": registry.names()}
    found = validation.findings(schema, data, names=others)
    if found and validation.findings(schema, data):
        validation.complain(source, found)
    stacks = {
        name: [_normal(layer) for layer in entry["layers"]]
        for name, entry in data["environments"].items()
    }
    data["environments"] = {
        name: {**entry, "label": entry.get("label", name), "layers": stacks[name]}
        for name, entry in data["environments"].items()
    }
    declared = [functools.partial(workload.load, name) for name in present]
    validation.together(
        lambda: validation.complain(source, [*found, *_cross_check(data)]), *declared
    )
    # Of the whole page: an experiment that is narrowed down has the same image.
    image = {**data.get("image", {}), "workloads": list(data["workloads"])}
    only = data.pop("only", {})
    for section in ("environments", "workloads"):
        wanted = only.get(section, data[section])
        data[section] = {name: entry for name, entry in data[section].items() if name in wanted}
    return {
        **_completed(schema.schema, data),
        "source": source,
        "image": image,
        # Where blocks are added, so are those that are measured again.
        "quiet": quiet(data.get("quiet", {}), again=isinstance(data["repetitions"], dict)),
        "workloads": {
            name: workload.given(name, chosen or {}) for name, chosen in data["workloads"].items()
        },
    }


def _completed(said: Fields, given: Fields) -> Fields:
    """A mapping of the page, with what its schema has for keys that are left out."""
    return {
        key: entry["default"] for key, entry in said["properties"].items() if "default" in entry
    } | given


def quiet(given: Fields, again: bool = False) -> Quiet:
    """``{action, thresholds}`` as the plan holds them; shares and bytes are numbers, None: not judged.

    given: of the page.  again: whether what was disturbed is measured again, where nothing is said of it.
    """
    said = validation.schema("config").schema["properties"]["quiet"]
    chosen = _completed(said, ({"action": "retry"} if again else {}) | given)
    return {
        "action": chosen.pop("action"),
        "thresholds": {key: amount(value) for key, value in chosen.items()},
    }


def _normal(layer: str | Fields) -> Fields:
    """A layer as ``{name: options}``."""
    ((name, options),) = ({layer: {}} if isinstance(layer, str) else layer).items()
    options = {} if options is None else options
    if name not in registry.names():
        return {name: options}
    return {
        name: validation.converted(
            validation.validator(registry.kind(name).options_schema), options
        )
    }


def _cross_check(data: Fields) -> Iterator[Finding]:
    """What a schema cannot say: which layers stand on which, and what goes together."""
    asked = data["repetitions"]
    if isinstance(asked, dict) and asked["max"] < asked["min"]:
        yield "repetitions.max", f"is {asked['max']}; must be at least min, {asked['min']}"
    labels: dict[str, str] = {}
    for name, entry in data["environments"].items():
        where = f"environments.{name}"
        yield from _check_stack(f"{where}.layers", entry["layers"], data)
        shown = " ".join(entry["label"].split())
        if shown in labels:
            yield f"{where}.label", f"is also that of {labels[shown]}; each needs its own"
        labels[shown] = name
        if "{vm}" in shown and not any("vm" in layer for layer in entry["layers"]):
            yield (
                f"{where}.label",
                f"is '{shown}', and no layer is a virtual machine; must be without {{vm}}",
            )
    yield from _check_paths(data)
    for name, chosen in data["workloads"].items():
        # Mistakes in the workload's own file are reported of that file.
        with contextlib.suppress(UserError):
            yield from workload.check_overrides(name, chosen or {})


def _check_paths(data: Fields) -> Iterator[Finding]:
    """Yield the keys that name a file or a folder of this host which is not there."""
    client = data.get("client")
    settings = client.get("ssh_config") if isinstance(client, dict) else None
    if settings and (os.path.isdir(settings) or not os.access(settings, os.R_OK)):
        yield "client.ssh_config", f"is {settings!r}; there is no such file to read"
    local = re.fullmatch("(?:file|copy):/*(/.*)", data.get("image", {}).get("mirror", ""))
    folders = {"image.mirror": local and local[1], "published_raw": data.get("published_raw")}
    for key, folder in folders.items():
        if folder and not os.path.isdir(folder):
            yield key, f"is {folder!r}; there is no such folder"


def _check_stack(key: str, stack: Stack, data: Fields) -> Iterator[Finding]:
    below = "host"
    for number, layer in enumerate(stack):
        ((name, options),) = layer.items()
        if name not in registry.names():
            continue
        where, cls = f"{key}.{number}", registry.kind(name)
        names = data.get("vm", {"profiles": {"default": {}}})
        wrong = validation.findings(
            validation.validator(cls.options_schema), options, f"{where}.{name}", names
        )
        yield from wrong or [
            (f"{where}.{name}.{at}", words) for at, words in cls.check(options, below)
        ]
        if name == "host" and number > 0:
            yield where, "'host' is the bottom of a stack; it stands first or is left out"
        elif name != "host" and below not in cls.stands_on:
            yield (
                where,
                f"'{name}' cannot stand on '{below}'; it stands on {' or '.join(cls.stands_on)}",
            )
        below = name


def _check_memory(made: Plan) -> Iterator[Finding]:
    """Machines that are measured here, with more memory than the host or less than a load takes."""
    needed: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for environment, load in sorted({cell[:2] for cell in blocks.Order(made).places}):
        for layer in made["environments"][environment]["layers"]:
            memory = layer.get("vm", {}).get("settings", {}).get("memory", "host")
            if memory != "host":
                takes = plan.of_environment(made, environment, load).get("memory_bytes", 0)
                needed.setdefault((layer["vm"]["profile"], memory), []).append((takes, load))
    for (name, memory), loads in needed.items():
        there, (takes, load) = made["machine"]["memory_bytes"], max(loads)
        if size(memory) > there:
            words = f"is {memory}; this machine has {there / GIB:.1f} GiB: choose less"
            yield f"vm.profiles.{name}.memory", words
        elif takes > MOST_OF_MEMORY * size(memory):
            least = math.ceil(takes / MOST_OF_MEMORY / GIB)
            words = f"is {memory}; {load} takes {takes / GIB:.1f} GiB of it"
            yield f"vm.profiles.{name}.memory", f"{words}: choose {least}GiB or more"


def experiment(config: Fields, machine: HostFacts) -> Plan:
    """The object of results/plan.json for a checked config on this machine (docs/files.md).

    machine: as of :func:`strata.host.capacity.facts`.
    Raises UserError where no environment at all can be measured here, or where something does not fit.
    """
    try:
        return _experiment(config, machine)
    except UserError as error:
        # Rules of workloads, images and hosts know the key, and not the file that has it.
        named = re.sub(
            rf"(?m)^{FILE}: ([^ :]+): ",
            lambda key: f"{config['source'](key[1])}: {key[1]}: ",
            str(error),
        )
        raise type(error)(named) from None


def _experiment(config: Fields, machine: HostFacts) -> Plan:
    workloads: dict[str, Fields] = {}

    def planned(name: str) -> None:
        workloads[name] = workload.planned(
            name, config["workloads"][name], config["scale"], machine
        )

    validation.together(*(functools.partial(planned, name) for name in config["workloads"]))
    config = {**config, "takes": max(entry.get("memory_bytes", 0) for entry in workloads.values())}
    environments = {
        name: _planned(entry, config, machine) for name, entry in config["environments"].items()
    }
    if not any(entry["available"] for entry in environments.values()):
        reasons = "; ".join(f"{name}: {entry['reason']}" for name, entry in environments.items())
        raise UserError(f"{FILE}: environments: none can be measured on this machine ({reasons})")
    _add_beside(config, machine, environments, workloads)
    turns = 1 if config["order"] == "sequential" else _turns(environments)
    validation.complain(FILE, [*plan.wrong_ports(workloads, turns)])
    described = recipe.describe(config["image"])
    # What an experiment that is narrowed down does not have is left out by nobody.
    left_out: Fields = {
        "not_emulated": [name for name in config.get("not_emulated", []) if name in workloads]
    }
    of_each = {
        name: [load for load in config.get("leave_out", {}).get(name, []) if load in workloads]
        for name in environments
    }
    left_out["leave_out"] = {name: loads for name, loads in of_each.items() if loads}
    there = [name for name in config["environments"] if environments[name]["available"]]
    nowhere = [load for load in workloads if all(load in of_each[name] for name in there)]
    words = "every environment that can be measured here leaves it out: measure it in one, or drop the workload"
    validation.complain(FILE, [(f"leave_out.{load}", words) for load in nowhere])
    made: Any = {
        "format": plan.FORMAT,
        **{key: config[key] for key in ("scale", "seed", "order", "quiet", "vm")},
        **_repetitions(config),
        "client": client.settle(config["client"]),
        "image": {
            **{key: value for key, value in described.items() if key != "base"},
            "settings": config["image"],
        },
        "machine": machine,
        "environments": environments,
        **{key: value for key, value in left_out.items() if value},
        **({"spread": True} if config.get("spread") else {}),
        "workloads": workloads,
    }
    validation.complain(FILE, [*_check_memory(made)])
    return cast(Plan, made)


def _turns(environments: Fields) -> int:
    """How many environments may be up together, each of which stands idle while another is measured."""
    able = [
        entry
        for entry in environments.values()
        if entry["available"] and not blocks.is_apart(entry)
    ]
    return sum(
        all(registry.kind(kind).stands_idle for one in entry["layers"] for kind in one)
        for entry in able
    )


def _add_beside(
    config: Fields, machine: HostFacts, environments: Fields, workloads: Fields
) -> None:
    """Where machines are emulated: the workloads' sizes there, and native at these, which they are compared with."""
    reference = environments.get(blocks.REFERENCE)
    emulated = any(one["emulated"] and one["available"] for one in environments.values())
    if config["scale"] == blocks.SMALL or not emulated:
        return
    for name, entry in workloads.items():
        entry["small"] = workload.small(name, config["workloads"][name], machine)
    if reference is not None:
        environments[blocks.BESIDE] = {
            **reference,
            "label": f"{reference['label']}, tiny sizes",
            "beside": True,
        }


def _planned(entry: Fields, config: Fields, machine: HostFacts) -> Fields:
    """An environment as the plan holds it."""
    reason: str | None = None
    stack: Stack = []
    told: list[Fields] = []
    daemons: list[str] = []
    described: Fields = {}
    below = "host"
    for given in entry["layers"]:
        ((kind, options),) = given.items()
        layer = registry.kind(kind)
        settled = layer.found(layer.settle(options, config), below)
        reason = reason or layer.unavailable() or layer.refusal(settled, below, machine)
        machine = layer.grants(settled, machine)
        below = kind
        stack.append({kind: settled})
        described |= layer.describe(settled)
        told.append({"kind": layer.kind, "title": layer.title, **layer.labels(settled)})
        daemons += layer.daemons
    emulated = described.get("accelerator") == "tcg"
    if emulated and not config["emulation"]:
        reason = (
            reason or "KVM runs no guest here, and emulation is switched off (emulation: false)"
        )
    label = entry["label"].replace("{vm}", described.pop("shown", "VM"))
    return {
        "label": f"{label} ({described['otherwise']})" if "otherwise" in described else label,
        "layers": stack,
        "available": reason is None,
        "reason": reason,
        "told": told,
        "daemons": daemons,
        **described,
        "emulated": emulated,
    }


def _repetitions(config: Fields) -> Fields:
    """How many blocks there are, and what more of them depends on: ``repetitions`` and ``precision`` of the plan."""
    asked = config["repetitions"]
    retries = (
        blocks.RETRIES
        if config["quiet"]["action"] == "retry" and config["order"] != "sequential"
        else 0
    )
    if isinstance(asked, dict):
        precision = {
            **asked,
            "target": amount(asked["target"]),
            "budget": amount(asked.get("budget")),
        }
    elif retries:
        precision = {"min": asked, "max": asked * (1 + retries), "target": None, "budget": None}
    else:
        return {"repetitions": asked}
    return {"repetitions": precision["max"], "precision": {**precision, "retries": retries}}
