"""Print the due cells of a plan, what must be built, and the expected time; write no file."""

import os
from collections import Counter, defaultdict

from strata.environments.common import registry
from strata.experiment import blocks, precision
from strata.image import cache
from strata.measure import pending
from strata.results import pairs, tidy
from strata.util import paths, progress
from strata.util.data_types import Fields, Plan
from strata.util.files import read_json
from strata.util.progress import format_duration
from strata.vm import vagrant_box

# A cell is expected to take the median time of at most as many of its first repetitions: enough for
# a stable median, and few records to read.
MAX_SAMPLE_REPETITIONS = 5


def print_forecast(experiment: Plan, with_order: bool = False, samples: str = ".") -> None:
    """Print the due cells of a plan, the images that must be built, and the expected time.

    The blocks that will replace torn ones count as due.  No file is written.
    with_order: whether every cell is also printed, in the order of measurement.
    samples: the path of another project's folder, whose records give the time of cells without
    records here.
    """
    order = blocks.Order(experiment)
    torn = pairs.find_torn_blocks(experiment, order)
    order.add_replacements(torn)
    if with_order:
        for (environment, workload, repetition), (position, round_number) in order.places.items():
            cell = f"{environment} · {workload} · repetition {repetition}"
            progress.print_line(f"{position:6d}  round {round_number:<5d} {cell}")
    due_cells = [cell for cell in order.places if pending.is_due(experiment, cell)]
    remark = ""
    if not order.decided:
        remark = "; the decision on further ones is due, and the next run makes it"
        if due_cells:
            remark = "; further ones are decided once these are measured"
    progress.print_line(
        f"{len(due_cells)} of {len(order.places)} cells are due at {experiment['scale']} "
        f"scale{remark}"
    )
    for sentence in pairs.describe_torn_blocks(torn):
        progress.print_line(sentence)
    if unplanned_logs := tidy.list_unplanned_logs(order.places):
        progress.print_line(
            f"{len(unplanned_logs)} logs in results/raw are not in this plan, so that tables leave "
            "them out"
        )
    _print_due_cells(experiment, due_cells)
    _print_missing_permissions(experiment, due_cells)
    _print_required_builds(experiment, due_cells)
    progress.print_line(f"time: {_format_expected_time(experiment, order, due_cells, samples)}")


def _print_due_cells(experiment: Plan, due_cells: list[blocks.Cell]) -> None:
    """Print a line with the number of due cells of each environment, by workload.

    An example is "  docker  6: stream 3, xz 3".  For an environment that is not available here, the
    reason is printed instead.  An environment without due cells has no line.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for environment, workload, _ in due_cells:
        counts[environment][workload] += 1
    width = max(map(len, experiment["environments"]))
    for name, entry in experiment["environments"].items():
        if not entry["available"]:
            progress.print_line(f"  {name:{width}}  not available here: {entry['reason']}")
        elif name in counts:
            workloads = sorted(counts[name].items())
            line = ", ".join(f"{workload} {count}" for workload, count in workloads)
            # `otherwise` says how the Docker daemon of this machine changes the environment.
            if "otherwise" in entry:
                line += f"; {entry['otherwise']}"
            progress.print_line(f"  {name:{width}}  {counts[name].total()}: {line}")


def _print_missing_permissions(experiment: Plan, due_cells: list[blocks.Cell]) -> None:
    """Print why this user may not bring up environments of due cells; nothing if all are allowed.

    The lowest layer, which is the first, decides which rights an environment needs.
    """
    # A set, since environments with the same lowest layer share the reason.
    reasons: set[str] = set()
    for name in {cell[0] for cell in due_cells}:
        for layer in experiment["environments"][name]["layers"][:1]:
            layer_name = next(iter(layer))
            reason = registry.load_layer_class(layer_name).explain_missing_permission()
            if reason:
                reasons.add(reason)
    for reason in sorted(reasons):
        progress.print_line(f"before that can be measured: {reason}")


def _print_required_builds(experiment: Plan, due_cells: list[blocks.Cell]) -> None:
    """Print what must be built before the due cells are measured.

    This may be the image and the disk of virtual machines.  The printed durations are typical
    values, and not measured here.
    """
    # The forms of the image that the layers need, for example "disk".
    forms: set[str] = set()
    for name in {cell[0] for cell in due_cells}:
        for layer in experiment["environments"][name]["layers"]:
            forms |= registry.collect_image_forms(layer)
    recipe = experiment["image"]["recipe"]
    if forms and cache.find_image(recipe) is None:
        line = f"to build: the image {recipe[:12]}, about 2 min"
        if reference := experiment["image"]["settings"].get("docker"):
            line = f"to take over: the files of the image {reference}"
        progress.print_line(line)
    if "disk" in forms and not vagrant_box.has_box(recipe):
        progress.print_line("to build: the machines' disk, less than a minute")


def _describe_ends(settings: Fields) -> str:
    """Return a clause that says when no more blocks are added; empty if only `max` ends them.

    settings: the plan's `precision`.
    An example of the result is "± 2 % is reached or 1 h were measured".
    """
    widths = [settings.get("target"), settings.get("claims")]
    # `claims` may be True or False, without a width.
    ends = [f"± {100 * width:g} % is reached" for width in widths if isinstance(width, float)]
    if budget := settings.get("budget"):
        ends.append(f"{format_duration(budget)} were measured")
    return " or ".join(ends)


def _format_expected_time(
    experiment: Plan, order: blocks.Order, due_cells: list[blocks.Cell], samples: str
) -> str:
    """Return a phrase on how long the due cells take, estimated from the first measured cells.

    order: the plan's order of cells.
    samples: the path of another project's folder, whose records stand in for missing ones.
    An example of the result is "about 12 min for 30 of these cells; no timing yet for the other 6
    cells; blocks are added until ± 2 % is reached".
    """
    if not due_cells:
        return "nothing to measure" if order.decided else "nothing to measure before the decision"
    records = {}
    for cell in order.places:
        _, _, repetition = cell
        if repetition > MAX_SAMPLE_REPETITIONS:
            continue
        path = paths.get_cell_path("raw", *cell, "json")
        record = read_json(path) or read_json(os.path.join(samples, path))
        if record:
            records[cell] = record
    # (environment, workload) → seconds; a pair without a record has no key.
    median_seconds = precision.compute_median_cell_seconds(records)
    cell_seconds = [median_seconds[cell[:2]] for cell in due_cells if cell[:2] in median_seconds]
    bound = ""
    if not order.decided and (ends := _describe_ends(experiment.get("precision", {}))):
        bound = f"; blocks are added until {ends}"
    if not cell_seconds:
        return f"not known before the first cells are measured{bound}"
    untimed_count = len(due_cells) - len(cell_seconds)
    remark = f"; no timing yet for the other {untimed_count} cells" if untimed_count else ""
    duration = format_duration(sum(cell_seconds))
    return f"about {duration} for {len(cell_seconds)} of these cells{remark}{bound}"
