"""The link to a client in a network namespace of this host, by a veth pair."""

import os
from collections.abc import Sequence

from strata.client.link import Link
from strata.environments.common.layer import Layer
from strata.host import addresses
from strata.util import paths
from strata.util.errors import UserError
from strata.util.paths import get_name_prefix
from strata.util.process import capture_output, wrap_as_root
from strata.vm import passthrough

# The client's end of the veth pair, in the namespace.
CLIENT_INTERFACE = "eth0"
# The client's network interface on a card whose virtual function only the machine uses.
CARD_INTERFACE = "card0"
# The last number of the client's IP address.
CLIENT_NUMBER = 2


def get_interface_name() -> str:
    """Return the name of the veth pair's interface on the host.

    :func:`remove_namespace` finds the interface by it, so it must not change between versions.
    The kernel allows 15 characters.
    """
    return f"stv{paths.compute_home_mark()[:8]}"


def _run_ip(*arguments: str, check: bool = True) -> None:
    """Run the host's program ``ip`` as root with these arguments.

    check: whether a failure raises UserError; otherwise it is ignored.
    """
    capture_output(wrap_as_root(["ip", *arguments]), check=check)


def _set_interface_address(address: str, interface: str, *namespace: str) -> None:
    """Set the only IP address of a network interface, and switch the interface on.

    address: the IP address, in a /24 network.
    namespace: options of ``ip`` that select a network namespace; none selects the host's.
    Raises UserError if a command fails.
    """
    _run_ip(*namespace, "address", "flush", "dev", interface)
    _run_ip(*namespace, "address", "add", f"{address}/24", "dev", interface)
    _run_ip(*namespace, "link", "set", interface, "up")


def _set_client_address(subnet: str) -> None:
    """Set the client's only IP address, the one with the number :data:`CLIENT_NUMBER` in a network.

    subnet: the network, as ADDRESS/24.
    The namespace and the client's end of the veth pair must exist.
    """
    address = addresses.compute_nth_address(subnet, CLIENT_NUMBER)
    _set_interface_address(address, CLIENT_INTERFACE, "-n", get_name_prefix())


class Namespace(Link):
    """A link to a client in a network namespace of this host, by a veth pair."""

    client_interface = CLIENT_INTERFACE
    kind = "veth pair"

    def start(self) -> None:
        """Create the namespace and the veth pair, with addresses in a network that is not in use.

        Removes an earlier namespace of this home first, and notes the new one's removal in the
        journal.  Limits the rate if the options have one.  Sets `host` and `host_interface`.
        Raises UserError if a command fails.
        """
        remove_namespace()
        self.context.note_cleanup({"kind": "namespace", "id": get_name_prefix()})
        subnet = addresses.find_free_subnet(addresses.read_host_routes())
        self.host = addresses.compute_nth_address(subnet, 1)
        self.host_interface = get_interface_name()
        client_end = ["name", CLIENT_INTERFACE, "netns", get_name_prefix()]
        _run_ip("netns", "add", get_name_prefix())
        _run_ip("link", "add", self.host_interface, "type", "veth", "peer", *client_end)
        _set_interface_address(self.host, self.host_interface)
        _set_client_address(subnet)
        _run_ip("-n", get_name_prefix(), "link", "set", "lo", "up")
        self.limit_rate()

    def join_bridge(self, machines: Sequence[Layer], bridge: str, subnet: str) -> None:
        """Attach the host's end of the veth pair to the machines' bridge, as a port.

        The host's end loses its address, and the client gets an address in the machines' network.
        machines: not used; only a second machine needs them.
        bridge: the name of the bridge.
        subnet: the machines' network, as ADDRESS/24.
        Removing the namespace undoes all of it, so the journal needs no further entry.
        """
        _run_ip("address", "flush", "dev", self.host_interface)
        _run_ip("link", "set", self.host_interface, "master", bridge)
        _set_client_address(subnet)

    def set_client_interface(self, address: str, card: str, client_address: str | None) -> None:
        """Create a network interface in the namespace on the host's side of a machine's card.

        address: not used; only a second machine needs it.
        card: the PCI address of the machine's card.
        client_address: the client's address in the card's network; config.yaml gives it.
        Sets `client_interface` and `kind`.  The interface is removed with the namespace.
        Raises UserError if `client_address` is None or the card is not a virtual function of this
        host.
        """
        if client_address is None:
            raise UserError(
                "config.yaml: vm.profiles: a card has an address for the machine and none for a "
                "client in a namespace; give it client, another address of its network"
            )
        self.client_interface = CARD_INTERFACE
        self.kind = "the card whose function the machine has"
        client_end = ["name", CARD_INTERFACE, "netns", get_name_prefix()]
        device = passthrough.find_network_interface(card)
        _run_ip("link", "add", "link", device, *client_end, "type", "macvlan", "mode", "bridge")
        _run_ip("-n", get_name_prefix(), "address", "add", client_address, "dev", CARD_INTERFACE)
        _run_ip("-n", get_name_prefix(), "link", "set", CARD_INTERFACE, "up")

    def wrap_for_client_host(self, argv: list[str]) -> list[str]:
        """Return this host's command that runs `argv` in the namespace, with this host's files.

        It runs as root.
        """
        return wrap_as_root(["nsenter", f"--net=/run/netns/{get_name_prefix()}", "--", *argv])

    def wrap_command(self, argv: list[str], reads_stdin: bool = False) -> list[str]:
        """Return the host's command that runs `argv` in the network namespace, as root.

        reads_stdin: not used; the command always passes its standard input on.
        """
        return self.wrap_for_client_host(argv)


def remove_namespace() -> list[str]:
    """Remove this home folder's network namespace and veth pair, if they exist.

    Returns a phrase for each removed thing, for people.  The programs in the namespace must have
    been ended before.
    Raises UserError if the namespace cannot be removed.
    """
    phrases = []
    if os.path.exists(f"/sys/class/net/{get_interface_name()}"):
        # The device may vanish meanwhile, with a namespace that the kernel is removing.
        _run_ip("link", "delete", get_interface_name(), check=False)
        phrases.append(f"network device {get_interface_name()}")
    if get_name_prefix() in capture_output(["ip", "netns", "list"], check=False).stdout.split():
        _run_ip("netns", "delete", get_name_prefix())
        phrases.append(f"network namespace {get_name_prefix()}")
    return phrases
