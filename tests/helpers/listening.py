"""Reads, while cells run, which sockets wait for somebody: on the host and in containers."""

import contextlib
import glob
import os
import subprocess
import threading
from collections.abc import Sequence

from strata.client import namespace
from strata.testbed import journal, lifecycle
from strata.util import paths

TABLES = ("tcp", "tcp6", "udp", "udp6")


def address_of(word: str) -> str:
    """An address as the kernel's tables write it: IPv4 as such, also where it is mapped into IPv6."""
    octets = [str(int(word[-8:][at : at + 2], 16)) for at in (6, 4, 2, 0)]
    whole = len(word) > 8 and not word.startswith("0000000000000000FFFF0000")
    return "::" if word == "0" * 32 else word if whole else ".".join(octets)


def waiting(text: str, table: str) -> set[tuple[str, int]]:
    """(address, port) of sockets that listen, or take datagrams of anybody."""
    found = set()
    for line in text.splitlines():
        words = line.split()
        # Of TCP those that listen (0A), of UDP those that are bound and not connected (07).
        if len(words) > 9 and words[3] == ("0A" if table.startswith("tcp") else "07"):
            address, _, port = words[1].partition(":")
            found.add((address_of(address), int(port, 16)))
    return found


def read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def addresses(before: Sequence[str] = (), *more: str) -> set[str]:
    """Addresses of this machine, or where a command stands before that which shows them, without the loopback's."""
    argv = [*before, "ip", "-o", "-4", "address", *more]
    shown = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    lines = [line.split() for line in shown.splitlines() if " inet " in line]
    return {words[3].partition("/")[0] for words in lines if words[1] != "lo"}


def of_link() -> set[str]:
    """The host's end of the client's link, where that is up."""
    return addresses((), "show", "dev", namespace.device())


class Watcher(threading.Thread):
    """Begins with `with`, ends with it.

    seen: {environment: {(place, address, port)}}, the place being host, client or inside (a container).
    allowed: {(environment, place): addresses} at which somebody may wait there.  passwords: all that lay about.
    """

    def __init__(self, ports: set[int]) -> None:
        super().__init__(daemon=True)
        self.ports, self.over = ports, threading.Event()
        self.seen: dict[str, set] = {}
        self.allowed: dict[tuple[str, str], set[str]] = {}
        self.passwords: set[str] = set()
        self.trouble: list[BaseException] = []
        self.before = self._places("/proc/self")

    def __enter__(self) -> "Watcher":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()
        if self.trouble:
            raise self.trouble[0]

    def misplaced(self, environment: str) -> list[tuple[str, str, int]]:
        """Whoever waited in an environment at an address through which no client comes."""
        return sorted(
            one for one in self.seen[environment] if one[1] not in self.allowed[environment, one[0]]
        )

    def run(self) -> None:
        while not self.over.wait(0.05):
            try:
                for system in journal.all_up():
                    if system["environment"] != lifecycle.CLIENT:
                        self.look(system)
            except (OSError, KeyError, ValueError):
                continue
            except BaseException as error:
                self.trouble.append(error)
                return

    def _places(self, process: str, tables: tuple[str, ...] = TABLES) -> set[tuple[str, int]]:
        return set().union(*(waiting(read(f"{process}/net/{table}"), table) for table in tables))

    def note(
        self, system: dict, place: str, found: set[tuple[str, int]], addresses: set[str]
    ) -> None:
        name = system["environment"]
        self.seen.setdefault(name, set()).update((place, *one) for one in found)
        self.allowed.setdefault((name, place), set()).update(addresses)

    def look(self, system: dict) -> None:
        host = {
            one for one in self._places("/proc/self") if one[1] in self.ports or self._is_ours(one)
        }
        self.note(system, "host", host, of_link())
        for path in glob.glob(f"{paths.systems()}/*/data/password"):
            self.passwords.add(read(path).strip())
        outside = os.stat("/proc/self/ns/net").st_ino
        with contextlib.suppress(OSError):
            client = os.stat(f"/run/netns/{paths.prefix()}").st_ino
            known = {outside: "host"}
            for entry in os.listdir("/proc"):
                if not entry.isdecimal():
                    continue
                with contextlib.suppress(OSError):
                    inode = os.stat(f"/proc/{entry}/ns/net").st_ino
                    groups = read(f"/proc/{entry}/cgroup")
                    if inode in known or ("docker" not in groups and "strata" not in groups):
                        continue
                    known[inode] = "client" if inode == client else "inside"
                    if inode == client:
                        # It serves nobody; the socket from which it sends datagrams is bound as the kernel likes.
                        self.note(
                            system, "client", self._places(f"/proc/{entry}", TABLES[:2]), set()
                        )
                    else:
                        self.note(
                            system,
                            "inside",
                            self._places(f"/proc/{entry}"),
                            addresses(["nsenter", "-t", entry, "-n"]),
                        )

    def _is_ours(self, one: tuple[str, int]) -> bool:
        """Whether a socket that was not there before waits at the client's link."""
        return one not in self.before and one[0] in of_link()
