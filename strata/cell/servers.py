"""Servers of a workload: started in the system under test, waited for by asking, ended, and their end looked at."""

import contextlib
import os
import re
import time
from collections.abc import Callable

from strata.base.errors import CellFailed, Unable, UserError
from strata.base.patience import stretched
from strata.base.process import capture
from strata.layers import Layer
from strata.system.testbed import System

SERVE = "/opt/strata/bin/serve"
REACH = "/opt/strata/bin/reach"
# Seconds between two questions, at the least and at the most.  Within these it is what a question takes: in an emulated
# machine, where each is a session of its own, servers would else have half of the processors for their start.
PAUSES = (0.05, 2.0)
KEPT = 4000
# Where the password of a cell's servers is, in the system and at the client, for them alone to read.
PASSWORD = "/data/password"


class Server:
    """One server: its declaration (of the plan), the system it runs in, and how a declared command is filled in.

    part: the number of that system, where there are several equal ones.
    """

    def __init__(
        self,
        declared: dict,
        system: Layer,
        fill: Callable[[list[str]], list[str]],
        place: Callable[[str], Callable],
        part: int | None = None,
    ) -> None:
        self.declared, self.system, self.fill, self.place = declared, system, fill, place
        where = {} if part is None else {"system": part}
        self.record: dict = {"name": declared["name"], **where, "ready_seconds": None, "exit": None, "output": None}
        self.shown = declared["name"] if part is None else f"{declared['name']} in system {part}"

    def start(self) -> None:
        """Start it.  Whether it answers is then to be asked."""
        self.begun = time.monotonic()
        self._serve("start", *self.fill(self.declared["argv"]))

    def ask(self) -> bool:
        """Ask once whether it answers.  Raises CellFailed with its own last words if it ended or its time is over."""
        name, ready = self.shown, self.declared["ready"]
        limit = stretched(ready["timeout"])
        left = limit - (time.monotonic() - self.begun)
        if left <= 0:
            raise CellFailed(f"its server {name} was not ready after {limit:g} s: {self.last_words()}")
        command = self.place(ready.get("at", "system"))(self.fill(ready["argv"]))
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
        return capture(self.system.command([SERVE, form, self.declared["name"], *words])).stdout

    def last_words(self) -> str:
        """The server's last words, which also go into the record."""
        try:
            self.record["output"] = self._serve("output")[-KEPT:]
        except UserError as error:
            return f"its output cannot be read: {error}"
        lines = [line.strip() for line in self.record["output"].splitlines() if line.strip()]
        return " / ".join(lines[-3:]) or "it printed nothing"


def wants_password(declared: list[dict]) -> bool:
    """Whether one of the declared servers takes a password."""
    return any(server.get("password") for server in declared)


def bring_password(system: System) -> None:
    """Put a new password where the servers and their client read it.  It is in no command, log or record."""
    path = os.path.join(system.top.context.folder, "password")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(os.urandom(16).hex() + "\n")
    try:
        for place in [*system.tops, system.client]:
            if place is not None:
                place.put(path, PASSWORD)
    finally:
        os.unlink(path)


def start(servers: list[Server]) -> None:
    """Start servers of equal systems, and ask in turn until every one answers.  Raises CellFailed."""
    for server in servers:
        server.start()
    begun = time.monotonic()
    while servers := [server for server in servers if not server.ask()]:
        least, most = PAUSES
        time.sleep(min(max(least, time.monotonic() - begun), most))
        begun = time.monotonic()


def check_ports(
    ports: list[tuple[str, int]], workload: str, address: str, client: Callable[[list[str]], list[str]]
) -> None:
    """Raise UserError where something answers already at a port (parameter, number) of the system's address."""
    for name, port in ports:
        if capture(client([REACH, address, str(port)]), check=False).returncode == 0:
            raise UserError(
                f"port {port} of {address} is taken by another program: end that, or set another port "
                f"(config.yaml: workloads.{workload}.{name})"
            )
