"""This machine among several: the name by which Slurm knows it, and the start of its kernel.

Records name nobody: a node has a mark in them, made of its name.
"""

import os
import re
from collections.abc import Mapping
from hashlib import sha256

from strata.host import observe
from strata.util.data_types import Any, Fields

# Slurm's daemon of a node sets it for all that runs there.
SLURM = "SLURMD_NODENAME"
BOOT = "/proc/sys/kernel/random/boot_id"


def read_facts() -> Fields:
    """Return ``{name, boot}`` of this machine, for records.

    name: a hash of the name that Slurm gave the node, or of the host name where there is none.
    The hash must stay: records of one node are recognized by it.
    boot: as of :func:`boot_id`; two names with the same ID are one machine.
    """
    mark = sha256((os.environ.get(SLURM) or os.uname().nodename).encode()).hexdigest()[:6]
    return {"name": f"node-{mark}", "boot": boot_id()}


def boot_id() -> str | None:
    """Return the kernel's boot ID, which each boot changes; None where the kernel gives none."""
    match = re.fullmatch("[0-9a-f-]{36}", observe.read_file(BOOT) or "")
    return match and match[0]


def node_of_record(record: Mapping[str, Any] | None) -> str | None:
    """Return the name of the node in a cell's record; None where the record gives none."""
    return ((record or {}).get("node") or {}).get("name")
