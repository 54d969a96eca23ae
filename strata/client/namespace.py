"""The link to a client in a network namespace of this host, by a veth pair."""

import os
from collections.abc import Sequence

from strata.client.link import Link
from strata.environments.common.layer import Layer
from strata.host import addresses
from strata.util import paths
from strata.util.errors import UserError
from strata.util.paths import name_prefix
from strata.util.process import as_root, capture
from strata.vm import passthrough

# The client's end of the veth pair, in the namespace.
INSIDE = "eth0"
# The client's network interface on a card whose virtual function only the machine uses.
ON_CARD = "card0"
# The last number of the client's IP address.
CLIENT = 2


def device() -> str:
    """Return the name of the veth pair's interface on the host, of at most 15 characters.

    Clean-up finds the interface by this name.
    """
    return f"stv{paths.home_mark()[:8]}"


def _ip(*arguments: str, check: bool = True) -> None:
    """Run ``ip`` as root.

    Raises UserError if the command fails and `check` is set.
    """
    capture(as_root(["ip", *arguments]), check=check)


def _set_address(address: str, interface: str, *namespace: str) -> None:
    """Give a network interface this IP address and no other, and switch the interface on.

    address: the IP address, for a network of 24 bits.
    namespace: options of ``ip`` that select a network namespace; none: the host's.
    """
    _ip(*namespace, "address", "flush", "dev", interface)
    _ip(*namespace, "address", "add", f"{address}/24", "dev", interface)
    _ip(*namespace, "link", "set", interface, "up")


class Namespace(Link):
    """A link to a client in a network namespace of this host, by a veth pair."""

    far, kind = INSIDE, "veth pair"

    def up(self) -> None:
        """Create the namespace and the veth pair, with addresses in a network that is not in use.

        Removes an earlier namespace first, and notes the new one's removal in the journal.  Sets
        `host` and `near`.  Raises UserError if a command fails.
        """
        remove()
        self.context.note_cleanup({"kind": "namespace", "id": name_prefix()})
        subnet = addresses.free_subnet(addresses.host_routes())
        self.host, self.near = addresses.address_in(subnet, 1), device()
        _ip("netns", "add", name_prefix())
        _ip(
            "link", "add", self.near, "type", "veth", "peer", "name", INSIDE, "netns", name_prefix()
        )
        _set_address(self.host, self.near)
        _set_address(addresses.address_in(subnet, CLIENT), INSIDE, "-n", name_prefix())
        _ip("-n", name_prefix(), "link", "set", "lo", "up")
        self.limit_rate()

    def join_bridge(self, machines: Sequence[Layer], bridge: str, subnet: str) -> None:
        """Connect the host's end of the veth pair to the bridge, like a cable of another machine.

        That end loses its address, and the client gets one in the machines' network.
        """
        _ip("address", "flush", "dev", self.near)
        _ip("link", "set", self.near, "master", bridge)
        _set_address(addresses.address_in(subnet, CLIENT), INSIDE, "-n", name_prefix())

    def find_client_interface(self, address: str, card: str, client_address: str | None) -> None:
        """Create a network interface in the namespace on the host's side of a machine's card.

        Sets `far` and `kind`.  The interface is removed with the namespace.
        Raises UserError if `client_address` is None or the card is not a virtual function of this
        host.
        """
        if client_address is None:
            raise UserError(
                "config.yaml: vm.profiles: a card has an address for the machine and none for a "
                "client in a namespace; give it client, another address of its network"
            )
        self.far, self.kind = ON_CARD, "the card whose function the machine has"
        # The interface is removed with the namespace.
        settings = ["name", ON_CARD, "netns", name_prefix(), "type", "macvlan", "mode", "bridge"]
        _ip("link", "add", "link", passthrough.network_device(card), *settings)
        _ip("-n", name_prefix(), "address", "add", client_address, "dev", ON_CARD)
        _ip("-n", name_prefix(), "link", "set", ON_CARD, "up")

    def on_client_host(self, argv: list[str]) -> list[str]:
        """Return this host's command that runs `argv` in the namespace, with this host's files."""
        return as_root(["nsenter", f"--net=/run/netns/{name_prefix()}", "--", *argv])

    def wrap(self, argv: list[str], fed: bool = False) -> list[str]:
        """Return the host's command that runs `argv` in the network namespace."""
        return self.on_client_host(argv)


def remove() -> list[str]:
    """Remove the network namespace and the veth pair, if they exist; return a phrase for each.

    The programs in the namespace must have been ended before.
    """
    removed = []
    if os.path.exists(f"/sys/class/net/{device()}"):
        _ip("link", "delete", device(), check=False)
        removed.append(f"network device {device()}")
    if name_prefix() in capture(["ip", "netns", "list"], check=False).stdout.split():
        _ip("netns", "delete", name_prefix())
        removed.append(f"network namespace {name_prefix()}")
    return removed
