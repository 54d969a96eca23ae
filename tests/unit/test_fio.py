"""The file systems on which the workload fio refuses to write its file."""

import json
import os
import subprocess

import projects
import pytest

BYTES = 16 * 1024**2
NEEDED = BYTES + 64 * 1024**2
# Prints its version, or creates $CALLED and makes the file as large as it should be.
FIO = """
[ "$1" != --version ] || { echo fio-0; exit; }
touch "$CALLED"
for word; do
    case $word in --filename=*) file=${word#*=} ;; --size=*) size=${word#*=} ;; esac
done
truncate --size "$size" "$file"
"""
# Prints type and free bytes of a file system.
DF = 'case " $* " in *fstype*) echo Type; echo %s ;; *) echo Avail; echo "  %d" ;; esac'
TAKES = 'touch "${2#of=}"'
REFUSES = f'{TAKES}; echo "dd: Invalid argument" >&2; exit 1'


@pytest.fixture
def lay_out(tmp_path):
    """Runs layout.sh with scripts for df and dd: its result, the file, and whether fio ran."""
    (tmp_path / "programs").mkdir()

    def call(df, dd):
        for name, script in {"fio": FIO, "df": df, "dd": dd}.items():
            (tmp_path / "programs" / name).write_text(f"#!/bin/bash\n{script}\n")
            (tmp_path / "programs" / name).chmod(0o755)
        path, called = f"{tmp_path}/programs:{os.environ['PATH']}", tmp_path / "called"
        variables = {**os.environ, "PATH": path, "CALLED": str(called)}
        file = tmp_path / "file"
        file.write_text("left by an earlier cell")
        argv = [projects.ROOT / "workloads/fio/layout.sh", file, str(BYTES), "7"]
        options = {"capture_output": True, "text": True, "env": variables}
        return subprocess.run(argv, check=False, **options), file, called.exists()

    return call


def test_the_layout_describes_the_file_if_there_is_just_enough_space(lay_out):
    result, file, is_called = lay_out(DF % ("ext4", NEEDED), TAKES)
    assert result.returncode == 0, result.stderr
    assert is_called
    expected = {"layout": str(file), "bytes": BYTES, "seed": 7}
    assert json.loads(result.stdout) == {**expected, "file_system": "ext4", "tool": "fio-0"}


@pytest.mark.parametrize(
    ("system", "free", "dd", "reasons"),
    [
        (
            "ext4",
            NEEDED - 1,
            TAKES,
            ["not enough space on ", f"{NEEDED} are needed, and {NEEDED - 1} are free"],
        ),
        ("tmpfs", 10**12, TAKES, ["lies in memory"]),
        ("odd", 10**12, REFUSES, ["does not take O_DIRECT", "dd: Invalid argument"]),
    ],
)
def test_an_unfit_file_system_is_refused_with_its_reason(lay_out, system, free, dd, reasons):
    result, file, is_called = lay_out(DF % (system, free), dd)
    assert (result.returncode, result.stdout) == (1, "")
    for reason in [f"(file system {system})", *reasons]:
        assert reason in result.stderr
    assert not is_called
    assert not file.exists()
