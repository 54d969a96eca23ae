"""The file of an archive: a zip without times or owners, and its careful unpacking."""

import contextlib
import errno
import os
import pathlib
import shutil
import stat
import zipfile
from collections.abc import Iterator

from strata.util.errors import MachineError, UserError

EPOCH = (1980, 1, 1, 0, 0, 0)
# Logs and tables pack to a tenth; what unpacks to more than this many times its size is no archive.
MOST = 100


def files_below(folder: str) -> list[str]:
    """Names of files and links below a folder, relative to it, in an archive's order (by bytes)."""
    found = []
    for where, folders, names in os.walk(folder):
        names += [name for name in folders if os.path.islink(os.path.join(where, name))]
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
                info.external_attr = (
                    stat.S_IFREG | (0o755 if about.st_mode & stat.S_IXUSR else 0o644)
                ) << 16
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
    archive has: links, names that lead elsewhere or stand twice, and sizes beyond all measure; MachineError where this
    machine cannot read or write.  Entries for folders, which other packers add, hold nothing and are left out.
    """
    if not os.path.isfile(path):
        raise MachineError(f"{path}: there is no such file")
    with contextlib.ExitStack() as stack:
        with _reading(path):
            archive = stack.enter_context(zipfile.ZipFile(path))
            members = [info for info in archive.infolist() if not _is_folder(info)]
            _inspect(members, os.path.getsize(path))
        for info in members:
            target = os.path.join(folder, info.filename)
            with _writing(target):
                os.makedirs(os.path.dirname(target), exist_ok=True)
            with (
                _reading(path),
                archive.open(info) as source,
                _writing(target),
                open(target, "wb") as file,
            ):
                while True:
                    with _reading(path):
                        content = source.read(2**20)
                    if not content:
                        break
                    file.write(content)
            os.chmod(target, 0o755 if info.external_attr >> 16 & stat.S_IXUSR else 0o644)


def _is_folder(info: zipfile.ZipInfo) -> bool:
    """Whether a member is the entry of a folder, as `zip -r` and file managers write them."""
    name, kind = info.filename.removesuffix("/"), stat.S_IFMT(info.external_attr >> 16)
    return info.is_dir() and info.file_size == 0 and kind in (0, stat.S_IFDIR) and _is_plain(name)


def _is_plain(name: str) -> bool:
    """Whether a name leads to a place within the archive, by the one way there is."""
    short = (
        all(len(part.encode(errors="replace")) < 256 for part in name.split("/"))
        and len(name) < 2000
    )
    inside = (
        name == os.path.normpath(name) and not name.startswith(("/", "..")) and "\\" not in name
    )
    return short and inside and name.isprintable()


def _inspect(members: list[zipfile.ZipInfo], room: int) -> None:
    """Raise ValueError for members that no archive has.  room: bytes of the file."""
    seen: set[str] = set()
    folders = {
        str(above) for info in members for above in pathlib.PurePosixPath(info.filename).parents
    }
    for info in members:
        name, kind = info.filename, stat.S_IFMT(info.external_attr >> 16)
        wrong = [
            text
            for text, holds in (
                (
                    "is a folder that holds something, or no file",
                    name.endswith("/") or kind not in (0, stat.S_IFREG),
                ),
                ("is an odd name", not _is_plain(name)),
                ("is there twice", name in seen or name in folders),
            )
            if holds
        ]
        if wrong:
            raise ValueError(f"{name!r} {wrong[0]}; nothing was unpacked")
        seen.add(name)
    if (total := sum(info.file_size for info in members)) > MOST * room:
        claim = f"its members claim {total:,} bytes, more than {MOST} times its {room:,}"
        raise ValueError(f"{claim}; nothing was unpacked")


@contextlib.contextmanager
def _reading(path: str) -> Iterator[None]:
    """What bytes that are no zip file make its reader raise is of many kinds."""
    try:
        yield
    except (UserError, MemoryError):
        raise
    except Exception as error:
        # To seek where there is nothing is the file's fault, and so is an error without a number, of bzip2.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise MachineError(f"{path}: cannot be read: {error.strerror}") from None
        raise UserError(f"{path}: cannot be read as an archive: {error}") from None


@contextlib.contextmanager
def _writing(target: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MachineError(f"{target}: cannot be written: {error.strerror}") from None
