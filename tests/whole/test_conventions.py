"""What users of Snakemake expect of a workflow: dry runs, summaries, other folders, and imports."""

import json

import projects
import pytest

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
    from strata import workflow

    workflow.start_run()
    print("the importing workflow begins")
"""


def counts(done):
    """Return how many jobs of each rule a dry run counts."""
    lines = [line.split() for line in (done.stdout + done.stderr).splitlines()]
    return dict(line for line in lines if len(line) == 2)


def test_a_dry_run_counts_jobs_and_a_summary_lists_each_file(project):
    folder = project(
        projects.on_host(workloads={"noop": None, "again": None}),
        {"noop": projects.NOOP, "again": projects.NOOP},
    )
    done = projects.good(folder, "snakemake", "--dry-run")
    jobs = counts(done)
    assert {name: jobs.get(name) for name in ("cell", "tables", "paper", "image")} == {
        "cell": "4", "tables": "1", "paper": "2", "image": None,
    }  # fmt: skip
    assert not (folder / "results").exists()
    # Only one missing cell is due.
    projects.good(folder, "snakemake", "--cores", "1", "--", "cells")
    (folder / "results/raw/bare/noop/2.log").unlink()
    done = projects.run(folder, "snakemake", "--dry-run", "--", "cells")
    assert counts(done)["cell"] == "1"
    summary = projects.run(
        folder, "snakemake", "--quiet", "all", "--summary", "--", "cells"
    ).stdout.splitlines()
    states = {
        line.split("\t")[0]: line.split("\t")[-2:]
        for line in summary
        if ".log" in line.split("\t")[0]
    }
    assert states.pop("results/raw/bare/noop/2.log") == ["missing", "update pending"]
    assert len(states) == 3
    assert set(map(tuple, states.values())) == {("ok", "no update")}


# A layer with a virtual machine for which KVM was not tried yet, and a stub of that trial.
UNTRIED = """
from strata.environments.common import layer


class Layer(layer.Layer):
    title, image_forms = "machine", ()

    @classmethod
    def describe_for_plan(cls, resolved):
        return {"accelerator": None}

    def start(self):
        pass

    def wrap_command(self, argv, reads_stdin=False):
        return argv
"""
PROBE = """

def determine_accelerator(image):
    open("probed", "w").close()
"""


def test_a_dry_run_boots_nothing_and_makes_no_folder(tmp_path):
    page = projects.on_host(environments={"new": {"layers": ["machine"]}})
    folder = projects.make(tmp_path / "p", page, {"noop": projects.NOOP}, copy=True)
    (folder / "strata/environments/machine.py").write_text(UNTRIED)
    with open(folder / "strata/image/kvm_trial.py", "a") as file:
        file.write(PROBE)
    target = "results/raw/new/noop/1.log"
    for words in (["--dry-run"], ["-n", "--quiet=rules"], ["--summary"], ["--cores", "1"]):
        done = projects.run(folder, "snakemake", *words, "--", target, PYTHONPATH="")
        made = words == ["--cores", "1"]
        assert (done.returncode == 0, (folder / "probed").exists(), (folder / target).exists()) == (
            True, made, made,
        ), done.stderr  # fmt: skip
        assert (folder / "results").exists() == made


def test_another_folder_is_refused_with_the_option_that_names_the_right_one(project, tmp_path):
    folder = project()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    snakefile = ["--snakefile", str(folder / "Snakefile"), "--dry-run", "--quiet=rules"]
    done = projects.run(elsewhere, "snakemake", *snakefile, "--", "cells")
    assert done.returncode != 0
    assert f"this is {elsewhere}: add `--directory {folder}`" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not list(elsewhere.glob("results*"))
    done = projects.good(
        elsewhere, "snakemake", *snakefile, "--directory", str(folder), "--", "cells"
    )
    assert counts(done)["cell"] == "2"


def test_another_workflow_imports_this_one_and_measures_in_the_planned_order(project, tmp_path):
    folder, here = project(), tmp_path / "importing"
    here.mkdir()
    (here / "Snakefile").write_text(IMPORTING.format(project=folder, here=here))
    profile = ["--workflow-profile", str(folder / "profiles/default")]
    done = projects.good(here, "snakemake", "--cores", "1", *profile)
    assert (here / "count").read_text().strip() == "3"
    assert [projects.cell_of(record) for record in projects.records(folder)] == projects.planned(
        folder
    )
    assert json.loads((folder / "results/plan.json").read_text())["repetitions"] == 3
    assert "the importing workflow begins" in done.stdout
    # Only the job of the importing workflow is due again.
    (here / "count").unlink()
    projects.good(here, "snakemake", "--cores", "1", *profile)
    assert len(projects.records(folder)) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["paper/raport.pdf"], "did you mean paper/report.pdf?"),
        (["report.pdf"], "did you mean paper/report.pdf?"),
        (["paper"], "such as paper/report.pdf"),
        (["cell"], "results/raw/ENVIRONMENT/WORKLOAD/REPETITION.log"),
        (["plan"], "it is a command: type `python3 -m strata plan`"),
        (["scale=tiny"], "--config scale=tiny -- TARGET"),
        (["--config", "seed=2", "--", "results/sumary.csv"], "did you mean results/summary.csv?"),
        (["results/raw/bare/noop/1"], "results/raw/ENVIRONMENT/WORKLOAD/REPETITION.log"),
        (["results/raw/bear/noop/1.log"], "no environment 'bear'"),
        (["results/raw/bare/noop/9.log"], "no repetition 9"),
        (["--config", "scale=Tiny"], "strata: --config: scale: "),
    ],
)
def test_a_mistyped_target_or_value_is_named_in_a_dry_run(project, words, message):
    folder = project(projects.on_host())
    done = projects.run(folder, "snakemake", "--dry-run", *words)
    assert done.returncode == 1
    assert message in done.stdout + done.stderr
    assert "No rule to produce" not in done.stdout + done.stderr
    assert not (folder / "results").exists()


def test_a_failed_run_ends_with_its_failed_cells_and_their_reasons(project):
    folder = project(
        projects.on_host(repetitions=7),
        {"noop": {**projects.NOOP, "run": [{"argv": ["/bin/false"], "timeout": 9}]}},
    )
    done = projects.run(folder, "snakemake", "--cores", "1", "--", "cells")
    last = done.stderr.partition("7 of 7 cells failed")[2]
    assert last.count("exit code 1") == 5
    assert "and 2 more" in last
