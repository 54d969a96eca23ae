"""A container that waits for commands: its first program, what else runs in it, and files in and out by commands."""

from __future__ import annotations

# What it does that waits.
REST = ["sleep", "infinity"]
# Prints the command line of every process in a container, for :func:`strata.host.cgroups.command_lines`.
LOOK = ["sh", "-c", "tail -v -n +1 /proc/[0-9]*/cmdline 2>/dev/null; :"]
# Put a file into a container, with its rights, and get one, by commands in it.
# Arguments: the file of the layer below, the file in it, and the words that run a command in it with standard input.
PUT = """
    mode=$(stat -c %a "$1") here=$1 there=$2
    shift 2
    exec "$@" sh -euc 'umask 077; cat >"$1"; chmod "$2" "$1"' sh "$there" "$mode" <"$here"
"""
GET = 'here=$1 there=$2; shift 2; exec "$@" cat "$there" >"$here"'


def left(lines: list[str], waiting: int = 1) -> list[str]:
    """Of the command lines in containers those that are none of their own; `waiting`: how many containers wait."""
    rest = " ".join(REST)
    # The other is that of the program that takes in orphans.
    found = [line for line in lines if not line.endswith(f" -- {rest}")]
    for _ in range(min(found.count(rest), waiting)):
        found.remove(rest)
    return found


def seen(lines: list[str]) -> list[str]:
    """Like :func:`left`, of what :data:`LOOK` saw in one container, itself included."""
    return left([line for line in lines if "/cmdline" not in line])
