"""Packer provisions: one build block, of which a source is run at a time."""

import os
import shutil

from strata.base import places
from strata.base.errors import UserError
from strata.base.process import capture
from strata.experiment import recipe


def run_packer(config: dict, source: str, variables: dict[str, str], work: str) -> None:
    """Run one source of the build (such as ``docker.container``) with the workloads of the image.

    Raises UserError with the end of what Packer said.
    """
    context = os.path.join(work, "context")
    for path in recipe.files(config):
        if path.startswith("workloads/"):
            os.makedirs(os.path.join(context, os.path.dirname(path)), exist_ok=True)
            shutil.copy(path, os.path.join(context, path))
    os.makedirs(os.path.join(context, "workloads"), exist_ok=True)
    with open(os.path.join(context, "workloads", "packages"), "w") as file:
        file.write("\n".join(recipe.packages(config)) + "\n")
    log = os.path.join(places.home(), "images", "packer.log")
    settings = ["CHECKPOINT_DISABLE=1", "PACKER_LOG=1", f"PACKER_LOG_PATH={log}", f"PACKER_CACHE_DIR={work}/cache"]
    command = ["env", *settings, "packer", "build"]
    given = {"base": "", "tag": "none:none", "context": context, "home": places.home_mark(), **variables}
    words = [word for key, value in given.items() for word in ("-var", f"{key}={value}")]
    done = capture(
        [*command, "-color=false", f"-only={source}", *words, "packer/image.pkr.hcl"], timeout=3600, check=False
    )
    shutil.rmtree(context)
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise UserError(f"Packer could not provision the image (whole log: {log}):\n{last}")
