"""A client in a network namespace of this host, joined to it by a veth pair."""

import os
from collections.abc import Sequence

from strata.base import places
from strata.base.errors import UserError
from strata.base.process import as_root, capture
from strata.base.shapes import Fields
from strata.client.link import Link, bucket
from strata.host import addresses
from strata.layers.common.layer import Layer
from strata.vm import card

INSIDE = "eth0"
# The client's device on a card whose function a machine has for itself.
ON_CARD = "card0"
# Numbers in the link's network: that of the host, that of the client.
HOST, CLIENT = 1, 2


def name() -> str:
    """Name of the namespace."""
    return f"strata-{places.home_mark()[:8]}"


def device() -> str:
    """Name of the host's end of the pair (15 characters at most)."""
    return f"stv{places.home_mark()[:8]}"


def _ip(*words: str, check: bool = True) -> str:
    return capture(as_root(["ip", *words]), check=check).stdout


class Namespace(Link):
    """A network namespace behind a veth pair."""

    def up(self) -> None:
        remove()
        self.context.note({"kind": "namespace", "id": name()})
        subnet = addresses.free_subnet(addresses.host_routes())
        _ip("netns", "add", name())
        _ip("link", "add", device(), "type", "veth", "peer", "name", INSIDE, "netns", name())
        self._address(device(), [], addresses.member(subnet, HOST))
        self._address(INSIDE, ["-n", name()], addresses.member(subnet, CLIENT))
        _ip("-n", name(), "link", "set", "lo", "up")
        if rate := self.options["rate"]:
            capture(as_root(bucket(device(), rate)))
            capture(self.wrap(bucket(INSIDE, rate)))
        self._host = addresses.member(subnet, HOST)

    def address(self) -> str:
        return self._host

    def join_bridge(self, machines: Sequence[Layer], bridge: str, subnet: str) -> None:
        # The client's end of the pair is at the machine's bridge, as another machine's cable would be.
        _ip("address", "flush", "dev", device())
        _ip("link", "set", device(), "master", bridge)
        self._address(INSIDE, ["-n", name()], addresses.member(subnet, CLIENT))

    def join_card(self, address: str, device: str, own: str | None) -> None:
        # It is put on the host's side of the card.
        if own is None:
            raise UserError(
                "config.yaml: vm.profiles: a card has an address for the machine and none for a client in a namespace; "
                "give it client, another address of its network"
            )
        # It goes with the namespace.
        made = ["name", ON_CARD, "netns", name(), "type", "macvlan", "mode", "bridge"]
        _ip("link", "add", "link", card.port(device), *made)
        _ip("-n", name(), "address", "add", own, "dev", ON_CARD)
        _ip("-n", name(), "link", "set", ON_CARD, "up")

    def _address(self, device: str, where: list[str], address: str) -> None:
        _ip(*where, "address", "flush", "dev", device)
        _ip(*where, "address", "add", f"{address}/24", "dev", device)
        _ip(*where, "link", "set", device, "up")

    def wrap(self, argv: list[str], fed: bool = False) -> list[str]:
        return as_root(["nsenter", f"--net=/run/netns/{name()}", "--", *argv])

    def facts(self) -> Fields:
        lines = _ip("-n", name(), "-o", "link", "show").splitlines()
        if over := next((line for line in lines if f" {ON_CARD}@" in line), None):
            return self.seen("the card whose function the machine has", over)
        return self.seen("veth pair", next(line for line in lines if f" {INSIDE}@" in line))


def remove() -> bool:
    """Remove the namespace and the pair; whether there was one.  What ran in it was ended before."""
    found = name() in capture(["ip", "netns", "list"], check=False).stdout.split()
    if os.path.exists(f"/sys/class/net/{device()}"):
        _ip("link", "delete", device(), check=False)
    if found:
        _ip("netns", "delete", name())
    return found
