"""Format the answer of ``strata try`` from the experiment's tables: as lines, JSON and CSV."""

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
# Arguments: the files of the image, a folder for /data, options of chroot, and a command.  Root
# runs it by sh -eu in a new mount namespace, whose mounts end with the command.
MOUNT = (
    'tree=$0; data=$1; shift; mount --bind "$tree" "$tree"; mount -o remount,bind,ro "$tree"; '
    'for name in proc sys dev; do mount --rbind "/$name" "$tree/$name"; done; '
    'mount --bind "$data" "$tree/data"; mount -t tmpfs tmpfs "$tree/tmp"; exec chroot "$@"'
)
# A ratio that needs more blocks than these is too close to the margin, or varies too much.
MAX_BLOCKS = 5000


def read_table(folder: str, name: str) -> list[dict[str, str]]:
    """Return the rows of a table of an experiment as ``{column: field}``; all fields are strings.

    folder: the experiment's folder.
    name: the table's name in analysis/tables.R, which writes it, such as ``summary``.
    Returns an empty list if the table does not exist.  An NA of R is an empty field.
    """
    path = os.path.join(folder, get_result_path(name))
    if not os.path.exists(path):
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def collect_answer_rows(folder: str) -> list[Fields]:
    """Return the answer: a row for each metric and environment, the deciding metrics first.

    folder: the experiment's folder, whose tables summary.csv and comparisons.csv are read.
    Returns mappings with the keys COLUMNS and `headline`, which says whether the metric decides.
    An unknown number is None.  `n` is the number of blocks of the ratio; without a ratio it is that
    of the quantity.  `reason` says why a ratio has no interval, and `more` how many further blocks
    would decide it.
    The list is empty if the tables do not exist.
    """
    # The workload has no factors, so that metric and environment name a series.
    comparisons = {
        (row["metric"], row["environment"]): row for row in read_table(folder, "comparisons")
    }
    summary = read_table(folder, "summary")
    # The sort keeps the order of the rows within both groups.
    deciding_first = sorted(summary, key=lambda row: 0 if row["headline"] == "yes" else 1)
    rows: list[Fields] = []
    for row in deciding_first:
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

    folder: the experiment's folder.
    experiment: the experiment's plan.
    rows: the answer, as :func:`collect_answer_rows` returns it.
    A reason is for example "not available: Docker is not installed" or "exit code 2".  It is
    NOT_MEASURED if no record gives a reason; strata/trial/command.py compares it with this value.
    """
    environments_with_values = {row["environment"] for row in rows}
    reasons = {}
    for name, environment in experiment["environments"].items():
        if name in environments_with_values:
            continue
        if environment["available"]:
            reasons[name] = _read_failure_reason(folder, name)
        else:
            reasons[name] = f"not available: {environment['reason']}"
    return reasons


def _read_failure_reason(folder: str, environment: str) -> str:
    """Return why the command failed in an environment, by the records of its cells.

    folder: the experiment's folder.
    environment: the environment's name.
    Returns the reason of the last record with a reason, where records below results/raw/ come after
    those below results/failed/; NOT_MEASURED if no record has a reason.
    strata/measure/cell.py writes the keys `error` (a cell failed) and `cannot` (the command cannot
    run in the environment, which is a result).
    """
    failure_reason = NOT_MEASURED
    for kind in ("failed", "raw"):
        pattern = f"{glob.escape(folder)}/results/{kind}/{environment}/{WORKLOAD}/*.json"
        for path in sorted(glob.glob(pattern)):
            record = read_json(path) or {}
            if "error" in record:
                failure_reason = shorten_cell_error(record["error"])
            elif "cannot" in record:
                failure_reason = f"cannot run it: {shorten_cell_error(record['cannot']['reason'])}"
    return failure_reason


def shorten_cell_error(error: str) -> str:
    """Return a cell's error without the texts that Strata adds to the command's own message.

    error: the error, such as "its run step ended with exit code 3; it printed last: no such file".
    Returns one line, here "no such file"; white space in it becomes single spaces.
    strata/measure/cell.py and strata/measure/steps.py write the removed texts: change them
    together.  3 is the exit code of workloads/command/src/timed.c if the command failed.
    """
    text = " ".join(error.split()).removeprefix("its parser refuses the log: ")
    for step in STEPS:
        text = text.removeprefix(f"its {step} step ended with exit code 3; it printed last: ")
    # The error joins the log's last lines by " / "; the harness's own lines are JSON objects.
    return " / ".join(line for line in text.split(" / ") if not line.startswith("{"))


def _parse_number(text: str) -> float | None:
    """Return the number in a field of a table; None if the field is empty."""
    return float(text) if text else None


def format_quantity(value: float, unit: str) -> str:
    """Return a quantity with three digits and its unit, such as ``1.25 ms`` or ``1,250 MB/s``.

    value: the value, at least 0.
    unit: its unit.  Values in the units of PREFIXED_UNITS get the prefix of the largest unit that
    does not exceed them once they are rounded, and values below the smallest unit get the smallest.
    """
    scaled_value, scaled_unit = value, unit
    for size, name in PREFIXED_UNITS.get(unit, ()):
        scaled_value, scaled_unit = value / size, name
        # 0.9996 rounds to 1.00 with three digits, and 0.9994 to 0.999.
        if scaled_value >= 0.9995:
            break
    # A value that is rounded up gets the decimals of its result: 9.996 is 10.0, and 99.96 is 100.
    if scaled_value < 9.995:
        decimals = 2
    elif scaled_value < 99.95:
        decimals = 1
    else:
        decimals = 0
    return f"{scaled_value:,.{decimals}f} {scaled_unit}"


def format_verdict(row: Fields, margin: float, block_seconds: float) -> str:
    """Return the verdict on a ratio in plain words, or the reason why there is none.

    row: a row of :func:`collect_answer_rows` with a ratio.
    margin: the smallest difference that matters, as a share.
    block_seconds: the expected duration of one more block.
    Returns a phrase such as "slower by more than 2 %", "no difference of 2 % or more" or "undecided
    at 2 %: about 7 more blocks (21 s) would decide".
    """
    percentage = f"{100 * margin:g} %"
    if row["verdict"] == "different":
        return f"{row['direction']} by more than {percentage}"
    if row["verdict"] == "equivalent":
        return f"no difference of {percentage} or more"
    if row["low"] is None:
        return row["reason"] or "not decided"
    more_blocks = row["more"]
    if more_blocks is None:
        return f"undecided at {percentage}"
    if more_blocks > MAX_BLOCKS:
        return f"undecided at {percentage}: too close to it, or too variable"
    duration = format_duration(more_blocks * block_seconds)
    return (
        f"undecided at {percentage}: about {more_blocks:.0f} more blocks ({duration}) would decide"
    )


def format_answer_lines(
    rows: Sequence[Fields], reasons: dict[str, str], margin: float, block_seconds: float
) -> list[str]:
    """Return the answer as lines for the terminal.

    rows: the answer, as :func:`collect_answer_rows` returns it.
    reasons: ``{environment: reason}``, as :func:`explain_missing_values` returns it.
    margin: the smallest difference that matters, as a share.
    block_seconds: the expected duration of one more block.
    The first lines show the deciding metrics and the wall time, each with a line for each
    environment, such as "  docker  98.7 % of native's speed [97.9, 99.5]  …".  Then follow the
    reasons, and last the CPU time and memory of each environment.
    """
    lines = []
    names = [*(row["environment"] for row in rows), *reasons]
    name_width = max(map(len, names), default=0)
    metrics: list[str] = []
    for row in rows:
        is_shown = row["headline"] or row["metric"] == "time"
        if is_shown and row["metric"] not in metrics:
            metrics.append(row["metric"])
    for metric in metrics:
        # A heading for the wall time, which every command has, is needed only beside other metrics.
        if len(metrics) > 1 or metric != "time":
            lines.append(f"{metric}:")
        for row in rows:
            if row["metric"] == metric:
                text = _format_row(row, margin, block_seconds)
                lines.append(f"  {row['environment']:{name_width}}  {text}")
    for name, reason in reasons.items():
        lines.append(f"  {name:{name_width}}  {reason}")
    return lines + _format_resources(rows, name_width)


def _format_row(row: Fields, margin: float, block_seconds: float) -> str:
    """Return a row of the answer as text: native's quantity, or a ratio to native and its verdict.

    row: a row of :func:`collect_answer_rows`.
    margin: the smallest difference that matters, as a share.
    block_seconds: the expected duration of one more block.
    Returns for example "1.25 ms", or "98.7 % of native's speed [97.9, 99.5]  no difference of 2 %
    or more (n = 8)".  A metric that does not decide has no verdict.
    """
    quantity = format_quantity(row["level"], row["unit"])
    if row["environment"] == REFERENCE:
        return quantity
    if row["ratio"] is None:
        return f"{quantity}  not compared with native"
    interval = ""
    if row["low"] is not None:
        interval = f" [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
    ratio = f"{100 * row['ratio']:.1f} % of native's speed{interval}"
    if not row["headline"]:
        return f"{ratio} (n = {row['n']})"
    # The verdicts begin in one column: few ratios with intervals are longer than 43 characters.
    return f"{ratio:43}  {format_verdict(row, margin, block_seconds)} (n = {row['n']})"


def _format_resources(rows: Sequence[Fields], name_width: int) -> list[str]:
    """Return a line for each environment on its CPU time and peak memory.

    rows: the answer, as :func:`collect_answer_rows` returns it.
    name_width: the number of characters of the column of names.
    Returns lines such as "  docker  CPU 1.20 s (user 1.10 s, system 0.10 s), peak memory 12.0 MB".
    An environment without one of the four metrics has no line.
    """
    # Metrics of workloads/command/workload.yaml.
    metrics = ("cpu", "user", "system", "memory")
    # Environment → metric → its quantity as a text.
    quantities: dict[str, dict[str, str]] = {}
    for row in rows:
        if row["metric"] in metrics:
            quantity = format_quantity(row["level"], row["unit"])
            quantities.setdefault(row["environment"], {})[row["metric"]] = quantity
    lines = []
    for name, by_metric in quantities.items():
        if len(by_metric) == len(metrics):
            cpu, user, system, memory = (by_metric[metric] for metric in metrics)
            lines.append(
                f"  {name:{name_width}}  CPU {cpu} (user {user}, system {system}), "
                f"peak memory {memory}"
            )
    return lines


def compute_block_seconds(folder: str, experiment: Plan) -> float:
    """Return the median duration of an experiment's measured blocks, in seconds.

    folder: the experiment's folder.
    experiment: the experiment's plan.
    Returns 0.0 if no cell was measured.
    The durations are sums of `seconds` in the records of a block's cells, and so include the time
    to bring up the environments.  A block that is measured only in part counts with its cells.
    """
    order = blocks.Order(experiment, os.path.join(folder, "results"))
    # Repetition, which is the number of the block → the duration of its cells.
    seconds_by_block: dict[int, float] = {}
    for cell in order.list_cells():
        if record := read_json(os.path.join(folder, paths.get_cell_path("raw", *cell, "json"))):
            _, _, repetition = cell
            seconds_by_block.setdefault(repetition, 0.0)
            seconds_by_block[repetition] += record["seconds"]
    if not seconds_by_block:
        return 0.0
    return statistics.median(seconds_by_block.values())


def describe_disturbed_blocks(folder: str) -> str:
    """Return a line with the number of blocks that other programs disturbed.

    folder: the experiment's folder, whose table runs.csv is read.
    Returns a line such as "  2 of 8 blocks were disturbed by other programs: a quieter machine …";
    "" if no block was disturbed.
    """
    runs = read_table(folder, "runs")
    # The number of a block is the repetition of its cells.
    measured_blocks = {row["repetition"] for row in runs}
    # The column `flags` lists the kinds of interference that exceeded their thresholds.
    disturbed_blocks = {row["repetition"] for row in runs if row["flags"]}
    if not disturbed_blocks:
        return ""
    return (
        f"  {len(disturbed_blocks)} of {len(measured_blocks)} blocks were disturbed by other "
        "programs: a quieter machine gives narrower intervals"
    )


def write_answer(
    rows: Sequence[Fields], facts: Fields, json_path: str | None, csv_path: str | None
) -> None:
    """Write the answer to a JSON file, to a CSV file, to both or to neither.

    rows: the answer, as :func:`collect_answer_rows` returns it; only the keys COLUMNS are written.
    facts: further keys of the JSON object, beside `rows`.
    json_path: the path of the JSON file, ``-`` for standard output; None for no file.
    csv_path: the path of the CSV file, ``-`` for standard output; None for no file.
    Programs of users read both formats, whose keys and order must stay.
    """
    written_rows = [{key: row[key] for key in COLUMNS} for row in rows]
    if json_path:
        write_output(json_path, json.dumps({**facts, "rows": written_rows}, indent=1) + "\n")
    if csv_path:
        write_output(csv_path, format_csv(COLUMNS, [[*row.values()] for row in written_rows]))


def format_manual_command(request: Request, experiment: Plan, name: str) -> str:
    """Return the shell command by which a person runs a request's command in an environment.

    request: the request.
    experiment: the experiment's plan.
    name: the environment's name.
    Returns for example "try=$(mktemp -d) && … && docker run --rm -it …"; "" unless the image is
    built and the environment is a single layer, Docker or chroot.  Other environments are up only
    during a measurement.
    The command runs in a new folder with copies of the given files.  It has the options that
    strata/environments/docker.py and chroot.py set, without the limits that these add themselves.
    """
    layers = experiment["environments"][name]["layers"]
    layer_names = [layer_name for layer in layers for layer_name in layer]
    image = cache.find_image(experiment["image"]["recipe"])
    if image is None or layer_names not in (["docker"], ["chroot"]):
        return ""
    # Only the image's user, variables and ENTRYPOINT are needed of the context.
    context = Context("", "", image)
    # $try becomes /data in the system, so that $try/work is WORK_FOLDER, where every user may
    # write.  workloads/command/measure.sh chooses the same folder and arguments.
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

    options: the layer's options in the plan.
    image: the name of the image, unless the layer has an image of its own.
    folder: the folder in the container where the command runs.
    argv: the program and its arguments, which include the image's ENTRYPOINT.
    Returns for example ``docker run --rm -it … --volume "$try:/data" --workdir /data/work …``.
    """
    user_options = options.get("options", [])
    socket = docker_daemon.find_second_socket(options)
    docker_argv = [*docker_daemon.build_client_command(socket), "run", "--rm", "-it"]
    if not passed_options.find_network({"options": user_options}):
        docker_argv += ["--network", options["network"]]
    docker_argv += [
        "--runtime",
        docker.format_runtime_name(options),
        *limits.build_limit_options(options),
        *user_options,
    ]
    image = options.get("image", {}).get("name", image)
    container_argv = ["--workdir", folder, "--entrypoint", argv[0], image, *argv[1:]]
    return f'{shlex.join(docker_argv)} --volume "$try:/data" {shlex.join(container_argv)}'


def _format_chroot_command(
    context: Context, image_folder: str, folder: str, argv: list[str]
) -> str:
    """Return the shell command that runs a command in the image's files, with $try as /data.

    context: the context of the image, which gives the user.
    image_folder: the image's folder in the cache.
    folder: the folder in the image's files where the command runs.
    argv: the program and its arguments.
    Returns for example ``sudo unshare --mount sh -euc … TREE "$try" TREE sh -c …``.  The arguments
    of MOUNT have this order.
    """
    tree = os.path.join(image_folder, "tree")
    user_options = []
    if user := context.user:
        groups = ",".join(map(str, user["groups"]))
        user_options = [f"--userspec={user['uid']}:{user['gid']}", f"--groups={groups}"]
    inner_argv = ["sh", "-c", 'cd "$0" && exec "$@"', folder, *argv]
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    outer_argv = [*sudo, "unshare", "--mount", "sh", "-euc", MOUNT, tree]
    chroot_argv = [*user_options, tree, *inner_argv]
    return f'{shlex.join(outer_argv)} "$try" {shlex.join(chroot_argv)}'
