"""What is up: of each thing a file that says how it is removed, a line for each part of it before that is made.

The first line is the thing itself, ``{id, environment, owner, number}``, each further one the trace of a part: how that
is found and removed, without the code that made it.  The files lie in a folder that only its user may enter; what is
removed has none.

A layer or a client notes a trace with :attr:`strata.host.context.Context.note` before it makes something of the host's.
``{kind, id, find, remove}`` says it by commands: `find` prints something while the thing is there, those of `remove`
remove it; with ``root: true`` all have the rights of root, and ``start`` names the project's script that starts the
daemon which `find` asks.  Kinds of the host's own and of machines are removed by functions, and need but kind and id.
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
from strata.util.progress import say


def folder() -> str:
    """The folder for what is known of this machine, made if it is missing.  Raises UserError where that fails."""
    path = os.path.join(paths.home(), "state")
    try:
        os.makedirs(paths.home(), 0o755, exist_ok=True)
        os.makedirs(path, 0o700, exist_ok=True)
    except OSError as error:
        other = "set STRATA_HOME to a folder that you may write to, with 15 GB of free disk"
        raise UserError(f"{path}: cannot be made: {error.strerror}; {other}") from None
    return path


def path(id: str) -> str:
    """The file of a thing that is up."""
    return os.path.join(folder(), f"{id}.up")


def begin(id: str, environment: str, owner: Fields) -> None:
    """Write down that a thing is about to be made, by this process (`owner`), for an environment."""
    about = {"id": id, "environment": environment, "owner": owner, "number": time.monotonic_ns()}
    write_json(path(id), about, indent=None)


def note(id: str, trace: Fields) -> None:
    """Write down the trace of a part of it that is about to be made."""
    with open(path(id), "a", encoding="utf-8") as file:
        file.write(json.dumps(trace) + "\n")


def all_up() -> list[Fields]:
    """``{id, environment, owner, number, traces}`` of all that is up, in the order in which it was begun.

    What was written down and makes no sense is a trace of which nobody knows how it is removed.
    """
    found = []
    for id in (name[:-3] for name in os.listdir(folder()) if name.endswith(".up")):
        # It may have gone meanwhile.
        with contextlib.suppress(FileNotFoundError), open(path(id), encoding="utf-8") as file:
            try:
                # What was not written to its end was not made.
                made, *traces = [json.loads(line) for line in file if line.endswith("\n")]
            except ValueError:
                made = {
                    "id": id,
                    "environment": "unknown",
                    "number": -1,
                    "owner": {"pid": 0, "start": None},
                }
                traces = [{"kind": "damaged file", "id": path(id)}]
            found.append({**made, "traces": traces})
    return sorted(found, key=lambda one: one["number"])


def forget() -> list[str]:
    """Remove files that were not written to their end, under the machine's lock, with which all are written."""
    found = [
        os.path.join(folder(), name)
        for name in sorted(os.listdir(folder()))
        if not name.endswith(".up")
    ]
    for one in found:
        os.unlink(one)
    return found


def remove(trace: Fields) -> None:
    """Remove what a trace is of, if it is there; it may be called twice.  Raises UserError."""
    kind, id = trace["kind"], trace["id"]
    if "remove" in trace:
        _by_commands(trace)
    elif kind == "folder":
        remove_tree(id, unmount=True)
    elif kind == "programs":
        holders.end_holders(id)
    elif kind == "group":
        cgroups.remove(id)
    elif kind == "frozen":
        # What is frozen does not end, whoever asks it to.
        cgroups.freeze(cgroups.freezers(id), False)
    elif kind == "machine":
        from strata.vm import machine

        machine.remove(id)
    elif kind == "namespace":
        from strata.client import namespace

        namespace.remove()
    else:
        words = "another version made it; `python3 -m strata clean` looks for what is ours"
        say("testbed", f"{kind} {id}: {words}")


def _by_commands(trace: Fields) -> None:
    def run(argv: list[str], check: bool = False) -> subprocess.CompletedProcess[str]:
        return capture(as_root(argv) if trace.get("root") else argv, check=check)

    def removed() -> bool:
        codes = [run(argv).returncode for argv in trace["remove"]]
        return not any(codes)

    def there() -> bool:
        return bool(run(trace["find"], check=True).stdout.strip())

    # It is mostly there, and removing what is not there does no harm: then nothing has to be asked.
    if removed():
        return
    if "start" in trace and run(trace["find"]).returncode:
        capture([os.path.join(paths.PROJECT, trace["start"])], timeout=90)
    if there() and not removed() and there():
        raise UserError(f"{trace['kind']} {trace['id']} could not be removed")
