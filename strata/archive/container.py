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
_CHUNK = 1 << 20


def files_below(folder: str) -> list[str]:
    """Names of the regular files below a folder, relative to it, in the order of an archive (by bytes)."""
    found = []
    for where, _, names in os.walk(folder):
        found += [os.path.relpath(os.path.join(where, name), folder) for name in names]
    return sorted(found, key=lambda name: name.encode(errors="surrogateescape"))


def name_fault(name: str) -> str | None:
    """Why a name cannot stand in an archive; None where it can."""
    parts = name.split("/")
    if not name or name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return "is not a relative path"
    if ".." in parts:
        return "leaves the folder"
    if "" in parts or "." in parts:
        return "is not a plain path of a file"
    if "\\" in name or any(ord(sign) < 32 or ord(sign) == 127 or 0xD800 <= ord(sign) < 0xE000 for sign in name):
        return "holds a backslash or a control character"
    if len(name.encode()) > 1000 or any(len(part.encode()) > 250 for part in parts):
        return "is too long"
    return None


def _described(name: str, size: int, executable: bool) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, EPOCH)
    info.create_system = 3
    info.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    info.file_size = size
    return info


def pack(folder: str, out: str) -> None:
    """Write the archive of a folder's files to `out`, whole or not at all.

    Raises UserError where a name cannot stand in an archive or the file cannot be written.
    """
    names = files_below(folder)
    for name in names:
        fault = name_fault(name)
        if fault:
            raise UserError(f"{name!r} cannot be archived: its name {fault}; rename it")
    sibling = f"{out}.{os.getpid()}.part"
    try:
        os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
        with zipfile.ZipFile(sibling, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                path = os.path.join(folder, name)
                info = _described(name, os.path.getsize(path), os.access(path, os.X_OK) and _owner_runs(path))
                with open(path, "rb") as source, archive.open(info, "w") as target:
                    shutil.copyfileobj(source, target, _CHUNK)
        os.replace(sibling, out)
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror or error}") from None
    finally:
        if os.path.exists(sibling):
            os.unlink(sibling)


def _owner_runs(path: str) -> bool:
    return bool(os.stat(path).st_mode & stat.S_IXUSR)


def _member_fault(info: zipfile.ZipInfo) -> str | None:
    """Why a member must not be unpacked; None where it may."""
    # The reader cuts a name at a NUL byte; the name as it stands there counts.
    fault = name_fault(info.orig_filename)
    if fault:
        return f"its name {fault}"
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return f"it is {'a link' if kind == stat.S_IFLNK else 'a device or another special file'}, not a file"
    if info.flag_bits & 0x1:
        return "it is encrypted"
    return None


def _check_members(path: str, members: list[zipfile.ZipInfo]) -> None:
    """Refuse, before anything is written, members that are not safe to unpack.  Raises UserError."""
    seen: set[str] = set()
    folders: set[str] = set()
    for info in members:
        fault = _member_fault(info)
        if fault is None and info.filename in seen:
            fault = "it stands twice in the archive"
        if fault:
            raise UserError(f"{path}: {info.orig_filename!r}: {fault}; nothing was unpacked")
        seen.add(info.filename)
        parts = info.filename.split("/")
        folders |= {"/".join(parts[:count]) for count in range(1, len(parts))}
    both = sorted(seen & folders)
    if both:
        raise UserError(f"{path}: {both[0]!r}: it is a file and a folder at once; nothing was unpacked")
    total, room = sum(info.file_size for info in members), os.path.getsize(path)
    if total > MOST * room:
        raise UserError(
            f"{path}: its members claim {total:,} bytes, more than {MOST} times its {room:,}; nothing was unpacked"
        )


def unpack(path: str, folder: str) -> list[str]:
    """Unpack an archive into a folder that is there and empty; what was wrong with its members, a sentence each.

    Raises UserError, before anything is written, for what is no zip file, for links, devices, encrypted members,
    names that stand twice or leave the folder, and sizes that no archive has.
    """
    if not os.path.exists(path):
        raise UserError(f"{path}: there is no such file")
    if not os.path.isfile(path):
        raise UserError(f"{path}: is not a file; name an archive, or the folder of an unpacked one")
    found = []
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_members(path, members)
            for info in members:
                found += _extract(archive, info, os.path.join(folder, info.filename))
    except BROKEN as error:
        raise UserError(f"{path}: cannot be read as an archive: {error}") from None
    return found


def _extract(archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: str) -> list[str]:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        with open(target, "xb") as file, archive.open(info) as source:
            shutil.copyfileobj(source, file, _CHUNK)
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
        return [f"{info.filename}: it is broken in the archive: {error}"]
    finally:
        if os.path.exists(target):
            os.chmod(target, 0o755 if info.external_attr >> 16 & stat.S_IXUSR else 0o644)
    return []
