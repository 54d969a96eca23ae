"""The unit tests with Debian 13's programs, above all Python and R: natively, in a chroot."""

import subprocess

import pytest

from rig import host, root

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


def run(command):
    argv = root.natively(root.host_disk(), host.PROJECT, command)
    return subprocess.run(argv, capture_output=True, text=True, timeout=3500, check=False)


def test_what_the_setup_installed_is_all_that_is_asked_for():
    found = run(
        "printf '#!/bin/sh\\n' >scripts/dockerd.sh && scripts/setup.sh test && "
        "packer --version && docker --version"
    )
    assert found.returncode == 0, found.stderr
    assert "installing" not in found.stderr
    assert "Docker version 2" in found.stdout


def test_the_unit_tests_of_python_pass():
    found = run("python -m pytest -q -n 2 --dist worksteal tests/unit")
    assert found.returncode == 0, found.stdout[-5000:]


def test_the_unit_tests_of_the_analysis_pass():
    found = run("Rscript -e 'testthat::test_dir(\"analysis/tests/tables\")'")
    assert found.returncode == 0, found.stdout[-5000:]
