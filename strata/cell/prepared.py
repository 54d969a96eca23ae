"""Data of a workload that are made once for each image, and never measured.

They are made in the native system and kept in the machine's cache as one file, the same for every environment.
"""

import json
import os
from hashlib import sha256

from strata.base.errors import CellFailed
from strata.base.process import capture
from strata.base.progress import step
from strata.base.shapes import Fields, Image
from strata.cell.inputs import PROGRAMS, fill
from strata.system import testbed

# Where the command leaves the file, and where every cell finds it.
INSIDE = "/data/prepared"


def ensure(workload: str, declared: Fields, values: Fields, image: Image) -> str:
    """Path of the file, made now if it is not kept.  Raises CellFailed with the command's own words."""
    argv = fill(declared["argv"], values, f"{PROGRAMS}/{workload}")
    mark = sha256(json.dumps([image["manifest_sha256"], argv]).encode()).hexdigest()[:12]
    path = os.path.join(image["folder"], "prepared", f"{workload}-{mark}")
    if os.path.exists(path):
        return path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    name = f"(data of {workload})"
    system = testbed.System(name, [{"chroot": {}}], image)
    with step(workload, "making its data, once for this image"):
        done = capture(system.top.command(argv), timeout=declared["timeout"], check=False)
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise CellFailed(f"its data could not be made (exit code {done.returncode}): {' / '.join(words)}")
    system.top.get(INSIDE, f"{path}.part")
    os.replace(f"{path}.part", path)
    testbed.take_down(name)
    return path
