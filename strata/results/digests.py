"""Checksums of files, and a memory of them, so that a file that was not touched is not read again."""

import hashlib
import json
import os
import stat
import time

from strata.base.files import note_json

MEMORY = "results/tmp/digests.json"
# A file that was changed so shortly ago could be changed once more without another time.
_SETTLED_NS = 2_000_000_000


def of_file(path: str) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Digests:
    """SHA-256 of files; with a memory those whose size, times and inode are as they were are not read.

    The time of the last change of an inode is among them: a file that was changed shows it, whatever was
    done to its other times.
    """

    def __init__(self, memory: str | None = None) -> None:
        self._memory = memory
        self._known: dict[str, list] = _remembered(memory) if memory else {}
        self._new: dict[str, list] = {}

    def of(self, path: str) -> str | None:
        """The checksum of a file; None where there is none."""
        try:
            seen = os.stat(path)
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(seen.st_mode):
            return None
        state = [seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino]
        known = self._known.get(path)
        if known and known[:4] == state:
            return known[4]
        found = of_file(path)
        if 0 < time.time_ns() - seen.st_ctime_ns > _SETTLED_NS:
            self._known[path] = self._new[path] = [*state, found]
        return found

    def save(self) -> None:
        """Keep what was read for the next time."""
        if not self._memory or not self._new:
            return
        note_json(self._memory, {**_remembered(self._memory), **self._new})
        self._new = {}


def _remembered(memory: str) -> dict[str, list]:
    """What is remembered; nothing where that cannot be read."""
    try:
        with open(memory, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    good = isinstance(found, dict) and all(
        isinstance(entry, list) and len(entry) == 5 and isinstance(entry[4], str) for entry in found.values()
    )
    return found if good else {}
