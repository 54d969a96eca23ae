"""The SWHID of a folder, held against git, and in an archive."""

import json
import os
import subprocess

import pytest

from strata.archive import check, guide, swhid


def git_tree(folder):
    """The tree that git makes of a folder."""

    def git(*words):
        return subprocess.run(
            ["git", "-c", "core.autocrlf=false", *words], cwd=folder, capture_output=True, text=True, check=True
        ).stdout.strip()

    git("init", "--quiet")
    git("add", "--all", "--force")
    tree = git("write-tree")
    subprocess.run(["rm", "-r", ".git"], cwd=folder, check=True)
    return f"swh:1:dir:{tree}"


@pytest.fixture
def folder(tmp_path):
    """Names whose order is another with and without a slash, a program, a link, and folders without files."""
    root = tmp_path / "source"
    for name in ("a/x", "a.c", "a-b", "ab/c/d", "ä", "empty"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("" if name == "empty" else f"{name}\n")
    (root / "a.c").chmod(0o755)
    (root / "link").symlink_to("a/x")
    (root / "bytes").write_bytes(bytes(range(256)))
    (root / "nothing/in/it").mkdir(parents=True)
    return root


def test_a_folder_has_the_hash_of_gits_tree(folder):
    assert swhid.of_folder(str(folder)) == git_tree(folder)


def test_its_bytes_count_whatever_it_says_to_git(folder, monkeypatch):
    """Of a folder that would have git change or ignore what is in it; the hash is that of plain bytes."""
    (folder / ".gitignore").write_text("*\n")
    (folder / ".gitattributes").write_text("* text=auto eol=crlf ident\n")
    (folder / "lines").write_bytes(b"a\r\n$Id$\n")
    monkeypatch.setenv("GIT_INDEX_FILE", str(folder.parent / "other"))
    monkeypatch.setenv("GIT_DIR", str(folder.parent / "nowhere"))
    assert swhid.of_folder(str(folder)) == "swh:1:dir:fdbef4a2a9b4f8ae882463c71c0074efec2df683"
    assert not (folder / ".git").exists()
    assert not (folder.parent / "other").exists()


def test_a_folder_without_files_is_gits_empty_tree(tmp_path):
    assert swhid.of_folder(str(tmp_path)) == "swh:1:dir:4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@pytest.mark.parametrize("change", ["content", "mode", "name", "added"])
def test_whatever_changes_changes_it(folder, change):
    before = swhid.of_folder(str(folder))
    path = folder / "a-b"
    if change == "content":
        path.write_text("other\n")
    elif change == "mode":
        path.chmod(0o755)
    elif change == "name":
        path.rename(folder / "a-c")
    else:
        (folder / "nothing/in/it/file").touch()
    assert swhid.of_folder(str(folder)) != before


def test_an_archive_whose_source_is_another_than_it_says_is_told(folder, tmp_path):
    def told(**source):
        (tmp_path / guide.FACTS).write_text(json.dumps({"source": {"revision": None, "changed": [], **source}}))
        return check._of_source(str(tmp_path))

    assert os.path.samefile(folder, tmp_path / "source")
    assert told(swhid=swhid.of_folder(str(folder))) == []
    [found] = told(swhid="swh:1:dir:" + "0" * 40)
    assert "archive.json: the SWHID of the source is swh:1:dir:000" in found
