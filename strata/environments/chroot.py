"""The image's files on the bare host: a change of root, and no namespace or virtual device in between."""

import os
from types import MappingProxyType

from strata.environments.common import layer
from strata.host import cgroups
from strata.host.daemons import where
from strata.util.data_types import Fields, HostFacts
from strata.util.process import as_root, capture

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


class Kind(layer.Kind):
    """Native.  numactl: options of that program of the host's, which then runs every command."""

    kind = "bare"
    title = "change of root"
    forms = ("tree",)
    stands_idle = True
    needs_root = True
    changed_by = MappingProxyType({"numactl": ("processors", "memory policy")})
    options_schema = layer.takes(
        numactl={
            "type": "string",
            "pattern": rf"^{_PLACED}( {_PLACED})*$",
            "description": "options of numactl, such as --cpunodebind=0 --membind=0",
        }
    )

    def refusal(self, settled: Fields, below: str, machine: HostFacts) -> str | None:
        if "numactl" in settled and not where("numactl"):
            return "numactl is not installed: install the distribution's package of that name"
        return None


class Layer(layer.Layer):
    """The image's tree, read-only, with the host's /proc, /sys and /dev, and /data on the host's disk."""

    @property
    def root(self) -> str:
        """The folder that is the root of its commands."""
        return os.path.join(self.context.folder, "root")

    def up(self) -> None:
        assert self.context.image
        self.context.note({"kind": "group", "id": self.context.id})
        tree = os.path.join(self.context.image["folder"], "tree")
        temporary = os.path.join(self.context.folder, "tmp")
        for folder in (self.root, self.context.data, temporary):
            os.makedirs(folder, exist_ok=True)
        os.chmod(temporary, 0o1777)
        capture(
            as_root(["sh", "-euc", MOUNT, "strata", self.root, tree, self.context.data, temporary])
        )
        cgroups.hold(self.context.id, self.context.mask)

    def wrap(self, argv: list[str], fed: bool = False) -> list[str]:
        placed = (
            ["numactl", *self.options["numactl"].split(), "--"] if "numactl" in self.options else []
        )
        return as_root([*cgroups.join(self.context.id), *placed, "chroot", self.root, *argv])

    def group(self) -> str | None:
        return self.context.id
