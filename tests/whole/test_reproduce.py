"""The command `reproduce` on results with known truth: differences, verdicts, statuses, card."""

import json
import shutil

import measured
import projects
import pytest

from strata.experiment import workload

CHROOT = {"layers": ["chroot"]}
ENVIRONMENTS = {name: {"label": name.title(), **CHROOT} for name in ("native", "old", "new")}
SLOWER = {"native": 1.0, "old": 1.02, "new": 1.1}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A project whose cells are not measured but made, and beside it another one with results."""
    root = tmp_path_factory.mktemp("reproduce")
    page = measured.page(environments=ENVIRONMENTS, repetitions=10)
    # What the configuration sets, and what follows the machine.
    page["workloads"]["stream"]["laps"] = 3
    with pytest.MonkeyPatch.context() as patch:
        folder = measured.project(root / "there", patch, page, SLOWER, noise=0.003)
        projects.good(folder, "strata", "tidy")
        workload.read_declaration.cache_clear()
    # Another project, whose own configuration decides nothing.
    here = projects.make(root / "here", measured.page(scale="tiny"), copy=True)
    measured.replace_snakemake(here)
    return root


@pytest.fixture
def project(root):
    yield root / "here"
    shutil.rmtree(root / "here/reproduce", ignore_errors=True)


def reproduce(project, *words, side="../there", slower=None, noise=0.003, **truth):
    """Run the command; return its status, all that it printed, and its answer."""
    truth = {"slower": {**SLOWER, **(slower or {})}, "noise": noise, "boot": 5, **truth}
    # A dry run gives no answer.
    output = () if "--dry-run" in words else ("--json", "answer.json")
    done = projects.run(
        project, "strata", "reproduce", str(side), *output, *words,
        STRATA_TRUTH=json.dumps(truth), STRATA_HELPERS=str(projects.ROOT / "tests/helpers"),
        PYTHONHASHSEED="1",
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    path = project / "answer.json"
    answer = json.loads(path.read_text()) if path.exists() else None
    assert answer or done.returncode in (2, 3), done.stdout + done.stderr
    path.unlink(missing_ok=True)
    return done.returncode, done.stdout + done.stderr, answer


def outcomes(answer):
    return {name: {row["outcome"] for row in answer["rows"] if row["environment"] == name}
            for name in ("old", "new")}  # fmt: skip


def changed_plan(root, tmp_path, change):
    """A folder of results with another plan."""
    results = tmp_path / "changed"
    shutil.copytree(root / "there/results", results)
    measured.edit(results / "plan.json", change)
    return results


def test_the_same_truth_agrees_on_a_slower_machine(project, tmp_path):
    slow = {name: 1.3 * factor for name, factor in SLOWER.items()}
    status, printed, answer = reproduce(project, slower=slow)
    assert status == 0, printed
    assert outcomes(answer) == {"old": {"agrees"}, "new": {"agrees"}}, printed
    # The differences come first.
    assert printed.index("there → here") < printed.index("cells are due")
    folder = project / "reproduce/there"
    plans = [json.loads((path / "results/plan.json").read_text()) for path in (
        project.parent / "there", folder)]  # fmt: skip
    parameters = [plan["workloads"]["stream"]["parameters"] for plan in plans]
    assert parameters[0] == parameters[1]
    card = (folder / "card.md").read_text()
    assert answer["logs"] in card
    assert "strata reproduce there" in card
    assert card.count("| agrees |") == len(answer["rows"]) > 4
    assert "Old" in (folder / "index.html").read_text()
    # The same command measures nothing again; --dry-run measures nothing at all.
    status, printed, _ = reproduce(project, "--dry-run")
    assert (status, "0 of 30 cells are due" in printed) == (3, True), printed
    # Another experiment is not mixed with this one.
    results = changed_plan(project.parent, tmp_path, lambda plan: plan.update(seed=1))
    status, printed, _ = reproduce(project, "--name", "there", side=results)
    assert (status, "another experiment" in printed) == (2, True), printed
    status, printed, _ = reproduce(project, "--name", "there", "--fresh", side=results)
    assert (status, "30 of 30 cells are due" in printed) == (0, True), printed


def test_a_changed_cost_differs_and_says_by_how_much(project):
    # A signal gives the answer so far.
    status, printed, answer = reproduce(project, slower={"new": 1.16}, signal=True)
    assert "the answer so far" in printed
    assert (status, outcomes(answer)) == (1, {"old": {"agrees"}, "new": {"differs"}}), printed
    changes = [row["change"] for row in answer["rows"] if row["environment"] == "new"]
    assert all(abs(change - 1.1 / 1.16) < 0.01 for change in changes)
    assert printed.count("differs by") == len(changes)


def test_noise_is_undecided_and_a_failing_environment_not_testable(project):
    status, printed, answer = reproduce(project, noise=0.08, fails="old")
    assert status == 3, printed
    assert outcomes(answer) == {"old": {"not testable here"}, "new": {"undecided"}}
    assert "it ended with 7" in printed
    assert "more blocks here would decide it" in printed


def test_a_measurement_that_does_not_begin_is_an_error(project):
    # Cells that failed in an earlier call explain nothing.
    assert reproduce(project, fails="old")[0] in (0, 3)
    status, printed, answer = reproduce(project, fails=True)
    assert (status, answer) == (2, None), printed
    assert "the program ended with 7" in printed


def put_command(plan):
    plan["environments"]["old"]["layers"] = [
        {"docker": {"network": "bridge", "data": "volume", "options": ["--privileged"]}}
    ]


@pytest.mark.parametrize(
    ("change", "words", "says"),
    [
        (None, ("--effect", "2%"), "--effect: is 2%"),
        (None, ("--budget", "2x"), "--budget: "),
        (None, ("--name", "../x"), "--name: is '../x'"),
        (None, ("--dry-run", "--fresh"), "leave one out"),
        (lambda plan: plan.update(scale="tiny"), (), "answer nothing"),
        (lambda plan: plan.update(format=9), (), "format 9"),
        (lambda plan: plan.pop("seed"), (), "seed"),
        (put_command, (), "--trust"),
        (
            lambda plan: plan["client"].update(kind="ssh", machine="0" * 8),
            (),
            "second machine",
        ),
    ],
)
def test_what_cannot_be_reproduced_is_refused(project, root, tmp_path, change, words, says):
    side = changed_plan(root, tmp_path, change) if change else "../there"
    status, printed, answer = reproduce(project, *words, side=side)
    assert (status, says in printed, answer) == (2, True, None), printed
    assert not list(project.glob("reproduce/*/results"))


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + bytes(18)])
def test_a_bad_archive_is_refused(project, tmp_path, content):
    (tmp_path / "a.zip").write_bytes(content)
    status, printed, answer = reproduce(project, side=tmp_path / "a.zip")
    assert (status, "a.zip" in printed, answer) == (2, True, None), printed
    assert not (project / "reproduce").exists()


def test_results_without_a_ratio_are_refused_before_anything_is_measured(project, root, tmp_path):
    results = changed_plan(root, tmp_path, lambda plan: None)
    shutil.rmtree(results / "raw/native")
    status, printed, answer = reproduce(project, side=results)
    assert (status, "holds no ratio to native" in printed, answer) == (2, True, None), printed
    assert not (project / "reproduce").exists()


def test_what_this_machine_or_version_lacks_is_not_testable(project, root, tmp_path):
    def change(plan):
        # Neither can be had anywhere.
        plan["environments"]["old"]["layers"] = [{"jail": {}}]
        plan["workloads"]["linpack"]["parameters"]["sizes"] = [190_000]

    status, printed, answer = reproduce(project, side=changed_plan(root, tmp_path, change))
    # STREAM in the other environment is left.
    reasons = {row["why"] for row in answer["rows"] if row["outcome"] == "not testable here"}
    assert any("no layer jail" in reason for reason in reasons), printed
    assert any("memory" in reason for reason in reasons), printed
    assert status == 0, printed
