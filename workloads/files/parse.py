"""An agent's session on many small files: the time of each step, and of all."""

import math

from kit.checks import get_number, require, require_close, require_equal, require_parameters
from kit.logs import Object, Value, build_value, read_objects

STEPS = ["unpack", "stat", "read", "run", "delete"]
# How many files session.py puts into a package: five parts of ten.
FILES_OF_PACKAGE = 50


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the time of each step of the measured session, and of the whole session, in seconds.

    The factor `step` names the step, and is "whole" for the session.
    session.py prints an object of the archive, then objects of the warm-up's session and its steps,
    and of the measured session and its steps.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    log = read_objects(lines, " archive( session( step){5}){2}")
    [archive], steps = log.objects["archive"], log.objects["step"]
    require_parameters(archive, parameters, "files")
    require_equal("the steps", [step["step"] for step in steps], 2 * STEPS)
    packages = math.ceil(parameters["files"] / FILES_OF_PACKAGE)
    # The lines that SCRIPT of session.py must print: those of uname, basename, dirname, expr, wc,
    # head, tail, grep, sed and cut.
    package_lines = [f"{packages}", "./package-0000", f"./package-{packages - 1:04}", f"{packages}"]
    script_lines = ["Linux", "tree", "a", "42", *package_lines, "./package-0000", "package", ""]
    script_output = "\n".join(script_lines)
    seconds_of_step: dict[str, float] = {}
    for index, session in enumerate(log.objects["session"]):
        require("tar" in session["tool"], "this is not a log of a session")
        require_equal("scripts", session["session"], parameters["scripts"])
        require_parameters(session, archive, "files", "bytes")
        require_equal("the SHA-256 of what was read", session["sha256"], archive["sha256"])
        # The list has the distinct outputs of all scripts.
        require_equal("what the script printed", session["printed"], [script_output])
        require_equal("whether files are left", session["left"], False)
        start = len(STEPS) * index
        steps_of_session = steps[start : start + len(STEPS)]
        seconds_of_step = {step["step"]: get_number(step, "seconds") for step in steps_of_session}
        require_close("seconds", get_number(session, "seconds"), sum(seconds_of_step.values()))
    # The last session is the measured one.
    seconds_of_step["whole"] = sum(seconds_of_step.values())
    return [
        build_value("time", "s", seconds, step=step) for step, seconds in seconds_of_step.items()
    ]
