"""Docker containers of the image, run by runc or by gVisor (runsc).

gVisor runs a container in a sandbox, whose kernel is a program of the host.
"""

import functools
import hashlib
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from strata.environments.common import engine, limits, passed_options
from strata.host import cgroups, daemons, firewall
from strata.host.daemons import find_program
from strata.host.observe import NOT_AVAILABLE
from strata.util.data_types import Fields, HostFacts
from strata.util.errors import UserError
from strata.util.files import read_json, write_json
from strata.util.process import DOCKER_GROUP, ROOT_NEEDED, capture, has_root
from strata.util.progress import one_off

# runsc's option that prints its version, and the one that prints its default platform (the way to
# catch system calls), each with the pattern that finds the value.
VERSION, PLATFORM = (
    ("--version", r"version (\S+)"),
    ("flags", r'(?m)^\s*-platform \S+\n.*\(default "(\w+)"\)$'),
)
# The network stack that carries a sandbox's packets, as the paper calls it.
STACKS = {"sandbox": "the sandbox’s stack", "host": "the host’s stack"}
# How runsc is told that a sandbox opens no files itself, and by whom they are opened then.
NO_DIRECTFS, GOFER = "--directfs=false", "gofer"
# Docker's storage drivers that use the kernel's overlay file system.
OVERLAYS = ("overlay", "overlay2", "overlayfs")
# The kernel's name of a kind of processor → Docker's.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
BRIDGE = "com.docker.network.bridge.name"
# The socket of systemd's journal.
JOURNAL = "/run/systemd/journal/socket"
MTU = "com.docker.network.driver.mtu"
# The text that ends a label for each key that `unusual` returns; {} is the value.
UNUSUAL = {
    "ports": "user-land proxy",
    "users": "users remapped",
    "seccomp": "seccomp {}",
    "storage": "{} storage",
}


@functools.cache
def runsc_fact(option: str, pattern: str, program: str = "runsc") -> str | None:
    """Return the part of runsc's output that a pattern finds, such as its version.

    option: the only argument for runsc.  pattern: a regular expression whose first group is
    returned; :data:`VERSION` and :data:`PLATFORM` are such pairs.
    program: the name or path of runsc.
    None if runsc is not installed or the pattern is not found.
    """
    done = capture([program, option], check=False) if find_program(program) else None
    match = re.search(pattern, done.stdout + done.stderr) if done else None
    return match[1] if match else None


@functools.cache
def _daemon_info(*place: str | None) -> Fields:
    """Return the output of ``docker info``; empty if no daemon answers within 20 seconds.

    place: the values of the environment variables that select the daemon; they only distinguish the
    cached results.
    """
    argv = ["docker", "info", "--format", "{{json .}}"]
    try:
        info = json.loads(capture(argv, 20, check=False).stdout)
    except (UserError, ValueError):
        return {}
    return info if isinstance(info, dict) and info.get("ServerVersion") else {}


def security_options(info: Fields) -> dict[str, str]:
    """Return the mechanisms that confine the daemon's containers: name → profile.

    info: the output of ``docker info``.  The profile is empty for a mechanism without one.
    """
    profiles = {}
    for option in info.get("SecurityOptions") or ():
        fields = dict(field.partition("=")[::2] for field in option.split(","))
        profiles[fields.get("name", option)] = fields.get("profile", "")
    return profiles


@functools.cache
def _inspect_network(network: str) -> Fields:
    """Return what the host's daemon says of one of its networks; empty if it has none such."""
    printed = capture(["docker", "network", "inspect", network], check=False).stdout
    networks: list[Fields] = json.loads(printed or "[]")
    return networks[0] if networks else {}


def bridge_options(network: str = "bridge") -> Fields:
    """Return the options of a bridge network of the host's daemon, by default of its usual one.

    They hold the name of the bridge (:data:`BRIDGE`).  Empty if there is no such network, or if it
    has no bridge.
    """
    described = _inspect_network(network)
    if described.get("Driver") != "bridge":
        return {}
    return {BRIDGE: f"br-{described['Id'][:12]}", **(described["Options"] or {})}


def _has_nat(network: str = "bridge") -> bool | None:
    """Return whether the kernel translates addresses for a bridge network of the daemon.

    None if there is no such bridge, or if the kernel's rules cannot be read.
    """
    options = bridge_options(network)
    return (
        firewall.read_packet_filter().serves_bridge(options[BRIDGE]) if BRIDGE in options else None
    )


def unusual(options: Fields, info: Fields, rules: bool = True) -> dict[str, str]:
    """Return how the host's daemon makes a container differ from what its options' label says.

    options: the container's, resolved.  info: the output of ``docker info``.
    rules: whether to read the kernel's packet filter, too.
    The keys are those of :data:`UNUSUAL`.  Keys and values enter the plan as ``daemon``: if they
    change, cells are measured again.
    """
    differences = {}
    bridge = options["network"] != "host" and options.get("port") != "proxy"
    if rules and bridge and _has_nat(options["network"]) is False:
        differences["ports"] = "docker-proxy"
    profiles = security_options(info)
    if "userns" in profiles:
        differences["users"] = "remapped"
    seccomp = profiles.get("seccomp", "none")
    if seccomp not in ("default", "builtin") and options.get("seccomp") != "unconfined":
        known = seccomp in ("none", "unconfined")
        differences["seccomp"] = seccomp if known else "profile of its own"
    driver = str(info.get("Driver"))
    if options["data"] == "layered" and driver not in OVERLAYS:
        differences["storage"] = re.sub(r"[^\w-]", "", driver)
    return differences


def label_ending(differences: Fields) -> str:
    """Return the text that ends a label, for the differences that :func:`unusual` returned."""
    return ", ".join(UNUSUAL[key].format(value) for key, value in differences.items())


def daemon_facts(info: Fields) -> Fields:
    """Return the daemon's facts for the records, from the output of ``docker info``.

    A value that the daemon does not give is None.  Readers of the records rely on the keys.
    """
    profiles = security_options(info)
    users = "remapped" if "userns" in profiles else "the host’s"
    if "rootless" in profiles:
        users = "rootless"
    confined = [f"{name} ({profile})" if profile else name for name, profile in profiles.items()]
    status = dict(pair for pair in info.get("DriverStatus") or () if len(pair) == 2)
    return {
        "engine": info.get("ServerVersion"),
        "containerd": engine.value_at(info, "ContainerdCommit", "ID"),
        "runc": engine.value_at(info, "RuncCommit", "ID"),
        "storage_driver": info.get("Driver"),
        "backing_filesystem": status.get("Backing Filesystem"),
        "log_driver": info.get("LoggingDriver"),
        "cgroup_driver": info.get("CgroupDriver"),
        "cgroup_version": info.get("CgroupVersion"),
        "users": users,
        "security": ", ".join(sorted(confined)) or "none",
    }


@functools.cache
def inspect_image(reference: str) -> Fields:
    """Return what ``docker image inspect`` says of an image, and its `reference`.

    reference: the name or ID of an image that the host's daemon has.  None is ever fetched.
    Raises UserError with the remedy if the daemon does not have it, or if it is of another kind of
    machine than this one.
    """
    key = f"config.yaml: image.docker: is {reference}; "
    if reason := Layer.unavailable_reason() or Layer.permission_reason():
        raise UserError(f"{key}{reason}")
    done = capture(["docker", "image", "inspect", reference], check=False)
    if done.returncode != 0:
        if not Layer.host_info():
            remedy = "no Docker daemon answers: `scripts/dockerd.sh` starts one"
        else:
            remedy = f"Docker has no such image here: `docker pull {reference}` fetches it"
        raise UserError(key + remedy)
    inspected: Fields = json.loads(done.stdout)[0]
    here, built = os.uname().machine, inspected.get("Architecture")
    if inspected.get("Os") != "linux" or ARCHITECTURES.get(here, here) != built:
        raise UserError(
            f"{key}it is built for {inspected.get('Os')} on {built}, and this machine is {here}: "
            "take one for this machine"
        )
    return {**inspected, "reference": reference}


def daemon_socket() -> str:
    """Return the path of the Unix socket at which the daemon listens.

    It follows from DOCKER_HOST.  Empty if the daemon is reached in another way.
    """
    place = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    return place.removeprefix("unix://") if place.startswith("unix://") else ""


def foreign_daemon(info: Fields) -> str | None:
    """Return why a daemon's containers cannot be observed and frozen on this host, with the remedy.

    info: the output of ``docker info``.  None if the daemon is this host's own.
    """
    host = os.uname()
    # Docker prints only two numbers of a kernel's version if the third is 0.
    kernels = {
        re.sub(r"^(\d+\.\d+)\.0\b", r"\1", release)
        for release in (host.release, info.get("KernelVersion", ""))
    }
    if info.get("Name") != host.nodename or len(kernels) > 1:
        place = (
            f"on another machine or in a virtual one ({info.get('Name')}, kernel "
            f"{info.get('KernelVersion')})"
        )
    elif daemons.is_in_other_network(daemon_socket()):
        place = (
            "in another network namespace than this process, whose rules and addresses are others"
        )
    elif "rootless" in security_options(info):
        place = "one without root, whose network, storage and control groups are others"
    else:
        return None
    return f"the Docker daemon is {place}: unset DOCKER_HOST, or `docker context use default`"


def log_refusal(options: Fields, info: Fields) -> str | None:
    """Return why the daemon cannot log by the driver of an option ``--log-driver``; None if it can.

    options: the container's, resolved.  info: the output of ``docker info``.
    """
    for name, driver in map(passed_options.split_option, options.get("options", ())):
        known = engine.value_at(info, "Plugins", "Log") or ()
        if name == "log-driver" and known and driver not in ("none", *known):
            return f"the Docker daemon has no log driver {driver}: it has {', '.join(known)}"
        if (name, driver) == ("log-driver", "journald") and not os.path.exists(JOURNAL):
            return "systemd’s journal, to which --log-driver=journald writes, does not run here"
    return None


def in_sandbox(options: Fields) -> bool:
    """Return whether a container runs in a gVisor sandbox.

    options: the container's, as in config.yaml or resolved.
    """
    return options.get("runtime") == "runsc"


def runtime_name(resolved: Fields) -> str:
    """Return the name under which the daemon knows the container's runtime.

    scripts/dockerd.sh adds the sandbox's runtimes under these names; those of other programs have
    the digest of the program in theirs.
    """
    words = ["strata", resolved.get("runtime", "runc")]
    if in_sandbox(resolved):
        words.append(resolved["sandbox"]["stack"])
        if "files" in resolved["sandbox"]:
            words.append(GOFER)
    if "program" in resolved:
        words.append(resolved["program"]["sha256"][:12])
    return "-".join(words) if len(words) > 2 else "runc"


def runsc_arguments(sandbox: Fields) -> list[str]:
    """Return the arguments with which the daemon's runtime runs runsc for a planned sandbox."""
    arguments = [f"--network={sandbox['stack']}"]
    return [*arguments, NO_DIRECTFS] if "files" in sandbox else arguments


def runsc_path(resolved: Fields) -> str:
    """Return the path of the container's program of gVisor, or the name of the installed one."""
    return str(resolved["program"]["path"]) if "program" in resolved else "runsc"


@functools.cache
def _hash_program(path: str) -> str:
    """Return the SHA-256 of a program, "" if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def sandbox_facts(command_lines: list[str], runsc: str = "runsc") -> Fields:
    """Return ``{program, version, platform, stack}`` of a running sandbox.

    With ``files`` if the sandbox leaves opening them to its gofer.

    command_lines: those of the processes in the container's control group.
    runsc: the name or path of the program.
    A platform that is not in the sandbox's command line is runsc's default.  What cannot be
    observed is "not available".
    """
    facts = {
        "program": "runsc",
        "version": runsc_fact(*VERSION, runsc),
        "platform": NOT_AVAILABLE,
        "stack": NOT_AVAILABLE,
    }
    for line in command_lines:
        if line.startswith("runsc-sandbox"):
            platform, stack = (
                re.search(rf" --{flag}=(\w+)", line) for flag in ("platform", "network")
            )
            facts["platform"] = platform[1] if platform else None
            facts["platform"] = facts["platform"] or runsc_fact(*PLATFORM, runsc) or NOT_AVAILABLE
            facts["stack"] = stack[1] if stack else "sandbox"
            if NO_DIRECTFS in line.split():
                facts["files"] = GOFER
    return facts


class Layer(engine.Container):
    """A container of the host's Docker daemon, or of the daemon in the virtual machine below.

    Options: `runtime`, which is runc, crun or runsc (gVisor); `program`, the path of another one of
    them than the installed one; `stack`, the network stack of gVisor's sandbox; `directfs`, whether
    the sandbox opens files itself; `port`, how packets reach the published ports; `rules`, the
    number of further rules of the packet filter that they meet; `options`, further ones of
    ``docker run`` that are passed on as they stand, of which ``--network`` replaces the key
    `network`.  In the plan, `program` has its digest, ``sandbox`` replaces `stack` and `directfs`,
    and ``daemon`` says what is unusual about the host's daemon.
    """

    title = "Docker container"
    engine_name = "Docker"
    stands_on = ("host", "vm")
    stands_idle = True
    programs = ("docker",)
    daemons = ("dockerd", "containerd", "containerd-shim", "docker-proxy", "docker-init", "runsc")
    options_schema = engine.container_schema(
        runtime={"enum": ["runc", "crun", "runsc"], "description": "runc, crun or runsc (gVisor)"},
        program={
            "type": "string",
            "pattern": "^/",
            "description": "the absolute path of another runtime than the installed one",
        },
        stack={
            "enum": list(STACKS),
            "description": "whose network stack: the sandbox's own, or the host's",
        },
        port={
            "enum": ["dnat", "proxy"],
            "description": "published ports by a rule of the kernel, dnat, or by docker-proxy",
        },
        rules={
            "type": "integer",
            "minimum": 1,
            "maximum": 10000,
            "description": "further rules that packets to and from the container meet",
        },
        directfs={
            "type": "boolean",
            "description": "false: gVisor's gofer opens files for the sandbox",
        },
        options=passed_options.SCHEMA,
    )
    _explained: Mapping[str, str] = MappingProxyType({})

    # The guest's daemon is up before a cell begins, like the host's: under emulation, starting the
    # daemon takes longer than starting a container.
    warmup = (["systemctl", "start", "docker.service"],)

    @classmethod
    def answers(cls) -> bool:
        """Return whether a daemon listens where the Docker client would connect."""
        socket = daemon_socket()
        return (not socket or daemons.is_listening(socket)) and find_program("docker") is not None

    @classmethod
    def unavailable_reason(cls) -> str | None:
        """Return why there can be no Docker daemon here, with the remedy; None if there can be one.

        A daemon that is installed is enough: it is started when it is needed.
        """
        if (reason := super().unavailable_reason()) or cls.answers() or find_program("dockerd"):
            return reason
        return "no Docker daemon answers and none is installed: start it, or run `make setup`"

    @classmethod
    def permission_reason(cls) -> str | None:
        """Return why this user cannot reach the daemon, with the remedy; None if it is reached.

        None, too, if no daemon runs yet and DOCKER_HOST names none.
        """
        place = os.environ.get("DOCKER_HOST", "")
        if (socket := daemon_socket()) and daemons.is_listening(socket):
            if os.access(socket, os.W_OK):
                return None
            return f"this user may not use Docker at {socket}: {DOCKER_GROUP}"
        if place and (socket or not cls.host_info()):
            return (
                f"no Docker daemon answers at DOCKER_HOST, {place}: `unset DOCKER_HOST`, or start "
                "that daemon"
            )
        return None

    @classmethod
    def check_options(cls, options: Fields, below: str) -> list[tuple[str, str]]:
        """Return (option, what is wrong) for options that gVisor excludes or that need gVisor.

        Limits that no container can have are returned, too.
        """
        wrong = super().check_options(options, below)
        if program := options.get("program"):
            if below != "host":
                wrong.append(("program", "the image of a machine has its own; leave it out here"))
            elif "runtime" not in options:
                wrong.append(("program", "set runtime, too: runc, crun or runsc, whichever it is"))
            elif not (os.path.isfile(program) and os.access(program, os.X_OK)):
                wrong.append(("program", f"is {program}; there is no such program to run"))
        for key in ("port", "rules"):
            if key in options and below != "host":
                wrong.append((key, "is for containers on the host alone; leave it out here"))
            elif key in options and options.get("network") == "host":
                wrong.append((key, "is for a bridge; the host's network has none: leave it out"))
        if "rules" in options and options.get("port") == "proxy":
            wrong.append(("rules", "are passed by with port: proxy; leave one of them out"))
        if options.get("runtime") == "crun" and below != "host":
            wrong.append(("runtime", "crun is not in a machine’s image; it runs on the host alone"))
        if not in_sandbox(options):
            for key in {"stack", "directfs"} & {*options}:
                wrong.append((key, "is of gVisor alone; set runtime: runsc too"))
        elif below != "host":
            sentence = "gVisor is not in a machine’s image; it runs on the host alone"
            wrong.append(("runtime", sentence))
        elif options.get("network") == "host" and options.get("stack") != "host":
            sentence = "the sandbox’s own stack cannot be the host’s network; set stack: host"
            wrong.append(("stack", sentence))
        return wrong

    @classmethod
    def resolve_options(cls, options: Fields, config: Fields) -> Fields:
        """Return the options with ``sandbox`` instead of `stack` and `directfs`.

        It holds {platform, version, stack}, and without directfs ``files``: by whom they are opened.
        Options without a sandbox keep their keys.  The plan contains runsc's version, so cells are
        measured again after an upgrade.  A network that an option names gets the key `network`.
        """
        if network := passed_options.network_of(options):
            options = {**options, "network": network}
        path = options.get("program")
        if options.get("runtime") == "crun" and not path:
            path = find_program("crun")
        if path:
            options = {**options, "program": {"path": path, "sha256": _hash_program(path)}}
        if not in_sandbox(options):
            return options
        runsc = runsc_path(options)
        sandbox = {
            "platform": runsc_fact(*PLATFORM, runsc),
            "version": runsc_fact(*VERSION, runsc),
            "stack": options.get("stack", "sandbox"),
        }
        if options.get("directfs") is False:
            sandbox["files"] = GOFER
        kept = {key: options[key] for key in options if key not in ("stack", "directfs")}
        return {**kept, "sandbox": sandbox}

    @classmethod
    def restore_options(cls, resolved: Fields) -> Fields:
        """Return the options without the facts of programs, and with the sandbox's stack."""
        options = super().restore_options(resolved)
        if "program" in options:
            options["program"] = options["program"]["path"]
        if passed_options.network_of(options):
            options.pop("network", None)
        if "sandbox" in resolved:
            options["stack"] = resolved["sandbox"]["stack"]
            if "files" in resolved["sandbox"]:
                options["directfs"] = False
        return options

    @classmethod
    def host_info(cls) -> Fields:
        """Return the output of ``docker info`` of the host's daemon; empty if none answers."""
        places = (os.environ.get(name) for name in ("DOCKER_HOST", "DOCKER_CONTEXT"))
        return _daemon_info(*places) if cls.answers() else {}

    @classmethod
    def add_observations(cls, resolved: Fields, below: str) -> Fields:
        """Return the options with ``daemon``: what is unusual about the host's daemon.

        The options stay as they are if nothing is unusual, or if the daemon does not answer or is
        foreign.
        """
        info = cls.host_info() if below == "host" else {}
        if not info or foreign_daemon(info):
            return resolved
        differences = unusual(resolved, info)
        return {**resolved, "daemon": differences} if differences else resolved

    @classmethod
    def refusal_reason(cls, resolved: Fields, below: str, machine: HostFacts) -> str | None:
        """Return why the machine or its daemon cannot provide this container; None if it can.

        Checked are the limits, whether the daemon is this host's own, and whether the daemon has
        the needed bridge, users and runtime.  The daemon is not checked while it does not answer.
        """
        if below != "host":
            # A virtual machine numbers its own CPUs; its memory follows from the workloads' scale.
            return limits.refusal(resolved, set(range(machine["cpus"])), math.inf)
        if reason := super().refusal_reason(resolved, below, machine):
            return reason
        if resolved.get("runtime") == "crun" and (reason := engine.runtime_refusal("crun")):
            return reason
        info = cls.host_info()
        if not info:
            return cls._sandbox_refusal(resolved, None)
        if reason := foreign_daemon(info):
            return reason
        if reason := cls._rules_refusal(resolved):
            return reason
        own_network = passed_options.network_of(resolved)
        if own_network and not _inspect_network(own_network):
            return (
                f"the Docker daemon has no network {own_network}: `docker network create "
                f"{own_network}` makes one"
            )
        if resolved["network"] == "bridge" and BRIDGE not in bridge_options():
            return (
                "the Docker daemon has no bridge of its own: take `bridge: none` out of its "
                "configuration"
            )
        if "users" in resolved.get("daemon", {}):
            mapped = "the Docker daemon maps users (take userns-remap out of its configuration)"
            if resolved["network"] == "host":
                return (
                    f"{mapped}, and then lends no container the host’s network: or set network: "
                    "bridge"
                )
            if resolved["data"] == "volume":
                return f"{mapped}, and then no container can write its volume: or set data: layered"
        return (
            log_refusal(resolved, info)
            or cls._program_refusal(resolved, info)
            or cls._sandbox_refusal(resolved, info)
        )

    @classmethod
    def _rules_refusal(cls, resolved: Fields) -> str | None:
        """Return why the requested path to published ports cannot be provided; None if it can."""
        if resolved.get("port") == "dnat" and "ports" in resolved.get("daemon", {}):
            return (
                "the Docker daemon lets no rule lead to published ports: take `iptables: false` "
                "out of its configuration, or set port: proxy"
            )
        if resolved.get("port") == "proxy" or "rules" in resolved:
            if not find_program("iptables"):
                return "iptables is not installed: install the distribution’s package of that name"
            if not has_root():
                return f"root is needed for rules of the packet filter: {ROOT_NEEDED}"
        return None

    @classmethod
    def _program_refusal(cls, resolved: Fields, info: Fields) -> str | None:
        """Return why the daemon cannot run the container by another program; None if it can."""
        if "program" not in resolved:
            return None
        name, program = runtime_name(resolved), resolved["program"]["path"]
        runtime = engine.value_at(info, "Runtimes", name)
        if runtime is None:
            command = f"scripts/dockerd.sh runtime {name} {program}"
            if in_sandbox(resolved):
                command = " ".join([command, *runsc_arguments(resolved["sandbox"])])
            return f"the Docker daemon does not know {program} as it is now: `{command}` adds it"
        if runtime.get("path") != program:
            return (
                f"the Docker daemon’s runtime {name} is {runtime.get('path')}, and not {program}: "
                "take it out of its configuration"
            )
        return None

    @classmethod
    def _sandbox_refusal(cls, resolved: Fields, info: Fields | None) -> str | None:
        """Return why the requested gVisor sandbox cannot be provided; None if it can.

        info: the output of ``docker info``; None if no daemon answers yet.  None is also returned
        for options without a sandbox.
        """
        if not in_sandbox(resolved):
            return None
        if resolved["sandbox"]["version"] is None:
            return (
                "gVisor (runsc) is not installed: `make setup` installs it on Debian 12 and newer"
            )
        if info is None:
            return None
        name, arguments = runtime_name(resolved), runsc_arguments(resolved["sandbox"])
        runtime = engine.value_at(info, "Runtimes", name)
        if runtime is None:
            return (
                "the Docker daemon does not know gVisor’s runtimes: `scripts/dockerd.sh runtimes` "
                "adds them"
            )
        argv = [runtime.get("path", "another program"), *(runtime.get("runtimeArgs") or ())]
        is_runsc = "program" in resolved or os.path.basename(argv[0]) == "runsc"
        if not is_runsc or not {*arguments} <= {*argv}:
            return (
                f"the Docker daemon’s runtime {name} is not runsc {' '.join(arguments)} but "
                f"{' '.join(argv)}: take it out of its configuration, and `scripts/dockerd.sh "
                "runtimes` adds it"
            )
        return None

    @classmethod
    def labels(cls, resolved: Fields) -> Fields:
        """Return the paper's names of network and data, of an unusual daemon, options or a sandbox.

        Those three change the title, a sandbox also the kind.
        """
        labels, differences = super().labels(resolved), resolved.get("daemon", {})
        if "ports" in differences or resolved.get("port") == "proxy":
            labels["network"] = engine.PROXIED
        if "rules" in resolved:
            labels["network"] += f", {resolved['rules']} rules"
        if "storage" in differences:
            labels["data"] += f", {differences['storage']}"
        in_title = {key: differences[key] for key in ("users", "seccomp") if key in differences}
        if in_title:
            labels["title"] = f"{cls.title}, {label_ending(in_title)}"
        if resolved.get("runtime") == "crun":
            labels["title"] = f"{labels.get('title', cls.title)} by crun"
        if "options" in resolved:
            listed = " ".join(resolved["options"])
            labels["title"] = f"{labels.get('title', cls.title)} with {listed}"
        if in_sandbox(resolved):
            sandbox = resolved["sandbox"]
            container = labels.get("title", cls.title)
            labels["kind"] = "sandbox"
            labels["title"] = f"gVisor sandbox in a {container}, platform {sandbox['platform']}"
            labels["network"] += f", {STACKS[sandbox['stack']]}"
            if "files" in sandbox:
                labels["data"] += ", opened by gVisor’s gofer"
        return labels

    @classmethod
    def describe(cls, resolved: Fields) -> Fields:
        """Return the passed options and what is unusual about the daemon, as ``otherwise``.

        A sandbox is also ``doubtful``, because it lacks some system calls.
        """
        facts: Fields = {}
        endings = [label_ending(resolved["daemon"])] if "daemon" in resolved else []
        if "options" in resolved:
            endings.insert(0, passed_options.text_for_label(resolved["options"]))
        if endings:
            facts["otherwise"] = ", ".join(endings)
        if in_sandbox(resolved):
            facts["doubtful"] = True
        return facts

    @classmethod
    def doctor_line(cls) -> tuple[str, bool | None, str]:
        """Return the daemon's line of `make doctor`: its version and what is unusual about it.

        The text is the reason if the daemon cannot be used.
        """
        if reason := cls.unavailable_reason() or cls.permission_reason():
            return "Docker", False, reason
        # If the daemon refuses a user, Docker 26 reports that for `version` but not for `info`.
        argv = ["docker", "version", "--format", "version {{.Server.Version}}"]
        version = capture(argv, check=False)
        text = (version.stdout + version.stderr).strip().replace("\n", "; ")
        info = cls.host_info()
        if not info:
            return "Docker", version.returncode == 0, text
        if reason := foreign_daemon(info):
            return "Docker", False, f"{text}: {reason}"
        if differences := unusual({"network": "bridge", "data": "layered"}, info):
            text += f"; other than usual: {label_ending(differences)}"
        return "Docker", True, text

    def ask_engine(self) -> None:
        """Start the host's daemon if none answers, and record its facts.

        Raises UserError if the host's daemon is not as the plan expects.
        """
        if self.below.name == "host":
            start_daemon()
        super().ask_engine()
        if self.virtual_machine() is None:
            self._require_planned_daemon()

    def engine_facts(self, info: Fields) -> Fields:
        """Return the daemon's facts for the records, from the output of ``docker info``."""
        return daemon_facts(info)

    def run_options(self) -> list[str]:
        """Return the options for the parent of the container's control group and for the runtime.

        The runtime is always named, so that the daemon's default does not matter.
        """
        parent = cgroups.parent_option(self._facts["cgroup_driver"])
        return ["--cgroup-parent", parent, "--runtime", runtime_name(self.options)]

    def cleanup_entries(self) -> list[Fields]:
        """Return the journal's entry that removes the container, and one for a failed sandbox.

        Containers survive their daemon: clean-up starts the daemon, if necessary, to remove them.
        A sandbox has another entry, for the processes that it leaves when it fails.
        """
        entries = super().cleanup_entries()
        if entries and self.passed_options():
            entries.append(self.cleanup_entry(self._look_name))
        containers = [{**entry, "start": "scripts/dockerd.sh"} for entry in entries]
        if in_sandbox(self.options):
            return [{"kind": "group", "id": self.id_file}, *containers]
        return containers

    def up(self) -> None:
        """Start the container as :meth:`Container.up` does, with the rules that its options ask for.

        If a sandbox with a network stack of its own fails, the error also suggests the host's
        stack.
        """
        if self.options.get("port") == "proxy":
            firewall.skip_translation(self.context, self.below.listen_address())
        try:
            super().up()
        except UserError as error:
            if in_sandbox(self.options) and self.options["sandbox"]["stack"] == "sandbox":
                remedy = "if gVisor's own network stack is the reason, set stack: host"
                raise type(error)(f"{error}\n{remedy}") from None
            raise
        if "rules" in self.options:
            firewall.add_idle_rules(self.context, self._bridge_address, self.options["rules"])
            if self.published():
                self._facts["network"] |= firewall.read_packet_filter().facts()

    def kernel_process(self) -> int | None:
        """Return the id of the sandbox's process; without a sandbox, that of the machine below.

        None if there is no such process.
        """
        if not in_sandbox(self.options):
            return super().kernel_process()
        return next(
            iter(cgroups.list_program_processes(self.cgroup() or "", "runsc-sandbox")), None
        )

    def _require_planned_daemon(self) -> None:
        """Raise UserError unless the host's daemon is this host's own and as the plan expects.

        If ports are published, the packet filter is checked later, by
        :meth:`_require_planned_ports`.
        """
        if reason := foreign_daemon(self.info):
            raise UserError(reason)
        # The kernel has rules for published ports only once the container is up.
        rules = not self.published()
        planned = dict(self.options.get("daemon", {}))
        if not rules:
            planned.pop("ports", None)
        with one_off():
            current = unusual(self.options, self.info, rules)
        if current != planned:
            now, before = (label_ending(state) or "as usual" for state in (current, planned))
            raise UserError(
                "the Docker daemon is not as when the plan was made, perhaps while none answered "
                f"(now: {now}; planned: {before}): run again, and the plan is made anew"
            )

    def observe_container(self) -> None:
        """Check, after :meth:`Container.observe_container`, the path to the ports and the sandbox.

        Raises UserError if one of them is not as planned.
        """
        super().observe_container()
        if self.passed_options():
            self._observe_consequences()
        if self.published():
            self._require_planned_ports()
        if in_sandbox(self.options):
            self._require_planned_sandbox()

    @property
    def _look_name(self) -> str:
        """The name of the containers that exist only while a look into them is made."""
        return f"{self.context.id}-look"

    def _observe_consequences(self) -> None:
        """Record what the look inside finds otherwise than without the passed options.

        It is added to the settings in the facts for the records, and explains differences from
        native.
        """
        argv = self.wrap(passed_options.print_command())
        look = passed_options.parse_look(self.run_below(argv, check=False))
        consequences = passed_options.Consequences(self.passed_options(), look, self._look_into)
        self._facts["settings"] = [*self._facts.get("settings", []), *consequences.rows]
        self._explained = consequences.declared

    def _look_into(self, passed: Sequence[str], number: int) -> passed_options.Look:
        """Return what is found in a new container with some of the passed options.

        number: distinguishes looks into equal containers.
        The first look without options is new each time, since the machine's settings may change.
        The others, which only tell what follows from which option, are kept beside the image.
        Raises UserError if no container starts with these options alone.
        """
        options = ["--rm", "--name", self._look_name]
        argv = self.start_command(options, passed, passed_options.print_command())
        if not passed and number == 0:
            return passed_options.parse_look(self.run_below(argv))
        circumstances = [self.info.get(key) for key in ("ServerVersion", "KernelVersion")]
        text = json.dumps([number, self.below.name, *circumstances, *argv])
        text = text.replace(self.below.data, "DATA").replace(self._look_name, "NAME")
        digest = hashlib.sha256(text.encode()).hexdigest()
        path = os.path.join(self.image["folder"], "looks", f"{digest}.json")
        look: passed_options.Look | None = read_json(path)
        if look is None:
            look = passed_options.parse_look(self.run_below(argv))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_json(path, look)
        return look

    def observed_differences(self) -> dict[str, str]:
        """Return the differences from native that the passed options make."""
        return {**self._explained}

    def _require_planned_ports(self) -> None:
        """Record the host's bridge, and require that packets reach published ports as planned.

        Adds `bridge` and `mtu` to the facts of the network.  Raises UserError if the path is
        another, or if there is none.
        """
        if self.virtual_machine() is None:
            for key, option in (("bridge", BRIDGE), ("mtu", MTU)):
                options = bridge_options(self.options["network"])
                self._facts["network"][key] = options.get(option, NOT_AVAILABLE)
        path = self._facts["network"]["ports"]
        proxied = "ports" in self.options.get("daemon", {}) or self.options.get("port") == "proxy"
        planned = engine.PROXY if proxied else engine.NAT
        if path == engine.NOTHING:
            raise UserError(
                "no rule of the kernel and no docker-proxy leads to the published ports: the "
                "Docker daemon has iptables and userland-proxy switched off; switch one on, or "
                "choose a network with a bridge"
            )
        if path not in (planned, NOT_AVAILABLE):
            raise UserError(
                f"the published ports are reached by {path}, and {planned} was planned, perhaps "
                "while no daemon answered: run again, and the plan is made anew; if this comes "
                "again, the kernel has rules of a daemon that is gone, or lost those of this one: "
                "restart the machine, or the daemon"
            )

    def _require_planned_sandbox(self) -> None:
        """Record the sandbox's facts, and raise UserError if it is not the planned sandbox."""
        sandbox = self._facts["sandbox"] = sandbox_facts(
            cgroups.list_command_lines(self.cgroup() or ""), runsc_path(self.options)
        )
        for key, planned in self.options["sandbox"].items():
            observed = sandbox.get(key, NOT_AVAILABLE)
            if planned and observed != planned:
                raise UserError(
                    f"the container is not in the sandbox that was planned: its {key} is "
                    f"{observed}, and not {planned}; run again, so that the plan says it"
                )

    def facts(self) -> Fields:
        """Return the daemon's facts, the applied limits, and what was observed of a sandbox."""
        return {"docker": self._facts}


def start_daemon() -> None:
    """Start a Docker daemon if none answers and no service manager starts one.

    Raises UserError if it does not answer then.
    """
    daemons.start_daemon("no Docker daemon answers", "dockerd.sh", Layer.answers)
