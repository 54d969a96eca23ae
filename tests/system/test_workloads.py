"""Workloads with a server, a client or a disk, in environments without a virtual machine.

The short test measures them on the host and in a container, the long one in all environments.
"""

import itertools
import json
import subprocess
from pathlib import Path

import listening
import projects
import pytest

from strata.environments import podman
from strata.host import capacity

WORKLOADS = ["files", "fio", "ramdisk", "mysql", "netperf", "nuttcp", "redis", "startup"]
SHORT = dict.fromkeys(["native", "docker"], WORKLOADS)
LAYER = podman.Layer
# Podman with the first of its runtimes that works here.  Podman's filter of system calls would
# refuse calls that fio's library needs.
PODMANS = [
    {"label": "Podman", "layers": [{"podman": options}]}
    for name in podman.RUNTIMES
    for options in [
        {"network": "bridge", "data": "volume", "runtime": name, "seccomp": "unconfined"}
    ]
    if not (
        LAYER.explain_unavailability()
        or LAYER.explain_refusal(options, "host", capacity.read_host_facts())
    )
][:1]
LONG = dict.fromkeys(
    [*SHORT, "docker-hostnet", "docker-layered", *["podman"] * len(PODMANS)], WORKLOADS
)
# Layered data lie in Docker's own storage.
LEFT_OUT = {"docker-layered": ["ramdisk"]}
LONG |= {name: [load for load in WORKLOADS if load not in LEFT_OUT[name]] for name in LEFT_OUT}
# The short test measures parts of sweeps, and one lap (of Redis several).
SHORTER = {
    "files": {"laps": 1},
    "fio": {
        "jobs": ["sequential-fill", "random-read-16", "mixed-random-rw-32x8", "fsync"],
        "laps": 1,
    },
    "ramdisk": {"jobs": ["random-read-16", "fsync"], "laps": 1},
    "mysql": {"threads": [2], "laps": 1},
    "netperf": {"laps": 1},
    "nuttcp": {"laps": 1, "warmup_seconds": 0.1},
}

# What a busy machine adds to the factors of a cost: it has not reached the rate that was asked for.
NOT_REACHED = ("rate", "not-reached")
# What an environment may lack: percentiles need samples, cycles need a host's counters.
UNCERTAIN = ("latency_percentile", "p99", "memory", "cycles_per_byte")

# Ports of the servers, for as long as they run (CONTROL) or for single connections.
PORTS = {
    "mysql": [13306],
    "netperf": [22865, 22866],
    "nuttcp": [25000, 25101, 25201, 25865, 25866],
    "redis": [16379],
}
CONTROL = {13306, 22865, 25000, 25865, 16379}
# The numbers of a block's systems; each has ports 64 above those of the one before.
SYSTEMS = range(4)


@pytest.fixture(
    scope="module",
    params=[SHORT, pytest.param(LONG, marks=pytest.mark.long)],
    ids=["some", "all everywhere"],
)
def cells(request):
    """The workloads that are measured, by environment."""
    return request.param


@pytest.fixture(scope="module")
def run(image, cells, tmp_path_factory):
    """A project with a cell of each and their tables, and the watcher of its sockets."""
    folder = tmp_path_factory.mktemp("workloads") / "p"
    workloads = dict.fromkeys(WORKLOADS) | (SHORTER if cells is SHORT else {})
    page = projects.default(workloads=workloads, repetitions=1)
    known = page["environments"] | dict(zip(["podman"], PODMANS, strict=False))
    page["environments"] = {name: known[name] for name in cells}
    page["leave_out"] = {name: LEFT_OUT[name] for name in cells if name in LEFT_OUT}
    projects.make(folder, page)
    logs = [
        f"results/raw/{name}/{workload}/1.log"
        for name, workloads in cells.items()
        for workload in workloads
    ]
    tables = [f"results/tidy/{name}.csv" for name in WORKLOADS]
    ports = itertools.chain.from_iterable(PORTS.values())
    watched = {port + 64 * number for port in ports for number in SYSTEMS}
    with listening.Watcher(watched) as watcher:
        done = projects.run(folder, "snakemake", "--cores", "1", *logs, timeout=1500)
    assert done.returncode == 0, done.stderr
    projects.good(folder, "snakemake", "--cores", "2", "--config", "partial=true", "--", *tables)
    return folder, watcher


@pytest.fixture(scope="module")
def made(run):
    """The project."""
    return run[0]


def rows(folder, workload, **wanted):
    found = projects.table(folder / f"results/tidy/{workload}.csv")
    return [row for row in found if all(row[key] == value for key, value in wanted.items())]


def series(folder, workload, cells):
    """By environment, what it gives of a workload, but for what one of them may lack."""
    return {
        name: [
            (row["metric"], projects.factors(row).items() - {NOT_REACHED})
            for row in rows(folder, workload, environment=name)
            if row["metric"] not in UNCERTAIN
        ]
        for name in cells
        if workload in cells[name]
    }


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_environment_gives_the_same_series(made, cells, workload):
    found = series(made, workload, cells)
    assert found["native"]
    assert all(one == found["native"] for one in found.values())
    assert all(float(row["value"]) > 0 for row in rows(made, workload))


def read_record(folder, environment, workload):
    return json.loads((folder / f"results/raw/{environment}/{workload}/1.json").read_text())


def test_load_came_from_outside_and_servers_ended_well(made, cells):
    for workload in ("mysql", "netperf", "nuttcp", "redis"):
        for environment in [name for name in cells if workload in cells[name]]:
            record = read_record(made, environment, workload)
            assert record["observed"]["client"]["link"]["kind"] == "veth pair"
            assert all(server["exit"] in (0, 143) for server in record["servers"])
            assert any(command.get("at") == "client" for command in record["commands"])
    assert read_record(made, "native", "fio")["observed"]["client"] is None


def test_a_start_is_that_of_a_system_of_its_own(made, cells):
    for environment in [name for name in cells if "startup" in cells[name]]:
        log = made / f"results/raw/{environment}/startup/1.log"
        [start] = map(json.loads, log.read_text().splitlines())
        assert start["start"] == "created"
        assert start["up_seconds"] > 0
        assert (start["memory_bytes"] is None) == (environment == "native")


def test_data_were_prepared_once_and_are_the_same_everywhere(made, cells, image):
    assert len(list(Path(image["folder"], "prepared").glob("mysql-*"))) == 1
    # Every lap counts the same rows: no lap has the changes of another one.
    for environment in [name for name in cells if "mysql" in cells[name]]:
        log = (made / f"results/raw/{environment}/mysql/1.log").read_text().splitlines()
        assert len({line for line in log if '"rows_left"' in line}) == 1


def test_servers_listen_where_their_client_comes_and_nowhere_else(run, cells):
    watcher = run[1]
    for environment, workloads in cells.items():
        assert watcher.find_misplaced(environment) == []
        is_bridged = environment in ("docker", "docker-layered", "podman")
        place = "inside" if is_bridged else "host"
        ports = {port for where, _, port in watcher.seen[environment] if where == place}
        # Sockets of short life are seen by chance only.
        measured = {port for name in workloads for port in PORTS.get(name, [])}
        for port in CONTROL & measured:
            assert ports & {port + 64 * number for number in SYSTEMS}


def test_passwords_are_made_for_every_cell_and_written_nowhere(run, cells):
    folder, watcher = run
    passwords = {word for word in watcher.passwords if len(word) == 32}
    assert len(passwords) >= len(cells)
    for path in folder.rglob("results/**/*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [word for word in passwords if word.encode() in content], path


# Runs in a network and mounts of its own, which end with it, and calls each server with the right
# password, with another one, and with none.
REFUSING = r"""
set -eu
tree=$1 root=$2 at=10.1.1.1
ip link set lo up
ip address add $at/32 dev lo
mount --bind "$tree" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
for name in tmp data; do mount -t tmpfs tmpfs "$root/$name"; done
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
of=/opt/strata/workloads
wait_for() { for _ in $(seq 200); do "$@" >/dev/null 2>&1 && break || sleep 0.1; done; }
answers() {
    name=$1
    shift
    if "$@" >/dev/null 2>&1; then echo "$name: yes"; else echo "$name: no"; fi
}
other() { echo other >"$root/data/password"; }
own() { (umask 077; echo own >"$root/data/password"); }
own
inside $of/redis/server.sh $at 7000 "" >/dev/null &
inside /opt/strata/bin/netperf-server $at 7001 "" >/dev/null &
inside $of/mysql/database.sh make_data 1000 16777216 8388608 >/dev/null 2>&1
inside $of/mysql/database.sh prepare
inside $of/mysql/database.sh serve $at 7002 16777216 8388608 >/dev/null 2>&1 &
wait_for inside $of/redis/ready.sh $at 7000
wait_for inside /opt/strata/bin/netperf-ready $at 7001 7003
wait_for inside $of/mysql/database.sh ready $at 7002
for kind in own other; do
    $kind
    answers "redis, $kind" inside $of/redis/ready.sh $at 7000
    answers "netserver, $kind" inside /opt/strata/bin/netperf-ready $at 7001 7003
    answers "mariadb, $kind" inside $of/mysql/database.sh ready $at 7002
done
answers "redis, none" inside sh -c "redis-cli -h $at -p 7000 ping | grep PONG"
answers "netserver, none" inside netperf -4 -P 0 -H $at -p 7001 -t TCP_RR -l -1 -- -P ,7003
for user in root sbtest; do
    answers "mariadb, none, $user" \
        inside mariadb --no-defaults --skip-ssl -h $at -P 7002 -u $user -e "SELECT 1"
done
"""


def test_servers_answer_to_the_password_of_their_cell_alone(image, tmp_path):
    argv = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
    argv += ["bash", "-c", REFUSING, "strata", f"{image['folder']}/tree", str(tmp_path)]
    result = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    answers = dict(line.split(": ") for line in result.stdout.splitlines())
    names = ("redis", "netserver", "mariadb")
    assert {name for name, answer in answers.items() if answer == "yes"} == {
        f"{name}, own" for name in names
    }
    assert len(answers) == 2 * len(names) + 4
