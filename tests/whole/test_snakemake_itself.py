"""What the project asks of Snakemake, in real runs: its version, its scheduler, and that bad input starts nothing."""

import json
import subprocess
import sys
from pathlib import Path

import projects
import pytest


def test_snakemake_shows_the_same_message_and_starts_nothing(project):
    folder = project(projects.on_host(scale="smok"))
    done = projects.run(folder, "snakemake", "--cores", "1")
    assert done.returncode != 0
    assert 'config.yaml: scale: is "smok"; must be one of smoke, quick, paper' in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "results").exists()


def test_a_page_that_is_laid_over_means_what_it_says(project):
    parameters = {"word": {"about": "A word", "schema": {"type": "string"}, "value": "a"}}
    said = {**projects.NOOP, "parameters": parameters, "run": [{"argv": ["/bin/echo", "{word}"], "timeout": 20}]}
    folder = project(workloads={"noop": said})
    for value, words in (("'0'", []), ("no", []), ("0", ["workloads.noop.word: is 0; must be text"])):
        (folder / "over.yaml").write_text(f"workloads: {{noop: {{word: {value}}}}}\n")
        done = projects.run(folder, "snakemake", "--dry-run", "--configfile", "over.yaml", "--config", "seed=3")
        said = done.stdout + done.stderr
        assert (done.returncode == 0) == (not words), said
        assert all(sentence in said for sentence in words)
        assert "Traceback" not in said


def test_claims_that_cannot_be_tested_are_refused_before_anything_starts(tmp_path):
    folder = projects.make(tmp_path / "p", projects.on_host(), {"noop": projects.NOOP}, copy=True)
    published = json.loads((folder / "published/claims.json").read_text())
    published["claims"][0]["tolerance"] = {"low": 2, "high": 1}
    (folder / "published/claims.json").write_text(json.dumps(published))
    done = projects.run(folder, "snakemake", "--cores", "1", "results/claims.csv")
    assert done.returncode != 0
    name = published["claims"][0]["id"]
    assert f"published/claims.json: claims.0.tolerance.high ({name}): is 1; must be at least low, 2" in done.stderr
    assert not (folder / "results").exists()


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


def test_the_command_of_a_set_up_clone_finds_the_scheduler_without_any_variable(project):
    folder = project()
    projects.beside(folder / ".venv")
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
    python = projects.beside(tmp_path / "oldest", projects.ROOT / "tests/oldest.txt")
    words = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/test_snakemake.py"]
    words += ["tests/whole/test_workflow.py", __file__]
    done = subprocess.run(
        words, cwd=projects.ROOT, env=projects.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    words = [str(python), "-m", "snakemake", "--version"]
    assert subprocess.check_output(words, text=True).startswith("9.17.")
