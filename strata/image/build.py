"""Build the image once for each recipe, and keep it in the machine's cache.

A built image is a folder ``images/RECIPE`` of :func:`strata.base.places.home`: ``tree`` (the files, for
native runs), ``image.tar`` (for Docker), ``manifest.json`` and ``image.json``.
"""

import os
import platform
import time

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import read_json, remove_tree, write_json
from strata.base.locks import locked
from strata.base.process import as_root, capture
from strata.base.progress import say, step
from strata.experiment import recipe
from strata.image import intact, light, machine, manifest, rootfs, spare
from strata.image.cache import find, folder_of, kept, manifest_of, require
from strata.image.packer import run_packer
from strata.layers import docker


def ensure(config: dict, rebuild: bool = False) -> dict:
    """The image for the config's `image`: from the cache, or built now (some minutes)."""
    described = recipe.describe(config)
    name = described["recipe"]
    waiting = "image: another process is building it"
    # The image's files hold programs that give rights, and folders that everybody may write.
    os.makedirs(os.path.join(places.home(), "images"), exist_ok=True)
    os.chmod(os.path.join(places.home(), "images"), 0o700)
    with kept(), locked(os.path.join(places.home(), "images", f"{name}.lock"), waiting):
        found = find(name)
        image = None if rebuild else found
        if image:
            intact.verify(image)
            manifest_of(image)
            say("image", f"{name[:12]} is in the cache")
        else:
            remove_tree(folder_of(name))
            image = _build(config, described)
        spare.note(name, described["base"], built=found is None)
        return image


def ensure_machines(config: dict, forms: set[str]) -> str | None:
    """See that there is what machines of these forms boot from: in the cache, or built now.

    Returns what accelerates them, which is tried first; None where none of the forms is a machine's.
    """
    makers = {"disk": machine.ensure, "root": light.ensure}
    wanted = [make for form, make in makers.items() if form in forms]
    if not wanted:
        return None
    described = recipe.describe(config)
    with kept():
        accelerator = machine.probe(config)["accelerator"]
        for make in wanted:
            make(config, require(described["recipe"]), accelerator)
    return accelerator


def _build(config: dict, described: dict) -> dict:
    """Build it; what a build that failed or was killed made of it is removed."""
    begun = time.monotonic()
    name = described["recipe"]
    work = os.path.join(places.home(), "images", f"building-{name[:12]}")
    remove_tree(work)
    docker.start_daemon()
    docker.remove_builds(name)
    before = docker.named(name)
    os.makedirs(work)
    try:
        image = _made(config, described, work)
        # What was read while it was built must be what the name stands for.
        if recipe.describe(config)["recipe"] != name:
            raise UserError(
                "files that go into the image changed while it was built: run `python -m strata image` again"
            )
        os.rename(work, folder_of(name))
    except BaseException:
        docker.name_again(name, before)
        remove_tree(work)
        raise
    finally:
        # An image that was built again lost its name to the new one.
        docker.remove_builds(name)
    say("image", f"{name[:12]} built in {time.monotonic() - begun:.0f} s")
    return {**image, "folder": folder_of(name)}


def _made(config: dict, described: dict, work: str) -> dict:
    """Build the image into a folder; returns its facts."""
    image = {"recipe": described["recipe"]}
    tag = docker.tag(image)
    base_tag = docker.base_tag(described["base"])
    rootfs.ensure_tag(config, described, base_tag)

    with step("image", "provisioning with Packer"):
        run_packer(config, "docker.container", {"base": base_tag, "tag": tag, "recipe": docker.short(image)}, work)
    image_id = capture(["docker", "image", "inspect", "--format", "{{.Id}}", tag]).stdout.strip()

    archive, tree = os.path.join(work, "tree.tar"), os.path.join(work, "tree")
    with step("image", "unpacking the container image's files for native runs"):
        _export(tag, archive)
        os.makedirs(tree)
        capture(as_root(["tar", "-C", tree, "--numeric-owner", "-xpf", archive]), timeout=600)
        capture(["docker", "save", "--output", os.path.join(work, "image.tar"), tag], timeout=600)

    with step("image", "hashing every file"):
        listing = manifest.make(tree, archive)
    os.unlink(archive)
    write_json(os.path.join(work, "manifest.json"), listing)
    intact.note({"folder": work})
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
    return image


def _export(tag: str, archive: str) -> None:
    """The files of a container image as a tar archive."""
    container = capture(["docker", "create", tag, "true"]).stdout.strip()
    try:
        capture(["docker", "export", "--output", archive, container], timeout=600)
    finally:
        capture(["docker", "rm", container])


def publish(image: dict) -> None:
    """Write what the image is into the results, where it is not written yet."""
    there = (read_json(places.IMAGE) or {}).get("id") == image["id"]
    if there and manifest.digest(read_json("results/image-manifest.json")) == image["manifest_sha256"]:
        return
    known = {key: value for key, value in image.items() if key != "folder"}
    write_json("results/image-manifest.json", manifest_of(image))
    write_json(places.IMAGE, known)
