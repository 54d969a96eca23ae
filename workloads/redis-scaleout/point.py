#!/usr/bin/python3 -B
"""One set-up under load, at the client: looks whether every request is answered rightly, fills the servers, lets the
load settle, and asks the servers before and after some seconds what they have answered.

Usage: point.py SETUP ADDRESSES PORTS PINNED_PORTS CONNECTIONS BASELINE_CONNECTIONS PIPELINE BYTES KEYS SETTLE SECONDS
       SEED STATS_PORT     (KEYS for each server, SETTLE and SECONDS in seconds)
SETUP: baseline (one server, one load generator, nothing between), scale-out (all servers behind twemproxy and HAProxy,
a load generator for each), half (the same with half of the connections) or pinned (to the pinned servers).
ADDRESSES and both PORTS are separated by commas, the ports of the first system first.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from said import WrongAnswerError, digits, require, say

# A load generator is four processes that share its connections, three of which send GET and one SET: as each has as
# much to do as the others, a processor that is scarce does not shift the mix.
PROCESSES = ("get", "get", "get", "set")
CHECKED = range(1, 65)
# What a twemproxy counts as errors: connections that were lost or refused, and requests that were not answered.
ERRORS = re.compile('"(?:client_err|server_ejects|forward_error|server_err|server_timedout|server_eof)": *([0-9]+)')
POOL = """pool:
  listen: {listen}
  redis: true
  redis_auth: {password}
  hash: fnv1a_64
  distribution: ketama
  preconnect: true
  servers:
"""
FRONT = """global
  maxconn {most}
defaults
  mode tcp
  timeout connect 10s
  timeout client 1h
  timeout server 1h
listen redis
  bind unix@{work}/front
  balance roundrobin
"""
Process = subprocess.Popen[bytes]
Place = tuple[str, ...]


def ask(at: Place, *words: str, text: str | None = None) -> str:
    """What the server at a place (options of redis-cli) answers."""
    done = subprocess.run(["redis-cli", *at, *words], input=text, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        raise WrongAnswerError(f"redis-cli {' '.join([*at, *words])}: {(done.stderr or done.stdout).strip()}")
    return done.stdout.replace("\r", "")


class Running:
    """What was started for a set-up, and ends with it; what it prints is kept in a file each."""

    def __init__(self, work: Path, at_the_end: contextlib.ExitStack) -> None:
        self.work, self.at_the_end = work, at_the_end
        self.generators: list[Process] = []
        self.proxies: list[Process] = []

    def start(self, of: list[Process], name: str, *command: str) -> None:
        """Start one of the load generators or proxies."""
        with (self.work / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        self.at_the_end.callback(process.wait)
        self.at_the_end.callback(process.send_signal, signal.SIGKILL if of is self.generators else signal.SIGTERM)
        of.append(process)

    def see(self) -> None:
        """Require that all of it still runs."""
        for process in [*self.generators, *self.proxies]:
            if process.poll() is not None:
                words = [log.read_text(errors="replace")[-200:] for log in sorted(self.work.glob("*.log"))]
                raise WrongAnswerError(f"a load generator or proxy ended: {' '.join(words)[-1000:]}")


def start_proxies(running: Running, servers: Sequence[tuple[str, str]], connections: int, stats_port: int) -> Place:
    """Start a twemproxy for each server, all of which know all servers, and HAProxy before them; where that is.

    They and the load generators are on one machine, and talk through sockets of its own.  A server's name, and not its
    address, says which keys are its own: they are the same in every environment.
    """
    work, password = running.work, os.environ["REDISCLI_AUTH"]
    behind = "".join(f"   - {at}:{port}:1 server{i}\n" for i, (at, port) in enumerate(servers))
    front = FRONT.format(most=len(servers) * connections + 100, work=work)
    for i in range(len(servers)):
        base = f"{work}/twemproxy{i}"
        Path(f"{base}.yml").write_text(POOL.format(listen=base, password=password) + behind)
        stats = ["-a", "127.0.0.1", "-s", str(stats_port + i), "-i", "100"]
        running.start(running.proxies, f"twemproxy{i}", "nutcracker", "-c", f"{base}.yml", "-p", f"{base}.pid", *stats)
        front += f"  server twemproxy{i} unix@{base}\n"
    (work / "haproxy.cfg").write_text(front)
    running.start(running.proxies, "haproxy", "haproxy", "-db", "-f", str(work / "haproxy.cfg"))
    end = time.monotonic() + 60
    while True:
        with contextlib.suppress(WrongAnswerError):
            if ask(("-s", f"{work}/front"), "get", "probe") == "\n":
                return ("-s", f"{work}/front")
        if time.monotonic() > end:
            raise WrongAnswerError("twemproxy and HAProxy do not answer")
        time.sleep(0.1)


def errors(ports: range) -> int:
    """What the twemproxies have counted as errors until now.

    A load generator's first connection is one: it asks for a server's configuration, which none may.
    """
    total = 0
    for port in ports:
        with socket.create_connection(("127.0.0.1", port)) as one, one.makefile() as told:
            total += sum(map(int, ERRORS.findall(told.read())))
    return total


def state(at: Place) -> dict[str, float]:
    """What the server at a place has done until now."""
    told = dict(line.split(":", 1) for line in ask(at, "info", "all").splitlines() if ":" in line)
    counts = [
        dict(part.split("=") for part in told.get(f"cmdstat_{name}", "calls=0").split(",")) for name in ("get", "set")
    ]
    gets, sets = (int(one["calls"]) for one in counts)
    return {
        "seconds": int(told["server_time_usec"]) / 1e6,
        "gets": gets,
        "sets": sets,
        "hits": int(told["keyspace_hits"]),
        "misses": int(told["keyspace_misses"]),
        "failed": sum(int(one.get(key, 0)) for one in counts for key in ("rejected_calls", "failed_calls")),
        "cpu_seconds": float(told["used_cpu_user"]) + float(told["used_cpu_sys"]),
    }


def spent(processes: Sequence[Process]) -> float:
    """Processor time of processes until now, in seconds."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def check(front: Place) -> None:
    """See that every request is answered rightly before any is counted: what was written is read."""
    asked = [f"set check:{number} {number * 7919}\n" for number in CHECKED]
    asked += [f"get check:{number}\n" for number in [*CHECKED, "none"]]
    wanted = "OK\n" * len(CHECKED) + "".join(f"{number * 7919}\n" for number in CHECKED) + "\n"
    require("what is answered", ask(front, text="".join(asked)), wanted)


def watch(places: Sequence[Place], running: Running, stats: range, seconds: float) -> None:
    """Say what the servers answered within some seconds, and who took the processors' time for it."""
    running.see()
    wrong, begun = errors(stats), time.monotonic()
    driver, proxy = spent(running.generators), spent(running.proxies)
    before = [state(at) for at in places]
    time.sleep(seconds)
    after = [state(at) for at in places]
    driver, proxy = spent(running.generators) - driver, spent(running.proxies) - proxy
    took = time.monotonic() - begun
    running.see()
    require("the number of errors that the twemproxies counted", errors(stats) - wrong, 0)
    rates, gets, sets = 0.0, 0.0, 0.0
    for number, (first, last) in enumerate(zip(before, after, strict=True)):
        done = {key: round(last[key] - first[key], 6) for key in first} | {"failed": last["failed"]}
        rate = (done["gets"] + done["sets"]) / done["seconds"]
        say(server=number, **done, rate=digits(rate))
        rates, gets, sets = rates + rate, gets + done["gets"], sets + done["sets"]
    say(total=digits(rates), get_share=digits(100 * gets / (gets + sets)))
    cpus = os.cpu_count() or 1
    shares = {name: digits(100 * of / took / cpus) for name, of in (("driver_share", driver), ("proxy_share", proxy))}
    times = {"driver_seconds": round(driver, 2), "proxy_seconds": round(proxy, 2)}
    say(client=round(took, 6), cpus=cpus, processes=len(running.generators), **times, **shares)


def measure(setup: str, hosts: str, free: str, pinned: str, *words: str) -> None:
    """Measure one set-up, and say what came out."""
    addresses, ports, pinned_ports = hosts.split(","), free.split(","), pinned.split(",")
    connections, baseline, pipeline, size, keys, settle, seconds, seed, stats_port = map(int, words)
    require("the number of pinned_ports", len(pinned_ports), len(ports))
    each = len(ports) // len(addresses)
    if setup in ("baseline", "half"):
        connections = baseline if setup == "baseline" else connections // 2
    used = {"baseline": ports[:1], "pinned": pinned_ports}.get(setup, ports)
    servers = [(addresses[number // each], port) for number, port in enumerate(used)]
    ways: list[Place] = [("-h", address, "-p", port) for address, port in servers]
    os.environ["REDISCLI_AUTH"] = password = Path("/data/password").read_text().strip()
    with contextlib.ExitStack() as at_the_end:
        running = Running(Path(at_the_end.enter_context(tempfile.TemporaryDirectory())), at_the_end)
        # All are emptied, also those that this set-up does not use: no more than its own keys are held.
        for number, port in [*enumerate(ports), *enumerate(pinned_ports)]:
            answer = ask(("-h", addresses[number // each], "-p", port), "flushall", "sync")
            require(f"the answer to flushall of the server at port {port}", answer, "OK\n")
        behind = setup != "baseline"
        front = start_proxies(running, servers, connections, stats_port) if behind else ways[0]
        check(front)
        kept = [int(ask(at, "dbsize")) for at in ways]
        asked = {"connections": connections, "pipeline": pipeline, "data_bytes": size, "keys": keys, "seed": seed}
        client = subprocess.run(["redis-benchmark", "--version"], capture_output=True, text=True, check=True).stdout
        version = re.search("redis_version:(.*)", ask(ways[0], "info", "server"))
        told = {"client": client.splitlines()[0], "server": version and version[1]}
        say(point=setup, servers=len(servers), **asked, **told)
        say(checked=len(CHECKED), kept=kept)
        keyspace = keys * len(servers)
        load = ["redis-benchmark", *front, "-a", password, "-P", str(pipeline), "-d", str(size), "-r", str(keyspace)]
        fill = [*load, "-t", "set", "-c", "50", "-n", str(3 * keyspace), "--seed", str(seed), "-q"]
        done = subprocess.run(fill, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise WrongAnswerError(f"the servers cannot be filled: {done.stdout[-200:]}")
        for number, test in enumerate(PROCESSES * len(servers), 1):
            own = ["-c", str(connections // len(PROCESSES)), "--seed", str((seed + number) % 2147483647)]
            endless = ["-t", test, *own, "-n", "2000000000", "--csv"]
            running.start(running.generators, f"generator{number}", *load, *endless)
        time.sleep(settle)
        watch(ways, running, range(stats_port, stats_port + len(servers) * behind), seconds)
    say(end=setup)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.umask(0o077)
    try:
        measure(*sys.argv[1:])
    except (WrongAnswerError, OSError) as problem:
        sys.exit(f"point: {problem}")
