"""The state in which programs start, whoever starts Strata, and its differences in a system."""

import os
import shutil
import subprocess
import sys

import pytest

from strata.environments.common import registry
from strata.experiment import config, plan, planning
from strata.host import capacity, observe, starting_state
from strata.host.context import Context
from strata.measure import block
from strata.testbed import lifecycle
from strata.util.errors import CellFailed

PROGRAM = [sys.executable, "-S", starting_state.__file__]
ON = "; os.execvp(sys.argv[1], sys.argv[1:])"
X86_64 = "os.uname().machine == 'x86_64'"


def calling(code):
    """Return the command that makes a system call by `libc`, and then runs the rest."""
    return (
        sys.executable,
        "-c",
        f"import ctypes, os, struct, sys; libc = ctypes.CDLL(None); {code}{ON}",
    )


# How a caller may start a program → the values that it would inherit.
CALLERS = {
    ("nice", "-n", "7"): {"nice"},
    ("chrt", "--batch", "0"): {"scheduling"},
    ("chrt", "--idle", "0"): {"scheduling"},
    ("chrt", "--fifo", "1"): {"scheduling", "real-time priority"},
    ("ionice", "-c", "3"): {"I/O class"},
    ("ionice", "-c", "2", "-n", "7"): {"I/O class"},
    ("setarch", "-R"): {"personality"},
    ("choom", "-n", "300", "--"): {"oom score adj"},
    ("sh", "-c", 'umask 077; exec "$@"', "sh"): {"umask"},
    ("sh", "-c", 'umask 0; exec "$@"', "sh"): {"umask"},
    ("sh", "-c", 'trap "" HUP INT QUIT USR1 TSTP; exec "$@"', "sh"): {"ignored signals"},
    ("env", "--block-signal=USR2"): {"blocked signals"},
    ("prlimit", "--nofile=700:"): {"limit nofile"},
    ("prlimit", "--stack=4194304:"): {"limit stack"},
    ("prlimit", "--core=1048576:"): {"limit core"},
    ("prlimit", "--cpu=9999:"): {"limit cpu"},
    ("prlimit", "--nproc=9999:"): {"limit nproc"},
    ("taskset", "-c", "0"): {"processors"},
    calling("libc.prctl(29, 1000000, 0, 0, 0)"): {"timerslack ns"},
    calling("libc.prctl(41, 1, 0, 0, 0)"): {"huge pages"},
    calling(
        "mask = ctypes.c_ulong(1); "
        f"libc.syscall(238 if {X86_64} else 237, 3, ctypes.byref(mask), 64)"
    ): {"memory policy"},
    calling("libc.prctl(67, 1, 0, 0, 0)"): {"merged pages"},
    calling(
        "attributes = struct.pack('=2IQiI3Q', 48, 0, 0, 0, 0, 10**8, 0, 0); "
        f"libc.syscall(314 if {X86_64} else 274, 0, attributes, 0)"
    ): {"time slice"},
}
# Values that some machines do not change: those with one processor, an older kernel, or a shell
# that blocks no signal.
SOMETIMES = {"processors", "memory policy", "blocked signals", "merged pages", "time slice"}


def state_under(*prefix):
    """Return the state in which another program starts this one; None if it cannot."""
    command = [*prefix, *starting_state.build_state_command()]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return (
        starting_state.parse_process_state(observe.split_printed_files(printed))
        if printed
        else None
    )


@pytest.mark.parametrize("caller", CALLERS, ids=lambda argv: " ".join(argv)[-40:])
def test_no_state_of_a_caller_reaches_a_program(caller):
    usual = starting_state.find_undeclared_values(state_under(*PROGRAM))
    inherited = state_under(*caller)
    if inherited is None or not shutil.which(caller[0]):
        pytest.skip("this machine does not allow it")
    names = CALLERS[caller]
    changed = names & starting_state.find_undeclared_values(inherited).keys()
    assert changed or names & SOMETIMES
    state = state_under(*caller, *PROGRAM)
    if os.geteuid() == 0:
        assert starting_state.find_undeclared_values(state) == usual
        plain = state_under(*PROGRAM)
        assert all(state.get(name) == plain.get(name) for name in ("processors", "time slice"))
    else:
        # Without root some values stay, and are seen.
        assert starting_state.find_undeclared_values(state).keys() <= usual.keys() | names


@pytest.mark.parametrize(
    "text", ["", "\0\x01", "Umask:\nSigIgn: zz\nUid:", "1 (a) b) S 1", "Max open files  x", "none"]
)
def test_an_incomplete_or_odd_state_is_read_as_far_as_it_goes(text):
    names = (
        "status",
        "stat",
        "limits",
        "ioprio",
        "numa_maps",
        "oom_score_adj",
        "personality",
        "coredump_filter",
    )
    for name in names:
        state = starting_state.parse_process_state(
            {f"/proc/self/{name}": text, "/proc/cpuinfo": text}
        )
        assert all(isinstance(value, str) and value for value in state.values())
    assert starting_state.parse_process_state({}) == {}


NATIVE = {
    "nice": "0",
    "limit nofile": "16384",
    "seccomp": "0",
    "huge pages": "1",
    "processors": "0-1",
    "capabilities": "ff",
}
DOCKER = {"network": "bridge", "data": "volume"}


@pytest.mark.parametrize(
    ("stack", "changed", "by"),
    [
        ([{"chroot": {}}], {}, {}),
        ([{"chroot": {}}], {"nice": "10"}, None),
        ([{"chroot": {}}], {"processors": "1"}, None),
        (
            [{"chroot": {"numactl": "--physcpubind=1"}}],
            {"processors": "1"},
            {"processors": "option numactl"},
        ),
        (
            [{"chroot": {"huge_pages": False}}],
            {"huge pages": "0"},
            {"huge pages": "option huge_pages"},
        ),
        (
            [{"docker": DOCKER}],
            {"seccomp": "2", "capabilities": "0f"},
            {"seccomp": "docker", "capabilities": "docker"},
        ),
        ([{"docker": DOCKER}], {"limit nofile": "1024:524288"}, None),
        ([{"docker": DOCKER}], {"processors": "0"}, None),
        (
            [{"docker": DOCKER | {"cpuset-cpus": "0"}}],
            {"processors": "0"},
            {"processors": "option cpuset-cpus"},
        ),
        # An option is named even where its value is native's.
        ([{"docker": DOCKER | {"seccomp": "unconfined"}}], {}, {"seccomp": "option seccomp"}),
        ([{"docker": DOCKER | {"seccomp": "unconfined"}}], {"nice": "-5"}, None),
        (
            [{"podman": DOCKER | {"runtime": "crun"}}],
            {"capabilities": "0f"},
            {"capabilities": "podman"},
        ),
        ([{"lxc": {}}], {"limit nofile": "99"}, None),
    ],
)
def test_a_difference_from_native_is_declared_by_a_layer_or_option_or_fails_the_cell(
    stack, changed, by, tmp_path
):
    top = registry.build_stack(stack, Context("strata-x", str(tmp_path), None))[-1]
    if by is None:
        ((name, value),) = changed.items()
        with pytest.raises(CellFailed) as caught:
            lifecycle.check_starting_state(top, NATIVE | changed, NATIVE)
        assert all(text in str(caught.value) for text in (name, NATIVE[name], value))
        return
    compared = lifecycle.check_starting_state(top, NATIVE | changed, NATIVE)
    assert compared["values"] == NATIVE | changed
    rows = {row["name"]: row for row in compared["differences"]}
    assert {name: row["by"].partition(":")[0] for name, row in rows.items()} == by
    assert {
        name: (row["native"], row["here"]) for name, row in rows.items() if name in changed
    } == {name: (NATIVE[name], value) for name, value in changed.items()}


def test_a_value_that_a_system_does_not_show_is_no_difference_but_no_value_at_all_is(tmp_path):
    top = registry.build_stack([{"docker": DOCKER}], Context("strata-x", str(tmp_path), None))[-1]
    shown = {"nice": NATIVE["nice"]}
    assert lifecycle.check_starting_state(top, shown, NATIVE) == {
        "values": shown,
        "differences": [],
    }
    with pytest.raises(CellFailed):
        lifecycle.check_starting_state(top, {}, NATIVE)


def test_a_callers_mask_is_part_of_the_experiment(project, monkeypatch):
    project()
    monkeypatch.setattr(starting_state, "list_online_cpus", lambda: {0, 1, 2, 3})
    fingerprints = set()
    for usable, mask in (({0, 1, 2, 3}, None), ({1}, "1"), ({0, 2, 3}, "0,2-3")):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, usable=usable: usable)
        facts = capacity.read_host_facts()
        assert (facts["cpus"], facts["mask"]) == (len(usable), mask)
        experiment = planning.build_plan(config.read_config(), facts)
        assert block.list_measured_cpus(experiment) == usable
        fingerprints.add(plan.compute_fingerprint(experiment, "bare", "noop"))
    assert len(fingerprints) == 3
