"""A folder with an experiment of its own: its configuration, its claims and its results.

All other files are links to those of the project, so that Snakemake and the commands of Strata work
in the folder as they do in the project.
"""

import json
import os

import yaml

from strata.experiment import claims, config
from strata.util import paths
from strata.util.data_types import Fields
from strata.util.files import write_if_changed

# Names that each experiment has for itself.
_OWN = {config.FILE, "results", "paper", "published"}
# The Python packages of `make setup`, which are linked although the name is hidden.
_PACKAGES = ".venv"
# Outputs of papers, of which an experiment has its own.
_MADE = (".pdf", ".html")
_KEPT_PAGES = {"page.html", "sort.html"}


def make_folder(folder: str, settings: Fields, published: Fields | None = None) -> None:
    """Make the folder of an experiment, or bring its configuration and claims up to date.

    folder: its path; it lies in the project, or anywhere else.
    settings: the content of its config.yaml, which is replaced.
    published: the content of its published/claims.json; None: the project's claims.
    """
    _link_files(paths.PROJECT, folder, _OWN)
    _link_files(os.path.join(paths.PROJECT, "paper"), os.path.join(folder, "paper"), set())
    own_claims = {os.path.basename(claims.FILE)} if published else set()
    source = os.path.join(paths.PROJECT, "published")
    _link_files(source, os.path.join(folder, "published"), own_claims)
    if published:
        text = json.dumps(published, indent=1, ensure_ascii=False) + "\n"
        write_if_changed(os.path.join(folder, claims.FILE), text)
    text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=100)
    write_if_changed(os.path.join(folder, config.FILE), text)


def _link_files(source: str, target: str, own: set[str]) -> None:
    """Link all files and folders of a folder into another one, which is made if it is missing.

    own: names that are not linked.  Hidden files and papers are not linked either, nor the folder
    that holds the target.
    """
    os.makedirs(target, exist_ok=True)
    holder = os.path.relpath(target, source).split(os.sep)[0]
    for name in sorted(os.listdir(source)):
        is_paper = name.endswith(_MADE) and name not in _KEPT_PAGES
        is_hidden = name.startswith(".") and name != _PACKAGES
        if is_hidden or name in own or name == holder or is_paper:
            continue
        link = os.path.join(target, name)
        if not os.path.lexists(link):
            os.symlink(os.path.relpath(os.path.join(source, name), os.path.realpath(target)), link)
