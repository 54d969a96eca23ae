"""The client, where it needs neither a namespace nor a second machine: a script is named ssh."""

import projects
import pytest

from strata import client
from strata.client import link, remote
from strata.experiment import config
from strata.host import addresses
from strata.host.context import Context
from strata.util.errors import UserError


def test_the_plan_s_client_has_every_default_and_names_nobody(project):
    assert client.resolve_client_options("namespace") == {"kind": "namespace", "rate": None}
    assert client.resolve_client_options({"rate": "1gbit"}) == {
        "kind": "namespace",
        "rate": "1gbit",
    }
    options, others = (
        client.resolve_client_options({"ssh": "a@b"}),
        client.resolve_client_options({"ssh": "c@d"}),
    )
    assert options["kind"] == "ssh"
    assert options != others
    assert "a@b" not in str(options)
    project()
    with pytest.raises(UserError, match="missing, which says how to reach the client"):
        client.build_client_stack(options, Context("i", "f", None))
    client.write_client_connection({"ssh": "a@b"})
    assert isinstance(client.build_client_stack(options, Context("i", "f", None))[1], remote.Remote)


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
def test_an_impossible_client_is_refused_with_its_key(project, wrong):
    folder = project(config=projects.on_host(client=wrong))
    with pytest.raises(UserError, match=r"config.yaml: client(\.\w+)?: "):
        config.read_config(path=str(folder / "config.yaml"))


def test_a_bucket_lets_a_burst_of_four_milliseconds_pass():
    command = link.build_rate_limit_command("eth0", "10gbit")
    assert int(command[command.index("burst") + 1]) == 10**10 // 8 // 250
    assert "131072" in link.build_rate_limit_command("eth0", "1mbit")


def test_a_free_network_overlaps_no_route():
    assert addresses.find_free_subnet("default via 10.0.0.1") == "192.168.120.0/24"
    assert (
        addresses.find_free_subnet("192.168.120.0/24 dev x\n192.168.121.7/32") == "192.168.122.0/24"
    )
    with pytest.raises(UserError, match="is free"):
        addresses.find_free_subnet("192.168.0.0/16 dev x")
    assert addresses.compute_nth_address("192.168.7.0/24", 2) == "192.168.7.2"
    assert addresses.compute_nth_address("192.168.7.10/24", 0) == "192.168.7.0"


SSH = {"ssh": "root@lab-2", "rate": "1gbit"}


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    """Examine the client with a shell script in the place of `ssh`; its text is given."""

    def examine(script):
        program = tmp_path / "ssh"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return client.format_client_doctor_line(SSH)

    return examine


def test_a_real_device_is_examined_at_both_ends(ssh):
    _, available, line = ssh(
        'export SSH_CONNECTION="127.0.0.1 50000 127.0.0.1 22"; for last; do :; done\n'
        'exec sh -c "$last"'
    )
    if available:
        with open("/sys/class/net/lo/mtu") as file:
            mtu = file.read().strip()
        assert line == f"root@lab-2 at 127.0.0.1, MTU {mtu} here, {mtu} there; limited to 1gbit"
    else:
        assert "has no" in line or "sudo" in line


def test_packets_of_different_sizes_at_the_ends_are_shown_and_no_fault(ssh):
    printed = "address 127.0.0.1\\nroot yes\\ndevice eth0\\nmtu 1400\\n"
    _, available, line = ssh(f"printf '{printed}'")
    assert available is None
    assert ", 1400 there" in line


@pytest.mark.parametrize(
    ("script", "reason"),
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
def test_a_machine_that_cannot_be_the_client_is_named_with_the_reason(
    ssh, monkeypatch, script, reason
):
    monkeypatch.setattr(remote, "EXAMINE_TIMEOUT", 0.3 if "sleep" in script else 30)
    topic, available, line = ssh(script)
    assert (topic, available) == ("client", False)
    assert reason in line
