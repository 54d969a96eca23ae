"""Run the guides of docs/ from their own text, in a fresh clone.

The commands of every fenced block of `sh` are run in their order.  A block of `text` right after
one is its output: each line must be printed, in this order (`…` in a line stands for anything).
Other blocks are ignored.  A comment `<!-- run: … -->` in a guide names what it needs: `quick`
(nothing, and it takes seconds), `long`, `Docker`.

Usage: python tests/helpers/guides.py GUIDE FOLDER: follows one guide in a new clone in FOLDER.
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
# Seconds that the commands of one block may take; the longest measure cells and make a paper.
PATIENCE = 1200


@dataclass
class Step:
    """A block of commands: the guide's line at which it begins, and the output that is shown."""

    line: int
    commands: str
    shown: list[str] = field(default_factory=list)


def list_guides() -> dict[str, set[str]]:
    """Return the path of every guide below docs/ → what running it needs."""
    needs_of = {}
    for path in sorted(DOCS.rglob("*.md")):
        if needs := NEEDS.search(path.read_text()):
            needs_of[str(path.relative_to(DOCS))] = set(needs[1].split(", "))
    return needs_of


def parse_steps(text: str) -> list[Step]:
    """Return the steps of a guide's text."""
    blocks: list[Step] = []
    end = None
    for match in FENCE.finditer(text):
        if match[1] == "sh":
            blocks.append(Step(text.count("\n", 0, match.start()) + 2, match[2]))
        elif match[1] == "text" and blocks and not text[end : match.start()].strip():
            blocks[-1].shown = [line for line in match[2].splitlines() if line.strip()]
        end = match.end()
    return blocks


def find_missing_line(shown: list[str], printed: str) -> str | None:
    """Return the first shown line that was not printed after those before it; None if all were."""
    lines = iter(" ".join(line.split()) for line in printed.splitlines())
    for line in shown:
        pattern = ".*".join(re.escape(part) for part in " ".join(line.split()).split("…"))
        if not any(re.fullmatch(pattern, line_printed) for line_printed in lines):
            return line
    return None


def clone_project(folder: Path, borrow: bool = True) -> Path:
    """Make a fresh clone with the uncommitted changes of this checkout.

    borrow: link the packages of this checkout's .venv; else the clone has to make its own.
    """
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
        _link_environment(projects.ROOT / ".venv", folder / ".venv")
    return folder


def _link_environment(source: Path, target: Path) -> None:
    """Make a virtual environment with the packages of another one.

    Its commands start its own Python, so that they import the clone.
    """
    (target / "bin").mkdir(parents=True)
    for name in ("lib", "pyvenv.cfg", "strata-stamp"):
        (target / name).symlink_to((source / name).resolve())
    for program in (source / "bin").iterdir():
        first, _, rest = program.read_bytes().partition(b"\n")
        if first.startswith(b"#!") and b"python" in first:
            (target / "bin" / program.name).write_bytes(
                b"#!%s\n%s" % (bytes(target / "bin/python"), rest)
            )
            (target / "bin" / program.name).chmod(0o755)
        elif program.name.startswith("python"):
            (target / "bin" / program.name).symlink_to(program.resolve())


def list_changes(folder: Path) -> list[str]:
    """Return the lines of `git status` for new and changed files; a new folder is one line."""
    status = ["git", "-C", str(folder), "status", "--porcelain"]
    return subprocess.run(status, capture_output=True, text=True, check=True).stdout.splitlines()


def follow_guide(guide: str, folder: Path) -> None:
    """Run the steps of a guide in a clone; fail at the first that ends or prints otherwise."""
    for step in parse_steps((DOCS / guide).read_text()):
        where = f"docs/{guide}:{step.line}"
        # As in a terminal: output is not buffered, and no variable of the tests is set.
        environment = {**projects.environment(), "PYTHONUNBUFFERED": "1"}
        environment.pop("PYTHONPATH")
        # The guides expect a Snakemake on the path; here it is the one of `make setup`.
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
        line = find_missing_line(step.shown, done.stdout)
        assert line is None, (
            f"{where} did not print the line that it shows:\n{line}\nbut\n{done.stdout}"
        )


if __name__ == "__main__":
    os.chdir(projects.ROOT)
    follow_guide(sys.argv[1], clone_project(Path(sys.argv[2]).resolve()))
