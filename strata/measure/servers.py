"""Start, check and stop the servers of a workload in the system under test."""

import re
import time
from collections.abc import Iterator
from itertools import groupby

from strata.measure.arguments import Inputs, fill_command
from strata.measure.log_sections import summarize_output
from strata.testbed.lifecycle import System
from strata.util import bounded
from strata.util.data_types import Fields
from strata.util.errors import CellFailed, CommandFailed, UserError
from strata.util.process import capture_output
from strata.util.timeouts import scale_timeout

# The program in the image that runs a server in the background.
SERVE = "/opt/strata/bin/serve"
# The shortest pause, in seconds, between two requests whether a server is ready.  A pause is as
# long as the last request took: in an emulated machine, where each request opens a session of its
# own, requests would otherwise take half of the CPU time from the servers that start.
MIN_PAUSE_SECONDS = 0.05
# How many of the last characters of a server's output the record keeps.
KEPT_CHARACTERS = 4000
# The beginning of the state of a server that printed more than `serve` keeps: `serve` prints it.
TOO_LONG_STATE = "printed more"
# The path of the password of a cell's servers, which only they and their client can read.
PASSWORD = "/data/password"


class Server:
    """Start, check and stop one server.

    declared: the declaration of the server in the plan.
    record: the entry in `servers` of the cell's record, ``{name, system, ready_seconds, exit,
    output}``.  It has `system` only with several systems.  The last three are None until the server
    is ready and until it ends.
    shown: the name of the server in messages.
    """

    def __init__(self, declared: Fields, inputs: Inputs, system_number: int) -> None:
        """Begin the server's record; the server is not started yet.

        declared: an entry of `servers` in the plan's `cell`.
        inputs: the layers and the values of placeholders.
        system_number: the number of the system in which the server runs, from 0.
        """
        self.declared, self._inputs, self._system_number = declared, inputs, system_number
        self.record: Fields = {"name": declared["name"]}
        self.shown = declared["name"]
        if inputs.system_count > 1:
            self.record["system"] = system_number
            self.shown += f" in system {system_number}"
        self.record |= {"ready_seconds": None, "exit": None, "output": None}

    def _fill_command(self, argv: list[str]) -> list[str]:
        """Return a declared command with the values of the server's system."""
        values = self._inputs.build_placeholder_values(self._system_number, self._inputs.values)
        return fill_command(argv, values, self._inputs.workload)

    def _run_serve_action(self, action: str, *arguments: str) -> str:
        """Execute an action of `serve` for the server in its system, and return its output.

        action: "start", "state", "end" or "output" (workloads/common/serve.sh).
        arguments: the arguments of the action.
        Raises UserError if the action fails.
        """
        argv = [SERVE, action, self.declared["name"], *arguments]
        return capture_output(
            self._inputs.find_layer(self._system_number).build_measured_command(argv)
        ).stdout

    def start(self) -> None:
        """Start the server, without waiting until it accepts requests (:meth:`check_ready`).

        Raises UserError if `serve` fails.
        """
        self._started = time.monotonic()
        self._run_serve_action("start", *self._fill_command(self.declared["argv"]))

    def check_ready(self) -> bool:
        """Send one request to the server, and return whether the server is ready.

        If it is ready, its record gets the seconds since its start as `ready_seconds`.  A request
        that cannot be made, or exceeds the time limit, counts as not ready.
        Raises CellFailed, with the last lines of the server's output, if the server has ended or
        its time limit has passed.
        """
        ready = self.declared["ready"]
        limit = scale_timeout(ready["timeout"])
        seconds_left = limit - (time.monotonic() - self._started)
        if seconds_left <= 0:
            reason = f"was not ready after {limit:g} s: {self.read_last_lines()}"
            raise CellFailed(f"its server {self.shown} {reason}")
        layer = self._inputs.find_layer(
            None if ready.get("at") == "client" else self._system_number
        )
        command = layer.build_measured_command(self._fill_command(ready["argv"]))
        try:
            # capture_output scales its limit, and `seconds_left` is scaled already.
            result = capture_output(command, seconds_left / scale_timeout(1), check=False)
        except UserError:
            # The request took too long or could not be made: `start_servers` calls again.
            return False
        if result.returncode == 0:
            self.record["ready_seconds"] = round(time.monotonic() - self._started, 3)
            return True
        self._check_running("ended before it was ready")
        return False

    def stop(self) -> None:
        """Stop the server, and record its exit code and the end of its output.

        Both are recorded before an error is raised.  The recorded exit code is None for a server
        that did not end in time and was killed.
        Raises CellFailed if the server had ended before, does not end in time, ends with an exit
        code that is not declared, or printed a line that the declared pattern `trouble` matches.
        """
        self._check_running("ended during the run")
        limit = scale_timeout(self.declared["stop"]["timeout"])
        # `serve` takes whole seconds, at least 1, and prints the exit code or "killed".
        code = self._run_serve_action("end", str(int(max(limit, 1)))).strip()
        self.record["exit"] = int(code) if code.isdigit() else None
        output = self._run_serve_action("output")
        self.record["output"] = output[-KEPT_CHARACTERS:]
        if not code.isdigit():
            reason = f"did not end within {limit:g} s and was killed"
            raise CellFailed(f"its server {self.shown} {reason}")
        if int(code) not in self.declared["exits"]:
            reason = f"ended with exit code {code}: {self.read_last_lines()}"
            raise CommandFailed(f"its server {self.shown} {reason}")
        if line := self._find_error_line(output):
            raise CommandFailed(
                f"its server {self.shown} reports: {line.strip()[:KEPT_CHARACTERS]}"
            )

    def _find_error_line(self, output: str) -> str | None:
        """Return the first line of an output that reports an error; None if no line does.

        A line reports an error if the declared regular expression `trouble` matches it.  The search
        runs in a process with a time limit, since a badly written pattern may take hours.
        output: the whole output of the server.
        """
        pattern = self.declared.get("trouble")
        if pattern is None:
            return None

        def find_matching_line(name_part: bounded.NamePart) -> Iterator[str | None]:
            """Yield the first line that the pattern matches, or None, in the process with limits.

            name_part: sets the name of the pattern, which messages on limits have.
            """
            declaration = f"workloads/{self._inputs.workload}/workload.yaml"
            name_part(f"{declaration}: trouble of {self.declared['name']}")
            for line in output.splitlines():
                if re.search(pattern, line):
                    yield line
                    return
            yield None

        lines: list[str | None] = list(bounded.run_in_bounded_process(find_matching_line))
        # The function yields exactly once.
        return lines[0]

    def _check_running(self, failure: str) -> None:
        """Raise CellFailed, with the last lines of its output, unless the server is running.

        failure: the clause of the message after the server's name, such as "ended during the run".
        For a server that has ended, the error is CommandFailed, a subclass of CellFailed that may
        show that the environment cannot run the workload.  A server that printed too much does not
        show that.
        """
        state = self._run_serve_action("state").strip()
        if state.startswith(TOO_LONG_STATE):
            raise CellFailed(
                f"its server {self.shown} {state}, its limit: {self.read_last_lines()}"
            )
        if state != "running":
            raise CommandFailed(f"its server {self.shown} {failure}: {self.read_last_lines()}")

    def read_last_lines(self) -> str:
        """Return the last lines of the server's output, and record its last KEPT_CHARACTERS.

        If the output is empty or cannot be read, a phrase that says so is returned.  No UserError
        is raised, because the result is for the messages of other errors.
        """
        try:
            self.record["output"] = self._run_serve_action("output")[-KEPT_CHARACTERS:]
        except UserError as error:
            return f"its output cannot be read: {error}"
        return summarize_output(self.record["output"]) or "it printed nothing"


def copy_password(system: System) -> None:
    """Copy the password of the servers into all systems and to the client, as the file PASSWORD.

    system: the system of the cell, which must have a client: `system.link` holds the password.
    A file keeps the password out of commands, logs and records.  The programs of workloads read
    this path.
    """
    import tempfile

    assert system.link
    # The system's own folder, which no other user can read.
    with tempfile.NamedTemporaryFile("w", dir=system.top.context.folder) as file:
        file.write(system.link.password + "\n")
        file.flush()
        for layer in [*system.tops, system.link.client]:
            layer.copy_file_in(file.name, PASSWORD)


def create_servers(inputs: Inputs) -> list[Server]:
    """Create the servers of a cell, in the order of their start; none is started.

    A declaration with a role gives a server in each system with that role; one without a role gives
    a server in every system.  The servers of a declaration follow one another, on which
    :func:`start_servers` relies.
    """
    servers = []
    for declared in inputs.cell.get("servers", []):
        for system_number in range(inputs.system_count):
            roles = inputs.groups[system_number % len(inputs.groups)]
            if "role" not in declared or declared["role"] in roles:
                servers.append(Server(declared, inputs, system_number))
    return servers


def start_servers(servers: list[Server], system: System) -> None:
    """Start the servers, and wait until all of them are ready.

    All servers of one declaration are ready before those of the next declaration are started.
    If a server needs the password, it is copied first.
    servers: all servers, in the order of :func:`create_servers`.
    system: the system of the cell.
    Raises CellFailed if a server ends or is not ready in time.
    """
    if any(server.declared.get("password") for server in servers):
        copy_password(system)
    for _, group in groupby(servers, key=lambda server: server.declared["name"]):
        pending_servers = list(group)
        for server in pending_servers:
            server.start()
        request_started = time.monotonic()
        while pending_servers := [server for server in pending_servers if not server.check_ready()]:
            time.sleep(max(MIN_PAUSE_SECONDS, time.monotonic() - request_started))
            request_started = time.monotonic()
