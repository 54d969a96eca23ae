"""The bench as a whole: real Snakemake and real parsers."""

import bench


def test_the_bench_runs_from_the_first_cell_to_its_table(tmp_path, capsys):
    words = ["--cells", "1,3", "--dry", "3", "--logs", "4", "--rounds", "1", "--to", str(tmp_path / "bench.csv")]
    bench.main(words)
    assert "| cells | shell loop | 3 |" in capsys.readouterr().out
    themes = [line.partition(",")[0] for line in (tmp_path / "bench.csv").read_text().splitlines()]
    assert themes == ["theme", *["cells"] * 8, "rerun", "dry run", "dry run", "tidy", "tables"]
