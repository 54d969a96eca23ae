"""Options of ``docker run`` that the configuration passes on as they stand, and what they change.

No list says what an option changes: a look into a container with the options is compared with one
into a container without them, and with one option alone.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence

from strata.host import observe, starting_state
from strata.host.daemons import find_program
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.process import capture

SCHEMA: Fields = {
    "type": "array",
    "minItems": 1,
    "maxItems": 40,
    "uniqueItems": True,
    "description": "options of `docker run`, each in one text, such as [--cpus=1.5]",
    "items": {
        "type": "string",
        "maxLength": 300,
        "pattern": r"^--?[A-Za-z][a-z0-9-]*(=[^\x00-\x1f\x7f]*)?$",
        "description": "an option of `docker run` and its value in one text, such as --cpus=1.5",
    },
}
# The most characters of options that a label holds.
MOST_IN_LABEL = 48
AS_REQUESTED = "as requested"
TOGETHER = "options together"

_BACKGROUND = "Strata starts the container in the background, and runs commands in it"
_SAME_GROUP = "all environments have one parent group, whose processors they share alike"
_HAS_HEALTH = "no health check runs while programs are measured"
# The name of an option that would break the measurement → the reason.
REFUSED = {
    "attach": _BACKGROUND,
    "cgroup-parent": _SAME_GROUP,
    "cidfile": "Strata finds the container by a file of its own",
    "detach": _BACKGROUND,
    "detach-keys": _BACKGROUND,
    "entrypoint": "the container’s first program is Strata’s and only waits; write yours into "
    "the command",
    "env": "programs get the same declared variables in every environment; start them by "
    "`env NAME=VALUE`, or set ENV in an image of your own",
    "env-file": "programs get the same declared variables in every environment; start them by "
    "`env NAME=VALUE`, or set ENV in an image of your own",
    "health-cmd": _HAS_HEALTH,
    "health-interval": _HAS_HEALTH,
    "health-retries": _HAS_HEALTH,
    "health-start-interval": _HAS_HEALTH,
    "health-start-period": _HAS_HEALTH,
    "health-timeout": _HAS_HEALTH,
    "help": "it starts no container",
    "init": "every container has an init",
    "interactive": _BACKGROUND,
    "label-file": "a label of Strata’s could be replaced; write --label=NAME=VALUE",
    "name": "Strata names the container, and removes it by that name",
    "no-healthcheck": _HAS_HEALTH,
    "platform": "the image is the same in every environment",
    "pull": "the image is the same in every environment",
    "restart": "the container would start again after it was ended",
    "rm": "Strata itself removes the container",
    "runtime": "there is a key for it: write runtime: runc or runtime: runsc",
    "sig-proxy": _BACKGROUND,
    "tty": _BACKGROUND,
}
# Short names of options → long ones.
SHORT = {
    "a": "attach", "c": "cpu-shares", "d": "detach", "e": "env", "h": "hostname",
    "i": "interactive", "l": "label", "m": "memory", "p": "publish", "P": "publish-all",
    "q": "quiet", "t": "tty", "u": "user", "v": "volume", "w": "workdir",
}  # fmt: skip
# Names that `docker run` accepts and does not list.
HIDDEN = {"net": "network", "net-alias": "network-alias"}
# The networks that the key `network` chooses.
NETWORKS_OF_KEY = ("host", "bridge", "default")
# Option → the state of the host's process of a sandbox that it sets, which no look inside shows.
ON_THE_HOST = {
    "cpuset-cpus": "processors on the host",
    "cpuset-mems": "memory nodes on the host",
}

# Argument: the script of starting_state.state_command.  Prints the state in which a program starts,
# and then the limits, system parameters, devices and mounts that it finds, in the form of
# strata.host.observe.split_files.  (`tail` ends at the first file that cannot be read, and a
# program for each file would take a sandbox seconds.)
PRINT = r"""
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
# Name of what the look finds → its value.
Look = dict[str, str]


def print_command() -> list[str]:
    """Return the command that prints what :func:`parse_look` reads."""
    return ["sh", "-c", PRINT, "strata", starting_state.state_command()[2]]


def split_option(option: str) -> tuple[str, str | None]:
    """Return the long name and the value of an option; the value is None if it has none."""
    word, equals, value = option.partition("=")
    name = word.lstrip("-")
    is_long = word.startswith("--")
    return (HIDDEN if is_long else SHORT).get(name, name), value if equals else None


def network_of(options: Fields) -> str | None:
    """Return the network that an option ``--network`` names; None without one.

    options: those of a container, as in config.yaml or resolved.
    """
    for name, value in map(split_option, options.get("options", ())):
        if name == "network":
            match = re.search("(?:^|,)name=([^,]*)", value or "")
            return match[1] if match else value
    return None


def sets_user(options: Fields) -> bool:
    """Return whether an option ``--user`` decides as which user programs run."""
    return any(split_option(option)[0] == "user" for option in options.get("options", ()))


def text_for_label(options: Sequence[str]) -> str:
    """Return the options as a label names them: as many as it holds, and the number of others."""
    text = options[0]
    for number, option in enumerate(options[1:], start=1):
        if len(f"{text} {option}") > MOST_IN_LABEL:
            return f"{text} and {len(options) - number} more"
        text += f" {option}"
    return text if len(text) <= MOST_IN_LABEL else text[: MOST_IN_LABEL - 1] + "…"


@functools.cache
def known_options() -> Mapping[str, bool]:
    """Return the long names of the options of ``docker run`` → whether they need a value.

    They are read from its help; empty if Docker's client is not installed.
    """
    if not find_program("docker"):
        return {}
    text = capture(["docker", "run", "--help"], check=False).stdout
    rows = re.findall(r"(?m)^\s+(?:-\w, )?--([a-z][\w-]*)(?: ([\w-]+))?(?:\s{2,}|$)", text)
    return {name: bool(kind) for name, kind in rows}


def check(options: Fields) -> list[tuple[str, str]]:
    """Return (option, what is wrong) for options that are refused, unknown or said twice.

    options: all of a container's, as in config.yaml; they fit their schema.
    """
    wrong = []
    networks = 0
    for number, option in enumerate(options.get("options", ())):
        name, value = split_option(option)
        networks += name == "network"
        sentence = _find_mistake(option, name, value, options)
        if not sentence and name == "network" and networks > 1:
            sentence = "a container has one network here: leave one of them out"
        if sentence:
            wrong.append((f"options.{number}", f"is {option}; {sentence}"))
    if "network" not in options and not networks:
        wrong.append(("network", "is missing; must be bridge or host, or write options: "
                      "[--network=NAME] for a network of your own"))  # fmt: skip
    return wrong


def _find_mistake(option: str, name: str, value: str | None, options: Fields) -> str | None:
    """Return what is wrong with one option; None if it can be passed on."""
    is_known = option.startswith("--") or name in SHORT.values()
    # The form -dit is three options.
    names = [name] if is_known else [SHORT.get(letter, letter) for letter in name]
    for refused in names:
        if refused in REFUSED:
            return f"{REFUSED[refused]}: leave it out"
    if not option.startswith("--"):
        long = name if name in SHORT.values() else "NAME"
        return f"write it in its long form, --{long}=VALUE, or --{long} if it has no value"
    if known := known_options():
        if name not in known:
            from strata.util.validation import suggest_name

            return f"`docker run` has no such option; {suggest_name(name, sorted(known))}"
        if known[name] and value is None:
            return f"it needs a value: write --{name}=VALUE in one text"
    if name == "label" and (value or "").startswith("strata."):
        return "labels that begin with strata. are Strata’s: choose another"
    network = network_of({"options": [option]}) or ""
    if network in NETWORKS_OF_KEY:
        return f"there is a key for it: write network: {'host' if network == 'host' else 'bridge'}"
    if network.startswith("container:"):
        return "a system shares no network with another container: name a network"
    key = name
    if name == "security-opt" and (value or "").startswith("seccomp"):
        key = "seccomp"
    if key in options and key != "data":
        return f"the key {key} sets the same: leave one of them out"
    if mount_target(name, value or "") == "/data":
        return "Strata keeps the data of workloads there: set the key data, or another folder"
    return None


def mount_target(name: str, value: str) -> str | None:
    """Return the folder of the container at which an option mounts something; None for others.

    name: the option's long name.
    """
    if name == "volume":
        fields = value.split(":")
        target = fields[min(1, len(fields) - 1)]
    elif name == "tmpfs":
        target = value.partition(":")[0]
    elif name == "mount":
        match = re.search("(?:^|,)(?:target|dst|destination)=([^,]*)", value)
        target = match[1] if match else ""
    else:
        return None
    return posixpath.normpath(target) if target else None


def parse_look(text: str) -> Look:
    """Return name → value of all that :func:`print_command` printed in a container.

    Parts of the starting state have the names of :mod:`strata.host.starting_state`, mounts that of
    their folder, and files their own, without folders that every container has alike.
    """
    files = observe.split_files(text)
    look = starting_state.parse_state(files)
    hostname = files.get("/proc/sys/kernel/hostname", "")
    for path, content in files.items():
        if path.endswith("_key"):
            # A secret, which only root may read.
            continue
        name = re.sub(r"^/sys/fs/cgroup/(.*/)?", "", path)
        if path.startswith("/proc/sys/"):
            name = path.removeprefix("/proc/sys/").replace("/", ".")
        elif path == "/proc/mounts":
            look |= _parse_mounts(content)
            continue
        elif path.startswith("/proc/self/") and not path.endswith("attr/current"):
            continue
        lines = content.splitlines()
        if path == "/etc/hosts":
            # The line of the container's own address.
            lines = [line for line in lines if line.split()[1:] != [hostname]]
        look[name] = "\n".join(" ".join(line.split()) for line in lines)
    return look


def _parse_mounts(text: str) -> Look:
    """Return ``mount FOLDER`` → type, whether it is writable, and size, from /proc/mounts."""
    mounts = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 4:
            continue
        settings = [
            word for word in fields[3].split(",") if word in ("ro", "rw") or word[:5] == "size="
        ]
        mounts[f"mount {fields[1]}"] = " ".join([fields[2], *settings])
    return mounts


def _differing_lines(before: str, after: str) -> tuple[str, str]:
    """Return the lines that only the first, and that only the second of two texts has."""
    old, new = before.splitlines(), after.splitlines()
    gone, added = ([line for line in a if line not in b] for a, b in ((old, new), (new, old)))
    return "; ".join(gone), "; ".join(added)


def _compare(without: Look, look: Look, ignored: set[str]) -> dict[str, tuple[str, str]]:
    """Return name → (value without, value here) for all that differs between two looks."""
    names = {*without, *look} - ignored
    return {
        name: _differing_lines(without.get(name, ""), look.get(name, ""))
        for name in sorted(names)
        if without.get(name, "") != look.get(name, "")
    }


class Consequences:
    """What the look into a container finds otherwise than without its passed options.

    look_into: a function that starts a container with some of the options, and returns what the
    look into it finds; its second argument distinguishes looks into equal containers.
    rows: ``[{name, asked, seen}]``, one for each option, for the records.
    declared: name of a value in programs' starting state → the option that sets it.
    """

    def __init__(
        self, options: Sequence[str], look: Look, look_into: Callable[[Sequence[str], int], Look]
    ) -> None:
        without = look_into([], 0)
        # What differs between two containers without options follows from none.
        ignored = {*_compare(without, look_into([], 1), set())}
        changed = _compare(without, look, ignored)
        by_option: dict[str, dict[str, tuple[str, str]]] = {}
        left = dict(changed)
        for option in options:
            alone = changed
            if len(options) > 1:
                # An option may need another one.
                try:
                    alone = _compare(without, look_into([option], 0), ignored)
                except UserError:
                    alone = {}
            by_option[option] = {name: changed[name] for name in alone if name in changed}
            for name in by_option[option]:
                left.pop(name, None)
        if left:
            by_option[TOGETHER] = left
        self.rows: list[Fields] = []
        self.declared: dict[str, str] = {}
        for option, consequences in by_option.items():
            asked = " ".join(options) if option == TOGETHER else option
            texts = [
                f"{name}: {after or 'none'} (without: {before or 'none'})"
                for name, (before, after) in consequences.items()
            ]
            seen = observe.printable("; ".join(texts)) or AS_REQUESTED
            name = TOGETHER if option == TOGETHER else f"--{split_option(option)[0]}"
            self.rows.append({"name": name, "requested": asked, "observed": seen[:2000]})
            self.declared |= dict.fromkeys(consequences, f"option {asked}")
            if on_host := ON_THE_HOST.get(name.removeprefix("--")):
                self.declared[on_host] = f"option {asked}"
