"""A client in a network namespace of this host, joined to it by a veth pair."""

import os
from collections.abc import Sequence

from strata import layers
from strata.base import places
from strata.base.process import as_root, capture
from strata.client import rate
from strata.client.client import Client
from strata.host import addresses
from strata.layers.layer import Layer

INSIDE = "eth0"
# Numbers in the link's network: that of the host, that of the client.
HOST, CLIENT = 1, 2


def name() -> str:
    """Name of the namespace."""
    return f"strata-{places.home_mark()[:8]}"


def device() -> str:
    """Name of the host's end of the pair (15 characters at most)."""
    return f"stv{places.home_mark()[:8]}"


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
        bridge, address = systems[0].bridge(), systems[0].address()
        if bridge is None:
            return
        # The client's end of the pair is at the machine's bridge, as another machine's cable would be.
        _ip("address", "flush", "dev", device())
        _ip("link", "set", device(), "master", bridge)
        subnet = addresses.member(address + "/24", 0) + "/24"
        self._address(INSIDE, ["-n", name()], addresses.member(subnet, CLIENT))

    def _address(self, device: str, where: list[str], address: str) -> None:
        _ip(*where, "address", "flush", "dev", device)
        _ip(*where, "address", "add", f"{address}/24", "dev", device)
        _ip(*where, "link", "set", device, "up")

    def command_plain(self, argv: list[str]) -> list[str]:
        return [*entered(), *self._root.wrap(argv)]

    def put(self, source: str, target: str) -> None:
        self._root.put(source, target)

    def link(self) -> dict:
        mtu = _ip("-n", name(), "-o", "link", "show", INSIDE).split(" mtu ", 1)[-1].split()[0]
        return {"kind": "veth pair", "mtu": int(mtu), "rate": self.settled["rate"] or "not limited"}


def remove() -> bool:
    """Remove the namespace and the pair; whether there was one.  What ran in it was ended before."""
    found = name() in capture(["ip", "netns", "list"], check=False).stdout.split()
    if os.path.exists(f"/sys/class/net/{device()}"):
        _ip("link", "delete", device(), check=False)
    if found:
        _ip("netns", "delete", name())
    return found
