"""Facts of the host that sizes, and bounds of what it can reach, derive from."""

import os
import re

from strata.base.shapes import Fields, HostFacts
from strata.host import observe

# The widest registers of floating-point numbers that the kernel's flags tell of, in bits.
VECTORS = {"avx512f": 512, "avx": 256, "sse2": 128}


def arithmetic(
    cpus: set[int], path: str = "/proc/cpuinfo", highest: str = "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"
) -> Fields:
    """What bounds the arithmetic of these CPUs: ``{cores, clock_mhz, clock, vector_bits, fma}``.

    `clock` says what `clock_mhz` is: "highest", as the kernel's driver of frequencies has it, or "nominal", the rate
    of the time-stamp counter, which a turbo may exceed.  What the kernel does not tell is None.
    """
    try:
        with open(path, encoding="utf-8") as file:
            blocks = [observe.fields(block) for block in file.read().split("\n\n")]
    except OSError:
        blocks = []
    blocks = [block for block in blocks if block.get("processor", "").isdecimal() and int(block["processor"]) in cpus]
    places = {(block.get("physical id"), block.get("core id")) for block in blocks}
    flags = set(blocks[0].get("flags", "").split()) if blocks else set()
    clock, kind = _clock(highest, blocks[0] if "constant_tsc" in flags else {})
    return {
        "cores": len(places) if places and (None, None) not in places else None,
        "clock_mhz": clock,
        "clock": kind,
        "vector_bits": next((bits for flag, bits in VECTORS.items() if flag in flags), None),
        "fma": bool({"fma", "fma4", "avx512f"} & flags) if flags else None,
    }


def _clock(highest: str, block: dict[str, str]) -> tuple[int | None, str | None]:
    """Megahertz, and what they are."""
    try:
        with open(highest, encoding="utf-8") as file:
            return round(int(file.read()) / 1000), "highest"
    except (OSError, ValueError):
        # The kernel counts two loops of its delay for each tick of the counter.
        found = re.fullmatch(r"\d+(\.\d+)?", block.get("bogomips", ""))
        return (round(float(found[0]) / 2), "nominal") if found else (None, None)


def facts() -> HostFacts:
    """``{cpus, memory_bytes, cache_bytes, arithmetic}`` of this host; cache_bytes may be None."""
    cpus = os.sched_getaffinity(0)
    seen = observe.understand(observe.read_files(observe.FILES))
    cache = seen["cache_bytes"]
    return {
        "cpus": len(cpus),
        "memory_bytes": seen["memory_bytes"],
        "cache_bytes": None if cache == observe.NOT_AVAILABLE else cache,
        "arithmetic": arithmetic(cpus),
    }
