"""What every layer can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from strata.host.context import Context, with_variables

TYPE_CHECKING = False  # typing's own takes milliseconds to import, in every cell
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import ClassVar


class Layer(ABC):
    """One layer of a stack.  `below` is the layer it stands on, None for the host; `above` are those on it."""

    name: ClassVar[str]
    # What it puts between a program and the hardware: "bare" (nothing), "container" (walls, in the host's kernel),
    # "sandbox" (a kernel that is a program of the host) or "machine".
    kind: ClassVar[str]
    # What isolates, as the paper calls it.
    title: ClassVar[str]
    stands_on: ClassVar[tuple[str, ...]] = ("host",)
    # The forms of the image that it runs: "tree" (its files), "container", or "disk" (a machine's).
    forms: ClassVar[tuple[str, ...]] = ("container",)
    # Names of processes that work for whoever asks them, and for a system of this layer while it is up.
    daemons: ClassVar[tuple[str, ...]] = ()
    # Whether a system of it uses nothing of the host while no command runs in it, and tells what runs in it from what
    # runs in others: then it may be up while others are measured.
    stands_idle: ClassVar[bool] = False
    options_schema: ClassVar[dict] = {"type": "object", "additionalProperties": False}

    def __init__(self, below: Layer | None, options: dict, context: Context) -> None:
        self.below, self.options, self.context = below, options, context
        self.above: Sequence[Layer] = ()

    @classmethod
    @abstractmethod
    def unavailable(cls) -> str | None:
        """Why this machine cannot provide the layer, with what would change that; None if it can.

        Must be quick: it is asked whenever the workflow is read.  `strata doctor` tries for real.
        """

    @classmethod
    def check(cls, options: dict, config: dict, below: str = "host") -> list[tuple[str, str]]:
        """(key, what is wrong) of options that fit their schema, but not the rest of the config or the layer below."""
        return []

    @classmethod
    def refusal(cls, options: dict, below: str, machine: dict) -> str | None:
        """Why this machine cannot provide the layer with these settled options, like :meth:`unavailable`.

        below: name of the layer that it stands on.  machine: as of :func:`strata.host.capacity.facts`.
        """
        return None

    @classmethod
    def grants(cls, options: dict, machine: dict) -> dict:
        """What a layer above finds where it was settled on a machine: that machine, unless the layer is one itself."""
        return machine

    @classmethod
    def doubtful(cls, options: dict) -> bool:
        """Whether with these settled options it may be unable to run a workload, which is a result of its own then."""
        return False

    @classmethod
    def memory(cls, options: dict) -> int | None:
        """Bytes to which its settled options bound the memory of what runs in it; None where they do not."""
        return None

    @classmethod
    def examine(cls) -> list[tuple[str, bool | None, str]]:
        """What `strata doctor` says of the layer: (topic, whether it is there, words); None: missing, and no fault."""
        return []

    @classmethod
    def settle(cls, options: dict, config: dict) -> dict:
        """The options as the plan holds them: with all of the config and of this machine that decides a result."""
        return options

    @classmethod
    def describe(cls, options: dict) -> dict:
        """What the plan says of an environment with this layer, from its settled options."""
        return {}

    @classmethod
    def told(cls, options: dict) -> dict:
        """What the paper says of its settled options: ``{network, data}`` in words, without what is not its own.

        `kind` and `title` are among them where the options make them others than those of the layer.
        """
        return {}

    @classmethod
    def warmup(cls) -> list[list[str]]:
        """Commands of the machine that the layer stands on, which are run once before that is saved to be restored."""
        return []

    @property
    def data(self) -> str:
        """The folder of this layer in which data of a system above it are kept."""
        return self.context.data

    def facts(self) -> dict:
        """What is known of the layer once it is up, for the records of its cells."""
        return {}

    @classmethod
    def sweep(cls) -> list[str]:
        """Remove whatever of this layer's was left on this machine, told by our marks alone; what it was, in words."""
        return []

    @classmethod
    def discard(cls, kept: Collection[str]) -> list[str]:
        """Remove what the layer keeps of images for the next run, but of those with these ids; what it was, in words.

        It is asked where images go from the machine's cache, and no system is up.
        """
        return []

    @abstractmethod
    def up(self) -> None:
        """Bring the layer up, fresh.  Raises UserError.

        Before it makes something of the host's it notes a trace of that (``self.context.note``), from which that is
        removed, also where `up` was interrupted, and by those who do not know the layer (:mod:`strata.system.traces`).
        """

    @abstractmethod
    def wrap(self, argv: list[str]) -> list[str]:
        """The command for the layer below that runs `argv` in this one."""

    def wrap_fed(self, argv: list[str]) -> list[str]:
        """Like :meth:`wrap`, for a command that reads what it is sent on its standard input."""
        return self.wrap(argv)

    @abstractmethod
    def put(self, source: str, target: str) -> None:
        """Copy a file of the host to `target` in this layer."""

    @abstractmethod
    def get(self, source: str, target: str) -> None:
        """Copy a file of this layer to `target` on the host."""

    def address(self) -> str:
        """Where a client reaches a server in this layer."""
        assert self.below is not None
        return self.below.address()

    def listen(self) -> str:
        """The address of this layer's own at which what a client sends to :meth:`address` arrives."""
        assert self.below is not None
        return self.below.listen()

    def bridge(self) -> str | None:
        """The bridge of the host to which a client must be joined to reach the system; None if the host leads there."""
        assert self.below is not None
        return self.below.bridge()

    def card(self) -> tuple[str, str | None] | None:
        """The card of its own over which the system is reached, and the address there for a client of this host.

        The card is told by the PCI address of its device; None where the system is reached otherwise.
        """
        assert self.below is not None
        return self.below.card()

    def machine(self) -> Layer | None:
        """The layer of the stack that is a machine of its own; None where there is none."""
        assert self.below is not None
        return self.below.machine()

    def processes(self) -> list[int]:
        """Processes of the host that hold the system's memory while nothing runs in it."""
        return []

    def cpus(self) -> int | None:
        """To how many of the CPUs that it sees the layer is bound; None where it may use all."""
        return None

    def group(self) -> str | None:
        """The name of the host's control group that holds all that runs in it, to be frozen; None without one."""
        return None

    def left(self) -> list[str]:
        """Command lines of the processes that commands left running in this layer; none can be known of the host."""
        return []

    def command(self, argv: list[str]) -> list[str]:
        """The command for the host that runs `argv` in this layer, with the common variables."""
        return self.command_plain(with_variables(argv))

    def run_below(self, argv: list[str], timeout: float = 120, check: bool = True) -> str:
        """Run a command of the machinery on the layer below and return its output."""
        from strata.base.process import capture

        assert self.below is not None
        return capture(self.below.command_plain(argv), timeout, check).stdout

    def command_plain(self, argv: list[str], fed: bool = False) -> list[str]:
        """Like :meth:`command`, with the variables that the layer has anyway.

        fed: whether the command reads what the host's is sent on its standard input.
        """
        wrapped = list(argv)
        layer: Layer | None = self
        while layer is not None:
            wrapped = layer.wrap_fed(wrapped) if fed else layer.wrap(wrapped)
            layer = layer.below
        return wrapped
