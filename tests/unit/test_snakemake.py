"""What the project asks of Snakemake: its version, its scheduler, and what has no interface."""

import subprocess
import sys
import venv
from pathlib import Path
from types import SimpleNamespace

import projects
import pytest

from strata.base.errors import UserError
from strata.snakemake import insides

LIMITER = SimpleNamespace(timespan=1)


def inside(scheduler="strata", limiter=LIMITER):
    """A workflow of Snakemake's, as far as the project looks into it."""
    return SimpleNamespace(
        scheduling_settings=SimpleNamespace(scheduler=scheduler),
        scheduler=SimpleNamespace(job_rate_limiter=limiter),
        dag=SimpleNamespace(needrun_jobs=lambda: iter(["a job"])),
    )


@pytest.mark.parametrize("version", ["8.30.0", "9.16.3", "9.28.0", "10.0.0"])
def test_a_version_that_was_not_tried_is_refused_by_name(version):
    with pytest.raises(UserError, match=rf"this is Snakemake {version}, .* tried with 9\.17 to 9\.27; `make setup`"):
        insides.check_version(version)


def test_the_pinned_version_is_the_newest_of_the_range_the_tested_old_one_its_oldest_and_the_readme_says_both():
    for name, end in (("requirements.txt", insides.NEWEST), ("tests/oldest.txt", insides.OLDEST)):
        lines = (projects.ROOT / name).read_text().splitlines()
        [version] = [line.partition("==")[2] for line in lines if line.startswith("snakemake==")]
        insides.check_version(version)
        assert tuple(map(int, version.split(".")[:2])) == end
    oldest, newest = (".".join(map(str, end)) for end in (insides.OLDEST, insides.NEWEST))
    assert f"Snakemake {oldest} to {newest}" in (projects.ROOT / "README.md").read_text()


def test_the_limit_of_jobs_is_off_and_the_jobs_are_known():
    workflow = inside()
    insides.settle_scheduler(workflow, "9.27.1")
    assert workflow.scheduler.job_rate_limiter is None
    insides.settle_scheduler(inside(limiter=None), "9.27.1")
    assert insides.wanted(workflow, "9.27.1") == ["a job"]


@pytest.mark.parametrize(
    ("owner", "name", "asks"),
    [
        ("scheduling_settings", "scheduler", insides.settle_scheduler),
        ("scheduler", "job_rate_limiter", insides.settle_scheduler),
        ("dag", "needrun_jobs", insides.wanted),
    ],
)
def test_what_got_another_name_is_told_with_the_version(owner, name, asks):
    workflow = inside()
    vars(getattr(workflow, owner)).clear()
    with pytest.raises(UserError, match=rf"Snakemake 9\.27\.9 .* workflow\.{owner}\.{name} is not there"):
        asks(workflow, "9.27.9")


def test_a_limit_of_another_kind_is_told():
    with pytest.raises(UserError, match=r"job_rate_limiter\.timespan is not there"):
        insides.settle_scheduler(inside(limiter=SimpleNamespace(window=1)), "9.27.9")


def test_a_run_with_another_scheduler_ends_before_its_first_cell(project):
    folder = project()
    done = projects.run(folder, "snakemake", "--cores", "1", "--scheduler", "greedy", "--", "cells")
    assert done.returncode != 0
    assert "the scheduler is 'greedy', which does not keep to the order of the plan" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(folder.glob("results/raw/*/*/*"))


def test_a_version_out_of_range_ends_a_run_with_a_sentence_but_makes_archived_papers_again(project):
    folder = project()
    (folder / "sitecustomize.py").write_text("import snakemake\nsnakemake.__version__ = '9.99.1'\n")
    variables = {"PYTHONPATH": f"{folder}:{projects.ROOT}"}
    done = projects.run(folder, "snakemake", "--cores", "1", "--", "cells", **variables)
    assert done.returncode != 0
    assert "this is Snakemake 9.99.1, and the project was tried with" in done.stderr
    assert "Traceback" not in done.stderr
    projects.run(folder, "strata", "plan")
    done = projects.run(folder, "snakemake", "--list-rules", "--config", "rebuild=true", **variables)
    assert done.returncode == 0, done.stderr


def beside(folder):
    """A virtual environment that has the packages of the one that runs the tests, after its own; its Python."""
    venv.create(folder, symlinks=True)
    [place] = folder.glob("lib/python3*/site-packages")
    (place / "packages.pth").write_text("".join(f"{path}\n" for path in sys.path if path.endswith("site-packages")))
    return folder / "bin/python"


def test_the_command_of_a_set_up_clone_finds_the_scheduler_without_any_variable(project):
    folder = project()
    beside(folder / ".venv")
    command = folder / ".venv/bin/snakemake"
    lines = (Path(sys.executable).parent / "snakemake").read_text().splitlines(keepends=True)
    command.write_text(f"#!{folder}/.venv/bin/python\n" + "".join(lines[1:]))
    command.chmod(0o755)
    script = (projects.ROOT / "scripts/setup.sh").read_text()
    function = "show_scheduler" + script.partition("\nshow_scheduler")[2].partition("\n}")[0] + "\n}\nshow_scheduler"
    plain = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}

    def dry_run():
        words = [".venv/bin/snakemake", "--dry-run", "--quiet=rules", "--", "cells"]
        return subprocess.run(words, cwd=folder, env=plain, capture_output=True, text=True, check=False)

    assert "invalid choice: 'strata'" in dry_run().stderr
    subprocess.run(["bash", "-euo", "pipefail", "-c", function], cwd=folder, env=plain, check=True)
    done = dry_run()
    assert done.returncode == 0, done.stderr
    assert ["cell", "2"] in [line.split() for line in done.stdout.splitlines()]


@pytest.mark.long
def test_the_oldest_version_measures_in_the_planned_order_too(tmp_path):
    python = beside(tmp_path / "oldest")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--requirement", str(projects.ROOT / "tests/oldest.txt")], check=True)
    words = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/test_workflow.py", __file__]
    done = subprocess.run(
        words, cwd=projects.ROOT, env=projects.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    words = [str(python), "-m", "snakemake", "--version"]
    assert subprocess.check_output(words, text=True).startswith("9.17.")
