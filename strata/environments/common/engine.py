"""Containers of an engine, Docker or Podman; both engines understand the same commands.

A container stays up for its cell, or for the cells that share it.  Its first program only waits,
and the engine's command ``exec`` runs the others.
"""

from __future__ import annotations

import functools
import json
import os
from abc import abstractmethod
from collections.abc import Collection, Sequence

from strata.environments.common import layer, limits, passed_options
from strata.host import capacity, cgroups, firewall, observe, starting_state
from strata.host.daemons import find_program
from strata.host.observe import NOT_AVAILABLE
from strata.util import paths
from strata.util.data_types import Any, Described, Fields, HostFacts, Image
from strata.util.errors import UserError
from strata.util.process import capture_output
from strata.util.progress import count_one_off_time, report_step

# Argument: the mode of /data.  Creates /data and /tmp if the user's own image lacks them, and lets
# the user as whom programs run write to /data.
MAKE_FOLDERS = """
[ -d /data ] || mkdir /data
chmod "$1" /data
[ -d /tmp ] || mkdir -m 1777 /tmp
"""
# The first program of a container, which only waits.
HOLDER = ("sleep", "infinity")
# Labels of the containers of systems, and of those in which an image is built; the value is the
# home's mark.  `Container.remove_containers` finds containers by these labels.
LABEL, BUILDING = "strata.home", "strata.building"
# Values of the options `network` and `data` → their names in the paper.
NETWORKS = {"bridge": "bridge with NAT", "host": "its host’s"}
DATA = {"volume": "volume", "layered": "layered file system", "tmpfs": "memory (tmpfs)"}
# How packets reach a container's published ports, as records call it.
NAT, PROXY, NOTHING = "destination NAT", "docker-proxy alone", "nothing seen"
# The network's name in labels if the bridge has no NAT.
PROXIED = "bridge, user-land proxy"


def format_image_name(image: Image | Described) -> str:
    """Return an image's name in the container engine, with 12 digits of its recipe's hash.

    image: a description of the image; its key `recipe` has the hash.
    :meth:`Container.remove_images` finds images by the beginning of this name.
    """
    short_hash = image["recipe"][:12]
    return f"{paths.get_name_prefix()}/image:{short_hash}"


def format_base_name(base: str) -> str:
    """Return the name of a base root filesystem in Docker.

    base: the base's hash, as :func:`strata.experiment.recipe.describe_image` returns it.
    If this name changes, every base is bootstrapped again, which takes about a minute.
    """
    return f"{paths.get_name_prefix()}/base:{base[:12]}"


@functools.cache
def _query_engine_info(*argv: str) -> Fields:
    """Return the object that an engine's command ``info`` prints as JSON.

    argv: the host's whole command.  A process runs each command only once, because it takes time.
    Raises UserError if the command fails.
    """
    with count_one_off_time():
        info: Fields = json.loads(capture_output(argv).stdout)
    return info


def get_nested_value(mapping: Any, *keys: str) -> Any:
    """Return the value at a path of keys in nested mappings; None if a key is missing.

    mapping: the outermost mapping.  Some versions of engines lack keys, or have null or a text
    where others have a mapping: the result is then None.
    """
    value = mapping
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def explain_missing_runtime(runtime: str) -> str | None:
    """Return why crun or runc cannot run containers on this host, with the remedy; None if it can.

    runtime: the program's name, which is also the name of its package.
    """
    if not find_program(runtime):
        return (
            f"{runtime} is not installed: install the package of that name, or choose another "
            "runtime"
        )
    if runtime == "crun" and cgroups.is_hybrid():
        return "crun makes no container where control groups are hybrid, as here: set runtime: runc"
    return None


def build_container_schema(**engine_schemas: Fields) -> Fields:
    """Return the JSON schema of a container's options.

    engine_schemas: schemas of the options that only this engine has, by their names.
    Every container has `network`: bridge (with NAT) or host; `data`: volume (a folder of the layer
    below), layered (the container's own layered file system) or tmpfs (memory); and the limits in
    :mod:`strata.environments.common.limits`.
    """
    # An option that the key `options` passes on may name the network instead of the key `network`.
    required = ["data"] if "options" in engine_schemas else ["network", "data"]
    return layer.build_options_schema(
        *required,
        network={"enum": list(NETWORKS), "description": "bridge or host"},
        data={"enum": list(DATA), "description": "volume, layered or tmpfs"},
        **limits.PROPERTIES,
        **engine_schemas,
    )


class Container(layer.Layer):
    """A container that an engine runs; a subclass defines the engine's commands.

    :meth:`list_host_commands` returns the beginnings of commands for the containers of all systems
    on the host, :meth:`build_engine_command` the commands for one system.
    """

    engine_name: str
    """The engine's name for people."""

    differences = layer.CONTAINER_DIFFERENCES
    option_differences = limits.DIFFERENCES

    @classmethod
    @abstractmethod
    def list_host_commands(cls) -> list[list[str]]:
        """Return the beginnings of the engine's commands on the host, one for each of its daemons.

        The list is empty if this user cannot use the engine now; no daemon is started.
        """

    @classmethod
    def check_options(cls, options: Fields, below: str) -> list[tuple[str, str]]:
        """Return (option, message) for limits that no container can have.

        Options that are passed on to the engine and would break the measurement are returned, too.
        options: the options of the container, as in config.yaml.
        below: the name of the layer below.
        """
        mistakes = limits.find_limit_mistakes(options)
        mistakes += passed_options.find_passed_option_mistakes(options)
        if "cpu-burst" in options and below != "host":
            mistakes.append(("cpu-burst", "is set only on the host: leave it out in a machine"))
        return mistakes

    @classmethod
    def explain_refusal(cls, resolved: Fields, below: str, machine: HostFacts) -> str | None:
        """Return why the host cannot grant the limits in these options; None if it can.

        A subclass that can stand on a virtual machine must override this method, since it compares
        with the host's CPUs.
        """
        cpus = capacity.list_usable_cpus()
        return limits.explain_excess(resolved, cpus, machine["memory_bytes"])

    @classmethod
    def has_data_on_host(cls, resolved: Fields) -> bool:
        """Return whether /data is a volume, which is a folder of the layer below."""
        return bool(resolved["data"] == "volume")

    @classmethod
    def get_labels(cls, resolved: Fields) -> Fields:
        """Return ``{network, data}``, the names that the paper uses for network and storage.

        A network of the user's own is not in NETWORKS: its name in the engine is shown.
        """
        name = resolved["network"]
        return {"network": NETWORKS.get(name, f"network {name}"), "data": DATA[resolved["data"]]}

    @classmethod
    def remove_containers(cls, label: str = LABEL) -> list[str]:
        """Remove this home's containers that carry a label, and their anonymous volumes.

        label: LABEL for the containers of systems, BUILDING for those of builds of images.
        Returns the engine's IDs of the removed containers; an empty list if the engine cannot be
        used now.  A second call removes nothing.
        Raises UserError if the engine does not list or remove containers.
        """
        label_filter = f"label={label}={paths.compute_home_mark()}"
        removed_ids: list[str] = []
        for command in cls.list_host_commands():
            list_ids = [*command, "ps", "--all", "--quiet", "--filter", label_filter]
            ids = capture_output(list_ids).stdout.split()
            if ids:
                capture_output([*command, "rm", "--force", "--volumes", *ids])
            removed_ids += ids
        return removed_ids

    @classmethod
    def remove_systems(cls) -> list[str]:
        """Remove the containers of all systems and return a phrase for each, for people."""
        return [f"container {container}" for container in cls.remove_containers()]

    @classmethod
    def remove_images(cls, kept_images: Collection[str]) -> list[str]:
        """Remove the engine's images of this home folder; return a phrase for each removed image.

        kept_images: names and IDs of images that stay.  Images of existing containers stay, too.
        Nothing is removed if the engine cannot be used now.
        """
        phrases = []
        for command in cls.list_host_commands():
            names = cls._remove_daemon_images(command, kept_images)
            phrases += [f"the image {name} of {cls.engine_name}" for name in names]
        return phrases

    @classmethod
    def _remove_daemon_images(cls, command: list[str], kept_images: Collection[str]) -> list[str]:
        """Remove this home folder's images from one daemon, and return their names or IDs.

        command: the beginning of the commands for this daemon.
        kept_images: names and IDs of images that stay.
        Images that the engine refuses to remove, since a container uses them, stay without an
        error.  Nothing is removed if the daemon does not answer.
        """
        columns = ["--no-trunc", "--format", "{{.ID}} {{.Repository}}:{{.Tag}}"]
        lines: set[str] = set()
        # The user's own image has no label; _load_image() gives it a name.
        for mark in (
            f"label=strata.image={paths.compute_home_mark()}",
            f"reference={paths.get_name_prefix()}/image",
        ):
            argv = [*command, "image", "ls", "--filter", mark, *columns]
            lines.update(capture_output(argv, check=False).stdout.splitlines())
        removed_images = []
        for line in sorted(lines):
            image_id, _, name = line.partition(" ")
            # Podman puts a registry's name before the image's.
            short_name = "/".join(name.split("/")[-2:])
            has_our_name = short_name.startswith("strata")
            # An image without a name has our label; a foreign name was given by the user.
            is_ours = has_our_name or short_name.startswith("<none>")
            if not is_ours or image_id in kept_images or short_name in kept_images:
                continue
            image = name if has_our_name else image_id
            # 10 minutes: removing the layers of a large image takes minutes on a slow disk.
            remove = capture_output([*command, "image", "rm", image], timeout=600, check=False)
            if remove.returncode == 0:
                removed_images.append(image)
        return removed_images

    @abstractmethod
    def build_engine_command(self, *arguments: str) -> list[str]:
        """Return the command that runs the engine with these arguments, for the layer below."""

    @abstractmethod
    def select_engine_facts(self, info: Fields) -> Fields:
        """Return the engine's facts for the records: name → value.

        info: the object that the engine's command ``info`` prints.
        A value that is None or empty is recorded as "not available".  ENGINE_ROWS of
        analysis/markdown_tables.R reads the names.
        """

    @abstractmethod
    def list_run_options(self) -> list[str]:
        """Return the options of the engine's command ``run`` that only this engine has.

        :meth:`observe_engine` must have been called before: the options may depend on the engine's
        facts.
        """

    @property
    def id_file(self) -> str:
        """The path on the host of the file that the engine writes the container's ID into.

        :meth:`find_cgroup` reads it, and so does the journal's entry of a sandbox.
        """
        return os.path.join(self.context.folder, "container")

    def bring_up(self) -> None:
        """Read the engine's facts, write the cleanups into the journal, and start the container.

        The order matters: options of the container may depend on the engine's facts.
        Raises UserError if the engine does not answer or the container cannot be started.
        """
        self.observe_engine()
        super().bring_up()

    def observe_engine(self) -> None:
        """Read the engine's version and configuration, and start the facts for the records.

        Sets `info` to the object that the engine's command ``info`` prints, and `_facts` to the
        part for the records; later steps add `settings` and `network` to them.
        Raises UserError if the engine does not answer.
        """
        argv = self.below.build_plain_command(
            self.build_engine_command("info", "--format", "{{json .}}")
        )
        self.info = _query_engine_info(*argv)
        self._facts: Fields = {}
        for name, value in self.select_engine_facts(self.info).items():
            # Only the first line is kept: some versions print more, such as crun's features.
            self._facts[name] = str(value or NOT_AVAILABLE).partition("\n")[0]

    def list_cleanups(self) -> list[Fields]:
        """Return the journal's entry that removes the container.

        A container in a virtual machine has none: it is removed with the machine.
        """
        if self.find_virtual_machine() is not None:
            return []
        return [self.build_cleanup_entry(self.context.id)]

    def build_cleanup_entry(self, name: str) -> Fields:
        """Return the journal's entry that removes the container with this name.

        :mod:`strata.testbed.journal` describes the format.  A later process may run the commands,
        so each must be complete in itself.
        """
        # Docker's names begin with a slash, Podman's do not.
        find = self.build_engine_command("ps", "--all", "--quiet", "--filter", f"name=^/?{name}$")
        remove = self.wrap_uninterruptibly(
            self.build_engine_command("rm", "--force", "--volumes", name)
        )
        return {"kind": "container", "id": name, "find": find, "remove": [remove]}

    def start(self) -> None:
        """Start the container, and check that the engine applied its limits.

        Loads the image into the engine's store if it is missing there, and makes the folders that
        the user's own image lacks.  Records get the observed limits as `settings`.
        Raises UserError if the container does not start, or runs with other limits than requested.
        """
        # Clean-up relies on the container's name and label.
        options = ["--detach", "--name", self.context.id, *self.list_publish_options()]
        if self.find_virtual_machine() is None:
            options += ["--cidfile", self.id_file]
        start = self.wrap_uninterruptibly(
            self.build_start_command(options, self.list_passed_options(), HOLDER)
        )
        try:
            self.run_in_layer_below(start)
        except UserError:
            # Checking the store is slow, and so is done only after a failed start.
            if not self._load_image():
                raise
            self.run_in_layer_below(start)
        if self.context.own_image or self._can_run_as_user:
            mode = "1777" if self._can_run_as_user else "0755"
            make_folders = ["sh", "-euc", MAKE_FOLDERS, "strata", mode]
            self.run_in_layer_below(
                self.build_engine_command("exec", "--user", "0", self.context.id, *make_folders)
            )
        if "cpu-burst" in self.options:
            # Engines have no option for this limit.
            cgroups.set_cpu_burst(self.find_cgroup() or "", self.options["cpu-burst"])
        if limits.select_checked_options(self.options):
            output = self.run_in_layer_below(self.wrap_command(limits.PRINT_FILES), check=False)
            self._facts["settings"] = limits.require_limits(self.options, output)
        with count_one_off_time():
            self.observe_container()

    def list_passed_options(self) -> list[str]:
        """Return the options that the configuration passes on to the engine unchanged.

        Each option is one text, such as ``--cpus=1.5``.
        """
        return list(self.options.get("options", ()))

    def build_start_command(
        self, options: Sequence[str], passed: Sequence[str], argv: Sequence[str]
    ) -> list[str]:
        """Return the engine's command that starts a container with this layer's image and options.

        options: further options of the engine.
        passed: the options of the configuration's key `options` that this container gets.
        argv: the container's first program, in place of the image's own.
        If /data is a volume, its folder in the layer below is created.
        docker.py stores states of containers under a hash of this command: another order of options
        makes new states.
        """
        network = self.options["network"]
        if passed_options.find_network(self.options):
            # The key `network` holds the name in a passed option --network, which has a bridge.
            network = "bridge"
        network_options = []
        # A container without that passed option, which is only observed, gets the bridge instead.
        if not passed_options.find_network({"options": passed}):
            network_options += ["--network", network]
        if network != "host":
            network_options += ["--hostname", "strata"]
        layer_options = [
            *self.list_run_options(),
            *self._prepare_data_options(),
            *self._list_state_options(),
        ]
        if self.context.programs:
            layer_options += ["--volume", f"{self.context.programs}:/opt/strata:ro"]
        layer_options += [*limits.build_limit_options(self.options), *passed]
        required_options = [
            "--init",
            "--pull",
            "never",
            "--label",
            f"{LABEL}={paths.compute_home_mark()}",
            *options,
        ]
        if self.context.own_image:
            # Strata's image has no health check.
            required_options.append("--no-healthcheck")
        program = ["--entrypoint", argv[0], self._image_id, *argv[1:]]
        # The order matters: if an option is given twice, the engine uses the last one.
        return self.build_engine_command(
            "run", *network_options, *layer_options, *required_options, *program
        )

    @property
    def _can_run_as_user(self) -> bool:
        """Whether programs may run as a user other than root, who then needs access to /data."""
        return bool(self.context.user) or passed_options.has_user_option(self.options)

    @property
    def _image_id(self) -> str:
        """The hash of the image's content, which the engine finds faster than a name."""
        return self.image["id"].removeprefix("sha256:")

    def _load_image(self) -> bool:
        """Load the image into the engine's store, if the store lacks it; return whether it did.

        The file is image.tar in the image's folder, which strata.image.build writes.
        Raises UserError if the image cannot be loaded.
        """
        inspect = self.build_engine_command(
            "image", "inspect", "--format", "{{.Id}}", self._image_id
        )
        if self.run_in_layer_below(inspect, check=False).strip():
            return False
        archive = os.path.join(self.image["folder"], "image.tar")
        with count_one_off_time(), report_step(self.name, "loading the image"):
            load = self.below.build_plain_command(self.build_load_command(), reads_stdin=True)
            capture_output(
                ["sh", "-euc", layer.READ_FILE, "strata", archive, *load], layer.COPY_TIMEOUT
            )
            if self.context.own_image:
                # `remove_images` finds this image by its name, since it lacks Strata's label.
                self.run_in_layer_below(
                    self.build_engine_command("tag", self._image_id, format_image_name(self.image))
                )
        return True

    def _prepare_data_options(self) -> list[str]:
        """Return the options that provide the container's /data; create the folder for a volume.

        The folder of a volume is in the layer below.
        Raises UserError if the option `data` is layered, but the image has a volume at /data.
        """
        if self.options["data"] == "volume":
            self.run_in_layer_below(["mkdir", "-p", self.below.data])
            return ["--volume", f"{self.below.data}:/data"]
        if self.options["data"] == "tmpfs":
            # With these settings, programs have the same rights in /data as in a volume.
            return ["--tmpfs", "/data:rw,exec,suid,dev,mode=0755"]
        if "/data" in self.context.volumes:
            raise UserError(
                "the image has VOLUME /data, so that its data cannot be layered: set data: volume"
            )
        return []

    def _list_state_options(self) -> list[str]:
        """Return the options that give programs in the container the declared starting state.

        They set the OOM score, the resource limits and, on the host, the experiment's CPUs.
        """
        # -1 means no limit on the number of processes, as for native programs.
        options = ["--oom-score-adj", str(starting_state.OOM_SCORE), "--pids-limit", "-1"]
        options += starting_state.build_container_limit_options()
        # The mask lists CPUs of the host: a virtual machine numbers its CPUs itself.
        is_masked = self.context.mask and self.find_virtual_machine() is None
        if is_masked and "cpuset-cpus" not in self.options:
            options += ["--cpuset-cpus", str(self.context.mask)]
        return options

    def observe_container(self) -> None:
        """Check that the container runs on this host, and record how packets reach its ports.

        Sets `network` in the facts for the records if ports are published.
        Raises UserError if the container's control group is not on this host, where it could be
        frozen.  A container in a virtual machine is not checked.
        """
        if self.find_virtual_machine() is None and not cgroups.list_group_processes(
            self.find_cgroup() or ""
        ):
            raise UserError(
                "the container’s control group is not on this host, where it could be frozen: "
                f"{self.name} is not this machine’s own; unset DOCKER_HOST, DOCKER_CONTEXT and "
                "CONTAINER_HOST, or set them to this host’s"
            )
        if self.list_publish_options():
            self._facts["network"] = self._read_network_facts()

    def _read_network_facts(self) -> Fields:
        """Return how packets reach the lowest published port, and facts of the packet filter.

        The keys are `ports`, `docker_proxy` and those of
        :meth:`strata.host.firewall.PacketFilter.collect_facts`.  Records hold them as `network`,
        and ENGINE_ROWS of analysis/markdown_tables.R reads them.
        Subclasses compare `ports` with :data:`NAT`, :data:`PROXY` and :data:`NOTHING`.
        """
        if self.find_virtual_machine() is None:
            rules = firewall.read_packet_filter()
        else:
            # check=False: a machine without iptables gives an unreadable packet filter.
            rules = firewall.PacketFilter(
                self.run_in_layer_below(firewall.LIST_COMMAND, check=False)
            )
        # All ports are published alike, so one of them shows the path.
        port = min(self.context.ports)
        is_translated = rules.is_port_translated(self._bridge_address, port, self.context.id)
        is_proxied = rules.is_port_proxied(self._bridge_address, port)
        if is_translated is None:
            path = NOT_AVAILABLE
        elif is_translated:
            path = NAT
        else:
            path = PROXY if is_proxied else NOTHING
        # None stands for a process list that cannot be observed.
        proxy_texts = {True: "runs", False: "none", None: NOT_AVAILABLE}
        return {"ports": path, "docker_proxy": proxy_texts[is_proxied], **rules.collect_facts()}

    def build_load_command(self) -> list[str]:
        """Return the command that loads image.tar from standard input, for the layer below."""
        return self.build_engine_command("load", "--quiet")

    def wrap_uninterruptibly(self, argv: list[str]) -> list[str]:
        """Return an engine's command in a form that no signal interrupts.

        This default returns it unchanged.  An engine overrides it if its commands that start and
        remove containers must not be interrupted or run at the same time.
        """
        return argv

    def list_publish_options(self) -> list[str]:
        """Return the options that publish the servers' ports, by TCP and UDP.

        The ports are published at the address that the layer below listens on.  The list is empty
        on the host's network, or without ports; the path to ports is then not observed.
        """
        if self.options["network"] == "host":
            return []
        options = []
        for port in self.context.ports:
            for protocol in ("tcp", "udp"):
                options += [
                    "--publish",
                    f"{self.below.get_listen_address()}:{port}:{port}/{protocol}",
                ]
        return options

    def wrap_command(self, argv: list[str], reads_stdin: bool = False) -> list[str]:
        """Return the engine's command that runs `argv` in the container.

        reads_stdin: whether `argv` reads standard input, which is empty otherwise.
        """
        interactive = ["--interactive"] if reads_stdin else []
        return self.build_engine_command("exec", *interactive, self.context.id, *argv)

    def get_listen_address(self) -> str:
        """Return the container's IP address on its bridge.

        On the host's network, it is the address of the layer below.  The container must be up,
        since the engine chooses the address.
        """
        if self.options["network"] == "host":
            return self.below.get_listen_address()
        return self._bridge_address

    @functools.cached_property
    def _bridge_address(self) -> str:
        """The container's IP address on its bridge, read from the engine once.

        Raises UserError if the container has none.
        """
        template = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        inspect = self.build_engine_command("inspect", "--format", template, self.context.id)
        address = self.run_in_layer_below(inspect).strip()
        if not address:
            raise UserError(
                f"the container has no address in the network {self.options['network']}, at which "
                "a client could reach its servers: choose another network"
            )
        return address

    def find_cgroup(self) -> str | None:
        """Return the container's ID, which is in the path of its control group on the host.

        None in a virtual machine, or before the engine wrote the ID.  strata.host.cgroups adds the
        prefixes that engines and systemd put before the ID.
        """
        return observe.read_files([self.id_file]).get(self.id_file) or None

    def list_memory_processes(self) -> list[int]:
        """Return the IDs of the host's processes that hold the container's memory.

        For a container in a virtual machine, these are the processes of the machine.
        """
        if machine := self.find_virtual_machine():
            return machine.list_memory_processes()
        return cgroups.list_group_processes_and_parents(self.find_cgroup() or "")
