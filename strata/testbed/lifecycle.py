"""Systems under test: what is brought up for a cell, or for those that take turns, and taken down.

A system may have several equal parts, for workloads that ask for as many at the same time: each is a stack of its own,
and they come and go together.  The client that reaches them is brought up before and taken down after them.

What is up is written down (:mod:`strata.testbed.journal`) before it is made, with how each thing is removed, so that
whoever comes next (another cell, of whichever checkout, the end of the run, ``strata clean``) can remove it, also after
a kill.  All of it is done under the machine's lock.
"""

import functools
import os
import time
from collections.abc import Sequence

from strata import client as client_of
from strata.environments.common import registry
from strata.environments.common.layer import Layer
from strata.host import cgroups, observe, starting_state
from strata.host.context import Context
from strata.host.observe import NOT_AVAILABLE
from strata.testbed import journal
from strata.util import locks, paths
from strata.util.data_types import Fields, Image, Stack
from strata.util.errors import CellFailed, UserError
from strata.util.locks import exclusive as exclusive
from strata.util.process import alive, as_root, capture, identity
from strata.util.progress import say, seconds_once
from strata.util.units import ranges

# A starting state: its parts by name.
States = dict[str, str]
# For whom the client is up.
CLIENT = "(client)"


def _begin(environment: str, image: Image | None) -> str:
    """Write down that something of ours is about to be made; its id."""
    if locks.OWN and image is not None:
        raise UserError(
            "STRATA_TEST_LOCK is set, which is only for tests on the bare host: unset it to measure"
        )
    id = f"strata-{os.urandom(5).hex()}"
    journal.begin(id, environment, identity(os.getpid()))
    return id


def _up(stack: list[Layer]) -> Fields:
    """Bring a stack up; what its layers know of themselves then."""
    facts: Fields = {}
    for layer in stack:
        layer.bring_up()
        facts |= layer.facts()
    return facts


def look(place: Layer) -> tuple[Fields, States]:
    """What is observed at a place, and the state in which a program starts there."""
    command = place.command_plain(starting_state.look(*observe.FILES))
    files = observe.split(capture(command, check=False).stdout)
    seen, state = observe.understand(files), starting_state.understand(files)
    # Where a system does not show their numbers, it counts from 0.
    counted = NOT_AVAILABLE if seen["cpus"] == NOT_AVAILABLE else ranges(range(seen["cpus"]))
    seen["processors"] = state.get("processors", counted)
    return seen, state


@functools.cache
def native_state(mask: str | None) -> States:
    """The state in which this process starts programs of the host: native's, with which all others are compared.

    mask: the processors to which all is held.  Raises CellFailed where it is not the declared one.
    """
    printed = capture(as_root(starting_state.look()), check=False).stdout
    state = starting_state.understand(observe.split(printed))
    wrong = starting_state.undeclared(state)
    wanted = mask or ranges(starting_state.online())
    if "processors" in state and state["processors"] != wanted:
        wrong["processors"] = (wanted, state["processors"])
    if wrong:
        found = "; ".join(
            f"{name} is {here} and must be {declared}" for name, (declared, here) in wrong.items()
        )
        raise CellFailed(
            f"programs cannot be started in the declared state here: {found}; whoever started this run limits it, and "
            "the right to undo that is missing: run it as root, or without that limit"
        )
    return state


def compare_state(top: Layer, inside: States, native: States) -> Fields:
    """``{values, differences}`` of the state in which programs start in a system, for its record.

    differences: ``[{name, native, here, by}]``, each declared by a layer or an option of the stack.  inside: of the top
    layer.  Raises CellFailed with both values where something differs that none declares, and where nothing of it
    can be read.
    """
    if not inside:
        raise CellFailed(
            "the state in which programs start here cannot be read: does its shell run?"
        )
    outside: States = {}
    if host_process := top.host_process():
        printed = capture(as_root(starting_state.look(process=host_process)), check=False).stdout
        whole = starting_state.understand(observe.split(printed))
        outside = {
            f"{name} on the host": whole[name]
            for name in starting_state.OF_THE_HOST
            if name in whole
        }
    beside = {**native, **{f"{name} on the host": value for name, value in native.items()}}
    by = registry.changes(top)
    found = starting_state.differences({**inside, **outside}, beside)
    wrong = [
        f"{name}: native {one}, here {other}"
        for name, (one, other) in found.items()
        if name not in by
    ]
    if wrong:
        raise CellFailed(
            "programs start in another state here than natively, which no layer or option of this environment "
            f"declares: {'; '.join(wrong)}"
        )
    values = {**inside, **outside}
    # What an option sets is listed also where that is native's value.
    chosen = [name for name in values if name in found or by.get(name, "").startswith("option ")]
    rows = [
        {"name": name, "native": beside[name], "here": values[name], "by": by[name]}
        for name in chosen
    ]
    return {"values": values, "differences": rows}


class Link:
    """A client (as of :func:`strata.client.settle`) that is brought up now.

    `client` is the top of its stack, `layer` that by which it is joined to systems, `address` the host's on the link,
    `password` that of the servers that it reaches.
    """

    def __init__(self, settled: Fields, image: Image | None, mask: str | None) -> None:
        id = _begin(CLIENT, image)
        folder = os.path.join(paths.systems(), id)
        context = Context(id, folder, image, mask=mask, note=functools.partial(journal.note, id))
        stack, self.layer = client_of.make(settled, context)
        _up(stack)
        self.client = stack[-1]
        self.address = self.layer.address()
        self.password = os.urandom(16).hex()

    @functools.cached_property
    def seen(self) -> Fields:
        """What is observed at the client, once it is joined to a system."""
        return {**look(self.client)[0], "link": self.layer.facts()}


class System:
    """A system under test, of so many equal parts, which is brought up now, beside what is up already.

    stack: layers with their settled options.  link: the client that is up and reaches the `ports` of its servers, all
    of which are higher by `shift`: others at the same address have those below.
    mask: the processors to which it is held.

    `tops` are the tops of the stacks of all parts, `top` that of the first.  `facts` is what is known of it for the
    records: its id, its layers, when and how quickly it came up, what its layers say of themselves.

    Raises UserError if it cannot be brought up; what is there of it is written down.
    """

    def __init__(
        self,
        environment: str,
        stack: Stack,
        image: Image | None,
        link: Link | None = None,
        ports: Sequence[int] = (),
        parts: int = 1,
        shift: int = 0,
        mask: str | None = None,
    ) -> None:
        id = _begin(environment, image)
        self.id, self.environment, self.link, self.shift = id, environment, link, shift
        # The client that reaches it; None where no workload has a part there.
        self.client = link.client if link else None
        self.frozen = False
        self._groups: list[str] | None = None
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        names = [id] if parts == 1 else [f"{id}-{part}" for part in range(parts)]
        folders = [os.path.join(paths.systems(), name) for name in names]
        address, note = link.address if link else "127.0.0.1", functools.partial(journal.note, id)
        stacks = []
        for part, (name, folder) in enumerate(zip(names, folders, strict=True)):
            own = [port + shift + part for port in ports]
            context = Context(
                name, folder, image, address, own, mask, part, parts, folders[0], note
            )
            stacks.append(registry.build(stack, context))
        self.tops = [built[-1] for built in stacks]
        self.top = self.tops[0]
        begun, before = time.monotonic(), seconds_once()
        facts = [_up(built) for built in stacks]
        # An image that was brought into a store of containers does not recur.
        seconds = round(time.monotonic() - begun - (seconds_once() - before), 3)
        each = [{"id": name, **told} for name, told in zip(names, facts, strict=True)]
        self.facts: Fields = {
            "id": id,
            "image": image["id"] if image else None,
            "layers": stack,
            "up_started": started,
            "up_seconds": seconds,
            "facts": {**facts[0], **({"each": each} if parts > 1 else {})},
        }
        if link is not None:
            link.layer.join(self.tops)
        self._listens = [top.listen() for top in self.tops] if link else []

    def listen(self, part: int) -> str:
        """The address at which servers in the system with this number listen: where its client's words arrive."""
        return self._listens[part] if self.client else self.tops[part].address()

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
                journal.note(self.id, {"kind": "frozen", "id": group})
            self._groups = [folder for group in named for folder in cgroups.freezers(group)]
        cgroups.freeze(self._groups, frozen)
        self.frozen = frozen


def take_down(environment: str | None = None) -> list[str]:
    """Remove what is up, the last first, by its traces; what it was, in words.

    environment: whose system goes alone.

    Raises UserError where something could not be removed: all else is, and it stays written down, so that whoever comes
    next tries again.
    """
    removed: list[str] = []
    failed: list[Exception] = []
    for thing in reversed(journal.all_up()):
        if environment not in (None, thing["environment"]):
            continue
        before = len(failed)
        for trace in reversed(thing["traces"]):
            try:
                journal.remove(trace)
            except (UserError, OSError) as trouble:
                failed.append(trouble)
        if len(failed) == before:
            removed.append(f"system {thing['id']} ({thing['environment']})")
            os.unlink(journal.path(thing["id"]))
    if failed:
        raise failed[0]
    return removed


def end_run(owner: Fields) -> None:
    """At the end of a run: remove what its cells left up that were killed, the snapshots that it kept, and what builds
    left.

    It waits for no measurement of another run: whoever measures removes what is left first.
    """
    from strata.image import build
    from strata.vm import snapshot

    if any(not alive(thing["owner"]) for thing in journal.all_up()):
        with exclusive(wait=False) as free:
            if free:
                take_down()
    snapshot.remove(owner)
    if build.unfinished():
        build.sweep()


def sweep() -> list[str]:
    """Remove whatever of ours was left on this machine, told by our marks alone; returns what it was, in words."""
    from strata.client import namespace
    from strata.image import build

    # The folders, by which some find what is theirs, are the host's, and go last.
    order = sorted(registry.names(), key=lambda name: name == "host")
    removed = [*build.sweep(), *(words for name in order for words in registry.kind(name).sweep())]
    return [*removed, *namespace.remove()]


def tidy() -> None:
    """Remove images that nobody needs, with what is theirs, and say so; not while somebody may be using one."""
    from strata.image import build
    from strata.vm import snapshot

    try:
        with exclusive(wait=False) as free:
            for words in [] if not free or journal.all_up() or snapshot.of() else build.prune():
                say("image", f"removed {words}: the last images that were used are kept")
    except (UserError, OSError) as trouble:
        # It was not asked for, and breaks nothing.
        say("image", f"nothing is removed from the cache: {trouble}")


def clean(images: bool = False) -> list[str]:
    """Remove whatever of ours was left on this machine and in this folder; returns what it was, in words.

    images: whether also all images go.  Raises UserError while a run is at work.
    """
    from strata.image import build
    from strata.util import programs
    from strata.util.files import remove_tree

    with locks.locked(paths.RUN_LOCK, wait=False) as free:
        if not free:
            raise UserError("a run is active in this folder; wait for its end, or end it")
        removed = [*take_down(), *sweep(), *journal.forget(), *programs.sweep()]
        folder, lock = os.path.split(paths.RUN_LOCK)
        # Not the lock: of one without a name several runs would have one each.
        for path in [
            os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name != lock
        ]:
            removed += [f"folder {path}"] * any(files for _, _, files in os.walk(path))
            remove_tree(path)
        return removed + build.prune(0 if images else build.KEPT)
