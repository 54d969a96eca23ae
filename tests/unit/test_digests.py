"""Digests of files: what may be remembered of them, and what must be read again."""

import time

import projects
import pytest

from strata.results import digests, made


def test_a_file_that_was_not_touched_is_not_read_again(tmp_path, monkeypatch):
    file, memory = tmp_path / "file", str(tmp_path / "memory.json")
    file.write_text("1")
    monkeypatch.setattr(digests, "_SETTLED_NS", 0)
    known = digests.Digests(memory)
    first = known.of(str(file))
    known.save()
    read = []
    monkeypatch.setattr(digests, "of_file", lambda path: read.append(path) or "read")
    assert digests.Digests(memory).of(str(file)) == first
    assert not read
    projects.rewrite(file, lambda _: "2")
    assert digests.Digests(memory).of(str(file)) == "read"


def test_a_file_that_changed_just_now_is_not_trusted_by_its_times(tmp_path):
    file, memory = tmp_path / "file", tmp_path / "memory.json"
    file.write_text("1")
    known = digests.Digests(str(memory))
    known.of(str(file))
    known.save()
    assert not memory.exists()


@pytest.mark.parametrize("content", ["", "[]", '{"file": 1}', "\0"])
def test_a_memory_that_is_broken_is_none(tmp_path, content):
    (tmp_path / "memory.json").write_text(content)
    (tmp_path / "file").write_text("1")
    assert digests.Digests(str(tmp_path / "memory.json")).of(str(tmp_path / "file")) == digests.of_file(
        str(tmp_path / "file")
    )


def test_ten_times_the_cells_take_no_more_than_about_ten_times_as_long_to_look_through(tmp_path):
    def seconds(count):
        folder = tmp_path / str(count)
        cells = folder / "results/raw/bare/noop"
        cells.mkdir(parents=True)
        for number in range(1, count + 1):
            for kind in ("log", "json"):
                (cells / f"{number}.{kind}").write_text(f"{number}")
        plan = {
            "seed": 1, "order": "randomized", "repetitions": count, "environments": {"bare": {"available": True}},
            "workloads": {"noop": {}},
        }  # fmt: skip
        begun = time.process_time()
        state = made.State(plan, str(folder), str(projects.ROOT))
        for product in state.products().values():
            state.note(product)
        return time.process_time() - begun

    few = min(seconds(count) for count in (299, 300, 301))
    assert seconds(3000) < 25 * few


@pytest.mark.parametrize("damage", ["[" * 100_000, '{"x": 1}', '{"table": [1, 2, 3, 4, 5]}', "[]"])
def test_a_damaged_memory_of_digests_is_none(tmp_path, damage):
    memory = tmp_path / "digests.json"
    memory.write_text(damage)
    (tmp_path / "table").write_text("x")
    assert digests.Digests(str(memory)).of(str(tmp_path / "table")) == digests.of_file(str(tmp_path / "table"))
    assert digests._remembered(str(memory)) == {}
