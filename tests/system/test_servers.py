"""Servers in a system, and load from the client, in environments without a virtual machine."""

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
    "print qq(listening\\n); while (my $c = $s->accept) "
    "{ print $c qq(seen from ) . $c->peerhost . qq(\\n); close $c }"
)
# Prints mode, size and digest of the password's file.
SECRET = 'echo "password $(stat -c "%a %s" /data/password) $(sha256sum </data/password)"'
CONNECT = 'set -e; exec 3<>"/dev/tcp/$0/$1"; echo "{\\"point\\": \\"$2\\"}"; cat <&3; '
CONNECT += 'echo "{\\"end\\": \\"$2\\"}"'


def make_server(**changes):
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


def make_workload(*servers, **changes):
    return {
        **projects.NOOP,
        "metrics": {"rate": {"label": "Rate", "unit": "1/s", "better": "higher"}},
        "parameters": {
            "port": {"about": "Port of the server", "schema": {"type": "integer"}, "value": PORT},
            "rounds": {"about": "Connections", "schema": {"type": "array"}, "value": [3, 1, 2]},
            "cpu": {
                "about": "The client's processor",
                "schema": {"type": "integer"},
                "value": {"rule": "client-last-cpu"},
            },
        },
        "ports": ["port"],
        "servers": list(servers) or [make_server()],
        "run": [
            {
                "for": "rounds",
                "steps": [
                    {"observe": "cpu"},
                    {
                        "argv": ["/bin/bash", "-c", CONNECT, "{address}", "{port}", "{rounds}"],
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
    """Plans a project with the checkout's workloads and one more, and measures that one's cell."""

    def measure_cell(workload, environment="native", **keys):
        config = projects.default(workloads={"asking": None}, repetitions=1, **keys)
        folder = tmp_path / "p"
        if not folder.exists():
            projects.beside_real(folder, config, {"asking": workload})
            projects.image(folder)
            projects.plan(folder)
        return folder, projects.run(
            folder, "strata", "cell", environment, "asking", "1", timeout=120
        )

    return measure_cell


@pytest.mark.parametrize("environment", ["native", "docker", "docker-hostnet", "docker-layered"])
def test_the_client_reaches_a_server_from_outside(measure, environment):
    folder, result = measure(make_workload(), environment)
    assert result.returncode == 0, result.stderr
    raw = folder / "results/raw" / environment / "asking"
    lines = (raw / "1.log").read_text().splitlines()
    observed = [json.loads(line) for line in lines if line.startswith('{"observed"')]
    points = [json.loads(line)["point"] for line in lines if line.startswith('{"point"')]
    assert points == ["3", "1", "2"]
    assert len(observed) == 6
    for key in ("seconds", "busy_seconds", "steal_seconds"):
        values = [observation[key] for observation in observed]
        assert values == sorted(values)
    record = json.loads((raw / "1.json").read_text())
    client = record["observed"]["client"]
    assert client["link"] == {"kind": "veth pair", "mtu": 1500, "rate": "not limited"}
    assert client["cpus"] == record["parameters"]["cpu"] + 1
    assert client["versions"] == record["observed"]["inside"]["versions"]
    (answerer,) = record["servers"]
    assert answerer["exit"] == 0
    assert answerer["output"] == "listening\n"
    places = [command.get("at") for command in record["commands"]]
    assert places == ["client"] * 3 + [None, None, "client"]
    # Both have the same password, which no other user can read.
    system, at_client = [line for line in lines if line.startswith("password")]
    assert system == at_client
    assert system.startswith("password 600 33 ")
    # The server sees the client's own address: neither NAT nor a proxy is in between.
    [address] = {line for line in lines if line.startswith("seen from ")}
    assert address.startswith("seen from 192.168.")


BRIDGE = {"network": "bridge", "data": "volume"}


@pytest.mark.parametrize(
    ("layers", "client"),
    [
        ([{"docker": {**BRIDGE, "port": "proxy"}}], "172."),
        pytest.param([{"docker": {**BRIDGE, "rules": 1000}}], "192.168.", marks=pytest.mark.long),
        # Each of these builds an image with its program.
        pytest.param(["chroot", "pasta"], "192.168.1", marks=pytest.mark.long),
        pytest.param(["chroot", "slirp4netns"], "192.168.22", marks=pytest.mark.long),
    ],
)
def test_the_client_reaches_a_server_on_the_chosen_path(measure, layers, client):
    """The address that the server sees is the client's, or that of what forwards the packets."""
    chosen = {"label": "Chosen", "layers": layers}
    # What forwards connections accepts them before the server listens: `reach` proves nothing.
    ask = 'exec 3<>"/dev/tcp/$0/$1"; read -r line <&3'
    ready = {"argv": ["/bin/bash", "-c", ask, "{address}", "{port}"], "at": "client", "timeout": 20}
    server = make_server(ready=ready)
    folder, result = measure(make_workload(server), "chosen", environments={"chosen": chosen})
    assert result.returncode == 0, result.stderr
    log = (folder / "results/raw/chosen/asking/1.log").read_text()
    addresses = {line.split()[-1] for line in log.splitlines() if line.startswith("seen from ")}
    assert {address.startswith(client) for address in addresses} == {True}, log
    system = json.loads((folder / "results/raw/chosen/asking/1.json").read_text())["system"]
    options = layers[-1].get("docker", {}) if isinstance(layers[-1], dict) else {}
    if options:
        network = system["docker"]["network"]
        proxied = "port" in options
        assert network["ports"] == ("docker-proxy alone" if proxied else "destination NAT")
        assert network["rules"] > options.get("rules", 0)
    else:
        assert system["user_network"]["program"] == layers[-1]
        assert any(figure.isdigit() for figure in system["user_network"]["version"])


def run_perl(part, replacement):
    """The command of the server with a part of its program replaced."""
    return ["/usr/bin/perl", "-e", SERVER.replace(part, replacement, 1), "{port}", "{listen}"]


TROUBLE = {
    "it crashes at once": (
        make_server(argv=["/bin/sh", "-c", "echo out of order; exit 3"]),
        "ended before it was ready: out",
    ),
    "it never listens": (
        make_server(argv=["/bin/sleep", "60"], ready={"argv": ["/bin/false"], "timeout": 1}),
        "was not ready after 1 s",
    ),
    "it does not end": (
        make_server(argv=run_perl("sub { exit 0 }", "q(IGNORE)"), stop={"timeout": 1}),
        "did not end within 1 s and was killed",
    ),
    "it ends badly": (
        make_server(argv=run_perl("exit 0", "exit 7")),
        "ended with exit code 7",
    ),
    "it ends in the middle": (
        make_server(argv=run_perl("close $c }", "close $c; exit 0 if $n++ > 0 }")),
        "; answerer said last: listening",
    ),
    "it reports trouble": (make_server(trouble="^listen"), "reports: listening"),
    "it prints without end": (
        make_server(argv=run_perl("use IO", "unless (fork) { print 7 x 999 while 1 } use IO")),
        "its server answerer printed more than 16 MiB, its limit",
    ),
}


@pytest.mark.parametrize("name", list(TROUBLE))
def test_a_server_in_trouble_fails_its_cell_alone(measure, name):
    server, reason = TROUBLE[name]
    folder, result = measure(make_workload(server))
    assert result.returncode == 1
    assert reason in result.stderr
    assert "Traceback" not in result.stderr
    assert not (folder / "results/raw/native").exists()
    failure = json.loads((folder / "results/failed/native/asking/1.json").read_text())
    assert reason in failure["error"]


@pytest.mark.parametrize("environment", ["native", "docker"])
def test_a_taken_port_is_named(measure, environment):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("0.0.0.0", PORT))
        other.listen()
        workload = make_workload()
        # The other socket answers nobody, and the client waits for it.
        workload["run"][0]["steps"][1]["timeout"] = 3
        _, result = measure(workload, environment)
    assert result.returncode == 1
    assert ("in use" if environment == "native" else str(PORT)) in result.stderr
    # Once the port is free the same cell is measured.
    _, again = measure(make_workload(), environment)
    assert again.returncode == 0, again.stderr


def test_a_rate_holds_on_both_ends_of_the_link(measure):
    script = "echo seen from the client; tc qdisc show dev eth0"
    workload = make_workload(
        run=[{"argv": ["/bin/sh", "-c", script], "at": "client", "timeout": 20}]
    )
    folder, result = measure(workload, client={"rate": "100mbit"})
    if "qdisc kind is unknown" in result.stderr:
        pytest.skip("this kernel has no token bucket")
    assert result.returncode == 0, result.stderr
    raw = folder / "results/raw/native/asking"
    assert "qdisc tbf 5742: root" in (raw / "1.log").read_text()
    client = json.loads((raw / "1.json").read_text())["observed"]["client"]
    assert client["link"]["rate"] == "100mbit"
