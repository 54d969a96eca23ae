"""Observe a system in the kernel's own files, never in a configuration.

The same text is read on the host (by opening the files) and inside a system under test (by one
``tail`` that prints them), and parsed by the same functions.  Every file of /proc and /sys is read
by :func:`read_file` and :func:`list_folder`: a file that is missing, or does not hold the expected
text, makes its fact "not available" and is not an error.
"""

import os
import re
import time

from strata.util.data_types import Fields
from strata.util.units import UNITS, parse_ranges

NOT_AVAILABLE = "not available"
# Values of `virtualization`, which is not available if the kernel gives no CPU flags.
GUEST, BARE = "guest of a hypervisor", "none seen"
CPU_FOLDER = "/sys/devices/system/cpu"
FILES = [
    "/proc/version",
    "/etc/os-release",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/self/cgroup",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/class/dmi/id/product_name",
    "/proc/self/status",
    "/opt/strata/packages",
]
MEMORY, STAT = "/proc/meminfo", "/proc/stat"
# The files about turbo; the first that exists counts: their text → its meaning.
TURBO = {
    f"{CPU_FOLDER}/intel_pstate/no_turbo": {"0": "on", "1": "off"},
    f"{CPU_FOLDER}/cpufreq/boost": {"1": "on", "0": "off"},
}
TEMPERATURE = "/sys/class/thermal/thermal_zone0/temp"
# If available memory rises by less within two seconds, the kernel has freed all that it will: on an
# idle host, it varies by about a megabyte.
FREED_BYTES = 2_000_000


def build_file_print_command() -> list[str]:
    """Return the command that prints those of :data:`FILES` that exist, each after its path.

    :func:`split_printed_files` relies on this format.
    """
    return ["tail", "-v", "-n", "+1", *FILES]


def split_printed_files(text: str) -> dict[str, str]:
    """Return path → content of files that a command such as ``tail -v`` printed.

    text: a line ``==> PATH <==`` before the content of each file; text before the first such line
    is ignored.
    Line ends around a content are removed.  If a path occurs twice, the last content counts.
    :func:`build_file_print_command`, :func:`strata.host.starting_state.build_state_command` and
    LIST_SCRIPT of strata/host/firewall.py print in this form.
    """
    # The text before the first file, then alternately a path and the content after it.
    pieces = re.split(r"^==> (/[^\n]*) <==\n", text, flags=re.MULTILINE)
    files = zip(pieces[1::2], pieces[2::2], strict=True)
    return {path: content.strip("\n") for path, content in files}


def read_file(path: str) -> str | None:
    """Return a file's text without line ends around it; None if the file cannot be read.

    Bytes that are not UTF-8 become U+FFFD.
    """
    try:
        # Unbuffered reading takes a third of the time.
        with open(path, "rb", buffering=0) as file:
            return file.readall().decode(errors="replace").strip("\n")
    except OSError:
        return None


def list_folder(folder: str) -> list[str]:
    """Return the sorted names in a folder; an empty list if the folder cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def read_files(paths: list[str]) -> dict[str, str]:
    """Return path → content of those files that can be read, in the order of the paths."""
    return {path: text for path in paths if (text := read_file(path)) is not None}


def parse_number(text: str | None) -> int | None:
    """Return the whole number at the beginning of a text such as ``16384 kB``.

    Returns None if the text is None, or does not begin with a number of at most 18 digits (so that
    it fits into 64 bits) that a space or punctuation follows.
    """
    digits = re.match(r"\s*([0-9]{1,18})(?![\w.])", text or "")
    return int(digits[1]) if digits else None


def parse_cpu_list(text: str | None) -> set[int]:
    """Return the CPUs in a list such as ``0-3,8``; an empty set for any other text."""
    cpu_range = "[0-9]{1,5}(-[0-9]{1,5})?"
    if not re.fullmatch(f"{cpu_range}(,{cpu_range})*", text or ""):
        return set()
    return set(parse_ranges(text or ""))


def replace_unprintable(text: str) -> str:
    """Return a text in which each unprintable character is replaced with a question mark.

    Line feeds and tabs are replaced, too, as is every space character other than " ".
    The text comes from a system under test, and must not control the terminal that shows a record.
    """
    return "".join(character if character.isprintable() else "?" for character in text)


def parse_named_values(text: str) -> dict[str, str]:
    """Return name → value from lines ``name: value`` or ``name=value``.

    text: lines of either form, such as those of /proc/meminfo or os-release; others are ignored.
    If several lines have one name, the first non-empty value counts; empty values are dropped.
    Double quotes around a value are removed, as os-release needs it.
    """
    values: dict[str, str] = {}
    for name, text_after_name in re.findall("^([^:=\n]*)[:=](.*)$", text, re.MULTILINE):
        if value := text_after_name.strip().strip('"'):
            values.setdefault(name.strip(), value)
    return values


def parse_system_facts(files: dict[str, str]) -> Fields:
    """Return the facts of ``observed.inside`` in a record (docs/files.md); records hold these keys.

    files: path → content of :data:`FILES`.
    A fact that the files do not give, or give as 0 or as an empty text, is :data:`NOT_AVAILABLE`.
    Unprintable characters become question marks.
    """
    cpuinfo = files.get("/proc/cpuinfo", "")
    # The entry of the first CPU; an empty line ends it.
    first_cpu = parse_named_values(cpuinfo.partition("\n\n")[0])
    process_status = parse_named_values(files.get("/proc/self/status", ""))
    sockets = {*re.findall("^physical id.*", cpuinfo, re.MULTILINE)}
    cores = parse_number(first_cpu.get("cpu cores"))
    threads = parse_number(first_cpu.get("siblings"))
    # "Linux version RELEASE …"
    version_words = files.get("/proc/version", "").split()
    # The setting in use is the one in brackets.
    huge_pages = re.search(
        r"\[(\w+)\]", files.get("/sys/kernel/mm/transparent_hugepage/enabled", "")
    )
    # Each line is HIERARCHY:CONTROLLERS:GROUP; a group in several hierarchies is named once.
    rows = [line.split(":", 2) for line in files.get("/proc/self/cgroup", "").splitlines()]
    groups = {replace_unprintable(row[2]) for row in rows if len(row) == 3}
    # Each line is "PACKAGE VERSION".
    packages = map(replace_unprintable, files.get("/opt/strata/packages", "").splitlines())
    virtualization = None
    if flags := first_cpu.get("flags", "").split():
        virtualization = GUEST if "hypervisor" in flags else BARE
    facts = {
        "kernel": version_words[2] if len(version_words) > 2 else None,
        "os": parse_named_values(files.get("/etc/os-release", "")).get("PRETTY_NAME"),
        "cpu_model": first_cpu.get("model name"),
        "cpus": _count_cpus(cpuinfo, process_status),
        "sockets": len(sockets),
        "cores_per_socket": cores,
        "threads_per_core": threads // cores if cores and threads else None,
        "memory_bytes": parse_kib_as_bytes(files.get(MEMORY), "MemTotal"),
        "huge_pages": huge_pages[1] if huge_pages else None,
        "clocksource": files.get(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        ),
        "virtualization": virtualization,
        "machine": files.get("/sys/class/dmi/id/product_name"),
        "cgroup": ", ".join(sorted(groups)),
        "microcode": first_cpu.get("microcode"),
        "versions": dict(line.split(" ", 1) for line in packages if " " in line),
    }
    for key, value in facts.items():
        if not value:
            facts[key] = NOT_AVAILABLE
        elif isinstance(value, str):
            facts[key] = replace_unprintable(value)
    return facts


def _count_cpus(cpuinfo: str, status: dict[str, str]) -> int:
    """Return the number of online CPUs that the observing process may use; 0 if not known.

    cpuinfo: the text of /proc/cpuinfo.
    status: name → value of that process's /proc/PID/status; without its CPU affinity, all online
    CPUs count.
    """
    # Most kernels write the number after the colon; the kernel for s390 writes it before.
    numbers = re.findall(r"(?m)^processor\s*:\s*([0-9]{1,5})$", cpuinfo)
    numbers += re.findall(r"(?m)^processor\s*([0-9]{1,5})\s*:", cpuinfo)
    online_cpus = set(map(int, numbers))
    permitted_cpus = online_cpus & parse_cpu_list(status.get("Cpus_allowed_list"))
    return len(permitted_cpus or online_cpus)


def parse_kib_as_bytes(text: str | None, name: str) -> int | None:
    """Return an entry of a file such as /proc/meminfo in bytes.

    The file's unit is "kB", by which the kernel means KiB.
    text: the text of the file; None if it could not be read.
    name: the name of the entry, such as "MemTotal".
    Returns None if the text is None, or if the entry is missing or not a number.
    """
    size = parse_number(parse_named_values(text or "").get(name))
    return None if size is None else size * 1024


def observe_host(cpus: set[int]) -> Fields:
    """Return the host's constant facts, for records.

    cpus: the CPUs whose caches are included; the frequency governor is that of the lowest-numbered
    one.
    The keys are those of :func:`parse_system_facts` without ``versions``, and ``cache_bytes``,
    ``governor``, ``turbo`` and ``vulnerabilities`` (name → the kernel's text; empty texts are
    dropped).  A fact that the kernel does not give is :data:`NOT_AVAILABLE`.
    Records hold the facts as ``observed.host.static``, where the scripts in analysis/ read them.
    """
    facts = parse_system_facts(read_files(FILES))
    facts.pop("versions")
    facts["cache_bytes"] = sum_last_level_caches(cpus) or NOT_AVAILABLE
    governor = read_file(_get_cpufreq_path(cpus, "scaling_governor"))
    facts["governor"] = replace_unprintable(governor or NOT_AVAILABLE)
    facts["turbo"] = NOT_AVAILABLE
    if turbo_files := read_files([*TURBO]):
        path, text = next(iter(turbo_files.items()))
        facts["turbo"] = TURBO[path].get(text, NOT_AVAILABLE)
    folder = f"{CPU_FOLDER}/vulnerabilities"
    vulnerabilities = {}
    for name in list_folder(folder):
        if vulnerability := read_file(f"{folder}/{name}"):
            vulnerabilities[name] = replace_unprintable(vulnerability)
    facts["vulnerabilities"] = vulnerabilities or NOT_AVAILABLE
    return facts


def _get_cpufreq_path(cpus: set[int], name: str) -> str:
    """Return the path of a file about the frequency of the lowest-numbered CPU of a set.

    cpus: the numbers of the CPUs; if empty, CPU 0 is taken.
    name: the name of the file in the folder cpufreq, such as scaling_governor.
    """
    return f"{CPU_FOLDER}/cpu{min(cpus, default=0)}/cpufreq/{name}"


def sum_last_level_caches(cpus: set[int]) -> int | None:
    """Return the total bytes of the highest-level caches that these CPUs use; None if not known.

    cpus: the numbers of the CPUs.
    A cache that several of the CPUs share counts once.  If the kernel does not list the CPUs that
    share a cache, the cache counts as shared by all.
    """
    # (level, CPUs that share the cache) → bytes.
    caches: dict[tuple[int, tuple[int, ...]], int] = {}
    for cpu in sorted(cpus):
        # The cache of this CPU was counted with a CPU that shares it.
        if any(cpu in sharing for _, sharing in caches):
            continue
        names = list_folder(f"{CPU_FOLDER}/cpu{cpu}/cache")
        caches_of_cpu = [cache for name in names if (cache := _read_cache(cpu, name))]
        if caches_of_cpu:
            # The level comes first: the largest tuple is of the highest level.
            level, sharing, size = max(caches_of_cpu)
            caches[level, sharing] = max(size, caches.get((level, sharing), 0))
    highest_level = max((level for level, _ in caches), default=0)
    return sum(size for (level, _), size in caches.items() if level == highest_level) or None


def _read_cache(cpu: int, name: str) -> tuple[int, tuple[int, ...], int] | None:
    """Return (level, CPUs that share it, bytes) of a cache; None for an instruction cache.

    cpu: the number of a CPU that uses the cache.
    name: the cache's folder in /sys, such as index0.
    Returns None, too, if the level or the size is not known.
    """
    folder = f"{CPU_FOLDER}/cpu{cpu}/cache/{name}"
    level = parse_number(read_file(f"{folder}/level"))
    size = re.fullmatch("([1-9][0-9]{0,8})([KMG])", read_file(f"{folder}/size") or "")
    if level is None or size is None or read_file(f"{folder}/type") == "Instruction":
        return None
    sharing = tuple(sorted(parse_cpu_list(read_file(f"{folder}/shared_cpu_list"))))
    return level, sharing, int(size[1]) * UNITS[f"{size[2]}iB"]


def find_emulated_host_mark() -> str | None:
    """Return the text that marks results of an emulated host; None on other hosts.

    schemas/constants/hosts.json has the text and the product names of such hosts; papers read it,
    too.
    """
    from strata.util import constants

    hosts = constants.read_constants("hosts")
    machine = parse_system_facts(read_files(FILES))["machine"]
    return hosts["mark"] if machine in hosts["emulated"] else None


def read_available_memory() -> int | None:
    """Return the bytes of memory that programs could still use; None if not known.

    This is the kernel's estimate, which includes page cache that it could drop.
    """
    return parse_kib_as_bytes(read_file(MEMORY), "MemAvailable")


def wait_for_freed_memory() -> None:
    """Wait until the memory available on the host no longer rises, for 30 seconds at most.

    The kernel frees the memory of removed systems some seconds after they are gone.  Waits for at
    least 2 seconds, and returns then if the kernel does not show its available memory.
    """
    bytes_before = read_available_memory()
    # 15 times 2 s are the 30 seconds; FREED_BYTES holds for an interval of 2 s.
    for _attempt in range(15):
        time.sleep(2)
        bytes_now = read_available_memory()
        if bytes_before is None or bytes_now is None or bytes_now - bytes_before < FREED_BYTES:
            return
        bytes_before = bytes_now


def read_cpu_times(cpus: set[int]) -> tuple[int, ...]:
    """Return the sum of some CPUs' ticks since the boot: user, nice, system, idle, iowait, irq, …

    cpus: the numbers of the CPUs.  If /proc/stat has no line for any of them, the ticks of all CPUs
    are returned.
    The order is that of /proc/stat: softirq, steal and others may follow.  The result is empty if
    the file cannot be read; it ends before the first column that is not a number.
    :func:`sum_busy_and_steal_ticks` and strata/measure/costs.py rely on the order.
    """
    # Name, such as cpu3 (cpu: all together) → its ticks.
    ticks_by_name: dict[str, list[int]] = {}
    for line in (read_file(STAT) or "").splitlines():
        if line.startswith("cpu"):
            name, *columns = line.split()
            ticks: list[int] = []
            for number in map(parse_number, columns):
                if number is None:
                    break
                ticks.append(number)
            ticks_by_name[name] = ticks
    rows = [ticks_by_name[f"cpu{cpu}"] for cpu in cpus if f"cpu{cpu}" in ticks_by_name]
    if not rows:
        rows = [ticks_by_name.get("cpu", [])]
    # strict=False: a row that ends early shortens the result.
    return tuple(map(sum, zip(*rows, strict=False)))


def sum_busy_and_steal_ticks(ticks: tuple[int, ...]) -> tuple[int, int | None] | None:
    """Return (busy ticks, steal ticks) from the ticks of CPUs; None if there are fewer than four.

    ticks: user, nice, system, idle, iowait and so on, as :func:`read_cpu_times` returns them, or
    the growth of each number.
    The busy ticks are all but idle, iowait and steal; they include those of virtual machines.
    The steal ticks are None if the kernel does not count them.
    """
    # user, nice, system, idle, iowait, irq, softirq, steal: old kernels have only the first.
    # Later columns are parts of user and nice.
    disjoint_ticks = ticks[:8]
    if len(disjoint_ticks) < 4:
        return None
    steal = disjoint_ticks[7] if len(disjoint_ticks) == 8 else None
    idle_and_iowait = sum(disjoint_ticks[3:5])
    return sum(disjoint_ticks) - idle_and_iowait - (steal or 0), steal


def read_context_switch_count() -> int | None:
    """Return the number of the machine's context switches since the boot.

    Returns None if the kernel does not count them.
    """
    match = re.search(r"^ctxt (\d+)", read_file(STAT) or "", re.MULTILINE)
    return int(match[1]) if match else None


def compute_cpu_time_shares(before: tuple[int, ...], after: tuple[int, ...]) -> Fields:
    """Return ``{steal_share, busy_share}`` of the CPUs' time between two readings, from 0 to 1.

    before: the ticks at the first reading, as :func:`read_cpu_times` returns them.
    after: the ticks at the second reading.
    Shares are rounded to five decimals.  A share that cannot be computed, for example because no
    tick has passed, is :data:`NOT_AVAILABLE`.  A counter that goes back counts as unchanged.
    Records hold the keys in `observed.host`.
    """
    # Some of these counters, such as iowait, sometimes go back.
    growth = tuple(
        max(0, ticks_after - ticks_before)
        for ticks_before, ticks_after in zip(before, after, strict=False)
    )
    busy_and_steal = sum_busy_and_steal_ticks(growth)
    # As in sum_busy_and_steal_ticks(): the columns after steal are parts of others.
    total = sum(growth[:8])
    if busy_and_steal is None or total == 0:
        return {"steal_share": NOT_AVAILABLE, "busy_share": NOT_AVAILABLE}
    busy, steal = busy_and_steal
    return {
        "steal_share": NOT_AVAILABLE if steal is None else round(steal / total, 5),
        "busy_share": round(busy / total, 5),
    }


def observe_current_load(cpus: set[int]) -> Fields:
    """Return the host's current load, swap in use (bytes), temperature (°C) and frequency (MHz).

    cpus: the numbers of CPUs; the frequency is that of the lowest-numbered one.
    The keys are ``load1``, ``swap_used_bytes``, ``temperature_c`` and ``frequency_mhz``; records
    hold them as ``observed.host.before`` and ``observed.host.after``.
    A value that the kernel does not give is :data:`NOT_AVAILABLE`.
    """
    load = re.match(r"[0-9]{1,6}\.[0-9]{1,6}(?=\s|$)", read_file("/proc/loadavg") or "")
    memory = read_file(MEMORY)
    total = parse_kib_as_bytes(memory, "SwapTotal")
    free = parse_kib_as_bytes(memory, "SwapFree")
    millidegrees = re.fullmatch("-?[0-9]{1,6}", read_file(TEMPERATURE) or "")
    kilohertz = parse_number(read_file(_get_cpufreq_path(cpus, "scaling_cur_freq")))
    return {
        "load1": float(load[0]) if load else NOT_AVAILABLE,
        "swap_used_bytes": NOT_AVAILABLE if total is None or free is None else max(0, total - free),
        "temperature_c": int(millidegrees[0]) / 1000 if millidegrees else NOT_AVAILABLE,
        "frequency_mhz": NOT_AVAILABLE if kilohertz is None else kilohertz / 1000,
    }
