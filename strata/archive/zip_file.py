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

# The earliest time that a zip file can hold; all members have it.
EPOCH = (1980, 1, 1, 0, 0, 0)
# Logs and tables pack to a tenth.  A file whose members claim more than this many times its size is
# refused.
_MAX_RATIO = 100


def list_files(folder: str) -> list[str]:
    """Return the relative paths of the files and links below a folder, sorted by their bytes.

    Archives and their SHA256SUMS have this order, so that equal files give equal bytes.
    """
    paths = []
    for parent, folders, files in os.walk(folder):
        # Links to folders are not walked, and are listed like files.
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in (*files, *links):
            paths.append(os.path.relpath(os.path.join(parent, name), folder))
    return sorted(paths, key=lambda path: path.encode(errors="surrogateescape"))


def pack_folder(folder: str, out: str) -> None:
    """Write the files of a folder to a zip file, atomically.

    out: path of the zip file, which is replaced; its folder must exist.
    Equal files give byte-identical zip files: no times or owners are kept, and the order is fixed.
    Raises UserError if the file cannot be written; nothing is left of it then.
    """
    sibling = f"{out}.{os.getpid()}.part"
    try:
        with zipfile.ZipFile(sibling, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in list_files(folder):
                path = os.path.join(folder, name)
                status = os.stat(path)
                info = zipfile.ZipInfo(name, EPOCH)
                mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
                # 3 is Unix: the upper 16 bits of external_attr are then the file's mode, from which
                # unpack_archive takes the right to execute.
                info.create_system = 3
                info.external_attr = (stat.S_IFREG | mode) << 16
                info.compress_type = zipfile.ZIP_DEFLATED
                # By the size zipfile chooses the form for members above 2 GiB.
                info.file_size = status.st_size
                with open(path, "rb") as source, archive.open(info, "w") as target:
                    shutil.copyfileobj(source, target)
        os.replace(sibling, out)
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror or error}") from None
    finally:
        if os.path.exists(sibling):
            os.unlink(sibling)


def unpack_archive(path: str, folder: str) -> None:
    """Unpack an archive's zip file into an empty folder.

    path: the path of the zip file.
    folder: the path of the empty folder.
    Raises UserError if the file is missing, damaged or not a zip file.  Before anything is written,
    raises UserError also for members that no archive of Strata has: links, paths that lead out of
    the folder or occur twice, and sizes beyond `_MAX_RATIO`.  Raises MachineError if this machine
    cannot read or write.
    Entries for folders, which other programs add, are left out.  A file gets the mode 0755 if its
    owner may execute it, otherwise 0644.
    """
    if not os.path.isfile(path):
        raise UserError(
            f"{path}: there is no such file; name an archive, for example docs/small.zip"
        )
    with _convert_unpacking_errors(path, folder), zipfile.ZipFile(path) as archive:
        members = [info for info in archive.infolist() if not _is_folder(info)]
        _check_members(members, os.path.getsize(path))
        for info in members:
            # The names are plain, so that the path is that of the member below the folder.
            target = archive.extract(info, folder)
            os.chmod(target, 0o755 if info.external_attr >> 16 & stat.S_IXUSR else 0o644)


def _is_folder(info: zipfile.ZipInfo) -> bool:
    """Return whether a member is the entry of a folder, as `zip -r` and file managers add it.

    Returns False for a folder with content or an invalid path, which :func:`_check_members` then
    refuses.
    """
    if not info.is_dir() or info.file_size > 0:
        return False
    return _get_file_type(info) in (0, stat.S_IFDIR) and _is_plain_path(
        info.filename.removesuffix("/")
    )


def _get_file_type(info: zipfile.ZipInfo) -> int:
    """Return the type bits (stat.S_IF…) of a member's mode; 0 if its packer gave no mode."""
    return stat.S_IFMT(info.external_attr >> 16)


def _is_plain_path(name: str) -> bool:
    """Return whether a path is printable, not too long, relative, normal, and within the archive.

    Linux allows at most 255 bytes for each name in the path, and less than 4096 for the whole.
    """
    if len(name) >= 2000 or not name.isprintable() or "\\" in name:
        return False
    if any(len(part.encode(errors="replace")) > 255 for part in name.split("/")):
        return False
    return name == os.path.normpath(name) and not name.startswith(("/", ".."))


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    """Raise ValueError if an archive of Strata cannot have one of the members, or their total size.

    size: the size of the zip file, in bytes.
    :func:`_convert_unpacking_errors` converts the error to UserError.
    """
    names: set[str] = set()
    # All folders where members are: no file may have the path of one.
    folders: set[str] = set()
    for info in members:
        folders.update(map(str, pathlib.PurePosixPath(info.filename).parents))
    for info in members:
        name = info.filename
        reason = ""
        if name.endswith("/") or _get_file_type(info) not in (0, stat.S_IFREG):
            reason = "is a folder that holds something, or no file"
        elif not _is_plain_path(name):
            reason = "is an odd name"
        elif name in names or name in folders:
            reason = "is there twice"
        if reason:
            raise ValueError(f"{name!r} {reason}; nothing was unpacked")
        names.add(name)
    total = sum(info.file_size for info in members)
    if total > _MAX_RATIO * size:
        claim = f"its members claim {total:,} bytes, more than {_MAX_RATIO} times its {size:,}"
        raise ValueError(f"{claim}; nothing was unpacked")


@contextlib.contextmanager
def _convert_unpacking_errors(path: str, folder: str) -> Iterator[None]:
    """Convert errors of the block to MachineError (of this machine) or UserError (of the file).

    path: the path of the zip file that the block unpacks.
    folder: the folder into which it is unpacked.
    A MemoryError is raised unchanged; callers count it as an error of this machine.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        # A broken file makes its reader seek to no place (EINVAL), or bzip2 raise an error without
        # a number.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            reason = f"cannot be unpacked into {folder}: {error.strerror}"
            raise MachineError(f"{path}: {reason}") from None
        reason = _explain_bad_file(path, error)
        raise UserError(f"{path}: cannot be read as an archive: {reason}") from None


def _explain_bad_file(path: str, error: Exception) -> str:
    """Return why a file cannot be read as an archive, and the remedy if one is known.

    error: the exception that the reader of zip files raised.
    """
    if not isinstance(error, zipfile.BadZipFile):
        return str(error)
    with open(path, "rb") as file:
        beginning = file.read(2)
    # A zip file begins so, even one that was cut short.
    if beginning == b"PK":
        size = os.path.getsize(path)
        return f"it is cut short ({size:,} bytes) or damaged: copy or download it again"
    return "it is not a zip file; name an archive, for example docs/small.zip"
