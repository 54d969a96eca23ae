"""What the set-up says where it cannot install anything."""

import os
import shutil
import subprocess

import projects
import pytest


@pytest.fixture
def poor(tmp_path):
    """A machine with little on it: no apt, no R, no LaTeX."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "cut", "sort", "tr", "cat", "id", "env", "sed"):
        (tools / name).symlink_to(shutil.which(name))
    return {"PATH": str(tools), "HOME": str(tmp_path)}


def test_without_apt_it_says_exactly_what_to_install(poor):
    script = os.path.join(projects.ROOT, "scripts/setup.sh")
    done = subprocess.run([script, "run"], env=poor, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "this distribution has no apt; install what gives these" in done.stderr
    for line in (
        "Rscript   (Debian: r-base-core)",
        "r:ggplot2   (Debian: r-cran-ggplot2)",
        "packer   (Debian: packer)",
    ):
        assert line in done.stderr
    assert "shellcheck" not in done.stderr


def test_what_is_there_is_not_asked_for(poor):
    for name in ("packer", "mmdebstrap"):
        (projects.Path(poor["PATH"]) / name).symlink_to("/bin/true")
    script = os.path.join(projects.ROOT, "scripts/setup.sh")
    done = subprocess.run([script, "test"], env=poor, capture_output=True, text=True, check=False)
    assert "packer" not in done.stderr
    assert "shellcheck   (Debian: shellcheck)" in done.stderr


def test_a_paper_of_what_is_measured_needs_no_docker(poor):
    script = os.path.join(projects.ROOT, "scripts/setup.sh")
    done = subprocess.run([script, "paper"], env=poor, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Rscript   (Debian: r-base-core)" in done.stderr
    for tool in ("docker", "packer", "mmdebstrap", "qemu", "shellcheck"):
        assert tool not in done.stderr


def test_every_package_is_named_for_something_that_shows_it():
    lines = open(os.path.join(projects.ROOT, "scripts/packages.txt")).read().splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    assert all(len(row) == 3 and row[0] in ("paper", "run", "test", "vm") for row in rows)
    assert len({row[1] for row in rows}) == len(rows)
