"""Images in the machine's cache; cells read them without importing what builds them."""

import os
import re
from contextlib import AbstractContextManager

from strata.util import locks, paths
from strata.util.data_types import Image
from strata.util.errors import UserError
from strata.util.files import read_json
from strata.util.process import capture_output, wrap_as_root


def get_image_folder(recipe: str) -> str:
    """Return the path of the folder of a recipe's image in the cache; the folder may be missing.

    recipe: the recipe's hash.
    """
    return os.path.join(paths.get_home_folder(), "images", recipe)


def find_image(recipe: str) -> Image | None:
    """Return the facts of a recipe's image, and its `folder`; None if it is not in the cache.

    recipe: the recipe's hash.
    The facts are those of image.json (docs/files.md), which exists in complete images only.
    """
    folder = get_image_folder(recipe)
    image: Image | None = read_json(os.path.join(folder, "image.json"))
    return {**image, "folder": folder} if image else None


def require_image(recipe: str) -> Image:
    """Return the facts of a recipe's image, which are those of image.json, and its `folder`.

    recipe: the recipe's hash.
    Raises UserError with the remedy if the image is not in the cache.
    """
    image = find_image(recipe)
    if image is None:
        raise UserError(
            f"the image {recipe[:12]} is not in {paths.get_home_folder()}: run `python3 -m strata "
            "image` to build it again"
        )
    return image


def lock_cache(wait: bool = True) -> AbstractContextManager[bool]:
    """Hold the lock of the image cache during a `with` block, and yield whether the lock is held.

    No image may be built or removed without this lock.
    wait: whether to wait for another process that holds the lock.  With `wait`, the yielded value
    is false only if the lock's file was removed meanwhile.
    The lock ends with the process that holds it.
    """
    path = os.path.join(paths.get_home_folder(), "images", "cache.lock")
    return locks.hold_lock(path, "image: another process makes or removes one", wait)


def list_image_recipes() -> list[str]:
    """Return the recipes' hashes of the cached images, complete or not, the last used first.

    The time of last use is the folder's modification time, which
    :func:`strata.image.build.ensure_image` sets.  The folder of the cache must exist.
    """
    names = os.listdir(os.path.join(paths.get_home_folder(), "images"))
    recipes = [name for name in names if re.fullmatch("[0-9a-f]{64}", name)]
    return sorted(recipes, key=lambda name: os.path.getmtime(get_image_folder(name)), reverse=True)


def require_unchanged_tree(image: Image) -> None:
    """Check that an image's files were not changed since the image was built.

    image: the image, as :func:`find_image` returns it.
    No file is read: the time of a file's last change (ctime), which no program can set back, must
    not be later than that of image.json.  Adding or removing a file changes the time of its folder.
    Runs `find` as root.  Each run of Snakemake that needs the image begins with this check.
    Raises UserError, which names the first changed file.
    """
    tree = os.path.join(image["folder"], "tree")
    reference_file = os.path.join(image["folder"], "image.json")
    # -newercc compares the times of change of both; -quit ends at the first file.
    find_changed = ["find", tree, "-xdev", "-newercc", reference_file, "-print", "-quit"]
    changed_path = capture_output(wrap_as_root(find_changed)).stdout.strip()
    if changed_path:
        raise UserError(
            f"{changed_path} is not as it was built, so nothing is measured: `python3 -m strata "
            "clean --images` removes it, and the next run builds it again"
        )
