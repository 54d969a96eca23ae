"""A client on a second machine, reached by ssh: all that a namespace does, done there."""

import os
import re
import shlex
from collections.abc import Sequence

from strata.client.link import HANDLE, Link
from strata.environments.chroot import MOUNT
from strata.environments.common.layer import Layer
from strata.host import addresses, firewall, sockets
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.process import as_root, capture

# Where the second machine keeps the image's files, one folder for each recipe, and what a run needs beside them.
CACHE = "/var/cache/strata-client"

# The ends of the connection by ssh, the client's device for it and that one's MTU, whose rights ssh gives, what lacks.
LOOK = r"""
exec 2>/dev/null
PATH=$PATH:/usr/sbin:/sbin
set -- $SSH_CONNECTION
device=$(ip -o route get "$1" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
mtu=$(ip -o link show dev "$device" | sed -n 's/.* mtu \([0-9]*\).*/\1/p')
printf '%s\n' "from $1" "address $3" "device $device" "mtu ${mtu:-unknown}"
if [ "$(id -u)" = 0 ]; then echo "root yes"; elif sudo -n true; then echo "root sudo"; fi
lacks=$(for tool in tar mount chroot ip tc; do command -v "$tool" >/dev/null || echo "$tool"; done)
[ -z "$lacks" ] || echo "lacks" $lacks
"""
# A line of it; seconds for it.
SAID, PATIENCE = r"(?m)^(\w+) (\S.*)$", 30.0

# End what runs in the root, then take it apart.
UNMOUNT = """
root=$1/root
for process in /proc/[0-9]*; do
    [ "$(readlink "$process/root")" != "$root" ] || kill -KILL "${process#/proc/}"
done
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    grep -q " $root" /proc/mounts || break
    # What was bound with all in it, such as /dev, may share its mounts with the place that it is of: those stay.
    mount --make-rprivate "$root"
    umount -R "$root" || sleep 0.2
done
grep -q " $1/" /proc/mounts || rm -rf --one-file-system -- "$1"
"""


def look(ssh: list[str]) -> tuple[Fields, Fields]:
    """What this host and the machine at the end of an ssh command say of themselves, as of LOOK.

    Raises UserError where that one cannot be the client.
    """
    name, key = ssh[-1], "config.yaml: client.ssh"
    done = capture([*ssh, "--", shlex.join(["sh", "-c", LOOK])], PATIENCE, check=False)
    there = dict(re.findall(SAID, done.stdout))
    if done.returncode != 0 or "address" not in there:
        words = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise UserError(
            f"{key}: cannot log in to {name} ({words}); `ssh {name} true` must work without a prompt"
        )
    if "root" not in there:
        raise UserError(
            f"{key}: the user at {name} is not root: log in as root, or allow `sudo -n` there"
        )
    if "lacks" in there:
        raise UserError(
            f"{key}: {name} has no {', '.join(there['lacks'].split())}: install them there"
        )
    # To this host that one is the other end.
    here = capture(["env", f"SSH_CONNECTION={there['address']}", "sh", "-c", LOOK])
    return dict(re.findall(SAID, here.stdout)), there


class Remote(Link):
    """The second machine ``options["ssh"]``, whose ssh must ask no question and let in root or one who may sudo."""

    kind = "network of a second machine"

    def _undo(self, *commands: list[str]) -> None:
        """Note the commands for this host that remove what is made next.

        They do no harm twice, and no further one is asked: a machine that answers no more keeps what is there.
        """
        self.context.note(
            {
                "kind": "second machine",
                "id": self.context.id,
                "find": ["true"],
                "remove": list(commands),
            }
        )

    def _ssh(self, *words: str) -> list[str]:
        # Whoever removes what is here may stand in another folder.
        own = (
            ["-F", os.path.abspath(self.options["ssh_config"])]
            if self.options["ssh_config"]
            else []
        )
        settings = [
            f"-o{key}={value}" for key, value in sockets.settings(self.context.folder).items()
        ]
        return ["ssh", *own, *settings, *words, self.options["ssh"]]

    def there(self, argv: list[str]) -> list[str]:
        return [*self._ssh(), "--", shlex.join([*self._root, *argv])]

    def _do(self, argv: list[str], check: bool = True) -> str:
        return capture(self.there(argv), check=check).stdout

    def up(self) -> None:
        self._undo(self._ssh("-O", "exit"))
        here, there = look(self._ssh())
        self._root = [] if there["root"] == "yes" else ["sudo", "-n", "--"]
        self.host, self._client = there["from"], there["address"]
        self.near, self.far = here["device"], there["device"]
        if self.options["rate"]:
            # It fails where the queueing is not ours.
            near, far = (
                ["tc", "qdisc", "del", "dev", one, "root", "handle", HANDLE]
                for one in (self.near, self.far)
            )
            self._undo(as_root(near), self.there(far))
            self.limit()
        tree = self._bring_tree()
        self._folder = f"{CACHE}/systems/{self.context.id}"
        self._undo(self.there(["sh", "-uc", UNMOUNT, "strata", self._folder]))
        root, data, tmp = (f"{self._folder}/{part}" for part in ("root", "data", "tmp"))
        # Programs of the client write to its /tmp as whoever they are; nobody else gets as far.
        self._do(["mkdir", "-p", "-m", "0700", self._folder])
        self._do(["mkdir", root, data])
        self._do(["mkdir", "-m", "1777", tmp])
        self._do(["sh", "-euc", MOUNT, "strata", root, tree, data, tmp])

    def _bring_tree(self) -> str:
        """Path of the image's files on the second machine, copied there once for each recipe."""
        image = self.context.image
        assert image
        tree = f"{CACHE}/images/{image['recipe'][:12]}-{image['manifest_sha256'][:12]}"
        if capture(self.there(["test", "-d", tree]), check=False).returncode == 0:
            return tree
        # Another home, or another machine, may bring the same.
        part = f"{tree}.{self.context.id}.part"
        self._undo(self.there(["rm", "-rf", "--one-file-system", "--", part]))
        self._do(["mkdir", "-p", part])
        pack = as_root(
            ["tar", "-C", os.path.join(image["folder"], "tree"), "--numeric-owner", "-cf", "-", "."]
        )
        unpack = self.there(["tar", "-C", part, "--numeric-owner", "-xpf", "-"])
        capture(
            ["bash", "-o", "pipefail", "-c", f"{shlex.join(pack)} | {shlex.join(unpack)}"],
            timeout=3600,
        )
        # It is there as a whole or not at all.
        self._do(["mv", "-T", "--", part, tree], check=False)
        self._do(["test", "-d", tree])
        return tree

    def join_bridge(self, machines: Sequence[Layer], bridge: str, subnet: str) -> None:
        # The machines' network is behind this host: each end learns the way, and nothing is translated.
        firewall.let_through(
            self.context,
            ["-i", self.near, "-o", bridge, "-s", self._client, "-d", subnet],
            ["-i", bridge, "-o", self.near, "-s", subnet, "-d", self._client],
        )
        self._undo(self.there(["ip", "route", "del", subnet, "via", self.host]))
        self._do(["ip", "route", "replace", subnet, "via", self.host, "dev", self.far])
        gateway = addresses.address_in(subnet, 1)
        for machine in machines:
            capture(
                machine.command_plain(
                    ["ip", "route", "replace", f"{self._client}/32", "via", gateway]
                )
            )

    def join_card(self, address: str, card: str, own: str | None) -> None:
        shown = self._do(["ip", "-o", "route", "get", address], check=False)
        if " dev " not in shown or " via " in shown:
            raise UserError(
                f"config.yaml: vm.profiles: {address} is on a card that a machine has for itself, and no card of "
                f"{self.options['ssh']} is in its network: give one there an address of that network"
            )
        self.far = shown.split(" dev ", 1)[1].split()[0]

    def wrap(self, argv: list[str], fed: bool = False) -> list[str]:
        return self.there(["chroot", f"{self._folder}/root", *argv])
