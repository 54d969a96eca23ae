"""Trees are removed whole, and nothing else with them; files are read with root's rights."""

import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import projects
import pytest

from strata.util import files, programs, trees
from strata.util.errors import UserError


def tree(folder, count):
    (folder / "a/b").mkdir(parents=True)
    for number in range(count):
        (folder / "a/b" / str(number)).write_text("x")
    return folder


def test_the_targets_of_links_stay(tmp_path):
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


@pytest.mark.parametrize("lasting", [True, False])
def test_a_lasting_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch, lasting):
    events = []
    sync, replace = os.fsync, os.replace

    def note_sync(descriptor):
        events.append(os.path.realpath(os.readlink(f"/proc/self/fd/{descriptor}")))
        sync(descriptor)

    def note_replace(*names):
        events.append("named")
        replace(*names)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_replace)
    files.write_json(str(tmp_path / "a/x.json"), {}, lasting=lasting)
    [written] = [event for event in events if event.endswith(".part")] or [None]
    assert events == ([written, "named", str(tmp_path / "a")] if lasting else ["named"])


# Shell scripts that mount something in the tree "$2" (a/b/file, file); "$1" is a precious folder.
MOUNTS = {
    "of the same file system": 'mount --bind "$1" "$2/a"',
    "of another one": 'mount -t tmpfs none "$2/a"; touch "$2/a/x"',
    "of itself": 'mount --bind "$2" "$2"',
    "on the whole": 'mount --bind "$1" "$2"',
    "on a file": 'mount --bind "$1/kept" "$2/file"',
    "within another": 'mount --bind "$1" "$2/a"; mount --bind "$1" "$2/a/deep"',
    "below others": 'mount --bind "$1" "$2/a/b"; mount -t tmpfs none "$2/a"; '
    'mount --bind "$1" "$2/a"',
    # Under systemd all mounts are shared, and /dev is bound recursively into a tree.
    "shared with its place": 'mount --bind "$1" "$1"; mount --make-shared "$1"; '
    'mount -t tmpfs none "$1/deep"; touch "$1/deep/kept"; mount --rbind "$1" "$2/a"',
}
NAMES = [
    b"plain", b"a b\tc", b"new\nline", b"back\\slash", rb"\040", "h\u00f6m\u00e9".encode(),
    "ho\u0308me\u0301".encode(),
    b"\xff\xfe", b"x//deleted", b"-rf", b"*", b"..a", b"$(x)`", b"\x01\x1b[2J",
]  # fmt: skip
# Exits with 77 if something is gone from the precious folder.
REMOVE = """
mounts=$1 program=$2 option=$3 path=$4; shift 4
eval "$mounts"
shared=$(mountpoint -q "$1" && echo yes || true)
status=0
"$program" -I -S "$0" $option "$path" || status=$?
[ -e "$1/kept" ] && [ -d "$1/deep" ] && { [ -z "$shared" ] || [ -e "$1/deep/kept" ]; } || exit 77
exit $status
"""


def remove_in_a_namespace(folder, name, mounts, option="--unmount", path=b""):
    """Remove a tree with mounts; return the exit code, the files left, and whether it exists."""
    kept, tree = folder + b"/precious", folder + b"/" + name
    os.makedirs(kept + b"/deep")
    os.makedirs(tree + b"/a/b")
    for file in (kept + b"/kept", tree + b"/file", tree + b"/a/b/file"):
        open(file, "w").close()
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", REMOVE, trees.__file__]
    argv += [mounts, sys.executable, option, path or tree, kept, tree]
    done = subprocess.run(argv, cwd=folder, capture_output=True, check=False)
    if b"unshare: " in done.stderr or b"mount: " in done.stderr:
        pytest.skip(os.fsdecode(done.stderr))
    left = [os.path.join(at, one) for at, _, names in os.walk(tree) for one in names]
    return done.returncode, len(left), os.path.lexists(tree)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
@pytest.mark.parametrize(
    ("name", "mounts"),
    [(b"tree", mounts) for mounts in MOUNTS]
    + [(name, "of the same file system") for name in NAMES],
)
def test_mounted_files_are_never_removed_with_a_tree(tmp_path, name, mounts):
    here = os.fsencode(tmp_path)
    if b"/" in name:
        os.makedirs(os.path.join(here, b"1", os.path.dirname(name)))
    assert remove_in_a_namespace(here + b"/1", name, MOUNTS[mounts], "--") == (1, 2, True)
    assert remove_in_a_namespace(here + b"/2", name, MOUNTS[mounts]) == (0, 0, False)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
@pytest.mark.parametrize("path", [b"link/tree", b"tree/", b"precious/../tree", b"./tree"])
def test_a_tree_is_the_same_by_whatever_path(tmp_path, path):
    (tmp_path / "link").symlink_to(".")
    mounts = MOUNTS["of the same file system"]
    assert remove_in_a_namespace(os.fsencode(tmp_path), b"tree", mounts, path=path) == (0, 0, False)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_a_mount_in_another_namespace_keeps_its_files(tmp_path):
    kept, folder = tree(tmp_path / "kept", 2), tree(tmp_path / "tree", 1)
    script = 'mount --bind "$1" "$2/a/b" && echo mounted && cat && ls "$1/a/b"'
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]
    argv += [kept, folder]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        if other.stdout.readline() != "mounted\n":
            pytest.skip("nothing can be mounted here")
        files.remove_tree(str(folder))
        assert not folder.exists()
        assert other.communicate()[0].split() == ["0", "1"]


def test_a_tree_of_any_depth_is_removed(tmp_path):
    here = os.open(tmp_path, os.O_PATH)
    for _ in range(1100):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_PATH, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    files.remove_tree(str(tmp_path / "d"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", ["", ".", "..", "/", "a/..", "a/."])
def test_a_path_without_a_name_in_a_folder_is_refused(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    os.mkdir("a")
    with pytest.raises(UserError):
        files.remove_tree(path)
    assert os.listdir(".") == ["a"]


def test_the_next_command_removes_the_temporary_folder_of_a_killed_one(tmp_path):
    script = (
        "import sys, time; from strata.util import programs\n"
        "with programs.create_temporary_folder('x', sys.argv[1]) as folder:\n"
        " print(folder, flush=True); time.sleep(60)"
    )
    argv = [sys.executable, "-c", script, tmp_path]
    with subprocess.Popen(argv, cwd=projects.ROOT, stdout=subprocess.PIPE, text=True) as command:
        folder = command.stdout.readline().strip()
        assert programs.remove_abandoned_folders(str(tmp_path)) == []
        assert os.path.isdir(folder)
        command.kill()
    with programs.create_temporary_folder("y", str(tmp_path)) as other:
        assert os.listdir(tmp_path) == [os.path.basename(other)]
    assert os.listdir(tmp_path) == []


# A stub that makes one file readable, as root's rights would; the file belongs to the caller.
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
            # A readable file needs no root.
            assert other.apply(files.read_text, [given[0][:1]]) == "1"
    finally:
        shutil.rmtree(folder)
