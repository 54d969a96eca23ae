"""A Docker container of the image."""

import math
import os

from strata.base.process import capture
from strata.base.shapes import Fields, HostFacts
from strata.host import cgroups, daemons
from strata.host.daemons import where
from strata.layers.common import engine, gvisor, limits

FACTS = {
    "engine": "{{.ServerVersion}}",
    "containerd": "{{.ContainerdCommit.ID}}",
    "runc": "{{.RuncCommit.ID}}",
    "storage_driver": "{{.Driver}}",
    "cgroup_driver": "{{.CgroupDriver}}",
}


class Kind(engine.Kind):
    """Docker containers; runtime: runc or runsc (gVisor)."""

    title = "Docker container"
    stands_on = ("host", "vm")
    stands_idle = True
    programs = ("docker",)
    daemons = ("dockerd", "containerd", "containerd-shim", "docker-proxy", "docker-init", "runsc")
    options_schema = engine.schema(**gvisor.PROPERTIES)

    def answers(self) -> bool:
        return where("docker") is not None and answers()

    def unavailable(self) -> str | None:
        if (reason := super().unavailable()) or answers() or where("dockerd"):
            return reason
        return "no Docker daemon answers and none is installed: start it, or run `make setup`"

    def check(self, options: Fields, below: str) -> list[tuple[str, str]]:
        return gvisor.check(options, below)

    def settle(self, options: Fields, config: Fields) -> Fields:
        return gvisor.settle(options)

    def refusal(self, settled: Fields, below: str, machine: HostFacts) -> str | None:
        if below != "host":
            # A machine numbers its own CPUs; its memory follows from the workloads' scale.
            return limits.refusal(settled, set(range(machine["cpus"])), math.inf)
        if (reason := super().refusal(settled, below, machine)) or not gvisor.asked(settled):
            return reason
        known = capture(["docker", "info", "--format", "{{json .Runtimes}}"], check=False).stdout if answers() else ""
        return gvisor.refusal(settled, known)

    def labels(self, settled: Fields) -> Fields:
        found = super().labels(settled)
        return found | gvisor.labels(settled, found["network"]) if gvisor.asked(settled) else found

    def describe(self, settled: Fields) -> Fields:
        return {"doubtful": True} if gvisor.asked(settled) else {}

    def examine(self) -> tuple[str, bool | None, str]:
        if reason := self.unavailable():
            return "Docker", False, reason
        # Docker 26 prints nothing, and no error, to a user whom the daemon refuses: the version does.
        version = capture(["docker", "version", "--format", "version {{.Server.Version}}"], check=False)
        return "Docker", version.returncode == 0, (version.stdout + version.stderr).strip().replace("\n", "; ")


class Layer(engine.Layer):
    """A container of the host's daemon, or of that in the machine below."""

    told = FACTS

    def warmup(self) -> list[list[str]]:
        # The daemon is up, as the host's is: its start under emulation takes longer than that of a container.
        return [["systemctl", "start", "docker.service"]]

    def ask(self) -> Fields:
        if self.below.name == "host":
            start_daemon()
        return super().ask()

    def prepare(self) -> list[str]:
        words = ["--cgroup-parent", cgroups.parent_for(self._info["cgroup_driver"])]
        if gvisor.asked(self.options):
            words += ["--runtime", gvisor.name(self.options)]
            # A runtime that fails may leave its processes, whatever becomes of the container.
            self.context.note({"kind": "group", "id": self.id_file})
        return words

    def trace(self) -> Fields:
        # A daemon that is gone still has its containers.
        return {**super().trace(), "start": "scripts/dockerd.sh"}

    def facts(self) -> Fields:
        """What the daemon that runs the container says of itself, and what is seen of a sandbox."""
        if gvisor.asked(self.options):
            self._info["sandbox"] = gvisor.seen(cgroups.running(self.group() or ""))
        return {"docker": self._info}


def answers() -> bool:
    """Whether a Docker daemon listens where the client will look for it."""
    place = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    return not place.startswith("unix://") or daemons.listens(place.removeprefix("unix://"))


def start_daemon() -> None:
    """See that a daemon answers; start one where no service manager does."""
    daemons.start("no Docker daemon answers", "dockerd.sh", answers)
