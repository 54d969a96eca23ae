"""A Docker container of the image, by runc or in a sandbox: gVisor's kernel, which is a program of the host (runsc)."""

import functools
import math
import os
import re

from strata.base.process import capture
from strata.base.shapes import Fields, HostFacts
from strata.host import cgroups, daemons
from strata.host.daemons import where
from strata.host.observe import NOT_AVAILABLE
from strata.layers.common import engine, limits

# What runsc says of its version, and of how it catches system calls by its own choice.
VERSION, PLATFORM = ("--version", r"version (\S+)"), ("flags", r'(?m)^\s*-platform \S+\n.*\(default "(\w+)"\)$')
# Whose network stack carries a sandbox's packets, as the paper calls it.
STACKS = {"sandbox": "the sandbox’s stack", "host": "the host’s stack"}
FACTS = {
    "engine": "{{.ServerVersion}}",
    "containerd": "{{.ContainerdCommit.ID}}",
    "runc": "{{.RuncCommit.ID}}",
    "storage_driver": "{{.Driver}}",
    "cgroup_driver": "{{.CgroupDriver}}",
}


@functools.cache
def of_runsc(word: str, form: str) -> str | None:
    """What runsc says to a word, by the form of VERSION or PLATFORM; None where it is not installed or says no such."""
    done = capture(["runsc", word], check=False) if where("runsc") else None
    found = re.search(form, done.stdout + done.stderr) if done else None
    return found[1] if found else None


def sandboxed(options: Fields) -> bool:
    """Whether options of a container, as in the config or settled, ask for a sandbox."""
    return options.get("runtime") == "runsc"


def runtime(settled: Fields) -> str:
    """How the daemon calls the runtime (scripts/dockerd.sh makes it known)."""
    return f"strata-runsc-{settled['sandbox']['stack']}"


def sandbox(command_lines: list[str]) -> Fields:
    """``{program, version, platform, stack}``, the latter two as the process that is the sandbox was started.

    What is runsc's own choice, it does not repeat there.  command_lines: those of the container's control group.
    """
    found = {"program": "runsc", "version": of_runsc(*VERSION), "platform": NOT_AVAILABLE, "stack": NOT_AVAILABLE}
    for line in command_lines:
        if line.startswith("runsc-sandbox"):
            how, stack = (re.search(rf" --{flag}=(\w+)", line) for flag in ("platform", "network"))
            found["platform"] = how[1] if how else of_runsc(*PLATFORM) or NOT_AVAILABLE
            found["stack"] = stack[1] if stack else "sandbox"
    return found


class Kind(engine.Kind):
    """Docker containers; runtime: runc or runsc (gVisor)."""

    title = "Docker container"
    stands_on = ("host", "vm")
    stands_idle = True
    programs = ("docker",)
    daemons = ("dockerd", "containerd", "containerd-shim", "docker-proxy", "docker-init", "runsc")
    options_schema = engine.schema(
        runtime={"enum": ["runc", "runsc"], "description": "runc, or runsc (gVisor)"},
        stack={"enum": list(STACKS), "description": "whose network stack: the sandbox's own, or the host's"},
    )

    def answers(self) -> bool:
        # What listens where the client will look for it is a daemon.
        place = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
        there = not place.startswith("unix://") or daemons.listens(place.removeprefix("unix://"))
        return there and where("docker") is not None

    def unavailable(self) -> str | None:
        if (reason := super().unavailable()) or self.answers() or where("dockerd"):
            return reason
        return "no Docker daemon answers and none is installed: start it, or run `make setup`"

    def check(self, options: Fields, below: str) -> list[tuple[str, str]]:
        if not sandboxed(options):
            return [("stack", "is of gVisor alone; set runtime: runsc too")] if "stack" in options else []
        if below != "host":
            return [("runtime", "gVisor is not in a machine’s image; it runs on the host alone")]
        if options["network"] == "host" and options.get("stack") != "host":
            return [("stack", "the sandbox’s own stack cannot be the host’s network; set stack: host")]
        return []

    def settle(self, options: Fields, config: Fields) -> Fields:
        if not sandboxed(options):
            return options
        rest = {key: value for key, value in options.items() if key != "stack"}
        # What it can do depends on the version: with another one its cells are measured again.
        told = {"platform": of_runsc(*PLATFORM), "version": of_runsc(*VERSION)}
        return {**rest, "sandbox": {**told, "stack": options.get("stack", "sandbox")}}

    def refusal(self, settled: Fields, below: str, machine: HostFacts) -> str | None:
        if below != "host":
            # A machine numbers its own CPUs; its memory follows from the workloads' scale.
            return limits.refusal(settled, set(range(machine["cpus"])), math.inf)
        if (reason := super().refusal(settled, below, machine)) or not sandboxed(settled):
            return reason
        if settled["sandbox"]["version"] is None:
            return "gVisor (runsc) is not installed: `make setup` installs it on Debian 12 and newer"
        argv = ["docker", "info", "--format", "{{json .Runtimes}}"]
        known = capture(argv, check=False).stdout if self.answers() else ""
        if known and f'"{runtime(settled)}"' not in known:
            return "the Docker daemon does not know gVisor’s runtimes: `scripts/dockerd.sh runtimes` adds them"
        return None

    def labels(self, settled: Fields) -> Fields:
        found = super().labels(settled)
        if sandboxed(settled):
            own = settled["sandbox"]
            title = f"gVisor sandbox in a Docker container, platform {own['platform']}"
            found |= {"kind": "sandbox", "title": title, "network": f"{found['network']}, {STACKS[own['stack']]}"}
        return found

    def describe(self, settled: Fields) -> Fields:
        return {"doubtful": True} if sandboxed(settled) else {}

    def examine(self) -> tuple[str, bool | None, str]:
        if reason := self.unavailable():
            return "Docker", False, reason
        # Docker 26 prints nothing, and no error, to a user whom the daemon refuses: the version does.
        version = capture(["docker", "version", "--format", "version {{.Server.Version}}"], check=False)
        return "Docker", version.returncode == 0, (version.stdout + version.stderr).strip().replace("\n", "; ")


class Layer(engine.Layer):
    """A container of the host's daemon, or of that in the machine below."""

    told = FACTS
    # The daemon is up, as the host's is: its start under emulation takes longer than that of a container.
    warmup = (["systemctl", "start", "docker.service"],)

    def ask(self) -> Fields:
        if self.below.name == "host":
            start_daemon()
        return super().ask()

    def prepare(self) -> list[str]:
        words = ["--cgroup-parent", cgroups.parent_for(self._info["cgroup_driver"])]
        if sandboxed(self.options):
            words += ["--runtime", runtime(self.options)]
            # A runtime that fails may leave its processes, whatever becomes of the container.
            self.context.note({"kind": "group", "id": self.id_file})
        return words

    def host_process(self) -> int | None:
        if not sandboxed(self.options):
            return super().host_process()
        return next(iter(cgroups.named(self.group() or "", "runsc-sandbox")), None)

    def trace(self) -> Fields:
        # A daemon that is gone still has its containers.
        return {**super().trace(), "start": "scripts/dockerd.sh"}

    def facts(self) -> Fields:
        """What the daemon that runs the container says of itself, and what is seen of a sandbox."""
        if sandboxed(self.options):
            self._info["sandbox"] = sandbox(cgroups.running(self.group() or ""))
        return {"docker": self._info}


def start_daemon() -> None:
    """See that a daemon answers; start one where no service manager does."""
    daemons.start("no Docker daemon answers", "dockerd.sh", Kind().answers)
