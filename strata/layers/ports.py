"""Ports of servers in a container that has a network of its own: how a client reaches them, and who has one already."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from strata.base.errors import UserError


def published(ports: Iterable[int], at: str) -> list[str]:
    """The words, the same for Docker and Podman, that lead ports of the address `at` to those of a container."""
    forms = [f"{at}:{port}:{port}/{kind}" for port in ports for kind in ("tcp", "udp")]
    return [word for form in forms for word in ("--publish", form)]


def told(error: UserError, at: Callable[[], str]) -> UserError:
    """The failure of a container's start; where a port of the address that `at` gives was taken, one that names it."""
    named = re.findall(r"\d+(?:\.\d+){3}:(\d+)", str(error))
    if not named or not re.search("already allocated|address already in use", str(error)):
        return error
    return UserError(
        f"port {named[-1]} of {at()} is taken by another program: end that, or give the workload another port "
        "(config.yaml: workloads)"
    )
