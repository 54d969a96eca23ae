"""An agent's session on many small files: the time of each step, and of all."""

from kit.checks import number, require, require_close, require_equal, require_parameters
from kit.logs import Object, Value, read, value

STEPS = ["unpack", "stat", "read", "run", "delete"]


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the time of each `step` of the last session (s), and that of the `whole`.

    session.py prints the object of the archive, and then those of a warm-up and of a session.
    """
    log = read(lines, " archive( session( step){5}){2}")
    [archive], steps = log.objects["archive"], log.objects["step"]
    require_parameters(archive, parameters, "files")
    require_equal("the steps", [step["step"] for step in steps], 2 * STEPS)
    packages = -(-parameters["files"] // 50)
    listed = [f"{packages}", "./package-0000", f"./package-{packages - 1:04}", f"{packages}"]
    printed = ["Linux", "tree", "a", "42", *listed, "./package-0000", "package", ""]
    seconds: dict[str, float] = {}
    for index, session in enumerate(log.objects["session"]):
        require("tar" in session["tool"], "this is not a log of a session")
        require_equal("scripts", session["session"], parameters["scripts"])
        require_parameters(session, archive, "files", "bytes")
        require_equal("the SHA-256 of what was read", session["sha256"], archive["sha256"])
        require_equal("what the script printed", session["printed"], ["\n".join(printed)])
        require_equal("whether files are left", session["left"], False)
        own_steps = steps[5 * index : 5 * index + 5]
        seconds = {step["step"]: number(step, "seconds") for step in own_steps}
        require_close("seconds", number(session, "seconds"), sum(seconds.values()))
    seconds["whole"] = sum(seconds.values())
    return [value("time", "s", time, step=step) for step, time in seconds.items()]
