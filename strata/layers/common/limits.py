"""Options of a container that people argue about: their form, what asks for them, and what is seen of them in it."""

from __future__ import annotations

import re
from collections.abc import Callable

from strata.base.amounts import UNIT, numbers, size
from strata.base.errors import UserError
from strata.base.shapes import Fields
from strata.host import observe
from strata.host.observe import NOT_AVAILABLE

CPUS = r"[0-9]{1,4}(-[0-9]{1,4})?"
# Docker's own least.
LEAST_MEMORY = 6 * UNIT["MiB"]

PROPERTIES: dict[str, Fields] = {
    "seccomp": {"enum": ["default", "unconfined"], "description": "default or unconfined"},
    "cpuset-cpus": {"type": "string", "pattern": f"^{CPUS}(,{CPUS})*$", "description": "CPUs such as 0-1,3"},
    "memory": {"type": "string", "pattern": "^[1-9][0-9]{0,8}(KiB|MiB|GiB)$", "description": "a size such as 2GiB"},
}
OF_DOCKER: dict[str, Fields] = {"user-namespace": {"enum": ["own", "host"], "description": "own or host"}}

# What shows them inside: files that every process has there.
FILES = [
    "/proc/self/status",
    "/proc/self/uid_map",
    "/proc/mounts",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/memory.max",
]
LOOK = ["tail", "-v", "-n", "+1", *FILES]


def cpus(text: str) -> set[int]:
    """The numbers in a list of CPUs such as ``0-1,3``."""
    return set(numbers(text))


def check(options: Fields) -> list[tuple[str, str]]:
    """(key, what is wrong) of options that fit their schema."""
    found = []
    if "cpuset-cpus" in options and not cpus(options["cpuset-cpus"]):
        found.append(("cpuset-cpus", f"{options['cpuset-cpus']} holds no CPU; must be such as 0-1,3"))
    if "memory" in options and size(options["memory"]) < LEAST_MEMORY:
        found.append(("memory", f"is {options['memory']}; must be at least {LEAST_MEMORY // UNIT['MiB']}MiB"))
    return found


def refusal(options: Fields, machine_cpus: set[int], memory_bytes: int) -> str | None:
    """Why a machine with these CPUs and this memory cannot grant them; None if it can."""
    lacking = cpus(options["cpuset-cpus"]) - machine_cpus if "cpuset-cpus" in options else set()
    if lacking:
        named = ", ".join(map(str, sorted(machine_cpus)))
        return f"cpuset-cpus is {options['cpuset-cpus']}, and this machine has the CPUs {named}: choose among these"
    if "memory" in options and size(options["memory"]) > memory_bytes:
        there = f"this machine has {memory_bytes / UNIT['GiB']:.1f} GiB"
        return f"memory is {options['memory']}, and {there}: choose less"
    return None


def words(options: Fields) -> list[str]:
    """The words that ask for them, the same for Docker and Podman."""
    found = []
    if options.get("seccomp") == "unconfined":
        found += ["--security-opt", "seccomp=unconfined"]
    if "cpuset-cpus" in options:
        found += ["--cpuset-cpus", options["cpuset-cpus"]]
    if "memory" in options:
        # No more of swap than of memory: a limit that can be swapped past is none.
        found += ["--memory", str(size(options["memory"])), "--memory-swap", str(size(options["memory"]))]
    return found


def seen(options: Fields, printed: str) -> list[Fields]:
    """``[{name, asked, seen}]`` of those that are set, from what :data:`LOOK` printed inside."""
    files = observe.split(printed)
    status = dict(line.split(":\t", 1) for line in files.get(FILES[0], "").splitlines() if ":\t" in line)
    limits = [files.get(path, "").strip() for path in FILES[3:]]
    mounts = [line.split() for line in files.get("/proc/mounts", "").splitlines()]
    users = files.get("/proc/self/uid_map", "").split()
    values = {
        "seccomp": {"0": "unconfined", "1": "strict", "2": "default"}.get(status.get("Seccomp", "").strip()),
        "cpuset-cpus": status.get("Cpus_allowed_list", "").strip() or None,
        "memory": next((limit for limit in limits if limit.isdecimal()), None),
        "user-namespace": ("host" if users == ["0", "0", str(2**32 - 1)] else "own") if users else None,
        "data": next((fields[2] for fields in mounts if len(fields) > 2 and fields[1] == "/data"), None),
    }
    wanted = [name for name in values if name in options and (name != "data" or options[name] == "tmpfs")]
    return [{"name": name, "asked": options[name], "seen": values[name] or NOT_AVAILABLE} for name in wanted]


def see(options: Fields, look: Callable[[], str]) -> list[Fields]:
    """What :func:`seen` sees by one `look` into a container; nothing where nothing was asked for.

    Raises UserError where it is otherwise than what was asked for.
    """
    if options["data"] != "tmpfs" and not set(options) & {*PROPERTIES, *OF_DOCKER}:
        return []
    settings = seen(options, look())
    for setting in settings:
        if not applied(setting):
            name, asked, found = setting.values()
            raise UserError(f"{name} was not applied: {asked} was asked for, and the container has {found}")
    return settings


def applied(setting: Fields) -> bool:
    """Whether a setting of :func:`seen` is as it was asked for, or cannot be seen."""
    name, asked, found = setting["name"], setting["asked"], setting["seen"]
    if found == NOT_AVAILABLE:
        return True
    if name == "cpuset-cpus":
        return bool(re.fullmatch(f"{CPUS}(,{CPUS})*", found)) and cpus(found) == cpus(asked)
    if name == "memory":
        # The kernel counts in pages.
        return 0 <= size(asked) - int(found) < 65536
    return bool(found == asked)
