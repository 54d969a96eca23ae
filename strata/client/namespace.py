"""A client in a network namespace of this host, joined to it by a veth pair."""

import os
from collections.abc import Sequence

from strata.client.link import Link
from strata.environments.common.layer import Layer
from strata.host import addresses
from strata.util import paths
from strata.util.errors import UserError
from strata.util.paths import prefix
from strata.util.process import as_root, capture
from strata.vm import passthrough as cards

INSIDE = "eth0"
# The client's device on a card whose function a machine has for itself.
ON_CARD = "card0"
# The client's number in the link's network.
CLIENT = 2


def device() -> str:
    """Name of the host's end of the pair (15 characters at most)."""
    return f"stv{paths.home_mark()[:8]}"


def _ip(*words: str, check: bool = True) -> None:
    capture(as_root(["ip", *words]), check=check)


def _address(address: str, device: str, *where: str) -> None:
    """Give a device this address alone, and switch it on; where: the words for its namespace."""
    _ip(*where, "address", "flush", "dev", device)
    _ip(*where, "address", "add", f"{address}/24", "dev", device)
    _ip(*where, "link", "set", device, "up")


class Namespace(Link):
    """A network namespace behind a veth pair."""

    far, kind = INSIDE, "veth pair"

    def up(self) -> None:
        remove()
        self.context.note({"kind": "namespace", "id": prefix()})
        subnet = addresses.free_subnet(addresses.host_routes())
        self.host, self.near = addresses.address_in(subnet, 1), device()
        _ip("netns", "add", prefix())
        _ip("link", "add", self.near, "type", "veth", "peer", "name", INSIDE, "netns", prefix())
        _address(self.host, self.near)
        _address(addresses.address_in(subnet, CLIENT), INSIDE, "-n", prefix())
        _ip("-n", prefix(), "link", "set", "lo", "up")
        self.limit()

    def join_bridge(self, machines: Sequence[Layer], bridge: str, subnet: str) -> None:
        # The client's end of the pair is at the machine's bridge, as another machine's cable would be.
        _ip("address", "flush", "dev", self.near)
        _ip("link", "set", self.near, "master", bridge)
        _address(addresses.address_in(subnet, CLIENT), INSIDE, "-n", prefix())

    def join_card(self, address: str, card: str, own: str | None) -> None:
        # It is put on the host's side of the card.
        if own is None:
            raise UserError(
                "config.yaml: vm.profiles: a card has an address for the machine and none for a client in a namespace; "
                "give it client, another address of its network"
            )
        self.far, self.kind = ON_CARD, "the card whose function the machine has"
        # It goes with the namespace.
        made = ["name", ON_CARD, "netns", prefix(), "type", "macvlan", "mode", "bridge"]
        _ip("link", "add", "link", cards.port(card), *made)
        _ip("-n", prefix(), "address", "add", own, "dev", ON_CARD)
        _ip("-n", prefix(), "link", "set", ON_CARD, "up")

    def there(self, argv: list[str]) -> list[str]:
        return as_root(["nsenter", f"--net=/run/netns/{prefix()}", "--", *argv])

    def wrap(self, argv: list[str], fed: bool = False) -> list[str]:
        return self.there(argv)


def remove() -> list[str]:
    """Remove the namespace and the pair; what it was, in words.  What ran in it was ended before."""
    removed = []
    if os.path.exists(f"/sys/class/net/{device()}"):
        _ip("link", "delete", device(), check=False)
        removed.append(f"network device {device()}")
    if prefix() in capture(["ip", "netns", "list"], check=False).stdout.split():
        _ip("netns", "delete", prefix())
        removed.append(f"network namespace {prefix()}")
    return removed
