"""What the machine's cache holds of images: the last three that were used stay, with their bases and boxes."""

import os

from strata import layers
from strata.base import places
from strata.base.files import clear_tree, remove_tree
from strata.base.progress import say
from strata.image import cache, rootfs
from strata.layers.common import engine
from strata.vm import disk

KEPT = 3


def prune(keep: int = KEPT) -> list[str]:
    """Remove all images but the last used, and what belongs to none; what it was, in words.

    Nothing goes while another process makes something here.  The caller sees that no system is up.
    """
    folder = os.path.join(places.home(), "images")
    if not os.path.isdir(folder):
        return []
    with cache.locked(wait=False) as alone:
        if not alone:
            say("image", "nothing is removed from the cache, since another process makes an image")
            return []
        removed = [f"image {name[:12]}" for name in cache.names()[keep:]]
        for name in cache.names()[keep:]:
            remove_tree(cache.folder_of(name))
        images = {name: cache.find(name) for name in cache.names()}
        bases = {image["base"] for image in images.values() if image}
        kept = {os.path.basename(rootfs.path_of(base)) for base in bases}
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if name.startswith("building-") or (name.startswith("base-") and name.partition(".")[0] not in kept):
                clear_tree(path)
                removed.append(name.replace("building-", "unfinished image "))
        removed += disk.prune(set(images))
        needed = {*(engine.tag({"recipe": name}) for name in images), *map(engine.base_tag, bases)}
        return [*removed, *(words for name in layers.names() for words in layers.kind(name).discard(needed))]
