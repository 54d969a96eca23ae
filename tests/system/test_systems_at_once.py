"""Several systems at the same time, equal ones and some with roles, with real Docker and image."""

import json
import subprocess
import time

import projects
import pytest

STREAM = {"systems": 2, "elements": 4_000_000, "trials": 200, "laps": 1}
PORT = 28447
# Answers each connection with its word, and with that of the server behind it, if there is one.
SERVER = (
    "use IO::Socket::INET; $SIG{TERM} = sub { exit 0 }; $SIG{PIPE} = q(IGNORE); "
    "my ($word, $at, $port, @behind) = @ARGV; "
    "my $s = IO::Socket::INET->new(LocalPort => $port, LocalAddr => $at, Listen => 9, "
    "ReuseAddr => 1) or die qq(no port: $@\\n); "
    "while (my $c = $s->accept) { print $c qq(I am $word); "
    "if (@behind) { my $b = IO::Socket::INET->new(PeerAddr => $behind[0], PeerPort => $behind[1]) "
    "or die qq(not reached: $@\\n); print $c q( asked ), <$b> } print $c qq(\\n); close $c }"
)
ASK = (
    "set -e; IFS=, read -ra at <<<$0; IFS=, read -ra ports <<<$1; "
    'for k in ${!at[@]}; do exec 3<>"/dev/tcp/${at[k]}/${ports[k]}"; cat <&3; done'
)


def running(program):
    """Ids of the processes of this machine, those in containers too, that run a program."""
    done = subprocess.run(
        ["pgrep", "-f", f"^{program}"], capture_output=True, text=True, check=False
    )
    return done.stdout.split()


@pytest.mark.parametrize("environment", [pytest.param("native", marks=pytest.mark.long), "docker"])
def test_two_systems_run_stream_at_the_same_time(
    tmp_path, image, see_image, machine_stays, environment
):
    see_image(image)
    environments = {environment: projects.default()["environments"][environment]}
    settings = projects.default(
        environments=environments, workloads={"stream": STREAM}, repetitions=1
    )
    folder = projects.make(tmp_path / "p", settings)
    making = projects.start(folder, "snakemake", "--cores", "1", "results/tidy/stream.csv")
    at_once = 0
    while making.poll() is None:
        at_once = max(at_once, len(running("/opt/strata/workloads/stream/stream")))
        time.sleep(0.05)
    assert making.returncode == 0, making.stdout.read()
    assert at_once == 2
    (record,) = projects.records(folder)
    inside, system = record["observed"]["inside"], record["system"]
    assert system["count"] == 2
    assert [part_facts["id"] for part_facts in system["each"]] == [
        f"{system['id']}-{part}" for part in (0, 1)
    ]
    # Both see all processors, and use their part of them.
    assert record["parameters"]["threads"] == system["cpus"] == max(1, inside["cpus"] // 2)
    rows = projects.table(folder / "results/tidy/stream.csv")
    assert sorted((row["metric"], row["factor_system"]) for row in rows) == sorted(
        (metric, str(part))
        for metric in ("copy", "scale", "add", "triad", *["best"] * 4, "first")
        for part in (0, 1)
    )
    assert all(float(row["value"]) > 0 for row in rows)


def server(name, word, port, *behind, **more):
    return {
        "name": name,
        "argv": ["/usr/bin/perl", "-e", SERVER, word, "{listen}", port, *behind],
        "ready": {"argv": ["/opt/strata/bin/reach", "{listen}", port], "timeout": 20},
        "stop": {"timeout": 10},
        **more,
    }


def ask(address, port):
    argv = ["/bin/bash", "-c", ASK, address, port]
    return [{"argv": argv, "at": "client", "timeout": 20}]


def integer(value, **schema):
    return {"about": "x", "schema": {"type": "integer", **schema}, "value": value}


EQUAL = {
    **projects.NOOP,
    "parameters": {"port": integer(PORT), "systems": integer(2, minimum=1, maximum=64)},
    "systems": "systems",
    "ports": ["port"],
    "prepare": [{"argv": ["/bin/sh", "-c", "touch /data/$0; ls /data", "{part}"], "timeout": 20}],
    "servers": [server("answerer", "{part}", "{port}")],
    "run": ask("{address}", "{port}"),
}


def with_roles(placed):
    """A web server that asks a database, and a client that asks the web server."""
    schema = {"type": "array", "items": {"type": "string"}}
    behind = ["{address.database}", "{database_port}"]
    return {
        **projects.NOOP,
        "parameters": {
            "web_port": integer(28540),
            "database_port": integer(28560),
            "roles": {"about": "x", "schema": schema, "value": placed},
        },
        "ports": ["web_port", "database_port"],
        "roles": {
            "parameter": "roles",
            "ports": {"web": ["web_port"], "database": ["database_port"]},
        },
        "servers": [
            server("database", "database", "{database_port}", role="database"),
            server("web", "web", "{web_port}", *behind, role="web"),
        ],
        "run": ask("{address.web}", "{web_port}"),
    }


def measured(folder, environment, workload):
    """Measure a workload once in an environment; the lines of its log, and its record."""
    settings = projects.default(workloads={"asking": None}, repetitions=1)
    projects.beside_real(folder, settings, {"asking": workload})
    projects.image(folder)
    projects.plan(folder)
    projects.good(folder, "strata", "cell", environment, "asking", "1", timeout=900)
    raw = folder / "results/raw" / environment / "asking"
    return (raw / "1.log").read_text().splitlines(), json.loads((raw / "1.json").read_text())


@pytest.mark.parametrize(
    "environment", ["native", "docker", pytest.param("docker-hostnet", marks=pytest.mark.long)]
)
def test_one_client_reaches_the_servers_of_all_systems(tmp_path, image, machine_stays, environment):
    lines, record = measured(tmp_path / "p", environment, EQUAL)
    # Each has a data folder of its own.
    prepared = ['{"system": 0}', "0", '{"system": 1}', "1"]
    assert lines == [*prepared, '{"system": null}', "I am 0", "I am 1"]
    assert [(server["system"], server["exit"]) for server in record["servers"]] == [(0, 0), (1, 0)]
    assert record["commands"][-1]["argv"][-1] == f"{PORT},{PORT + 1}"


@pytest.mark.long
@pytest.mark.parametrize("environment", ["native", "docker", "docker-hostnet", "docker-layered"])
@pytest.mark.parametrize("placed", [["web+database"], ["web", "database"]])
def test_a_web_server_reaches_its_database_in_whichever_system_that_is(
    image, tmp_path, machine_stays, placed, environment
):
    lines, record = measured(tmp_path / "p", environment, with_roles(placed))
    assert "I am web asked I am database" in lines
    assert record["system"]["count"] == len(placed)
    assert [server["exit"] for server in record["servers"]] == [0, 0]
    systems = {server["name"]: server.get("system") for server in record["servers"]}
    expected = {"database": 1, "web": 0} if len(placed) > 1 else {"database": None, "web": None}
    assert systems == expected


def test_more_systems_come_up_beside_the_first_and_all_go(tmp_path, image, machine_stays):
    growing = {
        **projects.NOOP,
        "parameters": {"most": integer(3, minimum=1, maximum=9)},
        "run": [{"more": "most", "argv": ["/bin/mkdir", "/tmp/mine"], "timeout": 20}],
    }
    lines, record = measured(tmp_path / "p", "docker", growing)
    rows = [json.loads(line) for line in lines]
    steps = [(1, 0), (2, 0), (3, 0), (3, 1), (3, 2), (3, 3)]
    assert [(row["systems"], row["loaded"]) for row in rows] == steps
    groups = [row["group_bytes"] for row in rows]
    assert 0 < groups[0] < groups[1] < groups[2]
    assert all(row["available_bytes"] > row["floor_bytes"] for row in rows)
    # The folder was there in none of them, so that each command ran in a system of its own.
    assert [command["system"] for command in record["commands"]] == [0, 1, 2]
