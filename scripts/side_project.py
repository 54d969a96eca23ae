"""Measure small experiments that use the files of this project, each in a folder of its own."""

import os
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
# Names that each experiment has for itself; all others are links to the project's files.
OWN_FILES = {"config.yaml", "results", "paper"}


def measure(folder: Path, config: dict, workloads: list[str]) -> None:
    """Measure the missing cells of some workloads in a side project, and make their tidy tables.

    The folder is created if it is missing, with links to the files of this project.  Its
    config.yaml is always overwritten.
    folder: the folder of the side project.
    config: the content of its config.yaml.
    workloads: the names of the workloads to measure.
    Raises CalledProcessError if Snakemake fails.
    """
    if not folder.exists():
        folder.mkdir(parents=True)
        for path in ROOT.iterdir():
            if path.name not in OWN_FILES and not path.name.startswith("."):
                (folder / path.name).symlink_to(path)
    (folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--directory", str(folder)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    # Its systems under test belong to its own run, not to one that called this script.
    variables.pop("STRATA_OWNER", None)
    targets = [f"results/tidy/{name}.csv" for name in workloads]
    subprocess.run([*command, *targets], cwd=folder, env=variables, check=True)
