"""Facts of the host that sizes derive from."""

import os

from strata.base.shapes import HostFacts
from strata.host import observe


def facts() -> HostFacts:
    """``{cpus, memory_bytes, cache_bytes}`` of this host; cache_bytes may be None."""
    cpus = os.sched_getaffinity(0)
    seen = observe.understand(observe.read_files(observe.FILES))
    cache = seen["cache_bytes"]
    return {
        "cpus": len(cpus),
        "memory_bytes": seen["memory_bytes"],
        "cache_bytes": None if cache == observe.NOT_AVAILABLE else cache,
    }
