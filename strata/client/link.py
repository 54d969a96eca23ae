"""What both links between client and system can do, and their rate: a token bucket on each end.

At an equal rate everywhere the cost of a byte can be compared.  The bucket's handle marks it as ours: nobody else's
queueing is ever replaced or removed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from strata.base.errors import UserError
from strata.base.shapes import Fields
from strata.host import addresses
from strata.layers.common.layer import Layer

HANDLE = "5742:"
UNITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}


class Link(Layer):
    """A layer of the client's stack.  Its options are those of :func:`strata.client.settle`; its address is that of
    this host on the link, and its facts are those of the link: ``{kind, mtu, rate}``.
    """

    def join(self, systems: Sequence[Layer]) -> None:
        """Make equal systems that are up reachable at their addresses.  Raises UserError."""
        from strata.vm import libvirt

        machines = [machine for system in systems if (machine := system.machine())]
        if not machines:
            return
        # All are in one network.
        address = machines[0].address()
        if own := machines[0].card():
            if self.options["rate"]:
                raise UserError(
                    "config.yaml: client.rate: a card that a machine has for itself is not limited; leave it out"
                )
            self.join_card(address, *own)
        else:
            self.join_bridge(machines, libvirt.prefix(), addresses.member(f"{address}/24", 0) + "/24")

    @abstractmethod
    def join_bridge(self, machines: Sequence[Layer], bridge: str, subnet: str) -> None:
        """Join machines' bridge and network."""

    @abstractmethod
    def join_card(self, address: str, device: str, own: str | None) -> None:
        """Reach a machine at the address of its own card, a PCI device; `own`: the client's address, if any is said.

        Raises UserError.
        """

    def seen(self, kind: str, shown: str) -> Fields:
        """The facts, from what `ip link` shows of the client's device."""
        mtu = int(shown.split(" mtu ", 1)[1].split()[0]) if " mtu " in shown else "not available"
        return {"kind": kind, "mtu": mtu, "rate": self.options["rate"] or "not limited"}


def bucket(device: str, rate: str) -> list[str]:
    """The command that sets the bucket: 4 ms of traffic, at least two packets of 64 KiB, may pass at once."""
    bits_per_second = int(rate[:-4]) * UNITS[rate[-4:]]
    burst = max(bits_per_second // 8 // 250, 131072)
    words = ["rate", rate, "burst", str(burst), "latency", "50ms"]
    return ["tc", "qdisc", "add", "dev", device, "root", "handle", HANDLE, "tbf", *words]


def no_bucket(device: str) -> list[str]:
    """The command that removes the bucket; it fails where the queueing is not ours."""
    return ["tc", "qdisc", "del", "dev", device, "root", "handle", HANDLE]
