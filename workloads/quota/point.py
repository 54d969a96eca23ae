#!/usr/bin/python3
"""Serve requests of equal CPU time, and print how long each took from when it was due.

The moments are drawn from the seed: at a load of a server by an exponential distribution, so that
the mean rate is constant and requests meet; single ones 0.1 to 0.2 s apart.  No client sends
them, so that nothing but the system can delay a request.

Usage: point.py LOAD REQUESTS SINGLE_REQUESTS MILLISECONDS SHARE WORKERS SEED
"""

import json
import os
import random
import struct
import sys
import time

# A number of a request in a pipe, and a request's number and end.
REQUEST, RESULT = struct.Struct("i"), struct.Struct("id")
# The shortest and longest time between single requests; a quota's period is 0.1 s.
SINGLE_GAP = 0.1, 0.2


def draw_moments(load: str, requests: int, mean_gap: float, seed: int) -> list[float]:
    """Return the seconds after the start at which requests are due, in order."""
    draw, moment, moments = random.Random(seed), 0.1, []
    for _ in range(requests):
        moments.append(moment)
        single = load == "single"
        moment += draw.uniform(*SINGLE_GAP) if single else draw.expovariate(1 / mean_gap)
    return moments


def serve(queue: int, results: int, moments: list[float], begun: float, seconds: float) -> None:
    """Serve requests until none is left: wait until one is due, then use its CPU time.

    queue, results: the pipes from which numbers are read, and to which ends are written.
    """
    while number := os.read(queue, REQUEST.size):
        (at,) = REQUEST.unpack(number)
        time.sleep(max(0.0, begun + moments[at] - time.monotonic()))
        used = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
        while time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) - used < seconds:
            pass
        os.write(results, RESULT.pack(at, time.monotonic()))


def main(load: str, requests: int, seconds: float, share: float, workers: int, seed: int) -> None:
    """Serve all requests of a load by worker processes, and print the point."""
    mean_gap = 0.0 if load == "single" else 100 * seconds / (float(load) * share)
    moments = draw_moments(load, requests, mean_gap, seed)
    queue, results = os.pipe(), os.pipe()
    os.write(queue[1], b"".join(map(REQUEST.pack, range(requests))))
    os.close(queue[1])
    begun = time.monotonic()
    for _ in range(workers):
        if os.fork() == 0:
            serve(queue[0], results[1], moments, begun, seconds)
            os._exit(0)
    os.close(results[1])
    ends = []
    while result := os.read(results[0], RESULT.size):
        ends.append(RESULT.unpack(result))
    head = {"point": "quota", "load": load, "requests": requests, "request_ms": 1e3 * seconds}
    print(json.dumps({**head, "share": share, "workers": workers, "seed": seed}))
    latencies = [round(1e3 * (end - begun - moments[at]), 3) for at, end in sorted(ends)]
    print(json.dumps({"latencies_ms": latencies, "due_seconds": round(moments[-1], 6)}))
    print(json.dumps({"end": "quota"}))


if __name__ == "__main__":
    chosen_load, many, few, milliseconds, *others = sys.argv[1:]
    count = int(few if chosen_load == "single" else many)
    cpus, processes, start = float(others[0]), int(others[1]), int(others[2])
    main(chosen_load, count, float(milliseconds) / 1e3, cpus, processes, start)
