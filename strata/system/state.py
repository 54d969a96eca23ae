"""What is up: of each thing a file that says how it is removed, a line for each part of it before that is made.

The first line is the thing itself, ``{id, environment, layers, owner, number}``, each further one a trace
(:mod:`strata.system.traces`).  The files lie in a folder that only its user may enter; what is removed has none.
"""

import contextlib
import json
import os
import stat
import time

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import note_json
from strata.base.progress import say
from strata.base.shapes import Fields


def folder() -> str:
    """The folder for what is known of this machine, made where it is not there.

    Raises UserError where it is somebody else's.
    """
    path = os.path.join(places.home(), "state")
    try:
        facts = os.lstat(path)
    except FileNotFoundError:
        os.makedirs(places.home(), 0o755, exist_ok=True)
        os.mkdir(path, 0o700)
        facts = os.lstat(path)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
        raise UserError(f"{path} is not a folder of this user's: see who made it, and remove it")
    if facts.st_mode & 0o077:
        os.chmod(path, 0o700)
    return path


def path(id: str) -> str:
    """The file of a thing that is up."""
    return os.path.join(folder(), f"{id}.up")


def begin(id: str, environment: str, layers: list[Fields], owner: Fields) -> None:
    """Write down that a thing of these layers is about to be made, by this process (`owner`), for an environment."""
    number = time.monotonic_ns()
    note_json(path(id), {"id": id, "environment": environment, "layers": layers, "owner": owner, "number": number})


def note(id: str, trace: Fields) -> None:
    """Write down the trace of a part of it that is about to be made."""
    descriptor = os.open(path(id), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(descriptor, json.dumps(trace).encode() + b"\n")
    finally:
        os.close(descriptor)


def forget(id: str) -> None:
    """Forget a thing that was removed."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path(id))


def all_up() -> list[Fields]:
    """``{id, environment, layers, owner, number, traces}`` of all that is up, in the order in which it was begun.

    Of what was written down and makes no sense there is `complaint` in place of `number`, and no trace.
    """
    own = folder()
    found = [_read(os.path.join(own, name)) for name in os.listdir(own) if name.endswith(".up")]
    return sorted((one for one in found if one is not None), key=lambda one: one.get("number", -1))


def put_aside(id: str, complaint: str) -> None:
    """Keep what is written down of a thing in a file of another name, and say why: it makes no sense."""
    aside = f"{path(id).removesuffix('.up')}.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    os.rename(path(id), aside)
    say("testbed", f"{path(id)}: {complaint}; it is put aside as {aside}, and what is ours was looked for by its marks")


def _read(file: str) -> Fields | None:
    """What a file says; None where it has gone meanwhile."""
    try:
        with open(file, "rb") as opened:
            # What was not written to its end was not made.
            lines = opened.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return None
    id = os.path.basename(file).removesuffix(".up")
    unknown = {"id": id, "environment": "unknown", "layers": [], "owner": {"pid": 0, "start": None}, "traces": []}
    try:
        made, *traces = [json.loads(line) for line in lines] or [None]
    except (ValueError, RecursionError):
        return {**unknown, "complaint": "it is not JSON"}
    kinds = {"environment": str, "layers": list, "number": int}
    known = isinstance(made, dict) and all(isinstance(made.get(key), kind) for key, kind in kinds.items())
    if not known or made.get("id") != id:
        return {**unknown, "complaint": "it says of nothing what it is"}
    wrong = [trace for trace in traces if not _is_trace(trace)]
    if wrong or not _is_process(made.get("owner")):
        return {**unknown, "complaint": f"{wrong[0]} says of nothing how it is removed" if wrong else "nobody owns it"}
    return {**made, "traces": traces}


def _is_process(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("pid"), int) and isinstance(value.get("start"), str | None)


def _is_trace(value: object) -> bool:
    if not isinstance(value, dict) or not all(isinstance(value.get(key), str) for key in ("kind", "id")):
        return False
    if "remove" not in value:
        return True
    commands = [value.get("find"), *value["remove"]] if isinstance(value["remove"], list) else [None]
    return all(isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv) for argv in commands)
