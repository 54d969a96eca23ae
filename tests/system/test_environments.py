"""Environments differ in what their layers and options say, and in nothing else."""

import contextlib
import os
import subprocess
import time

import projects
import pytest

from strata.environments.common import registry
from strata.experiment import config, planning
from strata.host import capacity, cgroups, observe
from strata.host.context import VARIABLES
from strata.measure import neighbour
from strata.measure.shell import SHELL_PROGRAM, Shell
from strata.testbed import journal, lifecycle
from strata.util import locks

ENVIRONMENTS = ["native", "docker", "docker-hostnet", "docker-layered"]
# Options of layers that need some.
OPTIONS_OF = {
    "podman": {"network": "bridge", "data": "volume", "runtime": "runc"},
    "brake": {"share": 0.05},
}
# Podman imports the image first.
SLOW = {"podman"}


def stacks():
    """The config's environments, and one for each other layer that is on top of none of them."""
    settings = config.read_config(path=projects.ROOT / "config.yaml")
    stacks_by_name = {name: entry["layers"] for name, entry in settings["environments"].items()}
    tops = {next(iter(stack[-1])) for stack in stacks_by_name.values()} | {"host"}
    # test_servers.py has those whose programs are in an image of their own.
    packed = {
        name
        for name in registry.list_layer_names()
        if registry.load_layer_class(name).image_packages
    }
    for name in set(registry.list_layer_names()) - tops - packed:
        below = registry.load_layer_class(name).stands_on[0]
        stacks_by_name[name] = [
            *([] if below == "host" else [{below: {}}]),
            {name: OPTIONS_OF.get(name, {})},
        ]
    return stacks_by_name


def every_layer():
    """The names of these environments as parameters; with a machine, one for each stack."""
    rows, seen = [], set()
    for name, stack in stacks().items():
        names = tuple(layer for entry in stack for layer in entry)
        machine = any(registry.load_layer_class(layer).isolation == "machine" for layer in names)
        if not machine or names not in seen:
            rows.append(pytest.param(name, marks=[pytest.mark.long] * (machine or name in SLOW)))
        seen.add(names)
    return rows


@pytest.fixture
def up(checkout, image, machine_stays):
    """Bring an environment up under the machine's lock; everything is down afterwards.

    Gives the top of its stack, or with `whole` its system.  beside: others stay up.
    """
    settings = config.read_config()
    settings["environments"] = {
        name: {"label": name, "layers": stack} for name, stack in stacks().items()
    }
    planned = planning.build_plan(settings, capacity.read_host_facts())["environments"]

    def bring(name, beside=False, whole=False):
        if not planned[name]["available"]:
            pytest.skip(planned[name]["reason"])
        if not beside:
            lifecycle.take_down_systems()
        system = lifecycle.System(name, planned[name]["layers"], image)
        return system if whole else system.top

    with locks.hold_machine_lock():
        yield bring
        lifecycle.take_down_systems()


def inside(top, *argv):
    return subprocess.run(
        top.build_measured_command(list(argv)), capture_output=True, text=True, check=True
    ).stdout.strip()


NAMESPACES = ["mnt", "net", "pid", "uts", "ipc"]


def namespaces(top):
    paths = [f"/proc/self/ns/{name}" for name in NAMESPACES]
    return dict(zip(NAMESPACES, inside(top, "readlink", *paths).split(), strict=True))


def groups_of_process(pid):
    try:
        with open(f"/proc/{pid}/cgroup") as file:
            return file.read()
    except OSError:
        return ""


def host_namespaces():
    return {name: os.readlink(f"/proc/self/ns/{name}") for name in NAMESPACES}


def test_native_is_the_bare_host_with_the_images_files(up, image):
    top = up("native")
    assert namespaces(top) == host_namespaces()
    assert inside(top, "cat", "/etc/debian_version").startswith("13")
    assert inside(top, "stat", "-c", "%d", "/data") == str(os.stat(top.context.data).st_dev)


def test_native_cannot_change_the_images_files(up):
    done = subprocess.run(
        up("native").build_measured_command(["touch", "/opt/strata/x"]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "Read-only" in done.stderr


@pytest.mark.parametrize(
    ("name", "shared", "data_in_layers"),
    [("docker", [], False), ("docker-hostnet", ["net"], False), ("docker-layered", [], True)],
)
def test_a_container_shares_with_the_host_only_what_its_options_say(
    up, name, shared, data_in_layers
):
    top = up(name)
    host, container = host_namespaces(), namespaces(top)
    assert [kind for kind in NAMESPACES if host[kind] == container[kind]] == shared
    assert inside(top, "stat", "-f", "-c", "%T", "/") == "overlayfs"
    data = inside(top, "stat", "-f", "-c", "%T", "/data")
    assert (data == "overlayfs") is data_in_layers
    assert top.get_address().count(".") == 3


def test_all_run_the_same_program_with_the_same_variables(up):
    seen = set()
    for name in ENVIRONMENTS:
        top = up(name)
        program = inside(top, "sha256sum", "/opt/strata/workloads/linpack/linpack")
        seen.add((program, inside(top, "env"), inside(top, "id", "-u")))
    assert len(seen) == 1
    assert set(next(iter(seen))[1].splitlines()) == set(VARIABLES)


def test_native_and_containers_have_one_parent_group_in_every_hierarchy(up):
    parents = {}
    for name in ENVIRONMENTS:
        groups = inside(up(name), "cat", "/proc/self/cgroup").splitlines()
        parents[name] = {
            line.split(":", 2)[0]: os.path.dirname(line.split(":", 2)[2]) for line in groups
        }
    assert len({frozenset(parent.items()) for parent in parents.values()}) == 1
    assert set(parents["native"].values()) <= {"/strata", "/strata.slice"}


@pytest.mark.parametrize("name", every_layer())
def test_a_file_goes_in_and_comes_back_byte_for_byte(up, name, tmp_path):
    top = up(name)
    content = os.urandom(100_000)
    (tmp_path / "in").write_bytes(content)
    top.copy_file_in(str(tmp_path / "in"), "/data/file")
    # Not by `stat`: gVisor of Debian 12 does not know what that of Debian 13 asks for.
    assert inside(top, "sh", "-c", "wc -c </data/file") == "100000"
    top.copy_file_out("/data/file", str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == content


def test_a_process_that_a_native_run_leaves_is_ended_with_the_system(up):
    top = up("native")
    subprocess.run(
        top.build_measured_command(["sh", "-c", "setsid sleep 4327 >/dev/null 2>&1 &"]), check=True
    )
    find = ["pgrep", "-f", "^sleep 4327$"]
    projects.until(lambda: subprocess.run(find, capture_output=True, check=False).returncode == 0)
    lifecycle.take_down_systems()
    assert subprocess.run(find, capture_output=True, check=False).returncode == 1


def test_a_brake_takes_its_share_of_every_processor_and_nothing_while_frozen(up):
    group = up("brake").find_cgroup()

    def brakes():
        names = {
            process: observe.read_files([f"/proc/{process}/comm"])
            for process in cgroups.list_group_processes(group)
        }
        started = [process for process, texts in names.items() if "python3" in texts.values()]
        return started if len(started) >= os.cpu_count() else []

    processes = projects.until(brakes)

    def used():
        return sum(
            int(open(f"/proc/{process}/schedstat").read().split()[0]) for process in processes
        )

    def taken(seconds):
        before, begun = used(), time.monotonic_ns()
        time.sleep(seconds)
        return (used() - before) / (time.monotonic_ns() - begun) / len(processes)

    time.sleep(0.5)
    assert 0.04 < taken(2) < 0.06
    folders = cgroups.find_freezable_folders(group)
    cgroups.set_groups_frozen(folders)
    try:
        assert taken(1) == 0
    finally:
        cgroups.set_groups_frozen(folders, False)
    # The share of the time while it was frozen is not made up for.
    assert taken(1) < 0.06


def test_a_container_of_somebody_else_is_never_touched(up, image):
    # Docker has the image once a container of it is up.
    up("docker")
    argv = ["docker", "run", "--detach", "--rm", "--network", "none", image["id"], "sleep", "300"]
    other = subprocess.check_output(argv, text=True).strip()
    try:
        lifecycle.take_down_systems()
        registry.load_layer_class("docker").remove_systems()
        state = subprocess.check_output(
            ["docker", "inspect", "-f", "{{.State.Running}}", other], text=True
        )
        assert state.strip() == "true"
    finally:
        subprocess.run(["docker", "rm", "--force", other], capture_output=True, check=True)


def test_a_sandbox_has_a_kernel_of_its_own_and_stands_beside_the_containers(up):
    system = up("docker-gvisor", whole=True)
    top = system.top
    release = inside(top, "cat", "/proc/version").split()[2]
    assert release != os.uname().release
    facts = system.facts["facts"]["docker"]["sandbox"]
    assert facts["program"] == "runsc"
    assert facts["platform"] in ("ptrace", "systrap", "kvm")
    assert facts["stack"] == "host"
    # A sandbox does not show its control groups: those of its processes are read on the host.
    processes = top.list_memory_processes()
    lines = [
        line
        for line in open(f"/proc/{processes[-1]}/cgroup").read().splitlines()
        if not line.endswith(":/")
    ]
    assert lines
    assert {os.path.dirname(line.split(":", 2)[2]) for line in lines} <= {
        "/strata",
        "/strata.slice",
    }


def seconds_used():
    """Seconds of CPU time of all processes in Strata's control groups, by their ids."""
    seconds = {}
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        if any(f"/{group}/" in groups_of_process(pid) for group in ("strata", "strata.slice")):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
                seconds[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def test_systems_that_wait_for_their_turn_stand_idle_and_tell_their_own_from_others(up, tmp_path):
    first = up("native", whole=True)
    systems = [first] + [
        up(name, True, True) for name in ("docker", "docker-layered", "docker-gvisor")
    ]
    tops = [system.top for system in systems]
    assert len(journal.read_entries()) == len(tops)
    # In each system a shell waits: its commands run in the same place as those without a shell.
    shells = [Shell(top.build_plain_command([SHELL_PROGRAM], reads_stdin=True)) for top in tops]
    for top, shell in zip(tops, shells, strict=True):
        for argv in (["env"], ["id", "-u"], ["hostname"], ["cat", "/proc/self/mounts"]):
            with open(tmp_path / "printed", "wb") as file:
                assert shell.run(top.context.wrap_with_variables(argv), file.write, 60)[0] == 0
            assert (tmp_path / "printed").read_text().strip() == inside(top, *argv)
    for system in systems:
        system.set_frozen(True)
    time.sleep(1)
    before = seconds_used()
    time.sleep(3)
    after = seconds_used()
    assert len(after) >= 3
    assert sum(after[pid] - before.get(pid, 0.0) for pid in after) <= 0.03 * 3
    for system in systems:
        system.set_frozen(False)
    for shell in shells:
        shell.close()
    assert [inside(top, "cat", "/etc/os-release") for top in tops] == [
        inside(tops[0], "cat", "/etc/os-release")
    ] * 4


OPTIONS = {"seccomp": "unconfined", "cpuset-cpus": "0", "memory": "1GiB", "cpus": 0.5}
OPTIONS |= {"cpu-burst": 50, "cpu-shares": 512}


def test_what_a_container_may_do_is_what_was_asked_for(up, image):
    entry = {"network": "host", "data": "tmpfs", **OPTIONS}
    system = lifecycle.System("bounded", [{"docker": entry}], image)
    seen = {
        setting["name"]: setting["observed"]
        for setting in system.facts["facts"]["docker"]["settings"]
    }
    assert seen == {
        "data": "tmpfs",
        "seccomp": "unconfined",
        "cpuset-cpus": "0",
        "memory": str(2**30),
        "cpus": "0.5",
        "cpu-burst": "50000",
        "cpu-shares": "not available" if cgroups.is_unified() else "512",
    }
    assert inside(system.top, "nproc") == "1"
    assert lifecycle.observe_system(system.top)[0]["processors"] == "0"


def test_a_busy_neighbour_works_until_the_command_ends_however_it_does(up):
    context = up("native").context
    with neighbour.run_busy_neighbour(context, 60) as usage:
        time.sleep(1)
    assert 0.2 < usage["cpu_seconds"] <= 1.2 * usage["processors"] * usage["seconds"]
    with contextlib.suppress(ZeroDivisionError), neighbour.run_busy_neighbour(context, 60):
        assert cgroups.list_group_processes(f"{context.id}-neighbour")
        raise ZeroDivisionError
    assert not cgroups.find_group_folders(f"{context.id}-neighbour")


# A terminal or job that limits the processes that it starts.
LIMITED = 'umask 077; ulimit -Sn 700; ulimit -Ss 4096; trap "" HUP INT QUIT; exec "$@"'
CALLER = [
    *("sh", "-c", LIMITED, "sh", "nice", "-n", "10", "chrt", "--batch", "0"),
    *("ionice", "-c", "3", "setarch", "-R", "taskset", "-c", "1"),
]


@pytest.mark.skipif(os.cpu_count() == 1, reason="a mask needs two processors")
@pytest.mark.parametrize(
    "names",
    [
        ["docker", "docker-gvisor"],
        pytest.param(["podman", "lxc", "vm", "vm-docker"], marks=pytest.mark.long),
    ],
)
def test_whoever_starts_a_run_all_environments_start_alike(image, tmp_path, machine_stays, names):
    known_stacks = stacks()
    page = projects.default(
        repetitions=1,
        environments={name: {"layers": known_stacks[name]} for name in ("native", *names)},
        workloads={"stream": {"elements": 1_000_000, "trials": 3, "laps": 2}},
    )
    folder = projects.make(tmp_path / "project", page)
    argv = [*CALLER, *projects.command("snakemake", "--cores", "1", "cells")]
    done = subprocess.run(
        argv, cwd=folder, env=projects.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    records = {record["environment"]: record for record in projects.records(folder)}
    native = records["native"]["starting_state"]
    assert native["differences"] == []
    assert native["values"]["processors"] == "1"
    assert {"native"} < records.keys()
    for name, record in records.items():
        state = record["starting_state"]
        assert record["parameters"]["threads"] == 1
        assert all(
            row["by"].partition(":")[0] in ("docker", "podman", "lxc", "vm")
            for row in state["differences"]
        )
        limits = {key: value for key, value in state["values"].items() if key.startswith("limit ")}
        assert limits.items() <= native["values"].items(), name
        on_host = state["values"].get("processors on the host", state["values"].get("processors"))
        assert on_host == "1"
    # Without the mask it is another experiment, of which nothing was measured.
    due = projects.good(folder, "strata", "plan").stdout
    assert f"{len(records)} of {len(records)} cells are due" in due
