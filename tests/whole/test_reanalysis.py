"""The published raw results, read again through the real pipeline."""

import os
import subprocess
from pathlib import Path

import projects
import pytest

SAMPLES = [
    Path(os.environ["STRATA_PUBLISHED_RAW"]) if "STRATA_PUBLISHED_RAW" in os.environ else None,
    projects.ROOT.parent / "shared/ibm-raw-samples",
]


def snakemake(folder, *words):
    return projects.run(folder, "snakemake", "--cores", "1", *words)


@pytest.fixture
def samples():
    """Some of the published raw results."""
    for folder in SAMPLES:
        if folder and folder.is_dir():
            return folder
    pytest.skip("no published raw results here; the variable STRATA_PUBLISHED_RAW names them")


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.delenv("STRATA_OWNER", raising=False)
    return projects.make(tmp_path / "project", projects.on_host(), {"noop": projects.NOOP})


def table(project, name):
    return projects.table(project / f"results/reanalysis/{name}.csv")


def test_the_paper_of_the_reanalysis_from_the_samples(project, samples):
    done = snakemake(project, "paper/reanalysis.pdf", "--config", f"published_raw={samples}")
    assert done.returncode == 0, done.stdout + done.stderr
    text = subprocess.run(
        ["pdftotext", "-layout", project / "paper/reanalysis.pdf", "-"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "What does not hold" in text.split("\f")[0]
    assert "??" not in text
    assert not (project / "results/image.json").exists()
    wrong = {
        (row["workload"], row["environment"])
        for row in table(project, "differences")
        if row["verdict"] == "differs"
    }
    assert wrong <= {("linpack", "vm")}
    claims = {
        row["id"]: row["verdict"] for row in table(project, "claims") if row["source"] == "raw"
    }
    assert claims["ibm-linpack-kvm-untuned-worse"] == "contradicted"
    # Every number leads to a line of a log.
    rows = [
        row for row in table(project, "tidy") if row["metric"] in ("gflops", "gups", "copy", "iops")
    ]
    assert {row["workload"] for row in rows} == {"linpack", "randomaccess", "stream", "fio"}
    for row in rows:
        line = (samples / row["file"]).read_text().split("\n")[int(row["line"]) - 1]
        assert f"{float(row['value']):.10g}" in line or row["factor_direction"] == "both"

    again = snakemake(project, "paper/reanalysis.pdf", "--config", f"published_raw={samples}")
    assert "Nothing to be done" in again.stdout + again.stderr


def test_without_the_raw_results_the_message_says_how_to_name_them(project):
    done = snakemake(project, "paper/reanalysis.pdf")
    assert done.returncode != 0
    assert "--config published_raw=DIR" in done.stdout + done.stderr
    done = snakemake(project, "paper/reanalysis.pdf", "--config", "published_raw=/nowhere")
    assert done.returncode != 0
    assert "published_raw: /nowhere" in done.stdout + done.stderr
