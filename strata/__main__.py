"""The command ``python -m strata``."""

import contextlib
import gc
import os
import re
import sys


def _cell(words: list[str]) -> None:
    # A cell makes little that could be collected, and looking for it costs more than it frees.
    gc.disable()
    from strata.base.errors import UserError
    from strata.cell import measure

    if len(words) != 3 or not re.fullmatch("[0-9]{1,6}", words[2]):
        raise UserError("usage: python -m strata cell ENVIRONMENT WORKLOAD REPETITION")
    measure.measure(words[0], words[1], int(words[2]))


def _keeper(words: list[str]) -> None:
    from strata.system import keeper

    keeper.keep({"pid": int(words[0]), "start": words[1]})


def _make(words: list[str]) -> int:
    from strata.base.errors import UserError
    from strata.results import made

    if len(words) < 4 or words[2] != "--":
        raise UserError("usage: python -m strata make PRODUCT NUMBER -- COMMAND")
    return made.make(words[0], int(words[1]), words[3:])


def main(words: list[str]) -> int:
    """Run a command; a user's mistake gives a message and status 1 (2 for the command line itself)."""
    # These two start once for every cell or run: they skip what the others need to import.
    quick = {"cell": _cell, "keeper": _keeper}
    from strata.base.errors import UserError
    from strata.base.signals import Interrupted

    try:
        if words and words[0] in quick:
            quick[words[0]](words[1:])
            return 0
        if words and words[0] == "make":
            return _make(words[1:])
        from strata import commands

        return commands.main(words)
    except UserError as error:
        print(f"strata: {error}" if "\n" not in str(error) else str(error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
    except Interrupted:
        return 143


def leave(code: int) -> None:
    """End a cell's process as it is: to take the interpreter apart would cost a cell a tenth of its CPU time."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    status = main(sys.argv[1:])
    if sys.argv[1:2] == ["cell"]:
        leave(status)
    sys.exit(status)
