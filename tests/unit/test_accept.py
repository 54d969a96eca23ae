"""Before tables are made: what a parser or the judge refuses is a failed cell, and the others make their tables."""

import json
import shutil
from pathlib import Path

import measured
import pytest

from strata.base import run
from strata.base.errors import UserError
from strata.experiment import plan, sets, workload
from strata.results import accept, judge


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        yield measured.project(tmp_path_factory.mktemp("whole") / "project", patch)
    workload.load.cache_clear()


class Lab:
    """Parsers and a testbed that do as a test says: what is refused, and what a second measurement leaves."""

    def __init__(self, refused, again=None):
        self.refused, self.again = set(refused), again or {}
        self.read, self.measured = [], []

    def parse(self, cells):
        self.read.append(list(cells))
        return {cell: "a value is not positive" for cell in cells if cell in self.refused}

    def measure(self, cell):
        self.measured.append(cell)
        for kind in ("log", "json"):
            failed, raw = (Path(f"results/{where}/{'/'.join(map(str, cell))}.{kind}") for where in ("failed", "raw"))
            if self.again.get(cell) == "fails":
                failed.write_text('{"error": "its run step ended with exit code 1"}\n')
            else:
                shutil.copy(failed, raw)
                failed.unlink()
        if kind == "json" and raw.exists():
            told = json.loads(raw.read_text())
            del told["error"], told["refused"]
            raw.write_text(json.dumps(told))
        if self.again.get(cell) == "good":
            self.refused.discard(cell)
        return self.again.get(cell) != "fails"

    def accept(self, partial=False):
        accept.accept(plan.read_checked(), ["stream"], 3, partial, self.parse, self.measure)


@pytest.fixture
def results(whole, tmp_path, monkeypatch):
    shutil.copytree(whole / "results", tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results"


CELL, OTHER = ("docker", "stream", 2), ("native", "stream", 1)


def there(results, kind="raw"):
    return sorted(str(path.relative_to(results / kind)) for path in results.glob(f"{kind}/*/stream/*"))


def test_what_is_taken_stays_and_is_not_read_again(results, capsys):
    before, lab = there(results), Lab([])
    lab.accept()
    assert [len(cells) for cells in lab.read] == [6]
    lab.accept()
    assert len(lab.read) == 1
    assert (there(results), there(results, "failed"), lab.measured) == (before, [], [])
    assert capsys.readouterr().err == ""


def test_a_refused_log_is_measured_again_once_and_is_a_result_then(results, capsys):
    before, lab = there(results), Lab([CELL], {CELL: "good"})
    lab.accept()
    assert lab.measured == [CELL]
    assert (there(results), there(results, "failed")) == (before, [])
    said = capsys.readouterr().err
    assert "docker · stream · repetition 2 is measured again, since its parser refuses its log: a value is" in said
    assert "cell failed" not in said


@pytest.mark.parametrize(("second", "words"), [(None, "a value is not positive"), ("fails", "exit code 1")])
def test_what_is_no_better_is_a_failed_cell_and_named(results, capsys, second, words):
    lab = Lab([CELL], {CELL: second})
    lab.accept()
    assert lab.measured == [CELL]
    assert len(there(results)) == 10
    told = json.loads((results / "failed/docker/stream/2.json").read_text())
    assert told["refused"] is True
    assert words in told["error"]
    said = capsys.readouterr().err
    assert "cell failed: docker · stream · repetition 2: " in said
    assert f"rerun: {run.again('results/raw/docker/stream/2.log')}" in said
    assert (results / "failed/docker/stream/2.log").exists()
    # It stays left out, and nobody asks for it again by himself.
    lab.accept()
    assert lab.measured == [CELL]


def test_a_log_that_was_taken_once_is_never_moved_though_its_parser_has_changed(results):
    Lab([]).accept()
    before, lab = there(results), Lab([CELL, OTHER])
    lab.accept()
    assert (lab.read, lab.measured, there(results)) == ([], [], before)


def test_a_parser_that_refuses_all_logs_is_to_be_mended_and_no_cell_fails(results):
    before = there(results)
    lab = Lab(judge.measured(sets.Order(plan.read_checked()).cells()))
    with pytest.raises(UserError, match=r"workloads/stream/parse\.R refuses all 6 logs"):
        lab.accept()
    assert (lab.measured, there(results)) == ([], before)


def test_what_is_damaged_of_its_notes_is_read_again(results):
    Lab([]).accept()
    for content in ("[]", '{"taken": 3}', "", '{"taken": {}, "refused": 7}', '{"refused": [[1]], "run": {}}'):
        Path(accept.state_path("stream")).write_text(content)
        assert accept.refused_by("stream", {}) == set()
        lab = Lab([])
        lab.accept()
        assert [len(cells) for cells in lab.read] == [6]


def test_a_record_that_is_not_good_stops_the_tables_and_says_what_to_do(results):
    path = results / "raw/native/stream/1.json"
    path.write_text(path.read_text().replace('"seed": ', '"seed": 1'))
    before = there(results)
    with pytest.raises(UserError, match=r"results/raw/native/stream/1\.json: its seed is") as raised:
        Lab([]).accept()
    assert "remove what is not as it was measured" in str(raised.value)
    assert there(results) == before


def test_in_a_partial_paper_it_is_a_failed_cell(results, capsys):
    path = results / "raw/native/stream/1.json"
    path.write_text(path.read_text().replace('"seed": ', '"seed": 1'))
    (results / "raw/docker/stream/1.json").write_text("{")
    lab = Lab([CELL])
    lab.accept(partial=True)
    assert lab.measured == []
    failed = {name: json.loads((results / "failed" / name).read_text()) for name in there(results, "failed")
              if name.endswith("json")}  # fmt: skip
    assert {name: told["refused"] for name, told in failed.items()} == {
        "docker/stream/1.json": True,
        "docker/stream/2.json": True,
        "native/stream/1.json": True,
    }
    assert "its seed is" in failed["native/stream/1.json"]["error"]
    assert "is not JSON" in failed["docker/stream/1.json"]["error"]
    assert len(there(results)) == 6
    assert "cell failed: native · stream · repetition 1: results/raw/native/stream/1.json: its seed" in (
        capsys.readouterr().err
    )
