"""A client on a second machine, reached by ssh: all that a namespace does, done there."""

import contextlib
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Sequence

from strata.base.errors import UserError
from strata.base.files import SEEN, read_json, write_json
from strata.base.process import as_root, capture
from strata.base.shapes import Fields
from strata.client import rate
from strata.client.client import Client
from strata.host import addresses, observe, sockets
from strata.host.context import Context
from strata.layers.chroot import MOUNT
from strata.layers.layer import Layer

# Where the second machine keeps the image's files, one folder for each recipe, and what a run needs beside them.
CACHE = "/var/cache/strata-client"

# Whether the image's files are there as they were copied, by what the kernel keeps of them, and how that is noted.
LOOK = 'look() { find "$1" -xdev ' + shlex.join(SEEN) + " | LC_ALL=C sort | sha256sum; }\n"
WHOLE = LOOK + '[ -s "$1.stamp" ] && [ "$(look "$1")" = "$(cat "$1.stamp")" ] && echo whole'
SETTLE = LOOK + 'rm -rf --one-file-system -- "$2"; mv -- "$1" "$2"; look "$2" >"$2.stamp"'

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


def _here(argv: list[str]) -> str:
    return capture(as_root(argv)).stdout


class Remote(Client):
    """The second machine ``settled["ssh"]``, whose ssh must ask no question and let in root or one who may sudo."""

    @property
    def _facts_path(self) -> str:
        return os.path.join(self.context.folder, "remote.json")

    @property
    def _facts(self) -> Fields:
        return read_json(self._facts_path) or {}

    @property
    def _folder(self) -> str:
        return f"{CACHE}/systems/{self.context.id}"

    def _ssh(self) -> list[str]:
        own = ["-F", self.settled["ssh_config"]] if self.settled["ssh_config"] else []
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": "10",
            "ServerAliveInterval": "10",
            "ServerAliveCountMax": "6",
            "ControlMaster": "auto",
            "ControlPath": sockets.path(self.context.folder),
            "ControlPersist": "yes",
            "LogLevel": "ERROR",
        }
        settings = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        return ["ssh", *own, *settings, self.settled["ssh"], "--"]

    def _there(self, argv: list[str], root: bool = False) -> list[str]:
        """The command for this host that runs `argv` on the second machine, word for word."""
        return [*self._ssh(), shlex.join([*(self._facts.get("root", []) if root else []), *argv])]

    def _do(self, argv: list[str], check: bool = True, timeout: float = 120) -> str:
        return capture(self._there(argv, root=True), timeout, check).stdout

    def up(self) -> str:
        self.context.make_folder()
        self.context.note(
            {"kind": "second machine", "id": self.context.id, "settled": self.settled, "folder": self.context.folder}
        )
        sockets.make(self.context.folder)
        done = capture(self._there(["sh", "-c", "echo $SSH_CONNECTION; id -u"]), timeout=60, check=False)
        lines = done.stdout.splitlines()
        if done.returncode != 0 or len(lines) != 2 or len(lines[0].split()) != 4:
            words = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
            raise UserError(
                f"config.yaml: client.ssh: no way into {self.settled['ssh']} ({words}); "
                f"`ssh {self.settled['ssh']} true` must work without a question"
            )
        host, _, client, _ = lines[0].split()
        facts: Fields = {"host": host, "client": client, "root": [] if lines[1] == "0" else ["sudo", "-n", "--"]}
        facts["device"] = self._device(["ip", "-o", "route", "get", client])
        write_json(self._facts_path, facts)
        facts["device_there"] = self._device(self._there(["ip", "-o", "route", "get", host]))
        write_json(self._facts_path, facts)
        if self.settled["rate"]:
            rate.limit(_here, facts["device"], self.settled["rate"])
            rate.limit(self._do, facts["device_there"], self.settled["rate"])
        tree = self._bring_tree()
        paths = [f"{self._folder}/{part}" for part in ("root", "data", "tmp")]
        # Programs of the client write to its /tmp as whoever they are; nobody else gets as far.
        self._do(["install", "-d", "-m", "0700", self._folder])
        self._do(["mkdir", "-p", *paths])
        self._do(["chmod", "1777", paths[2]])
        self._do(["sh", "-euc", MOUNT, "strata", paths[0], tree, *paths[1:]])
        return host

    def _device(self, argv: list[str]) -> str:
        words = capture(argv).stdout.split()
        return words[words.index("dev") + 1]

    def _bring_tree(self) -> str:
        """Path of the image's files on the second machine, copied there once for each recipe."""
        image = self.context.image
        assert image
        tree = f"{CACHE}/images/{image['recipe'][:12]}-{image['manifest_sha256'][:12]}"
        if self._do(["sh", "-uc", WHOLE, "strata", tree], check=False).strip() == "whole":
            return tree
        part = f"{tree}.part"
        self._do(["rm", "-rf", "--one-file-system", "--", part])
        self._do(["mkdir", "-p", part])
        pack = as_root(["tar", "-C", os.path.join(image["folder"], "tree"), "--numeric-owner", "-cf", "-", "."])
        unpack = self._there(["tar", "-C", part, "--numeric-owner", "-xpf", "-"], root=True)
        with subprocess.Popen(pack, stdout=subprocess.PIPE) as sender:
            done = subprocess.run(unpack, stdin=sender.stdout, capture_output=True, text=True, timeout=3600)
        if sender.returncode != 0 or done.returncode != 0:
            raise UserError(f"the image's files could not be copied to {self.settled['ssh']}: {done.stderr.strip()}")
        self._do(["sh", "-euc", SETTLE, "strata", part, tree])
        return tree

    def join(self, systems: Sequence[Layer]) -> None:
        # All equal systems are in one network.
        if systems[0].card():
            self.see_no_rate()
            self._see_own_way(systems[0].address())
        bridge, address = systems[0].bridge(), systems[0].address()
        if bridge is None:
            return
        # The machines' network is behind this host: each end learns the way, and nothing is translated.
        facts = self._facts
        subnet = addresses.member(f"{address}/24", 0) + "/24"
        facts |= {"bridge": bridge, "subnet": subnet}
        write_json(self._facts_path, facts)
        for rule in self._rules(facts):
            capture(as_root(["iptables", "--wait", "-I", "FORWARD", *rule]))
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
        words = self._do(["ip", "-o", "route", "get", address], check=False).split()
        if "dev" not in words or "via" in words:
            raise UserError(
                f"config.yaml: vm.profiles: {address} is on a card that a machine has for itself, and no card of "
                f"{self.settled['ssh']} is in its network: give one there an address of that network"
            )
        write_json(self._facts_path, {**self._facts, "device_load": words[words.index("dev") + 1]})

    def _rules(self, facts: Fields) -> list[list[str]]:
        mark = ["-m", "comment", "--comment", self.context.id, "-j", "ACCEPT"]
        return [
            ["-i", facts["device"], "-o", facts["bridge"], "-s", facts["client"], "-d", facts["subnet"], *mark],
            ["-i", facts["bridge"], "-o", facts["device"], "-s", facts["subnet"], "-d", facts["client"], *mark],
        ]

    def down(self) -> None:
        """Remove all that `up` and `join` made, also after an interruption; it may be called twice."""
        facts = self._facts
        if facts:
            self._down(facts)
        with contextlib.suppress(UserError):
            capture([*self._ssh()[:-2], "-O", "exit", self.settled["ssh"]], timeout=20, check=False)
        sockets.remove(self.context.folder)

    def _down(self, facts: Fields) -> None:
        for rule in self._rules(facts) if "bridge" in facts else []:
            while capture(as_root(["iptables", "--wait", "-D", "FORWARD", *rule]), check=False).returncode == 0:
                pass
        if self.settled["rate"]:
            rate.release(_here, facts["device"])
        try:
            self._down_there(facts)
        except UserError as error:
            print(
                f"strata: {self.settled['ssh']} does not answer ({error}); once it does, see there that nothing is "
                f"mounted below {self._folder}, and remove it",
                file=sys.stderr,
            )

    def _down_there(self, facts: Fields) -> None:
        if "subnet" in facts:
            self._do(["ip", "route", "del", facts["subnet"], "via", facts["host"]], check=False)
        if self.settled["rate"] and "device_there" in facts:
            rate.release(self._do, facts["device_there"])
        self._do(["sh", "-uc", UNMOUNT, "strata", self._folder])

    def command_plain(self, argv: list[str]) -> list[str]:
        return self._there(["chroot", f"{self._folder}/root", *argv], root=True)

    def put(self, source: str, target: str) -> None:
        path = f"{self._folder}{target}"
        mode = f"{stat.S_IMODE(os.stat(source).st_mode):04o}"
        write = self._there(["sh", "-euc", 'umask 077; cat >"$1"; chmod "$2" "$1"', "strata", path, mode], root=True)
        with open(source, "rb") as file:
            done = subprocess.run(write, stdin=file, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise UserError(f"{target} could not be written at {self.settled['ssh']}: {done.stderr.strip()}")

    def link(self) -> Fields:
        device = self._facts.get("device_load") or self._facts["device_there"]
        shown = self._do(["ip", "-o", "link", "show", device], check=False)
        mtu = int(shown.split(" mtu ", 1)[1].split()[0]) if " mtu " in shown else observe.NOT_AVAILABLE
        return {"kind": "network of a second machine", "mtu": mtu, "rate": self.settled["rate"] or "not limited"}


def remove(settled: Fields, id: str, folder: str) -> None:
    """Remove what a client of that id made, here and there."""
    Remote(settled, Context(id, folder, None)).down()
