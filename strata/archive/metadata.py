"""The description of an archive: archive.json and README.md, which follow from its files."""

import functools
import importlib.metadata
import os
import re
from collections.abc import Iterable

from strata.experiment import blocks
from strata.host.observe import NOT_AVAILABLE
from strata.results import validate
from strata.results.validate import load_object
from strata.util import paths, programs, validation, yaml_files
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.progress import format_duration

FACTS = "archive.json"
README = "README.md"
# The format of archives: ``verify`` of this version reads this one only.
FORMAT = 4
# Keys of archive.json that do not follow from the archive's other files.
GIVEN = ("strata", "snakemake", "source")
# Files of the source that an archive holds at its top too.
ON_TOP = ("LICENSE", "CITATION.cff", "Snakefile")
# Tools whose versions decide the bytes of papers, and all tools whose versions an archive lists.
_TOOLS_OF_PAPERS = ("pandoc", "pdflatex")
_TOOLS = (
    *_TOOLS_OF_PAPERS,
    "docker",
    "packer",
    "mmdebstrap",
    "vagrant",
    "qemu-system-x86_64",
    "git",
)
# A program of R that prints the version of R, and then of each package, a line each.
_R_VERSIONS = (
    'cat(R.version.string, "\\n"); packages <- installed.packages(); '
    'cat(paste(packages[, "Package"], packages[, "Version"]), sep = "\\n")'
)
_R_FONTS = 'source("analysis/render.R"); cat(list_font_files(), sep = "\\n")'
# The most files that a note names.
_SHOWN = 10
_FONTS = "environment/fonts.txt"


def _capture_lines(*command: str) -> list[str]:
    """Run a command, and return the lines that it prints on stdout, or else on stderr.

    The lines are stripped.
    Returns the single line `NOT_AVAILABLE` if the program is missing, fails or prints nothing.
    """
    try:
        result = programs.run_in_clean_environment(command)
    except UserError:
        return [NOT_AVAILABLE]
    if result.returncode != 0:
        return [NOT_AVAILABLE]
    # Some tools print their version on stderr.
    lines = [line.strip() for line in (result.stdout or result.stderr).strip().splitlines()]
    return lines or [NOT_AVAILABLE]


@functools.cache
def list_software(tools: tuple[str, ...] = _TOOLS) -> dict[str, list[str]]:
    """Return ``{path: lines}`` of the files in environment/: packages, fonts and tools.

    The paths are those in an archive.  R and each tool run only once in a process.
    tools: names of programs, each of which runs with ``--version``.
    :func:`list_software_differences` relies on the form of the lines on R and tools: the name of a
    package or tool, then its version.
    """
    python = {
        f"{package.metadata['Name']}=={package.version}"
        for package in importlib.metadata.distributions()
    }
    version, *packages = _capture_lines("Rscript", "--vanilla", "-e", _R_VERSIONS)
    fonts = _capture_lines("env", "-C", paths.PROJECT, "Rscript", "--vanilla", "-e", _R_FONTS)
    return {
        "environment/python.txt": sorted(python, key=str.lower),
        "environment/r.txt": [version, *sorted(set(packages))],
        _FONTS: fonts,
        "environment/tools.txt": [
            f"{tool}: {_capture_lines(tool, '--version')[0]}" for tool in tools
        ],
    }


def list_software_differences(folder: str) -> list[str]:
    """Return a phrase for each difference between this machine's software and an archive's.

    folder: the folder of the unpacked archive.
    Returns phrases such as "ggplot2 3.5.0 here, ggplot2 3.5.1 there".  An empty list means that
    papers must be byte-identical.
    Only software that decides the bytes of papers is compared: R and those of its packages that
    are installed here, pandoc, LaTeX and the font of figures.  R and each tool are run.
    """
    software = list_software(_TOOLS_OF_PAPERS)
    differences = []
    for name in ("environment/r.txt", "environment/tools.txt"):
        # The first word of a line is the name of the package or tool.
        lines_here = {line.split()[0]: line for line in software[name]}
        for archived_line in _read_lines(folder, name):
            package = archived_line.split()[0]
            changes_papers = name == "environment/r.txt" or archived_line.startswith(
                _TOOLS_OF_PAPERS
            )
            is_same = archived_line in software[name]
            if changes_papers and package in lines_here and not is_same:
                differences.append(f"{lines_here[package]} here, {archived_line} there")
    archived_fonts = _read_lines(folder, _FONTS)
    if archived_fonts != software[_FONTS]:
        fonts_here = ", ".join(software[_FONTS])
        fonts_there = ", ".join(archived_fonts) or "not named"
        differences.append(f"the font of figures: {fonts_here} here, {fonts_there} there")
    return differences


def _read_lines(folder: str, name: str) -> list[str]:
    """Return the non-empty lines of a file, stripped; an empty list if there is no such file.

    folder: the folder of the unpacked archive.
    name: the path of the file in the archive; bytes that are not UTF-8 are replaced.
    """
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        return []
    with open(path, encoding="utf-8", errors="replace") as file:
        return [line.strip() for line in file if line.strip()]


def read_facts(folder: str) -> Fields:
    """Return the object of archive.json in a folder, after checking it against its schema.

    Raises UserError with a sentence for each key that breaks the schema.
    """
    facts: Fields = load_object(folder, FACTS)
    validation.raise_for_findings(
        FACTS, validation.find_schema_faults(validation.load_schema("archive"), facts)
    )
    return facts


def collect_facts(folder: str, given_facts: Fields) -> Fields:
    """Return the object of archive.json (schemas/archive.schema.json) for the files in a folder.

    given_facts: the values of the keys `GIVEN`, which do not follow from the files.
    ``verify`` compares each key with what this function returns for the archive's own files.
    Raises UserError if nothing was measured.
    """
    experiment = load_object(folder, paths.PLAN)
    cells = blocks.Order(experiment, os.path.join(folder, "results")).list_cells()
    records = {
        cell: load_object(folder, paths.get_cell_path("raw", *cell, "json"))
        for cell in validate.list_measured_cells(cells, folder)
    }
    if not records:
        raise UserError("nothing was measured yet, so there is nothing to archive")
    missing = ["/".join(map(str, cell)) for cell in cells if cell not in records]
    path = os.path.join(folder, "CITATION.cff")
    citation = yaml_files.read_yaml_mapping(path) if os.path.exists(path) else {}
    environments = sorted({record["environment"] for record in records.values()})
    workloads = sorted({record["workload"] for record in records.values()})
    return {
        "format": FORMAT,
        **given_facts,
        "title": str(citation.get("title", "Strata")),
        "authors": ", ".join(_list_authors(citation)) or NOT_AVAILABLE,
        "license": None if citation.get("license") is None else str(citation["license"]),
        "description": (
            f"{len(records)} measured runs of {len(workloads)} workloads ({', '.join(workloads)}) "
            f"in {len(environments)} environments ({', '.join(environments)}), what was made of "
            "them, and all that it takes to make it again."
        ),
        "scale": experiment["scale"],
        "measured": {
            "from": min(record["started"] for record in records.values()),
            "to": max(record["ended"] for record in records.values()),
            "cells": len(records),
            "seconds": round(sum(record["seconds"] for record in records.values()), 3),
            "revisions": _count_revisions(records.values()),
        },
        "partial": bool(missing),
        "missing": missing,
        "image": os.path.isdir(os.path.join(folder, "image")),
    }


def _count_revisions(records: Iterable[Fields]) -> dict[str, dict[str, int]]:
    """Return ``{commit: {cells, changed}}``: the numbers of cells measured with each commit.

    `cells` counts all cells, and `changed` those whose source had changed files.  Cells of no known
    commit are counted under "unknown"; a source that may have been changed counts as changed.
    records: the records of the measured cells.
    archive.json keeps the result as `measured.revisions`.
    """
    revisions: dict[str, dict[str, int]] = {}
    for record in records:
        revision = record["source"]["revision"] or "unknown"
        counts = revisions.setdefault(revision, {"cells": 0, "changed": 0})
        counts["cells"] += 1
        if record["source"]["changed"] is not False:
            counts["changed"] += 1
    return revisions


def _list_authors(citation: Fields) -> list[str]:
    """Return the names of the authors in a CITATION.cff; malformed entries are left out.

    citation: the file's mapping, which is not checked by a schema.
    """
    authors = citation.get("authors")
    names = []
    for author in authors if isinstance(authors, list) else []:
        if isinstance(author, dict):
            full_name = f"{author.get('given-names')} {author.get('family-names')}"
            names.append(str(author.get("name") or full_name))
    return names


def describe_origin(facts: Fields) -> list[str]:
    """Return a note for each reason why an archive and its runs do not come from one clean commit.

    facts: the object of archive.json.
    README.md holds the notes: a change of a text makes ``verify`` reject archives written before.
    """
    revision, changed = facts["source"]["revision"], facts["source"]["changed"]
    notes = []
    if revision is None:
        notes.append("The commit of the source is not known.")
    elif changed:
        names = validate.join_names(changed, _SHOWN, ", ")
        verb = "differs" if len(changed) == 1 else "differ"
        notes.append(f"The source is not that of commit {revision}: {names} {verb} from it.")
    cells = facts["measured"]["cells"]
    for name, counts in facts["measured"]["revisions"].items():
        has_commit = name != "unknown"
        run_source = f"the source of commit {name}" if has_commit else "a source of no known commit"
        if name != (revision or "unknown"):
            notes.append(
                f"{counts['cells']} of {cells} runs were measured with {run_source}, which is not "
                "that of the archive."
            )
        if counts["changed"] and has_commit:
            notes.append(
                f"{counts['changed']} of {cells} runs were measured with changed files of "
                f"{run_source}."
            )
    return notes


def _escape_markdown(text: str) -> str:
    """Return a text in one line, escaped so that Markdown shows it literally."""
    return re.sub(r"([\\`*<>\[\]|&!])", r"\\\1", " ".join(text.split()))


def format_readme(facts: Fields) -> str:
    """Return the text of README.md: the template review.md filled in with the facts.

    facts: the object of archive.json.  ``verify`` compares the text byte by byte with an archive's
    README.md: a change here or in the template makes it reject all archives written before.
    """
    with open(os.path.join(os.path.dirname(__file__), "review.md"), encoding="utf-8") as file:
        template = file.read()
    source, measured = facts["source"], facts["measured"]
    partial = ""
    if facts["missing"]:
        partial = f" {len(facts['missing'])} planned cells are missing, as the paper says."
    image = (
        "no image: it is built again from its recipe when needed; a Docker image of somebody's own "
        "is in `image.json` with its name and ID"
    )
    if facts["image"]:
        image = "the image itself"
    content = "not packed: it is that of the commit"
    checkout = "a clone of the project that has the commit"
    if source["packed"]:
        content = "the project's own files"
        checkout = "the archive's folder `source`"
    revision = f" of commit `{source['revision']}`" if source["revision"] else ""
    licence = "None is named."
    if facts["license"]:
        licence = f"{_escape_markdown(facts['license'])}. See `LICENSE`."
    return template.format(
        title=_escape_markdown(facts["title"]),
        description=_escape_markdown(facts["description"]),
        start=_escape_markdown(measured["from"]),
        end=_escape_markdown(measured["to"]),
        took=format_duration(measured["seconds"]),
        partial=partial,
        notes="".join(
            f"> **Note.** {_escape_markdown(note)}\n\n" for note in describe_origin(facts)
        ),
        image=image,
        source=content,
        where=checkout,
        swhid=source["swhid"],
        revision=revision,
        licence=licence,
    )
