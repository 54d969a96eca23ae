# The experiment, what happens around a run, and the target of a plain `snakemake`.
import json
import os
import shlex
import sys

sys.path.insert(0, workflow.basedir)

from strata.errors import UserError
from strata.workflow import Workflow

os.environ.setdefault("STRATA_OWNER", str(os.getpid()))
os.environ["PYTHONPATH"] = workflow.basedir
OVERRIDES = json.dumps(
    {key: value for key, value in config.items() if key != "partial"}
)
STRATA = f"{shlex.quote(sys.executable)} -m strata"
ANALYSIS = f"Rscript {shlex.quote(workflow.basedir)}/analysis"

try:
    experiment = Workflow(config)
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
