"""A client in a network namespace of this host, joined to it by a veth pair."""

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

INSIDE = "eth0"
# The client's device on a card whose function a machine has for itself.
ON_CARD = "card0"
# The client's number in the link's network.
CLIENT = 2


def device() -> str:
    """Return the name of the pair's end on the host, of at most 15 characters."""
    return f"stv{paths.home_mark()[:8]}"


def _ip(*arguments: str, check: bool = True) -> None:
    """Run ``ip`` as root.  Raises UserError where it fails and `check` is set."""
    capture(as_root(["ip", *arguments]), check=check)


def _set_address(address: str, interface: str, *namespace: str) -> None:
    """Give a network device this address and no other, and switch it on.

    namespace: the options of ``ip`` for it; none: the host's.
    """
    _ip(*namespace, "address", "flush", "dev", interface)
    _ip(*namespace, "address", "add", f"{address}/24", "dev", interface)
    _ip(*namespace, "link", "set", interface, "up")


class Namespace(Link):
    """A network namespace behind a veth pair."""

    far, kind = INSIDE, "veth pair"

    def up(self) -> None:
        """Make the namespace and the pair anew, with addresses in a network that nothing uses."""
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
        """Connect the host's end of the pair to the bridge, as a cable to another machine would."""
        _ip("address", "flush", "dev", self.near)
        _ip("link", "set", self.near, "master", bridge)
        _set_address(addresses.address_in(subnet, CLIENT), INSIDE, "-n", name_prefix())

    def find_client_interface(self, address: str, card: str, client_address: str | None) -> None:
        """Give the namespace a device on the host's side of the card."""
        if client_address is None:
            raise UserError(
                "config.yaml: vm.profiles: a card has an address for the machine and none for a "
                "client in a namespace; give it client, another address of its network"
            )
        self.far, self.kind = ON_CARD, "the card whose function the machine has"
        # The device is removed with the namespace.
        settings = ["name", ON_CARD, "netns", name_prefix(), "type", "macvlan", "mode", "bridge"]
        _ip("link", "add", "link", passthrough.network_device(card), *settings)
        _ip("-n", name_prefix(), "address", "add", client_address, "dev", ON_CARD)
        _ip("-n", name_prefix(), "link", "set", ON_CARD, "up")

    def on_client_host(self, argv: list[str]) -> list[str]:
        """Return the command that runs `argv` in the namespace, with this host's files."""
        return as_root(["nsenter", f"--net=/run/netns/{name_prefix()}", "--", *argv])

    def wrap(self, argv: list[str], fed: bool = False) -> list[str]:
        """Return the host's command that runs `argv` in the namespace."""
        return self.on_client_host(argv)


def remove() -> list[str]:
    """Remove the namespace and the pair, if they exist; return a phrase for each.

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
