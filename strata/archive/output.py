"""The folder that a command writes: it holds all of the command's files, or it is as it was."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from strata.util import programs
from strata.util.errors import MachineError, UserError
from strata.util.files import remove_tree

# A disk with at most this number of free bytes (1 MiB) is taken as the reason of a failure.
_FULL = 1 << 20


@contextlib.contextmanager
def write_whole_folder(target: str) -> Iterator[str]:
    """Yield a temporary folder whose files are moved into a target folder when the block ends.

    target: the folder, created with its parents if missing.  Files of equal names are replaced.
    The temporary folder is in `target`, so that files are renamed and not copied.
    If the block fails, no file is moved, and all folders that were created are removed.
    Raises UserError if this user cannot write `target`, and MachineError if its disk is full.
    """
    # From the innermost folder to the outermost.
    target_and_parents = [target, *map(str, Path(target).parents)]
    new_folders = [folder for folder in target_and_parents if not os.path.lexists(folder)]
    try:
        with contextlib.ExitStack() as stack:
            with _convert_write_errors(target):
                os.makedirs(target, exist_ok=True)
                folder = stack.enter_context(programs.create_temporary_folder("output", target))
            try:
                yield folder
            except (UserError, OSError):
                # A program that finds the disk full fails for its own reasons.
                status = os.statvfs(target)
                if status.f_bavail * status.f_frsize > _FULL:
                    raise
                reason = f"{target}: its disk is full; free some, or name another folder with --to"
                raise MachineError(reason) from None
            with _convert_write_errors(target):
                for name in os.listdir(folder):
                    os.replace(os.path.join(folder, name), os.path.join(target, name))
    except BaseException:
        if new_folders and os.path.lexists(new_folders[-1]):
            remove_tree(new_folders[-1])
        raise


@contextlib.contextmanager
def _convert_write_errors(target: str) -> Iterator[None]:
    """Convert errors in writing the target to UserError, which names the target and the remedy.

    The remedy is the option ``--to``, which all commands that write such a folder have.
    """
    try:
        yield
    except (MachineError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(
            f"{target}: cannot be written: {reason}; name another folder with --to"
        ) from None
