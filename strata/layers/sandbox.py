"""gVisor: a runtime of Docker's that gives a container a kernel of its own, which is a program of the host."""

from __future__ import annotations

import functools
import os
import re
import shutil

from strata.host.observe import NOT_AVAILABLE

PROGRAM = "runsc"
PLATFORMS = ("ptrace", "systrap", "kvm")
STACKS = ("sandbox", "host")

# By one of these, each version of runsc tells whether a network is the host's own.
MARKS = ("/proc/sys/net/core/dev_weight", "/proc/sys/net/core/rmem_default")
ABSENT = (
    "gVisor (runsc) is not installed: `make setup` installs it where the distribution has it, as Debian does from 12 on"
)

PROPERTIES: dict[str, dict] = {
    "runtime": {
        "type": "string",
        "pattern": "^[a-z0-9][a-z0-9._-]{0,79}$",
        "description": f"runc, {PROGRAM}, or the name of another that Docker's daemon knows",
    },
    "platform": {"enum": list(PLATFORMS), "description": "how gVisor catches system calls: ptrace, systrap or kvm"},
    "stack": {"enum": list(STACKS), "description": "whose network stack: the sandbox's own, or the host's"},
}


def asked(options: dict) -> bool:
    """Whether options of a container, as in the config or settled, ask for a sandbox."""
    return options.get("runtime") == PROGRAM


def check(options: dict) -> list[tuple[str, str]]:
    """(key, what is wrong) of options that fit their schema."""
    extra = [key for key in ("platform", "stack") if key in options]
    return [] if asked(options) else [(key, f"is of gVisor alone; set runtime: {PROGRAM} too") for key in extra]


@functools.cache
def flags() -> str:
    """What runsc says of its flags; nothing where it is not installed."""
    from strata.base.process import capture

    if not shutil.which(PROGRAM):
        return ""
    done = capture([PROGRAM, "flags"], check=False)
    return done.stdout + done.stderr


def platforms() -> tuple[list[str], str | None]:
    """The platforms that runsc here knows, and the one that it takes by itself."""
    found = re.search(r"^\s*-platform \S+\n\s*(.*)$", flags(), re.MULTILINE)
    said = found[1] if found else ""
    own = re.search(r'\(default "(\w+)"\)', said)
    return [name for name in PLATFORMS if re.search(rf"\b{name}\b", said)], own[1] if own else None


def settle(options: dict) -> dict:
    """The options as the plan holds them: what runsc would choose is chosen, in one option that follows the runtime."""
    if not asked(options):
        return options
    rest = {key: value for key, value in options.items() if key not in ("platform", "stack")}
    chosen = {"platform": options.get("platform") or platforms()[1], "stack": options.get("stack", "sandbox")}
    # What it can do depends on the version: with another one its cells are measured again.
    chosen["version"] = version() if flags() else None
    return {**rest, "sandbox": chosen}


def name(options: dict) -> str:
    """How the daemon calls the runtime for settled options (scripts/runtimes.py makes it known)."""
    return "-".join(["strata", PROGRAM, options["sandbox"]["platform"], options["sandbox"]["stack"]])


def refusal(options: dict) -> str | None:
    """Why this machine cannot provide the sandbox of settled options, but for what the daemon knows."""
    if not flags():
        return ABSENT
    known, platform = platforms()[0], options["sandbox"]["platform"]
    if platform not in known:
        return f"this gVisor has the platforms {', '.join(known)}, not {platform}: choose one, or install another runsc"
    if options["sandbox"]["stack"] == "sandbox" and (path := mistaken()):
        return (
            f"this gVisor takes {path} for a sign of the host’s own network, which this kernel shows in every one: "
            "set stack: host, or install a newer runsc"
        )
    if platform == "kvm":
        from strata.vm import acceleration

        found = acceleration.known()
        if found["accelerator"] != "kvm":
            return f"gVisor's platform kvm needs KVM: {found['accelerator_reason']}"
    return None


@functools.cache
def mistaken() -> str | None:
    """The file by which runsc tells the host's network from others, where this kernel shows it in every one.

    It refuses then to give a sandbox a stack of its own.
    """
    from strata.base.errors import UserError
    from strata.base.process import as_root, capture

    with open(shutil.which(PROGRAM) or os.devnull, "rb") as file:
        program = file.read()
    for path in MARKS:
        if path.encode() in program:
            try:
                elsewhere = capture(as_root(["unshare", "--net", "test", "-e", path]), check=False)
            except UserError:
                return None
            return path if elsewhere.returncode == 0 else None
    return None


def examine() -> tuple[bool | None, str]:
    """What `strata doctor` says of it: whether it is there, and words."""
    if not flags():
        return None, ABSENT
    own = "a network stack of its own" if mistaken() is None else "the host’s network stack alone on this kernel"
    return True, f"runsc {version()}, platforms {', '.join(platforms()[0])}, {own}"


def title(options: dict) -> str:
    """How the isolation is called."""
    return f"gVisor sandbox in a Docker container, platform {options['sandbox']['platform']}"


def network(options: dict) -> str:
    """Whose stack carries the packets, in words."""
    return {"sandbox": "the sandbox’s stack", "host": "the host’s stack"}[options["sandbox"]["stack"]]


def seen(command_lines: list[str]) -> dict:
    """``{platform, stack}`` as the process that is the sandbox was started, from lines of its control group.

    What is runsc's own choice, it does not repeat there.
    """
    line = next((line for line in command_lines if line.startswith("runsc-sandbox")), None)
    if line is None:
        return {"platform": NOT_AVAILABLE, "stack": NOT_AVAILABLE}
    platform, stack = (re.search(rf" --{flag}=(\w+)", line) for flag in ("platform", "network"))
    own = platforms()[1] or NOT_AVAILABLE
    return {"platform": platform[1] if platform else own, "stack": stack[1] if stack else "sandbox"}


@functools.cache
def version() -> str:
    """The version of runsc."""
    from strata.base.process import capture

    found = re.search(r"version (\S+)", capture([PROGRAM, "--version"], check=False).stdout)
    return found[1] if found else NOT_AVAILABLE
