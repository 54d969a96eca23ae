"""What `make doctor` says of both ends of the client's link; the second machine is a shell that is called ssh."""

import re
import shutil
import subprocess

import pytest

from strata import client
from strata.base.errors import UserError
from strata.client import ends

TOLD = """address 192.0.2.2
rights root
lacks tc
device eth0
mtu 9000
speed 10000
offload rx-checksumming on
offload tx-checksumming off
offload tcp-segmentation-offload on
offload rx-vlan-filter on
clocksource tsc
kept yes
""".splitlines()
SSH = client.settle({"ssh": "root@lab-2", "rate": "1gbit"})
LOOPBACK = 'export SSH_CONNECTION="127.0.0.1 50000 127.0.0.1 22"; for last; do :; done; exec sh -c "$last"'


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    """Give `ssh` a meaning, as the text of a shell script."""

    def means(script):
        program = tmp_path / "ssh"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return means


def test_an_end_is_what_it_tells():
    end = ends.read(TOLD)
    assert (end.address, end.rights, end.lacks) == ("192.0.2.2", "root", ["tc"])
    assert (end.device, end.speed, end.mtu, end.clocksource, end.kept) == ("eth0", 10000, 9000, "tsc", True)
    assert end.offloads == {"checksums in": True, "checksums out": False, "TSO": True}
    assert ends.link_row("link", end) == (
        "link",
        True,
        "eth0: 10000 Mbit/s, MTU 9000, offloads on: checksums in, TSO; off: checksums out",
    )


@pytest.mark.parametrize("speed", ["-1", "", "Unknown!", "1e9"])
def test_what_is_no_speed_is_not_available(speed):
    lines = [f"speed {speed}" if line.startswith("speed") else line for line in TOLD]
    assert "speed not available" in ends.link_row("link", ends.read(lines))[2]


def test_an_end_that_tells_nothing_is_not_available():
    end = ends.read(["Welcome to lab-2!", "", "device ", "mtu x", "kept maybe"])
    _, there, words = ends.link_row("link", end)
    assert there is None
    assert words == "device not available: speed not available, MTU not available, offloads not available"
    assert ends.clock_row(end, end, None)[2].count("not available") == 5


def test_the_clocks_difference_is_that_of_the_quickest_answer():
    answers = [(0, 900, 1000), (2000, 2110, 2200), (5000, 5900, 6000)]
    assert ends.difference(answers) == pytest.approx((10e-9, 100e-9))
    assert ends.difference([]) is None
    here = ends.read(TOLD)
    assert ends.clock_row(here, here, (-0.0123, 0.0005)) == (
        "clocks",
        True,
        "here tsc, kept by a time service; there tsc, kept by a time service; difference -12.30 ms ± 0.50 ms",
    )


def test_both_ends_of_a_real_device_are_asked(ssh):
    ssh(LOOPBACK)
    rows = {topic: words for topic, _, words in ends.examine(SSH)}
    assert rows["client"].endswith("; limited to 1gbit") or "lacks" in rows["client"] or "sudo" in rows["client"]
    assert set(rows) == {"client", "link, this end", "link, its end", "clocks"}
    if shutil.which("ip"):
        with open("/sys/class/net/lo/mtu") as file:
            assert f"lo: speed not available, MTU {file.read().strip()}" in rows["link, this end"]
        assert rows["link, its end"] == rows["link, this end"]
    ahead, within = re.search(r"difference ([+-][0-9.]+) ms ± ([0-9.]+) ms", rows["clocks"]).groups()
    # It is the same clock, so that its difference is nothing but what asking leaves open.
    assert abs(float(ahead)) <= float(within) + 0.01


def test_a_machine_that_lets_nobody_in_is_named_with_its_words(ssh):
    ssh("echo 'warning: old key' >&2; echo 'root@lab-2: Permission denied (publickey).' >&2; exit 255")
    ((topic, there, words),) = ends.examine(SSH)
    assert (topic, there) == ("client", False)
    assert words.startswith(
        "no way into root@lab-2 (root@lab-2: Permission denied (publickey).); `ssh root@lab-2 true`"
    )


def test_a_machine_that_cannot_be_root_or_lacks_programs_is_no_client(ssh):
    ssh("printf '%s\\n' 'rights none' 'device eth0' end")
    assert ends.examine(SSH)[0][1:] == (False, "root@lab-2 lets in one who is not root and may not `sudo -n`")
    ssh("printf '%s\\n' 'rights sudo' 'lacks tc' 'lacks ip' end")
    assert ends.examine(SSH)[0][1:] == (False, "root@lab-2 lacks tc, ip")


def test_a_machine_that_ends_or_answers_nonsense_in_between_gives_no_difference(ssh):
    for after in ("exit 0", "while read -r line; do echo 12N; done", "exec 0<&-; sleep 0.2"):
        ssh(f"printf '%s\\n' 'rights root' 'device eth0' end; {after}")
        rows = ends.examine(SSH)
        assert rows[0][1] is True
        assert rows[-1][2].endswith("difference not available")


def test_a_machine_that_hangs_is_given_up(ssh, monkeypatch):
    monkeypatch.setattr(ends, "PATIENCE", 0.3)
    ssh("exec sleep 50")
    ((_, there, words),) = ends.examine(SSH)
    assert there is False
    assert "no answer in 0.3 s" in words


def test_unequal_mtus_are_named(monkeypatch):
    monkeypatch.setattr(ends, "look_there", lambda ssh: (ends.read(TOLD), None))
    monkeypatch.setattr(ends, "look_here", lambda address: ends.read(["mtu 1500", f"address {address}"]))
    rows = {topic: (there, words) for topic, there, words in ends.examine(SSH)}
    assert rows["MTU"][0] is None
    assert rows["MTU"][1].startswith("1500 here, 9000 there")


def test_without_ssh_it_is_said_what_installs_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="make setup"):
        ends.look_there(["ssh", "lab-2"])


def test_a_namespace_has_one_clock_and_no_link_before_a_cell():
    ((topic, there, words),) = ends.examine(client.settle({"rate": "1gbit"}))
    assert (topic, there) == ("client", True)
    assert "not available before" in words
    assert words.endswith("; limited to 1gbit")


def test_what_an_end_is_asked_is_good_shell():
    for shell in ("dash", "bash"):
        if shutil.which(shell):
            subprocess.run([shell, "-n", "-c", ends.LOOK], check=True)
