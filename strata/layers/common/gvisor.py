"""gVisor: a runtime of Docker's that gives a container a kernel of its own, which is a program of the host."""

import functools
import re

from strata.base.process import capture
from strata.base.shapes import Fields
from strata.host.daemons import where
from strata.host.observe import NOT_AVAILABLE

PROGRAM = "runsc"
# Whose network stack carries the packets, as the paper calls it.
STACKS = {"sandbox": "the sandbox’s stack", "host": "the host’s stack"}
ABSENT = "gVisor (runsc) is not installed: `make setup` installs it where the distribution has it (Debian from 12 on)"

PROPERTIES: dict[str, Fields] = {
    "runtime": {"enum": ["runc", PROGRAM], "description": f"runc, or {PROGRAM} (gVisor)"},
    "stack": {"enum": list(STACKS), "description": "whose network stack: the sandbox's own, or the host's"},
}


def asked(options: Fields) -> bool:
    """Whether options of a container, as in the config or settled, ask for a sandbox."""
    return options.get("runtime") == PROGRAM


def check(options: Fields, below: str) -> list[tuple[str, str]]:
    """(key, what is wrong) of options that fit their schema."""
    if not asked(options):
        return [("stack", f"is of gVisor alone; set runtime: {PROGRAM} too")] if "stack" in options else []
    if below != "host":
        return [("runtime", "gVisor is not in a machine’s image; it runs on the host alone")]
    wrong = options["network"] == "host" and options.get("stack") != "host"
    return [("stack", "the sandbox’s own stack cannot be the host’s network; set stack: host")] if wrong else []


@functools.cache
def version() -> str | None:
    """The version of runsc; None where it is not installed."""
    if not where(PROGRAM):
        return None
    found = re.search(r"version (\S+)", capture([PROGRAM, "--version"], check=False).stdout)
    return found[1] if found else NOT_AVAILABLE


@functools.cache
def platform() -> str | None:
    """How runsc here catches system calls, by its own choice; None where it is not known."""
    done = capture([PROGRAM, "flags"], check=False) if where(PROGRAM) else None
    found = re.search(r'^\s*-platform \S+\n.*\(default "(\w+)"\)$', done.stdout + done.stderr, re.M) if done else None
    return found[1] if found else None


def settle(options: Fields) -> Fields:
    """The options as the plan holds them: with what runsc chooses, in one option that follows the runtime."""
    if not asked(options):
        return options
    rest = {key: value for key, value in options.items() if key != "stack"}
    # What it can do depends on the version: with another one its cells are measured again.
    sandbox = {"platform": platform(), "stack": options.get("stack", "sandbox"), "version": version()}
    return {**rest, "sandbox": sandbox}


def name(settled: Fields) -> str:
    """How the daemon calls the runtime (scripts/dockerd.sh makes it known)."""
    return f"strata-{PROGRAM}-{settled['sandbox']['stack']}"


def refusal(settled: Fields, runtimes: str) -> str | None:
    """Why this machine cannot provide the sandbox; runtimes: what the daemon says of those that it knows."""
    if version() is None:
        return ABSENT
    if runtimes and f'"{name(settled)}"' not in runtimes:
        return "the Docker daemon does not know gVisor’s runtimes: `scripts/dockerd.sh runtimes` adds them"
    return None


def labels(settled: Fields, network: str) -> Fields:
    """What the paper says of it: what isolates, and whose stack carries the packets."""
    sandbox = settled["sandbox"]
    title = f"gVisor sandbox in a Docker container, platform {sandbox['platform']}"
    return {"kind": "sandbox", "title": title, "network": f"{network}, {STACKS[sandbox['stack']]}"}


def seen(command_lines: list[str]) -> Fields:
    """``{program, version, platform, stack}``, the latter two as the process that is the sandbox was started.

    What is runsc's own choice, it does not repeat there.  command_lines: those of the container's control group.
    """
    found = {"program": PROGRAM, "version": version(), "platform": NOT_AVAILABLE, "stack": NOT_AVAILABLE}
    for line in command_lines:
        if line.startswith("runsc-sandbox"):
            how, stack = (re.search(rf" --{flag}=(\w+)", line) for flag in ("platform", "network"))
            found["platform"] = how[1] if how else platform() or NOT_AVAILABLE
            found["stack"] = stack[1] if stack else "sandbox"
    return found
