"""The program ``strata``, which is ``python3 -m strata`` in every checkout."""

import contextlib
import gc
import io
import os
import re
import sys


def _measure_cell(arguments: list[str]) -> int:
    """Measure the cell that three arguments name, and return the exit status.

    arguments: environment, workload and repetition.
    The rule `cell` starts Python without installed packages (-S): no module that a cell imports may
    import one.  Garbage collection is switched off.
    Raises UserError if the arguments do not name a planned cell, and CellFailed if it fails.
    """
    # A cell leaves little garbage, and collecting it costs more time than it frees memory.
    gc.disable()
    from strata.measure import block
    from strata.util.errors import UserError

    if len(arguments) != 3 or not re.fullmatch("[0-9]{1,6}", arguments[2]):
        raise UserError(
            "a cell is named by an environment, a workload and a repetition from 1: "
            "type `python3 -m strata cell ENVIRONMENT WORKLOAD REPETITION`"
        )
    block.measure_cell(arguments[0], arguments[1], int(arguments[2]))
    return 0


def _run_command(arguments: list[str]) -> int:
    """Run a command other than `cell`, and return its exit status.

    arguments: the command line after the program's name.
    If this Python lacks a package, the process is replaced by the Python of .venv, which runs the
    same command.
    Raises MachineError if a package or a part of Strata is missing.
    """
    from strata.util import paths
    from strata.util.errors import MachineError

    if not os.path.exists(os.path.join(paths.PROJECT, "schemas")):
        raise MachineError(
            f"{paths.PROJECT} lacks a part of Strata: "
            "install a checkout by `make setup` or `pip install -e .`"
        )
    try:
        from strata import command_line
        from strata.util import signals

        # A signal raises an exception, so that a command removes its temporary files.
        signals.raise_on_signals()
        return command_line.main(arguments)
    except ModuleNotFoundError as missing:
        if _is_project_module(missing):
            raise
        folder = os.path.join(paths.PROJECT, ".venv")
        python = os.path.join(folder, "bin/python")
        # If this is already the Python of .venv, it would replace itself for ever.
        if not os.path.exists(python) or os.path.samefile(sys.prefix, folder):
            raise MachineError(
                f"the Python package {missing.name} is not installed: `make setup` installs it"
            ) from None
        sys.stdout.flush()
        os.execv(python, [python, "-m", "strata", *arguments])


def _is_project_module(missing: ImportError) -> bool:
    """Return whether the module that cannot be imported belongs to the project.

    missing: the error of the import.  Any other module belongs to a package that is not installed.
    """
    return (missing.name or "").partition(".")[0] in ("strata", "kit")


def main(arguments: list[str]) -> int:
    """Run a command, print the message of an error, and return the exit status.

    arguments: the command line after the program's name.
    The status is 0 for success, 1 for a user's mistake, and 2 for an invalid command line, a fault
    of the machine, or a bug, whose traceback is printed.  It is 130 or 143 after a signal, and 141
    if the reader of the output has closed it.
    Sets the file mode creation mask (umask) of the process.
    """
    from strata.util import paths, progress, run, signals
    from strata.util.errors import MachineError, UserError

    # Other users can read results, whatever the caller's mask is.
    os.umask(0o022)
    run.remove_steering_variables()
    signals.restore_child_signal()
    try:
        # `cell` runs hundreds of times, and does not import modules of the other commands.
        if arguments[:1] == ["cell"]:
            return _measure_cell(arguments[1:])
        return _run_command(arguments)
    except UserError as error:
        progress.print_error(error)
        return 2 if isinstance(error, MachineError) else 1
    except ImportError as missing:
        if not _is_project_module(missing):
            raise
        state = f"{paths.PROJECT} is incomplete or changed: `git status` shows how"
        progress.print_message(f"strata: {missing}; {state}")
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
    except signals.Interrupted as signal_name:
        return 130 if str(signal_name) == "SIGINT" else 143
    except Exception as error:
        if isinstance(error, OSError):
            from strata.util import access

            progress.print_message(f"strata: {access.explain_os_error(error)}")
        elif isinstance(error, MemoryError):
            progress.print_message("strata: this machine has not enough free memory")
        else:
            import traceback

            progress.print_message("".join(traceback.format_exception(error)).rstrip())
        return 2


def run() -> None:
    """Run the command line of this process, and end the process with the command's status.

    After `cell` the process ends without the interpreter's clean-up, which would take time.
    """
    for stream in (sys.stdout, sys.stderr):
        # UTF-8 in every locale.  A stream that the caller closed is None.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    status = main(sys.argv[1:])
    if sys.argv[1:2] == ["cell"]:
        # The interpreter's own end would cost a cell a tenth of its CPU time.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, AttributeError):
                stream.flush()
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    run()
