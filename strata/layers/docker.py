"""A Docker container of the image."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import note_json
from strata.base.process import as_root
from strata.base.progress import once, step
from strata.host import cgroups, daemons
from strata.host.observe import NOT_AVAILABLE
from strata.layers import inside, ports, runtime, sandbox
from strata.layers import options as bounds
from strata.layers.layer import TYPE_CHECKING, Layer

if TYPE_CHECKING:
    from typing import ClassVar

LABEL = "strata.home"
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


def short(image: dict) -> str:
    """What of an image's recipe names it for Docker."""
    return image["recipe"][:12]


def tag(image: dict) -> str:
    """The name under which the image is known to Docker."""
    return f"strata/image:{short(image)}"


def base_tag(base: str) -> str:
    """The name under which Docker knows the base (a hash) of images."""
    return f"strata/base:{base[:12]}"


class Docker(Layer):
    """A container that stays up for its cell, or for those that share it; commands are executed in it.

    network: bridge (with NAT) or host.  data: volume (a folder of the layer below, as with
    ``docker run -v``), layered (in the container's own layered file system) or tmpfs (in memory).  The others are
    those of :mod:`strata.layers.options`, and of :mod:`strata.layers.sandbox` for gVisor.
    """

    name = "docker"
    kind = "container"
    stands_idle = True
    title = "Docker container"
    stands_on = ("host", "vm")
    daemons = ("dockerd", "containerd", "containerd-shim", "docker-proxy", "docker-init", "runsc")
    options_schema: ClassVar[dict] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["network", "data"],
        "properties": {
            "network": {"enum": ["bridge", "host"], "description": "bridge or host"},
            "data": {"enum": ["volume", "layered", "tmpfs"], "description": "volume, layered or tmpfs"},
            **sandbox.PROPERTIES,
            **bounds.PROPERTIES,
        },
    }

    @classmethod
    def check(cls, options: dict, config: dict, below: str = "host") -> list[tuple[str, str]]:
        found = [*sandbox.check(options), *bounds.check(options)]
        if (sandbox.asked(options) or runtime.asked(options)) and below != "host":
            words = f"{options['runtime']} is not in the image of a machine; it runs on the host alone"
            found.append(("runtime", words))
        if sandbox.asked(options) and options["network"] == "host" and options.get("stack") != "host":
            found.append(("stack", "the sandbox’s own stack cannot be the host’s network; set stack: host"))
        return found

    @classmethod
    def settle(cls, options: dict, config: dict) -> dict:
        return sandbox.settle(options)

    @classmethod
    def refusal(cls, options: dict, below: str, machine: dict) -> str | None:
        if below != "host":
            # A machine numbers its own CPUs; its memory follows from the workloads' scale.
            asked = {key: options[key] for key in ("cpuset-cpus",) if key in options}
            return bounds.refusal(asked, set(range(machine["cpus"])), 0)
        if reason := bounds.refusal(options, os.sched_getaffinity(0), machine["memory_bytes"]):
            return reason
        if sandbox.asked(options) and (reason := sandbox.refusal(options)):
            return reason
        own = options.get("user-namespace") == "own"
        if not (own or sandbox.asked(options) or runtime.asked(options)) or not answers():
            return None
        known, secured = _offered()
        if own and "name=userns" not in secured:
            return "the Docker daemon gives containers the host’s users: start it with --userns-remap to change that"
        if sandbox.asked(options) and sandbox.name(options) not in known:
            return "the Docker daemon does not know gVisor’s runtimes: `scripts/dockerd.sh runtimes` adds them"
        return runtime.refusal(options, known) if runtime.asked(options) else None

    @classmethod
    def doubtful(cls, options: dict) -> bool:
        return sandbox.asked(options)

    @classmethod
    def memory(cls, options: dict) -> int | None:
        return bounds.size(options["memory"]) if "memory" in options else None

    @classmethod
    def unavailable(cls) -> str | None:
        if not shutil.which("docker"):
            return "Docker is not installed: run `make setup`"
        if not answers() and not shutil.which("dockerd"):
            return "no Docker daemon answers and none is installed: start it, or run `make setup`"
        return None

    @classmethod
    def examine(cls) -> list[tuple[str, bool | None, str]]:
        from strata.base.process import capture

        reason = cls.unavailable()
        if reason is None and not answers():
            reason = "no daemon answers: `make setup` (or scripts/dockerd.sh) starts one"
        if reason:
            return [("Docker", False, reason)]
        # Somebody whom the daemon refuses is told so by the first; of some versions the second then tells of nothing.
        done = capture(["docker", "version", "--format", "{{.Server.Version}}"], check=False)
        if done.returncode == 0:
            told = "{{.ServerVersion}}, {{.Driver}}, {{.CgroupDriver}}"
            done = capture(["docker", "info", "--format", told], check=False)
        if done.returncode != 0:
            words = (done.stderr or done.stdout).strip().splitlines() or ["it fails without a word"]
            return [("Docker", False, f"the client cannot use the daemon: {words[-1]}")]
        docker = ("Docker", True, f"version, storage, cgroup driver: {done.stdout.strip()}")
        return [docker, ("gVisor", *sandbox.examine())]

    @classmethod
    def told(cls, options: dict) -> dict:
        networks = {"bridge": "bridge with NAT", "host": "its host’s"}
        places_of_data = {"volume": "volume", "layered": "layered file system", "tmpfs": "memory (tmpfs)"}
        found = {"network": networks[options["network"]], "data": places_of_data[options["data"]]}
        if sandbox.asked(options):
            network = f"{found['network']}, {sandbox.network(options)}"
            found |= {"kind": "sandbox", "title": sandbox.title(options), "network": network}
        elif runtime.asked(options):
            found |= runtime.told(options)
        return found

    @classmethod
    def warmup(cls) -> list[list[str]]:
        # The daemon is up, as the host's is: its start under emulation takes longer than that of a container.
        return [["systemctl", "start", "docker.service"]]

    @classmethod
    def sweep(cls) -> list[str]:
        return [f"container {name}" for name in sweep()]

    def up(self) -> None:
        assert self.below
        assert self.context.image
        if self.below.name == "host":
            start_daemon()
        self._info = self._told()
        driver = self._info["cgroup_driver"]
        place = []
        if self.options["data"] == "volume":
            self.run_below(["mkdir", "-p", self.below.data])
            place = ["--volume", f"{self.below.data}:/data"]
        elif self.options["data"] == "tmpfs":
            place = bounds.tmpfs("/data")
        if self._is_apart:
            called = sandbox.name(self.options) if self._is_sandbox else self.options["runtime"]
            place += ["--runtime", called]
            end = ["sh", "-c", END_GROUP, "strata", self._id_file, cgroups.ROOT, cgroups.GROUP, cgroups.SLICE]
            self.context.note(
                {"kind": "group of", "id": self.context.id, "root": True, "find": ["true"], "remove": [end]}
            )
        if self.below.machine() is None:
            # One in a machine goes with it.
            self.context.note(
                {
                    "kind": "container",
                    "id": self.context.id,
                    "find": ["docker", "ps", "--all", "--quiet", "--filter", f"name=^/{self.context.id}$"],
                    "remove": [["docker", "rm", "--force", "--volumes", self.context.id]],
                    # A daemon that is gone still has its containers.
                    "start": "scripts/dockerd.sh",
                }
            )
        argv = ["docker", "run", "--detach", "--init", "--pull", "never", "--name", self.context.id]
        argv += ["--hostname", "strata"] * (self.options["network"] != "host")
        argv += ["--cidfile", self._id_file] * (self._is_apart or self.below.machine() is None)
        argv += ["--label", f"{LABEL}={places.home_mark()}", "--network", self.options["network"]]
        argv += ["--cgroup-parent", cgroups.parent_for(driver), *place, *self._published(), *bounds.words(self.options)]
        argv += ["--userns", "host"] * (self.options.get("user-namespace") == "host")
        # By its id, which is that of its content: a name would have to be looked up before.
        argv += [self.context.image["id"], *inside.REST]
        try:
            self._run(argv)
        except UserError as error:
            if "no such image" not in str(error).lower():
                raise
            self.see_image()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._id_file)
            self._run(argv)
        if self.options.get("user-namespace") == "own" and self.options["data"] == "volume":
            self._give_data()
        self._see_settings()

    @property
    def _is_sandbox(self) -> bool:
        return sandbox.asked(self.options)

    @property
    def _is_apart(self) -> bool:
        """Whether its processes may be none of the host's."""
        return self._is_sandbox or runtime.asked(self.options)

    @property
    def _id_file(self) -> str:
        return os.path.join(self.context.folder, "container")

    def _give_data(self) -> None:
        """Let the container's root, who is another user here, write where its data are."""
        assert self.below
        form = "/proc/{{.State.Pid}}"
        process = self.run_below(["docker", "inspect", "--format", form, self.context.id]).strip()
        # The first line: the first user inside, who that is here, and how many follow.
        users, groups = (self.run_below(["cat", f"{process}/{name}_map"]).split() for name in ("uid", "gid"))
        self.run_below(as_root(["chown", f"{users[1]}:{groups[1]}", self.below.data]))

    def _see_settings(self) -> None:
        """See that what the container may do is what was asked for.  Raises UserError where it is not."""
        self._seen = bounds.see(self.options, lambda: self.run_below(self.wrap(bounds.LOOK), check=False), "Docker")
        if self._is_sandbox:
            found = sandbox.seen(cgroups.command_lines(self.run_below(cgroups.look(cgroups.of_containers()))))
            self._seen["sandbox"] = {"program": sandbox.PROGRAM, "version": sandbox.version(), **found}
        elif self._is_apart:
            self._seen["runtime"] = runtime.facts(self.options, _offered()[0])

    def _told(self) -> dict:
        """What the daemon says of itself; the host's is asked once, as long as it is the same.

        Raises UserError where that is no object.
        """
        assert self.below
        same = _life_of_daemon() if self.below.name == "host" else None
        kept = os.path.join(places.home(), "docker.json")
        if same:
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError), open(kept, encoding="utf-8") as file:
                known = json.load(file)
                if known["daemon"] == same and set(known["told"]) == set(FACTS):
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

    def facts(self) -> dict:
        """What the daemon that runs the container says of itself."""
        return {"docker": {**self._info, **self._seen}}

    def _published(self) -> list[str]:
        """Options that let a client reach the servers' ports: by rules of the kernel, at the address it uses."""
        if self.options["network"] == "host":
            return []
        assert self.below
        return ports.published(self.context.ports, self._at())

    def _at(self) -> str:
        """The address at which ports are published."""
        assert self.below
        return self.below.listen()

    def _run(self, argv: list[str]) -> None:
        """Start the container.  Raises UserError, which names the port where one is taken."""
        try:
            self.run_below(argv)
        except UserError as error:
            raise ports.told(error, self._at) from None

    def wrap(self, argv: list[str]) -> list[str]:
        return ["docker", "exec", self.context.id, *argv]

    def wrap_fed(self, argv: list[str]) -> list[str]:
        return [*self._inside, *argv]

    def cpus(self) -> int | None:
        return len(bounds.cpus(self.options["cpuset-cpus"])) if "cpuset-cpus" in self.options else None

    def left(self) -> list[str]:
        assert self.below
        if self._is_apart:
            # The host sees no more of its processes than that there are some.
            return inside.seen(cgroups.command_lines(self.run_below(self.wrap(inside.LOOK))))
        # In a machine there are only those of the one system that is up.
        folders = [f"{folder}{self._container()}*" for folder in cgroups.of_containers()]
        return inside.left(cgroups.command_lines(self.run_below(cgroups.look(folders))))

    def group(self) -> str | None:
        return self._container() or None

    def _container(self) -> str:
        """The id that Docker gave it; nothing where that is not known here, as of one in a machine."""
        try:
            with open(self._id_file, encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            return ""

    def put(self, source: str, target: str) -> None:
        # A path from the root: `-`, `-x` and `a:b` mean something else to Docker.
        source = os.path.abspath(source)
        with self._stage(source) as path:
            if path != source:
                self.below.put(source, path)  # type: ignore[union-attr]
            if self._unseen:
                self.run_below(["sh", "-euc", inside.PUT, "strata", path, target, *self._inside], timeout=3600)
            else:
                self.run_below(["docker", "cp", path, f"{self.context.id}:{target}"], timeout=3600)

    def get(self, source: str, target: str) -> None:
        target = os.path.abspath(target)
        with self._stage(target) as path:
            if self._unseen:
                self.run_below(["sh", "-euc", inside.GET, "strata", path, source, *self._inside], timeout=3600)
            else:
                self.run_below(["docker", "cp", f"{self.context.id}:{source}", path], timeout=3600)
            if path != target:
                self.below.get(path, target)  # type: ignore[union-attr]

    @property
    def _inside(self) -> list[str]:
        """The words that run a command in the container with standard input."""
        return ["docker", "exec", "--interactive", self.context.id]

    @property
    def _unseen(self) -> bool:
        """Whether the daemon cannot see the data: in memory, or in the layers as a sandbox or a machine has them."""
        return self.options["data"] == "tmpfs" or (self._is_apart and self.options["data"] == "layered")

    @contextlib.contextmanager
    def _stage(self, path: str) -> Iterator[str]:
        """Where a file of the host lies for the daemon: there on the host, in a machine at a place of its own."""
        assert self.below
        if self.below.name == "host":
            yield path
            return
        stage = f"/tmp/{self.context.id}-file"
        try:
            yield stage
        finally:
            self.run_below(["rm", "-f", "--", stage])

    def see_image(self) -> None:
        """See that the daemon has exactly the image; bring it from the cache where it is missing.  Raises UserError."""
        image = self.context.image
        assert image
        form = ["docker", "image", "inspect", "--format", "{{.Id}}", tag(image)]
        found = self.run_below(form, check=False).strip()
        if found != image["id"]:
            with self._stage(os.path.join(image["folder"], "image.tar")) as archive:
                assert self.below
                if self.below.name != "host":
                    self.below.put(os.path.join(image["folder"], "image.tar"), archive)
                with once(), step("docker", "loading the image"):
                    self.run_below(["docker", "load", "--quiet", "--input", archive], timeout=3600)
            found = self.run_below(form).strip()
        if found != image["id"]:
            raise UserError(
                f"Docker knows {tag(image)} as {found}, not as {image['id']}: run `python3 -m strata image --rebuild`"
            )

    def listen(self) -> str:
        assert self.below
        if self.options["network"] == "host":
            return self.below.listen()
        form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        return self.run_below(["docker", "inspect", "--format", form, self.context.id]).strip()

    def processes(self) -> list[int]:
        """The container's processes and the one that holds it; those of a machine below stand for all in it."""
        assert self.below
        machine = self.below.machine()
        if machine is not None:
            return machine.processes()
        if self._is_apart:
            # Docker lists them by the numbers that they have inside.
            form = "{{.State.Pid}}"
            return cgroups.beside(int(self.run_below(["docker", "inspect", "--format", form, self.context.id])))
        listed = self.run_below(["docker", "top", self.context.id, "-eo", "pid,ppid"]).splitlines()[1:]
        pairs = [tuple(int(word) for word in line.split()) for line in listed]
        inside = {process for process, _ in pairs}
        return sorted(inside | {parent for _, parent in pairs if parent > 1})


def _life_of_daemon() -> list | None:
    """What is another once the host's daemon or the host was started again; None where that cannot be told."""
    from strata.base.process import start_time

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


def _offered() -> tuple[dict[str, dict], list[str]]:
    """The runtimes that the daemon knows, with what it says of each, and how it secures containers."""
    from strata.base.process import capture

    form = "[{{json .Runtimes}}, {{json .SecurityOptions}}]"
    try:
        runtimes, secured = json.loads(capture(["docker", "info", "--format", form], check=False).stdout)
        return {name: dict(said or {}) for name, said in dict(runtimes or {}).items()}, list(secured or [])
    except (ValueError, TypeError):
        return {}, []


def answers() -> bool:
    """Whether a Docker daemon listens where the client will look for it."""
    if not os.environ.get("DOCKER_HOST", "unix://").startswith("unix://"):
        return True
    return daemons.listens(os.environ.get("DOCKER_HOST", "").removeprefix("unix://") or "/var/run/docker.sock")


def start_daemon() -> None:
    """See that a daemon answers; start one where no service manager does."""
    daemons.start("no Docker daemon answers", "dockerd.sh", answers)


def remove_builds(recipe: str | None = None) -> None:
    """Remove what builds of ours left: containers that were provisioned, and images that have no name.

    recipe: of this one alone, the caller being the one who builds it.
    """
    from strata.base.process import capture

    of_recipe = [] if recipe is None else ["--filter", f"label=strata.recipe={recipe[:12]}"]
    if recipe is not None:
        filters = [
            "--filter",
            f"label={LABEL}={places.home_mark()}",
            "--filter",
            f"label=strata.building={recipe[:12]}",
        ]
        found = capture(["docker", "ps", "--all", "--quiet", *filters], check=False).stdout.split()
        if found:
            capture(["docker", "rm", "--force", "--volumes", *found], check=False)
    ours = ["--filter", f"label=strata.image={places.home_mark()}", *of_recipe]
    capture(["docker", "image", "prune", "--force", *ours], timeout=600, check=False)


def named(recipe: str) -> str | None:
    """Id of the image that Docker has under the name of a recipe, whoever built it; None where it has none."""
    from strata.base.process import capture

    form = ["docker", "image", "inspect", "--format", "{{.Id}}", tag({"recipe": recipe})]
    return capture(form, check=False).stdout.strip() or None


def name_again(recipe: str, before: str | None) -> None:
    """Give a recipe's name back to the image that had it before a build that failed, or to none."""
    from strata.base.process import capture

    name = tag({"recipe": recipe})
    capture(["docker", "image", "rm", name] if before is None else ["docker", "tag", before, name], check=False)


def forget(but: set[str]) -> list[str]:
    """Remove the images of this installation but for those with these names; what it was, in words.

    Docker keeps one of which a container is there.
    """
    from strata.base.process import capture

    if not shutil.which("docker") or not answers():
        return []
    ours = ["--filter", f"label=strata.image={places.home_mark()}", "--format", "{{.Repository}}:{{.Tag}}"]
    found = set(capture(["docker", "image", "ls", *ours], check=False).stdout.split()) - but
    names = sorted(name for name in found if name.startswith(("strata/image:", "strata/base:")))
    gone = [name for name in names if capture(["docker", "image", "rm", name], 600, check=False).returncode == 0]
    return [f"Docker's {name}" for name in gone]


def _being_built() -> set[str]:
    """What containers call the recipes of images that some process builds now: it holds the lock of each."""
    from strata.base.locks import held

    folder = os.path.join(places.home(), "images")
    locks = [name for name in os.listdir(folder) if name.endswith(".lock")] if os.path.isdir(folder) else []
    return {name[:12] for name in locks if held(os.path.join(folder, name))}


def sweep() -> list[str]:
    """Remove every container of this installation but those in which an image is being built; returns their ids."""
    from strata.base.process import capture

    if not shutil.which("docker") or not answers():
        return []
    ours = ["--filter", f"label={LABEL}={places.home_mark()}", "--format", '{{.ID}} {{.Label "strata.building"}}']
    listed = [line.split() for line in capture(["docker", "ps", "--all", *ours]).stdout.splitlines()]
    building = _being_built()
    found = [id for id, *recipe in listed if not building.intersection(recipe)]
    if found:
        capture(["docker", "rm", "--force", "--volumes", *found])
    if not building:
        remove_builds()
    return found
