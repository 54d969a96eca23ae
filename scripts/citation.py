"""Writes .zenodo.json and codemeta.json from CITATION.cff, the one place where authors, version and licence stand.

Usage: python scripts/citation.py [--check]; with --check nothing is written, and a difference is an error.  So is a
version that is not that of strata/__init__.py.
"""

import json
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
ABOUT = (
    "A Snakemake workflow that measures virtual machines, containers and bare Linux on one machine, and makes a paper "
    "of it: every combination of environment, workload and repetition is run in random order, aggregated in R, and set "
    "beside what was published in 2014."
)
KEYWORDS = ["benchmark", "containers", "Docker", "KVM", "reproducibility", "Snakemake", "virtual machines"]


def name(author: dict) -> str:
    """An author's name as a list of references has it."""
    return author.get("name") or f"{author['family-names']}, {author['given-names']}"


def zenodo(cited: dict) -> dict:
    """What Zenodo is told of a release."""
    creators = [
        {
            "name": name(author),
            **({"orcid": author["orcid"].rpartition("/")[2]} if "orcid" in author else {}),
            **({"affiliation": author["affiliation"]} if "affiliation" in author else {}),
        }
        for author in cited["authors"]
    ]
    return {
        "title": cited["title"],
        "description": ABOUT,
        "creators": creators,
        "keywords": KEYWORDS,
        "license": cited["license"],
        "upload_type": "software",
        "version": cited["version"],
        "publication_date": cited["date-released"],
    }


def codemeta(cited: dict) -> dict:
    """The same in CodeMeta's words."""

    def person(author: dict) -> dict:
        if "name" in author:
            return {"@type": "Organization", "name": author["name"]}
        told = {"@type": "Person", "givenName": author["given-names"], "familyName": author["family-names"]}
        return {**({"@id": author["orcid"]} if "orcid" in author else {}), **told}

    return {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": cited["title"].partition(":")[0],
        "description": ABOUT,
        "author": [person(author) for author in cited["authors"]],
        "version": cited["version"],
        "datePublished": cited["date-released"],
        "license": f"https://spdx.org/licenses/{cited['license']}",
        "keywords": KEYWORDS,
        "programmingLanguage": ["Python", "R", "Snakemake"],
        "operatingSystem": "Linux",
        "softwareRequirements": "pyproject.toml, scripts/packages.txt",
        "referencePublication": [
            {
                "@type": "ScholarlyArticle",
                "name": reference["title"],
                "author": [person(author) for author in reference["authors"]],
                "identifier": reference["number"],
                "datePublished": str(reference["year"]),
            }
            for reference in cited["references"]
        ],
    }


if __name__ == "__main__":
    page = yaml.load((ROOT / "CITATION.cff").read_text(), Loader=yaml.BaseLoader)
    version = re.search(r'^__version__ = "(.+)"$', (ROOT / "strata/__init__.py").read_text(), re.MULTILINE)
    if version is None or version[1] != page["version"]:
        sys.exit("CITATION.cff and strata/__init__.py name different versions")
    for file, told in ((".zenodo.json", zenodo(page)), ("codemeta.json", codemeta(page))):
        text = json.dumps(told, indent=2, ensure_ascii=False) + "\n"
        if sys.argv[1:] != ["--check"]:
            (ROOT / file).write_text(text)
        elif (ROOT / file).read_text() != text:
            sys.exit(f"{file} is not as CITATION.cff is: run `make citation`")
