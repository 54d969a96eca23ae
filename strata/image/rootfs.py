"""The base root filesystem: the distribution's packages, settled, before anything of ours is in it.

It is kept as one archive, from which the container's base (without kernel) and the disk of a
virtual machine (with it) are made, so that both have the very same files.
"""

import os

from strata.base import places
from strata.base.files import remove_tree
from strata.base.process import as_root, capture
from strata.base.progress import say, step
from strata.experiment import recipe
from strata.host import distribution

# Files of the base that only a machine of its own has; a container shares its host's kernel.
MACHINE_ONLY = ["boot", "usr/lib/modules"]


def archive_path(name: str) -> str:
    """Where the archive of the base with this hash is kept."""
    return os.path.join(places.home(), "images", f"base-{name[:12]}.tar")


def ensure_archive(config: dict, described: dict) -> str:
    """Path of the archive of the base, bootstrapped now (about a minute) if it is not kept."""
    archive = archive_path(described["base"])
    if os.path.exists(archive):
        return archive
    os.makedirs(os.path.dirname(archive), exist_ok=True)
    listing, part = f"{archive}.list", f"{archive}.part.tar"
    with open(listing, "w") as file:
        file.write(distribution.sources(described, config.get("mirror"), distribution.os_release()))
    configuration = capture(["apt-config", "dump"]).stdout.splitlines()
    options = [f"--aptopt={line}" for line in configuration if line.startswith("Acquire::") and '"";' not in line]
    script = os.path.abspath(recipe.BASE_SCRIPT)
    settle = [
        f"--customize-hook=copy-in '{script}' /tmp",
        '--customize-hook=chroot "$1" sh /tmp/base.sh',
        '--customize-hook=rm "$1/tmp/base.sh"',
    ]
    names = ",".join(recipe.base_packages(config, described))
    try:
        with step("image", f"bootstrapping {described['distribution']} {described['release']} with mmdebstrap"):
            capture(
                ["mmdebstrap", "--variant=minbase", f"--include={names}", *options, *settle]
                + [described["release"], part, listing],
                timeout=3600,
            )
        os.rename(part, archive)
    finally:
        for path in (listing, part):
            if os.path.exists(path):
                os.unlink(path)
    return archive


def unpack(archive: str, folder: str) -> None:
    """Unpack an archive of a root filesystem into a new folder, with its owners and rights."""
    remove_tree(folder)
    os.makedirs(folder)
    # dpkg's own way: what was unpacked keeps its numbers for users, and extended attributes.
    capture(as_root(["tar", "-C", folder, "--numeric-owner", "--xattrs", "-xpf", archive]), timeout=1200)


def ensure_tag(config: dict, described: dict, tag: str) -> None:
    """See that Docker has the container's base: the archive's files without the kernel."""
    if capture(["docker", "image", "inspect", tag], check=False).returncode == 0:
        say("image", "the base root filesystem is there")
        return
    archive = ensure_archive(config, described)
    folder, part = f"{archive.removesuffix('.tar')}-tree", f"{archive}.container"
    left_out = [f"--exclude=./{path}/*" for path in MACHINE_ONLY]
    try:
        with step("image", "giving the base root filesystem to Docker"):
            unpack(archive, folder)
            pack = ["tar", "-C", folder, "--numeric-owner", "--xattrs", *left_out, "-cf", part, "."]
            capture(as_root(pack), timeout=1200)
            whose = f"LABEL strata.image={places.home_mark()}"
            capture(["docker", "import", "--change", whose, part, tag], timeout=600)
    finally:
        remove_tree(folder)
        capture(as_root(["rm", "-f", "--", part]))
