"""The state in which programs start: whoever starts Strata, and what a system may have otherwise."""

import os
import shutil
import subprocess
import sys

import pytest

from strata.environments.common import registry
from strata.experiment import config, plan
from strata.host import capacity, observe, starting_state
from strata.host.context import Context
from strata.measure import block
from strata.testbed import lifecycle
from strata.util.errors import CellFailed

PROGRAM = [sys.executable, "-S", starting_state.__file__]
# How a caller may start it → what programs would inherit.
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
    (sys.executable, "-c", "import ctypes, os, sys; ctypes.CDLL(None).prctl(29, 1000000, 0, 0, 0); "
     "os.execvp(sys.argv[1], sys.argv[1:])"): {"timerslack ns"},
    (sys.executable, "-c", "import ctypes, os, sys; ctypes.CDLL(None).prctl(41, 1, 0, 0, 0); "
     "os.execvp(sys.argv[1], sys.argv[1:])"): {"huge pages"},
    (sys.executable, "-c", "import ctypes, os, sys; n = 238 if os.uname().machine == 'x86_64' else 237; "
     "m = ctypes.c_ulong(1); ctypes.CDLL(None).syscall(n, 3, ctypes.byref(m), 64); "
     "os.execvp(sys.argv[1], sys.argv[1:])"): {"memory policy"},
    (sys.executable, "-c", "import ctypes, os, sys; ctypes.CDLL(None).prctl(67, 1, 0, 0, 0); "
     "os.execvp(sys.argv[1], sys.argv[1:])"): {"merged pages"},
    (sys.executable, "-c", "import ctypes, os, struct, sys; n = 314 if os.uname().machine == 'x86_64' else 274; "
     "ctypes.CDLL(None).syscall(n, 0, struct.pack('=2IQiI3Q', 48, 0, 0, 0, 0, 10**8, 0, 0), 0); "
     "os.execvp(sys.argv[1], sys.argv[1:])"): {"time slice"},
}  # fmt: skip


def state_under(*prefix):
    """The state in which a program starts behind some words; None where this machine does not let them."""
    done = subprocess.run(
        [*prefix, *starting_state.look()], capture_output=True, text=True, check=False
    )
    return starting_state.understand(observe.split(done.stdout)) if done.stdout else None


@pytest.mark.parametrize("caller", CALLERS, ids=lambda words: " ".join(words)[:40])
def test_what_a_caller_hands_on_reaches_no_program(caller):
    usual = starting_state.undeclared(state_under(*PROGRAM))
    inherited = state_under(*caller)
    if inherited is None or not shutil.which(caller[0]):
        pytest.skip("this machine does not let anybody start a program so")
    names = CALLERS[caller]
    kept = {name for name in names if starting_state.undeclared(inherited).get(name)}
    usual_of = state_under()
    kept |= {
        name
        for name in names & {"processors", "time slice"}
        if inherited.get(name) != usual_of.get(name)
    }
    found = state_under(*caller, *PROGRAM)
    if os.geteuid() == 0:
        assert starting_state.undeclared(found) == usual
        plain = state_under(*PROGRAM)
        assert all(found.get(name) == plain.get(name) for name in ("processors", "time slice"))
    else:
        # Without root some stays, and is seen.
        assert starting_state.undeclared(found).keys() <= usual.keys() | names
    # The caller's words did change something, unless this machine has one processor or an older kernel, or its shell
    # blocks no signal.
    assert kept or names & {
        "processors",
        "memory policy",
        "blocked signals",
        "merged pages",
        "time slice",
    }


@pytest.mark.parametrize(
    "text", ["", "\0\x01", "Umask:\nSigIgn: zz\nUid:", "1 (a) b) S 1", "Max open files  x", "none"]
)
def test_a_state_that_is_cut_or_odd_is_read_as_far_as_it_goes(text):
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
        found = starting_state.understand({f"/proc/self/{name}": text, "/proc/cpuinfo": text})
        assert all(isinstance(value, str) and value for value in found.values())
    assert starting_state.understand({}) == {}


NATIVE = {
    "nice": "0",
    "limit nofile": "16384",
    "seccomp": "0",
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
        # As natively, which it is by the option alone.
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
def test_what_differs_from_native_is_declared_by_a_layer_or_option_or_fails_the_cell(
    stack, changed, by, tmp_path
):
    top = registry.build(stack, Context("strata-x", str(tmp_path), None))[-1]
    if by is None:
        (value,) = changed.values()
        (name,) = changed
        with pytest.raises(CellFailed) as caught:
            lifecycle.compare_state(top, NATIVE | changed, NATIVE)
        assert all(text in str(caught.value) for text in (name, NATIVE[name], value))
        return
    found = lifecycle.compare_state(top, NATIVE | changed, NATIVE)
    assert found["values"] == NATIVE | changed
    rows = {row["name"]: row for row in found["differences"]}
    assert {name: row["by"].partition(":")[0] for name, row in rows.items()} == by
    assert {
        name: (row["native"], row["here"]) for name, row in rows.items() if name in changed
    } == {name: (NATIVE[name], value) for name, value in changed.items()}


def test_only_a_part_that_a_system_does_not_show_is_no_difference(tmp_path):
    top = registry.build([{"docker": DOCKER}], Context("strata-x", str(tmp_path), None))[-1]
    part = {"nice": NATIVE["nice"]}
    assert lifecycle.compare_state(top, part, NATIVE) == {"values": part, "differences": []}
    with pytest.raises(CellFailed):
        lifecycle.compare_state(top, {}, NATIVE)


def test_a_callers_mask_is_part_of_the_experiment(project, monkeypatch):
    project()
    monkeypatch.setattr(starting_state, "online", lambda: {0, 1, 2, 3})
    fingerprints = set()
    for usable, mask in (({0, 1, 2, 3}, None), ({1}, "1"), ({0, 2, 3}, "0,2-3")):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, usable=usable: usable)
        facts = capacity.facts()
        assert (facts["cpus"], facts["mask"]) == (len(usable), mask)
        made = config.experiment(config.read(), facts)
        assert block.processors(made) == usable
        fingerprints.add(plan.fingerprint(made, "bare", "noop"))
    assert len(fingerprints) == 3
