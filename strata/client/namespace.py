"""A client in a network namespace of this host, joined to it by a veth pair."""

import os
from collections.abc import Sequence

from strata import layers
from strata.base import places
from strata.base.errors import UserError
from strata.base.process import as_root, capture
from strata.base.shapes import Fields
from strata.client import rate
from strata.client.client import Client
from strata.host import addresses
from strata.layers.layer import Layer
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


def device_on_card() -> str:
    """Name of the client's device on a card, until it is in the namespace."""
    return f"stc{places.home_mark()[:8]}"


def entered() -> list[str]:
    """The beginning of a command that runs in the namespace, and in nothing else of its own."""
    return as_root(["nsenter", f"--net=/run/netns/{name()}", "--"])


def _ip(*words: str, check: bool = True) -> str:
    return capture(as_root(["ip", *words]), check=check).stdout


class Namespace(Client):
    """The image's files by a change of root, in a group of their own, behind a veth pair."""

    @property
    def _root(self) -> Layer:
        return layers.build([{"chroot": {}}], self.context)[-1]

    def up(self) -> str:
        remove()
        self.context.make_folder()
        self.context.note({"kind": "namespace", "id": name()})
        subnet = addresses.free_subnet(addresses.host_routes())
        _ip("netns", "add", name())
        _ip("link", "add", device(), "type", "veth", "peer", "name", INSIDE, "netns", name())
        self._address(device(), [], addresses.member(subnet, HOST))
        self._address(INSIDE, ["-n", name()], addresses.member(subnet, CLIENT))
        _ip("-n", name(), "link", "set", "lo", "up")
        if self.settled["rate"]:
            rate.limit(lambda argv: capture(as_root(argv)).stdout, device(), self.settled["rate"])
            rate.limit(lambda argv: capture([*entered(), *argv]).stdout, INSIDE, self.settled["rate"])
        self._root.up()
        return addresses.member(subnet, HOST)

    def join(self, systems: Sequence[Layer]) -> None:
        # All equal systems are in one network.
        own = systems[0].card()
        if own:
            self._join_card(*own)
            return
        bridge, address = systems[0].bridge(), systems[0].address()
        if bridge is None:
            return
        # The client's end of the pair is at the machine's bridge, as another machine's cable would be.
        _ip("address", "flush", "dev", device())
        _ip("link", "set", device(), "master", bridge)
        subnet = addresses.member(address + "/24", 0) + "/24"
        self._address(INSIDE, ["-n", name()], addresses.member(subnet, CLIENT))

    def _join_card(self, device: str, address: str | None) -> None:
        """Put the client on the host's side of the card whose function a machine has for itself."""
        if address is None:
            raise UserError(
                "config.yaml: vm.profiles: a card has an address for the machine and none for a client in a namespace; "
                "give it client, another address of its network"
            )
        self.see_no_rate()
        # It goes with the namespace.
        made = device_on_card()
        _ip("link", "add", "link", card.port(device), "name", made, "type", "macvlan", "mode", "bridge")
        _ip("link", "set", made, "netns", name(), "name", ON_CARD)
        _ip("-n", name(), "address", "add", address, "dev", ON_CARD)
        _ip("-n", name(), "link", "set", ON_CARD, "up")

    def _address(self, device: str, where: list[str], address: str) -> None:
        _ip(*where, "address", "flush", "dev", device)
        _ip(*where, "address", "add", f"{address}/24", "dev", device)
        _ip(*where, "link", "set", device, "up")

    def command_plain(self, argv: list[str]) -> list[str]:
        return [*entered(), *self._root.wrap(argv)]

    def put(self, source: str, target: str) -> None:
        self._root.put(source, target)

    def link(self) -> Fields:
        lines = _ip("-n", name(), "-o", "link", "show").splitlines()
        over = next((line for line in lines if f" {ON_CARD}@" in line), None)
        line = over or next(line for line in lines if f" {INSIDE}@" in line)
        kind = "the card whose function the machine has" if over else "veth pair"
        mtu = int(line.split(" mtu ", 1)[-1].split()[0])
        return {"kind": kind, "mtu": mtu, "rate": self.settled["rate"] or "not limited"}


def remove() -> bool:
    """Remove the namespace and the pair; whether there was one.  What ran in it was ended before."""
    found = name() in capture(["ip", "netns", "list"], check=False).stdout.split()
    for made in (device(), device_on_card()):
        if os.path.exists(f"/sys/class/net/{made}"):
            _ip("link", "delete", made, check=False)
    if found:
        _ip("netns", "delete", name())
    return found
