"""Where the disk of a virtual machine lies, and whether there is one (:mod:`strata.image.machine` makes it).

It lies beside the image in the cache, ``images/RECIPE/vm-ACCELERATOR``: ``disk.json`` (facts, with
the public keys by which ssh knows it) and ``key`` (the private key that it lets in, made for this disk here).
That of light machines (:mod:`strata.image.light`) lies in ``vm-light``, the same under KVM and emulation.
"""

import os
import platform

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import read_json, write_json
from strata.base.process import as_root, capture

# In the place of an accelerator.
LIGHT = "light"


def folder_of(name: str, which: str) -> str:
    """The folder of the disk of an image; `which`: an accelerator, or :data:`LIGHT`."""
    return os.path.join(places.home(), "images", name, f"vm-{which}")


def find(name: str, which: str) -> dict | None:
    """The facts of a disk with its `folder`, or None if it is not there, whole."""
    folder = folder_of(name, which)
    facts = read_json(os.path.join(folder, "disk.json"))
    return {**facts, "folder": folder} if facts else None


def require(name: str, which: str) -> dict:
    """Like :func:`find`, but a missing disk is an error that says how to get it."""
    facts = find(name, which)
    if facts is None:
        raise UserError(
            f"the virtual machine's disk of image {name[:12]} is not in {places.home()}: "
            "run `python -m strata image` to build it again"
        )
    return facts


def verify(facts: dict) -> None:
    """Raise UserError where what machines boot from is not what was built.

    It is read again only where the kernel shows another size, time or inode; its owner is libvirt's to change.
    """
    noted = facts["volume"]
    seen = look(noted["path"])
    if seen == noted["seen"]:
        return
    if seen is None or digest(noted["path"]) != noted["sha256"]:
        raise UserError(
            f"{noted['path']} is not the disk that was built: no machine is booted from it; "
            "run `python -m strata image --rebuild`"
        )
    kept = {key: value for key, value in facts.items() if key != "folder"}
    write_json(os.path.join(facts["folder"], "disk.json"), {**kept, "volume": {**noted, "seen": seen}})


def look(path: str) -> str | None:
    """Size, time of change and inode of a disk; None where there is none."""
    return capture(as_root(["stat", "--format", "%s %.9Y %i", "--", path]), check=False).stdout.strip() or None


def digest(path: str) -> str:
    """The SHA-256 of a disk."""
    return capture(as_root(["sha256sum", "--", path]), timeout=1200).stdout.split()[0].lstrip("\\")


def vagrant_home() -> str:
    """Vagrant's folder for boxes: ours alone, so that nobody's own boxes are touched."""
    return os.path.join(places.home(), "vm", "vagrant")


def box_name(name: str, accelerator: str) -> str:
    """The box's name for Vagrant."""
    return f"strata-{name[:12]}-{accelerator}"


def unsupported() -> str | None:
    """Why no disk for a machine can be made on this kind of host; None if it can."""
    if platform.machine() != "x86_64":
        return f"virtual machines are built for x86_64 only; this host is {platform.machine()}"
    return None
