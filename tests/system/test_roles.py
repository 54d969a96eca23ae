"""Servers with roles: in one system and in one each, native and in containers, where one has to
reach the other.
"""

import json

import projects
import pytest

pytestmark = pytest.mark.long

# Each answers a connection with its own word, and with that of the one behind it, if it has one.
SERVER = (
    "use IO::Socket::INET; $SIG{TERM} = sub { exit 0 }; $SIG{PIPE} = q(IGNORE); "
    "my ($word, $at, $port, @behind) = @ARGV; "
    "my $s = IO::Socket::INET->new(LocalPort => $port, LocalAddr => $at, Listen => 9, ReuseAddr => "
    "1) "
    "or die qq(no port: $@\\n); "
    "while (my $c = $s->accept) { print $c $word; "
    "if (@behind) { my $b = IO::Socket::INET->new(PeerAddr => $behind[0], PeerPort => $behind[1]) "
    "or die qq(not reached: $@\\n); print $c q( asked ), <$b> } close $c }"
)
ASK = (
    "set -e; IFS=, read -ra at <<<$0; "
    'for k in ${!at[@]}; do exec 3<>"/dev/tcp/${at[k]}/$1"; cat <&3; echo; done'
)


def server(role, *behind):
    return {
        "name": role,
        "role": role,
        "argv": ["/usr/bin/perl", "-e", SERVER, role, "{listen}", f"{{{role}_port}}", *behind],
        "ready": {"argv": ["/opt/strata/bin/reach", "{listen}", f"{{{role}_port}}"], "timeout": 20},
        "stop": {"timeout": 10},
    }


def asking(placed):
    """A web server that asks a database, and a client that asks the web server."""
    port = {"about": "x", "schema": {"type": "integer"}}
    schema = {"type": "array", "items": {"type": "string"}}
    return {
        **projects.NOOP,
        "parameters": {
            "web_port": {**port, "value": 28540},
            "database_port": {**port, "value": 28560},
            "roles": {"about": "x", "schema": schema, "value": placed},
        },
        "ports": ["web_port", "database_port"],
        "roles": {
            "parameter": "roles",
            "ports": {"web": ["web_port"], "database": ["database_port"]},
        },
        "servers": [server("database"), server("web", "{address.database}", "{database_port}")],
        "prepare": [{"argv": ["/bin/echo", "prepared", "{part}", "{roles}"], "timeout": 20}],
        "run": [
            {
                "argv": ["/bin/bash", "-c", ASK, "{address.web}", "{web_port}"],
                "at": "client",
                "timeout": 20,
            },
        ],
        "checks": [{"name": "asked", "pattern": "^web asked database$"}],
    }


@pytest.mark.parametrize("environment", ["native", "docker", "docker-hostnet", "docker-layered"])
@pytest.mark.parametrize("placed", [["web+database"], ["web", "database"]])
def test_the_web_server_reaches_the_database_wherever_that_is(
    image, tmp_path, machine_stays, placed, environment
):
    config = projects.default(workloads={"asking": None}, repetitions=1)
    folder = projects.beside_real(tmp_path / "p", config, {"asking": asking(placed)})
    projects.image(folder)
    projects.plan(folder)
    projects.good(folder, "strata", "cell", environment, "asking", "1", timeout=120)
    raw = folder / "results/raw" / environment / "asking"
    assert "web asked database" in (raw / "1.log").read_text().splitlines()
    record = json.loads((raw / "1.json").read_text())
    assert record["system"]["parts"] == len(placed)
    assert [server["exit"] for server in record["servers"]] == [0, 0]
    where = [(server["name"], server.get("system")) for server in record["servers"]]
    assert where == (
        [("database", 1), ("web", 0)] if len(placed) > 1 else [("database", None), ("web", None)]
    )
