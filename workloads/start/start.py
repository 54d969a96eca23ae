#!/usr/bin/python3
"""Start a command in sandboxes, in random order, and print how long each start took.

Usage: start.py RUNTIMES STARTS TOGETHER EACH SEED (RUNTIMES and TOGETHER with commas).  Each
runtime starts the command STARTS times alone; then TOGETHER loops start it EACH times at once.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

LXC = """lxc.rootfs.path = dir:/run/root\nlxc.rootfs.options = ro\nlxc.init.cmd = /first
lxc.net.0.type = empty\nlxc.mount.auto = proc:mixed\nlxc.autodev = 0\nlxc.cgroup.relative = 1
lxc.rootfs.mount = /run/mount\nlxc.console.path = none\nlxc.tty.max = 0\nlxc.pty.max = 0\n"""
# {0} is the slot: one of several starts at a time.
COMMANDS = {
    "runc": "runc --root /run/runc run --bundle /run/{0} {0}",
    "crun": "crun --root /run/crun run --bundle /run/{0} {0}",
    "runsc": "/run/gvisor --network=none --root /run/runsc run --bundle /run/{0} {0}",
    "bwrap": "bwrap --unshare-all --ro-bind /run/root / --proc /proc --dev /dev /first",
    "nspawn": "systemd-nspawn --quiet --register=no --keep-unit --read-only --private-network"
    " --link-journal=no --timezone=off --resolv-conf=off --console=pipe --machine={0}"
    " --directory=/run/root /first",
    "lxc": "lxc-start -F -P /run/lxc -n {0} -f /run/lxc/config",
}


def write_bundles(slots: int) -> None:
    """Write the small root of all sandboxes, and a bundle for each slot, below /run.

    start.sh has made /run empty and of this program's own.  `COMMANDS` name the paths.
    slots: the largest number of starts at the same time.
    A bundle is what OCI runtimes start; its sandbox gets a control group below this process's own.
    """
    for name in ("dev", "etc", "proc", "run", "sys", "tmp", "usr"):
        os.makedirs(f"/run/root/{name}")
    shutil.copy(f"{os.path.dirname(__file__)}/first", "/run/root/first")
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        group = file.readline().strip().split(":", 2)[2]
    spaces = [{"type": name} for name in ("mount", "pid", "network", "ipc", "uts")]
    files = {"mount/none": "", "lxc/config": LXC}
    for slot in range(slots):
        name = f"s{slot}"
        bundle = {
            "ociVersion": "1.0.2",
            "process": {"args": ["/first"], "cwd": "/", "user": {"uid": 0, "gid": 0}},
            "root": {"path": "/run/root", "readonly": True},
            "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
            "linux": {"namespaces": spaces, "cgroupsPath": f"{group}/{name}"},
        }
        files[f"{name}/config.json"] = json.dumps(bundle)
    for path, text in files.items():
        os.makedirs(os.path.dirname(f"/run/{path}"))
        with open(f"/run/{path}", "w", encoding="utf-8") as file:
            file.write(text)


def start_command(runtime: str, slot: int = 0, starts: int = 1) -> dict[str, float]:
    """Start the command some times in a row, and return the times of the last start, in seconds.

    Each start lasts until the sandbox is removed.
    runtime: a key of `COMMANDS`.  slot: no other start may use it at the same time.
    The keys of the result are `first_seconds`, until the command begins, and `seconds`, until the
    removal.
    Raises OSError, ValueError or SubprocessError if the sandbox does not start.
    """
    argv = COMMANDS[runtime].format(f"s{slot}").split()
    for _ in range(starts):
        begun = time.time_ns()
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        ended = time.time_ns()
        if done.returncode:
            raise OSError(f"status {done.returncode}: {done.stderr.decode(errors='replace')[:300]}")
        first = int(done.stdout)
    return {"first_seconds": (first - begun) / 1e9, "seconds": (ended - begun) / 1e9}


def find_obstacle(runtime: str) -> str | None:
    """Return why a runtime cannot start the command here; None if one of three trials succeeds.

    One failure proves nothing: runc's copy of itself may be busy.
    """
    reason = None
    for _ in range(3):
        try:
            start_command(runtime)
            return None
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            reason = str(error)
    return reason


def main(runtimes: str, starts: str, together: str, each: str, seed: str) -> None:
    """Try every runtime, then start the command by the runtimes that work, and print each time.

    The arguments are texts of the command line, as the module's usage describes them.
    parse.py reads the objects by their keys.  The seed and the order of the draws decide in which
    order the runtimes start.
    """
    counts = [int(count) for count in together.split(",")]
    chance = random.Random(seed)
    working = []
    write_bundles(max(counts))
    for name in runtimes.split(","):
        reason = find_obstacle(name)
        if reason is None:
            working.append(name)
            print(json.dumps({"runtime": name}))
        else:
            print(json.dumps({"runtime": name, "unavailable": reason}))
    for number in range(int(starts)):
        for name in chance.sample(working, len(working)):
            print(json.dumps({"start": number, "runtime": name, **start_command(name)}))
    points = [(name, count) for name in working for count in counts]
    for name, count in chance.sample(points, len(points)):
        begun = time.monotonic()
        with ThreadPoolExecutor(count) as threads:
            list(threads.map(start_command, [name] * count, range(count), [int(each)] * count))
        row = {"together": count, "runtime": name, "starts": count * int(each)}
        print(json.dumps({**row, "seconds": time.monotonic() - begun}))
    print(json.dumps({"done": True}))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        sys.exit(f"a runtime that worked before failed: {error}")
