"""The image on its way to nodes: packed once beside the results, and taken from there into each node's own cache.

What lies beside the results is seen by all nodes.  All files of what was taken are read again before any of it is run
(:mod:`strata.image.intact`), since what was noted of them after the build is not packed.
"""

import glob
import os
import subprocess

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import clear_tree, read_json, remove_tree
from strata.base.locks import locked
from strata.base.process import as_root, capture
from strata.base.progress import step
from strata.image import cache, rootfs, spare
from strata.vm import disk

FOLDER = "results/image"
# Seconds that packing and unpacking may take: gigabytes, over a network.
PATIENCE = 4 * 3600.0


def path(name: str) -> str:
    """Where the image of a recipe lies packed."""
    return os.path.join(FOLDER, f"{name}.tar")


def put(name: str) -> None:
    """Pack the image of a recipe from this machine's cache, with its disks, where it is not packed as it is there."""
    with cache.kept():
        _put(name)


def _put(name: str) -> None:
    home, folder, target = places.home(), cache.require(name)["folder"], path(name)
    parts, newest = [folder], os.path.getmtime(os.path.join(folder, "image.json"))
    for listing, facts in _disks(folder):
        newest = max(newest, os.path.getmtime(listing))
        others = [facts["volume"]["path"], os.path.join(disk.vagrant_home(), "boxes", facts["box"])]
        parts += [other for other in others if os.path.exists(other) and not _within(other, folder)]
    if len(parts) > 1:
        # What KVM is tried with on a node.
        base = spare.base_of(name)
        parts += glob.glob(rootfs.archive_path(base) if base else f"{home}/images/base-*.tar")
    # Who uses it: the project's folder is the same on all nodes.
    parts += glob.glob(spare.note_path(name))
    if os.path.exists(target) and os.path.getmtime(target) >= newest:
        return
    os.makedirs(FOLDER, exist_ok=True)
    part = f"{target}.part"
    words = ["--create", f"--exclude=images/{name}/stamp.json", *(os.path.relpath(one, home) for one in parts)]
    # It holds the keys of machines.
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with step("image", "packing it for the nodes"):
            _tar(home, words, stdout=descriptor)
    finally:
        os.close(descriptor)
    os.replace(part, target)


def _tar(folder: str, words: list[str], stdin: int | None = None, stdout: int | None = None) -> None:
    """Run tar in a folder with the rights of root, on a stream that this user opened: root may not on a network's disk.

    Raises UserError.
    """
    argv = as_root(["tar", "-C", folder, "--numeric-owner", *words])
    done = subprocess.run(argv, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(f"`tar` failed in {folder}: {said[-1] if said else done.returncode}")


def take(name: str) -> None:
    """See that the image of a recipe, with its disks, is in this machine's cache, brought here where it is not.

    Raises UserError where it is neither.
    """
    home = places.home()
    images = os.path.join(home, "images")
    os.makedirs(images, exist_ok=True)
    os.chmod(images, 0o700)
    with cache.kept(), locked(os.path.join(images, f"{name}.lock"), "image: another process brings it here"):
        if cache.find(name):
            if base := spare.base_of(name):
                spare.note(name, base)
            return
        packed = path(name)
        if not os.path.exists(packed):
            raise UserError(
                f"the image {name[:12]} is neither in {home} nor packed as {packed}: start the run again, which packs "
                "it; the project's folder has to be the same on all nodes"
            )
        work = os.path.join(images, f"building-{name[:12]}")
        clear_tree(work)
        os.makedirs(work)
        try:
            with open(packed, "rb") as file, step("image", f"bringing {name[:12]} to this node"):
                _tar(work, ["--extract", "--preserve-permissions"], stdin=file.fileno())
            own = f"images/{name}"
            if not os.path.exists(os.path.join(work, own, "image.json")):
                raise UserError(f"{packed} is not the image {name[:12]}: remove it and start the run again")
            volumes = [facts["volume"]["path"] for _, facts in _disks(os.path.join(work, own))]
            wrong = [volume for volume in volumes if not _within(volume, home)]
            if wrong:
                raise UserError(
                    f"{packed} holds a machine's disk for {wrong[0]}, and this node's cache is "
                    f"{home}: STRATA_HOME has to be the same on all nodes"
                )
            # What makes the image found comes last.
            for part in sorted((p for p in _parts(work) if p != own), key=len) + [own]:
                remove_tree(os.path.join(home, part))
                os.makedirs(os.path.dirname(os.path.join(home, part)), exist_ok=True)
                capture(as_root(["mv", "-T", "--", os.path.join(work, part), os.path.join(home, part)]))
        finally:
            clear_tree(work)


def _within(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder


def _parts(work: str) -> list[str]:
    """The packed parts in a folder: images, bases, volumes of the pool, and boxes, by their places in a cache."""
    found = [*glob.glob("images/*", root_dir=work), *glob.glob("vm/pool/*", root_dir=work)]
    return [*found, *glob.glob("vm/vagrant/boxes/*", root_dir=work)]


def _disks(folder: str) -> list[tuple[str, dict]]:
    """The disks of virtual machines beside an image: the file of each one's facts, and these."""
    found = ((path, read_json(path)) for path in sorted(glob.glob(os.path.join(folder, "vm-*", "disk.json"))))
    return [(path, facts) for path, facts in found if facts]
