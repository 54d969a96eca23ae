"""The box of Vagrant's from which machines of an image start: its disk, and kernel, initrd and keys beside it.

``packer/box.sh`` makes it of the image's files; it is the same under KVM and emulation.  It lies in a home of Vagrant's
that is ours alone, so that nobody's own boxes are touched.
"""

import glob
import os

from strata.util import paths
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.files import remove_whole
from strata.util.process import as_root, capture

# How the name of the copy of a box's disk goes on that Vagrant makes in the pool.
COPY = "_vagrant_box_image_"


def place(*parts: str) -> str:
    """A path in the machines' part of the cache, with vagrant (its home), pool (libvirt's), consoles and snapshots."""
    return os.path.join(paths.home(), "vm", *parts)


def box_name(name: str) -> str:
    """The box's name for Vagrant, of the image's."""
    return f"strata-{name[:12]}"


def folder_of_box(box: str) -> str:
    """The folder of a box."""
    return place("vagrant", "boxes", box, "0", "libvirt")


def folder_of(name: str) -> str:
    """The folder of the box of an image."""
    return folder_of_box(box_name(name))


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
        raise UserError(
            f"the machines' disk of image {name[:12]} is not in the cache: run `python3 -m strata image`"
        )
    with open(os.path.join(folder, "host_key.pub"), encoding="utf-8") as file:
        host_key = " ".join(file.read().split()[:2])
    return {"box": box_name(name), "folder": folder, "host_key": host_key}


def remove(name: str) -> None:
    """Remove the box of an image, and its copy."""
    remove_whole(place("vagrant", "boxes", box_name(name)), paths.unfinished("removed-box"))
    remove_copies()


def remove_copies() -> list[str]:
    """Remove copies in the pool of boxes that are there no more; their names."""
    boxes = {path.partition(COPY)[0] for path in _volumes(f"strata-*{COPY}")}
    gone = [
        os.path.basename(box)
        for box in boxes
        if not os.path.isdir(folder_of_box(os.path.basename(box)))
    ]
    return [name for box in sorted(gone) for name in remove_volumes(f"{box}{COPY}")]


def remove_volumes(beginning: str) -> list[str]:
    """Remove the files of the pool whose names have this beginning; these names."""
    if found := _volumes(glob.escape(beginning)):
        capture(as_root(["rm", "-f", "--", *found]))
    return [os.path.basename(path) for path in found]


def _volumes(pattern: str) -> list[str]:
    return sorted(glob.glob(f"{glob.escape(place('pool'))}/{pattern}*"))
