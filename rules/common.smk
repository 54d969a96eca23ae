# The experiment, and what happens around a run.
import sys

sys.path.insert(0, workflow.basedir)

from snakemake import __version__ as snakemake_version
from snakemake.logging import logger
from strata.base.errors import UserError
from strata.snakemake import insides
from strata.snakemake.workflow import Workflow, is_news

logger.addFilter(is_news)

try:
    experiment = Workflow(config, workflow.basedir)
    # An archive may be older than the Snakemake that makes its paper again.
    if not experiment.rebuilding:
        insides.check_version(snakemake_version)
except UserError as error:
    raise WorkflowError(str(error))


wildcard_constraints:
    environment="|".join(experiment.environments),
    workload="|".join(experiment.workloads),
    repetition=r"[1-9]\d*",


onstart:
    try:
        if not experiment.rebuilding:
            insides.settle_scheduler(workflow, snakemake_version)
        jobs = insides.wanted(workflow, snakemake_version)
        experiment.begin(
            [job.wildcards for job in jobs if job.rule.name == "cell"],
            measuring=not all(
                job.rule.name.startswith("reanalysis") for job in jobs
            ),
        )
        if not experiment.rebuilding:
            insides.place_again(workflow, snakemake_version)
    except UserError as error:
        raise WorkflowError(str(error))


onsuccess:
    experiment.end()


onerror:
    experiment.end()
