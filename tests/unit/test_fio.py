"""The scripts of the workload fio, without fio: what they refuse, and what they ask of it."""

import json
import os
import subprocess

import projects
import pytest

FOLDER = projects.ROOT / "workloads" / "fio"
BYTES = 16 * 1024**2
JOBS = {  # rw, bytes of a block, queue depth, threads
    "sequential-fill": ("write", 1048576, 16, 1),
    "seq-read-1": ("read", 1048576, 1, 1),
    "seq-read-2": ("read", 1048576, 2, 1),
    "random-write-16": ("randwrite", 4096, 16, 1),
    "random-write-16x8": ("randwrite", 4096, 16, 8),
    "random-read-16": ("randread", 4096, 16, 1),
    "random-read-16x8": ("randread", 4096, 16, 8),
    "mixed-random-rw-32x8": ("randrw", 4096, 32, 8),
}
# Tells its version, or writes down what it was asked and makes the file as large as it should be.
FIO = """
[ "$1" != --version ] || { echo fio-0; exit; }
printf '%s\\n' "$@" >"$ASKED"
for word; do
    case $word in --filename=*) file=${word#*=} ;; --size=*) size=${word#*=} ;; esac
done
truncate --size "${FIO_WRITES:-$size}" "$file"
exit "${FIO_EXIT:-0}"
"""


@pytest.fixture
def run(tmp_path):
    """Runs a script of the workload with stand-ins for programs."""
    programs = tmp_path / "programs"
    programs.mkdir()

    def stand_in(name, script):
        (programs / name).write_text(f"#!/bin/bash\n{script}\n")
        (programs / name).chmod(0o755)

    def call(script, *words, stand_ins=None, **variables):
        for name, text in {"fio": FIO, "dd": 'touch "${2#of=}"', **(stand_ins or {})}.items():
            stand_in(name, text)
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "ASKED": str(tmp_path / "asked")}
        argv = [str(FOLDER / script), *map(str, words)]
        return subprocess.run(argv, capture_output=True, text=True, env={**environment, **variables})

    return call


def df(file_system, free):
    """A stand-in that tells of a file system."""
    return f'case " $* " in *fstype*) echo Type; echo {file_system} ;; *) echo Avail; echo "  {free}" ;; esac'


def test_the_layout_tells_of_the_file_and_writes_it_past_the_cache(run, tmp_path):
    done = run("layout.sh", tmp_path / "file", BYTES, 7, stand_ins={"df": df("ext4", 10**12)})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "layout": f"{tmp_path}/file",
        "bytes": BYTES,
        "seed": 7,
        "file_system": "ext4",
        "tool": "fio-0",
    }
    asked = (tmp_path / "asked").read_text().split()
    assert {"--direct=1", "--refill_buffers=1", "--randseed=7", "--rw=write", f"--size={BYTES}"} <= set(asked)


def test_without_the_space_it_says_how_much_is_needed_and_how_much_there_is(run, tmp_path):
    needed = BYTES + 64 * 1024**2
    (tmp_path / "file").write_text("left by an earlier cell")
    done = run("layout.sh", tmp_path / "file", BYTES, 7, stand_ins={"df": df("ext4", needed - 1)})
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"not enough space on {tmp_path} (file system ext4)" in done.stderr
    assert f"{needed} are needed, and {needed - 1} are free" in done.stderr
    assert not (tmp_path / "file").exists()
    done = run("layout.sh", tmp_path / "file", BYTES, 7, stand_ins={"df": df("ext4", needed)})
    assert done.returncode == 0, done.stderr


def test_a_file_system_in_memory_is_refused(run, tmp_path):
    done = run("layout.sh", tmp_path / "file", BYTES, 7, stand_ins={"df": df("tmpfs", 10**12)})
    assert done.returncode == 1
    assert "(file system tmpfs) lies in memory" in done.stderr
    assert not (tmp_path / "asked").exists()


def test_a_file_system_without_o_direct_is_refused(run, tmp_path):
    refusing = 'touch "${2#of=}"; echo "dd: Invalid argument" >&2; exit 1'
    done = run("layout.sh", tmp_path / "file", BYTES, 7, stand_ins={"df": df("nodirect", 10**12), "dd": refusing})
    assert done.returncode == 1
    assert "(file system nodirect) does not take O_DIRECT" in done.stderr
    assert "dd: Invalid argument" in done.stderr
    assert not (tmp_path / "file").exists()
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_asked_for_as_published(run, tmp_path, job):
    done = run("job.sh", job, tmp_path / "file", BYTES, "0.7", "0.3", 7)
    assert done.returncode == 0, done.stderr
    first, *_, last = done.stdout.splitlines()
    assert json.loads(first) == {
        "point": job,
        "tool": "fio-0",
        "bytes": BYTES,
        "seconds": 0.7,
        "ramp_seconds": 0.3,
        "seed": 7,
    }
    assert json.loads(last) == {"end": job}
    asked = dict(word.removeprefix("--").split("=", 1) for word in (tmp_path / "asked").read_text().split())
    how = asked["rw"], int(asked["bs"]), int(asked["iodepth"]), int(asked["numjobs"])
    assert how == JOBS[job]
    assert asked.get("rwmixread") == ("70" if job.startswith("mixed") else None)
    assert (asked["runtime"], asked["ramp_time"]) == ("700ms", "300ms")
    assert (asked["ioengine"], asked["direct"], asked["output-format"]) == ("libaio", "1", "json+")
