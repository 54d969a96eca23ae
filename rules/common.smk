# The experiment, functions for the inputs of rules, and hooks at the start and the end of a run.
import os
import sys
import threading

# The folder of this file's project; the main Snakefile may be another workflow, which imports it.
PROJECT = os.path.dirname(os.path.abspath(str(workflow.current_basedir)))
sys.path.insert(0, PROJECT)
# The packages of `make setup` come after Snakemake's own: a report needs pygments, for example.
sys.path.append(f"{PROJECT}/.venv/lib/python3.{sys.version_info.minor}/site-packages")

from snakemake import __version__ as SNAKEMAKE
from snakemake.exceptions import WorkflowError
from snakemake.io import IOFile
from strata.targets import check_targets
from strata.util.errors import UserError
from strata.workflow import Experiment, exit_with_error, format_error_message, list_code


def call_or_raise(function, *arguments, **named_arguments):
    """Call a function while Snakemake looks for due jobs, and return its result.

    Raises WorkflowError, which Snakemake prints, for a user's mistake or a file that cannot be
    read or written.  Other exceptions are not caught: with its own ones Snakemake waits for a
    checkpoint.
    """
    try:
        return function(*arguments, **named_arguments)
    except (UserError, OSError) as error:
        raise WorkflowError(format_error_message(error))


def call_or_exit(function, *arguments):
    """Call a function outside of jobs, and return its result.

    A user's mistake, or a file that cannot be read or written, ends Snakemake with its message.
    """
    try:
        return function(*arguments)
    except (UserError, OSError) as error:
        exit_with_error(error)


def is_making_files():
    """Return whether this call of Snakemake makes files.

    A dry run, a summary and a graph make none.
    """
    return workflow.executor_plugin is not None and not workflow.dryrun


experiment = call_or_exit(
    Experiment, config, PROJECT, is_making_files, workflow.overwrite_configfiles
)
# Snakemake has these settings only after it has read this file.
experiment.get_triggers = lambda: map(str, workflow.rerun_triggers)
experiment.makes_environments = lambda: bool(
    workflow.deployment_settings.deployment_method
)

# The inputs of products are the code and texts that they are made of.
PARSERS = list_code(
    # A parser may share modules with drivers, which lie in its folder.
    "workloads/*/*.py",
    "strata/measure/cell.py",
    "strata/measure/parsing.py",
    "strata/measure/log_sections.py",
    "strata/results/*.py",
    "strata/experiment/blocks.py",
)
ANALYSIS = list_code("analysis/*.R", "published/*", "schemas/constants/*.json")
TEXTS = list_code(
    "paper/**/*.Rmd",
    "paper/*.bib",
    "paper/*.yml",
    "paper/*.tex",
    "paper/*.css",
    "paper/page.html",
    "paper/sort.html",
)


# Snakemake calls the following functions of inputs with the wildcards of a job, which they do not
# use.
def list_log_folders(wildcards):
    """Return the folders of logs, and create missing ones unless the run is dry.

    As inputs of the tables they make these due if a log was deleted, which makes its folder newer.
    """
    return experiment.list_log_folders()


def list_logs(wildcards):
    """Return the paths of all logs, or in a partial run of those that exist.

    Until the checkpoints that decide their number are done, the call raises Snakemake's exception
    that makes it run these and call again.
    """
    return call_or_raise(experiment.list_logs, checkpoints)


def list_measured_files(wildcards):
    """Return the paths of all logs, records and decisions.

    It waits for checkpoints as :func:`list_logs` does.
    """
    return call_or_raise(experiment.list_measurement_files, checkpoints)


# Any name reaches the rule `cell`, whose message for an unknown one lists the known ones.
wildcard_constraints:
    environment="[^/]+",
    workload="[^/]+",
    repetition=r"[1-9]\d*",
    round=r"[1-9]\d*",


onstart:
    call_or_exit(experiment.start_run)
    # Snakemake's limit of jobs a second sets a timer in every round, each of which sets another:
    # after n cells they would wake Snakemake n times a second during a measurement.  No option
    # switches the limit off.
    workflow.scheduler.job_rate_limiter = None
    # Snakemake's handler of SIGTERM takes this lock, even if the thread where it runs holds it,
    # as while a checkpoint is read: with the original lock that thread waits for itself for ever.
    workflow.scheduler._lock = threading.RLock()


onsuccess:
    call_or_exit(experiment.finish_run, True)


onerror:
    # Snakemake stores the inputs of a failed job as read: the next run would not decide again, and
    # would end well with the old paper.
    for path in call_or_exit(experiment.list_missing_decisions):
        workflow.persistence.cleanup_metadata(IOFile(path))
    call_or_exit(experiment.finish_run, False)
