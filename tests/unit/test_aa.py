"""The A/A test: two names of one environment are seldom called different in our order, and often in the naive one."""

import csv
import subprocess

import measured
import projects

from strata.results import tidy


def table(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def test_our_order_seldom_calls_the_same_different_and_the_naive_one_often(tmp_path, monkeypatch):
    page = measured.page(repetitions=10)
    native = page["environments"]["native"]
    page["environments"] = {"native": native, "native-again": {**native, "label": "Native again"}}
    folder = measured.project(tmp_path / "project", monkeypatch, page)
    tidy.make()
    study = [str(projects.ROOT / "studies/aa.R"), str(tmp_path), str(folder)]
    subprocess.run(study, check=True, cwd=projects.ROOT)
    rows = table(tmp_path / "measured.csv")
    told = {(row["order"], row["comparison"]): row for row in rows if row["loss"] == "0"}
    # STREAM's four metrics and the rate of Linpack.
    assert {row["comparisons"] for row in rows} == {"5"}
    assert float(told["blocks", "in blocks"]["share"]) < 0.5
    # A loss of 5 % that is put into one name is found, one at the margin seldom.
    beyond = {row["loss"]: float(row["beyond"]) for row in rows if row["comparison"] == "in blocks"}
    assert (beyond["0"], beyond["0.05"]) == (0, 1)
    assert beyond["0.02"] <= 0.4
