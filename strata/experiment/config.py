"""Read and check the configuration: config.yaml, and the values that replace its own."""

import contextlib
import copy
import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence

from strata.environments.common import registry
from strata.experiment import workload
from strata.util import paths, validation, yaml_files
from strata.util.data_types import Any, Fields, Interference, Stack
from strata.util.errors import UserError
from strata.util.units import parse_quantity
from strata.util.validation import Finding, describe_value

FILE = "config.yaml"
# Keys that describe the experiment, and that the plan keeps as they are.
DESCRIPTIONS = ("title", "question", "about", "claims")


def merge_mappings(base: Fields, overrides: Fields) -> Fields:
    """Return a copy of `base` in which values of `overrides` replace its values, at any depth.

    Only mappings are merged; a list replaces the whole list.  Neither argument is changed, but the
    result shares nested values with both.
    Snakemake merges the values of --config in the same way.
    """
    merged = copy.copy(base)
    for key, value in overrides.items():
        base_value = merged.get(key)
        if isinstance(value, dict) and isinstance(base_value, dict):
            merged[key] = merge_mappings(base_value, value)
        else:
            merged[key] = value
    return merged


def read_nearest_config() -> tuple[str, Fields]:
    """Return the path and the unchecked content of the configuration file.

    The file in the working directory is read, or the project's if there is none.  Raises UserError
    if the file is not a mapping in YAML.
    """
    path = FILE if os.path.exists(FILE) else os.path.join(paths.PROJECT, FILE)
    return path, yaml_files.read_yaml_mapping(path)


class Overrides(dict[str, Any]):
    """Values that replace values of config.yaml, with the configuration files that they come from.

    files: the paths of these files; later files win.  Values of --config, which win over all files,
    come from none of them.
    options: the options of Snakemake that give the same values, as words of a command line; empty
    unless a command of Strata read them.
    """

    def __init__(self, values: Fields, files: Sequence[str], options: Sequence[str] = ()) -> None:
        """Set the values, with the files and the options that they come from."""
        super().__init__(values)
        self.files = files
        self.options = options


def read_overrides(files: Sequence[str], assignments: Sequence[str]) -> Overrides:
    """Return configuration files and the values of --config, merged into one mapping.

    files: the paths of the files; later ones win.
    assignments: strings ``KEY=VALUE``, which win over the files; VALUE is YAML.
    Raises UserError that names the file and its line, or the assignment.
    """
    mappings: list[Fields] = [*map(yaml_files.read_yaml_mapping, files)]
    keys: set[str] = set()
    for assignment in assignments:
        key, value = _parse_assignment(assignment)
        if key in keys:
            raise UserError(f"--config: {key}: is given twice: keep one")
        keys.add(key)
        mappings.append({key: value})
    options: list[str] = []
    if files:
        options += ["--configfile", *files]
    if assignments:
        options += ["--config", *assignments]
    return Overrides(functools.reduce(merge_mappings, mappings, {}), files, options)


def _parse_assignment(assignment: str) -> tuple[str, Any]:
    """Return ``(key, value)`` of a string ``KEY=VALUE``, with the value parsed as YAML.

    Raises UserError if there is no equals sign, the key has points, or the value is not YAML.
    """
    key, equals, text = assignment.partition("=")
    # Messages show at most 60 characters of what the user wrote.
    if not equals:
        raise UserError(
            f"--config: {assignment[:60]!r} is not KEY=VALUE; put the whole of KEY=VALUE in quotes "
            "if it has spaces"
        )
    first_step, *inner_steps = key.split(".")
    if inner_steps:
        # a.b=1 should be written a={b: 1}.
        shown_value = text if len(text) < 60 else "VALUE"
        opening = "".join(f"{{{step}: " for step in inner_steps)
        nested = opening + shown_value + "}" * len(inner_steps)
        raise UserError(
            f"--config: {key}: a key has no points: write '{first_step}={nested}', in quotes"
        )
    return key, yaml_files.parse_yaml(f"--config {key}", text)


def _create_source_finder(path: str, overrides: Fields) -> Callable[[str], str]:
    """Return a function that maps a key to the file that sets it, or to "--config".

    The function takes a key with dots between its steps, such as ``vm.profiles.default``.
    path: the path of config.yaml.
    overrides: the values that replace values of config.yaml.  If they are a plain mapping, their
    files are not known, and the function always returns `path`.
    All files are read now; the function keeps their contents.
    """
    if not isinstance(overrides, Overrides):
        return lambda key: path
    names = [path, *overrides.files]
    contents = [*map(yaml_files.read_yaml_mapping, names)]
    values_of_files = functools.reduce(merge_mappings, contents)
    values = merge_mappings(contents[0], overrides)

    def find_source(key: str) -> str:
        """Return the path of the last file that sets a key, "--config", or `path` if none does."""
        depth, value = _resolve_key(values, key.split("."))
        steps = key.split(".")[:depth]
        if not steps:
            return path
        if _resolve_key(values_of_files, steps) != (depth, value):
            return "--config"
        # Later files win, so that the last one with the key set it.
        for name, content in zip(names[::-1], contents[::-1], strict=True):
            if _resolve_key(content, steps)[0] == depth:
                return name
        return path

    return find_source


def _resolve_key(value: Any, steps: Sequence[str]) -> tuple[int, Any]:
    """Follow the steps of a key through nested mappings and lists; return ``(depth, value)``.

    value: the outermost mapping or list.
    steps: the steps of the key; a step into a list is its index, a string of digits.
    depth: how many steps exist; the returned value is at the last of them.
    """
    for depth, step in enumerate(steps):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return depth, value
    return len(steps), value


def read_config(overrides: Fields | None = None, path: str = FILE) -> Fields:
    """Read the configuration file, apply replacing values, check the result and fill in defaults.

    overrides: values of some keys, or a whole configuration that contains these values, such as
    Snakemake's ``config``.  Numbers and booleans may be strings, as on the command line.
    path: the path of the configuration file.
    Returns the keys of config.yaml, with layers as ``[{name: options}, …]``, workloads as
    ``{name: {parameter: value}}``, and ``source``: the function that maps a key to its file.
    Raises UserError with one line for each mistake: its file, its key, and what is accepted.
    """
    if not os.path.exists(path):
        remedy = f"go to the folder of a project, such as {paths.PROJECT}"
        if os.path.samefile(paths.PROJECT, os.getcwd()):
            remedy = f"`git checkout {path}` brings it back"
        raise UserError(f"{path}: missing in {os.getcwd()}: {remedy}")
    schema = validation.load_schema("config")
    overrides = overrides or {}
    content = yaml_files.read_yaml_mapping(path)
    source = _create_source_finder(path, overrides)
    settings = validation.convert_text_values(schema, merge_mappings(content, overrides))
    _check_and_normalize_settings(settings, schema, source)
    image = {**settings.get("image", {}), "workloads": list(settings["workloads"])}
    if packages := _list_packages_of_layers(settings["environments"]):
        image["packages"] = [*image.get("packages", []), *packages]
    # This comes last, so that an experiment narrowed by `only` has the same image.
    only = settings.pop("only", {})
    for section in ("environments", "workloads"):
        selection = only.get(section, settings[section])
        settings[section] = {
            name: entry for name, entry in settings[section].items() if name in selection
        }
    return {
        **_add_defaults(schema.schema, settings),
        "source": source,
        "image": image,
        # Where the number of blocks is open, disturbed blocks are measured again.
        "interference": plan_interference(
            settings.get("interference", {}),
            retries_by_default=isinstance(settings["repetitions"], dict),
        ),
        "workloads": {
            name: workload.convert_overrides(name, parameters or {})
            for name, parameters in settings["workloads"].items()
        },
    }


def _check_and_normalize_settings(
    settings: Fields, schema: Any, source: Callable[[str], str]
) -> None:
    """Check the merged configuration and the workloads that it names, and complete environments.

    Changes each environment of `settings`: adds its label, and normalizes its layers.
    settings: the merged configuration, as the user wrote it.
    schema: the validator for schemas/config.schema.json.
    source: a function that maps a key to its file, from :func:`_create_source_finder`.
    Raises UserError with one line for each mistake.
    """
    workloads = settings.get("workloads")
    # For a folder without a declaration, `read_declaration` reports the missing file.
    names_with_folder = [
        name
        for name in (workloads if isinstance(workloads, dict) else {})
        if os.path.lexists(f"{workload.FOLDER}/{name}")
    ]
    # The keyword `known` of the schema refers to names by these keys.
    names = {
        "declared": [*workload.list_workloads(), *names_with_folder],
        "kinds": registry.list_layer_names(),
    }
    # Without `names` the second call leaves out unknown workloads and layers.
    mistakes = validation.find_schema_faults(schema, settings, names=names)
    # With wrong types or missing keys, no further check can read the settings: stop here.
    if mistakes and validation.find_schema_faults(schema, settings):
        validation.raise_for_findings(source, mistakes)
    for name, environment in settings["environments"].items():
        layers = [_normalize_layer(layer) for layer in environment["layers"]]
        label = environment.get("label", name)
        settings["environments"][name] = {**environment, "label": label, "layers": layers}
    validation.run_all_checks(
        lambda: validation.raise_for_findings(
            source, [*mistakes, *_list_config_mistakes(settings)]
        ),
        *(functools.partial(workload.read_declaration, name) for name in names_with_folder),
    )


def _list_packages_of_layers(environments: Fields) -> list[str]:
    """Return the sorted packages that the image holds for the layers of all environments.

    The hash of the image contains them (experiment/recipe.py).
    """
    packages: set[str] = set()
    for environment in environments.values():
        for layer in environment["layers"]:
            for name in layer:
                packages.update(registry.load_layer_class(name).image_packages)
    return sorted(packages)


def _add_defaults(schema: Fields, values: Fields) -> Fields:
    """Return a copy of a mapping with its schema's defaults for missing keys.

    schema: the JSON schema of the mapping.
    Only the first level gets defaults; those of nested keys in the schema are not read.
    """
    definitions = schema["properties"].items()
    defaults = {key: entry["default"] for key, entry in definitions if "default" in entry}
    return defaults | values


def plan_interference(
    interference_settings: Fields, retries_by_default: bool = False
) -> Interference:
    """Return the ``{action, thresholds}`` for interference, as the plan holds them.

    interference_settings: the value of `interference` in config.yaml.
    retries_by_default: whether disturbed blocks are measured again if the settings have no action.
    Thresholds are numbers: shares, bytes, degrees Celsius or seconds.  None means that a quantity
    is not judged.  strata/measure/interference.py reads the keys, and strata/results/decide.py
    repeats blocks that it flags.
    """
    schema = validation.load_schema("config").schema["properties"]["interference"]
    if retries_by_default:
        interference_settings = {"action": "retry", **interference_settings}
    values = _add_defaults(schema, interference_settings)
    action = values.pop("action")
    return {
        "action": action,
        "thresholds": {key: parse_quantity(value) for key, value in values.items()},
    }


def _normalize_layer(layer: str | Fields) -> Fields:
    """Return a layer as ``{name: options}``, with options converted to the types of their schema.

    layer: only the name, or a mapping of the name to its options, which may be None.
    The options of an unknown layer stay as they are: the schema reports its name.
    """
    mapping = {layer: {}} if isinstance(layer, str) else layer
    ((name, options),) = mapping.items()
    options = {} if options is None else options
    if name not in registry.list_layer_names():
        return {name: options}
    validator = validation.build_validator(registry.load_layer_class(name).options_schema)
    return {name: validation.convert_text_values(validator, options)}


def _list_config_mistakes(settings: Fields) -> Iterator[Finding]:
    """Yield the mistakes that the schema of config.yaml cannot express.

    settings: the merged configuration, which matches the schema.
    """
    limits = settings["repetitions"]
    if isinstance(limits, dict) and limits["max"] < limits["min"]:
        yield "repetitions.max", f"is {limits['max']}; must be at least min, {limits['min']}"
    # Label → the environment that has it.
    labels: dict[str, str] = {}
    for name, environment in settings["environments"].items():
        key = f"environments.{name}"
        yield from _list_stack_mistakes(f"{key}.layers", environment["layers"], settings)
        label = " ".join(environment["label"].split())
        if label in labels:
            yield f"{key}.label", f"is the label of {labels[label]} too; write another"
        labels[label] = name
        # The plan replaces {vm} by the name of the machine's kind.
        if "{vm}" in label and not any("vm" in layer for layer in environment["layers"]):
            yield (
                f"{key}.label",
                f"is '{label}', but no layer is a virtual machine; must not contain {{vm}}",
            )
    yield from _list_path_mistakes(settings)
    yield from _list_image_mistakes(settings.get("image", {}))
    for name, parameters in settings["workloads"].items():
        # Mistakes in the workload's own file are reported for that file.
        with contextlib.suppress(UserError):
            yield from workload.list_override_mistakes(name, parameters or {})


def _list_image_mistakes(image: Fields) -> Iterator[Finding]:
    """Yield a mistake for each key of `image` that contradicts the user's own image."""
    if "docker" not in image:
        return
    for key, value in image.items():
        # `distribution: host` is the default, so it contradicts nothing.
        if key != "docker" and (key, value) != ("distribution", "host"):
            yield f"image.{key}", f"is of the image that Strata builds; leave {key} or docker out"


def _list_path_mistakes(settings: Fields) -> Iterator[Finding]:
    """Yield a mistake for each key that names a missing file or folder of this host.

    settings: the merged configuration, which matches the schema.
    """
    # `client` is a mapping, or "namespace".
    client = settings.get("client")
    if isinstance(client, dict) and "ssh_config" in client:
        ssh_config = client["ssh_config"]
        if os.path.isdir(ssh_config) or not os.access(ssh_config, os.R_OK):
            problem = f"is {describe_value(ssh_config)}; must be a readable file"
            yield "client.ssh_config", problem
    # Key → the path of the folder that it names.
    folders: dict[str, str] = {}
    # A mirror on this host is a URL such as "file:/srv/mirror"; other mirrors are not checked.
    mirror = settings.get("image", {}).get("mirror", "")
    if match := re.fullmatch("(?:file|copy):/*(/.*)", mirror):
        folders["image.mirror"] = match[1]
    if settings.get("published_raw"):
        folders["published_raw"] = settings["published_raw"]
    for key, folder in folders.items():
        if not os.path.isdir(folder):
            yield key, f"is {describe_value(folder)}; there is no such folder"


def _list_stack_mistakes(key: str, stack: Stack, settings: Fields) -> Iterator[Finding]:
    """Yield the mistakes in the options and the order of an environment's layers.

    key: the key of the layers, for messages, such as ``environments.docker.layers``.
    stack: ``[{name: options}, …]`` from the lowest layer up; one of an unknown name is skipped,
    since the schema reports it.
    settings: the merged configuration, whose profiles of virtual machines options may name.
    Options are checked further only if they match their schema.
    """
    profiles = settings.get("vm", {"profiles": {"default": {}}})
    below = "host"
    for number, layer in enumerate(stack):
        ((name, options),) = layer.items()
        if name not in registry.list_layer_names():
            continue
        layer_key = f"{key}.{number}"
        layer_class = registry.load_layer_class(name)
        validator = validation.build_validator(layer_class.options_schema)
        mistakes = validation.find_schema_faults(
            validator, options, f"{layer_key}.{name}", profiles
        )
        if not mistakes:
            mistakes = [
                (f"{layer_key}.{name}.{option}", sentence)
                for option, sentence in layer_class.check_options(options, below)
            ]
        yield from mistakes
        if name == "host" and number > 0:
            yield layer_key, "'host' is the bottom of a stack: put it first, or leave it out"
        elif name != "host" and below not in layer_class.stands_on:
            lower = " or ".join(layer_class.stands_on)
            yield (
                layer_key,
                f"'{name}' cannot be on top of '{below}'; the layer below must be {lower}",
            )
        below = name
