"""Prepare the folder of a separate experiment: another configuration with the project's code.

Snakemake and the commands of Strata work in that folder as in the project.  Links lead to the files
that the experiment shares with the project.  It has its own config.yaml, results and papers, and
its own claims if it tests other claims than the project.
"""

import json
import os
import re

import yaml

from strata.experiment import claims, config
from strata.util import paths, validation
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.files import write_if_changed

# The paths that every experiment shares with the project, besides the files of paper/ and
# published/.
SHARED = (
    "Snakefile", "rules", "schemas", "strata", "analysis", "profiles", "envs", "packer", "vagrant",
    "scripts", "workloads", "CITATION.cff", ".venv",
)  # fmt: skip
# Papers that are made; each experiment has its own.
_MADE = ("report.pdf", "report.html", "reanalysis.pdf")
# Git sees only what makes the experiment; files.tar holds the files of `try` (trial/request.py).
IGNORED = "*\n!/.gitignore\n!/config.yaml\n!/files.tar\n"


def prepare_experiment_folder(
    folder: str, settings: Fields | None = None, published: Fields | None = None
) -> None:
    """Create the folder of an experiment, or update its links, configuration and claims.

    Results stay.  A file is written only if its content changes, so that Snakemake reruns nothing.
    folder: the path of the folder, inside or outside the project.
    settings: the new content of its config.yaml; None if the caller writes this file.
    published: the content of its published/claims.json; None for a link to the project's claims.
    Raises UserError if the path is a file, or a folder that holds something else.
    """
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise UserError(f"{folder}: is a file: move it away, or choose another --name or --to")
    # The Snakefile of an experiment is a link, and that of the project is a file.
    is_experiment = os.path.islink(os.path.join(folder, "Snakefile"))
    if os.path.isdir(folder) and os.listdir(folder) and not is_experiment:
        raise UserError(
            f"{folder}: holds something else than an experiment: move it away, or choose another "
            "--name or --to"
        )
    links = [*SHARED]
    for shared_folder in ("paper", "published"):
        for name in sorted(os.listdir(os.path.join(paths.PROJECT, shared_folder))):
            if name not in _MADE:
                links.append(os.path.join(shared_folder, name))
    for path in links:
        if not (published and path == claims.FILE):
            _link_shared_path(path, folder)
    write_if_changed(os.path.join(folder, ".gitignore"), IGNORED)
    if published:
        text = json.dumps(published, indent=1, ensure_ascii=False) + "\n"
        write_if_changed(os.path.join(folder, claims.FILE), text)
    if settings is not None:
        text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=100)
        write_if_changed(os.path.join(folder, config.FILE), text)


def format_folder_name(text: str, default: str, length: int = 40) -> str:
    """Return a name for the folder of an experiment, formed from a text such as a file's name.

    text: a string; its letters become lower-case, and other characters than a-z, 0-9, "_", "." and
    "-" become hyphens.
    default: the name if nothing of the string can be kept.
    length: the largest number of characters; a longer name is cut.
    For example, "My Test.yaml" becomes "my-test.yaml".
    """
    name = re.sub("[^a-z0-9._-]+", "-", text.lower()).strip("-.")
    return (name or default)[:length]


def check_experiment_name(name: str) -> None:
    """Raise UserError unless an experiment may have this name; the message names --name."""
    if not re.fullmatch("[a-z0-9][a-z0-9._-]{0,39}", name):
        raise UserError(
            f"--name: is {name!r}; must be at most 40 lower-case letters, digits, points, hyphens "
            "and underscores"
        )


def check_repetitions(repetitions: Fields, options: dict[str, str]) -> None:
    """Raise UserError unless `repetitions` is valid in the configuration of an experiment.

    repetitions: the mapping under this key, whose values come in part from the command line.
    options: key of the mapping → the option that gave its value, which the error names.  Keys that
    no option gave must be valid.
    """
    schema = validation.load_schema("config").schema["properties"]["repetitions"]
    mistakes = validation.find_schema_faults(validation.build_validator(schema), repetitions)
    if mistakes:
        raise UserError(*(f"{options[key]}: {sentence}" for key, sentence in mistakes))


def _link_shared_path(path: str, folder: str) -> None:
    """Link a file or folder of the project into an experiment's folder.

    path: the path of the file or folder, relative to the project.
    folder: the path of the experiment's folder.
    Nothing is linked if the experiment already has the path, or the project does not.  The link is
    relative, so that both folders can be moved together; its parent folders are created.
    """
    link = os.path.join(folder, path)
    target = os.path.join(paths.PROJECT, path)
    os.makedirs(os.path.dirname(link), exist_ok=True)
    if os.path.lexists(target) and not os.path.lexists(link):
        os.symlink(os.path.relpath(target, os.path.realpath(os.path.dirname(link))), link)
