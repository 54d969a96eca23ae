"""Guides of docs/ that are run from their own text: what a reader copies, in its order, in a fresh clone.

A fenced block of `sh` is typed; one of `text` right behind it is what the reader sees, of which every line must have
been printed, in this order (`…` in a line stands for anything).  All other blocks are only read.  A comment
`<!-- run: … -->` in a guide says what that needs: `quick` (nothing, and it takes seconds), `long`, `Docker`.
`python tests/helpers/guides.py GUIDE FOLDER` follows one in a new clone in FOLDER.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import projects

DOCS = projects.ROOT / "docs"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = re.compile(r"^<!-- run: ([\w, ]+) -->", re.MULTILINE)
# Seconds that the commands of one block may take: those of the longest measure, and set a paper.
PATIENCE = 1200


@dataclass
class Step:
    """What is typed at once, the line of the guide at which it begins, and what is shown behind it."""

    line: int
    commands: str
    shown: list[str] = field(default_factory=list)


def guides() -> dict[str, set[str]]:
    """Every guide, by its path below docs/ → what running it needs."""
    found = {}
    for page in sorted(DOCS.rglob("*.md")):
        if needs := NEEDS.search(page.read_text()):
            found[str(page.relative_to(DOCS))] = set(needs[1].split(", "))
    return found


def steps(text: str) -> list[Step]:
    """What a guide has its reader type."""
    found: list[Step] = []
    end = None
    for match in FENCE.finditer(text):
        if match[1] == "sh":
            found.append(Step(text.count("\n", 0, match.start()) + 2, match[2]))
        elif match[1] == "text" and found and not text[end : match.start()].strip():
            found[-1].shown = [line for line in match[2].splitlines() if line.strip()]
        end = match.end()
    return found


def lacking(shown: list[str], printed: str) -> str | None:
    """The first line that is shown and was not printed behind those before it; None where all were."""
    lines = iter(" ".join(line.split()) for line in printed.splitlines())
    for line in shown:
        pattern = ".*".join(re.escape(part) for part in " ".join(line.split()).split("…"))
        if not any(re.fullmatch(pattern, there) for there in lines):
            return line
    return None


def clone(folder: Path, borrow: bool = True) -> Path:
    """A fresh clone, with what was changed and added here since; its own Python only where none is borrowed."""
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", projects.ROOT, folder], check=True)
    listed = ["git", "ls-files", "-z", "--modified", "--others", "--exclude-standard"]
    changed = subprocess.run(
        listed, cwd=projects.ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, changed.split("\0")):
        (folder / name).unlink(missing_ok=True)
        if (projects.ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(projects.ROOT / name, folder / name)
    if borrow:
        _borrow(projects.ROOT / ".venv", folder / ".venv")
    return folder


def _borrow(there: Path, here: Path) -> None:
    """A virtual environment with the packages of another; its commands are this one's, so that they find this clone."""
    (here / "bin").mkdir(parents=True)
    for name in ("lib", "pyvenv.cfg", "strata-stamp"):
        (here / name).symlink_to((there / name).resolve())
    for program in (there / "bin").iterdir():
        first, _, rest = program.read_bytes().partition(b"\n")
        if first.startswith(b"#!") and b"python" in first:
            (here / "bin" / program.name).write_bytes(
                b"#!%s\n%s" % (bytes(here / "bin/python"), rest)
            )
            (here / "bin" / program.name).chmod(0o755)
        elif program.name.startswith("python"):
            (here / "bin" / program.name).symlink_to(program.resolve())


def untracked(folder: Path) -> list[str]:
    """What git sees in a clone that is new or changed, a folder of new files as one."""
    status = ["git", "-C", str(folder), "status", "--porcelain"]
    return subprocess.run(status, capture_output=True, text=True, check=True).stdout.splitlines()


def follow(guide: str, folder: Path) -> None:
    """Type all that a guide says in a clone; the first step that fails, or shows something else, ends it."""
    for step in steps((DOCS / guide).read_text()):
        where = f"docs/{guide}:{step.line}"
        # As a terminal has it: what is printed comes at once, and nothing is of the tests' own.
        environment = {**projects.environment(), "PYTHONUNBUFFERED": "1"}
        environment.pop("PYTHONPATH")
        # A Snakemake is on the path: here the one that `make setup` installs.
        environment["PATH"] = f"{folder}/.venv/bin{os.pathsep}{environment['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", step.commands],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, (
            f"{where} ended with {done.returncode}:\n{step.commands}\n{done.stdout}"
        )
        line = lacking(step.shown, done.stdout)
        assert line is None, f"{where} did not print what is shown:\n{line}\nbut\n{done.stdout}"


if __name__ == "__main__":
    os.chdir(projects.ROOT)
    follow(sys.argv[1], clone(Path(sys.argv[2]).resolve()))
