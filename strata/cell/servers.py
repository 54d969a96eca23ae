"""Servers of a workload: started in the system under test, waited for by asking, ended, and their end looked at."""

import contextlib
import os
import re
import time

from strata.base.errors import CellFailed, Unable, UserError
from strata.base.patience import stretched
from strata.base.process import capture
from strata.base.shapes import Fields
from strata.cell.inputs import Inputs
from strata.system.testbed import System

SERVE = "/opt/strata/bin/serve"
# Seconds between two questions, at the least.  Within these it is what a question takes: in an emulated machine, where
# each is a session of its own, servers would else have half of the processors for their start.
PAUSE = 0.05
KEPT = 4000
# Where the password of a cell's servers is, in the system and at the client, for them alone to read.
PASSWORD = "/data/password"


class Server:
    """One server: its declaration (of the plan), and the system with this number, which it runs in."""

    def __init__(self, declared: Fields, inputs: Inputs, part: int) -> None:
        self.declared, self._inputs, self._part = declared, inputs, part
        several = inputs.parts > 1
        where = {"system": part} if several else {}
        self.record: Fields = {"name": declared["name"], **where, "ready_seconds": None, "exit": None, "output": None}
        self.shown = f"{declared['name']} in system {part}" if several else declared["name"]

    def _filled(self, argv: list[str]) -> list[str]:
        return self._inputs.fill(argv, self._inputs.of(self._part, self._inputs.values))

    def start(self) -> None:
        """Start it.  Whether it answers is then to be asked."""
        self.begun = time.monotonic()
        self._serve("start", *self._filled(self.declared["argv"]))

    def ask(self) -> bool:
        """Ask once whether it answers.  Raises CellFailed with its own last words if it ended or its time is over."""
        name, ready = self.shown, self.declared["ready"]
        limit = stretched(ready["timeout"])
        left = limit - (time.monotonic() - self.begun)
        if left <= 0:
            raise CellFailed(f"its server {name} was not ready after {limit:g} s: {self.last_words()}")
        command = self._inputs.place(ready.get("at", "system"), self._part)(self._filled(ready["argv"]))
        try:
            if capture(command, timeout=left / stretched(1), check=False).returncode == 0:
                self.record["ready_seconds"] = round(time.monotonic() - self.begun, 3)
                return True
        except UserError:
            return False
        if self._serve("state").strip() != "running":
            raise Unable(f"its server {name} ended before it was ready: {self.last_words()}")
        return False

    def stop(self) -> None:
        """End it and see that it ended well.  Raises CellFailed if it had ended before, hangs, or says trouble."""
        name, limit = self.shown, stretched(self.declared["stop"]["timeout"])
        if self._serve("state").strip() != "running":
            raise Unable(f"its server {name} ended during the run: {self.last_words()}")
        code = self._serve("end", str(int(max(limit, 1)))).strip()
        self.record["exit"] = int(code) if code.isdigit() else None
        output = self._serve("output")
        self.record["output"] = output[-KEPT:]
        if not code.isdigit():
            raise CellFailed(f"its server {name} did not end within {limit:g} s and was killed")
        if int(code) not in self.declared["exits"]:
            raise Unable(f"its server {name} ended with exit code {code}: {self.last_words()}")
        pattern = self.declared.get("trouble")
        found = [line for line in output.splitlines() if pattern and re.search(pattern, line)]
        if found:
            raise Unable(f"its server {name} reports: {found[0].strip()}")

    def _serve(self, form: str, *words: str) -> str:
        return capture(self._inputs.place("system", self._part)([SERVE, form, self.declared["name"], *words])).stdout

    def last_words(self) -> str:
        """The server's last words, which also go into the record."""
        try:
            self.record["output"] = self._serve("output")[-KEPT:]
        except UserError as error:
            return f"its output cannot be read: {error}"
        lines = [line.strip() for line in self.record["output"].splitlines() if line.strip()]
        return " / ".join(lines[-3:]) or "it printed nothing"


def bring_password(system: System) -> None:
    """Put the password where the servers and their client read it.  It is in no command, log or record."""
    assert system.link
    path = os.path.join(system.top.context.folder, "password")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(system.link.password + "\n")
    try:
        for place in [*system.tops, system.client]:
            if place is not None:
                place.put(path, PASSWORD)
    finally:
        os.unlink(path)


class Servers:
    """The servers of a cell.  `records` is what its record says of them; `running` those that were started."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self.records: list[Fields] = []
        self.running: list[Server] = []

    def start(self) -> None:
        """Start one after the other, each in all systems that have it.  Raises CellFailed."""
        declared = self._inputs.cell.get("servers", [])
        parts = range(self._inputs.parts)
        if any(server.get("password") for server in declared):
            bring_password(self._inputs.system)
        for one in declared:
            equal = [Server(one, self._inputs, part) for part in parts if self._inputs.is_of(one, part)]
            self.records += [server.record for server in equal]
            start(equal)
            self.running += equal

    def stop(self) -> None:
        """End them, the last first, and see that they ended well.  Raises CellFailed."""
        while self.running:
            self.running.pop().stop()

    def words(self) -> str:
        """What they said last, for the message about a step that failed."""
        return "".join(f"; {server.shown} said last: {server.last_words()}" for server in self.running)


def start(servers: list[Server]) -> None:
    """Start servers of equal systems, and ask in turn until every one answers.  Raises CellFailed."""
    for server in servers:
        server.start()
    begun = time.monotonic()
    while servers := [server for server in servers if not server.ask()]:
        time.sleep(max(PAUSE, time.monotonic() - begun))
        begun = time.monotonic()
