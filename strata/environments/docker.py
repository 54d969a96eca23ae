"""A Docker container of the image, by runc or in a sandbox: gVisor's kernel, which is a program of the host (runsc)."""

import functools
import json
import math
import os
import re

from strata.environments.common import engine, limits
from strata.host import cgroups, daemons, firewall
from strata.host.daemons import where
from strata.host.observe import NOT_AVAILABLE
from strata.util.data_types import Fields, HostFacts
from strata.util.errors import UserError
from strata.util.process import DOCKER_GROUP, capture
from strata.util.progress import once

# What runsc says of its version, and of how it catches system calls by its own choice.
VERSION, PLATFORM = (
    ("--version", r"version (\S+)"),
    ("flags", r'(?m)^\s*-platform \S+\n.*\(default "(\w+)"\)$'),
)
# Whose network stack carries a sandbox's packets, as the paper calls it.
STACKS = {"sandbox": "the sandbox’s stack", "host": "the host’s stack"}
# Drivers of the layered file system that are the kernel's overlay.
OVERLAYS = ("overlay", "overlay2", "overlayfs")
BRIDGE = "com.docker.network.bridge.name"


@functools.cache
def of_runsc(word: str, form: str) -> str | None:
    """What runsc says to a word, by the form of VERSION or PLATFORM; None where it is not installed or says no such."""
    done = capture(["runsc", word], check=False) if where("runsc") else None
    found = re.search(form, done.stdout + done.stderr) if done else None
    return found[1] if found else None


@functools.cache
def _said(*place: str | None) -> Fields:
    """What the daemon that answers at a place says of itself; nothing where it says nothing soon."""
    try:
        said = json.loads(
            capture(["docker", "info", "--format", "{{json .}}"], 20, check=False).stdout
        )
    except (UserError, ValueError):
        return {}
    return said if isinstance(said, dict) and said.get("ServerVersion") else {}


def security(said: Fields) -> dict[str, str]:
    """What confines the daemon's containers, by its name, with the profile where there is one."""
    found = {}
    for option in said.get("SecurityOptions") or ():
        told = dict(word.partition("=")[::2] for word in option.split(","))
        found[told.get("name", option)] = told.get("profile", "")
    return found


@functools.cache
def bridge() -> Fields:
    """The options of the host's daemon's own bridge; none where it has no such network."""
    told = capture(["docker", "network", "inspect", "bridge"], check=False).stdout
    networks = json.loads(told or "[]")
    return networks[0]["Options"] or {} if networks else {}


@functools.cache
def _has_nat() -> bool | None:
    """Whether the kernel translates addresses for that bridge; None where that is not seen."""
    return firewall.here().serves(bridge()[BRIDGE]) if BRIDGE in bridge() else None


def unusual(options: Fields, said: Fields, rules: bool = True) -> dict[str, str]:
    """What of the host's daemon makes a container of these options another one than its usual label says.

    rules: whether the kernel's are looked at.
    """
    found = {}
    if rules and options["network"] == "bridge" and _has_nat() is False:
        found["ports"] = "docker-proxy"
    confined = security(said)
    if "userns" in confined:
        found["users"] = "remapped"
    profile = confined.get("seccomp", "none")
    if profile not in ("default", "builtin") and options.get("seccomp") != "unconfined":
        found["seccomp"] = profile if profile in ("none", "unconfined") else "profile of its own"
    driver = str(said.get("Driver"))
    if options["data"] == "layered" and driver not in OVERLAYS:
        found["storage"] = re.sub(r"[^\w-]", "", driver)
    return found


def in_words(found: Fields) -> str:
    """What :func:`unusual` found, as labels end with it."""
    forms = {
        "ports": "user-land proxy",
        "users": "users remapped",
        "seccomp": "seccomp {}",
        "storage": "{} storage",
    }
    return ", ".join(forms[key].format(value) for key, value in found.items())


def recorded(said: Fields) -> Fields:
    """What is recorded of a daemon, from what it says of itself."""
    confined = security(said)
    users = (
        "rootless"
        if "rootless" in confined
        else "remapped"
        if "userns" in confined
        else "the host’s"
    )
    rest = [f"{name} ({profile})" if profile else name for name, profile in confined.items()]
    status = dict(pair for pair in said.get("DriverStatus") or () if len(pair) == 2)
    return {
        "engine": said.get("ServerVersion"),
        "containerd": engine.at(said, "ContainerdCommit", "ID"),
        "runc": engine.at(said, "RuncCommit", "ID"),
        "storage_driver": said.get("Driver"),
        "backing_filesystem": status.get("Backing Filesystem"),
        "log_driver": said.get("LoggingDriver"),
        "cgroup_driver": said.get("CgroupDriver"),
        "cgroup_version": said.get("CgroupVersion"),
        "users": users,
        "security": ", ".join(sorted(rest)) or "none",
    }


def socket_of() -> str:
    """The path of the Unix socket at which the daemon is asked; empty where it is asked in another way."""
    place = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    return place.removeprefix("unix://") if place.startswith("unix://") else ""


def elsewhere(said: Fields) -> str | None:
    """Why a daemon is not the one whose containers can be seen and frozen here; None if it is."""
    here = os.uname()
    # Docker makes three numbers of two.
    kernels = {
        re.sub(r"^(\d+\.\d+)\.0\b", r"\1", name)
        for name in (here.release, said.get("KernelVersion", ""))
    }
    if said.get("Name") != here.nodename or len(kernels) > 1:
        where = f"on another machine or in a virtual one ({said.get('Name')}, kernel {said.get('KernelVersion')})"
    elif daemons.other_network(socket_of()):
        where = (
            "in another network namespace than this process, whose rules and addresses are others"
        )
    elif "rootless" in security(said):
        where = "one without root, whose network, storage and control groups are others"
    else:
        return None
    return f"the Docker daemon is {where}: unset DOCKER_HOST, or `docker context use default`"


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
    found = {
        "program": "runsc",
        "version": of_runsc(*VERSION),
        "platform": NOT_AVAILABLE,
        "stack": NOT_AVAILABLE,
    }
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
        stack={
            "enum": list(STACKS),
            "description": "whose network stack: the sandbox's own, or the host's",
        },
    )

    def answers(self) -> bool:
        # What listens where the client will look for it is a daemon.
        place = socket_of()
        return (not place or daemons.listens(place)) and where("docker") is not None

    def unavailable(self) -> str | None:
        if (reason := super().unavailable()) or self.answers() or where("dockerd"):
            return reason
        return "no Docker daemon answers and none is installed: start it, or run `make setup`"

    def barred(self) -> str | None:
        place = os.environ.get("DOCKER_HOST", "")
        if (socket := socket_of()) and daemons.listens(socket):
            may = os.access(socket, os.W_OK)
            return None if may else f"this user may not use Docker at {socket}: {DOCKER_GROUP}"
        if place and (socket or not self.said()):
            return f"no Docker daemon answers at DOCKER_HOST, {place}: `unset DOCKER_HOST`, or start that daemon"
        return None

    def check(self, options: Fields, below: str) -> list[tuple[str, str]]:
        if not sandboxed(options):
            return (
                [("stack", "is of gVisor alone; set runtime: runsc too")]
                if "stack" in options
                else []
            )
        if below != "host":
            return [("runtime", "gVisor is not in a machine’s image; it runs on the host alone")]
        if options["network"] == "host" and options.get("stack") != "host":
            return [
                ("stack", "the sandbox’s own stack cannot be the host’s network; set stack: host")
            ]
        return []

    def settle(self, options: Fields, config: Fields) -> Fields:
        if not sandboxed(options):
            return options
        rest = {key: value for key, value in options.items() if key != "stack"}
        # What it can do depends on the version: with another one its cells are measured again.
        told = {"platform": of_runsc(*PLATFORM), "version": of_runsc(*VERSION)}
        return {**rest, "sandbox": {**told, "stack": options.get("stack", "sandbox")}}

    def said(self) -> Fields:
        """What the host's daemon says of itself; nothing where none answers."""
        places = (os.environ.get(name) for name in ("DOCKER_HOST", "DOCKER_CONTEXT"))
        return _said(*places) if self.answers() else {}

    def found(self, settled: Fields, below: str) -> Fields:
        said = self.said() if below == "host" else {}
        if not said or elsewhere(said):
            return settled
        other = unusual(settled, said)
        return {**settled, "daemon": other} if other else settled

    def refusal(self, settled: Fields, below: str, machine: HostFacts) -> str | None:
        if below != "host":
            # A machine numbers its own CPUs; its memory follows from the workloads' scale.
            return limits.refusal(settled, set(range(machine["cpus"])), math.inf)
        said = self.said()
        reason = super().refusal(settled, below, machine) or (elsewhere(said) if said else None)
        if reason or not said:
            return reason or self._no_sandbox(settled)
        if settled["network"] == "bridge" and BRIDGE not in bridge():
            return "the Docker daemon has no bridge of its own: take `bridge: none` out of its configuration"
        if "users" in settled.get("daemon", {}):
            mapped = "the Docker daemon maps users (take userns-remap out of its configuration)"
            if settled["network"] == "host":
                return f"{mapped}, and then lends no container the host’s network: or set network: bridge"
            if settled["data"] == "volume":
                return f"{mapped}, and then no container can write its volume: or set data: layered"
        return self._no_sandbox(settled, said)

    def _no_sandbox(self, settled: Fields, said: Fields | None = None) -> str | None:
        """Why there is no sandbox, where one is asked for."""
        if not sandboxed(settled):
            return None
        if settled["sandbox"]["version"] is None:
            return (
                "gVisor (runsc) is not installed: `make setup` installs it on Debian 12 and newer"
            )
        if said is None:
            return None
        name, stack = runtime(settled), settled["sandbox"]["stack"]
        known = engine.at(said, "Runtimes", name)
        if known is None:
            return "the Docker daemon does not know gVisor’s runtimes: `scripts/dockerd.sh runtimes` adds them"
        argv = [known.get("path", "another program"), *(known.get("runtimeArgs") or ())]
        if os.path.basename(argv[0]) != "runsc" or f"--network={stack}" not in argv:
            return (
                f"the Docker daemon’s runtime {name} is not runsc --network={stack} but {' '.join(argv)}: take it out "
                "of its configuration, and `scripts/dockerd.sh runtimes` adds it"
            )
        return None

    def labels(self, settled: Fields) -> Fields:
        found, other = super().labels(settled), settled.get("daemon", {})
        if "ports" in other:
            found["network"] = engine.PROXIED
        if "storage" in other:
            found["data"] += f", {other['storage']}"
        rest = in_words({key: other[key] for key in ("users", "seccomp") if key in other})
        if rest:
            found["title"] = f"{self.title}, {rest}"
        if sandboxed(settled):
            own = settled["sandbox"]
            title = (
                f"gVisor sandbox in a {found.get('title', self.title)}, platform {own['platform']}"
            )
            found |= {
                "kind": "sandbox",
                "title": title,
                "network": f"{found['network']}, {STACKS[own['stack']]}",
            }
        return found

    def describe(self, settled: Fields) -> Fields:
        other = {"otherwise": in_words(settled["daemon"])} if "daemon" in settled else {}
        return {**other, **({"doubtful": True} if sandboxed(settled) else {})}

    def examine(self) -> tuple[str, bool | None, str]:
        if reason := self.unavailable():
            return "Docker", False, reason
        # Docker 26 prints nothing, and no error, to a user whom the daemon refuses: the version does.
        if reason := self.barred():
            return "Docker", False, reason
        version = capture(
            ["docker", "version", "--format", "version {{.Server.Version}}"], check=False
        )
        words = (version.stdout + version.stderr).strip().replace("\n", "; ")
        if not (said := self.said()):
            return "Docker", version.returncode == 0, words
        if other := elsewhere(said):
            return "Docker", False, f"{words}: {other}"
        if other := in_words(unusual({"network": "bridge", "data": "layered"}, said)):
            words += f"; other than usual: {other}"
        return "Docker", True, words


class Layer(engine.Layer):
    """A container of the host's daemon, or of that in the machine below."""

    # The daemon is up, as the host's is: its start under emulation takes longer than that of a container.
    warmup = (["systemctl", "start", "docker.service"],)

    def ask(self) -> Fields:
        if self.below.name == "host":
            start_daemon()
        return super().ask()

    def told(self, said: Fields) -> Fields:
        return recorded(said)

    def prepare(self) -> list[str]:
        if self.machine() is None:
            self._agree()
        words = ["--cgroup-parent", cgroups.parent_for(self._info["cgroup_driver"])]
        # Not the one that a daemon's configuration has for all.
        words += ["--runtime", runtime(self.options) if sandboxed(self.options) else "runc"]
        if sandboxed(self.options):
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

    def _agree(self) -> None:
        """See that the daemon is the one that the plan was made for.  Raises UserError."""
        if reason := elsewhere(self.said):
            raise UserError(reason)
        # Those for published ports are looked at once they are there.
        rules = not self.published()
        planned = {
            key: value
            for key, value in self.options.get("daemon", {}).items()
            if rules or key != "ports"
        }
        with once():
            seen = unusual(self.options, self.said, rules)
        if seen != planned:
            now, before = (in_words(found) or "as usual" for found in (seen, planned))
            raise UserError(
                f"the Docker daemon is not as when the plan was made, perhaps while none answered (now: {now}; "
                f"planned: {before}): run again, and the plan is made anew"
            )

    def see(self) -> None:
        super().see()
        ports = self._info.get("network", {}).get("ports", NOT_AVAILABLE)
        if self.published() and self.machine() is None:
            names = {"bridge": BRIDGE, "mtu": "com.docker.network.driver.mtu"}
            self._info["network"] |= {
                key: bridge().get(name, NOT_AVAILABLE) for key, name in names.items()
            }
        planned = engine.PROXY if "ports" in self.options.get("daemon", {}) else engine.NAT
        if ports == engine.NOTHING:
            raise UserError(
                "no rule of the kernel and no docker-proxy leads to the published ports: the Docker daemon has "
                "iptables and userland-proxy switched off; switch one on"
            )
        if ports not in (planned, NOT_AVAILABLE):
            raise UserError(
                f"the published ports are reached by {ports}, and {planned} was planned, perhaps while no daemon "
                "answered: run again, and the plan is made anew; if this comes again, the kernel has rules of a "
                "daemon that is gone, or lost those of this one: restart the machine, or the daemon"
            )
        if sandboxed(self.options):
            self._info["sandbox"] = sandbox(cgroups.running(self.group() or ""))
            for key, wanted in self.options["sandbox"].items():
                if wanted and self._info["sandbox"][key] != wanted:
                    raise UserError(
                        f"the container is not in the sandbox that was planned: its {key} is "
                        f"{self._info['sandbox'][key]}, and not {wanted}; run again, so that the plan says it"
                    )

    def facts(self) -> Fields:
        """What the daemon that runs the container says of itself, and what is seen of a sandbox."""
        return {"docker": self._info}


def start_daemon() -> None:
    """See that a daemon answers; start one where no service manager does."""
    daemons.start("no Docker daemon answers", "dockerd.sh", Kind().answers)
