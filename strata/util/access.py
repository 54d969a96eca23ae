"""Explain why this user may not write to a file or folder, with the remedy."""

import errno
import os
import shlex
from collections.abc import Sequence

from strata.util import paths
from strata.util.errors import UserError

OTHER_HOME = paths.OTHER_HOME
OTHER_CLONE = "clone the project to a folder that you may write to"


def _find_user_name(user_id: int) -> str:
    """Return the name of a user; "user " and the ID if the system knows no name for the ID."""
    import pwd

    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return f"user {user_id}"


def explain_denied_write(path: str) -> str:
    """Return why this user may not write a path, as a clause for a message; "" if it is permitted.

    path: a file or folder; if it does not exist, its nearest existing parent folder decides.
    The reason is, for example, "/data/strata belongs to root, and anna may not write there".
    :func:`explain_os_error` relies on a reason that begins with an absolute path.
    """
    checked_path = paths.find_nearest_existing_path(os.path.abspath(path))
    # Adding a file to a folder also needs the right to enter the folder.
    rights = os.W_OK | os.X_OK if os.path.isdir(checked_path) else os.W_OK
    if os.access(checked_path, rights):
        return ""
    if _is_read_only(checked_path):
        return f"{checked_path} is on a read-only file system"
    owner = _find_user_name(os.stat(checked_path).st_uid)
    user = _find_user_name(os.geteuid())
    return f"{checked_path} belongs to {owner}, and {user} may not write there"


def _is_read_only(path: str) -> bool:
    """Return whether an existing path is on a file system that is mounted read-only."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _find_access_remedy(closed_paths: Sequence[str]) -> str:
    """Return how this user can get the right to write to paths, as a clause for a message.

    closed_paths: the paths where the user may not write; they lie in the project, which is the
    working directory.  Those that do not exist are ignored; if none exists, the project's folder is
    taken.
    The clause names a command for a shell, for example "type `chmod -R u+w results` in
    /home/anna/p, or clone the project to …".  For root, or on a read-only file system, it only
    advises another clone of the project.
    """
    absolute_paths = [os.path.abspath(path) for path in closed_paths if os.path.lexists(path)]
    if not absolute_paths:
        absolute_paths = [os.getcwd()]
    if os.geteuid() == 0 or _is_read_only(absolute_paths[0]):
        return OTHER_CLONE
    command = f"sudo chown -R {_find_user_name(os.geteuid())}"
    if all(os.stat(path).st_uid == os.geteuid() for path in absolute_paths):
        command = "chmod -R u+w"
    # The first folder of each path, in the project; the command changes everything in it.
    top_folders = dict.fromkeys(os.path.relpath(path).split("/")[0] for path in absolute_paths)
    return f"type `{command} {shlex.join(top_folders)}` in {os.getcwd()}, or {OTHER_CLONE}"


def explain_os_error(error: OSError) -> str:
    """Return the message on an OSError: which file could not be used, why, and the remedy.

    error: the error that was raised.  Its own text is returned if it names no file.
    """
    if not isinstance(error.filename, str):
        return str(error)
    reason = explain_write_error(error, error.filename)
    # The reason of explain_denied_write() begins with a path already.
    return reason if reason.startswith("/") else f"{error.filename}: {reason}"


def explain_write_error(error: OSError, path: str) -> str:
    """Return why a file could not be written, and the remedy, as a clause for a message.

    error: the error that was raised.
    path: the file's path.
    For a file in the project, a remedy is added only if this user lacks the rights.  For a file in
    Strata's home folder, it is always added: another folder, or disk, helps there.
    """
    reason = error.strerror or str(error)
    remedy = ""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        reason = explain_denied_write(path) or reason
        if _is_in_folder(path, os.getcwd()):
            remedy = _find_access_remedy([path])
    if _is_in_folder(path, paths.get_home_folder()):
        remedy = OTHER_HOME
    return f"{reason}; {remedy}" if remedy else reason


def _is_in_folder(path: str, folder: str) -> bool:
    """Return whether a path lies in a folder, or is that folder.

    folder: its absolute path without symbolic links.
    """
    return f"{os.path.realpath(path)}/".startswith(f"{folder}/")


def require_writable_project() -> None:
    """Check that a run can write to the project in the working directory; change nothing.

    Raises UserError, with the remedy, if this user may not write to an output folder, or to a
    folder directly in one.  Snakemake's own folder is checked, too: Snakemake itself would end with
    a traceback.
    """
    output_folders = [name for name in (".snakemake", "results", "paper") if os.path.isdir(name)]
    folders = [*output_folders]
    for output_folder in output_folders:
        with os.scandir(output_folder) as entries:
            folders += sorted(entry.path for entry in entries if entry.is_dir())
    if ".snakemake" not in folders or "results" not in folders:
        # The run creates the missing folders in the project's folder.
        folders.append(".")
    closed_folders = [folder for folder in folders if explain_denied_write(folder)]
    if closed_folders:
        reason = explain_denied_write(closed_folders[0])
        raise UserError(f"{reason}; {_find_access_remedy(closed_folders)}")
