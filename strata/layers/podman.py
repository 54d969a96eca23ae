"""A Podman container of the image, as root: by no daemon, but by programs that come and go."""

import os
import resource

from strata.base import places
from strata.base.process import as_root
from strata.base.shapes import Fields, HostFacts
from strata.host import cgroups, firewall, observe
from strata.host.daemons import where
from strata.layers.common import engine

RUNTIMES = ("crun", "runc")
# What a container's first program takes in orphans by; Docker's own, so that both have the same, and others.
INITS = ("docker-init", "tini-static", "catatonit")
MAKES_BRIDGES = ("/usr/lib/podman/netavark", "/usr/libexec/podman/netavark", "/usr/lib/cni/bridge")
# The bit of CAP_SYS_RESOURCE.
SYS_RESOURCE = 24
FACTS = {
    "version": "{{.Version.Version}}",
    "runtime": "{{.Host.OCIRuntime.Version}}",
    "conmon": "{{.Host.Conmon.Version}}",
    "storage_driver": "{{.Store.GraphDriverName}}",
    "network_backend": "{{.Host.NetworkBackend}}",
    "cgroup_driver": "{{.Host.CgroupManager}}",
}


def podman(*words: str) -> list[str]:
    """A command of Podman's."""
    return as_root(["podman", "--cgroup-manager", cgroups.driver(), *words])


def alone(argv: list[str]) -> list[str]:
    """A command that waits for the end of another such one, which whoever asked for it may have left alone."""
    return ["flock", "--close", os.path.join(places.home(), "podman.lock"), *argv]


def unfit(runtime: str) -> str | None:
    """Why a runtime makes no container on this machine; None if it does."""
    if not where(runtime):
        return f"{runtime} is not installed: install the distribution’s package of that name, or choose another runtime"
    # Version 2 has controllers beside version 1.
    if runtime == "crun" and any(observe.read_files([f"{cgroups.ROOT}/unified/cgroup.controllers"]).values()):
        return "crun makes no container where control groups are hybrid, as here: set runtime: runc"
    return None


def ulimits(status: str = "/proc/self/status") -> list[str]:
    """Words by which limits stay as they are where nobody may raise them, as Podman would; none elsewhere."""
    bound = int(observe.fields(observe.read_files([status])[status])["CapBnd"], 16)
    if bound >> SYS_RESOURCE & 1:
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
    options_schema = engine.schema(runtime={"enum": list(RUNTIMES), "description": "crun or runc"})

    def tool(self, *words: str) -> list[str]:
        return podman(*words)

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
        return super().refusal(settled, below, machine)


class Layer(engine.Layer):
    """Its group is its own: conmon, which holds the container, stays outside."""

    told = FACTS

    def tool(self, *words: str) -> list[str]:
        return podman("--runtime", self.options["runtime"], *words)

    @property
    def image(self) -> str:
        return super().image.removeprefix("sha256:")

    def prepare(self) -> list[str]:
        if self.published():
            # Netavark lets in answers alone.
            ours = ["--match", "conntrack", "--ctstate", "DNAT", "--ctorigdst", self.below.listen()]
            firewall.let_through(self.context, ours)
        words = ["--init-path", where(*INITS) or INITS[0], "--cgroups", "no-conmon"]
        return [*words, "--cgroup-parent", cgroups.parent_for(cgroups.driver()), "--replace", *ulimits()]

    def trace(self) -> Fields:
        found = super().trace()
        return {**found, "remove": [alone(argv) for argv in found["remove"]]}

    def start(self, argv: list[str]) -> None:
        # Whatever ends the wait for it, Podman itself comes to its end: nobody knows what it does by half.
        super().start(["setsid", "--fork", "--wait", *alone(argv)])

    def facts(self) -> Fields:
        return {"container": {"program": "podman", **self._info}}
