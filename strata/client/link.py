"""The link between client and system, and its rate: a token bucket at each end.

With the same rate for all environments, the cost of a byte can be compared.  The bucket's handle
marks it as Strata's: no other queueing discipline is ever replaced or removed.
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

# The handle of the queueing disciplines that Strata adds; clean-up removes them by it.
HANDLE = "5742:"
# Bits per second of each unit of a rate.
UNITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}


class Link(Layer):
    """A layer of the client's stack that joins the client and this host.

    Its options are those of :func:`strata.client.resolve_options`.  Once the link is up, `host` is
    this host's IP address on it, `near` is the network interface on this host, `far` that on the
    client, and `kind` is the link's name in the records.  `shares_host` says whether the client's
    programs run on this host.
    """

    host: str
    near: str
    far: str
    kind: str
    shares_host = True

    @abstractmethod
    def on_client_host(self, argv: list[str]) -> list[str]:
        """Return this host's command that runs `argv` on the client's side of the link.

        That is in the client's network namespace or on the second machine, and with the programs
        installed there, not those of the image.
        """

    def address(self) -> str:
        """Return this host's IP address on the link."""
        return self.host

    def facts(self) -> Fields:
        """Return ``{kind, mtu, rate}`` of the link; the MTU, in bytes, may be "not available"."""
        show = self.on_client_host(["ip", "-o", "link", "show", self.far])
        shown = capture(show, check=False).stdout
        mtu = int(shown.split(" mtu ", 1)[1].split()[0]) if " mtu " in shown else NOT_AVAILABLE
        return {"kind": self.kind, "mtu": mtu, "rate": self.options["rate"] or "not limited"}

    def limit_rate(self) -> None:
        """Limit the rate of the network interfaces at both ends, if a rate is configured.

        Raises UserError if an interface already has a configured queueing discipline.
        """
        if rate := self.options["rate"]:
            capture(as_root(bucket_command(self.near, rate)))
            capture(self.on_client_host(bucket_command(self.far, rate)))

    def join_systems(self, systems: Sequence[Layer]) -> None:
        """Give the client a network path to virtual machines that are up, if there are any.

        systems: the equal parts of one system.  The path leads to the machines' bridge, or to the
        network card that a machine has for itself.
        Raises UserError if such a card cannot be reached, or if a rate is configured for it.
        """
        machines = [machine for system in systems if (machine := system.virtual_machine())]
        if not machines:
            return
        # All machines are in one network.
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
        """Connect the client to the network of the machines on this host.

        machines: the layers of all machines, which are up.  bridge: name of their bridge on this
        host.
        subnet: their network, as ADDRESS/24.
        """

    @abstractmethod
    def find_client_interface(self, address: str, card: str, client_address: str | None) -> None:
        """Find or create the client's network interface to a machine's own network card.

        address: the IP address of the machine's card.  card: its PCI address.
        client_address: the client's address in that network, as configured; None if it is not.
        May set `far` and `kind`.  Raises UserError if the client cannot reach the address directly.
        """


def bucket_command(device: str, rate: str) -> list[str]:
    """Return the command that limits a network interface to a rate such as ``1gbit``.

    The token bucket lets bursts pass of 4 ms of traffic, and at least of 128 KiB, two packets of 64
    KiB.
    """
    burst = max(int(rate[:-4]) * UNITS[rate[-4:]] // 8 // 250, 131072)
    settings = ["rate", rate, "burst", str(burst), "latency", "50ms"]
    return ["tc", "qdisc", "add", "dev", device, "root", "handle", HANDLE, "tbf", *settings]
