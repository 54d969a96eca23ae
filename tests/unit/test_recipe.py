"""The recipe of the image: which changes of files change it, and which do not."""

import shutil
import subprocess

import projects
import pytest
import yaml

from strata.experiment import recipe, workload


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """Return a copy of the files that make the image, in which the test runs."""
    for name in ("packer", "workloads"):
        shutil.copytree(projects.ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "strata.host.distribution.read_os_release",
        lambda: {"ID": "debian", "VERSION_CODENAME": "bookworm"},
    )
    workload.read_declaration.cache_clear()
    yield tmp_path
    workload.read_declaration.cache_clear()


def edit(path, old, new):
    """Replace a text in a file once."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    workload.read_declaration.cache_clear()


def test_comments_blank_lines_and_the_analysis_do_not_change_the_image(copy):
    before = recipe.describe_image({})
    edit(copy / "workloads/stream/src/stream.c", "/* First touch", "/* The first touch")
    edit(copy / "packer/provision.sh", "# Turns", "# This turns")
    edit(copy / "packer/image.pkr.hcl", "# The image", "\n# This is the image")
    edit(copy / "workloads/pxz/measure.sh", "# Usage:", "#\n# Usage:")
    (copy / "workloads/stream/parse.py").write_text(
        "def parse(lines, parameters):\n    return []\n"
    )
    (copy / "workloads/kit/logs.py").write_text("")
    (copy / "workloads/stream/README.md").write_text("STREAM\n")
    edit(copy / "workloads/stream/workload.yaml", "tiny: 5000000", "tiny: 10000000")
    assert recipe.describe_image({}) == before


# Files that editors, patches and Python leave in a workload's folder.
LEFTOVERS = [
    "notes.md",
    "build.sh~",
    "#build.sh#",
    ".build.sh.swp",
    "src/stream.c.orig",
    "__pycache__/x.pyc",
]


def test_a_clone_has_the_line_ends_of_the_commit_whatever_the_users_settings(tmp_path):
    attributes = tmp_path / "attributes"
    attributes.write_text("* text=auto eol=crlf\n")
    for number, settings in enumerate(
        (["core.autocrlf=true"], ["core.eol=crlf", f"core.attributesFile={attributes}"])
    ):
        folder = tmp_path / f"clone {number}"
        words = [word for setting in settings for word in ("--config", setting)]
        subprocess.run(
            ["git", "clone", "--quiet", "--shared", *words, projects.ROOT, folder], check=True
        )
        # Each line begins with i/ENDS of the commit and w/ENDS of the folder.
        listing = projects.git(folder, "ls-files", "--eol").splitlines()
        assert len(listing) > 100
        changed = []
        for line in listing:
            committed, checked_out = line.split()[:2]
            if committed.removeprefix("i/") != checked_out.removeprefix("w/"):
                changed.append(line)
        assert changed == []


def test_ignored_files_do_not_change_the_image_and_new_files_do(copy):
    plain = recipe.describe_image({}), recipe.list_image_files({})
    shutil.copy(projects.ROOT / ".gitignore", copy)
    projects.track(copy)
    assert (recipe.describe_image({}), recipe.list_image_files({})) == plain
    for path in [
        copy / "packer/.#base.sh",
        *(copy / "workloads/stream" / name for name in LEFTOVERS),
    ]:
        path.parent.mkdir(exist_ok=True)
        path.write_text("no program reads this\n")
    assert (recipe.describe_image({}), recipe.list_image_files({})) == plain
    (copy / "workloads/stream/extra.sh").write_text("true\n")
    assert recipe.list_image_files({}) == sorted([*plain[1], "workloads/stream/extra.sh"])


def test_a_repository_around_the_project_hides_none_of_its_files(copy, monkeypatch):
    before = recipe.list_image_files({})
    inner = copy / "inner"
    inner.mkdir()
    for name in ("packer", "workloads"):
        (copy / name).rename(inner / name)
    (copy / ".gitignore").write_text("*\n")
    projects.git(copy, "init", "--quiet")
    monkeypatch.chdir(inner)
    assert recipe.list_image_files({}) == before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("workloads/stream/src/stream.c", "SCALAR = 0.4", "SCALAR = 0.5"),
        ("workloads/common/strata.h", "<< 20", "<< 21"),
        ("workloads/pxz/measure.sh", "set -euo pipefail", "set -eu"),
        ("workloads/stream/build.sh", "-O3", "-O2"),
        ("packer/provision.sh", "/data", "/datum"),
    ],
)
def test_a_change_of_a_program_changes_the_image_but_not_its_base(copy, file, old, new):
    before = recipe.describe_image({})
    edit(copy / file, old, new)
    after = recipe.describe_image({})
    assert after["recipe"] != before["recipe"]
    assert after["base"] == before["base"]


def test_packages_release_and_a_new_workload_change_the_base(copy):
    before = recipe.describe_image({})
    assert recipe.describe_image({"release": "sid"})["base"] != before["base"]
    assert recipe.describe_image({"mirror": "file:///srv/debian"})["base"] != before["base"]
    declared = yaml.safe_load((copy / "workloads/stream/workload.yaml").read_text())
    projects.write_yaml(copy / "workloads/new/workload.yaml", {**declared, "packages": ["bc"]})
    assert recipe.describe_image({})["base"] != before["base"]


def test_an_optional_workload_changes_only_the_image_of_a_plan_that_has_it(copy):
    before, files = recipe.describe_image({}), recipe.list_image_files({})
    declared = yaml.safe_load((copy / "workloads/stream/workload.yaml").read_text())
    shutil.copytree(copy / "workloads/stream", copy / "workloads/new")
    projects.write_yaml(
        copy / "workloads/new/workload.yaml", {**declared, "packages": ["bc"], "image": "planned"}
    )
    assert recipe.describe_image({}) == recipe.describe_image({"workloads": ["stream"]}) == before
    assert recipe.list_image_files({}) == files
    holding = {"workloads": ["stream", "new"]}
    after = recipe.describe_image(holding)
    assert after["recipe"] != before["recipe"]
    assert after["base"] != before["base"]
    assert after["workloads"] == ["new"]
    assert "workloads/new/build.sh" in recipe.list_image_files(holding)
    assert "bc" in recipe.list_packages(holding)
