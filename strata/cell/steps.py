"""The steps of a cell: commands in the system under test and at the client, and the servers around them."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable

from strata.base.clock import Watch
from strata.base.errors import CellFailed, Endless, Unable
from strata.base.patience import stretched
from strata.base.process import capture, run_together, wait_for
from strata.base.shapes import Fields, Step
from strata.cell.inputs import Inputs, expanded
from strata.cell.logs import Log
from strata.cell.servers import Servers
from strata.cell.shell import PROGRAM, Shell
from strata.host.context import with_variables
from strata.system.testbed import System

Ended = tuple[int | None, float]
# Within which a shell answers that was started in a system.
SECONDS_TO_BEGIN = 60.0


class Steps:
    """The steps of one cell of a workload.

    watch: the cell's clock.  afresh: brings the system up again, in the given way.  waits: whether a shell waits in the
    system for the commands of its laps.

    `commands` is what the record says of them; it grows with the steps.

    Where the system is made of several equal ones, each step in it runs in all of them at the same time.
    The log then says whose the lines are that follow (:mod:`strata.cell.logs`).
    """

    def __init__(
        self, inputs: Inputs, log: Log, watch: Watch, afresh: Callable[[str], System], waits: bool = False
    ) -> None:
        self.inputs, self.log, self.watch, self.afresh = inputs, log, watch, afresh
        self.servers = Servers(inputs)
        self.commands: list[Fields] = []
        self.shell: Shell | None = None
        self.lap: dict[str, int] = {}
        self._waits = waits and inputs.parts == 1
        self._machines: list[int] | None = None
        # What is open from the first step to the last.
        self._open = contextlib.ExitStack()
        self._counting: list[int] = []

    def prepare(self) -> None:
        """Take those before the run.  Raises CellFailed with the step's name, and the system's number of several."""
        if any("observe" in step for step, _ in expanded(self.inputs.cell["steps"], self.inputs.values)):
            # The processors' cycles are counted only where a step reads them.
            from strata.host import counters

            self._counting = self._open.enter_context(counters.cycles())
        self._all("prepare")
        self.servers.start()
        self._all("warmup")
        if self._waits:
            self.shell = Shell(self.inputs.system.top.command_plain([PROGRAM], fed=True))
            # It is there from now on: nothing comes into a system that is frozen.
            self.shell.run(["true"], self.log.descriptor, SECONDS_TO_BEGIN)

    def run(self, lap: int | None = None) -> None:
        """Take those of the run: of a cell with laps, in the one with this number."""
        if lap is not None:
            self.lap = {"lap": lap}
            self.log.begin_lap(lap)
        self._all("run")

    def finish(self) -> None:
        """End what waits and serves, and see that it ended well."""
        if self.shell is not None:
            self.shell.close()
            self.shell = None
        self.servers.stop()
        self._open.close()

    def _all(self, section: str) -> None:
        declared = [step for step in self.inputs.cell["steps"] if step["step"] == section]
        for step, chosen in expanded(declared, self.inputs.values):
            if "observe" in step:
                from strata.host import counters

                self.log.mark(None)
                self.log.write(counters.cpu_line(self._counting))
            elif "fresh" in step:
                self._afresh(step, chosen)
            else:
                self._command(step, chosen)

    def _command(self, step: Step, values: Fields) -> None:
        """Run a command at the client, or in all systems at the same time."""
        at = step.get("at", "system")
        values = {"lap": 0, **self.lap, **values}
        parts: list[int | None] = [None] if at == "client" else list(range(self.inputs.parts))
        commands: list[Fields] = []
        for part in parts:
            own = self.inputs.of_all(values) if part is None else self.inputs.of(part, values)
            where = self.lap | ({"at": at} if "at" in step else {})
            where |= {"system": part} if self.inputs.parts > 1 and part is not None else {}
            argv = self.inputs.fill(step["argv"], own)
            commands.append({"step": step["step"], **where, "argv": argv, "exit": None, "started": self.watch.now()})
        self.commands += commands
        for command, (code, seconds) in zip(commands, self._ran(at, parts, commands, step["timeout"]), strict=True):
            if code is not None:
                command |= {"exit": code, "seconds": round(seconds, 4), "timeout": step["timeout"]}
        name = f"its {step['step']} step"
        self._judge(name, commands, at, step["timeout"])

    def _judge(self, name: str, commands: list[Fields], at: str, timeout: float) -> None:
        """Raise CellFailed where commands of a step did not end, or ended badly."""
        machines = self.machines()
        for command in commands:
            if command["exit"]:
                how = f"{_in_systems([command])} ended with exit code {command['exit']}"
                if at == "system" and machines:
                    from strata.vm import ssh

                    if command["exit"] == ssh.LOST:
                        how += ", by which ssh says that it lost the virtual machine"
                raise Unable(f"{name}{how}{self.servers.words()}")
        late = [command for command in commands if command["exit"] is None]
        if late and any(wait_for(pid, 0) for pid in machines):
            raise CellFailed(f"{name} was ended: its virtual machine ended under it")
        if late:
            limit = f"no end after {stretched(timeout):g} s{_in_systems(late)}"
            raise Endless(f"{name} was ended: {limit}{self.servers.words()}")

    def _ran(self, at: str, parts: list[int | None], commands: list[Fields], timeout: float) -> list[Ended]:
        """Run commands at their place; for each its exit code, None where it was ended, and its seconds."""
        if self.shell is not None and at == "system":
            return [self.shell.run(with_variables(commands[0]["argv"]), self.log.descriptor, timeout)]
        places = [self.inputs.place(at, part or 0) for part in parts]
        argvs = [place(command["argv"]) for place, command in zip(places, commands, strict=True)]
        with self.log.outputs(parts) as outputs:
            return run_together(argvs, outputs, timeout, self.machines())

    def machines(self) -> list[int]:
        """The processes of the host that are the system's virtual machines: without them its commands hang."""
        if self._machines is None:
            machines = [machine for top in self.inputs.system.tops if (machine := top.machine())]
            self._machines = [pid for machine in machines for pid in machine.processes()]
        return self._machines

    def _afresh(self, step: Step, values: Fields) -> None:
        """Bring the system up afresh and run the command in it; the time of both is the log's."""
        system = self.inputs.system = self.afresh(values[step["fresh"]])
        self._machines = None
        argv = self.inputs.fill(step["argv"], self.inputs.of(0, values))
        started = self.watch.now()
        command: Fields = {"step": step["step"], "fresh": step["fresh"], "argv": argv, "exit": None, "started": started}
        self.commands.append(command)
        begun = time.monotonic()
        done = capture(system.top.command(argv), timeout=step["timeout"], check=False)
        seconds = time.monotonic() - begun
        command |= {"exit": done.returncode, "seconds": round(seconds, 4), "timeout": step["timeout"]}
        if done.returncode != 0:
            raise Unable(f"its {step['step']} step ended with exit code {done.returncode}: {done.stderr.strip()}")
        machine = system.facts["facts"].get("vm") or {}
        line = {
            "start": machine.get("started", "created"),
            "up_seconds": system.facts["up_seconds"],
            "boot_seconds": machine.get("boot_seconds"),
            "restore_seconds": machine.get("restore_seconds"),
            "command_seconds": round(seconds, 6),
            "memory_bytes": memory_held(system.top.processes()),
        }
        self.log.write(json.dumps(line))


def _in_systems(commands: Iterable[Fields]) -> str:
    """Words that say in which of several systems commands ran; none where there is but one."""
    numbers = [str(command["system"]) for command in commands if "system" in command]
    return f" in system{'s' * (len(numbers) > 1)} {', '.join(numbers)}" if numbers else ""


def memory_held(processes: list[int]) -> int | None:
    """Bytes of memory that processes of the host hold, shared pages by their share; None where there is none."""
    total = 0
    for process in processes:
        with open(f"/proc/{process}/smaps_rollup", encoding="utf-8") as file:
            total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    return total if processes else None
