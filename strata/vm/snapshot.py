"""Snapshots of freshly booted machines: made once in a run, restored for every fresh system, gone with the run."""

import os

from strata.base import places
from strata.base.files import read_json, remove_tree, write_json
from strata.base.process import alive, as_root, capture
from strata.base.shapes import Fields
from strata.vm import libvirt


def folder() -> str:
    """Where they lie."""
    return os.path.join(places.home(), "vm", "snapshots")


def find(key: str, owner: Fields) -> Fields | None:
    """The facts of the snapshot for this key that this run (owner) made; those of runs that ended are removed."""
    found = None
    for name in of():
        facts = _facts(name)
        if facts is None or not alive(facts["owner"]):
            remove_tree(os.path.join(folder(), name))
        elif name == key and facts["owner"] == owner:
            found = facts
    return found


def _facts(name: str) -> Fields | None:
    """What a snapshot says of itself; None where that is not whole."""
    try:
        facts = read_json(os.path.join(folder(), name, "snapshot.json"))
    except ValueError:
        return None
    owner = facts.get("owner") if isinstance(facts, dict) else None
    return facts if isinstance(owner, dict) and {"pid", "start"} <= set(owner) else None


def _volumes(domain: str) -> list[str]:
    return sorted(name for name in os.listdir(libvirt.pool_folder()) if name.startswith(domain))


def save(key: str, owner: Fields, domain: str, facts: Fields) -> None:
    """Save the running domain, which stops, with its disks."""
    place = os.path.join(folder(), key)
    remove_tree(place)
    # The memory of a machine is in it.
    os.makedirs(folder(), exist_ok=True)
    os.mkdir(place, 0o700)
    libvirt.virsh("save", domain, os.path.join(place, "memory"), timeout=600)
    for name in _volumes(domain):
        _copy(os.path.join(libvirt.pool_folder(), name), os.path.join(place, name))
    write_json(os.path.join(place, "snapshot.json"), {"owner": owner, "domain": domain, "facts": facts})


def restore(key: str) -> None:
    """Put the disks back and let the domain go on."""
    place = os.path.join(folder(), key)
    for name in os.listdir(place):
        if name.endswith(".img"):
            _copy(os.path.join(place, name), os.path.join(libvirt.pool_folder(), name))
    libvirt.virsh("pool-refresh", libvirt.pool())
    libvirt.virsh("restore", os.path.join(place, "memory"), timeout=600)


def _copy(source: str, target: str) -> None:
    capture(as_root(["cp", "--sparse=always", "--reflink=auto", "--", source, target]), timeout=1200)


def of(owner: Fields | None = None) -> list[str]:
    """Names of the snapshots of a run (owner), or of all of them."""
    found = sorted(os.listdir(folder())) if os.path.isdir(folder()) else []
    return [name for name in found if owner is None or (_facts(name) or {}).get("owner") == owner]


def remove(owner: Fields | None = None) -> list[str]:
    """Remove the snapshots of a run (owner), or all of them; returns their names."""
    names = of(owner)
    for name in names:
        remove_tree(os.path.join(folder(), name))
    return names
