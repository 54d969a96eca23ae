"""Check the options of ``docker run`` that the configuration passes on unchanged.

Their effects are observed: see :mod:`strata.environments.common.option_effects`.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Mapping, Sequence

from strata.host.daemons import find_program
from strata.util.data_types import Fields
from strata.util.process import capture_output

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
MAX_LABEL_LENGTH = 48
# The name of an option that would break the measurement → the reason.
REFUSED = {
    **dict.fromkeys(
        ("attach", "detach", "detach-keys", "interactive", "sig-proxy", "tty"),
        "Strata starts the container in the background, and runs commands in it",
    ),
    **dict.fromkeys(
        ("env", "env-file"),
        "programs get the same declared variables in every environment; start them by "
        "`env NAME=VALUE`, or set ENV in an image of your own",
    ),
    **dict.fromkeys(
        ("health-cmd", "health-interval", "health-retries", "health-start-interval")
        + ("health-start-period", "health-timeout", "no-healthcheck"),
        "no health check runs while programs are measured",
    ),
    **dict.fromkeys(("platform", "pull"), "the image is the same in every environment"),
    "cgroup-parent": "all environments have one parent group, whose processors they share alike",
    "cidfile": "Strata finds the container by its own file",
    "entrypoint": "the container’s first program is Strata’s and only waits; write yours into "
    "the command",
    "help": "it starts no container",
    "init": "every container has an init",
    "label-file": "a label of Strata’s could be replaced; write --label=NAME=VALUE",
    "name": "Strata names the container, and removes it by that name",
    "restart": "the container would start again after it was ended",
    "rm": "Strata itself removes the container",
    "runtime": "config.yaml has a key for it, as in an environment with runtime: runsc",
}
# Short names of options → long ones.
SHORT = {
    "a": "attach", "c": "cpu-shares", "d": "detach", "e": "env", "h": "hostname",
    "i": "interactive", "l": "label", "m": "memory", "p": "publish", "P": "publish-all",
    "q": "quiet", "t": "tty", "u": "user", "v": "volume", "w": "workdir",
}  # fmt: skip
# Names that `docker run` accepts and does not list.
HIDDEN = {"net": "network", "net-alias": "network-alias"}
# The folder of a system in which workloads run.
DATA = "/data"
# The networks that the key `network` chooses.
NETWORKS_OF_KEY = ("host", "bridge", "default")


def split_option(option: str) -> tuple[str, str | None]:
    """Return (long name without dashes, value or None) of an option of ``docker run``.

    option: the option, such as ``--cpus=1.5``, ``-m=1g`` or ``--privileged``.
    Several short options in one string, such as ``-dit``, are not divided.
    """
    flag, equals, value = option.partition("=")
    name = flag.lstrip("-")
    long_names = HIDDEN if flag.startswith("--") else SHORT
    return long_names.get(name, name), value if equals else None


def find_network(options: Fields) -> str | None:
    """Return the network that a passed option ``--network`` names; None without that option.

    options: the options of the container, as in config.yaml or resolved; only the key `options` is
    read, not the key `network`.
    """
    for name, value in map(split_option, options.get("options", ())):
        if name == "network":
            # The value is NAME, or of the form name=NAME,alias=... in any order.
            match = re.search("(?:^|,)name=([^,]*)", value or "")
            return match[1] if match else value
    return None


def has_user_option(options: Fields) -> bool:
    """Return whether an option ``--user``, which sets the user of programs, is passed on.

    options: the options of the container, as in config.yaml or resolved.
    """
    return any(split_option(option)[0] == "user" for option in options.get("options", ()))


def format_options_for_label(options: Sequence[str]) -> str:
    """Return the passed options as a label shows them: those that fit, and the number of others.

    options: at least one option.  If the first one alone exceeds MAX_LABEL_LENGTH, it is cut.
    The text is, for example, "--cpus=1.5 --memory=1g and 2 more"; its ending may exceed that
    length.
    """
    label = options[0]
    for shown_count, option in enumerate(options[1:], start=1):
        if len(f"{label} {option}") > MAX_LABEL_LENGTH:
            return f"{label} and {len(options) - shown_count} more"
        label += f" {option}"
    return label if len(label) <= MAX_LABEL_LENGTH else label[: MAX_LABEL_LENGTH - 1] + "…"


@functools.cache
def read_known_options() -> Mapping[str, bool]:
    """Return the options of ``docker run``: long name → whether the option needs a value.

    They are parsed from the command's help, once in a process.  The result is empty if Docker's
    client is not installed.
    """
    if not find_program("docker"):
        return {}
    text = capture_output(["docker", "run", "--help"], check=False).stdout
    # A line of the help is, for example, "  -c, --cpu-shares int     CPU shares".
    rows = re.findall(r"(?m)^\s+(?:-\w, )?--([a-z][\w-]*)(?: ([\w-]+))?(?:\s{2,}|$)", text)
    return {name: bool(value_type) for name, value_type in rows}


def find_passed_option_mistakes(options: Fields) -> list[tuple[str, str]]:
    """Return (key, message) for passed options that are refused, unknown or repeated.

    options: the options of the container, as in config.yaml; they fit their schema.
    The key is ``options.NUMBER``, where the number is the option's index from 0.  It is ``network``
    if no network is given at all.
    """
    mistakes = []
    has_network_option = False
    for index, option in enumerate(options.get("options", ())):
        name, _ = split_option(option)
        mistake = _explain_invalid_option(option) or _explain_option_conflict(option, options)
        if name == "network":
            if has_network_option and not mistake:
                mistake = "a container has one network here: leave one of them out"
            has_network_option = True
        if mistake:
            mistakes.append((f"options.{index}", f"is {option}; {mistake}"))
    if "network" not in options and not has_network_option:
        remedy = (
            "must be bridge or host, or write options: [--network=NAME] for a network of your own"
        )
        mistakes.append(("network", f"is missing; {remedy}"))
    return mistakes


def _explain_invalid_option(option: str) -> str | None:
    """Return why Strata refuses an option, or why ``docker run`` has no such option; else None.

    option: the option as in config.yaml, such as ``--cpus=1.5``.
    The reason includes the remedy.  Without Docker's client, names and values are not checked.  A
    process runs the client once, for its help.
    """
    name, value = split_option(option)
    if name in REFUSED:
        return f"leave it out: {REFUSED[name]}"
    if not option.startswith("--"):
        # The form -dit, for example, is three options.
        long_name = name if name in SHORT.values() else "NAME"
        return (
            f"write it in its long form, --{long_name}=VALUE, or --{long_name} if it has no value"
        )
    # Without Docker's client, this is empty, and the name cannot be checked.
    known_options = read_known_options()
    if known_options and name not in known_options:
        from strata.util.validation import suggest_name

        return f"`docker run` has no such option; {suggest_name(name, sorted(known_options))}"
    if known_options and known_options[name] and value is None:
        return f"it needs a value: write --{name}=VALUE in one text"
    return None


def _explain_option_conflict(option: str, options: Fields) -> str | None:
    """Return why an option conflicts with a key of config.yaml, or with Strata's labels or folders.

    The message includes the remedy.  Returns None if the option can be passed on.
    option: the option in its long form.
    options: the options of the container, as in config.yaml.
    """
    name, value = split_option(option)
    text = value or ""
    if name == "label" and text.startswith("strata."):
        return "labels that begin with strata. are Strata’s: choose another"
    network = find_network({"options": [option]}) or ""
    if network in NETWORKS_OF_KEY:
        example = "bridge, such as docker"
        if network == "host":
            example = "host, such as docker-hostnet"
        return f"config.yaml has a key for it: choose an environment with network: {example}"
    if network.startswith("container:"):
        return "a system shares no network with another container: name a network"
    key = "seccomp" if name == "security-opt" and text.startswith("seccomp") else name
    if key in options:
        return f"the key {key} sets the same: leave one of them out"
    target = _find_mount_target(name, text)
    if target and posixpath.commonpath([target, DATA]) in (target, DATA):
        return (
            f"Strata keeps the data of workloads in {DATA}: set the key data, or mount outside of "
            "that folder"
        )
    return None


def _find_mount_target(name: str, value: str) -> str | None:
    """Return the folder of the container on which an option mounts something.

    name: the option's long name, such as volume.
    value: its value; empty if it has none.
    Returns an absolute path without "..", or None if the option mounts nothing or names no folder.
    """
    if name == "volume":
        # The forms are TARGET, SOURCE:TARGET and SOURCE:TARGET:MODE.
        columns = value.split(":")
        target = columns[1] if len(columns) > 1 else columns[0]
    elif name == "tmpfs":
        target = value.partition(":")[0]
    elif name == "mount":
        match = re.search("(?:^|,)(?:target|dst|destination)=([^,]*)", value)
        target = match[1] if match else ""
    else:
        return None
    return posixpath.normpath(f"/{target.lstrip('/')}") if target else None
