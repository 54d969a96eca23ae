"""Snapshots of freshly booted machines: made once in a run, restored for every fresh system, gone with the run.

Those of a run lie in a folder that has the name of its process.
"""

import os

from strata.base import places
from strata.base.files import remove_tree
from strata.base.process import alive, as_root, capture
from strata.base.shapes import Fields
from strata.vm import disk, libvirt


def _place(*parts: str) -> str:
    return os.path.join(places.home(), "vm", "snapshots", *parts)


def _run(owner: Fields) -> str:
    return f"{owner['pid']}-{owner['start']}"


def made(name: str, owner: Fields) -> bool:
    """Whether this run (owner) made a snapshot of this name; those of runs that ended are removed."""
    for run in of():
        pid, _, start = run.partition("-")
        if not alive({"pid": int(pid), "start": start}):
            remove_tree(_place(run))
    return os.path.isdir(_place(_run(owner), name))


def save(name: str, owner: Fields, domain: str) -> None:
    """Save the running domain, which stops, with its disks."""
    place = _place(_run(owner), name)
    remove_tree(f"{place}.part")
    # The memory of a machine is in it.
    os.makedirs(f"{place}.part", 0o700)
    libvirt.virsh("save", domain, os.path.join(f"{place}.part", "memory"), timeout=600)
    for file in os.listdir(disk.pool_folder()):
        if file.startswith(domain):
            _copy(os.path.join(disk.pool_folder(), file), os.path.join(f"{place}.part", file))
    os.rename(f"{place}.part", place)


def restore(name: str, owner: Fields) -> None:
    """Put the disks back and let the domain go on."""
    place = _place(_run(owner), name)
    for file in os.listdir(place):
        if file.endswith(".img"):
            _copy(os.path.join(place, file), os.path.join(disk.pool_folder(), file))
    libvirt.virsh("pool-refresh", libvirt.prefix())
    libvirt.virsh("restore", os.path.join(place, "memory"), timeout=600)


def _copy(source: str, target: str) -> None:
    capture(as_root(["cp", "--sparse=always", "--reflink=auto", "--", source, target]), timeout=1200)


def of() -> list[str]:
    """The runs that have snapshots."""
    return sorted(os.listdir(_place())) if os.path.isdir(_place()) else []


def remove(owner: Fields | None = None) -> list[str]:
    """Remove the snapshots of a run (owner), or all of them; returns whose they were."""
    names = [name for name in of() if owner is None or name == _run(owner)]
    for name in names:
        remove_tree(_place(name))
    return names
