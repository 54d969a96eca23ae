"""The two interfaces of a layer: :class:`Kind`, which the planner asks, and :class:`Layer`, which a cell brings up."""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from strata.host.context import Context, with_variables
from strata.host.daemons import where
from strata.util.data_types import Fields, HostFacts
from strata.util.process import ROOT_NEEDED, capture, has_root

# A file goes in and out as what a command in the layer reads and prints.
FEED = 'here=$1; shift; exec "$@" <"$here"'
KEEP = 'here=$1; shift; exec "$@" >"$here"'
WRITE = 'umask 077; cat >"$1"; chmod "$2" "$1"'
# Seconds for a file of any size.
COPYING = 3600
# What every container has otherwise than natively in the state in which programs start (see `Kind.changes`).
OF_CONTAINERS: Mapping[str, str] = MappingProxyType(
    {
        "capabilities": "a container has fewer rights",
        "seccomp": "a container's system calls are filtered",
        "speculation": "a filter of system calls may switch it off",
        "indirect branches": "a filter of system calls may switch it off",
    }
)


def takes(*required: str, **properties: Fields) -> Fields:
    """The schema of options of these names and no others."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [*required],
        "properties": properties,
    }


class Kind:
    """What is known of a layer before one is up: its options, whether it is available, and how it is labelled.

    options: as in config.yaml; settled: as in the plan; below: the name of the layer that it stands on;
    machine: this machine (:func:`strata.host.capacity.facts`), as a layer below changed it (:meth:`grants`).
    """

    # What it puts between a program and the hardware: "bare" (nothing), "container" (walls, in the host's kernel),
    # "sandbox" (a kernel that is a program of the host) or "machine".
    kind: str = "container"
    # What isolates, as the paper calls it.
    title: str
    stands_on: tuple[str, ...] = ("host",)
    # The forms of the image that it runs: "tree" (its files), "container", or "disk" (a machine's).
    forms: tuple[str, ...] = ("container",)
    # Names of processes that work for whoever asks them, and for a system of this layer while it is up.
    daemons: tuple[str, ...] = ()
    # Whether a system of it uses no CPU while no command runs in it: then it may be up while others are measured.
    stands_idle: bool = False
    options_schema: Fields = takes()
    # What differs from native in the state in which programs start in it (:mod:`strata.host.starting_state`): the name
    # there → why; and the names that an option changes.
    changes: Mapping[str, str] = MappingProxyType({})
    changed_by: Mapping[str, Sequence[str]] = MappingProxyType({})
    # Programs without which it is not available, and what installs them.
    programs: tuple[str, ...] = ()
    installed_by: str = "run `make setup`"
    needs_root: bool = False

    def unavailable(self) -> str | None:
        """Why this machine cannot provide the layer, and what would change that; None if it can.

        Must be quick: it is asked whenever the workflow is read.
        """
        for program in self.programs:
            if not where(program):
                return f"{program} is not installed: {self.installed_by}"
        if self.needs_root and os.geteuid() != 0 and not where("sudo"):
            return f"{self.title} needs root: run as root or install sudo"
        return None

    def barred(self) -> str | None:
        """Why this user may not bring the layer up here, and what would change that; None if he may."""
        return (
            f"root is needed ({self.title}): {ROOT_NEEDED}"
            if self.needs_root and not has_root()
            else None
        )

    def check(self, options: Fields, below: str) -> list[tuple[str, str]]:
        """(key, what is wrong) of options that fit their schema, but not one another or the layer below."""
        return []

    def settle(self, options: Fields, config: Fields) -> Fields:
        """The options as the plan holds them: with all of the config and of this machine that decides a result."""
        return options

    def found(self, settled: Fields, below: str) -> Fields:
        """The settled options, with what of the running system makes the environment another than the usual one.

        So it has other labels (:meth:`labels`, ``otherwise`` of :meth:`describe`), and its cells are measured anew.
        """
        return settled

    def refusal(self, settled: Fields, below: str, machine: HostFacts) -> str | None:
        """Like :meth:`unavailable`, for these settled options."""
        return None

    def grants(self, settled: Fields, machine: HostFacts) -> HostFacts:
        """The machine as a layer above finds it."""
        return machine

    def labels(self, settled: Fields) -> Fields:
        """What the paper says of it: ``{network, data}``, and ``kind`` and ``title`` where the options change them."""
        return {"network": "the host’s", "data": "the host’s disk"}

    def describe(self, settled: Fields) -> Fields:
        """What else the plan says of an environment with this layer.

        With ``doubtful: True`` it may be unable to run a workload, which is then a result and no failed cell.
        ``otherwise``: words that its label ends with.
        """
        return {}

    def examine(self) -> tuple[str, bool | None, str]:
        """The line of `make doctor`: (topic, whether it is available, text); None: missing, and no fault."""
        reason = self.unavailable()
        return self.title, None if reason else True, reason or "can be made"

    def sweep(self) -> list[str]:
        """Remove all systems of this layer on this machine, found by our marks alone; what they were, in words."""
        return []

    def discard(self, kept: Collection[str]) -> list[str]:
        """Remove stored images but those with these names or ids; the messages that name them.

        kept: names as of :func:`strata.environments.common.engine.tag`, and ids.
        """
        return []


class Layer(ABC):
    """One layer of a stack that is up or comes up.

    `name` is that of its file.  below: the layer it stands on; the host, which is given none, stands on itself.
    """

    # The layer that stands on it, if any.
    above: Layer | None
    # Commands that are run once in the machine below, before its snapshot is taken where it has one.
    warmup: Sequence[list[str]] = ()

    def __init__(self, below: Layer | None, options: Fields, context: Context) -> None:
        self.name = type(self).__module__.rpartition(".")[2]
        self.below, self.options, self.context = below or self, options, context
        self.below.above, self.above = self, None

    @abstractmethod
    def up(self) -> None:
        """Bring the layer up, fresh.  Raises UserError.

        Before it makes something of the host's it notes how that is found and removed (``self.context.note``, see
        :mod:`strata.testbed.journal`): there is no `down`.
        """

    @abstractmethod
    def wrap(self, argv: list[str], fed: bool = False) -> list[str]:
        """The command for the layer below that runs `argv` in this one.

        fed: whether `argv` reads standard input.
        """

    def facts(self) -> Fields:
        """What is known of the layer once it is up, for the records of its cells."""
        return {}

    @property
    def data(self) -> str:
        """The folder of this layer in which a layer above keeps its data."""
        return self.context.data

    def address(self) -> str:
        """The address at which a client reaches a server in this layer."""
        return self.below.address()

    def listen(self) -> str:
        """The layer's own address, at which packets for :meth:`address` arrive: servers listen there alone."""
        return self.below.listen()

    def machine(self) -> Layer | None:
        """The layer of the stack that is a virtual machine; None where there is none."""
        return self.below.machine()

    def card(self) -> tuple[str, str | None] | None:
        """Of a virtual machine: (PCI address, the client's address) of the card by which it is reached, if any."""
        return None

    def host_process(self) -> int | None:
        """The process of the host that is the system's kernel: a sandbox or a machine; None where there is none."""
        return None if self.below is self else self.below.host_process()

    def processes(self) -> list[int]:
        """Processes of the host that hold the system's memory while nothing runs in it."""
        return []

    def group(self) -> str | None:
        """The name of the host's control group that holds all that runs in it, to be frozen; None without one."""
        return None if self.below is self else self.below.group()

    def put(self, source: str, target: str) -> None:
        """Copy a file of the host, with its rights, to `target` in this layer.  Raises UserError."""
        mode = f"{stat.S_IMODE(os.stat(source).st_mode):04o}"
        write = self.command_plain(["sh", "-euc", WRITE, "strata", target, mode], fed=True)
        capture(["sh", "-euc", FEED, "strata", source, *write], COPYING)

    def get(self, source: str, target: str) -> None:
        """Copy a file of this layer to `target` on the host.  Raises UserError."""
        capture(
            ["sh", "-euc", KEEP, "strata", target, *self.command_plain(["cat", source])], COPYING
        )

    def command(self, argv: list[str]) -> list[str]:
        """The command for the host that runs `argv` in this layer, with the variables of measured commands alone."""
        return self.command_plain(with_variables(argv))

    def command_plain(self, argv: list[str], fed: bool = False) -> list[str]:
        """Like :meth:`command`, with the variables that the layer has anyway.

        fed: whether `argv` reads standard input.
        """
        wrapped = self.wrap(argv, fed)
        return wrapped if self.below is self else self.below.command_plain(wrapped, fed)

    def run_below(self, argv: list[str], check: bool = True) -> str:
        """What a command of the machinery prints on the layer below.  Raises UserError."""
        return capture(self.below.command_plain(argv), check=check).stdout
