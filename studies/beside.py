#!/usr/bin/env python3
"""Measure the same ratios by `strata try` and by the ways in which other tools repeat.

Usage: studies/beside.py [--minutes 40] [--programs xz python] [--repetitions 10] [--budget 30s]

Needs root, Docker and hyperfine (`apt-get install hyperfine`).  In every repetition each tool
measures each pair of systems once with each program, in a new random order, so that all of them
meet the same hours.  Every measurement appends a line to results/beside/runs.csv; a second call
goes on from there.  At the end, or after the minutes, it prints a Markdown table and writes it,
and table.csv, beside the lines.

Beside Strata and hyperfine, which run themselves, it repeats as these tools are documented to:

Phoronix: three runs of each side, and while their standard deviation is 3 % or more, or one lies
beyond three of them, up to four times as many, then five times if that helps
  (phoronix-test-suite af4db559, pts_test_run_manager.php, increase_run_count_check);
  it prints the mean and its standard error.
ReBench: `invocations` of the first side, then as many of the second (the scheduler `batch`)
  (ReBench 0b994f7b, docs/config.md); it prints means, and leaves statistics to others.
ReFrame: `--repeat` of the first side, then of the second (reframe pull request 2539), and the
  mean of the second has to lie within a reference ± 2 % (`reference` of its regression tests).

Where a tool prints no interval of a ratio, the runs are also judged by Welch's test of their
logarithms, which is what hyperfine's own scripts do (scripts/welch_ttest.py).
"""

import argparse
import contextlib
import csv
import json
import math
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from stopping import student_quantile

from strata.environments.brake import TAKE_TIME
from strata.environments.chroot import MOUNT
from strata.environments.common import engine
from strata.experiment.folder import make_folder
from strata.host.context import VARIABLES
from strata.util import locks, paths
from strata.util.files import read_json, remove_tree
from strata.util.process import as_root

ROOT = Path(__file__).resolve().parent.parent
BASE = ROOT / "results/beside"
MARGIN, BRAKE = 0.02, 0.03
# Each program takes some tenths of a second, and makes its own data.
PROGRAMS = {
    "xz": "seq 250000 | xz -1 -c",
    "sort": "seq 400000 | sort -r",
    "sha256": "seq 4000000 | sha256sum",
    "python": "python3 -c 'sum(x * x for x in range(1500000))'",
}
# Pair → first system, second system, and whether the second differs: a twin does not, a brake does,
# of others nobody knows.
PAIRS = {
    "twins": ("native", "native-again", False),
    "docker": ("native", "docker", None),
    "brake": ("native", "native-braked", True),
    "gvisor": ("native", "docker-gvisor", None),
}
CHROOT = {"label": "Native", "layers": ["chroot"]}
CONTAINER = {"network": "bridge", "data": "volume"}
ENVIRONMENTS = {
    "native": CHROOT,
    "native-again": {**CHROOT, "label": "Native again"},
    "native-braked": {
        "label": "Native with a brake",
        "layers": ["chroot", {"brake": {"share": BRAKE}}],
    },
    "docker": {"label": "Docker", "layers": [{"docker": CONTAINER}]},
    "docker-gvisor": {
        "label": "gVisor",
        "layers": [{"docker": {**CONTAINER, "runtime": "runsc", "stack": "host"}}],
    },
}
COLUMNS = (
    "repetition", "program", "pair", "tool", "seconds", "runs", "ratio", "low", "high",
    "welch_low", "welch_high",
)  # fmt: skip
# The fixed numbers of runs of tools whose user chooses them, and Phoronix's scheduled ones.
INVOCATIONS, SCHEDULED = 10, 3
NOISY = 0.03
# What a measurement gives: see COLUMNS.
Result = dict[str, Any]
# Gives the seconds of some runs of a command.
Sampler = Callable[[list[str]], list[float]]


def time_runs(command: list[str], count: int) -> list[float]:
    """Run a command some times, and return the seconds of each run."""
    seconds = []
    for _ in range(count):
        begun = time.monotonic()
        subprocess.run(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
        seconds.append(time.monotonic() - begun)
    return seconds


def sample_by_fixed_number(command: list[str]) -> list[float]:
    """Run a command as often as a user of ReBench or ReFrame might choose."""
    return time_runs(command, INVOCATIONS)


def sample_by_hyperfine(command: list[str]) -> list[float]:
    """Run a command by hyperfine with its defaults, without a shell of its own."""
    export = BASE / "hyperfine.json"
    options = ["--shell=none", "--style=none", "--export-json", str(export)]
    shell_words = " ".join("'" + word.replace("'", "'\\''") + "'" for word in command)
    with open(BASE / "printed.log", "a") as log:
        subprocess.run(["hyperfine", *options, shell_words], stdout=log, stderr=log, check=True)
    times: list[float] = json.loads(export.read_text())["results"][0]["times"]
    return times


def sample_by_phoronix_rule(command: list[str]) -> list[float]:
    """Run a command until Phoronix's rule sees no need of another run."""
    seconds = time_runs(command, SCHEDULED)
    deviations: list[float] = []
    while True:
        mean, deviation = statistics.mean(seconds), statistics.stdev(seconds)
        is_outlying = any(abs(second - mean) > 3 * deviation for second in seconds)
        if deviation / mean < NOISY and not is_outlying:
            return seconds
        deviations.append(deviation / mean)
        most = SCHEDULED * 4
        helps = abs(deviations[0] - deviations[-1]) < deviations[0] / 2
        if len(seconds) >= most and not (len(seconds) < most + SCHEDULED and helps):
            return seconds
        seconds += time_runs(command, 1)


SAMPLERS: dict[str, Sampler] = {
    "hyperfine": sample_by_hyperfine,
    "Phoronix's rule": sample_by_phoronix_rule,
    "ReBench's way": sample_by_fixed_number,
    "ReFrame's way": sample_by_fixed_number,
}
# hyperfine is the only other tool that is also run in gVisor.
TOOLS = ("strata try", *SAMPLERS)


def compare_samples(tool: str, first: list[float], second: list[float]) -> Result:
    """Return the second system's share of the first one's speed, with two intervals.

    low, high: as the tool prints it: hyperfine by the standard deviations of the runs, Phoronix by
    the standard errors, ReFrame the limits of its reference; None for ReBench.
    welch_low, welch_high: 95 % by Welch's test of the logarithms.
    """
    means = statistics.mean(first), statistics.mean(second)
    ratio = means[0] / means[1]
    spreads = [statistics.stdev(side) / statistics.mean(side) for side in (first, second)]
    width = None
    if tool == "hyperfine":
        width = math.hypot(*spreads)
    elif tool == "Phoronix's rule":
        width = math.hypot(spreads[0] / len(first) ** 0.5, spreads[1] / len(second) ** 0.5)
    elif tool == "ReFrame's way":
        width = MARGIN
    logs = [[math.log(seconds) for seconds in side] for side in (first, second)]
    errors = [statistics.variance(side) / len(side) for side in logs]
    terms = [error**2 / (len(side) - 1) for error, side in zip(errors, logs, strict=True)]
    freedom = max(2.0, sum(errors) ** 2 / sum(terms)) if sum(terms) else 2.0
    middle = statistics.mean(logs[0]) - statistics.mean(logs[1])
    reach = student_quantile(freedom) * math.sqrt(sum(errors))
    return {
        "runs": len(first) + len(second),
        "ratio": ratio,
        "low": None if width is None else ratio * (1 - width),
        "high": None if width is None else ratio * (1 + width),
        "welch_low": math.exp(middle - reach),
        "welch_high": math.exp(middle + reach),
    }


@contextlib.contextmanager
def run_brake() -> Iterator[None]:
    """Take a share of the processors' time from all programs, as Strata's layer `brake` does."""
    argv = as_root(["python3", "-S", "-c", TAKE_TIME, str(BRAKE)])
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        time.sleep(0.2)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def start_systems(recipe: str, minutes: float) -> Iterator[dict[str, list[str]]]:
    """Start the containers for the other tools, and yield the words before a command by system.

    The containers remove themselves some time after the minutes, if this process is killed.
    """
    tree = os.path.join(paths.home_folder(), "images", recipe, "tree")
    # Read-only, as in Strata's own native systems: the cached image must stay as it was built.
    folder = BASE / "native"
    remove_tree(str(folder), unmount=True)
    places = [folder / name for name in ("root", "data", "tmp")]
    for place in places:
        place.mkdir(parents=True)
    root, data, temporary = map(str, places)
    mount = ["sh", "-euc", MOUNT, "strata", root, tree, data, temporary]
    native = as_root(["chroot", root, "env", "-i", *VARIABLES])
    prefixes = dict.fromkeys(("native", "native-again", "native-braked"), native)
    containers = []
    image = engine.tag({"recipe": recipe})
    try:
        subprocess.run(as_root(mount), check=True)
        for name, options in {
            "docker": [],
            "docker-gvisor": ["--runtime", "strata-runsc-host"],
        }.items():
            container = f"strata-beside-{name}-{os.getpid()}"
            holder = ["sleep", str(int(60 * minutes + 3600))]
            command = ["docker", "run", "--rm", "--detach", "--init", "--name", container]
            done = subprocess.run([*command, *options, image, *holder], capture_output=True)
            if done.returncode == 0:
                containers.append(container)
                prefixes[name] = ["docker", "exec", container, "env", "-i", *VARIABLES]
            elif name == "docker":
                raise SystemExit(f"beside: no container starts: {done.stderr.decode().strip()}")
        yield prefixes
    finally:
        if containers:
            subprocess.run(["docker", "rm", "--force", *containers], stdout=subprocess.DEVNULL)
        remove_tree(str(folder), unmount=True)


def try_command(script: str, pair: str, budget: str) -> Result | None:
    """Measure a pair by ``strata try``, and return its answer; None if it has none."""
    second = PAIRS[pair][1]
    answer = BASE / "answer.json"
    answer.unlink(missing_ok=True)
    options = ["--in", f"native,{second}", "--budget", budget, "--fresh", "--name", pair]
    command = [sys.executable, "-m", "strata", "try", *options, "--json", str(answer)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open(BASE / "printed.log", "a") as log:
        argv = [*command, "--", "sh", "-c", script]
        subprocess.run(argv, cwd=BASE / "project", env=variables, stdout=log, stderr=log)
    for row in (read_json(str(answer)) or {}).get("rows", []):
        if row["metric"] == "time" and row["environment"] == second and row["low"] is not None:
            result = {key: row[key] for key in ("ratio", "low", "high")}
            return {**result, "runs": row["n"], "welch_low": None, "welch_high": None}
    return None


def measure(
    tool: str, program: str, pair: str, prefixes: dict[str, list[str]], budget: str
) -> Result | None:
    """Measure a pair once by one tool, and return the result with the seconds that it took."""
    begun = time.monotonic()
    if tool == "strata try":
        result = try_command(PROGRAMS[program], pair, budget)
    else:
        samples = []
        with locks.hold_machine():
            begun = time.monotonic()
            for system in PAIRS[pair][:2]:
                braked = run_brake() if system == "native-braked" else contextlib.nullcontext()
                with braked:
                    command = [*prefixes[system], "sh", "-c", PROGRAMS[program]]
                    samples.append(SAMPLERS[tool](command))
        result = compare_samples(tool, *samples)
    return result and {"seconds": time.monotonic() - begun, **result}


def read_runs(path: Path) -> list[dict[str, str]]:
    """Return the lines that earlier calls appended."""
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def append_run(path: Path, row: Result) -> None:
    """Append a line; an empty cell is a value that the tool does not give."""
    is_new = not path.exists()
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def list_missing(
    options: argparse.Namespace, done: list[dict[str, str]], prefixes: dict[str, list[str]]
) -> Iterator[tuple[int, str, str, str]]:
    """Yield (repetition, program, pair, tool) of what is not measured yet, in random order."""
    keys = {(row["repetition"], row["program"], row["pair"], row["tool"]) for row in done}
    for repetition in range(1, options.repetitions + 1):
        turns = []
        for program in options.programs:
            for pair, (_, second, _) in PAIRS.items():
                tools = TOOLS[:2] if pair == "gvisor" else TOOLS
                turns += [(program, pair, tool) for tool in tools if second in prefixes]
        random.Random(repetition).shuffle(turns)
        for turn in turns:
            if (str(repetition), *turn) not in keys:
                yield repetition, *turn


def summarise(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the table's rows: one for each tool and each interval by which it is judged.

    Minutes to ± 2 % go with the square of a half-width.  They are those of 1.96 standard deviations
    of the ratio over repetitions, and of the interval if that narrows with more runs: hyperfine's
    own, and ReFrame's limits, do not.
    """
    table = []
    for tool in TOOLS:
        for gvisor in (False, True):
            strata_rows = [
                row for row in rows if row["tool"] == tool and gvisor == (row["pair"] == "gvisor")
            ]
            for kind, low, high in (("own", "low", "high"), ("Welch", "welch_low", "welch_high")):
                judged = [row for row in strata_rows if row[low]]
                if judged:
                    name = f"{tool}, in gVisor" if gvisor else tool
                    narrows = kind == "Welch" or tool in ("strata try", "Phoronix's rule")
                    cells = summarise_tool(judged, low, high, narrows)
                    table.append({"tool": name, "interval": kind, **cells})
    return table


def summarise_tool(
    rows: list[dict[str, str]], low: str, high: str, narrows: bool
) -> dict[str, str]:
    """Return the cells of one row of the table; "–" where there is no value."""
    minutes = [float(row["seconds"]) / 60 for row in rows]
    widths = [(float(row[high]) - float(row[low])) / (2 * float(row["ratio"])) for row in rows]
    to_margin = [m * (w / MARGIN) ** 2 for m, w in zip(minutes, widths, strict=True)]
    ratios: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        key = row["program"], row["pair"]
        ratios.setdefault(key, []).append(math.log(float(row["ratio"])))
    variances = [statistics.variance(logs) for logs in ratios.values() if len(logs) > 1]
    spread = math.sqrt(statistics.mean(variances)) if variances else None
    by_spread = None
    if spread is not None:
        by_spread = statistics.mean(minutes) * (1.96 * spread / MARGIN) ** 2

    def count_different(pair: str) -> str:
        chosen = [row for row in rows if row["pair"] == pair]
        different = [row for row in chosen if float(row[high]) < 1 or float(row[low]) > 1]
        return f"{len(different)} of {len(chosen)}" if chosen else "–"

    return {
        "measurements": str(len(rows)),
        "minutes of one": f"{statistics.mean(minutes):.2f}",
        "half-width": f"{100 * statistics.median(widths):.1f} %",
        "spread": "–" if spread is None else f"{100 * spread:.1f} %",
        "minutes to ± 2 % by interval": f"{statistics.median(to_margin):.1f}" if narrows else "–",
        "by spread": "–" if by_spread is None else f"{by_spread:.1f}",
        "twins called different": count_different("twins"),
        "brake of 3 % found": count_different("brake"),
    }


def write_table(table: list[dict[str, str]]) -> None:
    """Write the table as CSV and Markdown, and print the latter."""
    if not table:
        return
    names = list(table[0])
    with open(BASE / "table.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(table)
    lines = [names, ["---"] * 2 + ["--:"] * (len(names) - 2), *(row.values() for row in table)]
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    (BASE / "table.md").write_text(text)
    print(text, end="")


def prepare(budget: str) -> str:
    """Make the project of ``strata try``, with its image, and return the image's recipe."""
    if shutil.which("hyperfine") is None:
        raise SystemExit("beside: hyperfine is missing: `apt-get install hyperfine`")
    BASE.mkdir(parents=True, exist_ok=True)
    configuration = {"environments": ENVIRONMENTS, "workloads": {"command": {}}}
    make_folder(str(BASE / "project"), {"scale": "standard", "repetitions": 3, **configuration})
    # The first answer builds the image, and brings it to Docker; it is not counted.
    plan = BASE / "project/try/docker/results/plan.json"
    if not plan.exists() and try_command("true", "docker", budget) is None:
        raise SystemExit(f"beside: `strata try` has no answer: {BASE}/printed.log says why")
    recipe: str = (read_json(str(plan)) or {})["image"]["recipe"]
    return recipe


def main() -> None:
    """Measure what is missing until the minutes are over, and write the table of all lines."""
    parser = argparse.ArgumentParser(description="Compare strata try with other tools.")
    parser.add_argument("--minutes", type=float, default=40, help="the most time of measurement")
    parser.add_argument("--repetitions", type=int, default=10, help="of every measurement")
    parser.add_argument("--budget", default="30s", help="of each `strata try`")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=["xz", "python"])
    options = parser.parse_args()
    recipe = prepare(options.budget)
    path, begun = BASE / "runs.csv", time.monotonic()
    with start_systems(recipe, options.minutes) as prefixes:
        for repetition, *turn in list_missing(options, read_runs(path), prefixes):
            if time.monotonic() - begun > 60 * options.minutes:
                break
            program, pair, tool = turn
            print(f"beside: {repetition}: {program}, {pair}, {tool}", file=sys.stderr, flush=True)
            if result := measure(tool, program, pair, prefixes, options.budget):
                key = {"repetition": repetition, "program": program, "pair": pair, "tool": tool}
                append_run(path, {**key, **result})
            else:
                print(f"beside: no answer: {BASE}/printed.log says why", file=sys.stderr)
    write_table(summarise(read_runs(path)))


if __name__ == "__main__":
    main()
