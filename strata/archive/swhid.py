"""The SWHID of source code: the name by which Software Heritage knows a folder or a file, computed from its bytes.

It is the hash that git gives the folder's tree, so that a source without changes has that of its revision.  Of a file
that is not there its own SWHID is enough.
"""

import hashlib
import os
import re
import stat

_FILE, _PROGRAM, _LINK, _FOLDER = b"100644", b"100755", b"120000", b"40000"


def of_file(path: str) -> str:
    """The SWHID of a file."""
    with open(path, "rb") as file:
        return f"swh:1:cnt:{_object(b'blob', file.read()).hex()}"


def of_folder(folder: str, apart: dict[str, str] | None = None) -> str:
    """The SWHID of a folder with all that is in it, but for folders without files, which git does not know.

    apart: files that belong to it and are not there: the path of each below the folder, and its SWHID.  Raises
    ValueError for what is none.
    """
    return f"swh:1:dir:{(_tree(folder, _hashes(apart or {})) or _object(b'tree', b'')).hex()}"


def _hashes(apart: dict[str, str]) -> dict[bytes, bytes]:
    wrong = [told for told in apart.values() if not re.fullmatch("swh:1:cnt:[0-9a-f]{40}", told)]
    if wrong:
        raise ValueError(f"{wrong[0]} is the SWHID of no file")
    return {os.fsencode(name): bytes.fromhex(told[10:]) for name, told in apart.items()}


def _object(kind: bytes, content: bytes) -> bytes:
    return hashlib.sha1(b"%s %d\0%s" % (kind, len(content), content), usedforsecurity=False).digest()


def _tree(folder: str, apart: dict[bytes, bytes]) -> bytes | None:
    """The hash of a folder's tree; None where there is no file in it."""
    entries = []
    below: dict[bytes, dict[bytes, bytes]] = {}
    for path, hashed in apart.items():
        head, _, rest = path.partition(b"/")
        if rest:
            below.setdefault(head, {})[rest] = hashed
        else:
            entries.append((head, b"%s %s\0%s" % (_FILE, head, hashed)))
    there = os.listdir(os.fsencode(folder)) if os.path.isdir(folder) else []
    for name in {*there, *below}:
        path = os.path.join(os.fsencode(folder), name)
        mode, found = _entry(path, below.get(name, {}))
        if found is not None:
            # Folders have their place as if their names ended with a slash.
            entries.append((name + b"/" * (mode == _FOLDER), b"%s %s\0%s" % (mode, name, found)))
    return _object(b"tree", b"".join(entry for _, entry in sorted(entries))) if entries else None


def _entry(path: bytes, apart: dict[bytes, bytes]) -> tuple[bytes, bytes | None]:
    if apart and not os.path.lexists(path):
        return _FOLDER, _tree(os.fsdecode(path), apart)
    seen = os.lstat(path)
    if stat.S_ISDIR(seen.st_mode):
        return _FOLDER, _tree(os.fsdecode(path), apart)
    if stat.S_ISLNK(seen.st_mode):
        return _LINK, _object(b"blob", os.readlink(path))
    with open(path, "rb") as file:
        return _PROGRAM if seen.st_mode & stat.S_IXUSR else _FILE, _object(b"blob", file.read())
