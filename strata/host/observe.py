"""What is observed of a system: read from the kernel's own files, never taken from a configuration.

The same text is read on the host (by opening the files) and inside a system under test (by one
``tail`` that prints them), and understood by the same functions.  Every file of /proc and /sys is
read by :func:`read` and :func:`listed`: one that is missing, or does not hold what it should, is
"not available" and no error.
"""

import itertools
import os
import re

from strata.util.data_types import Fields
from strata.util.units import UNIT, numbers

NOT_AVAILABLE = "not available"
# Of `virtualization`; of processors whose flags do not say either, it is not available.
GUEST, BARE = "guest of a hypervisor", "none seen"
CPU = "/sys/devices/system/cpu"
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
# The files that tell of turbo, the first that is there alone, and what they mean.
TURBO = {
    f"{CPU}/intel_pstate/no_turbo": {"0": "on", "1": "off"},
    f"{CPU}/cpufreq/boost": {"1": "on", "0": "off"},
}
TEMPERATURE = "/sys/class/thermal/thermal_zone0/temp"


def command() -> list[str]:
    """The command that prints what :func:`split` takes apart; files that are missing are no error."""
    return ["tail", "-v", "-n", "+1", *FILES]


def split(text: str) -> dict[str, str]:
    """Path → content, from the output of :func:`command`."""
    parts = re.split(r"^==> (/[^\n]*) <==\n", text, flags=re.MULTILINE)
    return {
        path: content.strip("\n") for path, content in zip(parts[1::2], parts[2::2], strict=True)
    }


def read(path: str) -> str | None:
    """The text of a file without the line ends around it; None where it cannot be read."""
    try:
        # Unbuffered, at a third of what it costs else.
        with open(path, "rb", buffering=0) as file:
            return file.readall().decode(errors="replace").strip("\n")
    except OSError:
        return None


def listed(folder: str) -> list[str]:
    """The names in a folder, sorted; none where it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def read_files(paths: list[str]) -> dict[str, str]:
    """Path → content of those files that can be read."""
    return {path: text for path in paths if (text := read(path)) is not None}


def number(text: str | None) -> int | None:
    """The whole number that a text begins with, as in ``16384 kB``; None where it is none."""
    found = re.match(r"\s*([0-9]{1,18})(?![\w.])", text or "")
    return int(found[1]) if found else None


def cpu_list(text: str | None) -> set[int]:
    """The processors of a list such as ``0-3,8``; none where it is no such list."""
    part = "[0-9]{1,5}(-[0-9]{1,5})?"
    return set(numbers(text)) if text and re.fullmatch(f"{part}(,{part})*", text) else set()


def printable(text: str) -> str:
    """A text with a question mark for each letter that a record had better not hold."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def fields(text: str) -> dict[str, str]:
    """The first value of each name that is not empty, from lines `name: value` or `name=value`."""
    pairs = re.findall("^([^:=\n]*)[:=](.*)$", text, re.MULTILINE)
    return {
        name.strip(): told for name, value in reversed(pairs) if (told := value.strip().strip('"'))
    }


def understand(files: dict[str, str]) -> Fields:
    """The facts of ``observed.inside`` (docs/files.md); what is not there is "not available"."""
    cpuinfo = files.get("/proc/cpuinfo", "")
    cpu = fields(cpuinfo.split("\n\n", 1)[0])
    sockets = {*re.findall("^physical id.*", cpuinfo, re.MULTILINE)}
    cores, siblings = number(cpu.get("cpu cores")), number(cpu.get("siblings"))
    version = files.get("/proc/version", "").split()
    flags = cpu.get("flags", "").split()
    pages = re.search(r"\[(\w+)\]", files.get("/sys/kernel/mm/transparent_hugepage/enabled", ""))
    # Each once, whatever the number of hierarchies.
    lines = [line.split(":", 2) for line in files.get("/proc/self/cgroup", "").splitlines()]
    groups = {printable(line[2]) for line in lines if len(line) == 3}
    packages = map(printable, files.get("/opt/strata/packages", "").splitlines())
    clock = files.get("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    facts = {
        "kernel": version[2] if len(version) > 2 else None,
        "os": fields(files.get("/etc/os-release", "")).get("PRETTY_NAME"),
        "cpu_model": cpu.get("model name"),
        "cpus": _cpus(cpuinfo, fields(files.get("/proc/self/status", ""))) or None,
        "sockets": len(sockets) or None,
        "cores_per_socket": cores or None,
        "threads_per_core": siblings // cores if cores and siblings else None,
        "memory_bytes": kib(files.get(MEMORY), "MemTotal") or None,
        "huge_pages": pages and pages[1],
        "clocksource": clock,
        "virtualization": GUEST if "hypervisor" in flags else BARE if flags else None,
        "machine": files.get("/sys/class/dmi/id/product_name"),
        "cgroup": ", ".join(sorted(groups)),
        "microcode": cpu.get("microcode"),
        "versions": dict(line.split(" ", 1) for line in packages if " " in line) or None,
    }
    shown = {key: printable(one) if isinstance(one, str) else one for key, one in facts.items()}
    return {key: NOT_AVAILABLE if one in (None, "") else one for key, one in shown.items()}


def _cpus(cpuinfo: str, status: dict[str, str]) -> int:
    """How many of the processors that are switched on the process that looks may use."""
    # Most kernels write the number behind the colon, that of s390 before it.
    forms = (r"(?m)^processor\s*:\s*([0-9]{1,5})$", r"(?m)^processor\s*([0-9]{1,5})\s*:")
    switched_on = {int(number) for form in forms for number in re.findall(form, cpuinfo)}
    return len(switched_on & cpu_list(status.get("Cpus_allowed_list")) or switched_on)


def kib(text: str | None, name: str) -> int | None:
    """Bytes of an entry in kB, such as those of /proc/meminfo."""
    found = number(fields(text or "").get(name))
    return None if found is None else found * 1024


def host(cpus: set[int]) -> Fields:
    """The unchanging facts of the host, those of its caches and its policy for these processors."""
    facts = understand(read_files(FILES))
    facts.pop("versions")
    facts["cache_bytes"] = last_level_caches(cpus) or NOT_AVAILABLE
    facts["governor"] = printable(read(_of_first(cpus, "scaling_governor")) or NOT_AVAILABLE)
    policy = read_files([*TURBO])
    facts["turbo"] = next(
        (TURBO[path].get(text, NOT_AVAILABLE) for path, text in policy.items()), NOT_AVAILABLE
    )
    folder = f"{CPU}/vulnerabilities"
    known = {name: printable(read(f"{folder}/{name}") or "") for name in listed(folder)}
    facts["vulnerabilities"] = {name: text for name, text in known.items() if text} or NOT_AVAILABLE
    return facts


def _of_first(cpus: set[int], name: str) -> str:
    """A file about the frequency of the first of these processors."""
    return f"{CPU}/cpu{min(cpus, default=0)}/cpufreq/{name}"


def last_level_caches(cpus: set[int]) -> int | None:
    """Bytes of all caches of the highest level that these processors use; None where none is known.

    One that several of them share counts once.  Where the kernel does not say who shares a cache,
    all do.
    """
    found: dict[tuple[int, tuple[int, ...]], int] = {}
    for cpu in sorted(cpus):
        if not any(cpu in sharing for _, sharing in found):
            names = listed(f"{CPU}/cpu{cpu}/cache")
            own = [cache for name in names if (cache := _cache(cpu, name))]
            for level, sharing, size in sorted(own)[-1:]:
                found[level, sharing] = max(size, found.get((level, sharing), 0))
    highest = max((level for level, _ in found), default=0)
    return sum(size for (level, _), size in found.items() if level == highest) or None


def _cache(cpu: int, name: str) -> tuple[int, tuple[int, ...], int] | None:
    """(level, who shares it, bytes) of a processor's cache for data; None where not known."""
    folder = f"{CPU}/cpu{cpu}/cache/{name}"
    level, text = number(read(f"{folder}/level")), read(f"{folder}/size")
    size = re.fullmatch("([1-9][0-9]{0,8})([KMG])", text or "")
    if level is None or size is None or read(f"{folder}/type") == "Instruction":
        return None
    sharing = tuple(sorted(cpu_list(read(f"{folder}/shared_cpu_list"))))
    return level, sharing, int(size[1]) * UNIT[f"{size[2]}iB"]


def mark() -> str | None:
    """What the paper says of all that is measured here: where it is an emulated host; else None."""
    from strata.util import constants

    told = constants.read("hosts")
    return told["mark"] if understand(read_files(FILES))["machine"] in told["emulated"] else None


def memory() -> int | None:
    """Bytes of memory that programs could still have; None where the kernel does not say."""
    return kib(read(MEMORY), "MemAvailable")


def cpu_times(cpus: set[int]) -> tuple[int, ...]:
    """Ticks of these processors: user, nice, system, idle, iowait, irq, softirq, steal …

    Of all processors where /proc/stat has a line for none of these; as many columns as it has.
    """
    rows: dict[str, list[int]] = {}
    for line in (read(STAT) or "").splitlines():
        if line.startswith("cpu"):
            name, *words = line.split()
            ticks = itertools.takewhile(lambda tick: tick is not None, map(number, words))
            rows[name] = [tick or 0 for tick in ticks]
    own = [rows[f"cpu{cpu}"] for cpu in cpus if f"cpu{cpu}" in rows] or [rows.get("cpu", [])]
    return tuple(map(sum, zip(*own, strict=False)))


def shares(before: tuple[int, ...], after: tuple[int, ...]) -> Fields:
    """``{steal_share, busy_share}`` of the processors' time between two of :func:`cpu_times`."""
    # Some of these counters go back now and then.
    ticks = [max(0, late - early) for early, late in zip(before, after, strict=False)][:8]
    total = sum(ticks)
    if len(ticks) < 4 or total == 0:
        return {"steal_share": NOT_AVAILABLE, "busy_share": NOT_AVAILABLE}
    idle, steal = sum(ticks[3:5]), sum(ticks[7:])
    return {
        "steal_share": round(steal / total, 5) if len(ticks) == 8 else NOT_AVAILABLE,
        "busy_share": round((total - idle - steal) / total, 5),
    }


def moment(cpus: set[int]) -> Fields:
    """What changes on the host: load, swap in use (bytes), temperature (°C), frequency (MHz).

    The frequency is that of the first of these processors.
    """
    load = re.match(r"[0-9]{1,6}\.[0-9]{1,6}(?=\s|$)", read("/proc/loadavg") or "")
    text = read(MEMORY)
    total, free = kib(text, "SwapTotal"), kib(text, "SwapFree")
    heat = re.fullmatch("-?[0-9]{1,6}", read(TEMPERATURE) or "")
    frequency = number(read(_of_first(cpus, "scaling_cur_freq")))
    return {
        "load1": float(load[0]) if load else NOT_AVAILABLE,
        "swap_used_bytes": NOT_AVAILABLE if total is None or free is None else max(0, total - free),
        "temperature_c": int(heat[0]) / 1000 if heat else NOT_AVAILABLE,
        "frequency_mhz": NOT_AVAILABLE if frequency is None else frequency / 1000,
    }
