"""The set-up without rights or packages, and the commands of the Makefile."""

import os
import shutil
import subprocess
import sys

import projects
import pytest


@pytest.fixture
def poor(tmp_path):
    """Return the environment of a machine without apt, R and LaTeX."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "cut", "sort", "tr", "cat", "id", "env", "sed"):
        (tools / name).symlink_to(shutil.which(name))
    return {"PATH": str(tools), "HOME": str(tmp_path)}


@pytest.mark.parametrize(("purpose", "more"), [("run", True), ("paper", False)])
def test_without_apt_the_missing_programs_are_listed(poor, purpose, more):
    script = os.path.join(projects.ROOT, "scripts/setup.sh")
    done = subprocess.run([script, purpose], env=poor, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "this distribution has no apt; install" in done.stderr
    for line in ("Rscript   (Debian: r-base-core)", "r:ggplot2   (Debian: r-cran-ggplot2)"):
        assert line in done.stderr
    # A paper of what is measured needs no Docker.
    for tool in ("docker", "packer   (Debian: packer)", "mmdebstrap", "qemu"):
        assert (tool in done.stderr) is more
    assert "shellcheck" not in done.stderr


@pytest.mark.parametrize("target", ["paper", "archive", "summary", "plan"])
def test_make_passes_a_configuration_file_and_checks_it_first(target):
    def commands(*words):
        argv = ["make", "--dry-run", "--no-print-directory", target, *words]
        lines = subprocess.check_output(argv, cwd=projects.ROOT, text=True).splitlines()
        return [line for line in lines if "setup.sh" not in line]

    assert not [line for line in commands() if "--configfile" in line]
    assert all("--configfile a.yaml" in line for line in commands("CONFIG=a.yaml"))
    # Snakemake would name neither file nor line of a mistake.
    assert ("strata check" in commands()[0]) is (target != "plan")


def test_the_installed_command_works_in_any_folder_and_without_a_network(tmp_path):
    python = projects.beside(tmp_path / "venv")
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", *options]
    subprocess.run([*install, "--editable", str(projects.ROOT)], check=True)
    missing = f"config.yaml: missing in {tmp_path}: go to the folder of a project"
    for command, folder, message, status in (
        ("--help", tmp_path, "usage: strata", 0),
        ("plan", projects.ROOT, "cells are due", 0),
        ("plan", tmp_path, missing, 1),
    ):
        argv = [str(python.parent / "strata"), command]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == status
        assert message in done.stdout + done.stderr
