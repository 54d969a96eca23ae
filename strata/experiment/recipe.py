"""The recipe of the image: all that decides what is in it, and the hash that names it.

Comments do not count, so that editing one neither builds an image nor reruns a cell.
"""

import fnmatch
import hashlib
import json
import os
import re

from strata.experiment import workload
from strata.host import distribution

# Of a workload's folder these belong to the analysis or the plan, not to the image.
NOT_IN_IMAGE = {"workload.yaml", "parse.py", "fixtures", "README.md"}
# Names of notes, and of what editors and Python leave.
IDLE = [
    *["*.md", "*.txt", "*.rst", "*.org", "*.adoc", "README*", "NOTES*", "TODO*"],
    *[".*", "*~", "#*#", "*.bak", "*.orig", "*.old", "*.rej", "*.sw[a-p]", "*.tmp", "*.pyc", "__pycache__"],
]
# What several workloads source or import: a file of it is in the image where a workload's build script names it.
SHARED = ("workloads/common/sourced", "workloads/kit/load")
BASE_PACKAGES = ["bash", "coreutils", "gcc", "gzip", "libc6-dev", "mawk", "procps", "util-linux"]
# What makes a machine of the same files, and Docker in it; a container has them and starts none.
MACHINE_PACKAGES = [
    *["dbus", "e2fsprogs", "iproute2", "openssh-server", "systemd-sysv", "udev"],
    *["docker.io", "iptables"],
]
# What a machine boots: with the drivers of what hypervisors offer, or with those of all hardware.
KERNELS = {
    "machines": {"debian": "linux-image-cloud-amd64", "ubuntu": "linux-image-virtual"},
    "hardware": {"debian": "linux-image-amd64", "ubuntu": "linux-image-generic"},
}
BASE_SCRIPT = "packer/base.sh"
_C_TOKENS = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)


def significant(name: str, content: bytes) -> bytes:
    """A file's content without what cannot change the image: comments and blank lines of C, shell, Ruby and HCL."""
    kind = os.path.splitext(name)[1]
    if kind not in (".c", ".h", ".sh", ".hcl", ".rb"):
        return content
    text = content.decode(errors="surrogateescape")
    if kind in (".c", ".h"):
        text = _C_TOKENS.sub(lambda token: " " if token[0][0] == "/" else token[0], text)
    lines = [line.rstrip() for line in text.splitlines()]
    if kind in (".sh", ".hcl", ".rb"):
        lines = [line for line in lines if not re.match(r"\s*#(?!!)", line)]
    return "\n".join(line for line in lines if line).encode(errors="surrogateescape")


def brought(image: dict) -> list[str]:
    """Names of the workloads that are in the image: all but those that come with a plan alone, and that it lacks.

    image: as from :func:`strata.experiment.config.read`, whose `workloads` are those of the plan.
    """
    planned = image.get("workloads", [])
    return [name for name in workload.known() if name in planned or workload.load(name).get("image") != "planned"]


def files(image: dict) -> list[str]:
    """Paths, relative to the project, of the files that go into the build.

    Notes and what editors leave go into it only where a file that does names them.
    """
    found = [
        f"packer/{name}" for name in os.listdir("packer") if name.endswith((".hcl", ".rb", ".sh")) and not _idle(name)
    ]
    for name in ["common", "kit/load", *brought(image)]:
        below = []
        for folder, inner, names in os.walk(f"workloads/{name}"):
            if folder == f"workloads/{name}":
                inner[:] = [part for part in inner if part not in NOT_IN_IMAGE]
                names = [part for part in names if part not in NOT_IN_IMAGE]
            below += [f"{folder}/{part}" for part in names]
        found += _read_by_programs(below)
    return sorted(path for path in found if os.path.dirname(path) not in SHARED or _is_installed(path, found))


def _is_installed(path: str, paths: list[str]) -> bool:
    """Whether the build script of a workload among these files names a file, from the folder of all workloads."""
    name = os.path.relpath(path, "workloads").encode()
    return any(name in _content(one) for one in paths if one.endswith("/build.sh"))


def _idle(path: str) -> bool:
    return any(fnmatch.fnmatch(part, pattern) for part in path.split("/") for pattern in IDLE)


def _read_by_programs(paths: list[str]) -> list[str]:
    """Those of a workload's files that are no notes, or that one of these names, itself or by its ending."""
    said = b"\n".join(_content(path) for path in paths if not _idle(path)) if any(map(_idle, paths)) else b""

    def named(path: str) -> bool:
        name, ending = os.path.basename(path), os.path.splitext(path)[1]
        return name.encode() in said or bool(ending and f"*{ending}".encode() in said)

    return [path for path in paths if not _idle(path) or named(path)]


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def packages(image: dict) -> list[str]:
    """Names of the packages that the workloads and the build ask for."""
    return sorted(
        {*BASE_PACKAGES, *(package for name in brought(image) for package in workload.load(name)["packages"])}
    )


def base_packages(image: dict, chosen: dict[str, str]) -> list[str]:
    """Names of all packages of the base root filesystem of a distribution and release."""
    # From Debian 13 on the client of Docker is a package of its own.
    client = chosen["distribution"] == "debian" and chosen["release"] not in ("bullseye", "bookworm")
    kernel = KERNELS[image.get("kernel", "machines")][chosen["distribution"]]
    return sorted({*packages(image), *MACHINE_PACKAGES, *["docker-cli"] * client, kernel})


def describe(image: dict) -> dict:
    """``{recipe, base, distribution, release}``: hashes of the whole recipe and of the base alone.

    And where there are any, `workloads`: those that are in it for the plan alone.
    """
    chosen = distribution.choose(image, distribution.os_release())
    with open(BASE_SCRIPT, "rb") as file:
        script = significant(BASE_SCRIPT, file.read()).decode()
    names = base_packages(image, chosen)
    base = {**chosen, "mirror": image.get("mirror"), "packages": names, "script": script}
    base_hash = hashlib.sha256(json.dumps(base, sort_keys=True).encode()).hexdigest()
    whole = hashlib.sha256(base_hash.encode())
    for path in files(image):
        content = significant(path, _content(path))
        mode = "x" if os.access(path, os.X_OK) else "-"
        whole.update(f"{path} {mode} {hashlib.sha256(content).hexdigest()}\n".encode())
    alone = [name for name in brought(image) if workload.load(name).get("image") == "planned"]
    return {"recipe": whole.hexdigest(), "base": base_hash, **chosen, **({"workloads": alone} if alone else {})}
