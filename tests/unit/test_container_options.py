"""What a container may do by configuration: the options, their words for Docker, and what is seen of them inside."""

import json
import subprocess
import sys

import jsonschema
import projects
import pytest

from strata.base.errors import UserError
from strata.experiment import config
from strata.host import cgroups
from strata.host.context import Context
from strata.layers import docker, options, sandbox
from strata.layers.docker import Docker
from strata.layers.vm import Vm

MACHINE = {"cpus": 2, "memory_bytes": 4 * 2**30, "cache_bytes": 2**20}
# As `tail -v` printed them in a container with a bound for memory, on one CPU, without seccomp.
SEEN = """==> /proc/self/status <==
Name:\ttail
Seccomp:\t0
Cpus_allowed_list:\t1

==> /proc/self/uid_map <==
         0          0 4294967295

==> /proc/mounts <==
overlay / overlay rw 0 0
tmpfs /data tmpfs rw,relatime,mode=755 0 0

==> /sys/fs/cgroup/memory/memory.limit_in_bytes <==
536870912
"""
ASKED = {
    "data": "tmpfs",
    "seccomp": "unconfined",
    "cpuset-cpus": "1",
    "memory": "512MiB",
    "user-namespace": "host",
}
FLAGS_2022 = """  -platform string
    \tspecifies which platform to use: ptrace (default), kvm. (default "ptrace")
  -platform_device_path string
    \tpath to a platform-specific device file
"""
FLAGS_2024 = """  -platform string
    \tspecifies which platform to use: systrap (default), ptrace, kvm. (default "systrap")
"""


def page(*containers):
    environments = {f"e{number}": {"layers": [{"docker": entry}]} for number, entry in enumerate(containers)}
    return projects.on_host(environments=environments)


def complaint(over):
    with pytest.raises(UserError) as caught:
        config.read(over)
    return str(caught.value)


@pytest.mark.parametrize(
    ("entry", "key", "remedy"),
    [
        ({"seccomp": "none"}, "seccomp", "default, unconfined"),
        ({"cpuset-cpus": "all"}, "cpuset-cpus", "0-1,3"),
        ({"cpuset-cpus": "3-1"}, "cpuset-cpus", "holds no CPU"),
        ({"memory": "lots"}, "memory", "2GiB"),
        ({"memory": "4MiB"}, "memory", "at least 6MiB"),
        ({"user-namespace": "mine"}, "user-namespace", "own, host"),
        ({"data": "ram"}, "data", "volume, layered, tmpfs"),
        ({"runtime": "Kata Containers"}, "runtime", "runc, runsc, or the name of another"),
        ({"platform": "ptrace"}, "platform", "set runtime: runsc too"),
        ({"runtime": "runsc", "network": "host"}, "stack", "set stack: host"),
    ],
)
def test_a_mistake_in_an_option_is_told_with_its_key(checkout, entry, key, remedy):
    said = complaint(
        {"environments": {"e": {"layers": [{"docker": {"network": "bridge", "data": "volume", **entry}}]}}}
    )
    assert f"environments.e.layers.0.docker.{key}" in said
    assert remedy in said


@pytest.mark.parametrize("runtime", ["runsc", "kata"])
def test_a_runtime_that_is_not_in_the_image_stands_on_the_host_alone(checkout, runtime):
    stack = [{"vm": {}}, {"docker": {"network": "bridge", "data": "volume", "runtime": runtime}}]
    assert "it runs on the host alone" in complaint({"environments": {"e": {"layers": stack}}})


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"cpuset-cpus": "0,4000"}, "this machine has the CPUs"),
        ({"memory": "5GiB"}, "this machine has 4.0 GiB: choose less"),
    ],
)
def test_what_a_machine_cannot_grant_is_a_reason(entry, reason):
    assert reason in Docker.refusal({"network": "host", "data": "volume", **entry}, "host", MACHINE)


def test_a_machines_cpus_are_its_own(checkout, monkeypatch):
    monkeypatch.setattr(Vm, "unavailable", classmethod(lambda cls: None))
    layers = [{"vm": {}}, {"docker": {"network": "host", "data": "volume", "cpuset-cpus": "0-7", "memory": "5GiB"}}]
    for cpus, refused in (("host", True), (8, False)):
        over = {
            "environments": {"e": {"label": "E", "layers": layers}},
            "vm": {"profiles": {"default": {"cpus": cpus}}},
        }
        reason = config.experiment(config.read(over), {**MACHINE, "cpus": 2})["environments"]["e"]["reason"]
        assert ("this machine has the CPUs 0, 1: choose among these" in (reason or "")) == refused


def test_a_workload_that_needs_more_than_the_bound_is_refused_before_anything_starts(checkout):
    over = {
        "environments": {"small": {"layers": [{"docker": {"network": "host", "data": "volume", "memory": "64MiB"}}]}},
        "workloads": {"stream": {"elements": 80_000_000}},
    }
    with pytest.raises(UserError) as caught:
        config.experiment(config.read(over), {**MACHINE, "memory_bytes": 64 * 2**30})
    assert "environments.small.layers.0.docker.memory: is 64MiB, and stream (elements: 80000000)" in str(caught.value)


def test_what_is_asked_for_is_said_in_dockers_words():
    words = options.words(ASKED)
    assert words[:4] == ["--security-opt", "seccomp=unconfined", "--cpuset-cpus", "1"]
    # A bound that could be swapped past would be none.
    assert words[4:] == ["--memory", "536870912", "--memory-swap", "536870912"]
    assert options.words({"network": "host", "data": "volume"}) == []


def test_what_is_seen_inside_is_recorded():
    seen = options.seen(ASKED, SEEN)
    assert {entry["name"]: entry["seen"] for entry in seen} == {
        "seccomp": "unconfined",
        "cpuset-cpus": "1",
        "memory": "536870912",
        "user-namespace": "host",
        "data": "tmpfs",
    }
    assert all(options.applied(entry) for entry in seen)
    assert options.seen({"data": "volume", "network": "host"}, SEEN) == []


def test_what_cannot_be_seen_is_not_available_and_no_fault():
    seen = options.seen({"seccomp": "unconfined", "memory": "1GiB"}, "")
    assert [entry["seen"] for entry in seen] == ["not available"] * 2
    assert all(options.applied(entry) for entry in seen)


@pytest.mark.parametrize(
    ("asked", "printed"),
    [
        ({"seccomp": "default"}, SEEN),
        ({"cpuset-cpus": "0-1"}, SEEN),
        ({"memory": "1GiB"}, SEEN),
        ({"memory": "1GiB"}, "==> /sys/fs/cgroup/memory/memory.limit_in_bytes <==\n9223372036854771712\n"),
        ({"user-namespace": "own"}, SEEN),
        ({"data": "tmpfs"}, "==> /proc/mounts <==\noverlay / overlay rw 0 0\n/dev/vda /data ext4 rw 0 0\n"),
    ],
)
def test_a_container_that_is_not_as_asked_for_is_told_from_one_that_is(asked, printed):
    assert [options.applied(entry) for entry in options.seen(asked, printed)] == [False]


class Below:
    name = "host"
    data = "/data"

    def machine(self):
        return None

    def listen(self):
        return "192.0.2.1"


class Fake(Docker):
    """A container whose commands print what is given; they are kept."""

    def __init__(self, entry, printed=SEEN):
        image = {"recipe": "a" * 64, "id": "sha256:b", "folder": "/nowhere"}
        self.traces, self.commands, self.printed = [], [], printed
        context = Context("strata-0", "/nowhere", image, note=self.traces.append)
        super().__init__(Below(), {"network": "bridge", **entry}, context)

    def run_below(self, argv, timeout=120, check=True):
        self.commands.append(argv)
        if argv[:2] == ["docker", "info"]:
            return json.dumps({"CgroupDriver": "cgroupfs"})
        return self.printed if argv[:2] == ["docker", "exec"] else ""


@pytest.fixture
def no_daemon(monkeypatch, tmp_path):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))
    monkeypatch.setattr(docker, "start_daemon", lambda: None)


def test_a_container_with_options_is_looked_at_once_and_one_without_never(no_daemon):
    fake = Fake(ASKED)
    fake.up()
    assert [argv for argv in fake.commands if argv[:2] == ["docker", "exec"]] == [
        ["docker", "exec", "strata-0", *options.LOOK]
    ]
    run = next(argv for argv in fake.commands if argv[:2] == ["docker", "run"])
    assert "--volume" not in run
    assert run[run.index("--tmpfs") + 1].startswith("/data:")
    facts = fake.facts()["docker"]
    schema = json.loads((projects.ROOT / "schemas/record.schema.json").read_text())
    jsonschema.validate(facts, schema["properties"]["system"]["properties"]["docker"])
    plain = Fake({"data": "volume"})
    plain.up()
    assert not [argv for argv in plain.commands if argv[:2] == ["docker", "exec"]]
    assert "settings" not in plain.facts()["docker"]


def test_what_docker_did_not_apply_is_never_measured(no_daemon):
    with pytest.raises(UserError, match="did not apply cpuset-cpus: 0-1 was asked for, and the container has 1"):
        Fake({"data": "volume", "cpuset-cpus": "0-1"}).up()


def test_data_are_given_to_a_root_who_is_another_user_on_the_host(no_daemon, monkeypatch):
    class Remapped(Fake):
        def run_below(self, argv, timeout=120, check=True):
            answers = {
                "inspect": "/proc/41\n",
                "/proc/41/uid_map": "0 165536 65536\n",
                "/proc/41/gid_map": "0 7 65536\n",
            }
            said = super().run_below(argv, timeout, check)
            return next((answers[word] for word in argv if word in answers), said)

    monkeypatch.setattr(docker, "as_root", list)
    own = SEEN.replace("0          0 4294967295", "0     165536      65536")
    fake = Remapped({"data": "volume", "user-namespace": "own"}, own)
    fake.up()
    assert ["chown", "165536:7", "/data"] in fake.commands
    assert fake.facts()["docker"]["settings"] == [{"name": "user-namespace", "asked": "own", "seen": "own"}]


KATA = {"network": "bridge", "data": "volume", "runtime": "kata"}


def test_a_runtime_that_the_daemon_does_not_know_is_a_reason(monkeypatch):
    known = {"runc": {"path": "runc"}, "strata-runsc-ptrace-host": {"path": "/usr/bin/runsc"}, "crun": {}}
    monkeypatch.setattr(docker, "answers", lambda: True)
    monkeypatch.setattr(docker, "_offered", lambda: (known, []))
    said = Docker.refusal(KATA, "host", MACHINE)
    assert "knows no runtime kata (it knows crun, runc): add it to the daemon’s configuration" in said
    assert Docker.refusal({**KATA, "runtime": "crun"}, "host", MACHINE) is None
    # The daemon looks for these itself.
    assert Docker.refusal({**KATA, "runtime": "io.containerd.kata.v2"}, "host", MACHINE) is None


@pytest.mark.parametrize(
    ("runtime", "kind"), [("crun", None), ("youki", None), ("kata", "other"), ("io.containerd.kata.v2", "other")]
)
def test_what_only_a_runtime_knows_of_itself_is_not_said(runtime, kind):
    told = Docker.told({**KATA, "runtime": runtime})
    assert told.get("kind") == kind
    assert told["title"] == f"Docker container by the runtime {runtime}"


def test_what_a_runtime_is_started_by_is_recorded(no_daemon, monkeypatch, tmp_path):
    program = tmp_path / "kata-runtime"
    program.write_text("#!/bin/sh\necho; echo kata-runtime : 3.2; echo commit\n")
    program.chmod(0o755)
    for said, told in (
        ({"path": str(program)}, (str(program), "kata-runtime : 3.2")),
        ({"path": "kata-runtime"}, ("kata-runtime", "not available")),
        ({"runtimeType": "io.containerd.kata.v2"}, ("io.containerd.kata.v2", "not available")),
        ({}, ("not available", "not available")),
    ):
        monkeypatch.setattr(docker, "_offered", lambda said=said: ({"kata": said}, []))
        fake = Fake(KATA)
        fake.up()
        facts = fake.facts()["docker"]
        assert facts["runtime"] == {"name": "kata", "program": told[0], "version": told[1]}
        schema = json.loads((projects.ROOT / "schemas/record.schema.json").read_text())
        jsonschema.validate(facts, schema["properties"]["system"]["properties"]["docker"])
    run = next(argv for argv in fake.commands if argv[:2] == ["docker", "run"])
    assert run[run.index("--runtime") + 1] == "kata"
    # What it leaves is looked for in it, and its group is ended whatever becomes of the container.
    assert [trace["kind"] for trace in fake.traces] == ["group of", "container"]
    fake.left()
    assert fake.commands[-1][:3] == ["docker", "exec", "strata-0"]


def test_a_container_bound_to_cpus_has_as_many():
    assert Fake({"data": "volume", "cpuset-cpus": "0-2,7"}).cpus() == 4
    assert Fake({"data": "volume"}).cpus() is None


def test_what_stood_in_the_plan_before_stands_there_as_it_was():
    entry = {"network": "bridge", "data": "volume"}
    assert Docker.settle(entry, {}) == entry
    assert Docker.told(entry) == {"network": "bridge with NAT", "data": "volume"}


@pytest.fixture
def runsc(monkeypatch, tmp_path):
    """A gVisor that says of its flags what it is told to."""

    def install(flags, program="nothing"):
        (tmp_path / "runsc").write_text(program)
        monkeypatch.setattr(sandbox, "flags", lambda: flags)
        monkeypatch.setattr(sandbox, "version", lambda: "20221219")
        monkeypatch.setattr(sandbox.shutil, "which", lambda name: str(tmp_path / "runsc") if flags else None)
        sandbox.mistaken.cache_clear()

    yield install
    sandbox.mistaken.cache_clear()


GVISOR = {"network": "bridge", "data": "volume", "runtime": "runsc"}


@pytest.mark.parametrize(("flags", "platform"), [(FLAGS_2022, "ptrace"), (FLAGS_2024, "systrap")])
def test_the_platform_is_gvisors_own_unless_it_is_set(runsc, flags, platform):
    runsc(flags)
    settled = Docker.settle(GVISOR, {})
    assert settled == {**GVISOR, "sandbox": {"platform": platform, "stack": "sandbox", "version": "20221219"}}
    assert Docker.settle({**GVISOR, "platform": "kvm"}, {})["sandbox"]["platform"] == "kvm"
    assert sandbox.name(settled) == f"strata-runsc-{platform}-sandbox"


def test_what_the_paper_says_of_a_sandbox_follows_from_its_options(runsc):
    runsc(FLAGS_2022)
    told = Docker.told(Docker.settle({**GVISOR, "stack": "host"}, {}))
    assert told["kind"] == "sandbox"
    assert "ptrace" in told["title"]
    assert told["network"] == "bridge with NAT, the host’s stack"


def test_why_gvisor_is_not_available_is_told_with_what_would_change_it(runsc, monkeypatch):
    def why(entry):
        return Docker.refusal(Docker.settle(entry, {}), "host", MACHINE)

    monkeypatch.setattr(docker, "answers", lambda: True)
    monkeypatch.setattr(docker, "_offered", lambda: ({"runc", "strata-runsc-ptrace-host"}, []))
    host = {**GVISOR, "stack": "host"}
    runsc("")
    assert "`make setup` installs it" in why(host)
    runsc(FLAGS_2022)
    assert why(host) is None
    assert "ptrace, kvm, not systrap" in why({**host, "platform": "systrap"})
    monkeypatch.setattr(docker, "_offered", lambda: ({"runc"}, []))
    assert "`scripts/dockerd.sh runtimes` adds them" in why(host)
    # A daemon that does not answer yet is started with them.
    monkeypatch.setattr(docker, "answers", lambda: False)
    assert why(host) is None


@pytest.mark.parametrize("shown", [True, False])
def test_a_kernel_that_this_gvisor_mistakes_is_told_of(runsc, monkeypatch, shown):
    from strata.base import process

    asked = []

    def capture(argv, **_):
        asked.append(argv)
        return subprocess.CompletedProcess(argv, 0 if shown else 1, "", "")

    monkeypatch.setattr(process, "capture", capture)
    monkeypatch.setattr(process, "as_root", list)
    runsc(FLAGS_2022, "… /proc/sys/net/core/rmem_default …")
    reason = sandbox.refusal(Docker.settle(GVISOR, {}))
    assert asked == [["unshare", "--net", "test", "-e", "/proc/sys/net/core/rmem_default"]]
    assert ("set stack: host" in reason) if shown else reason is None


def test_a_daemon_that_remaps_no_users_is_a_reason(monkeypatch):
    entry = {"network": "host", "data": "volume", "user-namespace": "own"}
    monkeypatch.setattr(docker, "answers", lambda: True)
    monkeypatch.setattr(docker, "_offered", lambda: (set(), ["name=seccomp,profile=default"]))
    assert "--userns-remap" in Docker.refusal(entry, "host", MACHINE)
    monkeypatch.setattr(docker, "_offered", lambda: (set(), ["name=seccomp,profile=default", "name=userns"]))
    assert Docker.refusal(entry, "host", MACHINE) is None


def test_platform_and_stack_are_those_of_the_process_that_is_the_sandbox(runsc):
    runsc(FLAGS_2022)
    gofer = "runsc-gofer --root=/run --platform=kvm gofer"
    assert sandbox.seen([gofer, "runsc-sandbox --root=/run --network=host boot"]) == {
        "platform": "ptrace",
        "stack": "host",
    }
    assert sandbox.seen(["runsc-sandbox --platform=systrap boot"]) == {"platform": "systrap", "stack": "sandbox"}
    assert sandbox.seen([gofer]) == {"platform": "not available", "stack": "not available"}


def test_what_a_sandbox_runs_is_looked_for_inside_of_it(runsc):
    runsc(FLAGS_2022)
    printed = "".join(
        f"==> /proc/{number}/cmdline <==\n{line}\n"
        for number, line in enumerate(
            ["/sbin/docker-init\0--\0sleep\0infinity", "sleep\0infinity", "redis-server\0*:1", "tail\0/proc/1/cmdline"],
            1,
        )
    )
    fake = Fake(Docker.settle(GVISOR, {}), printed)
    assert fake.left() == ["redis-server *:1"]


def test_the_processes_of_a_sandbox_are_those_of_its_control_group(monkeypatch, tmp_path):
    (tmp_path / "memory/strata/c").mkdir(parents=True)
    (tmp_path / "memory/strata/c/cgroup.procs").write_text("41\n42\n")
    monkeypatch.setattr(cgroups, "ROOT", str(tmp_path))
    proc = tmp_path / "proc/41"
    proc.mkdir(parents=True)
    (proc / "cgroup").write_text("4:memory:/strata/c\n1:name=systemd:/elsewhere\n")
    (proc / "stat").write_text("41 (exe) S 7 41 41 0")
    assert cgroups.beside(41, str(tmp_path / "proc")) == [7, 41, 42]


def merged(path, runsc="/usr/bin/runsc"):
    script = [sys.executable, str(projects.ROOT / "scripts/runtimes.py"), str(path), runsc]
    return subprocess.run(script, capture_output=True, text=True, check=False)


def test_a_configuration_of_dockers_keeps_all_that_it_says(tmp_path):
    path = tmp_path / "daemon.json"
    assert set(json.loads(merged(path).stdout)) == {"runtimes"}
    own = {"path": "/opt/own", "runtimeArgs": []}
    said = {"data-root": "/big", "runtimes": {"youki": {"path": "youki"}, "strata-runsc-ptrace-host": own}}
    path.write_text(json.dumps(said))
    found = json.loads(merged(path).stdout)
    assert found["data-root"] == "/big"
    assert found["runtimes"]["youki"] == {"path": "youki"}
    assert found["runtimes"]["strata-runsc-ptrace-host"] == own
    assert found["runtimes"]["strata-runsc-systrap-sandbox"]["runtimeArgs"] == [
        "--platform=systrap",
        "--network=sandbox",
    ]
    names = {f"strata-runsc-{platform}-{stack}" for platform in sandbox.PLATFORMS for stack in sandbox.STACKS}
    assert names <= set(found["runtimes"])
    assert json.loads(path.read_text()) == said


@pytest.mark.parametrize("text", ["{", "[]", '{"runtimes": 3}'])
def test_a_configuration_that_makes_no_sense_is_named(tmp_path, text):
    path = tmp_path / "daemon.json"
    path.write_text(text)
    done = merged(path)
    assert done.returncode == 1
    assert str(path) in done.stderr
    assert "Traceback" not in done.stderr
