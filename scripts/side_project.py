"""Small experiments of the project's own files, each in a folder with a page of its own."""

import os
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
# What an experiment has of its own; all else is the project's.
OWN = {"config.yaml", "results", "paper"}


def measure(folder: Path, config: dict, workloads: list[str]) -> None:
    """Measure what is missing of these workloads with this page, in a project that is made unless it is there."""
    if not folder.exists():
        folder.mkdir(parents=True)
        for path in ROOT.iterdir():
            if path.name not in OWN and not path.name.startswith("."):
                (folder / path.name).symlink_to(path)
    (folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--directory", str(folder)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    variables.pop("STRATA_OWNER", None)
    targets = [f"results/tidy/{name}.csv" for name in workloads]
    subprocess.run([*command, *targets], cwd=folder, env=variables, check=True)
