"""The box of Vagrant's from which machines of an image start: its disk, and kernel, initrd and keys beside it.

``packer/box.sh`` makes it of the image's files; it is the same under KVM and emulation.  It lies in a home of Vagrant's
that is ours alone, so that nobody's own boxes are touched.
"""

import glob
import os

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import remove_tree
from strata.base.process import as_root, capture
from strata.base.shapes import Fields


def place(*parts: str) -> str:
    """A path in the machines' part of the cache, with vagrant (its home), pool (libvirt's), consoles and snapshots."""
    return os.path.join(places.home(), "vm", *parts)


def box_name(name: str) -> str:
    """The box's name for Vagrant, of the image's."""
    return f"strata-{name[:12]}"


def folder_of(name: str) -> str:
    """The folder of the box of an image."""
    return place("vagrant", "boxes", box_name(name), "0", "libvirt")


def put(name: str, made: str) -> None:
    """Put a box that was made into its place."""
    remove(name)
    os.renames(made, folder_of(name))


def whole(name: str) -> bool:
    """Whether there is the box of an image."""
    return os.path.isdir(folder_of(name))


def require(name: str) -> Fields:
    """``{box, folder, host_key}`` of the box of an image.  Raises UserError without one."""
    folder = folder_of(name)
    if not whole(name):
        raise UserError(f"the machines' disk of image {name[:12]} is not in the cache: run `python3 -m strata image`")
    with open(os.path.join(folder, "host_key.pub"), encoding="utf-8") as file:
        host_key = " ".join(file.read().split()[:2])
    return {"box": box_name(name), "folder": folder, "host_key": host_key}


def remove(name: str) -> None:
    """Remove the box of an image, and the copy of its disk that Vagrant made in the pool with the first machine."""
    remove_tree(place("vagrant", "boxes", box_name(name)))
    remove_volumes(f"{box_name(name)}_vagrant_box_image_")


def remove_volumes(beginning: str) -> None:
    """Remove the files of the pool whose names have this beginning."""
    capture(as_root(["rm", "-f", "--", *glob.glob(glob.escape(place("pool", beginning)) + "*")]))
