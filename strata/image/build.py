"""Build the image once for each recipe, by one run of Packer, and keep it in the machine's cache.

A built image is a folder ``images/RECIPE`` of :func:`strata.base.places.home`: ``tree`` (the files, for
native runs), ``image.tar`` (for Docker in a machine), ``manifest.json`` and ``image.json``; machines start from a
box of Vagrant's (:mod:`strata.vm.disk`) with the same files.
"""

import os
import platform
import shutil
import time
from typing import cast

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import read_json, remove_tree, write_json
from strata.base.locks import held, locked
from strata.base.process import as_root, capture
from strata.base.progress import say, step
from strata.base.shapes import Described, Fields, Image
from strata.experiment import recipe
from strata.image import intact, manifest, rootfs
from strata.image.cache import find, folder_of, kept, used
from strata.layers import docker
from strata.layers.common import engine
from strata.vm import acceleration, disk


def ensure(config: Fields, rebuild: bool = False, machines: bool = False) -> Image:
    """The image for the config's `image`: from the cache, or built now (some minutes); with a box for machines, too."""
    described = recipe.describe(config)
    name = described["recipe"]
    waiting = "image: another process is building it"
    # The image's files hold programs that give rights, and folders that everybody may write.
    os.makedirs(os.path.join(places.home(), "images"), exist_ok=True)
    os.chmod(os.path.join(places.home(), "images"), 0o700)
    with kept(), locked(os.path.join(places.home(), "images", f"{name}.lock"), waiting):
        image = None if rebuild else find(name)
        if image:
            intact.verify(image)
            say("image", f"{name[:12]} is in the cache")
        else:
            remove_tree(folder_of(name))
            image = _build(config, described, machines)
        if machines and not disk.whole(name):
            _make_box(image)
        used(name)
    return image


def probe(config: Fields) -> Fields:
    """What accelerates virtual machines here; tried now, with the image's own kernel, if it is not known."""
    found = acceleration.known()
    if found["accelerator"] is None:
        with kept(), step("vm", "testing whether KVM runs a guest"):
            found = acceleration.attempt(rootfs.ensure_kernel(config, recipe.describe(config)))
        say("vm", f"{acceleration.shown(found['accelerator'])}: {found['accelerator_reason']}")
    return found


def _build(config: Fields, described: Described, machines: bool) -> Image:
    """Build it; what a build that failed or was killed made of it is removed."""
    begun = time.monotonic()
    name = described["recipe"]
    work = os.path.join(places.home(), "images", f"building-{name[:12]}")
    remove_tree(work)
    docker.start_daemon()
    remove_builds(name)
    before = _named(name)
    os.makedirs(work)
    try:
        image = _made(config, described, work, machines)
        # What was read while it was built must be what the name stands for.
        if recipe.describe(config)["recipe"] != name:
            raise UserError(
                "files that go into the image changed while it was built: run `python3 -m strata image` again"
            )
        if machines:
            disk.put(name, os.path.join(work, "box"))
        os.rename(work, folder_of(name))
    except BaseException:
        _name_again(name, before)
        remove_tree(work)
        raise
    finally:
        # An image that was built again lost its name to the new one.
        remove_builds(name)
    say("image", f"{name[:12]} built in {time.monotonic() - begun:.0f} s")
    return cast(Image, {**image, "folder": folder_of(name)})


def _made(config: Fields, described: Described, work: str, machines: bool) -> Fields:
    """Build the image into a folder; returns its facts."""
    image: Fields = {"recipe": described["recipe"]}
    tag = engine.tag(image)
    base_tag = engine.base_tag(described["base"])
    rootfs.ensure_tag(config, described, base_tag)
    with step("image", "provisioning and packaging with Packer"):
        _run_packer(
            config,
            {
                "base": base_tag,
                "tag": tag,
                "recipe": image["recipe"][:12],
                "home": places.home_mark(),
                "output": work,
                "box": "yes" if machines else "no",
            },
        )
    image_id = capture(["docker", "image", "inspect", "--format", "{{.Id}}", tag]).stdout.strip()
    tree, archive = os.path.join(work, "tree"), os.path.join(work, "tree.tar")
    with step("image", "hashing every file"):
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
        "base": described["base"],
        "built": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    intact.note(cast(Image, {**image, "folder": work}))
    write_json(os.path.join(work, "image.json"), image)
    return image


def _run_packer(config: Fields, variables: dict[str, str]) -> None:
    """Run the build with the workloads of the image.  Raises UserError with the end of what Packer said."""
    context = os.path.join(variables["output"], "context")
    for path in recipe.files(config):
        if path.startswith("workloads/"):
            os.makedirs(os.path.join(context, os.path.dirname(path)), exist_ok=True)
            shutil.copy(path, os.path.join(context, path))
    os.makedirs(os.path.join(context, "workloads"), exist_ok=True)
    with open(os.path.join(context, "workloads", "packages"), "w") as file:
        file.write("\n".join(recipe.packages(config)) + "\n")
    log = os.path.join(places.home(), "images", "packer.log")
    settings = ["CHECKPOINT_DISABLE=1", "PACKER_LOG=1", f"PACKER_LOG_PATH={log}", f"PACKER_CACHE_DIR={context}/cache"]
    words = [word for key, value in {**variables, "context": context}.items() for word in ("-var", f"{key}={value}")]
    command = ["env", *settings, "packer", "build", "-color=false", *words, "packer/image.pkr.hcl"]
    done = capture(command, timeout=3600, check=False)
    shutil.rmtree(context)
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise UserError(f"Packer could not make the image (whole log: {log}):\n{last}")


def remove_builds(recipe: str) -> None:
    """Remove what builds of a recipe left: containers that were provisioned, and images that have no name."""
    short = recipe[:12]
    ours = ["--filter", f"label={engine.LABEL}={places.home_mark()}", "--filter", f"label={engine.BUILDING}={short}"]
    found = capture(["docker", "ps", "--all", "--quiet", *ours], check=False).stdout.split()
    if found:
        capture(["docker", "rm", "--force", "--volumes", *found], check=False)
    nameless = ["--filter", f"label=strata.image={places.home_mark()}", "--filter", f"label=strata.recipe={short}"]
    capture(["docker", "image", "prune", "--force", *nameless], timeout=600, check=False)


def sweep() -> list[str]:
    """Remove what builds left that no process is at: each holds the lock of its recipe; what they were, in words."""
    if not docker.Kind().answers():
        return []
    ours = ["--filter", f"label={engine.LABEL}={places.home_mark()}", "--filter", f"label={engine.BUILDING}"]
    form = f'{{{{.Label "{engine.BUILDING}"}}}}'
    listed = set(capture(["docker", "ps", "--all", *ours, "--format", form], check=False).stdout.split())
    folder = os.path.join(places.home(), "images")
    locks = [name for name in os.listdir(folder) if name.endswith(".lock")] if os.path.isdir(folder) else []
    left = listed - {name[:12] for name in locks if held(os.path.join(folder, name))}
    for name in left:
        remove_builds(name)
    return [f"unfinished build of image {name}" for name in sorted(left)]


def _named(recipe: str) -> str | None:
    """Id of the image that Docker has under the name of a recipe, whoever built it; None where it has none."""
    form = ["docker", "image", "inspect", "--format", "{{.Id}}", engine.tag({"recipe": recipe})]
    return capture(form, check=False).stdout.strip() or None


def _name_again(recipe: str, before: str | None) -> None:
    """Give a recipe's name back to the image that had it before a build that failed, or to none."""
    name = engine.tag({"recipe": recipe})
    capture(["docker", "image", "rm", name] if before is None else ["docker", "tag", before, name], check=False)


def _make_box(image: Image) -> None:
    """Make the box of an image that was built without one, or whose box is not as it was made."""
    work = os.path.join(places.home(), "images", f"building-box-{image['recipe'][:12]}")
    remove_tree(work)
    begun = time.monotonic()
    try:
        with step("vm", "making the machines' disk from the image's files"):
            parts = [os.path.join(image["folder"], name) for name in ("tree", "image.tar")]
            capture(as_root([os.path.abspath("packer/box.sh"), *parts, work]), timeout=1800)
        disk.put(image["recipe"], work)
    except BaseException:
        remove_tree(work)
        raise
    say("vm", f"disk of {image['recipe'][:12]} made in {time.monotonic() - begun:.0f} s")


def publish(image: Image) -> None:
    """Write what the image is into the results, where it is not written yet."""
    if (read_json(places.IMAGE) or {}).get("id") == image["id"] and os.path.exists(places.MANIFEST):
        return
    os.makedirs(os.path.dirname(places.MANIFEST), exist_ok=True)
    shutil.copyfile(os.path.join(image["folder"], "manifest.json"), places.MANIFEST)
    write_json(places.IMAGE, {key: value for key, value in image.items() if key not in ("folder", "base")})
