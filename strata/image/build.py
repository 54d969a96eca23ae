"""Build the image once for each recipe, and keep it in the machine's cache.

A built image is a folder ``images/RECIPE`` of :func:`strata.base.places.home`: ``tree`` (the files, for
native runs), ``image.tar`` (for Docker), ``manifest.json`` and ``image.json``.
"""

import os
import platform
import time

from strata.base import places
from strata.base.files import read_json, remove_tree, write_json
from strata.base.locks import locked
from strata.base.process import as_root, capture
from strata.base.progress import say
from strata.experiment import recipe
from strata.image import machine, manifest, rootfs
from strata.image.cache import find, folder_of, require
from strata.image.packer import run_packer
from strata.layers import docker


def ensure(config: dict, rebuild: bool = False) -> dict:
    """The image for the config's `image`: from the cache, or built now (about a minute)."""
    described = recipe.describe(config)
    name = described["recipe"]
    waiting = "image: another process is building it"
    with locked(os.path.join(places.home(), "images", f"{name}.lock"), waiting):
        image = None if rebuild else find(name)
        if image:
            say("image", f"{name[:12]} is in the cache")
            return image
        remove_tree(folder_of(name))
        return _build(config, described)


def ensure_machine(config: dict) -> dict:
    """The image's disk for virtual machines: from the cache, or built now; what accelerates them is tried first.

    Returns the facts of :func:`strata.vm.disk.find`.
    """
    described = recipe.describe(config)
    found = machine.probe(config, described)
    return machine.ensure(config, require(described["recipe"]), found["accelerator"])


def _build(config: dict, described: dict) -> dict:
    begun = time.monotonic()
    name = described["recipe"]
    work = os.path.join(places.home(), "images", f"building-{name[:12]}")
    remove_tree(work)
    os.makedirs(work)
    docker.start_daemon()
    base_tag = f"strata/base:{described['base'][:12]}"
    rootfs.ensure_tag(config, described, base_tag)

    say("image", "provisioning with Packer")
    image = {"recipe": name}
    run_packer("docker.container", {"base": base_tag, "tag": docker.tag(image), "recipe": name[:12]}, work)
    image_id = capture(["docker", "image", "inspect", "--format", "{{.Id}}", docker.tag(image)]).stdout.strip()

    say("image", "unpacking the container image's files for native runs")
    archive, tree = os.path.join(work, "tree.tar"), os.path.join(work, "tree")
    _export(docker.tag(image), archive)
    os.makedirs(tree)
    capture(as_root(["tar", "-C", tree, "--numeric-owner", "-xpf", archive]), timeout=600)
    capture(["docker", "save", "--output", os.path.join(work, "image.tar"), docker.tag(image)], timeout=600)

    say("image", "hashing every file")
    listing = manifest.make(tree, archive)
    os.unlink(archive)
    write_json(os.path.join(work, "manifest.json"), listing)
    image |= {
        "format": 1,
        "id": image_id,
        "distribution": described["distribution"],
        "release": described["release"],
        "architecture": platform.machine(),
        "package_count": len(listing["packages"]),
        "file_count": len(listing["files"]),
        "manifest_sha256": manifest.digest(listing),
        "built": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    write_json(os.path.join(work, "image.json"), image)
    os.rename(work, folder_of(name))
    say("image", f"{name[:12]} built in {time.monotonic() - begun:.0f} s")
    return {**image, "folder": folder_of(name)}


def _export(tag: str, archive: str) -> None:
    """The files of a container image as a tar archive."""
    container = capture(["docker", "create", tag, "true"]).stdout.strip()
    try:
        capture(["docker", "export", "--output", archive, container], timeout=600)
    finally:
        capture(["docker", "rm", container])


def publish(image: dict) -> None:
    """Write what the image is into the results, where it is not written yet."""
    if (read_json(places.IMAGE) or {}).get("id") == image["id"] and os.path.exists("results/image-manifest.json"):
        return
    known = {key: value for key, value in image.items() if key != "folder"}
    listing = read_json(os.path.join(image["folder"], "manifest.json"))
    write_json("results/image-manifest.json", listing)
    write_json(places.IMAGE, known)
