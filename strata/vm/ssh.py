"""The way into a machine: one configuration, kept in the system folder, and one connection for all commands."""

import os
import shlex

from strata.host import sockets
from strata.util.files import write_text
from strata.util.process import capture

HOST = "machine"
# The exit code by which ssh says that it has no connection, or none any more.
LOST = 255


def _configuration(folder: str) -> str:
    return os.path.join(folder, "ssh_config")


def write(folder: str, address: str, key: str, host_key: str) -> None:
    """Write the configuration for a machine at `address` that lets in `key` and is known by `host_key`."""
    known = os.path.join(folder, "known_hosts")
    write_text(known, f"{address} {host_key}\n")
    lines = [
        f"Host {HOST}",
        f"  HostName {address}",
        "  User root",
        f"  IdentityFile {key}",
        "  IdentitiesOnly yes",
        f"  UserKnownHostsFile {known}",
        "  GlobalKnownHostsFile /dev/null",
        "  StrictHostKeyChecking yes",
        *(f"  {key} {value}" for key, value in sockets.settings(folder).items()),
    ]
    write_text(_configuration(folder), "\n".join(lines) + "\n")


def command(folder: str, argv: list[str]) -> list[str]:
    """The command for the host that runs `argv` in the machine, word for word."""
    return ["ssh", "-F", _configuration(folder), HOST, "--", shlex.join(argv)]


def run(folder: str, argv: list[str], timeout: float = 120, check: bool = True) -> str:
    """What a command of the machinery prints in the machine."""
    return capture(command(folder, argv), timeout, check).stdout


def close(folder: str) -> None:
    """End the kept connection, if there is one."""
    capture(["ssh", "-F", _configuration(folder), "-O", "exit", HOST], timeout=20, check=False)
