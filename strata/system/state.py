"""What is up, written down before it is made, in a folder that only its user may enter."""

import os
import stat
import time

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import note_json
from strata.base.progress import say

NOTHING: dict = {"system": None, "cell": None}


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


def path() -> str:
    """The file that says what is up."""
    return os.path.join(folder(), "testbed.json")


def read() -> dict:
    """``{system, cell}``: what is up, and the process of the cell that runs in it (each may be None).

    With `beside`, where it is not the only one, the systems that were brought up before and stand idle.

    What makes no sense counts for nothing here; :func:`complaint` tells of it.
    """
    found, complaint = _read()
    return found if complaint is None else dict(NOTHING)


def all_up() -> list[dict]:
    """All systems that are up, in the order in which they were brought up."""
    there = read()
    return [*there.get("beside", []), *([there["system"]] if there["system"] else [])]


def write(state: dict) -> None:
    """Write down what is up."""
    note_json(path(), state if state.get("beside") else {key: state[key] for key in ("system", "cell")})


def complaint() -> str | None:
    """Why what is written down makes no sense; None where it does."""
    return _read()[1]


def put_aside(complaint: str) -> None:
    """Keep what is written down in a file of its own, and say why: it makes no sense."""
    aside = f"{path()}.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    os.rename(path(), aside)
    say("testbed", f"{path()}: {complaint}; it is put aside as {aside}, and what is ours was looked for by its marks")


def _read() -> tuple[dict, str | None]:
    """What is written down, and why it makes no sense (None: it does)."""
    import json

    try:
        with open(path(), encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return dict(NOTHING), None
    except (ValueError, RecursionError):
        return dict(NOTHING), "it is not JSON"
    return found, _complaint(found)


def _complaint(state: object) -> str | None:
    if not isinstance(state, dict) or not {"system", "cell"} <= set(state):
        return "it is not {system, cell}"
    system, cell = state["system"], state["cell"]
    if cell is not None and not _is_process(cell):
        return "cell is no process"
    beside = state.get("beside", [])
    if not isinstance(beside, list):
        return "beside is no list"
    named = [("beside", other) for other in beside] + ([] if system is None else [("system", system)])
    return next((words for name, one in named if (words := _complaint_of_system(name, one))), None)


def _complaint_of_system(name: str, system: object) -> str | None:
    if not isinstance(system, dict) or not all(isinstance(system.get(key), str) for key in ("id", "environment")):
        return f"{name} has no id or environment"
    if not _is_process(system.get("owner")):
        return f"{name}.owner is no process"
    traces = system.get("traces")
    if not isinstance(traces, list):
        return f"{name}.traces is missing"
    wrong = [trace for trace in traces if not _is_trace(trace)]
    return f"{name}.traces: {wrong[0]} says of nothing how it is removed" if wrong else None


def _is_process(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("pid"), int) and isinstance(value.get("start"), str | None)


def _is_trace(value: object) -> bool:
    if not isinstance(value, dict) or not all(isinstance(value.get(key), str) for key in ("kind", "id")):
        return False
    if "remove" not in value:
        return True
    commands = [value.get("find"), *value["remove"]] if isinstance(value["remove"], list) else [None]
    return all(isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv) for argv in commands)
