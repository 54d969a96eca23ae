"""The host's addresses, and private ones that nothing else on it uses."""

import contextlib
import ipaddress
import json

from strata.util.errors import UserError
from strata.util.process import capture_output


def read_host_routes() -> str:
    """Return the host's IPv4 addresses and routes as `ip` prints them.

    :func:`find_free_subnet` parses the text.  Raises UserError if `ip` fails.
    """
    return (
        capture_output(["ip", "-4", "-o", "address"]).stdout
        + capture_output(["ip", "-4", "route"]).stdout
    )


def find_free_subnet(routes: str, start: int = 120) -> str:
    """Return a private /24 network, as text, that overlaps with no address and no route.

    Nothing reserves the network: the caller must use it before the next search.
    routes: the addresses and routes of the host, as :func:`read_host_routes` returns them.
    start: the third byte, from 120 to 249, of the network that is tried first; after 249 the search
    goes on with 120.  Different callers start at different bytes.
    Raises UserError if none of 192.168.120.0/24 … 192.168.249.0/24 is free.
    """
    networks_in_use = []
    for column in routes.replace(",", " ").split():
        # Most columns are not a network, such as the names of interfaces.
        with contextlib.suppress(ValueError):
            network = ipaddress.ip_network(column, strict=False)
            # The default route, 0.0.0.0/0, overlaps with all networks, and uses none.
            if network.prefixlen:
                networks_in_use.append(network)
    for number in [*range(start, 250), *range(120, start)]:
        candidate = ipaddress.ip_network(f"192.168.{number}.0/24")
        if not any(candidate.overlaps(network) for network in networks_in_use):
            return str(candidate)
    raise UserError(
        "No network of 192.168.120.0/24 … 192.168.249.0/24 is free on this host: remove a route or "
        "an address that nothing needs"
    )


def compute_nth_address(subnet: str, number: int) -> str:
    """Return the address with a number in a network, such as 192.168.120.2 for number 2.

    subnet: the network or any address in it, with its prefix length, such as 192.168.120.10/24.
    number: counted from 0, the network's own address; it is not checked against the network's size.
    Raises ValueError if the subnet is not an IP network.
    """
    return str(ipaddress.ip_network(subnet, strict=False).network_address + number)


def list_physical_addresses() -> set[str]:
    """Return the IPv4 and IPv6 addresses of the host's physical network interfaces.

    The interfaces of its default routes are included; other bridges, veth pairs and virtual
    interfaces are not.  Archives are searched for these addresses, which must not be published
    (:mod:`strata.archive.private`).  Raises UserError if `ip` fails.
    """
    # `ip` prints nothing if there is no route or no interface.
    routes = json.loads(capture_output(["ip", "-j", "route", "show", "default"]).stdout or "[]")
    interfaces = json.loads(capture_output(["ip", "-j", "-d", "address"]).stdout or "[]")
    default_interfaces = {route.get("dev") for route in routes}
    addresses = set()
    for interface in interfaces:
        # ip shows linkinfo (bridge, veth, …) of virtual interfaces only.
        is_physical = interface.get("link_type") == "ether" and "linkinfo" not in interface
        if is_physical or interface.get("ifname") in default_interfaces:
            for address in interface.get("addr_info", []):
                if "local" in address:
                    addresses.add(address["local"])
    return addresses
