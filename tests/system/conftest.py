"""Real Docker, the real image, and a look at the machine before and after."""

import json
import os
import re
import subprocess
import time

import projects
import pytest

from strata import layers
from strata.base import places
from strata.experiment import workload
from strata.system import state
from strata.vm import libvirt


def lines(*argv):
    return set(subprocess.run(argv, capture_output=True, text=True, check=False).stdout.split("\n")) - {""}


def left_in_libvirt():
    """Names of all that libvirt holds; nothing where it is not up."""
    virsh = ["virsh", "--quiet", "--connect", "qemu:///system"]
    kinds = {"domains": "list", "libvirt networks": "net-list", "pools": "pool-list"}
    if not libvirt.answers():
        return dict.fromkeys(kinds, frozenset())
    return {kind: lines(*virsh, command, "--all", "--name") for kind, command in kinds.items()}


def rules():
    """The firewall's rules; libvirt's jumps to its own chains come with its first network and are the daemon's."""
    found = {line for command in ("iptables-save", "ip6tables-save") for line in lines(command)}
    return {line for line in found if line.startswith("-A") and not re.fullmatch(r"-A \w+ -j LIBVIRT_\w+", line)}


def left_on_machine():
    """Everything of ours that could be left on this machine, named."""
    mounts = {line.split()[4] for line in open("/proc/self/mountinfo") if "/systems/strata-" in line}
    groups = lines("find", "/sys/fs/cgroup", "-mindepth", "1", "-type", "d", "-name", "strata-*")
    folder = os.path.join(places.home(), "systems")
    snapshots = os.path.join(places.home(), "vm", "snapshots")
    return {
        "containers": lines("docker", "ps", "--all", "--quiet"),
        "volumes": lines("docker", "volume", "ls", "--quiet"),
        "networks": lines("docker", "network", "ls", "--format", "{{.Name}}"),
        "mounts": mounts,
        "groups": groups,
        "systems": set(os.listdir(folder)) if os.path.isdir(folder) else set(),
        "state": json.dumps(state.read()),
        "keepers": lines("pgrep", "-f", "^[^ ]*python[^ ]* (-S )?-m strata keeper"),
        "cells": lines("pgrep", "-f", "^[^ ]*python[^ ]* (-S )?-m strata cell"),
        "tools": lines("pgrep", "-f", "^/opt/strata/workloads/"),
        **left_in_libvirt(),
        "machines": lines("pgrep", "-f", "^[^ ]*qemu-system"),
        "connections": lines("pgrep", "-f", "^ssh: .*/strata-"),
        "snapshots": set(os.listdir(snapshots)) if os.path.isdir(snapshots) else set(),
        "namespaces": lines("ip", "netns", "list"),
        "rules": rules(),
        "routes": lines("ip", "route"),
        "links": {name for name in os.listdir("/sys/class/net") if name.startswith(("stv", "strata"))},
        "huge pages": open("/proc/sys/vm/nr_hugepages").read(),
    }


def settle(before, seconds=30):
    """The machine as it is once it equals `before`, or after some seconds."""
    deadline = time.monotonic() + seconds
    while (now := left_on_machine()) != before and time.monotonic() < deadline:
        time.sleep(0.2)
    return now


def pytest_collection_modifyitems(items):
    """What needs no image comes first, what needs a machine last: a cheap failure is told early."""
    items.sort(key=lambda item: ("image" in item.fixturenames, item.path.name.startswith("test_vm")))


def calm(seconds=20):
    """The machine as it is once what ends with the run of another test has ended, or after some seconds."""
    deadline = time.monotonic() + seconds
    while ((now := left_on_machine())["keepers"] or now["cells"]) and time.monotonic() < deadline:
        time.sleep(0.2)
    return now


@pytest.fixture(scope="session", autouse=True)
def services():
    """Docker and libvirt answer from the start, so that what the distribution defines of its own is seen before."""
    for name in ("dockerd", "libvirtd"):
        subprocess.run([projects.ROOT / "scripts" / f"{name}.sh"], check=True, timeout=120)


@pytest.fixture
def machine_stays():
    """The test leaves nothing on the machine, nor of any layer what that finds by its own marks."""
    before = calm()
    yield before
    assert settle(before) == before
    if state.read()["system"] is None:
        assert [left for name in layers.LAYERS for left in layers.layer_class(name).sweep()] == []


@pytest.fixture(scope="session")
def image():
    """The image of the checkout, built if it is not in the cache."""
    done = projects.run(projects.ROOT, "strata", "image", timeout=1800)
    assert done.returncode == 0, done.stderr
    found = json.loads((projects.ROOT / "results/image.json").read_text())
    return {**found, "folder": os.path.join(places.home(), "images", found["recipe"])}


@pytest.fixture
def see_image():
    """See that Docker on the host has an image, as a container that comes up does."""

    def see(image):
        context = layers.Context("strata-see-image", "", image)
        layers.build([{"docker": {"network": "host", "data": "layered"}}], context)[-1].see_image()

    return see


@pytest.fixture
def checkout(monkeypatch):
    workload.load.cache_clear()
    monkeypatch.chdir(projects.ROOT)
    monkeypatch.delenv("STRATA_OWNER", raising=False)
    return projects.ROOT
