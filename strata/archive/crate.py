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
# Profiles to which the crate conforms: the name and version of each.
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


def _entity(identifier: str, kind: str | list[str], **properties: Any) -> Fields:
    """Return an entity of JSON-LD with its ``@id``, its ``@type`` and further properties."""
    return {"@id": identifier, "@type": kind, **properties}


def _refer(*identifiers: str) -> Any:
    """Return a JSON-LD reference to one entity, or a list of references to several."""
    references = [{"@id": identifier} for identifier in identifiers]
    return references if len(references) > 1 else references[0]


def _describe_file(folder: str, name: str) -> Fields:
    """Return the JSON-LD entity of a file.

    folder: of the archive.  name: the file's path in it, which need not exist for SHA256SUMS.
    """
    entity = _entity(urllib.parse.quote(name), "File", name=name)
    other = "application/octet-stream" if name.startswith("image/") else "text/plain"
    entity["encodingFormat"] = _MEDIA_TYPES.get(os.path.splitext(name)[1], other)
    # SHA256SUMS is written after the crate, which it lists, so its size is not known yet.
    if name != checksums.NAME:
        entity["contentSize"] = str(os.path.getsize(os.path.join(folder, name)))
    return entity


def format_crate(folder: str, facts: Fields) -> str:
    """Return the text of ro-crate-metadata.json for the files in a folder.

    facts: the object of archive.json.
    The text depends on names and sizes of the files and on `facts` alone.  ``verify`` compares it
    byte by byte with an archive's file: a change here makes it reject all archives written before.
    Raises UserError if Snakefile, the file of the workflow, is missing.
    """
    source, measured = facts["source"], facts["measured"]
    workflow = "source/Snakefile" if source["packed"] else "Snakefile"
    names = {*list_files(folder), checksums.NAME} - {FILE}
    files = {
        name: _describe_file(folder, name)
        for name in sorted(names)
        if not name.startswith("source/") or name == workflow
    }
    if workflow not in files:
        raise UserError(f"{workflow}: missing")
    files[workflow] |= {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": "The workflow that measures and makes the paper",
        "conformsTo": _refer(_WORKFLOW),
        "programmingLanguage": _refer("#snakemake"),
    }
    identifiers = [entity["@id"] for entity in files.values()]
    if source["packed"]:
        identifiers.append("source/")
        code = _entity("source/", "Dataset")
    else:
        code = _entity(source["swhid"], "CreativeWork")
    code |= {"name": "The project's own files", "identifier": source["swhid"]}
    licence = urllib.parse.quote(facts["license"] or "", safe="")
    terms = f"https://spdx.org/licenses/{licence}" if licence else "#no-licence"
    graph = [
        _entity(
            FILE,
            "CreativeWork",
            about=_refer("./"),
            conformsTo=_refer(_SPECIFICATION, _WORKFLOW_CRATE),
        ),
        _entity(
            "./",
            "Dataset",
            name=facts["title"],
            description=facts["description"],
            datePublished=measured["to"],
            license=_refer(terms),
            author=_refer("#authors"),
            publisher=_refer("#authors"),
            version=source["revision"] or facts["strata"],
            conformsTo=_refer(*_PROFILES),
            mainEntity=_refer(workflow),
            mentions=_refer("#measurement", code["@id"]),
            hasPart=[_refer(identifier) for identifier in identifiers],
        ),
        *files.values(),
        code,
        *(
            _entity(identifier, "CreativeWork", name=name, version=version)
            for identifier, (name, version) in _PROFILES.items()
        ),
        _entity(terms, "CreativeWork", name=facts["license"] or "No licence is named"),
        _entity("#authors", "Organization", name=facts["authors"]),
        _entity(
            "#snakemake",
            "ComputerLanguage",
            name="Snakemake",
            url="https://snakemake.github.io",
            version=facts["snakemake"],
        ),
        _entity(
            "#measurement",
            "CreateAction",
            name="Measurement of the archived runs",
            startTime=measured["from"],
            endTime=measured["to"],
            instrument=_refer(workflow),
            object=_refer("results/plan.json"),
            result=[
                _refer(entity["@id"])
                for name, entity in files.items()
                if name.startswith(("results/raw/", "paper/"))
            ],
            agent=_refer("#authors"),
        ),
    ]
    crate = {"@context": f"{_SPECIFICATION}/context", "@graph": graph}
    return json.dumps(crate, indent=1, ensure_ascii=False) + "\n"
