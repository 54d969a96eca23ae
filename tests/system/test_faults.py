"""Real faults: each ends with a message and a correct resume; nothing is lost or left behind."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import time

import projects
import pytest
from disks import small_disk

from strata.testbed import journal
from strata.util import paths

TARGET = "cells"


def pausing(seconds=0.413):
    """A workload that takes a while and whose log is complete only with its last line."""
    script = f"echo begun; sleep {seconds}; echo $(cat /proc/sys/kernel/random/uuid); echo 7"
    return {
        **projects.NOOP,
        "run": [{"argv": ["/bin/sh", "-c", script], "timeout": 60}],
    }


def project(folder, environments=("native", "docker"), repetitions=3, workload=None, **more):
    page = projects.default(workloads={"pausing": None}, repetitions=repetitions, **more)
    page["environments"] = {name: page["environments"][name] for name in environments}
    return projects.beside_real(folder, page, {"pausing": workload or pausing()})


def start(folder, *words):
    return projects.start(folder, "snakemake", "--cores", "1", *words)


def settled():
    return not journal.read_entries()


def logs(folder):
    return {path: path.read_text() for path in folder.glob("results/raw/*/*/*.log")}


def whole(folder):
    """Every log that is there is complete, and its record is of it."""
    for path, text in logs(folder).items():
        lines = text.splitlines()
        assert lines[0] == "begun"
        assert lines[-1] == "7"
        assert json.loads(path.with_suffix(".json").read_text())["log"]["bytes"] == len(text)
    return True


def changed(before, after):
    """Logs that were measured again.

    If Snakemake died before it saw the end of a cell, the cell counts as unfinished for it, though
    the cell's log was in place.
    """
    return [path for path in before if after.get(path) != before[path]]


def finish(folder, cells, block=0):
    """Run the pipeline; it measures the missing cells, and whole blocks in place of torn ones.

    block: the cells of a block where a kill may have parted a pair; 0 where none can be.
    """
    before = logs(folder)
    done = projects.good(folder, "snakemake", "--cores", "1", TARGET, timeout=600 + 30 * cells)
    after = logs(folder)
    replaced = len(after) - cells
    assert replaced == 0 or (block and replaced > 0 and replaced % block == 0)
    assert len(changed(before, after)) <= 1
    assert whole(folder)
    assert "Traceback" not in done.stderr


def daemon():
    """The process id of Docker's daemon.

    None if the process that its file names is not (or no longer) the daemon.
    """
    with contextlib.suppress(OSError):
        process = int(open("/var/run/docker.pid").read())
        if open(f"/proc/{process}/comm").read() == "dockerd\n":
            return process
    return None


def victims(run):
    """Process ids that can be killed under a run.

    They are those of the workflow, its cell, the program that it measures, and Docker's daemon.
    """
    cell = journal.read_entries()[-1]["owner"] if journal.read_entries() else None
    found = {"workflow": run.pid}
    serves = daemon()
    if serves:
        found["daemon"] = serves
    if cell:
        found["cell"] = cell["pid"]
        tool = subprocess.run(
            ["pgrep", "-f", "^sleep 0.413$"], capture_output=True, text=True, check=False
        ).stdout.split()
        if tool:
            found["tool"] = int(tool[0])
    return found


@pytest.fixture
def docker_stays(machine_stays):
    """Bring Docker's daemon up at the end, even if the test killed it as its last step."""
    yield
    subprocess.run([projects.ROOT / "scripts/dockerd.sh"], check=True, timeout=120)


@pytest.mark.timeout(4000)
@pytest.mark.parametrize("moments", [3, pytest.param(50, marks=pytest.mark.long)])
def test_a_kill_at_any_moment_costs_one_cell_at_the_most(image, tmp_path, docker_stays, moments):
    chance = random.Random(2014)
    folder = project(tmp_path / "p", repetitions=moments)
    for _ in range(moments):
        kept = logs(folder)
        run = start(folder, TARGET)
        time.sleep(chance.uniform(0.2, 4))
        choice = chance.choice(["workflow", "cell", "tool", "daemon"])
        found = victims(run)
        with contextlib.suppress(ProcessLookupError):
            os.kill(found.get(choice, run.pid), signal.SIGKILL)
        if choice == "workflow" or choice not in found:
            run.wait()
        else:
            time.sleep(0.3)
            run.send_signal(signal.SIGINT)
        run.communicate(timeout=120)
        projects.until(settled)
        assert whole(folder)
        assert len(changed(kept, logs(folder))) <= 1
    finish(folder, 2 * moments, block=2)


@pytest.mark.long
def test_an_image_deleted_under_a_run_is_told_and_comes_back(
    image, tmp_path, monkeypatch, machine_stays
):
    # A copy of the cached image, so that no other test loses it.
    home = tmp_path / "home"
    folder = project(tmp_path / "p", ["native"], 2)
    monkeypatch.setenv("STRATA_HOME", str(home))
    source = image["folder"]
    target = home / "images" / os.path.basename(source)
    target.parent.mkdir(parents=True)

    def copy():
        subprocess.run(["cp", "-a", "--reflink=auto", source, str(target)], check=True)
        # What was written after it is not what was built.
        (target / "image.json").touch()

    copy()
    wanted = "results/raw/native/pausing/1.log"
    projects.good(folder, "snakemake", "--cores", "1", wanted)
    shutil.rmtree(target)
    # A cell that finds none builds it; here that cannot be done.
    (tmp_path / "bin").mkdir()
    for name in ("mmdebstrap", "packer"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "bin" / name).chmod(0o755)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    done = projects.run(folder, "strata", "cell", "native", "pausing", "2", PATH=path)
    assert done.returncode == 1
    assert "the image of native could not be made" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(logs(folder)) == 1
    copy()
    finish(folder, 2)


@pytest.mark.parametrize(
    "again", [False, pytest.param(True, marks=pytest.mark.long)], ids=["told", "built again"]
)
def test_a_full_cache_is_told_and_the_image_is_built_once_there_is_room(
    image, see_image, tmp_path, monkeypatch, machine_stays, again
):
    see_image(image)
    home = tmp_path / "home"
    monkeypatch.setenv("STRATA_HOME", str(home))
    folder = project(tmp_path / "p", ["docker"], 1)
    wanted = "results/raw/docker/pausing/1.log"
    with small_disk(tmp_path, home, size="8G", free=300_000_000) as make_room:
        done = projects.run(folder, "snakemake", "--cores", "1", wanted, timeout=900)
        assert done.returncode != 0
        assert "free some disk" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
        assert logs(folder) == {}
        assert list(home.glob("images/*/image.json")) == []
        # Docker still has the image that another installation built of the same recipe, and nothing
        # of the failed build.
        subprocess.run(["docker", "image", "inspect", image["id"]], check=True, capture_output=True)
        ours = [
            f"--filter=label=strata.{key}"
            for key in (f"image={paths.compute_home_mark()}", "recipe")
        ]
        assert (
            subprocess.check_output(["docker", "image", "ls", "--all", "--quiet", *ours], text=True)
            == ""
        )
        if not again:
            return
        make_room()
        projects.good(folder, "snakemake", "--cores", "1", wanted, timeout=900)
        assert whole(folder)
        assert len(logs(folder)) == len(list(home.glob("images/*/image.json"))) == 1
