"""The folder that a command writes: it holds all of the command's files, or it is as it was."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from strata.util import programs
from strata.util.errors import MachineError, UserError
from strata.util.files import remove_tree

# A disk with fewer free bytes is the reason why a program in it fails.
_FULL = 1 << 20


@contextlib.contextmanager
def whole_folder(target: str) -> Iterator[str]:
    """Yield a temporary folder whose files are moved into `target` when the block ends.

    Where the block fails, `target` and the folders above it are left as they were.
    Raises UserError where `target` cannot be a folder that this user writes, and MachineError where
    its disk is full.
    """
    ancestors = [target, *map(str, Path(target).parents)]
    missing = [folder for folder in ancestors if not os.path.lexists(folder)]
    try:
        with contextlib.ExitStack() as stack:
            with _writing(target):
                os.makedirs(target, exist_ok=True)
                folder = stack.enter_context(programs.temporary_folder("output", target))
            try:
                yield folder
            except (UserError, OSError):
                status = os.statvfs(target)
                if status.f_bavail * status.f_frsize > _FULL:
                    raise
                why = f"{target}: its disk is full; free some, or name another folder with --to"
                raise MachineError(why) from None
            with _writing(target):
                for name in os.listdir(folder):
                    os.replace(os.path.join(folder, name), os.path.join(target, name))
    except BaseException:
        if missing and os.path.lexists(missing[-1]):
            remove_tree(missing[-1])
        raise


@contextlib.contextmanager
def _writing(target: str) -> Iterator[None]:
    try:
        yield
    except (MachineError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(
            f"{target}: cannot be written: {reason}; name another folder with --to"
        ) from None
