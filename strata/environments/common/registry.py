"""The layers by name, and the stacks that environments make of them."""

import importlib
import os
from collections.abc import Iterable

from strata.environments.common.layer import Layer
from strata.host.context import Context
from strata.util.data_types import Fields, Stack

# Each file in it is a layer.
FOLDER = os.path.dirname(os.path.dirname(__file__))


def layer_names() -> list[str]:
    """Return the names of all layers, as in config.yaml."""
    return sorted(
        name[:-3] for name in os.listdir(FOLDER) if name.endswith(".py") and name[0] != "_"
    )


def layer_class(name: str) -> type[Layer]:
    """Return the class of the layer with this name."""
    layer: type[Layer] = importlib.import_module(f"strata.environments.{name}").Layer
    return layer


def image_forms(names: Iterable[str]) -> set[str]:
    """Return the forms of the image that layers of these names run."""
    return {form for name in names for form in layer_class(name).image_forms}


def declared_differences(top: Layer) -> dict[str, str]:
    """Return how a stack declares that programs start in another state than natively.

    Gives the name of a value in that state → its layer and reason, or the option that sets it.
    """
    declared: dict[str, str] = {}
    for layer in top.stack():
        for name, reason in layer.differences.items():
            declared.setdefault(name, f"{layer.name}: {reason}")
        for option, set_values in layer.option_differences.items():
            if layer.options.get(option) not in (None, ""):
                declared |= dict.fromkeys(set_values, f"option {option}: {layer.options[option]}")
    return declared


def build_stack(layers: Stack, context: Context) -> list[Layer]:
    """Return the layers of a stack, none of them up, the host at the bottom.

    The last is the system under test.
    """
    bottom = layer_class("host")(None, {}, context)
    stack = [bottom]
    for entry in layers:
        ((name, options),) = entry.items()
        if name != "host":
            stack.append(layer_class(name)(stack[-1], options, context))
    return stack


def with_start_method(stack: Stack, way: str) -> list[Fields]:
    """Return a stack for one way to start its machines: ``booted``, or ``restored`` as declared."""
    layers = []
    for layer in stack:
        ((name, options),) = layer.items()
        if way == "booted" and "fresh" in options:
            options = {**options, "fresh": "boot"}
        layers.append({name: options})
    return layers
