"""The file of an archive: a zip without times or owners, and its careful unpacking."""

import os
import re
import shutil
import stat
import zipfile
import zlib

from strata.base.errors import UserError

# What a reader of zip files raises over bytes that are not one.
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
    OSError,
)
EPOCH = (1980, 1, 1, 0, 0, 0)
# Logs and tables pack to a tenth; what unpacks to more than this many times its size is no archive.
MOST = 100


def files_below(folder: str) -> list[str]:
    """Names of the files below a folder, relative to it, in the order of an archive (by bytes)."""
    found = []
    for where, _, names in os.walk(folder):
        found += [os.path.relpath(os.path.join(where, name), folder) for name in names]
    return sorted(found, key=lambda name: name.encode(errors="surrogateescape"))


def name_fault(name: str) -> str | None:
    """Why a name cannot stand in an archive; None where it can."""
    if re.search(r"[\\\x00-\x1f\x7f\ud800-\udfff]", name):
        return "holds a backslash or a control character"
    if name.startswith("/") or re.match(r"[A-Za-z]:", name) or ".." in name.split("/"):
        return "leaves the folder"
    return None if name == os.path.normpath(name) else "is not a plain path of a file"


def pack(folder: str, out: str) -> None:
    """Write the archive of a folder's files to `out`, whole or not at all.

    Raises UserError where a name cannot stand in an archive or the file cannot be written.
    """
    names = files_below(folder)
    for name in names:
        if fault := name_fault(name):
            raise UserError(f"{name!r} cannot be archived: its name {fault}; rename it")
    sibling = f"{out}.{os.getpid()}.part"
    try:
        os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
        with zipfile.ZipFile(sibling, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                path = os.path.join(folder, name)
                about, info = os.stat(path), zipfile.ZipInfo(name, EPOCH)
                info.create_system = 3
                info.external_attr = (stat.S_IFREG | (0o755 if about.st_mode & stat.S_IXUSR else 0o644)) << 16
                info.compress_type = zipfile.ZIP_DEFLATED
                info.file_size = about.st_size
                with open(path, "rb") as source, archive.open(info, "w") as target:
                    shutil.copyfileobj(source, target)
        os.replace(sibling, out)
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror or error}") from None
    finally:
        if os.path.exists(sibling):
            os.unlink(sibling)


def unpack(path: str, folder: str) -> None:
    """Unpack an archive into a folder that is there and empty.

    Raises UserError for what is no zip file or is broken in it, and, before anything is written, for links, devices,
    names that leave the folder, and sizes that no archive has.
    """
    if not os.path.isfile(path):
        raise UserError(f"{path}: there is no such file")
    try:
        with zipfile.ZipFile(path) as archive:
            _check_members(path, archive.infolist())
            for info in archive.infolist():
                target = os.path.join(folder, info.filename)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with open(target, "xb") as file, archive.open(info) as source:
                    shutil.copyfileobj(source, file)
                os.chmod(target, 0o755 if info.external_attr >> 16 & stat.S_IXUSR else 0o644)
    except BROKEN as error:
        raise UserError(f"{path}: cannot be read as an archive: {error}") from None


def _check_members(path: str, members: list[zipfile.ZipInfo]) -> None:
    for info in members:
        # The reader cuts a name at a NUL byte; the name as it stands there counts.
        if fault := name_fault(info.orig_filename):
            raise UserError(f"{path}: {info.orig_filename!r}: its name {fault}; nothing was unpacked")
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            raise UserError(
                f"{path}: {info.orig_filename!r}: it is a link or a special file, not a file; nothing was unpacked"
            )
    total, room = sum(info.file_size for info in members), os.path.getsize(path)
    if total > MOST * room:
        raise UserError(
            f"{path}: its members claim {total:,} bytes, more than {MOST} times its {room:,}; nothing was unpacked"
        )
