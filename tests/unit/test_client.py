"""What of the client needs neither a namespace nor a second machine, which is a shell that is called ssh."""

import projects
import pytest

from strata import client
from strata.client import link, remote
from strata.experiment import config
from strata.host import addresses
from strata.host.context import Context
from strata.util.errors import UserError


def test_the_client_is_settled_with_every_default(project):
    assert client.settle("namespace") == {"kind": "namespace", "rate": None}
    assert client.settle({"rate": "1gbit"}) == {"kind": "namespace", "rate": "1gbit"}
    there, other = client.settle({"ssh": "a@b"}), client.settle({"ssh": "c@d"})
    assert there["kind"] == "ssh"
    assert there != other
    assert "a@b" not in str(there)
    project()
    with pytest.raises(UserError, match="missing, by which the client is reached"):
        client.build_stack(there, Context("i", "f", None))
    client.write_way({"ssh": "a@b"})
    assert isinstance(client.build_stack(there, Context("i", "f", None))[1], remote.Remote)


@pytest.mark.parametrize(
    "wrong",
    [
        "moon",
        {},
        {"ssh": "-oProxyCommand=x"},
        {"ssh": "a b"},
        {"ssh": "a@-b"},
        {"ssh": "a;b"},
        {"rate": "fast"},
        {"rate": "0gbit"},
        {"rate": 5},
        {"port": 5},
        None,
    ],
)
def test_a_client_that_is_none_is_refused_with_its_key(project, wrong):
    folder = project(config=projects.on_host(client=wrong))
    with pytest.raises(UserError, match=r"config.yaml: client(\.\w+)?: "):
        config.read(path=str(folder / "config.yaml"))


def test_a_bucket_lets_through_what_its_rate_needs():
    command = link.bucket_command("eth0", "10gbit")
    assert int(command[command.index("burst") + 1]) == 10**10 // 8 // 250
    assert "131072" in link.bucket_command("eth0", "1mbit")


def test_a_free_network_touches_no_route():
    assert addresses.free_subnet("default via 10.0.0.1") == "192.168.120.0/24"
    assert addresses.free_subnet("192.168.120.0/24 dev x\n192.168.121.7/32") == "192.168.122.0/24"
    with pytest.raises(UserError, match="is free"):
        addresses.free_subnet("192.168.0.0/16 dev x")
    assert addresses.address_in("192.168.7.0/24", 2) == "192.168.7.2"
    assert addresses.address_in("192.168.7.10/24", 0) == "192.168.7.0"


SSH = {"ssh": "root@lab-2", "rate": "1gbit"}


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    """Give `ssh` a meaning, as the text of a shell script."""

    def means(script):
        program = tmp_path / "ssh"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return client.examine(SSH)

    return means


def test_a_real_device_is_asked_at_both_ends(ssh):
    _, there, words = ssh(
        'export SSH_CONNECTION="127.0.0.1 50000 127.0.0.1 22"; for last; do :; done; exec sh -c "$last"'
    )
    if there:
        with open("/sys/class/net/lo/mtu") as file:
            mtu = file.read().strip()
        assert words == f"root@lab-2 at 127.0.0.1, MTU {mtu} here, {mtu} there; limited to 1gbit"
    else:
        assert "has no" in words or "sudo" in words


def test_ends_of_unlike_packets_are_told(ssh):
    said = "address 127.0.0.1\\nroot yes\\ndevice eth0\\nmtu 1400\\n"
    _, there, words = ssh(f"printf '{said}'")
    assert there is None
    assert ", 1400 there" in words


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (
            "echo 'warning: old' >&2; echo 'Permission denied (publickey).' >&2; exit 255",
            "Permission denied",
        ),
        ("echo address 127.0.0.1; echo mtu 1500", "sudo -n"),
        ("echo address 127.0.0.1; echo root yes; echo lacks tc ip", "has no tc, ip"),
        ("echo Welcome", "cannot log in to root@lab-2"),
        ("exec sleep 50", "did not end within 0.3 s"),
    ],
)
def test_a_machine_that_is_no_client_is_named_with_the_reason(ssh, monkeypatch, script, says):
    monkeypatch.setattr(remote, "PATIENCE", 0.3 if "sleep" in script else 30)
    topic, there, words = ssh(script)
    assert (topic, there) == ("client", False)
    assert says in words
