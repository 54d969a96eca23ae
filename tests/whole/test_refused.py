"""A log that its parser refuses, in a real run: measured again once, or named while the others make their table."""

import csv
import json

import projects
import pytest

# Prints what the file `answers` beside it holds a line of for each cell and each time; 7 where it holds no more.
PROGRAM = """\
answers={folder}/answers-$1
number=$(head -n 1 "$answers" 2>/dev/null || true)
sed -i 1d "$answers" 2>/dev/null || true
echo "{{\\"rate\\": ${{number:-7}}}}"
"""
PARSER = """\
parse_noop <- function(lines, parameters) {
  measured("rate", "1/s", number(read_json_lines(lines)[[1]], "rate"))
}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A workload whose program prints what a test has laid ready for a seed, that is, for a repetition."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    program = tmp_path / "program.sh"
    program.write_text(PROGRAM.format(folder=tmp_path))
    noop = {
        **projects.NOOP,
        "run": [{"argv": ["/bin/sh", str(program), "{seed}"], "timeout": 20}],
        "checks": [{"name": "printed", "pattern": "rate"}],
    }
    folder = projects.make(tmp_path / "project", projects.on_host(repetitions=3), {"noop": noop}, copy=True)
    (folder / "workloads/noop/parse.R").write_text(PARSER)
    return folder


def prepare(project, repetition, *answers):
    from strata.experiment import plan

    seed = plan.cell_seed({"seed": 1}, "noop", repetition)
    (project.parent / f"answers-{seed}").write_text("".join(f"{answer}\n" for answer in answers))


def table(project):
    with open(project / "results/tidy/noop.csv", newline="") as file:
        return {row["repetition"]: float(row["value"]) for row in csv.DictReader(file)}


def tidy(project, *words):
    return projects.run(project, "snakemake", "--cores", "1", *words, "results/tidy/noop.csv")


def test_a_refused_log_is_measured_again_in_the_same_run(project):
    prepare(project, 2, "NaN", "8")
    prepare(project, 3, "1e400", "9")
    done = tidy(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert table(project) == {"1": 7, "2": 8, "3": 9}
    assert "repetition 2 is measured again, since its parser refuses its log: " in done.stdout + done.stderr
    assert "cell failed" not in done.stdout + done.stderr
    assert not list(project.glob("results/failed/*/*/*"))
    assert sorted(record["position"]["actual"] for record in projects.records(project)) == [1, 4, 5]
    assert "Nothing to be done" in tidy(project).stderr


def test_what_is_refused_again_is_named_and_the_others_make_their_table(project):
    prepare(project, 2, "NaN", "-1")
    done = tidy(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert table(project) == {"1": 7, "3": 7}
    said = done.stdout + done.stderr
    assert "cell failed: bare · noop · repetition 2: rate should be a positive number, and is -1" in said
    assert "snakemake --cores 1 results/raw/bare/noop/2.log" in said
    assert (project / "results/failed/bare/noop/2.log").read_text() == '{"rate": -1}\n'
    assert json.loads((project / "results/failed/bare/noop/2.json").read_text())["refused"] is True
    assert "Nothing to be done" in tidy(project).stderr
    # The command that was told measures it, and the table follows.
    done = projects.run(project, "snakemake", "--cores", "1", "results/raw/bare/noop/2.log")
    assert done.returncode == 0, done.stdout + done.stderr
    assert tidy(project).returncode == 0
    assert table(project) == {"1": 7, "2": 7, "3": 7}
    assert not list(project.glob("results/failed/*/*/*"))


def test_blocks_are_added_beside_a_cell_that_was_given_up(project):
    # Flagged only: what else uses the machine meanwhile shall add no set.
    config = projects.on_host(repetitions={"min": 2, "max": 3, "target": "0.1%"}, quiet={"action": "flag"})
    projects.write_yaml(project / "config.yaml", config)
    for repetition, answers in ((1, ("7",)), (2, ("NaN", "NaN")), (3, ("9",))):
        prepare(project, repetition, *answers)
    done = tidy(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert table(project) == {"1": 7, "3": 9}
    assert "cell failed: bare · noop · repetition 2" in done.stdout + done.stderr


def test_a_foreign_record_stops_the_table_and_names_the_file(project):
    assert tidy(project).returncode == 0
    path = project / "results/raw/bare/noop/3.json"
    path.write_text((project / "results/raw/bare/noop/1.json").read_text())
    (project / "results/tidy/noop.csv").unlink()
    done = tidy(project)
    assert done.returncode != 0
    assert "results/raw/bare/noop/3.json: its repetition is 1, and the plan's is 3" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    done = tidy(project, "--config", "partial=true", "--")
    assert done.returncode == 0, done.stdout + done.stderr
    assert table(project) == {"1": 7, "2": 7}
