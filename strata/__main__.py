"""The command ``strata``, which in a checkout is ``python3 -m strata`` too."""

import contextlib
import gc
import io
import os
import re
import sys


def _cell(words: list[str]) -> int:
    # A cell makes little that could be collected, and looking for it costs more than it frees.
    gc.disable()
    from strata.measure import block
    from strata.util.errors import UserError

    if len(words) != 3 or not re.fullmatch("[0-9]{1,6}", words[2]):
        raise UserError(
            "a cell is named by an environment, a workload and a repetition from 1: "
            "type `python3 -m strata cell ENVIRONMENT WORKLOAD REPETITION`"
        )
    block.measure(words[0], words[1], int(words[2]))
    return 0


def _command(words: list[str]) -> int:
    # Where this Python lacks a package, that of .venv takes over.
    from strata.util import paths
    from strata.util.errors import MachineError

    if not os.path.exists(os.path.join(paths.PROJECT, "schemas")):
        why = f"{paths.PROJECT} lacks a part of Strata: install a checkout by `make setup` or `pip install -e .`"
        raise MachineError(why)
    try:
        from strata import commands
        from strata.util import signals

        # What a command made for itself goes with it, whatever ends it.
        signals.heed()
        return commands.main(words)
    except ModuleNotFoundError as missing:
        if _is_own(missing):
            raise
        own = os.path.join(paths.PROJECT, ".venv/bin/python")
        if not os.path.exists(own) or os.path.samefile(
            sys.prefix, os.path.join(paths.PROJECT, ".venv")
        ):
            why = f"the Python package {missing.name} is not installed: `make setup` installs it"
            raise MachineError(why) from None
        sys.stdout.flush()
        os.execv(own, [own, "-m", "strata", *words])


def _is_own(missing: ImportError) -> bool:
    """Whether what cannot be imported is part of the project itself."""
    return (missing.name or "").partition(".")[0] in ("strata", "kit")


def main(words: list[str]) -> int:
    """Run a command; its status.

    A user's mistake gives a message and status 1; 2 where it could not be done for another reason: the command line,
    trouble of the machine, or a fault of ours, which gives a traceback.
    """
    from strata.util import paths, progress, run, signals
    from strata.util.errors import MachineError, UserError

    # Nothing that is made is closed to others because its maker's files are.
    os.umask(0o022)
    run.forget()
    signals.hear_children()
    try:
        # It starts once for every cell, and skips what the others need to import.
        return _cell(words[1:]) if words[:1] == ["cell"] else _command(words)
    except UserError as error:
        progress.complain(error)
        return 2 if isinstance(error, MachineError) else 1
    except ImportError as missing:
        if not _is_own(missing):
            raise
        whole = f"{paths.PROJECT} is incomplete or changed: `git status` shows how"
        progress.shown(f"strata: {missing}; {whole}")
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
    except signals.Interrupted as asked:
        return 130 if str(asked) == "SIGINT" else 143
    except Exception as error:
        if isinstance(error, OSError):
            from strata.util import access

            progress.shown(f"strata: {access.explain(error)}")
        elif isinstance(error, MemoryError):
            progress.shown("strata: this machine has not enough free memory")
        else:
            import traceback

            progress.shown("".join(traceback.format_exception(error)).rstrip())
        return 2


def run() -> None:
    """Run the command line of this process, and end it with the command's status."""
    for stream in (sys.stdout, sys.stderr):
        # Whatever the locale.  One that was closed is None.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    status = main(sys.argv[1:])
    if sys.argv[1:2] == ["cell"]:
        # As it is: to take the interpreter apart would cost a cell a tenth of its CPU time.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, AttributeError):
                stream.flush()
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    run()
