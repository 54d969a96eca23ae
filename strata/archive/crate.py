"""The RO-Crate of an archive: ro-crate-metadata.json, which describes it to machines.

It is a Workflow Run Crate 0.5 (https://w3id.org/ro/wfrun/workflow/0.5), written as the JSON-LD that
it is.  The project's source is one folder in it, named by its SWHID; checksums are in SHA256SUMS.
"""

import json
import os
import urllib.parse
from typing import Any

from strata.archive import checksums
from strata.archive.zip_file import list_files
from strata.util.data_types import Fields
from strata.util.errors import UserError

FILE = "ro-crate-metadata.json"
VERSION = "1.1"
_SPECIFICATION = f"https://w3id.org/ro/crate/{VERSION}"
_WORKFLOW = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
_WORKFLOW_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
# Profiles that the crate conforms to: the name and version of each.
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    _WORKFLOW_CRATE: ("Workflow RO-Crate", "1.0"),
}
_MEDIA_TYPES = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".html": "text/html",
    ".cff": "application/yaml",
}


def _build_entity(identifier: str, kind: str | list[str], **properties: Any) -> Fields:
    """Return an entity of JSON-LD: an object with ``@id``, ``@type`` and further properties.

    The properties follow in the order of the arguments, which is that of the file.
    """
    return {"@id": identifier, "@type": kind, **properties}


def _build_reference(*identifiers: str) -> Any:
    """Return a JSON-LD reference to one entity, or a list of references to several."""
    references = [{"@id": identifier} for identifier in identifiers]
    return references if len(references) > 1 else references[0]


def _build_file_entity(folder: str, name: str) -> Fields:
    """Return the JSON-LD entity of a file.

    folder: the folder of the archive.
    name: the file's path in the folder.
    SHA256SUMS gets no size and need not exist yet: it is written after the crate, since it lists
    the crate.
    """
    entity = _build_entity(urllib.parse.quote(name), "File", name=name)
    _, suffix = os.path.splitext(name)
    # Files of the image are tar files and disks; logs and all others are texts.
    default = "application/octet-stream" if name.startswith("image/") else "text/plain"
    entity["encodingFormat"] = _MEDIA_TYPES.get(suffix, default)
    if name != checksums.NAME:
        # A text, as schema.org defines it.
        entity["contentSize"] = str(os.path.getsize(os.path.join(folder, name)))
    return entity


def format_crate(folder: str, facts: Fields) -> str:
    """Return the text of ro-crate-metadata.json for the files in a folder.

    facts: the object of archive.json.
    The text depends on names and sizes of the files and on `facts` only.  ``verify`` compares it
    byte by byte with an archive's file: a change here makes it reject all archives written before.
    Raises UserError if Snakefile, the file of the workflow, is missing.
    """
    workflow = "source/Snakefile" if facts["source"]["packed"] else "Snakefile"
    graph = _build_entities(_build_file_entities(folder, workflow), workflow, facts)
    crate = {"@context": f"{_SPECIFICATION}/context", "@graph": graph}
    return json.dumps(crate, indent=1, ensure_ascii=False) + "\n"


def _build_file_entities(folder: str, workflow: str) -> dict[str, Fields]:
    """Return path → JSON-LD entity of each file that the crate lists, sorted by path.

    The crate's own file is left out.  The only file of the source in the result is the workflow,
    since the source is one entity.
    folder: the folder of the archive.
    workflow: the path of the Snakefile in the folder.
    Raises UserError if the workflow is missing.
    """
    names = {*list_files(folder), checksums.NAME} - {FILE}
    files = {
        name: _build_file_entity(folder, name)
        for name in sorted(names)
        if not name.startswith("source/") or name == workflow
    }
    if workflow not in files:
        raise UserError(f"{workflow}: missing")
    files[workflow] |= {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": "The workflow that measures and makes the paper",
        "conformsTo": _build_reference(_WORKFLOW),
        "programmingLanguage": _build_reference("#snakemake"),
    }
    return files


def _build_entities(files: dict[str, Fields], workflow: str, facts: Fields) -> list[Fields]:
    """Return all entities of the crate, in the order of its file.

    files: path → entity of each file.
    workflow: the path of the Snakefile in the archive.
    facts: the object of archive.json.
    ``verify`` compares the file's bytes: a change here makes it reject archives written before.
    """
    source, measured = facts["source"], facts["measured"]
    part_identifiers = [entity["@id"] for entity in files.values()]
    if source["packed"]:
        part_identifiers.append("source/")
        source_entity = _build_entity("source/", "Dataset")
    else:
        source_entity = _build_entity(source["swhid"], "CreativeWork")
    source_entity |= {"name": "The project's own files", "identifier": source["swhid"]}
    licence_name = urllib.parse.quote(facts["license"] or "", safe="")
    licence_identifier = "#no-licence"
    if licence_name:
        licence_identifier = f"https://spdx.org/licenses/{licence_name}"
    return [
        _build_entity(
            FILE,
            "CreativeWork",
            about=_build_reference("./"),
            conformsTo=_build_reference(_SPECIFICATION, _WORKFLOW_CRATE),
        ),
        _build_entity(
            "./",
            "Dataset",
            name=facts["title"],
            description=facts["description"],
            datePublished=measured["to"],
            license=_build_reference(licence_identifier),
            author=_build_reference("#authors"),
            publisher=_build_reference("#authors"),
            version=source["revision"] or facts["strata"],
            conformsTo=_build_reference(*_PROFILES),
            mainEntity=_build_reference(workflow),
            mentions=_build_reference("#measurement", source_entity["@id"]),
            hasPart=[_build_reference(identifier) for identifier in part_identifiers],
        ),
        *files.values(),
        source_entity,
        *(
            _build_entity(identifier, "CreativeWork", name=name, version=version)
            for identifier, (name, version) in _PROFILES.items()
        ),
        _build_entity(
            licence_identifier, "CreativeWork", name=facts["license"] or "No licence is named"
        ),
        _build_entity("#authors", "Organization", name=facts["authors"]),
        _build_entity(
            "#snakemake",
            "ComputerLanguage",
            name="Snakemake",
            url="https://snakemake.github.io",
            version=facts["snakemake"],
        ),
        _build_entity(
            "#measurement",
            "CreateAction",
            name="Measurement of the archived runs",
            startTime=measured["from"],
            endTime=measured["to"],
            instrument=_build_reference(workflow),
            object=_build_reference("results/plan.json"),
            result=[
                _build_reference(entity["@id"])
                for name, entity in files.items()
                if name.startswith(("results/raw/", "paper/"))
            ],
            agent=_build_reference("#authors"),
        ),
    ]
