"""The Vagrant box that machines start from: disk, kernel, initrd and keys in one folder.

``packer/box.sh`` makes the box from the image's files, the same for KVM and emulation.  It is kept
in a Vagrant home of Strata's own, so that no other box is touched.
"""

import glob
import os

from strata.util import paths
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.files import remove_atomically
from strata.util.process import capture_output, wrap_as_root

# Vagrant names the copy of a box's disk in the storage pool "BOX_vagrant_box_image_…".
COPY = "_vagrant_box_image_"


def get_machine_cache_path(*names: str) -> str:
    """Return a path in the cache's folder for virtual machines; the path need not exist.

    names: the names on the path; the first is vagrant (Vagrant's home), pool (libvirt's storage
    pool), consoles or snapshots.
    """
    return os.path.join(paths.get_home_folder(), "vm", *names)


def get_box_name(recipe: str) -> str:
    """Return the name of an image's box in Vagrant.

    recipe: the hash of the image's recipe.
    The names of the box's copies in the storage pool begin with this name, and vagrant/Vagrantfile
    finds boxes by the prefix "strata-".
    """
    return f"strata-{recipe[:12]}"


def _get_box_path(box: str) -> str:
    """Return the path of a box's folder, as Vagrant expects it: version 0, provider libvirt.

    box: the box's name.
    """
    return get_machine_cache_path("vagrant", "boxes", box, "0", "libvirt")


def get_box_folder(recipe: str) -> str:
    """Return the path of the folder of an image's Vagrant box; the folder may be missing.

    recipe: the hash of the image's recipe.
    """
    return _get_box_path(get_box_name(recipe))


def install_box(recipe: str, new_box: str) -> None:
    """Move a newly made box into Vagrant's home, replacing an earlier box of the image.

    recipe: the hash of the image's recipe.
    new_box: the folder in which the box was built, on the same file system; it is moved.
    """
    remove_box(recipe)
    os.renames(new_box, get_box_folder(recipe))


def has_box(recipe: str) -> bool:
    """Return whether an image's box is in Vagrant's home.

    recipe: the hash of the image's recipe.
    """
    return os.path.isdir(get_box_folder(recipe))


def require_box(recipe: str) -> Fields:
    """Return ``{box, folder, host_key}`` of an image's box: its name, folder and public host key.

    recipe: the hash of the image's recipe.
    Raises UserError with the remedy if the box is missing.
    """
    folder = get_box_folder(recipe)
    if not has_box(recipe):
        raise UserError(
            f"the machines' disk of image {recipe[:12]} is not in the cache: run `python3 -m "
            "strata image`"
        )
    # packer/box.sh writes the file: type, key, and a comment, which is left out here.
    with open(os.path.join(folder, "host_key.pub"), encoding="utf-8") as file:
        host_key = " ".join(file.read().split()[:2])
    return {"box": get_box_name(recipe), "folder": folder, "host_key": host_key}


def remove_box(recipe: str) -> None:
    """Remove an image's box atomically, and its copy in the storage pool.

    recipe: the hash of the image's recipe.
    A missing box is not an error.
    """
    remove_atomically(
        get_machine_cache_path("vagrant", "boxes", get_box_name(recipe)),
        paths.get_unfinished_folder("removed-box"),
    )
    remove_orphaned_copies()


def remove_orphaned_copies() -> list[str]:
    """Remove from the storage pool the copies of boxes that are gone, and return their names.

    A copy's name begins with the box's name and :data:`COPY`.
    """
    box_names = set()
    for path in _list_volumes(f"strata-*{COPY}"):
        box_name, _, _ = os.path.basename(path).partition(COPY)
        box_names.add(box_name)
    removed_names = []
    for box_name in sorted(box_names):
        if not os.path.isdir(_get_box_path(box_name)):
            removed_names += remove_volumes(f"{box_name}{COPY}")
    return removed_names


def remove_volumes(prefix: str) -> list[str]:
    """Remove the storage pool's files whose names begin with a prefix, and return these names.

    prefix: plain text, in which ``*`` and ``?`` have no special meaning.  It must not be empty,
    since that would remove all files.
    """
    volumes = _list_volumes(glob.escape(prefix))
    if volumes:
        capture_output(wrap_as_root(["rm", "-f", "--", *volumes]))
    return [os.path.basename(path) for path in volumes]


def _list_volumes(pattern: str) -> list[str]:
    """Return the sorted paths of the storage pool's files whose names begin with a pattern.

    pattern: a pattern as in a shell (glob), in which special characters of a name must be escaped.
    """
    return sorted(glob.glob(f"{glob.escape(get_machine_cache_path('pool'))}/{pattern}*"))
