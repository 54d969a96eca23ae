"""A second machine on this one: a network namespace with a real sshd in it.

A separate cable joins it to the host.  `python tests/helpers/second_machine.py up FOLDER` starts
it, and `down FOLDER` stops it.  Its name in FOLDER/ssh_config is `other`.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

NAME = "strata-other"
DEVICE = "strother"
HOST, OTHER = "192.168.251.1", "192.168.251.2"
PORT = 22022


def sh(*argv, check=True):
    return subprocess.run(argv, capture_output=True, text=True, check=check).stdout


def up(folder):
    """Bring the machine up, and return its ssh configuration.

    Keys, configurations and the daemon's process id lie in `folder`.
    """
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    key, host_key = folder / "key", folder / "host_key"
    for path in (key, host_key):
        path.unlink(missing_ok=True)
        sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path))
    (folder / "authorized").write_text((folder / "key.pub").read_text())
    (folder / "known").write_text(f"[{OTHER}]:{PORT} {(folder / 'host_key.pub').read_text()}")
    (folder / "sshd_config").write_text(
        f"Port {PORT}\nListenAddress {OTHER}\nHostKey {host_key}\n"
        f"AuthorizedKeysFile {folder}/authorized\n"
        "StrictModes no\nUsePAM no\nPermitRootLogin yes\n"
        "PasswordAuthentication no\nMaxSessions 50\n"
        f"PidFile {folder}/sshd.pid\n"
    )
    (folder / "ssh_config").write_text(
        f"Host other\n  HostName {OTHER}\n  Port {PORT}\n  User root\n"
        f"  IdentityFile {key}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder}/known\n  StrictHostKeyChecking yes\n"
    )
    os.makedirs("/run/sshd", exist_ok=True)
    sh("ip", "netns", "add", NAME)
    try:
        sh("ip", "link", "add", DEVICE, "type", "veth", "peer", "name", "eth0", "netns", NAME)
        sh("ip", "address", "add", f"{HOST}/24", "dev", DEVICE)
        sh("ip", "link", "set", DEVICE, "up")
        for words in (
            ["address", "add", f"{OTHER}/24", "dev", "eth0"],
            ["link", "set", "eth0", "up"],
        ):
            sh("ip", "-n", NAME, *words)
        sh("ip", "-n", NAME, "link", "set", "lo", "up")
        sh(
            "nsenter",
            f"--net=/run/netns/{NAME}",
            "/usr/sbin/sshd",
            "-f",
            str(folder / "sshd_config"),
        )
        reach = ["ssh", "-F", str(folder / "ssh_config"), "-o", "ConnectTimeout=2", "other", "true"]
        for _ in range(50):
            if subprocess.run(reach, capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.1)
    except BaseException:
        down(folder)
        raise
    return folder / "ssh_config"


def down(folder):
    """Take it down, also where it came up by half."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        daemon = int((Path(folder) / "sshd.pid").read_text())
        os.kill(daemon, signal.SIGTERM)
        while os.path.exists(f"/proc/{daemon}"):
            time.sleep(0.05)
    sh("ip", "link", "delete", DEVICE, check=False)
    sh("ip", "netns", "delete", NAME)


@contextlib.contextmanager
def second_machine(folder):
    """Yield the path of an ssh configuration that knows it as ``other``."""
    configuration = up(folder)
    try:
        yield configuration
    finally:
        down(folder)


if __name__ == "__main__":
    {"up": up, "down": down}[sys.argv[1]](sys.argv[2])
