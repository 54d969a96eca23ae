"""Snapshots of freshly booted machines: made once in a run, restored for every fresh system, gone with the run.

Those of a run lie in a folder that has the name of its process.
"""

import os

from strata.base import places
from strata.base.files import read_json, remove_tree, write_json
from strata.base.process import alive, as_root, capture
from strata.base.shapes import Fields
from strata.vm import disk, libvirt


def _place(*parts: str) -> str:
    return os.path.join(places.home(), "vm", "snapshots", *parts)


def _run(owner: Fields) -> str:
    return f"{owner['pid']}-{owner['start']}"


def find(key: str, owner: Fields) -> Fields | None:
    """The facts of the snapshot for this key that this run (owner) made; those of runs that ended are removed."""
    for name in of():
        pid, _, start = name.partition("-")
        if not (pid.isdecimal() and alive({"pid": int(pid), "start": start})):
            remove_tree(_place(name))
    facts: Fields | None = read_json(_place(_run(owner), key, "facts.json"))
    return facts


def save(key: str, owner: Fields, domain: str, facts: Fields) -> None:
    """Save the running domain, which stops, with its disks."""
    place = _place(_run(owner), key)
    remove_tree(place)
    # The memory of a machine is in it.
    os.makedirs(place, 0o700)
    libvirt.virsh("save", domain, os.path.join(place, "memory"), timeout=600)
    for name in os.listdir(disk.pool_folder()):
        if name.startswith(domain):
            _copy(os.path.join(disk.pool_folder(), name), os.path.join(place, name))
    write_json(os.path.join(place, "facts.json"), facts)


def restore(key: str, owner: Fields) -> None:
    """Put the disks back and let the domain go on."""
    place = _place(_run(owner), key)
    for name in os.listdir(place):
        if name.endswith(".img"):
            _copy(os.path.join(place, name), os.path.join(disk.pool_folder(), name))
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
