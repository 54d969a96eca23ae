"""Which of the project's files go into an archive."""

import os
import subprocess

import pytest

from strata.archive import source


def git(folder, *words):
    identity = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.org"]
    done = subprocess.run(["git", "-C", folder, *identity, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    (root / "rules").mkdir(parents=True)
    (root / "Snakefile").write_text("rule all:\n")
    (root / "rules/a.smk").write_text("x\n")
    (root / ".gitignore").write_text("/results/\n")
    (root / "results").mkdir()
    (root / "results/plan.json").write_text("{}\n")
    return root


@pytest.fixture
def committed(project):
    git(project, "init", "--quiet")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "--message", "Begin")
    return project


def test_a_clean_tree_is_its_revision(committed):
    found = source.listing(str(committed))
    assert found.revision == git(committed, "rev-parse", "HEAD")
    assert found.files == [".gitignore", "Snakefile", "rules/a.smk"]
    assert found.changed == []


def test_a_changed_tree_says_what_differs(committed):
    (committed / "Snakefile").write_text("rule other:\n")
    (committed / "new workload.yaml").write_text("title: x\n")
    (committed / "rules/a.smk").unlink()
    found = source.listing(str(committed))
    assert found.files == [".gitignore", "Snakefile", "new workload.yaml"]
    assert found.changed == ["Snakefile", "new workload.yaml", "rules/a.smk"]


def test_without_git_all_is_taken_but_what_is_made(project):
    (project / "__pycache__").mkdir()
    (project / "__pycache__/a.pyc").write_bytes(b"x")
    (project / "archive.zip").write_bytes(b"x")
    (project / "archive-rebuilt").mkdir()
    (project / "archive-rebuilt/Snakefile").write_text("x")
    found = source.listing(str(project))
    assert found.revision is None
    assert found.files == [".gitignore", "Snakefile", "rules/a.smk"]


def test_a_folder_in_the_repository_of_something_else_is_not_taken_for_it(tmp_path, project):
    git(tmp_path, "init", "--quiet")
    found = source.listing(str(project))
    assert (found.revision, found.files) == (None, [".gitignore", "Snakefile", "rules/a.smk"])


@pytest.mark.parametrize("known", [True, False], ids=["git", "no git"])
def test_the_gallerys_archive_is_told_apart(project, known):
    """An archive does not hold it; that it was changed is said all the same."""
    (project / source.GALLERY).parent.mkdir(parents=True)
    (project / source.GALLERY).write_bytes(b"x")
    if known:
        git(project, "init", "--quiet")
        git(project, "add", ".")
        git(project, "commit", "--quiet", "--message", "Begin")
    found = source.listing(str(project))
    assert (found.apart, found.changed, found.left_out) == ([source.GALLERY], [], {})
    assert found.files == [".gitignore", "Snakefile", "rules/a.smk"]
    (project / source.GALLERY).write_bytes(b"y")
    assert source.listing(str(project)).changed == [source.GALLERY] * known


@pytest.mark.parametrize(
    "name", [".env", "id_rsa", "vm/private_key", "vm/key.pem", ".ssh/known_hosts", "credentials.json", ".netrc"]
)
def test_files_of_keys_are_left_out_and_told(committed, name):
    (committed / name).parent.mkdir(exist_ok=True)
    (committed / name).write_text("secret\n")
    git(committed, "add", "--force", name)
    found = source.listing(str(committed))
    assert name not in found.files
    assert "key or a password" in found.left_out[name]


def test_links_that_lead_out_are_left_out_and_told(committed):
    os.symlink("/etc/passwd", committed / "out")
    os.symlink("Snakefile", committed / "within")
    found = source.listing(str(committed))
    assert "within" in found.files
    assert "no file of the project" in found.left_out["out"]


def test_large_files_that_git_does_not_track_are_left_out_and_told(committed):
    with open(committed / "enwik9", "wb") as file:
        file.truncate(20_000_000)
    found = source.listing(str(committed))
    assert "enwik9" not in found.files
    assert "larger than 10 MB" in found.left_out["enwik9"]
