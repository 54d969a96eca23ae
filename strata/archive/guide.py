"""What tells a reader of an archive what it holds: README.md, archive.json, claims-map.csv, lists of packages."""

import csv
import functools
import importlib.metadata
import io
import os
import re
import shutil
import subprocess

from strata import __version__
from strata.archive import swhid
from strata.archive.stage import Stage
from strata.archive.sums import digest
from strata.base import pages
from strata.base.errors import UserError
from strata.base.files import read_json
from strata.base.progress import duration
from strata.experiment import config, recipe
from strata.host.observe import NOT_AVAILABLE

FACTS = "archive.json"
FORMAT = 2
MAP_COLUMNS = (
    "claim",
    "publication",
    "place",
    "statement",
    "verdict",
    "reason",
    "transferred",
    "workload",
    "tables",
    "blocks",
    "show",
    "recompute",
    "measure",
)
# Tools whose versions belong to a result, and the word that makes each say its own.
_TOOLS = {
    "pandoc": "--version",
    "pdflatex": "--version",
    "docker": "--version",
    "packer": "--version",
    "mmdebstrap": "--version",
    "vagrant": "--version",
    "qemu-system-x86_64": "--version",
    "git": "--version",
}
_R = 'cat(R.version.string, "\\n"); p <- installed.packages(); cat(paste(p[, "Package"], p[, "Version"]), sep = "\\n")'


@functools.cache
def _first_line(tool: str, word: str) -> str:
    if shutil.which(tool) is None:
        return NOT_AVAILABLE
    try:
        done = subprocess.run([tool, word], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return NOT_AVAILABLE
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0] if lines and done.returncode == 0 else NOT_AVAILABLE


@functools.cache
def _r_packages() -> list[str]:
    """R's version, then a line for each package."""
    try:
        done = subprocess.run(["Rscript", "-e", _R], capture_output=True, text=True, timeout=120, check=False)
        lines = done.stdout.splitlines() if done.returncode == 0 else []
    except (OSError, subprocess.TimeoutExpired):
        lines = []
    return [line.strip() for line in lines] or [f"R: {NOT_AVAILABLE}"]


def add_packages(stage: Stage) -> None:
    """Which Python and R packages and which tools were there, below environment/; versions, no paths."""
    found = {f"{entry.metadata['Name']}=={entry.version}" for entry in importlib.metadata.distributions()}
    stage.write("environment/python.txt", "".join(f"{line}\n" for line in sorted(found, key=str.lower)))
    version, *packages = _r_packages()
    stage.write("environment/r.txt", "".join(f"{line}\n" for line in [version, *sorted(set(packages))]))
    tools = [f"{tool}: {_first_line(tool, word)}" for tool, word in _TOOLS.items()]
    stage.write("environment/tools.txt", "".join(f"{line}\n" for line in tools))


def facts(stage: Stage, with_image: bool) -> dict:
    """The object of archive.json.  Raises UserError where nothing was measured."""
    records = [read_json(stage.path(f"results/raw/{name}/{load}/{n}.json")) or {} for name, load, n in stage.measured]
    if not records:
        raise UserError("nothing was measured yet, so there is nothing to archive")
    citation = pages.read("CITATION.cff") if os.path.exists("CITATION.cff") else {}
    names = [entry.get("name") or f"{entry.get('given-names')} {entry.get('family-names')}" for entry in
             citation.get("authors", [])]  # fmt: skip
    environments = sorted({record["environment"] for record in records})
    workloads = sorted({record["workload"] for record in records})
    return {
        "format": FORMAT,
        "strata": __version__,
        "title": str(citation.get("title", "Strata")),
        "authors": ", ".join(names) or NOT_AVAILABLE,
        "license": citation.get("license"),
        "description": (
            f"{len(records)} measured runs of {len(workloads)} workloads ({', '.join(workloads)}) in "
            f"{len(environments)} environments ({', '.join(environments)}), what was made of them, and all that "
            "it takes to make it again."
        ),
        "scale": stage.experiment["scale"],
        "measured": {
            "from": min(record["started"] for record in records),
            "to": max(record["ended"] for record in records),
            "cells": len(records),
            "seconds": round(sum(record["seconds"] for record in records), 3),
        },
        "partial": bool(stage.missing),
        "missing": [f"{name}/{load}/{number}" for name, load, number in stage.missing],
        "image": with_image,
        "source": {
            "revision": stage.source.revision,
            "changed": stage.source.changed,
            "swhid": swhid.of_folder(stage.path("source")),
        },
        "warnings": stage.warnings,
    }


def claims_map(stage: Stage) -> list[dict[str, str]]:
    """A row of MAP_COLUMNS for every published claim: where its verdict is from, and the commands that show it.

    One that was transferred has another, behind it.
    """
    with open(stage.path("results/claims.csv"), newline="", encoding="utf-8") as file:
        claims = list(csv.DictReader(file))
    rows = []
    for claim in claims:
        tested = claim["verdict"] != "not tested"
        tables = ["results/claims.csv", f"results/tidy/{claim['workload']}.csv"]
        rows.append(
            {
                "claim": claim["id"],
                "publication": claim["publication"],
                "place": claim["place"],
                "statement": claim["statement"],
                "verdict": claim["verdict"],
                "reason": claim["reason"],
                "transferred": claim["transferred"],
                "workload": claim["workload"],
                "tables": ";".join(name for name in tables if os.path.exists(stage.path(name))),
                "blocks": claim["n"],
                "show": f"grep '^\"{claim['id']}\",' results/claims.csv",
                "recompute": "make rebuild ARCHIVE=../../archive.zip",
                "measure": "scripts/setup.sh run && snakemake --cores 1 results/claims.csv" if tested else "",
            }
        )
    return rows


def _csv(rows: list[dict[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, MAP_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _inline(text: str) -> str:
    """A text as a cell of a Markdown table."""
    return re.sub(r"([|\\`*_<>\[\]])", r"\\\1", " ".join(text.split()))


def _claims_section(rows: list[dict[str, str]]) -> str:
    tested = sorted((row for row in rows if row["measure"]), key=lambda row: row["transferred"] != "")
    if not tested:
        return "None of the published claims could be tested by these runs; `claims-map.csv` says why for each.\n"
    lines = ["| claim | verdict | show it |", "|---|---|---|"]
    lines += [
        f"| {_inline(row['statement'])} ({_inline(row['publication'])}, {_inline(row['place'])}) | {row['verdict']} "
        f"| `{row['show']}` |"
        for row in tested
    ]
    moved = [row for row in tested if row["transferred"]]
    products = ", ".join(sorted({row["transferred"] for row in moved}))
    return (
        f"{len(tested) - len(moved)} of {len(rows) - len(moved)} published claims were tested by these runs, at least "
        "in part. The others, with the reason for each, are in `claims-map.csv`, as are the commands that compute a "
        "verdict again and that measure it anew."
        + (
            f" Counted by themselves and last: {len(moved)} transferred claims, published for {products} and tested "
            "on another product."
            if moved
            else ""
        )
        + "\n\n"
        + "\n".join(lines)
        + "\n"
    )


def _licence(stage: Stage, name: str | None) -> str:
    has = [file for file in ("LICENSE", "CITATION.cff") if file in stage.source.files]
    text = f"{name}." if name else "None is named."
    return " ".join([text, *(f"See `{file}`." for file in has)])


def add_recipe(stage: Stage) -> None:
    """Write image/recipe.json: what the image was made of, as far as the present source is that of the plan."""
    made = stage.experiment["image"]
    image = {**config.read()["image"], "workloads": made.get("workloads", [])}
    described = recipe.describe(image)
    if described["recipe"] != made["recipe"]:
        stage.warnings.append("The source that made the image has changed since; its recipe lists no files.")
        return
    lacking = [name for name in recipe.files(image) if name not in stage.source.files]
    if lacking:
        raise UserError(
            f"the image was made of files that git does not track: {', '.join(lacking)}; `git add` them first"
        )
    made_of = {name: digest(stage.path(f"source/{name}")) for name in recipe.files(image)}
    stage.write_json("image/recipe.json", {**described, "packages": recipe.packages(image), "files": made_of})


def add_guide(stage: Stage, about: dict, crate_version: str) -> None:
    """Write archive.json, claims-map.csv and README.md."""
    stage.write_json(FACTS, about)
    rows = claims_map(stage)
    stage.write("claims-map.csv", _csv(rows))
    warnings = "".join(f"> **Note.** {text}\n>\n" for text in about["warnings"])
    revision = about["source"]["revision"]
    partial = f" {len(about['missing'])} planned cells are missing, as the paper says." if about["partial"] else ""
    with open(os.path.join(os.path.dirname(__file__), "review.md"), encoding="utf-8") as file:
        template = file.read()
    text = template.format(
        title=about["title"],
        description=about["description"],
        start=about["measured"]["from"],
        end=about["measured"]["to"],
        took=duration(about["measured"]["seconds"]),
        partial=partial,
        warnings=warnings.removesuffix(">\n") + "\n" if warnings else "",
        image="the image itself" if about["image"] else "no image: it is built again from its recipe when needed",
        swhid=about["source"]["swhid"],
        revision=f" at revision `{revision}`" if revision else "",
        crate=crate_version,
        claims=_claims_section(rows),
        licence=_licence(stage, about["license"]),
    )
    stage.write("README.md", text)
