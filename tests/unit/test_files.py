"""Trees that are removed: whole, and nothing else with them; files that are read, root's among them."""

import multiprocessing
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from strata.base import files
from strata.base.errors import UserError


def tree(folder, count):
    (folder / "a/b").mkdir(parents=True)
    for number in range(count):
        (folder / "a/b" / str(number)).write_text("x")
    return folder


def test_what_links_lead_to_stays(tmp_path):
    kept = tree(tmp_path / "kept", 2)
    folder = tree(tmp_path / "tree", 1)
    (folder / "to-folder").symlink_to(kept)
    (folder / "a/to-file").symlink_to(kept / "a/b/0")
    (folder / "a/nowhere").symlink_to("nothing")
    files.remove_tree(str(folder))
    assert not folder.exists()
    files.remove_tree(str(folder))
    (tmp_path / "itself").symlink_to(kept)
    files.remove_tree(str(tmp_path / "itself"))
    assert not os.path.lexists(tmp_path / "itself")
    (tmp_path / "file").write_text("x")
    files.remove_tree(str(tmp_path / "file"))
    assert not (tmp_path / "file").exists()
    assert sorted(os.listdir(kept / "a/b")) == ["0", "1"]


def test_a_tree_in_which_something_is_mounted_stays(tmp_path, monkeypatch):
    folder = tree(tmp_path / "tree", 1)
    monkeypatch.setattr(files, "mounts_below", lambda _: [str(folder / "a")])
    with pytest.raises(UserError, match="is still mounted"):
        files.remove_tree(str(folder))
    assert (folder / "a/b/0").exists()


@pytest.mark.parametrize("lasting", [True, False])
def test_what_lasts_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch, lasting):
    done, sync, replace = [], os.fsync, os.replace

    def path(descriptor):
        return os.readlink(f"/proc/self/fd/{descriptor}")

    monkeypatch.setattr(os, "fsync", lambda one: (done.append(os.path.realpath(path(one))), sync(one)))
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("named"), replace(*names)))
    files.write_json(str(tmp_path / "a/x.json"), {}, lasting=lasting)
    [written] = [one for one in done if one.endswith(".part")] or [None]
    assert done == ([written, "named", str(tmp_path / "a")] if lasting else ["named"])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
def test_not_a_file_of_another_file_system_is_removed(tmp_path, monkeypatch):
    folder = tree(tmp_path / "tree", 1)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "none", str(folder / "a/b")], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(mounted.stderr.strip())
    try:
        (folder / "a/b/other").write_text("x")
        # As if it had been mounted right after it was looked for.
        monkeypatch.setattr(files, "mounts_below", lambda _: [])
        with pytest.raises(UserError):
            files.remove_tree(str(folder))
        assert (folder / "a/b/other").exists()
    finally:
        subprocess.run(["umount", str(folder / "a/b")], check=True)


# It lets its caller in to one file, as root's rights would; that belongs to the caller here.
SUDO = """#!/bin/sh
[ "$1 $2" = "-n --" ] || exit 1
shift 2
chmod u+r "$FILE" && exec "$@"
"""


def rights_of(user):
    os.setgid(user)
    os.setuid(user)


@pytest.mark.parametrize("may", [True, False])
def test_a_file_that_this_user_may_not_read_is_read_with_roots_rights(monkeypatch, may):
    user = os.geteuid() or 65534
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    for name, mode, content in (("own", 0o600, "1"), ("roots", 0, "2"), ("sudo", 0o755, SUDO)):
        (folder / name).write_text(content)
        (folder / name).chmod(mode)
        os.chown(folder / name, user, -1)
    monkeypatch.setenv("FILE", str(folder / "roots"))
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}" if may else "/nothing")
    try:
        with multiprocessing.get_context("fork").Pool(1, rights_of, [user]) as other:
            given = [[str(folder / name) for name in ("own", "roots")]]
            if may:
                assert other.apply(files.read_text, given) == "12"
            else:
                with pytest.raises(UserError, match="install sudo or run as root"):
                    other.apply(files.read_text, given)
            # Without root nobody is asked for it.
            assert other.apply(files.read_text, [given[0][:1]]) == "1"
    finally:
        shutil.rmtree(folder)
