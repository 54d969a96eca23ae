"""Run the README's commands in a clone without .venv, with the oldest and the newest Snakemake.

Neither installation of Snakemake holds anything of ours.
"""

import os
import subprocess
import sys
import venv
import zipfile

import projects
import pytest

# The first that takes functions as priorities; "" is the newest.
OLDEST, NEWEST = "==9.17.3", ""


@pytest.fixture(scope="module", params=[OLDEST, NEWEST], ids=["oldest", "newest"])
def typed(request, tmp_path_factory):
    """What runs a line as a person types it, in a clone whose page is small."""
    room = tmp_path_factory.mktemp("stock")
    venv.create(room / "venv", symlinks=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(room / "venv/bin/python"),
        "install",
        "--quiet",
        "--no-compile",
    ]
    # By the last an archive is looked through for secrets.
    subprocess.run(
        [*pip, f"snakemake{request.param}", "pygments", "kingfisher-secret-scanner"], check=True
    )
    clone = room / "clone"
    subprocess.run(["git", "clone", "--quiet", str(projects.ROOT), str(clone)], check=True)
    environments = projects.default()["environments"]
    chosen = {name: environments[name] for name in ("native", "docker")}
    stream = {"elements": 2_000_000, "laps": 2}
    page = projects.default(environments=chosen, workloads={"stream": stream}, repetitions=3)
    projects.write_yaml(clone / "config.yaml", page)
    variables = {
        key: text for key, text in os.environ.items() if not key.startswith(("STRATA_", "PYTHON"))
    }
    variables["PATH"] = f"{room / 'venv/bin'}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    variables.pop("VIRTUAL_ENV", None)

    def run(line: str) -> str:
        done = subprocess.run(
            line.split(),
            cwd=clone,
            env=variables,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return clone, run


def test_a_fresh_clone_is_read_and_linted(typed):
    _, run = typed
    assert "cell" in run("snakemake -n")
    run("snakemake --lint")


most_by_the_newest = pytest.mark.parametrize(
    "typed",
    [pytest.param(OLDEST, marks=pytest.mark.long, id="oldest"), pytest.param(NEWEST, id="newest")],
    indirect=True,
)


@most_by_the_newest
def test_the_readmes_command_makes_a_paper(typed):
    clone, run = typed
    said = run("snakemake --cores 1 paper/report.pdf")
    assert "6 of 6 done" in said
    assert (clone / "paper/report.pdf").read_bytes().startswith(b"%PDF")
    assert "Nothing to be done" in run("snakemake --cores 1 paper/report.pdf")


@most_by_the_newest
def test_one_missing_cell_is_measured_and_nothing_else(typed):
    clone, run = typed
    log = clone / "results/raw/docker/stream/3.log"
    others = {
        path: path.read_bytes() for path in clone.glob("results/raw/*/*/*.log") if path != log
    }
    log.unlink()
    run("snakemake --cores 1 results/raw/docker/stream/3.log")
    assert log.exists()
    assert {path: path.read_bytes() for path in others} == others


@most_by_the_newest
def test_archive_and_report_are_made_of_what_is_there(typed):
    clone, run = typed
    run("snakemake --cores 1 paper/report.pdf")
    log = clone / "results/raw/docker/stream/2.log"
    kept = log.read_bytes()
    log.unlink()
    with pytest.raises(AssertionError, match=r"3 of \d+ cells.*measured apart"):
        run("snakemake --cores 1 archive")
    assert not log.exists()
    log.write_bytes(kept)
    run("snakemake --cores 1 archive")
    assert "good" in run("python3 -m strata verify archive.zip")
    run("snakemake --report report.zip")
    assert any(
        name.endswith("report.html") for name in zipfile.ZipFile(clone / "report.zip").namelist()
    )
