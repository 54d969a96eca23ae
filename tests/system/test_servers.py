"""Servers in a system, and load from the client, in every kind of environment that needs no machine."""

import json
import socket

import projects
import pytest

PORT = 28347
# Answers every connection with the environment's hostname and ends at SIGTERM with 0.
SERVER = (
    "use IO::Socket::INET; $SIG{TERM} = sub { exit 0 }; $| = 1; "
    "my $s = IO::Socket::INET->new(LocalPort => $ARGV[0], LocalAddr => $ARGV[1], "
    "Listen => 9, ReuseAddr => 1) or die qq(no port: $@\\n); "
    "print qq(listening\\n); while (my $c = $s->accept) { print $c qq(seen from ) . $c->peerhost . qq(\\n); close $c }"
)
# Whether there is a password, of whom and for whom, without saying it.
SECRET = 'echo "password $(stat -c "%a %s" /data/password) $(sha256sum </data/password)"'
ASK = 'set -e; exec 3<>"/dev/tcp/$0/$1"; echo "{\\"point\\": \\"$2\\"}"; cat <&3; echo "{\\"end\\": \\"$2\\"}"'


def server(**changes):
    return {
        "name": "answerer",
        "argv": ["/usr/bin/perl", "-e", SERVER, "{port}", "{listen}"],
        "password": True,
        "ready": {
            "argv": ["/opt/strata/bin/reach", "{address}", "{port}"],
            "at": "client",
            "timeout": 20,
        },
        "stop": {"timeout": 10},
        **changes,
    }


def asking(*servers, **changes):
    return {
        **projects.NOOP,
        "metrics": {"rate": {"label": "Rate", "unit": "1/s", "better": "higher"}},
        "parameters": {
            "port": {"about": "Where it listens", "schema": {"type": "integer"}, "value": PORT},
            "rounds": {"about": "Questions", "schema": {"type": "array"}, "value": [3, 1, 2]},
            "cpu": {
                "about": "The client's",
                "schema": {"type": "integer"},
                "value": {"rule": "client-last-cpu"},
            },
        },
        "ports": ["port"],
        "servers": list(servers) or [server()],
        "run": [
            {
                "for": "rounds",
                "steps": [
                    {"observe": "cpu"},
                    {
                        "argv": ["/bin/bash", "-c", ASK, "{address}", "{port}", "{rounds}"],
                        "at": "client",
                        "timeout": 20,
                    },
                    {"observe": "cpu"},
                ],
            },
            {"argv": ["/bin/sh", "-c", "echo the system; nproc"], "timeout": 20},
            {"argv": ["/bin/sh", "-c", SECRET], "timeout": 20},
            {"argv": ["/bin/sh", "-c", SECRET], "at": "client", "timeout": 20},
        ],
        **changes,
    }


@pytest.fixture
def measure(image, tmp_path, machine_stays):
    """Plan a project with one workload more than the checkout's, and measure the one cell of it."""

    def go(workload, environment="native", **more):
        config = projects.default(workloads={"asking": None}, repetitions=1, **more)
        folder = tmp_path / "p"
        if not folder.exists():
            projects.beside_real(folder, config, {"asking": workload})
            projects.image(folder)
            projects.plan(folder)
        return folder, projects.run(
            folder, "strata", "cell", environment, "asking", "1", timeout=120
        )

    return go


@pytest.mark.parametrize("environment", ["native", "docker", "docker-hostnet", "docker-layered"])
def test_the_client_reaches_a_server_from_outside(measure, environment):
    folder, done = measure(asking(), environment)
    assert done.returncode == 0, done.stderr
    raw = folder / "results/raw" / environment / "asking"
    lines = (raw / "1.log").read_text().splitlines()
    observed = [json.loads(line) for line in lines if line.startswith('{"observed"')]
    assert [json.loads(line)["point"] for line in lines if line.startswith('{"point"')] == [
        "3",
        "1",
        "2",
    ]
    assert len(observed) == 6
    for key in ("seconds", "busy_seconds", "steal_seconds"):
        values = [one[key] for one in observed]
        assert values == sorted(values)
    record = json.loads((raw / "1.json").read_text())
    client = record["observed"]["client"]
    assert client["link"] == {"kind": "veth pair", "mtu": 1500, "rate": "not limited"}
    assert client["cpus"] == record["parameters"]["cpu"] + 1
    assert client["versions"] == record["observed"]["inside"]["versions"]
    (answerer,) = record["servers"]
    assert answerer["exit"] == 0
    assert answerer["output"] == "listening\n"
    assert [command.get("at") for command in record["commands"]] == ["client"] * 3 + [
        None,
        None,
        "client",
    ]
    # One password for both, which nobody else can read.
    system, at_client = [line for line in lines if line.startswith("password")]
    assert system == at_client
    assert system.startswith("password 600 33 ")
    # The address that the server saw is the client's own: nothing translated it, and no process stood between.
    seen = {line.removeprefix("seen from ") for line in lines if line.startswith("seen from ")}
    assert len(seen) == 1
    assert seen.pop().startswith("192.168.")


TROUBLE = {
    "it crashes at once": (
        server(argv=["/bin/sh", "-c", "echo out of order; exit 3"]),
        "ended before it was ready: out",
    ),
    "it never listens": (
        server(argv=["/bin/sleep", "60"], ready={"argv": ["/bin/false"], "timeout": 1}),
        "was not ready after 1 s",
    ),
    "it does not end": (
        server(
            argv=["/usr/bin/perl", "-e", SERVER.replace("sub { exit 0 }", "q(IGNORE)"), "{port}"],
            stop={"timeout": 1},
        ),
        "did not end within 1 s and was killed",
    ),
    "it ends badly": (
        server(argv=["/usr/bin/perl", "-e", SERVER.replace("exit 0", "exit 7"), "{port}"]),
        "ended with exit code 7",
    ),
    "it ends in the middle": (
        server(
            argv=[
                "/usr/bin/perl",
                "-e",
                SERVER.replace("close $c }", "close $c; exit 0 if $n++ > 0 }"),
                "{port}",
            ]
        ),
        "; answerer said last: listening",
    ),
    "it reports trouble": (server(trouble="^listen"), "reports: listening"),
    "it prints without end": (
        server(
            argv=[
                "/usr/bin/perl",
                "-e",
                "unless (fork) { print 7 x 999 while 1 } " + SERVER,
                "{port}",
                "{listen}",
            ]
        ),
        "its server answerer printed more than 16 MiB, its limit",
    ),
}


@pytest.mark.parametrize("name", list(TROUBLE))
def test_a_server_in_trouble_fails_its_cell_alone(measure, name):
    one, reason = TROUBLE[name]
    folder, done = measure(asking(one))
    assert done.returncode == 1
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "results/raw/native").exists()
    assert (
        reason in json.loads((folder / "results/failed/native/asking/1.json").read_text())["error"]
    )


@pytest.mark.parametrize("environment", ["native", "docker"])
def test_a_taken_port_is_named(measure, environment):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("0.0.0.0", PORT))
        other.listen()
        workload = asking()
        # What listens there answers nobody, and whoever asks waits for it.
        workload["run"][0]["steps"][1]["timeout"] = 3
        _, done = measure(workload, environment)
    assert done.returncode == 1
    assert ("in use" if environment == "native" else str(PORT)) in done.stderr
    # Once the port is free the same cell is measured.
    _, again = measure(asking(), environment)
    assert again.returncode == 0, again.stderr


def test_a_rate_holds_on_both_ends_of_the_link(measure):
    script = "echo seen from the client; tc qdisc show dev eth0"
    workload = asking(run=[{"argv": ["/bin/sh", "-c", script], "at": "client", "timeout": 20}])
    folder, done = measure(workload, client={"rate": "100mbit"})
    if "qdisc kind is unknown" in done.stderr:
        pytest.skip("this kernel has no token bucket")
    assert done.returncode == 0, done.stderr
    raw = folder / "results/raw/native/asking"
    assert "qdisc tbf 5742: root" in (raw / "1.log").read_text()
    assert (
        json.loads((raw / "1.json").read_text())["observed"]["client"]["link"]["rate"] == "100mbit"
    )
