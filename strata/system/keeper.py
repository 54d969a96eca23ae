"""The keeper: a process that sleeps until a workflow ends, and then removes the system it left up.

It takes over what the workflow itself cannot do after a kill.  It waits on a process descriptor
and uses no CPU time meanwhile.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time

from strata.base.errors import UserError
from strata.base.files import note_json, read_json
from strata.base.process import alive, identity, wait_for
from strata.system import state, testbed

# Seconds until it tries again where something cannot be removed, such as a folder in which a command that outlived a
# killed cell for a moment mounts something.
PAUSES = (1, 10)


def path() -> str:
    """The file that names the keepers there are."""
    return os.path.join(state.folder(), "keepers.json")


def _known() -> list[dict]:
    """``[{owner, keeper}, …]`` of the keepers that are there."""
    found = read_json(path())
    try:
        return [one for one in found["keepers"] if one["owner"] and alive(one["keeper"])] if found else []
    except (TypeError, KeyError, ValueError):
        return []


def is_there(owner: dict) -> bool:
    """Whether a keeper waits for this owner's end."""
    return any(one["owner"] == owner for one in _known())


def see(owner: dict) -> None:
    """Start a keeper for this owner, unless one is there or the owner is this very process.

    There is one for each run, whichever runs take turns; it is called under the machine's lock.
    """
    if owner["pid"] == os.getpid():
        return
    known = _known()
    if any(one["owner"] == owner for one in known):
        return
    process = subprocess.Popen(
        [sys.executable, "-m", "strata", "keeper", str(owner["pid"]), owner["start"]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)},
    )
    note_json(path(), {"keepers": [*known, {"owner": owner, "keeper": identity(process.pid)}]})


def keep(owner: dict) -> None:
    """Wait for the owner's end, end the cell that it left running, and remove what it left up.

    Where it left nothing, no other measurement is waited for.
    """
    if alive(owner):
        wait_for(owner["pid"], None)
    if not testbed.left_by(owner):
        return
    there = state.read()
    if there["system"] and there["system"]["owner"] == owner and alive(there["cell"]):
        cell = there["cell"]["pid"]
        os.kill(cell, signal.SIGTERM)
        if not wait_for(cell, 60) and alive(there["cell"]):
            os.kill(cell, signal.SIGKILL)
    with testbed.exclusive():
        for pause in PAUSES:
            with contextlib.suppress(UserError, OSError):
                testbed.remove_of(owner)
                break
            time.sleep(pause)
        else:
            testbed.remove_of(owner)
