"""Where the workload fio refuses to write its file.  What it asks of fio, its parser finds in each log again."""

import json
import os
import subprocess

import projects
import pytest

BYTES = 16 * 1024**2
NEEDED = BYTES + 64 * 1024**2
# Tells its version, or notes that it was asked and makes the file as large as it should be.
FIO = """
[ "$1" != --version ] || { echo fio-0; exit; }
touch "$ASKED"
for word; do
    case $word in --filename=*) file=${word#*=} ;; --size=*) size=${word#*=} ;; esac
done
truncate --size "$size" "$file"
"""
# Tells of a file system.
DF = 'case " $* " in *fstype*) echo Type; echo %s ;; *) echo Avail; echo "  %d" ;; esac'
TAKES = 'touch "${2#of=}"'
REFUSES = f'{TAKES}; echo "dd: Invalid argument" >&2; exit 1'


@pytest.fixture
def lay_out(tmp_path):
    """Lays the file out where df and dd are scripts; how that ended, the file, and whether fio was asked for it."""
    (tmp_path / "programs").mkdir()

    def call(df, dd):
        for name, script in {"fio": FIO, "df": df, "dd": dd}.items():
            (tmp_path / "programs" / name).write_text(f"#!/bin/bash\n{script}\n")
            (tmp_path / "programs" / name).chmod(0o755)
        variables = {
            "PATH": f"{tmp_path}/programs:{os.environ['PATH']}",
            "ASKED": str(tmp_path / "asked"),
        }
        file = tmp_path / "file"
        file.write_text("left by an earlier cell")
        argv = [projects.ROOT / "workloads/fio/layout.sh", file, str(BYTES), "7"]
        done = subprocess.run(
            argv, capture_output=True, text=True, env={**os.environ, **variables}, check=False
        )
        return done, file, (tmp_path / "asked").exists()

    return call


def test_the_layout_tells_of_the_file_where_there_is_just_the_space(lay_out):
    done, file, asked = lay_out(DF % ("ext4", NEEDED), TAKES)
    assert done.returncode == 0, done.stderr
    assert asked
    told = {"layout": str(file), "bytes": BYTES, "seed": 7, "file_system": "ext4", "tool": "fio-0"}
    assert json.loads(done.stdout) == told


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
def test_what_holds_no_file_for_direct_access_is_refused_with_its_reason(
    lay_out, system, free, dd, reasons
):
    done, file, asked = lay_out(DF % (system, free), dd)
    assert (done.returncode, done.stdout) == (1, "")
    for reason in [f"(file system {system})", *reasons]:
        assert reason in done.stderr
    assert not asked
    assert not file.exists()
