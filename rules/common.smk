# The experiment, and what happens around a run.
import sys

sys.path.insert(0, workflow.basedir)

from snakemake.logging import logger
from strata.base.errors import UserError
from strata.snakemake.workflow import Workflow, is_news

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
    # The limit of jobs a second sets a timer in every round of the scheduler, each of which sets
    # another: after n jobs the controller would wake n times a second while cells measure.
    workflow.scheduler.job_rate_limiter = None
    # The order is the plan's: no need to weigh every job against every other before each start.
    workflow.scheduler._job_selector = experiment.next_jobs
    try:
        wanted = [job.rule.name for job in workflow.dag.needrun_jobs()]
        experiment.begin(
            wanted.count("cell"),
            measuring=not all(name.startswith("reanalysis") for name in wanted),
        )
    except UserError as error:
        raise WorkflowError(str(error))


onsuccess:
    experiment.end()


onerror:
    experiment.end()
