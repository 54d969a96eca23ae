"""Containers that an engine makes, Docker or Podman: both understand the same commands.

A container stays up for its cell, or for those that share it; its first program waits, and `exec`
runs the commands.
"""

from __future__ import annotations

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
from strata.util.progress import one_off, report_step

# Its import takes a cell's time, and only types need it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

# Labels of the containers of systems, and of those in which an image is built; the value is the
# home's mark.
LABEL, BUILDING = "strata.home", "strata.building"
NETWORKS = {"bridge": "bridge with NAT", "host": "its host’s"}
# How packets come to a container's published ports, as records say it.
NAT, PROXY, NOTHING = "destination NAT", "docker-proxy alone", "nothing seen"
# The network's name in labels where a bridge is without NAT.
PROXIED = "bridge, user-land proxy"
DATA = {"volume": "volume", "layered": "layered file system", "tmpfs": "memory (tmpfs)"}


def tag(image: Image | Described) -> str:
    """Return the name under which an engine knows the image, by its recipe."""
    return f"{paths.name_prefix()}/image:{image['recipe'][:12]}"


def base_tag(base: str) -> str:
    """Return the name under which Docker knows the base (a hash) of images."""
    return f"{paths.name_prefix()}/base:{base[:12]}"


@functools.cache
def run_once(*argv: str) -> str:
    """Run a command on the host, once in a process, and return what it prints."""
    return capture(argv).stdout


def value_at(mapping: Any, *keys: str) -> Any:
    """Return the value at these keys of nested mappings; None where one is missing."""
    for key in keys:
        mapping = mapping.get(key) if isinstance(mapping, dict) else None
    return mapping


def container_schema(**more: Fields) -> Fields:
    """Return the schema of a container's options, with `more` of its engine's.

    network: bridge (with NAT) or host.  data: volume (a folder of the layer below), layered (in the
    container's own layered file system) or tmpfs (in memory).  The others are those of
    :mod:`strata.environments.common.limits`.
    """
    required: Fields = {
        "network": {"enum": list(NETWORKS), "description": "bridge or host"},
        "data": {"enum": list(DATA), "description": "volume, layered or tmpfs"},
    }
    return layer.options_schema(*required, **required, **limits.PROPERTIES, **more)


class Container(layer.Layer):
    """A container by an engine, whose commands :meth:`host_tool` and :meth:`tool` give."""

    engine_name: ClassVar[str]
    """The engine's name for people."""

    differences = layer.CONTAINER_DIFFERENCES
    option_differences = limits.DIFFERENCES

    @classmethod
    def host_tool(cls, *words: str) -> list[str]:
        """Return a command of the engine on the host."""
        return [cls.name, *words]

    @classmethod
    def answers(cls) -> bool:
        """Return whether the engine can be used without being started."""
        return cls.unavailable_reason() is None

    @classmethod
    def is_usable(cls) -> bool:
        """Return whether this user can have the engine do something now."""
        return cls.answers() and cls.permission_reason() is None

    @classmethod
    def check_options(cls, options: Fields, below: str) -> list[tuple[str, str]]:
        """Return limits that no container can have."""
        return limits.check(options)

    @classmethod
    def refusal_reason(cls, resolved: Fields, below: str, machine: HostFacts) -> str | None:
        """Refuse limits that the host cannot grant."""
        return limits.refusal(resolved, capacity.usable_processors(), machine["memory_bytes"])

    @classmethod
    def labels(cls, resolved: Fields) -> Fields:
        """Name the container's network and where its data lie."""
        return {"network": NETWORKS[resolved["network"]], "data": DATA[resolved["data"]]}

    @classmethod
    def remove_containers(cls, label: str = LABEL) -> list[str]:
        """Remove Strata's containers with this label, where the engine answers.

        Returns their ids.
        """
        if not cls.is_usable():
            return []
        mark = f"label={label}={paths.home_mark()}"
        ids = capture(cls.host_tool("ps", "--all", "--quiet", "--filter", mark)).stdout.split()
        if ids:
            capture(cls.host_tool("rm", "--force", "--volumes", *ids))
        return ids

    @classmethod
    def remove_systems(cls) -> list[str]:
        """Remove the containers of all systems."""
        return [f"container {id}" for id in cls.remove_containers()]

    @classmethod
    def remove_images(cls, kept: Collection[str]) -> list[str]:
        """Remove the engine's images of this home, except `kept` ones and those of containers."""
        if not cls.is_usable():
            return []
        filters = ["--filter", f"label=strata.image={paths.home_mark()}", "--no-trunc"]
        columns = ["--format", "{{.ID}} {{.Repository}}:{{.Tag}}"]
        listed = capture(cls.host_tool("image", "ls", *filters, *columns), check=False).stdout
        removed = []
        for line in sorted(set(listed.splitlines())):
            id, _, name = line.partition(" ")
            # Podman puts a registry's name before the image's.
            short = "/".join(name.split("/")[-2:])
            if id in kept or short in kept or not short.startswith(("strata", "<none>")):
                continue
            image = name if short.startswith("strata") else id
            # The engine refuses to remove an image of which there is a container.
            if capture(cls.host_tool("image", "rm", image), 600, check=False).returncode == 0:
                removed.append(f"the image {image} of {cls.engine_name}")
        return removed

    def tool(self, *words: str) -> list[str]:
        """Return a command of the engine for the layer below."""
        return [self.name, *words]

    def engine_facts(self, info: Fields) -> Fields:
        """Return what records say of the engine, from what its `info` prints."""
        raise NotImplementedError

    def run_options(self) -> list[str]:
        """Return options of the engine's `run` that other engines do not have."""
        raise NotImplementedError

    @property
    def id_file(self) -> str:
        """The file into which the engine writes the container's id."""
        return os.path.join(self.context.folder, "container")

    def bring_up(self) -> None:
        """Ask the engine for its facts before anything is made.  Raises UserError."""
        self.ask_engine()
        super().bring_up()

    def ask_engine(self) -> None:
        """Ask the engine for its version and configuration, for the records.  Raises UserError."""
        # The first question alone takes its time.
        with one_off():
            argv = self.below.plain_command(self.tool("info", "--format", "{{json .}}"))
            self.info: Fields = json.loads(run_once(*argv))
        self._facts: Fields = {}
        for name, value in self.engine_facts(self.info).items():
            self._facts[name] = str(value or NOT_AVAILABLE).partition("\n")[0]

    def cleanup_entries(self) -> list[Fields]:
        """Return the entry for the container; one in a virtual machine goes with that."""
        if self.virtual_machine() is not None:
            return []
        named = f"name=^/?{self.context.id}$"
        remove = self.tool("rm", "--force", "--volumes", self.context.id)
        return [
            {
                "kind": "container",
                "id": self.context.id,
                "find": self.tool("ps", "--all", "--quiet", "--filter", named),
                "remove": [self.complete(remove)],
            }
        ]

    def up(self) -> None:
        """Run the container, load the image if it is missing, and check what was applied."""
        argv = self._run_command()
        try:
            self.run_below(argv)
        except UserError:
            if not self._load_image():
                raise
            self.run_below(argv)
        if limits.set_options(self.options):
            inside = self.run_below(self.wrap(limits.PRINT_FILES), check=False)
            self._facts["settings"] = limits.applied(self.options, inside)
        with one_off():
            self.observe_container()

    def _run_command(self) -> list[str]:
        """Return the engine's command that starts the container."""
        options = ["--detach", "--init", "--pull", "never", "--name", self.context.id]
        options += ["--label", f"{LABEL}={paths.home_mark()}", "--network", self.options["network"]]
        if self.options["network"] != "host":
            options += ["--hostname", "strata"]
        if self.virtual_machine() is None:
            options += ["--cidfile", self.id_file]
        options += [*self.run_options(), *self._data_options(), *self.published()]
        options += [*self._state_options(), *limits.run_options(self.options)]
        return self.complete(self.tool("run", *options, self._image_id, "sleep", "infinity"))

    @property
    def _image_id(self) -> str:
        """The image's id, the hash of its content; the engine need not look up a name."""
        return self.image["id"].removeprefix("sha256:")

    def _load_image(self) -> bool:
        """Load the image into the engine's store; return False where it is there already."""
        inspect = self.tool("image", "inspect", "--format", "{{.Id}}", self._image_id)
        if self.run_below(inspect, check=False).strip():
            return False
        archive = os.path.join(self.image["folder"], "image.tar")
        with one_off(), report_step(self.name, "loading the image"):
            load = self.below.plain_command(self.load_command(), fed=True)
            capture(["sh", "-euc", layer.READ_FILE, "strata", archive, *load], layer.COPY_TIMEOUT)
        return True

    def _data_options(self) -> list[str]:
        """Return the options that give the container its /data; a volume's folder is made."""
        if self.options["data"] == "volume":
            self.run_below(["mkdir", "-p", self.below.data])
            return ["--volume", f"{self.below.data}:/data"]
        if self.options["data"] == "tmpfs":
            # Programs may do there what they may do in a volume.
            return ["--tmpfs", "/data:rw,exec,suid,dev,mode=0755"]
        return []

    def _state_options(self) -> list[str]:
        """Return the options that start programs in the declared state."""
        options = ["--oom-score-adj", str(starting_state.OOM_SCORE), "--pids-limit", "-1"]
        options += starting_state.container_limit_options()
        # The mask of the experiment holds for the host's processors alone.
        if (
            self.context.mask
            and self.virtual_machine() is None
            and "cpuset-cpus" not in self.options
        ):
            options += ["--cpuset-cpus", self.context.mask]
        return options

    def observe_container(self) -> None:
        """See where the container runs and how it is reached.

        Raises UserError where that is not as planned.
        """
        if self.virtual_machine() is None and not cgroups.list_processes(self.cgroup() or ""):
            raise UserError(
                "the container’s control group is not on this host, where it could be frozen: "
                f"{self.name} is not this machine’s own; unset DOCKER_HOST, DOCKER_CONTEXT and "
                "CONTAINER_HOST, or set them to this host’s"
            )
        if self.published():
            self._facts["network"] = self._network_facts()

    def _network_facts(self) -> Fields:
        """Return how packets come to the first published port, and the kernel's rules."""
        if self.virtual_machine() is None:
            rules = firewall.read_packet_filter()
        else:
            rules = firewall.PacketFilter(self.run_below(firewall.LIST_COMMAND, check=False))
        port = min(self.context.ports)
        nat, proxy = (
            rules.translates_port(self._bridge_address, port),
            rules.proxies_port(self._bridge_address, port),
        )
        if nat is None:
            path = NOT_AVAILABLE
        elif nat:
            path = NAT
        else:
            path = PROXY if proxy else NOTHING
        proxies = {True: "runs", False: "none", None: NOT_AVAILABLE}
        return {"ports": path, "docker_proxy": proxies[proxy], **rules.facts()}

    def load_command(self) -> list[str]:
        """Return the command for the layer below that reads an image from standard input."""
        return self.tool("load", "--quiet")

    def complete(self, argv: list[str]) -> list[str]:
        """Return a command of the engine in a form that no signal interrupts."""
        return argv

    def published(self) -> list[str]:
        """Return the options that publish the servers' ports at the client's address."""
        if self.options["network"] == "host":
            return []
        options = []
        for port in self.context.ports:
            for protocol in ("tcp", "udp"):
                options += ["--publish", f"{self.below.listen_address()}:{port}:{port}/{protocol}"]
        return options

    def wrap(self, argv: list[str], fed: bool = False) -> list[str]:
        """Return the engine's command that runs `argv` in the container."""
        interactive = ["--interactive"] if fed else []
        return self.tool("exec", *interactive, self.context.id, *argv)

    def listen_address(self) -> str:
        """Return the container's address on its bridge; on the host's network, the host's."""
        return (
            self.below.listen_address()
            if self.options["network"] == "host"
            else self._bridge_address
        )

    @functools.cached_property
    def _bridge_address(self) -> str:
        template = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        inspect = self.tool("inspect", "--format", template, self.context.id)
        return self.run_below(inspect).strip()

    def cgroup(self) -> str | None:
        """Return the container's id, which names its control group.

        None in a machine, where it is not known.
        """
        return observe.read_files([self.id_file]).get(self.id_file) or None

    def memory_processes(self) -> list[int]:
        """Return the processes that hold the container, or those of the machine in which it is."""
        machine = self.virtual_machine()
        return (
            machine.memory_processes()
            if machine
            else cgroups.list_processes_and_parents(self.cgroup() or "")
        )
