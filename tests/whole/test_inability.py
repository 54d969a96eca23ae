"""Check in a real run that an environment's inability is a result with its reason.

Once an inability is found, it is not tried again.
"""

import json

import projects
import pytest
import yaml

LAYER = '''"""A toy: a box in which some calls are missing."""

from strata.environments.common import layer


class Layer(layer.Layer):
    isolation = "sandbox"
    title = "toy box"
    image_forms = ()
    stands_idle = True
    differences = {"limit nofile": "the toy box has few"}

    @classmethod
    def describe_for_plan(cls, resolved):
        return {"doubtful": True}

    def start(self):
        pass

    def wrap_command(self, argv, reads_stdin=False):
        return ["sh", "-c", 'ulimit -n 77; exec "$@"', "sh", *argv]
'''
WORK = '[ "$(ulimit -n)" != 77 ] || { echo "no such call"; exit 3; }; echo "{\\"rate\\": 7}"'
PARSER = """import json

from kit.logs import build_value


def parse(lines, parameters):
    return [build_value("rate", "1/s", json.loads(lines[0])["rate"])]
"""
ENVIRONMENTS = {
    "native": {"label": "Native", "layers": ["host"]},
    "toy": {"label": "Toy box", "layers": ["toy"]},
}


def workload(script, title):
    return {
        **projects.NOOP,
        "title": title,
        "run": [{"argv": ["/bin/sh", "-c", script], "timeout": 20}],
    }


@pytest.fixture
def project(tmp_path):
    """Two workloads in a box that can do one of them; more blocks follow after the first three."""
    works = {"calls": workload(WORK, "Calls"), "plain": workload('echo "{\\"rate\\": 7}"', "Plain")}
    asked = {"min": 3, "max": 4, "target": "0.1%"}
    config = projects.on_host(
        repetitions=asked, environments=ENVIRONMENTS, workloads=dict.fromkeys(works)
    )
    folder = projects.make(
        tmp_path / "project", {**config, "interference": {"action": "flag"}}, works, copy=True
    )
    for name in works:
        (folder / f"workloads/{name}/parse.py").write_text(PARSER)
    (folder / "strata/environments/toy.py").write_text(LAYER)
    return folder


def run(project, *words):
    return projects.run(project, *words, PYTHONPATH=str(project))


def measured_in(project, name):
    rows = projects.table(project / f"results/tidy/{name}.csv")
    return {(row["environment"], int(row["repetition"])) for row in rows}


def calls_of(project, script, seconds):
    """From now on this is what `calls` runs, and how long it may take."""
    declared = project / "workloads/calls/workload.yaml"
    content = yaml.safe_load(declared.read_text())
    content["run"] = [{"argv": ["/bin/sh", "-c", script], "timeout": seconds}]
    declared.write_text(json.dumps(content))


def cannot(project, repetition):
    return json.loads((project / f"results/raw/toy/calls/{repetition}.json").read_text())["cannot"]


TARGETS = ["results/tidy/calls.csv", pytest.param("paper/report.html", marks=pytest.mark.long)]


@pytest.mark.parametrize("target", TARGETS)
def test_what_cannot_be_done_is_a_whole_cell_that_says_so_and_is_not_measured_twice(
    project, target
):
    done = run(project, "snakemake", "--cores", "1", target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "cannot be done there: its run step ended with exit code 3; it printed last: no such call"
        in done.stderr
    )
    assert cannot(project, 1)["commands"][0]["exit"] == 3
    assert {environment for environment, _ in measured_in(project, "calls")} == {"native"}
    if target == "paper/report.html":
        assert {("toy", 1), ("toy", 2)} <= measured_in(project, "plain")
        assert len(list((project / "results/raw/toy/calls").glob("*.json"))) == 3
        page = " ".join((project / target).read_text().split())
        assert "cannot be done there: its run step ended with exit code 3" in page
    again = run(project, "snakemake", "--cores", "1", "--dry-run", target)
    assert "Nothing to be done" in again.stdout + again.stderr


@pytest.mark.parametrize(
    "case", ["has to do everything", "takes too long", "measured in another repetition"]
)
def test_what_may_be_another_trouble_is_a_failed_cell(project, case):
    failed, says = 1, "its run step ended with exit code 3"
    if case == "has to do everything":
        layer = project / "strata/environments/toy.py"
        layer.write_text(layer.read_text().replace('"doubtful": True', '"doubtful": False'))
    elif case == "takes too long":
        says = "its run step was ended: no end after 1 s"
        calls_of(project, WORK.replace("exit 3", "exec sleep 60"), 1)
    else:
        failed = 2
        once = (
            f"if [ -e {project}/once ]; then exit 3; fi; "
            f'[ "$(ulimit -n)" != 77 ] || : > {project}/once; '
        )
        calls_of(project, once + "echo '{\"rate\": 7}'", 20)
    done = run(project, "snakemake", "--cores", "1", "results/tidy/calls.csv")
    assert done.returncode != 0
    assert f"cell failed: toy · calls · repetition {failed}: {says}" in done.stderr
    kept = [path.stem for path in (project / "results/raw/toy/calls").glob("*.json")]
    assert kept == [str(number) for number in range(1, failed)]


def test_what_comes_to_no_end_where_another_repetition_failed_cannot_be_done_there(project):
    waits = f"[ ! -e {project}/once ] || exec sleep 60; : > {project}/once; exit 3"
    calls_of(project, WORK.replace("exit 3", waits), 1)
    done = run(project, "snakemake", "--cores", "1", "results/tidy/calls.csv")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "toy · calls · repetition 2 cannot be done there: its run step was ended: no end after 1 s"
        in done.stderr
    )
    assert [command["exit"] for command in cannot(project, 2)["commands"]] == [None]
