"""What containers without an image of their own share: files in layers over the native tree, and an idle program."""

from __future__ import annotations

import os
import shutil

from strata.base.process import as_root, capture
from strata.host import cgroups
from strata.layers.chroot import Chroot
from strata.layers.layer import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import ClassVar

# The first program of such a container; commands are run beside it.
IDLE = ["/usr/bin/sleep", "infinity"]
MOUNT = """
tree=$1 written=$2 root=$3
mkdir -p "$written/upper" "$written/work" "$root"
mount -t overlay -o "lowerdir=$tree,upperdir=$written/upper,workdir=$written/work" strata "$root"
mount --make-private "$root"
"""


class Layered(Chroot):
    """A container with the host's network, and with /data on the host's disk."""

    kind = "container"
    forms = ("tree",)
    options_schema: ClassVar[dict] = {"type": "object", "additionalProperties": False}
    # What makes it, and the distribution's package that brings that.
    program: ClassVar[str]
    package: ClassVar[str]

    @classmethod
    def unavailable(cls) -> str | None:
        if not shutil.which(cls.program):
            return f"{cls.program} is not installed: install the distribution's package {cls.package}"
        if os.geteuid() != 0 and not shutil.which("sudo"):
            return f"{cls.program} needs root: run as root or install sudo"
        return None

    @classmethod
    def version(cls) -> str:
        """What the program says of itself."""
        return capture([cls.program, "--version"]).stdout.splitlines()[0].strip()

    @classmethod
    def examine(cls) -> list[tuple[str, bool | None, str]]:
        reason = cls.unavailable()
        return [(cls.program, None if reason else True, reason or cls.version())]

    @classmethod
    def sweep(cls) -> list[str]:
        # Its groups have the name of its folder, as those of a native system: what ends those ends this.
        return []

    def lay(self) -> None:
        """Mount its files: the image's, and over them what is written."""
        assert self.context.image
        tree = os.path.join(self.context.image["folder"], "tree")
        written = os.path.join(self.context.folder, "written")
        capture(as_root(["sh", "-euc", MOUNT, "strata", tree, written, self.root]))

    def facts(self) -> dict:
        return {"container": {"program": self.program, "version": self.version()}}

    def processes(self) -> list[int]:
        return sorted(cgroups.members(self.context.id))

    def left(self) -> list[str]:
        return [line for line in super().left() if line != " ".join(IDLE)]
