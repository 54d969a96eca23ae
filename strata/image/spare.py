"""What nobody needs any more in the machine's cache, and its removal.

An image is needed by the folders whose results name it; it is noted which may (``images/RECIPE.used.json``), and one
that an earlier version made, which noted nothing, stays.  An image needs the archive of its base, of which further
disks are made, and each disk its box and its volume.  What no image needs goes, empty locks too; but nothing goes
while another process makes or packs something here (:func:`strata.image.cache.kept`).
"""

import glob
import os
import re
from collections.abc import Collection

from strata import layers
from strata.base import places
from strata.base.files import clear_tree, read_json, remove_tree, write_json
from strata.base.locks import held, locked
from strata.base.process import as_root, capture
from strata.base.progress import say
from strata.image import cache, rootfs
from strata.layers import docker
from strata.vm import disk, libvirt

# So many images stay that no results name, those that were used last: who changes a page often changes it back.
SPARE = 2


def _images() -> str:
    return os.path.join(places.home(), "images")


def note_path(name: str) -> str:
    """The file that tells of an image who used it."""
    return os.path.join(_images(), f"{name}.used.json")


def names() -> list[str]:
    """The recipes of the images in the cache, whole or not."""
    found = os.listdir(_images()) if os.path.isdir(_images()) else []
    return sorted(name for name in found if re.fullmatch("[0-9a-f]{64}", name))


def _noted(name: str) -> dict:
    """What is noted of an image, {} where that is nothing: ``{base, folders, others}``.

    folders: those that used it.  others: whether there may be more of them.
    """
    told = read_json(note_path(name)) or {}
    folders = told.get("folders")
    whole = isinstance(told.get("base"), str) and isinstance(folders, list) and all(isinstance(f, str) for f in folders)
    return told if whole else {}


def note(name: str, base: str, built: bool = False) -> None:
    """Note that this folder uses an image, which was built now or not, and the base (a hash) of which that was made."""
    told = _noted(name)
    folders = {folder for folder in told.get("folders", []) if _rests(folder, name)}
    others = told.get("others", not built)
    write_json(note_path(name), {"base": base, "folders": sorted({*folders, os.getcwd()}), "others": others})


def base_of(name: str) -> str | None:
    """The hash of the base of an image; None where it is not known."""
    return _noted(name).get("base")


def _rests(folder: str, name: str) -> bool:
    """Whether the results in a folder name an image.  Those that cannot be seen may."""
    try:
        return (read_json(os.path.join(folder, places.IMAGE)) or {}).get("recipe") == name
    except OSError:
        return True


def _at_work(name: str) -> bool:
    """Whether a run is at work in a folder that used an image.  Where that cannot be seen one may be."""
    try:
        return any(held(os.path.join(folder, "results/tmp/run.lock")) for folder in _noted(name).get("folders", []))
    except OSError:
        return True


def idle() -> list[str]:
    """Images that no results need, but for the last ones that were used."""
    noted = {name: _noted(name) for name in names()}
    known = {name: told["folders"] for name, told in noted.items() if told.get("others") is False}
    found = [name for name, folders in known.items() if not any(_rests(one, name) for one in folders)]
    return sorted(found, key=lambda name: os.path.getmtime(note_path(name)), reverse=True)[SPARE:]


def prune(images: Collection[str] | None = None) -> list[str]:
    """Remove disks and locks that are of no image in the cache, and what unfinished builds left; that, in words.

    images: they go first, but for those with which a run is at work.  Where they are given (there may be none), bases
    go too (else one may be of an image that was not finished), and Docker and other layers forget what is no longer
    here.  The caller sees that no system is up.
    """
    if not os.path.isdir(_images()):
        return []
    with locked(cache.lock(), wait=False) as alone:
        locks = [path for path in glob.glob(os.path.join(_images(), "*.lock")) if path != cache.lock()]
        if not alone or any(held(path) for path in locks):
            say("image", "nothing is removed from the cache, since another process makes or packs an image")
            return []
        gone = [name for name in images or () if not _at_work(name)]
        for name in gone:
            _remove(name)
        removed = [*_unfinished(), *(f"image {name[:12]}" for name in gone), *_disks()]
        there = names()
        for path in [*locks, *glob.glob(note_path("*"))]:
            if os.path.basename(path).partition(".")[0] not in there:
                os.unlink(path)
        return removed if images is None else [*removed, *_bases(), *_in_docker(), *_in_layers()]


def _remove(name: str) -> None:
    """Remove an image, and first what makes it found."""
    folder = cache.folder_of(name)
    if os.path.exists(os.path.join(folder, "image.json")):
        os.unlink(os.path.join(folder, "image.json"))
    remove_tree(folder)


def _unfinished() -> list[str]:
    """Remove what builds left that were killed."""
    removed = []
    for name in sorted(os.listdir(_images())):
        path = os.path.join(_images(), name)
        if name.startswith("building-"):
            clear_tree(path)
            removed.append(f"unfinished image {name}")
        elif (name.startswith("base-") and not name.endswith(".tar")) or name.endswith(".part.tar"):
            remove_tree(path)
            removed.append(f"unfinished base {name}")
    return removed


def _bases() -> list[str]:
    """Remove bases of which no image was made; none where an image does not say of which it was."""
    bases = [base_of(name) for name in names()]
    if None in bases:
        return []
    needed = {rootfs.archive_path(base) for base in bases if base}
    found = [path for path in sorted(glob.glob(os.path.join(_images(), "base-*.tar"))) if path not in needed]
    for path in found:
        os.unlink(path)
    return [os.path.basename(path) for path in found]


def _disks() -> list[str]:
    """Remove boxes and their volumes that are no disk's of an image; a machine's own volumes have other names."""
    facts = [read_json(path) or {} for path in glob.glob(os.path.join(_images(), "*", "vm-*", "disk.json"))]
    boxes = {one.get("box") for one in facts}
    volumes = {(one.get("volume") or {}).get("path") for one in facts}
    removed = []
    for path in sorted(glob.glob(os.path.join(disk.vagrant_home(), "boxes", "strata-*"))):
        if os.path.basename(path) not in boxes:
            remove_tree(path)
            removed.append(f"box {os.path.basename(path)}")
    for path in sorted(glob.glob(os.path.join(libvirt.pool_folder(), "strata-*_vagrant_box_image_*.img"))):
        if path not in volumes:
            capture(as_root(["rm", "-f", "--", path]))
            removed.append(f"volume {os.path.basename(path)}")
    return removed


def _in_docker() -> list[str]:
    """Let Docker forget the images and bases of ours that are not in the cache any more."""
    bases = [os.path.basename(path)[5:-4] for path in glob.glob(os.path.join(_images(), "base-*.tar"))]
    return docker.forget({*(docker.tag({"recipe": name}) for name in names()), *map(docker.base_tag, bases)})


def _in_layers() -> list[str]:
    """Let layers with a store of their own forget images that are not in the cache any more."""
    kept = {image["id"] for name in names() if (image := cache.find(name))}
    return [words for name in layers.LAYERS for words in layers.layer_class(name).discard(kept)]
