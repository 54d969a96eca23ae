"""The base root filesystem: the distribution's packages with a kernel, settled, before anything of ours is in it."""

import os
import tempfile

from strata.base import places
from strata.base.process import capture
from strata.base.progress import say, step
from strata.base.shapes import Described, Fields
from strata.experiment import recipe
from strata.host import distribution


def path_of(name: str) -> str:
    """Where the base with this hash is kept: its archive with ``.tar`` behind it, its kernel with ``.kernel``."""
    return os.path.join(places.home(), "images", f"base-{name[:12]}")


def ensure_archive(config: Fields, described: Described) -> str:
    """Path of the archive of the base, bootstrapped now (about a minute) if it is not kept."""
    archive = f"{path_of(described['base'])}.tar"
    if os.path.exists(archive):
        return archive
    images, release = os.path.dirname(archive), described["release"]
    os.makedirs(images, exist_ok=True)
    configuration = capture(["apt-config", "dump"]).stdout.splitlines()
    options = [f"--aptopt={line}" for line in configuration if line.startswith("Acquire::") and '"";' not in line]
    script = os.path.abspath(recipe.BASE_SCRIPT)
    settle = [
        f"--customize-hook=copy-in '{script}' /tmp",
        '--customize-hook=chroot "$1" sh /tmp/base.sh',
        '--customize-hook=rm "$1/tmp/base.sh"',
    ]
    names = ",".join(recipe.base_packages(config, described))
    with tempfile.TemporaryDirectory(prefix="building-base-", dir=images) as work:
        listing, part = os.path.join(work, "sources.list"), os.path.join(work, "base.tar")
        with open(listing, "w") as file:
            file.write(distribution.sources(described, config.get("mirror"), distribution.os_release()))
        with step("image", f"bootstrapping {described['distribution']} {release} with mmdebstrap"):
            command = ["mmdebstrap", "--variant=minbase", f"--include={names}", *options, *settle]
            capture([*command, release, part, listing], timeout=3600)
        os.rename(part, archive)
    return archive


def ensure_kernel(config: Fields, described: Described) -> str:
    """Path of the kernel that machines of the image boot, taken out of its base."""
    path = f"{path_of(described['base'])}.kernel"
    if not os.path.exists(path):
        archive = ensure_archive(config, described)
        script = 'tar -xOf "$1" --wildcards "./boot/vmlinuz-*" >"$2.part" && mv -- "$2.part" "$2"'
        capture(["sh", "-uec", script, "strata", archive, path], timeout=300)
    return path


def ensure_tag(config: Fields, described: Described, tag: str) -> None:
    """See that Docker has the base."""
    if capture(["docker", "image", "inspect", tag], check=False).returncode == 0:
        say("image", "the base root filesystem is in the cache")
        return
    archive = ensure_archive(config, described)
    with step("image", "importing the base root filesystem into Docker"):
        whose = f"LABEL strata.image={places.home_mark()}"
        capture(["docker", "import", "--change", whose, archive, tag], timeout=600)
