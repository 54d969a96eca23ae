"""What the machine's cache holds of images: the last three that were used stay, with their bases and boxes."""

import os

from strata import layers
from strata.base import places
from strata.base.files import clear_tree, remove_tree
from strata.base.progress import say
from strata.image import cache
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
            disk.remove(name)
            remove_tree(cache.folder_of(name))
        for name in sorted(name for name in os.listdir(folder) if name.startswith("building-")):
            clear_tree(os.path.join(folder, name))
            removed.append(name.replace("building-", "unfinished image "))
        images = [image for name in cache.names() if (image := cache.find(name))]
        needed = {tag for image in images for tag in (engine.tag(image), engine.base_tag(image["base"]))}
        return [*removed, *(words for name in layers.names() for words in layers.kind(name).discard(needed))]
