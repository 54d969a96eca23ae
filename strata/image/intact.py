"""Whether the image in the cache is still what was built: asked once for each run, without reading it all each time.

What the kernel keeps of every file (size, times, inode, owner, rights) is compared with what was noted after the
build.  Only where that differs all files are read, and compared with the manifest.
"""

import os
import time
from hashlib import sha256

from strata.base import run
from strata.base.errors import UserError
from strata.base.files import SEEN, read_json, write_json
from strata.base.process import as_root, capture
from strata.base.progress import say
from strata.image.cache import manifest_of


def verify(image: dict) -> None:
    """Raise UserError, with the name of a file, where the tree is not what was built.  A run asks once."""
    noted, owner = read_json(_path(image)) or {}, run.owner()
    if noted.get("owner") == owner:
        return
    look = _look(image)
    if noted.get("look") != look:
        _read_all(image)
    write_json(_path(image), {"look": look, "owner": owner})


def note(image: dict) -> None:
    """Note what the kernel keeps of every file of an image that was built just now."""
    write_json(_path(image), {"look": _look(image), "owner": None})


def _tree(image: dict) -> str:
    return os.path.join(image["folder"], "tree")


def _path(image: dict) -> str:
    return os.path.join(image["folder"], "stamp.json")


def _look(image: dict) -> str:
    """A hash of what the kernel keeps of every file."""
    listed = capture(as_root(["find", _tree(image), "-xdev", *SEEN])).stdout.splitlines()
    return sha256("\n".join(sorted(listed)).encode()).hexdigest()


def _read_all(image: dict) -> None:
    """Compare every file with the manifest.  Raises UserError."""
    from strata.image import manifest

    begun = time.monotonic()
    say("image", "reading all its files again, since they changed after the build …")
    expected, found = manifest_of(image)["files"], manifest.hash_tree(_tree(image))
    wrong = sorted(path for path in {*expected, *found} if expected.get(path) != found.get(path))
    if wrong:
        path = wrong[0]
        how = "is gone" if path not in found else "was added" if path not in expected else "is not what was built"
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise UserError(
            f"{os.path.join(_tree(image), path)} {how}{more}: nothing is measured with it; "
            "run `python3 -m strata image --rebuild`"
        )
    say("image", f"all {len(found)} files are as they were built: {time.monotonic() - begun:.0f} s")
