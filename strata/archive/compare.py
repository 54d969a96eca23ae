"""Compare two testbeds: two archives, projects or folders of results, by the analysis of this project."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from strata.archive import check
from strata.base import places
from strata.base.errors import UserError
from strata.base.files import read_json
from strata.experiment.config import percent

# Exit statuses, for use in CI.
SAME, DIFFERENT, NOT_COMPARABLE = 0, 1, 2
_STATUS = {"no difference": SAME, "difference": DIFFERENT, "nothing to compare": NOT_COMPARABLE}


@contextlib.contextmanager
def results_of(path: str) -> Iterator[str]:
    """The folder of results that a path names: itself, in a project, or in an archive, which is verified first.

    Raises UserError where there are none, or where the archive does not verify.
    """
    if not os.path.exists(path):
        raise UserError(f"{path}: there is no such file or folder")
    if os.path.isfile(path) or os.path.exists(os.path.join(path, "archive.json")):
        with check.unpacked(path) as (folder, found):
            found = found + check.findings(folder)
            if found:
                raise UserError("\n".join([f"{path}: does not verify, and is not compared:", *found]))
            yield os.path.join(folder, "results")
        return
    for folder in (path, os.path.join(path, "results")):
        if os.path.exists(os.path.join(folder, "plan.json")):
            yield folder
            return
    raise UserError(f"{path}: holds no results/plan.json; name an archive, a project, or its folder of results")


def name_of(path: str) -> str:
    """What a side is called unless it is given a name: its file's name."""
    name = os.path.basename(os.path.abspath(path))
    if name == "results":
        name = os.path.basename(os.path.dirname(os.path.abspath(path)))
    return name.removesuffix(".zip")


def names_of(first: str, second: str) -> list[str]:
    """What two sides are called unless names are given: their files' names, or first and second."""
    found = [name_of(first), name_of(second)]
    return found if found[0] != found[1] else ["first", "second"]


def share(effect: str) -> float:
    """The minimum effect that was given, as a share.  Raises UserError where it is none."""
    try:
        given = percent(effect)
    except ValueError:
        given = -1.0
    if not 0 <= given < 1:
        raise UserError(f"--effect: is {effect!r}; must be a share such as 2%, at least 0% and below 100%")
    return given


def compare(first: str, second: str, names: list[str] | None, effect: str | None, out: str) -> int:
    """Write the comparison into the folder `out`, say what it comes to, and give the exit status.

    effect: the minimum effect, such as ``2%``; None for that of the paper.

    Status 0: no difference beyond it; 1: a difference; 2 is by way of UserError, for what cannot be compared, or
    where nothing on both sides has an interval.
    """
    chosen = [] if effect is None else ["--effect", repr(share(effect))]
    called = names or names_of(first, second)
    if called[0] == called[1]:
        raise UserError(f"--names: both are {called[0]!r}; each side needs its own")
    with results_of(first) as one, results_of(second) as other:
        words = ["--first", one, "--second", other, "--first-name", called[0], "--second-name", called[1]]
        status = written("compare", [*words, *chosen], out)
    print(f"compare: {os.path.join(out, 'index.html')}, comparison.csv and provenance.csv are written", file=sys.stderr)
    return status


def written(script: str, words: list[str], out: str) -> int:
    """Let a script of the analysis write into the folder `out`, say what it comes to, and give the exit status.

    Raises UserError with what the script said, where it fails.
    """
    command = ["Rscript", os.path.join(places.PROJECT, "analysis", f"{script}.R"), *words, "--out", out]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError:
        raise UserError("Rscript is missing; `make setup-paper` installs it") from None
    if done.returncode != 0:
        raise UserError((done.stderr or done.stdout).strip())
    outcome = read_json(os.path.join(out, "outcome.json")) or {}
    print(outcome["text"])
    return _STATUS[outcome["outcome"]]
