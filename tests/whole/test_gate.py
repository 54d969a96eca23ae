"""The command `gate` on results whose truth is known: verdicts, statuses, reports, sessions."""

import json
import shutil
from xml.etree import ElementTree

import measured
import projects
import pytest
import yaml

from strata.host import node
from strata.util import locks

CHROOT = {"layers": ["chroot"]}
ENVIRONMENTS = {name: {"label": name, **CHROOT} for name in ("native", "old", "new")}
BUDGET = {"environment": "new", "workload": "linpack", "costs_at_most": "5%"}


@pytest.fixture
def project(tmp_path):
    """A project whose cells are not measured but made."""
    page = measured.page(environments=ENVIRONMENTS)
    folder = projects.make(tmp_path / "project", page, copy=True)
    measured.replace_snakemake(folder)
    return projects.track(folder, commit=True)


def gate(project, *budgets, boot=1, noise=0.003, fails=False, time="30min", slower=None, **file):
    slower = {"native": 1.0, "old": 1.0, "new": 1.0, **(slower or {})}
    file = {"time": time, "budgets": [*budgets], **file}
    (project / "gate.yaml").write_text(yaml.safe_dump(file))
    truth = {"slower": slower, "noise": noise, "boot": boot, "fails": fails}
    done = projects.run(
        project,
        "strata",
        "gate",
        "gate.yaml",
        STRATA_TRUTH=json.dumps(truth),
        STRATA_HELPERS=str(projects.ROOT / "tests/helpers"),
        PYTHONHASHSEED="1",
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def history(project) -> list[dict]:
    return [json.loads(line) for line in (project / "gate/history.jsonl").read_text().splitlines()]


AGAINST_OLD = {**BUDGET, "reference": "old", "costs_at_most": "2%"}


def test_budgets_are_decided_and_reported(project):
    everything = {**BUDGET, "workload": "stream"}
    slow = {"native": 1.1, "old": 1.32, "new": 1.33}
    done = gate(project, AGAINST_OLD, slower=slow)
    # The whole machine is slower, and both versions cost 20 %: the new one no more than the old.
    assert done.returncode == 0, done.stderr + done.stdout
    done = gate(project, AGAINST_OLD, BUDGET, everything, slower=slow)
    assert done.returncode == 1, done.stderr + done.stdout
    first, second = history(project)
    assert [entry["status"] for entry in (first, second)] == [0, 1]
    assert first["logs"] != second["logs"]
    assert all(first[key] for key in ("commit", "budgets", "subject", "date"))
    verdicts = second["verdicts"]
    assert [entry["verdict"] for entry in verdicts] == ["within", "beyond", "beyond"]
    assert all(abs(entry["ratio"] - 1.1 / 1.33) < 0.01 for entry in verdicts[1:])
    assert verdicts[0]["n"] == 8, "it is decided at the first look"
    suite = ElementTree.fromstring((project / "gate/junit.xml").read_text())
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")
    assert len(suite.findall("testcase/failure")) == 2
    summary = (project / "gate/summary.md").read_text()
    assert summary.count("beyond") == 3
    assert "1 within, 2 beyond" in summary


def test_what_is_open_when_the_time_is_over_is_undecided(project):
    done = gate(project, BUDGET, noise=0.2, time="1s")
    assert done.returncode == 3, done.stderr + done.stdout
    assert "undecided" in done.stdout
    suite = ElementTree.fromstring((project / "gate/junit.xml").read_text())
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")
    # At the budget itself no look decides.
    done = gate(project, BUDGET, noise=0.02, slower={"new": 1 / 0.95}, time="9h")
    assert done.returncode == 3, done.stderr + done.stdout
    assert history(project)[1]["verdicts"][0]["n"] == 128


def test_a_baseline_takes_three_sessions_on_each_side(project):
    for number in range(3):
        assert gate(project, BUDGET, boot=number).returncode == 0
        shutil.copytree(
            project / f"gate/sessions/{number + 1}", project / f"baseline/{number}", symlinks=True
        )
    budget = {**BUDGET, "baseline": "baseline"}
    # The sessions of the baseline are not those of the new version as well.
    done = gate(project, budget, boot=9)
    assert (done.returncode, "1 of 3 sessions" in done.stdout) == (2, True), done.stdout
    shutil.rmtree(project / "gate")
    slow_host = {"native": 1.2, "new": 1.2}
    for boot, status, says in (
        (10, 2, "1 of 3 sessions"),
        # The same start of the machine is no other session.
        (10, 2, "1 of 3 sessions"),
        (11, 2, "2 of 3 sessions"),
        (12, 0, "3 sessions"),
    ):
        done = gate(project, budget, boot=boot, slower=slow_host)
        assert (done.returncode, says in done.stdout) == (status, True), (boot, done.stdout)
    assert len(history(project)) == 4
    # A session that a call before this start of the machine left incomplete counts for nothing.
    (project / "gate/sessions/4/gate.json").unlink()
    done = gate(project, budget, boot=13, slower=slow_host)
    assert (done.returncode, "(3 sessions)" in done.stdout) == (0, True), done.stdout
    assert len([*(project / "gate/sessions").iterdir()]) == 5
    # A baseline of other sizes is refused before anything is measured.
    config = yaml.safe_load((project / "config.yaml").read_text())
    projects.write_yaml(project / "config.yaml", {**config, "scale": "paper"})
    done = gate(project, budget, boot=14)
    assert (done.returncode, "is at the scale standard" in done.stderr) == (2, True), done.stderr
    projects.write_yaml(project / "config.yaml", config)
    # So is one that did not measure what the budget compares.
    done = gate(project, {**budget, "workload": "stream"}, boot=15)
    assert (done.returncode, "no run of stream in native" in done.stderr) == (2, True), done.stderr
    assert len([*(project / "gate/sessions").iterdir()]) == 5


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"environment": "newer"}, 'budgets.0.environment: "newer" is not a known environment'),
        ({"workload": "stroem"}, "did you mean 'stream'?"),
        ({"metric": "gflop"}, 'budgets.0.metric: "gflop" is not a known metric of linpack'),
        ({"costs_at_most": "5"}, "must be a share below 100%, such as 5%"),
        ({"costs_at_most": 5}, "must be a share below 100%, such as 5%"),
        ({"reference": "older"}, "older is not an environment"),
        ({"reference": "new"}, "cannot be compared with itself"),
        ({"baseline": "nowhere"}, "there is no file or folder nowhere"),
        ({"baseline": "rules"}, "holds 1 of the at least 3 sessions"),
        ({"baseline": "rules", "reference": "old"}, "compared by ratios to native"),
        ({"budget": "5%"}, "unknown key"),
    ],
)
def test_a_wrong_budget_is_refused_by_its_key(project, changes, says):
    done = gate(project, {**BUDGET, **changes})
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    assert not (project / "gate").exists()


def test_what_cannot_be_measured_ends_with_two(project):
    done = gate(project, BUDGET, fails=True)
    assert (done.returncode, "the program ended with 7" in done.stderr) == (2, True), done.stderr
    # The next call goes on with the session that this one began.
    assert gate(project, BUDGET).returncode == 0
    assert [path.name for path in (project / "gate/sessions").iterdir()] == ["1"]
    config = yaml.safe_load((project / "config.yaml").read_text())
    projects.write_yaml(project / "config.yaml", {**config, "scale": "tiny"})
    done = gate(project, BUDGET)
    assert (done.returncode, "tiny sizes" in done.stderr) == (2, True), done.stderr


def test_a_second_gate_in_the_same_folder_is_refused(project):
    with locks.hold_lock(str(project / "gate/.lock")):
        done = gate(project, BUDGET)
    assert (done.returncode, "another gate is active" in done.stderr) == (2, True), done.stderr
    assert not (project / "gate/sessions").exists()


def interrupt(project):
    """Make the first session one that a call since the start of this machine left incomplete."""
    session = project / "gate/sessions/1"
    (session / "gate.json").unlink()
    for path in session.glob("results/raw/*/*/*.json"):
        measured.edit(path, lambda record: record["node"].update(boot=node.read_boot_id()))


def test_an_interrupted_session_keeps_its_blocks(project):
    # Nothing decides at the budget itself.
    done = gate(project, BUDGET, noise=0.02, slower={"new": 1 / 0.95}, time="9h")
    assert done.returncode == 3, done.stderr + done.stdout
    interrupt(project)
    done = gate(project, BUDGET, noise=0.02, slower={"new": 1 / 0.95}, time="1s")
    assert done.returncode == 3, done.stderr + done.stdout
    assert history(project)[1]["verdicts"][0]["n"] == 128


def test_a_failed_call_leaves_no_report_of_an_earlier_one(project):
    assert gate(project, BUDGET).returncode == 0
    reports = [project / "gate" / name for name in ("junit.xml", "summary.md")]
    path = project / "gate/history.jsonl"
    first = path.read_bytes()
    # A line that is not UTF-8, and has no end, stays too.
    path.write_bytes(first + b"\xff")
    done = gate(project, {**BUDGET, "workload": "stroem"})
    assert (done.returncode, [file.exists() for file in reports]) == (2, [False, False])
    assert gate(project, BUDGET).returncode == 0
    lines = path.read_bytes().splitlines(keepends=True)
    assert (lines[:2], len(lines)) == ([first, b"\xff\n"], 3)
    assert all(file.exists() for file in reports)


@pytest.mark.parametrize("name", ["gate", "gate/junit.xml"])
def test_reports_that_cannot_be_written_are_refused_before_measuring(project, name):
    if name == "gate":
        (project / name).write_text("a file")
    else:
        (project / name).mkdir(parents=True)
    done = gate(project, BUDGET)
    assert (done.returncode, "--to" in done.stderr) == (2, True), done.stderr
    assert not (project / "gate/sessions").exists()


def test_a_size_that_answers_nothing_is_seen_after_a_block(project):
    stream = {**BUDGET, "workload": "stream"}
    assert gate(project, BUDGET, stream).returncode == 0
    interrupt(project)
    record = project / "gate/sessions/1/results/raw/native/linpack/1.json"
    sizes = [{"rule": "It is large", "source": "x", "value": 1, "least": 2, "holds": False}]
    measured.edit(record, lambda value: value.update(sizes=sizes))
    done = gate(project, BUDGET, stream)
    verdicts = [entry["verdict"] for entry in history(project)[1]["verdicts"]]
    assert (done.returncode, verdicts) == (2, ["not comparable", "within"]), done.stderr


@pytest.mark.parametrize("words", [("--configfile", "none.yaml"), ("--config", "scale")])
def test_mistakes_in_options_have_the_status_of_mistakes(project, words):
    done = projects.run(project, "strata", "gate", "gate.yaml", *words)
    assert done.returncode == 2, done.stderr
