"""Find the host's Docker daemons, read their facts, and explain why one cannot run a container.

The usual daemon is the one that Docker's client reaches.  Second ones, of other programs, are
started by ``scripts/dockerd.sh second PROGRAM`` and listen at sockets of their own.
"""

import functools
import glob
import json
import os
import re

from strata.environments.common import engine, passed_options
from strata.host import daemons, firewall
from strata.host.daemons import find_program
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.process import capture_output

# Options of a bridge network: the name of its bridge, and the largest packet that it carries.
BRIDGE = "com.docker.network.bridge.name"
MTU = "com.docker.network.driver.mtu"
# The socket of systemd's journal.
JOURNAL = "/run/systemd/journal/socket"
# How Docker says that it refuses an option.
REFUSAL = re.compile(
    "(?m)^(?:(?:Error response from daemon|docker): )?"
    "((?<=: )(?!No such image|.*(?i:cannot connect|permission denied)).*|invalid argument .*)$"
)
# Docker's storage drivers that use the kernel's overlay file system.
OVERLAY_DRIVERS = ("overlay", "overlay2", "overlayfs")
# The text that ends a label for each key that `find_daemon_differences` returns; {} is the value.
DIFFERENCE_LABELS = {
    "ports": "user-land proxy",
    "users": "users remapped",
    "seccomp": "seccomp {}",
    "storage": "{} storage",
}


def find_second_socket(options: Fields) -> str | None:
    """Return the socket of the second daemon that runs a container; None for the usual daemon.

    options: the options of the container, resolved.
    The path has the first 12 digits of the program's SHA-256; set_second in scripts/dockerd.sh must
    build the same path.  The socket need not exist.
    """
    if "dockerd" not in options:
        return None
    return f"/run/strata-dockerd-{options['dockerd']['sha256'][:12]}.sock"


def list_second_sockets() -> list[str]:
    """Return the sorted sockets of all running second daemons that this user may use.

    Clean-up looks for containers in these daemons: the pattern must fit the paths of
    :func:`find_second_socket`.
    """
    sockets = sorted(glob.glob("/run/strata-dockerd-*.sock"))
    permitted_sockets = [path for path in sockets if os.access(path, os.W_OK)]
    return [path for path in permitted_sockets if daemons.has_listener(path)]


def build_client_command(socket: str | None) -> list[str]:
    """Return the beginning of Docker commands for one daemon.

    socket: the socket of a second daemon; None for the usual daemon.
    """
    return ["docker"] if socket is None else ["docker", "--host", f"unix://{socket}"]


def find_usual_socket() -> str:
    """Return the path of the Unix socket at which the usual daemon listens.

    The environment variable DOCKER_HOST may set it.  The path is empty if the daemon is reached
    in another way, such as TCP or ssh.
    """
    address = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    return address.removeprefix("unix://") if address.startswith("unix://") else ""


def is_daemon_reachable(socket: str | None = None) -> bool:
    """Return whether a daemon listens where the Docker client would connect.

    socket: the socket of a second daemon; None for the usual daemon.
    A daemon that is not reached by a Unix socket counts as listening.  False without the client.
    """
    socket = find_usual_socket() if socket is None else socket
    # The path is empty if the daemon is reached in another way, which costs time to check.
    is_listening = not socket or daemons.has_listener(socket)
    return is_listening and find_program("docker") is not None


@functools.cache
def _query_daemon_info(socket: str | None) -> Fields:
    """Return the object that ``docker info`` prints; empty if no daemon answers within 20 seconds.

    socket: the socket of a second daemon; None for the usual daemon.
    A process queries each daemon only once.
    """
    argv = [*build_client_command(socket), "info", "--format", "{{json .}}"]
    try:
        info = json.loads(capture_output(argv, timeout=20, check=False).stdout)
    except (UserError, ValueError):
        # The command took too long, or printed no JSON.
        return {}
    # If no daemon answers, the client prints facts about itself.
    return info if isinstance(info, dict) and info.get("ServerVersion") else {}


def read_daemon_info(socket: str | None = None) -> Fields:
    """Return the object that ``docker info`` prints; empty if the daemon does not answer.

    socket: the socket of a second daemon; None for the usual daemon.
    A process queries a daemon only once.  A daemon that is not reachable is not queried, since it
    may be started later.
    """
    return _query_daemon_info(socket) if is_daemon_reachable(socket) else {}


def parse_security_options(info: Fields) -> dict[str, str]:
    """Return the mechanisms that confine the daemon's containers: name → profile.

    info: the output of ``docker info``.
    A mechanism without a profile has an empty text.
    """
    profiles = {}
    for option in info.get("SecurityOptions") or ():
        # For example "name=seccomp,profile=builtin"; without "name=", the option is the name.
        settings = {}
        for setting in option.split(","):
            key, _, value = setting.partition("=")
            settings[key] = value
        profiles[settings.get("name", option)] = settings.get("profile", "")
    return profiles


@functools.cache
def inspect_network(name: str, socket: str | None) -> Fields:
    """Return the object that ``docker network inspect`` prints of a network; empty if missing.

    name: the name of the network.
    socket: the socket of a second daemon; None for the usual daemon.
    A process inspects each network once, even if the network was missing.
    """
    argv = [*build_client_command(socket), "network", "inspect", name]
    # check=False: if the network is missing or the daemon does not answer, the list is empty.
    output = capture_output(argv, check=False).stdout
    networks: list[Fields] = json.loads(output or "[]")
    return networks[0] if networks else {}


def read_bridge_options(network: str, socket: str | None) -> Fields:
    """Return the options of a bridge network, under Docker's names, including the bridge's name.

    network: the name of the network.
    socket: the socket of a second daemon; None for the usual daemon.
    The keys include :data:`BRIDGE` and, if it is set, :data:`MTU`; values are strings.
    The result is empty if the daemon has no such network, or if the network has no bridge.
    """
    description = inspect_network(network, socket)
    if description.get("Driver") != "bridge":
        return {}
    # Docker gives a bridge this name unless an option sets it, as for the default network.
    return {BRIDGE: f"br-{description['Id'][:12]}", **(description["Options"] or {})}


def has_nat_rules(network: str, socket: str | None) -> bool | None:
    """Return whether the kernel has NAT rules for a bridge network of a daemon.

    network: the name of the network.
    socket: the socket of a second daemon; None for the usual daemon.
    Returns None if the bridge does not exist, or if the kernel's rules cannot be read.
    """
    options = read_bridge_options(network, socket)
    if BRIDGE not in options:
        return None
    return firewall.read_packet_filter().has_rules_for_bridge(options[BRIDGE])


def find_daemon_differences(
    options: Fields, info: Fields, read_rules: bool = True
) -> dict[str, str]:
    """Return how a daemon's configuration makes a container differ from a usual daemon's.

    options: the options of the container, resolved.
    info: the output of ``docker info``.
    read_rules: whether to read the kernel's packet filter, too; otherwise the key "ports" is
    missing.
    Returns a key of :data:`DIFFERENCE_LABELS` → its value, for example ``{"users": "remapped"}``;
    empty if nothing is unusual.  The plan holds the result as ``daemon``: if a key or value
    changes, cells are measured again.
    """
    differences = {}
    network = options["network"]
    needs_nat = network != "host" and options.get("port") != "proxy"
    # has_nat_rules() returns None if the rules cannot be read: that is not a difference.
    if read_rules and needs_nat and has_nat_rules(network, find_second_socket(options)) is False:
        differences["ports"] = "docker-proxy"
    profiles = parse_security_options(info)
    if "userns" in profiles:
        differences["users"] = "remapped"
    seccomp = profiles.get("seccomp", "none")
    if seccomp not in ("default", "builtin") and options.get("seccomp") != "unconfined":
        # The path of a profile is not recorded.
        is_off = seccomp in ("none", "unconfined")
        differences["seccomp"] = seccomp if is_off else "profile of its own"
    driver = str(info.get("Driver"))
    if options["data"] == "layered" and driver not in OVERLAY_DRIVERS:
        differences["storage"] = re.sub(r"[^\w-]", "", driver)
    return differences


def format_daemon_differences(differences: Fields) -> str:
    """Return what is unusual about a daemon as the end of a label; empty if nothing is.

    differences: the result of :func:`find_daemon_differences`.
    The text is, for example, "users remapped, vfs storage".
    """
    return ", ".join(DIFFERENCE_LABELS[key].format(value) for key, value in differences.items())


def select_daemon_facts(info: Fields) -> Fields:
    """Return the daemon's facts for the records.

    info: the output of ``docker info``.
    A value that the daemon does not give is None.  ENGINE_ROWS of analysis/markdown_tables.R and
    ENGINE_FACTS of analysis/read.R read the keys.
    """
    profiles = parse_security_options(info)
    users = "the host’s"
    if "rootless" in profiles:
        users = "rootless"
    elif "userns" in profiles:
        users = "remapped"
    mechanisms = [f"{name} ({profile})" if profile else name for name, profile in profiles.items()]
    # A list of [name, value] pairs; the driver may add lists of another length.
    driver_status = dict(pair for pair in info.get("DriverStatus") or () if len(pair) == 2)
    return {
        "engine": info.get("ServerVersion"),
        "containerd": engine.get_nested_value(info, "ContainerdCommit", "ID"),
        "runc": engine.get_nested_value(info, "RuncCommit", "ID"),
        "storage_driver": info.get("Driver"),
        "backing_filesystem": driver_status.get("Backing Filesystem"),
        "log_driver": info.get("LoggingDriver"),
        "cgroup_driver": info.get("CgroupDriver"),
        "cgroup_version": info.get("CgroupVersion"),
        "users": users,
        "security": ", ".join(sorted(mechanisms)) or "none",
    }


def explain_foreign_daemon(info: Fields, socket: str | None = None) -> str | None:
    """Return why a daemon's containers cannot be observed and frozen on this host, with the remedy.

    info: the output of ``docker info``, not empty.
    socket: the socket of a second daemon; None for the usual daemon.
    Returns None if the daemon runs on this host, as root, in this network namespace.
    """
    host = os.uname()
    daemon_kernel = info.get("KernelVersion", "")
    # Docker prints only two numbers of a kernel's version if the third number is 0.
    shortened_host_kernel = re.sub(r"^(\d+\.\d+)\.0\b", r"\1", host.release)
    is_same_kernel = daemon_kernel in (host.release, shortened_host_kernel)
    if info.get("Name") != host.nodename or not is_same_kernel:
        location = (
            f"on another machine or in a virtual one ({info.get('Name')}, kernel {daemon_kernel})"
        )
    elif daemons.has_listener_in_other_network(find_usual_socket() if socket is None else socket):
        location = (
            "in another network namespace than this process, whose rules and addresses are others"
        )
    elif "rootless" in parse_security_options(info):
        location = "one without root, whose network, storage and control groups are others"
    else:
        return None
    return f"the Docker daemon is {location}: unset DOCKER_HOST, or `docker context use default`"


def explain_missing_log_driver(options: Fields, info: Fields) -> str | None:
    """Return why the daemon cannot log by the driver of an option ``--log-driver``; None if it can.

    options: the options of the container, resolved.
    info: the output of ``docker info``; the driver is not checked if it lists none.
    """
    available_drivers = engine.get_nested_value(info, "Plugins", "Log") or ()
    for name, driver in map(passed_options.split_option, options.get("options", ())):
        if name != "log-driver":
            continue
        # The daemon accepts the driver "none", but does not list it.
        if available_drivers and driver not in ("none", *available_drivers):
            drivers = ", ".join(available_drivers)
            return f"the Docker daemon has no log driver {driver}: it has {drivers}"
        if driver == "journald" and not os.path.exists(JOURNAL):
            return "systemd’s journal, to which --log-driver=journald writes, does not run here"
    return None


def explain_mapped_users(options: Fields) -> str | None:
    """Return why a daemon that maps users cannot provide the container; None if it can.

    options: the options of the container, resolved; their key ``daemon`` has the result of
    :func:`find_daemon_differences`.
    The reason includes the remedy, and is a clause for the end of a message.
    """
    if "users" not in options.get("daemon", {}):
        return None
    cause = "the Docker daemon maps users (userns-remap)"
    remedy = "remove userns-remap from its configuration"
    if options["network"] == "host":
        return (
            f"{cause}, so containers cannot use the host’s network; {remedy}, or set "
            "network: bridge"
        )
    if options["data"] == "volume":
        return f"{cause}, so containers cannot write to a volume; {remedy}, or set data: layered"
    return None


def explain_refused_options(options: Fields) -> str | None:
    """Return why Docker refuses the passed options; None if it accepts them, or does not answer.

    options: the options of the container, resolved.
    Runs ``docker create`` with an image that does not exist, so that no container is created:
    Docker's client and daemon check the options before they look for the image.
    """
    passed_strings = options.get("options", ())
    if not passed_strings or not find_program("docker"):
        return None
    client = build_client_command(find_second_socket(options))
    argv = [*client, "create", "--pull", "never", *passed_strings, "strata.invalid/none"]
    # check=False: the command always fails; REFUSAL recognizes why.
    error_output = capture_output(argv, check=False).stderr
    match = REFUSAL.search(error_output)
    return f"Docker refuses {' '.join(passed_strings)}: {match[1]}" if match else None


def explain_missing_network(options: Fields) -> str | None:
    """Return why the daemon cannot provide the container's network; None if it can.

    options: the options of the container, resolved.
    """
    name = passed_options.find_network(options)
    socket = find_second_socket(options)
    if name and not inspect_network(name, socket):
        return f"the Docker daemon has no network {name}: `docker network create {name}` makes one"
    if options["network"] == "bridge" and BRIDGE not in read_bridge_options("bridge", socket):
        return (
            "the Docker daemon has no bridge of its own: take `bridge: none` out of its "
            "configuration"
        )
    return None
