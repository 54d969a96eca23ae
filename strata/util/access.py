"""Find which folders this user may not write to, why, and what the user can do about it."""

import errno
import os
import shlex
from collections.abc import Sequence

from strata.util import paths
from strata.util.errors import UserError

OTHER_HOME = "set STRATA_HOME to a folder that you may write to, with 15 GB of free disk"
OTHER_CLONE = "clone the project to a folder that you may write to"


def user_name(number: int) -> str:
    """Return the name of a user, or "user NUMBER" where the system knows no name.

    number: the user ID.
    """
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def find_obstacle(path: str) -> str:
    """Return why this user may not write a path, as a clause for a message; "" where he may.

    path: a file or folder; where it does not exist, its nearest existing parent folder decides.
    """
    existing = os.path.abspath(path)
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    needed = os.W_OK | os.X_OK if os.path.isdir(existing) else os.W_OK
    if os.access(existing, needed):
        return ""
    if _is_read_only(existing):
        return f"{existing} is on a read-only file system"
    owner, user = user_name(os.stat(existing).st_uid), user_name(os.geteuid())
    return f"{existing} belongs to {owner}, and {user} may not write there"


def _is_read_only(path: str) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def find_remedy(obstacles: Sequence[str]) -> str:
    """Return what lets this user write to files or folders, as a clause for a message.

    obstacles: the paths where the user may not write; they lie in the project, which is the working
    directory.
    """
    existing = [os.path.abspath(path) for path in obstacles if os.path.lexists(path)]
    existing = existing or [os.getcwd()]
    if os.geteuid() == 0 or _is_read_only(existing[0]):
        return OTHER_CLONE
    user, names = user_name(os.geteuid()), [os.path.relpath(path) for path in existing]
    change = f"sudo chown -R {user}"
    if all(os.stat(path).st_uid == os.geteuid() for path in existing):
        change = "chmod -R u+w"
    top = dict.fromkeys(name.split("/")[0] for name in names)
    return f"type `{change} {shlex.join(top)}` in {os.getcwd()}, or {OTHER_CLONE}"


def explain_error(error: OSError) -> str:
    """Return a message on an error: which file could not be used, why, and what the user can do."""
    if not isinstance(error.filename, str):
        return str(error)
    reason = find_reason(error, error.filename)
    return reason if reason.startswith("/") else f"{error.filename}: {reason}"


def find_reason(error: OSError, path: str) -> str:
    """Return why a file could not be written, and what the user can do, as a clause for a message.

    error: the error that was raised.  path: the file's path.
    """
    reason, remedy = error.strerror or str(error), ""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        reason = find_obstacle(path) or reason
        if _is_in(path, os.getcwd()):
            remedy = find_remedy([path])
    if _is_in(path, paths.home_folder()):
        remedy = OTHER_HOME
    return f"{reason}; {remedy}" if remedy else reason


def _is_in(path: str, folder: str) -> bool:
    """Return whether a path lies in a folder, or is that folder.

    folder: its absolute path without symbolic links.
    """
    return f"{os.path.realpath(path)}/".startswith(f"{folder}/")


def require_project() -> None:
    """Check that a run can write to the project in the working directory.

    Raises UserError, with the remedy, where this user may not write to one of its output folders;
    Snakemake's own is one of them, without which Snakemake ends with a traceback.
    """
    folders = [name for name in (".snakemake", "results", "paper") if os.path.isdir(name)]
    for name in [*folders]:
        with os.scandir(name) as entries:
            folders += sorted(entry.path for entry in entries if entry.is_dir())
    if not {".snakemake", "results"} <= {*folders}:
        folders.append(".")
    closed = [folder for folder in folders if find_obstacle(folder)]
    if closed:
        raise UserError(f"{find_obstacle(closed[0])}; {find_remedy(closed)}")
