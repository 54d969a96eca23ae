"""Facts of the host that sizes derive from."""

import os


def cache_size(cpu: str = "/sys/devices/system/cpu/cpu0/cache") -> int | None:
    """Bytes of the last-level cache that the first CPU uses; None where the kernel does not say."""
    largest = None
    unit = {"K": 1024, "M": 1024**2, "G": 1024**3}
    for index in range(8):
        try:
            with open(f"{cpu}/index{index}/size") as file:
                text = file.read().strip()
        except OSError:
            continue
        size = int(text[:-1]) * unit[text[-1]] if text[-1] in unit else int(text)
        largest = max(largest or 0, size)
    return largest


def memory_size(path: str = "/proc/meminfo") -> int:
    """Bytes of memory that the kernel manages."""
    with open(path) as file:
        for line in file:
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) * 1024
    raise OSError(f"{path} has no MemTotal")


def facts() -> dict:
    """``{cpus, memory_bytes, cache_bytes}`` of this host."""
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_size(),
        "cache_bytes": cache_size(),
    }
