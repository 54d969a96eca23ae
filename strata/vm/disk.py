"""Where the disk of a virtual machine lies, and whether there is one (:mod:`strata.image.machine` makes it).

It lies beside the image in the cache, ``images/RECIPE/vm-ACCELERATOR``: ``disk.json`` (facts, with
the public keys by which ssh knows it) and ``key`` (the private key that it lets in, made for this disk here).
"""

import os
import platform

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import read_json


def folder_of(name: str, accelerator: str) -> str:
    """The folder of the disk of an image."""
    return os.path.join(places.home(), "images", name, f"vm-{accelerator}")


def find(name: str, accelerator: str) -> dict | None:
    """The facts of a disk with its `folder`, or None if it is not there, whole."""
    folder = folder_of(name, accelerator)
    facts = read_json(os.path.join(folder, "disk.json"))
    return {**facts, "folder": folder} if facts else None


def require(name: str, accelerator: str) -> dict:
    """Like :func:`find`, but a missing disk is an error that says how to get it."""
    facts = find(name, accelerator)
    if facts is None:
        raise UserError(
            f"the virtual machine's disk of image {name[:12]} is not in {places.home()}: "
            "run `python -m strata image` to build it again"
        )
    return facts


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
