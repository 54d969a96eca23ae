# The experiment, what happens around a run, and the target of a plain `snakemake`.
import sys

sys.path.insert(0, workflow.basedir)

from snakemake.logging import logger
from strata.errors import UserError
from strata.workflow import Workflow, is_news

logger.addFilter(is_news)

try:
    experiment = Workflow(config, workflow.basedir)
except UserError as error:
    raise WorkflowError(str(error))


wildcard_constraints:
    environment="|".join(experiment.environments),
    workload="|".join(experiment.workloads),
    repetition=r"[1-9]\d*",


onstart:
    try:
        experiment.begin(
            sum(job.rule.name == "cell" for job in workflow.dag.needrun_jobs())
        )
    except UserError as error:
        raise WorkflowError(str(error))


onsuccess:
    experiment.end()


onerror:
    experiment.end()


rule all:
    default_target: True
    input:
        "paper/report.pdf",
        "paper/report.html",
