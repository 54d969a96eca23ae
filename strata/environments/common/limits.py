"""Options of a container that people argue about: their form, what asks for them, and what is seen of them in it."""

from strata.host import observe
from strata.host.observe import NOT_AVAILABLE
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.units import UNIT, numbers, size

CPUS = r"[0-9]{1,4}(-[0-9]{1,4})?"

PROPERTIES: dict[str, Fields] = {
    "seccomp": {"enum": ["default", "unconfined"], "description": "default or unconfined"},
    "cpuset-cpus": {
        "type": "string",
        "pattern": f"^{CPUS}(,{CPUS})*$",
        "description": "CPUs such as 0-1,3",
    },
    "memory": {
        "type": "string",
        "pattern": "^[1-9][0-9]{0,8}(KiB|MiB|GiB)$",
        "description": "a size such as 2GiB",
    },
}

# What shows them inside: files that every process has there; the bound for memory is in one of the last two.
STATUS, MOUNTS = "/proc/self/status", "/proc/mounts"
BOUNDS = ["/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max"]
LOOK = ["tail", "-v", "-n", "+1", STATUS, MOUNTS, *BOUNDS]
# What each changes in the state in which programs start.
CHANGED = {
    "seccomp": ("seccomp",),
    "cpuset-cpus": ("processors", "processors on the host"),
}
FILTERS = {"0": "unconfined", "1": "strict", "2": "default"}


def refusal(options: Fields, cpus: set[int], memory_bytes: float) -> str | None:
    """Why a machine with these CPUs and this memory cannot grant them; None if it can."""
    if set(numbers(options.get("cpuset-cpus", ""))) - cpus:
        named = ", ".join(map(str, sorted(cpus)))
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
        found += [
            "--memory",
            str(size(options["memory"])),
            "--memory-swap",
            str(size(options["memory"])),
        ]
    return found


def asked(options: Fields) -> Fields:
    """Those that are set, data in memory among them."""
    return {
        key: value
        for key, value in options.items()
        if key in PROPERTIES or (key, value) == ("data", "tmpfs")
    }


def seen(options: Fields, printed: str) -> list[Fields]:
    """``[{name, asked, seen}]`` of those that are set, from what :data:`LOOK` printed inside.

    Raises UserError where one is seen to be otherwise than it was asked for.
    """
    files = observe.split(printed)
    status = observe.fields(files.get(STATUS, ""))
    values = {
        "seccomp": FILTERS.get(status.get("Seccomp", "")),
        "cpuset-cpus": status.get("Cpus_allowed_list"),
        "memory": next((files[path] for path in BOUNDS if path in files), None),
        "data": next(
            (line.split()[2] for line in files.get(MOUNTS, "").splitlines() if " /data " in line),
            None,
        ),
    }
    found = []
    for name, wanted in asked(options).items():
        inside = values[name] or NOT_AVAILABLE
        found.append({"name": name, "asked": wanted, "seen": inside})
        alike = inside in (wanted, NOT_AVAILABLE)
        if name == "cpuset-cpus" and not alike:
            alike = set(numbers(inside)) == set(numbers(wanted))
        if name == "memory" and inside.isdecimal():
            # The kernel counts in pages.
            alike = 0 <= size(wanted) - int(inside) < 65536
        if not alike:
            raise UserError(
                f"{name} was not applied: {wanted} was asked for, and the container has {inside}"
            )
    return found
