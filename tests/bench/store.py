"""An archive of so many bytes of logs: made twice, which must give the same bytes, and verified."""

import hashlib
import shutil
import sys
from pathlib import Path

import measured
import projects

from bench import logs
from bench.rows import Row, Rows
from bench.spent import Failed, environment, run

# Its captured log is the longest.
LOAD = "fio"


def make(folder: Path, size: int) -> int:
    """A project with logs of so many bytes; how many there are."""
    count = max(1, round(size / logs.log_bytes(LOAD) / logs.ENVIRONMENTS)) * logs.ENVIRONMENTS
    logs.make(folder, LOAD, count, copy=True)
    for name in ("LICENSE", "CITATION.cff"):
        shutil.copy(projects.ROOT / name, folder / name)
    projects.track(folder)
    measured.pretend(folder)
    claims = folder / "results/claims.csv"
    lines = claims.read_text().splitlines(keepends=True)
    claims.write_text("".join(line for line in lines if ",stream," not in line))
    return count


def digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def measure(size: int, room: Path, rows: Rows) -> int:
    """Archive twice and verify once; the archive's bytes.  Raises Failed where the two archives differ."""
    folder, variables = room / "store", environment(room / "home")
    count = make(folder, size)
    found = []
    for number in (1, 2):
        argv = [sys.executable, "-m", "strata", "archive", "--out", f"{number}.zip"]
        rows.add(Row.of("archive", "Strata", count, number, run(argv, folder, variables)))
        found.append(digest(folder / f"{number}.zip"))
    if len(set(found)) != 1:
        raise Failed("two archives of the same files differ")
    verify = [sys.executable, "-m", "strata", "verify", "1.zip"]
    rows.add(Row.of("verify", "Strata", count, 1, run(verify, folder, variables)))
    written = (folder / "1.zip").stat().st_size
    shutil.rmtree(folder)
    return written
