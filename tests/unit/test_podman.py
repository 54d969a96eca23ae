"""Containers by Podman without one: what it is asked for, what this machine cannot give, and what is kept of it."""

import json
import os
import resource
import subprocess

import projects
import pytest

from strata.base import checking
from strata.base.errors import UserError
from strata.experiment import config
from strata.host import cgroups
from strata.host.context import Context
from strata.layers import podman, podman_here
from strata.layers.podman import Podman

MACHINE = {"cpus": 2, "memory_bytes": 4 * 2**30, "cache_bytes": 2**20}
ID = "b" * 64
IMAGE = {"recipe": "a" * 64, "id": f"sha256:{ID}", "folder": "/images/a"}
# Of Podman 4.3 what is kept.
INFO = {
    "host": {
        "cgroupManager": "cgroupfs",
        "conmon": {"version": "conmon version 2.1.6, commit: unknown"},
        "networkBackend": "netavark",
        "ociRuntime": {"name": "runc", "version": "runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\nspec: 1.0.2"},
    },
    "store": {"graphDriverName": "overlay"},
    "version": {"Version": "4.3.1"},
}
FACTS = {
    "program": "podman",
    "version": "4.3.1",
    "runtime": "runc 1.1.5+ds1",
    "conmon": "2.1.6",
    "storage_driver": "overlay",
    "network_backend": "netavark",
    "cgroup_driver": "cgroupfs",
}
PLAIN = {"network": "bridge", "data": "volume", "runtime": "runc"}


class Below:
    """The host, that runs nothing."""

    name, data = "host", "/systems/strata-0/data"

    def listen(self):
        return "192.0.2.1"


class Fake(Podman):
    """A container of a Podman that answers as it is told to; the commands that it took are kept."""

    def __init__(self, entry, answers=(), info=INFO):
        self.traces, self.commands = [], []
        self.answers, self.info = list(answers), info
        context = Context("strata-0", "/systems/strata-0", IMAGE, ports=[6379], note=self.traces.append)
        super().__init__(Below(), self.settle(entry, {}), context)

    def run_below(self, argv, timeout=120, check=True):
        self.commands.append(argv)
        if "run" in argv and self.answers and (said := self.answers.pop(0)):
            raise UserError(said)
        return json.dumps(self.info) if "info" in argv else ""

    @property
    def run(self):
        """The words behind `run` of the last time that the container was started."""
        argv = next(argv for argv in reversed(self.commands) if "run" in argv)
        return argv[argv.index("run") + 1 :]


@pytest.fixture(autouse=True)
def host(monkeypatch, tmp_path):
    """A machine with control groups of version 1, on which root may raise limits."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))
    monkeypatch.setattr(podman, "as_root", list)
    monkeypatch.setattr(podman_here, "as_root", list)
    monkeypatch.setattr(podman_here, "limits", list)
    monkeypatch.setattr(podman_here, "program", lambda *names: f"/usr/bin/{names[0]}")
    monkeypatch.setattr(podman_here, "hybrid", list)
    monkeypatch.setattr(podman_here, "running", lambda own: str(tmp_path / f"running-{own}"))
    monkeypatch.setattr(cgroups, "managed_by_systemd", lambda: False)
    monkeypatch.setattr(cgroups, "make", lambda id: None)
    return tmp_path


@pytest.fixture
def groups(monkeypatch, tmp_path):
    """A system's control groups, as they were made."""
    folder = tmp_path / "group/strata-0"
    folder.mkdir(parents=True)
    monkeypatch.setattr(cgroups, "groups_of", lambda id: [str(folder)])
    return folder


def test_podman_is_asked_for_what_docker_is(host):
    fake = Fake({**PLAIN, "seccomp": "unconfined"}, info={})
    fake.up()
    assert fake.run == [
        *["--detach", "--init", "--init-path", "/usr/bin/docker-init", "--pull", "never", "--replace"],
        *["--name", "strata-0"],
        *["--hostname", "strata", "--network", "strata", "--cgroups", "no-conmon", "--cgroup-parent", "/strata"],
        *["--volume", "/systems/strata-0/data:/data"],
        *["--publish", "192.0.2.1:6379:6379/tcp", "--publish", "192.0.2.1:6379:6379/udp"],
        *["--security-opt", "seccomp=unconfined", ID, "sleep", "infinity"],
    ]
    argv = next(argv for argv in fake.commands if "run" in argv)
    assert argv[argv.index("--runtime") + 1] == "runc"
    # Whoever waited for it is ended alone, and what removes it waits until it has come to its end.
    assert argv[: argv.index("podman")] == [
        *["setsid", "--fork", "--wait"],
        *["flock", "--close", f"{host}/podman/root.lock"],
    ]
    trace, rule = fake.traces
    assert (rule["kind"], rule["root"], rule["id"]) == ("rule", True, "strata-0")
    [remove] = trace["remove"]
    assert remove[:3] == ["flock", "--close", f"{host}/podman/root.lock"]
    assert remove[-6:] == ["--force", "--ignore", "--time", "0", "--volumes", "strata-0"]
    assert trace["root"] is True


IPTABLES = """#!/bin/sh
shift
case $1 in
    --insert) shift; echo "-A $*" | sed 's/--match/-m/g; s/--jump/-j/' >>"$RULES" ;;
    --list-rules) cat "$RULES" ;;
    -D) shift; grep -v -x -F -e "-A $*" "$RULES" >"$RULES.new"; mv "$RULES.new" "$RULES" ;;
esac
"""


def test_what_is_published_is_let_in_and_the_rule_goes_with_the_container(host, monkeypatch):
    (host / "iptables").write_text(IPTABLES)
    (host / "iptables").chmod(0o755)
    rules = host / "rules"
    rules.write_text("-P FORWARD DROP\n-A FORWARD -j DOCKER-USER\n")
    monkeypatch.setenv("RULES", str(rules))
    monkeypatch.setattr(podman_here, "program", lambda *names: f"{host}/{names[0]}")
    before = rules.read_text()
    fake = Fake(PLAIN)
    fake.up()
    [let] = [argv for argv in fake.commands if str(host / "iptables") in argv]
    subprocess.run(let, check=True)
    subprocess.run(let, check=True)
    added = "-A FORWARD -m conntrack --ctstate DNAT --ctorigdst 192.0.2.1 -m comment --comment strata-0 -j ACCEPT\n"
    assert rules.read_text() == before + 2 * added
    [remove] = fake.traces[1]["remove"]
    for _ in range(2):
        subprocess.run(remove, check=True)
        assert rules.read_text() == before
    for entry in ({**PLAIN, "network": "host"}, {**PLAIN, "network": "slirp4netns"}):
        other = Fake(entry)
        other.up()
        assert [trace["kind"] for trace in other.traces] == ["Podman container"]


def test_its_store_is_nobody_elses(host):
    words = podman_here.command(own=False)
    assert words[words.index("--root") + 1] == f"{host}/podman/root/storage"
    assert words[words.index("--runroot") + 1] == f"{host}/running-False"
    assert words[words.index("--network-config-dir") + 1] == f"{host}/podman/root/networks"


@pytest.mark.parametrize(
    ("entry", "there", "not_there"),
    [
        ({"network": "host"}, ["--network", "host"], "--publish"),
        ({"network": "host"}, ["--name", "strata-0"], "--hostname"),
        ({"network": "slirp4netns"}, ["--network", "slirp4netns"], "nowhere"),
        ({"data": "layered"}, ["--cgroup-parent", "/strata"], "--volume"),
        ({"data": "tmpfs"}, ["--tmpfs", "/data:rw,exec,suid,dev,mode=0755"], "--volume"),
        ({"memory": "1GiB"}, ["--memory", str(2**30), "--memory-swap", str(2**30)], "nowhere"),
    ],
)
def test_every_option_is_said_in_podmans_words(entry, there, not_there):
    fake = Fake({**PLAIN, **entry})
    fake.up()
    at = fake.run.index(there[0])
    assert fake.run[at : at + len(there)] == there
    assert not_there not in fake.run


def test_under_systemd_the_group_is_one_of_systemds(monkeypatch):
    monkeypatch.setattr(cgroups, "managed_by_systemd", lambda: True)
    fake = Fake({**PLAIN, "runtime": "crun"})
    fake.up()
    argv = next(argv for argv in fake.commands if "run" in argv)
    assert argv[argv.index("--cgroup-manager") + 1] == "systemd"
    assert argv[argv.index("--cgroup-parent") + 1] == "strata.slice"


def test_image_and_network_are_brought_once_they_are_missing(monkeypatch):
    there = {"network": 1, "image": 1}

    def capture(argv, **_):
        return subprocess.CompletedProcess(argv, there[argv[argv.index("exists") - 1]], "", "")

    class Bringing(Fake):
        def run_below(self, argv, timeout=120, check=True):
            said = super().run_below(argv, timeout, check)
            there.update({"image": 0} if "load" in argv else {"network": 0} if "create" in argv else {})
            return said

    monkeypatch.setattr(podman, "capture", capture)
    lacking = "unable to find network with name or ID strata: network not found"
    fake = Bringing(PLAIN, [lacking, f"{ID}: image not known"])
    fake.up()
    known = [[word for word in argv if word in ("run", "create", "prune", "load")] for argv in fake.commands]
    assert [words for words in known if words] == [["run"], ["create"], ["run"], ["load"], ["prune"], ["run"]]
    load = next(argv for argv in fake.commands if "load" in argv)
    assert load[-2:] == ["--input", "/images/a/image.tar"]
    # What is there and still is not found is told, and not brought again and again.
    for said in (lacking, f"{ID}: image not known"):
        with pytest.raises(UserError, match=said[:20]):
            Bringing(PLAIN, [said]).up()
    # Where no bridge is asked for, no network is looked for.
    there.update(network=1, image=0)
    with pytest.raises(UserError, match="anything"):
        Bringing({**PLAIN, "network": "host"}, ["anything"]).up()


def test_an_image_that_is_another_is_never_run(monkeypatch):
    missing = subprocess.CompletedProcess([], 1, "", "")
    monkeypatch.setattr(podman, "capture", lambda argv, **_: missing)
    with pytest.raises(UserError, match=f"as none, not as {ID}: run `python3 -m strata image --rebuild`"):
        Fake({**PLAIN, "network": "host"}, [f"{ID}: image not known"]).up()


def test_a_port_that_is_taken_is_named(monkeypatch):
    monkeypatch.setattr(podman, "capture", lambda argv, **_: subprocess.CompletedProcess(argv, 0, "", ""))
    said = "cannot listen on the TCP port: listen tcp4 192.0.2.1:6379: bind: address already in use"
    with pytest.raises(UserError, match=r"port 6379 of 192\.0\.2\.1 is taken by another program"):
        Fake(PLAIN, [said]).up()


@pytest.mark.parametrize(
    ("info", "facts"),
    [(INFO, FACTS), ({}, {name: "podman" if name == "program" else "not available" for name in FACTS})],
)
def test_versions_and_drivers_come_from_podman_itself(monkeypatch, info, facts):
    fake = Fake(PLAIN, info=info)
    fake.up()
    assert fake.facts() == {"container": facts}
    # What is whole is asked once, as long as nothing of it is another.
    again = Fake(PLAIN, info={})
    again.up()
    assert any("info" in argv for argv in again.commands) == (info != INFO)
    assert (again.facts() == fake.facts()) is True
    monkeypatch.setattr(podman_here, "versions", lambda runtime: ["another"])
    again.up()
    assert "info" in again.commands[-1]
    layout = {"$ref": "record.schema.json#/properties/system/properties/container"}
    assert checking.findings(checking.schema("record").evolve(schema=layout), facts) == []


def test_what_podman_did_not_apply_is_never_measured(monkeypatch):
    inside = "==> /proc/self/status <==\nCpus_allowed_list:\t0-1\n"
    monkeypatch.setattr(Fake, "wrap", lambda self, argv: argv)
    monkeypatch.setattr(podman.bounds, "LOOK", ["look"])
    fake = Fake({**PLAIN, "cpuset-cpus": "1"})
    monkeypatch.setattr(fake, "run_below", lambda argv, *_, **__: inside if argv == ["look"] else "{}")
    with pytest.raises(UserError, match="Podman did not apply cpuset-cpus: 1 was asked for, and the container has 0-1"):
        fake.up()


def test_without_root_it_stands_in_the_systems_groups(groups, host, monkeypatch):
    fake = Fake({"network": "host", "data": "volume", "user": "own"})
    fake.up()
    argv = next(argv for argv in fake.commands if "run" in argv)
    enter, user = argv.index(str(groups)), argv.index("setpriv")
    assert enter < user < argv.index("setsid") < argv.index("podman")
    assert f"--reuid={os.geteuid()}" in argv
    assert f"XDG_RUNTIME_DIR={host}/running-True" in argv
    assert fake.run[fake.run.index("--cgroups") + 1] == "disabled"
    assert [trace["kind"] for trace in fake.traces] == ["group", "Podman container"]
    # Podman's own process for the user's namespace ends, too.
    assert [argv[-1] for argv in fake.traces[1]["remove"]] == ["strata-0", "migrate"]
    assert fake.traces[1]["root"] is False


def test_what_is_there_before_any_command_is_nothing_that_was_left(monkeypatch):
    own = ["/run/podman-init -- sleep infinity", "sleep infinity"]
    monkeypatch.setattr(cgroups, "command_lines", lambda printed: [*own, "sleep 300"])
    assert Fake(PLAIN).left() == ["sleep 300"]


def test_without_root_what_was_left_is_looked_for_inside(monkeypatch):
    lines = ["/run/podman-init -- sleep infinity", "sleep infinity", "tail -v -n +1 /proc/1/cmdline", "sleep 300"]
    monkeypatch.setattr(cgroups, "command_lines", lambda printed: lines)
    monkeypatch.setattr(Fake, "wrap", lambda self, argv: ["inside", *argv])
    fake = Fake({"network": "host", "data": "volume", "user": "own"})
    assert fake.left() == ["sleep 300"]
    assert fake.commands[-1][0] == "inside"


@pytest.mark.parametrize(
    ("network", "address"), [("host", "192.0.2.1"), ("slirp4netns", "10.0.2.100"), ("bridge", "10.89.0.2")]
)
def test_servers_listen_where_what_a_client_sends_arrives(monkeypatch, network, address):
    monkeypatch.setattr(Fake, "run_below", lambda self, argv: "10.89.0.2\n")
    assert Fake({**PLAIN, "network": network}).listen() == address


def complaint(entry):
    with pytest.raises(UserError) as caught:
        config.read(projects.on_host(environments={"e": {"layers": [{"podman": {**PLAIN, **entry}}]}}))
    return str(caught.value)


@pytest.mark.parametrize(
    ("entry", "key", "remedy"),
    [
        ({"runtime": "runsc"}, "runtime", "crun, runc"),
        ({"network": "pasta"}, "network", "bridge, host, slirp4netns"),
        ({"user": "nobody"}, "user", "root, own"),
        ({"user": "own"}, "network", "must be host or slirp4netns"),
        ({"user": "own", "network": "host", "memory": "1GiB"}, "memory", "set user: root"),
        ({"memory": "4MiB"}, "memory", "at least 6MiB"),
    ],
)
def test_a_mistake_in_an_option_is_told_with_its_key(checkout, entry, key, remedy):
    said = complaint(entry)
    assert f"environments.e.layers.0.podman.{key}" in said
    assert remedy in said


def test_what_is_not_set_is_podmans_own_choice():
    entry = {"network": "bridge", "data": "volume"}
    assert Podman.settle(entry, {}) == {**entry, "runtime": "crun", "user": "root"}
    assert Podman.told(Podman.settle(entry, {})) == {"network": "bridge with NAT", "data": "volume"}


@pytest.fixture
def whole(monkeypatch):
    """A machine that lacks nothing."""
    monkeypatch.setattr(podman.shutil, "which", lambda name, path=None: f"/usr/bin/{name}")
    monkeypatch.setattr(podman_here, "MAKES_BRIDGES", ("/",))
    monkeypatch.setattr(podman_here, "lacks_firewall", lambda: False)


def why(**entry):
    return Podman.refusal(Podman.settle({**PLAIN, **entry}, {}), "host", MACHINE)


def test_what_a_machine_cannot_give_is_a_reason(whole, monkeypatch):
    assert Podman.unavailable() is None
    assert why() is None
    assert why(runtime="crun") is None
    assert "choose less" in why(memory="5GiB")
    monkeypatch.setattr(podman_here, "hybrid", lambda: ["hugetlb"])
    assert "hybrid, as here, where version 2 has hugetlb" in why(runtime="crun")
    assert "set runtime: runc" in why(runtime="crun")
    assert why() is None
    monkeypatch.setattr(podman_here, "lacks_firewall", lambda: True)
    assert "package nftables" in why()
    assert why(network="host") is None
    monkeypatch.setattr(podman_here, "MAKES_BRIDGES", ("/no/such/program",))
    assert "package netavark" in why()
    assert why(network="host") is None
    monkeypatch.setattr(podman_here, "TUN", "/no/such/device")
    assert "needs /no/such/device, which this user may not open" in why(network="slirp4netns")
    monkeypatch.setattr(podman_here, "program", lambda *names: None if "catatonit" in names else "/there")
    assert "package tini" in why()
    monkeypatch.setattr(podman_here, "program", lambda *names: None)
    assert "runc is not installed" in why()


@pytest.mark.parametrize(
    ("says", "nft", "lacks"),
    [
        ('{"version": "1.14.0", "default_fw_driver": "nftables"}', False, True),
        ('{"version": "1.14.0", "default_fw_driver": "nftables"}', True, False),
        ('{"version": "1.14.0", "default_fw_driver": "iptables"}', False, False),
        # Debian 12's tells of none, and takes iptables.
        ('{"version": "1.4.0"}', False, False),
        ("netavark: no such command", False, False),
        ("[]", False, False),
    ],
)
def test_what_netavark_sets_the_firewall_by_is_looked_for(tmp_path, monkeypatch, says, nft, lacks):
    (tmp_path / "netavark").write_text(f"#!/bin/sh\n[ \"$*\" = version ] && echo '{says}'\n")
    (tmp_path / "netavark").chmod(0o755)
    monkeypatch.setattr(podman_here, "NETAVARK", ("/no/such/program", str(tmp_path / "netavark")))
    monkeypatch.setattr(podman_here, "program", lambda *names: "/usr/sbin/nft" if nft else None)
    assert podman_here.lacks_firewall() is lacks
    monkeypatch.setattr(podman_here, "NETAVARK", ("/no/such/program",))
    assert podman_here.lacks_firewall() is False


def test_without_podman_it_is_told_what_would_change_that(monkeypatch):
    monkeypatch.setattr(podman.shutil, "which", lambda name, path=None: None)
    reason = "Podman is not installed: install the distribution’s package podman"
    assert Podman.unavailable() == reason
    assert Podman.examine() == [("Podman", None, reason)]
    # Nothing of it can be there, and nothing is asked.
    assert Podman.sweep() == []
    assert Podman.discard([]) == []


def test_controllers_of_version_2_beside_version_1_are_hybrid(tmp_path, monkeypatch):
    monkeypatch.undo()
    assert podman_here.hybrid(str(tmp_path)) == []
    (tmp_path / "unified").mkdir()
    (tmp_path / "unified/cgroup.controllers").write_text("")
    assert podman_here.hybrid(str(tmp_path)) == []
    (tmp_path / "unified/cgroup.controllers").write_text("hugetlb rdma\n")
    assert podman_here.hybrid(str(tmp_path)) == ["hugetlb", "rdma"]


def test_limits_are_left_as_they_are_where_nobody_may_raise_them(tmp_path, monkeypatch):
    monkeypatch.undo()
    status = tmp_path / "status"
    status.write_text("CapEff:\t0\nCapBnd:\t000001ffffffffff\n")
    assert podman_here.limits(str(status)) == []
    status.write_text("CapEff:\t0\nCapBnd:\t000001fffeffffff\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    words = podman_here.limits(str(status))
    assert words[:2] == ["--ulimit", f"nofile={soft}:{hard}"]
    assert words[2] == "--ulimit"
    soft, hard = words[3].removeprefix("nproc=").split(":")
    # Podman itself has no more than that.
    assert 0 < int(soft) <= int(hard) <= podman_here.MOST_PROCESSES


def test_why_a_user_has_no_podman_of_their_own_is_told(whole, monkeypatch):
    monkeypatch.setattr(podman_here.os, "geteuid", lambda: 0)
    assert "root runs Strata here" in podman_here.rootless_refusal("runc")
    monkeypatch.setattr(podman_here.os, "geteuid", lambda: 4711)
    monkeypatch.setattr(cgroups, "unified", lambda: True)
    assert "set runtime: crun" in podman_here.rootless_refusal("runc")
    monkeypatch.setattr("getpass.getuser", lambda: "nobody-of-this-name")
    assert "/etc/subuid gives nobody-of-this-name no further users" in podman_here.rootless_refusal("crun")


def test_what_it_keeps_for_the_next_run_goes_with_the_image(host, monkeypatch):
    commands = []
    images = "sha256:bb\nsha256:aa\nsha256:bb\n"

    def capture(argv, **_):
        commands.append(argv)
        said = "c0ffee\n" if "ps" in argv else images if "ls" in argv else ""
        return subprocess.CompletedProcess(argv, int(argv[-1] == "sha256:in-use"), said, "")

    monkeypatch.setattr(podman, "capture", capture)
    monkeypatch.setattr(podman.shutil, "which", lambda name, path=None: f"/usr/bin/{name}")
    for name in ("podman/root/storage", "running-False"):
        (host / name).mkdir(parents=True)
    assert Podman.sweep() == ["Podman container c0ffee"]
    assert commands[-1][-2:] == ["--volumes", "c0ffee"]
    assert (host / "podman/root").exists()
    assert Podman.discard(["sha256:bb", "sha256:aa", "sha256:cc"]) == []
    assert not any("rm" in argv for argv in commands[1:] if "image" in argv)
    # One of which somebody made a container stays, and is not said to be gone.
    images += "sha256:in-use\n"
    assert Podman.discard(["sha256:bb"]) == ["Podman’s image aa"]
    assert [argv[-1] for argv in commands if "image" in argv and "rm" in argv] == ["sha256:aa", "sha256:in-use"]
    assert (host / "podman/root").exists()
    assert Podman.discard(["sha256:cc"]) == [f"Podman’s images in {host}/podman"]
    assert not (host / "podman").exists()
    assert not (host / "running-False").exists()
