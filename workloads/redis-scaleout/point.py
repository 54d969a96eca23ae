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
from typing import IO, NamedTuple

from report import WrongAnswerError, print_json_line, require_equal, round_digits

# A load generator is four processes that share its connections; three send GET, one sends SET.
# All have the same amount of work, so that a scarce processor does not shift the mix.
TESTS_OF_GENERATOR = ("get", "get", "get", "set")
# Numbers of the keys that are set and read before the load.
CHECKED_KEYS = range(1, 65)
# Seconds within which the proxies must answer.
READY_SECONDS = 60
# Seeds of redis-benchmark are below this number.
SEEDS = 2147483647
# So many requests that a load generator never ends by itself.
ENDLESS = 2000000000
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


class Settings(NamedTuple):
    """The settings of one set-up, from the command line.

    servers: address and port of each server that takes part.
    connections: of each load generator.
    keys: for each server.
    settle, seconds: the seconds before and between the two readings of the counters.
    """

    setup: str
    servers: list[tuple[str, str]]
    connections: int
    pipeline: int
    data_bytes: int
    keys: int
    settle: int
    seconds: int
    seed: int
    stats_port: int


def read_settings(setup: str, *arguments: str) -> Settings:
    """Return the settings of the command line.

    arguments: as the module's usage lists them after SETUP; workload.yaml passes them so.
    Raises WrongAnswerError unless the lists of ports are equally long, and a multiple of the
    addresses.
    """
    addresses, free_ports, pinned_ports = [argument.split(",") for argument in arguments[:3]]
    connections, baseline_connections, *numbers = [int(argument) for argument in arguments[3:]]
    if len(free_ports) != len(pinned_ports) or len(free_ports) % len(addresses):
        raise WrongAnswerError(
            f"`ports` has {len(free_ports)} ports, and `pinned_ports` has {len(pinned_ports)}: "
            "give both the same number, and every system the same number of them"
        )
    ports_of_system = len(free_ports) // len(addresses)
    ports = free_ports
    if setup == "baseline":
        ports, connections = free_ports[:1], baseline_connections
    elif setup == "half":
        connections //= 2
    elif setup == "pinned":
        ports = pinned_ports
    # The ports of the first system are first.
    servers = [(addresses[at // ports_of_system], port) for at, port in enumerate(ports)]
    return Settings(setup, servers, connections, *numbers)


def query_server(target: Target, *words: str, text: str | None = None) -> str:
    """Return the answer to a command, or to the commands of a text, as redis-cli prints it.

    words: the command.  text: the commands, one on each line, if there are no words.
    Raises WrongAnswerError if redis-cli fails.
    """
    argv = ["redis-cli", *target, *words]
    result = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if result.returncode or result.stderr:
        reason = (result.stderr or result.stdout).strip()
        raise WrongAnswerError(f"{' '.join(argv)}: {reason}")
    return result.stdout.replace("\r", "")


class Proxies:
    """The proxies of a set-up: a twemproxy for each server, and HAProxy before them.

    Every twemproxy knows all servers.
    They run on the load generators' machine, and talk with them through sockets of that machine.
    The keys of a server follow from its name, not its address: they are the same everywhere.

    folder: for sockets, configurations and logs.
    stats_port: of the first twemproxy's statistics; each further one has the next port.
    cleanup: ends the proxies.
    target: reaches HAProxy.
    processes: the twemproxies, and HAProxy last; empty until they are started.
    """

    def __init__(self, folder: Path, stats_port: int, cleanup: contextlib.ExitStack) -> None:
        """Start nothing yet."""
        self.folder, self.stats_port, self.cleanup = folder, stats_port, cleanup
        self.processes: list[Process] = []
        self.target: Target = ("-s", f"{folder}/front")

    def start(self, settings: Settings, password: str) -> None:
        """Start the proxies, and wait until they answer.

        password: the password of the servers, which the configurations in `folder` hold.
        Raises WrongAnswerError if they do not answer within READY_SECONDS.
        """
        pool = f"  redis: true\n  redis_auth: {password}\n  hash: fnv1a_64\n"
        pool += "  distribution: ketama\n  preconnect: true\n  servers:\n"
        for number, (address, port) in enumerate(settings.servers):
            pool += f"   - {address}:{port}:1 server{number}\n"
        # All load generators together, and some more connections.
        connections = len(settings.servers) * settings.connections + 100
        front = f"global\n  maxconn {connections}\n"
        front += "  log stdout format raw local0 warning\ndefaults\n  mode tcp\n"
        front += "  timeout connect 10s\n  timeout client 1h\n  timeout server 1h\n"
        front += f"listen redis\n  log global\n  bind unix@{self.folder}/front\n"
        front += "  balance roundrobin\n"
        for number in range(len(settings.servers)):
            base = f"{self.folder}/twemproxy{number}"
            Path(f"{base}.yml").write_text(f"pool:\n  listen: {base}\n{pool}")
            # -v 4: the log has warnings and errors.  -i 100: statistics are of every 100 ms.
            argv = ["nutcracker", "-c", f"{base}.yml", "-o", f"{base}.log", "-v", "4", "-i", "100"]
            argv += ["-p", f"{base}.pid", "-a", "127.0.0.1", "-s", str(self.stats_port + number)]
            self._start_process(argv)
            front += f"  server twemproxy{number} unix@{base}\n"
        (self.folder / "haproxy.cfg").write_text(front)
        argv = ["haproxy", "-db", "-f", str(self.folder / "haproxy.cfg")]
        with (self.folder / "haproxy.log").open("wb") as log:
            self._start_process(argv, stdout=log, stderr=log)
        deadline = time.monotonic() + READY_SECONDS
        while not self._is_answering():
            if time.monotonic() > deadline:
                trouble = self.read_trouble()
                raise WrongAnswerError(f"twemproxy and HAProxy do not answer: {trouble}")
            time.sleep(0.1)

    def _start_process(self, argv: list[str], **output: IO[bytes]) -> None:
        """Start a proxy, which is terminated at the cleanup.  output: options of Popen."""
        process = subprocess.Popen(argv, **output)
        self.cleanup.callback(end_process, process, signal.SIGTERM)
        self.processes.append(process)

    def _is_answering(self) -> bool:
        """Return whether the proxies answer a request for a missing key, as they should."""
        # The answer to a missing key is an empty line.
        with contextlib.suppress(WrongAnswerError):
            return query_server(self.target, "get", "probe") == "\n"
        return False

    def count_errors(self) -> int:
        """Return the number of errors that all twemproxies have counted until now.

        The first connection of every load generator is among them: it asks for the server's
        configuration, which twemproxy refuses.
        """
        total = 0
        twemproxies = self.processes[:-1]
        for number in range(len(twemproxies)):
            address = ("127.0.0.1", self.stats_port + number)
            with socket.create_connection(address) as connection, connection.makefile() as file:
                total += sum(map(int, ERROR_COUNTERS.findall(file.read())))
        return total

    def read_trouble(self) -> str:
        """Return the first three lines of trouble in the proxies' logs; "" if there are none."""
        lines = []
        for log in self.folder.glob("*.log"):
            for line in log.read_text(errors="replace").splitlines():
                if TROUBLE.search(line) and not REGULAR.search(line):
                    lines.append(line)
        return " ".join(lines[:3])


def read_counters(target: Target) -> dict[str, float]:
    """Return a server's counters since its start, and its clock as `seconds`.

    They come from Redis's INFO.  gets, sets: executed requests, failed ones included.
    hits, misses: keys that were found or not.  failed: rejected or failed requests of GET and SET.
    print_rates subtracts two readings, and prints the differences by the same keys.
    """
    lines = query_server(target, "info", "all").splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    calls, failed = {}, 0
    for command in ("get", "set"):
        # For example "calls=3,usec=9,failed_calls=0"; missing before the first request.
        pairs = fields.get(f"cmdstat_{command}", "calls=0").split(",")
        counts = dict(pair.split("=") for pair in pairs)
        calls[command] = int(counts["calls"])
        failed += int(counts.get("rejected_calls", 0)) + int(counts.get("failed_calls", 0))
    return {
        "seconds": int(fields["server_time_usec"]) / 1e6,
        "gets": calls["get"],
        "sets": calls["set"],
        "hits": int(fields["keyspace_hits"]),
        "misses": int(fields["keyspace_misses"]),
        "failed": failed,
    }


def read_cpu_seconds(processes: Sequence[Process]) -> float:
    """Return the CPU time in seconds that processes have used until now."""
    ticks = 0
    for process in processes:
        # After the name in parentheses; user and system time are the fields 14 and 15 of proc(5).
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def check_answers(target: Target) -> None:
    """Write and read some keys, which stay.  Raises WrongAnswerError if an answer is wrong.

    target: the target of a server or of the proxies.
    """
    # Values differ, so that a wrong one is noticed.  Keys differ in their first bytes: twemproxy's
    # hash would put keys that differ only in the last byte on one or two servers.
    commands = [f"set {number}:check {number * 7919}\n" for number in CHECKED_KEYS]
    # The last key was not set: its answer is empty.
    commands += [f"get {number}:check\n" for number in [*CHECKED_KEYS, "none"]]
    expected = "OK\n" * len(CHECKED_KEYS)
    expected += "".join(f"{number * 7919}\n" for number in CHECKED_KEYS) + "\n"
    answers = query_server(target, text="".join(commands))
    if answers != expected:
        raise WrongAnswerError(f"wrong answers to requests: {' '.join(answers.split())[:300]}")


def start_generators(
    argv: list[str], settings: Settings, folder: Path, cleanup: contextlib.ExitStack
) -> list[Process]:
    """Start a load generator for each server; return all processes, which the cleanup kills.

    argv: redis-benchmark with the options of all processes.
    folder: in which each process writes its output into a file.
    """
    connections = settings.connections // len(TESTS_OF_GENERATOR)
    processes = []
    for number, test in enumerate(TESTS_OF_GENERATOR * len(settings.servers), 1):
        seed = (settings.seed + number) % SEEDS
        options = ["-t", test, "-c", str(connections), "--seed", str(seed)]
        with (folder / f"generator{number}").open("wb") as output:
            argv_of_test = [*argv, *options, "-n", str(ENDLESS), "--csv"]
            process = subprocess.Popen(argv_of_test, stdout=output, stderr=output)
        cleanup.callback(end_process, process, signal.SIGKILL)
        processes.append(process)
    return processes


def read_last_lines(folder: Path) -> str:
    """Return the last three lines of the load generators' outputs that are no results.

    folder: in which start_generators has written the outputs, as generator1 and so on.
    """
    texts = [file.read_text(errors="replace") for file in folder.glob("generator*")]
    lines = "\n".join(texts).replace("\r", "\n").splitlines()
    # A result, in CSV, begins with a quotation mark.
    return " ".join([line for line in lines if line[:1] != '"'][-3:])


def end_process(process: Process, number: int) -> None:
    """Send a signal to a process, and wait for its end, without a limit of time.

    number: the number of the signal.
    """
    process.send_signal(number)
    process.wait()


def require_running(generators: list[Process], proxies: Proxies) -> None:
    """Raise WrongAnswerError if a load generator or proxy ended."""
    if any(process.poll() is not None for process in [*generators, *proxies.processes]):
        lines = f"{read_last_lines(proxies.folder)} {proxies.read_trouble()}"
        raise WrongAnswerError(f"a load generator or proxy ended: {lines}")


def observe_load(
    targets: Sequence[Target], generators: list[Process], proxies: Proxies, seconds: float
) -> None:
    """Print the servers' counts of some seconds, and the CPU time of load generators and proxies.

    Raises WrongAnswerError if a load generator or proxy ended, or a proxy reports an error.
    """
    require_running(generators, proxies)
    # The generators' first connections have been counted as errors before.
    errors_before = proxies.count_errors()
    started = time.monotonic()
    generators_before = read_cpu_seconds(generators)
    proxies_before = read_cpu_seconds(proxies.processes)
    before = [read_counters(target) for target in targets]
    time.sleep(seconds)
    after = [read_counters(target) for target in targets]
    generator_seconds = read_cpu_seconds(generators) - generators_before
    proxy_seconds = read_cpu_seconds(proxies.processes) - proxies_before
    elapsed = time.monotonic() - started
    require_running(generators, proxies)
    new_errors = proxies.count_errors() - errors_before
    require_equal("the number of twemproxy's errors", new_errors, 0)
    require_equal("trouble in the logs of twemproxy and HAProxy", proxies.read_trouble(), "")
    print_rates(before, after)
    cpus = len(os.sched_getaffinity(0))
    shares = {
        "driver_share": round_digits(100 * generator_seconds / elapsed / cpus),
        "proxy_share": round_digits(100 * proxy_seconds / elapsed / cpus),
    }
    print_json_line(client=round(elapsed, 6), cpus=cpus, processes=len(generators), **shares)


def print_rates(before: list[dict[str, float]], after: list[dict[str, float]]) -> None:
    """Print what was added to each server's counters, its rate, and the rate of all servers.

    before, after: the counters of each server (read_counters) at two moments.
    parse.py reads the keys, among them `seconds` between the moments.
    """
    rate_of_all = gets = sets = 0.0
    for number, (first, last) in enumerate(zip(before, after, strict=True)):
        counts = {key: round(last[key] - first[key], 6) for key in first}
        # No request may have failed since the server's start.
        counts["failed"] = last["failed"]
        rate = (counts["gets"] + counts["sets"]) / counts["seconds"]
        print_json_line(server=number, **counts, rate=round_digits(rate))
        rate_of_all += rate
        gets += counts["gets"]
        sets += counts["sets"]
    get_share = round_digits(100 * gets / (gets + sets))
    print_json_line(total=round_digits(rate_of_all), get_share=get_share)


def measure_setup(settings: Settings) -> None:
    """Measure one set-up, and print the results as a point of the log, whose keys parse.py reads.

    The servers are empty before and after it.
    Writes and removes a temporary folder, and sets REDISCLI_AUTH for all children.
    Raises WrongAnswerError if an answer is wrong or a program fails.
    """
    servers, setup = settings.servers, settings.setup
    targets: list[Target] = [("-h", address, "-p", port) for address, port in servers]
    password = Path("/data/password").read_text().strip()
    os.environ["REDISCLI_AUTH"] = password
    with contextlib.ExitStack() as cleanup:
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory()))
        proxies, front = Proxies(folder, settings.stats_port, cleanup), targets[0]
        if setup != "baseline":
            proxies.start(settings, password)
            front = proxies.target
        check_answers(front)
        # How many of the checked keys each server holds.
        kept = [int(query_server(target, "dbsize")) for target in targets]
        options = {"connections": settings.connections, "pipeline": settings.pipeline}
        options |= {"data_bytes": settings.data_bytes, "keys": settings.keys, "seed": settings.seed}
        versions = read_versions(targets[0])
        print_json_line(point=setup, servers=len(servers), **options, **versions)
        print_json_line(checked=len(CHECKED_KEYS), kept=kept)
        keyspace = settings.keys * len(servers)
        argv = ["redis-benchmark", *front, "-a", password, "-P", str(settings.pipeline)]
        argv += ["-d", str(settings.data_bytes), "-r", str(keyspace)]
        # Keys are drawn: of three times as many requests 95 % of the keys are set.
        fill_servers(argv, 3 * keyspace, settings.seed)
        generators = start_generators(argv, settings, folder, cleanup)
        time.sleep(settings.settle)
        observe_load(targets, generators, proxies, settings.seconds)
    # The servers hold the keys of one set-up at most, and none while other environments run.
    for target in targets:
        name = f"the answer to flushall of {' '.join(target)}"
        require_equal(name, query_server(target, "flushall", "sync"), "OK\n")
    print_json_line(end=setup)


def read_versions(target: Target) -> dict[str, str | None]:
    """Return the versions of redis-benchmark (`client`) and of a server (`server`)."""
    argv = ["redis-benchmark", "--version"]
    client = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    version = re.search("redis_version:(.*)", query_server(target, "info", "server"))
    return {"client": client.splitlines()[0], "server": version and version[1]}


def fill_servers(argv: list[str], requests: int, seed: int) -> None:
    """Send SET requests with drawn keys, 50 connections at once, and wait until they are answered.

    argv: redis-benchmark with the options of all its processes.  requests: their number.
    Raises WrongAnswerError if redis-benchmark fails.
    """
    argv = [*argv, "-t", "set", "-c", "50", "-n", str(requests), "--seed", str(seed), "-q"]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    result = subprocess.run(argv, check=False, **options)
    if result.returncode:
        last_line = result.stdout.split("\n")[-1]
        raise WrongAnswerError(f"redis-benchmark cannot fill the servers: {last_line}")


def main() -> int:
    """Run the command line; return the exit code, 1 after a wrong answer."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.umask(0o077)
    try:
        measure_setup(read_settings(*sys.argv[1:]))
    except (WrongAnswerError, OSError) as error:
        print(f"point: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
