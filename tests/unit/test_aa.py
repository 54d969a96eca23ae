"""The A/A test: two names of one environment are seldom called different, a braked one is."""

import subprocess

import measured
import projects

from strata.results import tidy


def test_equal_environments_are_seldom_called_different_and_braked_ones_are(tmp_path, monkeypatch):
    config = measured.page(repetitions=10)
    native = config["environments"]["native"]
    config["environments"] = {"native": native, "native-again": {**native, "label": "Native again"}}
    for percent in (2, 5):
        config["environments"][f"braked-{percent}"] = {
            "label": f"Native, braked by {percent} %",
            "layers": ["chroot", {"brake": {"share": percent / 100}}],
        }
        monkeypatch.setitem(measured.SLOWER, f"braked-{percent}", 1 / (1 - percent / 100))
    folder = measured.project(tmp_path / "project", monkeypatch, config)
    tidy.write_tidy_tables()
    study = [str(projects.ROOT / "studies/aa.R"), str(tmp_path), str(folder)]
    subprocess.run(study, check=True, cwd=projects.ROOT)
    rows = projects.table(tmp_path / "measured.csv")
    # STREAM's four metrics and the rate of Linpack.
    assert {row["comparisons"] for row in rows} == {"5"}
    blocks = {row["taken"]: row for row in rows if row["comparison"] == "in blocks"}
    assert float(blocks["0"]["share"]) < 0.5
    # A loss of 5 % is found as often as the widths promise; one of 2 %, the margin, seldom.
    assert [float(blocks[taken]["beyond"]) for taken in ("0", "0.05")] == [0, 1]
    assert float(blocks["0.05"]["promised"]) > 0.95
    assert float(blocks["0.02"]["beyond"]) <= 0.4
