"""Watches, while cells run, on the host and in containers, which sockets wait for clients."""

import contextlib
import glob
import os
import subprocess
import threading
from collections.abc import Sequence

from strata.client import namespace
from strata.testbed import journal, lifecycle
from strata.util import paths

TCP, UDP = ("tcp", "tcp6"), ("udp", "udp6")
# The address and port of a socket.
Socket = tuple[str, int]


def decode_address(word: str) -> str:
    """Return an address of the kernel's tables; one of IPv4 as such, even if mapped into IPv6."""
    if word == "0" * 32:
        return "::"
    if len(word) > 8 and not word.startswith("0000000000000000FFFF0000"):
        return word
    return ".".join(str(int(word[-8:][at : at + 2], 16)) for at in (6, 4, 2, 0))


def read_sockets(process: str, tables: Sequence[str] = TCP + UDP) -> set[Socket]:
    """Return the sockets that listen, or take datagrams of anybody, where a process sees them."""
    sockets = set()
    for table in tables:
        # TCP: listening (0A); UDP: bound and not connected (07).
        state = "0A" if table in TCP else "07"
        for line in read_file(f"{process}/net/{table}").splitlines():
            words = line.split()
            if len(words) > 9 and words[3] == state:
                address, _, port = words[1].partition(":")
                sockets.add((decode_address(address), int(port, 16)))
    return sockets


def read_file(path: str) -> str:
    """Return the content of a file; "" if it is gone."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def list_addresses(enter: Sequence[str] = (), *options: str) -> set[str]:
    """Return the IPv4 addresses of the host, or where `enter` leads, without the loopback's."""
    argv = [*enter, "ip", "-o", "-4", "address", *options]
    output = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    lines = [line.split() for line in output.splitlines() if " inet " in line]
    return {words[3].partition("/")[0] for words in lines if words[1] != "lo"}


def link_addresses() -> set[str]:
    """Return the address of the host's end of the client's link, if that is up."""
    return list_addresses((), "show", "dev", namespace.get_interface_name())


class Watcher(threading.Thread):
    """A context that watches sockets at `ports` and at the client's link.

    seen: {environment: {(place, address, port)}}, with the place host, client, or inside (a
    container).  allowed: {(environment, place): addresses at which sockets may wait}.
    passwords: of all cells.
    """

    def __init__(self, ports: set[int]) -> None:
        super().__init__(daemon=True)
        self.ports, self.over = ports, threading.Event()
        self.seen: dict[str, set] = {}
        self.allowed: dict[tuple[str, str], set[str]] = {}
        self.passwords: set[str] = set()
        self.errors: list[BaseException] = []
        self.before = read_sockets("/proc/self")

    def __enter__(self) -> "Watcher":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()
        if self.errors:
            raise self.errors[0]

    def find_misplaced(self, environment: str) -> list[tuple[str, str, int]]:
        """Return the sockets that waited at an address through which no client comes."""
        return sorted(
            (place, address, port)
            for place, address, port in self.seen[environment]
            if address not in self.allowed[environment, place]
        )

    def run(self) -> None:
        """Observe all systems until the context ends."""
        while not self.over.wait(0.05):
            try:
                for system in journal.read_entries():
                    if system["environment"] != lifecycle.CLIENT:
                        self._observe(system["environment"])
            except (OSError, KeyError, ValueError):
                continue
            except BaseException as error:
                self.errors.append(error)
                return

    def _add(self, name: str, place: str, sockets: set[Socket], addresses: set[str]) -> None:
        self.seen.setdefault(name, set()).update((place, *socket) for socket in sockets)
        self.allowed.setdefault((name, place), set()).update(addresses)

    def _observe(self, name: str) -> None:
        """Note the sockets of all network namespaces of a system, and its password."""
        link = link_addresses()
        on_host = set()
        for address, port in read_sockets("/proc/self"):
            is_new = (address, port) not in self.before
            if port in self.ports or (is_new and address in link):
                on_host.add((address, port))
        self._add(name, "host", on_host, link)
        for path in glob.glob(f"{paths.get_systems_folder()}/*/data/password"):
            self.passwords.add(read_file(path).strip())
        known = {os.stat("/proc/self/ns/net").st_ino}
        client = os.stat(f"/run/netns/{paths.get_name_prefix()}").st_ino
        for process in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                self._observe_namespace(name, process, known, client)

    def _observe_namespace(self, name: str, process: str, known: set[int], client: int) -> None:
        namespace = os.stat(f"/proc/{process}/ns/net").st_ino
        groups = read_file(f"/proc/{process}/cgroup")
        if namespace in known or ("docker" not in groups and "strata" not in groups):
            return
        known.add(namespace)
        if namespace == client:
            # The client serves nobody; the kernel binds the sockets from which it sends datagrams.
            self._add(name, "client", read_sockets(f"/proc/{process}", TCP), set())
        else:
            addresses = list_addresses(["nsenter", "-t", process, "-n"])
            self._add(name, "inside", read_sockets(f"/proc/{process}"), addresses)
