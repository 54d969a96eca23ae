"""The RO-Crate of an archive: ro-crate-metadata.json, which describes it to machines, and its check."""

import importlib.metadata
import json
import os
import urllib.parse
from datetime import datetime
from typing import Any

from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

from strata.archive.container import files_below
from strata.archive.private import is_text
from strata.archive.sums import NAME as SUMS
from strata.archive.sums import digest

FILE = "ro-crate-metadata.json"
VERSION = "1.3"
WORKFLOW = "source/Snakefile"
_TYPES = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".log": "text/plain",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".html": "text/html",
    ".txt": "text/plain",
    ".py": "text/x-python",
    ".yaml": "application/yaml",
    ".cff": "application/yaml",
}
_ABOUT = {
    "README.md": "What the archive holds, and how to review it",
    "archive.json": "Facts of this archive",
    "claims-map.csv": "Every published claim, its verdict, its figure and the commands that show it",
    "rewritten.json": "Which files were rewritten to leave out what is private",
    "paper/report.pdf": "The paper",
    "paper/report.html": "The paper as a web page",
    "results/plan.json": "The experiment with every default filled in",
    "results/plan.csv": "The planned order of measurement",
    "results/comparisons.csv": "All ratios to native",
    "results/claims.csv": "Published claims and their verdicts",
    "source/config.yaml": "The page that sets the experiment",
    WORKFLOW: "The workflow that measures and makes the paper",
}


def _properties(folder: str, name: str) -> dict[str, Any]:
    path = os.path.join(folder, name)
    found: dict[str, Any] = {"name": _ABOUT.get(name, name), "contentSize": str(os.path.getsize(path))}
    # The list of checksums is made last and can be listed here, but not with a checksum.
    if name != SUMS:
        found["sha256"] = digest(path)
    if name == WORKFLOW:
        found["@type"] = ["File", "SoftwareSourceCode", "ComputationalWorkflow"]
        found["conformsTo"] = {"@id": "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"}
    found["encodingFormat"] = _TYPES.get(os.path.splitext(name)[1]) or _plain_type(path)
    return found


def _plain_type(path: str) -> str:
    with open(path, "rb") as file:
        return "text/plain" if is_text(file.read(1 << 16)) else "application/octet-stream"


def write(folder: str, facts: dict) -> None:
    """Write the crate's metadata for the files that are in a folder; `facts` is the object of archive.json."""
    crate = ROCrate(gen_preview=False, version=VERSION)
    crate.name = facts["title"]
    crate.description = facts["description"]
    crate.datePublished = datetime.fromisoformat(facts["measured"]["to"].replace("Z", "+00:00"))
    name = facts["license"]
    address = f"https://spdx.org/licenses/{name}" if name else "#no-licence"
    about = {"@type": "CreativeWork", "name": name or "No licence is named"}
    crate.license = crate.add(ContextEntity(crate, address, about))
    author = crate.add(ContextEntity(crate, "#authors", {"@type": "Organization", "name": facts["authors"]}))
    crate.root_dataset["author"] = author
    crate.root_dataset["publisher"] = author
    crate.root_dataset["version"] = facts["source"]["revision"] or facts["strata"]
    files = {
        name: crate.add_file(os.path.join(folder, name), name, properties=_properties(folder, name))
        for name in files_below(folder)
        if name not in (FILE, SUMS)
    }
    files[SUMS] = crate.add_file(
        dest_path=SUMS, source=None, properties={"name": "SHA-256 of every other file", "encodingFormat": "text/plain"}
    )
    name = facts["source"]["swhid"]
    about = {"@type": "CreativeWork", "name": "The project's own files, in the folder source", "identifier": name}
    code = crate.add(ContextEntity(crate, name, about))
    crate.root_dataset["mentions"] = code
    about = {
        "@type": "ComputerLanguage",
        "name": "Snakemake",
        "url": "https://snakemake.github.io",
        "version": importlib.metadata.version("snakemake"),
    }
    language = crate.add(ContextEntity(crate, "#snakemake", about))
    workflow = files.get(WORKFLOW)
    if workflow:
        workflow["programmingLanguage"] = language
        crate.mainEntity = workflow
        action = {
            "@type": "CreateAction",
            "name": "Measurement of the archived runs",
            "startTime": facts["measured"]["from"],
            "endTime": facts["measured"]["to"],
        }
        run = crate.add(ContextEntity(crate, "#measurement", action))
        run["instrument"] = workflow
        run["object"] = [files[name] for name in ("source/config.yaml", "results/plan.json") if name in files]
        run["result"] = [files[name] for name in files if name.startswith(("results/raw/", "paper/"))]
        run["agent"] = author
        crate.root_dataset["mentions"] = [run, code]
    with open(os.path.join(folder, FILE), "w", encoding="utf-8") as file:
        file.write(json.dumps(crate.metadata.generate(), indent=1, ensure_ascii=False) + "\n")


def findings(folder: str) -> list[str]:
    """What is wrong with the crate of an unpacked archive, a sentence each."""
    try:
        crate = ROCrate(folder)
    except Exception as error:  # The library raises whatever its input makes it stumble over.
        return [f"{FILE}: is no RO-Crate: {error or type(error).__name__}"]
    found = []
    for key in ("name", "description", "datePublished", "license"):
        if not crate.root_dataset.get(key):
            found.append(f"{FILE}: the crate does not say its {key}")
    files = [entity for entity in crate.data_entities if "File" in _types(entity)]
    entities = {urllib.parse.unquote(entity.id): entity for entity in files}
    for name in files_below(folder):
        if name != FILE and name not in entities:
            found.append(f"{FILE}: it does not describe {name}")
    for name, entity in sorted(entities.items()):
        path = os.path.join(folder, name)
        if not os.path.isfile(path):
            found.append(f"{FILE}: it describes {name}, which is not there")
        elif name != SUMS and entity.get("sha256") != digest(path):
            found.append(f"{FILE}: the checksum that it gives {name} is another than the file's")
    return found


def _types(entity: Any) -> list[str]:
    kind = entity.type
    return kind if isinstance(kind, list) else [kind]
