"""Containers without an engine: which options are refused and why, and how limits show inside.

What a container is, may do, leaves and loses is in tests/system/test_environments.py,
test_podman.py and test_image.py.
"""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import projects
import pytest

from strata import doctor
from strata.environments import docker, podman
from strata.environments.common import (
    docker_daemon,
    engine,
    gvisor,
    limits,
    option_effects,
    passed_options,
    registry,
)
from strata.experiment import config, planning
from strata.host import cgroups, firewall, observe
from strata.host.context import Context
from strata.util.errors import UserError

GOLDEN = projects.ROOT / "tests/golden/docker"
MACHINE = {
    "cpus": 2,
    "mask": None,
    "memory_bytes": 4 * 2**30,
    "cache_bytes": 2**20,
    "arithmetic": None,
}
PLAIN = {"network": "bridge", "data": "volume"}
# Printed by `tail -v` in a container with a limit of memory, on one CPU, without seccomp.
SEEN = """==> /proc/self/status <==
Name:\ttail
Seccomp:\t0
Cpus_allowed_list:\t1

==> /proc/mounts <==
overlay / overlay rw 0 0
tmpfs /data tmpfs rw,relatime,mode=755 0 0

==> /sys/fs/cgroup/memory/memory.limit_in_bytes <==
536870912

==> /sys/fs/cgroup/cpu/cpu.cfs_quota_us <==
60000

==> /sys/fs/cgroup/cpu/cpu.cfs_period_us <==
100000

==> /sys/fs/cgroup/cpu/cpu.shares <==
512

==> /sys/fs/cgroup/cpu/cpu.cfs_burst_us <==
60000
"""
GRANTED = {"data": "tmpfs", "seccomp": "unconfined", "cpuset-cpus": "1", "memory": "512MiB"}
GRANTED |= {"cpus": 0.6, "cpu-shares": 512, "cpu-burst": 60}


@pytest.mark.parametrize(
    ("asked", "printed"),
    [
        ({"seccomp": "default"}, SEEN),
        ({"cpuset-cpus": "0-1"}, SEEN),
        ({"memory": "1GiB"}, SEEN),
        (
            {"memory": "1GiB"},
            "==> /sys/fs/cgroup/memory/memory.limit_in_bytes <==\n9223372036854771712\n",
        ),
        ({"memory": "1GiB"}, "==> /sys/fs/cgroup/memory.max <==\nmax\n"),
        ({"cpus": 0.5}, SEEN),
        ({"cpus": 0.6}, "==> /sys/fs/cgroup/cpu.max <==\n50000 100000\n"),
        ({"cpus": 0.6}, "==> /sys/fs/cgroup/cpu.max <==\nmax 100000\n"),
        ({"cpu-shares": 1024}, SEEN),
        ({"cpu-burst": 50}, SEEN),
        ({"cpu-burst": 60}, "==> /sys/fs/cgroup/cpu.max.burst <==\n0\n"),
        (
            {"data": "tmpfs"},
            "==> /proc/mounts <==\noverlay / overlay rw 0 0\n/dev/vda /data ext4 rw 0 0\n",
        ),
    ],
)
def test_a_limit_that_was_not_applied_is_an_error(asked, printed):
    rows = limits.require_limits(GRANTED, SEEN)
    assert {row["name"]: row["requested"] for row in rows} == {
        k: str(v) for k, v in GRANTED.items()
    }
    with pytest.raises(UserError, match="was not applied"):
        limits.require_limits(asked, printed)
    assert [row["observed"] for row in limits.require_limits(asked, "")] == ["not available"]
    assert limits.require_limits(PLAIN, printed) == []


NO_IMAGE = "Error response from daemon: No such image: x"


def let_client_print(monkeypatch, errors):
    """Let Docker's client fail with this message."""
    failed = subprocess.CompletedProcess([], 1, "", errors)
    monkeypatch.setattr(docker_daemon, "find_program", lambda name: f"/bin/{name}")
    monkeypatch.setattr(docker_daemon, "capture_output", lambda *args, **options: failed)


# Options that are not passed on to Docker, and why.
PASSED = [
    ("--name=x", "removes it by that name"),
    ("--rm", "Strata itself removes"),
    ("-d", "in the background"),
    ("-dit", "long form, --NAME=VALUE"),
    ("--entrypoint=x", "only waits"),
    ("--env=A=b", "`env NAME=VALUE`"),
    ("-e=A=b", "`env NAME=VALUE`"),
    ("--restart=always", "start again"),
    ("--runtime=runsc", "runtime: runsc"),
    ("--cgroup-parent=x", "one parent group"),
    ("-m=1g", "long form, --memory=VALUE"),
    ("--cpu=1", "did you mean 'cpus'"),
    ("--privilege", "did you mean 'privileged'"),
    ("--volume", "write --volume=VALUE"),
    ("cpus=1", "an option of `docker run`"),
    ("--label=strata.home=x", "choose another"),
    ("--volume=/x:/data:ro", "set the key data"),
    ("--volume=/data/", "set the key data"),
    ("--tmpfs=/data:size=1m", "set the key data"),
    ("--mount=type=tmpfs,target=/x/../data", "set the key data"),
    ("--mount=type=tmpfs,dst=//data/work", "set the key data"),
    ("--tmpfs=/data/work", "set the key data"),
    ("--volume=/x:/", "set the key data"),
    ("--network=container:x", "shares no network"),
]


@pytest.mark.parametrize(
    ("below", "name", "entry", "key", "remedy"),
    [
        ([], "docker", {"seccomp": "none"}, "seccomp", '"default" or "unconfined"'),
        ([], "docker", {"cpuset-cpus": "all"}, "cpuset-cpus", "0-1,3"),
        ([], "docker", {"memory": "lots"}, "memory", "2GiB"),
        ([], "docker", {"memory": "1MiB"}, "memory", "at least 6MiB"),
        ([], "podman", {"cpuset-cpus": "1-0"}, "cpuset-cpus", "its lower number"),
        ([], "docker", {"cpus": "some"}, "cpus", "such as 0.6"),
        ([], "docker", {"cpu-burst": 60}, "cpu-burst", "set cpus too"),
        ([], "podman", {"cpus": 0.6, "cpu-burst": 61}, "cpu-burst", "at most 60"),
        (["vm"], "docker", {"cpus": 0.6, "cpu-burst": 60}, "cpu-burst", "only on the host"),
        ([], "docker", {"data": "ram"}, "data", '"volume", "layered" or "tmpfs"'),
        ([], "docker", {"runtime": "kata"}, "runtime", '"runc", "crun" or "runsc"'),
        ([], "docker", {"stack": "host"}, "stack", "set runtime: runsc too"),
        ([], "docker", {"runtime": "runsc", "network": "host"}, "stack", "set stack: host"),
        (["vm"], "docker", {"runtime": "runsc"}, "runtime", "it runs only on the host"),
        ([], "docker", {"runtime": "runc", "program": "runc-2"}, "program", "absolute path"),
        ([], "docker", {"runtime": "runc", "program": "/no/runc"}, "program", "no such program"),
        ([], "docker", {"dockerd": "/no/dockerd"}, "dockerd", "no such program"),
        (["vm"], "docker", {"dockerd": "/bin/true"}, "dockerd", "leave it out here"),
        ([], "docker", {"program": "/bin/true"}, "program", "set runtime, too"),
        (["vm"], "docker", {"runtime": "crun"}, "runtime", "it runs only on the host"),
        ([], "docker", {"port": "nat"}, "port", '"dnat" or "proxy"'),
        ([], "docker", {"port": "proxy", "network": "host"}, "port", "the host's network has none"),
        ([], "docker", {"rules": 0}, "rules", "1"),
        ([], "docker", {"rules": 9, "port": "proxy"}, "rules", "leave one of them out"),
        (["vm"], "docker", {"rules": 9}, "rules", "on the host only"),
        (["chroot"], "pasta", {"mtu": 9000}, "mtu", "1500"),
        (["vm"], "docker", {"runtime": "runc", "program": "/bin/true"}, "program", "leave it out"),
        ([], "podman", {"runtime": "runsc"}, "runtime", '"crun" or "runc"'),
        ([], "docker", {"directfs": False}, "directfs", "set runtime: runsc too"),
        ([], "podman", {"network": "pasta"}, "network", '"bridge" or "host"'),
        ([], "podman", {"options": ["--cpus=1"]}, "options", "unknown"),
        *(
            ([], "docker", {"options": ["--cpus=1", word]}, "options.1", why)
            for word, why in PASSED
        ),
        (["vm"], "docker", {"options": ["--rm"]}, "options.0", "Strata itself removes"),
        ([], "docker", {"options": ["--memory=1g"], "memory": "1GiB"}, "options.0", "key memory"),
        ([], "docker", {"options": ["--network=a"]}, "options.0", "key network sets the same"),
        ([], "docker", {"network": ..., "options": ["--cpus=1"]}, "network", "--network=NAME"),
        ([], "docker", {"network": ..., "options": ["--net=host"]}, "options.0", "network: host"),
        (
            [],
            "docker",
            {"network": ..., "options": ["--network=a", "--network=b"]},
            "options.1",
            "one network",
        ),
    ],
)
def test_a_mistake_in_an_option_is_refused_by_its_key(
    checkout, monkeypatch, below, name, entry, key, remedy
):
    names = {"cpus": True, "memory": True, "network": True, "privileged": False, "volume": True}
    more = {"mount": True, "tmpfs": True, "label": True, "security-opt": True}
    monkeypatch.setattr(passed_options, "read_known_options", lambda: names | more)
    entry = {key: value for key, value in {**PLAIN, **entry}.items() if value is not ...}
    stack = [*below, {name: entry}]
    with pytest.raises(UserError) as caught:
        config.read_config(projects.on_host(environments={"e": {"layers": stack}}))
    assert f"environments.e.layers.{len(below)}.{name}.{key}" in str(caught.value)
    assert remedy in str(caught.value)


# What a container shows; the last line is another one in each.
BASE = {"limit nofile": "16384", "cpu.max": "max", "mount /x": "", "random": "1"}


@pytest.mark.parametrize(
    ("options", "alone", "together", "seen", "declared"),
    [
        (
            ["--ulimit=nofile=9:9"],
            {"--ulimit=nofile=9:9": {"limit nofile": "9"}},
            {},
            {"--ulimit": "limit nofile: 9 (without: 16384)"},
            {"limit nofile": "option --ulimit=nofile=9:9"},
        ),
        (["--gpus=all"], {"--gpus=all": {}}, {}, {"--gpus": "as requested"}, {}),
        (
            ["--cpus=1", "--volume=/y:/x"],
            {"--cpus=1": {"cpu.max": "1"}, "--volume=/y:/x": {"mount /x": "ext4 rw"}},
            {},
            {
                "--cpus": "cpu.max: 1 (without: max)",
                "--volume": "mount /x: ext4 rw (without: none)",
            },
            {"cpu.max": "option --cpus=1", "mount /x": "option --volume=/y:/x"},
        ),
        # One needs the other, and what they do together neither does alone.
        (
            ["--ip=10.1.1.1", "--network=mine"],
            {"--ip=10.1.1.1": None, "--network=mine": {}},
            {"limit nofile": "7"},
            {
                "--ip": "as requested",
                "--network": "as requested",
                "options together": "limit nofile: 7 (without: 16384)",
            },
            {"limit nofile": "option --ip=10.1.1.1 --network=mine"},
        ),
    ],
)
def test_what_differs_from_a_container_without_an_option_is_its_consequence(
    options, alone, together, seen, declared
):
    def read_state(passed, number):
        changed = {}
        for option in passed:
            if alone[option] is None:
                raise UserError("no container")
            changed |= alone[option]
        return BASE | changed | {"random": f"{passed}{number}"}

    changes = [change for change in alone.values() if change]
    state = BASE | {key: value for change in changes for key, value in change.items()} | together
    rows, explanations = option_effects.explain_state_differences(
        options, {**state, "random": "x"}, read_state
    )
    assert {row["name"]: row["observed"] for row in rows} == seen
    assert explanations == declared


def test_options_are_named_in_label_and_title_and_another_network_is_one_of_them(daemon):
    daemon(info(NEW))
    layer = registry.load_layer_class("docker")
    options = {"data": "volume", "options": ["--network=mine", "--cpus=1.5"]}
    assert passed_options.find_passed_option_mistakes(options) == []
    resolved = layer.resolve_options(options, {})
    assert layer.get_labels(resolved)["network"] == "network mine"
    assert layer.get_labels(resolved)["title"].endswith("with --network=mine --cpus=1.5")
    assert layer.describe_for_plan(resolved)["otherwise"] == "--network=mine --cpus=1.5"
    assert layer.explain_refusal(resolved, "host", MACHINE) is None
    other = layer.resolve_options({**options, "options": ["--network=other"]}, {})
    assert "docker network create other" in layer.explain_refusal(other, "host", MACHINE)


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (NO_IMAGE, None),
        ("Cannot connect to the Docker daemon at unix:///x. Is it running?", None),
        ("docker: Cannot connect to the Docker daemon at unix:///x.", None),
        ('invalid argument "x" for "--cpus" flag: no number\n\nUsage: ...', "no number"),
        ("Error response from daemon: Minimum memory limit allowed is 6MB", "6MB"),
        ("docker: opening seccomp profile (/x) failed\n\nRun ...", "opening seccomp profile"),
    ],
)
def test_what_docker_refuses_is_known_before_a_container_is_made(
    daemon, monkeypatch, printed, reason
):
    daemon(info(NEW))
    let_client_print(monkeypatch, printed)
    layer = registry.load_layer_class("docker")
    resolved = layer.resolve_options({**PLAIN, "options": ["--label=a"]}, {})
    message = layer.explain_refusal(resolved, "host", MACHINE)
    assert message is None if reason is None else reason in message
    assert reason is None or "Usage" not in message


@pytest.mark.parametrize("more", [{}, {"runtime": "runsc", "sandbox": {"stack": "sandbox"}}])
def test_a_container_that_does_not_start_names_its_options_and_docker_s_reason(monkeypatch, more):
    def fail(layer):
        raise UserError("`docker run …` failed: docker: Error response from daemon: no /x\n\nRun")

    monkeypatch.setattr(docker.engine.Container, "start", fail)
    layer = object.__new__(docker.Layer)
    layer.options = {"options": ["--device=/x"], **more}
    with pytest.raises(UserError, match=r"with --device=/x: no /x$|no /x\n.*stack: host") as caught:
        layer.start()
    assert "docker run" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("docker", PLAIN),
        ("docker", {**PLAIN, "runtime": "runsc", "stack": "host", "program": "/bin/true"}),
        ("docker", {"data": "volume", "options": ["--network=mine"]}),
        ("docker", {**PLAIN, "dockerd": "/bin/true"}),
        ("podman", {**PLAIN, "runtime": "runc"}),
        ("vm", {"profile": "default", "fresh": "snapshot"}),
        ("chroot", {"numactl": "--membind=0"}),
    ],
)
def test_options_of_a_plan_resolve_to_the_same_again(daemon, kind, options):
    daemon(info(NEW))
    layer = registry.load_layer_class(kind)
    settings = {"vm": {"profiles": {"default": {}}}, "scale": "standard"}
    resolved = layer.resolve_options(options, settings)
    restored = layer.restore_options({**resolved, "daemon": {"users": "remapped"}})
    assert layer.check_options(restored, "host") == []
    assert layer.resolve_options(restored, settings) == resolved


FLAGS_2022 = (
    '  -platform string\n    \tplatform to use: ptrace (default), kvm. (default "ptrace")\n'
)
FLAGS_2024 = (
    "  -platform string\n"
    '    \tplatform to use: systrap (default), ptrace, kvm. (default "systrap")\n'
)


@pytest.mark.parametrize(
    ("flags", "platform"), [(FLAGS_2022, "ptrace"), (FLAGS_2024, "systrap"), ("", None)]
)
def test_the_way_in_which_gvisor_catches_system_calls_is_read_from_its_help(
    monkeypatch, flags, platform
):
    monkeypatch.setattr(gvisor, "find_program", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(
        gvisor, "capture_output", lambda argv, check: SimpleNamespace(stdout="", stderr=flags)
    )
    assert gvisor.read_runsc_fact.__wrapped__(*gvisor.PRINT_PLATFORM) == platform


@pytest.fixture
def podman_host(monkeypatch, tmp_path):
    """A host with all that Podman needs, and its folder of control groups, which are not hybrid."""
    for module in (podman, engine, docker):
        monkeypatch.setattr(module, "find_program", lambda *names: f"/usr/bin/{names[0]}")
    monkeypatch.setattr(podman, "BRIDGE_MAKERS", ("/",))
    monkeypatch.setattr(cgroups, "ROOT", str(tmp_path))
    return tmp_path


def refusal(name, **options):
    layer = registry.load_layer_class(name)
    return layer.explain_refusal(layer.resolve_options({**PLAIN, **options}, {}), "host", MACHINE)


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("docker", {"cpuset-cpus": "0,4000"}, "this machine has the CPUs"),
        ("docker", {"memory": "5GiB"}, "this machine has 4.0 GiB: choose less"),
        ("docker", {"runtime": "runsc", "stack": "host"}, "`make setup` installs it"),
        ("podman", {"memory": "5GiB"}, "this machine has 4.0 GiB: choose less"),
        ("docker", {"cpus": 9999}, "choose less"),
    ],
)
def test_what_this_machine_cannot_provide_is_a_reason(
    monkeypatch, podman_host, name, options, reason
):
    monkeypatch.setattr(gvisor, "read_runsc_fact", lambda *words: None)
    assert reason in refusal(name, **options)


def test_what_podman_lacks_on_this_machine_is_named(monkeypatch, podman_host):
    assert refusal("podman", runtime="runc") is refusal("podman", runtime="crun") is None
    (podman_host / "unified").mkdir()
    (podman_host / "unified/cgroup.controllers").write_text("hugetlb\n")
    for engine_with_crun in ("podman", "docker"):
        assert "hybrid, as here" in refusal(engine_with_crun, runtime="crun")
    assert refusal("podman", runtime="runc") is None
    monkeypatch.setattr(podman, "BRIDGE_MAKERS", ("/no/such/program",))
    assert "package netavark" in refusal("podman", runtime="runc")
    assert refusal("podman", runtime="runc", network="host") is None
    for missing, reason in (("catatonit", "package tini"), ("runc", "runc is not installed")):
        for module in (podman, engine):
            monkeypatch.setattr(
                module,
                "find_program",
                lambda *names, name=missing: None if name in names else "/program",
            )
        assert reason in refusal("podman", runtime="runc")


def info(name, **changes):
    """What a daemon prints for `docker info`: it is on this machine, unless the changes differ."""
    here = {"Name": os.uname().nodename, "KernelVersion": os.uname().release}
    return {**json.loads((GOLDEN / name).read_text()), **here, **changes}


@pytest.fixture
def daemon(monkeypatch):
    """Let a daemon of this machine answer with what it prints, with or without NAT and bridge."""

    def answers(printed, nat=True, bridge=True):
        monkeypatch.setattr(docker_daemon, "is_daemon_reachable", lambda socket=None: True)
        monkeypatch.setattr(docker_daemon, "_query_daemon_info", lambda socket: printed)
        let_client_print(monkeypatch, NO_IMAGE)
        monkeypatch.setattr(docker_daemon, "has_nat_rules", lambda network, socket=None: nat)
        monkeypatch.setattr(docker_daemon, "JOURNAL", "/no/such/socket")
        monkeypatch.setattr(
            docker_daemon,
            "read_bridge_options",
            lambda network="bridge", socket=None: (
                {docker_daemon.BRIDGE: "docker0"} if bridge else {}
            ),
        )
        monkeypatch.setattr(
            docker_daemon,
            "inspect_network",
            lambda name, socket=None: {"Driver": "bridge"} if name == "mine" else {},
        )

    return answers


def sandbox_options(stack, **more):
    sandbox = {"platform": "ptrace", "stack": stack, "version": "1", **more}
    return {**PLAIN, "runtime": "runsc", "sandbox": sandbox}


OLD, NEW = "20.10-userns.json", "28-documented.json"
OTHER = {**PLAIN, "runtime": "runc", "program": {"path": "/opt/runc", "sha256": "0a" * 32}}
ADDED = {"strata-runc-0a0a0a0a0a0a": {"path": "/opt/runc"}}
LOGGED = {
    driver: {**PLAIN, "data": "layered", "options": [f"--log-driver={driver}"]}
    for driver in ("none", "local", "journald", "file")
}
DIRECT = {"strata-runsc-host-gofer": {"path": "runsc", "runtimeArgs": ["--network=host"]}}
KATA = {"strata-runsc-host": {"path": "/usr/bin/kata-runtime", "runtimeArgs": ["--network=host"]}}


@pytest.mark.parametrize(
    ("printed", "options", "reason"),
    [
        (info(NEW), sandbox_options("host"), None),
        (
            info(NEW),
            sandbox_options("sandbox"),
            "is not runsc --network=sandbox but another program",
        ),
        (
            info(NEW, Runtimes=KATA),
            sandbox_options("host"),
            "is not runsc --network=host but /usr/bin/kata-runtime",
        ),
        (
            info(NEW, Runtimes={"runc": {"path": "runc"}}),
            sandbox_options("host"),
            "`scripts/dockerd.sh runtimes` adds it",
        ),
        (
            info(NEW),
            sandbox_options("host", files="gofer"),
            "`scripts/dockerd.sh runtimes` adds it",
        ),
        (
            info(NEW, Runtimes=KATA | DIRECT),
            sandbox_options("host", files="gofer"),
            "is not runsc --network=host --directfs=false but runsc --network=host: take",
        ),
        (info(NEW), OTHER, "`scripts/dockerd.sh runtime strata-runc-0a0a0a0a0a0a /opt/runc` adds"),
        (info(NEW, Runtimes=ADDED), OTHER, None),
        (
            info(NEW, Runtimes={"strata-runc-0a0a0a0a0a0a": {"path": "/bin/runc"}}),
            OTHER,
            "is not /opt/runc but /bin/runc",
        ),
        (info(NEW), PLAIN, None),
        ({}, PLAIN, None),
        (info(NEW, Name="build-7"), PLAIN, "on another machine or in a virtual one (build-7"),
        (info(NEW, KernelVersion="6.6.12-linuxkit"), PLAIN, "`docker context use default`"),
        (info(NEW, SecurityOptions=["name=rootless"]), PLAIN, "one without root"),
        (info(OLD), PLAIN, "set data: layered"),
        (info(OLD), {**PLAIN, "network": "host"}, "set network: bridge"),
        (info(OLD), {**PLAIN, "data": "layered"}, None),
        (info(NEW), {**PLAIN, "port": "dnat", "daemon": {"ports": ""}}, "set port: proxy"),
        (info(OLD), LOGGED["none"], None),
        (info(OLD), LOGGED["local"], None),
        (info(OLD), LOGGED["journald"], "systemd’s journal"),
        (info(OLD), LOGGED["file"], "no log driver file: it has awslogs"),
    ],
)
def test_a_daemon_that_would_make_another_environment_is_a_reason(daemon, printed, options, reason):
    daemon(printed)
    layer = registry.load_layer_class("docker")
    sentence = layer.explain_refusal(layer.add_observations(options, "host"), "host", MACHINE)
    assert (reason is sentence is None) or reason in sentence
    # A machine has a daemon of its own, without gVisor.
    if "runtime" not in options:
        assert layer.explain_refusal(layer.add_observations(options, "vm"), "vm", MACHINE) is None


def test_a_daemon_without_a_bridge_is_a_reason(daemon):
    daemon(info(NEW), nat=None, bridge=False)
    assert "no bridge of its own" in refusal("docker")
    assert refusal("docker", network="host") is None


@pytest.mark.parametrize(
    ("printed", "nat", "options", "ending", "labels"),
    [
        (info(NEW), True, PLAIN, None, {}),
        # What cannot be seen changes nothing.
        (info(NEW), None, PLAIN, None, {}),
        ({}, False, PLAIN, None, {}),
        (info(NEW), False, {**PLAIN, "network": "host"}, None, {}),
        (info(NEW, Driver="vfs"), True, PLAIN, None, {}),
        (info(NEW, SecurityOptions=[]), True, {**PLAIN, "seccomp": "unconfined"}, None, {}),
        (info(NEW), False, PLAIN, "user-land proxy", {"network": "bridge, user-land proxy"}),
        # docker-proxy was chosen, whatever rules the daemon makes.
        (info(NEW), False, {**PLAIN, "port": "proxy"}, None, {}),
        (
            info(OLD),
            True,
            {**PLAIN, "data": "layered"},
            "users remapped",
            {"title": "Docker container, users remapped"},
        ),
        (
            info(NEW, Driver="vfs"),
            True,
            {**PLAIN, "data": "layered"},
            "vfs storage",
            {"data": "layered file system, vfs"},
        ),
        (
            info(NEW, SecurityOptions=[]),
            True,
            PLAIN,
            "seccomp none",
            {"title": "Docker container, seccomp none"},
        ),
        (
            info(NEW),
            False,
            sandbox_options("host"),
            "user-land proxy",
            {"kind": "sandbox", "network": "bridge, user-land proxy, the host’s stack"},
        ),
        (
            info(NEW),
            True,
            sandbox_options("host", files="gofer"),
            None,
            {"data": "volume, opened by gVisor’s gofer"},
        ),
    ],
)
def test_an_unusual_daemon_is_in_the_label_and_options_of_its_environment(
    daemon, printed, nat, options, ending, labels
):
    daemon(printed, nat)
    layer = registry.load_layer_class("docker")
    observed = layer.add_observations(options, "host")
    assert layer.describe_for_plan(observed).get("otherwise") == ending
    assert (observed != options) == (ending is not None)
    assert layer.get_labels(observed) == layer.get_labels(options) | labels
    # A machine's daemon is the image's own.
    assert layer.add_observations(options, "vm") == options


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        (OLD, {
            "engine": "20.10.24+dfsg1",
            "containerd": "1.6.20~ds1-1+deb12u3", "runc": "1.1.5+ds1-1+deb12u1",
            "storage_driver": "overlay2", "backing_filesystem": "extfs", "log_driver": "json-file",
            "cgroup_driver": "cgroupfs", "cgroup_version": "1", "users": "remapped",
            "security": "seccomp (default), userns",
        }),
        (NEW, {
            "engine": "28.3.2",
            "containerd": "05044ec0a9a75232cad458027ca83437aae3f4da", "runc": "v1.2.5-0-g59923ef",
            "storage_driver": "overlayfs", "backing_filesystem": None, "log_driver": "journald",
            "cgroup_driver": "systemd", "cgroup_version": "2", "users": "the host’s",
            "security": "apparmor, cgroupns, seccomp (builtin)",
        }),
    ],
)  # fmt: skip
def test_records_have_the_facts_that_a_daemon_prints(name, facts):
    assert docker_daemon.select_daemon_facts(info(name)) == facts
    assert set(docker_daemon.select_daemon_facts({}).values()) == {None, "the host’s", "none"}


NOTHING = "==> /iptables-save <==\n\n==> /nft <==\n\n==> /pgrep <==\n"


@pytest.mark.parametrize(
    ("printed", "firewall_is", "rules", "nat", "proxy"),
    [
        ("20.10-nf_tables.txt", "nf_tables", 21, True, True),
        ("20.10-legacy.txt", "legacy", 21, True, True),
        ("29-nftables-documented.txt", "nf_tables", 5, True, True),
        (NOTHING, "none", 0, False, False),
        ("", "not available", "not available", None, None),
    ],
)
def test_the_kernels_rules_show_how_a_published_port_is_reached(
    printed, firewall_is, rules, nat, proxy
):
    text = (GOLDEN / printed).read_text() if printed.endswith(".txt") else printed
    seen = firewall.PacketFilter(text)
    facts = seen.collect_facts()
    assert (facts["firewall"], facts["rules"]) == (firewall_is, rules)
    assert seen.has_rules_for_bridge("docker0") is nat
    assert (
        seen.is_port_translated("172.17.0.2", 6379),
        seen.is_port_proxied("172.17.0.2", 6379),
    ) == (
        nat,
        proxy,
    )
    # There is nothing for another bridge, container or port.
    assert seen.has_rules_for_bridge("docker") in (False, None)
    for address, port in (("172.17.0.21", 6379), ("172.17.0.2", 637), ("17.17.0.2", 6379)):
        assert {seen.is_port_translated(address, port), seen.is_port_proxied(address, port)} <= {
            False,
            None,
        }
    # A rule before that of iptables keeps a port from it; nftables' own chains know nothing of it.
    skip = "-A PREROUTING -d 127.0.0.1/32 -p tcp -m tcp --dport 6379 -m comment --comment strata-1"
    skipping = firewall.PacketFilter(text.replace("*nat\n", f"*nat\n{skip} -j ACCEPT\n"))
    kept = nat if printed.startswith("29") or not nat else False
    assert skipping.is_port_translated("172.17.0.2", 6379, "strata-1") is kept
    assert skipping.is_port_translated("172.17.0.2", 6379, "strata-2") is nat
    # Without the program nft the rules are counted from what iptables-save prints.
    less = text.replace("==> /nft <==", "==> /none <==")
    if text and "/iptables-save <==\n#" in text:
        assert firewall.PacketFilter(less).collect_facts()["rules"] == rules


@pytest.mark.parametrize("name", ["docker", "podman", "lxc"])
def test_a_missing_program_is_named_and_nothing_of_it_is_removed(monkeypatch, name):
    monkeypatch.setattr(shutil, "which", lambda program, path=None: None)
    layer = registry.load_layer_class(name)
    assert "is not installed" in layer.explain_unavailability()
    assert layer.format_doctor_line()[1] in (None, False)
    assert layer.remove_systems() == layer.remove_images([]) == []


def test_a_machines_cpus_are_its_own(checkout, monkeypatch):
    monkeypatch.setattr(registry.load_layer_class("vm"), "explain_unavailability", lambda: None)
    stack = [
        {"vm": {}},
        {"docker": {"network": "host", "data": "volume", "cpuset-cpus": "0-7", "memory": "5GiB"}},
    ]
    for cpus, refused in (("host", True), (8, False)):
        over = {
            "environments": {"e": {"label": "E", "layers": stack}},
            "vm": {"profiles": {"default": {"cpus": cpus}}},
        }
        reason = planning.build_plan(config.read_config(over), MACHINE)["environments"]["e"][
            "reason"
        ]
        assert ("this machine has the CPUs 0, 1: choose among these" in (reason or "")) == refused


@pytest.mark.parametrize("name", ["-", "-oProxyCommand=touch owned", "host:file", "a b", "*"])
def test_a_file_goes_in_with_its_rights_and_comes_back_whatever_its_name(
    monkeypatch, tmp_path, name
):
    monkeypatch.chdir(tmp_path)
    content = os.urandom(100_000)
    with open(name, "wb") as file:
        file.write(content)
    os.chmod(name, 0o640)
    top = registry.build_stack([], Context("strata-x", str(tmp_path), None))[-1]
    top.copy_file_in(name, str(tmp_path / "in side"))
    assert (tmp_path / "in side").stat().st_mode & 0o777 == 0o640
    top.copy_file_out(str(tmp_path / "in side"), "./-out")
    assert (tmp_path / "-out").read_bytes() == content


def test_what_this_user_may_not_bring_up_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    assert "unset DOCKER_HOST" in docker.Layer.explain_missing_permission()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", "/nowhere")
    assert "sudo without a password" in podman.Layer.explain_missing_permission()


def test_the_doctor_notes_sandboxes_that_run(checkout, capsys, monkeypatch):
    list_folder = observe.list_folder
    with subprocess.Popen(["runsc-sandbox", "900"], executable=shutil.which("sleep")) as sandbox:
        # The kernel shows the new arguments some time after the program is started.
        arguments = Path(f"/proc/{sandbox.pid}/cmdline")
        while not arguments.read_text().startswith("runsc-sandbox"):
            time.sleep(0.01)
        # Another test's sandbox may run as well, and is not seen.
        pids = [str(os.getpid()), str(sandbox.pid)]
        monkeypatch.setattr(
            observe, "list_folder", lambda path: pids if path == "/proc" else list_folder(path)
        )
        try:
            doctor.main({})
        finally:
            sandbox.kill()
    assert re.search(r"^ *sandboxes +note +1 ", capsys.readouterr().out, re.MULTILINE)
