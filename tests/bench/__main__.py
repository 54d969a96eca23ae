"""Measure what the machinery costs: ``python -m bench`` (docs/architecture.md).

Prints each command as it was measured and then the tables; writes cost.csv, cost.md and the figure cost.png
into a folder.
"""

import argparse
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import projects

from bench import cells, dry, idle, installed, logs, report, store
from bench.spent import environment, run
from bench.tools import Loop, Make, ReFrame, Snakemake, Strata, Tool

THEMES = ("cells", "dry", "logs", "archive", "idle")
# Of these there is a figure.
DRAWN = ("cells", "dry run", "table", "summary")
# Cells of each tool before the one that sleeps.
BEFORE_SLEEP = 100


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")] if text else []


def options(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default=",".join(THEMES), help=f"themes of {','.join(THEMES)}")
    parser.add_argument("--cells", type=_numbers, default="100,1000", help="numbers of cells, in rounds of all tools")
    parser.add_argument("--long", type=_numbers, default="10000", help="numbers of cells, once and without ReFrame")
    parser.add_argument("--dry", type=_numbers, default="100,1000,10000", help="numbers of cells of the dry run")
    parser.add_argument("--logs", type=_numbers, default="100,1000,10000", help="numbers of logs")
    parser.add_argument("--each", type=_numbers, default="4,400", help="numbers of logs of every workload")
    parser.add_argument("--archive", type=float, default=1e9, metavar="BYTES", help="logs in the archive")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-reframe", action="store_true", help="do not install it")
    parser.add_argument("--to", type=Path, default=projects.ROOT / "results/bench", help="where to (results/bench)")
    return parser.parse_args(words)


def about() -> list[str]:
    """The machine and the versions, a line each."""
    model = next((line.partition(": ")[2] for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "?")
    snakemake = subprocess.check_output([sys.executable, "-m", "snakemake", "--version"], text=True).strip()
    rscript = subprocess.run(["Rscript", "--version"], capture_output=True, text=True, check=True)
    r_version = (rscript.stdout + rscript.stderr).strip()
    return [
        f"{time.strftime('%Y-%m-%d')}: {os.cpu_count()} CPUs ({model.strip()}), Linux {platform.release()}, "
        f"Python {platform.python_version()}, Snakemake {snakemake}, {r_version}; load average at the start "
        f"{os.getloadavg()[0]:.1f}"
    ]


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def measure(chosen: argparse.Namespace, room: Path) -> report.Found:
    """All themes that were asked for."""
    found, themes = report.Found(), chosen.only.split(",")
    tools: list[Tool] = [Strata(), Snakemake(), Make(), Loop()]
    if not chosen.without_reframe and {"cells", "idle"} & set(themes):
        program, words = installed.reframe()
        if program is None:
            found.absent[ReFrame.name] = words
        else:
            tools.insert(2, ReFrame(program))
    if "cells" in themes:
        cells.rounds(tools, chosen.cells, chosen.rounds, room, found.rows)
        cells.rerun(chosen.cells[-1], chosen.rounds, room, found.rows)
    if "dry" in themes:
        dry.rounds(chosen.dry, chosen.rounds, room, found.rows)
    if "logs" in themes:
        logs.rounds([logs.LOAD], chosen.logs, chosen.rounds, room, found.rows)
        logs.rounds(logs.captured(), chosen.each, 1, room, found.rows, "each ")
    if "archive" in themes:
        found.archive = store.measure(int(chosen.archive), room, found.rows)
    if "idle" in themes:
        found.idle = [idle.measure(tool, room, BEFORE_SLEEP) for tool in tools]
    if "cells" in themes:
        for size in chosen.long:
            cells.once([tool for tool in tools if not isinstance(tool, ReFrame)], size, room, found.rows)
    return found


def main(words: list[str]) -> None:
    """Measure, print and write."""
    chosen = options(words)
    # A bench that is ended ends what it measures.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    machine = about()
    with tempfile.TemporaryDirectory(prefix="strata-bench-") as name:
        room = Path(name)
        found = measure(chosen, room)
        chosen.to.mkdir(parents=True, exist_ok=True)
        found.rows.write(chosen.to / "cost.csv")
        text = report.text(found, machine)
        (chosen.to / "cost.md").write_text(text)
        print("\n" + text)
        if not any(row.theme in DRAWN for row in found.rows):
            print(f"bench: {chosen.to}/cost.csv and cost.md; there is nothing to draw")
            return
        figure = ["Rscript", str(Path(__file__).parent / "figure.R"), "cost.csv", "cost.png"]
        print(run(figure, chosen.to.resolve(), environment(room / "home")).printed, end="")
    print(f"bench: {chosen.to}/cost.csv, cost.md and cost.png")


if __name__ == "__main__":
    main(sys.argv[1:])
