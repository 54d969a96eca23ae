"""Data of a workload that are made once for each image, and never measured.

They are made in the native system and kept in the machine's cache as one file, the same for every environment.
"""

import json
import os
from hashlib import sha256

from strata.measure.arguments import fill
from strata.measure.log_sections import last_words
from strata.testbed import journal, lifecycle
from strata.util.data_types import Image, PlannedWorkload
from strata.util.errors import CellFailed
from strata.util.process import capture
from strata.util.progress import step

# Where the command leaves the file, and where every cell finds it.
INSIDE = "/data/prepared"


def ensure(workload: str, work: PlannedWorkload, seed: int, image: Image | None) -> str | None:
    """Path of the file, made now if it is not kept; None where the workload has no such data.

    Raises CellFailed with the command's own words.
    """
    declared = work["cell"].get("data")
    if declared is None:
        return None
    assert image
    argv = fill(declared["argv"], {**work["parameters"], "seed": seed}, workload)
    mark = sha256(json.dumps([image["manifest_sha256"], argv]).encode()).hexdigest()[:12]
    path = os.path.join(image["folder"], "prepared", f"{workload}-{mark}")
    if os.path.exists(path):
        return path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    name = f"(data of {workload})"
    system = lifecycle.System(name, [{"chroot": {}}], image)
    with step(workload, "making its data, once for this image"):
        done = capture(system.top.command(argv), timeout=declared["timeout"], check=False)
    if done.returncode != 0:
        words = last_words(done.stderr or done.stdout)
        raise CellFailed(f"its data could not be made (exit code {done.returncode}): {words}")
    journal.note(system.id, {"kind": "folder", "id": f"{path}.part"})
    system.top.get(INSIDE, f"{path}.part")
    os.replace(f"{path}.part", path)
    lifecycle.take_down(name)
    return path
