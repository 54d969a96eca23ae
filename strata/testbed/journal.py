"""The journal of all that is up on this machine, and of how it is removed.

Each system or client has a file.  Its first line is the thing itself, ``{id, environment, owner,
number}``; each further line is a cleanup of one part, written before that part is made.  The files
lie in a folder that only their user may enter; a removed thing has none.

A cleanup ``{kind, id, find, remove}`` needs no code of the layer or client that wrote it (by
:attr:`strata.host.context.Context.note_cleanup`): `find` prints something while the part exists,
the commands of `remove` remove it; with ``root: true`` all run with the rights of root, and
``start`` names the project's script that starts the daemon which `find` asks.  A few kinds, named
in :func:`remove_part`, are removed by functions, and need but kind and id.
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
from strata.util.process import as_root, capture
from strata.util.progress import print_topic


def ensure_journal_folder() -> str:
    """Return the journal's folder; make it, and the home folder, where they are missing.

    Only this user may enter a journal's folder that is made.
    Raises UserError where a folder cannot be made.
    """
    journal = os.path.join(paths.home_folder(), "state")
    try:
        os.makedirs(paths.home_folder(), 0o755, exist_ok=True)
        os.makedirs(journal, 0o700, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{journal}: cannot be made: {error.strerror}; set STRATA_HOME to a folder that you "
            "may write to, with 15 GB of free disk"
        ) from None
    return journal


def entry_path(system_id: str) -> str:
    """Return the path of the journal file of a system or client.

    Makes the journal's folder where it is missing.
    """
    return os.path.join(ensure_journal_folder(), f"{system_id}.up")


def begin_entry(system_id: str, environment: str, owner: Fields) -> None:
    """Write the journal file of a system or client, before any part of it is made.

    environment: the environment's name, or that of the client.
    owner: the process that makes the system, as of :func:`strata.util.process.identify_process`.
    Raises MachineError where the file cannot be written.
    """
    entry = {
        "id": system_id,
        "environment": environment,
        "owner": owner,
        "number": time.monotonic_ns(),
    }
    write_json(entry_path(system_id), entry, indent=None)


def note_cleanup(system_id: str, cleanup: Fields) -> None:
    """Append a cleanup to the journal file of a system or client.

    Call this before the part is made, so that the part is removed even after a kill.
    cleanup: ``{kind, id, …}`` as the module describes; :func:`remove_part` relies on its keys.
    """
    with open(entry_path(system_id), "a", encoding="utf-8") as file:
        file.write(json.dumps(cleanup) + "\n")


def read_entries() -> list[Fields]:
    """Return ``{id, environment, owner, number, cleanups}`` of all that is up, oldest first.

    The cleanups are in the order in which the parts were made.  A damaged file gives an entry with
    a single cleanup of the kind "damaged file", which removes nothing.
    """
    entries = []
    for name in os.listdir(ensure_journal_folder()):
        system_id, suffix = os.path.splitext(name)
        if suffix != ".up":
            continue
        file_path = entry_path(system_id)
        # Another process may remove the file meanwhile.
        with contextlib.suppress(FileNotFoundError), open(file_path, encoding="utf-8") as file:
            try:
                # The part of a line that was not written to its end was not made.
                entry, *cleanups = [json.loads(line) for line in file if line.endswith("\n")]
            except ValueError:
                nobody = {"pid": 0, "start": None}
                entry = {"id": system_id, "environment": "unknown", "number": -1, "owner": nobody}
                cleanups = [{"kind": "damaged file", "id": file_path}]
            entries.append({**entry, "cleanups": cleanups})
    return sorted(entries, key=lambda entry: entry["number"])


def remove_unfinished_files() -> list[str]:
    """Remove journal files whose writing was interrupted, and return their paths.

    The caller must hold the machine's lock, under which all journal files are written.
    """
    names = [
        name for name in sorted(os.listdir(ensure_journal_folder())) if not name.endswith(".up")
    ]
    unfinished = [os.path.join(ensure_journal_folder(), name) for name in names]
    for file in unfinished:
        os.unlink(file)
    return unfinished


def remove_part(cleanup: Fields) -> None:
    """Remove the part that a cleanup describes; a part that does not exist is no error.

    A cleanup of an unknown kind removes nothing, and a message is printed.
    Raises UserError where the part cannot be removed.
    """
    kind, name = cleanup["kind"], cleanup["id"]
    if "remove" in cleanup:
        _remove_by_commands(cleanup)
    elif kind == "folder":
        remove_tree(name, unmount=True)
    elif kind == "programs":
        holders.end_holders(name)
    elif kind == "group":
        cgroups.remove_groups(name)
    elif kind == "frozen":
        # A frozen program does not end, whatever signal it gets.
        cgroups.freeze(cgroups.freezable_folders(name), False)
    elif kind == "machine":
        from strata.vm import machine

        machine.remove_machine(name)
    elif kind == "namespace":
        from strata.client import namespace

        namespace.remove()
    else:
        message = "another version made it; `python3 -m strata clean` looks for what is ours"
        print_topic("testbed", f"{kind} {name}: {message}")


def _remove_by_commands(cleanup: Fields) -> None:
    """Remove a part by the commands of its cleanup.

    Starts the daemon that the cleanup names where it does not answer.
    Raises UserError where the part still exists afterwards.
    """

    def run_command(argv: list[str], check: bool = False) -> subprocess.CompletedProcess[str]:
        return capture(as_root(argv) if cleanup.get("root") else argv, check=check)

    def run_removal() -> bool:
        codes = [run_command(argv).returncode for argv in cleanup["remove"]]
        return not any(codes)

    def part_exists() -> bool:
        return bool(run_command(cleanup["find"], check=True).stdout.strip())

    # The part mostly exists, and removing a missing one does no harm: `find` costs time.
    if run_removal():
        return
    if "start" in cleanup and run_command(cleanup["find"]).returncode:
        capture([os.path.join(paths.PROJECT, cleanup["start"])], timeout=90)
    if part_exists() and not run_removal() and part_exists():
        raise UserError(f"{cleanup['kind']} {cleanup['id']} could not be removed")
