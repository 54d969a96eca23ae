"""Bring up and take down systems under test, and the client that reaches them.

A system may have several equal parts, for workloads that run in as many at the same time: each is
its own stack, and they come and go together.  The client is brought up before them and taken
down after them.

Each part is noted in the journal (:mod:`strata.testbed.journal`) before it is made, with how it is
removed.  So the next cell of any checkout, the end of the run or ``strata clean`` can remove it,
also after a kill.  The caller of these functions holds the machine's lock.
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
from strata.util.locks import hold_machine_lock
from strata.util.process import capture_output, identify_process, is_alive, wrap_as_root
from strata.util.progress import get_one_off_seconds, print_topic_message
from strata.util.units import format_ranges

# The state in which programs start: name → value.
States = dict[str, str]
# The journal's name for the client instead of an environment's.
CLIENT = "(client)"


def _create_journal_entry(environment: str, image: Image | None) -> str:
    """Create the journal entry of a system or client before it is made, and return its new ID.

    The ID is ``strata-`` and ten hexadecimal digits.  Clean-up finds the parts of a system by it.
    environment: the environment's name, or :data:`CLIENT`.
    Raises UserError if a lock for tests is set, but an image is used.
    """
    if locks.TEST_FOLDER and image is not None:
        raise UserError(
            "STRATA_TEST_LOCK is set, which is only for tests on the bare host: unset it to measure"
        )
    system_id = f"strata-{os.urandom(5).hex()}"
    journal.create_entry(system_id, environment, identify_process(os.getpid()))
    return system_id


def _bring_up_layers(stack: list[Layer]) -> Fields:
    """Bring up the layers of a stack, the lowest first, and return their facts in one mapping.

    If two layers have a fact of the same name, the higher layer's counts.  If a layer fails, those
    below it stay up; the journal says how they are removed.
    """
    facts: Fields = {}
    for layer in stack:
        layer.bring_up()
        facts |= layer.collect_facts()
    return facts


def observe_system(top: Layer) -> tuple[Fields, States]:
    """Return a system's facts, observed from inside, and the state in which its programs start.

    top: the top layer of the system's stack, or of the client's.
    A value that cannot be read is missing from the state, and "not available" in the facts; if the
    command cannot run in the system, that is so for all values.  The facts include `processors`,
    the CPUs, for example ``0-3``.  The record's `observed` has them as `inside` or `client`.
    """
    command = top.build_plain_command(starting_state.build_state_command(*observe.FILES))
    # check=False: `tail` fails if one of the files does not exist.
    files = observe.split_printed_files(capture_output(command, check=False).stdout)
    facts = observe.parse_system_facts(files)
    state = starting_state.parse_process_state(files)
    if "processors" in state:
        facts["processors"] = state["processors"]
    elif facts["cpus"] == NOT_AVAILABLE:
        facts["processors"] = NOT_AVAILABLE
    else:
        # A system that shows only the number of its CPUs counts them from 0.
        facts["processors"] = format_ranges(range(facts["cpus"]))
    return facts, state


@functools.cache
def read_native_state(mask: str | None) -> States:
    """Return the state in which programs start that this process runs as root on the host.

    The states of all systems are compared with this native state.  It is read once in a process.
    mask: a list of the CPUs that everything is restricted to; None: all that are online.
    :func:`strata.host.starting_state.apply_declared_state` must have been called before.
    Values that the kernel does not show are missing, and are not checked.
    Raises CellFailed if the state is not the declared one.
    """
    output = capture_output(wrap_as_root(starting_state.build_state_command()), check=False).stdout
    state = starting_state.parse_process_state(observe.split_printed_files(output))
    # Name → (declared value, value in the state).
    differences = starting_state.find_undeclared_values(state)
    declared_cpus = mask or format_ranges(starting_state.list_online_cpus())
    if "processors" in state and state["processors"] != declared_cpus:
        differences["processors"] = (declared_cpus, state["processors"])
    if differences:
        phrases = "; ".join(
            f"{name} is {value} and must be {declared_value}"
            for name, (declared_value, value) in differences.items()
        )
        raise CellFailed(
            f"programs cannot be started in the declared state here: {phrases}; whoever started "
            "this run limits it, and the right to undo that is missing: run it as root, or without "
            "that limit"
        )
    return state


def check_starting_state(top: Layer, inside: States, native: States) -> Fields:
    """Check that programs in a system start in the native state, apart from declared differences.

    top: the system's top layer, which is up.
    inside: the state in the system, as :func:`observe_system` returns it.
    native: the native state, as :func:`read_native_state` returns it.
    Returns ``{values, differences}``, the record's `starting_state`.  `values` is the system's
    state.  `differences` has ``{name, native, here, by}`` for each value that differs, and for each
    that an option sets, even to native's value; `by` is the layer or option that declares it.  The
    paper shows these rows (analysis/markdown_tables.R).
    Raises CellFailed if the state cannot be read, or if no layer or option declares a difference.
    """
    if not inside:
        raise CellFailed(
            "the state in which programs start here cannot be read: does its shell run?"
        )
    values = inside | _read_host_process_state(top)
    # A sandbox's or machine's process on the host should start as a native program does.
    native_values = native | {f"{name} on the host": value for name, value in native.items()}
    # Name → the layer or option that declares a difference.
    causes = registry.collect_declared_differences(top)
    differences = starting_state.compare_states(values, native_values)
    undeclared_phrases = [
        f"{name}: native {native_value}, here {value}"
        for name, (native_value, value) in differences.items()
        if name not in causes
    ]
    if undeclared_phrases:
        raise CellFailed(
            "programs start in another state here than natively, which no layer or option of this "
            f"environment declares: {'; '.join(undeclared_phrases)}"
        )
    rows = []
    for name, value in values.items():
        cause = causes.get(name, "")
        # A value that an option sets is listed even if it is native's.
        # registry.collect_declared_differences begins the cause with "option ".
        if name in differences or cause.startswith("option "):
            rows.append({"name": name, "native": native_values[name], "here": value, "by": cause})
    return {"values": values, "differences": rows}


def _read_host_process_state(top: Layer) -> States:
    """Return the starting state of a sandbox's or virtual machine's process on the host.

    top: the system's top layer.
    The process is the system's own kernel, such as QEMU or gVisor's sandbox.  Each name ends with
    " on the host": layers declare differences by these names.  Only the names of
    :data:`strata.host.starting_state.HOST_PROCESS_STATE` are read.
    Returns an empty state if the system has no such process, or if root cannot read the process's
    files, for example because the process has ended.
    """
    pid = top.find_kernel_process()
    if pid is None:
        return {}
    command = wrap_as_root(starting_state.build_state_command(process=pid))
    # check=False: without output, the state is empty.
    output = capture_output(command, check=False).stdout
    state = starting_state.parse_process_state(observe.split_printed_files(output))
    return {
        f"{name} on the host": state[name]
        for name in starting_state.HOST_PROCESS_STATE
        if name in state
    }


class Client:
    """The client; creating the object brings the client up.

    resolved: the options, as from :func:`strata.client.resolve_client_options`.
    image: the image of its stack; None if no layer needs one.
    mask: a list of the CPUs that the client is restricted to; None: all.

    Attributes: `client` is the top layer of its stack, `layer` the link that joins the client to
    systems, `address` the host's IP address on that link, and `password` a random one for the
    servers that the client reaches.

    Raises UserError if the client cannot be brought up; its parts are in the journal.
    """

    def __init__(self, resolved: Fields, image: Image | None, mask: str | None) -> None:
        """Write the client's journal entry, then bring the client up, joined to no system yet."""
        client_id = _create_journal_entry(CLIENT, image)
        folder = os.path.join(paths.get_systems_folder(), client_id)
        note_cleanup = functools.partial(journal.note_cleanup, client_id)
        context = Context(client_id, folder, image, mask=mask, note_cleanup=note_cleanup)
        stack, self.layer = client_of.build_client_stack(resolved, context)
        _bring_up_layers(stack)
        self.client = stack[-1]
        self.address = self.layer.get_address()
        self.password = os.urandom(16).hex()

    @functools.cached_property
    def client_facts(self) -> Fields:
        """The facts of the client and, under the key `link`, of its link.

        They are read once, at the first use.  The client must be joined to a system before, since
        that may change the link.  The record has the facts as `observed.client`.
        """
        return {**observe_system(self.client)[0], "link": self.layer.collect_facts()}


class System:
    """A system under test of one or several equal parts; creating the object brings the system up.

    Other systems that are up stay so.
    environment: the environment's name, for the journal.
    stack: layers with their resolved options.
    image: the image of its stack; None if no layer needs one.
    link: the client that reaches the system's servers; None if the workload uses no client.
    ports: the ports of the first system's servers at this address.
    parts: the number of parts.
    port_offset: the number that is added to each port: other systems at this address use lower
    ports.
    mask: a list of the CPUs that the system is restricted to; None: all.
    disk_bytes: the size of the RAM disk on which each part has /data; None: no such disk.

    Attributes: `tops` are the top layers of the stacks of all parts, and `top` is the first part's.
    `client` is the top layer of the client's stack, or None.  `frozen` says whether all processes
    are frozen.  `facts`, for the records, holds the system's ID and layers, when and how quickly it
    came up, and the facts of its layers; docs/files.md describes its keys.

    Raises UserError if the system cannot be brought up; its parts are in the journal.
    """

    def __init__(
        self,
        environment: str,
        stack: Stack,
        image: Image | None,
        link: Client | None = None,
        ports: Sequence[int] = (),
        parts: int = 1,
        port_offset: int = 0,
        mask: str | None = None,
        disk_bytes: int | None = None,
    ) -> None:
        """Write the system's journal entry, bring the system up, and join the client to it."""
        self.id = _create_journal_entry(environment, image)
        self.environment = environment
        self.link = link
        self.port_offset = port_offset
        self.client = link.client if link else None
        self.frozen = False
        # None until the first freeze.
        self._freezable_folders: list[str] | None = None
        stacks = self._build_stacks(stack, image, ports, parts, mask, disk_bytes)
        self.tops = [layers[-1] for layers in stacks]
        self.top = self.tops[0]
        self.facts: Fields = {
            "id": self.id,
            "image": image["id"] if image else None,
            "layers": stack,
            **_bring_up_parts(stacks),
        }
        if link is not None:
            link.layer.join_systems(self.tops)
        # Joining a bridge may move the addresses, so they are read only now, and once.
        self._listen_addresses = [top.get_listen_address() for top in self.tops] if link else []

    def _build_stacks(
        self,
        stack: Stack,
        image: Image | None,
        ports: Sequence[int],
        parts: int,
        mask: str | None,
        disk_bytes: int | None,
    ) -> list[list[Layer]]:
        """Return the layers of each part of the system, from the bottom; none of them is up.

        The class describes the parameters.  The folders of the parts are named after their IDs, and
        one journal entry has the cleanups of all parts.
        """
        ids = [self.id]
        if parts > 1:
            ids = [f"{self.id}-{part}" for part in range(parts)]
        folders = [os.path.join(paths.get_systems_folder(), part_id) for part_id in ids]
        address = self.link.address if self.link else "127.0.0.1"
        stacks = []
        for part, (part_id, folder) in enumerate(zip(ids, folders, strict=True)):
            context = Context(
                part_id,
                folder,
                image,
                address,
                # Parts at one address must have different ports.
                ports=[port + self.port_offset + part for port in ports],
                mask=mask,
                disk_bytes=disk_bytes,
                part=part,
                part_count=parts,
                first_folder=folders[0],
                note_cleanup=functools.partial(journal.note_cleanup, self.id),
            )
            stacks.append(registry.build_stack(stack, context))
        return stacks

    def get_listen_address(self, part: int) -> str:
        """Return the address that a part's servers listen on, where the client's packets arrive.

        It is the placeholder `listen` of commands.  Without a client it is the part's own address.
        part: the part's number, from 0.
        """
        return self._listen_addresses[part] if self.client else self.tops[part].get_address()

    def get_peer_address(self, part: int) -> str:
        """Return the address where the other parts of the system reach a part's servers.

        It is the placeholder `address.ROLE` of commands in a system.
        part: the part's number, from 0.
        """
        top = self.tops[part]
        # These layers forward packets of other parts as they forward the client's.
        is_forwarded = any(layer.peers_are_clients for layer in top.iterate_layers())
        return top.get_address() if is_forwarded else self.get_listen_address(part)

    def set_frozen(self, frozen: bool) -> None:
        """Freeze all processes of the system, or thaw them, and set `frozen`.

        The first freeze writes into the journal that they may be frozen: taking the system down
        then thaws them.
        frozen: True freezes, False thaws.  Nothing is done if the system is already in that state.
        Raises UserError if the processes do not freeze or thaw in time.
        """
        if frozen == self.frozen:
            return
        if self._freezable_folders is None:
            self._freezable_folders = []
            for group in filter(None, [top.find_cgroup() for top in self.tops]):
                journal.note_cleanup(self.id, {"kind": "frozen", "id": group})
                self._freezable_folders += cgroups.find_freezable_folders(group)
        cgroups.set_groups_frozen(self._freezable_folders, frozen)
        self.frozen = frozen


def _bring_up_parts(stacks: list[list[Layer]]) -> Fields:
    """Bring up the parts of a system, and return ``{up_started, up_seconds, facts}``.

    stacks: the layers of each part, from the bottom.
    Returns:
    `up_started`: the time in UTC when this began, such as "2026-11-29T17:00:00Z";
    `up_seconds`: the duration without one-off work of the run, such as loading an image, rounded to
    milliseconds;
    `facts`: those of the first part's layers; with several parts, its key `each` has the facts of
    all parts, with their IDs.
    The record's `system` has all of these.
    """
    up_started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    start = time.monotonic()
    one_off_seconds_before = get_one_off_seconds()
    facts_of_parts = [_bring_up_layers(layers) for layers in stacks]
    one_off_seconds = get_one_off_seconds() - one_off_seconds_before
    up_seconds = round(time.monotonic() - start - one_off_seconds, 3)
    system_facts = facts_of_parts[0]
    if len(stacks) > 1:
        facts_with_ids = [
            {"id": layers[0].context.id, **part_facts}
            for layers, part_facts in zip(stacks, facts_of_parts, strict=True)
        ]
        system_facts = {**system_facts, "each": facts_with_ids}
    return {"up_started": up_started, "up_seconds": up_seconds, "facts": system_facts}


def take_down_systems(environment: str | None = None) -> list[str]:
    """Remove the systems and clients in the journal, the newest first; return a phrase for each.

    The parts of each are removed in the reverse order of their making.  The caller must hold the
    machine's lock.  If nothing is up, nothing is done.
    environment: the environment whose systems are removed; None removes all systems and clients.
    Raises the first UserError or OSError of a part that could not be removed, after everything else
    has been removed.  That part's system stays in the journal, so that the next call tries again.
    A phrase is, for example, "system strata-0123456789 (docker)".
    """
    phrases: list[str] = []
    errors: list[Exception] = []
    for entry in reversed(journal.read_entries()):
        if environment not in (None, entry["environment"]):
            continue
        errors_before = len(errors)
        for cleanup in reversed(entry["cleanups"]):
            try:
                journal.run_cleanup(cleanup)
            except (UserError, OSError) as error:
                errors.append(error)
        if len(errors) == errors_before:
            phrases.append(f"system {entry['id']} ({entry['environment']})")
            os.unlink(journal.get_entry_path(entry["id"]))
    if errors:
        raise errors[0]
    return phrases


def clean_up_after_run(owner: Fields) -> None:
    """Remove a run's snapshots, and what killed cells and builds left, when the run ends.

    owner: the process of the run, ``{pid, start}``.
    If another run's measurement holds the machine's lock, systems stay, and the next measurement
    removes them.  strata/workflow.py calls this when Snakemake ends.
    """
    from strata.image import build
    from strata.vm import snapshot

    if any(not is_alive(entry["owner"]) for entry in journal.read_entries()):
        with hold_machine_lock(wait=False) as is_held:
            if is_held:
                # Under the machine's lock, no system in the journal is in use.
                take_down_systems()
    snapshot.remove_snapshots(owner)
    if build.list_unfinished_builds():
        build.remove_killed_builds()


def remove_marked_leftovers() -> list[str]:
    """Remove everything on this machine that has Strata's marks; return a phrase for each.

    The marks are names and labels.  The journal is not needed, so nothing stays if it was lost.
    The caller must hold the machine's lock.
    """
    from strata.client import namespace
    from strata.image import build

    # The layer host goes last: other layers find what is theirs by the folders that it removes.
    layer_names = [name for name in registry.list_layer_names() if name != "host"]
    phrases = build.remove_killed_builds()
    for name in [*layer_names, "host"]:
        phrases += registry.load_layer_class(name).remove_systems()
    return phrases + namespace.remove_namespace()


def prune_unused_images() -> None:
    """Remove the images, with their boxes, that were not used recently.

    Nothing is removed if an image may be in use.  Prints a line for each removed thing.  Errors are
    only printed: no command of the user requested this removal.
    """
    from strata.image import build
    from strata.vm import snapshot

    try:
        with hold_machine_lock(wait=False) as is_held:
            if is_held and not journal.read_entries() and not snapshot.list_runs_with_snapshots():
                for phrase in build.prune_images():
                    print_topic_message(
                        "image", f"removed {phrase}: the last images that were used are kept"
                    )
    except (UserError, OSError) as error:
        print_topic_message("image", f"nothing is removed from the cache: {error}")


def clean_machine(images: bool = False) -> list[str]:
    """Remove everything that Strata left on this machine and in results/tmp, and old images.

    This is the command `strata clean`.  All other results stay.
    Returns a phrase for each removed thing.
    The caller must hold the machine's lock.
    images: whether all images are removed; otherwise the most recently used ones stay.
    If another process holds the image cache's lock, images stay, and a message says so.
    Raises UserError if a run is active in this folder, or a removal fails.
    """
    from strata.image import build
    from strata.util import programs
    from strata.util.files import remove_tree

    with locks.hold_lock(paths.RUN_LOCK, wait=False) as is_held:
        if not is_held:
            raise UserError("a run is active in this folder; wait for its end, or end it")
        phrases = [
            *take_down_systems(),
            *remove_marked_leftovers(),
            *journal.remove_unfinished_files(),
            *programs.remove_abandoned_folders(),
        ]
        folder, lock_name = os.path.split(paths.RUN_LOCK)
        for name in sorted(os.listdir(folder)):
            # The lock's file stays: a run that waits for it and the next one must lock the same
            # file.
            if name == lock_name:
                continue
            path = os.path.join(folder, name)
            # Files and empty folders are removed without a phrase.
            if any(files for _, _, files in os.walk(path)):
                phrases.append(f"folder {path}")
            remove_tree(path)
        return phrases + build.prune_images(0 if images else build.KEPT)
