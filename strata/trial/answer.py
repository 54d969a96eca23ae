"""The answer of ``strata try``: the experiment's tables as lines, as JSON and as CSV."""

import csv
import glob
import json
import os
import shlex
import statistics
from collections.abc import Sequence

from strata.environments import docker
from strata.environments.common import docker_daemon, engine, limits, passed_options
from strata.experiment import blocks
from strata.experiment.blocks import REFERENCE
from strata.host.context import Context
from strata.image import cache
from strata.trial.request import WORK_FOLDER, WORKLOAD, Request
from strata.util import paths
from strata.util.constants import get_result_path
from strata.util.data_types import Fields, Plan
from strata.util.files import format_csv, read_json, write_output
from strata.util.progress import format_duration

# The columns of the answer's rows; their order is the format of its CSV.
COLUMNS = (
    "metric", "unit", "environment", "label", "n", "level", "level_low", "level_high", "ratio",
    "low", "high", "verdict", "direction", "more", "reason",
)  # fmt: skip

# The reason of an environment without a value that no record explains.
NOT_MEASURED = "not measured"
# The steps of a cell that run the command, as strata/measure/steps.py names them in an error.
STEPS = ("run", "warmup", "prepare")
# Time and size units with smaller prefixes: unit → (value of the prefixed unit, its name), …
PREFIXED_UNITS = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "MB": ((1e3, "GB"), (1.0, "MB"), (1e-3, "kB")),
}
# Arguments: the files of the image, a folder for /data, options of chroot, and a command.  Root runs
# it by sh -eu in a mount namespace of its own, whose mounts end with the command.
MOUNT = (
    'tree=$0; data=$1; shift; mount --bind "$tree" "$tree"; mount -o remount,bind,ro "$tree"; '
    'for name in proc sys dev; do mount --rbind "/$name" "$tree/$name"; done; '
    'mount --bind "$data" "$tree/data"; mount -t tmpfs tmpfs "$tree/tmp"; exec chroot "$@"'
)
# A ratio that needs more blocks than these is too close to the margin, or varies too much.
MAX_BLOCKS = 5000


def read_table(folder: str, name: str) -> list[dict[str, str]]:
    """Return the rows of a table of an experiment, as texts; empty if there is no such table.

    name: the table's name in analysis/tables.R, which writes it, such as ``summary``.
    """
    path = os.path.join(folder, get_result_path(name))
    if not os.path.exists(path):
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def collect_answer_rows(folder: str) -> list[Fields]:
    """Return the answer: a row for each metric and environment, the deciding metrics first.

    The keys are COLUMNS and `headline`: whether the metric decides.  Numbers come from summary.csv
    and comparisons.csv; an unknown number is None.
    `reason` says why a ratio has no interval; `more` is how many further blocks would decide.
    The list is empty before the tables are made.
    """
    # The workload has no factors, so that metric and environment name a series.
    comparisons = {
        (row["metric"], row["environment"]): row for row in read_table(folder, "comparisons")
    }
    summary = read_table(folder, "summary")
    rows: list[Fields] = []
    # False is sorted before True.
    for row in sorted(summary, key=lambda row: row["headline"] != "yes"):
        # Native is compared with nothing.
        comparison = comparisons.get((row["metric"], row["environment"]), {})
        numbers = {key: _parse_number(row[key]) for key in ("level", "level_low", "level_high")}
        for key in ("ratio", "low", "high", "more"):
            numbers[key] = _parse_number(comparison.get(key, ""))
        rows.append(
            {
                **{key: row[key] for key in ("metric", "unit", "environment", "label")},
                "n": int(comparison.get("n") or row["n"]),
                **numbers,
                "verdict": comparison.get("verdict", ""),
                "direction": comparison.get("direction", ""),
                "reason": comparison.get("why", ""),
                "headline": row["headline"] == "yes",
            }
        )
    return rows


def explain_missing_values(folder: str, experiment: Plan, rows: Sequence[Fields]) -> dict[str, str]:
    """Return ``{environment: reason}`` for each environment of the plan that has no value.

    rows: the answer, as :func:`collect_answer_rows` returns it.
    The reason is NOT_MEASURED if no record gives one; the command treats this case separately.
    """
    answered = {row["environment"] for row in rows}
    reasons = {}
    for name, environment in experiment["environments"].items():
        if name in answered:
            continue
        if not environment["available"]:
            reasons[name] = f"not available: {environment['reason']}"
            continue
        reasons[name] = NOT_MEASURED
        # The last record with a reason counts; one below raw/ says that the command cannot run.
        for kind in ("failed", "raw"):
            pattern = f"{glob.escape(folder)}/results/{kind}/{name}/{WORKLOAD}/*.json"
            for path in sorted(glob.glob(pattern)):
                record = read_json(path) or {}
                if "error" in record:
                    reasons[name] = shorten_cell_error(record["error"])
                elif "cannot" in record:
                    reasons[name] = (
                        f"cannot run it: {shorten_cell_error(record['cannot']['reason'])}"
                    )
    return reasons


def shorten_cell_error(error: str) -> str:
    """Return a cell's error without the texts that Strata adds to the command's own message.

    strata/measure/cell.py and strata/measure/steps.py write these texts: change them together.  3
    is the exit code of workloads/command/src/timed.c if the command failed.
    """
    text = " ".join(error.split()).removeprefix("its parser refuses the log: ")
    for step in STEPS:
        text = text.removeprefix(f"its {step} step ended with exit code 3; it printed last: ")
    # The error joins the log's last lines by " / "; the harness's own lines are JSON objects.
    return " / ".join(line for line in text.split(" / ") if not line.startswith("{"))


def _parse_number(text: str) -> float | None:
    """Return the number in a field of a table; None if the field is empty."""
    return float(text) if text else None


def format_level(value: float, unit: str) -> str:
    """Return a value with three digits and its unit; seconds and bytes get a suitable prefix."""
    for size, name in PREFIXED_UNITS.get(unit, ((1.0, unit),)):
        # Values below the smallest unit get this unit, too, since the loop ends with it.
        scaled, shown_unit = value / size, name
        if value >= size:
            break
    decimals = 0
    # A value that is rounded up gets the decimals of its result: 9.996 is 10.0, and 99.96 is 100.
    if scaled < 9.995:
        decimals = 2
    elif scaled < 99.95:
        decimals = 1
    return f"{scaled:,.{decimals}f} {shown_unit}"


def format_verdict(row: Fields, margin: float, seconds: float) -> str:
    """Return the verdict on a ratio in plain words, or why it is not known.

    row: a row of :func:`collect_answer_rows`.
    margin: the smallest difference that matters, as a share.
    seconds: how long one more block takes.
    """
    share = f"{100 * margin:g} %"
    if row["verdict"] == "different":
        return f"{row['direction']} by more than {share}"
    if row["verdict"] == "equivalent":
        return f"no difference of {share} or more"
    if row["low"] is None:
        return row["reason"] or "not decided"
    if row["more"] is None:
        return f"undecided at {share}"
    if row["more"] > MAX_BLOCKS:
        return f"undecided at {share}: too close to it, or too variable"
    needed = format_duration(row["more"] * seconds)
    return f"undecided at {share}: about {row['more']:.0f} more blocks ({needed}) would decide"


def format_answer_lines(
    rows: Sequence[Fields], missing: dict[str, str], margin: float, seconds: float
) -> list[str]:
    """Return the answer as lines for the terminal.

    rows: as :func:`collect_answer_rows` returns them.
    missing: as :func:`explain_missing_values` returns it.
    margin: the smallest difference that matters, as a share.
    seconds: how long one more block takes.
    The lines show the metrics that decide and the wall time, and then the CPU time and memory of
    each environment.
    """
    lines = []
    width = max(map(len, [*(row["environment"] for row in rows), *missing]), default=0)
    shown = [row for row in rows if row["headline"] or row["metric"] == "time"]
    metrics = list(dict.fromkeys(row["metric"] for row in shown))
    for metric in metrics:
        # A heading for the wall time, which every command has, is needed only beside other metrics.
        if len(metrics) > 1 or metric != "time":
            lines.append(f"{metric}:")
        for row in rows:
            if row["metric"] == metric:
                text = _format_row(row, margin, seconds)
                lines.append(f"  {row['environment']:{width}}  {text}")
    for name, reason in missing.items():
        lines.append(f"  {name:{width}}  {reason}")
    return lines + _format_resources(rows, width)


def _format_row(row: Fields, margin: float, seconds: float) -> str:
    """Return a row of the answer as a text: native's level, or a ratio to native and its verdict.

    A metric that does not decide has no verdict.  The arguments are as for :func:`format_verdict`.
    """
    level = format_level(row["level"], row["unit"])
    if row["environment"] == REFERENCE:
        return level
    if row["ratio"] is None:
        return f"{level}  not compared with native"
    interval = ""
    if row["low"] is not None:
        interval = f" [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
    ratio = f"{100 * row['ratio']:.1f} % of native's speed{interval}"
    if not row["headline"]:
        return f"{ratio} (n = {row['n']})"
    # The verdicts begin in one column: few ratios with intervals are longer than 43 characters.
    return f"{ratio:43}  {format_verdict(row, margin, seconds)} (n = {row['n']})"


def _format_resources(rows: Sequence[Fields], width: int) -> list[str]:
    """Return a line for each environment whose CPU time and peak memory are known.

    width: the number of columns of the environments' names.
    """
    # Metrics of workloads/command/workload.yaml.
    metrics = ("cpu", "user", "system", "memory")
    # Environment → metric → its level as a text.
    levels: dict[str, dict[str, str]] = {}
    for row in rows:
        if row["metric"] in metrics:
            level = format_level(row["level"], row["unit"])
            levels.setdefault(row["environment"], {})[row["metric"]] = level
    return [
        f"  {name:{width}}  CPU {shown['cpu']} (user {shown['user']}, system "
        f"{shown['system']}), peak memory {shown['memory']}"
        for name, shown in levels.items()
        if len(shown) == len(metrics)
    ]


def compute_block_seconds(folder: str, experiment: Plan) -> float:
    """Return the median seconds that a block of an experiment took; 0 if none was measured.

    They come from the records of measured cells, and include the time to bring up an environment.
    """
    order = blocks.Order(experiment, os.path.join(folder, "results"))
    # Repetition, which is the number of the block → its seconds.
    seconds: dict[int, float] = {}
    for cell in order.list_cells():
        if record := read_json(os.path.join(folder, paths.get_cell_path("raw", *cell, "json"))):
            _, _, repetition = cell
            seconds[repetition] = seconds.get(repetition, 0.0) + record["seconds"]
    return statistics.median(seconds.values()) if seconds else 0.0


def describe_disturbed_blocks(folder: str) -> str:
    """Return a line on blocks that other programs disturbed; empty if there were none."""
    runs = read_table(folder, "runs")
    # A block has the number of its cells' repetition.
    measured_blocks = {row["repetition"] for row in runs}
    disturbed_blocks = {row["repetition"] for row in runs if row["flags"]}
    if not disturbed_blocks:
        return ""
    return (
        f"  {len(disturbed_blocks)} of {len(measured_blocks)} blocks were disturbed by other "
        "programs: "
        "a quieter machine gives narrower intervals"
    )


def write_answer(
    rows: Sequence[Fields], facts: Fields, json_path: str | None, csv_path: str | None
) -> None:
    """Write the answer to a JSON file, a CSV file or both, as far as their paths are given.

    rows: as :func:`collect_answer_rows` returns them; the keys COLUMNS are written.
    facts: further keys of the JSON object, beside `rows`.
    json_path, csv_path: None for no such file, ``-`` for standard output.
    Programs of users read both formats, whose keys and order must stay.
    """
    shown = [{key: row[key] for key in COLUMNS} for row in rows]
    if json_path:
        write_output(json_path, json.dumps({**facts, "rows": shown}, indent=1) + "\n")
    if csv_path:
        write_output(csv_path, format_csv(COLUMNS, [[*row.values()] for row in shown]))


def format_manual_command(request: Request, experiment: Plan, name: str) -> str:
    """Return the shell command by which a person runs a request's command in an environment.

    name: the environment's name.
    The text is empty unless the image is built and the environment is a single layer, Docker or
    chroot; other environments are up only during a measurement.
    The command runs in a new folder with copies of the given files.  It has the options that
    environments/docker.py and environments/chroot.py set, without their own limits.
    """
    layers = experiment["environments"][name]["layers"]
    layer_names = [layer_name for layer in layers for layer_name in layer]
    image = cache.find_image(experiment["image"]["recipe"])
    if image is None or layer_names not in (["docker"], ["chroot"]):
        return ""
    context = Context("", "", image)
    # The folder `work` in it is WORK_FOLDER; the user of an image may write there.
    # workloads/command/measure.sh chooses the same folder and words.
    folder = WORK_FOLDER
    if context.folder_inside != "/" and not request.files:
        folder = context.folder_inside
    steps = ["try=$(mktemp -d)", 'mkdir -m 1777 "$try/work"', 'chmod 755 "$try"']
    if request.files:
        steps.append(f'cp -rH -- {shlex.join(request.files)} "$try/work"')
    argv = context.wrap_with_variables([*context.entrypoint, *request.argv])
    if layer_names == ["docker"]:
        reference = request.image or engine.format_image_name(image)
        steps.append(_format_docker_command(layers[0]["docker"], reference, folder, argv))
    else:
        steps.append(_format_chroot_command(context, image["folder"], folder, argv))
    return " && ".join(steps)


def _format_docker_command(options: Fields, image: str, folder: str, argv: list[str]) -> str:
    """Return the shell command that runs a command in a container, with the folder $try as /data.

    options: the resolved options of the layer.
    image: the name of the image.
    folder: the folder in the container where the command runs.
    argv: the program and its arguments.
    """
    passed = options.get("options", [])
    socket = docker_daemon.find_second_socket(options)
    words = [*docker_daemon.build_client_command(socket), "run", "--rm", "-it"]
    if not passed_options.find_network({"options": passed}):
        words += ["--network", options["network"]]
    words += [
        "--runtime",
        docker.format_runtime_name(options),
        *limits.build_limit_options(options),
        *passed,
    ]
    image = options.get("image", {}).get("name", image)
    # The words of the command include the image's own ENTRYPOINT.
    program = ["--workdir", folder, "--entrypoint", argv[0], image, *argv[1:]]
    return f'{shlex.join(words)} --volume "$try:/data" {shlex.join(program)}'


def _format_chroot_command(
    context: Context, image_folder: str, folder: str, argv: list[str]
) -> str:
    """Return the shell command that runs a command in the image's files, with $try as /data.

    context: the context with the image's user.
    image_folder: the image's folder in the cache.
    folder: the folder in the image's files where the command runs.
    argv: the program and its arguments.
    """
    tree = os.path.join(image_folder, "tree")
    options = []
    if user := context.user:
        groups = ",".join(map(str, user["groups"]))
        options = [f"--userspec={user['uid']}:{user['gid']}", f"--groups={groups}"]
    inside = ["sh", "-c", 'cd "$0" && exec "$@"', folder, *argv]
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    words = [*sudo, "unshare", "--mount", "sh", "-euc", MOUNT, tree]
    return f'{shlex.join(words)} "$try" {shlex.join([*options, tree, *inside])}'
