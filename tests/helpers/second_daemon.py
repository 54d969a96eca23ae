"""A second Docker daemon with its own options, in a network namespace apart from the host's."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from strata.host import cgroups

NAME = "strata-test-docker"
FOLDER = Path("/var/tmp", NAME)
# A filter of system calls that a daemon may be given.
PROFILE = FOLDER / "profile.json"
SOCKET = f"unix://{FOLDER}/socket"
# Arguments: the folder, then dockerd's options.  Mapped users are in files of the daemon's own.
START = """
for kind in uid gid; do
    { cat "/etc/sub$kind" 2>/dev/null; printf '%s:200000:65536\\n' nobody nogroup; } >"$1/sub$kind"
    [ -e "/etc/sub$kind" ] && mount --bind "$1/sub$kind" "/etc/sub$kind"
done
folder=$1; shift
exec dockerd "$@" >"$folder/log" 2>&1
"""


def run(*argv: str, **more: str) -> subprocess.CompletedProcess:
    """Run a command in the daemon's network namespace."""
    inside = ["nsenter", f"--net=/run/netns/{NAME}", *argv]
    variables = {**os.environ, "DOCKER_HOST": SOCKET, **more}
    return subprocess.run(inside, capture_output=True, text=True, env=variables, timeout=120)


@contextlib.contextmanager
def up(*words: str) -> Iterator[None]:
    """Have the daemon up with these options."""
    end()
    FOLDER.mkdir()
    (FOLDER / "config.json").write_text("{}")
    PROFILE.write_text('{"defaultAction": "SCMP_ACT_ALLOW"}')
    subprocess.run(["ip", "netns", "add", NAME], check=True)
    try:
        subprocess.run(["ip", "-n", NAME, "link", "set", "lo", "up"], check=True)
        files = {
            "config-file": "config.json",
            "data-root": "data",
            "exec-root": "exec",
            "pidfile": "pid",
        }
        places = [f"--{option}={FOLDER}/{name}" for option, name in files.items()]
        namespaces = ["nsenter", f"--net=/run/netns/{NAME}", "unshare", "--mount"]
        start = ["--propagation", "private", "sh", "-euc", START, "sh", str(FOLDER)]
        argv = [*namespaces, *start, *places, f"--host={SOCKET}", *words]
        daemon = subprocess.Popen(argv, start_new_session=True)
        deadline = time.monotonic() + 30
        while run("docker", "version").returncode:
            gone = daemon.poll() is not None or time.monotonic() > deadline
            assert not gone, (FOLDER / "log").read_text()[-2000:]
            time.sleep(0.2)
        yield
    finally:
        end()


def end() -> None:
    """End the daemon with everything that it started and keeps, also that of a killed test."""
    listed = subprocess.run(
        ["pgrep", "-af", f"shim.*{FOLDER}"], capture_output=True, text=True
    ).stdout
    shims = re.findall(r"(?m)^(\d+) .* -id (\w+)", listed)
    named = subprocess.run(
        ["ip", "netns", "pids", NAME], capture_output=True, text=True
    ).stdout.split()
    for process in [*named, *(shim for shim, _ in shims)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(process), signal.SIGKILL)
    for _, container in shims:
        # What runs in it goes with its control group.
        cgroups.remove_groups(container)
    deadline = time.monotonic() + 10
    while subprocess.run(["ip", "netns", "pids", NAME], capture_output=True).stdout.strip():
        assert time.monotonic() < deadline, f"what runs in {NAME} does not end"
        time.sleep(0.05)
    subprocess.run(["ip", "netns", "del", NAME], capture_output=True, check=False)
    subprocess.run(["rm", "-rf", "--one-file-system", FOLDER], check=True)


def strata(folder: Path, *words: str) -> subprocess.CompletedProcess:
    return run("env", "-C", str(folder), sys.executable, "-m", "strata", *words)
