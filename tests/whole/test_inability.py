"""What an environment is unable to do, in a real run: a result with its reason, asked no more once found."""

import csv
import json

import projects
import pytest
import yaml

LAYER = '''"""A toy: a box in which some calls are missing."""

from strata.layers import host
from strata.layers.common import layer


class Kind(host.Kind):
    kind = "sandbox"
    title = "toy box"
    stands_on = ("host",)

    def doubtful(self, settled):
        return True


class Layer(layer.Layer):
    def up(self):
        pass

    def wrap(self, argv, fed=False):
        return ["sh", "-c", 'ulimit -n 77; exec "$@"', "sh", *argv]
'''
WORK = '[ "$(ulimit -n)" != 77 ] || { echo "no such call"; exit 3; }; echo "{\\"rate\\": 7}"'
PARSER = """import json

from kit.logs import value


def parse(lines, parameters):
    return [value("rate", "1/s", json.loads(lines[0])["rate"])]
"""
ENVIRONMENTS = {"native": {"label": "Native", "layers": ["host"]}, "toy": {"label": "Toy box", "layers": ["toy"]}}


def workload(script, title):
    return {
        **projects.NOOP,
        "title": title,
        "run": [{"argv": ["/bin/sh", "-c", script], "timeout": 20}],
        "checks": [{"name": "printed", "pattern": "rate"}],
    }


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Two workloads in a box that can do one of them; more blocks follow after the first three."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    works = {"calls": workload(WORK, "Calls"), "plain": workload('echo "{\\"rate\\": 7}"', "Plain")}
    asked = {"min": 3, "max": 4, "target": "0.1%"}
    config = projects.on_host(repetitions=asked, environments=ENVIRONMENTS, workloads=dict.fromkeys(works))
    folder = projects.make(tmp_path / "project", {**config, "quiet": {"action": "flag"}}, works, copy=True)
    for name in works:
        (folder / f"workloads/{name}/parse.py").write_text(PARSER)
    (folder / "strata/layers/toy.py").write_text(LAYER)
    return folder


def run(project, *words):
    return projects.run(project, *words, PYTHONPATH=str(project))


def table(project, name):
    with open(project / f"results/tidy/{name}.csv", newline="") as file:
        return sorted({(row["environment"], int(row["repetition"])) for row in csv.DictReader(file)})


def test_what_cannot_be_done_is_a_whole_cell_that_says_so(project):
    done = run(project, "snakemake", "--cores", "1", "results/tidy/calls.csv")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cannot be done there: its run step ended with exit code 3; it said last: no such call" in done.stderr
    assert json.loads((project / "results/raw/toy/calls/1.json").read_text())["cannot"]["commands"][0]["exit"] == 3
    assert {environment for environment, _ in table(project, "calls")} == {"native"}


@pytest.mark.long
def test_a_paper_is_made_that_tells_of_it_and_nothing_is_measured_twice(project):
    done = run(project, "snakemake", "--cores", "1", "paper/report.html")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cannot be done there: its run step ended with exit code 3; it said last: no such call" in done.stderr
    record = json.loads((project / "results/raw/toy/calls/1.json").read_text())
    assert record["cannot"]["commands"][0]["exit"] == 3
    assert {environment for environment, _ in table(project, "calls")} == {"native"}
    assert {("toy", 1), ("toy", 2)} <= set(table(project, "plain"))
    asked = sorted(path.stem for path in (project / "results/raw/toy/calls").glob("*.json"))
    assert asked == ["1", "2", "3"]
    page = (project / "paper/report.html").read_text()
    assert "cannot be done there: its run step ended with exit code 3" in " ".join(page.split())
    again = run(project, "snakemake", "--cores", "1", "--dry-run", "paper/report.html")
    assert "Nothing to be done" in again.stdout + again.stderr


def test_of_an_environment_that_has_to_do_everything_it_is_a_failed_cell(project):
    layer = project / "strata/layers/toy.py"
    layer.write_text(layer.read_text().replace("return True", "return False"))
    done = run(project, "snakemake", "--cores", "1", "results/tidy/calls.csv")
    assert done.returncode != 0
    assert "cell failed: toy · calls · repetition 1: its run step ended with exit code 3" in done.stderr
    assert not (project / "results/raw/toy/calls/1.json").exists()


def test_what_takes_too_long_is_a_failed_cell(project):
    declared = project / "workloads/calls/workload.yaml"
    content = yaml.safe_load(declared.read_text())
    content["run"] = [{"argv": ["/bin/sh", "-c", WORK.replace("exit 3", "exec sleep 60")], "timeout": 1}]
    declared.write_text(json.dumps(content))
    done = run(project, "snakemake", "--cores", "1", "results/tidy/calls.csv")
    assert done.returncode != 0
    assert "cell failed: toy · calls · repetition 1: its run step was ended: no end after 1 s" in done.stderr
    assert not (project / "results/raw/toy/calls/1.json").exists()


def test_what_comes_to_no_end_where_another_repetition_failed_cannot_be_done_there(project):
    declared = project / "workloads/calls/workload.yaml"
    content = yaml.safe_load(declared.read_text())
    waits = f"[ ! -e {project}/once ] || exec sleep 60; : > {project}/once; exit 3"
    content["run"] = [{"argv": ["/bin/sh", "-c", WORK.replace("exit 3", waits)], "timeout": 1}]
    declared.write_text(json.dumps(content))
    done = run(project, "snakemake", "--cores", "1", "results/tidy/calls.csv")
    assert done.returncode == 0, done.stdout + done.stderr
    words = "its run step was ended: no end after 1 s"
    assert f"toy · calls · repetition 2 cannot be done there: {words}" in done.stderr
    found = json.loads((project / "results/raw/toy/calls/2.json").read_text())["cannot"]
    assert found["reason"].startswith(words)
    assert [command["exit"] for command in found["commands"]] == [None]


def test_what_was_measured_in_another_repetition_is_a_failed_cell(project):
    declared = project / "workloads/calls/workload.yaml"
    content = yaml.safe_load(declared.read_text())
    once = f'if [ -e {project}/once ]; then exit 3; fi; [ "$(ulimit -n)" != 77 ] || : > {project}/once; '
    content["run"] = [{"argv": ["/bin/sh", "-c", once + "echo '{\"rate\": 7}'"], "timeout": 20}]
    declared.write_text(json.dumps(content))
    done = run(project, "snakemake", "--cores", "1", "results/tidy/calls.csv")
    assert done.returncode != 0
    assert (project / "results/raw/toy/calls/1.json").exists()
    assert "cell failed: toy · calls · repetition 2: its run step ended with exit code 3" in done.stderr
