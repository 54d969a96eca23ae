"""A failure persists: each run fails for the same reason and leaves tables and papers unchanged."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from test_spine import PAGE, PAPER, Project, copied

LOG = "results/raw/docker/load/2.log"
RECORD = LOG.replace(".log", ".json")
PARSER = "workloads/load/parse.py"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A small project with all tables and its paper."""
    page = {
        **PAGE,
        "environments": {name: PAGE["environments"][name] for name in ("native", "docker")},
    }
    made = Project(
        tmp_path_factory.mktemp("failures") / "project", {**page, "workloads": {"load": None}}
    )
    made.good(PAPER)
    return made


@pytest.fixture
def project(whole, tmp_path):
    return copied(whole, tmp_path)


def products(project: Project) -> dict[str, bytes]:
    names = [
        *project.path("results").glob("*.csv"),
        *project.path("results/tidy").glob("*"),
        project.path(PAPER),
    ]
    return {
        str(path.relative_to(project.folder)): path.read_bytes()
        for path in names
        if path.name != "plan.csv"
    }


def one_byte(content: bytes) -> bytes:
    return content[:-2] + bytes([content[-2] ^ 1]) + content[-1:]


def first(*lines: str):
    return lambda content: "\n".join([*lines, ""]).encode() + content


def of_record(content: bytes) -> bytes:
    return json.dumps({**json.loads(content), "seed": 1}).encode()


def of_text(content: bytes) -> bytes:
    return content.replace(b"```{r", b"```{r}\nstop('no text')\n```\n\n```{r", 1)


# What is done to a file, and what each run says.
SPOILT = {
    "a byte of a log": (LOG, one_byte, LOG),
    "a log that was cut": (LOG, lambda content: b"", LOG),
    "a log that grew": (LOG, lambda content: content + b"9\n", LOG),
    "a record that was cut": (RECORD, lambda content: content[:-9], RECORD),
    "a record that was edited": (RECORD, of_record, RECORD),
    "a parser that is no Python": (PARSER, first("def ("), PARSER),
    "a parser that raises": (PARSER, first("raise OSError('no luck')"), "no luck"),
    "a parser without parse": (PARSER, lambda content: b"x = 1\n", PARSER),
    "a parser that takes no log": (
        PARSER,
        lambda content: content.replace(b"line.isdigit()", b"1 / 0"),
        "no value",
    ),
    "the reader of logs": ("strata/results/tidy.py", first("def ("), "SyntaxError"),
    "tables.R": ("analysis/tables.R", first("x <- ("), "tables.R"),
    "statistics": ("analysis/statistics.R", first("stop('no statistics')"), "no statistics"),
    "claims that were cut": ("published/claims.json", lambda content: content[:999], "parse error"),
    "report.R": ("analysis/report.R", first("stop('no report')"), "no report"),
    "figures": ("analysis/figures.R", first("stop('no figures')"), "no figures"),
    "the paper's text": ("paper/report.Rmd", of_text, "no text"),
    "a workload": (
        "workloads/load/workload.yaml",
        first("title: ["),
        "workloads/load/workload.yaml",
    ),
    "the config": ("config.yaml", first("repetitions: many"), "config.yaml"),
}


# What repeats another in kind.
LONG = {
    "a log that was cut", "a log that grew", "a record that was edited", "a parser that raises",
    "a parser without parse", "statistics", "report.R", "a workload", "the reader of logs",
    "a parser that takes no log", "figures", "a record that was cut",
}  # fmt: skip


def check(project: Project, says: str, before: dict[str, bytes]) -> None:
    for _ in range(3):
        assert project.run(PAPER) != 0, project.said
        assert says in project.said
        assert products(project) == before


def check_mended(project: Project, before: dict[str, bytes]) -> None:
    project.good(PAPER)
    assert not project.measured
    assert products(project) == before
    project.good(PAPER)
    assert not project.jobs


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.long] * (one in LONG)) for one in SPOILT]
)
def test_a_failure_stays_one_until_its_cause_is_gone(project, name):
    file, change, says = SPOILT[name]
    path, before = project.path(file), products(project)
    content = path.read_bytes()
    # In place: its folder is no newer.
    with open(path, "r+b") as opened:
        opened.write(change(content))
        opened.truncate()
    check(project, says, before)
    path.write_bytes(content)
    check_mended(project, before)


@pytest.mark.parametrize(
    ("tool", "file"), [("Rscript", "analysis/tables.R"), ("pandoc", "paper/report.Rmd")]
)
def test_a_tool_that_fails_takes_nothing_away(project, tmp_path, monkeypatch, tool, file):
    broken: Path = tmp_path / "bin" / tool
    broken.parent.mkdir()
    broken.write_text(f"#!/bin/sh\necho the {tool} of somebody >&2\nexit 3\n")
    broken.chmod(0o755)
    before, path = products(project), project.path(file)
    path.write_text(path.read_text() + "\n")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{broken.parent}:{os.environ['PATH']}")
        check(project, tool, before)
    check_mended(project, before)


def test_a_run_makes_the_same_in_the_environment_of_anybody(project, tmp_path, monkeypatch):
    home = tmp_path / "someone"
    home.mkdir()
    (home / ".Rprofile").write_text(
        'options(OutDec = ",", scipen = 999)\nmean <- function(...) 42\n'
    )
    argv = [
        "localedef",
        "--no-archive",
        "-i",
        "en_US",
        "-f",
        "ISO-8859-1",
        str(home / "en_US.ISO-8859-1"),
    ]
    latin = subprocess.run(argv, capture_output=True, check=False).returncode == 0
    given = {
        "HOME": home,
        "LOCPATH": home,
        "LC_ALL": "en_US.ISO-8859-1" if latin else "C",
        "TZ": "Asia/Kathmandu",
    }
    for key, text in {
        **given,
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "R_DEFAULT_PACKAGES": "NULL",
    }.items():
        monkeypatch.setenv(key, str(text))
    before = products(project)
    project.good("--forcerun", "draft_tables", "--", PAPER)
    assert project.jobs == {"tables": 1, "paper": 1}
    assert products(project) == before


def test_a_table_that_was_edited_or_has_no_checksum_is_made_again(project):
    before = products(project)
    for name in ("results/comparisons.csv", "results/SHA256SUMS"):
        path = project.path(name)
        text = path.read_text()
        path.write_text(text.replace("0", "1") if name.endswith("csv") else text[: len(text) // 2])
        project.path("paper/report.Rmd").touch()
        project.path(PAPER).unlink()
        project.good(PAPER)
        assert products(project) == before
        assert "made again" in project.said
        project.good(PAPER)
        assert not project.jobs
