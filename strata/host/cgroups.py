"""Control groups: native runs get the same place in the hierarchy as containers.

Docker puts a container into ``<parent>/<id>``; a native run goes into a sibling of it, below
the same parent, in every hierarchy that Docker uses.  Otherwise the scheduler would share
the CPU among groups of unequal standing, and a comparison would measure that.
"""

import os
import re
import time
from collections.abc import Sequence

from strata.base.errors import UserError
from strata.base.process import as_root, capture
from strata.host import observe

ROOT = "/sys/fs/cgroup"
SLICE = "strata.slice"
GROUP = "strata"
# What stays in a native system's group where that would end with its first command, and does nothing.
HOLDER = ["/usr/bin/sleep", "infinity"]
# The files by which a group is frozen, of version 1 and of version 2.
OLD, NEW = "freezer.state", "cgroup.freeze"
# Arguments: groups that are made; where version 1 bounds CPUs and memory it wants to be told of them.
MAKE = """
for group; do
    mkdir -p "$group"
    for file in cpuset.cpus cpuset.mems; do
        for folder in "${group%/*}" "$group"; do
            if [ -e "$folder/$file" ] && [ -z "$(cat "$folder/$file")" ]; then
                cat "${folder%/*}/$file" >"$folder/$file"
            fi
        done
    done
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
    return [path for path in found if os.path.exists(f"{path}/cgroup.procs") and not os.path.islink(path)]


def path_of(id: str) -> str:
    """The path of a native system's group in every hierarchy."""
    return f"{SLICE}/{id}.scope" if managed_by_systemd() else f"{GROUP}/{id}"


def groups_of(id: str) -> list[str]:
    """The folders of a native system's groups."""
    return [f"{top}/{path_of(id)}" for top in hierarchies()]


def hold(id: str) -> None:
    """Make the groups of a native system for any number of commands, one after the other or at the same time.

    Each is run by :func:`join`.  systemd's group, which has the controllers that a container's has, lives as long as
    something runs in it: as in a container something that does nothing stays there.
    """
    if managed_by_systemd():
        unit = [f"--slice={SLICE}", f"--unit={id}", "--property=Delegate=yes"]
        stay = ["sh", "-euc", 'setsid "$@" </dev/null >/dev/null 2>&1 &', "strata", *HOLDER]
        capture(as_root(["systemd-run", "--scope", "--quiet", "--collect", *unit, "--", *stay]))
    else:
        capture(as_root(["sh", "-euc", MAKE, "strata", *groups_of(id)]))


def but_holder(lines: list[str]) -> list[str]:
    """Command lines of processes in groups of :func:`hold` without what holds them."""
    holder = " ".join(HOLDER)
    at = lines.index(holder) if managed_by_systemd() and holder in lines else len(lines)
    return lines[:at] + lines[at + 1 :]


def join(id: str) -> list[str]:
    """The beginning of a command (for root) that runs the rest inside the groups of :func:`hold`."""
    return ["sh", "-euc", JOIN, "strata", *groups_of(id), "--"]


def groups_named(name: str) -> list[str]:
    """The folders that are there of the groups of a native system or of a container.

    name: as of :meth:`strata.layers.common.layer.Layer.group`.
    """
    places = (f"{GROUP}/{name}", f"{SLICE}/{name}.scope", f"{SLICE}/docker-{name}.scope")
    groups = [os.path.join(top, place) for top in hierarchies() for place in places]
    return [group for group in groups if os.path.isdir(group)]


def _folders(name: str) -> list[str]:
    """The folders of :func:`groups_named`, and of the groups in them, these first."""
    return [folder for group in groups_named(name) for folder, _, _ in os.walk(group, topdown=False)]


def _processes(folder: str) -> set[int]:
    try:
        with open(f"{folder}/cgroup.procs", encoding="utf-8") as file:
            return {int(line) for line in file}
    except OSError:
        return set()


def members(name: str) -> set[int]:
    """Ids of the processes in the groups of a system, and in those that were made in them."""
    return {process for folder in _folders(name) for process in _processes(folder)}


def beside(process: int, proc: str = "/proc") -> list[int]:
    """Ids of the processes in the same group below ours as a process, and of the one that holds them."""
    with open(f"{proc}/{process}/cgroup", encoding="utf-8") as file:
        paths = [line.rstrip("\n").split(":", 2)[1:] for line in file]
    found = {process}
    for controllers, path in paths:
        # Where both versions are, the second lies beside the hierarchies of the first.
        hierarchy = controllers.removeprefix("name=") or ("" if unified() else "unified")
        if re.match(rf"/({GROUP}|{re.escape(SLICE)})/", path):
            found |= _processes(os.path.join(ROOT, hierarchy, path.lstrip("/")))
    with open(f"{proc}/{process}/stat", encoding="utf-8") as file:
        parent = int(file.read().rpartition(")")[2].split()[1])
    return sorted(found | ({parent} if parent > 1 else set()))


def of_containers() -> list[str]:
    """Patterns of the folders of containers' groups, for Docker's drivers and both versions of control groups."""
    return [f"{ROOT}/{SLICE}/*", f"{ROOT}/{GROUP}/*", f"{ROOT}/*/{GROUP}/*"]


def look(folders: list[str]) -> list[str]:
    """A command that prints the command line of every process in groups, for :func:`command_lines`.

    folders: patterns of the groups' folders.  One process is started, whatever is found: in an emulated machine each
    takes tenths of seconds.
    """
    script = """
        found=
        for folder in $*; do
            [ ! -e "$folder/cgroup.procs" ] || while read -r process; do
                found="$found /proc/$process/cmdline"
            done <"$folder/cgroup.procs"
        done 2>/dev/null
        [ -z "$found" ] || tail -v -n +1 $found 2>/dev/null
        :
    """
    return ["sh", "-c", script, "strata", *folders]


def command_lines(printed: str) -> list[str]:
    """What :func:`look` found, of each process once, without those that have ended."""
    found = dict(re.findall(r"^==> (/proc/\d+/cmdline) <==\n(.*?)(?=\n?^==> |\Z)", printed, re.MULTILINE | re.DOTALL))
    lines = (" ".join(text.replace("\0", " ").split()) for text in found.values())
    return [line for line in lines if line]


def remove(name: str, patience: float = 10.0, notice: float = 1.0) -> None:
    """End every process in the groups of a system and remove them.  Raises UserError if one cannot be ended.

    name: as of :func:`groups_named`, or the path of a file that holds it.  notice: seconds within which systemd
    removes its own; what is left then somebody else made, such as LXC.
    """
    if os.path.isabs(name):
        name = observe.read_files([name]).get(name, "")
    if not name:
        return
    # What is frozen does not end.
    freeze(freezers(name), False)
    deadline = time.monotonic() + patience
    while (processes := members(name)) and time.monotonic() < deadline:
        capture(as_root(["kill", "-KILL", *map(str, processes)]), check=False)
        time.sleep(0.02)
    systemd, noticed = managed_by_systemd(), time.monotonic() + notice
    while systemd and _folders(name) and time.monotonic() < noticed:
        time.sleep(0.02)
    if groups := _folders(name):
        capture(as_root(["rmdir", "--", *groups]), check=not systemd)


def freezers(name: str) -> list[str]:
    """The folders of :func:`groups_named` by which what runs in them is frozen; none where it has none.

    Where both versions are, those of the first.
    """
    groups = groups_named(name)
    return next(filter(None, ([one for one in groups if os.path.exists(f"{one}/{file}")] for file in (OLD, NEW))), [])


def freeze(folders: Sequence[str], frozen: bool = True, patience: float = 10.0) -> None:
    """Freeze what runs in groups, or thaw it, and sleep until that is so.  Raises UserError where it is not in time."""
    for folder in folders:
        deadline = time.monotonic() + patience
        while not _is(folder, frozen):
            if time.monotonic() > deadline:
                raise UserError(f"{folder}: what runs there could not be {'frozen' if frozen else 'thawed'}")
            old = os.path.exists(f"{folder}/{OLD}")
            word = ("FROZEN" if frozen else "THAWED") if old else str(int(frozen))
            _write(f"{folder}/{OLD if old else NEW}", word)
            # It takes its time where something is within a call of the kernel.
            waiting = time.monotonic() + 0.05
            while not _is(folder, frozen) and time.monotonic() < waiting:
                time.sleep(0.0002)


def _is(folder: str, frozen: bool) -> bool:
    """Whether a group is frozen as a whole, or thawed; one that is gone is whatever it should be."""
    try:
        if os.path.exists(f"{folder}/{OLD}"):
            with open(f"{folder}/{OLD}", encoding="utf-8") as file:
                return file.read().strip() == ("FROZEN" if frozen else "THAWED")
        with open(f"{folder}/cgroup.events", encoding="utf-8") as file:
            return f"frozen {int(frozen)}" in file.read()
    except FileNotFoundError:
        return True


def _write(path: str, word: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(word)
    except PermissionError:
        capture(as_root(["sh", "-euc", 'echo "$1" >"$2"', "strata", word, path]))
