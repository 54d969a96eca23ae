"""From measured logs to an archive, and from the archive to the same paper: real R, LaTeX and Snakemake."""

import importlib.resources
import json
import os
import re
import shutil
import subprocess
import zipfile

import layout
import measured
import pages
import projects
import pytest
import requests
import requests_cache
import urllib3

from strata.archive import check, container, crate, rebuild, sums
from strata.base import places
from strata.experiment import workload
from strata.results import judge, made, products


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as context:
        context.delenv("STRATA_OWNER", raising=False)
        yield context
    workload.load.cache_clear()


@pytest.fixture(scope="module")
def paper(tmp_path_factory, patch):
    """A project whose tables, figures and papers are made of logs and records, with decisions in between."""
    settings = measured.page(quiet={"action": "retry"})
    folder = measured.project(tmp_path_factory.mktemp("archived") / "project", patch, settings)
    done = projects.run(folder, "snakemake", "--cores", "2", "--config", "rebuild=true", "--", "archive")
    assert done.returncode == 0, done.stderr + done.stdout
    return folder


def unpacked(archive, folder):
    folder.mkdir()
    assert container.unpack(str(archive), str(folder)) == []
    return folder


def test_the_workflow_makes_an_archive_that_verifies(paper):
    assert check.verify(str(paper / "archive.zip")) == []
    dry = projects.run(paper, "snakemake", "--dry-run", "--config", "rebuild=true", "--", "archive")
    assert "Nothing to be done" in dry.stdout + dry.stderr


def test_an_edited_source_makes_the_archive_again_and_nothing_else(paper):
    path = paper / "docs.md"
    path.write_text("A note.\n")
    try:
        dry = projects.run(
            paper, "snakemake", "--dry-run", "--quiet=rules", "--config", "rebuild=true", "--", "archive"
        )
        counts = [line.split() for line in (dry.stdout + dry.stderr).splitlines()]
        jobs = {tuple(line) for line in counts if len(line) == 2 and line[1].isdigit()}
        assert jobs == {("archive", "1"), ("total", "1")}
    finally:
        path.unlink()


def test_all_that_was_made_is_listed_and_archived(paper, tmp_path):
    folder = unpacked(paper / "archive.zip", tmp_path / "held")
    for place in (paper, folder):
        there = container.files_below(str(place))
        ours = {name for name in there if name.startswith("results/") and name.count("/") > 1} - {
            name for name in there if name.startswith(("results/raw/", "results/logs/", "results/tmp/"))
        }
        tables = {f"results/{name}.csv" for name in ("comparisons", "claims", "footprint", "sets", "choices")}
        listed = rebuild.made_in(str(folder))
        assert ours | tables | set(products.PAPERS) == {
            name for product in listed for name in (*product.files, product.note)
        }


@pytest.mark.parametrize(
    "name", ["tidy/stream", "summary/stream", "comparisons", "claims", "footprint", "sets", "choices", "figures/stream",
             "figures/order", "figures/drift", "figures/ratios", "figures/claims", "figures/footprint",
             "paper/report.pdf", "paper/report.html"]
)  # fmt: skip
def test_a_product_is_made_of_nothing_but_what_is_noted(paper, tmp_path, name):
    """Its command runs where there is nothing else, and makes the same."""
    state = made.State(judge.load(str(paper), "results/plan.json"), str(paper), str(paper))
    product = state.products()[name]
    folder = tmp_path / "alone"
    cells = [cell for load in product.cells for cell in state.cells(load)]
    raw = [places.cell_path("raw", *cell, kind) for cell in cells for kind in ("log", "json")]
    image = [key for key in state.inputs(product) if key.startswith("results/image")]
    for source in (*state.sources(product), *product.reads, *raw, *image, "results/plan.json", "results/plan.csv"):
        (folder / source).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (paper / source).is_dir() else shutil.copy)(paper / source, folder / source)
    options = {
        "tidy": ["--workload", "stream"],
        "summary": ["--tidy", *product.reads],
        "figures/stream": ["--tidy", "results/tidy/stream.csv", "--summary", "results/summary/stream.csv",
                           "--figure", "stream", "--workload", "stream"],
        "figures/order": ["--order", *product.reads],
        "figures/drift": ["--drift", *product.reads],
        "figures/ratios": ["--ratios", *product.reads],
        "figures/claims": ["--claims", *product.reads],
        "figures/footprint": ["--footprint", *product.reads],
        "report": [],
    }  # fmt: skip
    tables = [file for file in product.reads if not file.startswith("results/precision/")]
    out = product.files[0].removesuffix(".pdf") if product.command == "figure" else product.files[0]
    command = [f"analysis/{product.command}.R", "--plan", "results/plan.json", "--out", out]
    command += options.get(name, options.get(product.command, tables))
    done = subprocess.run(["Rscript", *command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for file in product.files:
        assert (folder / file).read_bytes() == (paper / file).read_bytes()


def rebuilt(archive, folder):
    """What `rebuild` ends with, and the state of each product, where there is neither Docker nor QEMU.

    Programs of those names are there, and tell when they are called.
    """
    tools = folder / "bin"
    tools.mkdir()
    names = ("docker", "dockerd", "packer", "mmdebstrap", "vagrant", "virsh", "qemu-system-x86_64", "qemu-img", "sudo")
    for name in names:
        (tools / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {folder}/called\nexit 127\n')
        (tools / name).chmod(0o755)
    variables = {"PATH": f"{tools}:{os.environ['PATH']}", "STRATA_HOME": str(folder / "home")}
    done = projects.run(folder, "strata", "rebuild", str(archive), **variables)
    assert not (folder / "called").exists()
    assert not (folder / "home").exists()
    assert "Traceback" not in done.stderr
    states = dict(line.split(maxsplit=1)[::-1] for line in done.stdout.splitlines())
    tables = {"results/tidy/stream.csv", "results/claims.csv", "results/figures/order.csv", "paper/report.pdf"}
    assert tables <= set(states), done.stderr
    return done, states


@pytest.mark.long
def test_the_paper_is_the_same_where_there_is_neither_docker_nor_qemu(paper, tmp_path):
    done, states = rebuilt(paper / "archive.zip", tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    assert set(states.values()) == {"identical"}
    again = tmp_path / "archive-rebuilt"
    for name in states:
        assert (again / name).read_bytes() == (paper / name).read_bytes(), name
    assert not (again / ".snakemake").exists()


def test_a_rebuild_says_which_table_is_another_and_makes_all_others_the_same(paper, tmp_path):
    """The archive is one with a table that does not follow from its logs, though all its checksums fit."""
    folder = unpacked(paper / "archive.zip", tmp_path / "forged")
    table = folder / "results/summary/stream.csv"
    table.write_text(table.read_text().replace("3", "4", 1))
    crate.write(str(folder), json.loads((folder / "archive.json").read_text()))
    sums.write(str(folder))
    assert check.verify(str(folder)) == ["results/summary/stream.csv: it is not as it was made"]
    measured.note(folder, folder / "source")
    crate.write(str(folder), json.loads((folder / "archive.json").read_text()))
    sums.write(str(folder))
    assert check.verify(str(folder)) == []
    done, states = rebuilt(folder, tmp_path)
    assert done.returncode == 1
    assert [name for name, state in states.items() if state != "identical"] == ["results/summary/stream.csv"]
    assert states["results/summary/stream.csv"] == "different"
    again = tmp_path / "forged-rebuilt"
    for name in states:
        assert (again / name).read_bytes() == (paper / name).read_bytes(), name
    assert not (again / ".snakemake").exists()


def test_nothing_is_measured_where_a_log_lacks(paper, tmp_path):
    folder = unpacked(paper / "archive.zip", tmp_path / "holed")
    again = tmp_path / "again"
    rebuild.prepare(str(folder), str(again))
    (again / "results/raw/docker/stream/2.log").unlink()
    done = projects.run(
        again, "snakemake", "--cores", "1", "--config", "rebuild=true", "--", "all", PYTHONPATH=str(again)
    )
    assert done.returncode != 0
    assert "results/raw/docker/stream/2.log" in done.stdout + done.stderr
    assert not (again / "results/raw/docker/stream/2.log").exists()


class Answers(requests.adapters.BaseAdapter):
    """Answers from the RO-Crate library's own copy of the vocabulary, in place of a network."""

    def send(self, request, **_):
        response = requests.Response()
        response.status_code, response.request, response.url = 200, request, request.url
        response.headers["Content-Type"] = "application/ld+json"
        source = importlib.resources.files("rocrate") / "data/ro-crate.jsonld"
        response.raw = urllib3.HTTPResponse(body=source.open("rb"), preload_content=False, status=200)
        return response

    def close(self):
        pass


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_crate_is_valid_by_the_published_validator(paper, tmp_path):
    from rocrate_validator import services
    from rocrate_validator.models import Severity, ValidationSettings

    session = requests_cache.CachedSession(str(tmp_path / "cache"))
    session.mount("https://", Answers())
    session.get(f"https://w3id.org/ro/crate/{crate.VERSION}/context")
    session.close()
    folder = unpacked(paper / "archive.zip", tmp_path / "crate")
    result = services.validate(
        ValidationSettings(
            rocrate_uri=str(folder),
            profile_identifier=f"ro-crate-{crate.VERSION}",
            requirement_severity=Severity.REQUIRED,
            offline=True,
            cache_path=tmp_path / "cache.sqlite",
        )
    )
    assert [issue.message for issue in result.get_issues()] == []


def test_the_paper_keeps_its_layout(paper):
    assert layout.findings(paper / "paper/report.pdf") == []
    assert "LaTeX notes" not in (paper / "results/logs/report.log").read_text()


def test_the_page_is_for_everybody_and_its_points_tell_their_runs(paper):
    with pages.chromium() as driver:
        assert pages.findings(driver, paper / "paper/report.html") == []
        assert pages.told(driver, paper / "paper/report.html") != ""


def test_snakemakes_report_holds_papers_tables_and_figures_with_captions_by_category(paper, tmp_path):
    words = ["--report", str(tmp_path / "report.zip"), "--config", "rebuild=true"]
    done = projects.run(paper, "snakemake", *words)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "report.zip") as archive:
        page = archive.read("report/report.html").decode()
        held = {name.rpartition("/")[2]: archive.read(name) for name in archive.namelist()}
    categories = json.loads(re.search(r"^ *var categories = (.*);$", page, re.MULTILINE)[1])
    assert {name: set(parts) for name, parts in categories.items()} == {
        "Papers": {"Other"},
        "Figures": {"STREAM", "Linpack", "All workloads"},
        "Tables": {"STREAM", "Linpack", "All workloads"},
    }
    for name in ("paper/report.pdf", "results/figures/ratios.svg", "results/tidy/stream.csv"):
        assert any(name in files for parts in categories.values() for files in parts.values())
    assert held["report.pdf"] == (paper / "paper/report.pdf").read_bytes()
    shown = json.loads(re.search(r"^ *var results = (\{.*?\});? *$", page, re.MULTILINE)[1])
    assert set(shown) == {name for parts in categories.values() for files in parts.values() for name in files}
    assert all(entry["caption"] for entry in shown.values())
    assert "STREAM. Every point is a run" in shown["results/figures/stream.svg"]["caption"]
    assert shown["results/figures/stream.svg"]["labels"] == {"figure": "stream", "as": "drawing"}
