"""A client on a second machine, reached by ssh: all that a namespace does, done there."""

import os
import shlex
from collections.abc import Sequence

from strata.base.errors import UserError
from strata.base.process import as_root, capture
from strata.base.shapes import Fields
from strata.client import ends
from strata.client.link import Link, bucket, no_bucket
from strata.host import addresses, firewall, sockets
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
    """The second machine ``options["ssh"]``, whose ssh must ask no question and let in root or one who may sudo."""

    def _undo(self, *commands: list[str]) -> None:
        """Note the commands for this host that remove what is made next.

        They do no harm twice, and no further one is asked: a machine that answers no more keeps what is there.
        """
        self.context.note({"kind": "second machine", "id": self.context.id, "find": ["true"], "remove": list(commands)})

    def _ssh(self, *words: str) -> list[str]:
        # Whoever removes what is here may stand in another folder.
        own = ["-F", os.path.abspath(self.options["ssh_config"])] if self.options["ssh_config"] else []
        settings = [f"{key}={value}" for key, value in sockets.settings(self.context.folder).items()]
        return ["ssh", *own, *(word for one in settings for word in ("-o", one)), *words, self.options["ssh"]]

    @property
    def _folder(self) -> str:
        return f"{CACHE}/systems/{self.context.id}"

    def _there(self, argv: list[str]) -> list[str]:
        """The command for this host that runs `argv` on the second machine, word for word."""
        return [*self._ssh(), "--", shlex.join([*self._root, *argv])]

    def _do(self, argv: list[str], check: bool = True) -> str:
        return capture(self._there(argv), check=check).stdout

    def up(self) -> None:
        self._undo(self._ssh("-O", "exit"))
        there = ends.there(self._ssh())
        self._root = [] if there["root"] == "yes" else ["sudo", "-n", "--"]
        # This host and the client, and the devices that lead to the other; the client's is another where a card is.
        self._host, self._client = there["from"], there["address"]
        self._device, self._device_there = ends.here(self._client)["device"], there["device"]
        if rate := self.options["rate"]:
            self._undo(as_root(no_bucket(self._device)), self._there(no_bucket(self._device_there)))
            capture(as_root(bucket(self._device, rate)))
            self._do(bucket(self._device_there, rate))
        tree = self._bring_tree()
        self._undo(self._there(["sh", "-uc", UNMOUNT, "strata", self._folder]))
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
        capture(["bash", "-o", "pipefail", "-c", f"{shlex.join(pack)} | {shlex.join(unpack)}"], timeout=3600)
        # It is there as a whole or not at all.
        self._do(["mv", "-T", "--", part, tree])
        return tree

    def address(self) -> str:
        return self._host

    def join_bridge(self, machines: Sequence[Layer], bridge: str, subnet: str) -> None:
        # The machines' network is behind this host: each end learns the way, and nothing is translated.
        firewall.let_through(
            self.context,
            ["-i", self._device, "-o", bridge, "-s", self._client, "-d", subnet],
            ["-i", bridge, "-o", self._device, "-s", subnet, "-d", self._client],
        )
        self._undo(self._there(["ip", "route", "del", subnet, "via", self._host]))
        self._do(["ip", "route", "replace", subnet, "via", self._host, "dev", self._device_there])
        gateway = addresses.member(subnet, 1)
        for machine in machines:
            capture(machine.command_plain(["ip", "route", "replace", f"{self._client}/32", "via", gateway]))

    def join_card(self, address: str, device: str, own: str | None) -> None:
        shown = self._do(["ip", "-o", "route", "get", address], check=False)
        if " dev " not in shown or " via " in shown:
            raise UserError(
                f"config.yaml: vm.profiles: {address} is on a card that a machine has for itself, and no card of "
                f"{self.options['ssh']} is in its network: give one there an address of that network"
            )
        self._device_there = shown.split(" dev ", 1)[1].split()[0]

    def wrap(self, argv: list[str], fed: bool = False) -> list[str]:
        return self._there(["chroot", f"{self._folder}/root", *argv])

    def facts(self) -> Fields:
        shown = self._do(["ip", "-o", "link", "show", self._device_there], check=False)
        return self.seen("network of a second machine", shown)
