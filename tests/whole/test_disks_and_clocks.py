"""Full and read-only disks, and clocks that go back, under runs on the bare host.

Each is reported, and nothing is lost.
"""

import json
import os
import subprocess
import time

import projects
import pytest
from disks import small_disk

mounting = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")


def host_project(tmp_path, lines=20000):
    script = f"seq 100000 {100000 + lines} && echo 7"
    workload = {**projects.NOOP, "run": [{"argv": ["/bin/sh", "-c", script], "timeout": 60}]}
    return projects.make(tmp_path / "p", projects.on_host(), {"noop": workload})


@mounting
@pytest.mark.parametrize("place", ["results", "home"])
def test_a_full_disk_is_told_and_costs_nothing_that_was_there(tmp_path, place):
    folder = host_project(tmp_path)
    target = tmp_path / "home" if place == "home" else folder / place
    with small_disk(tmp_path, target) as make_room:
        done = projects.run(folder, "snakemake", "--cores", "1", "results/raw/bare/noop/1.log")
        assert done.returncode != 0
        assert (
            "No space left on device" in done.stderr
            or "write error" in (folder / "results/failed/bare/noop/1.log").read_text()
        ), done.stderr
        assert "Traceback" not in done.stderr
        assert list(folder.glob("results/raw/*/*/*.log")) == []
        make_room()
        projects.good(folder, "snakemake", "--cores", "1", "results/raw/bare/noop/1.log")
        assert (folder / "results/raw/bare/noop/1.log").read_text().endswith("\n7\n")
        left = [
            path.name
            for path in folder.glob("results/raw/bare/noop/*")
            if path.suffix not in (".log", ".json")
        ]
        assert left == []


@mounting
def test_results_that_cannot_be_written_are_told(tmp_path):
    folder = host_project(tmp_path, 10)
    projects.good(folder, "snakemake", "--cores", "1", "results/raw/bare/noop/1.log")
    kept = logs_of(folder)
    subprocess.run(["mount", "--bind", folder / "results", folder / "results"], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", folder / "results"], check=True)
    try:
        done = projects.run(folder, "snakemake", "--cores", "1", "results/raw/bare/noop/2.log")
        assert done.returncode != 0
        assert "results is on a read-only file system" in done.stderr
        assert "Traceback" not in done.stderr
    finally:
        subprocess.run(["umount", folder / "results"], check=True)
    assert logs_of(folder) == kept
    projects.good(folder, "snakemake", "--cores", "1", "results/raw/bare/noop/2.log")


def logs_of(folder):
    return {path.name: path.read_bytes() for path in folder.glob("results/raw/bare/noop/*")}


def test_a_clock_set_back_under_a_cell_changes_no_duration(tmp_path):
    folder = host_project(tmp_path, 10)
    projects.plan(folder)
    # The process of the cell sees a clock that goes back by an hour after its first look at it.
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake/sitecustomize.py").write_text(
        "import time\nreal, looks = time.time, []\n\n\ndef fake():\n    looks.append(1)\n"
        "    return real() - (3600 if len(looks) > 1 else 0)\n\n\ntime.time = fake\n"
    )
    variables = {**projects.environment(), "PYTHONPATH": f"{tmp_path / 'fake'}:{projects.ROOT}"}
    argv = projects.command("strata", "cell", "bare", "noop", "1")
    done = subprocess.run(
        argv, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    record = json.loads((folder / "results/raw/bare/noop/1.json").read_text())
    assert 0 <= record["seconds"] < 60
    moments = [record["started"], record["commands"][0]["started"], record["ended"]]
    assert moments == sorted(moments)


def test_logs_from_the_future_do_not_stop_a_run(tmp_path):
    """If the clock was set back after some cells, the others are measured and nothing is lost."""
    folder = host_project(tmp_path, 10)
    projects.good(folder, "snakemake", "--cores", "1", "results/raw/bare/noop/1.log")
    later = time.time() + 3600
    for path in folder.glob("results/**/*"):
        os.utime(path, (later, later))
    before = logs_of(folder)
    projects.good(folder, "snakemake", "--cores", "1", "cells")
    after = logs_of(folder)
    assert {name: after[name] for name in before} == before
    assert {"1.log", "2.log"} <= set(after)
