"""Declare, set and check the limits of containers, such as memory and a quota of CPU time."""

from strata.host import observe
from strata.host.observe import NOT_AVAILABLE
from strata.util.data_types import Any, Fields
from strata.util.errors import UserError
from strata.util.units import UNITS, parse_ranges, parse_size

# A CPU's number, or a range of them.
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
    "cpus": {
        "type": "number",
        "minimum": 0.01,
        "maximum": 10000,
        "description": "a quota of CPU time, such as 0.6",
    },
    "cpu-burst": {
        "type": "integer",
        "minimum": 1,
        "maximum": 1000000,
        "description": "milliseconds of unused quota that may be used later, such as 60",
    },
    "cpu-shares": {
        "type": "integer",
        "minimum": 2,
        "maximum": 262144,
        "description": "a weight, such as 512 (1024 by default)",
    },
}

# The period of a quota, in which Docker and Podman count it.
PERIOD_MS = 100

# Docker starts no container with less memory.
MIN_MEMORY = 6 * UNITS["MiB"]
# The kernel rounds a limit of memory down to whole pages, which have at most this size.
LARGEST_PAGE = 64 * UNITS["KiB"]
# The CPUs by which a quota may differ from the requested one: engines round quotas.
QUOTA_TOLERANCE = 1e-3
# Files in a container that show the values in use; one of MEMORY_LIMITS has the limit of memory.
STATUS, MOUNTS = "/proc/self/status", "/proc/mounts"
MEMORY_LIMITS = ["/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max"]
# Files of the limits of CPU time in version 1 of control groups; in version 2 a quota is
# "QUOTA PERIOD", and a weight is on another scale than shares, which is not observed.
QUOTA, QUOTA_PERIOD, SHARES = (
    f"/sys/fs/cgroup/cpu/cpu.{name}" for name in ("cfs_quota_us", "cfs_period_us", "shares")
)
QUOTA_AND_PERIOD = "/sys/fs/cgroup/cpu.max"
BURSTS = ["/sys/fs/cgroup/cpu/cpu.cfs_burst_us", "/sys/fs/cgroup/cpu.max.burst"]
CPU_LIMITS = [QUOTA, QUOTA_PERIOD, SHARES, QUOTA_AND_PERIOD, *BURSTS]
PRINT_FILES = ["tail", "-v", "-n", "+1", STATUS, MOUNTS, *MEMORY_LIMITS, *CPU_LIMITS]
# Option → names of the values that it changes in programs' starting state.
DIFFERENCES = {
    "seccomp": ("seccomp",),
    "cpuset-cpus": ("processors", "processors on the host"),
}
SECCOMP_MODES = {"0": "unconfined", "1": "strict", "2": "default"}


def find_limit_mistakes(options: Fields) -> list[tuple[str, str]]:
    """Return (option, message) for limits that fit their schema but that no container can have.

    options: the options of the container, as in config.yaml.
    """
    mistakes = []
    cpus = options.get("cpuset-cpus", "")
    memory = options.get("memory")
    # parse_ranges() returns no numbers for a range whose first number is the higher one.
    if cpus and not all(map(parse_ranges, cpus.split(","))):
        mistakes.append(("cpuset-cpus", f"is {cpus}; begin each range with its lower number"))
    if memory and parse_size(memory) < MIN_MEMORY:
        mistake = f"is {memory}; must be at least 6MiB, without which none starts"
        mistakes.append(("memory", mistake))
    burst_ms = options.get("cpu-burst", 0)
    # The CPU time in ms that `cpus` allows in a period; the kernel refuses a larger burst.
    quota_ms = round(PERIOD_MS * options.get("cpus", 0))
    if burst_ms > quota_ms:
        if quota_ms:
            reason = f"at most {quota_ms}, the milliseconds that cpus gives in a period"
        else:
            reason = "set cpus too, whose rest it saves"
        mistakes.append(("cpu-burst", f"is {burst_ms}; {reason}"))
    return mistakes


def explain_excess(options: Fields, cpus: set[int], memory_bytes: float) -> str | None:
    """Return why a machine cannot grant a container its limits, with the remedy; None if it can.

    options: the options of the container, resolved.
    cpus: numbers of the CPUs that the machine may use.
    memory_bytes: the machine's memory; math.inf if the memory is not checked.
    The reason is, for example, "cpus is 4, and this machine has 2: choose less".
    """
    if set(parse_ranges(options.get("cpuset-cpus", ""))) - cpus:
        cpu_list = ", ".join(map(str, sorted(cpus)))
        return (
            f"cpuset-cpus is {options['cpuset-cpus']}, and this machine has the CPUs {cpu_list}: "
            "choose among these"
        )
    if options.get("cpus", 0) > len(cpus):
        return f"cpus is {options['cpus']}, and this machine has {len(cpus)}: choose less"
    if "memory" in options and parse_size(options["memory"]) > memory_bytes:
        memory = f"{memory_bytes / UNITS['GiB']:.1f} GiB"
        return f"memory is {options['memory']}, and this machine has {memory}: choose less"
    return None


def build_limit_options(options: Fields) -> list[str]:
    """Return the arguments of ``docker run`` or ``podman run`` that set a container's limits.

    options: the options of the container, resolved.  The engines have no argument for `cpu-burst`,
    which :func:`strata.host.cgroups.set_cpu_burst` sets once the container runs.
    """
    argv = []
    if options.get("seccomp") == "unconfined":
        argv += ["--security-opt", "seccomp=unconfined"]
    if "cpuset-cpus" in options:
        argv += ["--cpuset-cpus", options["cpuset-cpus"]]
    if "memory" in options:
        # --memory-swap limits memory and swap together: an equal number leaves no swap space.
        memory_bytes = str(parse_size(options["memory"]))
        argv += ["--memory", memory_bytes, "--memory-swap", memory_bytes]
    for name in ("cpus", "cpu-shares"):
        if name in options:
            argv += [f"--{name}", str(options[name])]
    return argv


def select_checked_options(options: Fields) -> Fields:
    """Return the options that are checked in the container: the limits, and `data` if it is tmpfs.

    options: the options of the container, resolved.
    :func:`_parse_limits` must have a value for each returned key.
    """
    checked_options = {key: value for key, value in options.items() if key in PROPERTIES}
    if options.get("data") == "tmpfs":
        checked_options["data"] = "tmpfs"
    return checked_options


def require_limits(options: Fields, printed: str) -> list[Fields]:
    """Check that a container has its limits, and return ``{name, requested, observed}`` of each.

    options: the options of the container, resolved.
    printed: the output of :data:`PRINT_FILES` in the container.
    Records hold the list as the engine's `settings`.  A value that cannot be observed is
    "not available", and is accepted.
    Raises UserError if the container runs with another value than requested.
    """
    container_values = _parse_limits(observe.split_printed_files(printed))
    rows = []
    for name, option_value in select_checked_options(options).items():
        container_value = container_values[name] or NOT_AVAILABLE
        rows.append({"name": name, "requested": str(option_value), "observed": container_value})
        if not _is_applied(name, option_value, container_value):
            raise UserError(
                f"{name} was not applied: {option_value} was requested, and the container has "
                f"{container_value}"
            )
    return rows


def _parse_limits(files: dict[str, str]) -> dict[str, str | None]:
    """Return each limit → its value in a container, and `data` → the file system of /data.

    files: path → content of the files that :data:`PRINT_FILES` prints.
    A value is None if it is unknown.  Memory is in bytes, cpus in CPUs, cpu-burst in microseconds;
    :func:`_is_applied` relies on these units.
    """
    status = observe.parse_named_values(files.get(STATUS, ""))
    mounts = [line.split() for line in files.get(MOUNTS, "").splitlines()]
    # The second column of a mount is its folder, the third its type.
    file_systems = [columns[2] for columns in mounts if columns[1:2] == ["/data"]]
    return {
        "seccomp": SECCOMP_MODES.get(status.get("Seccomp", "")),
        "cpuset-cpus": status.get("Cpus_allowed_list"),
        "memory": _find_first_content(files, MEMORY_LIMITS),
        "data": file_systems[0] if file_systems else None,
        "cpus": _parse_quota(files),
        "cpu-burst": _find_first_content(files, BURSTS),
        "cpu-shares": files.get(SHARES),
    }


def _find_first_content(files: dict[str, str], paths: list[str]) -> str | None:
    """Return the content of the first of several files that exists; None if none does.

    files: path → content of the existing files.
    paths: the files to look for, one for each version of control groups.
    """
    return next((files[path] for path in paths if path in files), None)


def _parse_quota(files: dict[str, str]) -> str | None:
    """Return a container's quota of CPU time, in CPUs, from its control group's files.

    files: path → content of the existing files.
    The quota has at most six significant digits, such as "0.6".  It is "max" without a limit, and
    None if it is unknown.
    """
    # Version 2 of control groups has "QUOTA PERIOD" in one file, version 1 has two files.
    text = files.get(QUOTA_AND_PERIOD) or f"{files.get(QUOTA, '')} {files.get(QUOTA_PERIOD, '')}"
    quota, _, period = text.strip().partition(" ")
    # Without a limit, version 2 has max, and version 1 has -1.
    if quota in ("max", "-1"):
        return "max"
    if not quota.isdecimal() or not period.isdecimal():
        return None
    return f"{int(quota) / int(period):g}"


def _is_applied(name: str, option_value: Any, container_value: str) -> bool:
    """Return whether a container has the requested value of a limit.

    name: the name of the limit, a key of :data:`PROPERTIES`, or "data".
    option_value: the requested value, as in config.yaml.
    container_value: the observed value, as :func:`_parse_limits` returns it, or "not available",
    for which the result is true.
    CPUs may be written in another form, memory may be rounded down by less than 64 KiB, and a quota
    may differ by less than :data:`QUOTA_TOLERANCE`.
    """
    if container_value in (str(option_value), NOT_AVAILABLE):
        return True
    if name == "cpus":
        if container_value == "max":
            return False
        return abs(float(container_value) - float(option_value)) < QUOTA_TOLERANCE
    if name == "cpu-burst":
        # The option is in milliseconds, the observed value in microseconds.
        return container_value == str(1000 * option_value)
    if name == "cpuset-cpus":
        return set(parse_ranges(container_value)) == set(parse_ranges(option_value))
    if name == "memory" and container_value.isdecimal():
        return 0 <= parse_size(option_value) - int(container_value) < LARGEST_PAGE
    return False
