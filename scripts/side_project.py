"""Measure side projects: small experiments in their own folders, with this project's files."""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from strata.experiment.folder import prepare_experiment_folder

ROOT = Path(__file__).resolve().parent.parent


def measure_side_project(folder: Path, config: dict, workloads: list[str]) -> None:
    """Measure the missing cells of some workloads in a side project, and make their tidy tables.

    The folder is made if it is missing (strata/experiment/folder.py).  Its config.yaml is always
    overwritten.
    folder: the folder of the side project.
    config: the content of its config.yaml.
    workloads: the names of the workloads to measure.
    Raises CalledProcessError if Snakemake fails; cells that were measured before are kept.
    """
    prepare_experiment_folder(str(folder), config)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--directory", str(folder)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    # The systems under test must belong to the run of the side project, not to a run that called
    # this script.
    variables.pop("STRATA_OWNER", None)
    targets = [f"results/tidy/{name}.csv" for name in workloads]
    subprocess.run([*command, *targets], cwd=folder, env=variables, check=True)
