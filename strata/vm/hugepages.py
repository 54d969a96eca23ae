"""Huge pages of the host for a machine: reserved before it starts, given back when it is gone."""

import os

from strata.base.files import read_json, write_json
from strata.base.process import as_root, capture

COUNT = "/proc/sys/vm/nr_hugepages"
FREE = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"


def _free() -> int | None:
    try:
        with open(FREE) as file:
            return int(file.read())
    except OSError:
        return None


def _set(count: int) -> None:
    script = 'echo 1 >/proc/sys/vm/compact_memory; echo "$1" >"$2"'
    capture(as_root(["sh", "-c", script, "strata", str(count), COUNT]), check=False)


def _record(folder: str) -> str:
    return os.path.join(folder, "huge_pages.json")


def reserve(memory_mib: int, folder: str) -> str | None:
    """Reserve pages of 2 MiB for a machine of that size; why the host cannot give them, or None.

    What was reserved before is noted in `folder` for :func:`release`.
    """
    free = _free()
    if free is None:
        return "the host's kernel has no huge pages of 2 MiB"
    with open(COUNT) as file:
        before = int(file.read())
    needed = memory_mib // 2
    write_json(_record(folder), {"before": before})
    _set(before + max(0, needed - free))
    free = _free() or 0
    if free >= needed:
        return None
    _set(before)
    return f"the host could reserve {free} of {needed} huge pages of 2 MiB"


def release(folder: str) -> None:
    """Give back what :func:`reserve` took; it may be called twice."""
    reserved = read_json(_record(folder))
    if reserved:
        _set(reserved["before"])
        os.unlink(_record(folder))
