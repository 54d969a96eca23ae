"""The steps of a cell: commands in the system under test and at the client, and its servers."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable

from strata.host.context import with_variables
from strata.measure import servers
from strata.measure.arguments import Inputs, expanded, fill
from strata.measure.log_sections import LIMIT, Log, LongLogError, last_words
from strata.measure.shell import PROGRAM, Shell
from strata.testbed.lifecycle import System
from strata.util.clock import Clock
from strata.util.data_types import Fields, Step
from strata.util.errors import CellFailed, CommandFailed, CommandTimedOut
from strata.util.files import read_text
from strata.util.process import capture, run_together, wait_for_any_process
from strata.util.timeouts import stretch

# Seconds within which a shell that was started in a system must answer.
SECONDS_TO_ANSWER = 60.0


class Steps:
    """The steps of one cell.

    Where several equal systems are up, each step in a system is taken in all of them at the same
    time; the log then says which one printed the lines that follow
    (:mod:`strata.measure.log_sections`).

    inputs: what commands are given.  watch: the cell's clock.
    restart_system: brings the system up again, in the given way.
    waits: whether a shell waits in the system for the commands of its laps.
    commands: as in the record; it grows with the steps.
    shell: the one that waits, once the steps before the run were taken.
    """

    def __init__(
        self,
        inputs: Inputs,
        log: Log,
        watch: Clock,
        restart_system: Callable[[str], System],
        waits: bool = False,
    ) -> None:
        self.inputs, self.log, self.watch = inputs, log, watch
        self.restart_system = restart_system
        self.servers = servers.make_servers(inputs)
        self.commands: list[Fields] = []
        self.shell: Shell | None = None
        self._lap: dict[str, int] = {}
        self._waits = waits and inputs.parts == 1
        self._machines = _machine_processes(inputs.system)
        self._counters: list[int] = []
        # Closed once the last step was taken.
        self._resources = contextlib.ExitStack()

    def prepare(self) -> None:
        """Take the steps before the run, and start the servers.

        Raises CellFailed with the step's name, and the number of the system where there are
        several.
        """
        steps = expanded(self.inputs.cell["steps"], self.inputs.values)
        if any("observe" in step for step, _ in steps):
            # The processors' cycles are counted only where a step reads them.
            from strata.host import counters

            self._counters = self._resources.enter_context(counters.count_cycles())
        self._take("prepare")
        servers.start_servers(self.servers, self.inputs.system)
        self._take("warmup")
        if self._waits:
            self.shell = Shell(self.inputs.system.top.plain_command([PROGRAM], fed=True))
            # It answers from now on: no process can enter a system that is frozen.
            with self.log.outputs([0]) as [output]:
                self.shell.run(["true"], output, SECONDS_TO_ANSWER)

    def run(self, lap: int | None = None, slice_seconds: float | None = None) -> None:
        """Take the steps of the run.

        lap: its number, for a cell with laps.  slice_seconds: for a run that goes on in slices.
        """
        if lap is not None:
            self._lap = {"lap": lap}
            self.log.begin_lap(lap)
        if slice_seconds is not None:
            self.log.write(json.dumps({"slice": slice_seconds}))
        self._take("run")

    def finish(self) -> None:
        """End the shell and the servers.  Raises CellFailed where a server failed."""
        if self.shell is not None:
            self.shell.close()
        for server in reversed(self.servers):
            server.stop()
        self._resources.close()

    def _take(self, section: str) -> None:
        """Take the steps of a section: `prepare`, `warmup` or `run`."""
        declared = [step for step in self.inputs.cell["steps"] if step["step"] == section]
        for step, values in expanded(declared, self.inputs.values):
            if "observe" in step:
                from strata.host import counters

                self.log.mark(None)
                self.log.write(counters.cpu_line(self._counters))
            elif "fresh" in step:
                self._run_in_new_system(step, values)
            else:
                self._run_command(step, values)

    def _run_command(self, step: Step, values: Fields) -> None:
        """Run a step's command at the client, or in all systems at the same time."""
        at_client = step.get("at") == "client"
        parts: list[int | None] = [None] if at_client else [*range(self.inputs.parts)]
        commands = [self._new_command(step, values, part) for part in parts]
        self.commands += commands
        try:
            ended = self._run_in(parts, [command["argv"] for command in commands], step["timeout"])
        except LongLogError:
            limit = self.inputs.cell.get("log_limit", LIMIT)
            command = " ".join(commands[-1]["argv"])[:200]
            place = f"workloads/{self.inputs.workload}/workload.yaml"
            raise CellFailed(
                f"its {step['step']} step was ended: `{command}` printed more than the log may "
                f"hold, {limit}; let it print less, or set log_limit in {place}"
            ) from None
        for record, (code, seconds) in zip(commands, ended, strict=True):
            if code is not None:
                record |= {"exit": code, "seconds": round(seconds, 4), "timeout": step["timeout"]}
        self._require_success(step, commands)

    def _new_command(self, step: Step, values: Fields, part: int | None) -> Fields:
        """The record of a command that starts now, in the system `part` or (None) at the client."""
        values = {"lap": 0, **self._lap, **values}
        arguments = self.inputs.of_all(values) if part is None else self.inputs.of(part, values)
        record: Fields = {"step": step["step"], **self._lap}
        if "at" in step:
            record["at"] = step["at"]
        if self.inputs.parts > 1 and part is not None:
            record["system"] = part
        argv = fill(step["argv"], arguments, self.inputs.workload)
        return {**record, "argv": argv, "exit": None, "started": self.watch.now()}

    def _run_in(
        self, parts: list[int | None], argvs: list[list[str]], timeout: float
    ) -> list[tuple[int | None, float]]:
        """Run a command in each of these systems; for each its exit code, and its seconds.

        The code is None for a command that was ended.
        """
        with self.log.outputs(parts) as outputs:
            if self.shell is not None and parts != [None]:
                return [self.shell.run(with_variables(argvs[0]), outputs[0], timeout)]
            commands = []
            for part, argv in zip(parts, argvs, strict=True):
                commands.append(self.inputs.place(part).measured_command(argv))
            return run_together(commands, outputs, timeout, self._machines)

    def _require_success(self, step: Step, commands: list[Fields]) -> None:
        """Raise CellFailed where commands of a step were ended, or ended with a bad exit code."""
        name = f"its {step['step']} step"
        for command in commands:
            if command["exit"]:
                from strata.vm import ssh

                reason = f"{_systems_of([command])} ended with exit code {command['exit']}"
                reason += self._cause(command)
                if (
                    command["exit"] == ssh.CONNECTION_LOST
                    and self._machines
                    and step.get("at") != "client"
                ):
                    reason += ", by which ssh says that it lost the virtual machine"
                raise CommandFailed(f"{name}{reason}{self._servers_words()}")
        if ended := [command for command in commands if command["exit"] is None]:
            if wait_for_any_process(self._machines, 0):
                raise CellFailed(f"{name} was ended: its virtual machine ended under it")
            limit = f"no end after {stretch(step['timeout']):g} s{_systems_of(ended)}"
            raise CommandTimedOut(f"{name} was ended: {limit}{self._servers_words()}")

    def _cause(self, command: Fields) -> str:
        """The end of a message about a failed command: a missing program, or its last lines."""
        if command["exit"] == 127:
            return f": {command['argv'][0]} or a program that it calls was not found"
        printed = last_words(self.log.whole().decode(errors="replace"))
        return f"; it printed last: {printed}" if printed else ""

    def _servers_words(self) -> str:
        """The last lines of each server that was ready, for the message about a failed step."""
        ready = [server for server in self.servers if server.record["ready_seconds"] is not None]
        words = [f"; {server.shown} said last: {server.last_words()}" for server in ready]
        return "".join(words)

    def _run_in_new_system(self, step: Step, values: Fields) -> None:
        """Bring the system up again, and run the command in it; the log gets the times of both."""
        system = self.inputs.system = self.restart_system(values[step["fresh"]])
        argv = fill(step["argv"], self.inputs.of(0, values), self.inputs.workload)
        command: Fields = {"step": step["step"], "fresh": step["fresh"], "argv": argv}
        command |= {"exit": None, "started": self.watch.now()}
        self.commands.append(command)
        begun = time.monotonic()
        done = capture(system.top.measured_command(argv), timeout=step["timeout"], check=False)
        seconds = time.monotonic() - begun
        command |= {"exit": done.returncode, "seconds": round(seconds, 4)}
        command["timeout"] = step["timeout"]
        if done.returncode != 0:
            words = last_words(done.stderr or done.stdout)
            raise CommandFailed(
                f"its {step['step']} step ended with exit code {done.returncode}: {words}"
            )
        machine = system.facts["facts"].get("vm") or {}
        line = {
            "start": machine.get("started", "created"),
            "up_seconds": system.facts["up_seconds"],
            "boot_seconds": machine.get("boot_seconds"),
            "restore_seconds": machine.get("restore_seconds"),
            "command_seconds": round(seconds, 6),
            "memory_bytes": memory_held(system.top.memory_processes()),
        }
        self.log.write(json.dumps(line))
        self._machines = _machine_processes(system)


def _machine_processes(system: System) -> list[int]:
    """The host's processes of a system's virtual machines: without them its commands hang."""
    processes = []
    for top in system.tops:
        if machine := top.virtual_machine():
            processes += machine.memory_processes()
    return processes


def _systems_of(commands: list[Fields]) -> str:
    """Words that name the systems in which commands ran; none where there is but one system."""
    numbers = [str(command["system"]) for command in commands if "system" in command]
    plural = "s" if len(numbers) > 1 else ""
    return f" in system{plural} {', '.join(numbers)}" if numbers else ""


def memory_held(processes: list[int]) -> int | None:
    """Bytes of memory that processes of the host hold, shared pages by their share.

    None without processes.  Raises OSError or UserError where one's memory cannot be read.
    """
    text = read_text([f"/proc/{process}/smaps_rollup" for process in processes])
    shares = [int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:")]
    return sum(shares) if processes else None
