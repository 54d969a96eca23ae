"""Write, read and carry out the journal of all systems that are up on this machine.

Each system or client has a file, in a folder that only its user may enter.  The first line is the
entry, ``{id, environment, owner, number}``.  Each further line is a cleanup of one part, written
before that part is made.  The file is removed once all parts are.

A cleanup ``{kind, id, find, remove}`` needs no code of the layer or client that wrote it.  The
command `find` prints something while the part exists, and the commands `remove` remove it.  With
``root: true`` all of them run as root; ``start`` is the path of the project's script that starts
the daemon which `find` needs.  A few kinds, named in :func:`run_cleanup`, are removed by functions,
and need only kind and id.  Other versions of Strata read these files: the keys must stay.
"""

import contextlib
import json
import os
import subprocess
import time

from strata.host import cgroups, holders
from strata.util import paths
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.files import remove_tree, write_json
from strata.util.process import capture_output, wrap_as_root
from strata.util.progress import print_topic_message


def ensure_journal_folder() -> str:
    """Return the path of the journal's folder, after creating it and the home folder if missing.

    Only this user may enter the journal's folder.
    Raises UserError if a folder cannot be created.
    """
    # This name must stay: other versions of Strata use the same folder.
    journal = os.path.join(paths.get_home_folder(), "state")
    try:
        os.makedirs(paths.get_home_folder(), 0o755, exist_ok=True)
        os.makedirs(journal, 0o700, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{journal}: cannot be made: {error.strerror}; set STRATA_HOME to a folder that you "
            "may write to, with 15 GB of free disk"
        ) from None
    return journal


def get_entry_path(system_id: str) -> str:
    """Return the path of the journal file of a system or client, whether or not the file exists.

    Creates the journal's folder if it is missing.
    """
    return os.path.join(ensure_journal_folder(), f"{system_id}.up")


def create_entry(system_id: str, environment: str, owner: Fields) -> None:
    """Write the journal file of a system or client, before any part of it is made.

    environment: the environment's name, or the client's (:data:`strata.testbed.lifecycle.CLIENT`).
    owner: the process that makes the system, as :func:`strata.util.process.identify_process`
    returns it.  The end of a run removes systems whose owner is no longer alive.
    Raises MachineError if the file cannot be written.
    """
    entry = {
        "id": system_id,
        "environment": environment,
        "owner": owner,
        # Later entries have larger numbers, as long as the machine is not booted again.
        "number": time.monotonic_ns(),
    }
    write_json(get_entry_path(system_id), entry, indent=None)


def note_cleanup(system_id: str, cleanup: Fields) -> None:
    """Append to the journal file of a system or client how one part of it is removed.

    Call this before the part is made, so that the part is removed even after a kill.
    :func:`create_entry` must have written the file.  Parts are removed in the reverse order of
    these calls.
    cleanup: ``{kind, id, …}`` as the module describes; :func:`run_cleanup` relies on its keys.
    """
    with open(get_entry_path(system_id), "a", encoding="utf-8") as file:
        file.write(json.dumps(cleanup) + "\n")


def read_entries() -> list[Fields]:
    """Return the journal's entry of each system and client that is up, oldest first.

    An entry is ``{id, environment, owner, number, cleanups}``, its cleanups in the order in which
    the parts were made.  A damaged file gives an entry with a single cleanup of the kind "damaged
    file", which removes nothing, and a number below all others.  A last line that was not written
    completely is dropped: its part was not made.
    """
    entries = []
    for name in os.listdir(ensure_journal_folder()):
        system_id, suffix = os.path.splitext(name)
        if suffix != ".up":
            continue
        file_path = get_entry_path(system_id)
        # Another process may remove the file meanwhile.
        with contextlib.suppress(FileNotFoundError), open(file_path, encoding="utf-8") as file:
            try:
                # The part of an incomplete line was not made.  The assignment raises ValueError,
                # too, if the file has no complete line.
                entry, *cleanups = [json.loads(line) for line in file if line.endswith("\n")]
            except ValueError:
                # A process that is not alive, so that the end of a run removes the entry.
                nobody = {"pid": 0, "start": None}
                entry = {"id": system_id, "environment": "unknown", "number": -1, "owner": nobody}
                cleanups = [{"kind": "damaged file", "id": file_path}]
            entries.append({**entry, "cleanups": cleanups})
    return sorted(entries, key=lambda entry: entry["number"])


def remove_unfinished_files() -> list[str]:
    """Remove journal files whose writing was interrupted, and return their paths.

    Their systems have no parts: the first part is made only after the file is complete.
    The caller must hold the machine's lock, under which all journal files are written.
    """
    folder = ensure_journal_folder()
    names = [name for name in sorted(os.listdir(folder)) if not name.endswith(".up")]
    unfinished_paths = [os.path.join(folder, name) for name in names]
    for path in unfinished_paths:
        os.unlink(path)
    return unfinished_paths


def run_cleanup(cleanup: Fields) -> None:
    """Remove the part that a cleanup describes; a part that does not exist is not an error.

    A cleanup of an unknown kind removes nothing, and a message is printed: another version of
    Strata may have written it.
    cleanup: ``{kind, id, …}`` as the module describes.  `id` is, depending on the kind, a path, a
    control group, or the name of a machine or namespace.
    Raises UserError if the part cannot be removed.
    """
    kind = cleanup["kind"]
    name = cleanup["id"]
    if "remove" in cleanup:
        _run_removal_commands(cleanup)
    elif kind == "folder":
        remove_tree(name, unmount=True)
    elif kind == "programs":
        holders.kill_folder_holders(name)
    elif kind == "group":
        cgroups.remove_groups(name)
    elif kind == "frozen":
        # A frozen program does not end by any signal.
        cgroups.set_groups_frozen(cgroups.find_freezable_folders(name), False)
    elif kind == "machine":
        from strata.vm import machine

        machine.remove_machine(name)
    elif kind == "namespace":
        from strata.client import namespace

        namespace.remove_namespace()
    else:
        message = "another version made it; `python3 -m strata clean` looks for what is ours"
        print_topic_message("testbed", f"{kind} {name}: {message}")


def _run_removal_commands(cleanup: Fields) -> None:
    """Remove a part by the commands of its cleanup.

    If the daemon that the cleanup names does not answer, it is started.  The removal is tried twice
    if the part still exists.
    cleanup: ``{kind, id, find, remove}``, and optionally `root` and `start`, as the module
    describes.
    Raises UserError if the part still exists afterwards, or the command `find` fails.
    """

    def run_command(argv: list[str], check: bool = False) -> subprocess.CompletedProcess[str]:
        """Run a command of `cleanup`, as root if it has the key `root`."""
        return capture_output(wrap_as_root(argv) if cleanup.get("root") else argv, check=check)

    def run_removals() -> bool:
        """Run all removal commands, also after one that failed; return whether all succeeded."""
        exit_codes = [run_command(argv).returncode for argv in cleanup["remove"]]
        return not any(exit_codes)

    def is_part_present() -> bool:
        """Return whether `find` prints something, as it does while the part exists."""
        return bool(run_command(cleanup["find"], check=True).stdout.strip())

    # `find` costs time, and most parts exist: it runs only if a removal failed.
    if run_removals():
        return
    if "start" in cleanup and run_command(cleanup["find"]).returncode != 0:
        # The script itself waits for up to 30 s (scripts/daemons.sh).
        capture_output([os.path.join(paths.PROJECT, cleanup["start"])], timeout=90)
    if is_part_present() and not run_removals() and is_part_present():
        raise UserError(f"{cleanup['kind']} {cleanup['id']} could not be removed")
