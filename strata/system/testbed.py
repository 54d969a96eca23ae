"""Systems under test: what is brought up for a cell, or for those that take turns, and taken down.

A system may have several equal parts, for workloads that ask for as many at the same time: each is a stack of its own,
and they come and go together.  The client that reaches them is brought up before and taken down after them.

What is up is written down (:mod:`strata.system.state`) before it is made, with how each thing is removed
(:mod:`strata.system.traces`), so that whoever comes next (another cell, of whichever checkout, the end of the run,
``strata clean``) can remove it, also after a kill.  All of it is done under the machine's lock.
"""

import os
import time

from strata import client as client_of
from strata import layers
from strata.base import places
from strata.base.errors import UserError
from strata.base.locks import held
from strata.base.placeholders import several
from strata.base.process import alive, identity
from strata.base.progress import say, seconds_once
from strata.base.shapes import Fields, Image, Stack
from strata.experiment import plan
from strata.host import cgroups
from strata.host.context import Context
from strata.image import intact
from strata.layers import Layer
from strata.system import state, traces, turn
from strata.system.turn import exclusive as exclusive

# For whom the client is up.
CLIENT = "(client)"


def _begin(environment: str, stack: Stack, image: Image | None, tree: bool) -> str:
    """Write down that something of ours is about to be made; its id.

    tree: whether it runs the image's own files, which are looked at then.
    """
    if turn.OWN and image is not None:
        raise UserError("STRATA_TEST_LOCK is set, which is only for tests on the bare host: unset it to measure")
    if image is not None and tree:
        intact.verify(image)
    id = f"strata-{os.urandom(5).hex()}"
    state.begin(id, environment, stack, identity(os.getpid()))
    return id


class Link:
    """A client (as of :func:`strata.client.settle`) that is brought up now.

    `client` is the top of its stack, `layer` that by which it is joined to systems, `address` the host's on the link.
    """

    def __init__(self, settled: Fields, image: Image | None) -> None:
        id = _begin(CLIENT, [], image, tree=True)
        folder = os.path.join(places.systems(), id)
        context = Context(id, folder, image, note=lambda trace: state.note(id, trace))
        stack = client_of.make(settled, context)
        for layer in stack:
            layer.up()
        self.client, self.layer = stack[-1], client_of.link_of(stack)
        self.address = self.layer.address()
        # Of the servers that it reaches.
        self.password = os.urandom(16).hex()


def names(id: str, parts: int) -> list[str]:
    """The names of the equal systems that a system is made of; its own where there is but one."""
    return [id] if parts == 1 else [f"{id}-{part}" for part in range(parts)]


class System:
    """A system under test, of so many equal parts.

    stack: layers with their settled options.  link: the client that is up and reaches the `ports` of its servers, all
    of which are higher by `shift`: others at the same address have those below.

    `tops` are the tops of the stacks of all parts, `top` that of the first.  `facts` is what is known of it for the
    records: its id, its layers, when and how quickly it came up, what its layers say of themselves; `inside`
    what was observed in it; `cells` the number of cells that ended well in it.
    """

    def __init__(
        self,
        environment: str,
        stack: Stack,
        image: Image | None,
        link: Link | None,
        ports: list[int],
        parts: int,
        shift: int,
    ) -> None:
        id = _begin(environment, stack, image, "tree" in layers.forms(name for entry in stack for name in entry))
        self.id, self.environment, self.link, self.shift, self.cells = id, environment, link, shift, 0
        self.stacks = stacks(id, stack, image, link.address if link else "127.0.0.1", ports, parts, shift)
        self.tops = [built[-1] for built in self.stacks]
        self.listens: list[str] = []
        self.inside: Fields | None = None
        self.frozen = False
        self._groups: list[str] | None = None
        self.facts: Fields = {
            "id": id,
            "image": image["id"] if image else None,
            "layers": stack,
            "up_started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "up_seconds": None,
        }

    @property
    def top(self) -> Layer:
        """The top of the first stack."""
        return self.tops[0]

    @property
    def client(self) -> Layer | None:
        """The client that reaches it; None where no workload has a part there."""
        return self.link.client if self.link else None

    def up(self) -> "System":
        """Bring all parts up.  Raises UserError; what is there of it is written down."""
        begun, before = time.monotonic(), seconds_once()
        facts = [_up(stack) for stack in self.stacks]
        # An image that was brought into a store of containers does not recur.
        self.facts["up_seconds"] = round(time.monotonic() - begun - (seconds_once() - before), 3)
        each = [{"id": top.context.id, **own} for top, own in zip(self.tops, facts, strict=True)]
        self.facts["facts"] = {**facts[0], **({"each": each} if len(each) > 1 else {})}
        if self.link is not None:
            self.link.layer.join(self.tops)
            self.listens = [top.listen() for top in self.tops]
        return self

    def listen(self, part: int) -> str:
        """The address at which servers in the system with this number listen: where its client's words arrive."""
        return self.listens[part] if self.client else self.tops[part].address()

    def reached(self, part: int) -> str:
        """The address at which the other systems reach servers in the one with this number."""
        top = self.tops[part]
        return top.address() if top.machine() else self.listen(part)

    def freeze(self, frozen: bool = True) -> None:
        """Freeze all that runs in it, or thaw that.  What was frozen once is thawed before it is taken down."""
        if frozen == self.frozen:
            return
        if self._groups is None:
            named = [group for top in self.tops if (group := top.group())]
            for group in named:
                state.note(self.id, {"kind": "frozen", "id": group})
            self._groups = [folder for group in named for folder in cgroups.freezers(group)]
        cgroups.freeze(self._groups, frozen)
        self.frozen = frozen

    def left(self, patience: float = 1.0) -> list[str]:
        """Command lines of what a cell's commands left running in it, once that had so many seconds to end."""
        deadline = time.monotonic() + patience
        try:
            while found := sorted({line for top in self.tops for line in top.left()}):
                if time.monotonic() > deadline:
                    break
                time.sleep(0.1)
        except (UserError, OSError) as trouble:
            # The cell itself is complete: what cannot be asked is not used again.
            return [f"unknown, since it cannot be asked ({trouble})"]
        return found


def stacks(
    id: str, stack: Stack, image: Image | None, address: str, ports: list[int], parts: int, shift: int = 0
) -> list[list[Layer]]:
    """The stack of each part of a system, which is not up; what a layer makes is noted as the system's."""
    named = names(id, parts)
    found = []
    for part, name in enumerate(named):
        own = several(plan.shifted(ports, shift + part))
        folder, first = (os.path.join(places.systems(), one) for one in (name, named[0]))
        context = Context(name, folder, image, address, own, part, parts, first, lambda trace: state.note(id, trace))
        found.append(layers.build(stack, context))
    return found


def bring_up(
    environment: str,
    stack: Stack,
    image: Image | None,
    link: Link | None = None,
    ports: list[int] | None = None,
    parts: int = 1,
    shift: int = 0,
) -> System:
    """A fresh system for an environment, up, beside what is up already.

    Raises UserError if it cannot be brought up; what is there of it is written down.
    """
    return System(environment, stack, image, link, ports or [], parts, shift).up()


def _up(stack: list[Layer]) -> Fields:
    """Bring a stack up; returns what its layers know of themselves then."""
    facts: Fields = {}
    for layer in stack:
        layer.up()
        facts |= layer.facts()
    return facts


def take_down(environment: str | None = None) -> list[str]:
    """Remove what is up, the last first, by its traces; what it was, in words.

    environment: whose system goes alone.

    What nobody knows how to remove, since it was written down by another version or is damaged, is looked for by our
    marks, and then put aside.  Raises UserError where something could not be removed: all else is, and it stays written
    down, so that whoever comes next tries again.
    """
    removed: list[str] = []
    failed: list[Exception] = []
    for thing in reversed(state.all_up()):
        if environment not in (None, thing["environment"]):
            continue
        unknown = [thing["complaint"]] if "complaint" in thing else []
        troubles: list[Exception] = []
        for trace in reversed(thing["traces"]):
            try:
                traces.remove(trace)
            except traces.UnknownKind as trouble:
                unknown.append(str(trouble))
            except (UserError, OSError) as trouble:
                troubles.append(trouble)
        failed += troubles
        if troubles:
            continue
        removed.append(f"system {thing['id']} ({thing['environment']})")
        if unknown:
            removed += sweep()
            state.put_aside(thing["id"], "; ".join(unknown))
        state.forget(thing["id"])
    if failed:
        raise failed[0]
    return removed


def end_run(owner: Fields) -> None:
    """At the end of a run: remove what its cells left up that were killed, and the snapshots that it kept.

    It waits for no measurement of another run: whoever measures removes what is left first.
    """
    from strata.vm import snapshot

    if any(not alive(thing["owner"]) for thing in state.all_up()):
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
            busy = state.all_up() or snapshot.of()
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

    working = [owner["pid"] for thing in state.all_up() if alive(owner := thing["owner"])]
    if working and working[0] != os.getpid():
        raise UserError(f"a run is active (process {working[0]}); end it first")
    if held("results/tmp/run.lock"):
        raise UserError("a run is active in this folder; wait for its end, or end it")
    removed = [*take_down(), *sweep()]
    remove_tree("results/tmp")
    return removed + prune.prune(0 if images else prune.KEPT)
