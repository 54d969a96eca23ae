"""Servers of a workload: started in the system under test, waited for by asking, ended, and their end looked at."""

import re
import time
from collections.abc import Iterator
from itertools import groupby

from strata.measure.arguments import Inputs, fill
from strata.measure.log_sections import last_words
from strata.testbed.lifecycle import System
from strata.util import bounded
from strata.util.data_types import Fields
from strata.util.errors import CellFailed, Unable, UserError
from strata.util.process import capture
from strata.util.timeouts import stretched

SERVE = "/opt/strata/bin/serve"
# Seconds between two questions, at the least.  Within these it is what a question takes: in an emulated machine, where
# each is a session of its own, servers would else have half of the processors for their start.
PAUSE = 0.05
KEPT = 4000
# How `serve` begins to say that a server printed more than is kept.
LONG = "printed more"
# Where the password of a cell's servers is, in the system and at the client, for them alone to read.
PASSWORD = "/data/password"


class Server:
    """One server: its declaration (of the plan), and the system with this number, which it runs in.

    `record` is what the cell's record says of it.
    """

    def __init__(self, declared: Fields, inputs: Inputs, part: int) -> None:
        self.declared, self._inputs, self._part = declared, inputs, part
        where = {"system": part} if inputs.parts > 1 else {}
        self.record: Fields = {
            "name": declared["name"],
            **where,
            "ready_seconds": None,
            "exit": None,
            "output": None,
        }
        self.shown = declared["name"] + (f" in system {part}" if where else "")

    def _filled(self, argv: list[str]) -> list[str]:
        return fill(argv, self._inputs.of(self._part, self._inputs.values), self._inputs.workload)

    def _serve(self, form: str, *words: str) -> str:
        return capture(
            self._inputs.place(self._part).command([SERVE, form, self.declared["name"], *words])
        ).stdout

    def start(self) -> None:
        """Start it.  Whether it answers is then to be asked."""
        self.begun = time.monotonic()
        self._serve("start", *self._filled(self.declared["argv"]))

    def ask(self) -> bool:
        """Ask once whether it answers.  Raises CellFailed with its own last words if it ended or its time is over."""
        ready = self.declared["ready"]
        limit = stretched(ready["timeout"])
        left = limit - (time.monotonic() - self.begun)
        if left <= 0:
            raise CellFailed(
                f"its server {self.shown} was not ready after {limit:g} s: {self.last_words()}"
            )
        place = self._inputs.place(None if ready.get("at") == "client" else self._part)
        try:
            if (
                capture(
                    place.command(self._filled(ready["argv"])), left / stretched(1), check=False
                ).returncode
                == 0
            ):
                self.record["ready_seconds"] = round(time.monotonic() - self.begun, 3)
                return True
        except UserError:
            return False
        self._expect_running("ended before it was ready")
        return False

    def stop(self) -> None:
        """End it and see that it ended well.  Raises CellFailed if it had ended before, hangs, or says trouble."""
        self._expect_running("ended during the run")
        limit = stretched(self.declared["stop"]["timeout"])
        code = self._serve("end", str(int(max(limit, 1)))).strip()
        self.record["exit"] = int(code) if code.isdigit() else None
        output = self._serve("output")
        self.record["output"] = output[-KEPT:]
        if not code.isdigit():
            raise CellFailed(
                f"its server {self.shown} did not end within {limit:g} s and was killed"
            )
        if int(code) not in self.declared["exits"]:
            raise Unable(
                f"its server {self.shown} ended with exit code {code}: {self.last_words()}"
            )
        if line := self._trouble(output):
            raise Unable(f"its server {self.shown} reports: {line.strip()[:KEPT]}")

    def _trouble(self, output: str) -> str | None:
        """The first line that tells of trouble, if any does."""
        pattern = self.declared.get("trouble")
        if pattern is None:
            return None

        def work(at: bounded.At) -> Iterator[str | None]:
            at(
                f"workloads/{self._inputs.workload}/workload.yaml: trouble of {self.declared['name']}"
            )
            lines = output.splitlines()
            yield next((line for line in lines if re.search(pattern, line)), None)

        found: list[str | None] = list(bounded.run(work))
        return found[0]

    def _expect_running(self, else_it: str) -> None:
        state = self._serve("state").strip()
        if state.startswith(LONG):
            raise CellFailed(f"its server {self.shown} {state}, its limit: {self.last_words()}")
        if state != "running":
            raise Unable(f"its server {self.shown} {else_it}: {self.last_words()}")

    def last_words(self) -> str:
        """The server's last words, which also go into the record."""
        try:
            self.record["output"] = self._serve("output")[-KEPT:]
        except UserError as error:
            return f"its output cannot be read: {error}"
        return last_words(self.record["output"]) or "it printed nothing"


def bring_password(system: System) -> None:
    """Put the password where the servers and their client read it.  It is in no command, log or record."""
    import tempfile

    assert system.link
    # Nobody else can read it there either.
    with tempfile.NamedTemporaryFile("w", dir=system.top.context.folder) as file:
        file.write(system.link.password + "\n")
        file.flush()
        for place in [*system.tops, system.link.client]:
            place.put(file.name, PASSWORD)


def of(inputs: Inputs) -> list[Server]:
    """The servers of a cell in the order of their start: those with a role in the systems that have it, others in all.

    Those of one declaration are equal.
    """
    groups = inputs.groups
    return [
        Server(one, inputs, part)
        for one in inputs.cell.get("servers", [])
        for part in range(inputs.parts)
        if "role" not in one or one["role"] in groups[part % len(groups)]
    ]


def start(servers: list[Server], system: System) -> None:
    """Start equal ones together, and ask in turn until every one answers, before the next.  Raises CellFailed."""
    if any(server.declared.get("password") for server in servers):
        bring_password(system)
    for _, equal in groupby(servers, key=lambda server: server.declared["name"]):
        silent = [*equal]
        for server in silent:
            server.start()
        begun = time.monotonic()
        while silent := [server for server in silent if not server.ask()]:
            time.sleep(max(PAUSE, time.monotonic() - begun))
            begun = time.monotonic()
