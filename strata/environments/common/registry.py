"""The layers by name, and the stacks that they make."""

import functools
import importlib
import os
from collections.abc import Iterable

from strata.environments.common.layer import Kind, Layer
from strata.host.context import Context
from strata.util.data_types import Fields, Stack

# Each file here is a layer.
FOLDER = os.path.dirname(os.path.dirname(__file__))


def names() -> list[str]:
    """The names of all layers, as config.yaml says them."""
    return sorted(
        name[:-3] for name in os.listdir(FOLDER) if name.endswith(".py") and name[0] != "_"
    )


@functools.cache
def kind(name: str) -> Kind:
    """What the planner asks of the layer with this name."""
    found: Kind = importlib.import_module(f"strata.environments.{name}").Kind()
    return found


def forms(names: Iterable[str]) -> set[str]:
    """The forms of the image that layers of these names run."""
    return {form for name in names for form in kind(name).forms}


def changes(top: Layer) -> dict[str, str]:
    """What the stack below and with this layer declares to be otherwise than natively where programs start.

    Gives its name in the starting state → the layer and its reason, or the option that sets it.
    """
    found: dict[str, str] = {}
    layer = top
    while True:
        own = kind(layer.name)
        options = {
            key: names
            for key, names in own.changed_by.items()
            if layer.options.get(key) not in (None, "")
        }
        found |= {
            name: f"{layer.name}: {why}" for name, why in own.changes.items() if name not in found
        }
        for key, names in options.items():
            found |= dict.fromkeys(names, f"option {key}: {layer.options[key]}")
        if layer.below is layer:
            return found
        layer = layer.below


def build(layers: list[Fields], context: Context) -> list[Layer]:
    """The stack for ``[{name: options}, …]``, the host at the bottom; the last one is the system under test."""
    stack: list[Layer] = []
    for entry in [{"host": {}}, *layers]:
        ((name, options),) = entry.items()
        if name != "host" or not stack:
            below = stack[-1] if stack else None
            stack.append(
                importlib.import_module(f"strata.environments.{name}").Layer(
                    below, options, context
                )
            )
    return stack


def started(stack: Stack, way: str) -> list[Fields]:
    """The stack with its machines started in one way: ``booted``, or ``restored`` for what each declares."""
    boot = {} if way == "restored" else {"fresh": "boot"}
    return [
        {name: options | boot if "fresh" in options else options}
        for one in stack
        for name, options in one.items()
    ]
