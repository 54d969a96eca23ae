"""One cell on its way from the plan to its log and record."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256

from strata import layers
from strata.base import patience, places, progress, run, signals
from strata.base.clock import Watch
from strata.base.errors import CellFailed, Endless, Unable, UserError
from strata.base.files import move, read_json, write_json
from strata.base.placeholders import BUILT_IN
from strata.base.process import capture
from strata.base.signals import Interrupted
from strata.cell import logs, parsing, prepared, record, spool
from strata.cell.steps import Steps
from strata.cell.surroundings import Surroundings
from strata.experiment import plan, sets, sizes
from strata.host import node, observe
from strata.image import cache
from strata.system import testbed

# Lines of a log that tell why a system could not do what was asked of it.
LAST_WORDS = 3


def checks(declared: list[dict], log: str, systems: int = 1) -> list[dict]:
    """``[{name, passed}, …]``: whether a line of the log matches each declared pattern.

    Of several systems each must have such a line, unless it is among those that are of none of them; and so must each
    lap, unless it was printed before all of them.
    """

    def found(pattern: str, text: str) -> bool:
        return re.search(pattern, text, re.MULTILINE) is not None

    def passed(pattern: str) -> bool:
        for lap in logs.laps(log):
            parts = logs.split(lap, systems)
            shared = parts.pop(None)
            if not (found(pattern, shared) or all(found(pattern, text) for text in parts.values())):
                return False
        return True

    return [{"name": check["name"], "passed": passed(check["pattern"])} for check in declared]


def stands_idle(experiment: dict, environment: str) -> bool:
    """Whether systems of an environment use nothing of the host while no command runs in them."""
    stack = experiment["environments"][environment]["layers"]
    return all(layers.kind(name).stands_idle for entry in stack for name in entry)


class Cell:
    """One cell on its way from the plan to its log and record."""

    def __init__(
        self, experiment: dict, environment: str, workload: str, repetition: int, order: sets.Order | None = None
    ) -> None:
        self.plan, self.environment, self.workload, self.repetition = experiment, environment, workload, repetition
        self.name = f"{environment} · {workload} · repetition {repetition}"
        self.key = (environment, workload, repetition)
        self.order = order or sets.Order(experiment)
        self.block = self.order.block(*self.key)
        self.systems = plan.systems(plan.of_environment(experiment, environment, workload))
        self.laps = plan.laps(experiment, environment, workload)
        self.target = places.cell_path("raw", *self.key, "log")
        self.draft = places.cell_path("tmp", *self.key, "log")
        self.watch = Watch()
        # The parts of the record, each as soon as it is known.
        self.known: dict = {}
        self.inside: dict = {}
        self.client: dict | None = None
        self.steps: Steps

    def start(self) -> None:
        """Begin to count its time; the wait for another measurement is no part of it."""
        self.watch = Watch()

    def tell(self, left: Sequence[str] = ()) -> None:
        """Say that the cell is measured; `left`: command lines of what it left running."""
        beside = ", ".join(left)
        self.note(f"measured in {self.known['seconds']} s" + (f"; it left running: {beside}" if left else ""))
        if left:
            progress.say("cell", f"{self.name} left running: {beside}; the next cell gets a fresh system")
        progress.done(self.name, self.known["seconds"], not self.order.decided)

    def measure(self) -> testbed.System:
        """Measure it alone; the system that is up at the end."""
        around = Surroundings(self.plan)
        around.begin()
        self.begin(around)
        around.ready()
        try:
            with self.at_work():
                self.steps.run()
            self.check()
        except Unable as failure:
            if not self._shows_inability(failure):
                raise
            self._note_that_it_cannot(failure)
        self.observe(around.end([self.environment], [self.steps.commands]), around)
        return self.steps.system

    def begin(self, around: Surroundings, beside: bool = False) -> None:
        """Bring the system up (`beside` those that are), look at it, and put what it needs into it."""
        os.makedirs(os.path.dirname(self.draft), exist_ok=True)
        self.known = {
            "format": record.FORMAT,
            "environment": self.environment,
            "workload": self.workload,
            "repetition": self.repetition,
            "block": self.block,
            "fingerprint": plan.fingerprint(self.plan, self.environment, self.workload),
            "node": node.facts(),
            "started": self.watch.begun(),
            "scale": plan.scale(self.plan, self.environment),
            **({"patience": patience.factor()} if patience.factor() > 1 else {}),
            "source": self.plan["source"],
        }
        entry = self.plan["environments"][self.environment]
        image = self._image(entry["layers"])
        with progress.once():
            data = self._data(image)
        system = self._bring_up(entry["layers"], image, beside)
        self.inside = self._see_inside(system)
        self.client = self._see_client(system)
        values = self._values(self._cpus(system, self.inside), self.client)
        self.known |= {
            "seed": values["seed"],
            "parameters": {key: value for key, value in values.items() if key not in BUILT_IN},
            "image": {
                "recipe": self.plan["image"]["recipe"],
                "id": system.facts["image"],
                "manifest_sha256": image["manifest_sha256"] if image else None,
            },
            "system": {
                **{key: system.facts[key] for key in ("id", "layers", "up_started", "up_seconds", "cells_before")},
                "parts": self.systems,
                "cpus": self._cpus(system, self.inside),
                "vm": None,
                **system.facts["facts"],
            },
            "quiet": around.lookout.report,
        }
        values = self._bring_files(system, values, data)
        self._make_steps(system, values, image)

    def observe(self, host: dict, around: Surroundings) -> None:
        """Note what was seen of the host, of the inside of the system and of the client."""
        self.known["observed"] = {"inside": self.inside, "host": host, "client": self.client}
        self.known["quiet"] = around.lookout.report

    def _shows_inability(self, failure: Unable) -> bool:
        """Whether a failure shows what its environment cannot do, and not a chance or a fault of ours.

        It does not where another repetition of the same cell was measured, and what came to no end does only where
        another repetition said that it failed.
        """
        import glob

        if not self.plan["environments"][self.environment].get("doubtful"):
            return False
        paths = glob.glob(os.path.join(glob.escape(os.path.dirname(self.target)), "*.json"))
        mark = self.known["fingerprint"]
        others = [other for other in map(read_json, paths) if other is not None and other.get("fingerprint") == mark]
        return all("cannot" in other for other in others) and (bool(others) or not isinstance(failure, Endless))

    def _note_that_it_cannot(self, failure: CellFailed) -> None:
        """Make a result of a failure in a system that may be unable to do what was asked of it."""
        content = self._see_log()
        words = [line.strip() for line in content.decode(errors="replace").splitlines() if line.strip()][-LAST_WORDS:]
        said = "; it said last: " + " / ".join(word[:200] for word in words) if words else ""
        commands = self.known.get("commands", [])
        failed = [command for command in commands if command["exit"] != 0]
        self.known["cannot"] = {"reason": " ".join(f"{failure}{said}".split()), "commands": failed}
        self.known["commands"] = [command for command in commands if command["exit"] == 0]
        ended = [server for server in self.known.pop("servers", []) if server["exit"] is not None]
        self.known |= {"servers": ended} if ended else {}
        self.known["checks"] = []

    def tell_that_it_cannot(self) -> None:
        """Say what its system could not do."""
        told = f"cannot be done there: {self.known['cannot']['reason']}"
        self.note(told)
        progress.done(self.name, self.known["seconds"], not self.order.decided)
        progress.say("cell", f"{self.name} {told}")

    def _image(self, stack: list[dict]) -> dict | None:
        if not layers.forms(name for entry in stack for name in entry):
            return None
        return cache.require(self.plan["image"]["recipe"])

    def _bring_up(self, stack: list[dict], image: dict | None, beside: bool = False) -> testbed.System:
        """The system for this cell, with the cell noted."""
        system = testbed.bring_up(
            self.environment,
            stack,
            image,
            client=self._client(),
            ports=plan.ports(self.plan, self._sharing(), self.systems),
            parts=self.systems,
            beside=beside,
        )
        testbed.begin_cell(system)
        return system

    def _sharing(self) -> list[str]:
        """The workloads that may share the system: ports and client are those that one of them needs."""
        return self.order.sharing(self.environment, self.workload)

    def _client(self) -> dict | None:
        """The client beside the system."""
        cells = [plan.of_environment(self.plan, self.environment, name)["cell"] for name in self._sharing()]
        return self.plan["client"] if any(map(plan.uses_client, cells)) else None

    def _data(self, image: dict | None) -> str | None:
        """The file that the workload's data were made into, made now if this is the first cell that asks."""
        declared = self._spec().get("data")
        if declared is None:
            return None
        assert image
        values = {**self._parameters(), "seed": plan.cell_seed(self.plan, self.workload, 0)}
        return prepared.ensure(self.workload, declared, values, image)

    def _see_inside(self, system: testbed.System) -> dict:
        """What the first cell of the system observed inside; a look that showed no kernel is not kept for others."""
        known = system.facts.get("inside")
        if known is None:
            observed = capture(system.top.command_plain(observe.command()), check=False).stdout
            known = observe.understand(observe.split(observed))
            system.facts["inside"] = known if known["kernel"] != observe.NOT_AVAILABLE else None
        return known

    def _see_client(self, system: testbed.System) -> dict | None:
        """What was observed at the client, where this workload has a part there."""
        if system.client is None or system.link is None or not plan.uses_client(self._spec()):
            return None
        observed = capture(system.client.command_plain(observe.command()), check=False).stdout
        return {**observe.understand(observe.split(observed)), "link": system.link.facts()}

    def _parameters(self) -> dict:
        return plan.of_environment(self.plan, self.environment, self.workload)["parameters"]

    def _cpus(self, system: testbed.System, inside: dict) -> int | None:
        """How many CPUs one system has for itself; None where it does not say how many it sees.

        Machines have their own.  Systems that all see the host's share them evenly, or those to which they are bound,
        each with one at the least; nothing but what they are asked to use keeps them to that.
        """
        seen = system.top.cpus() or inside["cpus"]
        if not isinstance(seen, int):
            return None
        return seen if system.top.machine() else max(1, seen // self.systems)

    def _values(self, cpus: int | None, client: dict | None) -> dict:
        """The parameters, with what only the system under test or the client can say, and the cell's seed."""
        values = dict(self._parameters())
        for key, value in values.items():
            if isinstance(value, dict):
                of_client = value["rule"] == "client-last-cpu"
                found = (client or {}).get("cpus") if of_client else cpus
                if not isinstance(found, int):
                    where = "client" if of_client else "system under test"
                    raise CellFailed(f"the {where} does not say how many CPUs it has; set {key}")
                values[key] = found - of_client
        values["seed"] = plan.cell_seed(self.plan, self.workload, self.repetition)
        return values

    def _bring_files(self, system: testbed.System, values: dict, data: str | None) -> dict:
        """Copy what was prepared, and files named by parameters, into each of the systems.

        The values of those parameters become their places there.
        """
        inside = dict(values)
        files = {} if data is None else {prepared.INSIDE: data}
        for key in self._spec()["files"]:
            if values[key] is not None:
                inside[key] = f"/data/given-{key}"
                files[inside[key]] = values[key]
        for top in system.tops:
            for target, source in files.items():
                top.put(source, target)
        return inside

    def _spec(self) -> dict:
        return plan.of_environment(self.plan, self.environment, self.workload)["cell"]

    def _make_steps(self, system: testbed.System, values: dict, image: dict | None) -> None:
        """Make the steps, and an empty log for them."""

        def afresh(way: str) -> testbed.System:
            testbed.take_down()
            stack = self.plan["environments"][self.environment]["layers"]
            return self._bring_up(layers.started(stack, way), image)

        with open(self.draft, "wb"):
            pass
        waits = stands_idle(self.plan, self.environment)
        self.steps = Steps(self.workload, self._spec(), system, values, -1, self.watch, afresh, self.laps, waits)
        self.known["commands"] = self.steps.commands
        if "servers" in self._spec():
            self.known["servers"] = self.steps.servers

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """While it takes steps: what they print goes to the end of its log."""
        output = os.open(self.draft, os.O_WRONLY | os.O_APPEND)
        self.steps.output = output
        try:
            yield
        finally:
            os.close(output)

    def _see_log(self) -> bytes:
        """What was printed, whose size and digest are now known."""
        with open(self.draft, "rb") as file:
            os.fsync(file.fileno())
            content = file.read()
        self.known["log"] = {"bytes": len(content), "sha256": sha256(content).hexdigest()}
        return content

    def check(self) -> None:
        """Look at its log.  Raises Unable where a check fails, and CellFailed where its parser refuses the log."""
        content = self._see_log()
        self.known["checks"] = checks(self._spec()["checks"], content.decode(errors="replace"), self.systems)
        failed = [check["name"] for check in self.known["checks"] if not check["passed"]]
        if failed:
            raise Unable(f"its check failed: {', '.join(failed)}")
        try:
            parse = parsing.load_parser(self.workload, os.getcwd())
            found = parsing.of_log(content, self.known, self.plan["workloads"][self.workload]["metrics"], parse)
        except parsing.BrokenLogError as broken:
            raise CellFailed(f"its parser refuses the log: {broken}") from None
        metrics = [(one.metric, one.value) for one in found]
        self.known["sizes"] = sizes.of_cell(self.plan, self.workload, self.known["parameters"], metrics)
        self.known |= parsing.program(content)

    def end(self, seconds: float | None = None) -> None:
        """Note that it ended, and how long it took: all the time since its start, unless `seconds` were its own."""
        self.known |= {"ended": self.watch.now(), "seconds": round(seconds or self.watch.passed(), 3)}

    def take_number(self) -> None:
        """Take its place in the order of measurement, if it has none yet."""
        if "position" not in self.known:
            own = self.known["node"]["name"] if self.plan.get("spread") else None
            number = record.take_number(own)
            self.known["position"] = {"planned": self.order.position(*self.key), "actual": number}

    def put_in_place(self, kind: str = "raw") -> None:
        """The record first and the log last: where the log is, all is.  `kind`: raw, or spool until it is asked for."""
        self.take_number()
        if "ended" not in self.known:
            self.end()
        write_json(places.cell_path(kind, *self.key, "json"), record.complete(self.known))
        move(self.draft, places.cell_path(kind, *self.key, "log"))
        for suffix in ("log", "json"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(places.cell_path("failed", *self.key, suffix))

    def give_up(self, error: BaseException) -> CellFailed:
        """Take the system down, keep what was printed for the person who looks, and say what to do."""
        signals.ignore()
        try:
            testbed.take_down()
        except (UserError, OSError) as trouble:
            print(f"strata: {trouble}; `python3 -m strata clean` tries again", file=sys.stderr)
        if isinstance(error, Interrupted):
            return CellFailed(f"{self.name} was ended by {error}; nothing of it is kept")
        reason = str(error) if isinstance(error, (UserError, OSError)) else f"{type(error).__name__}: {error}"
        log = places.cell_path("failed", *self.key, "log")
        try:
            self._keep_traces(log, reason)
        except (OSError, UserError) as trouble:
            log = f"could not be kept: {trouble}"
        return CellFailed(f"cell failed: {self.name}: {reason}\n  log:   {log}\n  rerun: {run.again(self.target)}")

    def note(self, text: str, error: BaseException | None = None) -> None:
        """Write down how the cell went; an error that nobody foresaw with its traceback."""
        path = places.cell_path("logs/cells", *self.key, "log")
        if error is not None and not isinstance(error, (UserError, OSError, Interrupted)):
            import traceback

            text += "\n" + "".join(traceback.format_exception(error))
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"{self.watch.now()} {self.name}: {text}\n")
            spool.keep_note(self.key)

    def _keep_traces(self, log: str, reason: str) -> None:
        os.makedirs(os.path.dirname(log), exist_ok=True)
        if os.path.exists(self.draft):
            move(self.draft, log)
        else:
            open(log, "w", encoding="utf-8").close()
        self.end()
        write_json(places.cell_path("failed", *self.key, "json"), record.of_failed(self.known, reason))
