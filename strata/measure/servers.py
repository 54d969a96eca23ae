"""Servers of a workload: their start in the system under test, and their end."""

import re
import time
from collections.abc import Iterator
from itertools import groupby

from strata.measure.arguments import Inputs, fill
from strata.measure.log_sections import last_words
from strata.testbed.lifecycle import System
from strata.util import bounded
from strata.util.data_types import Fields
from strata.util.errors import CellFailed, CommandFailed, UserError
from strata.util.process import capture
from strata.util.timeouts import stretch

# The program in the image that runs a server in the background.
SERVE = "/opt/strata/bin/serve"
# The shortest pause, in seconds, between two requests whether a server is ready.  A pause is as
# long as the last request took: in an emulated machine, where each request opens a session of its
# own, requests would otherwise take half of the CPU time from the servers that start.
PAUSE = 0.05
# How many of the last characters of a server's output the record keeps.
KEPT = 4000
# The beginning of the state of a server that printed more than `serve` keeps.
TOO_LONG = "printed more"
# The path of the password of a cell's servers, which only they and their client can read.
PASSWORD = "/data/password"


class Server:
    """Start, check and stop one server.

    declared: the declaration of the server in the plan.
    part: the number of the system in which the server runs (from 0).
    record: the entry in `servers` of the cell's record; filled as the server starts and ends.
    shown: the name of the server in messages.
    """

    def __init__(self, declared: Fields, inputs: Inputs, part: int) -> None:
        self.declared, self._inputs, self._part = declared, inputs, part
        self.record: Fields = {"name": declared["name"]}
        self.shown = declared["name"]
        if inputs.parts > 1:
            self.record["system"] = part
            self.shown += f" in system {part}"
        self.record |= {"ready_seconds": None, "exit": None, "output": None}

    def _filled(self, argv: list[str]) -> list[str]:
        """Return a declared command with the values of the server's system."""
        return fill(argv, self._inputs.of(self._part, self._inputs.values), self._inputs.workload)

    def _serve(self, action: str, *arguments: str) -> str:
        """Execute an action of `serve` for the server in its system, and return what it prints."""
        argv = [SERVE, action, self.declared["name"], *arguments]
        return capture(self._inputs.place(self._part).measured_command(argv)).stdout

    def start(self) -> None:
        """Start the server; :meth:`check_ready` tells when it accepts requests."""
        self._begun = time.monotonic()
        self._serve("start", *self._filled(self.declared["argv"]))

    def check_ready(self) -> bool:
        """Send one request, and return whether the server is ready.

        If it is, its record gets the seconds since its start.
        Raises CellFailed, with the last lines of the server's output, if the server has ended or
        its time limit has passed.
        """
        ready = self.declared["ready"]
        limit = stretch(ready["timeout"])
        left = limit - (time.monotonic() - self._begun)
        if left <= 0:
            reason = f"was not ready after {limit:g} s: {self.last_words()}"
            raise CellFailed(f"its server {self.shown} {reason}")
        place = self._inputs.place(None if ready.get("at") == "client" else self._part)
        command = place.measured_command(self._filled(ready["argv"]))
        try:
            done = capture(command, left / stretch(1), check=False)
        except UserError:
            # The request itself took too long.
            return False
        if done.returncode == 0:
            self.record["ready_seconds"] = round(time.monotonic() - self._begun, 3)
            return True
        self._require_running("ended before it was ready")
        return False

    def stop(self) -> None:
        """Stop the server, and record its exit code and the end of its output.

        Raises CellFailed if the server had ended before, does not end in time, ends with an exit
        code that is not declared, or printed a line that the declared pattern `trouble` matches.
        """
        self._require_running("ended during the run")
        limit = stretch(self.declared["stop"]["timeout"])
        code = self._serve("end", str(int(max(limit, 1)))).strip()
        self.record["exit"] = int(code) if code.isdigit() else None
        output = self._serve("output")
        self.record["output"] = output[-KEPT:]
        if not code.isdigit():
            reason = f"did not end within {limit:g} s and was killed"
            raise CellFailed(f"its server {self.shown} {reason}")
        if int(code) not in self.declared["exits"]:
            reason = f"ended with exit code {code}: {self.last_words()}"
            raise CommandFailed(f"its server {self.shown} {reason}")
        if line := self._trouble(output):
            raise CommandFailed(f"its server {self.shown} reports: {line.strip()[:KEPT]}")

    def _trouble(self, output: str) -> str | None:
        """Return the first line of an output that is an error; None if there is none.

        The declaration's regular expression `trouble` matches such lines.  The search has a time
        limit.
        """
        pattern = self.declared.get("trouble")
        if pattern is None:
            return None

        def search(at: bounded.NamePart) -> Iterator[str | None]:
            declaration = f"workloads/{self._inputs.workload}/workload.yaml"
            at(f"{declaration}: trouble of {self.declared['name']}")
            matching = (line for line in output.splitlines() if re.search(pattern, line))
            yield next(matching, None)

        lines: list[str | None] = list(bounded.run_bounded(search))
        return lines[0]

    def _require_running(self, failure: str) -> None:
        """Raise CellFailed, with the last lines of its output, unless the server is running.

        failure: the phrase for a server that has ended.
        """
        state = self._serve("state").strip()
        if state.startswith(TOO_LONG):
            raise CellFailed(f"its server {self.shown} {state}, its limit: {self.last_words()}")
        if state != "running":
            raise CommandFailed(f"its server {self.shown} {failure}: {self.last_words()}")

    def last_words(self) -> str:
        """Return the last lines of the server's output, and record the end of the output."""
        try:
            self.record["output"] = self._serve("output")[-KEPT:]
        except UserError as error:
            return f"its output cannot be read: {error}"
        return last_words(self.record["output"]) or "it printed nothing"


def bring_password(system: System) -> None:
    """Copy the password of the servers into all systems and to the client.

    No command, log or record contains the password.
    """
    import tempfile

    assert system.link
    # The system's own folder, which no other user can read.
    with tempfile.NamedTemporaryFile("w", dir=system.top.context.folder) as file:
        file.write(system.link.password + "\n")
        file.flush()
        for place in [*system.tops, system.link.client]:
            place.copy_in(file.name, PASSWORD)


def make_servers(inputs: Inputs) -> list[Server]:
    """Return the servers of a cell in the order in which they are to be started.

    A declaration with a role gives one server in each system with that role; one without a role
    gives a server in every system.
    """
    servers = []
    for declared in inputs.cell.get("servers", []):
        for part in range(inputs.parts):
            roles = inputs.groups[part % len(inputs.groups)]
            if "role" not in declared or declared["role"] in roles:
                servers.append(Server(declared, inputs, part))
    return servers


def start_servers(servers: list[Server], system: System) -> None:
    """Start the servers, and wait until all of them are ready.

    All servers of one declaration are ready before those of the next declaration are started.
    If a server needs the password, it is copied first.
    Raises CellFailed if a server ends or is not ready in time.
    """
    if any(server.declared.get("password") for server in servers):
        bring_password(system)
    for _, group in groupby(servers, key=lambda server: server.declared["name"]):
        waiting = [*group]
        for server in waiting:
            server.start()
        begun = time.monotonic()
        while waiting := [server for server in waiting if not server.check_ready()]:
            time.sleep(max(PAUSE, time.monotonic() - begun))
            begun = time.monotonic()
