#!/usr/bin/python3 -B
"""One set-up under load, at the client: looks whether every request is answered rightly, fills the servers, which hold
nothing, lets the load settle, asks the servers before and after some seconds what they have answered, and empties them.

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
from collections.abc import Iterator, Sequence
from pathlib import Path

from report import WrongAnswerError, digits, report, require

# A load generator is four processes that share its connections, three of which send GET and one SET: as each has as
# much to do as the others, a processor that is scarce does not shift the mix.
PROCESSES = ("get", "get", "get", "set")
CHECKED = range(1, 65)
# What a twemproxy counts as errors: connections that were lost or refused, and requests that were not answered.
ERRORS = re.compile(
    '"(?:client_err|server_ejects|forward_error|server_err|server_timedout|server_eof)": *([0-9]+)'
)
# What twemproxy and HAProxy log at a start and an end, and what tells of trouble.
ANYWAY = re.compile("nutcracker-[0-9.]+ (built|started)|run, rabbit|dig that hole|New worker")
TROUBLE = re.compile(
    "error|fail|alert|warn|refused|reset|too many|closed|timed ?out|no server", re.IGNORECASE
)
Process = subprocess.Popen[bytes]
Place = tuple[str, ...]


def ask(at: Place, *words: str, text: str | None = None) -> str:
    """What the server at a place (options of redis-cli) answers."""
    done = subprocess.run(
        ["redis-cli", *at, *words], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode or done.stderr:
        raise WrongAnswerError(
            f"redis-cli {' '.join([*at, *words])}: {(done.stderr or done.stdout).strip()}"
        )
    return done.stdout.replace("\r", "")


class Proxies:
    """One twemproxy for each server, all of which know all servers, and HAProxy before them.

    They and the load generators are on one machine, and talk through sockets of its own.  A server's name, and not its
    address, says which keys are its own: they are the same in every environment.
    """

    def __init__(self, work: Path, stats_port: int) -> None:
        self.work, self.stats_port = work, stats_port
        self.running: list[Process] = []

    def start(self, servers: Sequence[tuple[str, str]], connections: int, password: str) -> None:
        """Start them, and wait until they answer."""
        pool = f"  redis: true\n  redis_auth: {password}\n  hash: fnv1a_64\n"
        pool += "  distribution: ketama\n  preconnect: true\n"
        pool += "  servers:\n" + "".join(
            f"   - {at}:{port}:1 server{i}\n" for i, (at, port) in enumerate(servers)
        )
        front = f"global\n  maxconn {len(servers) * connections + 100}\n  log stdout format raw local0 warning\n"
        front += "defaults\n  mode tcp\n  timeout connect 10s\n  timeout client 1h\n  timeout server 1h\n"
        front += (
            f"listen redis\n  log global\n  bind unix@{self.work}/front\n  balance roundrobin\n"
        )
        for i in range(len(servers)):
            base = f"{self.work}/twemproxy{i}"
            Path(f"{base}.yml").write_text(f"pool:\n  listen: {base}\n{pool}")
            told = ["-o", f"{base}.log", "-v", "4", "-p", f"{base}.pid"]
            stats = ["-a", "127.0.0.1", "-s", str(self.stats_port + i), "-i", "100"]
            self.running.append(
                subprocess.Popen(["nutcracker", "-c", f"{base}.yml", *told, *stats])
            )
            front += f"  server twemproxy{i} unix@{base}\n"
        (self.work / "haproxy.cfg").write_text(front)
        with (self.work / "haproxy.log").open("wb") as log:
            command = ["haproxy", "-db", "-f", str(self.work / "haproxy.cfg")]
            self.running.append(subprocess.Popen(command, stdout=log, stderr=log))
        end = time.monotonic() + 60
        while not self.answer():
            if time.monotonic() > end:
                raise WrongAnswerError(f"twemproxy and HAProxy do not answer: {self.words()}")
            time.sleep(0.1)

    def end(self) -> None:
        """End them."""
        for process in self.running:
            end(process, signal.SIGTERM)

    def answer(self) -> bool:
        """Whether a request comes through."""
        with contextlib.suppress(WrongAnswerError):
            return ask(("-s", f"{self.work}/front"), "get", "probe") == "\n"
        return False

    def errors(self) -> int:
        """What the twemproxies have counted as errors until now.

        A load generator's first connection is one: it asks for a server's configuration, which none may.
        """
        total = 0
        for number in range(len(self.running) - 1):
            with (
                socket.create_connection(("127.0.0.1", self.stats_port + number)) as one,
                one.makefile() as told,
            ):
                total += sum(map(int, ERRORS.findall(told.read())))
        return total

    def words(self) -> str:
        """What they logged that is no start and no end."""
        lines = [
            line
            for log in self.work.glob("*.log")
            for line in log.read_text(errors="replace").splitlines()
        ]
        return " ".join(
            [line for line in lines if TROUBLE.search(line) and not ANYWAY.search(line)][:3]
        )


def state(at: Place) -> dict[str, float]:
    """What the server at a place has done until now."""
    told = dict(line.split(":", 1) for line in ask(at, "info", "all").splitlines() if ":" in line)
    counts = {
        name: dict(part.split("=") for part in told.get(f"cmdstat_{name}", "calls=0").split(","))
        for name in ("get", "set")
    }
    failed = sum(
        int(one.get(key, 0))
        for one in counts.values()
        for key in ("rejected_calls", "failed_calls")
    )
    return {
        "seconds": int(told["server_time_usec"]) / 1e6,
        "gets": int(counts["get"]["calls"]),
        "sets": int(counts["set"]["calls"]),
        "hits": int(told["keyspace_hits"]),
        "misses": int(told["keyspace_misses"]),
        "failed": failed,
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
    # Keys that differ in their first bytes: by the last alone the twemproxies' hash puts all on one or two servers.
    asked = [f"set {number}:check {number * 7919}\n" for number in CHECKED]
    asked += [f"get {number}:check\n" for number in [*CHECKED, "none"]]
    wanted = "OK\n" * len(CHECKED) + "".join(f"{number * 7919}\n" for number in CHECKED) + "\n"
    answered = ask(front, text="".join(asked))
    if answered != wanted:
        raise WrongAnswerError(
            f"requests were answered wrongly: {' '.join(answered.split())[:300]}"
        )


def watch(
    places: Sequence[Place],
    generators: Sequence[Process],
    proxies: Proxies,
    work: Path,
    seconds: float,
) -> None:
    """Say what the servers answered within some seconds, and who took the processors' time for it."""

    def see_running() -> None:
        if any(process.poll() is not None for process in [*generators, *proxies.running]):
            texts = [file.read_text(errors="replace") for file in work.glob("generator*")]
            lines = [
                line
                for text in texts
                for line in text.replace("\r", "\n").splitlines()
                if line[:1] != '"'
            ]
            raise WrongAnswerError(
                f"a load generator or proxy ended: {' '.join(lines[-3:])} {proxies.words()}"
            )

    see_running()
    errors, begun = proxies.errors(), time.monotonic()
    driver, proxy = spent(generators), spent(proxies.running)
    before = [state(at) for at in places]
    time.sleep(seconds)
    after = [state(at) for at in places]
    driver, proxy = spent(generators) - driver, spent(proxies.running) - proxy
    took = time.monotonic() - begun
    see_running()
    require("the number of errors that the twemproxies counted", proxies.errors() - errors, 0)
    require("what twemproxy and HAProxy report", proxies.words(), "")
    rates, gets, sets = 0.0, 0.0, 0.0
    for number, (first, last) in enumerate(zip(before, after, strict=True)):
        done = {key: round(last[key] - first[key], 6) for key in first} | {"failed": last["failed"]}
        rate = (done["gets"] + done["sets"]) / done["seconds"]
        report(server=number, **done, rate=digits(rate))
        rates, gets, sets = rates + rate, gets + done["gets"], sets + done["sets"]
    report(total=digits(rates), get_share=digits(100 * gets / (gets + sets)))
    cpus = len(os.sched_getaffinity(0))
    shares = {
        name: digits(100 * of / took / cpus)
        for name, of in (("driver_share", driver), ("proxy_share", proxy))
    }
    report(client=round(took, 6), cpus=cpus, processes=len(generators), **shares)


def end(process: Process, by: int) -> None:
    """End a process of ours by a signal."""
    process.send_signal(by)
    process.wait()


def measure(setup: str, places: Sequence[list[str]], words: Sequence[str]) -> None:
    """Measure one set-up, and say what came out."""
    addresses, free, pinned = places
    connections, baseline, pipeline, size, keys, settle, seconds, seed, stats_port = map(int, words)
    if len(free) != len(pinned) or len(free) % len(addresses):
        raise WrongAnswerError(
            f"there are {len(free)} ports and {len(pinned)} pinned_ports; there must be as many of both"
        )
    each = len(free) // len(addresses)
    if setup in ("baseline", "half"):
        connections = baseline if setup == "baseline" else connections // 2
    used = {"baseline": free[:1], "pinned": pinned}.get(setup, free)
    servers = [(addresses[number // each], port) for number, port in enumerate(used)]
    ways: list[Place] = [("-h", address, "-p", port) for address, port in servers]
    password, keyspace = Path("/data/password").read_text().strip(), keys * len(servers)
    os.environ["REDISCLI_AUTH"] = password
    with contextlib.ExitStack() as at_the_end:
        work = Path(at_the_end.enter_context(tempfile.TemporaryDirectory()))
        proxies, front = Proxies(work, stats_port), ways[0]
        if setup != "baseline":
            at_the_end.callback(proxies.end)
            proxies.start(servers, connections, password)
            front = ("-s", f"{work}/front")
        check(front)
        kept = [int(ask(at, "dbsize")) for at in ways]
        asked = {
            "connections": connections,
            "pipeline": pipeline,
            "data_bytes": size,
            "keys": keys,
            "seed": seed,
        }
        client = subprocess.run(
            ["redis-benchmark", "--version"], capture_output=True, text=True, check=True
        ).stdout
        version = re.search("redis_version:(.*)", ask(ways[0], "info", "server"))
        told = {"client": client.splitlines()[0], "server": version and version[1]}
        report(point=setup, servers=len(servers), **asked, **told)
        report(checked=len(CHECKED), kept=kept)
        load = [
            "redis-benchmark",
            *front,
            "-a",
            password,
            "-P",
            str(pipeline),
            "-d",
            str(size),
            "-r",
            str(keyspace),
        ]
        fill = [*load, "-t", "set", "-c", "50", "-n", str(3 * keyspace), "--seed", str(seed), "-q"]
        done = subprocess.run(
            fill, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode:
            raise WrongAnswerError(
                f"the servers cannot be filled: {done.stdout.split(chr(10))[-1]}"
            )
        generators = list(generate(load, connections, len(servers), seed, work, at_the_end))
        time.sleep(settle)
        watch(ways, generators, proxies, work, seconds)
    # No more than the keys of one set-up are held, and none while other environments have their turn.
    for at in ways:
        require(f"the answer to flushall of {' '.join(at)}", ask(at, "flushall", "sync"), "OK\n")
    report(end=setup)


def generate(
    load: list[str],
    connections: int,
    servers: int,
    seed: int,
    work: Path,
    at_the_end: contextlib.ExitStack,
) -> Iterator[Process]:
    """Start a load generator for each server; all are killed in the end."""
    for number, test in enumerate(PROCESSES * servers, 1):
        own = [
            "-c",
            str(connections // len(PROCESSES)),
            "--seed",
            str((seed + number) % 2147483647),
        ]
        with (work / f"generator{number}").open("wb") as told:
            command = [*load, "-t", test, *own, "-n", "2000000000", "--csv"]
            process = subprocess.Popen(command, stdout=told, stderr=told)
        at_the_end.callback(end, process, signal.SIGKILL)
        yield process


def main(setup: str, *words: str) -> int:
    """Do what is asked; what is wrong ends it with its words and 1."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.umask(0o077)
    try:
        measure(setup, [word.split(",") for word in words[:3]], words[3:])
    except (WrongAnswerError, OSError) as error:
        print(f"point: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
