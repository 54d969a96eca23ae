"""Private addresses on this host that nothing else uses."""

import contextlib
import ipaddress
import json

from strata.util.errors import UserError
from strata.util.process import capture


def host_routes() -> str:
    """The host's addresses and routes, as ``ip`` prints them."""
    return capture(["ip", "-4", "-o", "address"]).stdout + capture(["ip", "-4", "route"]).stdout


def free_subnet(routes: str, first: int = 120) -> str:
    """A private /24 that no address and no route of :func:`host_routes` touches, best from 192.168.FIRST.0 on.

    Raises UserError if none is left.
    """
    taken = []
    for word in routes.replace(",", " ").split():
        with contextlib.suppress(ValueError):
            taken.append(ipaddress.ip_network(word, strict=False))
    for number in [*range(first, 250), *range(120, first)]:
        candidate = ipaddress.ip_network(f"192.168.{number}.0/24")
        if not any(net.prefixlen and candidate.overlaps(net) for net in taken):
            return str(candidate)
    raise UserError("no network of 192.168.120.0/24 … 192.168.249.0/24 is free on this host")


def member(subnet: str, number: int) -> str:
    """The address with a number in the network of an address: ``member("192.168.120.10/24", 2)`` is 192.168.120.2."""
    return str(ipaddress.ip_network(subnet, strict=False).network_address + number)


def own() -> set[str]:
    """The host's addresses in networks that are not of its own making: on cards, and where its routes lead out."""
    out = {
        route.get("dev")
        for route in json.loads(capture(["ip", "-j", "route", "show", "default"]).stdout or "[]")
    }
    cards = json.loads(capture(["ip", "-j", "-d", "address"]).stdout or "[]")
    return {
        about["local"]
        for card in cards
        if card.get("ifname") in out
        or (card.get("link_type") == "ether" and "linkinfo" not in card)
        for about in card.get("addr_info", [])
        if "local" in about
    }
