"""What both links between client and system can do, and their rate: a token bucket on each end.

At an equal rate everywhere the cost of a byte can be compared.  The bucket's handle marks it as ours: nobody else's
queueing is ever replaced or removed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from strata.environments.common.layer import Layer
from strata.host import addresses
from strata.host.observe import NOT_AVAILABLE
from strata.util import paths
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.process import as_root, capture

HANDLE = "5742:"
# Bits per second.
UNITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}


class Link(Layer):
    """A layer of the client's stack.  Its options are those of :func:`strata.client.settle`.

    Of one that is up: this host's address on it, its device on this host and on the client, and how records call it.
    """

    host: str
    near: str
    far: str
    kind: str

    @abstractmethod
    def there(self, argv: list[str]) -> list[str]:
        """The command for this host that runs `argv` where the client's device is, with programs of that machine."""

    def address(self) -> str:
        """The address of this host on the link."""
        return self.host

    def facts(self) -> Fields:
        """What is known of the link: ``{kind, mtu, rate}``."""
        shown = capture(self.there(["ip", "-o", "link", "show", self.far]), check=False).stdout
        mtu = int(shown.split(" mtu ", 1)[1].split()[0]) if " mtu " in shown else NOT_AVAILABLE
        return {"kind": self.kind, "mtu": mtu, "rate": self.options["rate"] or "not limited"}

    def limit(self) -> None:
        """Set the rate, if there is one, on both devices."""
        if rate := self.options["rate"]:
            capture(as_root(bucket(self.near, rate)))
            capture(self.there(bucket(self.far, rate)))

    def join(self, systems: Sequence[Layer]) -> None:
        """Make equal systems that are up reachable at their addresses.  Raises UserError."""
        machines = [machine for system in systems if (machine := system.machine())]
        if not machines:
            return
        # All are in one network.
        address, card = machines[0].address(), machines[0].card()
        if card is None:
            self.join_bridge(machines, paths.prefix(), addresses.address_in(f"{address}/24", 0) + "/24")
        elif self.options["rate"]:
            raise UserError(
                "config.yaml: client.rate: a card that a machine has for itself is not limited; leave it out"
            )
        else:
            self.join_card(address, *card)

    @abstractmethod
    def join_bridge(self, machines: Sequence[Layer], bridge: str, subnet: str) -> None:
        """Join machines' bridge and network."""

    @abstractmethod
    def join_card(self, address: str, card: str, own: str | None) -> None:
        """Reach a machine at the address of its own card, a PCI device; `own`: the client's address, if any is said.

        Raises UserError.
        """


def bucket(device: str, rate: str) -> list[str]:
    """The command that sets the bucket: 4 ms of traffic, at least two packets of 64 KiB, may pass at once."""
    burst = max(int(rate[:-4]) * UNITS[rate[-4:]] // 8 // 250, 131072)
    words = ["rate", rate, "burst", str(burst), "latency", "50ms"]
    return ["tc", "qdisc", "add", "dev", device, "root", "handle", HANDLE, "tbf", *words]
