"""The folder of an experiment beside the project: its own configuration, and the project's code.

Snakemake runs in that folder as in the project.  What the experiment shares with the project are
links; it has its own config.yaml, results and papers.
"""

import os

from strata.util import paths
from strata.util.errors import UserError

# What every experiment shares with the project.
SHARED = (
    "Snakefile", "rules", "schemas", "strata", "analysis", "published", "profiles", "envs",
    "packer", "vagrant", "scripts", "workloads", "CITATION.cff", ".venv",
)  # fmt: skip
# Git sees only what makes the experiment.
IGNORED = "*\n!/.gitignore\n!/config.yaml\n!/files.tar\n"


def make_folder(folder: str) -> None:
    """Make the folder of an experiment, with links to the project's files, unless it is there.

    folder: its path.  The file config.yaml, by which the experiment differs, is the caller's.
    Raises UserError if the path is a file, or a folder that holds something else.
    """
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise UserError(f"{folder}: is a file: choose another --name")
    if os.path.isdir(folder) and os.listdir(folder) and not is_experiment(folder):
        raise UserError(f"{folder}: holds something else than an experiment: choose another --name")
    os.makedirs(os.path.join(folder, "paper"), exist_ok=True)
    texts = os.listdir(os.path.join(paths.PROJECT, "paper"))
    names = [*SHARED, *(f"paper/{name}" for name in texts if not name.startswith("report."))]
    for name in [*names, "paper/report.Rmd"]:
        link, target = os.path.join(folder, name), os.path.join(paths.PROJECT, name)
        if os.path.lexists(target) and not os.path.lexists(link):
            os.symlink(os.path.relpath(target, os.path.realpath(os.path.dirname(link))), link)
    ignored = os.path.join(folder, ".gitignore")
    if not os.path.exists(ignored):
        with open(ignored, "w", encoding="utf-8") as file:
            file.write(IGNORED)


def is_experiment(folder: str) -> bool:
    """Return whether a folder is one that :func:`make_folder` made."""
    return os.path.islink(os.path.join(folder, "Snakefile"))
