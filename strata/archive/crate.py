"""The RO-Crate of an archive: ro-crate-metadata.json, which describes it to machines, and its check.

It is a Workflow Run Crate 0.5 (https://w3id.org/ro/wfrun/workflow/0.5), written as the JSON-LD that it is.
"""

import importlib.metadata
import json
import os
import urllib.parse
from typing import Any

from strata.archive.container import files_below
from strata.archive.private import is_text
from strata.archive.sums import NAME as SUMS
from strata.archive.sums import digest
from strata.results.judge import load

FILE = "ro-crate-metadata.json"
VERSION = "1.1"
WORKFLOW = "source/Snakefile"
_SPECIFICATION = f"https://w3id.org/ro/crate/{VERSION}"
_WORKFLOW_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    _WORKFLOW_CRATE: ("Workflow RO-Crate", "1.0"),
}
_TYPES = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".log": "text/plain",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".html": "text/html",
    ".txt": "text/plain",
    ".py": "text/x-python",
    ".yaml": "application/yaml",
    ".cff": "application/yaml",
}
_ABOUT = {
    "README.md": "What the archive holds, and how to review it",
    "archive.json": "Facts of this archive",
    "claims-map.csv": "Every published claim, its verdict and the commands that show it",
    "paper/report.pdf": "The paper",
    "paper/report.html": "The paper as a web page",
    "results/plan.json": "The experiment with every default filled in",
    "results/plan.csv": "The planned order of measurement",
    "results/comparisons.csv": "All ratios to native",
    "results/claims.csv": "Published claims and their verdicts",
    "source/config.yaml": "The page that sets the experiment",
    WORKFLOW: "The workflow that measures and makes the paper",
}


def _entity(address: str, kind: str | list[str], **properties: Any) -> dict[str, Any]:
    return {"@id": address, "@type": kind, **properties}


def _to(*identifiers: str) -> Any:
    """A reference to an entity, or a list of references to several."""
    found = [{"@id": identifier} for identifier in identifiers]
    return found if len(found) > 1 else found[0]


def _file(folder: str, name: str) -> dict[str, Any]:
    path = os.path.join(folder, name)
    found = _entity(urllib.parse.quote(name), "File", name=_ABOUT.get(name, name))
    # The list of checksums is made last and can be listed here, but with neither size nor checksum.
    if name != SUMS:
        found |= {"contentSize": str(os.path.getsize(path)), "sha256": digest(path)}
    if name == WORKFLOW:
        found["@type"] = ["File", "SoftwareSourceCode", "ComputationalWorkflow"]
        found["conformsTo"] = _to("https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE")
        found["programmingLanguage"] = _to("#snakemake")
    found["encodingFormat"] = "text/plain" if name == SUMS else _type(path)
    return found


def _type(path: str) -> str:
    known = _TYPES.get(os.path.splitext(path)[1])
    if known:
        return known
    with open(path, "rb") as file:
        return "text/plain" if is_text(file.read(1 << 16)) else "application/octet-stream"


def write(folder: str, facts: dict) -> None:
    """Write the crate's metadata for the files that are in a folder; `facts` is the object of archive.json."""
    names = sorted({*files_below(folder), SUMS} - {FILE})
    files = {name: _file(folder, name) for name in names}
    licence, code = facts["license"], facts["source"]["swhid"]
    terms = f"https://spdx.org/licenses/{licence}" if licence else "#no-licence"
    measured = facts["measured"]
    made_of = [name for name in ("source/config.yaml", "results/plan.json") if name in files]
    results = [name for name in names if name.startswith(("results/raw/", "paper/"))]
    workflow = importlib.metadata.version("snakemake")
    graph = [
        _entity(FILE, "CreativeWork", about=_to("./"), conformsTo=_to(_SPECIFICATION, _WORKFLOW_CRATE)),
        _entity(
            "./",
            "Dataset",
            name=facts["title"],
            description=facts["description"],
            datePublished=measured["to"],
            license=_to(terms),
            author=_to("#authors"),
            publisher=_to("#authors"),
            version=facts["source"]["revision"] or facts["strata"],
            conformsTo=_to(*_PROFILES),
            mainEntity=_to(WORKFLOW),
            mentions=_to("#measurement", code),
            hasPart=[_to(entity["@id"]) for entity in files.values()],
        ),
        *files.values(),
        *(_entity(address, "CreativeWork", name=name, version=of) for address, (name, of) in _PROFILES.items()),
        _entity(terms, "CreativeWork", name=licence or "No licence is named"),
        _entity("#authors", "Organization", name=facts["authors"]),
        _entity(code, "CreativeWork", name="The project's own files, in the folder source", identifier=code),
        _entity(
            "#snakemake", "ComputerLanguage", name="Snakemake", url="https://snakemake.github.io", version=workflow
        ),
        _entity(
            "#measurement",
            "CreateAction",
            name="Measurement of the archived runs",
            startTime=measured["from"],
            endTime=measured["to"],
            instrument=_to(WORKFLOW),
            object=[_to(files[name]["@id"]) for name in made_of],
            result=[_to(files[name]["@id"]) for name in results],
            agent=_to("#authors"),
        ),
    ]
    # Version 1.1 has no word for a checksum of its own.
    crate = {"@context": [f"{_SPECIFICATION}/context", {"sha256": "http://schema.org/sha256"}], "@graph": graph}
    with open(os.path.join(folder, FILE), "w", encoding="utf-8") as file:
        file.write(json.dumps(crate, indent=1, ensure_ascii=False) + "\n")


def findings(folder: str) -> list[str]:
    """What is wrong with the crate of an unpacked archive, a sentence each.

    Raises UserError for what is no JSON, and KeyError and its like for what is laid out as no crate is.
    """
    entities = {entity["@id"]: entity for entity in load(folder, FILE)["@graph"]}
    root = entities[entities[FILE]["about"]["@id"]]
    found = [
        f"{FILE}: the crate does not say its {key}"
        for key in ("name", "description", "datePublished", "license")
        if not root.get(key)
    ]
    parts = {urllib.parse.unquote(part["@id"]): entities[part["@id"]] for part in root["hasPart"]}
    for name in files_below(folder):
        if name != FILE and name not in parts:
            found.append(f"{FILE}: it does not describe {name}")
    for name, entity in sorted(parts.items()):
        path = os.path.join(folder, name)
        if not os.path.isfile(path):
            found.append(f"{FILE}: it describes {name}, which is not there")
        elif name != SUMS and entity.get("sha256") != digest(path):
            found.append(f"{FILE}: the checksum that it gives {name} is another than the file's")
    return found
