"""The base root filesystem: the distribution's packages with a kernel, settled, before anything of ours is in it."""

import os

from strata.base import places
from strata.base.process import capture
from strata.base.progress import say, step
from strata.base.shapes import Described, Fields
from strata.experiment import recipe
from strata.host import distribution


def archive_path(name: str) -> str:
    """Where the archive of the base with this hash is kept."""
    return os.path.join(places.home(), "images", f"base-{name[:12]}.tar")


def ensure_archive(config: Fields, described: Described) -> str:
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


def ensure_kernel(config: Fields, described: Described) -> str:
    """Path of the kernel that machines of the image boot, taken out of its base."""
    path = archive_path(described["base"]).removesuffix(".tar") + ".kernel"
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
