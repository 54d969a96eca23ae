"""The A/A test: two names of one environment are seldom called different, and a brake is found."""

import subprocess

import measured
import projects

from strata.results import tidy


def test_the_same_is_seldom_called_different_and_a_brake_is_found(tmp_path, monkeypatch):
    page = measured.page(repetitions=10)
    native = page["environments"]["native"]
    page["environments"] = {"native": native, "native-again": {**native, "label": "Native again"}}
    for percent in (2, 5):
        page["environments"][f"braked-{percent}"] = {
            "label": f"Native, braked by {percent} %",
            "layers": ["chroot", {"brake": {"share": percent / 100}}],
        }
        monkeypatch.setitem(measured.SLOWER, f"braked-{percent}", 1 / (1 - percent / 100))
    folder = measured.project(tmp_path / "project", monkeypatch, page)
    tidy.make()
    study = [str(projects.ROOT / "studies/aa.R"), str(tmp_path), str(folder)]
    subprocess.run(study, check=True, cwd=projects.ROOT)
    rows = projects.table(tmp_path / "measured.csv")
    # STREAM's four metrics and the rate of Linpack.
    assert {row["comparisons"] for row in rows} == {"5"}
    told = {row["taken"]: row for row in rows if row["comparison"] == "in blocks"}
    assert float(told["0"]["share"]) < 0.5
    # A share of 5 % that is taken is found, as often as the widths promise; one at the margin seldom beyond it.
    assert [float(told[taken]["beyond"]) for taken in ("0", "0.05")] == [0, 1]
    assert float(told["0.05"]["promised"]) > 0.95
    assert float(told["0.02"]["beyond"]) <= 0.4
