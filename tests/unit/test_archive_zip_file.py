"""The file of an archive has equal bytes for equal contents, and is safe to unpack."""

import errno
import os
import stat
import zipfile

import pytest

from strata.archive import zip_file
from strata.util.errors import MachineError, UserError

FILE = stat.S_IFREG | 0o644


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "contents"
    (root / "b").mkdir(parents=True)
    (root / "b/two.sh").write_text("#!/bin/sh\n")
    (root / "b/two.sh").chmod(0o755)
    (root / "a.txt").write_bytes(b"\0binary\xff")
    (root / "empty").write_bytes(b"")
    (root / "späße.txt").write_text("ß\n")
    return root


@pytest.fixture
def packed(folder, tmp_path):
    path = tmp_path / "x.zip"
    zip_file.pack_folder(str(folder), str(path))
    return path


def unpack(path, tmp_path):
    target = tmp_path / "unpacked"
    target.mkdir()
    zip_file.unpack_archive(str(path), str(target))
    return target


def test_what_is_packed_is_unpacked(folder, packed, tmp_path):
    target = unpack(packed, tmp_path)
    names = zip_file.list_files(str(folder))
    assert zip_file.list_files(str(target)) == names == ["a.txt", "b/two.sh", "empty", "späße.txt"]
    assert all((target / name).read_bytes() == (folder / name).read_bytes() for name in names)
    assert os.access(target / "b/two.sh", os.X_OK)


def test_the_same_contents_are_the_same_bytes_whenever_and_by_whomever_they_are_packed(
    folder, packed, tmp_path
):
    again = tmp_path / "again.zip"
    os.utime(folder / "a.txt", (1, 1))
    (folder / "a.txt").chmod(0o600)
    old = os.umask(0o077)
    try:
        zip_file.pack_folder(str(folder), str(again))
    finally:
        os.umask(old)
    assert again.read_bytes() == packed.read_bytes()


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    "member",
    [
        *(
            (name, b"x", FILE)
            for name in ("/etc/passwd", "../outside", "a/../../b", "a//b", "./a", "a\\b", "good")
        ),
        *(
            ("a", b"/etc/passwd", kind | 0o777)
            for kind in (stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO)
        ),
        ("a", b"0" * 50_000_000, FILE),
        # As a folder that holds something, and as a file where others need a folder.
        *(("a/", b"x", kind | 0o755) for kind in (0, stat.S_IFDIR)),
        *((name, b"", stat.S_IFDIR | 0o755) for name in ("../", "/", "a//")),
        ("good/b", b"x", FILE),
        ("a" * 300, b"x", FILE),
    ],
)
def test_what_no_archive_has_is_refused_before_anything_is_unpacked(tmp_path, member):
    path = tmp_path / "bad.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, mode in (("good", b"x", FILE), member):
            info = zipfile.ZipInfo("placeholder")
            info.filename, info.external_attr, info.compress_type = (
                name,
                mode << 16,
                zipfile.ZIP_DEFLATED,
            )
            archive.writestr(info, content)
    with pytest.raises(UserError, match=r"bad\.zip: .*nothing was unpacked"):
        unpack(path, tmp_path)
    assert not list((tmp_path / "unpacked").iterdir())


@pytest.mark.parametrize("mode", [0, stat.S_IFDIR | 0o755])
def test_entries_of_folders_that_other_packers_add_are_left_out(folder, packed, tmp_path, mode):
    again = tmp_path / "again.zip"
    with zipfile.ZipFile(packed) as before, zipfile.ZipFile(again, "w") as after:
        for name in ("b/", "empty-folder/"):
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            after.writestr(info, b"")
        for name in before.namelist():
            after.writestr(name, before.read(name))
    target = unpack(again, tmp_path)
    assert zip_file.list_files(str(target)) == zip_file.list_files(str(folder))


def test_a_disk_that_is_full_is_no_fault_of_the_file(packed, tmp_path, monkeypatch):
    def full(*words, **more):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "makedirs", full)
    with pytest.raises(MachineError, match="No space left on device"):
        unpack(packed, tmp_path)


@pytest.mark.parametrize("content", [None, b"", b"no zip", b"PK\x03\x04" + b"\0" * 40])
def test_what_is_no_archive_is_an_error_that_says_so(tmp_path, content):
    path = tmp_path / "bad.zip"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=r"bad\.zip"):
        unpack(path, tmp_path)
