"""Measure the CPU time of the machinery itself: ``make bench`` (docs/architecture.md).

It prints CPU seconds of whole process trees and writes a table with every measured command.
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
# Beginnings of variables that a person who types the command would not have set.
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
    """Make a project of `count` cells that do nothing; return the command that measures them."""
    loads = 10 if count % 10 == 0 else 1
    workloads = {f"noop{number}": projects.NOOP for number in range(loads)}
    config = projects.on_host(
        order="blocks", repetitions=count // loads, workloads=dict.fromkeys(workloads)
    )
    projects.make(folder, config, workloads)
    return [*SNAKEMAKE, "--", "cells"]


def snakemake(folder: Path, count: int) -> list[str]:
    """Make a workflow of `count` minimal jobs; return the command that runs them."""
    folder.mkdir(parents=True)
    (folder / "Snakefile").write_text(PLAIN.format(count=count))
    return [*SNAKEMAKE, "--scheduler", "greedy", "--quiet"]


TOOLS: dict[str, Callable[[Path, int], list[str]]] = {"Strata": strata, "Snakemake": snakemake}


def run(argv: list[str], folder: Path) -> tuple[float, float]:
    """Run a command; return its CPU seconds with those of its children, and the peak memory in MB.

    Raises SystemExit if the command fails.
    """
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


def cells(sizes: list[int], rounds: int, scratch: Path) -> Iterator[Row]:
    """Measure every tool at every size once in each round, in random order.

    A first run of each tool fills caches and is not counted.
    """
    for name, prepare in TOOLS.items():
        run(prepare(scratch / f"first-{name}", 1), scratch / f"first-{name}")
    for number in range(1, rounds + 1):
        for size in sizes:
            for name in random.Random(f"{number}/{size}").sample([*TOOLS], len(TOOLS)):
                folder = scratch / f"{name}-{size}-{number}"
                spent = run(TOOLS[name](folder, size), folder)
                made = [*folder.glob("results/raw/*/*/*.log"), *folder.glob("out/*")]
                if len(made) != size:
                    raise SystemExit(f"bench: {name} made {len(made)} of {size} cells")
                yield "cells", name, size, number, *spent
    log = sorted(folder.parent.glob(f"Strata-{sizes[-1]}-1/results/raw/*/*/*.log"))[-1]
    log.unlink()
    folder = scratch / f"Strata-{sizes[-1]}-1"
    yield "rerun", "Strata", sizes[-1], 1, *run([*SNAKEMAKE, str(log.relative_to(folder))], folder)


def dry(sizes: list[int], rounds: int, scratch: Path) -> Iterator[Row]:
    """Measure dry runs of this pipeline, and of Snakemake with a minimal rule."""
    for size in sizes:
        for name, prepare in TOOLS.items():
            folder = scratch / f"dry-{name}-{size}"
            prepare(folder, size)
            for number in range(1, rounds + 1):
                target = "cells" if name == "Strata" else "all"
                argv = [*SNAKEMAKE, "--dry-run", "--quiet", "rules", "--", target]
                yield "dry run", name, size, number, *run(argv, folder)


def logs(sizes: list[int], rounds: int, scratch: Path) -> Iterator[Row]:
    """Measure the tidy tables of logs of STREAM, and all other tables made of these."""
    commands = {
        "tidy": [sys.executable, "-m", "strata", "tidy"],
        "tables": ["Rscript", "analysis/tables.R", "results"],
    }
    for size in sizes:
        folder = scratch / f"logs-{size}"
        config = measured.page(
            repetitions=size // ENVIRONMENTS,
            environments=projects.default()["environments"],
            workloads={"stream": measured.page()["workloads"]["stream"]},
        )
        projects.make(folder, config)
        with contextlib.chdir(folder):
            experiment = measured.planned()
            plan.write_plan({**experiment, "source": {"revision": None, "changed": None}})
            measured.measure(folder, experiment, dict.fromkeys(experiment["environments"], 1.0))
        for number in range(1, rounds + 1):
            for theme, argv in commands.items():
                yield theme, "Strata", size, number, *run(argv, folder)


def report(rows: Iterable[Row]) -> str:
    """Return a Markdown table with the medians over the rounds."""
    rounds: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        rounds.setdefault(row[:3], []).append(row)
    lines = ["| | | number | CPU s | CPU ms each | MB |", "|---|---|---:|---:|---:|---:|"]
    for (theme, tool, size), measured_rows in rounds.items():
        cpu, peak = (statistics.median(row[column] for row in measured_rows) for column in (4, 5))
        lines.append(
            f"| {theme} | {tool} | {size:,} | {cpu:.2f} | {1000 * cpu / size:.1f} | {peak:.0f} |"
        )
    return "\n".join(lines)


def main(words: list[str]) -> None:
    """Measure what the options choose, print it and write the table."""
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
        "--to", type=Path, default=projects.ROOT / "results/bench.csv", help="file of the table"
    )
    options = parser.parse_args(words)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="strata-bench-") as scratch:
        for name, (measure, _) in themes.items():
            sizes = [int(word) for word in getattr(options, name).split(",") if word]
            for row in measure(sizes, options.rounds, Path(scratch)) if sizes else []:
                print(*row, flush=True)
                rows.append(row)
    options.to.parent.mkdir(parents=True, exist_ok=True)
    with open(options.to, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *rows])
    print(f"\n{report(rows)}\n\nbench: {options.to}; load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
