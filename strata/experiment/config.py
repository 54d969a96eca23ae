"""The experiment on one page: read config.yaml, check it, and fill in what it leaves open."""

import contextlib
import copy
import functools
import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from strata import client, layers
from strata.base import checking
from strata.base.errors import UserError
from strata.experiment import figures, plan, published, quiet, recipe, sets, workload
from strata.vm import card, settings

FILE = "config.yaml"


def merge(base: dict, over: dict) -> dict:
    """`base` with the values of `over` laid over it, mapping by mapping (as Snakemake does with --config)."""
    merged = copy.copy(base)
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def typed(value: Any) -> Any:
    """The value of a word of the command line, as it would be in the file.

    Snakemake hands ``true`` and what is inside of a mapping over as text.
    """
    if isinstance(value, dict):
        return {key: typed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [typed(inner) for inner in value]
    if isinstance(value, str) and re.fullmatch(r"true|false|null|-?(0|[1-9][0-9]{0,39})(\.[0-9]{1,40})?", value):
        return json.loads(value)
    return value


def laid_over(pages: Sequence[str], words: dict) -> dict:
    """What further pages say, each laid over those before it, and over them the words of the command line.

    These pages are read as the experiment's own is: what is in quotes there is text.  Raises UserError.
    """
    found: dict = {}
    for page in pages:
        told = checking.read_yaml(page)
        checking.complain(page, checking.plain(told))
        found = merge(found, told)
    return merge(found, typed(words))


def read(over: dict | None = None, path: str = FILE) -> dict:
    """The checked config with `over` (such as Snakemake's --config) laid over the file.

    Layers come out as ``[{name: options}, …]``, workloads as ``{name: {parameter: value}}``.
    Raises UserError with one line for each mistake: file, key, what is wrong, what would be right.
    """
    checking.complain("--config", checking.plain(over or {}))
    data = merge(checking.read_yaml(path), over or {})
    found, declared = checking.plain(data), {}
    if not found:
        found, rest = checking.examined(checking.schema("config"), data)
        declared = rest.get("workloads", {})
        found += _cross_check(rest)
    known = [name for name in declared if name in workload.known()]
    checking.together(
        lambda: checking.complain(path, found), *(functools.partial(workload.load, name) for name in known)
    )
    # Of the whole page: an experiment that is narrowed down has the same image.
    image = {**data.get("image", {}), "workloads": list(data["workloads"])}
    data = _narrowed(data)
    return {
        "client": "namespace",
        "order": "blocks",
        "partial": False,
        "published_raw": None,
        "vm": {"profiles": {"default": {}}},
        "archive_image": False,
        **data,
        "image": image,
        # Where sets are added, so are those that are measured again.
        "quiet": quiet.complete(data.get("quiet"), again=isinstance(data["repetitions"], dict)),
        "environments": {
            name: {**entry, "label": entry.get("label", name), "layers": [_normal(layer) for layer in entry["layers"]]}
            for name, entry in data["environments"].items()
        },
        "workloads": {name: overrides or {} for name, overrides in data["workloads"].items()},
    }


def _narrowed(data: dict) -> dict:
    """The page with those environments and workloads alone that `only` names."""
    only = data.get("only", {})
    narrowed = {
        section: {name: entry for name, entry in data[section].items() if name in only.get(section, data[section])}
        for section in ("environments", "workloads")
    }
    return {**{key: value for key, value in data.items() if key != "only"}, **narrowed}


def percent(text: str) -> float:
    """The share that a text such as ``5%`` means."""
    return float(text.removesuffix("%")) / 100


def seconds(text: str) -> float:
    """The seconds that a text such as ``25min`` means."""
    number, unit = re.fullmatch(r"([0-9.]+)(s|min|h)", text).groups()  # type: ignore[union-attr]
    return float(number) * {"s": 1, "min": 60, "h": 3600}[unit]


def _normal(layer: str | dict) -> dict:
    """A layer as ``{name: options}``."""
    return {layer: {}} if isinstance(layer, str) else {name: options or {} for name, options in layer.items()}


def _cross_check(data: dict) -> list[tuple[str, str]]:
    """What a schema cannot say: which layers and workloads there are, and what goes together."""
    found = []
    environments = data.get("environments", {})
    for name, entry in environments.items():
        found += _check_stack(f"environments.{name}.layers", entry.get("layers", []), data)
    for section, names in data.get("only", {}).items():
        for number, name in enumerate(names):
            if section in data and name not in data[section]:
                hint = checking.nearest(name, list(data[section]))
                found.append((f"only.{section}.{number}", f"'{name}' is none of {section}; {hint}"))
    for number, name in enumerate(data.get("not_emulated", [])):
        if name not in data.get("workloads", {}):
            hint = checking.nearest(name, list(data.get("workloads", {})))
            found.append((f"not_emulated.{number}", f"'{name}' is none of workloads; {hint}"))
    if "max" in environments.get(sets.REFERENCE, {}):
        found.append((f"environments.{sets.REFERENCE}.max", "all others are compared with it; must be left out"))
    repetitions = data.get("repetitions")
    if isinstance(repetitions, dict):
        least, most, target, budget = (repetitions.get(key) for key in ("min", "max", "target", "budget"))
        if least is not None and most is not None and most < least:
            found.append(("repetitions.max", f"is {most}; must be at least min, {least}"))
        if target is not None and not 0 < percent(target) <= 10:
            wrong = target if len(target) < 20 else checking.describe(target)
            found.append(("repetitions.target", f"is {wrong}; must be more than 0%, and at most 1000%"))
        if budget is not None and not 0 < seconds(budget) <= 30 * 24 * 3600:
            wrong = budget if len(budget) < 20 else checking.describe(budget)
            found.append(("repetitions.budget", f"is {wrong}; must be more than 0s, and at most 720h"))
        if data.get("order") == "sequential":
            found.append(("order", "is sequential, which needs a fixed number of repetitions; must be blocks"))
    steal = data.get("quiet", {}).get("steal")
    if steal is not None and percent(steal) > 1:
        found.append(("quiet.steal", f"is {steal}; must be at most 100%"))
    found += _check_profiles(data)
    labels: dict[str, str] = {}
    for name, entry in environments.items():
        label = entry.get("label", name)
        # What looks alike is alike.
        shown = " ".join(unicodedata.normalize("NFKC", label).split())
        if not shown:
            found.append((f"environments.{name}.label", "is blank; must say something"))
        elif shown in labels:
            found.append(
                (f"environments.{name}.label", f"'{label}' is also that of {labels[shown]}; each needs its own")
            )
        labels[shown] = name
    if "published_raw" in data:
        complaint = published.complaint(data["published_raw"])
        found += [("published_raw", complaint)] if complaint else []
    known = workload.known()
    planned = {}
    for name, overrides in data.get("workloads", {}).items():
        if name not in known:
            found.append((f"workloads.{name}", f"there is no folder workloads/{name}; {checking.nearest(name, known)}"))
            continue
        # What is wrong with the workload's own file is told of that.
        with contextlib.suppress(UserError):
            planned[name] = workload.load(name)
            found += workload.check_overrides(name, overrides or {})
    found += [(f"workloads.{name}", wrong) for name, wrong in figures.clashes(planned)]
    return found


def _check_profiles(data: dict) -> list[tuple[str, str]]:
    """The profiles of virtual machines."""
    found = []
    if "vm" in data:
        schema = checking.schema("vm")
        found = checking.findings(schema, data["vm"], "vm")
        for name, profile in checking.fitting(schema, data["vm"]).get("profiles", {}).items():
            found += _check_memory(f"vm.profiles.{name}.memory", (profile or {}).get("memory", "host"))
            found += [(f"vm.profiles.{name}.{key}", words) for key, words in card.complaints(profile or {})]
    return found


def _check_memory(key: str, memory: str | dict) -> list[tuple[str, str]]:
    """That a machine can boot in the memory of its profile."""
    if isinstance(memory, dict):
        return [finding for scale, text in memory.items() for finding in _check_memory(f"{key}.{scale}", text)]
    if memory == "host" or settings.size(memory) >= settings.LEAST_MEMORY:
        return []
    return [(key, f"is {memory}; must be at least {settings.LEAST_MEMORY // settings.MIB}MiB, in which a system boots")]


def _check_room(config: dict, machine: dict) -> None:
    """That the host has the memory that the machines of the experiment ask for.  Raises UserError."""
    found = []
    for entry in config["environments"].values():
        for layer in entry["layers"]:
            ((kind, options),) = layer.items()
            if layers.layer_class(kind).kind != "machine":
                continue
            name = options.get("profile", "default")
            memory = settings.complete(config["vm"]["profiles"][name], config["scale"])["memory"]
            if memory != "host" and settings.size(memory) > machine["memory_bytes"]:
                there = f"this machine has {machine['memory_bytes'] / settings.GIB:.1f} GiB: choose less"
                found.append((f"vm.profiles.{name}.memory", f"is {memory}; {there}"))
    checking.complain(FILE, found)


def _check_limits(config: dict, workloads: dict) -> None:
    """That what the workloads of a plan hold fits in the memory to which layers are bound.  Raises UserError."""
    found = []
    for name, entry in config["environments"].items():
        for number, layer in enumerate(entry["layers"]):
            ((kind, options),) = layer.items()
            most = layers.layer_class(kind).memory(options)
            for work, planned in workloads.items():
                for key, needs in workload.memory_needed(work, planned["parameters"]):
                    if most is not None and needs > 0.9 * most:
                        wants = f"{work} ({key}: {planned['parameters'][key]}) needs {needs / settings.MIB:,.0f} MiB"
                        where = f"environments.{name}.layers.{number}.{kind}.memory"
                        found.append(
                            (where, f"is {options['memory']}, and {wants}: give more, or choose a smaller value")
                        )
    checking.complain(FILE, found)


def _check_stack(key: str, stack: list, data: dict) -> list[tuple[str, str]]:
    below = "host"
    found = []
    for number, layer in enumerate(stack):
        where = f"{key}.{number}"
        if not (isinstance(layer, str) or (isinstance(layer, dict) and len(layer) == 1)):
            shape = "must be the name of a layer, or one name with its options"
            found.append((where, f"is {checking.describe(layer)}; {shape}"))
            continue
        ((name, options),) = _normal(layer).items() if isinstance(layer, str) else layer.items()
        if name not in layers.LAYERS:
            found.append((where, f"'{name}' is no layer; {checking.nearest(str(name), list(layers.LAYERS))}"))
            continue
        cls = layers.layer_class(name)
        options = {} if options is None else options
        wrong = checking.findings(checking.Validator(cls.options_schema), options, f"{where}.{name}")
        if not wrong:
            wrong = [(f"{where}.{name}.{at}", words) for at, words in cls.check(options, data, below)]
        found += wrong
        if name == "host" and number > 0:
            found.append((where, "'host' is the bottom of a stack; it stands first or is left out"))
        elif name != "host" and below not in cls.stands_on:
            found.append((where, f"'{name}' cannot stand on '{below}'; it stands on {' or '.join(cls.stands_on)}"))
        below = name
    return found


def experiment(config: dict, machine: dict) -> dict:
    """The object of results/plan.json for a checked config on this machine (docs/contracts.md).

    Raises UserError where no environment at all can be measured here, or where something does not fit.
    """
    sized = functools.partial(workload.resolve, scale=config["scale"], machine=machine)
    checking.together(
        lambda: _check_room(config, machine),
        *(functools.partial(sized, name, overrides) for name, overrides in config["workloads"].items()),
    )
    environments = {}
    for name, entry in config["environments"].items():
        reason: str | None = None
        stack: list[dict] = []
        described: dict = {}
        told: list[dict] = []
        daemons: list[str] = []
        doubtful = False
        below = "host"
        for layer in entry["layers"]:
            ((kind, options),) = layer.items()
            cls = layers.layer_class(kind)
            settled = cls.settle(options, config)
            reason = reason or cls.unavailable() or cls.refusal(settled, below, machine)
            below = kind
            stack.append({kind: settled})
            described |= cls.describe(settled)
            told.append({"kind": cls.kind, "title": cls.title, **cls.told(settled)})
            daemons += cls.daemons
            doubtful = doubtful or cls.doubtful(settled)
        label = entry["label"].replace("{vm}", described.pop("shown", "VM"))
        environments[name] = {
            "label": label,
            "layers": stack,
            "available": reason is None,
            "reason": reason,
            "told": told,
            "daemons": daemons,
            **described,
            "emulated": described.get("accelerator") == "tcg",
            **({"doubtful": True} if doubtful else {}),
            **({"max": entry["max"]} if "max" in entry else {}),
        }
    if not any(entry["available"] for entry in environments.values()):
        reasons = "; ".join(f"{name}: {entry['reason']}" for name, entry in environments.items())
        raise UserError(f"config.yaml: environments: none can be measured on this machine ({reasons})")
    workloads = {}
    for name, overrides in config["workloads"].items():
        declared = workload.load(name)
        parameters, notes = sized(name, overrides)
        workloads[name] = {
            "title": declared["title"],
            "about": declared["about"],
            "metrics": declared["metrics"],
            "parameters": parameters,
            "notes": notes,
            "warmup": declared["warmup"]["about"],
            "cell": workload.cell(name, config["scale"]),
            # What a workload does not declare is no key, so that the analysis takes its own choice.
            **{key: declared[key] for key in ("question", "figures", "headline", "storage") if key in declared},
        }
    _check_limits(config, workloads)
    plan.check_ports(workloads)
    described = recipe.describe(config["image"])
    left_out = [name for name in config.get("not_emulated", []) if name in workloads]
    return {
        "format": plan.FORMAT,
        "scale": config["scale"],
        "seed": config["seed"],
        "order": config["order"],
        **_repetitions(config, _most_sets(environments)),
        "client": client.settle(config["client"]),
        "quiet": config["quiet"],
        "image": {
            key: described[key] for key in ("recipe", "distribution", "release", "workloads") if key in described
        },
        "vm": config["vm"],
        "machine": machine,
        "environments": environments,
        **({"not_emulated": left_out} if left_out else {}),
        "workloads": workloads,
    }


def _most_sets(environments: dict) -> int:
    """After how many sets there is nothing left to compare with native, since all else has its largest number."""
    compared = [
        entry.get("max", sets.MOST)
        for name, entry in environments.items()
        if entry["available"] and not entry["emulated"] and name != sets.REFERENCE
    ]
    return max(compared, default=sets.MOST)


def _repetitions(config: dict, most: int) -> dict:
    """How many sets there are, and what more of them depends on: ``repetitions`` and ``precision`` of the plan."""
    asked = config["repetitions"]
    if isinstance(asked, dict):
        asked = {**asked, "max": min(asked["max"], max(most, asked["min"]))}
    else:
        asked = min(asked, most)
    retries = sets.RETRIES if config["quiet"]["action"] == "retry" and config["order"] != "sequential" else 0
    if isinstance(asked, dict):
        budget = seconds(asked["budget"]) if asked.get("budget") else None
        given = {"min": asked["min"], "max": asked["max"], "target": percent(asked["target"]), "budget": budget}
        claims = {"claims": True} if asked.get("claims") else {}
        return {"repetitions": asked["max"], "precision": {**given, **claims, "retries": retries}}
    if retries == 0:
        return {"repetitions": asked}
    most = asked * (1 + retries)
    given = {"min": asked, "max": most, "target": None, "budget": None}
    return {"repetitions": most, "precision": {**given, "retries": retries}}
