"""Interference by other programs and by the hypervisor: its readings, and its judgement."""

import json
import os
import subprocess
import sys
import time

import projects
import pytest

from strata.experiment import config, plan, planning
from strata.measure import interference
from strata.util.errors import CellFailed

THRESHOLDS = config.plan_interference({})["thresholds"]
CALM = {"load1": 0.1, "temperature_c": "not available"}
SPIN = [sys.executable, "-c", "while True: pass"]


def reading(moment=0.0, steal=0, idle=0, processes=None, throttled=None, swapped=0, clock=0.0):
    """A reading with these counters, and the first process."""
    usages = {(1, "1"): interference.Usage("init", 0, 0.0, 0.0), **(processes or {})}
    ticks = (0, 0, 0, idle, 0, 0, 0, steal, 0, 0)
    return interference.Reading(moment, ticks, usages, throttled, swapped, clock)


def usage(own, waited=0.0, parent=1, name="cc1"):
    return interference.Usage(name, parent, own, waited)


def judged(early, late, thresholds=THRESHOLDS, **moment):
    seen = {**CALM, **interference.compare_readings(early, late, (), measuring=True), **moment}
    return interference.flag_exceeded_thresholds(
        "during", late.timestamp - early.timestamp, seen, thresholds
    )


def flags_of(early, late, **more):
    return [(flag["what"], flag["when"], flag["value"]) for flag in judged(early, late, **more)]


@pytest.mark.parametrize(
    ("late", "flag"),
    [
        ({"steal": 100, "idle": 900}, ("steal", "during", 0.1)),
        ({"swapped": 3 * 2**20}, ("swap", "during", 2 * 2**20)),
        ({"processes": {(50, "7"): usage(2.0)}}, ("busy", "during", 0.1)),
        ({"throttled": 4}, ("throttled", "during", 1)),
    ],
)
def test_what_crosses_its_threshold_is_flagged(late, flag):
    processes = {(50, "7"): usage(1.0)}
    early = reading(0, processes=processes, throttled=3, swapped=2**20)
    settled = {"processes": processes, "throttled": early.throttled, "swapped": early.swapped}
    assert flags_of(early, reading(10, **{**settled, **late})) == [flag]


def test_nothing_is_judged_that_cannot_be_read_or_has_no_threshold():
    nothing = interference.Reading(0, (), None, None, None, 0.0)
    seen = interference.compare_readings(nothing, nothing, ())
    assert set(seen.values()) == {"not available"}
    moment = {"load1": "not available", "temperature_c": "not available"}
    assert (
        interference.flag_exceeded_thresholds(
            "before", 0.0, {**moment, **seen}, {**THRESHOLDS, "load": 0}
        )
        == []
    )
    busy = reading(10, steal=500, processes={(50, "7"): usage(9.0)}, swapped=2**40)
    assert flags_of(reading(swapped=0), busy, thresholds=dict.fromkeys(THRESHOLDS)) == []


def test_what_is_judged_is_what_the_schemas_say():
    schemas = projects.ROOT / "schemas"
    record = json.loads((schemas / "record.schema.json").read_text())
    planned = json.loads((schemas / "plan.schema.json").read_text())
    flag = record["properties"]["interference"]["properties"]["flags"]["items"]["properties"]
    whats = set(THRESHOLDS)
    assert whats == set(flag["what"]["enum"])
    assert whats == set(planned["$defs"]["thresholds"]["properties"])
    seen = {"load1": 9, "temperature_c": 99, "steal_share": 1}
    seen |= {"processes_share": 9, "processes": [], "swapped_bytes": 9, "throttled": 9}
    flagged = set()
    for when in ("before", "during"):
        flags = interference.flag_exceeded_thresholds(when, 10.0, seen, dict.fromkeys(whats, 0))
        flagged.update(flag["what"] for flag in flags)
    assert flagged == whats


def test_children_that_were_waited_for_count_from_the_first_reading_on():
    make = {(50, "7"): usage(1.0, waited=10.0, name="make")}
    children = {(51, "8"): usage(3.0, parent=50), (52, "9"): usage(0.5, parent=50)}
    early = reading(processes={**make, **children})
    # 51 had used 3 s and ended with 5; another came and went in between, and used 1.
    make = {(50, "7"): usage(1.5, waited=16.0, name="make")}
    late = reading(10, processes={**make, (52, "9"): usage(0.75, parent=50)})
    spent = interference.compute_cpu_seconds(early, late)
    assert spent[50, "7"] == pytest.approx(0.5 + 3.0)
    assert spent[52, "9"] == pytest.approx(0.25)
    # An id that was given to another process is another process.
    again = reading(10, processes={(51, "77"): usage(2.0)})
    assert interference.compute_cpu_seconds(early, again)[51, "77"] == 2.0


TREE = """
import ctypes, os, sys, time
def spin(seconds):
    while time.process_time() < seconds: pass
def wait_for_line(): sys.stdin.readline()
kind = sys.argv[1]
ctypes.CDLL(None).prctl(36, 1)  # takes in orphans
ready, say_ready = os.pipe()
go, start = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        spin(0.8); os.write(say_ready, b"x"); os.read(go, 1); os._exit(0)
    os.read(go, 1)
    if kind == "together": os.wait()
    os._exit(0)
os.read(ready, 1); print("ready", flush=True); wait_for_line()
# The parent ends first where it waits for no child.
os.write(start, b"xx"); os.wait()
if kind == "orphan": os.wait()
print("ended", flush=True); wait_for_line()
"""


@pytest.mark.parametrize("kind", ["together", "orphan"])
def test_a_tree_that_ended_is_charged_what_it_used_meanwhile(kind):
    argv = [sys.executable, "-S", "-c", TREE, kind]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as top:
        assert top.stdout.readline() == "ready\n"
        early = interference.take_reading()
        top.stdin.write("\n")
        assert top.stdout.readline() == "ended\n"
        late = interference.take_reading()
        top.stdin.write("\n")
    spent = interference.compute_cpu_seconds(early, late)
    [key] = [key for key in spent if key[0] == top.pid]
    assert late.processes[key].waited >= 0.7
    assert spent[key] < 0.3


def test_this_machine_can_be_read_and_a_busy_process_is_seen():
    early = interference.take_reading()
    assert early.processes is None or (os.getpid() in [pid for pid, _ in early.processes])
    if early.processes is None:
        pytest.skip("other users' processes are hidden here")
    # Not below this process: its parent ends at once.
    argv = ["sh", "-c", '"$@" >/dev/null 2>&1 & echo $!', "sh", *SPIN]
    pid = int(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    try:
        time.sleep(0.6)
        late = interference.take_reading()
    finally:
        os.kill(pid, 9)
    name = next(usage.name for (known, _), usage in late.processes.items() if known == pid)
    seen = interference.compare_readings(early, late, (), measuring=True)
    assert seen["processes_share"] > 0.1
    assert name in [entry["name"] for entry in seen["processes"]]
    busy = next(flag for flag in judged(early, late) if flag["what"] == "busy")
    assert interference.describe_main_cause([busy]).endswith(" % of a CPU")


def test_no_setting_makes_a_cell_another_one(project):
    project()
    facts = {"cpus": 2, "mask": None, "memory_bytes": 2**34, "cache_bytes": None}
    plans = [
        planning.build_plan(config.read_config({"interference": settings}), facts)
        for settings in ({}, {"action": "retry", "busy": "50%"}, {"load": 3})
    ]
    assert len({json.dumps(one["interference"]) for one in plans}) == 3
    assert len({plan.compute_fingerprint(one, "bare", "noop") for one in plans}) == 1


@pytest.mark.parametrize("step", [0.0004, -0.0015, 30])
def test_a_clock_that_is_set_during_a_run_spoils_it(monkeypatch, step):
    readings = [reading(0, clock=5.0), reading(1, clock=9.0), reading(11, clock=9.0 + step)]
    monkeypatch.setattr(interference, "take_reading", iter(readings).__next__)
    monitor = interference.InterferenceMonitor(config.plan_interference({}))
    # Nothing is timed before the run.
    monitor.take_reading_before_run([])
    if abs(step) < 0.001:
        monitor.take_reading_after_run([])
    else:
        with pytest.raises(CellFailed, match="clock was set by"):
            monitor.take_reading_after_run([])
    assert set(monitor.host) == {"static", "before", "after", "during"}


@pytest.mark.parametrize(
    ("stolen", "readings"),
    [
        ([0], 0),  # no hypervisor ever took anything
        ([9, 1], 7),  # less than matters
        ([9, 10, 0, 0, 12], 11),  # seven calm readings after the last burst
        ([9] + [10] * 2000, 40),  # for ever
    ],
)
def test_a_cell_waits_until_the_hypervisor_takes_nothing_any_more(monkeypatch, stolen, readings):
    seen = []

    def times(_cpus):
        seen.append(stolen[len(seen)] if len(seen) < len(stolen) else 0)
        return 100 * len(seen) - sum(seen), 0, 0, 0, 0, 0, 0, sum(seen)

    clock = [0.0]
    monkeypatch.setattr(interference.observe, "read_cpu_times", times)
    monkeypatch.setattr(interference.time, "monotonic", lambda: clock[0])

    def sleep(seconds):
        clock[0] += seconds

    monkeypatch.setattr(interference.time, "sleep", sleep)
    interference.wait_for_memory_reclaim(0.02)
    assert len(seen) - 1 == readings


@pytest.mark.parametrize(
    ("group", "ours"), [("strata-x", True), ("0a1b", True), ("strata-y", False)]
)
def test_what_another_home_left_running_is_not_ours(tmp_path, monkeypatch, group, ours):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))
    (tmp_path / "systems/strata-x").mkdir(parents=True)
    (tmp_path / "systems/strata-x/container").write_text("0a1b")
    read = interference.observe.read_file

    def read_other(path):
        if path.endswith("/cgroup"):
            return f"1:cpu:/strata/{group}\n"
        return "work" if "cmdline" in path else read(path)

    monkeypatch.setattr(interference.observe, "read_file", read_other)
    assert (
        interference.is_process_of_this_run(
            7, {7: interference.Usage("work", 1, 1.0, 0.0)}, set(), ()
        )
        is ours
    )
