"""Records are refused by name that do not fit their path, their plan or their log."""

import json
import shutil

import measured
import projects
import pytest
from measured import edit

from strata.command_line import main
from strata.experiment import blocks, plan, workload
from strata.results import tidy, validate
from strata.util.errors import UserError


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        yield measured.project(tmp_path_factory.mktemp("whole") / "project", patch)
    workload.read_declaration.cache_clear()


@pytest.fixture
def project(whole, tmp_path, monkeypatch):
    """A copy of the results of a measured project, as the working directory."""
    shutil.copytree(whole / "results", tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def copy(project, source, target, **changes):
    """Copy a cell's log and record over another's, and change some keys of the record."""
    for kind in ("log", "json"):
        path = project / f"results/raw/{target}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(project / f"results/raw/{source}.{kind}", path)
    edit(project / f"results/raw/{target}.json", lambda record: record.update(changes))


def faults():
    """Return the faults of all measured cells' records."""
    experiment = plan.read_plan()
    return validate.find_record_faults(
        experiment, validate.list_measured_cells(blocks.Order(experiment).list_cells())
    )


def test_the_records_of_a_run_have_no_faults(project):
    assert faults() == {}


FOREIGN = [
    (
        ("docker/stream/2", "native/stream/2", {"environment": "native"}),
        "its fingerprint is ",
    ),
    (("native/stream/1", "native/stream/3", {"repetition": 3, "round": 3}), "its seed is"),
    (("native/stream/1", "native/stream/3", {}), "its repetition is 1, and the plan's is 3"),
    (("native/linpack/1", "native/stream/1", {"workload": "stream"}), "its seed is"),
]


@pytest.mark.parametrize(("copied", "sentence"), FOREIGN)
def test_a_record_of_another_cell_is_refused_by_name(project, copied, sentence):
    source, target, changes = copied
    copy(project, source, target, **changes)
    environment, load, repetition = target.split("/")
    ((cell, sentences),) = faults().items()
    assert cell == (environment, load, int(repetition))
    start = f"results/raw/{target}.json: {sentence}"
    assert any(line.startswith(start) for line in sentences)


def test_cells_of_added_blocks_are_good_for_a_fixed_number_of_blocks(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    measured.project(
        folder, monkeypatch, measured.page(repetitions={"min": 3, "max": 9, "target": "1%"})
    )
    experiment = plan.read_plan()
    measured.decide(folder, experiment, 3, {"stream": 1, "linpack": 3})
    measured.decide(folder, experiment, 6, {"stream": 0, "linpack": 0})
    measured.measure(folder, experiment)
    rounds = {
        (load, number): json.loads(
            (folder / f"results/raw/native/{load}/{number}.json").read_text()
        )["round"]
        for load, number in (("stream", 4), ("linpack", 4))
    }
    assert rounds == {("stream", 4): 6, ("linpack", 4): 4}

    projects.write_yaml(folder / "config.yaml", measured.page(repetitions=4))
    fixed = measured.planned()
    plan.write_plan({**fixed, "source": {"revision": None, "changed": None}})
    cells = blocks.Order(plan.read_plan()).list_cells()
    assert validate.list_measured_cells(cells) == cells
    assert faults() == {}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda record: record.update(seconds="8"), 'seconds: is "8"'),
        (lambda record: record["observed"]["host"].pop("during"), "observed.host.during: missing"),
        (lambda record: record["observed"]["inside"].update(cpus="two"), "observed.inside.cpus: "),
        (lambda record: record.update(more=1), "more: unknown key"),
        (lambda record: record.update(format=1), "format: is 1; must be 9"),
        (lambda record: record.update(scale="paper"), "its scale is"),
        (lambda record: record["parameters"].update(trials=99), "its parameters are"),
        (
            lambda record: record["system"].update(layers=[{"docker": {"network": "host"}}]),
            "its layers are",
        ),
    ],
)
def test_a_record_that_breaks_its_schema_or_is_not_the_plan_s_is_refused_by_file_and_key(
    project, change, sentence
):
    edit(project / "results/raw/native/stream/2.json", change)
    ((cell, sentences),) = faults().items()
    assert cell == ("native", "stream", 2)
    assert sentences[0].startswith(f"results/raw/native/stream/2.json: {sentence}")


@pytest.mark.parametrize("text", ["", "[]", "nonsense", "{", "null", "[" * 100_000])
def test_a_file_that_is_no_record_is_refused_by_name(project, text):
    (project / "results/raw/native/stream/2.json").write_text(text)
    ((cell, sentences),) = faults().items()
    assert cell == ("native", "stream", 2)
    assert sentences[0].startswith("results/raw/native/stream/2.json: is no")


def test_a_changed_log_of_the_same_size_and_time_is_refused(project):
    log = project / "results/raw/native/stream/2.log"
    text = log.read_bytes()
    log.write_bytes(text.replace(b"1", b"2", 1))
    ((cell, (sentence,)),) = faults().items()
    assert cell == ("native", "stream", 2)
    assert sentence.startswith("results/raw/native/stream/2.log: it is not the log that ")


def test_records_that_contradict_others_are_refused(project):
    raw = project / "results/raw"
    edit(raw / "docker/stream/3.json", lambda record: record["parameters"].update(threads=7))
    edit(
        raw / "native/stream/3.json",
        lambda record: record["image"].update(manifest_sha256="0a" * 32),
    )
    wrong = faults()
    assert len(wrong) == 2
    assert wrong["native", "stream", 3][0].endswith("than that of results/image.json")
    assert "derived parameters are others" in wrong["docker", "stream", 3][0]


def test_emulation_and_hardware_never_have_one_name(project):
    def change(experiment):
        experiment["environments"]["docker"] |= {"accelerator": "tcg", "accelerator_reason": "x"}

    edit(project / "results/plan.json", change)
    wrong = faults()
    assert {cell[0] for cell in wrong} == {"docker"}
    expected = "no virtual machine, and the plan says VM (TCG emulation)"
    assert all(expected in sentences[-1] for sentences in wrong.values())


@pytest.mark.parametrize("argv", [["tidy"], ["decide", "3"]])
def test_an_edited_plan_is_refused_by_file_and_key(project, argv):
    edit(project / "results/plan.json", lambda content: content.pop("workloads"))
    with pytest.raises(UserError, match=r"^results/plan\.json: workloads: missing"):
        main(argv)


def test_a_plan_s_faults_name_file_and_key(project):
    edit(
        project / "results/plan.json",
        lambda content: content["environments"]["docker"].update(available="yes"),
    )
    [wrong] = plan.find_plan_mistakes(plan.read_plan())
    assert wrong.startswith('results/plan.json: environments.docker.available: is "yes"')
    (project / "results/plan.json").write_text("[]")
    with pytest.raises(UserError, match=r"^results/plan\.json: "):
        plan.read_plan()


def test_no_table_is_made_of_faulty_records(project):
    copy(project, "docker/stream/2", "native/stream/2", environment="native")
    with pytest.raises(UserError, match=r"results/raw/native/stream/2\.json: its fingerprint is"):
        tidy.write_tidy_tables()
    assert not (project / "results/tidy").exists()
