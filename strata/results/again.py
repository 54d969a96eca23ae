"""Measure all cells of a block again, including that of native."""

import json
import os
import shlex
import shutil
import sys

from strata.experiment import blocks, config, plan, planning
from strata.host import capacity
from strata.measure import pending
from strata.util import paths, progress
from strata.util.clock import Clock
from strata.util.data_types import Plan
from strata.util.errors import MachineError, UserError


def measure_block_again(workload: str, repetition: int, overrides: config.Overrides) -> None:
    """Replace this process by a Snakemake that measures all cells of a block again.

    workload: the name of the block's workload.
    repetition: the number of the block, which is the repetition of its cells.
    overrides: values that replace values of config.yaml, with the options that give them.
    This function never returns.  Each log and record stays until the new one is complete.  The
    variable STRATA_AGAIN, WORKLOAD/REPETITION/TIMESTAMP, makes measure/pending.py ignore the
    earlier records of the block.
    Raises UserError for a block that is not planned or is set aside, and for a configuration other
    than that of results/plan.json; MachineError if Snakemake is not installed.
    """
    settings = config.read_config(overrides)
    experiment = planning.build_plan(settings, capacity.read_host_facts())
    _check_same_plan(experiment)
    cells = _list_cells_of_block(blocks.Order(experiment), (workload, repetition))
    logs = [paths.get_cell_path("raw", *cell, "log") for cell in cells]
    program = shutil.which("snakemake") or os.path.join(paths.PROJECT, ".venv/bin/snakemake")
    if not os.path.exists(program):
        raise MachineError("Snakemake is not installed: `make setup` installs it")
    arguments = ["--cores", "1", *overrides.options, "--force", "--", *logs]
    progress.print_message(shlex.join(["snakemake", *arguments]))
    os.environ[pending.AGAIN] = f"{workload}/{repetition}/{Clock().format_now()}"
    sys.stdout.flush()
    os.execv(program, [program, *arguments])


def _check_same_plan(experiment: Plan) -> None:
    """Raise UserError unless a plan equals results/plan.json, which the last run wrote."""
    # JSON turns tuples into lists, as in the last plan, which was read from a file.
    new_plan = json.loads(json.dumps(experiment))
    last_plan = plan.read_plan()
    # The start of a run adds these two keys to the plan that it writes (workflow.py).
    keys = sorted(new_plan.keys() | (last_plan.keys() - {"source", "sealed"}))
    differences = [key for key in keys if new_plan.get(key) != last_plan.get(key)]
    if differences:
        raise UserError(
            f"{paths.PLAN}: the last run had another configuration ({', '.join(differences)}): "
            "give its --configfile and --config here, too, or run `snakemake` with these first"
        )


def _list_cells_of_block(order: blocks.Order, block: blocks.Block) -> list[blocks.Cell]:
    """Return the cells of a block, in the planned order.

    block: (workload, repetition).
    Raises UserError if the block is not planned, is set aside, or the order has no blocks.
    """
    workload, repetition = block
    if order.sequential:
        raise UserError(
            "order: is sequential, which has no blocks: `snakemake --cores 1 --force LOG` measures "
            "one cell again"
        )
    cells = [cell for cell in order.places if cell[1:] == block and cell[0] in order.paired]
    if not cells:
        # The block is in no environment, so any environment gives the right message.  One that is
        # in blocks is preferred: for another, the message would say why it is not available.
        environment = [*order.paired, *order.plan["environments"]][0]
        raise UserError(order.explain_missing_cell(environment, *block))
    if block in order.disturbed:
        # A replacement may itself be replaced.
        while (workload, repetition) in order.replacements:
            repetition = order.replacements[workload, repetition]
        raise UserError(
            f"repetition {block[1]} of {workload} was disturbed and is set aside; repetition "
            f"{repetition} was added in its place: type "
            f"`python3 -m strata again {workload} {repetition}`"
        )
    return cells
