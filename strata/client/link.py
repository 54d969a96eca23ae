"""The link between client and system, and its rate: a token bucket at each end.

At an equal rate everywhere the cost of a byte can be compared.  The bucket's handle marks it as
ours: nobody else's queueing is ever replaced or removed.
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
    """A layer of the client's stack, with the options of :func:`strata.client.resolve_options`.

    Once it is up, `host` is this host's address on it, `near` its device on this host, `far` its
    device on the client; `kind` is its name in records.
    """

    host: str
    near: str
    far: str
    kind: str

    @abstractmethod
    def on_client_host(self, argv: list[str]) -> list[str]:
        """Return the command of this host that runs `argv` where the client's device is.

        That is in the client's network namespace or on the second machine, with the programs of
        that machine.
        """

    def address(self) -> str:
        """Return the address of this host on the link."""
        return self.host

    def facts(self) -> Fields:
        """Return ``{kind, mtu, rate}`` of the link; the MTU may be "not available"."""
        show = self.on_client_host(["ip", "-o", "link", "show", self.far])
        shown = capture(show, check=False).stdout
        mtu = int(shown.split(" mtu ", 1)[1].split()[0]) if " mtu " in shown else NOT_AVAILABLE
        return {"kind": self.kind, "mtu": mtu, "rate": self.options["rate"] or "not limited"}

    def limit_rate(self) -> None:
        """Set the rate, if there is one, on both devices."""
        if rate := self.options["rate"]:
            capture(as_root(bucket_command(self.near, rate)))
            capture(self.on_client_host(bucket_command(self.far, rate)))

    def join_systems(self, systems: Sequence[Layer]) -> None:
        """Make systems that are up, the equal parts of one, reachable at their addresses.

        Raises UserError where a machine's own card is to be limited, or cannot be reached.
        """
        machines = [machine for system in systems if (machine := system.virtual_machine())]
        if not machines:
            return
        # All are in one network.
        address, card = machines[0].address(), machines[0].passed_card()
        if card is None:
            subnet = addresses.address_in(f"{address}/24", 0) + "/24"
            self.join_bridge(machines, paths.name_prefix(), subnet)
        elif self.options["rate"]:
            raise UserError(
                "config.yaml: client.rate: a card that a machine has for itself is not limited; "
                "leave it out"
            )
        else:
            self.find_client_interface(address, *card)

    @abstractmethod
    def join_bridge(self, machines: Sequence[Layer], bridge: str, subnet: str) -> None:
        """Join the machines' bridge and network."""

    @abstractmethod
    def find_client_interface(self, address: str, card: str, client_address: str | None) -> None:
        """Reach a machine at the address of its own card.

        card: the PCI address.  client_address: as configured for the client in the card's network,
        if it is.  Raises UserError where the client cannot have an address there.
        """


def bucket_command(device: str, rate: str) -> list[str]:
    """Return the command that limits a device to a rate such as ``1gbit``.

    At once 4 ms of traffic may pass, and at least two packets of 64 KiB.
    """
    burst = max(int(rate[:-4]) * UNITS[rate[-4:]] // 8 // 250, 131072)
    settings = ["rate", rate, "burst", str(burst), "latency", "50ms"]
    return ["tc", "qdisc", "add", "dev", device, "root", "handle", HANDLE, "tbf", *settings]
