"""Files that are whole or not there, and trees that are removed, but nothing that is mounted in them."""

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Sequence

from strata.util import access, trees
from strata.util.data_types import Any
from strata.util.errors import MachineError, UserError
from strata.util.process import as_root, capture


def read_json(path: str) -> Any:
    """The object in a JSON file; None if the file is missing, cut short, or holds anything else."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def read_text(paths: Sequence[str]) -> str:
    """The content of files, one after the other; with root's rights where this user may not read one.

    Raises OSError or UserError where that fails.
    """
    found = []
    try:
        for path in paths:
            with open(path, encoding="utf-8", errors="replace") as file:
                found.append(file.read())
    except PermissionError:
        return capture(as_root(["cat", "--", *paths])).stdout
    return "".join(found)


def write_text(path: str, text: str, lasting: bool = False) -> None:
    """Write a file by way of a sibling, so that a reader sees the old or the new one, whole.

    lasting: also after a power cut; for what still counts then.  Raises MachineError where it cannot be written.
    """
    sibling, folder = f"{path}.{os.getpid()}.part", os.path.dirname(path) or "."
    try:
        os.makedirs(folder, exist_ok=True)
        with open(sibling, "w", encoding="utf-8") as file:
            file.write(text)
        if lasting:
            sync(sibling)
        os.replace(sibling, path)
        if lasting:
            sync(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(sibling)
        reason = access.find_reason(error, path)
        raise MachineError(f"{path}: cannot be written: {reason}") from None


def sync(path: str) -> None:
    """Have the disk hold what a file holds, or which names a folder has."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: str, value: object, indent: int | None = 1, lasting: bool = False) -> None:
    """Write a value as JSON, like :func:`write_text`."""
    write_text(path, json.dumps(value, indent=indent, ensure_ascii=False) + "\n", lasting)


def write_csv(path: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table that lasts, like :func:`write_text`."""
    import csv
    import io

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    write_text(path, text.getvalue(), lasting=True)


def write_if_changed(path: str, text: str) -> None:
    """Write a file that lasts, only where its text differs."""
    with (
        contextlib.suppress(FileNotFoundError, UnicodeDecodeError),
        open(path, encoding="utf-8") as file,
    ):
        if file.read() == text:
            return
    write_text(path, text, lasting=True)


def remove_whole(path: str, aside: str) -> None:
    """Remove a folder of which nobody is to find a half, also after a kill: it is moved aside before."""
    remove_tree(aside)
    os.makedirs(os.path.dirname(aside), exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, aside)
    remove_tree(aside)


def remove_tree(path: str, unmount: bool = False) -> None:
    """Remove a folder (or file) of ours with all in it, with root's rights where this user may not.

    unmount: what is mounted in it is unmounted before.  Raises UserError where anything is, or stays, mounted in it.
    """
    try:
        try:
            trees.remove(path, unmount)
        except PermissionError:
            if os.geteuid() == 0:
                raise
            program = [sys.executable, "-I", "-S", trees.__file__]
            capture(as_root([*program, *["--unmount"] * unmount, os.path.abspath(path)]), 600)
    except trees.MountedError as error:
        raise UserError(f"{path} is not removed: {error.filename} is still mounted") from None
    except OSError as error:
        raise UserError(
            f"{path} cannot be removed: {error.filename or path}: {error.strerror}"
        ) from None
