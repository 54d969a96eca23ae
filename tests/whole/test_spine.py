"""Check how the next run handles a person's changes to a project between two runs.

Snakemake is unmodified.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import projects
import pytest

LAPS = {
    "about": "How often it is run",
    "schema": {"type": "integer", "minimum": 1, "maximum": 9},
    "value": 2,
}
# A workload that takes turns with others of its block, and needs only the host.
LOAD = {
    **projects.NOOP,
    "parameters": {**projects.NOOP["parameters"], "laps": LAPS},
    "laps": "laps",
}
PAGE = {
    "scale": "tiny",
    "repetitions": 3,
    "seed": 1,
    "interference": {"action": "flag"},
    "environments": {name: {"layers": ["host"]} for name in ("native", "docker", "other")},
    "workloads": {"load": None, "work": None},
}
TABLES = "results/SHA256SUMS"
PAPER = "paper/report.html"


class Project:
    """A small project, and what Snakemake did in it when it was run last."""

    def __init__(self, folder: Path, page: dict) -> None:
        self.folder = folder
        load = {
            **LOAD,
            "run": [{"argv": ["/bin/bash", str(folder / "run.sh"), "{number}"], "timeout": 20}],
        }
        projects.make(
            folder, page, {name: {**load, "title": name} for name in page["workloads"]}, copy=True
        )
        (folder / "run.sh").write_text("echo $1\n")
        # A rate with a digit of its own in each log.
        parser = (
            "from kit.logs import build_value\n\n\ndef parse(lines, parameters):\n"
            "    numbers = [float(line) for line in lines if line.isdigit()]\n"
            "    return [build_value('rate', '1/s', number) for number in numbers]\n"
        )
        for name in page["workloads"]:
            (folder / f"workloads/{name}/parse.py").write_text(parser)
        self.home = folder.parent

    def start(self, *words: str) -> subprocess.Popen:
        """Start Snakemake, which finds the project's own code."""
        own = {"STRATA_HOME": str(self.home / "home"), "STRATA_TEST_LOCK": str(self.home / "lock")}
        return projects.start(
            self.folder, "snakemake", "--cores", "1", *words, PYTHONPATH="", **own
        )

    def run(self, *words: str) -> int:
        """Run Snakemake to its end, and return its status.

        `jobs` counts the jobs that ran, and `measured` names the cells whose record is new.
        """
        before = self.records()
        process = self.start(*words)
        self.said, _ = process.communicate(timeout=300)
        # Snakemake says so only of jobs that ended well.
        self.jobs = Counter(re.findall(r"Finished jobid: \d+ \(Rule: (\w+)\)", self.said))
        # One only waits for the cells, and drafts come before what is made of them.
        aside = ("checksums", "draft_tables", "draft_paper")
        self.jobs = Counter({name: count for name, count in self.jobs.items() if name not in aside})
        after = self.records()
        self.measured = sorted(cell for cell in after if before.get(cell) != after[cell])
        return process.returncode

    def good(self, *words: str) -> None:
        """Run it, which ends well."""
        assert self.run(*words) == 0, self.said

    def records(self) -> dict[str, str]:
        """When each cell that is in its place was measured."""
        paths = (self.folder / "results/raw").glob("*/*/*.json")
        found = {path: re.search('"started": "(.*?)"', path.read_text()) for path in paths}
        return {
            str(path.relative_to(self.folder / "results/raw").with_suffix("")): started[1]
            for path, started in found.items()
            if started and path.with_suffix(".log").exists()
        }

    def record(self, cell: str) -> dict:
        return json.loads((self.folder / f"results/raw/{cell}.json").read_text())

    def path(self, name: str) -> Path:
        return self.folder / name


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A project all cells of which are measured, with its tables; it is copied for each test."""
    made = Project(tmp_path_factory.mktemp("spine") / "project", PAGE)
    made.good(TABLES)
    assert made.jobs == {"cell": 18, "tables": 1}
    return made


def copied(made: Project, tmp_path: Path) -> Project:
    """Copy a project.

    The copy runs the script of the first one, whose path decides the fingerprint.
    """
    shutil.copytree(made.folder, tmp_path / "project", symlinks=True)
    copy = object.__new__(Project)
    vars(copy).update(vars(made), folder=tmp_path / "project", home=tmp_path)
    return copy


@pytest.fixture
def project(measured, tmp_path):
    return copied(measured, tmp_path)


def test_cells_come_in_the_order_of_the_plan_and_take_turns_within_their_set(measured):
    records = projects.records(measured.folder)
    assert [projects.cell_of(record) for record in records] == projects.planned(measured.folder)
    for record in records:
        assert {record["environment"], *record["interleaved"]} == set(PAGE["environments"])


def test_nothing_is_made_again_where_nothing_changed(project):
    project.good(TABLES)
    assert not project.jobs


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("workloads/load/parse.py", "# x\n"),
        ("analysis/tables.R", "# x\n"),
        ("published/claims.json", "\n"),
    ],
)
def test_what_reads_logs_is_an_input_of_the_tables_and_of_no_cell(project, name, text):
    path = project.path(name)
    path.write_text(path.read_text() + text)
    project.good(TABLES)
    assert project.jobs == {"tables": 1}
    project.good(TABLES)
    assert not project.jobs


def test_a_changed_command_or_other_code_measures_nothing_again(project):
    path = project.path("rules/measure.smk")
    path.write_text(path.read_text().replace("python3 -S -m", "python3 -S  -m"))
    path = project.path("strata/measure/block.py")
    path.write_text(path.read_text() + "# x\n")
    project.good("cells")
    assert project.jobs.keys() <= {"cells"}


# What is done to cells that are measured → the cells measured next, and the torn repetitions.
TORN = {
    "a log is deleted": ("rm results/raw/docker/load/2.log", ["docker/load/2", "*/load/4"], [2]),
    "a log and its record": ("rm results/raw/docker/load/2.*", ["docker/load/2", "*/load/4"], [2]),
    "a record": ("rm results/raw/docker/load/2.json", ["docker/load/2", "*/load/4"], [2]),
    "native's log": ("rm results/raw/native/load/2.log", ["native/load/2", "*/load/4"], [2]),
    "a folder of logs": (
        "rm -r results/raw/docker/load",
        [*(f"docker/load/{number}" for number in (1, 2, 3)), *(f"*/load/{n}" for n in (4, 5, 6))],
        [1, 2, 3],
    ),
    "a whole block": ("rm results/raw/*/load/2.log", ["*/load/2"], []),
    # No environment but native forms a ratio.
    "all but native": ("rm results/raw/[do]*/load/2.log", ["[do]*/load/2", "*/load/4"], [2]),
}


@pytest.mark.parametrize("change", TORN)
def test_a_block_whose_cells_are_measured_apart_gets_another_and_the_tables_follow(project, change):
    command, measured, torn = TORN[change]
    subprocess.run(command, shell=True, cwd=project.folder, check=True)
    forecast = projects.good(project.folder, "strata", "plan", PYTHONPATH="").stdout
    measured = expand(measured)
    assert f"{len(measured)} of " in forecast
    project.good(TABLES)
    assert project.measured == measured
    assert project.jobs == {"cell": len(measured), "tables": 1, **({"decide": 1} if torn else {})}
    # Both say it before anything is measured.
    for text in (forecast, project.said.partition("[")[0]):
        assert bool(torn) == ("measured apart" in text)
    assert all(f" {', '.join(map(str, torn))}:" in text for text in [forecast] if torn)
    check_pairs(project, "load", torn)
    project.good(TABLES)
    assert not project.jobs


def expand(names: list[str]) -> list[str]:
    """The names of cells: a pattern stands for the environments that it matches."""
    found = set()
    for name in names:
        pattern, rest = name.split("/", 1)
        found |= {f"{one}/{rest}" for one in PAGE["environments"] if fnmatch(one, pattern)}
    return sorted(found)


def check_pairs(project: Project, workload: str, torn: list[int]) -> None:
    """Each environment has as many ratios as before, and R's tables know the torn ones as well."""
    rows = projects.table(project.path("results/runs.csv"))
    apart = {int(row["repetition"]) for row in rows if row["paired"] == "no"}
    assert apart == set(torn), rows
    rows = projects.table(project.path("results/comparisons.csv"))
    counts = [int(row["n"]) for row in rows if row["workload"] == workload]
    assert counts
    assert min(counts) == 3


@pytest.mark.parametrize("folder", ["results/raw", "results"])
def test_all_logs_that_are_deleted_are_measured_again_in_their_blocks(project, folder):
    shutil.rmtree(project.path(folder))
    project.good(TABLES)
    assert len(project.measured) == 18
    assert all(len(project.record(cell)["interleaved"]) == 2 for cell in project.measured)
    project.good(TABLES)
    assert not project.jobs


def test_without_what_snakemake_remembers_nothing_is_lost(project):
    shutil.rmtree(project.path(".snakemake"))
    project.good(TABLES)
    assert not project.measured


def test_a_log_that_was_changed_is_refused_and_named_and_measured_again_once_it_is_removed(project):
    log = project.path("results/raw/docker/load/2.log")
    log.write_text(log.read_text() + "9\n")
    assert project.run(TABLES) != 0
    assert "results/raw/docker/load/2.log" in project.said
    log.unlink()
    project.good(TABLES)
    assert "docker/load/2" in project.measured


def test_a_changed_parameter_measures_its_workload_again_in_blocks_and_back(project):
    project.good("--config", "workloads={work: {number: 8}}", "--", TABLES)
    assert project.measured == expand([f"*/work/{number}" for number in (1, 2, 3)])
    assert all(len(project.record(cell)["interleaved"]) == 2 for cell in project.measured)
    project.good(TABLES)
    assert project.measured == expand([f"*/work/{number}" for number in (1, 2, 3)])


@pytest.mark.parametrize(("left", "without"), [("mtime", "params"), ("params", "mtime")])
def test_triggers_by_which_results_would_stay_behind_are_refused(project, left, without):
    changed = ("--config", "workloads={work: {number: 8}}", "--rerun-triggers", left, "--", TABLES)
    assert project.run(*changed) != 0
    assert f"rerun-triggers: leaves out {without}," in project.said
    assert project.measured == []


def test_an_experiment_that_is_narrowed_measures_nothing_and_has_tables_of_its_own(project):
    narrow = ("--config", "only={environments: [native, docker], workloads: [work]}", "--")
    project.good(*narrow, TABLES)
    assert project.jobs == {"tables": 1}
    table = projects.table(project.path("results/comparisons.csv"))
    assert {(row["environment"], row["workload"]) for row in table} == {("docker", "work")}
    project.good(TABLES)
    assert project.jobs == {"tables": 1}


def test_a_single_cell_of_an_unmeasured_project_brings_its_block_and_the_others_wait(project):
    shutil.rmtree(project.path("results"))
    project.good("results/raw/docker/load/2.log")
    assert project.measured == ["docker/load/2"]
    project.good("cells")
    assert len(project.measured) == 17
    assert {"native", "other"} == set(project.record("docker/load/2")["interleaved"])
    assert (
        project.record("native/load/2")["together"] == project.record("docker/load/2")["together"]
    )


def test_what_waits_for_a_block_is_void_once_the_block_is_measured_anew(project):
    shutil.rmtree(project.path("results"))
    project.good("results/raw/docker/load/2.log")
    shutil.rmtree(project.path("results/raw"))
    project.good("cells")
    mine = [project.record(f"{name}/load/2")["together"] for name in PAGE["environments"]]
    assert mine.count(mine[0]) == 3


def first_do(project: Project, *words: str) -> None:
    """From now on every cell does this first."""
    planned = json.loads(project.path("results/plan.json").read_text())["workloads"]["load"]["cell"]
    Path(planned["steps"][0]["argv"][1]).write_text("\n".join([*words, "echo $1", ""]))


@pytest.fixture
def failing(project):
    first_do(project, "exit 3")
    yield project
    first_do(project)


def test_a_cell_that_fails_says_where_and_how_to_rerun_it_and_the_others_are_measured(failing):
    failing.path("results/raw/docker/load/2.log").unlink()
    assert failing.run(TABLES) != 0
    assert "results/failed/docker/load/2.log" in failing.said
    assert "snakemake --cores 1 results/raw/docker/load/2.log" in failing.said
    assert failing.path("results/failed/docker/load/2.json").exists()
    first_do(failing)
    failing.good(TABLES)
    assert failing.measured == expand(["docker/load/2", "*/load/4"])
    assert not failing.path("results/failed/docker/load/2.json").exists()


def test_a_good_log_stays_where_a_forced_one_fails(failing):
    log = failing.path("results/raw/docker/load/2.log")
    before = log.read_bytes(), failing.record("docker/load/2")
    assert failing.run("--force", "results/raw/docker/load/2.log") != 0
    assert (log.read_bytes(), failing.record("docker/load/2")) == before
    failing.good(TABLES)
    assert not failing.measured
    first_do(failing)
    failing.good("--force", "results/raw/docker/load/2.log")
    assert failing.measured == ["docker/load/2"]
    assert "measured apart" in failing.said
    failing.good(TABLES)
    assert failing.measured == expand(["*/load/4"])
    check_pairs(failing, "load", [2])


def test_a_partial_run_makes_tables_of_what_is_there_and_measures_nothing(project):
    project.path("results/raw/docker/load/2.log").unlink()
    project.good("--config", "partial=true", "--", TABLES)
    assert project.jobs == {"tables": 1}
    project.good(TABLES)
    assert project.measured == expand(["docker/load/2", "*/load/4"])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "results/plan.json").unlink(),
        lambda folder: (folder / "results/plan.json").write_text("{"),
        lambda folder: (folder / "results/plan.csv").write_text("x"),
        lambda folder: shutil.rmtree(folder / "results/tmp"),
        lambda folder: shutil.rmtree(folder / "results/logs"),
        lambda folder: (folder / "results/tmp/run.json").write_text("[" * 9999),
    ],
)
def test_what_a_run_writes_for_itself_is_written_again(project, spoil):
    spoil(project.folder)
    project.path("analysis/tables.R").touch()
    project.good(TABLES)
    assert not project.measured


def test_a_plan_that_was_edited_is_written_again(project):
    path = project.path("results/plan.json")
    path.write_text(path.read_text().replace('"seed": 1', '"seed": 2'))
    project.path("results/raw/docker/load/2.log").unlink()
    project.good("results/raw/docker/load/2.log")
    assert project.measured == ["docker/load/2"]
    assert json.loads(path.read_text())["seed"] == 1


def test_a_parser_that_is_changed_is_applied_to_logs_that_are_there(project):
    parser = project.path("workloads/load/parse.py")
    refuses = (
        "from kit.checks import require\n\n\ndef parse(lines, parameters):\n    require(0, 'x')\n"
    )
    parser.write_text(refuses)
    project.good(TABLES)
    assert not project.measured
    left_out = project.path("results/left_out.csv").read_text().splitlines()
    assert len(left_out) == 1 + 9
    assert all("/load/" in line for line in left_out[1:])
    # A paper is made all the same.
    project.good(PAPER)


def test_a_log_is_parsed_once_for_each_version_of_its_parser(project):
    parser, calls = project.path("workloads/load/parse.py"), project.path("calls")
    noting = f"parameters):\n    open({str(calls)!r}, 'a').write('x')\n"
    parser.write_text(parser.read_text().replace("parameters):\n", noting))
    project.good("results/raw/native/load/1.log", "--force")
    assert calls.read_text() == "xx"
    # Once for each of two laps; the other eight logs were parsed by the parser as it was.  The
    # block of the forced cell is torn, and gets another of three cells.
    project.good(TABLES)
    assert calls.read_text() == 24 * "x"
    project.path(TABLES).unlink()
    project.good(TABLES)
    assert (calls.read_text(), project.jobs) == (24 * "x", {"tables": 1})


def test_a_log_that_its_parser_refuses_is_a_failed_cell(project):
    parser = project.path("workloads/load/parse.py")
    good = parser.read_text()
    parser.write_text(
        "from kit.checks import BrokenLogError\n\n\n"
        "def parse(lines, parameters):\n    raise BrokenLogError('not so')\n"
    )
    project.path("results/raw/docker/load/2.log").unlink()
    assert project.run("cells") != 0
    assert "not so" in project.said
    assert not project.path("results/raw/docker/load/2.log").exists()
    assert project.path("results/failed/docker/load/2.log").exists()
    parser.write_text(good)
    project.good("cells")
    assert project.measured == expand(["docker/load/2", "*/load/4"])


def test_a_target_that_is_no_cell_of_the_plan_is_refused(project):
    assert project.run("results/raw/docker/load/99.log") != 0
    assert "99" in project.said
    assert project.run("results/raw/dcker/load/1.log") != 0


def test_two_runs_at_once_are_refused_with_a_sentence(project):
    first_do(project, "sleep 3")
    project.path("results/raw/docker/load/2.log").unlink()
    first = project.start("cells")
    projects.until(project.path("results/tmp/docker/load/2.log").exists)
    assert project.run("--force", "results/raw/native/load/1.log") != 0
    assert "another run" in project.said
    said, _ = first.communicate(timeout=60)
    assert first.returncode == 0, said
    first_do(project)


def again(project: Project, *words: str) -> subprocess.CompletedProcess:
    """Run `strata again` in a project."""
    own = {
        "STRATA_HOME": str(project.home / "home"),
        "STRATA_TEST_LOCK": str(project.home / "lock"),
    }
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return projects.run(project.folder, "strata", "again", *words, PYTHONPATH="", PATH=path, **own)


def test_a_block_is_measured_again_as_a_whole_and_old_logs_stay_until_then(failing):
    before = failing.records()
    assert again(failing, "load", "2").returncode != 0
    assert failing.records() == before
    first_do(failing)
    done = again(failing, "load", "2")
    assert done.returncode == 0, done.stderr
    after = failing.records()
    assert sorted(cell for cell in after if before[cell] != after[cell]) == expand(["*/load/2"])
    mine = [failing.record(f"{name}/load/2")["together"] for name in PAGE["environments"]]
    assert mine.count(mine[0]) == 3
    failing.good(TABLES)
    assert failing.jobs == {"tables": 1}
    check_pairs(failing, "load", [])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["lod", "2"], "there is no workload 'lod'; there are load, work"),
        (["load", "9"], "3 are planned"),
        (["load", "0"], "3 are planned"),
        (["load", "x"], "x"),
        (["load", "2", "--config", "repetitions=4"], "repetitions"),
        (["load", "2", "--config", "order=sequential"], "order"),
    ],
)
def test_a_block_that_cannot_be_measured_again_is_refused(measured, words, says):
    before = measured.records()
    done = again(measured, *words)
    assert done.returncode != 0
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert measured.records() == before


def test_cells_that_a_kill_parts_from_their_block_are_measured_and_another_block_as_well(project):
    # Without laps each cell is measured by itself.
    only = "only={environments: [native, docker], workloads: [load]}"
    single = ("--config", "workloads={load: {laps: 1}}", only, "--")
    # Long beside the time that Snakemake takes between two cells.
    first_do(project, "sleep 1")
    process = project.start(*single, TABLES)
    records = project.path("results/raw").glob
    marks = {path: path.read_text() for path in records("*/load/*.json")}
    projects.until(lambda: any(path.read_text() != text for path, text in marks.items()))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    new = [path for path, text in marks.items() if path.read_text() != text]
    # Longer than the block takes.
    time.sleep(3)
    project.good(*single, TABLES)
    first_do(project)
    [number] = [path.stem for path in new]
    assert "measured apart" in project.said.partition("[")[0]
    assert set(expand(["[nd]*/load/4"])) < set(project.measured)
    check_pairs(project, "load", [int(number)])


@pytest.mark.parametrize(
    ("whom", "number"),
    [
        ("group", signal.SIGKILL),
        ("group", signal.SIGINT),
        ("snakemake", signal.SIGTERM),
        *(
            pytest.param("group", number, marks=pytest.mark.long)
            for number in (signal.SIGTERM, signal.SIGHUP)
        ),
        *(
            pytest.param("snakemake", number, marks=pytest.mark.long)
            for number in (signal.SIGKILL, signal.SIGINT, signal.SIGHUP)
        ),
    ],
)
def test_a_run_that_a_signal_ends_goes_on_with_the_next(project, number, whom):
    shutil.rmtree(project.path("results/raw"))
    # Snakemake itself may hang where a signal meets it between two jobs.
    first_do(project, "sleep 0.2")
    process = project.start("cells")
    projects.until(lambda: len(list(project.path("results/raw").glob("*/*/*.log"))) >= 4)
    time.sleep(0.5)
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if whom == "group" else os.kill)(process.pid, number)
    process.communicate(timeout=60)
    first_do(project)
    project.good(TABLES)
    assert len(project.records()) == 18
    alone = [
        cell for cell in project.records() if len(project.record(cell).get("interleaved", ())) != 2
    ]
    assert not alone, project.said
    project.good(TABLES)
    assert not project.jobs


def kill_in(project: Project, script: str, target: str) -> None:
    """Kill a run, with all that it started, while a file of R or Python is at work."""
    path, seen = project.path(script), project.folder / "seen"
    text = path.read_text()
    in_python = f'import time\nopen("{seen}", "w").close()\ntime.sleep(60)\n'
    path.write_text(
        (in_python if path.suffix == ".py" else f'writeLines("", "{seen}")\nSys.sleep(60)\n') + text
    )
    process = project.start(target)
    projects.until(seen.exists)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    path.write_text(text)


@pytest.mark.parametrize("script", ["tables", "report"])
def test_what_is_killed_while_something_is_made_is_made_again(project, script):
    kill_in(project, f"analysis/{script}.R", PAPER)
    project.good(PAPER)
    assert not project.measured
    project.good(PAPER)
    assert not project.jobs


# Where the number of blocks is open.


@pytest.fixture(scope="module")
def decided(tmp_path_factory):
    page = {**PAGE, "repetitions": {"min": 3, "max": 6, "target": "2%"}}
    made = Project(tmp_path_factory.mktemp("decided") / "project", page)
    made.path("run.sh").write_text("echo $((100 + RANDOM % 50))\n")
    made.good(TABLES)
    return made


@pytest.fixture
def adaptive(decided, tmp_path):
    return copied(decided, tmp_path)


def test_blocks_are_added_until_it_is_enough(decided):
    decisions = sorted(decided.path("results/precision").glob("*.json"))
    states = [json.loads(path.read_text())["enough"] for path in decisions]
    assert states == sorted(states)
    assert states[-1]
    assert decided.jobs["decide"] == len(states) > 1
    records = projects.records(decided.folder)
    assert [projects.cell_of(record) for record in records] == projects.planned(decided.folder)
    assert len(records) == 36
    assert all(json.loads(path.read_text())["reason"] in decided.said for path in decisions)


def test_a_decision_stands_whatever_becomes_of_code_and_logs(adaptive):
    adaptive.path("strata/results/decide.py").touch()
    for name in PAGE["environments"]:
        adaptive.path(f"results/raw/{name}/load/2.log").unlink()
    adaptive.good(TABLES)
    assert adaptive.measured == expand(["*/load/2"])
    assert "decide" not in adaptive.jobs


def test_a_torn_block_gets_another_though_all_was_decided(adaptive):
    adaptive.path("results/raw/docker/load/2.log").unlink()
    adaptive.good(TABLES)
    assert adaptive.measured == expand(["docker/load/2", "*/load/7"])
    rows = projects.table(adaptive.path("results/comparisons.csv"))
    assert {row["n"] for row in rows if row["environment"] == "docker"} == {"6"}
    adaptive.good(TABLES)
    assert not adaptive.jobs


@pytest.mark.parametrize("text", ["", "[", '{"enough": tru'])
def test_a_decision_that_is_damaged_is_named_with_what_mends_it(adaptive, text):
    [first, *_] = sorted(adaptive.path("results/precision").glob("*.json"))
    first.write_text(text)
    for _ in range(2):
        assert adaptive.run(TABLES) != 0
        assert f"results/precision/{first.name}" in adaptive.said
    first.unlink()
    adaptive.good(TABLES)
    assert not adaptive.measured


def test_another_target_decides_anew(adaptive):
    adaptive.good("--config", "repetitions={target: 500%}", "--", TABLES)
    assert adaptive.jobs["decide"]
    assert not adaptive.measured


def test_a_smaller_budget_keeps_all_measured_blocks(adaptive):
    planned = projects.planned(adaptive.folder)
    smaller = ("--config", "repetitions={budget: 1s}", "--")
    assert adaptive.run(*smaller, "light") != 0
    assert "the decision on further blocks is due" in adaptive.said
    for decisions in (1, 0):
        adaptive.good(*smaller, TABLES)
        assert adaptive.jobs["decide"] == decisions
        assert not adaptive.measured
        assert projects.planned(adaptive.folder) == planned


def test_more_blocks_than_the_tables_hold_are_measured(adaptive):
    adaptive.good("--config", "repetitions={min: 7, max: 7}", "--", TABLES)
    assert adaptive.measured == [
        f"{name}/{workload}/7"
        for name in ("docker", "native", "other")
        for workload in ("load", "work")
    ]
    assert adaptive.jobs["tables"]


def test_a_decision_that_was_killed_is_made_by_the_next_run(adaptive):
    [first, *_] = sorted(adaptive.path("results/precision").glob("*.json"))
    first.unlink()
    adaptive.path(TABLES).unlink()
    kill_in(adaptive, "strata/results/decide.py", TABLES)
    adaptive.good(TABLES)
    assert first.exists()
    assert not adaptive.measured
