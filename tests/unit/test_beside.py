"""The study that compares ``strata try`` with other tools, with invented measurements."""

import csv
import random
import sys

import projects
import pytest

sys.path.insert(0, str(projects.ROOT / "studies"))
import beside


def test_a_second_call_goes_on_and_the_table_counts_what_each_tool_found(
    tmp_path, monkeypatch, capsys
):
    chance = random.Random(1)

    def measure_pair(tool, program, pair, recipe, seconds):
        slow = 1.03 if pair == "brake" else 1
        sides = [[chance.gauss(side, 0.003) for _ in range(10)] for side in (1, slow)]
        return {"seconds": 60, **beside.compare_samples(tool, *sides)}

    monkeypatch.setattr(beside, "BASE", tmp_path)
    monkeypatch.setattr(beside, "prepare_project", lambda budget: "recipe")
    monkeypatch.setattr(beside, "has_gvisor", lambda: True)
    monkeypatch.setattr(beside, "measure_pair", measure_pair)
    for repetitions in (1, 4):
        argv = ["beside", "--programs", "xz", "--repetitions", str(repetitions)]
        monkeypatch.setattr(sys, "argv", argv)
        beside.main()
    with open(tmp_path / "runs.csv", newline="") as file:
        keys = [tuple(row[key] for key in beside.COLUMNS[:4]) for row in csv.DictReader(file)]
    assert len(keys) == len(set(keys)) == 4 * (3 * len(beside.TOOLS) + len(beside.GVISOR_TOOLS))
    with open(tmp_path / "table.csv", newline="") as file:
        rows = {(row["tool"], row["interval"]): row for row in csv.DictReader(file)}
    assert rows["ReBench's way", "Welch"]["brake of 3 % found"] == "4 of 4"
    assert rows["ReFrame's way", "own"]["twins called different"] == "0 of 4"
    assert rows["hyperfine", "own"]["minutes to ± 2 % by interval"] == "–"
    assert float(rows["hyperfine", "Welch"]["minutes to ± 2 % by interval"]) < 1
    assert (tmp_path / "table.md").read_text() in capsys.readouterr().out


@pytest.mark.parametrize(("scatter", "runs"), [(0.001, 3), (0.2, 15)])
def test_phoronix_rule_repeats_what_scatters_and_nothing_else(monkeypatch, scatter, runs):
    # Its deviation stays what it was, so that the rule uses all runs that it may.
    values = iter([1, 1 + scatter, 1 - scatter] * 9)

    def take(command, count):
        return [next(values) for _ in range(count)]

    monkeypatch.setattr(beside, "time_runs", take)
    assert len(beside.sample_by_phoronix_rule(["x"])) == runs
