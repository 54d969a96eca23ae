"""The bench's own counting: what it says that commands spend, and what it makes of it."""

import subprocess
import sys

import pytest
from bench import cells, idle, installed, report, rows, spent, tools


@pytest.fixture
def home(tmp_path):
    return spent.environment(tmp_path / "home")


def burn(seconds):
    return f"import time\nwhile time.process_time() < {seconds}: pass\n"


def test_cpu_time_is_that_of_all_processes_and_of_those_left_behind(tmp_path, home):
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn(0.3)!r}])"
    left = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {burn(0.3)!r}], start_new_session=True)"
    for script in (burn(0.3), child, left):
        found = spent.run([sys.executable, "-c", script], tmp_path, home)
        assert 0.3 <= found.cpu < 0.9


def test_memory_is_that_of_the_largest_process(tmp_path, home):
    script = "print(len(b'x' * 200_000_000))"
    found = spent.run(["sh", "-c", f'"{sys.executable}" -c "{script}"; true'], tmp_path, home)
    assert 200e6 < found.peak < 400e6
    assert found.printed == "200000000\n"


def test_a_command_that_fails_is_told_with_its_words(tmp_path, home):
    with pytest.raises(spent.Failed, match="exit code 3\nso it is"):
        spent.run(["sh", "-c", "echo so it is; exit 3"], tmp_path, home)


def test_commands_do_not_inherit_what_would_change_them(tmp_path, monkeypatch):
    for name in ("MAKEFLAGS", "PYTHONDONTWRITEBYTECODE", "RFM_PREFIX", "STRATA_OWNER", "SNAKEMAKE_PROFILE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("LANG", "C.UTF-8")
    found = spent.environment(tmp_path / "home")
    assert not {"MAKEFLAGS", "PYTHONDONTWRITEBYTECODE", "RFM_PREFIX", "STRATA_OWNER", "SNAKEMAKE_PROFILE"} & set(found)
    assert found["LANG"] == "C.UTF-8"
    assert found["HOME"] == str(tmp_path / "home")


@pytest.mark.parametrize("tool", [tools.Make(), tools.Loop()], ids=lambda tool: tool.name)
def test_the_plain_tools_do_every_cell(tool, tmp_path, home):
    assert cells.measure(tool, tmp_path / "run", 3, home).cpu > 0
    assert sorted(path.read_text() for path in (tmp_path / "run/out").iterdir()) == ["7\n"] * 3


def test_cells_that_were_not_done_are_noticed(tmp_path, home, monkeypatch):
    monkeypatch.setattr(tools.Loop, "prepare", lambda self, folder, count: folder.mkdir() or ["mkdir", "out"])
    with pytest.raises(spent.Failed, match="shell loop did 0 of 3 cells"):
        cells.measure(tools.Loop(), tmp_path / "run", 3, home)


ASLEEP = "/bin/sleep 2.5125"


@pytest.mark.parametrize(
    ("controller", "least", "most"),
    [(f"{ASLEEP}; true", 0, 0.005), (f"while :; do :; done & {ASLEEP}; kill $!", 0.15, 1.1)],
    ids=["at rest", "busy"],
)
def test_what_runs_beside_a_sleeping_cell_is_counted(controller, least, most, tmp_path, home):
    running = spent.Running(["sh", "-c", controller], tmp_path, home)
    found = idle.watch("it", running, ASLEEP, looks=1.0, settles=0.2)
    running.finish()
    assert least <= found.share <= most
    assert found.seconds == pytest.approx(1.0, abs=0.5)


def test_a_cell_that_never_sleeps_is_noticed(tmp_path, home):
    running = spent.Running(["true"], tmp_path, home)
    with pytest.raises(spent.Failed, match="was not seen"):
        idle.watch("it", running, ASLEEP)
    running.finish()


def some(theme, tool, size, cpu, number=1, peak=0):
    return rows.Row(theme, tool, size, number, cpu, 2 * cpu, peak)


def test_tools_are_compared_round_by_round():
    found = report.Found(
        rows.Rows(
            [
                some("cells", "Strata", 10, 1.0, 1), some("cells", "ReFrame", 10, 2.0, 1),
                some("cells", "Strata", 10, 3.0, 2), some("cells", "ReFrame", 10, 4.0, 2),
                some("cells", "Strata", 10, 9.0, 3), some("cells", "Snakemake", 10, 0.5, 1),
            ]
        )
    )  # fmt: skip
    assert report.ratios(found, "ReFrame", 10) == [0.5, 0.75]
    assert report.extra(found, 10) == [50.0]


def test_growth_and_further_costs_leave_out_what_starting_takes():
    linear = rows.Rows(some("dry run", "Strata", size, 1 + size / 1000) for size in (100, 1000, 10000))
    assert report.growth(linear) == pytest.approx(1.1 / 2.0)
    assert report.further(linear) == pytest.approx(1.0)
    quadratic = rows.Rows(some("dry run", "Strata", size, size**2) for size in (100, 1000, 10000))
    assert report.growth(quadratic) == pytest.approx(10)
    assert report.growth(linear.sized(100)) is None


def test_targets_are_met_or_not_or_not_measured():
    found = report.Found(rows.Rows([some("rerun", "Strata", 10, 2.5), some("dry run", "Strata", 10000, 9.0)]))
    told = {target.what: target.line() for target in report.targets(found)}
    assert told["rerun of one cell"] == ["rerun of one cell", "2.5 s", "2 s", "no"]
    assert told["dry run of the greatest number"][1:] == ["9 s", "10 s", "yes"]
    assert told["memory for that number"][1:] == ["not measured", "1 GB", ""]


@pytest.mark.parametrize(
    ("stderr", "told"),
    [
        (
            "WARNING: slow\nERROR: No matching distribution found for it==1\n",
            "No matching distribution found for it==1",
        ),
        ("no such thing\n", "no such thing"),
    ],
)
def test_an_installation_that_fails_is_told_in_one_line(stderr, told):
    assert installed.reason(subprocess.CalledProcessError(1, ["pip"], stderr=stderr)) == told
