"""The recipe of an Ubuntu image: its steps with an archive of stubs, and its messages.

Whether Ubuntu's own archive has these packages is not tested here.
"""

import json
import os
import re
import subprocess

import archive_of_stubs
import projects
import pytest

from strata.experiment import recipe
from strata.image import manifest

LONG = pytest.mark.long
UBUNTU = {"distribution": "ubuntu", "release": "noble"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The folder of an archive with all that the recipe asks for; the keys are beside it."""
    folder = tmp_path_factory.mktemp("ubuntu") / "archive"
    # `hello` is a workload's package, in the other component.
    names = {
        *recipe.MACHINE_PACKAGES,
        *recipe.BASE_PACKAGES,
        recipe.KERNELS["machines"]["ubuntu"],
        "base-files",
        "apt",
    }
    archive_of_stubs.make(folder, UBUNTU["release"], {"main": sorted(names), "universe": ["hello"]})
    return folder


@pytest.fixture
def build(tmp_path, archive, monkeypatch):
    """Run `strata image` in a project whose workload needs these packages, with or without keys."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    (tmp_path / "none").mkdir()

    def build(image, packages=("hello",), keys=True):
        work = {**projects.NOOP, "packages": list(packages)}
        folder = projects.make(tmp_path / "project", projects.on_host(image=image), {"noop": work})
        if not (folder / "workloads/common").exists():
            (folder / "workloads/common").symlink_to(projects.ROOT / "workloads/common")
        # In a view of the host's files of its own, in which the keys are the archive's.
        view = 'mount --bind "$0" /usr/share/keyrings && exec "$@"'
        held = archive.parent / "keyrings" if keys else tmp_path / "none"
        argv = [
            "unshare",
            "--mount",
            "sh",
            "-c",
            view,
            str(held),
            *projects.command("strata", "image"),
        ]
        return subprocess.run(
            argv,
            cwd=folder,
            env=projects.environment(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    yield build
    if (tmp_path / "project").exists():
        projects.good(tmp_path / "project", "strata", "clean", "--images")


def test_an_image_is_made_of_its_packages(build, archive, tmp_path, machine_stays):
    with archive_of_stubs.served(archive) as address:
        done = build({**UBUNTU, "mirror": address})
    assert done.returncode == 0, done.stderr
    [file] = (tmp_path / "home/images").glob("*/image.json")
    image = json.loads(file.read_text())
    assert UBUNTU.items() <= image.items()
    tree = os.path.join(file.parent, "tree")
    packages = manifest.list_packages(tree)
    assert {"linux-image-virtual", "hello", "systemd-sysv"} <= set(packages)
    # What the recipe's scripts made, and removed.
    assert os.path.exists(f"{tree}/opt/strata/bin/listen.so")
    assert os.path.exists(f"{tree}/etc/systemd/network/20-strata.network")
    assert not os.path.exists(f"{tree}/etc/apt/sources.list")


@pytest.mark.parametrize(
    ("image", "more", "said"),
    [
        (
            {"mirror": "http://127.0.0.1:1/ubuntu"},
            {},
            "from http://127.0.0.1:1/ubuntu .*\n.*E: .*Could not connect",
        ),
        pytest.param(
            {"release": "nosuch"},
            {},
            "E: .* nosuch Release' does not have a Release file",
            marks=LONG,
        ),
        pytest.param(
            {}, {"packages": ["nosuch"]}, "E: Unable to locate package nosuch\n$", marks=LONG
        ),
        (
            {},
            {"keys": False},
            "ubuntu-archive-keyring.gpg is missing.* install ubuntu-keyring",
        ),
    ],
    ids=["no archive", "no release", "no package", "no keys"],
)
def test_what_is_missing_is_named(build, archive, tmp_path, image, more, said):
    done = build({**UBUNTU, "mirror": f"file://{archive}", **image}, **more)
    assert done.returncode == 1
    assert re.search(said, done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "home/images").glob("*/image.json"))
