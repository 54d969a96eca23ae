"""The steps of a cell: commands in the system under test and at the client, and its servers."""

from __future__ import annotations

import contextlib
import json
import resource
import time
from collections.abc import Callable, Iterator

from strata.host import cgroups, observe
from strata.measure import servers
from strata.measure.arguments import Inputs, expanded, fill
from strata.measure.costs import Spender
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
# The share of the memory available at first at which a step with `more` adds no further system.
MEMORY_LEFT = 0.5


class Steps:
    """Execute the steps of one cell.

    Where several equal systems are up, each step in a system is executed in all of them at the same
    time; markers in the log say which system printed the lines that follow
    (:mod:`strata.measure.log_sections`).

    inputs: the values that commands are given.
    log: the log of the cell, which gets the output of commands and the observations.
    watch: the clock of the cell.
    restart_system: a function that brings the system up again by the given start method, and
    returns the new system.
    add_system: a function that brings up an equal system beside so many others, and returns it.
    waits: whether a shell waits in the system for the commands of laps.
    commands: the `commands` of the cell's record; each step adds to this list.
    shell: the waiting shell; None before :meth:`prepare` has ended, or without `waits`.
    spent: how long commands took so far (`elapsed_seconds`); with a client on this host also its
    CPU time (`client_user_seconds`, `client_system_seconds`).
    """

    def __init__(
        self,
        inputs: Inputs,
        log: Log,
        watch: Clock,
        restart_system: Callable[[str], System],
        add_system: Callable[[int], System],
        waits: bool = False,
    ) -> None:
        self.inputs, self.log, self.watch = inputs, log, watch
        self.restart_system, self.add_system = restart_system, add_system
        self.servers = servers.make_servers(inputs)
        self.commands: list[Fields] = []
        self.shell: Shell | None = None
        self.spent = {"elapsed_seconds": 0.0}
        at_client = any(step.get("at") == "client" for step in inputs.cell["steps"])
        if at_client and inputs.system.link and inputs.system.link.layer.shares_host:
            self.spent |= {"client_user_seconds": 0.0, "client_system_seconds": 0.0}
        self._lap: Fields = {}
        self._waits = waits and inputs.parts == 1
        self._machines = _machine_processes(inputs.system)
        self._counters: list[int] = []
        # Closed once the last step was taken.
        self._resources = contextlib.ExitStack()

    def prepare(self) -> None:
        """Execute the steps before the run, and start the servers and the waiting shell.

        The shell is started only with `waits`.
        Raises CellFailed with the name of the step, and the number of the system where there are
        several.
        """
        steps = expanded(self.inputs.cell["steps"], self.inputs.values)
        if any(step.get("observe") == "cpu" for step, _ in steps):
            # CPU cycles are counted only where a step reads them.
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

    def run(self, lap: int | None = None, way: str = "whole") -> None:
        """Execute the steps of the run.

        lap: the number of the lap, whose marker is written to the log; None for a cell without
        laps.
        way: `whole` or `slices`, which the marker names, too.
        """
        if lap is not None:
            self._lap = {"lap": lap, "how": way}
            self.log.begin_lap(lap, way)
        self._take("run")

    def spender(self) -> Spender:
        """Return whose costs are those of this cell's runs."""
        groups = [top.cgroup() for top in self.inputs.system.tops]
        return Spender([*filter(None, groups)], self._machines, self.spent)

    def finish(self) -> None:
        """End the shell, and stop the servers in the reverse order of their start.

        Raises CellFailed if a server failed.
        """
        if self.shell is not None:
            self.shell.close()
        for server in reversed(self.servers):
            server.stop()
        self._resources.close()

    def _take(self, section: str) -> None:
        """Execute the steps of a section.

        section: `prepare`, `warmup` or `run`.
        """
        declared = [step for step in self.inputs.cell["steps"] if step["step"] == section]
        for step, values in expanded(declared, self.inputs.values):
            if step.get("observe") == "group":
                groups = [top.cgroup() or "" for top in self.inputs.system.tops]
                self.log.mark(None)
                self.log.write(json.dumps(cgroups.read_usage(groups)))
            elif "observe" in step:
                from strata.host import counters

                self.log.mark(None)
                self.log.write(counters.cpu_line(self._counters))
            elif "fresh" in step:
                self._run_in_new_system(step, values)
            elif "more" in step:
                self._run_in_more_systems(step, values)
            elif "neighbour" in step:
                from strata.measure import neighbour

                limit = stretch(step["timeout"])
                with neighbour.keep_busy(self.inputs.system.top.context, limit) as usage:
                    self._run_command(step, values)
                self.log.mark(None)
                self.log.write(json.dumps({"neighbour": "busy", **usage}))
            else:
                self._run_command(step, values)

    def _run_command(self, step: Step, values: Fields) -> None:
        """Execute the command of a step at the client, or in all systems at the same time.

        Adds its record to ``commands``.  Raises CellFailed if the command fails, is ended, or
        prints more than the log may hold.
        """
        at_client = step.get("at") == "client"
        systems: list[int | None] = [None] if at_client else [*range(self.inputs.parts)]
        commands = [self._new_command(step, values, part) for part in systems]
        self.commands += commands
        try:
            with self._count_client_time(at_client):
                ended = self._run_in(
                    systems, [command["argv"] for command in commands], step["timeout"]
                )
        except LongLogError:
            limit = self.inputs.cell.get("log_limit", LIMIT)
            command = " ".join(commands[-1]["argv"])[:200]
            place = f"workloads/{self.inputs.workload}/workload.yaml"
            raise CellFailed(
                f"its {step['step']} step was ended: `{command}` printed more than the log may "
                f"hold, {limit}; let it print less, or set log_limit in {place}"
            ) from None
        self.spent["elapsed_seconds"] += max(seconds for _, seconds in ended)
        for record, (code, seconds) in zip(commands, ended, strict=True):
            if code is not None:
                record |= {"exit": code, "seconds": round(seconds, 4), "timeout": step["timeout"]}
        self._require_success(step, commands)

    @contextlib.contextmanager
    def _count_client_time(self, at_client: bool) -> Iterator[None]:
        """Add the CPU time of this process's children that end meanwhile to the client's.

        at_client: whether they run at the client; otherwise nothing is added.
        """
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        yield
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if at_client and "client_user_seconds" in self.spent:
            self.spent["client_user_seconds"] += after.ru_utime - before.ru_utime
            self.spent["client_system_seconds"] += after.ru_stime - before.ru_stime

    def _new_command(self, step: Step, values: Fields, part: int | None) -> Fields:
        """Return the record of a command that starts now.

        part: the number of the system in which it is executed; None for the client.
        """
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
        self, systems: list[int | None], argvs: list[list[str]], timeout: float
    ) -> list[tuple[int | None, float]]:
        """Execute a command in each of these systems, and return each exit code and duration.

        systems: the numbers of the systems; None stands for the client.
        argvs: the command for each of them.
        timeout: the limit in seconds.  The exit code of a command that exceeded it is None.
        """
        with self.log.outputs(systems) as outputs:
            if self.shell is not None and systems != [None]:
                argv = self.inputs.system.top.context.with_variables(argvs[0])
                return [self.shell.run(argv, outputs[0], timeout)]
            commands = []
            for part, argv in zip(systems, argvs, strict=True):
                commands.append(self.inputs.place(part).measured_command(argv))
            return run_together(commands, outputs, timeout, self._machines)

    def _require_success(self, step: Step, commands: list[Fields]) -> None:
        """Raise CellFailed if a command of a step was ended or returned a nonzero exit code."""
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
        """Return the end of a message on a failed command: a missing program, or its last lines."""
        if command["exit"] == 127:
            return f": {command['argv'][0]} or a program that it calls was not found"
        printed = last_words(self.log.whole().decode(errors="replace"))
        return f"; it printed last: {printed}" if printed else ""

    def _servers_words(self) -> str:
        """Return the last lines of each server that was ready, for a message on a failed step."""
        ready = [server for server in self.servers if server.record["ready_seconds"] is not None]
        sentences = [f"; {server.shown} said last: {server.last_words()}" for server in ready]
        return "".join(sentences)

    def _run_in_new_system(self, step: Step, values: Fields) -> None:
        """Bring the system up again, execute the step's command in it, and log the times of both.

        Sets the system of ``inputs``, and adds to ``commands``.  Raises CommandFailed if the
        command fails.
        """
        system = self.inputs.system = self.restart_system(values[step["fresh"]])
        seconds = self._run_unlogged(step, values, {"fresh": step["fresh"]})
        machine = system.facts["facts"].get("vm") or {}
        line = {
            "start": machine.get("started", "created"),
            "up_seconds": system.facts["up_seconds"],
            "boot_seconds": machine.get("boot_seconds"),
            "restore_seconds": machine.get("restore_seconds"),
            "command_seconds": round(seconds, 6),
            "memory_bytes": memory_held(system.top.memory_processes()),
            "removal_seconds": system.facts["removal_seconds"],
        }
        self.log.write(json.dumps(line))
        self._machines = _machine_processes(system)

    def _run_in_more_systems(self, step: Step, values: Fields) -> None:
        """Bring up equal systems one after the other, then run the step's command in each.

        The log gets the memory in use with each further system, and after each command.  No system
        is added where MEMORY_LEFT of the memory is left that was available at first, and no command
        runs where half of that is left.  Adds to ``commands``.  Raises CommandFailed if a command
        fails.
        """
        first = self.inputs.system
        floor = MEMORY_LEFT * (observe.available_memory() or 0)
        systems = [first]
        available = self._log_memory(systems, 0, floor)
        while len(systems) < values[step["more"]] and available > floor:
            systems.append(self.add_system(len(systems)))
            available = self._log_memory(systems, 0, floor)
        for number, system in enumerate(systems):
            if available <= floor / 2:
                break
            self.inputs.system = system
            self._run_unlogged(step, values, {"more": step["more"], "system": number})
            available = self._log_memory(systems, number + 1, floor / 2)
        self.inputs.system = first

    def _log_memory(self, systems: list[System], loaded: int, floor: float) -> int:
        """Log the memory that systems take, and return how many bytes are available on the host.

        loaded: the number of systems in which the step's command ran.
        floor: the available bytes at which the series ends.
        """
        available = observe.available_memory() or 0
        groups = [system.top.cgroup() or "" for system in systems]
        line = {"systems": len(systems), "loaded": loaded, "available_bytes": available}
        line |= {"floor_bytes": round(floor), **cgroups.read_memory(groups)}
        self.log.mark(None)
        self.log.write(json.dumps(line))
        return available

    def _run_unlogged(self, step: Step, values: Fields, more: Fields) -> float:
        """Run a step's command in the system of ``inputs``, and return its duration in seconds.

        Its output is not logged.  more: further keys of its record, which is added to ``commands``.
        Raises CommandFailed if the command fails.
        """
        argv = fill(step["argv"], self.inputs.of(0, values), self.inputs.workload)
        command: Fields = {"step": step["step"], **more, "argv": argv}
        command |= {"exit": None, "started": self.watch.now()}
        self.commands.append(command)
        begun = time.monotonic()
        place = self.inputs.system.top
        done = capture(place.measured_command(argv), timeout=step["timeout"], check=False)
        seconds = time.monotonic() - begun
        command |= {"exit": done.returncode, "seconds": round(seconds, 4)}
        command["timeout"] = step["timeout"]
        if done.returncode != 0:
            sentences = last_words(done.stderr or done.stdout)
            raise CommandFailed(
                f"its {step['step']} step ended with exit code {done.returncode}: {sentences}"
            )
        return seconds


def _machine_processes(system: System) -> list[int]:
    """Return the IDs of the host's processes of a system's virtual machines; empty if it has none.

    If one of these processes ends, commands in the machine hang.
    """
    processes = []
    for top in system.tops:
        if machine := top.virtual_machine():
            processes += machine.memory_processes()
    return processes


def _systems_of(commands: list[Fields]) -> str:
    """Return the words that name the systems of some commands; empty for a single system."""
    numbers = [str(command["system"]) for command in commands if "system" in command]
    plural = "s" if len(numbers) > 1 else ""
    return f" in system{plural} {', '.join(numbers)}" if numbers else ""


def memory_held(processes: list[int]) -> int | None:
    """Return the bytes of memory that some processes of the host hold.

    A page that several processes share counts in equal parts.  None if there are no processes.
    Raises OSError or UserError if the memory of a process cannot be read.
    """
    text = read_text([f"/proc/{process}/smaps_rollup" for process in processes])
    shares = [int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:")]
    return sum(shares) if processes else None
