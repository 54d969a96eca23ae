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

# The content of the two pipes: a request's number, and that number with the moment of its end.
REQUEST, RESULT = struct.Struct("i"), struct.Struct("id")
# The shortest and longest time between single requests; a quota's period is 0.1 s.
SINGLE_GAP = 0.1, 0.2
# Seconds from the start to the first request, in which the workers start.
FIRST_MOMENT = 0.1


def draw_moments(load: str, requests: int, mean_gap: float, seed: int) -> list[float]:
    """Return the seconds after the start at which requests are due, in order.

    load: "single", or another text for a load of a server.  mean_gap: in seconds, of the latter.
    The order of draws must stay: the parser of this workload checks the moment of the last request.
    """
    chance = random.Random(seed)
    moment = FIRST_MOMENT
    moments = []
    for _ in range(requests):
        moments.append(moment)
        if load == "single":
            moment += chance.uniform(*SINGLE_GAP)
        else:
            moment += chance.expovariate(1 / mean_gap)
    return moments


def serve(queue: int, results: int, moments: list[float], begun: float, seconds: float) -> None:
    """Serve requests until none is left: wait until one is due, then use its CPU time.

    queue, results: the pipes from which requests are read, and to which their ends are written.
    moments: of :func:`draw_moments`.  begun: the start, by the monotonic clock.
    seconds: the CPU time of a request.
    """
    while request := os.read(queue, REQUEST.size):
        (number,) = REQUEST.unpack(request)
        time.sleep(max(0.0, begun + moments[number] - time.monotonic()))
        used = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
        while time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) - used < seconds:
            pass
        os.write(results, RESULT.pack(number, time.monotonic()))


def main(load: str, requests: int, seconds: float, share: float, workers: int, seed: int) -> None:
    """Serve all requests of a load by worker processes, and print the point of the log.

    load: "single", or the per cent of `share` that the requests take on average, as a text.
    seconds: the CPU time of a request.  share: processors.  workers: number of processes.
    """
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
    latencies = []
    for number, end in sorted(ends):
        latencies.append(round(1e3 * (end - begun - moments[number]), 3))
    print(json.dumps({"latencies_ms": latencies, "due_seconds": round(moments[-1], 6)}))
    print(json.dumps({"end": "quota"}))


if __name__ == "__main__":
    load, requests, single_requests, milliseconds, share, workers, seed = sys.argv[1:]
    count = int(single_requests if load == "single" else requests)
    main(load, count, float(milliseconds) / 1e3, float(share), int(workers), int(seed))
