# The experiment, and what happens around a run.
import os
import sys
import threading

# Of this file, and not of the main one: another workflow may import this one.
PROJECT = os.path.dirname(os.path.abspath(str(workflow.current_basedir)))
sys.path.insert(0, PROJECT)
# What `make setup` installed stands behind Snakemake's own packages: pygments, say, for a report.
sys.path.append(f"{PROJECT}/.venv/lib/python3.{sys.version_info.minor}/site-packages")

from snakemake import __version__ as SNAKEMAKE
from snakemake.exceptions import WorkflowError
from strata.util import access, progress
from strata.util.errors import UserError
from strata.targets import require_known
from strata.workflow import Workflow, code


def told(function, *arguments, **names):
    """What a function gives; a user's mistake as Snakemake shows one."""
    try:
        return function(*arguments, **names)
    except UserError as error:
        raise WorkflowError(str(error))
    except OSError as error:
        raise WorkflowError(access.explain(error))


def or_end(function, *arguments):
    """What a function gives; after a user's mistake its message ends the run, without lines of this file."""
    try:
        return function(*arguments)
    except UserError as error:
        progress.complain(error)
        sys.exit(1)
    except OSError as error:
        progress.shown(f"strata: {access.explain(error)}")
        sys.exit(1)


def makes():
    """Whether anything is made: Snakemake knows it once it looks for what is to be done."""
    return workflow.executor_plugin is not None and not workflow.dryrun


experiment = or_end(Workflow, config, PROJECT, makes, workflow.overwrite_configfiles)
# Known once Snakemake looks which jobs are due, which is after this file is read.
experiment.triggers = lambda: map(str, workflow.rerun_triggers)
experiment.brings_software = lambda: bool(
    workflow.deployment_settings.deployment_method
)

# The code and texts that products are made by and of: inputs like any other.
PARSERS = code(
    # With what the parsers share with drivers, which is in the files beside them.
    "workloads/*/*.py",
    "strata/measure/cell.py",
    "strata/measure/parsing.py",
    "strata/measure/log_sections.py",
    "strata/results/*.py",
    "strata/experiment/blocks.py",
)
ANALYSIS = code("analysis/*.R", "published/*", "schemas/constants/*.json")
TEXTS = code(
    "paper/**/*.Rmd",
    "paper/*.bib",
    "paper/*.yml",
    "paper/*.tex",
    "paper/*.css",
    "paper/page.html",
    "paper/sort.html",
)


def folders(job):
    """Each is newer than the tables once a log in it was deleted: they are made again, and the log before."""
    return experiment.folders()


def logs():
    return told(experiment.logs, checkpoints)


# Unknown names reach the rule of a cell, whose message lists the known ones.
wildcard_constraints:
    environment="[^/]+",
    workload="[^/]+",
    repetition=r"[1-9]\d*",
    round=r"[1-9]\d*",


onstart:
    or_end(experiment.begin)
    # Its limit of jobs a second sets a timer in every round, each of which sets another: after n
    # cells it would wake the controller n times a second beside a measurement.  No option switches
    # it off.
    workflow.scheduler.job_rate_limiter = None
    # Its handler of SIGTERM takes this lock, also where the very thread that runs the handler holds
    # it, as while a checkpoint is read: then it would wait for itself for ever.
    workflow.scheduler._lock = threading.RLock()


onsuccess:
    or_end(experiment.end, True)


onerror:
    or_end(experiment.end, False)
