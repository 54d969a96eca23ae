"""Images in the machine's cache.  A cell asks no more than this, and starts without what builds them."""

import os
import re
from contextlib import AbstractContextManager

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import read_json
from strata.base.locks import locked
from strata.base.shapes import Image


def folder_of(name: str) -> str:
    """The folder of an image in the cache."""
    return os.path.join(places.home(), "images", name)


def find(name: str) -> Image | None:
    """The image of a recipe from the cache, with its `folder`; None if it is not there, whole."""
    folder = folder_of(name)
    image: Image | None = read_json(os.path.join(folder, "image.json"))
    if image:
        image["folder"] = folder
    return image or None


def require(name: str) -> Image:
    """Like :func:`find`, but a missing image is an error that says how to get it."""
    image = find(name)
    if image is None:
        raise UserError(
            f"the image {name[:12]} is not in {places.home()}: run `python3 -m strata image` to build it again"
        )
    return image


def lock() -> str:
    """The file whose lock is held by those who need what is in the cache, and alone by who removes something."""
    return os.path.join(places.home(), "images", "cache.lock")


def kept() -> AbstractContextManager[bool]:
    """While it is held nothing is removed from the cache (:mod:`strata.image.prune`)."""
    return locked(lock(), "image: another process removes what is not needed", shared=True)


def names() -> list[str]:
    """The recipes of the images in the cache, whole or not, the last used first."""
    there = os.path.join(places.home(), "images")
    found = [name for name in os.listdir(there) if re.fullmatch("[0-9a-f]{64}", name)] if os.path.isdir(there) else []
    return sorted(found, key=lambda name: os.path.getmtime(folder_of(name)), reverse=True)


def used(name: str) -> None:
    """Note that an image is used now: the last ones that were stay in the cache."""
    os.utime(folder_of(name))
