"""What `make doctor` says of a second machine; it is a shell that is called ssh."""

import pytest

from strata.client import ends

SSH = {"ssh": "root@lab-2", "rate": "1gbit"}


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    """Give `ssh` a meaning, as the text of a shell script."""

    def means(script):
        program = tmp_path / "ssh"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return ends.examine(SSH)

    return means


def test_a_real_device_is_asked_at_both_ends(ssh):
    rows = ssh('export SSH_CONNECTION="127.0.0.1 50000 127.0.0.1 22"; for last; do :; done; exec sh -c "$last"')
    if rows[0][1]:
        with open("/sys/class/net/lo/mtu") as file:
            mtu = file.read().strip()
        assert rows[1] == ("link", True, f"MTU {mtu} here, {mtu} there")
    else:
        assert "lacks" in rows[0][2] or "sudo" in rows[0][2]


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'warning: old' >&2; echo 'Permission denied (publickey).' >&2; exit 255", "Permission denied"),
        ("echo address 127.0.0.1; echo mtu 1500", "sudo -n"),
        ("echo address 127.0.0.1; echo root yes; echo lacks tc; echo lacks ip", "lacks tc, ip"),
        ("echo Welcome", "no way into root@lab-2"),
        ("exec sleep 50", "did not end within 0.3 s"),
    ],
)
def test_a_machine_that_is_no_client_is_named_with_the_reason(ssh, monkeypatch, script, says):
    monkeypatch.setattr(ends, "PATIENCE", 0.3 if "sleep" in script else 30)
    ((topic, there, words),) = ssh(script)
    assert (topic, there) == ("client", False)
    assert says in words
