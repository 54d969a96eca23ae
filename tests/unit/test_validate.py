"""The judge of records: what is no result of its path, its plan and its log is refused by name."""

import json
import shutil

import measured
import projects
import pytest
from measured import edit

from strata.commands import main
from strata.experiment import blocks, plan, workload
from strata.results import tidy, validate
from strata.util.errors import UserError


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        yield measured.project(tmp_path_factory.mktemp("whole") / "project", patch)
    workload.load.cache_clear()


@pytest.fixture
def project(whole, tmp_path, monkeypatch):
    """The results of a project; nothing else of it is asked."""
    shutil.copytree(whole / "results", tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def copy(project, source, target, **changes):
    """A log and record of one cell in the place of another, some keys of the record changed."""
    for kind in ("log", "json"):
        path = project / f"results/raw/{target}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(project / f"results/raw/{source}.{kind}", path)
    edit(project / f"results/raw/{target}.json", lambda told: told.update(changes))


def faults():
    experiment = plan.read()
    return validate.faults(experiment, validate.measured(blocks.Order(experiment).cells()))


def test_what_was_measured_is_good(project):
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


@pytest.mark.parametrize(("copied", "says"), FOREIGN)
def test_a_record_of_another_cell_is_refused_by_name(project, copied, says):
    source, target, changes = copied
    copy(project, source, target, **changes)
    environment, load, repetition = target.split("/")
    found = faults()
    assert list(found) == [(environment, load, int(repetition))]
    assert any(
        sentence.startswith(f"results/raw/{target}.json: {says}")
        for sentence in found[next(iter(found))]
    )


def test_cells_of_added_blocks_count_for_a_fixed_number_of_them(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    measured.project(
        folder, monkeypatch, measured.page(repetitions={"min": 3, "max": 9, "target": "1%"})
    )
    experiment = plan.read()
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
    plan.write({**fixed, "source": {"revision": None, "changed": None}})
    cells = blocks.Order(plan.read()).cells()
    assert validate.measured(cells) == cells
    assert faults() == {}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda told: told.update(seconds="8"), 'seconds: is "8"'),
        (lambda told: told["observed"]["host"].pop("during"), "observed.host.during: missing"),
        (lambda told: told["observed"]["inside"].update(cpus="two"), "observed.inside.cpus: "),
        (lambda told: told.update(more=1), "more: unknown key"),
        (lambda told: told.update(format=1), "format: is 1; must be 7"),
        (lambda told: told.update(scale="paper"), "its scale is"),
        (lambda told: told["parameters"].update(trials=99), "its parameters are"),
        (
            lambda told: told["system"].update(layers=[{"docker": {"network": "host"}}]),
            "its layers are",
        ),
    ],
)
def test_a_record_that_breaks_its_schema_or_is_not_the_plan_s_is_refused_by_file_and_key(
    project, change, says
):
    edit(project / "results/raw/native/stream/2.json", change)
    found = faults()
    assert list(found) == [("native", "stream", 2)]
    assert found["native", "stream", 2][0].startswith(f"results/raw/native/stream/2.json: {says}")


@pytest.mark.parametrize("text", ["", "[]", "nonsense", "{", "null", "[" * 100_000])
def test_a_file_that_is_no_record_is_refused_by_name(project, text):
    (project / "results/raw/native/stream/2.json").write_text(text)
    found = faults()
    assert list(found) == [("native", "stream", 2)]
    assert found["native", "stream", 2][0].startswith("results/raw/native/stream/2.json: is no")


def test_a_changed_log_of_the_same_size_and_time_is_refused(project):
    log = project / "results/raw/native/stream/2.log"
    text = log.read_bytes()
    log.write_bytes(text.replace(b"1", b"2", 1))
    assert faults() == {
        ("native", "stream", 2): [
            "results/raw/native/stream/2.log: it is not the log that results/raw/native/stream/2.json records: "
            "size or SHA-256 differ"
        ]
    }


def test_records_that_do_not_go_together_are_refused(project):
    raw = project / "results/raw"
    edit(raw / "docker/stream/3.json", lambda told: told["parameters"].update(threads=7))
    edit(raw / "native/stream/3.json", lambda told: told["image"].update(manifest_sha256="0a" * 32))
    found = {cell: wrong[0].partition(": ")[2] for cell, wrong in faults().items()}
    assert len(found) == 2
    assert (
        found["native", "stream", 3]
        == "it was measured in an image with other files than that of results/image.json"
    )
    assert (
        "its derived parameters are others than those of results/raw/docker/stream/"
        in found["docker", "stream", 3]
    )


def test_emulation_and_hardware_never_stand_under_one_name(project):
    def change(experiment):
        experiment["environments"]["docker"] |= {"accelerator": "tcg", "accelerator_reason": "x"}

    edit(project / "results/plan.json", change)
    found = faults()
    assert {cell[0] for cell in found} == {"docker"}
    assert all(
        "no virtual machine, and the plan says VM (TCG emulation)" in words[-1]
        for words in found.values()
    )


@pytest.mark.parametrize("words", [["tidy"], ["decide", "3"]])
def test_a_plan_that_was_edited_is_refused_by_file_and_key_whoever_reads_it(project, words):
    edit(project / "results/plan.json", lambda plan: plan.pop("workloads"))
    with pytest.raises(UserError, match=r"^results/plan\.json: workloads: missing"):
        main(words)


def test_the_checks_of_a_plan_name_file_and_key(project):
    edit(
        project / "results/plan.json",
        lambda told: told["environments"]["docker"].update(available="yes"),
    )
    [wrong] = plan.faults(plan.read())
    assert wrong.startswith('results/plan.json: environments.docker.available: is "yes"')
    (project / "results/plan.json").write_text("[]")
    with pytest.raises(UserError, match=r"^results/plan\.json: "):
        plan.read()


def test_no_table_is_made_of_what_is_not_good(project):
    copy(project, "docker/stream/2", "native/stream/2", environment="native")
    with pytest.raises(UserError, match=r"results/raw/native/stream/2\.json: its fingerprint is"):
        tidy.make()
    assert not (project / "results/tidy").exists()
