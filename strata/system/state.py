"""What is up: of each thing a file that says how it is removed, a line for each part of it before that is made.

The first line is the thing itself, ``{id, environment, owner, number}``, each further one a trace
(:mod:`strata.system.traces`).  The files lie in a folder that only its user may enter; what is removed has none.
"""

import contextlib
import json
import os
import time

from strata.base import places
from strata.base.files import write_json
from strata.base.shapes import Fields


def folder() -> str:
    """The folder for what is known of this machine, made where it is not there."""
    path = os.path.join(places.home(), "state")
    if not os.path.isdir(path):
        os.makedirs(places.home(), 0o755, exist_ok=True)
        os.makedirs(path, 0o700, exist_ok=True)
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


def forget(id: str) -> None:
    """Forget a thing that was removed."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path(id))


def all_up() -> list[Fields]:
    """``{id, environment, owner, number, traces}`` of all that is up, in the order in which it was begun.

    What was written down and makes no sense is a trace of which nobody knows how it is removed.
    """
    own = folder()
    found = [_read(os.path.join(own, name)) for name in os.listdir(own) if name.endswith(".up")]
    return sorted((one for one in found if one is not None), key=lambda one: one["number"])


def _read(file: str) -> Fields | None:
    """What a file says; None where it has gone meanwhile."""
    try:
        with open(file, encoding="utf-8") as opened:
            # What was not written to its end was not made.
            made, *traces = [json.loads(line) for line in opened if line.endswith("\n")]
        return {**made, "traces": traces}
    except FileNotFoundError:
        return None
    except ValueError:
        damaged = {"kind": "damaged file", "id": file}
        nobody = {"pid": 0, "start": None}
        id = os.path.basename(file).removesuffix(".up")
        return {"id": id, "environment": "unknown", "number": -1, "owner": nobody, "traces": [damaged]}
