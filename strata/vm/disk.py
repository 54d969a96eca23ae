"""The box of Vagrant's from which machines of an image start: its disk, and kernel, initrd and keys beside it.

``packer/box.sh`` makes it of the image's files; it is the same under KVM and emulation.  It lies in the folder
``vm/vagrant/boxes`` of :func:`strata.base.places.home`, which is ours alone, so that nobody's own boxes are touched.
"""

import glob
import os

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import remove_tree
from strata.base.process import as_root, capture
from strata.base.shapes import Fields


def vagrant_home() -> str:
    """Vagrant's folder."""
    return os.path.join(places.home(), "vm", "vagrant")


def pool_folder() -> str:
    """Folder of libvirt's storage pool, into which Vagrant copies the disk of a box with its first machine."""
    return os.path.join(places.home(), "vm", "pool")


def box_name(name: str) -> str:
    """The box's name for Vagrant, of the image's."""
    return f"strata-{name[:12]}"


def folder_of(name: str) -> str:
    """The folder of the box of an image."""
    return os.path.join(vagrant_home(), "boxes", box_name(name), "0", "libvirt")


def put(name: str, made: str) -> None:
    """Put a box that was made into its place."""
    remove(name)
    folder = folder_of(name)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    os.rename(made, folder)


def whole(name: str) -> bool:
    """Whether there is the box of an image."""
    return os.path.isdir(folder_of(name))


def require(name: str) -> Fields:
    """``{box, folder, host_key}`` of the box of an image.  Raises UserError without one."""
    folder = folder_of(name)
    if not whole(name):
        raise UserError(
            f"the virtual machine's disk of image {name[:12]} is not in {places.home()}: "
            "run `python3 -m strata image` to build it again"
        )
    with open(os.path.join(folder, "host_key.pub"), encoding="utf-8") as file:
        host_key = " ".join(file.read().split()[:2])
    return {"box": box_name(name), "folder": folder, "host_key": host_key}


def remove(name: str) -> None:
    """Remove the box of an image, and the copy of its disk in the pool."""
    remove_tree(os.path.join(vagrant_home(), "boxes", box_name(name)))
    remove_volumes(f"{box_name(name)}_vagrant_box_image_")


def remove_volumes(beginning: str) -> None:
    """Remove the files of the pool whose names have this beginning."""
    found = glob.glob(os.path.join(glob.escape(pool_folder()), f"{beginning}*"))
    capture(as_root(["rm", "-f", "--", *found]))
