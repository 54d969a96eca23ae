"""Which of the project's files go into an archive."""

import os
import shutil

import pytest
from projects import git, track

from strata.archive import source
from strata.experiment import plan
from strata.util.errors import UserError


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
    return track(project, commit=True)


def test_a_clean_tree_is_its_revision(committed):
    listed = source.read_project_source(str(committed))
    assert listed.revision == git(committed, "rev-parse", "HEAD")
    assert listed.files == [".gitignore", "Snakefile", "rules/a.smk"]
    assert listed.changed == []


def test_a_changed_tree_says_what_differs(committed):
    (committed / "Snakefile").write_text("rule other:\n")
    (committed / "new workload.yaml").write_text("title: x\n")
    (committed / "rules/a.smk").unlink()
    listed = source.read_project_source(str(committed))
    assert listed.files == [".gitignore", "Snakefile"]
    assert listed.changed == ["Snakefile", "rules/a.smk"]
    assert listed.untracked == ["new workload.yaml"]
    assert plan.read_source_revision(str(committed))["changed"] is True


def test_files_of_other_experiments_are_not_untracked_ones(committed):
    for name in ("one", "two"):
        folder = committed / "try" / name
        folder.mkdir(parents=True)
        (folder / "Snakefile").symlink_to("../../Snakefile")
        (folder / ".gitignore").write_text("*\n!/.gitignore\n!/config.yaml\n!/files.tar\n")
        (folder / "config.yaml").write_text("title: x\n")
        (folder / "files.tar").write_text("x\n")
    (committed / "new").write_text("x\n")
    assert source.read_project_source(str(committed)).untracked == ["new"]
    assert source.read_project_source(str(committed / "try/one")).untracked == ["files.tar", "new"]


def test_what_git_does_not_know_is_no_change(committed):
    (committed / "new").write_text("x\n")
    assert source.read_project_source(str(committed)).changed == []
    assert plan.read_source_revision(str(committed)) == {
        "revision": git(committed, "rev-parse", "HEAD"),
        "changed": False,
    }


@pytest.mark.parametrize("repository", [True, False])
def test_a_folder_that_git_does_not_know_is_refused(tmp_path, project, repository):
    """Another project's repository around it does not track it, and needs no second one inside."""
    if repository:
        (tmp_path / "notes").write_text("x\n")
        track(tmp_path, commit=True)
        git(tmp_path, "rm", "--quiet", "-r", "--cached", "project")
        git(tmp_path, "commit", "--quiet", "--message", "Notes alone")
    with pytest.raises(UserError) as caught:
        source.read_project_source(str(project))
    assert ("git init" in str(caught.value)) is not repository
    assert plan.read_source_revision(str(project)) == {"revision": None, "changed": None}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_repository_that_belongs_to_somebody_else_is_read(committed):
    for path in (committed, *committed.rglob("*")):
        os.chown(path, 12345, 12345)
    revision = plan.read_source_revision(str(committed))["revision"]
    assert revision == source.read_project_source(str(committed)).revision is not None
    assert source.read_commit(str(committed), revision) is not None


def test_where_git_refuses_its_own_words_are_said(committed, capsys):
    (committed / ".git/HEAD").write_text("nothing\n")
    with pytest.raises(UserError, match="git says: fatal: ") as caught:
        source.read_project_source(str(committed))
    assert "git init" not in str(caught.value)
    assert plan.read_source_revision(str(committed))["revision"] is None
    assert "fatal: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "key", ["core.autocrlf=true", "core.fsmonitor=false; exit 1", "diff.external=false"]
)
def test_no_setting_of_the_user_makes_a_change(committed, monkeypatch, tmp_path, key):
    name, _, text = key.partition("=")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    git(committed, "config", "--global", name, text)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    (committed / "Snakefile").touch()
    assert plan.read_source_revision(str(committed))["changed"] is False
    assert source.read_project_source(str(committed)).changed == []


def test_a_link_is_refused_by_name(committed):
    os.symlink("Snakefile", committed / "within")
    git(committed, "add", ".")
    with pytest.raises(UserError, match="within: "):
        source.read_project_source(str(committed))


def test_a_folder_has_the_tree_of_its_commit_whatever_it_says_to_git(committed, monkeypatch):
    """Its names sort otherwise with a slash, and its attributes would have git change bytes."""
    for name in ("a/x", "a.c", "a-b", "ab/c/d", "ä", "empty"):
        (committed / name).parent.mkdir(parents=True, exist_ok=True)
        (committed / name).write_text("" if name == "empty" else f"{name}\n")
    (committed / "a.c").chmod(0o755)
    (committed / "bytes").write_bytes(bytes(range(256)))
    git(committed, "add", ".")
    git(committed, "commit", "--quiet", "--message", "More")
    revision = git(committed, "rev-parse", "HEAD")
    copy = committed.parent / "copy"
    copy.mkdir()
    for name in source.read_project_source(str(committed)).files:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(committed / name, copy / name)
    monkeypatch.setenv("GIT_INDEX_FILE", str(committed.parent / "other"))
    monkeypatch.setenv("GIT_DIR", str(committed.parent / "nowhere"))
    tree = source.read_tree(str(copy))
    monkeypatch.undo()
    assert tree == source.read_commit(str(committed), revision)
    assert tree.swhid == f"swh:1:dir:{git(committed, 'rev-parse', 'HEAD^{tree}')}"
    assert tree.files["a.c"] == ("100755", source.hash_blob(str(copy / "a.c")))
    for name in ("0a" * 20, "HEAD", None):
        assert source.read_commit(str(committed), name) is None
    (copy / ".gitattributes").write_text("* text=auto eol=crlf ident\n")
    (copy / "lines").write_bytes(b"a\r\n$Id$\n")
    assert source.read_tree(str(copy)).files["lines"][1] == source.hash_blob(str(copy / "lines"))
    assert source.read_tree(str(copy)).id != tree.id
