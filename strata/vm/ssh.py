"""Access to a machine by ssh: a configuration, and one connection for all commands."""

import os
import shlex

from strata.host import ssh_connection
from strata.util.files import write_text
from strata.util.process import capture_output

# The machine's name in its ssh configuration.
HOST = "machine"
# The exit code of ssh if it gets no connection, or loses it.
CONNECTION_LOST = 255


def _get_configuration_path(system_folder: str) -> str:
    """Return the path of the ssh configuration in the system's folder."""
    return os.path.join(system_folder, "ssh_config")


def write_ssh_configuration(system_folder: str, address: str, key_path: str, host_key: str) -> None:
    """Write the ssh configuration and the known host key of a machine into the system's folder.

    system_folder: the folder of the system.
    address: the machine's IP address.
    key_path: the path of the private key that the machine accepts.
    host_key: the machine's public host key, as "TYPE KEY".
    The other functions of this module need the configuration: call this function first.
    """
    known_hosts = os.path.join(system_folder, "known_hosts")
    write_text(known_hosts, f"{address} {host_key}\n")
    lines = [
        f"Host {HOST}",
        f"  HostName {address}",
        "  User root",
        f'  IdentityFile "{key_path}"',
        "  IdentitiesOnly yes",
        f'  UserKnownHostsFile "{known_hosts}"',
        "  GlobalKnownHostsFile /dev/null",
        "  StrictHostKeyChecking yes",
    ]
    for option, value in ssh_connection.build_ssh_settings(system_folder).items():
        lines.append(f'  {option} "{value}"')
    write_text(_get_configuration_path(system_folder), "\n".join(lines) + "\n")


def build_ssh_command(system_folder: str, argv: list[str]) -> list[str]:
    """Return the host's command that runs `argv` in the machine, each argument unchanged.

    system_folder: the folder of the system, with the ssh configuration.
    The command ends with the exit code of `argv`, or with CONNECTION_LOST.
    """
    return ["ssh", "-F", _get_configuration_path(system_folder), HOST, "--", shlex.join(argv)]


def run_in_machine(
    system_folder: str, argv: list[str], timeout: float = 120, check: bool = True
) -> str:
    """Run a command in the machine, and return its standard output.

    system_folder: the folder of the system, with the ssh configuration.
    timeout: seconds, which STRATA_PATIENCE multiplies.
    check: whether an exit code other than 0 is an error, as is a lost connection.
    Raises UserError if the command fails and `check` is set, and MachineError if it takes too long.
    """
    return capture_output(build_ssh_command(system_folder, argv), timeout, check).stdout


def close_ssh_connection(system_folder: str) -> None:
    """Close the ssh connection that was kept open to the machine; do nothing if there is none.

    system_folder: the folder of the system, with the ssh configuration.
    Raises MachineError if ssh does not end within 20 seconds; the connection may then stay open.
    """
    close = ["ssh", "-F", _get_configuration_path(system_folder), "-O", "exit", HOST]
    # check=False: ssh fails if no connection is open.
    capture_output(close, timeout=20, check=False)
