"""Join the client to systems by a network link, and limit the link's rate at both ends.

The rate is limited by a token bucket at each end.

With the same rate for all environments, the cost of a byte can be compared.  The bucket's handle
marks it as Strata's: no other queueing discipline is ever replaced or removed.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence

from strata.environments.common.layer import Layer
from strata.host import addresses
from strata.host.observe import NOT_AVAILABLE
from strata.util import paths
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.process import capture_output, wrap_as_root

# The handle of the queueing disciplines that Strata adds; clean-up removes them by it.
HANDLE = "5742:"
# Bits per second of each unit of a rate.
UNITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
# A burst has the traffic of 4 ms (1/250 s).
BURSTS_PER_SECOND = 250
# The least bytes of a burst: two packets of 64 KiB, the largest that a kernel sends.
MIN_BURST_BYTES = 2 * 65536


class Link(Layer):
    """A layer of the client's stack that joins the client and this host.

    Its options are those of :func:`strata.client.resolve_client_options`.

    Attributes of a link that is up:
    host: this host's IP address on the link.
    host_interface, client_interface: names of the network interfaces on this host and at the
    client.
    kind: the link's name in the records.
    shares_host: whether the client's programs run on this host.
    """

    host: str
    host_interface: str
    client_interface: str
    kind: str
    shares_host = True

    @abstractmethod
    def wrap_for_client_host(self, argv: list[str]) -> list[str]:
        """Return this host's command that runs `argv` on the client's side of the link.

        `argv` runs in the client's network namespace or on the second machine, as root.  Its
        programs are those installed there, not those of the image.
        """

    def get_address(self) -> str:
        """Return this host's IP address on the link."""
        return self.host

    def collect_facts(self) -> Fields:
        """Return ``{kind, mtu, rate}`` of the link; the MTU, in bytes, may be "not available".

        The record has them as `observed.client.link`.
        """
        command = self.wrap_for_client_host(["ip", "-o", "link", "show", self.client_interface])
        match = re.search(r" mtu (\d+)", capture_output(command, check=False).stdout)
        mtu = int(match[1]) if match else NOT_AVAILABLE
        return {"kind": self.kind, "mtu": mtu, "rate": self.options["rate"] or "not limited"}

    def limit_rate(self) -> None:
        """Limit the rate of the network interfaces at both ends, if the options have a rate.

        Each end limits the packets that it sends.  Call this once, after both interfaces are up.
        Raises UserError if an interface already has a configured queueing discipline.
        """
        if rate := self.options["rate"]:
            capture_output(wrap_as_root(build_rate_limit_command(self.host_interface, rate)))
            capture_output(
                self.wrap_for_client_host(build_rate_limit_command(self.client_interface, rate))
            )

    def join_systems(self, systems: Sequence[Layer]) -> None:
        """Connect the client to the systems' virtual machines, if there are any.

        systems: the top layers of the equal parts of one system, which are up.
        The client is connected to the machines' bridge, or to the network card that is passed
        through to a machine.
        Raises UserError if this card cannot be reached, or if a rate is configured for it.
        """
        machines = []
        for system in systems:
            if machine := system.find_virtual_machine():
                machines.append(machine)
        if not machines:
            return
        # All machines are in one network, a /24, so it follows from the first machine's address.
        address = machines[0].get_address()
        card = machines[0].find_passthrough_card()
        if card is None:
            subnet = addresses.compute_nth_address(f"{address}/24", 0) + "/24"
            self.join_bridge(machines, paths.get_name_prefix(), subnet)
        elif self.options["rate"]:
            raise UserError(
                "config.yaml: client.rate: a card that a machine has for itself is not limited; "
                "leave it out"
            )
        else:
            self.set_client_interface(address, *card)

    @abstractmethod
    def join_bridge(self, machines: Sequence[Layer], bridge: str, subnet: str) -> None:
        """Connect the client to the network of the machines on this host.

        machines: the layers of all machines, which are up.
        bridge: the name of their bridge on this host.
        subnet: their network, as ADDRESS/24.
        An implementation notes the removal of what it makes in the journal first.
        """

    @abstractmethod
    def set_client_interface(self, address: str, card: str, client_address: str | None) -> None:
        """Find or create the client's network interface to a machine's passed-through card.

        address: the IP address of the machine's network card.
        card: the card's PCI address.
        client_address: the client's address in that network, as configured; None if none is.
        Sets `client_interface`, and `kind` if the link's name changes.
        Raises UserError if the client cannot reach the address directly.
        """


def build_rate_limit_command(device: str, rate: str) -> list[str]:
    """Return the command that limits the rate at which a network interface sends.

    device: the interface's name.
    rate: a whole number and one of :data:`UNITS`, for example ``1gbit``; the schema of config.yaml
    has checked it.
    The token bucket (tc-tbf) passes bursts of 4 ms of traffic, and of at least
    :data:`MIN_BURST_BYTES` bytes.  A packet that would wait in it for more than 50 ms is dropped.
    """
    # All units have four letters.
    number = rate[:-4]
    unit = rate[-4:]
    bytes_per_second = int(number) * UNITS[unit] // 8
    burst_bytes = max(bytes_per_second // BURSTS_PER_SECOND, MIN_BURST_BYTES)
    settings = ["rate", rate, "burst", str(burst_bytes), "latency", "50ms"]
    return ["tc", "qdisc", "add", "dev", device, "root", "handle", HANDLE, "tbf", *settings]
