"""What the machinery costs: CPU seconds of cells that do nothing, beside Snakemake alone, GNU make and a shell loop.

Prints a table; nothing depends on the figures.  Usage: bench.py [--cells 50,200,1000] [--dry-run 10000]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent.parent.parent)]

import projects  # noqa: E402  # the tests' own helper, found by the path above

WORKLOADS = 10
SNAKEFILE = """\
rule all:
    input: expand("out/{{i}}", i=range({cells}))
rule cell:
    output: "out/{{i}}"
    shell: "/bin/echo 7 >{{output}}"
"""
MAKEFILE = """\
all: $(addprefix out/,$(shell seq {cells}))
out/%:
	@mkdir -p out; /bin/echo 7 >$@
"""
LOOP = "mkdir -p out; for i in $(seq {cells}); do /bin/echo 7 >out/$i; done"


def cpu(argv: list[str], folder: Path) -> tuple[float, float]:
    """CPU seconds of a command with all its children, and seconds on the clock."""
    begun = time.monotonic()
    process = subprocess.Popen(
        argv,
        cwd=folder,
        env={**projects.environment(), "STRATA_HOME": str(folder / "home")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(printed.decode())
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begun


def strata(folder: Path, cells: int) -> Path:
    """A project of so many cells that do nothing, on the host alone."""
    names = [f"noop{number}" for number in range(WORKLOADS)]
    config = projects.on_host(repetitions=cells // WORKLOADS, workloads=dict.fromkeys(names))
    return projects.make(folder / f"strata-{cells}", config, dict.fromkeys(names, projects.NOOP))


def compare(folder: Path, cells: int) -> dict[str, float]:
    """CPU seconds of so many cells in each of the four ways."""
    project = strata(folder, cells)
    batch = projects.command("snakemake", "--cores", "1", "--", "cells")
    found = {"strata": cpu(batch, project)[0]}
    plain = folder / f"plain-{cells}"
    plain.mkdir()
    (plain / "Snakefile").write_text(SNAKEFILE.format(cells=cells))
    (plain / "Makefile").write_text(MAKEFILE.format(cells=cells))
    greedy = projects.command("snakemake", "--cores", "1", "--scheduler", "greedy", "--quiet")
    found["snakemake"] = cpu(greedy, plain)[0]
    subprocess.run(["rm", "-rf", "out"], cwd=plain, check=True)
    found["make"] = cpu(["make", "-s"], plain)[0]
    subprocess.run(["rm", "-rf", "out"], cwd=plain, check=True)
    found["loop"] = cpu(["sh", "-c", LOOP.format(cells=cells)], plain)[0]
    return found


def rerun(folder: Path, cells: int) -> float:
    """CPU seconds to measure one deleted cell of a project that :func:`compare` has measured."""
    project = folder / f"strata-{cells}"
    (project / "results/raw/bare/noop3/7.log").unlink()
    return cpu(projects.command("snakemake", "--cores", "1", "results/raw/bare/noop3/7.log"), project)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", default="50,200,1000")
    parser.add_argument("--dry-run", type=int, default=10000)
    options = parser.parse_args()
    counts = [int(word) for word in options.cells.split(",")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("CPU seconds of cells that do nothing, one after another")
        print(f"{'cells':>6} {'Strata':>8} {'Snakemake':>10} {'make':>7} {'loop':>7}   {'Strata - Snakemake':>18}")
        for count in counts:
            found = compare(folder, count)
            extra = (found["strata"] - found["snakemake"]) / count * 1000
            figures = f"{found['strata']:8.2f} {found['snakemake']:10.2f} {found['make']:7.2f} {found['loop']:7.2f}"
            print(f"{count:6d} {figures}   {extra:12.1f} ms/cell", flush=True)
        print(f"rerun of one cell of {counts[-1]}: {rerun(folder, counts[-1]):.2f} CPU s", flush=True)
        project = strata(folder, options.dry_run)
        dry = projects.command("snakemake", "--cores", "1", "--dry-run", "--quiet", "rules", "--", "cells")
        seconds, _ = cpu(dry, project)
        print(f"dry run of {options.dry_run} cells: {seconds:.2f} CPU s")


if __name__ == "__main__":
    main()
