"""Several equal systems at the same time, as containers and native: real Docker, the real image, real parsers."""

import json
import subprocess
import time

import projects
import pytest

STREAM = {"systems": 2, "elements": 4_000_000, "trials": 200, "laps": 1}
PORT = 28447
# Answers every connection with its own number and ends at SIGTERM with 0.
SERVER = (
    "use IO::Socket::INET; $SIG{TERM} = sub { exit 0 }; "
    "my $s = IO::Socket::INET->new(LocalPort => $ARGV[0], Listen => 9, ReuseAddr => 1) or die qq(no port: $@\\n); "
    "while (my $c = $s->accept) { print $c qq(I am $ARGV[1]\\n); close $c }"
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
    assert system["parts"] == 2
    assert [one["id"] for one in system["each"]] == [f"{system['id']}-{part}" for part in (0, 1)]
    # Both see all processors, and use their part of them.
    assert record["parameters"]["threads"] == system["cpus"] == max(1, inside["cpus"] // 2)
    rows = projects.table(folder / "results/tidy/stream.csv")
    assert sorted((row["metric"], row["factor_system"]) for row in rows) == sorted(
        (metric, str(part))
        for metric in ("copy", "scale", "add", "triad", "first")
        for part in (0, 1)
    )
    assert all(float(row["value"]) > 0 for row in rows)


def asking(**changes):
    return {
        **projects.NOOP,
        "parameters": {
            "port": {"about": "Where it listens", "schema": {"type": "integer"}, "value": PORT},
            "systems": {
                "about": "x",
                "schema": {"type": "integer", "minimum": 1, "maximum": 64},
                "value": 2,
            },
        },
        "systems": "systems",
        "ports": ["port"],
        "prepare": [
            {"argv": ["/bin/sh", "-c", "touch /data/$0; ls /data", "{part}"], "timeout": 20}
        ],
        "servers": [
            {
                "name": "answerer",
                "argv": ["/usr/bin/perl", "-e", SERVER, "{port}", "{part}"],
                "ready": {
                    "argv": ["/opt/strata/bin/reach", "{address}", "{port}"],
                    "at": "client",
                    "timeout": 20,
                },
                "stop": {"timeout": 10},
            }
        ],
        "run": [
            {"argv": ["/bin/bash", "-c", ASK, "{address}", "{port}"], "at": "client", "timeout": 20}
        ],
        "checks": [{"name": "asked", "pattern": "^I am 1$"}],
        **changes,
    }


@pytest.mark.parametrize(
    "environment", ["native", "docker", pytest.param("docker-hostnet", marks=pytest.mark.long)]
)
def test_one_client_reaches_the_servers_of_all_systems(tmp_path, image, machine_stays, environment):
    settings = projects.default(workloads={"asking": None}, repetitions=1)
    folder = projects.beside_real(tmp_path / "p", settings, {"asking": asking()})
    projects.image(folder)
    projects.plan(folder)
    projects.good(folder, "strata", "cell", environment, "asking", "1", timeout=900)
    raw = folder / "results/raw" / environment / "asking"
    # Each has a folder for its data of its own.
    assert (raw / "1.log").read_text().splitlines() == [
        '{"system": 0}',
        "0",
        '{"system": 1}',
        "1",
        '{"system": null}',
        "I am 0",
        "I am 1",
    ]
    record = json.loads((raw / "1.json").read_text())
    assert [(server["system"], server["exit"]) for server in record["servers"]] == [(0, 0), (1, 0)]
    assert record["commands"][-1]["argv"][-1] == f"{PORT},{PORT + 1}"
