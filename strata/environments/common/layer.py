"""Define the base class of layers: its declarations for the planner, and how a layer is used."""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from strata.host.context import Context
from strata.host.daemons import find_program
from strata.util.data_types import Fields, HostFacts, Image
from strata.util.errors import UserError
from strata.util.process import ROOT_NEEDED, can_run_as_root, capture_output

# Importing typing would take a cell's time, and only type checkers need it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

# Shell scripts that copy a file through the standard input or output of a command in the layer.
READ_FILE = 'file=$1; shift; exec "$@" <"$file"'
SAVE_OUTPUT = 'file=$1; shift; exec "$@" >"$file"'
WRITE_INPUT = 'umask 077; cat >"$1"; chmod "$2" "$1"'
# Shell script that starts a program which goes on when the script has ended.
START_IN_BACKGROUND = 'setsid "$@" </dev/null >/dev/null 2>&1 &'
# Seconds within which a file of any size can be copied.
COPY_TIMEOUT = 3600
# The `Layer.differences` of every container.
CONTAINER_DIFFERENCES: Mapping[str, str] = MappingProxyType(
    {
        "capabilities": "a container has fewer rights",
        "seccomp": "a container's system calls are filtered",
        "speculation": "a filter of system calls may switch it off",
        "indirect branches": "a filter of system calls may switch it off",
    }
)


def build_options_schema(*required: str, **properties: Fields) -> Fields:
    """Return the JSON schema of a layer's options, which rejects unknown options.

    required: names of the options that must be set.
    properties: name of each option → its schema; the schema's ``description`` completes messages
    such as "must be bridge or host".
    """
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [*required],
        "properties": properties,
    }


class Layer(ABC):
    """A layer of an environment's stack: commands run in it, for example in a container.

    The planner uses the class: its attributes and class methods describe the layer before any is
    up.  An object is one layer of a stack: :meth:`bring_up` makes it, and :meth:`list_cleanups`
    returns how it is removed.

    Class methods take `options` as in config.yaml, or `resolved` options as in the plan; `below` is
    the name of the layer below this one; `machine` holds the facts of this machine
    (:func:`strata.host.capacity.read_host_facts`) as the layers below change them
    (:meth:`describe_machine_above`).

    Attributes of an object: `options` are the resolved options; `below` is the layer below, or the
    layer itself at the bottom; `above` is the layer above, or None; `context` is shared by all
    layers of the stack.
    """

    name: ClassVar[str]
    """The layer's name in config.yaml, which is the name of its file."""

    isolation: ClassVar[str] = "container"
    """The kind of isolation between programs and hardware: bare, container, sandbox or machine.

    bare: none; container: by the host's kernel; sandbox: by a kernel that is a program of the host;
    machine: by virtual hardware.
    """

    title: ClassVar[str]
    """The layer's name in the paper."""

    stands_on: ClassVar[tuple[str, ...]] = ("host",)
    """Names of the layers that may be directly below it."""

    options_schema: ClassVar[Fields] = build_options_schema()
    """JSON schema of its options."""

    image_forms: ClassVar[tuple[str, ...]] = ("container",)
    """Forms of the image that it runs: "tree" (files), "container", "disk" (of a machine)."""

    image_packages: ClassVar[tuple[str, ...]] = ()
    """Packages of the distribution that the image must have for this layer."""

    refuses_own_images: ClassVar[str | None] = None
    """Why it cannot run the user's own image; None if it can."""

    programs: ClassVar[tuple[str, ...]] = ()
    """Programs that the host must have for this layer."""

    package: ClassVar[str | None] = None
    """The distribution's package with these programs; None: `make setup` installs them."""

    needs_root: ClassVar[bool] = False
    """Whether only root can bring it up."""

    daemons: ClassVar[tuple[str, ...]] = ()
    """Names of processes that work for its systems: their CPU time is not interference."""

    stands_idle: ClassVar[bool] = False
    """Whether it uses no CPU while no command runs in it: other systems can be measured then."""

    peers_are_clients: ClassVar[bool] = False
    """Whether other parts of a system reach it by `get_address`, not by `get_listen_address`."""

    differences: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Values of programs' starting state that differ from native's: name → the reason.

    :mod:`strata.host.starting_state` defines the names.
    """

    option_differences: ClassVar[Mapping[str, Sequence[str]]] = MappingProxyType({})
    """Values of the starting state that options set: name of an option → names of the values."""

    observed_differences: Mapping[str, str] = MappingProxyType({})
    """Differing values that are observed once the layer is up: name → the option that sets it."""

    warmup: ClassVar[Sequence[list[str]]] = ()
    """Commands that run once in the machine below it, before its snapshot is taken."""

    def __init_subclass__(cls) -> None:
        """Set `name` to the name of the module that defines the layer."""
        cls.name = cls.__module__.rpartition(".")[2]

    # Class methods for the planner.

    @classmethod
    def explain_unavailability(cls) -> str | None:
        """Return why this machine cannot provide the layer, with the remedy; None if it can.

        An implementation must be quick and start nothing: it runs whenever the workflow is read.
        """
        for program in cls.programs:
            if not find_program(program):
                remedy = "run `make setup`"
                if cls.package:
                    remedy = f"install the distribution’s package {cls.package}"
                return f"{program} is not installed: {remedy}"
        if cls.needs_root and os.geteuid() != 0 and not find_program("sudo"):
            return f"{cls.title} needs root: run as root or install sudo"
        return None

    @classmethod
    def explain_missing_permission(cls) -> str | None:
        """Return why this user may not bring the layer up, with the remedy; None if permitted.

        Unlike other reasons, it is not in the plan: another user may measure what is planned.
        """
        if cls.needs_root and not can_run_as_root():
            return f"root is needed ({cls.title}): {ROOT_NEEDED}"
        return None

    @classmethod
    def check_options(cls, options: Fields, below: str) -> list[tuple[str, str]]:
        """Return (option, message) for options that contradict each other or the layer below.

        options: as in config.yaml; each option fits :attr:`options_schema` by itself.
        below: the name of the layer below.
        The user sees the option's key before the message, as in "memory: is 1MiB; …".
        """
        return []

    @classmethod
    def resolve_options(cls, options: Fields, config: Fields) -> Fields:
        """Return the options for the plan, completed by everything that decides a result.

        options: as in config.yaml.
        config: the whole configuration, for further values.
        The plan identifies a cell by these options: if they change, the cell is measured again.
        """
        return options

    @classmethod
    def restore_options(cls, resolved: Fields) -> Fields:
        """Return options as in config.yaml that resolve to the given ones on an equal machine.

        resolved: the options in a plan, which may come from another machine.
        This is the inverse of :meth:`resolve_options`: a layer must override both or neither.
        """
        schemas = cls.options_schema.get("properties", {})
        return {key: value for key, value in resolved.items() if key in schemas}

    @classmethod
    def add_observations(cls, resolved: Fields, below: str) -> Fields:
        """Return resolved options with added keys for what is unusual about the running system.

        An example is an unusual daemon.  :meth:`get_labels` and the key ``otherwise`` of
        :meth:`describe_for_plan` must show what is added.  The plan identifies a cell by the added
        keys, too: if they change, the cell is measured again.
        resolved: the options, as :meth:`resolve_options` returns them.
        below: the name of the layer below.
        """
        return resolved

    @classmethod
    def explain_refusal(cls, resolved: Fields, below: str, machine: HostFacts) -> str | None:
        """Return why this machine cannot provide the layer with these options; None if it can.

        The reason includes the remedy.
        resolved: the options, as in the plan.
        below: the name of the layer below.
        machine: the machine's facts, as the layers below change them.
        """
        return None

    @classmethod
    def describe_machine_above(cls, resolved: Fields, machine: HostFacts) -> HostFacts:
        """Return the facts of the machine as a layer above this layer sees them.

        machine: the facts as this layer sees them.
        The planner passes the result to the layers above as `machine`.
        """
        return machine

    @classmethod
    def has_data_on_host(cls, resolved: Fields) -> bool:
        """Return whether /data is the data folder of the layer below, and so lies on the host.

        resolved: the options, as :meth:`resolve_options` returns them.
        """
        return True

    @classmethod
    def get_labels(cls, resolved: Fields) -> Fields:
        """Return the names that the paper uses for network and data: ``{network, data}``.

        The keys ``kind`` and ``title`` may be added: they replace the layer's isolation and title.
        The result becomes an element of ``descriptions`` in the plan, which the paper prints.
        """
        return {"network": "the host’s", "data": "the host’s disk"}

    @classmethod
    def describe_for_plan(cls, resolved: Fields) -> Fields:
        """Return further facts of the layer for the plan; none by default.

        ``doubtful: True`` means that the layer may be unable to run a workload: a failed workload
        is then a result and not a failed cell.  ``otherwise`` is a text at the end of the
        environment's label; most claims leave such an environment out.  schemas/plan.schema.json
        lists the keys.
        """
        return {}

    @classmethod
    def format_doctor_line(cls) -> tuple[str, bool | None, str]:
        """Return the layer's line of `make doctor`: (topic, whether the layer is available, text).

        An example is ("LXC container", True, "can be made").  The second value is None if the layer
        is not available, but nothing is wrong; False is printed as NO.
        """
        reason = cls.explain_unavailability()
        return cls.title, None if reason else True, reason or "can be made"

    @classmethod
    def remove_systems(cls) -> list[str]:
        """Remove all systems of this layer that have Strata's marks, without the journal.

        Returns a phrase for each removed thing, for people, such as "container ID".
        """
        return []

    @classmethod
    def remove_images(cls, kept_images: Collection[str]) -> list[str]:
        """Remove this layer's stored images of Strata; return a phrase for each, for people.

        kept_images: names (:func:`strata.environments.common.engine.format_image_name`) and IDs of
        images that stay.
        """
        return []

    # Methods of one layer of a stack.

    def __init__(self, below: Layer | None, options: Fields, context: Context) -> None:
        """Create a layer object and link it to the layer below; nothing is made on the host yet.

        below: the layer below, whose `above` is set to this layer; None for the host, at the
        bottom.
        """
        self.below = below or self
        self.options = options
        self.context = context
        self.above: Layer | None = None
        if below:
            below.above = self

    def bring_up(self) -> None:
        """Write into the journal how the layer is removed, then make the layer.

        This order lets a later process remove the layer after a kill.  The layer below must be up.
        Raises UserError if the layer cannot be made.
        """
        for entry in self.list_cleanups():
            self.context.note_cleanup(entry)
        self.start()

    def list_cleanups(self) -> list[Fields]:
        """Return the journal's entries that remove what :meth:`start` makes; none by default.

        The entries are carried out from the last to the first, possibly by a later process after a
        kill.  :mod:`strata.testbed.journal` defines their format.
        """
        return []

    @abstractmethod
    def start(self) -> None:
        """Make the layer on the layer below, which must be up.

        Nothing of an earlier system may be reused.  Raises UserError if the layer cannot be made.
        """

    @abstractmethod
    def wrap_command(self, argv: list[str], reads_stdin: bool = False) -> list[str]:
        """Return the command that runs `argv` in this layer, for the layer below.

        reads_stdin: whether `argv` reads standard input.
        The layer must be up.  This method must run nothing: measured commands use it, too.
        """

    def collect_facts(self) -> Fields:
        """Return the layer's facts for the records of cells; the layer must be up.

        The facts of all layers are merged into one object, ``system`` of the record, so each layer
        must use a key of its own.  schemas/record.schema.json declares the keys.
        """
        return {}

    def iterate_layers(self) -> Iterator[Layer]:
        """Yield this layer and all layers below it, from the top to the bottom."""
        yield self
        if self.below is not self:
            yield from self.below.iterate_layers()

    @property
    def image(self) -> Image:
        """The image of the system.

        Raises UserError if the system has no image, because no layer of its stack declares
        :attr:`image_forms`.
        """
        if self.context.image is None:
            raise UserError(
                f"the layer {self.name} needs the image, and this system has none: give a layer of "
                "its stack image_forms"
            )
        return self.context.image

    @property
    def data(self) -> str:
        """The path in this layer of the folder that the layer above uses for its data."""
        return self.context.data

    def get_address(self) -> str:
        """Return the IP address where a client reaches servers in this layer."""
        return self.below.get_address()

    def get_listen_address(self) -> str:
        """Return the IP address that servers in this layer listen on.

        Packets that clients send to :meth:`get_address` arrive at it.
        """
        return self.get_address() if self.below is self else self.below.get_listen_address()

    def find_virtual_machine(self) -> Layer | None:
        """Return the uppermost virtual machine at or below this layer; None if there is none."""
        return None if self.below is self else self.below.find_virtual_machine()

    def find_passthrough_card(self) -> tuple[str, str | None] | None:
        """Return (PCI address, client's IP address) of a network card passed through to a machine.

        The client's address is None if it is not configured.  Returns None if there is no such
        card.
        """
        return None

    def find_kernel_process(self) -> int | None:
        """Return the ID of the host's process that is the system's own kernel.

        It is the process of a sandbox or of a virtual machine; None if the system has neither.
        Records hold the starting state of this process, next to the state inside the system.
        """
        return None if self.below is self else self.below.find_kernel_process()

    def list_memory_processes(self) -> list[int]:
        """Return the IDs of the host's processes that hold the idle system's memory.

        The list is empty if they are not known.  The log of a start holds their memory as
        ``memory_bytes``, which workloads/startup/parse.py reads.
        """
        return []

    def find_cgroup(self) -> str | None:
        """Return the name of the host's control group in which the system runs and can be frozen.

        None if the system has no such group: its CPU time and memory are then not counted.
        """
        return None if self.below is self else self.below.find_cgroup()

    def copy_file_in(self, source: str, target: str) -> None:
        """Copy a file of the host, with its mode, into this layer.

        source: the file's path on the host.
        target: the file's path in the layer, which is overwritten; its folder must exist.
        Raises UserError if the copy fails.
        """
        mode = f"{stat.S_IMODE(os.stat(source).st_mode):04o}"
        script = ["sh", "-euc", WRITE_INPUT, "strata", target, mode]
        write_command = self.build_plain_command(script, reads_stdin=True)
        capture_output(["sh", "-euc", READ_FILE, "strata", source, *write_command], COPY_TIMEOUT)

    def copy_file_out(self, source: str, target: str) -> None:
        """Copy a file of this layer to the host.

        source: the file's path in the layer.
        target: the file's path on the host, which is overwritten.
        Raises UserError if the copy fails.
        """
        read_command = self.build_plain_command(["cat", source])
        capture_output(["sh", "-euc", SAVE_OUTPUT, "strata", target, *read_command], COPY_TIMEOUT)

    def build_measured_command(self, argv: list[str]) -> list[str]:
        """Return the host's command that runs `argv` in this layer as a measured command.

        The command gets the environment variables of measured commands and no others.  Measured
        programs must be run by it in every environment, so that their variables are equal.
        """
        return self.build_plain_command(self.context.wrap_with_variables(argv))

    def build_plain_command(self, argv: list[str], reads_stdin: bool = False) -> list[str]:
        """Return the host's command that runs `argv` in this layer, with the layer's own variables.

        reads_stdin: whether `argv` reads standard input.
        """
        command = self.wrap_command(argv, reads_stdin)
        # The host, at the bottom, is its own layer below.
        if self.below is self:
            return command
        return self.below.build_plain_command(command, reads_stdin)

    def run_in_layer_below(self, argv: list[str], check: bool = True) -> str:
        """Run a command in the layer below, and return its standard output.

        check: whether an exit code other than 0 is an error; otherwise the caller cannot see it.
        Raises UserError if the command takes more than two minutes, or if it fails and `check` is
        set.
        """
        return capture_output(self.below.build_plain_command(argv), check=check).stdout
