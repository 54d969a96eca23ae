"""Containers that an engine makes, Docker or Podman, which understand the same words.

A container stays up for its cell, or for those that share it; its first program waits, and commands are run beside it.
"""

import functools
import json
import os
from collections.abc import Collection

from strata.environments.common import layer, limits
from strata.host import capacity, cgroups, firewall, observe, starting_state
from strata.host.observe import NOT_AVAILABLE
from strata.util import paths
from strata.util.data_types import Any, Described, Fields, HostFacts, Image
from strata.util.errors import UserError
from strata.util.process import capture
from strata.util.progress import once, step

# Each says whose a container is: one of a system, or one in which an image is built.
LABEL, BUILDING = "strata.home", "strata.building"
NETWORKS = {"bridge": "bridge with NAT", "host": "its host’s"}
# Where a bridge is without NAT, and how packets come to a container's published ports.
PROXIED = "bridge, user-land proxy"
NAT, PROXY, NOTHING = "destination NAT", "docker-proxy alone", "nothing seen"
DATA = {"volume": "volume", "layered": "layered file system", "tmpfs": "memory (tmpfs)"}


def tag(image: Image | Described) -> str:
    """The name under which an engine knows the image, by its recipe."""
    return f"{paths.prefix()}/image:{image['recipe'][:12]}"


def base_tag(base: str) -> str:
    """The name under which Docker knows the base (a hash) of images."""
    return f"{paths.prefix()}/base:{base[:12]}"


@functools.cache
def printed(*argv: str) -> str:
    """What a command prints on the host: asked once by a process, which brings up all systems of a block."""
    return capture(argv).stdout


def at(said: Any, *keys: str) -> Any:
    """What lies at these keys of a mapping of mappings; None where it is not so deep."""
    for key in keys:
        said = said.get(key) if isinstance(said, dict) else None
    return said


def schema(**more: Fields) -> Fields:
    """The schema of a container's options, with more of its engine's.

    network: bridge (with NAT) or host.  data: volume (a folder of the layer below), layered (in the container's own
    layered file system) or tmpfs (in memory).  The others are those of :mod:`strata.environments.common.limits`.
    """
    own: Fields = {
        "network": {"enum": list(NETWORKS), "description": "bridge or host"},
        "data": {"enum": list(DATA), "description": "volume, layered or tmpfs"},
    }
    return layer.takes(*own, **own, **limits.PROPERTIES, **more)


class Kind(layer.Kind):
    """What is known of an engine's containers."""

    changes = layer.OF_CONTAINERS
    changed_by = limits.CHANGED

    def tool(self, *words: str) -> list[str]:
        """A command of the engine on the host."""
        return [self.programs[0], *words]

    def answers(self) -> bool:
        """Whether the engine is there to be asked, without being started."""
        return self.unavailable() is None

    def refusal(self, settled: Fields, below: str, machine: HostFacts) -> str | None:
        return limits.refusal(settled, capacity.processors(), machine["memory_bytes"])

    def labels(self, settled: Fields) -> Fields:
        return {"network": NETWORKS[settled["network"]], "data": DATA[settled["data"]]}

    def remove_containers(self, label: str = LABEL) -> list[str]:
        """Remove our containers of this label, where the engine answers; their ids."""
        if not self.answers() or self.barred():
            return []
        ours = f"label={label}={paths.home_mark()}"
        found = capture(self.tool("ps", "--all", "--quiet", "--filter", ours)).stdout.split()
        if found:
            capture(self.tool("rm", "--force", "--volumes", *found))
        return found

    def sweep(self) -> list[str]:
        return [f"container {id}" for id in self.remove_containers()]

    def discard(self, kept: Collection[str]) -> list[str]:
        if not self.answers() or self.barred():
            return []
        ours = ["--filter", f"label=strata.image={paths.home_mark()}", "--no-trunc"]
        form = ["--format", "{{.ID}} {{.Repository}}:{{.Tag}}"]
        gone = []
        for line in sorted(
            set(capture(self.tool("image", "ls", *ours, *form), check=False).stdout.splitlines())
        ):
            id, _, name = line.partition(" ")
            # Podman puts a registry's name before it.
            own = "/".join(name.split("/")[-2:])
            if id in kept or own in kept or not own.startswith(("strata", "<none>")):
                continue
            one = name if own.startswith("strata") else id
            # One of which a container is there stays.
            if capture(self.tool("image", "rm", one), 600, check=False).returncode == 0:
                gone.append(f"the image {one} of {self.title.split()[0]}")
        return gone


class Layer(layer.Layer):
    """A container by the engine :meth:`tool`."""

    def tool(self, *words: str) -> list[str]:
        """A command of the engine, for the layer below."""
        return [self.name, *words]

    def ask(self) -> Fields:
        """What the engine says of itself, for the records.  Raises UserError."""
        words = self.tool("info", "--format", "{{json .}}")
        # The first alone takes its time.
        with once():
            self.said: Fields = json.loads(printed(*self.below.command_plain(words)))
        told = self.told(self.said).items()
        return {name: str(value or NOT_AVAILABLE).partition("\n")[0] for name, value in told}

    def told(self, said: Fields) -> Fields:
        """What is recorded of the engine, from what its `info` says."""
        raise NotImplementedError

    def prepare(self) -> list[str]:
        """Words of `run` that are the engine's own; what is needed for them is noted and made."""
        raise NotImplementedError

    @property
    def id_file(self) -> str:
        """The file in which the engine writes down the container's id."""
        return os.path.join(self.context.folder, "container")

    def up(self) -> None:
        self._info = self.ask()
        place = []
        if self.options["data"] == "volume":
            self.run_below(["mkdir", "-p", self.below.data])
            place = ["--volume", f"{self.below.data}:/data"]
        elif self.options["data"] == "tmpfs":
            # It may do what a volume may.
            place = ["--tmpfs", "/data:rw,exec,suid,dev,mode=0755"]
        own = self.prepare()
        if self.machine() is None:
            # One in a machine goes with it.
            own += ["--cidfile", self.id_file]
            self.context.note(self.trace())
        words = ["run", "--detach", "--init", "--pull", "never", "--name", self.context.id]
        words += ["--hostname", "strata"] * (self.options["network"] != "host")
        words += ["--label", f"{LABEL}={paths.home_mark()}", "--network", self.options["network"]]
        words += [*own, *place, *self.published(), *self.starting(), *limits.words(self.options)]
        # By its id, which is that of its content: a name would have to be looked up before.
        assert self.context.image
        image = self.context.image["id"].removeprefix("sha256:")
        argv = self.complete(self.tool(*words, image, "sleep", "infinity"))
        try:
            self.run_below(argv)
        except UserError:
            if self.run_below(
                self.tool("image", "inspect", "--format", "{{.Id}}", image), check=False
            ).strip():
                raise
            archive = os.path.join(self.context.image["folder"], "image.tar")
            with once(), step(self.name, "loading the image"):
                load = self.below.command_plain(self.loading(), fed=True)
                capture(["sh", "-euc", layer.FEED, "strata", archive, *load], layer.COPYING)
            self.run_below(argv)
        if limits.asked(self.options):
            self._info["settings"] = limits.seen(
                self.options, self.run_below(self.wrap(limits.LOOK), check=False)
            )
        with once():
            self.see()

    def see(self) -> None:
        """See where the container runs and how it is reached.  Raises UserError where that is not as planned."""
        if self.machine() is None and not cgroups.members(self.group() or ""):
            raise UserError(
                f"the container’s control group is not on this host, where it could be frozen: {self.name} is not "
                "this machine’s own; unset DOCKER_HOST, DOCKER_CONTEXT and CONTAINER_HOST, or set them to this host’s"
            )
        if self.published():
            self._info["network"] = self.path()

    def path(self) -> Fields:
        """How packets come to the published ports, of which the first is looked at, for the records."""
        if self.machine() is None:
            seen = firewall.here()
        else:
            seen = firewall.Seen(self.run_below(firewall.LOOKING, check=False))
        where = self._own_address, min(self.context.ports)
        nat, proxy = seen.leads(*where), seen.passes(*where)
        way = NOT_AVAILABLE if nat is None else NAT if nat else PROXY if proxy else NOTHING
        words = {True: "runs", False: "none", None: NOT_AVAILABLE}
        return {"ports": way, "docker_proxy": words[proxy], **seen.facts()}

    def trace(self) -> Fields:
        """How the container is found and removed."""
        return {
            "kind": "container",
            "id": self.context.id,
            "find": self.tool("ps", "--all", "--quiet", "--filter", f"name=^/?{self.context.id}$"),
            "remove": [self.complete(self.tool("rm", "--force", "--volumes", self.context.id))],
        }

    def loading(self) -> list[str]:
        """The command that reads an image from standard input."""
        return self.tool("load", "--quiet")

    def complete(self, argv: list[str]) -> list[str]:
        """A command of the engine that comes to its end, whatever ends the wait for it."""
        return argv

    def published(self) -> list[str]:
        """The words that lead the servers' ports, at the address that a client uses, to those of the container."""
        ports = [] if self.options["network"] == "host" else self.context.ports
        forms = [
            f"{self.below.listen()}:{port}:{port}/{kind}"
            for port in ports
            for kind in ("tcp", "udp")
        ]
        return [word for form in forms for word in ("--publish", form)]

    def starting(self) -> list[str]:
        """The words that give what starts in the container the declared state, as far as the engine gives any."""
        words = [
            "--oom-score-adj",
            str(starting_state.OOM_SCORE),
            "--pids-limit",
            "-1",
            *starting_state.limit_words(),
        ]
        own = (
            self.context.mask
            if self.machine() is None and "cpuset-cpus" not in self.options
            else None
        )
        return words + (["--cpuset-cpus", own] if own else [])

    def wrap(self, argv: list[str], fed: bool = False) -> list[str]:
        return self.tool("exec", *["--interactive"] * fed, self.context.id, *argv)

    def listen(self) -> str:
        if self.options["network"] == "host":
            return self.below.listen()
        return self._own_address

    @functools.cached_property
    def _own_address(self) -> str:
        """That of the container on its bridge."""
        form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        return self.run_below(self.tool("inspect", "--format", form, self.context.id)).strip()

    def group(self) -> str | None:
        # It is not known of a container in a machine.
        return observe.read_files([self.id_file]).get(self.id_file) or None

    def processes(self) -> list[int]:
        machine = self.machine()
        return machine.processes() if machine else cgroups.held(self.group() or "")
