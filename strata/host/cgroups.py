"""Control groups: native runs get the same place in the hierarchy as containers.

Docker puts a container into ``<parent>/<id>``; a native run goes into a sibling of it, below
the same parent, in every hierarchy that Docker uses.  Otherwise the scheduler would share
the CPU among groups of unequal standing, and a comparison would measure that.
"""

import contextlib
import os
import re
import signal
import time
from collections.abc import Sequence

from strata.base.errors import UserError
from strata.base.process import as_root, capture

ROOT = "/sys/fs/cgroup"
SLICE = "strata.slice"
GROUP = "strata"
# What stays in a native system's group where that would end with its first command, and does nothing.
HOLDER = ["/usr/bin/sleep", "infinity"]
# The files by which a group is frozen, of version 1 and of version 2.
OLD, NEW = "freezer.state", "cgroup.freeze"


def parent_for(driver: str) -> str:
    """The argument of ``docker run --cgroup-parent`` for Docker's cgroup driver."""
    return SLICE if driver == "systemd" else f"/{GROUP}"


def unified(root: str = ROOT) -> bool:
    """Whether the machine has the unified hierarchy (version 2)."""
    return os.path.exists(f"{root}/cgroup.controllers")


def managed_by_systemd(root: str = ROOT) -> bool:
    """Whether groups are systemd's to make, as Docker then lets it."""
    return unified(root) and os.path.isdir("/run/systemd/system")


def hierarchies(mountinfo: str = "/proc/self/mountinfo") -> list[str]:
    """Mount points of the machine's hierarchies; Docker makes a group in each of them."""
    with open(mountinfo, encoding="utf-8") as file:
        lines = [line.split() for line in file]
    kinds = {fields[4]: fields[fields.index("-") + 1] for fields in lines}
    return sorted(
        point for point, kind in kinds.items() if kind.startswith("cgroup") and f"{point}/".startswith(f"{ROOT}/")
    )


def path_of(id: str) -> str:
    """The path of a native system's group in every hierarchy."""
    return f"{SLICE}/{id}.scope" if managed_by_systemd() else f"{GROUP}/{id}"


def groups_of(id: str) -> list[str]:
    """The folders of a native system's groups."""
    points = [ROOT] if managed_by_systemd() else hierarchies()
    return [f"{point}/{path_of(id)}" for point in points]


def make(id: str) -> None:
    """Make the groups of a native system; systemd makes its own with the first command."""
    if managed_by_systemd():
        return
    script = (
        'for group; do parent=${group%/*}; mkdir -p "$group"; '
        'for file in cpuset.cpus cpuset.mems; do for folder in "$parent" "$group"; do '
        'if [ -e "$folder/$file" ] && [ -z "$(cat "$folder/$file")" ]; then '
        'cat "${folder%/*}/$file" >"$folder/$file"; fi; done; done; done'
    )
    capture(as_root(["sh", "-euc", script, "strata", *groups_of(id)]))


def enter(id: str) -> list[str]:
    """The beginning of a command (for root) that runs the rest inside the groups, as the first that does.

    systemd's group lives as long as something runs in it, and systemd refuses a second one of its name meanwhile.  It
    has the controllers that a container's has.
    """
    if managed_by_systemd():
        unit = [f"--slice={SLICE}", f"--unit={id}", "--property=Delegate=yes"]
        return ["systemd-run", "--scope", "--quiet", "--collect", *unit, "--"]
    return join(id)


def hold(id: str) -> None:
    """Make the groups of a native system for any number of commands, one after the other or at the same time.

    Each is run by :func:`join`.  As in a container something that does nothing stays there, where it has to.
    """
    make(id)
    if managed_by_systemd():
        script = 'setsid "$@" </dev/null >/dev/null 2>&1 &'
        capture(as_root([*enter(id), "sh", "-euc", script, "strata", *HOLDER]))


def but_holder(lines: list[str]) -> list[str]:
    """Command lines of processes in groups of :func:`hold` without what holds them."""
    holder = " ".join(HOLDER)
    at = lines.index(holder) if managed_by_systemd() and holder in lines else len(lines)
    return lines[:at] + lines[at + 1 :]


def holders(id: str) -> set[int]:
    """Ids of the processes by which :func:`hold` holds a native system's groups."""
    found = set()
    for process in members(id):
        with contextlib.suppress(OSError), open(f"/proc/{process}/cmdline", encoding="utf-8") as file:
            if file.read().rstrip("\0").split("\0") == HOLDER:
                found.add(process)
    return found


def join(id: str, below: str = "") -> list[str]:
    """Like :func:`enter`, for groups in which something runs already, or that need not have it.

    below: the group in them that is joined, as :func:`below` tells of it.
    """
    script = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs"; shift; done; shift; exec "$@"'
    return ["sh", "-euc", script, "strata", *(os.path.join(group, below).rstrip("/") for group in groups_of(id)), "--"]


def below(process: int, id: str, proc: str = "/proc") -> str:
    """The group below a system's in which a process is, by its path from there; "" where it is in the system's itself.

    It may be one in version 2 alone: there a group has processes or further groups.
    """
    if not unified():
        return ""
    with open(f"{proc}/{process}/cgroup", encoding="utf-8") as file:
        path = file.read().rstrip("\n").rpartition("\n")[2].split(":", 2)[2]
    inside = os.path.relpath(path, f"/{path_of(id)}")
    return "" if inside == "." or inside.startswith("..") else inside


def members(id: str) -> set[int]:
    """Ids of the processes in a native system's groups, and in those that were made in them."""
    found: set[int] = set()
    for group in _folders(id):
        try:
            with open(f"{group}/cgroup.procs", encoding="utf-8") as file:
                found.update(int(line) for line in file)
        except OSError:
            continue
    return found


def _folders(id: str) -> list[str]:
    """The folders of a native system's groups that are there, and of those that were made in them, these first."""
    return [folder for group in groups_of(id) for folder, _, _ in os.walk(group, topdown=False)]


def beside(process: int, proc: str = "/proc") -> list[int]:
    """Ids of the processes in the same group below ours as a process, and of the one that holds them."""
    with open(f"{proc}/{process}/cgroup", encoding="utf-8") as file:
        paths = [line.rstrip("\n").split(":", 2)[1:] for line in file]
    found = {process}
    for controllers, path in paths:
        # Where both versions are, the second lies beside the hierarchies of the first.
        hierarchy = controllers.removeprefix("name=") or ("" if unified() else "unified")
        folder = os.path.join(ROOT, hierarchy, path.lstrip("/"))
        if re.match(rf"/({GROUP}|{re.escape(SLICE)})/", path):
            with open(f"{folder}/cgroup.procs", encoding="utf-8") as file:
                found |= {int(line) for line in file}
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


def remove(id: str, patience: float = 10.0, notice: float = 1.0) -> None:
    """End every process in the groups and remove them.  Raises UserError if one cannot be ended.

    notice: seconds within which systemd removes its own; what is left then somebody else made, such as LXC.
    """
    # What is frozen does not end.
    freeze(freezers(id), False)
    deadline = time.monotonic() + patience
    while (processes := members(id)) and time.monotonic() < deadline:
        for process in processes:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
            except PermissionError:
                capture(as_root(["kill", "-KILL", str(process)]), check=False)
        time.sleep(0.02)
    systemd, noticed = managed_by_systemd(), time.monotonic() + notice
    while systemd and _folders(id) and time.monotonic() < noticed:
        time.sleep(0.02)
    if groups := _folders(id):
        capture(as_root(["rmdir", "--", *groups]), check=not systemd)


def freezers(name: str, root: str = ROOT) -> list[str]:
    """The folders of the groups of a system or a container by which what runs in it is frozen; none where it has none.

    name: of its group, as of :meth:`strata.layers.common.layer.Layer.group`.
    """
    places = [f"freezer/{GROUP}/{name}", f"{GROUP}/{name}", f"{SLICE}/{name}.scope", f"{SLICE}/docker-{name}.scope"]
    folders = [os.path.join(root, place) for place in places]
    return [folder for folder in folders if any(os.path.exists(f"{folder}/{file}") for file in (OLD, NEW))]


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
