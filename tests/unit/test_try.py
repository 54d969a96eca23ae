"""`strata try`: what a command line asks for, and how its answer reads."""

import io
import json
import tarfile

import projects
import pytest
import yaml

from strata.command_line import main
from strata.environments.common import registry
from strata.experiment import config, folder, measuring, planning
from strata.host import capacity
from strata.trial import answer, command, request
from strata.util import files, progress
from strata.util.errors import UserError
from strata.util.signals import Interrupted

# Options of a command line that is refused before anything starts, and what the message names.
WRONG = [
    ([], "no command"),
    (["--in", "native,dokcer", "--", "ls"], "did you mean 'docker'"),
    (["--in", "native", "--", "ls"], "no environment to compare"),
    (["--file", "nosuch", "--", "ls"], "nosuch"),
    (["--file", "a/x", "--file", "b/x", "--", "ls"], "rename one"),
    (["--file", "/", "--", "ls"], "in it"),
    (["--docker-option", "--rm", "--", "ls"], "--docker-option: is --rm"),
    (["--docker-option", "--network=host", "--", "ls"], "docker-hostnet"),
    (["--docker-option=--tmpfs=/data/work", "--", "ls"], "--docker-option: "),
    (["--docker-option", "cpus=1", "--", "ls"], "--cpus=1.5"),
    (["--metric", "rate=[0-9]+", "--", "ls"], "parentheses"),
    (["--metric", "rate=([0-9]+", "--", "ls"], "regular expression"),
    (["--metric", "rate=(a)(b)", "--", "ls"], "2 groups"),
    (["--metric", "Rate=(a)", "--", "ls"], "lower-case"),
    (["--metric", "time=(a)", "--", "ls"], "another name"),
    (["--metric", "a=(a)", "--metric", "a=(b)", "--", "ls"], "twice"),
    (["--margin", "2", "--", "ls"], "2%"),
    (["--margin", "100%", "--", "ls"], "below 100%"),
    (["--margin", "-3%", "--", "ls"], "--margin: is"),
    (["--budget", "20", "--", "ls"], "30s"),
    (["--budget", "soon", "--", "ls"], "25min"),
    (["--name", "../x", "--", "ls"], "--name"),
    (["--name", "taken", "--", "ls"], "--name"),
    (["--name", "other", "--", "ls"], "--fresh"),
    (["--csv", "a", "--", "ls"], "--csv: a is a folder"),
    (["--file", "/dev/null", "--", "ls"], "--file: /dev/null: is neither"),
    (["--image", "", "--", "ls"], "--image: is empty"),
    (["--", " "], "the command is empty"),
    (["--json", "", "--", "ls"], "--json"),
    (["--html", "/dev/null", "--", "ls"], "--html: /dev/null"),
    (["--json", "a/x/y", "--", "ls"], "a/x is no folder"),
    (["--json", "-", "--csv", "-", "--", "ls"], "--json and --csv"),
]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder outside of the project, with two files of one name, and two taken names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text(name)
    (tmp_path / "try/taken").mkdir(parents=True)
    (tmp_path / "try/taken/notes").write_text("mine")
    folder.prepare_experiment_folder("try/other")
    settings = {"workloads": {"command": {"command": "true"}}}
    request.write_settings("try/other", settings, "strata try -- true")
    return tmp_path


@pytest.mark.parametrize(("words", "names"), WRONG)
def test_a_wrong_command_line_gets_a_message_and_leaves_nothing(place, words, names):
    before = sorted(place.rglob("*"))
    with pytest.raises(UserError) as refused:
        main(["try", *words])
    assert names in str(refused.value)
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("killed", [False, True])
def test_an_experiment_that_cannot_begin_again_stays(place, killed):
    folder = place / "try/other"
    (folder / "results").mkdir()
    (folder / "results/x").write_text("1")
    (folder / "notes").write_text("mine")
    before = {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}
    if killed:
        # As a call leaves it that is killed in its trial run.
        request.set_aside_results("try/other")
        (folder / "results").mkdir()
        request.write_settings("try/other", {}, "strata try -- ls")
    with pytest.raises(UserError) as refused:
        main(["try", "--fresh", "--name", "other", "--packages", "a;b", "--", "ls"])
    assert "a;b" in str(refused.value)
    assert {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")} == before


@pytest.mark.parametrize(
    ("layer", "method", "names"),
    [
        ("docker", "explain_unavailability", "nothing to compare"),
        ("chroot", "explain_unavailability", "nothing to compare"),
        ("chroot", "explain_missing_permission", "nothing can be measured"),
        ("docker", "explain_missing_permission", "nothing can be measured"),
    ],
)
def test_a_machine_without_docker_or_rights_is_told_and_nothing_is_left(
    place, monkeypatch, layer, method, names
):
    reason = classmethod(lambda cls: "type this")
    monkeypatch.setattr(registry.load_layer_class(layer), method, reason)
    before = sorted(place.rglob("*"))
    with pytest.raises(UserError) as refused:
        main(["try", "--in", "native,docker", "--", "ls"])
    assert names in str(refused.value)
    assert "type this" in str(refused.value)
    assert sorted(place.rglob("*")) == before


def test_words_after_a_command_without_hyphens_are_refused_with_the_remedy(place, capsys):
    with pytest.raises(SystemExit):
        main(["try", "ls", "-l"])
    assert "-- ls -l" in capsys.readouterr().err


def ask(*argv, **more):
    """The request of a command line with the usual options."""
    options = {"names": None, "files": [], "metrics": [], "packages": [], "margin": "2%"}
    options |= {"budget": "3min", "image": None, "docker_options": []}
    return request.read_request([*argv], **(options | more))


@pytest.mark.parametrize(
    ("files", "word", "placed"),
    [
        (["a/x"], "a/x", "./x"),
        (["./a/x"], "./a/x", "./x"),
        (["a"], "a/x", "./a/x"),
        (["a/"], "a/", "./a/"),
        (["a/x"], "b/x", "b/x"),
        (["a"], "ab", "ab"),
        (["a/x", "./a/x"], "./a/x", "./x"),
    ],
)
def test_words_that_name_given_files_name_their_copies(place, files, word, placed):
    assert ask("ls", word, files=files).argv == ["ls", placed]


def test_equal_files_make_equal_archives(place, tmp_path):
    one = request.pack_files(["a", "b/x"], str(tmp_path / "1.tar"))
    (tmp_path / "a/x").touch()
    assert request.pack_files(["a", "b/x"], str(tmp_path / "2.tar")) == one
    assert sorted(tarfile.open(tmp_path / "1.tar").getnames()) == ["a", "a/x", "x"]
    assert request.pack_files(["a", "b/x", "./a/"], str(tmp_path / "twice.tar")) == one
    (tmp_path / "a/x").write_text("other")
    assert request.pack_files(["a", "b/x"], str(tmp_path / "3.tar")) != one


@pytest.mark.parametrize("seconds", [1e-5, 0.001, 0.02, 0.3, 1.0, 2.5, 20.0, 500.0])
def test_short_runs_fill_a_lap_and_a_long_one_is_one(seconds):
    chosen = request.choose_lap_parameters(seconds)
    in_a_block = seconds * (chosen["runs"] * chosen["laps"] + chosen["warmups"])
    assert in_a_block <= max(2.5, 3 * seconds)
    assert seconds * chosen["runs"] >= min(0.14, 1000 * seconds)
    assert chosen["limit"] >= 10 * seconds
    if seconds > 2:
        assert (chosen["runs"], chosen["laps"], chosen["warmups"]) == (1, 1, 0)


def test_an_experiment_is_a_folder_that_the_project_s_code_plans(place, monkeypatch):
    asked = ask("sh", "-c", "echo 'a b' $HOME", metrics=["rate:1/s:lower=([0-9]+)"])
    settings = request.build_configuration(asked, "")
    place_of_it = request.choose_experiment_folder(asked, settings, None, False)
    assert place_of_it == "try/sh"
    folder.prepare_experiment_folder(place_of_it)
    own = {**settings["workloads"]["command"], **request.choose_lap_parameters(0.3)}
    request.write_settings(place_of_it, {**settings, "workloads": {"command": own}}, "strata try")
    # The same command finds its folder, and another one has its own.
    assert request.choose_experiment_folder(asked, settings, None, False) == place_of_it
    other = ask("sh", "-c", "true")
    assert request.choose_experiment_folder(
        other, request.build_configuration(other, ""), None, False
    ) != (place_of_it)
    monkeypatch.chdir(place_of_it)
    planned = planning.build_plan(config.read_config(), capacity.read_host_facts())
    work = planned["workloads"]["command"]
    assert work["parameters"]["command"] == "sh -c 'echo '\"'\"'a b'\"'\"' $HOME'"
    assert work["headline"] == [{"metric": "rate"}]
    assert work["metrics"]["rate"] == {"label": "rate", "unit": "1/s", "better": "lower"}
    assert planned["precision"]["margin"] == 0.02
    with open("config.yaml") as file:
        assert yaml.safe_load(file)["seed"] == planned["seed"]
    # The image is the project's own.
    monkeypatch.chdir(projects.ROOT)
    whole = planning.build_plan(config.read_config(), capacity.read_host_facts())
    assert planned["image"]["recipe"] == whole["image"]["recipe"]


def test_a_repeated_experiment_goes_on(place):
    asked = ask("true")
    settings = request.build_configuration(asked, "")
    own = request.build_configuration(asked, "")
    own["workloads"]["command"] |= request.choose_lap_parameters(0.3)
    (place / "try/true/results/precision").mkdir(parents=True)
    decision = '{"spent_seconds": 100, "workloads": {"command": {"seconds": 9}}}'
    (place / "try/true/results/precision/5.json").write_text(decision)
    request.extend_budget(settings, own, "try/true")
    assert settings["repetitions"]["budget"] == f"{100 + 0.8 * 180:.0f}s"
    assert settings["workloads"] == own["workloads"]


def test_a_repeated_experiment_gets_a_block_at_least(place):
    own = request.build_configuration(ask("true"), "")
    own["workloads"]["command"] |= request.choose_lap_parameters(0.3)
    (place / "try/true/results/precision").mkdir(parents=True)
    decision = '{"spent_seconds": 100.2, "workloads": {"command": {"seconds": 30.5}}}'
    (place / "try/true/results/precision/5.json").write_text(decision)
    settings = request.build_configuration(ask("true", budget="10s"), "")
    request.extend_budget(settings, own, "try/true")
    assert settings["repetitions"]["budget"] == "131s"


def test_a_signal_leaves_the_answer_so_far_and_its_own_status(place, capsys, monkeypatch):
    experiment = {
        "environments": {name: {"available": True} for name in ("native", "docker")},
        "precision": {"margin": 0.02},
    }
    row = {**dict.fromkeys(answer.COLUMNS), "headline": True, "environment": "native"}
    row |= {"metric": "time", "unit": "s", "level": 0.5, "verdict": ""}
    monkeypatch.setattr(command, "_prepare_experiment", lambda *_: ("try/ls", experiment))
    monkeypatch.setattr(command, "_measure_experiment", lambda *_: Interrupted("SIGINT"))
    monkeypatch.setattr(answer, "collect_answer_rows", lambda folder: [row])
    monkeypatch.setattr(answer, "compute_block_seconds", lambda *_: 0.0)
    with pytest.raises(Interrupted, match="SIGINT"):
        main(["try", "--in", "native,docker", "--json", "-", "--", "ls"])
    printed = capsys.readouterr()
    assert [*json.loads(printed.out)["missing"]] == ["docker"]
    assert "500 ms" in printed.err
    assert "before the end" in printed.err
    assert "strata: docker" not in printed.err


def test_a_wait_for_another_measurement_is_told_once_without_a_terminal(capsys):
    line = measuring.ProgressLine()
    for number in (1, 2):
        line.print_once(f"testbed: another measurement (by process {number}); waiting")
    line.show("block 1")
    assert capsys.readouterr().err.count("\n") == 1


def test_only_the_answer_is_on_standard_output_if_its_file_is_a_hyphen(tmp_path, capsys):
    for path, where in (("-", "err"), (str(tmp_path / "answer"), "out")):
        with files.prepare_outputs({"--json": path, "--csv": None}):
            progress.print_line("a table")
        files.write_output(path, "{}")
        printed = capsys.readouterr()._asdict()
        assert printed.pop(where) == "a table\n"
        assert [*printed.values()] == (["{}"] if path == "-" else [""])


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [(0.412, "s", "412 ms"), (1.5, "s", "1.50 s"), (2e-5, "s", "20.0 µs"), (1e-9, "s", "0.00 µs"),
     (98.2, "MB", "98.2 MB"), (2500, "MB", "2.50 GB"), (0.5, "MB", "500 kB"), (12345, "req/s",
     "12,345 req/s"), (0.9999, "s", "1.00 s"), (0.9994, "s", "999 ms")],
)  # fmt: skip
def test_levels_have_three_digits_and_a_fitting_unit(value, unit, shown):
    assert answer.format_quantity(value, unit) == shown


def test_an_answer_says_in_plain_words_what_is_known():
    row = {"metric": "time", "unit": "s", "label": "", "n": 12, "reason": "", "headline": True}
    row |= {"level": 0.412, "ratio": None, "low": None, "high": None, "verdict": "", "more": None}
    row |= {"direction": ""}
    rows = [
        {**row, "environment": "native"},
        {**row, "environment": "docker", "ratio": 0.998, "low": 0.99, "high": 1.01,
         "verdict": "equivalent"},
        {**row, "environment": "gvisor", "ratio": 0.777, "low": 0.76, "high": 0.79,
         "verdict": "different", "direction": "slower"},
        {**row, "environment": "vm", "ratio": 0.97, "low": 0.9, "high": 1.0,
         "verdict": "undecided", "more": 30},
    ]  # fmt: skip
    lines = answer.format_answer_lines(rows, {"lxc": "not available: no LXC"}, 0.02, 6.0)
    text = "\n".join(lines)
    assert "412 ms" in lines[0]
    assert "99.8 % of native's speed [99.0, 101.0]" in lines[1]
    for words in ("no difference of 2 %", "slower by more than 2 %", "3 min", "no LXC", "n = 12"):
        assert words in text
    listing = io.StringIO(text)
    assert len(listing.readlines()) == 5
    # Beside another metric that decides, the wall time has no verdict.
    given = [{**row, "metric": "rate", "unit": "1/s"} for row in rows]
    lines = answer.format_answer_lines(
        given + [{**row, "headline": False} for row in rows], {}, 0.02, 6.0
    )
    assert [line for line in lines if line.endswith(":")] == ["rate:", "time:"]
    assert "99.8 % of native's speed [99.0, 101.0] (n = 12)" in lines[-3]
