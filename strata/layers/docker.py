"""A Docker container of the image."""

from __future__ import annotations

import contextlib
import json
import os

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import note_json, read_json
from strata.base.process import as_root, capture, start_time
from strata.base.shapes import Fields, HostFacts
from strata.host import cgroups, daemons
from strata.host.observe import NOT_AVAILABLE
from strata.layers.common import engine, gvisor, limits
from strata.layers.common.layer import TYPE_CHECKING, where

if TYPE_CHECKING:
    from typing import ClassVar

# Where a daemon writes down its process.
PID_FILE = "/var/run/docker.pid"
# Ends what is left in the control groups of a container that is gone: a runtime that fails may leave its processes.
# Arguments: the file in which Docker wrote down the container's id, where groups are, and what ours are called.
END_GROUP = """
    id=$(cat "$1" 2>/dev/null) || exit 0
    [ -n "$id" ] || exit 0
    cd "$2"
    for group in */"$3/$id" "$3/$id" "$4"/*-"$id".scope; do
        for try in 1 2 3 4 5; do
            [ -d "$group" ] || break
            kill -KILL $(cat "$group/cgroup.procs") 2>/dev/null
            rmdir "$group" 2>/dev/null || sleep 0.2
        done
    done
    exit 0
"""
# What is recorded of a daemon.
FACTS = ("engine", "containerd", "runc", "storage_driver", "cgroup_driver")
# Runtimes that make a container of namespaces and control groups, as Docker's own does.
ALIKE = ("crun", "youki")


def other_runtime(options: Fields) -> str | None:
    """The runtime that is neither Docker's own nor gVisor, such as that of Kata Containers; None without one."""
    name = options.get("runtime", "runc")
    return None if name in ("runc", gvisor.PROGRAM) else name


class Kind(engine.Kind):
    """Docker containers; runtime: runc, runsc (gVisor), or the name of another that the daemon knows."""

    title = "Docker container"
    stands_on = ("host", "vm")
    stands_idle = True
    programs = ("docker",)
    daemons = ("dockerd", "containerd", "containerd-shim", "docker-proxy", "docker-init", "runsc")
    options_schema: ClassVar[Fields] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["network", "data"],
        "properties": {**engine.Kind.PROPERTIES, **gvisor.PROPERTIES, **limits.OF_DOCKER},
    }

    def tool(self, *words: str) -> list[str]:
        return ["docker", *words]

    def answers(self) -> bool:
        return where("docker") is not None and answers()

    def unavailable(self) -> str | None:
        if (reason := super().unavailable()) or answers() or where("dockerd"):
            return reason
        return "no Docker daemon answers and none is installed: start it, or run `make setup`"

    def check(self, options: Fields, config: Fields, below: str = "host") -> list[tuple[str, str]]:
        found = [*gvisor.check(options), *super().check(options, config, below)]
        if options.get("runtime", "runc") != "runc" and below != "host":
            found.append(("runtime", f"{options['runtime']} is not in a machine’s image; it runs on the host alone"))
        return found

    def settle(self, options: Fields, config: Fields) -> Fields:
        return gvisor.settle(options)

    def refusal(self, settled: Fields, below: str, machine: HostFacts) -> str | None:
        if below != "host":
            # A machine numbers its own CPUs; its memory follows from the workloads' scale.
            bound = {key: settled[key] for key in ("cpuset-cpus",) if key in settled}
            return limits.refusal(bound, set(range(machine["cpus"])), 0)
        sandbox, other = gvisor.asked(settled), other_runtime(settled)
        reason = limits.refusal(settled, os.sched_getaffinity(0), machine["memory_bytes"])
        reason = reason or (gvisor.refusal(settled) if sandbox else None)
        remapped = settled.get("user-namespace") == "own"
        if reason or not (remapped or sandbox or other) or not answers():
            return reason
        runtimes, secured = offered()
        if remapped and "name=userns" not in secured:
            return "the Docker daemon gives containers the host’s users: start it with --userns-remap to change that"
        if sandbox and gvisor.name(settled) not in runtimes:
            return "the Docker daemon does not know gVisor’s runtimes: `scripts/dockerd.sh runtimes` adds them"
        # The daemon looks itself for those that begin so.
        if other and other not in runtimes and not other.startswith("io.containerd."):
            known = ", ".join(sorted(name for name in runtimes if not name.startswith("strata-")))
            return (
                f"the Docker daemon knows no runtime {other} (it knows {known}): add it to the daemon’s configuration"
            )
        return None

    def labels(self, settled: Fields) -> Fields:
        found = super().labels(settled)
        if gvisor.asked(settled):
            found |= gvisor.labels(settled, found["network"])
        elif other := other_runtime(settled):
            # What such a runtime puts between a program and the host is not known here.
            found |= {"title": f"Docker container by the runtime {other}"} | (
                {} if other in ALIKE else {"kind": "other"}
            )
        return found

    def doubtful(self, settled: Fields) -> bool:
        return gvisor.asked(settled)

    def examine(self) -> list[tuple[str, bool | None, str]]:
        reason = self.unavailable()
        if reason is None and not answers():
            reason = "no daemon answers: `make setup` (or scripts/dockerd.sh) starts one"
        if reason:
            return [("Docker", False, reason)]
        # Docker 26 prints nothing, and no error, to a user whom the daemon refuses: the version does.
        version = capture(["docker", "version", "--format", "{{.Server.Version}}"], check=False)
        if version.returncode != 0:
            text = (version.stderr or version.stdout).strip().splitlines() or ["it fails without a word"]
            return [("Docker", False, f"the client cannot use the daemon: {text[-1]}")]
        return [("Docker", True, f"version {version.stdout.strip()}"), ("gVisor", *gvisor.examine())]


class Layer(engine.Layer):
    """A container of the host's daemon, or of that in the machine below."""

    def tool(self, *words: str) -> list[str]:
        return ["docker", *words]

    def warmup(self) -> list[list[str]]:
        # The daemon is up, as the host's is: its start under emulation takes longer than that of a container.
        return [["systemctl", "start", "docker.service"]]

    @property
    def _sandbox(self) -> bool:
        return gvisor.asked(self.options)

    @property
    def _id_file(self) -> str:
        return os.path.join(self.context.folder, "container")

    def ask(self) -> Fields:
        """What the daemon says of itself; the host's is asked once in its life."""
        own = self.below.name == "host"
        if own:
            start_daemon()
        same, kept = _life_of_daemon() if own else None, os.path.join(places.home(), "docker.json")
        known = (read_json(kept) or {}) if same else {}
        if known.get("daemon") == same is not None:
            return dict(known["told"])
        told = self.run_below(["docker", "info", "--format", "{{json .}}"])
        try:
            info = dict(json.loads(told))
        except ValueError:
            raise UserError(f"`docker info` prints no JSON object but {told.strip()[:80]!r}: is this Docker?") from None
        commits = [(info.get(key) or {}).get("ID") for key in ("ContainerdCommit", "RuncCommit")]
        values = [info.get("ServerVersion"), *commits, info.get("Driver"), info.get("CgroupDriver")]
        found = {name: value or NOT_AVAILABLE for name, value in zip(FACTS, values, strict=True)}
        if same and NOT_AVAILABLE not in found.values():
            note_json(kept, {"daemon": same, "told": found})
        return found

    def prepare(self) -> list[str]:
        words = ["--cgroup-parent", cgroups.parent_for(self._info["cgroup_driver"])]
        words += ["--cidfile", self._id_file] * (self.machine() is None)
        words += ["--userns", "host"] * (self.options.get("user-namespace") == "host")
        if runtime := gvisor.name(self.options) if self._sandbox else other_runtime(self.options):
            words += ["--runtime", runtime]
            end = ["sh", "-c", END_GROUP, "strata", self._id_file, cgroups.ROOT, cgroups.GROUP, cgroups.SLICE]
            self.context.note(
                {"kind": "group of", "id": self.context.id, "root": True, "find": ["true"], "remove": [end]}
            )
        return words

    def trace(self) -> Fields:
        # A daemon that is gone still has its containers.
        return {**super().trace(), "start": "scripts/dockerd.sh"}

    def start(self, argv: list[str]) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._id_file)
        super().start(argv)

    def up(self) -> None:
        super().up()
        if self.options.get("user-namespace") == "own" and self.options["data"] == "volume":
            # The container's root, who is another user here, has to write where its data are.
            process = self.inspect("/proc/{{.State.Pid}}")
            # The first line: the first user inside, who that is here, and how many follow.
            users, groups = (self.run_below(["cat", f"{process}/{name}_map"]).split() for name in ("uid", "gid"))
            self.run_below(as_root(["chown", f"{users[1]}:{groups[1]}", self.below.data]))
        if self._sandbox:
            lines = cgroups.command_lines(self.run_below(cgroups.look(cgroups.of_containers())))
            self._info["sandbox"] = gvisor.seen(lines)
        elif other := other_runtime(self.options):
            self._info["runtime"] = {"name": other, **_started_by(offered()[0].get(other, {}))}

    def facts(self) -> Fields:
        """What the daemon that runs the container says of itself."""
        return {"docker": self._info}

    def group(self) -> str | None:
        """The container's id; it is not known of one in a machine."""
        with contextlib.suppress(OSError), open(self._id_file, encoding="utf-8") as file:
            return file.read().strip() or None
        return None

    def left(self) -> list[str]:
        if self._sandbox or other_runtime(self.options):
            # The host sees no more of its processes than that there are some.
            return super().left()
        # In a machine there are only those of the one system that is up.
        folders = [f"{folder}{self.group() or ''}*" for folder in cgroups.of_containers()]
        return engine.but_waiting(cgroups.command_lines(self.run_below(cgroups.look(folders))))


def _life_of_daemon() -> list[object] | None:
    """What changes when the host's daemon or the host is started again; None where that cannot be known."""
    if os.environ.get("DOCKER_HOST"):
        return None
    try:
        with (
            open(PID_FILE, encoding="utf-8") as file,
            open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as boot,
        ):
            pid = int(file.read())
            began = start_time(pid)
            return None if began is None else [boot.read().strip(), pid, began]
    except (OSError, ValueError):
        return None


def offered() -> tuple[dict[str, Fields], list[str]]:
    """The runtimes that the daemon knows, with what it says of each, and how it secures containers."""
    form = "[{{json .Runtimes}}, {{json .SecurityOptions}}]"
    try:
        runtimes, secured = json.loads(capture(["docker", "info", "--format", form], check=False).stdout)
        return {name: dict(said or {}) for name, said in dict(runtimes or {}).items()}, list(secured or [])
    except (ValueError, TypeError):
        return {}, []


def _started_by(said: Fields) -> Fields:
    """``{program, version}`` of a runtime: what the daemon starts for it, and what that says of itself."""
    program = said.get("path") or said.get("runtimeType") or NOT_AVAILABLE
    lines = capture([program, "--version"], check=False).stdout.splitlines() if os.access(program, os.X_OK) else []
    return {"program": program, "version": next((line.strip() for line in lines if line.strip()), NOT_AVAILABLE)}


def answers() -> bool:
    """Whether a Docker daemon listens where the client will look for it."""
    if not os.environ.get("DOCKER_HOST", "unix://").startswith("unix://"):
        return True
    return daemons.listens(os.environ.get("DOCKER_HOST", "").removeprefix("unix://") or "/var/run/docker.sock")


def start_daemon() -> None:
    """See that a daemon answers; start one where no service manager does."""
    daemons.start("no Docker daemon answers", "dockerd.sh", answers)
