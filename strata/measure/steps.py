"""Execute the steps of a cell: commands in the system under test and at the client."""

from __future__ import annotations

import contextlib
import json
import resource
import time
from collections.abc import Callable, Iterator

from strata.experiment.plan import has_client_step
from strata.host import cgroups, observe
from strata.measure import servers
from strata.measure.arguments import Inputs, fill_command, iterate_steps
from strata.measure.costs import Spender
from strata.measure.log_sections import DEFAULT_LIMIT, Log, LongLogError, summarize_output
from strata.measure.shell import SHELL_PROGRAM, Shell
from strata.testbed.lifecycle import System
from strata.util.clock import Clock
from strata.util.data_types import Fields, Step
from strata.util.errors import CellFailed, CommandFailed, CommandTimedOut
from strata.util.files import read_text
from strata.util.process import capture_output, run_commands_concurrently, wait_for_any_process
from strata.util.timeouts import scale_timeout

# Seconds within which a shell that was started in a system must answer.
SECONDS_TO_ANSWER = 60.0
# The share of the memory available at first at which a step with `more` adds no further system.
MEMORY_LEFT = 0.5


class Steps:
    """Execute the steps of one cell.

    Where several equal systems are up, each step in a system is executed in all of them at the same
    time; markers in the log say which system printed the lines that follow
    (:mod:`strata.measure.log_sections`).

    inputs: the layers where commands run, and the values of their placeholders.
    log: the log of the cell, which gets the output of commands and the observations.
    watch: the clock of the cell.
    restart_system: a function that brings the system up again by the given start method, and
    returns the new system.
    add_system: a function that brings up one more equal system, and returns it; its argument is
    the number of systems that are up.
    waits: whether a shell waits in the system for the commands of laps.
    commands: the `commands` of the cell's record; each command adds its entry to this list.
    shell: the waiting shell; None before :meth:`prepare_run` has ended, or without `waits`.
    command_seconds: how long commands took so far (`elapsed_seconds`); with a client on this host
    also its CPU time (`client_user_seconds`, `client_system_seconds`).  strata/measure/costs.py
    reads it after each run.
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
        """Create the objects of the servers and empty records; nothing is executed yet.

        The parameters are described at the class; `waits` has an effect only with one system.
        """
        self.inputs, self.log, self.watch = inputs, log, watch
        self.restart_system = restart_system
        self.add_system = add_system
        self.servers = servers.create_servers(inputs)
        self.commands: list[Fields] = []
        self.shell: Shell | None = None
        self.command_seconds = {"elapsed_seconds": 0.0}
        # Children of a client on this host are children of this process, whose CPU time is counted.
        link = inputs.system.link
        if link and link.layer.shares_host and has_client_step(inputs.cell["steps"]):
            self.command_seconds |= {"client_user_seconds": 0.0, "client_system_seconds": 0.0}
        self._lap: Fields = {}
        self._waits = waits and inputs.system_count == 1
        self._machine_pids = _list_machine_processes(inputs.system)
        self._counters: list[int] = []
        # Closed by `stop_programs`.
        self._resources = contextlib.ExitStack()

    def prepare_run(self) -> None:
        """Execute the steps before the run, and start the servers and the waiting shell.

        The order is: the steps of `prepare`, the servers, the steps of `warmup`, the shell.
        The shell is started only with `waits`, and only for a single system.
        Raises CellFailed with the name of the step, and the number of the system where there are
        several.
        """
        steps = iterate_steps(self.inputs.cell["steps"], self.inputs.values)
        if any(step.get("observe") == "cpu" for step, _ in steps):
            # CPU cycles are counted only where a step reads them.
            from strata.host import counters

            self._counters = self._resources.enter_context(counters.open_cycle_counters())
        self._execute_section("prepare")
        servers.start_servers(self.servers, self.inputs.system)
        self._execute_section("warmup")
        if self._waits:
            self.shell = Shell(
                self.inputs.system.top.build_plain_command([SHELL_PROGRAM], reads_stdin=True)
            )
            # The shell must be ready before the system is frozen: no process can enter it then.
            with self.log.open_outputs([0]) as [output]:
                self.shell.run(["true"], output, SECONDS_TO_ANSWER)

    def execute_run(self, lap: int | None = None, way: str = "whole") -> None:
        """Execute the steps of the run.

        lap: the number of the lap, whose marker is written to the log; None for a cell without
        laps.
        way: `whole` or `slices`, which the marker names, too.
        """
        if lap is not None:
            self._lap = {"lap": lap, "how": way}
            self.log.write_lap_marker(lap, way)
        self._execute_section("run")

    def describe_spender(self) -> Spender:
        """Return the control groups and processes whose usage is the cost of this cell's runs.

        The result shares the mapping `command_seconds`, which later commands change.
        """
        groups = [top.find_cgroup() for top in self.inputs.system.tops]
        return Spender([*filter(None, groups)], self._machine_pids, self.command_seconds)

    def stop_programs(self) -> None:
        """End the shell, and stop the servers in the reverse order of their start.

        No step is executed afterwards.
        Raises CellFailed if a server failed; the servers started before it are then not stopped,
        and end with their system.
        """
        if self.shell is not None:
            self.shell.close()
        for server in reversed(self.servers):
            server.stop()
        self._resources.close()

    def _execute_section(self, section: str) -> None:
        """Execute the steps of a section.

        section: "prepare", "warmup" or "run".
        Some steps log a line of JSON; workloads/NAME/parse.py relies on its keys.
        Raises CellFailed if a step fails.
        """
        section_steps = [step for step in self.inputs.cell["steps"] if step["step"] == section]
        for step, values in iterate_steps(section_steps, self.inputs.values):
            if "observe" in step:
                self._log_observation(step["observe"])
            elif "fresh" in step:
                self._run_in_new_system(step, values)
            elif "more" in step:
                self._run_in_more_systems(step, values)
            elif "neighbour" in step:
                from strata.measure import neighbour

                limit = scale_timeout(step["timeout"])
                with neighbour.run_busy_neighbour(self.inputs.system.top.context, limit) as usage:
                    self._run_command(step, values)
                self._write_host_line(json.dumps({"neighbour": "busy", **usage}))
            else:
                self._run_command(step, values)

    def _log_observation(self, kind: str) -> None:
        """Write an observation to the log.

        kind: "group" for the usage of the systems' control groups, "cpu" for the counted cycles.
        The line begins with log_sections.OBSERVED; parsers rely on its keys (docs/files.md).
        """
        if kind == "group":
            groups = [top.find_cgroup() or "" for top in self.inputs.system.tops]
            line = json.dumps(cgroups.read_and_reset_group_usage(groups))
        else:
            from strata.host import counters

            line = counters.format_cpu_usage_line(self._counters)
        self._write_host_line(line)

    def _write_host_line(self, line: str) -> None:
        """Write a line to the log that belongs to no system, such as an observation of the host."""
        self.log.write_system_marker(None)
        self.log.write_line(line)

    def _run_command(self, step: Step, values: Fields) -> None:
        """Execute the command of a step at the client, or in all systems at the same time.

        step: a step with `argv` and `timeout`; its `at` is "client" for a command at the client.
        values: the parameters by name.
        Adds its records to ``commands``, and its time to ``command_seconds``.
        Raises CellFailed if the command fails, is ended, or prints more than the log may hold.
        """
        at_client = step.get("at") == "client"
        systems: list[int | None] = [None] if at_client else [*range(self.inputs.system_count)]
        commands = [
            self._start_command_record(step, values, system_number) for system_number in systems
        ]
        self.commands += commands
        argvs = [command["argv"] for command in commands]
        try:
            with self._count_client_time(at_client):
                results = self._run_in_systems(systems, argvs, step["timeout"])
        except LongLogError:
            limit = self.inputs.cell.get("log_limit", DEFAULT_LIMIT)
            # 200 characters show which command it is; arguments may be long.
            command = " ".join(commands[-1]["argv"])[:200]
            declaration = f"workloads/{self.inputs.workload}/workload.yaml"
            raise CellFailed(
                f"its {step['step']} step was ended: `{command}` printed more than the log may "
                f"hold, {limit}; let it print less, or set log_limit in {declaration}"
            ) from None
        # The systems run their commands at the same time.
        self.command_seconds["elapsed_seconds"] += max(seconds for _, seconds in results)
        for command_record, (code, seconds) in zip(commands, results, strict=True):
            # The record of a command that was ended has no times, and its `exit` stays None.
            if code is not None:
                command_record["exit"] = code
                command_record["seconds"] = round(seconds, 4)
                command_record["timeout"] = step["timeout"]
        self._check_success(step, commands)

    @contextlib.contextmanager
    def _count_client_time(self, at_client: bool) -> Iterator[None]:
        """Add the CPU time of children that end meanwhile to the client's in `command_seconds`.

        at_client: whether these children run at the client; otherwise nothing is added.
        Nothing is added for a client on a second machine either: its only children here are ssh.
        Nothing is added if the commands raise an error, since the cell has then failed.
        """
        usage_before = resource.getrusage(resource.RUSAGE_CHILDREN)
        yield
        usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # The keys exist only for a client on this host.
        if at_client and "client_user_seconds" in self.command_seconds:
            self.command_seconds["client_user_seconds"] += (
                usage_after.ru_utime - usage_before.ru_utime
            )
            self.command_seconds["client_system_seconds"] += (
                usage_after.ru_stime - usage_before.ru_stime
            )

    def _start_command_record(
        self, step: Step, values: Fields, system_number: int | None
    ) -> Fields:
        """Return the record of a command that starts now; its `exit` is None until it has ended.

        The record is an entry of `commands` in the cell's record (schemas/record.schema.json); the
        caller adds it there.
        step: the step of the command.
        values: the values of placeholders; `lap` is added, which is 0 outside of laps.
        system_number: the number of the system where the command is executed; None for the client.
        """
        record: Fields = {"step": step["step"], **self._lap}
        if "at" in step:
            record["at"] = step["at"]
        values = {"lap": 0, **self._lap, **values}
        if system_number is None:
            values = self.inputs.build_client_values(values)
        else:
            values = self.inputs.build_placeholder_values(system_number, values)
            if self.inputs.system_count > 1:
                record["system"] = system_number
        argv = fill_command(step["argv"], values, self.inputs.workload)
        return {**record, "argv": argv, "exit": None, "started": self.watch.format_now()}

    def _run_in_systems(
        self, systems: list[int | None], argvs: list[list[str]], timeout: float
    ) -> list[tuple[int | None, float]]:
        """Execute a command in each of these systems, and return (exit code, seconds) of each.

        systems: the numbers of the systems; None stands for the client.
        argvs: the command for each system, in the same order.
        timeout: the limit in seconds.  The exit code of a command that exceeded it is None.
        Raises LongLogError if the commands print more than the log may hold.
        """
        with self.log.open_outputs(systems) as outputs:
            # A shell waits only where there is one system.
            if self.shell is not None and systems != [None]:
                argv = self.inputs.system.top.context.wrap_with_variables(argvs[0])
                return [self.shell.run(argv, outputs[0], timeout)]
            commands = []
            for system_number, argv in zip(systems, argvs, strict=True):
                commands.append(self.inputs.find_layer(system_number).build_measured_command(argv))
            return run_commands_concurrently(commands, outputs, timeout, self._machine_pids)

    def _check_success(self, step: Step, commands: list[Fields]) -> None:
        """Raise an error if a command of a step returned a nonzero exit code or was ended.

        step: the step of the commands.
        commands: the records of the commands, after their end.
        Raises CommandFailed for an exit code, CommandTimedOut for a command that exceeded its
        limit, and CellFailed if its virtual machine ended or was lost.  Only CommandFailed and its
        subclass CommandTimedOut may be recorded as an inability of the environment.
        """
        name = f"its {step['step']} step"
        for command in commands:
            # The exit code is None for a command that was ended; these come below.
            if command["exit"] not in (0, None):
                self._raise_for_exit_code(step, command)
        unfinished_commands = [command for command in commands if command["exit"] is None]
        if unfinished_commands:
            # The limit of 0 s: only whether a machine has ended already.
            if wait_for_any_process(self._machine_pids, 0):
                raise CellFailed(f"{name} was ended: its virtual machine ended under it")
            seconds = scale_timeout(step["timeout"])
            limit = f"no end after {seconds:g} s{_format_systems(unfinished_commands)}"
            raise CommandTimedOut(f"{name} was ended: {limit}{self._describe_server_outputs()}")

    def _raise_for_exit_code(self, step: Step, command: Fields) -> None:
        """Raise CommandFailed for a command with a nonzero exit code, or CellFailed.

        command: the record of the command.
        Raises CellFailed, which shows no inability of the environment, if ssh may have lost the
        virtual machine of the system.
        """
        from strata.vm import ssh

        reason = f"its {step['step']} step{_format_systems([command])}"
        reason += f" ended with exit code {command['exit']}{self._describe_failure(command)}"
        is_in_machine = self._machine_pids and step.get("at") != "client"
        if command["exit"] == ssh.CONNECTION_LOST and is_in_machine:
            # A program with this exit code looks the same; a lost machine must not count as
            # something that its environment cannot do.
            reason += ": ssh ends so if it lost the virtual machine"
            raise CellFailed(f"{reason}{self._describe_server_outputs()}")
        raise CommandFailed(f"{reason}{self._describe_server_outputs()}")

    def _describe_failure(self, command: Fields) -> str:
        """Return a clause on why a command failed: a missing program, or what it printed last.

        command: the record of the command, with its nonzero `exit`.
        An example is "; it printed last: out of memory".  The clause is empty if nothing was
        printed.
        """
        # Shells and `env` exit with this code if the program does not exist.
        if command["exit"] == 127:
            return f": {command['argv'][0]} or a program that it calls was not found"
        printed = summarize_output(self.log.read_all().decode(errors="replace"))
        return f"; it printed last: {printed}" if printed else ""

    def _describe_server_outputs(self) -> str:
        """Return a clause for each server that was ready, such as "; nginx said last: ready".

        The result is for the end of a message, and empty without such servers.  Each server's
        record gets the end of its output.
        """
        ready = [server for server in self.servers if server.record["ready_seconds"] is not None]
        clauses = [f"; {server.shown} said last: {server.read_last_lines()}" for server in ready]
        return "".join(clauses)

    def _run_in_new_system(self, step: Step, values: Fields) -> None:
        """Restart the system, run the step's command in it, and log how long both took.

        step: a step with `fresh`, the name of the parameter that says how the system starts.
        values: the parameters by name.
        Replaces ``inputs.system``, and adds to ``commands``.  workloads/startup/parse.py reads the
        keys of the logged line.
        Raises CommandFailed if the command fails.
        """
        system = self.restart_system(values[step["fresh"]])
        self.inputs.system = system
        seconds = self._run_without_log(step, values, {"fresh": step["fresh"]})
        machine = system.facts["facts"].get("vm") or {}
        line = {
            # Only virtual machines boot or are restored.
            "start": machine.get("started", "created"),
            "up_seconds": system.facts["up_seconds"],
            "boot_seconds": machine.get("boot_seconds"),
            "restore_seconds": machine.get("restore_seconds"),
            "command_seconds": round(seconds, 6),
            "memory_bytes": measure_held_memory(system.top.list_memory_processes()),
            "removal_seconds": system.facts["removal_seconds"],
        }
        self.log.write_line(json.dumps(line))
        self._machine_pids = _list_machine_processes(system)

    def _run_in_more_systems(self, step: Step, values: Fields) -> None:
        """Bring up equal systems one after the other, then run the step's command in each.

        step: a step with `more`, the name of the parameter that holds the largest number of
        systems.
        values: the parameters by name.
        The log gets the memory in use with each further system, and after each command.  The series
        of systems ends once only the share MEMORY_LEFT of the memory available at first is left,
        and the series of commands once half of that share is left.  Adds to ``commands``.  The
        systems stay up until the cell's systems are taken down.
        Raises CommandFailed if a command fails.
        """
        first_system = self.inputs.system
        # Memory that the previous cell frees only now would make the systems seem smaller.
        observe.wait_for_freed_memory()
        # Without a known memory the floor and the available bytes are 0, and no system is added.
        floor = MEMORY_LEFT * (observe.read_available_memory() or 0)
        systems = [first_system]
        available_bytes = self._log_memory(systems, 0, floor)
        while len(systems) < values[step["more"]] and available_bytes > floor:
            systems.append(self.add_system(len(systems)))
            available_bytes = self._log_memory(systems, 0, floor)
        for number, system in enumerate(systems):
            if available_bytes <= floor / 2:
                break
            self.inputs.system = system
            self._run_without_log(step, values, {"more": step["more"], "system": number})
            available_bytes = self._log_memory(systems, number + 1, floor / 2)
        self.inputs.system = first_system

    def _log_memory(self, systems: list[System], loaded_count: int, floor: float) -> int:
        """Log the memory that systems take, and return how many bytes are available on the host.

        systems: all systems that are up.
        loaded_count: the number of systems where the step's command has run.
        floor: the number of available bytes at which the series ends.
        The result is 0, which ends the series, if the kernel does not show its memory.
        workloads/density/parse.py reads the keys of the logged line.
        """
        available_bytes = observe.read_available_memory() or 0
        groups = [system.top.find_cgroup() or "" for system in systems]
        line = {
            "systems": len(systems),
            "loaded": loaded_count,
            "available_bytes": available_bytes,
            "floor_bytes": round(floor),
            **cgroups.read_group_memory(groups),
        }
        self._write_host_line(json.dumps(line))
        return available_bytes

    def _run_without_log(self, step: Step, values: Fields, further_keys: Fields) -> float:
        """Run a step's command in the first system of ``inputs``, and return its seconds.

        step: the step of the command.
        values: the parameters by name.
        further_keys: further keys of the record, as schemas/record.schema.json allows them.
        The output is not logged.  The command's record is added to ``commands``.  The command does
        not use the waiting shell, as it does in :meth:`_run_command`: the system is entered anew.
        Raises CommandFailed if the command fails.
        """
        command = {**self._start_command_record(step, values, 0), **further_keys}
        self.commands.append(command)
        host_command = self.inputs.system.top.build_measured_command(command["argv"])
        started = time.monotonic()
        result = capture_output(host_command, timeout=step["timeout"], check=False)
        seconds = time.monotonic() - started
        command["exit"] = result.returncode
        command["seconds"] = round(seconds, 4)
        command["timeout"] = step["timeout"]
        if result.returncode != 0:
            last_lines = summarize_output(result.stderr or result.stdout)
            raise CommandFailed(
                f"its {step['step']} step ended with exit code {result.returncode}: {last_lines}"
            )
        return seconds


def _list_machine_processes(system: System) -> list[int]:
    """Return the IDs of the host's processes that run a system's virtual machines; empty if none.

    Commands in a machine hang if its process ends.  The caller therefore ends them, too.
    """
    pids = []
    for top in system.tops:
        if machine := top.find_virtual_machine():
            pids += machine.list_memory_processes()
    return pids


def _format_systems(commands: list[Fields]) -> str:
    """Return a phrase for a message, such as " in systems 0, 2"; empty if only one system is up.

    commands: records of commands, which have `system` only if several systems are up.
    """
    numbers = [str(command["system"]) for command in commands if "system" in command]
    plural = "s" if len(numbers) > 1 else ""
    return f" in system{plural} {', '.join(numbers)}" if numbers else ""


def measure_held_memory(pids: list[int]) -> int | None:
    """Return the bytes of memory that some processes of the host hold.

    pids: the IDs of the processes.  Returns None if the list is empty, as for native systems.
    A page that several processes share is divided evenly among them (Pss of proc_pid_smaps(5)).
    Raises OSError or UserError if the memory of a process cannot be read.
    """
    if not pids:
        return None
    text = read_text([f"/proc/{pid}/smaps_rollup" for pid in pids])
    # A line is "Pss: SIZE kB"; the kernel gives the size in kibibytes.
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))
