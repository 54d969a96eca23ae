"""The keeper: a process that sleeps until a workflow ends, and then removes the system it left up.

It takes over what the workflow itself cannot do after a kill.  It waits on a process descriptor
and uses no CPU time meanwhile.
"""

import os
import signal
import subprocess
import sys

from strata.base import places
from strata.base.files import note_json, read_json
from strata.base.process import alive, identity, wait_for
from strata.system import testbed


def path() -> str:
    """The file that names the keeper."""
    return os.path.join(places.home(), "keeper.json")


def see(owner: dict) -> None:
    """Start a keeper for this owner, unless one is there or the owner is this very process."""
    if owner["pid"] == os.getpid():
        return
    known = read_json(path())
    if known and known["owner"] == owner and alive(known["keeper"]):
        return
    process = subprocess.Popen(
        [sys.executable, "-m", "strata", "keeper", str(owner["pid"]), owner["start"]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)},
    )
    note_json(path(), {"owner": owner, "keeper": identity(process.pid)})


def keep(owner: dict) -> None:
    """Wait for the owner's end, end the cell that it left running, and take its system down."""
    if alive(owner):
        wait_for(owner["pid"], None)
    state = testbed.read_state()
    if state["system"] and state["system"]["owner"] == owner and alive(state["cell"]):
        cell = state["cell"]["pid"]
        os.kill(cell, signal.SIGTERM)
        if not wait_for(cell, 60) and alive(state["cell"]):
            os.kill(cell, signal.SIGKILL)
    with testbed.exclusive():
        state = testbed.read_state()
        if state["system"] and state["system"]["owner"] == owner:
            testbed.take_down()
        testbed.release(owner)
