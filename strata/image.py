"""Build the image once for each recipe, and keep it in the machine's cache.

A built image is a folder ``images/RECIPE`` of :func:`strata.places.home`: ``tree`` (the files, for
native runs), ``image.tar`` (for Docker), ``manifest.json`` and ``image.json``.
"""

import os
import platform
import shutil
import sys
import time

from strata import distribution, manifest, places, recipe
from strata.errors import UserError
from strata.files import locked, read_json, remove_tree, write_json
from strata.layers import docker
from strata.process import as_root, capture


def folder_of(name: str) -> str:
    """The folder of an image in the cache."""
    return os.path.join(places.home(), "images", name)


def find(name: str) -> dict | None:
    """The image of a recipe from the cache, with its `folder`; None if it is not there, whole."""
    folder = folder_of(name)
    image = read_json(os.path.join(folder, "image.json"))
    return {**image, "folder": folder} if image else None


def require(name: str) -> dict:
    """Like :func:`find`, but a missing image is an error that says how to get it."""
    image = find(name)
    if image is None:
        raise UserError(
            f"the image {name[:12]} is not in {places.home()}: run `python -m strata image` to build it again"
        )
    return image


def say(text: str) -> None:
    """Tell where a long build is."""
    print(f"image: {text}", file=sys.stderr, flush=True)


def ensure(config: dict, rebuild: bool = False) -> dict:
    """The image for the config's `image`: from the cache, or built now (about a minute)."""
    described = recipe.describe(config)
    name = described["recipe"]
    waiting = "image: another process is building it; waiting"
    with locked(os.path.join(places.home(), "images", f"{name}.lock"), waiting):
        image = None if rebuild else find(name)
        if image:
            say(f"{name[:12]} is in the cache")
            return image
        remove_tree(folder_of(name))
        return _build(config, described)


def _build(config: dict, described: dict) -> dict:
    begun = time.monotonic()
    name = described["recipe"]
    work = os.path.join(places.home(), "images", f"building-{name[:12]}")
    remove_tree(work)
    os.makedirs(work)
    docker.start_daemon()
    base_tag = f"strata/base:{described['base'][:12]}"
    _bootstrap(config, described, base_tag, work)

    say("provisioning with Packer")
    image = {"recipe": name}
    _run_packer(base_tag, docker.tag(image), work)
    image_id = capture(["docker", "image", "inspect", "--format", "{{.Id}}", docker.tag(image)]).stdout.strip()

    say("unpacking the container image's files for native runs")
    archive, tree = os.path.join(work, "tree.tar"), os.path.join(work, "tree")
    _export(docker.tag(image), archive)
    os.makedirs(tree)
    capture(as_root(["tar", "-C", tree, "--numeric-owner", "-xpf", archive]), timeout=600)
    capture(["docker", "save", "--output", os.path.join(work, "image.tar"), docker.tag(image)], timeout=600)

    say("hashing every file")
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
    shutil.rmtree(os.path.join(work, "context"))
    write_json(os.path.join(work, "image.json"), image)
    os.rename(work, folder_of(name))
    say(f"{name[:12]} built in {time.monotonic() - begun:.0f} s")
    return {**image, "folder": folder_of(name)}


def _bootstrap(config: dict, described: dict, tag: str, work: str) -> None:
    """See that the base root filesystem of this recipe is in Docker."""
    if capture(["docker", "image", "inspect", tag], check=False).returncode == 0:
        say("the base root filesystem is there")
        return
    say(f"bootstrapping {described['distribution']} {described['release']} with mmdebstrap")
    host = distribution.os_release()
    listing = os.path.join(work, "sources.list")
    with open(listing, "w") as file:
        file.write(distribution.sources(described, config.get("mirror"), host))
    archive = os.path.join(work, "base.tar")
    configuration = capture(["apt-config", "dump"]).stdout.splitlines()
    options = [f"--aptopt={line}" for line in configuration if line.startswith("Acquire::") and '"";' not in line]
    capture(
        ["mmdebstrap", "--variant=minbase", f"--include={','.join(recipe.packages())}", *options]
        + [described["release"], archive, listing],
        timeout=1800,
    )
    capture(["docker", "import", archive, tag], timeout=600)
    os.unlink(archive)
    os.unlink(listing)


def _run_packer(base: str, tag: str, work: str) -> None:
    context = os.path.join(work, "context")
    for path in recipe.files():
        if path.startswith("workloads/"):
            os.makedirs(os.path.join(context, os.path.dirname(path)), exist_ok=True)
            shutil.copy(path, os.path.join(context, path))
    with open(os.path.join(context, "workloads", "packages"), "w") as file:
        file.write("\n".join(recipe.packages()) + "\n")
    log = os.path.join(places.home(), "images", "packer.log")
    command = ["env", "CHECKPOINT_DISABLE=1", "PACKER_LOG=1", f"PACKER_LOG_PATH={log}", "packer", "build"]
    variables = ["-color=false", "-var", f"base={base}", "-var", f"tag={tag}", "-var", f"context={context}"]
    done = capture([*command, *variables, "packer/image.pkr.hcl"], timeout=3600, check=False)
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise UserError(f"Packer could not provision the image (whole log: {log}):\n{last}")


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
