"""Rules and conda environments match: a run with a channel of stubs (tests/helpers/conda.py).

Whether the real channel has what the environments name is not tested here:
.github/workflows/conda.yml is for that.
"""

import importlib.metadata
import json
import shutil
import zipfile

import conda as stand_in
import projects
import pytest


@pytest.fixture(scope="module")
def conda(tmp_path_factory):
    """Variables with which Snakemake finds a conda and its channel."""
    return stand_in.install(tmp_path_factory.mktemp("conda"), projects.ROOT / "envs")


@pytest.fixture
def folder(tmp_path):
    """A project of three cells on the bare host; its numbers vary, its files may be edited."""
    argv = ["/bin/sh", "-c", "date +1%N", "{number}"]
    work = {**projects.NOOP, "run": [{"argv": argv, "timeout": 20}]}
    return projects.make(
        tmp_path / "project", projects.on_host(repetitions=3), {"noop": work}, copy=True
    )


def snakemake(folder, conda, *words):
    """Output of Snakemake with conda.  A pin that does not install only warns: an error here."""
    words = ("--software-deployment-method", "conda", "--cores", "1", *words)
    done = projects.run(folder, "snakemake", *words, PYTHONPATH="", **conda)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "Failed to install conda environment" not in said
    return said


def used(folder):
    """The programs that were run in each environment, by the name of its file."""
    found = {}
    for page in (folder / ".snakemake/conda").glob("*.yaml"):
        [name] = [
            file.name
            for file in (folder / "envs").iterdir()
            if file.read_bytes() == page.read_bytes()
        ]
        marks = page.with_suffix("") / "used"
        found[name] = marks.read_text() if marks.exists() else ""
    return found


def test_cells_tables_and_page_are_made_in_their_environments(folder, conda):
    said = snakemake(folder, conda, "paper/report.html")
    assert "R is missing" not in said
    assert (folder / "paper/report.html").exists()
    run = used(folder)
    assert set(run) == {"strata.yaml", "analysis.yaml"}
    assert run["strata.yaml"].count("python3 -S -m strata cell bare noop") == 3
    for command in (
        "python3 -m strata tables",
        "Rscript --vanilla analysis/tables.R",
        "python3 -m strata paper",
        "pandoc",
    ):
        assert command in run["analysis.yaml"]


@pytest.mark.long
def test_paper_and_archive_are_made_in_their_environments(folder, conda):
    shutil.copy(projects.ROOT / "LICENSE", folder / "LICENSE")
    projects.track(folder)
    snakemake(folder, conda, "paper/report.pdf", "paper/report.html")
    snakemake(folder, conda, "archive.zip")
    assert (folder / "paper/report.pdf").read_bytes().startswith(b"%PDF")
    assert "python3 -m strata archive" in used(folder)["analysis.yaml"]
    projects.good(folder, "strata", "verify", "archive.zip")
    with zipfile.ZipFile(folder / "archive.zip") as archive:
        [name] = [
            name
            for name in archive.namelist()
            if name.endswith("/archive.json") or name == "archive.json"
        ]
        assert json.loads(archive.read(name))["snakemake"] == importlib.metadata.version(
            "snakemake"
        )


@pytest.mark.long
def test_pins_are_used_and_a_broken_one_is_an_error(folder, conda):
    only = ("--conda-create-envs-only", "--", "results/raw/bare/noop/1.log")
    snakemake(folder, conda, *only)
    installed = [
        json.loads(file.read_text())
        for file in (folder / ".snakemake/conda").glob("*/conda-meta/*.json")
    ]
    assert installed
    pins = folder / "envs/strata.linux-64.pin.txt"
    pins.write_text("@EXPLICIT\n" + "".join(f"{record['url']}\n" for record in installed))
    assert "Using pinnings from" in snakemake(folder, conda, *only)
    pins.write_text(pins.read_text().replace("/python-", "/no-python-"))
    with pytest.raises(AssertionError, match="Failed to install"):
        snakemake(folder, conda, *only)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("analysis.yaml", "  - pyyaml", "  #", "yaml is not installed"),
        ("strata.yaml", "python =3.12", "python =3.99", "No candidates were found for python"),
    ],
)
def test_what_an_environment_lacks_fails_the_run(folder, conda, name, old, new, said):
    page = folder / "envs" / name
    assert old in page.read_text()
    page.write_text(page.read_text().replace(old, new))
    with pytest.raises(AssertionError, match=said):
        snakemake(folder, conda, "results/SHA256SUMS")
