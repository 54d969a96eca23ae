"""Whether the image in the cache is still what was built: asked once for each run, without reading it.

What the kernel keeps of every file (size, times, inode, owner, rights) is compared with what was noted after the build.
"""

import os
from hashlib import sha256

from strata.base import run
from strata.base.errors import UserError
from strata.base.files import SEEN, read_json, write_json
from strata.base.process import as_root, capture
from strata.base.shapes import Image


def verify(image: Image) -> None:
    """Raise UserError where the tree is not what was built.  A run asks once."""
    noted, owner = read_json(_note(image)) or {}, run.owner()
    if noted.get("owner") == owner:
        return
    look = _look(image)
    if noted.get("look") != look:
        raise UserError(
            f"{image['folder']}/tree is not as it was built, so nothing is measured: run `python3 -m strata image "
            "--rebuild`"
        )
    write_json(_note(image), {"look": look, "owner": owner})


def note(image: Image) -> None:
    """Note what the kernel keeps of every file of an image that was built just now."""
    write_json(_note(image), {"look": _look(image), "owner": None})


def _note(image: Image) -> str:
    return os.path.join(image["folder"], "stamp.json")


def _look(image: Image) -> str:
    """A hash of what the kernel keeps of every file."""
    listed = capture(as_root(["find", os.path.join(image["folder"], "tree"), "-xdev", *SEEN])).stdout.splitlines()
    return sha256("\n".join(sorted(listed)).encode()).hexdigest()
