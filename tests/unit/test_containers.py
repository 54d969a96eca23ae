"""Containers without an engine: what is asked for, what is refused, what is seen, left and removed.

An engine is a table: words of a command → what it prints, or the error in which it ends.
"""

import json
import os
import shutil
import subprocess
import time
from types import SimpleNamespace

import projects
import pytest

from strata import layers
from strata.base import places
from strata.base.errors import UserError
from strata.experiment import config
from strata.host import cgroups, firewall
from strata.host.context import Context
from strata.layers import docker, lxc, podman
from strata.layers.common import engine, gvisor, layer, limits

MACHINE = {"cpus": 2, "memory_bytes": 4 * 2**30, "cache_bytes": 2**20, "arithmetic": None}
ID = "b" * 64
IMAGE = {"recipe": "a" * 64, "id": f"sha256:{ID}", "folder": "/images/a"}
PLAIN = {"network": "bridge", "data": "volume"}
RUNC = {**PLAIN, "runtime": "runc"}
# What is asked of Docker, and of what Podman 4.3 says what is kept.
INFO = {
    "docker": "20.10.24+dfsg1|1.6.20~ds1|1.1.5+ds1|overlay2|cgroupfs\n",
    "podman": "4.3.1|runc version 1.1.5+ds1\ncommit: 1.1.5|conmon version 2.1.6|overlay|netavark|cgroupfs\n",
}
# As `tail -v` printed them in a container with a bound for memory, on one CPU, without seccomp.
SEEN = """==> /proc/self/status <==
Name:\ttail
Seccomp:\t0
Cpus_allowed_list:\t1

==> /proc/mounts <==
overlay / overlay rw 0 0
tmpfs /data tmpfs rw,relatime,mode=755 0 0

==> /sys/fs/cgroup/memory/memory.limit_in_bytes <==
536870912
"""
ASKED = {"data": "tmpfs", "seccomp": "unconfined", "cpuset-cpus": "1", "memory": "512MiB"}
FLAGS_2022 = '  -platform string\n    \tplatform to use: ptrace (default), kvm. (default "ptrace")\n'
FLAGS_2024 = '  -platform string\n    \tplatform to use: systrap (default), ptrace, kvm. (default "systrap")\n'


@pytest.fixture(autouse=True)
def table(monkeypatch, tmp_path):
    """What commands print, by words of theirs; `ran` are those that were run.  A machine with version 1 of groups."""
    answers, ran = {" info ": ""}, []

    def capture(argv, timeout=120, check=True):
        ran.append(list(argv))
        line = f" {' '.join(argv)} "
        said = next((said for words, said in answers.items() if words in line), "")
        if callable(said):
            said = said(argv)
        if isinstance(said, UserError):
            if check:
                raise said
            return subprocess.CompletedProcess(argv, 1, "", str(said))
        return subprocess.CompletedProcess(argv, 0, said, "")

    for module in (layer, engine, docker, lxc, gvisor, firewall):
        monkeypatch.setattr(module, "capture", capture)
    for module in (podman, lxc, firewall):
        monkeypatch.setattr(module, "as_root", list)
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(docker, "start_daemon", lambda: None)
    monkeypatch.setattr(docker, "answers", lambda: True)
    monkeypatch.setattr(shutil, "which", lambda name, path=None: f"/usr/bin/{name}")
    monkeypatch.setattr(podman, "unfit", lambda runtime: None)
    monkeypatch.setattr(podman, "ulimits", list)
    monkeypatch.setattr(cgroups, "managed_by_systemd", lambda: False)
    asked = (gvisor.platform, gvisor.version, engine._printed)
    for function in asked:
        function.cache_clear()
    yield SimpleNamespace(answers=answers, ran=ran)
    for function in asked:
        function.cache_clear()


@pytest.fixture
def made(table, tmp_path):
    """Make a container; its traces are in `traces`, and the words behind `run` in `words`."""

    def make(name, entry, up=True, ports=(6379,)):
        traces = []
        table.answers[" info "] = INFO.get(name, "")
        context = Context("strata-0", str(tmp_path), IMAGE, "192.0.2.1", ports, note=traces.append)
        top = layers.build([{name: layers.kind(name).settle(entry, {})}], context)[-1]
        top.traces, top.words = traces, []
        if up:
            top.up()
            run = next(argv for argv in reversed(table.ran) if "run" in argv)
            top.words = run[run.index("run") + 1 :]
        return top

    return make


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_what_is_seen_inside_is_recorded_and_what_was_not_applied_is_never_measured(made, table, name):
    table.answers[" tail "] = SEEN
    top = made(name, {**RUNC, **ASKED})
    seen = {one["name"]: one["seen"] for one in next(iter(top.facts().values()))["settings"]}
    assert seen == {"data": "tmpfs", "seccomp": "unconfined", "cpuset-cpus": "1", "memory": "536870912"}
    assert top.cpus() == 1
    with pytest.raises(UserError, match="cpuset-cpus was not applied: 0-1 was asked for, and the container has 1"):
        made(name, {**RUNC, "cpuset-cpus": "0-1"})


@pytest.mark.parametrize(
    ("asked", "printed"),
    [
        ({"seccomp": "default"}, SEEN),
        ({"memory": "1GiB"}, SEEN),
        ({"memory": "1GiB"}, "==> /sys/fs/cgroup/memory/memory.limit_in_bytes <==\n9223372036854771712\n"),
        ({"memory": "1GiB"}, "==> /sys/fs/cgroup/memory.max <==\nmax\n"),
        ({"data": "tmpfs"}, "==> /proc/mounts <==\noverlay / overlay rw 0 0\n/dev/vda /data ext4 rw 0 0\n"),
    ],
)
def test_a_container_that_is_not_as_asked_for_is_told_from_one_that_is(asked, printed):
    with pytest.raises(UserError, match="was not applied"):
        limits.seen(asked, printed)
    # What cannot be seen is not available.
    assert [entry["seen"] for entry in limits.seen(asked, "")] == ["not available"]
    assert limits.seen(PLAIN, printed) == []


# What is refused.


def complaint(name, entry, below=()):
    with pytest.raises(UserError) as caught:
        config.read(projects.on_host(environments={"e": {"layers": [*below, {name: {**PLAIN, **entry}}]}}))
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "entry", "key", "remedy"),
    [
        ("docker", {"seccomp": "none"}, "seccomp", "default, unconfined"),
        ("docker", {"cpuset-cpus": "all"}, "cpuset-cpus", "0-1,3"),
        ("docker", {"cpuset-cpus": "3-1"}, "cpuset-cpus", "holds no CPU"),
        ("docker", {"memory": "lots"}, "memory", "2GiB"),
        ("docker", {"memory": "4MiB"}, "memory", "at least 6MiB"),
        ("docker", {"data": "ram"}, "data", "volume, layered, tmpfs"),
        ("docker", {"runtime": "kata"}, "runtime", "runc, runsc"),
        ("docker", {"stack": "host"}, "stack", "set runtime: runsc too"),
        ("docker", {"runtime": "runsc", "network": "host"}, "stack", "set stack: host"),
        ("podman", {"runtime": "runsc"}, "runtime", "crun, runc"),
        ("podman", {"network": "pasta"}, "network", "bridge, host"),
        ("podman", {"memory": "4MiB"}, "memory", "at least 6MiB"),
    ],
)
def test_a_mistake_in_an_option_is_told_with_its_key(checkout, name, entry, key, remedy):
    said = complaint(name, entry)
    assert f"environments.e.layers.0.{name}.{key}" in said
    assert remedy in said


def test_gvisor_which_is_not_in_the_image_stands_on_the_host_alone(checkout):
    assert "it runs on the host alone" in complaint("docker", {"runtime": "runsc"}, below=["vm"])


KNOWN = {"runc": {"path": "runc"}, "strata-runsc-host": {"path": "/usr/bin/runsc"}}
GVISOR = {**PLAIN, "runtime": "runsc", "stack": "host"}


@pytest.mark.parametrize(
    ("name", "entry", "flags", "reason"),
    [
        ("docker", {"cpuset-cpus": "0,4000"}, "", "this machine has the CPUs"),
        ("docker", {"memory": "5GiB"}, "", "this machine has 4.0 GiB: choose less"),
        ("docker", GVISOR, "", "`make setup` installs it"),
        ("docker", GVISOR, FLAGS_2022, None),
        ("docker", {**GVISOR, "stack": "sandbox"}, FLAGS_2024, "`scripts/dockerd.sh runtimes` adds them"),
        ("podman", {"memory": "5GiB"}, "", "this machine has 4.0 GiB: choose less"),
    ],
)
def test_what_this_machine_cannot_provide_is_a_reason(table, monkeypatch, name, entry, flags, reason):
    monkeypatch.setattr(podman, "MAKES_BRIDGES", ("/",))
    if not flags:
        monkeypatch.setattr(gvisor, "where", lambda name: None)
    table.answers["runsc flags"] = flags
    table.answers[" info "] = json.dumps(KNOWN)
    kind = layers.kind(name)
    found = kind.refusal(kind.settle({**PLAIN, **entry}, {}), "host", MACHINE)
    assert found is None if reason is None else reason in found


def test_what_podman_lacks_on_this_machine_is_named(monkeypatch, tmp_path):
    monkeypatch.undo()
    kind = layers.kind("podman")

    def why(**entry):
        return kind.refusal(kind.settle({**RUNC, **entry}, {}), "host", MACHINE)

    monkeypatch.setattr(podman, "where", lambda *names: f"/usr/bin/{names[0]}")
    monkeypatch.setattr(cgroups, "ROOT", str(tmp_path))
    monkeypatch.setattr(podman, "MAKES_BRIDGES", ("/",))
    assert why() is why(runtime="crun") is None
    (tmp_path / "unified").mkdir()
    (tmp_path / "unified/cgroup.controllers").write_text("hugetlb\n")
    assert "hybrid, as here" in why(runtime="crun")
    assert why() is None
    monkeypatch.setattr(podman, "MAKES_BRIDGES", ("/no/such/program",))
    assert "package netavark" in why()
    assert why(network="host") is None
    monkeypatch.setattr(podman, "where", lambda *names: None if "catatonit" in names else "/there")
    assert "package tini" in why()
    monkeypatch.setattr(podman, "where", lambda *names: None)
    assert "runc is not installed" in why()


def test_limits_stay_as_they_are_where_nobody_may_raise_them(tmp_path, monkeypatch):
    monkeypatch.undo()
    status = tmp_path / "status"
    status.write_text("CapEff:\t0\nCapBnd:\t000001ffffffffff\n")
    assert podman.ulimits(str(status)) == []
    status.write_text("CapEff:\t0\nCapBnd:\t000001fffeffffff\n")
    assert [word.partition("=")[0] for word in podman.ulimits(str(status))[1::2]] == ["nofile", "nproc"]


@pytest.mark.parametrize("name", ["docker", "podman", "lxc"])
def test_without_its_program_it_is_told_what_installs_it(monkeypatch, name):
    monkeypatch.setattr(shutil, "which", lambda program, path=None: None)
    kind = layers.kind(name)
    assert "is not installed" in kind.unavailable()
    assert kind.examine()[0][1] in (None, False)
    # Nothing of it can be there, and nothing is asked.
    assert kind.sweep() == kind.discard([]) == []


def test_a_machines_cpus_are_its_own(checkout, monkeypatch):
    monkeypatch.setattr(layers.kind("vm"), "unavailable", lambda: None)
    stack = [{"vm": {}}, {"docker": {"network": "host", "data": "volume", "cpuset-cpus": "0-7", "memory": "5GiB"}}]
    for cpus, refused in (("host", True), (8, False)):
        over = {"environments": {"e": {"label": "E", "layers": stack}}, "vm": {"profiles": {"default": {"cpus": cpus}}}}
        reason = config.experiment(config.read(over), MACHINE)["environments"]["e"]["reason"]
        assert ("this machine has the CPUs 0, 1: choose among these" in (reason or "")) == refused


def test_a_workload_that_needs_more_than_the_bound_is_refused_before_anything_starts(checkout):
    over = {
        "environments": {"small": {"layers": [{"docker": {"network": "host", "data": "volume", "memory": "64MiB"}}]}},
        "workloads": {"stream": {"elements": 80_000_000}},
    }
    with pytest.raises(UserError) as caught:
        config.experiment(config.read(over), {**MACHINE, "memory_bytes": 64 * 2**30})
    assert "environments.small.layers.0.docker.memory: is 64MiB, and stream (elements: 80000000)" in str(caught.value)


def test_somebody_whom_the_daemon_refuses_is_told_so(table):
    table.answers[" version "] = UserError("permission denied, so it says")
    [(_, there, words)] = layers.kind("docker").examine()
    assert there is False
    assert "permission denied, so it says" in words


# What stands in the plan.


def test_the_paper_labels_a_container_by_its_options():
    kind = layers.kind("docker")
    assert kind.labels(PLAIN) == {"network": "bridge with NAT", "data": "volume"}
    found = kind.labels({**PLAIN, "runtime": "runsc", "sandbox": {"platform": "ptrace", "stack": "host"}})
    assert (found["kind"], found["network"]) == ("sandbox", "bridge with NAT, the host’s stack")


# What is left, and what is removed.

WAITING = ["/sbin/docker-init\0--\0sleep\0infinity", "sleep\0infinity"]


@pytest.mark.parametrize(("name", "entry"), [("docker", PLAIN), ("docker", GVISOR), ("podman", RUNC)])
def test_what_is_there_before_any_command_is_nothing_that_was_left(made, table, name, entry):
    table.answers.update({"runsc flags": FLAGS_2022, "runsc --version": "runsc version 1"})
    own = [*WAITING, "tail\0/proc/1/cmdline"] if entry is GVISOR else WAITING
    lines = [*own, "sleep 300", "sleep\0infinity"]
    printed = "".join(f"==> /proc/{number}/cmdline <==\n{line}\n" for number, line in enumerate(lines, 1))
    table.answers["cmdline"] = printed
    assert made(name, entry, up=False).left() == ["sleep 300", "sleep infinity"]


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_what_is_removed_has_our_mark_and_is_of_no_build_and_no_image_that_is_kept(table, name):
    table.answers.update(
        {
            " ps ": "c0 strata.home=x,strata.building=\nc1 map[strata.building:0123 strata.home:x]\n",
            " image ls ": "docker.io/strata/image:aaaa\nstrata/image:bbbb\nstrata/base:cc\nmine:latest\n",
            " image rm strata/base": UserError("in use"),
        }
    )
    kind = layers.kind(name)
    assert kind.sweep() == ["container c0"]
    assert any(f"label=strata.home={places.home_mark()}" in argv for argv in table.ran)
    assert table.ran[-1][-1] == "c0"
    assert [words.split()[2] for words in kind.discard({"strata/image:bbbb"})] == ["docker.io/strata/image:aaaa"]
    assert table.ran[-1][-1] == "strata/base:cc"


IPTABLES = """#!/bin/sh
shift
case $1 in
    --insert) shift; echo "-A $*" | sed 's/--match/-m/g; s/--jump/-j/' >>"$RULES" ;;
    --list-rules) cat "$RULES" ;;
    -D) shift; grep -v -x -F -e "-A $*" "$RULES" >"$RULES.new"; mv "$RULES.new" "$RULES" ;;
esac
"""


def test_what_is_published_is_let_in_and_the_rule_goes_with_the_container(made, table, monkeypatch, tmp_path):
    iptables, rules = tmp_path / "iptables", tmp_path / "rules"
    iptables.write_text(IPTABLES)
    iptables.chmod(0o755)
    rules.write_text("-P FORWARD DROP\n-A FORWARD -j DOCKER-USER\n")
    before = rules.read_text()
    monkeypatch.setenv("RULES", str(rules))
    monkeypatch.setattr(firewall, "where", lambda name: str(iptables))
    top = made("podman", RUNC)
    [let] = [argv for argv in table.ran if argv[0] == str(iptables)]
    for _ in range(2):
        subprocess.run(let, check=True)
    added = "-A FORWARD -m conntrack --ctstate DNAT --ctorigdst 192.0.2.1 -m comment --comment strata-0 -j ACCEPT\n"
    assert rules.read_text() == before + 2 * added
    [rule] = [trace for trace in top.traces if trace["kind"] == "rule"]
    for _ in range(2):
        subprocess.run(rule["remove"][0], check=True)
        assert rules.read_text() == before
    assert [trace["kind"] for trace in made("podman", {**RUNC, "network": "host"}).traces] == ["container"]


# Files, whatever their names.


@pytest.mark.parametrize("name", ["-", "-oProxyCommand=touch owned", "host:file", "a b", "*"])
def test_a_file_goes_in_with_its_rights_and_comes_back(monkeypatch, tmp_path, name):
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    content = os.urandom(100_000)
    with open(name, "wb") as file:
        file.write(content)
    os.chmod(name, 0o640)
    top = layers.build([], Context("strata-x", str(tmp_path), None))[-1]
    top.put(name, str(tmp_path / "in side"))
    assert (tmp_path / "in side").stat().st_mode & 0o777 == 0o640
    top.get(str(tmp_path / "in side"), "./-out")
    assert (tmp_path / "-out").read_bytes() == content


# LXC.


@pytest.mark.parametrize("group", ["", "payload", ".lxc"])
def test_what_was_left_is_seen_in_any_group_of_lxcs(monkeypatch, tmp_path, group):
    monkeypatch.undo()
    monkeypatch.setattr(cgroups, "groups_named", lambda name: [str(tmp_path / "strata-x.scope")])
    (tmp_path / "strata-x.scope" / group).mkdir(parents=True)
    with subprocess.Popen(["sleep", "300"]) as left:
        (tmp_path / "strata-x.scope" / group / "cgroup.procs").write_text(f"{left.pid}\n")
        try:
            stack = layers.build([{"lxc": {}}], Context("strata-x", str(tmp_path), None))
            deadline = time.monotonic() + 20
            while not (found := stack[-1].left()) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert found == ["sleep 300"]
        finally:
            left.kill()


def test_lxc_is_asked_for_a_group_beside_those_of_containers_and_its_holder_ends_first(made, table, tmp_path):
    folder = tmp_path / "a b"
    folder.mkdir()
    traces = []
    top = layers.build([{"lxc": {}}], Context("strata-x", str(folder), IMAGE, note=traces.append))[-1]
    top.up()
    words = (folder / "strata-x/config").read_text().splitlines()
    assert "lxc.cgroup.dir.container = strata/strata-x" in words
    assert "lxc.cgroup.dir.monitor = strata/strata-x-monitor" in words
    assert f"lxc.mount.entry = {tmp_path}/a\\040b/data data none bind 0 0" in words
    assert [trace["id"] for trace in reversed(traces)] == ["strata-x-monitor", "strata-x"]
    (folder / "strata-x/config").unlink()
    (folder / "strata-x").rmdir()
    table.answers.update(
        {" lxc-start ": UserError("no"), " cat ": "lxc-start x ERROR start - start.c:1 - No such group\n"}
    )
    with pytest.raises(UserError, match="LXC did not start a container: No such group"):
        top.up()
