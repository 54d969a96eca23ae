"""Laps that are left out because the machine was disturbed, and no others."""

import subprocess
import time

import measured
import projects
import pytest

from strata.measure import costs, interference, laps, parsing

SPIN = ["timeout", "0.6", "sh", "-c", "while :; do :; done"]
THRESHOLDS = {"busy": 0.05, "steal": None}
SPENDERS = {name: costs.Spender() for name in ("native", "docker")}


@pytest.mark.parametrize("outside", [True, False])
def test_a_busy_process_outside_of_all_that_is_measured_disturbs_a_lap_and_one_inside_does_not(
    outside,
):
    monitor = laps.LapMonitor(THRESHOLDS, SPENDERS, ())
    early = interference.take_reading()
    if outside:
        # Its parent ends at once, so that it does not belong to this process.
        subprocess.run(["sh", "-c", '"$@" >/dev/null 2>&1 &', "sh", *SPIN], check=True)
        time.sleep(0.7)
    else:
        subprocess.run(SPIN, check=False)
    late = interference.take_reading()
    monitor.end_run(1, ["native"], "whole")
    [lap] = monitor.close_and_judge_laps()
    if "busy" not in monitor.judged:
        pytest.skip("the kernel does not count the time of control groups here")
    [run] = lap["runs"]
    if outside:
        assert run["busy"] > 0.2
        assert run["disturbed_by"] == ["busy"]
    else:
        # Other programs of the machine may be busy, too.
        others = interference.compare_readings(early, late, (), measuring=True)["processes_share"]
        assert run["busy"] < others + 0.6


def judged_laps(monkeypatch, *seconds):
    """The laps of two environments in which foreign processes used so many seconds of ten."""
    monitor = laps.LapMonitor(THRESHOLDS, SPENDERS, ())
    moments = iter(range(10, 1000, 10))
    foreign = 0.0
    *_, counts = monitor._last_reading
    monitor._last_reading = (0.0, (), 0.0, counts)
    for lap, of_runs in enumerate(seconds, 1):
        for name, used in zip(("native", "docker"), of_runs, strict=True):
            foreign += used
            reading = (float(next(moments)), (), foreign, counts)
            monkeypatch.setattr(monitor, "_take_reading", lambda reading=reading: reading)
            monitor.end_run(lap, [name], "whole")
    return monitor.close_and_judge_laps()


@pytest.mark.parametrize(
    ("seconds", "counting", "flagged"),
    [
        ([(0, 0), (0.4, 0.4), (0, 0)], [1, 2, 3], []),
        # A lap in which one environment was disturbed is left out of all of them.
        ([(0, 2), (0, 0), (0, 0)], [2, 3], []),
        ([(0, 2), (3, 0), (0, 0), (0, 0)], [3, 4], []),
        # Fewer than half are left: the block is disturbed.
        ([(0, 2), (3, 0), (0, 0)], [1, 2, 3], [0.3]),
    ],
)
def test_a_block_with_too_few_undisturbed_laps_is_disturbed(
    monkeypatch, seconds, counting, flagged
):
    made = judged_laps(monkeypatch, *seconds)
    assert [lap["lap"] for lap in made if lap["counts"]] == counting
    flags = laps.flag_disturbed_laps(made, THRESHOLDS)
    assert [(flag["what"], flag["value"]) for flag in flags] == [("busy", x) for x in flagged]


def test_laps_that_do_not_count_are_out_of_values_and_tables_whatever_their_values(
    tmp_path, monkeypatch
):
    def leave_out(record):
        runs = [{"environments": ["native", "docker"], "how": "whole", "seconds": 1}]
        runs = [{**run, "steal": 0.1, "busy": 0, "disturbed_by": ["steal"]} for run in runs]
        record["laps"] = [{"lap": lap, "counts": lap != 1, "runs": runs} for lap in (1, 2)]

    folder = measured.project(tmp_path / "project", monkeypatch, measured.page(repetitions=1))
    for name in ("native", "docker"):
        measured.edit(folder / f"results/raw/{name}/stream/1.json", leave_out)
    projects.good(folder, "strata", "tables")
    rows = projects.table(folder / "results/laps/stream.csv")
    assert {row["lap"] for row in rows} == {"2"}
    log = b'{"lap": 1, "how": "whole"}\n%d\n{"lap": 2, "how": "whole"}\n7\n'
    record = {"parameters": {}, "commands": [], "laps": [{"lap": 1, "counts": False}]}
    for number in (1, 1000):
        [(value, _, numbers)] = parsing.parse_log(
            log % number,
            record,
            {"rate": {"unit": "1/s"}},
            lambda lines, _: [parsing.Value("rate", "1/s", float(lines[-1]))],
        )
        assert (value.value, numbers) == (7, [7])
