"""Identify this machine, its boot, and the start of its Docker daemon, for records.

Records name nobody: machines and nodes have marks in them, which are hashes.
"""

import os
import re
from collections.abc import Mapping
from hashlib import sha256

from strata.host import observe
from strata.util.data_types import Any, Fields

# The variable that Slurm's daemon of a node sets for all programs that it starts.
SLURM = "SLURMD_NODENAME"
BOOT = "/proc/sys/kernel/random/boot_id"
# The file with the ID of the system's installation, which must not be published (machine-id(5)).
INSTALLATION = "/etc/machine-id"
# The file that describes the processors, and the pattern of its lines about their model; the other
# lines change over time, or with the kernel.
PROCESSORS = "/proc/cpuinfo"
_MODEL_LINES = re.compile(
    r"(?m)^(?:vendor_id|cpu family|model|model name|stepping|cpu|revision|"
    r"CPU (?:implementer|architecture|variant|part|revision))\s*:.*$"
)
# The file that Docker's daemon writes its process ID to.
DOCKER = "/run/docker.pid"


def identify_node() -> Fields:
    """Return ``{name, machine, boot, docker}`` of this machine, for records.

    name: a hash of the node's name in Slurm; outside of Slurm, of the host name.
    machine: a hash of that name, the installation's ID, and the number and model of the
    processors: a disk that moves to other hardware is then another machine.
    Both hashes must stay: records of one node, and of one machine, are recognized by them.
    analysis/read.R distinguishes sessions by machine, boot and docker.
    boot: the kernel's boot ID (:func:`read_boot_id`); two names with the same ID are one machine.
    docker: when Docker's daemon started (:func:`read_docker_start`).
    """
    name = os.environ.get(SLURM) or os.uname().nodename
    installation = observe.read_file(INSTALLATION) or ""
    identity = ["strata machine", installation, name, *_describe_processors()]
    machine = sha256("\n".join(identity).encode()).hexdigest()[:12]
    mark = sha256(name.encode()).hexdigest()[:6]
    return {
        "name": f"node-{mark}",
        "machine": machine,
        "boot": read_boot_id(),
        "docker": read_docker_start(),
    }


def _describe_processors() -> list[str]:
    """Return the number of processors as text, then the distinct lines on their models, sorted."""
    text = observe.read_file(PROCESSORS) or ""
    count = len(re.findall(r"(?m)^processor\b", text))
    return [str(count), *sorted({*_MODEL_LINES.findall(text)})]


def read_boot_id() -> str | None:
    """Return the kernel's boot ID, which each boot changes; None if the kernel gives none.

    Records, and stored results of the trial of KVM, are compared with it.
    """
    match = re.fullmatch("[0-9a-f-]{36}", observe.read_file(BOOT) or "")
    return match[0] if match else None


def read_docker_start() -> int | None:
    """Return when Docker's daemon started, in ticks of the kernel since the boot.

    Returns None if the process ID in the file :data:`DOCKER` is not that of a running daemon.
    """
    pid = observe.parse_number(observe.read_file(DOCKER))
    # Without a process ID, the path is that of no file.
    status = observe.read_file(f"/proc/{pid}/stat") or ""
    # The start is in the 22nd column of the file (proc(5)).
    match = re.fullmatch(r"[0-9]+ \(dockerd\)(?: \S+){19} ([0-9]{1,18}) .*", status)
    return int(match[1]) if match else None


def find_node_name(record: Mapping[str, Any] | None) -> str | None:
    """Return the name of the node in a cell's record; None if the record gives none.

    record: the cell's record, or None if it does not exist.
    Runs of one block form pairs only if all of them have the same name.
    """
    node = (record or {}).get("node") or {}
    return node.get("name")
