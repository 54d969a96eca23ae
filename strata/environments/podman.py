"""A Podman container of the image, as root: no daemon makes it, but programs that come and go."""

import os

from strata.environments.common import engine
from strata.host import cgroups, firewall, observe
from strata.host.daemons import find_program
from strata.util import paths
from strata.util.data_types import Fields, HostFacts
from strata.util.process import as_root

RUNTIMES = ("crun", "runc")
# First programs for containers, which take in orphans; Docker's is preferred, so that both engines
# have the same.
INITS = ("docker-init", "tini-static", "catatonit")
BRIDGE_MAKERS = (
    "/usr/lib/podman/netavark",
    "/usr/libexec/podman/netavark",
    "/usr/lib/cni/bridge",
)


def _podman(*words: str) -> list[str]:
    return ["podman", "--cgroup-manager", cgroups.driver_name(), *words]


class Layer(engine.Container):
    """A container of root's.

    Its control group is its own: conmon, which holds the container, stays outside.

    Option `runtime`: crun or runc.
    """

    title = "Podman container"
    engine_name = "Podman"
    daemons = ("conmon",)
    programs = ("podman",)
    package = "podman"
    needs_root = True
    options_schema = engine.container_schema(
        runtime={"enum": list(RUNTIMES), "description": "crun or runc"}
    )

    @classmethod
    def host_tool(cls, *words: str) -> list[str]:
        """Return a command of root's Podman."""
        return as_root(_podman(*words))

    @classmethod
    def resolve_options(cls, options: Fields, config: Fields) -> Fields:
        """Add the runtime that Podman takes by itself, crun."""
        # The user is in the plans of cells that were measured.
        return {"runtime": RUNTIMES[0], "user": "root", **options}

    @classmethod
    def refusal_reason(cls, resolved: Fields, below: str, machine: HostFacts) -> str | None:
        """Refuse missing runtimes, init programs and bridge makers, and hybrid groups for crun."""
        runtime = resolved["runtime"]
        if not find_program(runtime):
            return (
                f"{runtime} is not installed: install the package of that name, or choose another "
                "runtime"
            )
        if runtime == "crun" and _has_hybrid_groups():
            return (
                "crun makes no container where control groups are hybrid, as here: set runtime: "
                "runc"
            )
        if not find_program(*INITS):
            return (
                "no init program for containers was found: install the distribution’s package tini"
            )
        if resolved["network"] == "bridge" and not any(map(os.path.exists, BRIDGE_MAKERS)):
            return (
                "Podman has nothing here that makes a bridge: install the distribution’s package "
                "netavark"
            )
        return super().refusal_reason(resolved, below, machine)

    def tool(self, *words: str) -> list[str]:
        """Return a command of root's Podman with the runtime that was chosen."""
        return self.host_tool("--runtime", self.options["runtime"], *words)

    def load_command(self) -> list[str]:
        """Return Podman's command, with a temporary file in the system's folder."""
        return as_root(["env", f"TMPDIR={self.context.folder}", *_podman("load", "--quiet")])

    def engine_facts(self, info: Fields) -> Fields:
        """Return the versions, storage and confinement that ``podman info`` prints."""
        host, store = info["host"], info["store"]
        security = engine.value_at(host, "security") or {}
        confined = [
            name for name in ("seccomp", "apparmor", "selinux") if security.get(f"{name}Enabled")
        ]
        return {
            "version": info["version"]["Version"],
            "runtime": engine.value_at(host, "ociRuntime", "version"),
            "conmon": engine.value_at(host, "conmon", "version"),
            "storage_driver": store.get("graphDriverName"),
            "backing_filesystem": engine.value_at(store, "graphStatus", "Backing Filesystem"),
            "log_driver": host.get("logDriver"),
            "network_backend": host.get("networkBackend"),
            "cgroup_driver": host.get("cgroupManager"),
            "cgroup_version": (host.get("cgroupVersion") or "").removeprefix("v"),
            "users": "rootless" if security.get("rootless") else "the host’s",
            "security": ", ".join(confined) or "none",
        }

    def up(self) -> None:
        """Let packets through to the published ports, and run the container."""
        if self.published():
            # Netavark itself lets in answers alone.
            match = ["--match", "conntrack", "--ctstate", "DNAT"]
            firewall.allow_packets(
                self.context, [*match, "--ctorigdst", self.below.listen_address()]
            )
        super().up()

    def run_options(self) -> list[str]:
        """Return the init program and the place of the container's control group."""
        options = [
            "--init-path",
            find_program(*INITS) or INITS[0],
            "--cgroups",
            "no-conmon",
            "--replace",
        ]
        return [*options, "--cgroup-parent", cgroups.parent_option(cgroups.driver_name())]

    def complete(self, argv: list[str]) -> list[str]:
        """Return a command that no signal interrupts, one at a time.

        What a half-done command leaves is unknown, and a Podman that was left alone makes others
        wait for its end.
        """
        lock = os.path.join(paths.home_folder(), "podman.lock")
        return ["setsid", "--fork", "--wait", "flock", "--close", lock, *argv]

    def facts(self) -> Fields:
        """Return what Podman says of itself, and the limits that were applied."""
        return {"container": {"program": "podman", **self._facts}}


def _has_hybrid_groups() -> bool:
    """Return whether controllers are split between versions 1 and 2 of control groups."""
    path = f"{cgroups.ROOT}/unified/cgroup.controllers"
    return any(observe.read_files([path]).values())
