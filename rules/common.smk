# The experiment, and what happens around a run.
import os
import sys

# Of this file, and not of the main one: another workflow may import this one.
sys.path.insert(0, os.path.dirname(os.path.abspath(str(workflow.current_basedir))))

from snakemake import __version__ as snakemake_version
from snakemake.logging import logger
from strata.base.errors import UserError
from strata.snakemake import insides, shown
from strata.snakemake.news import News
from strata.snakemake.workflow import Workflow

try:
    experiment = Workflow(
        config,
        insides.folder(workflow, snakemake_version),
        insides.is_part(workflow, snakemake_version),
        lambda: insides.is_spread(workflow, snakemake_version),
        lambda: insides.laid_over(workflow, snakemake_version, config),
    )
    # An archive may be older than the Snakemake that makes its paper again.
    if not experiment.rebuilding:
        insides.check_version(snakemake_version)
except UserError as error:
    raise WorkflowError(str(error))

in_report = shown.Shown(experiment.plan)
# Captions of a report see no more of the workflow than its config.
config["captions"] = shown.captions(experiment.plan)
config["titles"] = shown.titles(experiment.plan)


def forecast():
    """What a dry run tells of the cells."""
    if not insides.is_dry(workflow, snakemake_version):
        return None
    cells, others = insides.split(insides.wanted(workflow, snakemake_version))
    return shown.forecast(experiment.plan, cells, len(others), experiment.partial)


def start():
    """Before the first job."""
    try:
        if not experiment.rebuilding:
            insides.settle_scheduler(workflow, snakemake_version)
            if insides.is_spread(workflow, snakemake_version):
                insides.settle_spread(workflow, snakemake_version)
        cells, others = insides.split(insides.wanted(workflow, snakemake_version))
        ours = [
            job for job in others if job.output[0].startswith(("results/", "paper/"))
        ]
        experiment.begin(
            cells,
            measuring=bool(cells)
            or not all("reanalysis" in job.output[0] for job in ours),
        )
        if not experiment.rebuilding:
            insides.place_again(workflow, snakemake_version)
    except UserError as error:
        raise WorkflowError(str(error))


logger.addFilter(News(logger, forecast))


report: "report/workflow.rst"


wildcard_constraints:
    environment="|".join(experiment.environments),
    workload="|".join(experiment.workloads),
    repetition=r"[1-9]\d*",


onstart:
    start()


onsuccess:
    experiment.end()


onerror:
    experiment.end()


try:
    insides.join(workflow, snakemake_version, start, experiment.end)
except UserError as error:
    raise WorkflowError(str(error))
