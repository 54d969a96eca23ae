"""A container by LXC: the native tree under an overlay, and a first program that does nothing."""

import os

from strata.environments import chroot
from strata.environments.common import layer
from strata.host import cgroups
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.files import write_text
from strata.util.process import as_root, capture

MOUNT = """
tree=$1 written=$2 root=$3
mkdir -p "$written/upper" "$written/work" "$root"
mount -t overlay -o "lowerdir=$tree,upperdir=$written/upper,workdir=$written/work" strata "$root"
mount --make-private "$root"
"""


class Kind(layer.Kind):
    """Containers with the host's network, and with /data on the host's disk."""

    title = "LXC container"
    forms = ("tree",)
    programs = ("lxc-start",)
    installed_by = "install the distribution's package lxc"
    needs_root = True
    changes = layer.OF_CONTAINERS


class Layer(chroot.Layer):
    """Commands are run by lxc-attach: in the container's namespaces and groups, with its capabilities and filter."""

    def _command(self, name: str, *words: str) -> list[str]:
        return as_root(
            [name, f"--name={self.context.id}", f"--lxcpath={self.context.folder}", *words]
        )

    def up(self) -> None:
        assert self.context.image
        # What is noted last is removed first: what holds the container must not tidy up beside us.
        monitor = f"{self.context.id}-monitor"
        self.context.note({"kind": "group", "id": self.context.id})
        self.context.note({"kind": "group", "id": monitor})
        written, own = (
            os.path.join(self.context.folder, name) for name in ("written", self.context.id)
        )
        tree = os.path.join(self.context.image["folder"], "tree")
        capture(as_root(["sh", "-euc", MOUNT, "strata", tree, written, self.root]))
        data = self.context.data.replace(" ", "\\040")
        settings = [
            # What the distribution gives to every container: devices, mounts, capabilities, filter of system calls.
            "lxc.include = /usr/share/lxc/config/common.conf",
            "lxc.uts.name = strata",
            f"lxc.rootfs.path = dir:{self.root}",
            f"lxc.mount.entry = {data} data none bind 0 0",
            "lxc.net.0.type = none",
            f"lxc.cgroup.dir.container = {cgroups.path_of(self.context.id)}",
            f"lxc.cgroup.dir.monitor = {cgroups.path_of(monitor)}",
            f"lxc.init.cmd = {' '.join(cgroups.HOLDER)}",
        ]
        if self.context.mask:
            kind = "cgroup2" if cgroups.unified() else "cgroup"
            settings.append(f"lxc.{kind}.cpuset.cpus = {self.context.mask}")
        os.mkdir(own)
        write_text(os.path.join(own, "config"), "\n".join([*settings, ""]))
        log = os.path.join(own, "log")
        start = self._command("lxc-start", "--daemon", f"--logfile={log}", "--logpriority=ERROR")
        if capture(start, check=False).returncode != 0:
            said = capture(as_root(["cat", "--", log]), check=False).stdout or "it said nothing"
            raise UserError(f"LXC did not start a container:\n{said}")

    def wrap(self, argv: list[str], fed: bool = False) -> list[str]:
        return self._command("lxc-attach", "--clear-env", "--", *argv)

    def facts(self) -> Fields:
        version = capture(["lxc-start", "--version"]).stdout.splitlines()[0].strip()
        return {"container": {"program": "lxc-start", "version": version}}

    def processes(self) -> list[int]:
        return sorted(cgroups.members(self.context.id))
