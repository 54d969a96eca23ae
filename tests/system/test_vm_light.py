"""A light machine, booted for real: the same files and kernel as a full one's, a cell in it, and nothing left of it."""

import hashlib
import json
import os
import signal
import subprocess

import projects
import pytest
import test_faults as faults
from test_vm import inside

from strata.experiment import config
from strata.host import capacity
from strata.system import testbed
from strata.vm import disk, libvirt, light

PROFILE = {
    "memory": "1GiB",
    "pin": True,
    "topology": "host",
    "disk_cache": "none",
    "disk_io": "native",
    "iothread": True,
}
ENVIRONMENTS = {"vm-light": {"label": "{vm}, light", "layers": [{"microvm": {"profile": "small"}}]}}
OVER = {"environments": ENVIRONMENTS, "vm": {"profiles": {"small": PROFILE}}}
# A boot and a disk of the image take longer than `make test` has for them; without one: tests/unit/test_vm_light.py.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def qemus():
    """The processes of light machines of ours."""
    found = subprocess.run(["pgrep", "-f", f"qemu.* -name {libvirt.prefix()}"], capture_output=True, check=False)
    return [int(word) for word in found.stdout.split()]


@pytest.fixture
def up(checkout, image, machine_stays):
    """A light machine, booted, under the machine's lock; gone afterwards."""
    done = projects.run(
        checkout, "strata", "image", "--config", *(f"{key}={json.dumps(value)}" for key, value in OVER.items())
    )
    assert done.returncode == 0, done.stderr
    entry = config.experiment(config.read(OVER), capacity.facts())["environments"]["vm-light"]
    if not entry["available"]:
        pytest.skip(entry["reason"])
    with testbed.exclusive():
        try:
            yield testbed.bring_up("vm-light", entry["layers"], image)
        finally:
            testbed.take_down()


def test_it_holds_the_same_files_and_what_its_profile_asks_for(up, image, tmp_path):
    facts = up.facts["facts"]["vm"]
    assert (facts["started"], facts["restore_seconds"]) == ("boot", None)
    rows = {row["name"]: row for row in facts["settings"]}
    thread = rows.pop("thread of its own for disk I/O")
    assert thread["applied"] is (facts["accelerator"] == "kvm")
    for row in rows.values():
        assert row["applied"] or row["name"] == "caches of the host", row

    # The same files as everywhere, byte for byte, and the kernel that was put beside them.
    listing = json.loads(open(os.path.join(image["folder"], "manifest.json")).read())
    programs = sorted(path for path in listing["files"] if path.startswith("opt/strata/"))
    sums = inside(up.top, "sha256sum", *(f"/{path}" for path in programs)).splitlines()
    assert {line.split()[1].lstrip("/"): f"sha256:{line.split()[0]}" for line in sums} == {
        path: listing["files"][path] for path in programs
    }
    assert inside(up.top, "uname", "-r") == disk.require(image["recipe"], disk.LIGHT)["kernel"]
    assert facts["versions"]["kernel"] == inside(up.top, "uname", "-r")
    assert inside(up.top, "sh", "-c", "ls /sys/bus/pci/devices 2>/dev/null || true") == ""
    assert inside(up.top, "cat", "/proc/1/comm") == "busybox"

    # It is as a system that was booted in full: clock, files, folders that programs expect, a disk for data.
    assert abs(int(inside(up.top, "date", "+%s")) - int(subprocess.check_output(["date", "+%s"]))) <= 5
    assert inside(up.top, "sh", "-c", "ulimit -n; ulimit -Hn").split() == ["1024", "524288"]
    assert inside(up.top, "bash", "-c", "cat <(echo there)") == "there"
    assert inside(up.top, "stat", "-f", "-c", "%T", "/dev/shm", "/data").split() == ["tmpfs", "ext2/ext3"]
    assert inside(up.top, "stat", "-c", "%d", "/data") != inside(up.top, "stat", "-c", "%d", "/")
    content = os.urandom(100_000)
    (tmp_path / "in").write_bytes(content)
    up.top.put(str(tmp_path / "in"), "/data/file")
    assert inside(up.top, "sha256sum", "/data/file").split()[0] == hashlib.sha256(content).hexdigest()

    # It is reached over a bridge of our own, runs in a group beside those of containers, and holds memory.
    route = subprocess.check_output(["ip", "-o", "route", "get", up.top.address()], text=True)
    assert libvirt.bridge() in route
    (process,) = up.top.processes()
    groups = open(f"/proc/{process}/cgroup").read()
    assert f"/{up.facts['id']}" in groups
    assert facts["host_memory_bytes"] > 2**26
    assert up.top.left() == []
    subprocess.run(up.top.command(["sh", "-c", "setsid sleep 300 >/dev/null 2>&1 &"]), check=True)
    assert up.top.left() == ["sleep 300"]

    testbed.take_down()
    assert qemus() == []
    assert not os.path.exists(f"/sys/class/net/{light.tap(0)}")


def test_a_cell_is_measured_in_it_and_a_run_that_is_killed_leaves_nothing(tmp_path, image, machine_stays):
    page = projects.default(**OVER, repetitions=1, workloads={"stream": None, "startup": None})
    folder = projects.make(tmp_path / "p", page)
    logs = [f"results/raw/vm-light/{name}/1.log" for name in ("stream", "startup")]
    done = projects.run(folder, "snakemake", "--cores", "1", *logs, "--config", "partial=true", timeout=800)
    assert done.returncode == 0, done.stderr
    found = {record["workload"]: record for record in projects.records(folder)}
    assert found["stream"]["system"]["vm"]["boot_seconds"] > 0
    assert found["stream"]["observed"]["inside"]["memory_bytes"] < 2**30
    told = [json.loads(line) for line in (folder / logs[1]).read_text().splitlines() if line.startswith('{"start"')]
    assert told[0]["start"] == "boot"
    assert told[0]["memory_bytes"] > 2**26
    tidy = projects.run(folder, "snakemake", "--cores", "1", "results/tidy/stream.csv", "--config", "partial=true")
    assert tidy.returncode == 0, tidy.stderr
    assert (folder / "results/tidy/stream.csv").read_text().count("vm-light,stream") >= 4

    # Killed while the machine boots: the next cell or `clean` removes what is there.
    killed = faults.start(folder, "--force", logs[0])
    faults.wait_until(lambda: killed.poll() is not None or qemus(), 120)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert projects.run(folder, "strata", "clean").returncode == 0
    assert faults.settled()
    assert qemus() == []
