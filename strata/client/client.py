"""What every client can do."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from strata.base.errors import UserError
from strata.base.shapes import Fields
from strata.host.context import Context, with_variables
from strata.layers.layer import Layer


class Client(ABC):
    """Runs commands outside of the system under test, and reaches it over a link.

    settled: as from :func:`strata.client.settle`.  context: id and folder of its own, and the image.
    """

    def __init__(self, settled: Fields, context: Context) -> None:
        self.settled, self.context = settled, context

    @abstractmethod
    def up(self) -> str:
        """Bring the client and its link up; returns the host's address on that link.  Raises UserError.

        It notes traces as a layer does.
        """

    @abstractmethod
    def join(self, systems: Sequence[Layer]) -> None:
        """Make equal systems that are up reachable at their addresses, where the host's own does not lead to them."""

    def see_no_rate(self) -> None:
        """Refuse a rate where the way leads over a machine's own card, which it would not limit.  Raises UserError."""
        if self.settled["rate"]:
            raise UserError(
                "config.yaml: client.rate: a card that a machine has for itself is not limited; leave it out"
            )

    @abstractmethod
    def command_plain(self, argv: list[str]) -> list[str]:
        """The command for this host that runs `argv` at the client, with the variables that are there anyway."""

    @abstractmethod
    def put(self, source: str, target: str) -> None:
        """Copy a file of the host, with its rights, to `target` below /data at the client."""

    @abstractmethod
    def link(self) -> Fields:
        """What is known of the link, for the records: each a text or a number, or "not available"."""

    def command(self, argv: list[str]) -> list[str]:
        """The command for this host that runs `argv` at the client, with the variables of every measured command."""
        return self.command_plain(with_variables(argv))
