"""What users of Snakemake expect of a workflow: a dry run that tells, a summary, other folders, and an import."""

import json
import subprocess

import projects

IMPORTING = """
workdir: "{project}"


module strata:
    snakefile:
        "{project}/Snakefile"
    config:
        {{"repetitions": 3}}


use rule * from strata as strata_*


rule count:
    default_target: True
    input:
        expand("results/raw/bare/noop/{{n}}.log", n=[1, 2, 3]),
    output:
        "{here}/count",
    shell:
        "cat {{input}} | wc -l >{{output}}"


onstart:
    print("the importing workflow begins")


onsuccess:
    print("the importing workflow ends")
"""


def test_a_dry_run_tells_the_cells_of_each_environment(project):
    folder = project(
        projects.on_host(workloads={"noop": None, "again": None}), {"noop": projects.NOOP, "again": projects.NOOP}
    )
    done = projects.run(folder, "snakemake", "--dry-run")
    assert done.returncode == 0, done.stderr
    told = (done.stdout + done.stderr).splitlines()
    at = told.index("Cells to measure: 4")
    assert told[at + 1] == "  bare     4  (again 2, noop 2)"
    made = int(told[at + 2].removeprefix("Jobs that make tables, figures and papers of them: "))
    # Two tables and a figure of each workload, five tables and six figures of all, and two papers.
    assert made == 2 * 3 + 5 + 6 + 2
    assert not (folder / "results").exists()
    # One cell that is gone, and only that.
    assert projects.run(folder, "snakemake", "--cores", "1", "--", "cells").returncode == 0
    (folder / "results/raw/bare/noop/2.log").unlink()
    done = projects.run(folder, "snakemake", "--dry-run", "--", "cells")
    assert "Cells to measure: 1\n  bare     1  (noop 1)\n" in done.stdout + done.stderr
    summary = projects.run(folder, "snakemake", "--quiet", "all", "--summary", "--", "cells")
    words = projects.command("strata", "summary")
    short = subprocess.run(words, cwd=folder, input=summary.stdout, capture_output=True, text=True, check=True)
    assert [line.split(maxsplit=3) for line in short.stdout.splitlines()] == [
        ["bare", "·", "again", "2 ok"],
        ["bare", "·", "noop", "1 ok, 1 to be made (missing)"],
    ]


def test_what_is_no_summary_is_refused(project):
    done = subprocess.run(
        projects.command("strata", "summary"), cwd=project(), input="x\n", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "strata: this is no table of `snakemake --summary`; see `make summary`\n"


def test_another_folder_is_refused_by_the_words_that_name_the_right_one(project, tmp_path):
    folder = project()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    snakefile = ["--snakefile", str(folder / "Snakefile"), "--dry-run", "--quiet=rules"]
    done = projects.run(elsewhere, "snakemake", *snakefile, "--", "cells")
    assert done.returncode != 0
    assert f"this is {elsewhere}; add `--directory {folder}`" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not list(elsewhere.glob("results*"))
    done = projects.run(elsewhere, "snakemake", *snakefile, "--directory", str(folder), "--", "cells")
    assert done.returncode == 0, done.stderr
    assert "Cells to measure: 2" in done.stdout + done.stderr


def test_another_workflow_imports_this_one_and_measures_in_the_planned_order(project, tmp_path):
    folder, here = project(), tmp_path / "importing"
    here.mkdir()
    (here / "Snakefile").write_text(IMPORTING.format(project=folder, here=here))
    profile = ["--workflow-profile", str(folder / "profiles/default")]
    done = projects.run(here, "snakemake", "--cores", "1", *profile)
    assert done.returncode == 0, done.stderr
    assert (here / "count").read_text().strip() == "3"
    assert [record["position"]["planned"] for record in projects.records(folder)] == [1, 2, 3]
    assert json.loads((folder / "results/plan.json").read_text())["repetitions"] == 3
    for told in ("the importing workflow begins", "the importing workflow ends"):
        assert told in done.stdout
    # Its own job again, and no cell.
    (here / "count").unlink()
    done = projects.run(here, "snakemake", "--cores", "1", *profile)
    assert done.returncode == 0, done.stderr
    assert len(projects.records(folder)) == 3
    # Without the profile a cell could be measured out of order: nothing is.
    done = projects.run(here, "snakemake", "--cores", "1", "--forceall")
    assert done.returncode != 0
    assert "the scheduler is" in done.stderr
