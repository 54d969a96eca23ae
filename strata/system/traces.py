"""Traces: of each thing that was made, how it is found and removed, without the code that made it.

A layer or a client notes one with :attr:`strata.host.context.Context.note` before it makes something of the host's.
``{kind, id, find, remove}`` says it by commands: `find` prints something while the thing is there, those of `remove`
remove it; with ``root: true`` all have the rights of root, and ``start`` names the project's script that starts the
daemon which `find` asks.  Kinds of the host's own and of machines are removed by functions, and need but kind and id.
"""

import os

from strata.base import places
from strata.base.errors import UserError
from strata.base.process import as_root, capture
from strata.base.progress import say
from strata.base.shapes import Fields


def remove(trace: Fields) -> None:
    """Remove what a trace is of, if it is there; it may be called twice.  Raises UserError."""
    kind = trace["kind"]
    if "remove" in trace:
        _by_commands(trace)
    elif kind == "folder":
        from strata.base.files import clear_tree

        clear_tree(trace["id"])
    elif kind == "group":
        from strata.host import cgroups

        cgroups.remove(trace["id"])
    elif kind == "frozen":
        # What is frozen does not end, whoever asks it to.
        from strata.host import cgroups

        cgroups.freeze(cgroups.freezers(trace["id"]), False)
    elif kind == "machine":
        from strata.vm import machine

        machine.remove(trace["id"])
    elif kind == "namespace":
        from strata.client import namespace

        namespace.remove()
    else:
        say(
            "testbed",
            f"{kind} {trace['id']}: another version made it; `python3 -m strata clean` looks for what is ours",
        )


def _by_commands(trace: Fields) -> None:
    def run(argv: list[str], check: bool = True) -> tuple[int, str]:
        done = capture(as_root(argv) if trace.get("root") else argv, check=check)
        return done.returncode, done.stdout.strip()

    # It is mostly there, and removing what is not there does no harm: then nothing has to be asked.
    codes = [run(argv, check=False)[0] for argv in trace["remove"]]
    if not any(codes):
        return
    code, found = run(trace["find"], check=False)
    if code and trace.get("start"):
        capture([os.path.join(places.PROJECT, trace["start"])], timeout=90)
    if code:
        _, found = run(trace["find"])
    if not found:
        return
    failed = any(run(argv, check=False)[0] for argv in trace["remove"])
    if failed and run(trace["find"])[1]:
        raise UserError(f"{trace['kind']} {trace['id']} could not be removed")
