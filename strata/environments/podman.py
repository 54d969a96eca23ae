"""A Podman container of the image, as root: by no daemon, but by programs that come and go."""

import os

from strata.environments.common import engine
from strata.host import cgroups, firewall, observe
from strata.host.daemons import where
from strata.util import paths
from strata.util.data_types import Fields, HostFacts
from strata.util.process import as_root

RUNTIMES = ("crun", "runc")
# What a container's first program takes in orphans by; Docker's own, so that both have the same, and others.
INITS = ("docker-init", "tini-static", "catatonit")
MAKES_BRIDGES = ("/usr/lib/podman/netavark", "/usr/libexec/podman/netavark", "/usr/lib/cni/bridge")


def _podman(*words: str) -> list[str]:
    return ["podman", "--cgroup-manager", cgroups.driver(), *words]


class Kind(engine.Kind):
    """Containers of root's; runtime: crun or runc."""

    title = "Podman container"
    daemons = ("conmon",)
    programs = ("podman",)
    installed_by = "install the distribution’s package podman"
    needs_root = True
    options_schema = engine.schema(runtime={"enum": list(RUNTIMES), "description": "crun or runc"})

    def tool(self, *words: str) -> list[str]:
        return as_root(_podman(*words))

    def settle(self, options: Fields, config: Fields) -> Fields:
        # crun is what Podman takes by itself.  The user is in the plans of cells that were measured.
        return {"runtime": RUNTIMES[0], "user": "root", **options}

    def refusal(self, settled: Fields, below: str, machine: HostFacts) -> str | None:
        runtime = settled["runtime"]
        if not where(runtime):
            return f"{runtime} is not installed: install the package of that name, or choose another runtime"
        # Version 2 has controllers beside version 1.
        if runtime == "crun" and any(
            observe.read_files([f"{cgroups.ROOT}/unified/cgroup.controllers"]).values()
        ):
            return "crun makes no container where control groups are hybrid, as here: set runtime: runc"
        if not where(*INITS):
            return (
                "no init program for containers was found: install the distribution’s package tini"
            )
        if settled["network"] == "bridge" and not any(map(os.path.exists, MAKES_BRIDGES)):
            return "Podman has nothing here that makes a bridge: install the distribution’s package netavark"
        return super().refusal(settled, below, machine)


class Layer(engine.Layer):
    """Its group is its own: conmon, which holds the container, stays outside."""

    def tool(self, *words: str) -> list[str]:
        return Kind().tool("--runtime", self.options["runtime"], *words)

    def loading(self) -> list[str]:
        # It keeps the image in a file meanwhile, which goes with the system.
        return as_root(["env", f"TMPDIR={self.context.folder}", *_podman("load", "--quiet")])

    def told(self, said: Fields) -> Fields:
        host, store = said["host"], said["store"]
        security = engine.at(host, "security") or {}
        kept = [
            name for name in ("seccomp", "apparmor", "selinux") if security.get(f"{name}Enabled")
        ]
        return {
            "version": said["version"]["Version"],
            "runtime": engine.at(host, "ociRuntime", "version"),
            "conmon": engine.at(host, "conmon", "version"),
            "storage_driver": store.get("graphDriverName"),
            "backing_filesystem": engine.at(store, "graphStatus", "Backing Filesystem"),
            "log_driver": host.get("logDriver"),
            "network_backend": host.get("networkBackend"),
            "cgroup_driver": host.get("cgroupManager"),
            "cgroup_version": (host.get("cgroupVersion") or "").removeprefix("v"),
            "users": "rootless" if security.get("rootless") else "the host’s",
            "security": ", ".join(kept) or "none",
        }

    def prepare(self) -> list[str]:
        if self.published():
            # Netavark lets in answers alone.
            ours = ["--match", "conntrack", "--ctstate", "DNAT", "--ctorigdst", self.below.listen()]
            firewall.let_through(self.context, ours)
        words = ["--init-path", where(*INITS) or INITS[0], "--cgroups", "no-conmon", "--replace"]
        words += ["--cgroup-parent", cgroups.parent_for(cgroups.driver())]
        return words

    def complete(self, argv: list[str]) -> list[str]:
        # Nobody knows what Podman does by half, and one waits for the end of another that was left alone.
        return [
            "setsid",
            "--fork",
            "--wait",
            "flock",
            "--close",
            os.path.join(paths.home(), "podman.lock"),
            *argv,
        ]

    def facts(self) -> Fields:
        return {"container": {"program": "podman", **self._info}}
