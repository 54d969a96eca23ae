"""What tells a reader what an archive holds: archive.json and README.md, which follow from its other files."""

import functools
import importlib.metadata
import os
import re

from strata.experiment import blocks
from strata.host.observe import NOT_AVAILABLE
from strata.results import validate
from strata.results.validate import load
from strata.util import paths, programs, validation, yaml_files
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.progress import duration

FACTS = "archive.json"
README = "README.md"
FORMAT = 4
# Of the facts, what does not follow from the archive's other files.
GIVEN = ("strata", "snakemake", "source")
# Files of the source that stand at the top of an archive too.
ON_TOP = ("LICENSE", "CITATION.cff", "Snakefile")
# Tools whose versions belong to a result; each says its own.  The first two make papers.
_TOOLS = (
    "pandoc",
    "pdflatex",
    "docker",
    "packer",
    "mmdebstrap",
    "vagrant",
    "qemu-system-x86_64",
    "git",
)
_R = 'cat(R.version.string, "\\n"); p <- installed.packages(); cat(paste(p[, "Package"], p[, "Version"]), sep = "\\n")'
_FONTS = 'source("analysis/render.R"); cat(list_font_files(), sep = "\\n")'
# A note names so many files.
_SHOWN = 10


def _said(*words: str) -> list[str]:
    """The lines that a tool prints, or that it is not available."""
    try:
        done = programs.run(words)
    except UserError:
        return [NOT_AVAILABLE]
    lines = [line.strip() for line in (done.stdout or done.stderr).strip().splitlines()]
    return lines if lines and done.returncode == 0 else [NOT_AVAILABLE]


@functools.cache
def packages() -> dict[str, list[str]]:
    """Which Python and R packages, tools and fonts of the figures are on this machine; versions, no paths."""
    found = {
        f"{entry.metadata['Name']}=={entry.version}" for entry in importlib.metadata.distributions()
    }
    version, *of_r = _said("Rscript", "--vanilla", "-e", _R)
    return {
        "environment/python.txt": sorted(found, key=str.lower),
        "environment/r.txt": [version, *sorted(set(of_r))],
        "environment/fonts.txt": _said(
            "env", "-C", paths.PROJECT, "Rscript", "--vanilla", "-e", _FONTS
        ),
        "environment/tools.txt": [f"{tool}: {_said(tool, '--version')[0]}" for tool in _TOOLS],
    }


def unlike(folder: str) -> list[str]:
    """What the bytes of papers follow from, and is another in an archive than on this machine: a sentence each."""
    here, fonts = packages(), "environment/fonts.txt"
    found = []
    for name in ("environment/r.txt", "environment/tools.txt"):
        own = {
            line.split()[0]: line
            for line in here[name]
            if name.endswith("r.txt") or line.startswith(_TOOLS[:2])
        }
        told = _lines(folder, name)
        pairs = [
            (own[key], line)
            for line in told
            if line not in here[name] and (key := line.split()[0]) in own
        ]
        found += [f"{ours} here, {theirs} there" for ours, theirs in pairs]
    if (told := _lines(folder, fonts)) != here[fonts]:
        found.append(
            f"the font of figures: {', '.join(here[fonts])} here, {', '.join(told) or 'not named'} there"
        )
    return found


def _lines(folder: str, name: str) -> list[str]:
    """The lines of a file of an archive that are not empty; none where it has no such file."""
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        return []
    with open(path, encoding="utf-8", errors="replace") as file:
        return [line.strip() for line in file if line.strip()]


def read(folder: str) -> Fields:
    """The object of archive.json.  Raises UserError that names each key that is not as its schema says."""
    found: Fields = load(folder, FACTS)
    validation.complain(FACTS, validation.findings(validation.schema("archive"), found))
    return found


def facts(folder: str, given: Fields) -> Fields:
    """The object of archive.json for the files in a folder; given: what of it does not follow from them.

    Raises UserError where nothing was measured.
    """
    experiment = load(folder, paths.PLAN)
    cells = blocks.Order(experiment, os.path.join(folder, "results")).cells()
    measured = validate.measured(cells, folder)
    records = [load(folder, paths.cell_path("raw", *cell, "json")) for cell in measured]
    if not records:
        raise UserError("nothing was measured yet, so there is nothing to archive")
    missing = ["/".join(map(str, cell)) for cell in cells if cell not in set(measured)]
    citation = os.path.join(folder, "CITATION.cff")
    cited = yaml_files.read(citation) if os.path.exists(citation) else {}
    people = cited["authors"] if isinstance(cited.get("authors"), list) else []
    names = [
        str(entry.get("name") or f"{entry.get('given-names')} {entry.get('family-names')}")
        for entry in people
        if isinstance(entry, dict)
    ]
    environments, workloads = (
        sorted({record[key] for record in records}) for key in ("environment", "workload")
    )
    revisions: dict[str, dict[str, int]] = {}
    for record in records:
        of = revisions.setdefault(
            record["source"]["revision"] or "unknown", {"cells": 0, "changed": 0}
        )
        of["cells"] += 1
        of["changed"] += record["source"]["changed"] is not False
    return {
        "format": FORMAT,
        **given,
        "title": str(cited.get("title", "Strata")),
        "authors": ", ".join(names) or NOT_AVAILABLE,
        "license": None if cited.get("license") is None else str(cited["license"]),
        "description": (
            f"{len(records)} measured runs of {len(workloads)} workloads ({', '.join(workloads)}) in "
            f"{len(environments)} environments ({', '.join(environments)}), what was made of them, and all that "
            "it takes to make it again."
        ),
        "scale": experiment["scale"],
        "measured": {
            "from": min(record["started"] for record in records),
            "to": max(record["ended"] for record in records),
            "cells": len(records),
            "seconds": round(sum(record["seconds"] for record in records), 3),
            "revisions": revisions,
        },
        "partial": bool(missing),
        "missing": missing,
        "image": os.path.isdir(os.path.join(folder, "image")),
    }


def notes(facts: Fields) -> list[str]:
    """What a reader should know of an archive's source, a sentence each."""
    revision, changed, cells = (
        facts["source"]["revision"],
        facts["source"]["changed"],
        facts["measured"]["cells"],
    )
    found = []
    if revision is None:
        found.append("The commit of the source is not known.")
    elif changed:
        found.append(
            f"The source is not that of commit {revision}: {_shown(changed)} differ from it."
        )
    for name, of in facts["measured"]["revisions"].items():
        where = (
            "a source of no known commit" if name == "unknown" else f"the source of commit {name}"
        )
        if name != (revision or "unknown"):
            found.append(
                f"{of['cells']} of {cells} runs were measured with {where}, which is not that of the archive."
            )
        if of["changed"] and name != "unknown":
            found.append(
                f"{of['changed']} of {cells} runs were measured with {where}, of which files were changed."
            )
    return found


def _shown(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _plain(text: str) -> str:
    """A text of others in Markdown: letter by letter, in one line."""
    return re.sub(r"([\\`*<>\[\]|&!])", r"\\\1", " ".join(text.split()))


def readme(facts: Fields) -> str:
    """The text of README.md."""
    with open(os.path.join(os.path.dirname(__file__), "review.md"), encoding="utf-8") as file:
        template = file.read()
    source, measured = facts["source"], facts["measured"]
    return template.format(
        title=_plain(facts["title"]),
        description=_plain(facts["description"]),
        start=_plain(measured["from"]),
        end=_plain(measured["to"]),
        took=duration(measured["seconds"]),
        partial=f" {len(facts['missing'])} planned cells are missing, as the paper says."
        if facts["missing"]
        else "",
        notes="".join(f"> **Note.** {_plain(text)}\n\n" for text in notes(facts)),
        image="the image itself"
        if facts["image"]
        else "no image: it is built again from its recipe when needed",
        source="the project's own files"
        if source["packed"]
        else "not packed: it is that of the commit",
        where="the archive's folder `source`"
        if source["packed"]
        else "a clone of the project that has the commit",
        swhid=source["swhid"],
        revision=f" of commit `{source['revision']}`" if source["revision"] else "",
        licence=f"{_plain(facts['license'])}. See `LICENSE`."
        if facts["license"]
        else "None is named.",
    )
