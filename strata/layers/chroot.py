"""The image's files on the bare host: a change of root, and no namespace or virtual device in between."""

from __future__ import annotations

import os
import shutil

from strata.base import places
from strata.base.errors import UserError
from strata.base.process import as_root, capture
from strata.host import cgroups
from strata.layers.layer import TYPE_CHECKING, Layer

if TYPE_CHECKING:
    from typing import ClassVar

# Arguments: the new root, the image's files, folders for /data and /tmp.
MOUNT = """
root=$1 tree=$2 data=$3 tmp=$4
mount --bind "$tree" "$root"
mount --make-private "$root"
mount -o remount,bind,ro "$root"
mount --bind /proc "$root/proc"
mount --bind /sys "$root/sys"
mount --rbind /dev "$root/dev"
for name in proc sys dev; do
    mount --make-rslave "$root/$name"
done
mount --bind "$data" "$root/data"
mount --bind "$tmp" "$root/tmp"
"""

_PLACED = r"--(interleave|membind|preferred|cpunodebind|physcpubind|localalloc)(=[0-9a-z,+!-]+)?"


class Chroot(Layer):
    """Native: the image's tree, read-only, with the host's /proc, /sys and /dev, and /data on the host's disk.

    numactl: options of that program of the host's, which then runs every command: its CPUs and the nodes of its memory.
    """

    name = "chroot"
    kind = "bare"
    stands_idle = True
    title = "change of root"
    forms = ("tree",)
    options_schema: ClassVar[dict] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "numactl": {
                "type": "string",
                "pattern": rf"^{_PLACED}( {_PLACED})*$",
                "description": "options of numactl, such as --cpunodebind=0 --membind=0",
            }
        },
    }

    @classmethod
    def unavailable(cls) -> str | None:
        if os.geteuid() != 0 and not shutil.which("sudo"):
            return "chroot needs root: run as root or install sudo"
        return None

    @classmethod
    def refusal(cls, options: dict, below: str, machine: dict) -> str | None:
        if "numactl" in options and not shutil.which("numactl"):
            return "numactl is not installed: install the distribution's package of that name"
        return None

    @classmethod
    def told(cls, options: dict) -> dict:
        return {"network": "the host’s", "data": "the host’s disk"}

    @property
    def root(self) -> str:
        return os.path.join(self.context.folder, "root")

    @classmethod
    def sweep(cls) -> list[str]:
        # Each system's group has the name of its folder.
        for name in os.listdir(places.systems()) if os.path.isdir(places.systems()) else []:
            cgroups.remove(name)
        return []

    def up(self) -> None:
        assert self.context.image
        self.context.note({"kind": "group", "id": self.context.id})
        tree = os.path.join(self.context.image["folder"], "tree")
        temporary = os.path.join(self.context.folder, "tmp")
        for folder in (self.root, self.context.data, temporary):
            os.makedirs(folder, exist_ok=True)
        os.chmod(temporary, 0o1777)
        capture(as_root(["sh", "-euc", MOUNT, "strata", self.root, tree, self.context.data, temporary]))
        cgroups.hold(self.context.id)

    def wrap(self, argv: list[str]) -> list[str]:
        placed = ["numactl", *self.options["numactl"].split(), "--"] if "numactl" in self.options else []
        return as_root([*cgroups.join(self.context.id), *placed, "chroot", self.root, *argv])

    def _outside(self, path: str) -> str:
        if not path.startswith("/data/") or ".." in path.split("/"):
            raise UserError(f"{path}: only files below /data are exchanged with a system under test")
        return self.context.data + path.removeprefix("/data")

    def group(self) -> str | None:
        return self.context.id

    def left(self) -> list[str]:
        groups = cgroups.groups_of(self.context.id)
        # A container's own may lie in them; what LXC adds to one is, with version 2 alone, in a group of a hidden name.
        own = [f"{group}/{names}" for group in groups for names in ("*", ".[!.]*")]
        lines = cgroups.command_lines(self.run_below(cgroups.look([*groups, *own])))
        return cgroups.but_holder(lines)

    def put(self, source: str, target: str) -> None:
        # With its rights: a secret stays one.
        shutil.copy(source, self._outside(target))

    def get(self, source: str, target: str) -> None:
        shutil.copyfile(self._outside(source), target)
