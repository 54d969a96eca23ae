#!/usr/bin/env python3
"""Measure the same ratios by `strata try` and by the ways in which other tools repeat.

Usage: studies/beside.py [--minutes 40] [--programs xz python] [--pairs twins docker]
                         [--tools "strata try" hyperfine] [--repetitions 10] [--budget 30]

Needs root, Docker and hyperfine (`apt-get install hyperfine`).  In every repetition each tool
measures each pair of systems once with each program, in a new random order, so that all of them
meet the same changes of the machine.  Every measurement appends a row to results/beside/runs.csv;
a second call continues after the last row.  At the end, or after the minutes, it prints a Markdown
table, and writes it to table.md and table.csv beside runs.csv.

hyperfine measures in two ways: with its defaults, and with as many runs as take the mean seconds of
`strata try` for this program and pair.  Other tools are not run: this study repeats programs as
their code or documents describe:

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
import functools
import json
import math
import os
import random
import shlex
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

from stopping import compute_student_quantile

from strata.environments.brake import TAKE_TIME
from strata.environments.chroot import MOUNT
from strata.environments.common import engine
from strata.experiment.folder import prepare_experiment_folder
from strata.host.context import VARIABLES
from strata.util import locks, paths
from strata.util.files import read_json, remove_tree
from strata.util.process import wrap_as_root

ROOT = Path(__file__).resolve().parent.parent
BASE = ROOT / "results/beside"
# The relative half-width in question, and the share of the processors' time that the brake takes.
MARGIN, BRAKE = 0.02, 0.03
# Each program takes about a third of a second, and makes its own data.
PROGRAMS = {
    "xz": "seq 1800000 | xz -1 -c",
    "sort": "seq 1000000 | sort -r",
    "sha256": "seq 10000000 | sha256sum",
    "python": "python3 -c 'sum(x * x for x in range(4000000))'",
}
# Pair → first and second system.  Twins do not differ, and a brake does.
PAIRS = {
    "twins": ("native", "native-again"),
    "docker": ("native", "docker"),
    "brake": ("native", "native-braked"),
    "gvisor": ("native", "docker-gvisor"),
}
# System → options of `docker run`.
RUNTIMES = {"docker": [], "docker-gvisor": ["--runtime", "strata-runsc-host"]}
CHROOT = {"label": "Native", "layers": ["chroot"]}
CONTAINER = {"network": "bridge", "data": "volume"}
# PAIRS names them: native-again shows false differences, native-braked whether a loss is found.
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
# From this relative standard deviation on, Phoronix runs again.
NOISY = 0.03
# The result of a measurement: values by names of COLUMNS.
Result = dict[str, Any]
# A function that runs a command several times, and returns the seconds of each run.
Sampler = Callable[[list[str]], list[float]]


def time_runs(command: list[str], count: int) -> list[float]:
    """Run a command `count` times, and return the seconds of each run.

    Raises CalledProcessError if a run fails.
    """
    seconds = []
    for _ in range(count):
        begun = time.monotonic()
        subprocess.run(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
        seconds.append(time.monotonic() - begun)
    return seconds


def sample_by_fixed_number(command: list[str]) -> list[float]:
    """Return the seconds of as many runs as a user of ReBench or ReFrame might choose.

    Raises CalledProcessError if a run fails.
    """
    return time_runs(command, INVOCATIONS)


def sample_by_hyperfine(command: list[str]) -> list[float]:
    """Run a command by hyperfine with its defaults, but without a shell; return each run's seconds.

    Overwrites hyperfine.json in BASE.  Raises CalledProcessError if hyperfine or a run fails.
    """
    return run_hyperfine(command, [])


def run_hyperfine(command: list[str], further_options: list[str]) -> list[float]:
    """Run a command by hyperfine with further options, and return the seconds of each run.

    Overwrites hyperfine.json in BASE.  Raises CalledProcessError if hyperfine or a run fails.
    """
    export = BASE / "hyperfine.json"
    options = ["--shell=none", "--style=none", "--export-json", str(export), *further_options]
    argv = ["hyperfine", *options, shlex.join(command)]
    with open(BASE / "printed.log", "a") as log:
        subprocess.run(argv, stdout=log, stderr=log, check=True)
    times: list[float] = json.loads(export.read_text())["results"][0]["times"]
    return times


def sample_by_phoronix_rule(command: list[str]) -> list[float]:
    """Run a command until Phoronix's rule is satisfied, and return the seconds of each run.

    The module's docstring describes the rule.
    Raises CalledProcessError if a run fails.
    """
    run_seconds = time_runs(command, SCHEDULED)
    first_deviation: float | None = None
    while True:
        mean = statistics.mean(run_seconds)
        standard_deviation = statistics.stdev(run_seconds)
        relative_deviation = standard_deviation / mean
        has_outlier = any(abs(seconds - mean) > 3 * standard_deviation for seconds in run_seconds)
        if relative_deviation < NOISY and not has_outlier:
            return run_seconds
        if first_deviation is None:
            first_deviation = relative_deviation
        # The limit is higher if the deviation changed by less than half of the first one.
        is_steady = abs(first_deviation - relative_deviation) < first_deviation / 2
        max_runs = SCHEDULED * (5 if is_steady else 4)
        if len(run_seconds) >= max_runs:
            return run_seconds
        run_seconds += time_runs(command, 1)


def sample_for_seconds(command: list[str], seconds: float) -> list[float]:
    """Run a command by hyperfine for about `seconds`, and return the seconds of each run.

    command: the program and its arguments.
    seconds: the duration of all runs together, which a first run converts to a number of runs.
    There are at least ten runs, hyperfine's own minimum.
    Overwrites hyperfine.json in BASE.  Raises CalledProcessError if hyperfine or a run fails.
    """
    [run_seconds] = time_runs(command, 1)
    run_count = max(10, round(seconds / run_seconds))
    return run_hyperfine(command, ["--runs", str(run_count)])


SAMPLERS: dict[str, Sampler] = {
    "hyperfine": sample_by_hyperfine,
    "Phoronix's rule": sample_by_phoronix_rule,
    "ReBench's way": sample_by_fixed_number,
    "ReFrame's way": sample_by_fixed_number,
}
# hyperfine with as many runs as take the time of `strata try`; see sample_for_seconds.
AS_LONG = "hyperfine, as long"
TOOLS = ("strata try", AS_LONG, *SAMPLERS)
GVISOR_TOOLS = ("strata try", AS_LONG, "hyperfine")


def compare_samples(tool: str, first: list[float], second: list[float]) -> Result:
    """Return the second system's speed as a share of the first one's, with two intervals.

    tool: one of TOOLS.
    first: the seconds of each run in the first system.
    second: the seconds of each run in the second system.
    Returns a mapping whose keys are names of COLUMNS.  `low` and `high` are the interval that the
    tool prints, and None if it prints none.  `welch_low` and `welch_high` are the 95 % interval by
    Welch's test of the logarithms.
    """
    ratio = statistics.mean(first) / statistics.mean(second)
    half_width = compute_own_half_width(tool, first, second)
    welch_low, welch_high = compute_welch_interval(first, second)
    return {
        "runs": len(first) + len(second),
        "ratio": ratio,
        "low": None if half_width is None else ratio * (1 - half_width),
        "high": None if half_width is None else ratio * (1 + half_width),
        "welch_low": welch_low,
        "welch_high": welch_high,
    }


def compute_own_half_width(tool: str, first: list[float], second: list[float]) -> float | None:
    """Return the relative half-width that a tool prints with a ratio; None if it prints none.

    tool: one of TOOLS.
    first: the seconds of each run in the first system, at least two.
    second: the seconds of each run in the second system, at least two.
    The half-width follows from the standard deviations of the runs for hyperfine, from their
    standard errors for Phoronix, and from the limits of the reference for ReFrame.
    """
    spreads = [statistics.stdev(sample) / statistics.mean(sample) for sample in (first, second)]
    if tool in ("hyperfine", AS_LONG):
        return math.hypot(*spreads)
    if tool == "Phoronix's rule":
        return math.hypot(spreads[0] / len(first) ** 0.5, spreads[1] / len(second) ** 0.5)
    return MARGIN if tool == "ReFrame's way" else None


def compute_welch_interval(first: list[float], second: list[float]) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of two geometric means, by Welch's test.

    first: the seconds of each run in the first system, at least two, all positive.
    second: the seconds of each run in the second system, at least two, all positive.
    Returns (low, high) of the first mean over the second; both ends are equal if no run differs
    from another of its system.
    """
    logarithms = [[math.log(seconds) for seconds in sample] for sample in (first, second)]
    # The variance of each mean.
    mean_variances = [statistics.variance(sample) / len(sample) for sample in logarithms]
    denominator = sum(
        variance**2 / (len(sample) - 1)
        for variance, sample in zip(mean_variances, logarithms, strict=True)
    )
    # Degrees of freedom by Welch and Satterthwaite; at least 2, the domain of the quantile.
    freedom = 2.0
    if denominator:
        freedom = max(2.0, sum(mean_variances) ** 2 / denominator)
    difference = statistics.mean(logarithms[0]) - statistics.mean(logarithms[1])
    half_width = compute_student_quantile(freedom) * math.sqrt(sum(mean_variances))
    return math.exp(difference - half_width), math.exp(difference + half_width)


@contextlib.contextmanager
def run_brake() -> Iterator[None]:
    """Take the share BRAKE of the processors' time from all other programs in a `with` block.

    Needs root.  TAKE_TIME is the program of Strata's layer `brake`.
    """
    argv = wrap_as_root(["python3", "-S", "-c", TAKE_TIME, str(BRAKE)])
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        # The brake needs a moment to start, and does not report when it has.
        time.sleep(0.2)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def start_system(system: str, recipe: str) -> Iterator[list[str]]:
    """Start a system for tools other than Strata, and yield the prefix of commands in it.

    system: a key of ENVIRONMENTS.
    recipe: the recipe of the image, which must be cached and imported into Docker.
    No other system may be up, since an idle sandbox slows programs of other systems.
    A container ends and is removed after an hour if this process is killed.  A native system is the
    image's tree, mounted in BASE/native; if this process is killed, the next call unmounts it.
    Raises CalledProcessError if the system does not start.
    """
    if system in RUNTIMES:
        container = f"strata-beside-{os.getpid()}"
        image = engine.format_image_name({"recipe": recipe})
        options = ["--rm", "--detach", "--init", "--name", container, *RUNTIMES[system]]
        command = ["docker", "run", *options, image, "sleep", "3600"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        try:
            yield ["docker", "exec", container, "env", "-i", *VARIABLES]
        finally:
            subprocess.run(["docker", "rm", "--force", container], stdout=subprocess.DEVNULL)
        return
    # Read-only, as in Strata's own native systems: the cached image must stay as it was built.
    folder = BASE / "native"
    remove_tree(str(folder), unmount=True)
    root, data, temporary = (str(folder / name) for name in ("root", "data", "tmp"))
    for path in (root, data, temporary):
        os.makedirs(path)
    tree = os.path.join(paths.get_home_folder(), "images", recipe, "tree")
    mount = ["sh", "-euc", MOUNT, "strata", root, tree, data, temporary]
    try:
        subprocess.run(wrap_as_root(mount), check=True)
        with run_brake() if system == "native-braked" else contextlib.nullcontext():
            yield wrap_as_root(["chroot", root, "env", "-i", *VARIABLES])
    finally:
        remove_tree(str(folder), unmount=True)


def has_gvisor() -> bool:
    """Return whether Docker has gVisor's runtime."""
    command = ["docker", "info", "--format", "{{json .Runtimes}}"]
    # If Docker fails, it prints no runtime, and the result is False.
    result = subprocess.run(command, capture_output=True, text=True)
    return RUNTIMES["docker-gvisor"][1] in result.stdout


def measure_by_strata_try(script: str, pair: str, budget: float) -> Result | None:
    """Measure a script in a pair of systems by ``strata try``, and return the result.

    script: commands for sh.
    pair: a key of PAIRS.
    budget: the seconds of the measurement.
    Returns None if ``strata try`` gives no interval, also if it fails.
    Replaces the earlier measurement of the pair in the project in BASE, and appends the output to
    printed.log.
    """
    second = PAIRS[pair][1]
    answer = BASE / "answer.json"
    answer.unlink(missing_ok=True)
    options = ["--in", f"native,{second}", "--budget", f"{budget:g}s", "--fresh", "--name", pair]
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


def measure_pair(tool: str, program: str, pair: str, recipe: str, seconds: float) -> Result | None:
    """Measure a pair once by one tool, and return the result with the seconds that it took.

    tool: one of TOOLS.
    program: a key of PROGRAMS.
    pair: a key of PAIRS.
    recipe: the recipe of the image, which must be cached and imported into Docker.
    seconds: the budget of ``strata try``, and the time of AS_LONG for both systems.
    Returns None if ``strata try`` gives no interval.
    Raises CalledProcessError if a system does not start, or a run fails.
    The machine's lock is held while another tool runs; ``strata try`` takes the lock itself.
    """
    start = time.monotonic()
    if tool == "strata try":
        result = measure_by_strata_try(PROGRAMS[program], pair, seconds)
        if result is None:
            return None
    else:
        # Only AS_LONG has no sampler of its own.
        sampler = SAMPLERS.get(tool, functools.partial(sample_for_seconds, seconds=seconds / 2))
        samples = []
        with locks.hold_machine_lock():
            # The wait for the lock does not count.
            start = time.monotonic()
            for system in PAIRS[pair]:
                with start_system(system, recipe) as prefix:
                    samples.append(sampler([*prefix, "sh", "-c", PROGRAMS[program]]))
        result = compare_samples(tool, *samples)
    return {"seconds": time.monotonic() - start, **result}


def compute_mean_try_seconds(rows: list[dict[str, str]], program: str, pair: str) -> float | None:
    """Return the mean seconds of ``strata try`` for a program and pair; None without a row of it.

    rows: rows of :func:`read_runs`.
    """
    key = ("strata try", program, pair)
    seconds = []
    for row in rows:
        if (row["tool"], row["program"], row["pair"]) == key:
            seconds.append(float(row["seconds"]))
    return statistics.mean(seconds) if seconds else None


def read_runs(path: Path) -> list[dict[str, str]]:
    """Return the rows of runs.csv, each ``{column: text}``; [] if the file is missing."""
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def append_run(path: Path, row: Result) -> None:
    """Append a row, whose keys are COLUMNS, to a CSV file, which is created if it is missing.

    None, for a value that the tool does not give, becomes an empty field.
    """
    is_new = not path.exists()
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def list_missing_measurements(
    options: argparse.Namespace, rows: list[dict[str, str]]
) -> Iterator[tuple[int, str, str, str]]:
    """Yield (repetition, program, pair, tool) of each missing measurement, in random order.

    options: the options of the command line.
    rows: the rows of runs.csv, as :func:`read_runs` returns them.
    The order in a repetition is the same in each call with the same programs, pairs and tools, so
    that a second call continues where the first one ended.  The pair with gVisor is left out if
    Docker does not have it.
    """
    measured_keys = {(row["repetition"], row["program"], row["pair"], row["tool"]) for row in rows}
    for repetition in range(1, options.repetitions + 1):
        measurements = []
        for program in options.programs:
            for pair in options.pairs:
                if pair == "gvisor" and not has_gvisor():
                    continue
                tools = GVISOR_TOOLS if pair == "gvisor" else TOOLS
                for tool in tools:
                    if tool in options.tools:
                        measurements.append((program, pair, tool))
        random.Random(repetition).shuffle(measurements)
        for measurement in measurements:
            if (str(repetition), *measurement) not in measured_keys:
                yield repetition, *measurement


def summarise_runs(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the rows of the table: one for each tool and each of its two intervals.

    rows: the rows of runs.csv, as :func:`read_runs` returns them.
    The intervals are the tool's own and that of Welch's test.  An interval without values has no
    row.  hyperfine's own interval and ReFrame's limits do not narrow with more runs.
    """
    table = []
    for tool in TOOLS:
        rows_of_tool = [row for row in rows if row["tool"] == tool]
        gvisor_rows = [row for row in rows_of_tool if row["pair"] == "gvisor"]
        other_rows = [row for row in rows_of_tool if row["pair"] != "gvisor"]
        for name, rows_of_name in ((tool, other_rows), (f"{tool}, in gVisor", gvisor_rows)):
            for kind, low, high in (("own", "low", "high"), ("Welch", "welch_low", "welch_high")):
                rows_with_interval = [row for row in rows_of_name if row[low]]
                if rows_with_interval:
                    is_narrowing = kind == "Welch" or tool in ("strata try", "Phoronix's rule")
                    cells = summarise_measurements(rows_with_interval, low, high, is_narrowing)
                    table.append({"tool": name, "interval": kind, **cells})
    return table


def summarise_measurements(
    rows: list[dict[str, str]], low: str, high: str, is_narrowing: bool
) -> dict[str, str]:
    """Return ``{column: cell}`` of one row of the table; "–" stands for a missing value.

    rows: rows of runs.csv, not empty, in which the columns of the interval have values.
    low: the column of the interval's lower end.
    high: the column of the interval's upper end.
    is_narrowing: whether the interval narrows with more runs.
    The minutes to ± 2 % grow with the square of a half-width.  One column takes the half-width of
    the interval, the other 1.96 standard deviations of the ratio over the repetitions, the 95 %
    quantile of a normal distribution.
    """
    minutes = [float(row["seconds"]) / 60 for row in rows]
    minutes_to_margin = []
    half_widths = []
    ratios: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        ratio = float(row["ratio"])
        half_widths.append((float(row[high]) - float(row[low])) / (2 * ratio))
        minutes_to_margin.append(float(row["seconds"]) / 60 * (half_widths[-1] / MARGIN) ** 2)
        ratios.setdefault((row["program"], row["pair"]), []).append(math.log(ratio))
    cells = {
        "measurements": str(len(rows)),
        "minutes of one": f"{statistics.mean(minutes):.2f}",
        "half-width": f"{100 * statistics.median(half_widths):.1f} %",
        "spread": "–",
        "minutes to ± 2 % by interval": "–",
        "by spread": "–",
        "twins called different": format_different_count(rows, "twins", low, high),
        "brake of 3 % found": format_different_count(rows, "brake", low, high),
    }
    if is_narrowing:
        cells["minutes to ± 2 % by interval"] = f"{statistics.median(minutes_to_margin):.1f}"
    variances = [statistics.variance(logs) for logs in ratios.values() if len(logs) > 1]
    if variances:
        spread = math.sqrt(statistics.mean(variances))
        cells["spread"] = f"{100 * spread:.1f} %"
        cells["by spread"] = f"{statistics.mean(minutes) * (1.96 * spread / MARGIN) ** 2:.1f}"
    return cells


def format_different_count(rows: list[dict[str, str]], pair: str, low: str, high: str) -> str:
    """Return how many intervals of a pair exclude 1, for example "2 of 40"; "–" without rows.

    rows: rows of runs.csv, in which the columns of the interval have values.
    pair: a key of PAIRS.
    low: the column of the interval's lower end.
    high: the column of the interval's upper end.
    """
    rows_of_pair = [row for row in rows if row["pair"] == pair]
    different = [row for row in rows_of_pair if float(row[high]) < 1 or float(row[low]) > 1]
    return f"{len(different)} of {len(rows_of_pair)}" if rows_of_pair else "–"


def write_table(table: list[dict[str, str]]) -> None:
    """Write the table as table.csv and table.md, and print it in Markdown.

    table: rows of :func:`summarise_runs`; without rows nothing is written or printed.
    """
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


def prepare_project(budget: float) -> str:
    """Make the project of ``strata try`` with its image, and return the recipe of the image.

    budget: the seconds of the first measurement, which builds the image.
    A second call only updates the project's configuration.
    Raises SystemExit if hyperfine is missing, or if the first measurement gives no interval.
    """
    if shutil.which("hyperfine") is None:
        raise SystemExit("beside: hyperfine is missing: `apt-get install hyperfine`")
    BASE.mkdir(parents=True, exist_ok=True)
    configuration = {"environments": ENVIRONMENTS, "workloads": {"command": {}}}
    prepare_experiment_folder(
        str(BASE / "project"), {"scale": "standard", "repetitions": 3, **configuration}
    )
    # The first measurement builds the image and imports it into Docker; its result is not used.
    plan = BASE / "project/try/docker/results/plan.json"
    if not plan.exists() and measure_by_strata_try("true", "docker", budget) is None:
        raise SystemExit(f"beside: `strata try` has no answer: {BASE}/printed.log says why")
    recipe: str = (read_json(str(plan)) or {})["image"]["recipe"]
    return recipe


def main() -> None:
    """Make the missing measurements until the minutes are up, and write the table of all rows."""
    parser = argparse.ArgumentParser(description="Compare strata try with other tools.")
    parser.add_argument("--minutes", type=float, default=40, help="the most time of measurement")
    parser.add_argument("--repetitions", type=int, default=10, help="of every measurement")
    parser.add_argument("--budget", type=float, default=30, help="seconds of each `strata try`")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=["xz", "python"])
    parser.add_argument("--pairs", nargs="+", choices=PAIRS, default=list(PAIRS))
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    options = parser.parse_args()
    recipe = prepare_project(options.budget)
    path, begun = BASE / "runs.csv", time.monotonic()
    for repetition, program, pair, tool in list_missing_measurements(options, read_runs(path)):
        if time.monotonic() - begun > 60 * options.minutes:
            break
        seconds = options.budget
        if tool == AS_LONG:
            seconds = compute_mean_try_seconds(read_runs(path), program, pair) or options.budget
        print(f"beside: {repetition}: {program}, {pair}, {tool}", file=sys.stderr, flush=True)
        if result := measure_pair(tool, program, pair, recipe, seconds):
            key = {"repetition": repetition, "program": program, "pair": pair, "tool": tool}
            append_run(path, {**key, **result})
        else:
            print(f"beside: no answer: {BASE}/printed.log says why", file=sys.stderr)
    write_table(summarise_runs(read_runs(path)))


if __name__ == "__main__":
    main()
