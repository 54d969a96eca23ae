"""The file of an archive: a zip without times or owners, and its careful unpacking."""

import os
import shutil
import stat
import zipfile

from strata.base.errors import UserError

EPOCH = (1980, 1, 1, 0, 0, 0)
# Logs and tables pack to a tenth; what unpacks to more than this many times its size is no archive.
MOST = 100


def files_below(folder: str) -> list[str]:
    """Names of the files below a folder, relative to it, in the order of an archive (by bytes)."""
    found = []
    for where, _, names in os.walk(folder):
        found += [os.path.relpath(os.path.join(where, name), folder) for name in names]
    return sorted(found, key=lambda name: name.encode(errors="surrogateescape"))


def pack(folder: str, out: str) -> None:
    """Write the archive of a folder's files to `out`, whole or not at all.

    Raises UserError where the file cannot be written.
    """
    sibling = f"{out}.{os.getpid()}.part"
    try:
        os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
        with zipfile.ZipFile(sibling, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in files_below(folder):
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

    Raises UserError for what is no zip file or is broken in it, and, before anything is written, for members that no
    archive has: links, names that lead elsewhere or stand twice, and sizes beyond all measure.
    """
    if not os.path.isfile(path):
        raise UserError(f"{path}: there is no such file")
    try:
        with zipfile.ZipFile(path) as archive:
            total, room = 0, os.path.getsize(path)
            seen: set[str] = set()
            for info in archive.infolist():
                name, kind = info.filename, stat.S_IFMT(info.external_attr >> 16)
                plain = name == os.path.normpath(name) and not name.startswith(("/", "..")) and "\\" not in name
                if not plain or name in seen or kind not in (0, stat.S_IFREG):
                    raise ValueError(f"{name!r} is a link, an odd name, or there twice; nothing was unpacked")
                seen.add(name)
                total += info.file_size
            if total > MOST * room:
                claim = f"its members claim {total:,} bytes, more than {MOST} times its {room:,}"
                raise ValueError(f"{claim}; nothing was unpacked")
            for info in archive.infolist():
                os.chmod(archive.extract(info, folder), 0o755 if info.external_attr >> 16 & stat.S_IXUSR else 0o644)
    except Exception as error:  # What bytes that are no zip file make its reader raise is of many kinds.
        raise UserError(f"{path}: cannot be read as an archive: {error}") from None
