"""Measure one cell: from its entry in the plan to its log and record."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
from hashlib import sha256

from strata.environments.common import registry
from strata.experiment import blocks, plan, sizes
from strata.host import node
from strata.host.observe import NOT_AVAILABLE
from strata.image import cache
from strata.measure import datasets, log_sections, parsed, parsing
from strata.measure.arguments import Inputs
from strata.measure.steps import Steps
from strata.testbed import lifecycle
from strata.util import paths, timeouts
from strata.util.clock import Clock
from strata.util.data_types import Any, Fields, Image, Plan, Stack
from strata.util.errors import CellFailed, CommandFailed, CommandTimedOut
from strata.util.files import read_json
from strata.util.placeholders import BUILT_IN
from strata.util.units import parse_ranges

# Types whose import would cost every cell time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# The version of the record's format; readers rely on it.
FORMAT = 9
# Seconds between a thaw and the next lap: only after them does a network server respond as quickly
# as before the freeze (docs/method.md).
SECONDS_AFTER_THAW = 0.2


class Cell:
    """Measure one cell: hold its system while the system is up, and build the cell's record.

    plan: the plan of the experiment.
    order: the order of the plan's cells.
    key: (environment, workload, repetition) of the cell.
    entry: the environment in the plan.
    planned: the workload in the plan, with its sizes in this environment.
    systems: the number of equal systems that run the workload at the same time.
    laps: the number of times that the run is repeated.
    slice: the seconds that its run goes on in a slice, while the runs of other cells are frozen;
    None if the workload has no slices.
    ways: the ways in which it takes its run in each lap, `whole` and `slices`; slices need another
    cell of the block that takes them, too.
    record: the content of the JSON file in results/raw; complete once the cell is measured.
    running: the run of the current lap in slices; None if none is going on.
    steps: the steps of the cell; set by :meth:`bring_up`.
    """

    steps: Steps

    def __init__(self, experiment: Plan, key: blocks.Cell, order: blocks.Order) -> None:
        """Read the cell's parts of the plan; nothing is up yet, and the record is empty.

        experiment: the plan.
        key: (environment, workload, repetition) of the cell.
        order: the order of the plan's cells.
        """
        self.plan, self.key, self.order = experiment, key, order
        self.environment, self.workload, self.repetition = key
        self.entry = experiment["environments"][self.environment]
        self.planned = plan.select_workload(experiment, self.environment, self.workload)
        self.systems = plan.count_systems(self.planned)
        self.laps = plan.count_laps(experiment, self.environment, self.workload)
        self.slice = plan.find_slice_seconds(experiment, self.environment, self.workload)
        self.ways = plan.list_run_ways(experiment, self.environment, self.workload)
        self.watch = Clock()
        self.record: Fields = {}
        self.running: Future[None] | None = None
        self._slices: list[list[int]] = []

    @property
    def mask(self) -> str | None:
        """The CPUs that systems and client are bound to, for example ``0-3``; None for all."""
        return self.plan["machine"]["mask"]

    @property
    def name(self) -> str:
        """The cell's name in messages: environment, workload and repetition."""
        return f"{self.environment} · {self.workload} · repetition {self.repetition}"

    @property
    def unfinished_log(self) -> str:
        """The path of the log while the cell is measured, in results/tmp."""
        return paths.get_cell_path("tmp", *self.key, "log")

    @property
    def layers(self) -> list[str]:
        """The names of the layers of the cell's system, from the lowest."""
        return [name for layer in self.entry["layers"] for name in layer]

    @functools.cached_property
    def image(self) -> Image | None:
        """The image of the cell's system; None if no layer uses one."""
        if not registry.collect_image_forms(self.layers):
            return None
        return cache.require_image(self.plan["image"]["recipe"])

    @property
    def is_interleaved(self) -> bool:
        """Whether the runs of this cell can be interleaved with those of other cells of its block.

        They can if the cell has laps or slices, and its system uses no CPU time between commands.
        """
        return self._is_divided and all(
            registry.load_layer_class(name).stands_idle for name in self.layers
        )

    @property
    def _is_divided(self) -> bool:
        """Whether the cell's run is repeated in laps or taken in slices.

        Only the log of such a cell has markers of laps.
        """
        return self.laps > 1 or self.slice is not None

    @property
    def system(self) -> lifecycle.System:
        """The system of the cell; available only after :meth:`bring_up`."""
        return self.steps.inputs.system

    def start_record(self) -> None:
        """Start the cell's clock, and begin a new record with the facts that are known so far.

        schemas/record.schema.json describes the keys.
        """
        self.watch = Clock()
        self.record = {
            "format": FORMAT,
            "environment": self.environment,
            "workload": self.workload,
            "repetition": self.repetition,
            "round": self.order.places[self.key][1],
            "fingerprint": plan.compute_fingerprint(self.plan, self.environment, self.workload),
            "node": node.identify_node(),
            "started": self.watch.format_now(),
            "scale": plan.select_scale(self.plan, self.environment),
            "source": self.plan["source"],
        }
        if timeouts.read_patience() > 1:
            self.record["patience"] = timeouts.read_patience()

    def bring_up(self, link: lifecycle.Client | None, offset: int) -> None:
        """Bring the system up, record its facts, and copy the files that its commands need into it.

        Sets ``steps`` and creates the log.  Call :meth:`start_record` before.
        link: the client; None if the workload has none.
        offset: the number of systems of the block that are up already; it shifts the ports of
        servers, so that no two systems share one.
        Raises UserError if the system cannot be brought up, and CellFailed if programs start
        in an undeclared state in it or it does not show its CPUs.
        """
        limit = self.planned["cell"].get("log_limit", log_sections.DEFAULT_LIMIT)
        log = log_sections.Log(self.unfinished_log, self.systems, limit)
        # All repetitions share one data set, so its seed is that of repetition 0.
        data_seed = plan.compute_cell_seed(self.plan, self.workload, 0)
        data = datasets.ensure_data_set(self.workload, self.planned, data_seed, self.image)
        system = self._bring_up_system(self.entry["layers"], link, offset)
        values = self._record_system_facts(system, link)
        values = self._copy_files(system, values, data)
        inputs = Inputs(self.workload, self.planned["cell"], system, values)
        self.steps = Steps(
            inputs,
            log,
            self.watch,
            self._restart_system,
            functools.partial(self._bring_up_system, self.entry["layers"], link),
            self.is_interleaved,
        )
        self.record["commands"] = self.steps.commands
        if "servers" in self.planned["cell"]:
            self.record["servers"] = [server.record for server in self.steps.servers]

    def _record_system_facts(
        self, system: lifecycle.System, link: lifecycle.Client | None
    ) -> Fields:
        """Record the facts of a system that is up, and return the values of the parameters.

        system: the system.
        link: the client that reaches it; None if the workload has none.
        The values include the built-in `seed`, which the record has apart from its `parameters`.
        schemas/record.schema.json names the keys of the record, and docs/files.md describes them.
        `observed.host` is filled in once the block is measured.
        Raises CellFailed if programs start in an undeclared state in the system, or if the system
        does not show its CPUs.
        """
        native_state = lifecycle.read_native_state(self.mask)
        inside, state = lifecycle.observe_system(system.top)
        client = link.client_facts if link else None
        cpus = self._count_cpus_per_system(system, inside)
        values = self._resolve_parameters(cpus, inside, client)
        parameters = {key: value for key, value in values.items() if key not in BUILT_IN}
        self.record |= {
            "seed": values["seed"],
            "parameters": parameters,
            "image": {
                "recipe": self.plan["image"]["recipe"],
                "id": system.facts["image"],
                "manifest_sha256": self.image["manifest_sha256"] if self.image else None,
            },
            "system": {
                **{key: system.facts[key] for key in ("id", "layers", "up_started", "up_seconds")},
                "count": self.systems,
                "cpus": cpus,
                # The facts of a virtual machine replace it.
                "vm": None,
                **system.facts["facts"],
            },
            "starting_state": lifecycle.check_starting_state(system.top, state, native_state),
            "observed": {"inside": inside, "host": None, "client": client},
        }
        return values

    def _bring_up_system(
        self, stack: Stack, link: lifecycle.Client | None, offset: int
    ) -> lifecycle.System:
        """Bring up and return a system of these layers.

        stack: ``[{name: options}, …]`` of the layers, from the lowest up.
        link: the client that reaches the system; None if the workload has none.
        offset: the number of systems of other cells that are up; the ports of this system are
        above their ports.
        """
        ports = sorted({port for _, port in plan.list_ports(self.planned)})
        disk: Any = self.planned["cell"].get("ram_disk")
        return lifecycle.System(
            self.environment,
            stack,
            self.image,
            link,
            ports,
            parts=self.systems,
            port_offset=offset * plan.compute_port_offset(ports),
            mask=self.mask,
            disk_bytes=self.planned["parameters"][disk] if disk else None,
        )

    def _restart_system(self, start_method: str) -> lifecycle.System:
        """Take the system down, and bring up and return a new one.

        start_method: how virtual machines start, ``booted`` or ``restored``.
        The new system's facts hold how long the removal took (`removal_seconds`), which
        strata/measure/steps.py logs.  The caller sets the new system in ``steps.inputs``.
        """
        started = time.monotonic()
        lifecycle.take_down_systems(self.environment)
        seconds = time.monotonic() - started
        stack = registry.set_machine_start_method(self.entry["layers"], start_method)
        system = self._bring_up_system(stack, self.system.link, 0)
        system.facts["removal_seconds"] = round(seconds, 3)
        return system

    def prepare_run(self) -> None:
        """Execute the steps before the run, and start the servers and the waiting shell."""
        self.steps.prepare_run()

    def run_lap(self, lap: int) -> None:
        """Execute the whole run of one lap, after thawing the system if it is frozen.

        lap: the number of the lap, from 1.
        """
        if self.system.frozen:
            self.system.set_frozen(False)
            # Only servers that a client reaches by the network respond slowly after a thaw.
            if "ports" in self.planned["cell"]:
                time.sleep(SECONDS_AFTER_THAW)
        # Only the log of a divided run has markers of laps.
        self.steps.execute_run(lap if self._is_divided else None)

    def start_lap(self, lap: int, threads: ThreadPoolExecutor) -> None:
        """Start the run of a lap in slices, in a thread, while the system is frozen.

        :meth:`run_slice` lets the run continue.
        lap: the number of the lap, from 1.
        threads: the pool with a thread for the run, which waits in it until the run's end.
        Sets ``running``, and stops the clock of the shell.
        """
        assert self.steps.shell
        self.steps.shell.clock.stop()
        self.running = threads.submit(self.steps.execute_run, lap, plan.SLICES)
        self._slices = []

    def run_slice(self, seconds: float) -> None:
        """Let the run of a lap continue for some seconds or to its end, then freeze the system.

        Sets ``running`` to None once the run has ended.  Then the log gets the times of each slice,
        in microseconds since the epoch: when it was thawed, when its freeze was requested, and when
        it was seen frozen.  A slice counts until its freeze is requested: seeing the freeze takes
        ten times as long as the program continues after the request.
        `compute_worked_seconds` in workloads/kit/logs.py reads this line for parsers.
        seconds: the length of the slice.
        Raises the error of the run.
        """
        assert self.running
        assert self.steps.shell
        clock = self.steps.shell.clock
        thawed = time.time_ns()
        clock.resume()
        self.system.set_frozen(False)
        # The run's error is raised below, by `result`.
        with contextlib.suppress(TimeoutError):
            self.running.exception(seconds)
        requested = time.time_ns()
        clock.stop()
        self.system.set_frozen(True)
        timestamps = (thawed, requested, time.time_ns())
        self._slices.append([timestamp // 1000 for timestamp in timestamps])
        if self.running.done():
            clock.resume()
            ended_run, self.running = self.running, None
            ended_run.result()
            self.steps.log.write_line(json.dumps({"slices": self._slices}))

    def stop_programs(self) -> None:
        """Thaw the system, and end the shell and the servers in it.

        Raises CellFailed if a server failed.
        """
        self.system.set_frozen(False)
        self.steps.stop_programs()

    def freeze_system(self) -> None:
        """Freeze the system while other cells run.

        Servers and the kernel of a sandbox would use CPU time for timers even without requests.
        Where the workload uses storage, written files are flushed to disk first.
        """
        if self.planned.get("storage"):
            os.sync()
        self.system.set_frozen(True)

    def parse_log(self) -> None:
        """Parse the log, add the facts that follow from it to the record, and store the values.

        The record gets `log`, `sizes` and, if the log describes a program, `program`.  The values
        go to results/parsed, where strata/results/tidy.py finds them.
        Raises CellFailed if the parser rejects the log, and UserError if the parser exceeds a
        limit.
        """
        self._read_and_record_log()
        record: Any = self.record
        [outcome] = parsing.parse_cell_logs(
            [(self.unfinished_log, record, self.planned)], os.getcwd(), named=False
        )
        if "broken" in outcome:
            raise CellFailed(f"its parser refuses the log: {outcome['broken']}")
        metrics = [(metric, value) for (metric, _, value, _), _, _ in outcome["values"]]
        parameters = record["parameters"]
        record["sizes"] = sizes.evaluate_planned_size_rules(
            self.plan, self.workload, parameters, metrics
        )
        if "program" in outcome:
            record["program"] = outcome["program"]
        parsed.store_outcome(self.key, record, self.planned, outcome)

    def _read_and_record_log(self) -> bytes:
        """Return the content of the whole log, and record its size and SHA-256 as `log`.

        strata/results/validate.py compares the log with these.
        """
        content = self.steps.log.read_all()
        self.record["log"] = {"bytes": len(content), "sha256": sha256(content).hexdigest()}
        return content

    def is_inability(self, failure: CommandFailed) -> bool:
        """Return whether a failure shows that the environment cannot run the workload.

        failure: the failure of a command of this cell.
        A failed command shows it in an environment that the plan marks as `doubtful`, unless
        another repetition of the cell was measured.  A command that timed out shows it only if
        another repetition was recorded as impossible: a single timeout may be a fault of the
        machine.
        """
        if not self.entry.get("doubtful"):
            return False
        # The records of this cell's repetitions that were measured under the same plan.
        records = []
        for key in self.order.places:
            environment, workload, _ = key
            if environment == self.environment and workload == self.workload:
                record = read_json(paths.get_cell_path("raw", *key, "json")) or {}
                if record.get("fingerprint") == self.record["fingerprint"]:
                    records.append(record)
        if any("cannot" not in record for record in records):
            return False
        # All records that there are say that the environment cannot run the workload.
        is_known_as_impossible = bool(records)
        return is_known_as_impossible or not isinstance(failure, CommandTimedOut)

    def record_inability(self, failure: CellFailed) -> None:
        """Record a failure as the result of the cell: the environment cannot run the workload.

        failure: the failure, whose message becomes the reason, in one line.
        Sets ``cannot`` and ``log`` in the record, moves the commands that failed into ``cannot``,
        and removes the servers that did not end.  A record with ``cannot`` has no values, and the
        paper shows its reason.
        """
        reason = str(failure)
        last_lines = log_sections.summarize_output(
            self._read_and_record_log().decode(errors="replace")
        )
        # The message of most failed commands has its last lines already.
        if last_lines and last_lines not in reason:
            reason += f"; it printed last: {last_lines}"
        commands = self.record.get("commands", [])
        # `exit` is None for a command that was ended.
        failed_commands = [command for command in commands if command["exit"] != 0]
        self.record["cannot"] = {"reason": " ".join(reason.split()), "commands": failed_commands}
        self.record["commands"] = [command for command in commands if command["exit"] == 0]
        servers = self.record.pop("servers", [])
        ended_servers = [server for server in servers if server["exit"] is not None]
        if ended_servers:
            self.record["servers"] = ended_servers

    def _count_cpus_per_system(self, system: lifecycle.System, inside: Fields) -> int | None:
        """Return how many CPUs each system of the cell uses; None if a system does not show any.

        system: the system of the cell.
        inside: the facts observed in the first system.
        A virtual machine has CPUs of its own.  Systems that see the host's CPUs get equal shares,
        rounded down, of at least one CPU.  The share is not enforced: only parameters that use the
        number limit a system to it.
        """
        count = inside["cpus"]
        if not isinstance(count, int):
            return None
        return count if system.top.find_virtual_machine() else max(1, count // self.systems)

    def _resolve_parameters(
        self, cpus: int | None, inside: Fields, client: Fields | None
    ) -> Fields:
        """Return the parameters and the cell's seed, with rules on CPUs replaced by their values.

        A parameter with a rule is ``{rule}``: cpus, first-cpu or client-last-cpu.
        cpus: the number of CPUs of each system; None if it is not known.
        inside: the facts observed in the system.
        client: the facts observed at the client; None without a client.
        Raises CellFailed if the system or the client does not show its CPUs.
        """
        values = dict(self.planned["parameters"])
        for key, value in values.items():
            if not isinstance(value, dict):
                continue
            at_client = value["rule"] == "client-last-cpu"
            facts = (client or {}) if at_client else inside
            # Ranges of CPU numbers, such as "0-3,8".
            ranges = facts.get("processors", NOT_AVAILABLE)
            cpu_numbers = [] if ranges == NOT_AVAILABLE else parse_ranges(ranges)
            if cpus is None or not cpu_numbers:
                owner = "client" if at_client else "system under test"
                raise CellFailed(f"the {owner} does not show which CPUs it has; set {key}")
            value_by_rule = {
                "cpus": cpus,
                "first-cpu": cpu_numbers[0],
                "client-last-cpu": cpu_numbers[-1],
            }
            values[key] = value_by_rule[value["rule"]]
        values["seed"] = plan.compute_cell_seed(self.plan, self.workload, self.repetition)
        return values

    def _copy_files(self, system: lifecycle.System, values: Fields, data: str | None) -> Fields:
        """Copy the data set, and the files that parameters name, into each system.

        system: the system of the cell.
        values: the parameters by name; a file whose parameter is None is not copied.
        data: the path of the data set on this host; None if there is none.
        Returns the values, in which each parameter that names a file has the path of the copy in
        the system.
        """
        # Parameter → the path of the copy in the system.
        targets = {}
        for key in self.planned["cell"]["files"]:
            if values[key] is not None:
                targets[key] = f"/data/given-{key}"
        sources = {target: values[key] for key, target in targets.items()}
        if data:
            sources[datasets.PATH_IN_SYSTEM] = data
        for top in system.tops:
            for target, source in sources.items():
                top.copy_file_in(source, target)
        return values | targets
