"""Rules in conda environments, from a file channel: that every environment holds what its rules' commands need.

The channel's packages stand for the real ones (tests/conda/channel.py), so this says that rules and environments fit
together; that the real channel solves them is for a hosted CI (.github/workflows/conda.yml) to say.
"""

import os
import shutil

import projects
import pytest
from conda import channel


@pytest.fixture(scope="module")
def conda(tmp_path_factory):
    """Variables with which Snakemake finds a conda and its channel."""
    folder = tmp_path_factory.mktemp("conda")
    place = channel.install(folder)
    return {
        "CONDA_ROOT": str(folder),
        "CONDA_CHANNEL_ALIAS": f"file://{folder}/channel",
        "PATH": f"{place}{os.pathsep}{os.environ['PATH']}",
    }


@pytest.fixture
def folder(tmp_path):
    """A project of two cells on the bare host, whose numbers vary, and whose files may be edited."""
    argv = ["/bin/sh", "-c", "date +1%N", "{number}"]
    return projects.make(
        tmp_path / "project",
        projects.on_host(repetitions=3),
        {"noop": {**projects.NOOP, "run": [{"argv": argv, "timeout": 20}]}},
        copy=True,
    )


def snakemake(folder, conda, *words):
    words = ("--software-deployment-method", "conda", "--cores", "1", *words)
    return projects.run(folder, "snakemake", *words, timeout=1800, **conda)


def used(folder):
    """What was run in each environment, by the file that it was made of."""
    found = {}
    for page in (folder / ".snakemake/conda").glob("*.yaml"):
        told = page.with_suffix("") / "used"
        [name] = [file.name for file in (folder / "envs").iterdir() if file.read_bytes() == page.read_bytes()]
        found[name] = told.read_text() if told.exists() else ""
    return found


def test_cells_and_tables_are_made_in_their_environments(folder, conda):
    done = snakemake(folder, conda, "results/summary.csv")
    assert done.returncode == 0, done.stderr + done.stdout
    assert len((folder / "results/summary.csv").read_text().splitlines()) == 2
    told = used(folder)
    assert set(told) == {"strata.yaml", "analysis.yaml"}
    assert told["strata.yaml"].count("-S -m strata cell bare noop") == 3
    assert "-m strata tidy" in told["analysis.yaml"]
    assert "Rscript analysis/tables.R" in told["analysis.yaml"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["pyyaml"], "No module named 'yaml'"),
        # What needs it brings it, too.
        (["r-jsonlite", "r-rmarkdown"], "jsonlite"),
    ],
    ids=["python", "r"],
)
def test_an_environment_that_lacks_something_fails(folder, conda, names, says):
    page = folder / "envs/analysis.yaml"
    lines = page.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(tuple(f"  - {name}" for name in names))]
    assert len(kept) == len(lines) - len(names)
    page.write_text("".join(kept))
    done = snakemake(folder, conda, "results/tidy/noop.csv")
    assert done.returncode != 0
    assert says in done.stderr + done.stdout


@pytest.mark.long
def test_a_package_that_the_channel_has_not_is_told_before_anything_is_measured(folder, conda):
    page = folder / "envs/strata.yaml"
    page.write_text(page.read_text().replace("python =3.12", "python =3.99"))
    done = snakemake(folder, conda, "results/tidy/noop.csv")
    assert done.returncode != 0
    assert "No candidates were found for python 3.99" in done.stderr + done.stdout
    assert not (folder / "results/raw").exists()


@pytest.mark.long
def test_paper_page_and_archive_are_made_in_their_environments(folder, conda):
    shutil.copy(projects.ROOT / "LICENSE", folder / "LICENSE")
    projects.track(folder)
    done = snakemake(folder, conda, "paper/report.pdf", "paper/report.html", "archive.zip")
    assert done.returncode == 0, done.stderr + done.stdout
    assert (folder / "paper/report.pdf").read_bytes().startswith(b"%PDF")
    told = used(folder)
    assert set(told) == {"strata.yaml", "analysis.yaml", "archive.yaml"}
    for command in ("Rscript analysis/report.R", "pandoc "):
        assert command in told["analysis.yaml"]
    assert "-m strata archive" in told["archive.yaml"]
    verify = projects.run(folder, "strata", "verify", "archive.zip")
    assert verify.returncode == 0, verify.stdout
