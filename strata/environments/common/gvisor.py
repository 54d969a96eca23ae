"""Plan, label and observe gVisor's sandbox, in which a container's kernel is the program runsc."""

import functools
import re

from strata.host.daemons import find_program
from strata.host.observe import NOT_AVAILABLE
from strata.util.data_types import Fields
from strata.util.process import capture_output

# runsc's option that prints its version, and the one that prints its default platform (the way to
# catch system calls), each with the pattern that finds the value.
PRINT_VERSION = ("--version", r"version (\S+)")
PRINT_PLATFORM = ("flags", r'(?m)^\s*-platform \S+\n.*\(default "(\w+)"\)$')
# The network stack that carries a sandbox's packets → its name in the paper.
STACKS = {"sandbox": "the sandbox’s stack", "host": "the host’s stack"}
# runsc's option for a sandbox that opens no files itself, and the process that then opens them.
NO_DIRECTFS, GOFER = "--directfs=false", "gofer"


@functools.cache
def read_runsc_fact(option: str, pattern: str, program: str = "runsc") -> str | None:
    """Run runsc with an option, and return the part of its output that a pattern finds.

    option: the only argument for runsc.
    pattern: a regular expression whose first group is returned; :data:`PRINT_VERSION` and
    :data:`PRINT_PLATFORM` are pairs of both arguments.
    program: the name or path of runsc.
    Returns None if runsc is not installed or the pattern is not found.  A process runs each program
    only once with each option.
    """
    if not find_program(program):
        return None
    # check=False: if runsc fails, the pattern is not found.
    result = capture_output([program, option], check=False)
    match = re.search(pattern, result.stdout + result.stderr)
    return match[1] if match else None


def is_gvisor_requested(options: Fields) -> bool:
    """Return whether a container runs in a gVisor sandbox.

    options: the options of the container, as in config.yaml or resolved.
    """
    return options.get("runtime") == "runsc"


def find_runsc(resolved: Fields) -> str:
    """Return the path of the runsc that runs a container, or "runsc" for the one found in PATH.

    resolved: the options of the container; their key `program` may name another runsc.
    """
    return str(resolved["program"]["path"]) if "program" in resolved else "runsc"


def plan_sandbox(options: Fields) -> Fields:
    """Return a gVisor container's sandbox for the plan: ``{platform, version, stack}``.

    The key ``files`` is added if the gofer opens files.  A value that runsc does not print is None.
    options: the options of the container; ``program`` is resolved.
    :func:`find_sandbox_mismatch` compares these keys with those of :func:`observe_sandbox`, and
    :func:`restore_gvisor_options` is the inverse function: change all of them together.
    """
    runsc = find_runsc(options)
    sandbox = {
        "platform": read_runsc_fact(*PRINT_PLATFORM, runsc),
        "version": read_runsc_fact(*PRINT_VERSION, runsc),
        "stack": options.get("stack", "sandbox"),
    }
    if options.get("directfs") is False:
        sandbox["files"] = GOFER
    return sandbox


def restore_gvisor_options(sandbox: Fields) -> Fields:
    """Return the options of config.yaml from which :func:`plan_sandbox` makes a sandbox.

    sandbox: the result of :func:`plan_sandbox`.
    """
    options: Fields = {"stack": sandbox["stack"]}
    if "files" in sandbox:
        options["directfs"] = False
    return options


def list_runsc_arguments(sandbox: Fields) -> list[str]:
    """Return the arguments for runsc that Docker's runtime must have for a planned sandbox.

    sandbox: the result of :func:`plan_sandbox`.  write_gvisor_runtimes in scripts/dockerd.sh must
    give the runtimes the same arguments.
    """
    arguments = [f"--network={sandbox['stack']}"]
    if "files" in sandbox:
        arguments.append(NO_DIRECTFS)
    return arguments


def find_gvisor_mistakes(options: Fields, below: str) -> list[tuple[str, str]]:
    """Return (option, message) for options that gVisor excludes or that need gVisor.

    options: the options of the container, as in config.yaml.
    below: the name of the layer below the container.
    """
    if not is_gvisor_requested(options):
        keys = [key for key in ("stack", "directfs") if key in options]
        return [(key, "is an option of gVisor; set runtime: runsc too") for key in keys]
    if below != "host":
        return [("runtime", "gVisor is not in a machine’s image; it runs only on the host")]
    if options.get("network") == "host" and options.get("stack") != "host":
        mistake = "the sandbox’s own stack cannot be the host’s network; set stack: host"
        return [("stack", mistake)]
    return []


def add_sandbox_labels(labels: Fields, sandbox: Fields, container: str) -> Fields:
    """Return the names that the paper uses for a sandbox: ``{kind, title, network, data}``.

    labels: ``{network, data}`` of the container in the sandbox.
    sandbox: the result of :func:`plan_sandbox`.
    container: the container's title.
    """
    sandbox_labels = {
        **labels,
        "kind": "sandbox",
        "title": f"gVisor sandbox in a {container}, platform {sandbox['platform']}",
        "network": f"{labels['network']}, {STACKS[sandbox['stack']]}",
    }
    if "files" in sandbox:
        sandbox_labels["data"] = f"{labels['data']}, opened by gVisor’s gofer"
    return sandbox_labels


def observe_sandbox(command_lines: list[str], runsc: str) -> Fields:
    """Return ``{program, version, platform, stack}`` of a running sandbox.

    The key ``files`` is added if the gofer opens files for the sandbox.
    command_lines: the command lines of the processes in the container's control group.
    runsc: the name or path of the program.
    If the sandbox's command line names no platform or stack, runsc uses its default.  A fact that
    cannot be observed is "not available".
    The records hold the facts as `docker.sandbox`; analysis/read.R and markdown_tables.R read them.
    """
    facts = {
        "program": "runsc",
        "version": read_runsc_fact(*PRINT_VERSION, runsc),
        "platform": NOT_AVAILABLE,
        "stack": NOT_AVAILABLE,
    }
    for line in command_lines:
        if not line.startswith("runsc-sandbox"):
            continue
        if platform := re.search(r" --platform=(\w+)", line):
            facts["platform"] = platform[1]
        else:
            facts["platform"] = read_runsc_fact(*PRINT_PLATFORM, runsc) or NOT_AVAILABLE
        stack = re.search(r" --network=(\w+)", line)
        # Without the argument, runsc uses its own stack.
        facts["stack"] = stack[1] if stack else "sandbox"
        if NO_DIRECTFS in line.split():
            facts["files"] = GOFER
    return facts


def find_sandbox_mismatch(planned: Fields, observed: Fields) -> str | None:
    """Return, as a clause, the first fact of a sandbox that is not as planned; None if all are.

    planned: the result of :func:`plan_sandbox`.
    observed: the result of :func:`observe_sandbox`.
    A fact that is None in the plan is not compared; one that cannot be observed is a mismatch.
    The clause is, for example, "its platform is ptrace, and not systrap".
    """
    for key, planned_value in planned.items():
        observed_value = observed.get(key, NOT_AVAILABLE)
        if planned_value and observed_value != planned_value:
            return f"its {key} is {observed_value}, and not {planned_value}"
    return None
