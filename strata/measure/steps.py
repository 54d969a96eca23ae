"""The steps of a cell: commands in the system under test and at the client, and the servers around them."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable

from strata.host.context import with_variables
from strata.measure import log_sections, servers
from strata.measure.arguments import Inputs, expanded, fill
from strata.measure.log_sections import LIMIT, Log, LongLogError, last_words
from strata.measure.shell import PROGRAM, Shell
from strata.testbed.lifecycle import System
from strata.util.clock import Watch
from strata.util.data_types import Fields, Step
from strata.util.errors import CellFailed, Endless, Unable
from strata.util.files import read_text
from strata.util.process import capture, run_together, wait_for_any
from strata.util.timeouts import stretched

# Within which a shell answers that was started in a system.
SECONDS_TO_BEGIN = 60.0


class Steps:
    """The steps of one cell of a workload.

    watch: the cell's clock.  afresh: brings the system up again, in the given way.  waits: whether a shell waits in the
    system for the commands of its laps.

    `commands` is what the record says of them; it grows with the steps.

    Where the system is made of several equal ones, each step in it runs in all of them at the same time.
    The log then says whose the lines are that follow (:mod:`strata.measure.log_sections`).
    """

    def __init__(
        self,
        inputs: Inputs,
        log: Log,
        watch: Watch,
        afresh: Callable[[str], System],
        waits: bool = False,
    ) -> None:
        self.inputs, self.log, self.watch, self.afresh = inputs, log, watch, afresh
        self.servers = servers.of(inputs)
        self.commands: list[Fields] = []
        self.shell: Shell | None = None
        self.lap: dict[str, int] = {}
        self._waits = waits and inputs.parts == 1
        self._machines = _machines(inputs.system)
        # What is open from the first step to the last.
        self._open = contextlib.ExitStack()
        self._counting: list[int] = []

    def prepare(self) -> None:
        """Take those before the run.  Raises CellFailed with the step's name, and the system's number of several."""
        if any(
            "observe" in step for step, _ in expanded(self.inputs.cell["steps"], self.inputs.values)
        ):
            # The processors' cycles are counted only where a step reads them.
            from strata.host import counters

            self._counting = self._open.enter_context(counters.cycles())
        self._all("prepare")
        servers.start(self.servers, self.inputs.system)
        self._all("warmup")
        if self._waits:
            self.shell = Shell(self.inputs.system.top.command_plain([PROGRAM], fed=True))
            # It is there from now on: nothing comes into a system that is frozen.
            with self.log.outputs([0]) as [output]:
                self.shell.run(["true"], output, SECONDS_TO_BEGIN)

    def run(self, lap: int | None = None, slice_seconds: float | None = None) -> None:
        """Take those of the run: of a cell with laps, in the one with this number, in slices of so many seconds."""
        if lap is not None:
            self.lap = {"lap": lap}
            self.log.begin_lap(lap)
        if slice_seconds is not None:
            self.log.write(json.dumps({"slice": slice_seconds}))
        self._all("run")

    def finish(self) -> None:
        """End what waits and serves, and see that it ended well."""
        if self.shell is not None:
            self.shell.close()
        for server in reversed(self.servers):
            server.stop()
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
        values = {"lap": 0, **self.lap, **values}
        parts: list[int | None] = (
            [None] if step.get("at") == "client" else [*range(self.inputs.parts)]
        )
        commands: list[Fields] = []
        for part in parts:
            own = self.inputs.of_all(values) if part is None else self.inputs.of(part, values)
            where = self.lap | ({"at": step["at"]} if "at" in step else {})
            where |= {"system": part} if self.inputs.parts > 1 and part is not None else {}
            argv = fill(step["argv"], own, self.inputs.workload)
            commands.append(
                {
                    "step": step["step"],
                    **where,
                    "argv": argv,
                    "exit": None,
                    "started": self.watch.now(),
                }
            )
        self.commands += commands
        try:
            ended = self._ran(parts, [command["argv"] for command in commands], step["timeout"])
        except LongLogError:
            name, limit = self.inputs.workload, self.inputs.cell.get("log_limit", LIMIT)
            raise CellFailed(
                f"its {step['step']} step was ended: `{' '.join(argv)[:200]}` printed more than the log "
                f"may hold, {limit}; let it print less, or set log_limit in workloads/{name}/workload.yaml"
            ) from None
        for command, (code, seconds) in zip(commands, ended, strict=True):
            if code is not None:
                command |= {"exit": code, "seconds": round(seconds, 4), "timeout": step["timeout"]}
        self._judge(step, commands)

    def _judge(self, step: Step, commands: list[Fields]) -> None:
        """Raise CellFailed where commands of a step did not end, or ended badly."""
        name = f"its {step['step']} step"
        for command in commands:
            if command["exit"]:
                from strata.vm import ssh

                how = f"{_in_systems([command])} ended with exit code {command['exit']}"
                how += self._last_words(command)
                if command["exit"] == ssh.LOST and self._machines and step.get("at") != "client":
                    how += ", by which ssh says that it lost the virtual machine"
                raise Unable(f"{name}{how}{self._words()}")
        if late := [command for command in commands if command["exit"] is None]:
            if wait_for_any(self._machines, 0):
                raise CellFailed(f"{name} was ended: its virtual machine ended under it")
            limit = f"no end after {stretched(step['timeout']):g} s{_in_systems(late)}"
            raise Endless(f"{name} was ended: {limit}{self._words()}")

    def _last_words(self, command: Fields) -> str:
        """The end of a message about a failed command: its program, if that was not found, or its last lines."""
        if command["exit"] == 127:
            return f": {command['argv'][0]} or a program that it calls was not found"
        printed = log_sections.last_words(self.log.whole().decode(errors="replace"))
        return f"; it printed last: {printed}" if printed else ""

    def _ran(
        self, parts: list[int | None], argvs: list[list[str]], timeout: float
    ) -> list[tuple[int | None, float]]:
        """Run a command in each of these systems; for each its exit code, None where it was ended, and its seconds."""
        with self.log.outputs(parts) as outputs:
            if self.shell is not None and parts != [None]:
                return [self.shell.run(with_variables(argvs[0]), outputs[0], timeout)]
            commands = [
                self.inputs.place(part).command(argv)
                for part, argv in zip(parts, argvs, strict=True)
            ]
            return run_together(commands, outputs, timeout, self._machines)

    def _words(self) -> str:
        """What its servers said last, for the message about a step that failed."""
        ready = [server for server in self.servers if server.record["ready_seconds"] is not None]
        return "".join(f"; {server.shown} said last: {server.last_words()}" for server in ready)

    def _afresh(self, step: Step, values: Fields) -> None:
        """Bring the system up afresh and run the command in it; the time of both is the log's."""
        system = self.inputs.system = self.afresh(values[step["fresh"]])
        argv = fill(step["argv"], self.inputs.of(0, values), self.inputs.workload)
        started = self.watch.now()
        command: Fields = {
            "step": step["step"],
            "fresh": step["fresh"],
            "argv": argv,
            "exit": None,
            "started": started,
        }
        self.commands.append(command)
        begun = time.monotonic()
        done = capture(system.top.command(argv), timeout=step["timeout"], check=False)
        seconds = time.monotonic() - begun
        command |= {
            "exit": done.returncode,
            "seconds": round(seconds, 4),
            "timeout": step["timeout"],
        }
        if done.returncode != 0:
            words = last_words(done.stderr or done.stdout)
            raise Unable(f"its {step['step']} step ended with exit code {done.returncode}: {words}")
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
        self._machines = _machines(system)


def _machines(system: System) -> list[int]:
    """The processes of the host that are a system's virtual machines: without them its commands hang."""
    return [pid for top in system.tops if (machine := top.machine()) for pid in machine.processes()]


def _in_systems(commands: list[Fields]) -> str:
    """Words that say in which of several systems commands ran; none where there is but one."""
    numbers = [str(command["system"]) for command in commands if "system" in command]
    return f" in system{'s' * (len(numbers) > 1)} {', '.join(numbers)}" if numbers else ""


def memory_held(processes: list[int]) -> int | None:
    """Bytes of memory that processes of the host hold, shared pages by their share; None where there is none."""
    told = read_text([f"/proc/{process}/smaps_rollup" for process in processes])
    shares = [int(line.split()[1]) * 1024 for line in told.splitlines() if line.startswith("Pss:")]
    return sum(shares) if processes else None
