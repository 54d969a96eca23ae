"""The steps of a cell: commands in the system under test and at the client, and the servers around them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator

from strata.base.clock import Watch
from strata.base.errors import CellFailed, Endless, Unable, UserError
from strata.base.patience import stretched
from strata.base.placeholders import placeholder, several
from strata.base.process import capture, run_together, wait_for
from strata.cell import logs, servers
from strata.cell.servers import Server, check_ports
from strata.cell.shell import PROGRAM, Shell
from strata.experiment import plan
from strata.host.context import with_variables
from strata.layers.common.layer import TYPE_CHECKING
from strata.system.testbed import System

if TYPE_CHECKING:
    from typing import IO

PROGRAMS = "/opt/strata/workloads"


def fill(argv: list[str], values: dict, folder: str) -> list[str]:
    """A declared command with its parameters; lists become ``a,b``, empty values the empty word.

    A program without a slash is one of the workload's own, in `folder`.
    """
    words = []
    for word in argv:
        name = placeholder(word)
        if name is not None:
            word = ",".join("" if item is None else str(item) for item in several(values[name]))
        words.append(word)
    if "/" not in words[0]:
        words[0] = f"{folder}/{words[0]}"
    return words


def expanded(steps: list[dict], values: dict) -> Iterator[tuple[dict, dict]]:
    """Every step in order with the values for it; those of a group once for each value of its list."""
    for step in steps:
        if "for" in step:
            for value in values[step["for"]]:
                yield from expanded(step["steps"], {**values, step["for"]: value})
        else:
            yield step, values


class Steps:
    """The steps of one cell of a workload.

    cell: of the plan.  values: the parameters and the seed.  output: descriptor of the log.  watch: the
    cell's clock.  afresh: brings the system up again, in the given way.  laps: how many times its run is taken; where
    that is more than once, `waits` says whether a shell waits in the system for them.

    `commands` and `servers` are what the record says of them; they grow with the steps.

    Where the system is made of several equal ones, each step in it runs in all of them at the same time.
    The log then says whose the lines are that follow (:mod:`strata.cell.logs`).
    """

    def __init__(
        self,
        workload: str,
        cell: dict,
        system: System,
        values: dict,
        output: int,
        watch: Watch,
        afresh: Callable[[str], System],
        laps: int = 1,
        waits: bool = False,
    ) -> None:
        self.workload, self.cell, self.system, self.values = workload, cell, system, values
        self.laps = laps
        self.waits = waits and laps > 1 and len(system.tops) == 1
        self.shell: Shell | None = None
        self.now: dict[str, int] = {}
        self.output, self.watch, self.afresh = output, watch, afresh
        self.commands: list[dict] = []
        self.servers: list[dict] = []
        self.running: list[Server] = []
        self.parts = len(system.tops)
        # What each of the systems that work together is for; system k has the roles of the k-th, in turn.
        self.groups = plan.groups(cell, values)
        self.marked: int | None = None
        self.known: tuple[System, list[int]] | None = None

    def run(self) -> None:
        """Take them all.  Raises CellFailed with the step's name, and of several systems with the number."""
        with self._counters():
            self.begin()
            for number in range(1, self.laps + 1):
                self.lap(number)
            for server in reversed(self.running):
                server.stop()

    def begin(self) -> None:
        """Take those before the run."""
        self._all(self._of("prepare"), self.values)
        self._start_servers()
        self._all(self._of("warmup"), self.values)
        if self.waits:
            self.shell = Shell(self.system.top.command_plain([PROGRAM], fed=True))

    def lap(self, number: int) -> None:
        """Take those of the run, for the time with this number."""
        if self.laps > 1:
            self.now = {"lap": number}
            self._write(logs.lap_mark(number))
            self.marked = None
        self._all(self._of("run"), self.values)
        if self.shell is not None and number == self.laps:
            self.shell.close()
            self.shell = None

    def _of(self, section: str) -> list[dict]:
        return [step for step in self.cell["steps"] if step["step"] == section]

    @contextlib.contextmanager
    def _counters(self) -> Iterator[None]:
        """The processors' cycles are counted only where a step reads them."""
        if not any("observe" in step for step, _ in expanded(self.cell["steps"], self.values)):
            yield
            return
        from strata.host import counters

        with counters.cycles() as counting:
            self._cpu_line = lambda: counters.cpu_line(counting)
            yield

    def _start_servers(self) -> None:
        declared = self.cell.get("servers", [])
        if not declared:
            return
        for part in range(self.parts):
            values = self._values_in(part, self.values)
            ports = [(name, port) for name in self._own_ports(part) for port in several(values[name])]
            check_ports(ports, self.workload, values["address"], self._place("client"))
        if servers.wants_password(declared):
            servers.bring_password(self.system)
        for one in declared:
            equal = [self._server(one, part) for part in range(self.parts) if self._is_of(one, part)]
            self.servers += [server.record for server in equal]
            servers.start(equal)
            self.running += equal

    def _server(self, declared: dict, part: int) -> Server:
        """One server of the system with this number, all of whose commands have the values of that system."""
        values = self._values_in(part, self.values)

        def place(at: str) -> Callable[[list[str]], list[str]]:
            return self._place(at, part)

        def filled(argv: list[str]) -> list[str]:
            return self._fill(argv, values)

        return Server(declared, self.system.tops[part], filled, place, part if self.parts > 1 else None)

    def _fill(self, argv: list[str], values: dict) -> list[str]:
        return fill(argv, values, f"{PROGRAMS}/{self.workload}")

    def _is_of(self, server: dict, part: int) -> bool:
        """Whether the system with this number has a server's role; every system has those without one."""
        return "role" not in server or server["role"] in self.groups[part % len(self.groups)]

    def _own_ports(self, part: int) -> list[str]:
        """Names of the parameters with the ports of the system with this number."""
        if "roles" not in self.cell:
            return self.cell.get("ports", [])
        ports = self.cell["roles"]["ports"]
        return [name for role in self.groups[part % len(self.groups)] for name in ports[role]]

    def _part_of(self, role: str, part: int) -> int:
        """The number of the system with a role, among those that work together with the one of this number."""
        number = next(number for number, roles in enumerate(self.groups) if role in roles)
        return part - part % len(self.groups) + number

    def _values_in(self, part: int, values: dict) -> dict:
        """The values as they are in the system with this number: its own ports, its address; those of each role."""
        own = {name: plan.shifted(values[name], part) for name in self.cell.get("ports", [])}
        places = {"address": self.system.tops[part].address(), "listen": self.system.listen(part)}
        for role, names in self.cell.get("roles", {}).get("ports", {}).items():
            other = self._part_of(role, part)
            own |= {name: plan.shifted(values[name], other) for name in names}
            places[f"address.{role}"] = self.system.reached(other)
        return {**values, **own, **places, "part": part}

    def _values_of_all(self, values: dict) -> dict:
        """The values as the client has them: of what each system has its own, a list in the order of the systems.

        Of systems that work together each has its own address, and the ports of all are those of the first.
        """
        each = [self._values_in(part, values) for part in range(self.parts)]
        firsts = each[:: len(self.groups)]
        found = {name: _flat([own[name] for own in each]) for name in ("address", "listen", "part")}
        found |= {name: _flat([own[name] for own in firsts]) for name in self.cell.get("ports", [])}
        for role in self.cell.get("roles", {}).get("ports", {}):
            parts = [self._part_of(role, own["part"]) for own in firsts]
            found[f"address.{role}"] = [each[part]["address"] for part in parts]
        return {**values, **found}

    def _place(self, at: str, part: int = 0) -> Callable[[list[str]], list[str]]:
        """What makes the host's command of one for the client, or for the system with this number."""
        if at == "client":
            assert self.system.client is not None
            return self.system.client.command
        return self.system.tops[part].command

    def _all(self, steps: list[dict], values: dict) -> None:
        for step, chosen in expanded(steps, values):
            if "observe" in step:
                self._mark(None)
                self._write(self._cpu_line())
            elif "fresh" in step:
                self._afresh(step, chosen)
            else:
                self._command(step, chosen)

    def _write(self, line: str) -> None:
        os.write(self.output, line.encode() + b"\n")

    def _mark(self, part: int | None) -> None:
        """Say in the log whose the next lines are: those of one of several systems, or of none (the client's, say)."""
        if self.parts > 1 and (part is not None or self.marked is not None):
            self._write(logs.mark(part))
        self.marked = part

    def _command(self, step: dict, values: dict) -> None:
        """Run a command at the client, or in all systems at the same time."""
        at = step.get("at", "system")
        parts: list[int | None] = [None] if at == "client" else list(range(self.parts))
        commands = []
        for part in parts:
            own = self._values_of_all(values) if part is None else self._values_in(part, values)
            where = self.now | ({"at": at} if "at" in step else {})
            where |= {"system": part} if self.parts > 1 and part is not None else {}
            argv = self._fill(step["argv"], own)
            commands.append({"step": step["step"], **where, "argv": argv, "exit": None, "started": self.watch.now()})
        self.commands += commands
        for command, (code, seconds) in zip(commands, self._ran(at, parts, commands, step["timeout"]), strict=True):
            if code is not None:
                command |= {"exit": code, "seconds": round(seconds, 4), "timeout": step["timeout"]}
        name = f"its {step['step']} step"
        self._see_size(name)
        for command in commands:
            if command["exit"]:
                how = f"{_in_systems([command])} ended with exit code {command['exit']}"
                if at == "system" and self._machines() and _is_lost(command["exit"]):
                    how += ", by which ssh says that it lost the virtual machine"
                raise Unable(f"{name}{how}{self._servers_words()}")
        late = [command for command in commands if command["exit"] is None]
        if late and any(wait_for(pid, 0) for pid in self._machines()):
            raise CellFailed(f"{name} was ended: its virtual machine ended under it")
        if late:
            limit = f"no end after {stretched(step['timeout']):g} s{_in_systems(late)}"
            raise Endless(f"{name} was ended: {limit}{self._servers_words()}")

    def _see_size(self, name: str) -> None:
        """Refuse a log that nothing could read any more; what is kept of it is its beginning."""
        size = os.fstat(self.output).st_size
        if size > logs.LARGEST:
            os.ftruncate(self.output, logs.LARGEST)
            most = f"{logs.LARGEST / 2**20:g} MiB"
            raise CellFailed(f"{name} printed too much: the log has {size / 2**20:.0f} MiB, and {most} is the most")

    def _ran(
        self, at: str, parts: list[int | None], commands: list[dict], timeout: float
    ) -> list[tuple[int | None, float]]:
        """Run commands at their place; for each its exit code, None where it was ended, and its seconds."""
        if self.shell is not None and at == "system":
            return [self.shell.run(with_variables(commands[0]["argv"]), self.output, timeout)]
        argvs = [self._place(at, part or 0)(command["argv"]) for part, command in zip(parts, commands, strict=True)]
        return self._run(parts, argvs, timeout)

    def _run(
        self, parts: list[int | None], commands: list[list[str]], timeout: float
    ) -> list[tuple[int | None, float]]:
        """Run commands at the same time; the outputs of several systems are put into the log one after the other."""
        if self.parts == 1:
            return run_together(commands, [self.output], timeout, self._machines())
        import tempfile

        with contextlib.ExitStack() as files:
            outputs = [files.enter_context(tempfile.TemporaryFile()) for _ in commands]
            for output in outputs:
                fcntl.fcntl(output, fcntl.F_SETFL, os.O_APPEND)
            try:
                return run_together(commands, [output.fileno() for output in outputs], timeout, self._machines())
            finally:
                for part, output in zip(parts, outputs, strict=True):
                    self._mark(part)
                    self._copy(output)

    def _machines(self) -> list[int]:
        """The processes of the host that are the system's virtual machines: without them its commands hang."""
        if self.known is None or self.known[0] is not self.system:
            machines = [machine for top in self.system.tops if (machine := top.machine())]
            self.known = self.system, [pid for machine in machines for pid in machine.processes()]
        return self.known[1]

    def _copy(self, output: IO[bytes]) -> None:
        """Put a whole output into the log; what follows begins a line of its own."""
        import shutil

        size = output.seek(0, os.SEEK_END)
        output.seek(0)
        with open(self.output, "wb", closefd=False) as log:
            shutil.copyfileobj(output, log)
            if size and os.pread(output.fileno(), 1, size - 1) != b"\n":
                log.write(b"\n")

    def _servers_words(self) -> str:
        """What the servers said last, for the message about a step that failed."""
        words = [f"; {server.shown} said last: {server.last_words()}" for server in self.running]
        return "".join(words)

    def _afresh(self, step: dict, values: dict) -> None:
        """Bring the system up afresh and run the command in it; the time of both is the log's."""
        way = values[step["fresh"]]
        self.system = self.afresh(way)
        argv = self._fill(step["argv"], self._values_in(0, values))
        command = {
            "step": step["step"],
            "fresh": step["fresh"],
            "argv": argv,
            "exit": None,
            "started": self.watch.now(),
        }
        self.commands.append(command)
        begun = time.monotonic()
        done = capture(self.system.top.command(argv), timeout=step["timeout"], check=False)
        seconds = time.monotonic() - begun
        command |= {"exit": done.returncode, "seconds": round(seconds, 4), "timeout": step["timeout"]}
        if done.returncode != 0:
            raise Unable(f"its {step['step']} step ended with exit code {done.returncode}: {done.stderr.strip()}")
        machine = self.system.facts["facts"].get("vm") or {}
        held = memory_held(self.system.top.processes())
        self._write(
            json.dumps(
                {
                    "start": machine.get("started", "created"),
                    "up_seconds": self.system.facts["up_seconds"],
                    "boot_seconds": machine.get("boot_seconds"),
                    "restore_seconds": machine.get("restore_seconds"),
                    "command_seconds": round(seconds, 6),
                    "memory_bytes": held,
                }
            )
        )


def _is_lost(code: int) -> bool:
    from strata.vm import ssh

    return code == ssh.LOST


def _flat(values: list) -> list:
    """Values and those of lists among them, in one list."""
    return [item for value in values for item in several(value)]


def _in_systems(commands: list[dict]) -> str:
    """Words that say in which of several systems commands ran; none where there is but one."""
    numbers = [str(command["system"]) for command in commands if "system" in command]
    return f" in system{'s' * (len(numbers) > 1)} {', '.join(numbers)}" if numbers else ""


def memory_held(processes: list[int]) -> int | None:
    """Bytes of memory that processes of the host hold, shared pages by their share; None where there is none."""
    total = 0
    for process in processes:
        try:
            with open(f"/proc/{process}/smaps_rollup", encoding="utf-8") as file:
                total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
        except (OSError, ValueError) as error:
            raise UserError(f"the memory of process {process} cannot be read: {error}") from None
    return total if processes else None
