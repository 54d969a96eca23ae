"""Rules by which this host lets packets through to a system, since Docker's let them through to its own alone."""

from strata.base.process import as_root, capture
from strata.host.context import Context
from strata.host.daemons import where

# Arguments: iptables, and the id of a system, by which its rules are marked.
REMOVE = """
"$1" --wait --list-rules FORWARD | sed -n "s/^-A \\(.* --comment $2 .*\\)/-D \\1/p" |
    xargs --no-run-if-empty -L 1 "$1" --wait
"""


def let_through(context: Context, *matches: list[str]) -> None:
    """Let through what fits one of the matches; the rules are noted first, and go with the system."""
    iptables = where("iptables")
    if iptables is None:
        return
    remove = ["sh", "-c", REMOVE, "strata", iptables, context.id]
    context.note({"kind": "rule", "id": context.id, "root": True, "find": ["true"], "remove": [remove]})
    mark = ["--match", "comment", "--comment", context.id, "--jump", "ACCEPT"]
    for match in matches:
        capture(as_root([iptables, "--wait", "--insert", "FORWARD", *match, *mark]))
