"""Build the image once for each recipe, by one run of Packer, and keep it in the machine's cache.

A built image is a folder ``images/RECIPE`` of :func:`strata.util.paths.home`: ``tree`` (the files, for
native runs), ``image.tar`` (for Docker in a machine), ``manifest.json`` and ``image.json``; machines start from a
box of Vagrant's (:mod:`strata.vm.vagrant_box`) that is made of these.
"""

import contextlib
import glob
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator, Sequence

from strata.environments import docker
from strata.environments.common import engine, registry
from strata.experiment import recipe
from strata.host import daemons, distribution
from strata.image import cache, manifest
from strata.util import paths, programs
from strata.util.data_types import Described, Fields, Image
from strata.util.errors import MachineError, UserError
from strata.util.files import remove_tree, remove_whole, write_json, write_text
from strata.util.process import as_root, capture, remedy
from strata.util.progress import say, step
from strata.vm import acceleration, vagrant_box

# So many of the images that were used last stay, with their bases and boxes.
KEPT = 3
# What a build starts has this variable, with the home's mark: whatever becomes of the build, its processes are found.
BUILDING = "STRATA_BUILDING"
# Ends all processes that have the variable "$1" (with its value), and those that they start meanwhile.
END = """
for _ in $(seq 100); do
    left=$(grep -lszxFe "$1" /proc/[0-9]*/environ | cut -d / -f 3)
    [ -n "$left" ] || exit 0
    kill -KILL $left 2>/dev/null
    sleep 0.05
done
exit 1
"""


def ensure(config: Fields, machines: bool = False) -> Image:
    """The image for the config's `image`: from the cache, or built now (some minutes); with a box for machines, too."""
    described = recipe.describe(config)
    name, folder = described["recipe"], os.path.join(paths.home(), "images")
    # The image's files hold programs that give rights, and folders that everybody may write.
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o700)
    with cache.locked():
        if image := cache.find(name):
            say("image", f"{name[:12]} is in the cache")
        else:
            image = _build(config, described)
        if machines and not vagrant_box.whole(name):
            making = "making the machines' disk from the image's files"
            with _begun(f"box-{name[:12]}") as work, step("vm", making):
                parts = [os.path.join(image["folder"], part) for part in ("tree", "image.tar")]
                capture(
                    _marked(work, [os.path.abspath("packer/box.sh"), *parts, work], root=True),
                    timeout=1800,
                )
                vagrant_box.put(name, work)
        # The last ones that were used stay.
        os.utime(cache.folder_of(name))
    return image


def probe(config: Fields) -> Fields:
    """What accelerates virtual machines here; tried now, with the image's own kernel, if it is not known."""
    found = acceleration.known()
    if found["accelerator"] is None:
        box = vagrant_box.require(ensure(config, machines=True)["recipe"])
        with step("vm", "testing whether KVM runs a guest"):
            found = acceleration.attempt(os.path.join(box["folder"], "kernel"))
        say("vm", f"{acceleration.CALLED[found['accelerator']]}: {found['accelerator_reason']}")
    return found


@contextlib.contextmanager
def _begun(name: str) -> Iterator[str]:
    """The folder in which something is built, made before anything else; all that is left of it goes at the end."""
    work = paths.unfinished(name)
    _remove_unfinished(work)
    os.makedirs(work)
    try:
        yield work
    finally:
        _remove_unfinished(work)


def _remove_unfinished(work: str) -> None:
    if os.path.isdir(work):
        _end_processes()
        remove_tree(work, unmount=True)


def _end_processes() -> None:
    """End what killed builds left running."""
    end = ["sh", "-uc", END, "strata", f"{BUILDING}={paths.home_mark()}"]
    capture(end, check=False)
    with contextlib.suppress(UserError):
        # Who may not has started nothing as root.
        capture(as_root(end), check=False)


def _marked(work: str, argv: Sequence[str], root: bool = False) -> list[str]:
    """A command of a build: it has the mark, and its temporary files lie in the folder where something is built."""
    if not daemons.where(argv[0]):
        raise MachineError(f"{argv[0]} is not installed: run `make setup`")
    marked = ["env", f"{BUILDING}={paths.home_mark()}", f"TMPDIR={work}", *argv]
    return as_root(marked) if root else marked


def _build(config: Fields, described: Described) -> Image:
    name = described["recipe"]
    docker.start_daemon()
    _remove_builds()
    try:
        with _begun(name[:12]) as work:
            _make(config, described, work)
            # What was read while it was built must be what the name stands for.
            if recipe.describe(config)["recipe"] != name:
                raise UserError(
                    "files that go into the image changed while it was built: run `python3 -m strata image` again"
                )
            os.rename(work, cache.folder_of(name))
    finally:
        _remove_builds()
        # One that failed is not in the cache, and one that was built again has lost its name; the base serves again.
        _discard(engine.base_tag(described["base"]))
    say("image", f"{name[:12]} is built")
    return cache.require(name)


def _make(config: Fields, described: Described, work: str) -> None:
    """Build the image into a folder."""
    tag, base = engine.tag(described), _base(config, described)
    with step("image", "provisioning with Packer"):
        _run_packer(config, work, {"base": base, "tag": tag, "home": paths.home_mark()})
    with step("image", "taking its files out of Docker"):
        archive = _take_out(tag, work)
    with step("image", "hashing every file"):
        listing = {
            "packages": manifest.packages(os.path.join(work, "tree")),
            "files": manifest.hash_archive(archive),
        }
    os.unlink(archive)
    write_json(os.path.join(work, "manifest.json"), listing)
    image: Fields = {
        "recipe": described["recipe"],
        "format": 1,
        "id": capture(["docker", "image", "inspect", "--format", "{{.Id}}", tag]).stdout.strip(),
        "distribution": described["distribution"],
        "release": described["release"],
        "architecture": platform.machine(),
        "package_count": len(listing["packages"]),
        "file_count": len(listing["files"]),
        "manifest_sha256": manifest.digest(listing),
        "base": described["base"],
        "built": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    write_json(os.path.join(work, "image.json"), image)


def _base(config: Fields, described: Described) -> str:
    """See that Docker has the base: the distribution's packages, bootstrapped now (about a minute); its name there."""
    tag, release = engine.base_tag(described["base"]), described["release"]
    if capture(["docker", "image", "inspect", tag], check=False).returncode == 0:
        say("image", "the base root filesystem is in the cache")
        return tag
    configuration = capture(["apt-config", "dump"]).stdout.splitlines()
    options = [
        f"--aptopt={line}"
        for line in configuration
        if line.startswith("Acquire::") and '"";' not in line
    ]
    settle = [
        f"--customize-hook=copy-in '{os.path.abspath(recipe.BASE_SCRIPT)}' /tmp",
        '--customize-hook=chroot "$1" sh /tmp/base.sh',
        '--customize-hook=rm "$1/tmp/base.sh"',
    ]
    names = ",".join(recipe.base_packages(config, described))
    with _begun("base") as work:
        listing, archive = os.path.join(work, "sources.list"), os.path.join(work, "base.tar")
        write_text(
            listing,
            distribution.sources(described, config.get("mirror"), distribution.os_release()),
        )
        with step("image", f"bootstrapping {described['distribution']} {release} with mmdebstrap"):
            command = ["mmdebstrap", "--variant=minbase", f"--include={names}", *options, *settle]
            done = capture(
                _marked(work, [*command, release, archive, listing], root=True),
                timeout=3600,
                check=False,
            )
            if done.returncode != 0:
                raise _unmade(described, config.get("mirror"), done.stderr)
        with step("image", "importing the base root filesystem into Docker"):
            whose = f"LABEL strata.image={paths.home_mark()}"
            capture(
                _marked(work, ["docker", "import", "--change", whose, archive, tag]), timeout=600
            )
    return tag


def _unmade(described: Described, mirror: str | None, said: str) -> UserError:
    """The error that there is no base, with apt's own reasons."""
    log = os.path.join(paths.home(), "images", "mmdebstrap.log")
    write_text(log, said)
    lines = said.strip().splitlines()
    # The others of these are mmdebstrap's: which of its commands failed.
    others = "setup failed|mmdebstrap |apt-get |apt download |Download is"
    reasons = [line for line in lines if re.match(f"[EW]: (?!{others})", line)]
    of = f"{described['distribution']} {described['release']}"
    source = mirror or "the host's package sources"
    listed = "\n".join(reasons or lines[-20:])
    return UserError(
        f"mmdebstrap could not make the base of {of} from {source} (config.yaml: image; whole log: {log}):\n{listed}"
        + remedy(said)
    )


def _take_out(tag: str, work: str) -> str:
    """Take the container image and its files into a folder: ``image.tar``, ``tree``, and the archive of these files."""
    tree, archive = os.path.join(work, "tree"), os.path.join(work, "tree.tar")
    capture(
        _marked(work, ["docker", "save", "--output", os.path.join(work, "image.tar"), tag]),
        timeout=600,
    )
    ours = ["--label", f"{engine.BUILDING}={paths.home_mark()}"]
    container = capture(_marked(work, ["docker", "create", *ours, tag, "true"])).stdout.strip()
    try:
        capture(_marked(work, ["docker", "export", "--output", archive, container]), timeout=600)
    finally:
        capture(["docker", "rm", container])
    os.mkdir(tree)
    # By the first systemd would take a machine for a container; the second is Packer's.
    spare = ["--exclude=.dockerenv", "--exclude=packer-files"]
    unpack = ["tar", "-C", tree, "--numeric-owner", *spare, "-xpf", archive]
    capture(_marked(work, unpack, root=True), timeout=600)
    return archive


def _run_packer(config: Fields, work: str, variables: dict[str, str]) -> None:
    """Run the build with the workloads of the image.  Raises UserError with the end of what Packer said."""
    context = os.path.join(work, "context")
    os.makedirs(context)
    files = [path for path in recipe.files(config) if path.startswith("workloads/")]
    capture(["cp", "--parents", "--preserve=mode", "--", *files, context])
    write_text(
        os.path.join(context, "workloads", "packages"), "\n".join(recipe.packages(config)) + "\n"
    )
    log = os.path.join(paths.home(), "images", "packer.log")
    settings = ["CHECKPOINT_DISABLE=1", "PACKER_LOG=1", f"PACKER_LOG_PATH={log}"]
    settings += [f"PACKER_{name}_DIR={context}/{name}" for name in ("CACHE", "TMP")]
    words = [
        word
        for key, value in {**variables, "context": context}.items()
        for word in ("-var", f"{key}={value}")
    ]
    packer = ["packer", "build", "-color=false", *words, "packer/image.pkr.hcl"]
    # Its plugins listen on sockets there, whose paths the kernel limits to 107 bytes: a home's may be longer.
    with programs.scratch("packer", "/tmp") as short:
        command = ["env", *settings, f"TMPDIR={short}", *packer]
        done = capture(_marked(work, command), timeout=3600, check=False)
    remove_tree(context)
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise UserError(f"Packer could not make the image (whole log: {log}):\n{last}")


def unfinished() -> list[str]:
    """The folders of builds that were begun and have not ended: they are made first and go last."""
    return sorted(glob.glob(glob.escape(paths.unfinished("")) + "*"))


def _remove_builds() -> list[str]:
    """Remove what builds left, of which none is under way: processes, containers, folders.  What it was, in words."""
    folders = unfinished()
    if folders:
        _end_processes()
    containers = docker.Layer.remove_containers(engine.BUILDING)
    for folder in folders:
        remove_tree(folder, unmount=True)
    names = [
        os.path.basename(folder).replace("building-", "unfinished image ") for folder in folders
    ]
    return names + [f"container {id} of an unfinished image" for id in containers]


def sweep() -> list[str]:
    """Remove what builds left, unless a process is at one; what it was, in words."""
    with cache.locked(wait=False) as alone:
        return _remove_builds() if alone else []


def publish(image: Image) -> None:
    """Write what the image is into the results."""
    write_json(
        paths.IMAGE, {key: value for key, value in image.items() if key not in ("folder", "base")}
    )
    shutil.copyfile(os.path.join(image["folder"], "manifest.json"), paths.MANIFEST)


def prune(keep: int = KEPT) -> list[str]:
    """Remove all images but the last used, and what belongs to none; what it was, in words.

    Nothing goes while another process makes something here.  The caller sees that no system is up.
    """
    with cache.locked(wait=False) as alone:
        if not alone:
            say("image", "nothing is removed from the cache, since another process makes an image")
            return []
        removed = _remove_builds()
        for name in cache.names()[keep:]:
            vagrant_box.remove(name)
            remove_whole(cache.folder_of(name), paths.unfinished("removed"))
            removed.append(f"image {name[:12]}")
        removed += [f"volume {name}" for name in vagrant_box.remove_copies()]
        return removed + _discard()


def _discard(*kept: str) -> list[str]:
    """Remove what engines have of images that are not in the cache, but for these names; what it was, in words."""
    images = [image for name in cache.names() if (image := cache.find(name))]
    needed = {
        word
        for one in images
        for word in (one["id"], engine.tag(one), engine.base_tag(one["base"]))
    } | {*kept}
    return [words for name in registry.names() for words in registry.kind(name).discard(needed)]
