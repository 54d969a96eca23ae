"""Which machine of several this is: the name by which Slurm knows it, and what tells two machines apart.

Records name nobody: a node has a mark there, made of its name.
"""

import os
import re
from collections.abc import Mapping
from hashlib import sha256

from strata.host import observe
from strata.util.data_types import Any, Fields

# Set by Slurm's daemon of a node for all that runs there.
SLURM = "SLURMD_NODENAME"
BOOT = "/proc/sys/kernel/random/boot_id"


def facts() -> Fields:
    """``{name, boot}``: a mark of the node's name, or the host's where no Slurm gave it one; its kernel's start.

    Two names with one such id are one machine; it is None where the kernel does not tell it.
    """
    mark = sha256((os.environ.get(SLURM) or os.uname().nodename).encode()).hexdigest()[:6]
    return {"name": f"node-{mark}", "boot": boot()}


def boot() -> str | None:
    """The id of this start of the kernel; None where it has none."""
    found = re.fullmatch("[0-9a-f-]{36}", observe.read(BOOT) or "")
    return found and found[0]


def of_record(record: Mapping[str, Any] | None) -> str | None:
    """The node that a cell's record tells of; None where it tells of none."""
    return ((record or {}).get("node") or {}).get("name")
