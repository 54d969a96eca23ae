"""Layers: what wraps a command.  An environment is a stack of them on the host.

A new layer is a file in this folder and a line in :data:`LAYERS`.
"""

import importlib
from collections.abc import Iterable

from strata.host.context import Context
from strata.layers.layer import Layer

# The name in config.yaml, and the class that does it (imported only when it is used).
LAYERS = {
    "host": "strata.layers.host:Host",
    "chroot": "strata.layers.chroot:Chroot",
    "docker": "strata.layers.docker:Docker",
    "vm": "strata.layers.vm:Vm",
    "lxc": "strata.layers.lxc:Lxc",
    "podman": "strata.layers.podman:Podman",
}


def layer_class(name: str) -> type[Layer]:
    """The class of a layer by its name in the config."""
    module, _, attribute = LAYERS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def forms(names: Iterable[str]) -> set[str]:
    """The forms of the image that layers of these names run."""
    return {form for name in names for form in layer_class(name).forms}


def build(layers: list[dict], context: Context) -> list[Layer]:
    """The stack for ``[{name: options}, …]``, the host at the bottom; the last one is the system under test."""
    stack = [layer_class("host")(None, {}, context)]
    for entry in layers:
        ((name, options),) = entry.items()
        if name != "host":
            stack.append(layer_class(name)(stack[-1], options, context))
    for number, layer in enumerate(stack):
        layer.above = stack[number + 1 :]
    return stack


def started(stack: list[dict], way: str) -> list[dict]:
    """The stack with its machines started in one way: ``booted``, or ``restored`` for what each declares."""
    if way == "restored":
        return stack
    return [
        {name: {**options, "fresh": "boot"} if "fresh" in options else options}
        for entry in stack
        for name, options in entry.items()
    ]
