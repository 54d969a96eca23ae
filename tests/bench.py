"""Measure what the machinery costs: ``make bench`` (docs/architecture.md).

Prints CPU seconds of whole process trees and writes every measured command into a table.
"""

import argparse
import contextlib
import csv
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import measured
import projects

from strata.experiment import plan

SNAKEMAKE = [sys.executable, "-m", "snakemake", "--cores", "1"]
# What a person who types the command has not set, and what would change what it costs.
NOT_INHERITED = ("MAKE", "MFLAGS", "PYTHON", "SNAKEMAKE_", "STRATA_")
PLAIN = """\
rule all:
    input: expand("out/{{i}}", i=range({count}))

rule cell:
    output: "out/{{i}}"
    shell: "/bin/echo 7 >{{output}}"
"""
ENVIRONMENTS = 4
HEADER = ["theme", "tool", "size", "round", "cpu", "peak"]
Row = tuple[str, str, int, int, float, float]


def strata(folder: Path, count: int) -> list[str]:
    """A project of so many cells that do nothing, on the bare host; the command that measures them."""
    several = 10 if count % 10 == 0 else 1
    workloads = {f"noop{number}": projects.NOOP for number in range(several)}
    config = projects.on_host(
        order="blocks", repetitions=count // several, workloads=dict.fromkeys(workloads)
    )
    projects.make(folder, config, workloads)
    return [*SNAKEMAKE, "--", "cells"]


def snakemake(folder: Path, count: int) -> list[str]:
    """A workflow of so many of the barest jobs; the command that runs them."""
    folder.mkdir(parents=True)
    (folder / "Snakefile").write_text(PLAIN.format(count=count))
    return [*SNAKEMAKE, "--scheduler", "greedy", "--quiet"]


TOOLS: dict[str, Callable[[Path, int], list[str]]] = {"Strata": strata, "Snakemake": snakemake}


def run(argv: list[str], folder: Path) -> tuple[float, float]:
    """Run a command to its end: CPU seconds of it and all that it started, MB of the largest.  Raises SystemExit."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(NOT_INHERITED)}
    home = folder.parent / "home"
    variables = {
        **kept,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home),
        "STRATA_HOME": str(home / "strata"),
    }
    with open(folder / "printed", "w+") as output:
        process = subprocess.Popen(
            argv, cwd=folder, env=variables, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            raise SystemExit(
                f"bench: {' '.join(argv)}: exit code {process.returncode}\n{output.read()[-3000:]}"
            )
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def cells(sizes: list[int], rounds: int, room: Path) -> Iterator[Row]:
    """Every tool at every size once in a round, in a random order; once before them for what is compiled and cached."""
    for name, prepare in TOOLS.items():
        run(prepare(room / f"first-{name}", 1), room / f"first-{name}")
    for number in range(1, rounds + 1):
        for size in sizes:
            for name in random.Random(f"{number}/{size}").sample([*TOOLS], len(TOOLS)):
                folder = room / f"{name}-{size}-{number}"
                spent = run(TOOLS[name](folder, size), folder)
                done = sum(1 for _ in folder.glob("results/raw/*/*/*.log")) + sum(
                    1 for _ in folder.glob("out/*")
                )
                if done != size:
                    raise SystemExit(f"bench: {name} did {done} of {size} cells")
                yield "cells", name, size, number, *spent
    log = sorted(folder.parent.glob(f"Strata-{sizes[-1]}-1/results/raw/*/*/*.log"))[-1]
    log.unlink()
    folder = room / f"Strata-{sizes[-1]}-1"
    yield "rerun", "Strata", sizes[-1], 1, *run([*SNAKEMAKE, str(log.relative_to(folder))], folder)


def dry(sizes: list[int], rounds: int, room: Path) -> Iterator[Row]:
    """A dry run of this pipeline and one of Snakemake with the barest rule."""
    for size in sizes:
        for name, prepare in TOOLS.items():
            folder = room / f"dry-{name}-{size}"
            prepare(folder, size)
            for number in range(1, rounds + 1):
                argv = [
                    *SNAKEMAKE,
                    "--dry-run",
                    "--quiet",
                    "rules",
                    "--",
                    "cells" if name == "Strata" else "all",
                ]
                yield "dry run", name, size, number, *run(argv, folder)


def logs(sizes: list[int], rounds: int, room: Path) -> Iterator[Row]:
    """Tidy tables of so many logs of STREAM, and all other tables of these."""
    for size in sizes:
        folder = room / f"logs-{size}"
        page = measured.page(
            repetitions=size // ENVIRONMENTS,
            environments=projects.default()["environments"],
            workloads={"stream": measured.page()["workloads"]["stream"]},
        )
        projects.make(folder, page)
        with contextlib.chdir(folder):
            experiment = measured.planned()
            plan.write({**experiment, "source": {"revision": None, "changed": None}})
            measured.measure(folder, experiment, dict.fromkeys(experiment["environments"], 1.0))
        for number in range(1, rounds + 1):
            yield (
                "tidy",
                "Strata",
                size,
                number,
                *run([sys.executable, "-m", "strata", "tidy"], folder),
            )
            yield (
                "tables",
                "Strata",
                size,
                number,
                *run(["Rscript", "analysis/tables.R", "results"], folder),
            )


def report(rows: Iterable[Row]) -> str:
    """A table in Markdown: medians over the rounds."""
    found: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        found.setdefault(row[:3], []).append(row)
    lines = ["| | | number | CPU s | CPU ms each | MB |", "|---|---|---:|---:|---:|---:|"]
    for (theme, tool, size), some in found.items():
        cpu, peak = (statistics.median(row[column] for row in some) for column in (4, 5))
        lines.append(
            f"| {theme} | {tool} | {size:,} | {cpu:.2f} | {1000 * cpu / size:.1f} | {peak:.0f} |"
        )
    return "\n".join(lines)


def main(words: list[str]) -> None:
    """Measure, print and write."""
    themes = {
        "cells": (cells, "100,1000"),
        "dry": (dry, "1000,10000"),
        "logs": (logs, "1000,10000"),
    }
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.partition("\n")[0])
    for name, (measure, sizes) in themes.items():
        parser.add_argument(
            f"--{name}", default=sizes, metavar="NUMBERS", help=measure.__doc__.partition(".")[0]
        )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--to", type=Path, default=projects.ROOT / "results/bench.csv", help="where to"
    )
    chosen = parser.parse_args(words)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="strata-bench-") as room:
        for name, (measure, _) in themes.items():
            sizes = [int(word) for word in getattr(chosen, name).split(",") if word]
            for row in measure(sizes, chosen.rounds, Path(room)) if sizes else []:
                print(*row, flush=True)
                rows.append(row)
    chosen.to.parent.mkdir(parents=True, exist_ok=True)
    with open(chosen.to, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *rows])
    print(f"\n{report(rows)}\n\nbench: {chosen.to}; load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
