"""The system under test: at most one on this machine, gone when the process that brought it up is over.

Beside it those may stand idle whose cells are measured in turns with its own (:mod:`strata.cell.together`).

It may have several equal parts, for workloads that ask for as many systems at the same time: each is a stack of
its own, and they come and go together.

What is up is written down (:mod:`strata.system.state`) before it is brought up, with how each thing is removed
(:mod:`strata.system.traces`), so that whoever comes next (another cell, of whichever checkout, the end of the run,
``strata clean``) can remove it, also after a kill.  All of it is done under the machine's lock.
"""

import os
import time
from collections.abc import Callable

from strata import client as client_of
from strata import layers
from strata.base import places
from strata.base.errors import UserError
from strata.base.locks import held
from strata.base.placeholders import several
from strata.base.process import alive, identity
from strata.base.progress import say, seconds_once
from strata.experiment import plan
from strata.image import intact
from strata.system import state, traces, turn
from strata.system.turn import exclusive as exclusive


def ids(system: dict) -> list[str]:
    """The ids of the equal systems that a system is made of; its own where there is but one."""
    number = system.get("parts", 1)
    return [system["id"]] if number == 1 else [f"{system['id']}-{part}" for part in range(number)]


def _stacks(system: dict, image: dict | None) -> list[list[layers.Layer]]:
    """The stack of each part of a system, up or not; what a layer makes is noted in `system`."""
    address = system.get("address") or "127.0.0.1"
    named = ids(system)
    stacks = []
    for part, id in enumerate(named):
        ports = several(plan.shifted(system["ports"], part))
        folder, first = (os.path.join(places.systems(), name) for name in (id, named[0]))
        context = layers.Context(id, folder, image, address, ports, part, len(named), first, _noting(system))
        stacks.append(layers.build(system["layers"], context))
    return stacks


def _client(system: dict, image: dict | None) -> list[layers.Layer]:
    """The stack of a system's client, up or not: the host, the link, what is on it; none where no workload has one."""
    if system["client"] is None:
        return []
    id = f"{system['id']}-client"
    folder = os.path.join(places.systems(), id)
    return client_of.make(system["client"], layers.Context(id, folder, image, note=_noting(system)))


def _noting(system: dict) -> Callable[[dict], None]:
    """What notes the trace of a thing that a system is about to make."""

    def note(trace: dict) -> None:
        system["traces"].append(trace)
        _write(system, True)

    return note


def _write(system: dict, busy: bool) -> None:
    """Write down the system that was brought up last, and whether a cell of this process is at work in it."""
    beside = [other for other in state.all_up() if other["id"] != system["id"]]
    state.write({"system": system, "beside": beside, "cell": identity(os.getpid()) if busy else None})


def take_down(environment: str | None = None) -> list[str]:
    """Remove the systems that are up with their clients, if they have any, by their traces; what they were, in words.

    environment: whose system goes alone.

    What nobody knows how to remove, since it was written down by another version or is damaged, is looked for by our
    marks, and then put aside.  Raises UserError where something could not be removed: all else is, and it stays written
    down, so that whoever comes next tries again.
    """
    if complaint := state.complaint():
        removed = sweep()
        state.put_aside(complaint)
        return removed
    there = state.all_up()
    going = [system for system in there if environment in (None, system["environment"])]
    if not going:
        return []
    removed = [f"system {system['id']} ({system['environment']})" for system in going]
    unknown, failed = [], []
    for trace in (trace for system in reversed(going) for trace in reversed(system["traces"])):
        try:
            traces.remove(trace)
        except traces.UnknownKind as trouble:
            unknown.append(str(trouble))
        except (UserError, OSError) as trouble:
            failed.append(trouble)
    if failed:
        raise failed[0]
    if unknown:
        removed += sweep()
        state.put_aside("; ".join(unknown))
    staying = [system for system in there if system not in going]
    rest = {"system": staying[-1], "beside": staying[:-1], "cell": state.read()["cell"]} if staying else state.NOTHING
    state.write(rest)
    return removed


class System:
    """A system under test that is up: the top of its stack, its client, and what is written down about it.

    `tops` are those of all equal systems that it is made of, `top` that of the first.  `client` is the top of the
    client's stack, and `link` the layer by which that is joined to the system; None without a client.
    """

    def __init__(self, facts: dict, image: dict | None) -> None:
        self.facts = facts
        self.tops = [stack[-1] for stack in _stacks(facts, image)]
        self.top = self.tops[0]
        load = _client(facts, image)
        self.client = load[-1] if load else None
        self.link = client_of.link_of(load) if load else None

    def listen(self, part: int) -> str:
        """The address at which servers in the system with this number listen: where its client's words arrive."""
        return self.facts["listens"][part] if self.client else self.tops[part].address()

    def reached(self, part: int) -> str:
        """The address at which the other systems reach servers in the one with this number."""
        top = self.tops[part]
        return top.address() if top.machine() else self.listen(part)

    def left(self, patience: float = 1.0) -> list[str]:
        """Command lines of what a cell's commands left running in it, once that had so many seconds to end."""
        deadline = time.monotonic() + patience
        while found := [line for top in self.tops for line in top.left()]:
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        return found


def runs_tree(stack: list[dict], client: dict | None) -> bool:
    """Whether the image's own files are run, in a system of this stack or at its client."""
    return client is not None or "tree" in layers.forms(name for entry in stack for name in entry)


def bring_up(
    environment: str,
    stack: list[dict],
    image: dict | None,
    client: dict | None = None,
    ports: list[int] | None = None,
    parts: int = 1,
    beside: bool = False,
) -> System:
    """The system for an environment: the one that this process has up if it is exactly that, else a fresh one.

    What else is up is taken down before, or stands idle `beside` the fresh one from now on.

    `client` (as from :func:`strata.client.settle`) is brought up beside it and reaches the `ports` of its servers.
    It is made of so many equal `parts`, all of which are up when this returns.
    A system is used again only after a cell that ended well.  Raises UserError if it cannot be brought up; what is
    there of it is written down.
    """
    wanted = {
        "environment": environment,
        "layers": stack,
        "image": image["id"] if image else None,
        "client": client,
        "ports": ports or [],
        "parts": parts,
        "owner": identity(os.getpid()),
    }
    there = state.read()
    system = there["system"]
    fits = system is not None and all(system.get(key) == value for key, value in wanted.items())
    if fits and there["cell"] is None and not beside:
        return System(system, image)
    if turn.OWN and layers.forms(name for entry in stack for name in entry):
        raise UserError("STRATA_TEST_LOCK is set, which is only for tests on the bare host: unset it to measure")
    if not beside:
        take_down()
    if image and runs_tree(stack, client):
        intact.verify(image)
    system = {
        **wanted,
        "id": f"strata-{os.urandom(5).hex()}",
        "cells_before": 0,
        "up_started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "up_seconds": None,
        "traces": [],
    }
    _write(system, True)
    if load := _client(system, image):
        for layer in load:
            layer.up()
        system["address"] = client_of.link_of(load).address()
    begun, before = time.monotonic(), seconds_once()
    built = _stacks(system, image)
    facts = [_up(stack) for stack in built]
    # An image that was brought into a store of containers does not recur.
    system["up_seconds"] = round(time.monotonic() - begun - (seconds_once() - before), 3)
    each = [{"id": id, **own} for id, own in zip(ids(system), facts, strict=True)]
    system["facts"] = {**facts[0], **({"each": each} if parts > 1 else {})}
    if load:
        client_of.link_of(load).join([stack[-1] for stack in built])
        system["listens"] = [stack[-1].listen() for stack in built]
    _write(system, False)
    return System(system, image)


def _up(stack: list[layers.Layer]) -> dict:
    """Bring a stack up; returns what its layers know of themselves then."""
    facts: dict = {}
    for layer in stack:
        layer.up()
        facts |= layer.facts()
    return facts


def begin_cell(system: System) -> None:
    """Note that a cell runs in the system; if its process dies, the system is not used again."""
    _write(system.facts, True)


def end_cell(system: System, last: bool) -> list[str]:
    """Note that the cell ended well; returns the command lines of what it left running.

    A system is taken down after the `last` cell that uses it, and where something was left in it, so that nothing of
    a cell lasts into the next one.
    """
    try:
        left = system.left()
    except (UserError, OSError) as trouble:
        # The cell itself is complete: what cannot be asked is not used again.
        left = [f"unknown, since it cannot be asked ({trouble})"]
    if left or last:
        try:
            take_down()
        except (UserError, OSError) as trouble:
            say("testbed", f"{trouble}; whoever measures next tries again")
    else:
        system.facts["cells_before"] += 1
        _write(system.facts, False)
    return left


def end_run(owner: dict) -> None:
    """At the end of a run: remove what its cells left up that were killed, and the snapshots that it kept.

    It waits for no measurement of another run: whoever measures removes what is left first.
    """
    from strata.vm import snapshot

    if any(not alive(system["owner"]) for system in state.all_up()):
        try:
            with exclusive(wait=False):
                take_down()
        except turn.Taken:
            pass
    snapshot.remove(owner)


def sweep() -> list[str]:
    """Remove whatever of ours was left on this machine, told by our marks alone; returns what it was, in words."""
    from strata.client import namespace
    from strata.image import build

    # The folders, by which some find what is theirs, are the host's, and go last.
    order = sorted(layers.names(), key=lambda name: name == "host")
    removed = [*build.sweep(), *(words for name in order for words in layers.kind(name).sweep())]
    if namespace.remove():
        removed.append(f"network namespace {namespace.name()}")
    return removed


def tidy() -> None:
    """Remove images that nobody needs, with what is theirs, and say so; not while somebody may be using one."""
    from strata.image import prune
    from strata.vm import snapshot

    try:
        with exclusive(wait=False):
            busy = state.read()["system"] is not None or snapshot.of()
            removed = [] if busy else prune.prune()
    except (UserError, OSError) as trouble:
        # It was not asked for, and breaks nothing.
        say("image", f"nothing is removed from the cache: {trouble}")
        return
    for words in removed:
        say("image", f"removed {words}: the last images that were used are kept")


def clean(images: bool = False) -> list[str]:
    """Remove whatever of ours was left on this machine and in this folder; returns what it was, in words.

    images: whether also all images go.  Raises UserError while a run is at work.
    """
    from strata.base.files import remove_tree
    from strata.image import prune

    system = state.read()["system"]
    if system and alive(system["owner"]) and system["owner"]["pid"] != os.getpid():
        raise UserError(f"a run is active (process {system['owner']['pid']}); end it first")
    if held("results/tmp/run.lock"):
        raise UserError("a run is active in this folder; wait for its end, or end it")
    removed = [*take_down(), *sweep()]
    remove_tree("results/tmp")
    return removed + prune.prune(0 if images else prune.KEPT)
