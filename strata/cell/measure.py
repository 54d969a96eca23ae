"""Measure one cell: bring its system up, warm up, run, check, and only then put log and record in place."""

import contextlib
import os
import re
import signal
import sys

from strata import layers
from strata.base import patience, places, progress, run, signals
from strata.base.clock import Watch
from strata.base.digest import sha256
from strata.base.errors import CellFailed, Unable, UserError
from strata.base.files import move, read_json, write_json
from strata.base.placeholders import BUILT_IN
from strata.base.process import capture
from strata.base.signals import Interrupted
from strata.cell import logs, prepared, quiet, record
from strata.cell.steps import Steps
from strata.experiment import plan, sets
from strata.host import node, observe
from strata.image import cache, intact
from strata.system import keeper, testbed

# Lines of a log that tell why a system could not do what was asked of it.
LAST_WORDS = 3


def checks(declared: list[dict], log: str, systems: int = 1) -> list[dict]:
    """``[{name, passed}, …]``: whether a line of the log matches each declared pattern.

    Of several systems each must have such a line, unless it is among those that are of none of them.
    """
    parts = logs.split(log, systems)
    shared = parts.pop(None)

    def passed(pattern: str) -> bool:
        def found(text: str) -> bool:
            return re.search(pattern, text, re.MULTILINE) is not None

        return found(shared) or all(found(text) for text in parts.values())

    return [{"name": check["name"], "passed": passed(check["pattern"])} for check in declared]


def measure(environment: str, workload: str, repetition: int) -> None:
    """Measure a cell and put its log and record into results/raw.

    Raises CellFailed, with the log, the reason and the command that reruns it; the output so far is
    then in results/failed and nothing in results/raw.
    """
    signals.heed()
    run.end_with_it()
    experiment = plan.read()
    _check_name(experiment, environment, workload)
    cell = Cell(experiment, environment, workload, repetition)
    if cell.block is None:
        so_far = len(cell.order.repetitions(environment, workload))
        raise UserError(
            f"{places.PLAN}: there is no repetition {repetition} of {environment} · {workload}: {so_far} are planned"
            + ("" if cell.order.decided else " so far, and what follows is decided when those were measured")
        )
    try:
        with testbed.exclusive():
            if progress.interrupted():
                raise Interrupted(signal.SIGINT.name)
            cell.run()
    except Interrupted as asked:
        cell.note_interrupt(asked)
        raise CellFailed(f"{cell.name} was ended by {asked} before it began") from None


def _check_name(experiment: dict, environment: str, workload: str) -> None:
    known = experiment["environments"]
    if environment not in known:
        raise UserError(f"{places.PLAN}: there is no environment '{environment}'; there are {', '.join(known)}")
    if not known[environment]["available"]:
        raise UserError(f"environment '{environment}' is not available here: {known[environment]['reason']}")
    if workload not in experiment["workloads"]:
        names = ", ".join(experiment["workloads"])
        raise UserError(f"{places.PLAN}: there is no workload '{workload}'; there are {names}")


class Cell:
    """One cell on its way from the plan to its log and record."""

    def __init__(self, experiment: dict, environment: str, workload: str, repetition: int) -> None:
        self.plan, self.environment, self.workload, self.repetition = experiment, environment, workload, repetition
        self.name = f"{environment} · {workload} · repetition {repetition}"
        self.key = (environment, workload, repetition)
        self.order = sets.Order(experiment)
        self.block = self.order.block(*self.key)
        self.systems = plan.systems(experiment["workloads"][workload])
        self.target = places.cell_path("raw", *self.key, "log")
        self.draft = places.cell_path("tmp", *self.key, "log")
        self.watch = Watch()
        # The parts of the record, each as soon as it is known.
        self.known: dict = {}
        # What bringing its system up took that every such system takes; None where it stood already.
        self.up_seconds: float | None = None

    def run(self) -> None:
        """Measure; whatever goes wrong, the system is taken down and nothing looks complete."""
        # The wait for another measurement is no part of the cell.
        self.watch = Watch()
        progress.announce(self.name)
        try:
            os.makedirs(os.path.dirname(self.draft), exist_ok=True)
            # Before anything is brought up that it would have to remove.
            keeper.see(run.owner())
            system = self._measure()
            self._put_in_place()
            if "cannot" in self.known:
                self._tell_that_it_cannot()
                return
            left = ", ".join(sorted(set(testbed.end_cell(system, progress.last()))))
        except BaseException as error:
            failure = self._give_up(error)
            self._note(str(failure), error)
            raise failure from error
        self._note(f"measured in {self.known['seconds']} s" + (f"; it left running: {left}" if left else ""))
        if left:
            progress.say("cell", f"{self.name} left running: {left}; the next cell gets a fresh system")
        progress.done(self.name, self.environment, self.workload, self.known["seconds"], self.up_seconds)

    def _measure(self) -> testbed.System:
        self.known = {
            "format": 1,
            "environment": self.environment,
            "workload": self.workload,
            "repetition": self.repetition,
            "block": self.block,
            "fingerprint": plan.fingerprint(self.plan, self.environment, self.workload),
            "node": node.facts(),
            "started": self.watch.begun(),
            "scale": self.plan["scale"],
            **({"patience": patience.factor()} if patience.factor() > 1 else {}),
            "source": self.plan["source"],
        }
        lookout = quiet.Lookout(self.plan.get("quiet"), plan.daemons(self.plan))
        lookout.begin()
        ticks = [observe.cpu_times()]
        before = observe.moment()
        entry = self.plan["environments"][self.environment]
        image = self._image(entry["layers"])
        client = self._client()
        with progress.once():
            if image and testbed.runs_tree(entry["layers"], client):
                intact.verify_programs(image, self.workload)
            data = self._data(image)
        watch, once = Watch(), progress.seconds_once()
        system = self._bring_up(entry["layers"], image)
        if system.facts["cells_before"] == 0:
            self.up_seconds = watch.passed() - (progress.seconds_once() - once)
        inside = self._see_inside(system)
        client = self._see_client(system)
        values = self._values(self._cpus(system, inside), client)
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
                "cpus": self._cpus(system, inside),
                "vm": None,
                **system.facts["facts"],
            },
            "quiet": lookout.report,
        }
        values = self._bring_files(system, values, data)
        ticks.append(observe.cpu_times())
        before |= observe.shares(ticks[0], ticks[1]) | lookout.before(before)
        try:
            system = self._run_steps(system, values, image)
            self._check()
        except Unable as failure:
            if not entry.get("doubtful") or self._was_done():
                raise
            self._note_that_it_cannot(failure)
        after = observe.moment()
        during = observe.shares(ticks[1], observe.cpu_times())
        during |= lookout.during(after, entry["daemons"])
        host = {"static": observe.host(), "before": before, "after": after, "during": during}
        self.known["observed"] = {"inside": inside, "host": host, "client": client}
        return system

    def _was_done(self) -> bool:
        """Whether another repetition of the same cell was measured: then this one failed by chance or by our fault."""
        import glob

        paths = glob.glob(os.path.join(glob.escape(os.path.dirname(self.target)), "*.json"))
        others = [other for other in map(read_json, paths) if other is not None]
        mark = self.known["fingerprint"]
        return any(other.get("fingerprint") == mark and "cannot" not in other for other in others)

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

    def _tell_that_it_cannot(self) -> None:
        """Take the system down, in which anything may be left, and say what it could not do."""
        testbed.take_down()
        if progress.last():
            testbed.release(run.owner())
        told = f"cannot be done there: {self.known['cannot']['reason']}"
        self._note(told)
        progress.done(self.name, self.environment, self.workload, self.known["seconds"], self.up_seconds)
        progress.say("cell", f"{self.name} {told}")

    def _image(self, stack: list[dict]) -> dict | None:
        if not layers.forms(name for entry in stack for name in entry):
            return None
        return cache.require(self.plan["image"]["recipe"])

    def _bring_up(self, stack: list[dict], image: dict | None) -> testbed.System:
        """The system for this cell, with the cell noted."""
        system = testbed.bring_up(
            self.environment,
            stack,
            self.order.turn(*self.key),
            image,
            client=self._client(),
            ports=plan.ports(self.plan, self._sharing(), self.systems),
            parts=self.systems,
        )
        testbed.begin_cell(system)
        return system

    def _sharing(self) -> list[str]:
        """The workloads that may share the system: ports and client are those that one of them needs."""
        return self.order.sharing(self.environment, self.workload)

    def _client(self) -> dict | None:
        """The client beside the system."""
        cells = [self.plan["workloads"][name]["cell"] for name in self._sharing()]
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
        if system.client is None or not plan.uses_client(self._spec()):
            return None
        observed = capture(system.client.command_plain(observe.command()), check=False).stdout
        return {**observe.understand(observe.split(observed)), "link": system.client.link()}

    def _parameters(self) -> dict:
        return self.plan["workloads"][self.workload]["parameters"]

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
        return self.plan["workloads"][self.workload]["cell"]

    def _run_steps(self, system: testbed.System, values: dict, image: dict | None) -> testbed.System:
        """Take the steps; returns the system that is up at the end."""

        def afresh(way: str) -> testbed.System:
            testbed.take_down()
            stack = self.plan["environments"][self.environment]["layers"]
            return self._bring_up(layers.started(stack, way), image)

        output = os.open(self.draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        try:
            steps = Steps(self.workload, self._spec(), system, values, output, self.watch, afresh)
            self.known["commands"] = steps.commands
            if "servers" in self._spec():
                self.known["servers"] = steps.servers
            steps.run()
            os.fsync(output)
        finally:
            os.close(output)
        return steps.system

    def _see_log(self) -> bytes:
        """What was printed, whose size and digest are now known."""
        with open(self.draft, "rb") as file:
            content = file.read()
        self.known["log"] = {"bytes": len(content), "sha256": sha256(content).hexdigest()}
        return content

    def _check(self) -> None:
        content = self._see_log()
        self.known["checks"] = checks(self._spec()["checks"], content.decode(errors="replace"), self.systems)
        failed = [check["name"] for check in self.known["checks"] if not check["passed"]]
        if failed:
            raise Unable(f"its check failed: {', '.join(failed)}")

    def _end(self) -> None:
        self.known |= {"ended": self.watch.now(), "seconds": round(self.watch.passed(), 3)}

    def _put_in_place(self) -> None:
        """The record first and the log last: where the log is, all is."""
        own = self.known["node"]["name"] if self.plan.get("spread") else None
        number = record.next_number(own)
        self.known["position"] = {"planned": self.order.position(*self.key), "actual": number}
        self._end()
        record.note_number(number, own)
        write_json(places.cell_path("raw", *self.key, "json"), record.complete(self.known))
        move(self.draft, self.target)
        for suffix in ("log", "json"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(places.cell_path("failed", *self.key, suffix))

    def _give_up(self, error: BaseException) -> CellFailed:
        """Take the system down, keep what was printed for the person who looks, and say what to do."""
        signals.ignore()
        try:
            testbed.take_down()
            if progress.last():
                testbed.release(run.owner())
        except (UserError, OSError) as trouble:
            print(f"strata: {trouble}; `python -m strata clean` tries again", file=sys.stderr)
        if isinstance(error, Interrupted):
            self.note_interrupt(error)
            return CellFailed(f"{self.name} was ended by {error}; nothing of it is kept")
        if not os.path.exists(self.target):
            with contextlib.suppress(OSError):
                os.unlink(places.cell_path("raw", *self.key, "json"))
        reason = str(error) if isinstance(error, (UserError, OSError)) else f"{type(error).__name__}: {error}"
        log = places.cell_path("failed", *self.key, "log")
        try:
            progress.failed(self.environment, self.workload)
            self._keep_traces(log, reason)
        except (OSError, UserError) as trouble:
            log = f"could not be kept: {trouble}"
        return CellFailed(
            f"cell failed: {self.name}: {reason}\n  log:   {log}\n  rerun: {run.snakemake()} --cores 1 {self.target}"
        )

    def note_interrupt(self, asked: Interrupted) -> None:
        """Where a person ended the cell, the run ends with it."""
        if str(asked) == signal.SIGINT.name:
            progress.interrupt()

    def _note(self, text: str, error: BaseException | None = None) -> None:
        """Write down how the cell went; an error that nobody foresaw with its traceback."""
        path = places.cell_path("logs/cells", *self.key, "log")
        if error is not None and not isinstance(error, (UserError, OSError, Interrupted)):
            import traceback

            text += "\n" + "".join(traceback.format_exception(error))
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(f"{self.watch.now()} {self.name}: {text}\n")

    def _keep_traces(self, log: str, reason: str) -> None:
        os.makedirs(os.path.dirname(log), exist_ok=True)
        if os.path.exists(self.draft):
            move(self.draft, log)
        else:
            open(log, "w").close()
        self._end()
        write_json(places.cell_path("failed", *self.key, "json"), record.of_failed(self.known, reason))
