"""Data of a workload that are made once for each image, and never measured.

They are made in the native system and kept in the machine's cache as one file, the same for every environment.
"""

import json
import os
from hashlib import sha256

from strata.base.digest import of_file
from strata.base.errors import CellFailed
from strata.base.files import read_json, write_json
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
    noted = os.path.join(image["folder"], "prepared", f".{workload}-{mark}.json")
    if _is_whole(path, noted):
        return path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    name = f"(data of {workload})"
    system = testbed.bring_up(name, [{"chroot": {}}], image)
    with step(workload, "making its data, once for this image"):
        done = capture(system.top.command(argv), timeout=declared["timeout"], check=False)
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise CellFailed(f"its data could not be made (exit code {done.returncode}): {' / '.join(words)}")
    system.top.get(INSIDE, f"{path}.part")
    os.replace(f"{path}.part", path)
    _note(path, noted)
    testbed.take_down(name)
    return path


def _note(path: str, noted: str) -> None:
    """Note what the file is, and how the kernel shows it."""
    write_json(noted, {"seen": _seen(path), "sha256": of_file(path)})


def _is_whole(path: str, noted: str) -> bool:
    """Whether the file is there as it was made; it is read only where the kernel shows another one."""
    known = read_json(noted)
    if known is None or not os.path.exists(path):
        return False
    if known.get("seen") == _seen(path):
        return True
    if known.get("sha256") != of_file(path):
        return False
    _note(path, noted)
    return True


def _seen(path: str) -> list[int]:
    facts = os.stat(path)
    return [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino]
