"""What is written down twice is written alike."""

import json
import subprocess
import sys

import projects
import yaml

import strata


def test_a_release_is_called_alike_wherever_it_is_described():
    cited = yaml.load((projects.ROOT / "CITATION.cff").read_text(), Loader=yaml.BaseLoader)
    zenodo, codemeta = (
        json.loads((projects.ROOT / name).read_text()) for name in (".zenodo.json", "codemeta.json")
    )
    released, authors = cited["date-released"], [author["name"] for author in cited["authors"]]
    assert cited["version"] == zenodo["version"] == codemeta["version"] == strata.__version__
    assert released == zenodo["publication_date"] == codemeta["datePublished"]
    assert (
        authors
        == [one["name"] for one in zenodo["creators"]]
        == [one["name"] for one in codemeta["author"]]
    )
    assert cited["title"] == zenodo["title"]
    assert cited["license"] == zenodo["license"]
    assert codemeta["license"] == f"https://spdx.org/licenses/{cited['license']}"


def test_the_tables_of_keys_are_those_of_the_schemas():
    command = [sys.executable, "scripts/schema_tables.py", "--check"]
    done = subprocess.run(command, cwd=projects.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
