"""Snapshots of freshly booted machines: made once in a run, restored for every fresh system, gone with the run.

Those of a run lie in a folder that has the name of its process.
"""

import os

from strata.util import paths
from strata.util.data_types import Fields
from strata.util.files import remove_tree
from strata.util.process import alive, as_root, capture
from strata.vm import libvirt, vagrant_box


def _place(owner: Fields, *name: str) -> str:
    return vagrant_box.place("snapshots", f"{owner['pid']}-{owner['start']}", *name)


def made(name: str, owner: Fields) -> bool:
    """Whether this run (owner) made a snapshot of this name; those of runs that ended are removed."""
    for run in of():
        pid, _, start = run.partition("-")
        if not alive({"pid": int(pid), "start": start}):
            remove_tree(vagrant_box.place("snapshots", run))
    return os.path.isdir(_place(owner, name))


def save(name: str, owner: Fields, domain: str) -> None:
    """Save the running domain, which stops, with its disks."""
    place = _place(owner, name)
    remove_tree(f"{place}.part")
    # The memory of a machine is in it.
    os.makedirs(f"{place}.part", 0o700)
    libvirt.virsh("save", domain, f"{place}.part/memory", timeout=600)
    _copy(vagrant_box.place("pool"), domain, f"{place}.part")
    os.rename(f"{place}.part", place)


def restore(name: str, owner: Fields) -> None:
    """Put the disks back and let the domain go on."""
    place = _place(owner, name)
    _copy(place, paths.prefix(), vagrant_box.place("pool"))
    libvirt.virsh("pool-refresh", paths.prefix())
    libvirt.virsh("restore", f"{place}/memory", timeout=600)


def _copy(source: str, beginning: str, target: str) -> None:
    """Copy the disks in a folder whose names have this beginning."""
    found = [
        os.path.join(source, name) for name in os.listdir(source) if name.startswith(beginning)
    ]
    capture(
        as_root(["cp", "--sparse=always", "--reflink=auto", "--", *found, target]), timeout=1200
    )


def of() -> list[str]:
    """The runs that have snapshots."""
    folder = vagrant_box.place("snapshots")
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def remove(owner: Fields | None = None) -> list[str]:
    """Remove the snapshots of a run (owner), or all of them; returns whose they were."""
    runs = [
        run for run in of() if owner is None or vagrant_box.place("snapshots", run) == _place(owner)
    ]
    for run in runs:
        remove_tree(vagrant_box.place("snapshots", run))
    return runs
