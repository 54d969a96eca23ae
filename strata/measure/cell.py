"""One cell: what is measured, in which system, and what its record says of it so far."""

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
from strata.util.clock import Watch
from strata.util.data_types import Any, Fields, Image, Plan, Stack
from strata.util.errors import CellFailed, Endless, Unable
from strata.util.files import read_json
from strata.util.placeholders import BUILT_IN
from strata.util.units import numbers

# What takes a cell's time to import, and only its types need.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# Of the record.
FORMAT = 7
# Seconds after a thaw that belong to no lap: a server of a network is then as quick as before it was frozen
# (docs/method.md).
THAWING = 0.2


class Cell:
    """One cell on its way from the plan to its log and record; `known` are the parts of the record so far.

    `key` names it in the plan.  `entry` and `work` are what that says of its environment and its workload there; it
    takes its run `laps` times, in so many `systems` at the same time.  `slice` is for how many seconds its run goes on
    while those of others are frozen; None where it does so to its end.
    """

    steps: Steps

    def __init__(self, experiment: Plan, key: blocks.Cell, order: blocks.Order) -> None:
        self.plan, self.key, self.order = experiment, key, order
        self.environment, self.workload, _ = key
        self.entry = experiment["environments"][self.environment]
        self.work = plan.of_environment(experiment, self.environment, self.workload)
        self.systems, self.laps = (
            plan.systems(self.work),
            plan.laps(experiment, self.environment, self.workload),
        )
        self.slice = plan.slice_seconds(experiment, self.environment, self.workload)
        self.watch = Watch()
        self.known: Fields = {}
        self.running: Future[None] | None = None
        self.slices: list[list[int]] = []

    @property
    def mask(self) -> str | None:
        """The processors to which all that is measured is held; None: all."""
        return self.plan["machine"]["mask"]

    @property
    def name(self) -> str:
        """Its name for a person."""
        return "{} · {} · repetition {}".format(*self.key)

    @property
    def draft(self) -> str:
        """Where its log grows."""
        return paths.cell_path("tmp", *self.key, "log")

    @property
    def layers(self) -> list[str]:
        """The names of the layers of its system."""
        return [name for layer in self.entry["layers"] for name in layer]

    @functools.cached_property
    def image(self) -> Image | None:
        """The image that its system is made of; None where that is of none."""
        return cache.require(self.plan["image"]["recipe"]) if registry.forms(self.layers) else None

    @property
    def is_interleaved(self) -> bool:
        """Whether it has laps or slices, and its system uses nothing of the host while no command runs in it."""
        interleaved = self.laps > 1 or self.slice is not None
        return interleaved and all(registry.kind(name).stands_idle for name in self.layers)

    @property
    def system(self) -> lifecycle.System:
        """Its system, which is up."""
        return self.steps.inputs.system

    def begin(self) -> None:
        """Begin its record, and to count its time."""
        self.watch = Watch()
        self.known = {
            "format": FORMAT,
            "environment": self.environment,
            "workload": self.workload,
            "repetition": self.key[2],
            "round": self.order.places[self.key][1],
            "fingerprint": plan.fingerprint(self.plan, self.environment, self.workload),
            "node": node.facts(),
            "started": self.watch.now(),
            "scale": plan.scale(self.plan, self.environment),
            **({"patience": timeouts.factor()} if timeouts.factor() > 1 else {}),
            "source": self.plan["source"],
        }

    def bring_up(self, link: lifecycle.Link | None, number: int) -> None:
        """Bring its system up, look at it, and put what it needs into it.

        number: of the systems that are up before it, whose servers have the ports below.
        """
        log = log_sections.Log(
            self.draft, self.systems, self.work["cell"].get("log_limit", log_sections.LIMIT)
        )
        data = datasets.ensure(
            self.workload, self.work, plan.cell_seed(self.plan, self.workload, 0), self.image
        )
        system = self._fresh(self.entry["layers"], link, number)
        native = lifecycle.native_state(self.mask)
        (inside, state), client = lifecycle.look(system.top), link.seen if link else None
        cpus = self._cpus(system, inside)
        values = self._values(cpus, inside, client)
        self.known |= {
            "seed": values["seed"],
            "parameters": {key: value for key, value in values.items() if key not in BUILT_IN},
            "image": {
                "recipe": self.plan["image"]["recipe"],
                "id": system.facts["image"],
                "manifest_sha256": self.image["manifest_sha256"] if self.image else None,
            },
            "system": {
                **{key: system.facts[key] for key in ("id", "layers", "up_started", "up_seconds")},
                "parts": self.systems,
                "cpus": cpus,
                "vm": None,
                **system.facts["facts"],
            },
            "starting_state": lifecycle.compare_state(system.top, state, native),
            "observed": {"inside": inside, "host": None, "client": client},
        }
        inputs = Inputs(
            self.workload, self.work["cell"], system, self._bring_files(system, values, data)
        )
        self.steps = Steps(inputs, log, self.watch, self._afresh, self.is_interleaved)
        self.known["commands"] = self.steps.commands
        if "servers" in self.work["cell"]:
            self.known["servers"] = [server.record for server in self.steps.servers]

    def _fresh(self, stack: Stack, link: lifecycle.Link | None, number: int) -> lifecycle.System:
        ports = sorted({port for _, port in plan.ports_of(self.work)})
        shift = number * plan.apart(ports)
        return lifecycle.System(
            self.environment, stack, self.image, link, ports, self.systems, shift, self.mask
        )

    def _afresh(self, way: str) -> lifecycle.System:
        """Its system, brought up again in a way."""
        lifecycle.take_down(self.environment)
        return self._fresh(registry.started(self.entry["layers"], way), self.system.link, 0)

    def prepare(self) -> None:
        """Take the steps before its run."""
        self.steps.prepare()

    def run(self, lap: int) -> None:
        """Take the steps of its run, in the lap with this number."""
        if self.system.frozen:
            self.system.freeze(False)
            time.sleep(THAWING if "ports" in self.work["cell"] else 0)
        self.steps.run(lap if self.laps > 1 else None)

    def begin_run(self, lap: int, threads: ThreadPoolExecutor) -> None:
        """Begin the run of a lap in a system that is frozen: it goes on when :meth:`go_on` says so."""
        assert self.steps.shell
        self.steps.shell.clock.stop()
        self.running = threads.submit(self.steps.run, lap if self.laps > 1 else None, self.slice)
        self.slices = []

    def go_on(self, seconds: float) -> None:
        """Let its run go on for so many seconds or to its end, after which the log says when it did.

        A slice counts until its freeze is asked for: to see the freeze takes ten times as long as what
        is worked meanwhile.
        """
        assert self.running
        assert self.steps.shell
        clock, begun = self.steps.shell.clock, time.time_ns()
        clock.go_on()
        self.system.freeze(False)
        with contextlib.suppress(TimeoutError):
            self.running.exception(seconds)
        asked = time.time_ns()
        clock.stop()
        self.system.freeze()
        self.slices.append([moment // 1000 for moment in (begun, asked, time.time_ns())])
        if self.running.done():
            clock.go_on()
            ended, self.running = self.running, None
            ended.result()
            self.steps.log.write(json.dumps({"slices": self.slices}))

    def finish(self) -> None:
        """End what waits and serves in its system."""
        self.system.freeze(False)
        self.steps.finish()

    def stand_aside(self) -> None:
        """Stand idle while others run: what it wrote is on the disk, and all of its system is frozen.

        A server would answer timers, and a sandbox's kernel does, though nobody asks it anything.
        """
        if self.work.get("storage"):
            os.sync()
        self.system.freeze()

    def check(self) -> None:
        """Have its log parsed, and complete its record.

        Raises CellFailed where the parser refuses the log, and UserError where it breaks a limit.
        """
        self._see_log()
        known: Any = self.known
        [found] = parsing.read([(self.draft, known, self.work)], os.getcwd(), named=False)
        if "broken" in found:
            raise CellFailed(f"its parser refuses the log: {found['broken']}")
        metrics = [(metric, value) for (metric, _, value, _), _ in found["values"]]
        self.known["sizes"] = sizes.of_cell(
            self.plan, self.workload, self.known["parameters"], metrics
        )
        self.known |= {"program": found["program"]} if "program" in found else {}
        parsed.keep(self.key, known, self.work, found)

    def _see_log(self) -> bytes:
        """What was printed, whose size and digest are now known."""
        content = self.steps.log.whole()
        self.known["log"] = {"bytes": len(content), "sha256": sha256(content).hexdigest()}
        return content

    def shows_inability(self, failure: Unable) -> bool:
        """Whether a failure shows what its environment cannot do, and not a chance or a fault of ours.

        It does not where another repetition of the same cell was measured, and what came to no end does only where
        another repetition said that it failed.
        """
        if not self.entry.get("doubtful"):
            return False
        cells = [key for key in self.order.places if key[:2] == self.key[:2]]
        found = [read_json(paths.cell_path("raw", *key, "json")) or {} for key in cells]
        others = [other for other in found if other.get("fingerprint") == self.known["fingerprint"]]
        return all("cannot" in other for other in others) and (
            bool(others) or not isinstance(failure, Endless)
        )

    def note_that_it_cannot(self, failure: CellFailed) -> None:
        """Make a result of a failure in a system that may be unable to do what was asked of it."""
        words = log_sections.last_words(self._see_log().decode(errors="replace"))
        # The message of a failed command holds them already.
        said = f"; it printed last: {words}" if words and words not in str(failure) else ""
        commands = self.known.get("commands", [])
        failed = [command for command in commands if command["exit"] != 0]
        self.known["cannot"] = {"reason": " ".join(f"{failure}{said}".split()), "commands": failed}
        self.known["commands"] = [command for command in commands if command["exit"] == 0]
        ended = [server for server in self.known.pop("servers", []) if server["exit"] is not None]
        self.known |= {"servers": ended} if ended else {}

    def _cpus(self, system: lifecycle.System, inside: Fields) -> int | None:
        """How many CPUs one system has for itself; None where it does not say how many it sees.

        Machines have their own.  Systems that all see the host's share them evenly, or those to which they are bound,
        each with one at the least; nothing but what they are asked to use keeps them to that.
        """
        seen = inside["cpus"]
        if not isinstance(seen, int):
            return None
        return seen if system.top.machine() else max(1, seen // self.systems)

    def _values(self, cpus: int | None, inside: Fields, client: Fields | None) -> Fields:
        """The parameters, with what only the system under test or the client can show, and the cell's seed."""
        values = dict(self.work["parameters"])
        for key, value in values.items():
            if isinstance(value, dict):
                of_client = value["rule"] == "client-last-cpu"
                text = (client or {} if of_client else inside).get("processors", NOT_AVAILABLE)
                usable = [] if text == NOT_AVAILABLE else numbers(text)
                if cpus is None or not usable:
                    where = "client" if of_client else "system under test"
                    raise CellFailed(f"the {where} does not show which CPUs it has; set {key}")
                values[key] = {"cpus": cpus, "first-cpu": usable[0], "client-last-cpu": usable[-1]}[
                    value["rule"]
                ]
        values["seed"] = plan.cell_seed(self.plan, self.workload, self.key[2])
        return values

    def _bring_files(self, system: lifecycle.System, values: Fields, data: str | None) -> Fields:
        """Copy what was prepared, and files named by parameters, into each of the systems.

        The values of those parameters become their places there.
        """
        given = {key: values[key] for key in self.work["cell"]["files"] if values[key] is not None}
        files = {f"/data/given-{key}": path for key, path in given.items()} | (
            {datasets.INSIDE: data} if data else {}
        )
        for top in system.tops:
            for target, source in files.items():
                top.put(source, target)
        return values | {key: f"/data/given-{key}" for key in given}
