"""From measured logs to an archive, and from the archive to the same paper: real R, LaTeX and Snakemake."""

import importlib.resources
import io
import json
import os
import re
import shutil
import subprocess

import measured
import pages
import projects
import pytest
import requests
import requests_cache
import urllib3

from strata.archive import check, container, crate, make, rebuild, sums
from strata.base.errors import UserError
from strata.experiment import workload
from strata.results import judge, products


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as context:
        context.delenv("STRATA_OWNER", raising=False)
        yield context
    workload.load.cache_clear()


@pytest.fixture(scope="module")
def paper(tmp_path_factory, patch):
    """A project whose tables and papers are made of logs and records, and its archive."""
    settings = measured.page(quiet={"action": "retry"})
    folder = measured.project(tmp_path_factory.mktemp("archived") / "project", patch, settings)
    rebuild.remake(str(folder), False)
    make.make("archive.zip", False)
    return folder


def unpacked(archive, folder):
    folder.mkdir()
    assert container.unpack(str(archive), str(folder)) == []
    return folder


@pytest.mark.long
def test_the_workflow_makes_an_archive_that_verifies_and_follows_the_source(tmp_path, monkeypatch):
    """Of cells on the bare host, which can be measured anywhere."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    argv = ["/bin/sh", "-c", "date +1%N", "{number}"]
    load = {**projects.NOOP, "run": [{"argv": argv, "timeout": 20}]}
    environments = {name: {"layers": ["host"]} for name in ("native", "other")}
    page = projects.on_host(repetitions=3, environments=environments, quiet={"action": "flag"})
    folder = projects.make(tmp_path / "project", page, {"noop": load}, copy=True)
    shutil.copy(projects.ROOT / "LICENSE", folder / "LICENSE")
    projects.track(folder)

    def jobs(*words):
        done = projects.run(folder, "snakemake", "--cores", "1", *words)
        assert done.returncode == 0, done.stderr + done.stdout
        lines = [line.split() for line in (done.stdout + done.stderr).splitlines()]
        return {line[0] for line in lines if len(line) == 2 and line[1].isdigit()} - {"total"}

    refused = projects.run(folder, "snakemake", "--cores", "1", "--", "archive")
    assert refused.returncode != 0
    assert "6 of 6 cells are not measured" in refused.stdout + refused.stderr
    jobs("all")
    jobs("archive")
    assert check.verify(str(folder / "archive.zip")) == []
    assert jobs("--dry-run", "archive") == set()
    (folder / "docs.md").write_text("A note.\n")
    assert jobs("--dry-run", "archive") == set()
    subprocess.run(["git", "-C", folder, "add", "docs.md"], check=True)
    assert jobs("--dry-run", "archive") == {"archive"}


def test_all_that_was_made_is_archived(paper, tmp_path):
    folder = unpacked(paper / "archive.zip", tmp_path / "held")
    listed = set(products.made(judge.load(str(folder), "results/plan.json")))
    for place in (paper, folder):
        apart = ("raw/", "logs/", "tmp/", "plan.", "image", "SHA256SUMS")
        there = {name for name in container.files_below(str(place)) if name.startswith("results/")}
        papers = {name for name in products.PAPERS if (place / name).exists()}
        assert {name for name in there if not name.removeprefix("results/").startswith(apart)} | papers == listed


def test_tables_and_papers_are_made_of_nothing_but_the_inputs_of_their_rules(paper, tmp_path):
    """What is no input would be changed without that anything is made again."""
    alone = tmp_path / "alone"
    alone.mkdir()
    rules = (projects.ROOT / "rules/common.smk").read_text()
    patterns = [
        name for words in re.findall(r"code\(\n?(.*?)\)", rules, re.DOTALL) for name in re.findall(r'"(.+?)"', words)
    ]
    assert "workloads/*/*.py" in patterns
    inputs = {name for pattern in patterns for name in paper.glob(pattern) if name.is_file()}
    inputs |= {paper / f"results/{name}" for name in rebuild.INPUTS if (paper / f"results/{name}").is_file()}
    inputs |= set(paper.glob("results/raw/*/*/*"))
    # Of the package the rules name what reads logs; the rest is how it is started.
    inputs |= set(paper.glob("strata/**/*.py")) | set(paper.glob("schemas/*.json"))
    for path in inputs:
        target = alone / path.relative_to(paper)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    rebuild.remake(str(alone), False)
    for name in products.tables(judge.load(str(paper), "results/plan.json")):
        assert (alone / name).read_bytes() == (paper / name).read_bytes(), name


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
    tables = {"results/tidy/stream.csv", "results/claims.csv", "paper/report.pdf"}
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
    table = folder / "results/summary.csv"
    table.write_text(table.read_text().replace("3", "4", 1))
    crate.write(str(folder), json.loads((folder / "archive.json").read_text()))
    sums.write(str(folder))
    (found,) = check.verify(str(folder))
    assert found.startswith("results/summary.csv: changed")
    sums.write_tables(str(folder), products.tables(judge.load(str(folder), "results/plan.json")))
    crate.write(str(folder), json.loads((folder / "archive.json").read_text()))
    sums.write(str(folder))
    assert check.verify(str(folder)) == []
    done, states = rebuilt(folder, tmp_path)
    assert done.returncode == 1
    assert [name for name, state in states.items() if state != "identical"] == ["results/summary.csv"]
    assert states["results/summary.csv"] == "different"
    again = tmp_path / "forged-rebuilt"
    for name in states:
        assert (again / name).read_bytes() == (paper / name).read_bytes(), name
    assert not (again / ".snakemake").exists()


def test_nothing_is_made_where_a_log_lacks(paper, tmp_path):
    folder = unpacked(paper / "archive.zip", tmp_path / "holed")
    again = tmp_path / "again"
    rebuild.prepare(str(folder), str(again))
    (again / "results/raw/docker/stream/2.log").unlink()
    with pytest.raises(UserError, match=r"results/raw/docker/stream/2\.log"):
        rebuild.remake(str(again), False)
    assert not (again / "results/tidy").exists()


class Answers(requests.adapters.BaseAdapter):
    """Answers from the RO-Crate library's own copy of the vocabulary, in place of a network.

    The copy is of a later version, in which the terms of Bioschemas have other addresses than in 1.1.
    """

    def send(self, request, **_):
        response = requests.Response()
        response.status_code, response.request, response.url = 200, request, request.url
        response.headers["Content-Type"] = "application/ld+json"
        source = importlib.resources.files("rocrate") / "data/ro-crate.jsonld"
        body = io.BytesIO(source.read_bytes().replace(b"bioschemas.org/terms/", b"bioschemas.org/"))
        response.raw = urllib3.HTTPResponse(body=body, preload_content=False, status=200)
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
    for profile in (f"ro-crate-{crate.VERSION}", "workflow-run-crate"):
        result = services.validate(
            ValidationSettings(
                rocrate_uri=str(folder),
                profile_identifier=profile,
                requirement_severity=Severity.REQUIRED,
                offline=True,
                cache_path=tmp_path / "cache.sqlite",
            )
        )
        assert [issue.message for issue in result.get_issues()] == [], profile


def test_the_page_is_for_everybody(paper):
    with pages.chromium() as driver:
        assert pages.findings(driver, paper / "paper/report.html") == []
