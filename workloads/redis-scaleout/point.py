#!/usr/bin/python3 -B
"""Measures one set-up of Redis servers under load, at the client.

Checks that every request is answered correctly, fills the empty servers, starts the load, lets it
settle, reads the servers' counters before and after some seconds, and empties the servers.

Usage: point.py SETUP ADDRESSES PORTS PINNED_PORTS CONNECTIONS BASELINE_CONNECTIONS PIPELINE BYTES
                KEYS SETTLE SECONDS SEED STATS_PORT

SETUP: baseline (one server and one load generator, without proxies), scale-out (all servers behind
twemproxy and HAProxy, with a load generator for each), half (scale-out with half of the
connections), or pinned (scale-out with the pinned servers).  ADDRESSES and both PORTS are lists
with commas, the ports of the first system first.  KEYS: for each server.  SETTLE and SECONDS are
in seconds.  STATS_PORT: of the first twemproxy's statistics; each further one has the next port.
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

from report import WrongAnswerError, print_object, require_equal, round_digits

# A load generator is four processes that share its connections; three send GET, one sends SET.
# All have the same amount of work, so that a scarce processor does not shift the mix.
TESTS_OF_GENERATOR = ("get", "get", "get", "set")
CHECKED_KEYS = range(1, 65)
# twemproxy's counters of lost or refused connections, and of requests without an answer.
ERROR_COUNTERS = re.compile(
    '"(?:client_err|server_ejects|forward_error|server_err|server_timedout|server_eof)": *([0-9]+)'
)
# Lines of trouble in the proxies' logs, and lines of a regular start or end.
TROUBLE = re.compile(
    "error|fail|alert|warn|refused|reset|too many|closed|timed ?out|no server", re.IGNORECASE
)
REGULAR = re.compile("nutcracker-[0-9.]+ (built|started)|run, rabbit|dig that hole|New worker")
Process = subprocess.Popen[bytes]
# The options by which redis-cli and redis-benchmark reach a server or proxy.
Target = tuple[str, ...]


def query(target: Target, *words: str, text: str | None = None) -> str:
    """Return the answer to one command, or to the commands in `text`.  Raises WrongAnswerError."""
    argv = ["redis-cli", *target, *words]
    result = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if result.returncode or result.stderr:
        reason = (result.stderr or result.stdout).strip()
        raise WrongAnswerError(f"{' '.join(argv)}: {reason}")
    return result.stdout.replace("\r", "")


class Proxies:
    """One twemproxy for each server, all of which know all servers, and HAProxy before them.

    They run on the load generators' machine, and talk with them through sockets of that machine.
    The keys of a server follow from its name, not its address: they are the same everywhere.

    folder: an empty one, for sockets, configurations and logs.
    """

    def __init__(self, folder: Path, stats_port: int) -> None:
        self.folder, self.stats_port = folder, stats_port
        self.processes: list[Process] = []
        self.target: Target = ("-s", f"{folder}/front")

    def start(self, servers: Sequence[tuple[str, str]], connections: int, password: str) -> None:
        """Start the proxies, and wait until they answer.

        servers: address and port of each.  connections: of a load generator.
        """
        pool = f"  redis: true\n  redis_auth: {password}\n  hash: fnv1a_64\n"
        pool += "  distribution: ketama\n  preconnect: true\n  servers:\n"
        for number, (address, port) in enumerate(servers):
            pool += f"   - {address}:{port}:1 server{number}\n"
        front = f"global\n  maxconn {len(servers) * connections + 100}\n"
        front += "  log stdout format raw local0 warning\ndefaults\n  mode tcp\n"
        front += "  timeout connect 10s\n  timeout client 1h\n  timeout server 1h\n"
        front += f"listen redis\n  log global\n  bind unix@{self.folder}/front\n"
        front += "  balance roundrobin\n"
        for number in range(len(servers)):
            base = f"{self.folder}/twemproxy{number}"
            Path(f"{base}.yml").write_text(f"pool:\n  listen: {base}\n{pool}")
            argv = ["nutcracker", "-c", f"{base}.yml", "-o", f"{base}.log", "-v", "4"]
            argv += ["-p", f"{base}.pid", "-a", "127.0.0.1", "-s", str(self.stats_port + number)]
            self.processes.append(subprocess.Popen([*argv, "-i", "100"]))
            front += f"  server twemproxy{number} unix@{base}\n"
        (self.folder / "haproxy.cfg").write_text(front)
        with (self.folder / "haproxy.log").open("wb") as log:
            argv = ["haproxy", "-db", "-f", str(self.folder / "haproxy.cfg")]
            self.processes.append(subprocess.Popen(argv, stdout=log, stderr=log))
        deadline = time.monotonic() + 60
        while not self._answers():
            if time.monotonic() > deadline:
                trouble = self.read_trouble()
                raise WrongAnswerError(f"twemproxy and HAProxy do not answer: {trouble}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End the proxies."""
        for process in self.processes:
            end_process(process, signal.SIGTERM)

    def _answers(self) -> bool:
        with contextlib.suppress(WrongAnswerError):
            return query(self.target, "get", "probe") == "\n"
        return False

    def count_errors(self) -> int:
        """Return the number of errors that the twemproxies have counted until now.

        The first connection of every load generator is among them: it asks for the server's
        configuration, which twemproxy refuses.
        """
        total = 0
        for number in range(len(self.processes) - 1):
            address = ("127.0.0.1", self.stats_port + number)
            with socket.create_connection(address) as connection, connection.makefile() as file:
                total += sum(map(int, ERROR_COUNTERS.findall(file.read())))
        return total

    def read_trouble(self) -> str:
        """Return the first lines of trouble in the proxies' logs; "" if there are none."""
        lines = []
        for log in self.folder.glob("*.log"):
            for line in log.read_text(errors="replace").splitlines():
                if TROUBLE.search(line) and not REGULAR.search(line):
                    lines.append(line)
        return " ".join(lines[:3])


def read_counters(target: Target) -> dict[str, float]:
    """Return a server's counters until now, and its clock as `seconds`."""
    lines = query(target, "info", "all").splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    counts = {}
    for command in ("get", "set"):
        pairs = fields.get(f"cmdstat_{command}", "calls=0").split(",")
        counts[command] = dict(pair.split("=") for pair in pairs)
    failed = 0
    for command_counts in counts.values():
        failed += int(command_counts.get("rejected_calls", 0))
        failed += int(command_counts.get("failed_calls", 0))
    return {
        "seconds": int(fields["server_time_usec"]) / 1e6,
        "gets": int(counts["get"]["calls"]),
        "sets": int(counts["set"]["calls"]),
        "hits": int(fields["keyspace_hits"]),
        "misses": int(fields["keyspace_misses"]),
        "failed": failed,
    }


def read_cpu_seconds(processes: Sequence[Process]) -> float:
    """Return the processor time of processes until now."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def check_answers(target: Target) -> None:
    """Write and read some keys.  Raises WrongAnswerError unless every answer is correct."""
    # Keys differ in their first bytes: twemproxy's hash would put keys that differ only in the last
    # byte on one or two servers.
    commands = [f"set {number}:check {number * 7919}\n" for number in CHECKED_KEYS]
    commands += [f"get {number}:check\n" for number in [*CHECKED_KEYS, "none"]]
    expected = "OK\n" * len(CHECKED_KEYS)
    expected += "".join(f"{number * 7919}\n" for number in CHECKED_KEYS) + "\n"
    answers = query(target, text="".join(commands))
    if answers != expected:
        raise WrongAnswerError(f"wrong answers to requests: {' '.join(answers.split())[:300]}")


class Load:
    """The load generators of a set-up, with their output in `folder`."""

    def __init__(self, argv: list[str], folder: Path) -> None:
        """Start nothing yet.  argv: redis-benchmark with the options of all its processes."""
        self.argv, self.folder = argv, folder
        self.processes: list[Process] = []

    def start(self, connections: int, servers: int, seed: int) -> None:
        """Start a load generator, which shares `connections`, for each server."""
        for number, test in enumerate(TESTS_OF_GENERATOR * servers, 1):
            argv = [*self.argv, "-t", test, "-c", str(connections // len(TESTS_OF_GENERATOR))]
            argv += ["--seed", str((seed + number) % 2147483647), "-n", "2000000000", "--csv"]
            with (self.folder / f"generator{number}").open("wb") as output:
                self.processes.append(subprocess.Popen(argv, stdout=output, stderr=output))

    def stop(self) -> None:
        """Kill the load generators."""
        for process in self.processes:
            end_process(process, signal.SIGKILL)

    def read_last_lines(self) -> str:
        """Return the last lines that are no result."""
        texts = [file.read_text(errors="replace") for file in self.folder.glob("generator*")]
        lines = "\n".join(texts).replace("\r", "\n").splitlines()
        return " ".join([line for line in lines if line[:1] != '"'][-3:])


def end_process(process: Process, number: int) -> None:
    """Send a signal to a process, and wait for its end."""
    process.send_signal(number)
    process.wait()


def watch(targets: Sequence[Target], load: Load, proxies: Proxies, seconds: float) -> None:
    """Print the servers' counts of some seconds, and the processor time of load and proxies.

    Raises WrongAnswerError if a load generator or proxy ended, or a proxy reports an error.
    """

    def require_running() -> None:
        processes = [*load.processes, *proxies.processes]
        if any(process.poll() is not None for process in processes):
            lines = f"{load.read_last_lines()} {proxies.read_trouble()}"
            raise WrongAnswerError(f"a load generator or proxy ended: {lines}")

    require_running()
    errors, begun = proxies.count_errors(), time.monotonic()
    load_before = read_cpu_seconds(load.processes)
    proxies_before = read_cpu_seconds(proxies.processes)
    before = [read_counters(target) for target in targets]
    time.sleep(seconds)
    after = [read_counters(target) for target in targets]
    load_seconds = read_cpu_seconds(load.processes) - load_before
    proxy_seconds = read_cpu_seconds(proxies.processes) - proxies_before
    elapsed = time.monotonic() - begun
    require_running()
    require_equal("the number of twemproxy's errors", proxies.count_errors() - errors, 0)
    require_equal("trouble in the logs of twemproxy and HAProxy", proxies.read_trouble(), "")
    rate_of_all = gets = sets = 0.0
    for number, (first, last) in enumerate(zip(before, after, strict=True)):
        counts = {key: round(last[key] - first[key], 6) for key in first}
        counts["failed"] = last["failed"]
        rate = (counts["gets"] + counts["sets"]) / counts["seconds"]
        print_object(server=number, **counts, rate=round_digits(rate))
        rate_of_all, gets, sets = rate_of_all + rate, gets + counts["gets"], sets + counts["sets"]
    get_share = round_digits(100 * gets / (gets + sets))
    print_object(total=round_digits(rate_of_all), get_share=get_share)
    cpus = len(os.sched_getaffinity(0))
    shares = {
        "driver_share": round_digits(100 * load_seconds / elapsed / cpus),
        "proxy_share": round_digits(100 * proxy_seconds / elapsed / cpus),
    }
    processes = len(load.processes)
    print_object(client=round(elapsed, 6), cpus=cpus, processes=processes, **shares)


def measure(setup: str, lists: Sequence[list[str]], words: Sequence[str]) -> None:
    """Measure one set-up, and print the results.

    lists, words: the three lists and the numbers of the command line.
    """
    addresses, free_ports, pinned_ports = lists
    connections, baseline, pipeline, size, keys, settle, seconds, seed, stats_port = map(int, words)
    if len(free_ports) != len(pinned_ports) or len(free_ports) % len(addresses):
        raise WrongAnswerError(
            f"`ports` has {len(free_ports)} ports, and `pinned_ports` has {len(pinned_ports)}: "
            "give both the same number, and every system the same number of them"
        )
    ports_of_system = len(free_ports) // len(addresses)
    if setup in ("baseline", "half"):
        connections = baseline if setup == "baseline" else connections // 2
    ports = {"baseline": free_ports[:1], "pinned": pinned_ports}.get(setup, free_ports)
    servers = [(addresses[at // ports_of_system], port) for at, port in enumerate(ports)]
    targets: list[Target] = [("-h", address, "-p", port) for address, port in servers]
    password, keyspace = Path("/data/password").read_text().strip(), keys * len(servers)
    os.environ["REDISCLI_AUTH"] = password
    with contextlib.ExitStack() as cleanup:
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory()))
        proxies, front = Proxies(folder, stats_port), targets[0]
        if setup != "baseline":
            cleanup.callback(proxies.stop)
            proxies.start(servers, connections, password)
            front = proxies.target
        check_answers(front)
        kept = [int(query(target, "dbsize")) for target in targets]
        options = {"connections": connections, "pipeline": pipeline, "data_bytes": size}
        options |= {"keys": keys, "seed": seed}
        versions = read_versions(targets[0])
        print_object(point=setup, servers=len(servers), **options, **versions)
        print_object(checked=len(CHECKED_KEYS), kept=kept)
        argv = ["redis-benchmark", *front, "-a", password, "-P", str(pipeline)]
        argv += ["-d", str(size), "-r", str(keyspace)]
        fill_servers(argv, 3 * keyspace, seed)
        load = Load(argv, folder)
        cleanup.callback(load.stop)
        load.start(connections, len(servers), seed)
        time.sleep(settle)
        watch(targets, load, proxies, seconds)
    # The servers hold the keys of one set-up at most, and none while other environments run.
    for target in targets:
        name = f"the answer to flushall of {' '.join(target)}"
        require_equal(name, query(target, "flushall", "sync"), "OK\n")
    print_object(end=setup)


def read_versions(target: Target) -> dict[str, str | None]:
    """Return the versions of redis-benchmark and of a server."""
    argv = ["redis-benchmark", "--version"]
    client = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    version = re.search("redis_version:(.*)", query(target, "info", "server"))
    return {"client": client.splitlines()[0], "server": version and version[1]}


def fill_servers(argv: list[str], requests: int, seed: int) -> None:
    """Send so many SET requests.  Raises WrongAnswerError if redis-benchmark fails."""
    argv = [*argv, "-t", "set", "-c", "50", "-n", str(requests), "--seed", str(seed), "-q"]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    result = subprocess.run(argv, check=False, **options)
    if result.returncode:
        last_line = result.stdout.split("\n")[-1]
        raise WrongAnswerError(f"redis-benchmark cannot fill the servers: {last_line}")


def main(setup: str, *words: str) -> int:
    """Run the command line; return the exit code, 1 after a wrong answer."""
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
