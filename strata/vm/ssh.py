"""The way into a machine: an ssh configuration, and one connection for all commands."""

import os
import shlex

from strata.host import ssh_connection
from strata.util.files import write_text
from strata.util.process import capture

HOST = "machine"
# The exit code of ssh where it has no connection, or lost it.
CONNECTION_LOST = 255


def _configuration(folder: str) -> str:
    return os.path.join(folder, "ssh_config")


def write_configuration(folder: str, address: str, key: str, host_key: str) -> None:
    """Write the ssh configuration for a machine.

    address: its IP address.  key: the file of the key that it lets in.  host_key: its own.
    """
    known_hosts = os.path.join(folder, "known_hosts")
    write_text(known_hosts, f"{address} {host_key}\n")
    lines = [
        f"Host {HOST}",
        f"  HostName {address}",
        "  User root",
        f"  IdentityFile {key}",
        "  IdentitiesOnly yes",
        f"  UserKnownHostsFile {known_hosts}",
        "  GlobalKnownHostsFile /dev/null",
        "  StrictHostKeyChecking yes",
        *(f"  {option} {value}" for option, value in ssh_connection.ssh_settings(folder).items()),
    ]
    write_text(_configuration(folder), "\n".join(lines) + "\n")


def command(folder: str, argv: list[str]) -> list[str]:
    """Return the command for the host that runs `argv` in the machine, word for word."""
    return ["ssh", "-F", _configuration(folder), HOST, "--", shlex.join(argv)]


def run(folder: str, argv: list[str], timeout: float = 120, check: bool = True) -> str:
    """Run a command in the machine and return what it prints.

    Raises UserError if it fails and `check` is set.
    """
    return capture(command(folder, argv), timeout, check).stdout


def close(folder: str) -> None:
    """End the kept connection, if there is one."""
    capture(["ssh", "-F", _configuration(folder), "-O", "exit", HOST], timeout=20, check=False)
