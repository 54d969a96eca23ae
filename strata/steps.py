"""The steps of a cell: commands in the system under test and at the client, and the servers around them."""

import json
import os
import time
from collections.abc import Callable, Iterator

from strata import counters
from strata.clock import Watch
from strata.errors import CellFailed, UserError
from strata.process import TimedOut, capture, run_to_file
from strata.servers import Server, check_ports
from strata.testbed import System
from strata.workload import several

PROGRAMS = "/opt/strata/workloads"


def fill(argv: list[str], values: dict, folder: str) -> list[str]:
    """A declared command with its parameters; lists become ``a,b``, empty values the empty word.

    A program without a slash is one of the workload's own, in `folder`.
    """
    words = []
    for word in argv:
        if word.startswith("{") and word.endswith("}"):
            word = ",".join("" if item is None else str(item) for item in several(values[word[1:-1]]))
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

    cell: of the plan.  values: the parameters, seed and address.  output: descriptor of the log.  record: the
    cell's, whose `commands` and `servers` are filled in.  watch: the cell's clock.  afresh: brings the system up
    again, in the given way.
    """

    def __init__(
        self,
        workload: str,
        cell: dict,
        system: System,
        values: dict,
        output: int,
        record: dict,
        watch: Watch,
        afresh: Callable[[str], System],
    ) -> None:
        self.workload, self.cell, self.system, self.values = workload, cell, system, values
        self.output, self.record, self.watch, self.afresh = output, record, watch, afresh
        self.running: list[Server] = []

    def run(self) -> None:
        """Take them all.  Raises CellFailed, TimedOut as such, with the step's name."""
        with counters.cycles() as counting:
            self.counting = counting
            steps = self.cell["steps"]
            before = [step for step in steps if step["step"] == "prepare"]
            self._all(before, self.values)
            self._start_servers()
            self._all(steps[len(before) :], self.values)
            for server in reversed(self.running):
                server.stop()

    def _start_servers(self) -> None:
        declared = self.cell.get("servers", [])
        if not declared:
            return
        ports = [(name, port) for name in self.cell.get("ports", []) for port in several(self.values[name])]
        check_ports(ports, self.workload, self.values["address"], self._place("client"))
        for one in declared:
            server = Server(one, self.system.top, lambda argv: self._fill(argv, self.values), self._place)
            self.record.setdefault("servers", []).append(server.record)
            server.start()
            self.running.append(server)

    def _fill(self, argv: list[str], values: dict) -> list[str]:
        return fill(argv, values, f"{PROGRAMS}/{self.workload}")

    def _place(self, at: str) -> Callable[[list[str]], list[str]]:
        """What makes the host's command of one for the client or the system."""
        if at == "client":
            assert self.system.client is not None
            return self.system.client.command
        return self.system.top.command

    def _all(self, steps: list[dict], values: dict) -> None:
        for step, chosen in expanded(steps, values):
            if "observe" in step:
                self._write(counters.cpu_line(self.counting))
            elif "fresh" in step:
                self._afresh(step, chosen)
            else:
                self._command(step, chosen)

    def _write(self, line: str) -> None:
        os.write(self.output, line.encode() + b"\n")

    def _command(self, step: dict, values: dict) -> None:
        argv = self._fill(step["argv"], values)
        at = {"at": step["at"]} if "at" in step else {}
        command = {"step": step["step"], **at, "argv": argv, "exit": None, "started": self.watch.now()}
        self.record["commands"].append(command)
        try:
            code, seconds = run_to_file(self._place(step.get("at", "system"))(argv), self.output, step["timeout"])
        except TimedOut as error:
            raise CellFailed(f"its {step['step']} step was ended: {error}{self._servers_words()}") from None
        command |= {"exit": code, "seconds": round(seconds, 4), "timeout": step["timeout"]}
        if code != 0:
            raise CellFailed(f"its {step['step']} step ended with exit code {code}{self._servers_words()}")

    def _servers_words(self) -> str:
        """What the servers said last, for the message about a step that failed."""
        words = [f"; {server.declared['name']} said last: {server.last_words()}" for server in self.running]
        return "".join(words)

    def _afresh(self, step: dict, values: dict) -> None:
        """Bring the system up afresh and run the command in it; the time of both is the log's."""
        way = values[step["fresh"]]
        self.system = self.afresh(way)
        argv = self._fill(step["argv"], values)
        command = {
            "step": step["step"],
            "fresh": step["fresh"],
            "argv": argv,
            "exit": None,
            "started": self.watch.now(),
        }
        self.record["commands"].append(command)
        begun = time.monotonic()
        done = capture(self.system.top.command(argv), timeout=step["timeout"], check=False)
        seconds = time.monotonic() - begun
        command |= {"exit": done.returncode, "seconds": round(seconds, 4), "timeout": step["timeout"]}
        if done.returncode != 0:
            raise CellFailed(f"its {step['step']} step ended with exit code {done.returncode}: {done.stderr.strip()}")
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


def memory_held(processes: list[int]) -> int | None:
    """Bytes of memory that processes of the host hold, shared pages by their share; None where there is none."""
    total = 0
    for process in processes:
        try:
            with open(f"/proc/{process}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
        except (OSError, ValueError) as error:
            raise UserError(f"the memory of process {process} cannot be read: {error}") from None
    return total if processes else None
