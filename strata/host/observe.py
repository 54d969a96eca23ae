"""What is observed of a system: read from the kernel's own files, never taken from a configuration.

The same text is read on the host (by opening the files) and inside a system under test (by one
``tail`` that prints them), and understood by the same functions.
"""

import contextlib
import glob
import os
import re

from strata.base.shapes import Fields

NOT_AVAILABLE = "not available"
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
    *(f"{CPU}/cpu0/cache/index{number}/size" for number in range(5)),
    "/opt/strata/packages",
]
GOVERNOR = f"{CPU}/cpu0/cpufreq/scaling_governor"
# The files that tell of turbo, the first that is there alone, and what they mean.
TURBO = {f"{CPU}/intel_pstate/no_turbo": {"0": "on", "1": "off"}, f"{CPU}/cpufreq/boost": {"1": "on", "0": "off"}}
TEMPERATURE = "/sys/class/thermal/thermal_zone0/temp"
FREQUENCY = f"{CPU}/cpu0/cpufreq/scaling_cur_freq"


def command() -> list[str]:
    """The command that prints what :func:`split` takes apart; files that are missing are no error."""
    return ["tail", "-v", "-n", "+1", *FILES]


def split(text: str) -> dict[str, str]:
    """Path → content, from the output of :func:`command`."""
    parts = re.split(r"^==> (/[^\n]*) <==\n", text, flags=re.MULTILINE)
    return {path: content.strip("\n") for path, content in zip(parts[1::2], parts[2::2], strict=True)}


def read_files(paths: list[str]) -> dict[str, str]:
    """Path → content of those files that can be read."""
    found = {}
    for path in paths:
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
            found[path] = file.read().strip("\n")
    return found


def fields(text: str) -> dict[str, str]:
    """The first value of each name that is not empty, from lines `name: value` or `name=value`."""
    pairs = re.findall("^([^:=\n]*)[:=](.*)$", text, re.MULTILINE)
    return {name.strip(): told for name, value in reversed(pairs) if (told := value.strip().strip('"'))}


def understand(files: dict[str, str]) -> Fields:
    """The facts of ``observed.inside`` (docs/files.md); what is not there is "not available"."""
    cpuinfo = files.get("/proc/cpuinfo", "")
    cpu = fields(cpuinfo.split("\n\n", 1)[0])
    sockets = {*re.findall("^physical id.*", cpuinfo, re.MULTILINE)}
    cores, siblings = cpu.get("cpu cores"), cpu.get("siblings")
    caches = [int(text.rstrip("K")) for path, text in files.items() if path.startswith(f"{CPU}/cpu0/cache/") and text]
    memory = fields(files.get("/proc/meminfo", "")).get("MemTotal")
    version = files.get("/proc/version", "").split()
    flags = cpu.get("flags", "").split()
    pages = re.search(r"\[(\w+)\]", files.get("/sys/kernel/mm/transparent_hugepage/enabled", ""))
    # Each once, whatever the number of hierarchies.
    groups = {line.split(":", 2)[2] for line in files.get("/proc/self/cgroup", "").splitlines()}
    packages = files.get("/opt/strata/packages", "").splitlines()
    facts = {
        "kernel": version[2] if len(version) > 2 else None,
        "os": fields(files.get("/etc/os-release", "")).get("PRETTY_NAME"),
        "cpu_model": cpu.get("model name"),
        "cpus": len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE)) or None,
        "sockets": len(sockets) or None,
        "cores_per_socket": int(cores) if cores else None,
        "threads_per_core": int(siblings) // int(cores) if cores and siblings else None,
        "cache_bytes": max(caches) * 1024 if caches else None,
        "memory_bytes": int(memory.split()[0]) * 1024 if memory else None,
        "huge_pages": pages and pages[1],
        "clocksource": files.get("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "virtualization": "guest of a hypervisor" if "hypervisor" in flags else ("none seen" if flags else None),
        "machine": files.get("/sys/class/dmi/id/product_name"),
        "cgroup": ", ".join(sorted(groups)),
        "microcode": cpu.get("microcode"),
        "versions": dict(line.split(" ", 1) for line in packages if " " in line) or None,
    }
    return {key: NOT_AVAILABLE if value in (None, "") else value for key, value in facts.items()}


def host() -> Fields:
    """The unchanging facts of the host."""
    facts = understand(read_files(FILES))
    facts.pop("versions")
    policy = read_files([GOVERNOR, *TURBO])
    facts["governor"] = policy.pop(GOVERNOR, NOT_AVAILABLE)
    facts["turbo"] = next((TURBO[path].get(text, NOT_AVAILABLE) for path, text in policy.items()), NOT_AVAILABLE)
    known = read_files(sorted(glob.glob(f"{CPU}/vulnerabilities/*")))
    facts["vulnerabilities"] = {os.path.basename(path): text for path, text in known.items()} or NOT_AVAILABLE
    return facts


def mark() -> str | None:
    """What the paper says of all that is measured on this host: where it is an emulated one; else None."""
    from strata.base import constants

    told = constants.read("hosts")
    return told["mark"] if understand(read_files(FILES))["machine"] in told["emulated"] else None


def memory() -> int:
    """Bytes of memory that programs could still have."""
    return int(fields(read_files(["/proc/meminfo"])["/proc/meminfo"])["MemAvailable"].split()[0]) * 1024


def cpu_times() -> tuple[int, ...]:
    """The first line of /proc/stat: ticks of user, nice, system, idle, iowait, irq, softirq, steal …"""
    with open("/proc/stat", encoding="utf-8") as file:
        return tuple(int(word) for word in file.readline().split()[1:])


def shares(before: tuple[int, ...], after: tuple[int, ...]) -> Fields:
    """``{steal_share, busy_share}`` of all CPUs' time between two readings; without a tick, not available."""
    ticks = [late - early for early, late in zip(before, after, strict=True)][:8]
    total = sum(ticks)
    if total <= 0:
        return {"steal_share": NOT_AVAILABLE, "busy_share": NOT_AVAILABLE}
    idle, steal = ticks[3] + ticks[4], ticks[7]
    return {"steal_share": round(steal / total, 5), "busy_share": round((total - idle - steal) / total, 5)}


def moment() -> Fields:
    """What changes on the host: load, swap in use (bytes), temperature (°C) and frequency (MHz) of the first CPU."""
    files = read_files(["/proc/loadavg", "/proc/meminfo", TEMPERATURE, FREQUENCY])
    memory = fields(files["/proc/meminfo"])
    total, free = (int(memory[key].split()[0]) for key in ("SwapTotal", "SwapFree"))
    return {
        "load1": float(files["/proc/loadavg"].split()[0]),
        "swap_used_bytes": (total - free) * 1024,
        "temperature_c": int(files[TEMPERATURE]) / 1000 if files.get(TEMPERATURE) else NOT_AVAILABLE,
        "frequency_mhz": int(files[FREQUENCY]) / 1000 if files.get(FREQUENCY) else NOT_AVAILABLE,
    }
