"""Servers take turns: Redis natively and in a container, each frozen while the other has load."""

import contextlib
import glob
import json
import os
import socket
import subprocess
import threading

import projects
import pytest
from listening import link_addresses

from strata.host import cgroups
from strata.testbed import journal

LAPS = 4
ENVIRONMENTS = {
    "native": {"layers": ["chroot"]},
    "docker": {"layers": [{"docker": {"network": "bridge", "data": "volume"}}]},
}


@pytest.fixture
def project(image, tmp_path, machine_stays):
    load = {"laps": LAPS, "connections": [1, 20], "pipelines": [1], "requests": 2000}
    page = projects.default(repetitions=1, environments=ENVIRONMENTS, workloads={"redis": load})
    folder = projects.make(tmp_path / "project", page)
    projects.plan(folder)
    return folder


def record(folder, environment):
    return json.loads((folder / f"results/raw/{environment}/redis/1.json").read_text())


def groups():
    """The folders of the groups that systems which are up note as frozen."""
    names = [
        trace["id"]
        for thing in journal.read_entries()
        for trace in thing["cleanups"]
        if trace["kind"] == "frozen"
    ]
    found = [
        path
        for name in set(names)
        for path in glob.glob(f"/sys/fs/cgroup/**/{name}*", recursive=True)
    ]
    return [
        path
        for path in found
        if any(
            os.path.exists(f"{path}/{name}") for name in (cgroups.FREEZER_V1, cgroups.FREEZER_V2)
        )
    ]


def frozen(group):
    with contextlib.suppress(OSError):
        if os.path.exists(f"{group}/freezer.state"):
            with open(f"{group}/freezer.state") as file:
                return file.read().strip() == "FROZEN"
        with open(f"{group}/cgroup.events") as file:
            return "frozen 1" in file.read()
    return False


def used(group):
    """Nanoseconds of CPU time, or microseconds with version 2, that what is in a group used."""
    with open(f"{group.replace('/freezer/', '/cpuacct/')}/cpuacct.usage") as file:
        return int(file.read())


class Watcher(threading.Thread):
    """Looks at the groups, and keeps a connection to each server, while a cell measures."""

    def __init__(self, ports):
        super().__init__(daemon=True)
        self.over, self.ports = threading.Event(), ports
        self.seen, self.spent = 0, []
        self.answers = dict.fromkeys(ports, 0)
        self.open = {}

    def run(self):
        before = {}
        while not self.over.wait(0.05):
            now = {group: used(group) for group in groups() if frozen(group)}
            still = {group for group in now if group in before and frozen(group)}
            # The server's answer shows a group that was thawed and frozen again in between.  Such a
            # group is left out.
            self.spent += [now[group] - before[group] for group in still]
            self.seen = max(self.seen, len(now))
            for port in self.ports:
                self.ask(port)
            before = {group: used(group) for group in now if frozen(group)}

    def ask(self, port):
        with contextlib.suppress(OSError):
            if port not in self.open:
                self.open[port] = socket.create_connection(
                    (min(link_addresses(), default="127.0.0.1"), port), timeout=0.2
                )
                self.open[port].settimeout(0.01)
                self.open[port].sendall(b"PING\r\n")
            # One question at a time: the server keeps only a few answers for a client that gave no
            # password.
            if b"NOAUTH" in self.open[port].recv(4096):
                self.answers[port] += 1
                self.open[port].sendall(b"PING\r\n")


def test_servers_take_turns_and_what_is_frozen_uses_nothing_and_loses_no_connection(project):
    watcher = Watcher([16379, 16379 + 64])
    watcher.start()
    done = projects.run(project, "strata", "cell", "native", "redis", "1")
    watcher.over.set()
    watcher.join()
    assert done.returncode == 0, done.stderr
    assert "interleaved with docker" in done.stderr
    projects.good(project, "strata", "cell", "docker", "redis", "1")
    records = {name: record(project, name) for name in ENVIRONMENTS}
    for name, own in records.items():
        assert own["interleaved"] == [other for other in ENVIRONMENTS if other != name]
        laps = [command["lap"] for command in own["commands"] if command["step"] == "run"]
        assert laps == sorted(laps)
        assert set(laps) == set(range(1, LAPS + 1))
        assert [server["exit"] for server in own["servers"]] == [0]
    turns = sorted(
        (command["started"], command["lap"], name)
        for name, own in records.items()
        for command in own["commands"]
        if command["step"] == "run"
    )
    changes = [name for at, (_, _, name) in enumerate(turns) if at == 0 or turns[at - 1][2] != name]
    assert len(changes) >= LAPS + 1
    # One is frozen at any time, never both while a load runs; and what is frozen does nothing.
    assert watcher.seen >= 1
    assert len(watcher.spent) > 10
    assert max(watcher.spent) == 0
    assert min(watcher.answers.values()) > LAPS
    assert journal.read_entries() == []


def test_a_kill_amid_turns_leaves_nothing_frozen(project):
    measuring = projects.start(
        project, "strata", "cell", "native", "redis", "1", output=subprocess.DEVNULL
    )
    projects.until(lambda: measuring.poll() is not None or any(map(frozen, groups())), 120)
    assert measuring.poll() is None
    measuring.kill()
    measuring.wait()
    projects.good(project, "strata", "clean")
    assert journal.read_entries() == []
    assert not [
        path for path in glob.glob("/sys/fs/cgroup/**/strata/**/", recursive=True) if frozen(path)
    ]
    servers = ["pgrep", "-x", "redis-server"]
    projects.until(
        lambda: subprocess.run(servers, capture_output=True, check=False).returncode != 0
    )
