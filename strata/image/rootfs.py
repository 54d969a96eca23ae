"""The base root filesystem: the distribution's packages with a kernel, settled, before anything of ours is in it."""

import os
import tempfile

from strata.base import places
from strata.base.files import write_text
from strata.base.process import capture
from strata.base.progress import say, step
from strata.base.shapes import Described, Fields
from strata.experiment import recipe
from strata.host import distribution
from strata.layers.common import engine


def ensure(config: Fields, described: Described) -> str:
    """See that Docker has the base, bootstrapped now (about a minute) if it has not; its name there."""
    tag, release = engine.base_tag(described["base"]), described["release"]
    if capture(["docker", "image", "inspect", tag], check=False).returncode == 0:
        say("image", "the base root filesystem is in the cache")
        return tag
    configuration = capture(["apt-config", "dump"]).stdout.splitlines()
    options = [f"--aptopt={line}" for line in configuration if line.startswith("Acquire::") and '"";' not in line]
    script = os.path.abspath(recipe.BASE_SCRIPT)
    settle = [
        f"--customize-hook=copy-in '{script}' /tmp",
        '--customize-hook=chroot "$1" sh /tmp/base.sh',
        '--customize-hook=rm "$1/tmp/base.sh"',
    ]
    names = ",".join(recipe.base_packages(config, described))
    whose = f"LABEL strata.image={places.home_mark()}"
    with tempfile.TemporaryDirectory(prefix="building-base-", dir=os.path.join(places.home(), "images")) as work:
        listing, archive = os.path.join(work, "sources.list"), os.path.join(work, "base.tar")
        write_text(listing, distribution.sources(described, config.get("mirror"), distribution.os_release()))
        with step("image", f"bootstrapping {described['distribution']} {release} with mmdebstrap"):
            command = ["mmdebstrap", "--variant=minbase", f"--include={names}", *options, *settle]
            capture([*command, release, archive, listing], timeout=3600)
        with step("image", "importing the base root filesystem into Docker"):
            capture(["docker", "import", "--change", whose, archive, tag], timeout=600)
    return tag
