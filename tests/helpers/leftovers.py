"""What of ours is on this machine, and whether another run is under way on it."""

import json
import os
import re
import subprocess
import time
import uuid
from pathlib import Path

from strata.testbed import journal
from strata.util import paths
from strata.util.process import is_alive
from strata.vm import libvirt

# Every process that this session starts has it in its environment.  A process without it belongs to
# another run on this machine.
SESSION = f"STRATA_TEST_SESSION={uuid.uuid4().hex}"
os.environ.update([SESSION.split("=")])
# Seconds that the run of somebody else gets to end.
PATIENCE = 900


def is_ours(process):
    """Whether a process is this one or was started by it.

    None if there is no such process, or not yet.
    """
    if process == os.getpid():
        return True
    try:
        told = Path(f"/proc/{process}/environ").read_bytes()
        return SESSION.encode() in told.split(b"\0") if told else None
    except (FileNotFoundError, ProcessLookupError):
        return None
    except PermissionError:
        return False


def others_run():
    """The process of another run that has a system up on this machine; None if there is none."""
    owners = [thing["owner"] for thing in journal.read_entries() if is_alive(thing["owner"])]
    return next((owner["pid"] for owner in owners if is_ours(owner["pid"]) is False), None)


def wait_for_others(config):
    """Wait, and print so, while another run has its system up.

    Things of that system are not leftovers of a test.
    """
    process, deadline = others_run(), time.monotonic() + PATIENCE
    if process is None:
        return
    with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(
            f"\nanother run (process {process}) is under way on this machine; waiting for its end",
            flush=True,
        )
    while others_run() is not None:
        assert time.monotonic() < deadline, (
            f"another run (process {process}) is under way on this machine"
        )
        time.sleep(1)


def processes(pattern):
    """Processes of this session whose command line matches."""
    return {process for process in lines("pgrep", "-f", pattern) if is_ours(process)}


def lines(*argv):
    return set(
        subprocess.run(argv, capture_output=True, text=True, check=False).stdout.split("\n")
    ) - {""}


def left_in_libvirt():
    """Names of all that libvirt holds; nothing if it is not up."""
    virsh = ["virsh", "--quiet", "--connect", "qemu:///system"]
    kinds = {"domains": "list", "libvirt networks": "net-list", "pools": "pool-list"}
    if not libvirt.is_libvirt_answering():
        return dict.fromkeys(kinds, frozenset())
    return {kind: lines(*virsh, command, "--all", "--name") for kind, command in kinds.items()}


# Rules that come with the first network of libvirt or Podman, and stay: jumps to their chains, and
# marks in these.
STAYS = r"-A \w+ (.* )?-j (LIBVIRT_\w+|NETAVARK[A-Z_-]+)|-A NETAVARK-HOSTPORT-(MASQ|SETMARK) .*"


def rules():
    """The firewall's rules, without what stays."""
    found = {line for command in ("iptables-save", "ip6tables-save") for line in lines(command)}
    return {line for line in found if line.startswith("-A") and not re.fullmatch(STAYS, line)}


def left_on_machine():
    """Everything of ours that could be left on this machine, named."""
    mounts = {
        line.split()[4]
        for line in open("/proc/self/mountinfo")
        if re.search("/systems/strata-|/merged ", line)
    }
    named = ["(", "-name", "strata-*", "-o", "-path", "*/strata*/libpod-*", ")"]
    groups = lines("find", "/sys/fs/cgroup", "-mindepth", "1", "-type", "d", *named)
    folder = os.path.join(paths.get_home_folder(), "systems")
    snapshots = os.path.join(paths.get_home_folder(), "vm", "snapshots")
    return {
        "containers": lines("docker", "ps", "--all", "--quiet"),
        "volumes": lines("docker", "volume", "ls", "--quiet"),
        "holders": lines("pgrep", "-f", "^[^ ]*conmon .*strata-"),
        "networks": lines("docker", "network", "ls", "--format", "{{.Name}}"),
        "mounts": mounts,
        "groups": groups,
        "systems": set(os.listdir(folder)) if os.path.isdir(folder) else set(),
        "state": json.dumps(journal.read_entries()),
        "cells": processes("^[^ ]*python[^ ]* (-S )?-m strata cell"),
        "tools": lines("pgrep", "-f", "^/opt/strata/workloads/"),
        **left_in_libvirt(),
        # Not those that libvirt starts for a moment to see what they can do.
        "machines": lines("pgrep", "-f", "^[^ ]*qemu-system.* -(name|kernel) "),
        "connections": lines("pgrep", "-f", "^ssh: .*/strata-"),
        "snapshots": set(os.listdir(snapshots)) if os.path.isdir(snapshots) else set(),
        "namespaces": lines("ip", "netns", "list"),
        "rules": rules(),
        "routes": lines("ip", "route"),
        "links": {
            name
            for name in os.listdir("/sys/class/net")
            if name.startswith(("stv", "strata", "podman"))
        },
        "RAM disks": lines("losetup", "--noheadings", "--output", "NAME,BACK-FILE"),
        "huge pages": open("/proc/sys/vm/nr_hugepages").read(),
    }


def settle(before, seconds=30):
    """The machine's state once it equals `before`, or after `seconds` without another run."""
    last = time.monotonic() + PATIENCE
    deadline = time.monotonic() + seconds
    while (now := left_on_machine()) != before and time.monotonic() < deadline:
        if others_run() is not None:
            deadline = min(last, time.monotonic() + seconds)
        time.sleep(0.2)
    return now


def calm(seconds=20):
    """The machine's state once the cells of another test's run have ended, or after `seconds`."""
    deadline = time.monotonic() + seconds
    while (now := left_on_machine())["cells"] and time.monotonic() < deadline:
        time.sleep(0.2)
    return now
