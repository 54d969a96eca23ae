"""The RO-Crate of an archive: ro-crate-metadata.json, which describes it to machines.

It is a Workflow Run Crate 0.5 (https://w3id.org/ro/wfrun/workflow/0.5), written as the JSON-LD that it is.  The
project's source is one folder in it, named by its SWHID; checksums are in SHA256SUMS.
"""

import json
import os
import urllib.parse
from typing import Any

from strata.archive import checksums
from strata.archive.zip_file import files_below
from strata.util.data_types import Fields
from strata.util.errors import UserError

FILE = "ro-crate-metadata.json"
VERSION = "1.1"
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
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".html": "text/html",
    ".cff": "application/yaml",
}


def _entity(address: str, kind: str | list[str], **properties: Any) -> dict[str, Any]:
    return {"@id": address, "@type": kind, **properties}


def _to(*identifiers: str) -> Any:
    """A reference to an entity, or a list of references to several."""
    found = [{"@id": identifier} for identifier in identifiers]
    return found if len(found) > 1 else found[0]


def _file(folder: str, name: str) -> dict[str, Any]:
    found = _entity(urllib.parse.quote(name), "File", name=name)
    other = "application/octet-stream" if name.startswith("image/") else "text/plain"
    found["encodingFormat"] = _TYPES.get(os.path.splitext(name)[1], other)
    # The list of checksums is made last.
    if name != checksums.NAME:
        found["contentSize"] = str(os.path.getsize(os.path.join(folder, name)))
    return found


def text(folder: str, facts: Fields) -> str:
    """The crate's metadata for the files that are in a folder; `facts` is the object of archive.json."""
    code, packed = facts["source"]["swhid"], facts["source"]["packed"]
    main = "source/Snakefile" if packed else "Snakefile"
    there = {*files_below(folder), checksums.NAME} - {FILE}
    names = sorted(name for name in there if not name.startswith("source/") or name == main)
    files = {name: _file(folder, name) for name in names}
    if main not in files:
        raise UserError(f"{main}: missing")
    files[main] |= {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": "The workflow that measures and makes the paper",
        "conformsTo": _to("https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"),
        "programmingLanguage": _to("#snakemake"),
    }
    about = {"name": "The project's own files", "identifier": code}
    source = (
        _entity("source/", "Dataset", **about) if packed else _entity(code, "CreativeWork", **about)
    )
    licence = urllib.parse.quote(facts["license"] or "", safe="")
    terms = f"https://spdx.org/licenses/{licence}" if licence else "#no-licence"
    results = [files[name]["@id"] for name in names if name.startswith(("results/raw/", "paper/"))]
    parts = [*(entity["@id"] for entity in files.values()), *(["source/"] if packed else [])]
    graph = [
        _entity(FILE, "CreativeWork", about=_to("./"), conformsTo=_to(_SPECIFICATION, _WORKFLOW_CRATE)),
        _entity(
            "./",
            "Dataset",
            name=facts["title"],
            description=facts["description"],
            datePublished=facts["measured"]["to"],
            license=_to(terms),
            author=_to("#authors"),
            publisher=_to("#authors"),
            version=facts["source"]["revision"] or facts["strata"],
            conformsTo=_to(*_PROFILES),
            mainEntity=_to(main),
            mentions=_to("#measurement", source["@id"]),
            hasPart=[_to(part) for part in parts],
        ),
        *files.values(),
        source,
        *(_entity(address, "CreativeWork", name=name, version=of) for address, (name, of) in _PROFILES.items()),
        _entity(terms, "CreativeWork", name=facts["license"] or "No licence is named"),
        _entity("#authors", "Organization", name=facts["authors"]),
        _entity("#snakemake", "ComputerLanguage", name="Snakemake", url="https://snakemake.github.io",
                version=facts["snakemake"]),
        _entity(
            "#measurement",
            "CreateAction",
            name="Measurement of the archived runs",
            startTime=facts["measured"]["from"],
            endTime=facts["measured"]["to"],
            instrument=_to(main),
            object=_to("results/plan.json"),
            result=[_to(result) for result in results],
            agent=_to("#authors"),
        ),
    ]  # fmt: skip
    return (
        json.dumps(
            {"@context": f"{_SPECIFICATION}/context", "@graph": graph}, indent=1, ensure_ascii=False
        )
        + "\n"
    )
