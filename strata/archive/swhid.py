"""The SWHID of source code: the name by which Software Heritage knows a folder, computed from its bytes alone.

It is the hash that git gives the folder's tree, so that a source without changes has that of its revision.
"""

import hashlib
import os
import stat

_FILE, _PROGRAM, _LINK, _FOLDER = b"100644", b"100755", b"120000", b"40000"


def of_folder(folder: str) -> str:
    """The SWHID of a folder with all that is in it, but for folders without files, which git does not know."""
    return f"swh:1:dir:{(_tree(folder) or _object(b'tree', b'')).hex()}"


def _object(kind: bytes, content: bytes) -> bytes:
    return hashlib.sha1(b"%s %d\0%s" % (kind, len(content), content), usedforsecurity=False).digest()


def _tree(folder: str) -> bytes | None:
    """The hash of a folder's tree; None where there is no file in it."""
    entries = []
    for name in os.listdir(os.fsencode(folder)):
        path = os.path.join(os.fsencode(folder), name)
        mode, found = _entry(path)
        if found is not None:
            # Folders have their place as if their names ended with a slash.
            entries.append((name + b"/" * (mode == _FOLDER), b"%s %s\0%s" % (mode, name, found)))
    return _object(b"tree", b"".join(entry for _, entry in sorted(entries))) if entries else None


def _entry(path: bytes) -> tuple[bytes, bytes | None]:
    seen = os.lstat(path)
    if stat.S_ISDIR(seen.st_mode):
        return _FOLDER, _tree(os.fsdecode(path))
    if stat.S_ISLNK(seen.st_mode):
        return _LINK, _object(b"blob", os.readlink(path))
    with open(path, "rb") as file:
        return _PROGRAM if seen.st_mode & stat.S_IXUSR else _FILE, _object(b"blob", file.read())
