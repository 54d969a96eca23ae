"""Control groups: native runs get the same place in the hierarchy as containers.

Docker puts a container into ``<parent>/<id>``; a native run goes into a sibling of it, below
the same parent, in every hierarchy that Docker uses.  Otherwise the scheduler would share
the CPU among groups of unequal standing, and a comparison would measure that.
"""

import os
import time
from collections.abc import Sequence

from strata.host import observe
from strata.util.errors import UserError
from strata.util.process import as_root, capture

ROOT = "/sys/fs/cgroup"
SLICE = "strata.slice"
GROUP = "strata"
# What stays in a native system's group where that would end with its first command, and does nothing.
HOLDER = ["/usr/bin/sleep", "infinity"]
# The files by which a group is frozen, of version 1 and of version 2.
OLD, NEW = "freezer.state", "cgroup.freeze"
# Arguments: the processors that they are held to (empty: all), groups that are made; where version 1 bounds CPUs and
# memory it has to be given them.
MAKE = """
mask=$1
shift
for group; do
    mkdir -p "$group"
    for file in cpuset.cpus cpuset.mems; do
        for folder in "${group%/*}" "$group"; do
            if [ -e "$folder/$file" ] && [ -z "$(cat "$folder/$file")" ]; then
                cat "${folder%/*}/$file" >"$folder/$file"
            fi
        done
    done
    if [ -n "$mask" ] && [ -e "$group/cpuset.cpus" ]; then
        echo "$mask" >"$group/cpuset.cpus"
    fi
done
"""
JOIN = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs"; shift; done; shift; exec "$@"'


def unified() -> bool:
    """Whether the machine has the unified hierarchy (version 2)."""
    return os.path.exists(f"{ROOT}/cgroup.controllers")


def managed_by_systemd() -> bool:
    """Whether groups are systemd's to make, as Docker then lets it."""
    return unified() and os.path.isdir("/run/systemd/system")


def driver() -> str:
    """Who makes the groups, as engines call it."""
    return "systemd" if managed_by_systemd() else "cgroupfs"


def parent_for(driver: str) -> str:
    """The argument of ``docker run --cgroup-parent`` for Docker's cgroup driver."""
    return SLICE if driver == "systemd" else f"/{GROUP}"


def hierarchies() -> list[str]:
    """The tops of the machine's hierarchies; Docker makes a group in each of them."""
    if unified():
        return [ROOT]
    found = [os.path.join(ROOT, name) for name in sorted(os.listdir(ROOT))]
    return [
        path
        for path in found
        if os.path.exists(f"{path}/cgroup.procs") and not os.path.islink(path)
    ]


def path_of(id: str) -> str:
    """The path of a native system's group in every hierarchy."""
    return f"{SLICE}/{id}.scope" if managed_by_systemd() else f"{GROUP}/{id}"


def groups_of(id: str) -> list[str]:
    """The folders of a native system's groups."""
    return [f"{top}/{path_of(id)}" for top in hierarchies()]


def hold(id: str, mask: str | None) -> None:
    """Make the groups of a native system for any number of commands, one after the other or at the same time.

    mask: the processors to which it is held; None: all.

    Each is run by :func:`join`.  systemd's group, which has the controllers that a container's has, lives as long as
    something runs in it: as in a container something that does nothing stays there.
    """
    if managed_by_systemd():
        unit = [
            f"--slice={SLICE}",
            f"--unit={id}",
            "--property=Delegate=yes",
            "--property=TasksMax=infinity",
        ]
        unit += [f"--property=AllowedCPUs={mask}"] if mask else []
        stay = ["sh", "-euc", 'setsid "$@" </dev/null >/dev/null 2>&1 &', "strata", *HOLDER]
        capture(as_root(["systemd-run", "--scope", "--quiet", "--collect", *unit, "--", *stay]))
    else:
        capture(as_root(["sh", "-euc", MAKE, "strata", mask or "", *groups_of(id)]))


def join(id: str) -> list[str]:
    """The beginning of a command (for root) that runs the rest inside the groups of :func:`hold`."""
    return ["sh", "-euc", JOIN, "strata", *groups_of(id), "--"]


def groups_named(name: str) -> list[str]:
    """The folders that are there of the groups of a native system or of a container.

    name: as of :meth:`strata.environments.common.layer.Layer.group`.
    """
    groups = [f"{GROUP}/{one}" for one in (name, f"libpod-{name}")]
    groups += [f"{SLICE}/{one}.scope" for one in (name, f"docker-{name}", f"libpod-{name}")]
    found = [os.path.join(top, group) for top in hierarchies() for group in groups]
    return [folder for folder in found if name and os.path.isdir(folder)]


def _folders(name: str) -> list[str]:
    """The folders of :func:`groups_named`, and of the groups in them, these first."""
    return [
        folder for group in groups_named(name) for folder, _, _ in os.walk(group, topdown=False)
    ]


def members(name: str) -> set[int]:
    """Ids of the processes in the groups of a system, and in those that were made in them."""
    listed = observe.read_files([f"{folder}/cgroup.procs" for folder in _folders(name)])
    return {int(line) for text in listed.values() for line in text.split()}


def held(name: str) -> list[int]:
    """Ids of the processes in the groups of a container, and of what holds them."""
    found = members(name)
    told = observe.read_files([f"/proc/{process}/stat" for process in found])
    fields = [text.rpartition(")")[2].split() for text in told.values()]
    return sorted((found | {int(words[1]) for words in fields if len(words) > 1}) - {0, 1})


def running(name: str) -> list[str]:
    """The command lines of the processes in the groups of a system."""
    told = observe.read_files([f"/proc/{process}/cmdline" for process in sorted(members(name))])
    return [line for text in told.values() if (line := " ".join(text.replace("\0", " ").split()))]


def named(name: str, program: str) -> list[int]:
    """Ids of those processes in the groups of a system whose command line begins with a program's name."""
    lines = observe.read_files([f"/proc/{process}/cmdline" for process in sorted(members(name))])
    return [int(path.split("/")[2]) for path, line in lines.items() if line.startswith(program)]


def remove(name: str) -> None:
    """End every process in the groups of a system and remove them.  Raises UserError if one cannot be ended.

    name: as of :func:`groups_named`, or the path of a file that holds it.
    """
    if os.path.isabs(name):
        name = observe.read_files([name]).get(name, "")
    # What is frozen does not end.
    freeze(freezers(name), False)
    deadline = time.monotonic() + 10
    while (processes := members(name)) and time.monotonic() < deadline:
        capture(as_root(["kill", "-KILL", *map(str, processes)]), check=False)
        time.sleep(0.02)
    # systemd removes its own within a second; what is left then somebody else made, such as LXC.
    systemd, noticed = managed_by_systemd(), time.monotonic() + 1
    while systemd and _folders(name) and time.monotonic() < noticed:
        time.sleep(0.02)
    if groups := _folders(name):
        capture(as_root(["rmdir", "--", *groups]), check=not systemd)


def freezers(name: str) -> list[str]:
    """The folders of :func:`groups_named` by which what runs in them is frozen; none where it has none.

    Where both versions are, those of the first.
    """
    groups = groups_named(name)
    return next(
        filter(
            None,
            ([one for one in groups if os.path.exists(f"{one}/{file}")] for file in (OLD, NEW)),
        ),
        [],
    )


def freeze(folders: Sequence[str], frozen: bool = True, patience: float = 10.0) -> None:
    """Freeze what runs in groups, or thaw it, and sleep until that is so.  Raises UserError where it is not in time."""
    for folder in folders:
        old = os.path.exists(f"{folder}/{OLD}")
        word = ("FROZEN" if frozen else "THAWED") if old else str(int(frozen))
        deadline = time.monotonic() + patience
        while not _is(folder, frozen):
            if time.monotonic() > deadline:
                raise UserError(
                    f"{folder}: what runs there could not be {'frozen' if frozen else 'thawed'}"
                )
            _write(f"{folder}/{OLD if old else NEW}", word)
            # It takes its time where something is within a call of the kernel.
            waiting = time.monotonic() + 0.05
            while not _is(folder, frozen) and time.monotonic() < waiting:
                time.sleep(0.0002)


def _is(folder: str, frozen: bool) -> bool:
    """Whether a group is frozen as a whole, or thawed; one that is gone is whatever it should be."""
    told = observe.read_files([f"{folder}/{OLD}", f"{folder}/cgroup.events"])
    words = ("FROZEN", "frozen 1") if frozen else ("THAWED", "frozen 0")
    return not told or any(word in text for text in told.values() for word in words)


def _write(path: str, word: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(word)
    except PermissionError:
        capture(as_root(["sh", "-euc", 'echo "$1" >"$2"', "strata", word, path]))
