"""Create the data sets of workloads: once for each image, in the native system, unmeasured.

A data set is one file in the machine's cache, which all environments share.
"""

import json
import os
from hashlib import sha256

from strata.measure.arguments import fill_command
from strata.measure.log_sections import summarize_output
from strata.testbed import journal, lifecycle
from strata.util.data_types import Image, PlannedWorkload
from strata.util.errors import CellFailed
from strata.util.process import capture_output
from strata.util.progress import report_step

# The path in a system at which the command leaves the file, and at which every cell finds it.
PATH_IN_SYSTEM = "/data/prepared"


def ensure_data_set(
    workload: str, planned: PlannedWorkload, seed: int, image: Image | None
) -> str | None:
    """Return the path of a workload's data set, and create the file if it is not in the cache.

    Returns None if the workload declares no data set.
    workload: the name of the workload.
    planned: the workload as the plan holds it.
    seed: the value of `seed` in the command that creates the data set.
    image: the image in whose native system the command is executed; its folder holds the data sets.
    It may be None only if the workload declares no data set.
    The file's name contains a hash of the image and the command, so that a change of either creates
    a new data set.  The data set is removed together with its image when the cache is cleaned.
    The caller holds the machine's lock.  After an error the system is still in the journal, and the
    caller takes it down.  Raises CellFailed with the last lines of a command that failed.
    """
    declared = planned["cell"].get("data")
    if declared is None:
        return None
    # A workload with a data set runs in the image only.
    assert image
    argv = fill_command(declared["argv"], {**planned["parameters"], "seed": seed}, workload)
    inputs = json.dumps([image["manifest_sha256"], argv])
    # 12 digits suffice to tell the few data sets of one workload apart.
    digest = sha256(inputs.encode()).hexdigest()[:12]
    path = os.path.join(image["folder"], "prepared", f"{workload}-{digest}")
    if not os.path.exists(path):
        _create_data_set(path, workload, argv, declared["timeout"], image)
    return path


def _create_data_set(
    path: str, workload: str, argv: list[str], timeout: float, image: Image
) -> None:
    """Create a data set by a command in the native system of an image.

    path: the path of the file on this host, which exists only once the file is complete.
    workload: the name of the workload, for messages and the journal.
    argv: the command, which leaves the file at PATH_IN_SYSTEM.
    timeout: the limit of the command in seconds.
    image: the image whose native system executes the command.
    Raises CellFailed with the last lines of a command that failed.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    # The journal has this name in place of an environment's, which cannot contain parentheses.
    name = f"(data of {workload})"
    system = lifecycle.System(name, [{"chroot": {}}], image)
    with report_step(workload, "making its data, once for this image"):
        command = system.top.build_measured_command(argv)
        result = capture_output(command, timeout=timeout, check=False)
    if result.returncode != 0:
        last_lines = summarize_output(result.stderr or result.stdout)
        raise CellFailed(
            f"its data could not be made (exit code {result.returncode}): {last_lines}"
        )
    journal.note_cleanup(system.id, {"kind": "folder", "id": f"{path}.part"})
    system.top.copy_file_out(PATH_IN_SYSTEM, f"{path}.part")
    os.replace(f"{path}.part", path)
    lifecycle.take_down_systems(name)
