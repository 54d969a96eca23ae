"""Find layers by their names, and build the stacks of layers that are environments."""

import importlib
import os
from collections.abc import Iterable, Sequence

from strata.environments.common.layer import Layer
from strata.host.context import Context
from strata.util.data_types import Fields, Stack

# The folder strata/environments, where each file is a layer.
FOLDER = os.path.dirname(os.path.dirname(__file__))


def list_layer_names() -> list[str]:
    """Return the names of all layers, as written in config.yaml, sorted.

    Each file in the folder strata/environments is a layer, except those that begin with "_".  A
    layer is added by adding a file there.
    """
    file_names = [name for name in os.listdir(FOLDER) if name.endswith(".py")]
    return sorted(name.removesuffix(".py") for name in file_names if not name.startswith("_"))


def load_layer_class(name: str) -> type[Layer]:
    """Import the module of a layer and return its class, which must be named ``Layer``.

    name: the layer's name.
    Raises ModuleNotFoundError if :func:`list_layer_names` does not have the name.
    """
    module = importlib.import_module(f"strata.environments.{name}")
    imported: type[Layer] = module.Layer
    return imported


def collect_image_forms(names: Iterable[str]) -> set[str]:
    """Return the forms of the image that layers run, such as "tree", "container" and "disk".

    names: the names of the layers.
    The set is empty if no layer needs an image.  :attr:`Layer.image_forms` describes the values.
    """
    return {form for name in names for form in load_layer_class(name).image_forms}


def collect_declared_differences(top: Layer) -> dict[str, str]:
    """Return how a stack's layers declare that programs start in another state than natively.

    top: the uppermost layer of the stack.
    Returns the name of each value in the starting state → why it differs: the layer and its reason,
    the option that sets the value, or the user of an image, for example
    ``{"seccomp": "option seccomp: unconfined"}``.  An option's reason replaces a layer's.  It must
    begin with "option ": strata/testbed/lifecycle.py finds options by that.
    The layers must be up: some of them observe what their options set.
    """
    causes: dict[str, str] = {}
    if user := top.context.user:
        value_names: Sequence[str] = ("user", "group", "groups", "capabilities")
        causes = dict.fromkeys(value_names, f"image: USER {user['name']}")
    for layer in top.iterate_layers():
        # The highest layer's reason counts.
        for name, reason in layer.differences.items():
            causes.setdefault(name, f"{layer.name}: {reason}")
        for option, value_names in layer.option_differences.items():
            if option in layer.options:
                causes |= dict.fromkeys(value_names, f"option {option}: {layer.options[option]}")
        causes |= layer.observed_differences
    return causes


def build_stack(layers: Stack, context: Context) -> list[Layer]:
    """Create the layers of a stack, none of them up, and return them from bottom to top.

    layers: the environment's layers from bottom to top, each ``{name: resolved options}``.
    context: the context that all layers share.
    The first layer returned is the host, and the last is the system under test.  They must be
    brought up in this order.
    """
    bottom = load_layer_class("host")(None, {}, context)
    stack = [bottom]
    for layer in layers:
        # Each layer is a mapping with a single key, its name.
        ((name, options),) = layer.items()
        if name != "host":
            stack.append(load_layer_class(name)(stack[-1], options, context))
    return stack


def set_machine_start_method(stack: Stack, start_method: str) -> list[Fields]:
    """Return a copy of a stack in which the start method of virtual machines is set.

    stack: layers from bottom to top, each ``{name: resolved options}``.
    start_method: with ``booted``, every machine boots; with ``restored``, or any other value, the
    copy is equal to the stack.
    """
    copied_stack = []
    for layer in stack:
        # Each layer is a mapping with a single key, its name.
        ((name, options),) = layer.items()
        # Only layers of virtual machines have the option `fresh`.
        if start_method == "booted" and "fresh" in options:
            options = {**options, "fresh": "boot"}
        copied_stack.append({name: options})
    return copied_stack
