"""A Podman container of the image, as root: by no daemon, but by programs that come and go."""

from __future__ import annotations

import json
import os
import re
import resource

from strata.base import places
from strata.base.errors import UserError
from strata.base.process import as_root
from strata.base.shapes import Fields, HostFacts
from strata.host import cgroups, firewall
from strata.host.observe import NOT_AVAILABLE
from strata.layers.common import engine, limits
from strata.layers.common.layer import TYPE_CHECKING, where

if TYPE_CHECKING:
    from typing import ClassVar

RUNTIMES = ("crun", "runc")
# What a container's first program takes in orphans by; Docker's own, so that both have the same, and others.
INITS = ("docker-init", "tini-static", "catatonit")
MAKES_BRIDGES = ("/usr/lib/podman/netavark", "/usr/libexec/podman/netavark", "/usr/lib/cni/bridge")
# The bit of CAP_SYS_RESOURCE.
SYS_RESOURCE = 24


def podman(*words: str) -> list[str]:
    """A command of Podman's."""
    manager = "systemd" if cgroups.managed_by_systemd() else "cgroupfs"
    return as_root(["podman", "--cgroup-manager", manager, *words])


def alone(argv: list[str]) -> list[str]:
    """A command that waits for the end of another such one, which whoever asked for it may have left alone."""
    return ["flock", "--close", os.path.join(places.home(), "podman.lock"), *argv]


def unfit(runtime: str) -> str | None:
    """Why a runtime makes no container on this machine; None if it does."""
    if not where(runtime):
        return f"{runtime} is not installed: install the distribution’s package of that name, or choose another runtime"
    try:
        with open(f"{cgroups.ROOT}/unified/cgroup.controllers", encoding="utf-8") as file:
            controllers = ", ".join(file.read().split())
    except OSError:
        return None
    if runtime != "crun" or not controllers:
        return None
    return (
        f"crun makes no container where control groups are hybrid, as here, where version 2 has {controllers} and "
        "version 1 the others: set runtime: runc, or start the machine with one version alone"
    )


def ulimits(status: str = "/proc/self/status") -> list[str]:
    """Words by which limits stay as they are where nobody may raise them, as Podman would; none elsewhere."""
    with open(status, encoding="utf-8") as file:
        bound = re.search(r"^CapBnd:\t([0-9a-f]+)$", file.read(), re.MULTILINE)
    if bound is None or int(bound[1], 16) >> SYS_RESOURCE & 1:
        return []
    files, processes = (resource.getrlimit(kind) for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
    # Podman holds itself, and so what it starts, to so many processes.
    soft, hard = (min(limit, 32768) if limit >= 0 else 32768 for limit in processes)
    return ["--ulimit", f"nofile={files[0]}:{files[1]}", "--ulimit", f"nproc={soft}:{hard}"]


class Kind(engine.Kind):
    """Containers of root's; runtime: crun or runc."""

    title = "Podman container"
    daemons = ("conmon",)
    programs = ("podman",)
    installed_by = "install the distribution’s package podman"
    needs_root = True
    options_schema: ClassVar[Fields] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["network", "data"],
        "properties": {
            **engine.Kind.PROPERTIES,
            "runtime": {"enum": list(RUNTIMES), "description": "crun or runc"},
        },
    }

    def tool(self, *words: str) -> list[str]:
        return podman(*words)

    def answers(self) -> bool:
        return self.unavailable() is None

    def settle(self, options: Fields, config: Fields) -> Fields:
        # crun is what Podman takes by itself.  The user is in the plans of cells that were measured.
        return {"runtime": RUNTIMES[0], "user": "root", **options}

    def refusal(self, settled: Fields, below: str, machine: HostFacts) -> str | None:
        if reason := unfit(settled["runtime"]):
            return reason
        if not where(*INITS):
            return "no init program for containers was found: install the distribution’s package tini"
        if settled["network"] == "bridge" and not any(map(os.path.exists, MAKES_BRIDGES)):
            return "Podman has nothing here that makes a bridge: install the distribution’s package netavark"
        return limits.refusal(settled, os.sched_getaffinity(0), machine["memory_bytes"])


class Layer(engine.Layer):
    """Its group is its own: conmon, which holds the container, stays outside."""

    def tool(self, *words: str) -> list[str]:
        return podman("--runtime", self.options["runtime"], *words)

    @property
    def image(self) -> str:
        return super().image.removeprefix("sha256:")

    def ask(self) -> Fields:
        told = self.run_below(self.tool("info", "--format", "json"))
        try:
            return facts_of(dict(json.loads(told)))
        except (ValueError, TypeError, AttributeError):
            raise UserError(f"`podman info` prints another JSON object than Podman’s: {told.strip()[:80]!r}") from None

    def prepare(self) -> list[str]:
        if self.published():
            # Netavark lets in answers alone.
            firewall.let_through(
                self.context, ["--match", "conntrack", "--ctstate", "DNAT", "--ctorigdst", self.below.listen()]
            )
        parent = cgroups.parent_for("systemd" if cgroups.managed_by_systemd() else "cgroupfs")
        words = ["--init-path", where(*INITS) or INITS[0], "--cgroups", "no-conmon", "--cgroup-parent", parent]
        return [*words, "--replace", *ulimits()]

    def trace(self) -> Fields:
        found = super().trace()
        return {**found, "remove": [alone(argv) for argv in found["remove"]]}

    def start(self, argv: list[str]) -> None:
        # Whatever ends the wait for it, Podman itself comes to its end: nobody knows what it does by half.
        super().start(["setsid", "--fork", "--wait", *alone(argv)])

    def facts(self) -> Fields:
        """What Podman says of itself, and of what it starts containers by."""
        return {"container": {"program": "podman", **self._info}}


def facts_of(info: Fields) -> Fields:
    """What is recorded of Podman, from what `podman info` says; "not available" what it does not say."""
    host = info.get("host") or {}
    runtime, conmon = host.get("ociRuntime") or {}, host.get("conmon") or {}
    versions = [re.search(r"version ([^\s,]+)", one.get("version") or "") for one in (runtime, conmon)]
    found = {
        "version": (info.get("version") or {}).get("Version"),
        "runtime": f"{runtime['name']} {versions[0][1]}" if versions[0] and "name" in runtime else None,
        "conmon": versions[1] and versions[1][1],
        "storage_driver": (info.get("store") or {}).get("graphDriverName"),
        "network_backend": host.get("networkBackend"),
        "cgroup_driver": host.get("cgroupManager"),
    }
    return {name: value or NOT_AVAILABLE for name, value in found.items()}
