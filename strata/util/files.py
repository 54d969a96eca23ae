"""Read files, write them atomically, and remove files and folders."""

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from strata.util import access, trees
from strata.util.data_types import Any
from strata.util.errors import MachineError, UserError
from strata.util.process import capture_output, wrap_as_root


def read_json(path: str) -> Any:
    """Return the object in a JSON file; None if the file is missing, damaged or holds no object.

    Raises OSError if the file exists and cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_text(paths: Sequence[str]) -> str:
    """Return the concatenated content of files.

    If this user may not read one of them, root reads all of them.  Bytes that are not UTF-8 become
    U+FFFD.
    Raises OSError if a file cannot be read, such as a missing one, and UserError if root cannot
    read it either.
    """
    contents = []
    try:
        for path in paths:
            with open(path, encoding="utf-8", errors="replace") as file:
                contents.append(file.read())
    except PermissionError:
        return capture_output(wrap_as_root(["cat", "--", *paths])).stdout
    return "".join(contents)


def write_text(path: str, text: str, lasting: bool = False) -> None:
    """Write a file atomically: a reader finds the whole old or the whole new content.

    Creates missing parent folders; an existing file's mode and owner are not kept.  The new content
    is in PATH.PID.part until it is complete; a killed process leaves that file.
    lasting: whether the new content is also flushed to disk, so that it survives a power failure.
    Raises MachineError if the file cannot be written.
    """
    partial = f"{path}.{os.getpid()}.part"
    folder = os.path.dirname(path) or "."
    try:
        os.makedirs(folder, exist_ok=True)
        with open(partial, "w", encoding="utf-8") as file:
            file.write(text)
        # The content must be on the disk before it has its name, and the name after that.
        if lasting:
            flush_to_disk(partial)
        os.replace(partial, path)
        if lasting:
            flush_to_disk(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        reason = access.explain_write_error(error, path)
        raise MachineError(f"{path}: cannot be written: {reason}") from None


@contextlib.contextmanager
def prepare_outputs(outputs: Mapping[str, str | None]) -> Iterator[None]:
    """Check that the output files of a command's options can be written, before the `with` block.

    outputs: option, such as ``--csv`` → path; None: the option was not set.
    If a path is ``-``, standard output is for that file alone: everything that the block prints
    goes to standard error.
    Raises UserError with a line for each option whose file cannot be written, and if two paths are
    ``-``.  No file is created or changed by the check.
    """
    faults = []
    for option, path in outputs.items():
        if path is None or path == "-":
            continue
        if os.path.isdir(path) or not os.path.basename(path):
            faults.append(f"{option}: {path or 'it'} is a folder: name a file")
        elif os.path.exists(path) and not os.path.isfile(path):
            faults.append(f"{option}: {path} is no regular file: name one, or - for the terminal")
        elif not os.path.isdir(folder := os.path.dirname(os.path.abspath(path))):
            faults.append(
                f"{option}: {path}: {folder} is no folder: name a file in an existing one"
            )
        elif reason := access.explain_denied_write(folder):
            faults.append(f"{option}: {path}: {reason}: name another file")
    stdout_options = [option for option, path in outputs.items() if path == "-"]
    if len(stdout_options) > 1:
        options = " and ".join(stdout_options)
        faults.append(f"{options}: are both -: only one goes to standard output")
    if faults:
        raise UserError(*faults)
    with contextlib.redirect_stdout(sys.stderr) if stdout_options else contextlib.nullcontext():
        yield


def write_output(path: str, text: str) -> None:
    """Write a text to a file atomically, or to standard output if the path is ``-``.

    Raises MachineError if the file cannot be written.
    """
    if path == "-":
        sys.stdout.write(text)
    else:
        write_text(path, text)


def flush_to_disk(path: str) -> None:
    """Flush a file's content, or the names in a folder, to disk, and wait until that is done."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: str, value: object, indent: int | None = 1, lasting: bool = False) -> None:
    """Write a value as a JSON file in UTF-8 atomically: a reader finds the old or the new content.

    value: consists of dicts, lists, strings, numbers, booleans and None.
    indent: the number of spaces for each level; None: all in one line.
    lasting: whether the file is also flushed to disk.
    Raises MachineError if the file cannot be written.
    """
    write_text(path, json.dumps(value, indent=indent, ensure_ascii=False) + "\n", lasting)


def write_csv(path: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table as a CSV file atomically, and flush it to disk.

    columns: the names in the first line.
    rows: the values of each further line, in that order; None gives an empty field.
    Raises MachineError if the file cannot be written.
    """
    write_text(path, format_csv(columns, rows), lasting=True)


def format_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as the text of a CSV file.

    columns: the names in the first line.
    rows: the values of each further line, in that order; None gives an empty field.
    Lines end in a line feed.  Fields are quoted only if they need it, as RFC 4180 does.
    """
    # Imported only here: most commands start without writing a table, and a start must be cheap.
    import csv
    import io

    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([columns, *rows])
    return buffer.getvalue()


def write_if_changed(path: str, text: str) -> None:
    """Write a file atomically, flushed to disk, unless it already holds this text.

    An unchanged file keeps its modification time.  An existing file that is not UTF-8 is replaced.
    Raises MachineError if the file cannot be written.
    """
    with (
        contextlib.suppress(FileNotFoundError, UnicodeDecodeError),
        open(path, encoding="utf-8") as file,
    ):
        if file.read() == text:
            return
    write_text(path, text, lasting=True)


def remove_atomically(path: str, trash_path: str) -> None:
    """Remove a folder atomically: no process finds half of it at its path, not even after a kill.

    path: the folder; a missing one is not an error.
    trash_path: the path on the same file system to which the folder is moved first.  A file or
    folder that exists at that path is removed before, and its parent folders are created.
    Raises UserError if a file system is mounted in the folder, or the removal fails.
    """
    remove_tree(trash_path)
    os.makedirs(os.path.dirname(trash_path), exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, trash_path)
    remove_tree(trash_path)


def remove_tree(path: str, unmount: bool = False) -> None:
    """Remove a file, or a folder with all its content, as root if this user lacks the rights.

    A missing path is not an error.
    unmount: whether file systems mounted in the folder are unmounted first.
    Raises UserError if a file system is, or stays, mounted in the folder, or the removal fails.
    """
    try:
        try:
            trees.remove_tree(path, unmount)
        except PermissionError:
            if os.geteuid() == 0:
                raise
            options = ["--unmount"] if unmount else []
            # Root runs the module as a program, without any package that this user has installed.
            argv = [sys.executable, "-I", "-S", trees.__file__, *options, os.path.abspath(path)]
            # 10 minutes: an image's tree has tens of thousands of files.
            capture_output(wrap_as_root(argv), timeout=600)
    except trees.MountedError as error:
        raise UserError(f"{path} is not removed: {error.filename} is still mounted") from None
    except OSError as error:
        raise UserError(
            f"{path} cannot be removed: {error.filename or path}: {error.strerror}"
        ) from None
