"""Observe which values each passed option of ``docker run`` changes in a container.

No list says what an option changes: the state inside a container with the options is compared with
the states inside a container without them and inside containers with only one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from strata.environments.common.passed_options import split_option
from strata.host import observe, starting_state
from strata.util.data_types import Fields
from strata.util.errors import UserError

AS_REQUESTED = "as requested"
TOGETHER = "options together"
# The most characters of an option's observed effect that a record holds.
LONGEST_EFFECT = 2000
# Option → the state that it sets of a sandbox's process on the host, which is not seen from inside.
ON_THE_HOST = {
    "cpuset-cpus": "processors on the host",
    "cpuset-mems": "memory nodes on the host",
}
# Argument: the script of starting_state.build_state_command.  Prints the state in which a program
# starts, and then the limits, system parameters, devices and mounts that it sees, in the form that
# strata.host.observe.split_printed_files parses.  (`tail` ends at the first file that cannot be
# read, and in a sandbox a program for each file would take seconds.)
PRINT_STATE = r"""
exec 2>/dev/null
sh -c "$1" strata self
echo "==> /working-directory <=="; pwd
echo "==> /dev <=="; ls /dev
echo "==> /sys/class/net <=="; ls /sys/class/net
set -- /proc/mounts /proc/self/attr/current /etc/resolv.conf /etc/hosts /sys/class/net/*/mtu
for folder in /sys/fs/cgroup /sys/fs/cgroup/*; do
    for name in '*.max' '*.high' '*.low' '*.weight' '*.limit_in_bytes' '*quota_us' '*period_us' \
        '*.shares' '*.cpus' '*.mems' '*swappiness' 'devices.list' '*_device'; do
        for file in $folder/$name; do [ -f "$file" ] && set -- "$@" "$file"; done
    done
done
for file in /proc/sys/net/core/* /proc/sys/net/ipv4/* /proc/sys/net/ipv6/* /proc/sys/fs/mqueue/* \
    /proc/sys/kernel/shm* /proc/sys/kernel/msg* /proc/sys/kernel/sem /proc/sys/kernel/*name; do
    [ -f "$file" ] && set -- "$@" "$file"
done
head -v -c 8192 "$@"
exit 0
"""
# The state inside a container: the name of a limit, parameter, file or mount → its value.
ContainerState = dict[str, str]


def build_container_state_command() -> list[str]:
    """Return the command that prints the state inside a container.

    :func:`parse_container_state` parses the output.  docker.py stores states in files whose names
    depend on this command: if it changes, the states are read again.
    """
    # The command is sh, -c, its script, and the script's arguments.
    script = starting_state.build_state_command()[2]
    return ["sh", "-c", PRINT_STATE, "strata", script]


def parse_container_state(text: str) -> ContainerState:
    """Return the state inside a container from the output of :func:`build_container_state_command`.

    text: the output of that command.  A file of more than 8192 bytes is cut there.
    Values of the starting state have the names of :mod:`strata.host.starting_state`, mounts are
    named ``mount FOLDER``, and :func:`_derive_file_name` returns the names of files.
    """
    files = observe.split_printed_files(text)
    state = starting_state.parse_process_state(files)
    hostname = files.get("/proc/sys/kernel/hostname", "")
    for path, content in files.items():
        if path == "/proc/mounts":
            state |= _parse_mounts(content)
        elif name := _derive_file_name(path):
            lines = content.splitlines()
            if path == "/etc/hosts":
                # The line with the container's own address differs between containers.
                lines = [line for line in lines if line.split()[1:] != [hostname]]
            # Tabs and padding between columns must not count as differences.
            state[name] = "\n".join(" ".join(line.split()) for line in lines)
    return state


def _derive_file_name(path: str) -> str | None:
    """Return the name under which a file's content is in a container's state; None to leave it out.

    path: the path of the file.
    Secrets that only root may read, and files of the printing process, are left out.  The names
    appear in records: ``net.core.somaxconn`` for a system parameter, ``cpu.max`` for a file of a
    control group.  Other files, such as /etc/resolv.conf, have their path as name.
    """
    # A secret, for example net/ipv4/tcp_fastopen_key.
    if path.endswith("_key"):
        return None
    if path.startswith("/proc/self/") and not path.endswith("attr/current"):
        return None
    if path.startswith("/proc/sys/"):
        return path.removeprefix("/proc/sys/").replace("/", ".")
    # The folder of a controller, as in /sys/fs/cgroup/cpu/cpu.shares, is removed, too.
    return re.sub(r"^/sys/fs/cgroup/(.*/)?", "", path)


def _parse_mounts(text: str) -> ContainerState:
    """Return a container's mounts: ``mount FOLDER`` → text such as "tmpfs rw size=64k".

    text: the text of /proc/mounts; a last line that was cut is dropped.
    Other settings of a mount are left out: they name folders, which differ between containers.
    """
    mounts = {}
    for line in text.splitlines():
        columns = line.split()
        if len(columns) < 4:
            # The output was cut in the middle of this line.
            continue
        _, folder, file_system, settings = columns[:4]
        kept_settings = [
            setting for setting in settings.split(",") if re.match("(ro|rw)$|size=", setting)
        ]
        mounts[f"mount {folder}"] = " ".join([file_system, *kept_settings])
    return mounts


def _list_differing_lines(before: str, after: str) -> tuple[str, str]:
    """Return (lines that only the first text has, lines that only the second text has).

    before: the first text.
    after: the second text.
    The lines are joined by "; "; without any, the result is empty.  Two texts with the same lines
    in another order, or another number of equal lines, give two empty results.
    """
    lines_before = before.splitlines()
    lines_after = after.splitlines()
    only_before = [line for line in lines_before if line not in lines_after]
    only_after = [line for line in lines_after if line not in lines_before]
    return "; ".join(only_before), "; ".join(only_after)


def _find_state_differences(
    default_state: ContainerState, state: ContainerState, skipped_names: set[str]
) -> dict[str, tuple[str, str]]:
    """Return how two containers' states differ: name → (lines only in the first, in the second).

    default_state: the state of a container without passed options.
    state: the state of a container with passed options.
    skipped_names: names that are left out.
    A name that one state lacks counts as an empty text there.
    """
    differences = {}
    for name in sorted({*default_state, *state} - skipped_names):
        before, after = default_state.get(name, ""), state.get(name, "")
        if before != after:
            differences[name] = _list_differing_lines(before, after)
    return differences


def explain_state_differences(
    options: Sequence[str],
    state: ContainerState,
    read_state: Callable[[Sequence[str], int], ContainerState],
) -> tuple[list[Fields], dict[str, str]]:
    """Find which passed option causes each difference from a container without options.

    options: the passed options, each a string such as ``--cpus=1.5``.
    state: the state inside the container that has all of them.
    read_state: a function that starts a container with some of the options, and returns the state
    inside it; its second argument distinguishes equal containers.
    Returns (rows, causes).
    rows: for the records, ``{name, requested, observed}`` for each option, and one for the
    differences that no option makes by itself.
    causes: the name of each value that an option sets → ``option OPTION``.
    Starts two containers without options, and, for several options, one with each of them.
    analysis/markdown_tables.R finds the rows by a name that begins with "--" or is TOGETHER;
    strata/testbed/lifecycle.py finds the values by the prefix "option ".
    """
    default_state = read_state([], 0)
    # A difference between two containers without options is not an option's effect.
    unstable_names = {*_find_state_differences(default_state, read_state([], 1), set())}
    all_effects = _find_state_differences(default_state, state, unstable_names)
    unexplained_effects = dict(all_effects)
    rows: list[Fields] = []
    causes: dict[str, str] = {}
    for option in options:
        # A single option has all effects, so no further container is needed.
        option_effects = all_effects
        if len(options) > 1:
            try:
                option_state = read_state([option], 0)
            except UserError:
                # No container starts with this option alone, since it needs another one.  Its
                # effects are then those of the options together.
                option_state = default_state
            differences = _find_state_differences(default_state, option_state, unstable_names)
            option_effects = {
                name: all_effects[name] for name in differences if name in all_effects
            }
        for name in option_effects:
            # Another option may have explained the same value.
            unexplained_effects.pop(name, None)
        option_name, _ = split_option(option)
        rows.append(_describe_effects(f"--{option_name}", option, option_effects))
        value_names = [*option_effects]
        if option_name in ON_THE_HOST:
            value_names.append(ON_THE_HOST[option_name])
        causes |= dict.fromkeys(value_names, f"option {option}")
    if unexplained_effects:
        all_options = " ".join(options)
        rows.append(_describe_effects(TOGETHER, all_options, unexplained_effects))
        causes |= dict.fromkeys(unexplained_effects, f"option {all_options}")
    return rows, causes


def _describe_effects(name: str, options: str, effects: dict[str, tuple[str, str]]) -> Fields:
    """Return the row ``{name, requested, observed}`` about an option's effects, for the records.

    name: ``--NAME`` of one option, or TOGETHER.
    options: the option as in config.yaml, or several separated by spaces.
    effects: the name of each changed value → (value without the option, value with it).
    `observed` is, for example, "limit nofile: 1024 (without: 16384)"; without effects, it is
    AS_REQUESTED.  It is cut after LONGEST_EFFECT characters.
    """
    phrases = [
        f"{value_name}: {after or 'none'} (without: {before or 'none'})"
        for value_name, (before, after) in effects.items()
    ]
    observed = observe.replace_unprintable("; ".join(phrases)) or AS_REQUESTED
    return {"name": name, "requested": options, "observed": observed[:LONGEST_EFFECT]}
