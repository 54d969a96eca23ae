"""Images in the machine's cache.  A cell asks no more than this, and starts without what builds them."""

import os
import re
from contextlib import AbstractContextManager

from strata.util import locks, paths
from strata.util.data_types import Image
from strata.util.errors import UserError
from strata.util.files import read_json
from strata.util.process import as_root, capture


def folder_of(name: str) -> str:
    """The folder of an image in the cache."""
    return os.path.join(paths.home(), "images", name)


def find(name: str) -> Image | None:
    """The image of a recipe from the cache, with its `folder`; None if it is not there, whole."""
    folder = folder_of(name)
    image: Image | None = read_json(os.path.join(folder, "image.json"))
    return {**image, "folder": folder} if image else None


def require(name: str) -> Image:
    """Like :func:`find`, but a missing image is an error that says how to get it."""
    image = find(name)
    if image is None:
        raise UserError(
            f"the image {name[:12]} is not in {paths.home()}: run `python3 -m strata image` to build it again"
        )
    return image


def locked(wait: bool = True) -> AbstractContextManager[bool]:
    """While it is held nobody else makes something in the cache, or removes it; gives whether it is held."""
    path = os.path.join(paths.home(), "images", "cache.lock")
    return locks.locked(path, "image: another process makes or removes one", wait)


def names() -> list[str]:
    """The recipes of the images in the cache, whole or not, the last used first."""
    there = os.path.join(paths.home(), "images")
    found = [name for name in os.listdir(there) if re.fullmatch("[0-9a-f]{64}", name)]
    return sorted(found, key=lambda name: os.path.getmtime(folder_of(name)), reverse=True)


def verify(image: Image) -> None:
    """Raise UserError where the image's tree is not what was built.

    No file is read: none may have changed since by the kernel's own time of that, which nobody sets back.  Of what was
    added or removed the folder has changed.
    """
    built = os.path.join(image["folder"], "image.json")
    look = [
        "find",
        os.path.join(image["folder"], "tree"),
        "-xdev",
        "-newercc",
        built,
        "-print",
        "-quit",
    ]
    if changed := capture(as_root(look)).stdout.strip():
        raise UserError(
            f"{changed} is not as it was built, so nothing is measured: `python3 -m strata clean --images` removes it, "
            "and the next run builds it again"
        )
