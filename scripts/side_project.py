"""Measure small experiments that use the files of this project, each in its own folder."""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from strata.experiment.folder import prepare_experiment_folder

ROOT = Path(__file__).resolve().parent.parent


def measure(folder: Path, config: dict, workloads: list[str]) -> None:
    """Measure the missing cells of some workloads in a side project, and make their tidy tables.

    The folder is made if it is missing (strata/experiment/folder.py).  Its config.yaml is always
    overwritten.
    folder: the folder of the side project.
    config: the content of its config.yaml.
    workloads: the names of the workloads to measure.
    Raises CalledProcessError if Snakemake fails: cells measured until then stay.
    """
    prepare_experiment_folder(str(folder), config)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--directory", str(folder)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    # Its systems under test belong to its own run, not to one that called this script.
    variables.pop("STRATA_OWNER", None)
    targets = [f"results/tidy/{name}.csv" for name in workloads]
    subprocess.run([*command, *targets], cwd=folder, env=variables, check=True)
