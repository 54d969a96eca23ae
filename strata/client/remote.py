"""A client on a second machine, reached by ssh: all that a namespace does, done there."""

import contextlib
import os
import shlex
import sys
from collections.abc import Sequence

from strata.base.errors import UserError
from strata.base.files import read_json, write_json
from strata.base.process import as_root, capture
from strata.base.shapes import Fields
from strata.client import ends
from strata.client.link import Link, limit, no_bucket
from strata.host import addresses, firewall, sockets
from strata.host.context import Context
from strata.layers.chroot import MOUNT
from strata.layers.common.layer import Layer

# Where the second machine keeps the image's files, one folder for each recipe, and what a run needs beside them.
CACHE = "/var/cache/strata-client"

# End what runs in the root, then take it apart.
UNMOUNT = """
root=$1/root
for process in /proc/[0-9]*; do
    if [ "$(readlink "$process/root")" = "$root" ]; then
        kill -KILL "${process#/proc/}" || true
    fi
done
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    grep -q " $root" /proc/mounts || break
    umount -R "$root" || sleep 0.2
done
if ! grep -q " $1/" /proc/mounts; then
    rm -rf --one-file-system -- "$1"
fi
"""


class Remote(Link):
    """The second machine ``options["ssh"]``, whose ssh must ask no question and let in root or one who may sudo.

    What is known of it is kept in the system's folder for whoever removes it.
    """

    def __init__(self, below: Layer | None, options: Fields, context: Context) -> None:
        super().__init__(below, options, context)
        self._facts_path = os.path.join(context.folder, "remote.json")
        self._facts: Fields = read_json(self._facts_path) or {}
        self._folder = f"{CACHE}/systems/{context.id}"

    def _note(self, **facts: object) -> None:
        self._facts |= facts
        write_json(self._facts_path, self._facts)

    def _ssh(self, *words: str) -> list[str]:
        own = ["-F", self.options["ssh_config"]] if self.options["ssh_config"] else []
        settings = [f"{key}={value}" for key, value in sockets.settings(self.context.folder).items()]
        return ["ssh", *own, *(word for one in settings for word in ("-o", one)), *words, self.options["ssh"]]

    def _there(self, argv: list[str]) -> list[str]:
        """The command for this host that runs `argv` on the second machine, word for word."""
        return [*self._ssh(), "--", shlex.join([*self._facts["root"], *argv])]

    def _do(self, argv: list[str], check: bool = True) -> str:
        return capture(self._there(argv), check=check).stdout

    def up(self) -> None:
        self.context.note(
            {"kind": "second machine", "id": self.context.id, "settled": self.options, "folder": self.context.folder}
        )
        there = ends.there(self._ssh())
        root = [] if there["root"] == "yes" else ["sudo", "-n", "--"]
        self._note(host=there["from"], client=there["address"], root=root)
        self._note(device=ends.here(there["address"])["device"], device_there=there["device"])
        if self.options["rate"]:
            limit(lambda argv: capture(as_root(argv)), self._facts["device"], self.options["rate"])
            limit(self._do, self._facts["device_there"], self.options["rate"])
        tree = self._bring_tree()
        paths = [f"{self._folder}/{part}" for part in ("root", "data", "tmp")]
        # Programs of the client write to its /tmp as whoever they are; nobody else gets as far.
        self._do(["install", "-d", "-m", "0700", self._folder])
        self._do(["mkdir", "-p", *paths])
        self._do(["chmod", "1777", paths[2]])
        self._do(["sh", "-euc", MOUNT, "strata", paths[0], tree, *paths[1:]])

    def _bring_tree(self) -> str:
        """Path of the image's files on the second machine, copied there once for each recipe."""
        image = self.context.image
        assert image
        tree = f"{CACHE}/images/{image['recipe'][:12]}-{image['manifest_sha256'][:12]}"
        if capture(self._there(["test", "-d", tree]), check=False).returncode == 0:
            return tree
        part = f"{tree}.part"
        self._do(["rm", "-rf", "--one-file-system", "--", part])
        self._do(["mkdir", "-p", part])
        pack = as_root(["tar", "-C", os.path.join(image["folder"], "tree"), "--numeric-owner", "-cf", "-", "."])
        unpack = self._there(["tar", "-C", part, "--numeric-owner", "-xpf", "-"])
        try:
            capture(["bash", "-o", "pipefail", "-c", f"{shlex.join(pack)} | {shlex.join(unpack)}"], timeout=3600)
        except UserError as error:
            raise UserError(f"the image's files could not be copied to {self.options['ssh']}: {error}") from None
        # It is there as a whole or not at all.
        self._do(["mv", "-T", "--", part, tree])
        return tree

    def address(self) -> str:
        return str(self._facts["host"])

    def join(self, systems: Sequence[Layer]) -> None:
        # All equal systems are in one network.
        machine = systems[0].machine()
        if machine is None:
            return
        if machine.card():
            self.see_no_rate()
            self._see_own_way(machine.address())
        elif bridge := machine.bridge():
            self._join_bridge(systems, bridge, addresses.member(f"{machine.address()}/24", 0) + "/24")

    def _join_bridge(self, systems: Sequence[Layer], bridge: str, subnet: str) -> None:
        """The machines' network is behind this host: each end learns the way, and nothing is translated."""
        self._note(subnet=subnet)
        facts = self._facts
        firewall.let_through(
            self.context,
            ["-i", facts["device"], "-o", bridge, "-s", facts["client"], "-d", subnet],
            ["-i", bridge, "-o", facts["device"], "-s", subnet, "-d", facts["client"]],
        )
        self._do(["ip", "route", "replace", subnet, "via", facts["host"], "dev", facts["device_there"]])
        gateway = addresses.member(subnet, 1)
        for system in systems:
            machine = system.machine()
            assert machine
            capture(machine.command_plain(["ip", "route", "replace", f"{facts['client']}/32", "via", gateway]))
        with open("/proc/sys/net/ipv4/ip_forward", encoding="utf-8") as file:
            if file.read().strip() != "1":
                raise UserError("this host does not forward: `sysctl net.ipv4.ip_forward=1` lets the client reach it")

    def _see_own_way(self, address: str) -> None:
        """Note which card of the second machine is in the network of a machine's own.  Raises UserError."""
        shown = self._do(["ip", "-o", "route", "get", address], check=False)
        if " dev " not in shown or " via " in shown:
            raise UserError(
                f"config.yaml: vm.profiles: {address} is on a card that a machine has for itself, and no card of "
                f"{self.options['ssh']} is in its network: give one there an address of that network"
            )
        self._note(device_load=shown.split(" dev ", 1)[1].split()[0])

    def wrap(self, argv: list[str], fed: bool = False) -> list[str]:
        return self._there(["chroot", f"{self._folder}/root", *argv])

    def facts(self) -> Fields:
        device = self._facts.get("device_load") or self._facts["device_there"]
        return self.seen("network of a second machine", self._do(["ip", "-o", "link", "show", device], check=False))

    def down(self) -> None:
        """Remove all that `up` and `join` made, also after an interruption; it may be called twice."""
        facts = self._facts
        if self.options["rate"] and "device" in facts:
            capture(as_root(no_bucket(facts["device"])), check=False)
        try:
            if "subnet" in facts:
                self._do(["ip", "route", "del", facts["subnet"], "via", facts["host"]], check=False)
            if self.options["rate"] and "device_there" in facts:
                self._do(no_bucket(facts["device_there"]), check=False)
            if facts:
                self._do(["sh", "-uc", UNMOUNT, "strata", self._folder])
        except UserError as error:
            print(
                f"strata: {self.options['ssh']} does not answer ({error}); once it does, see there that nothing is "
                f"mounted below {self._folder}, and remove it",
                file=sys.stderr,
            )
        with contextlib.suppress(UserError):
            capture(self._ssh("-O", "exit"), timeout=20, check=False)


def remove(settled: Fields, id: str, folder: str) -> None:
    """Remove what a client of that id made, here and there."""
    Remote(None, settled, Context(id, folder, None)).down()
