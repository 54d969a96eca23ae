"""gVisor: a runtime of Docker's that gives a container a kernel of its own, which is a program of the host."""

from __future__ import annotations

import functools
import re

from strata.base.process import capture
from strata.base.shapes import Fields
from strata.host.daemons import where
from strata.host.observe import NOT_AVAILABLE

PROGRAM = "runsc"
PLATFORMS = ("ptrace", "systrap", "kvm")
# Whose network stack carries the packets, as the paper calls it.
STACKS = {"sandbox": "the sandbox’s stack", "host": "the host’s stack"}
ABSENT = "gVisor (runsc) is not installed: `make setup` installs it where the distribution has it (Debian from 12 on)"

PROPERTIES: dict[str, Fields] = {
    "runtime": {"enum": ["runc", PROGRAM], "description": f"runc, or {PROGRAM} (gVisor)"},
    "platform": {"enum": list(PLATFORMS), "description": "how gVisor catches system calls: ptrace, systrap or kvm"},
    "stack": {"enum": list(STACKS), "description": "whose network stack: the sandbox's own, or the host's"},
}


def asked(options: Fields) -> bool:
    """Whether options of a container, as in the config or settled, ask for a sandbox."""
    return options.get("runtime") == PROGRAM


def check(options: Fields) -> list[tuple[str, str]]:
    """(key, what is wrong) of options that fit their schema."""
    if asked(options):
        wrong = options["network"] == "host" and options.get("stack") != "host"
        return [("stack", "the sandbox’s own stack cannot be the host’s network; set stack: host")] if wrong else []
    extra = [key for key in ("platform", "stack") if key in options]
    return [(key, f"is of gVisor alone; set runtime: {PROGRAM} too") for key in extra]


@functools.cache
def flags() -> str:
    """What runsc prints of its flags; nothing where it is not installed."""
    if not where(PROGRAM):
        return ""
    done = capture([PROGRAM, "flags"], check=False)
    return done.stdout + done.stderr


@functools.cache
def version() -> str:
    """The version of runsc."""
    found = re.search(r"version (\S+)", capture([PROGRAM, "--version"], check=False).stdout)
    return found[1] if found else NOT_AVAILABLE


def platforms() -> tuple[list[str], str | None]:
    """The platforms that runsc here knows, and the one that it takes by itself."""
    found = re.search(r"^\s*-platform \S+\n\s*(.*)$", flags(), re.MULTILINE)
    said = found[1] if found else ""
    own = re.search(r'\(default "(\w+)"\)', said)
    return [name for name in PLATFORMS if re.search(rf"\b{name}\b", said)], own[1] if own else None


def settle(options: Fields) -> Fields:
    """The options as the plan holds them: what runsc would choose is chosen, in one option that follows the runtime."""
    if not asked(options):
        return options
    rest = {key: value for key, value in options.items() if key not in ("platform", "stack")}
    chosen = {"platform": options.get("platform") or platforms()[1], "stack": options.get("stack", "sandbox")}
    # What it can do depends on the version: with another one its cells are measured again.
    chosen["version"] = version() if flags() else None
    return {**rest, "sandbox": chosen}


def name(settled: Fields) -> str:
    """How the daemon calls the runtime (scripts/dockerd.sh makes it known)."""
    return f"strata-{PROGRAM}-{settled['sandbox']['platform']}-{settled['sandbox']['stack']}"


def refusal(settled: Fields, runtimes: str) -> str | None:
    """Why this machine cannot provide the sandbox; runtimes: what the daemon says of those that it knows."""
    if not flags():
        return ABSENT
    known, platform = platforms()[0], settled["sandbox"]["platform"]
    if platform not in known:
        return f"this gVisor has the platforms {', '.join(known)}, not {platform}: choose one, or install another runsc"
    if platform == "kvm":
        from strata.vm import acceleration

        found = acceleration.known()
        if found["accelerator"] != "kvm":
            return f"gVisor's platform kvm needs KVM: {found['accelerator_reason']}"
    if runtimes and f'"{name(settled)}"' not in runtimes:
        return "the Docker daemon does not know gVisor’s runtimes: `scripts/dockerd.sh runtimes` adds them"
    return None


def examine() -> tuple[bool | None, str]:
    """What `make doctor` prints of it: whether it is available, and text."""
    return (True, f"runsc {version()}, platforms {', '.join(platforms()[0])}") if flags() else (None, ABSENT)


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
            platform, stack = (re.search(rf" --{flag}=(\w+)", line) for flag in ("platform", "network"))
            found["platform"] = platform[1] if platform else platforms()[1] or NOT_AVAILABLE
            found["stack"] = stack[1] if stack else "sandbox"
    return found
