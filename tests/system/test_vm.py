"""Real virtual machines by Vagrant and libvirt, under KVM or under emulation."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time

import projects
import pytest
import test_faults as faults

from strata.experiment import config, planning
from strata.host import capacity
from strata.measure import log_sections
from strata.testbed import lifecycle
from strata.util import locks, paths
from strata.util.errors import UserError
from strata.vm import acceleration, libvirt, vagrant_box

VM = [{"vm": {"profile": "default", "fresh": "snapshot"}}]
VIRSH = ["virsh", "--quiet", "--connect", "qemu:///system"]


@pytest.fixture(scope="module", autouse=True)
def machine_disk(image):
    """The disk of the image, which the build of the default config's image made."""
    assert acceleration.read_known_accelerator()["accelerator"] in ("kvm", "tcg")
    return vagrant_box.require_box(image["recipe"])


def inside(top, *argv, timeout=300):
    done = subprocess.run(
        top.build_measured_command(list(argv)),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def kill_machines():
    """Kill all of Strata's machines that run; return their number."""
    kills = 0
    for name in libvirt.list_domains():
        with contextlib.suppress(UserError, OSError):
            process = libvirt.find_domain_process(name)
            with open(f"/proc/{process}/comm") as file:
                assert file.read().startswith("qemu")
            os.kill(process, signal.SIGKILL)
            kills += 1
    return kills


# Each kill takes a while under emulation.  test_vm_workloads.py has one, since it boots a machine
# anyway.
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_machine_killed_at_any_moment_costs_its_cell_alone(tmp_path, image, machine_stays):
    times = 10
    chance = random.Random(2014)
    # Emulated machines are measured once.
    names = [f"pausing{number}" for number in range(2 * times)]
    page = projects.default(
        environments={"vm": {"label": "{vm}", "layers": VM}},
        workloads=dict.fromkeys(names),
        repetitions=1,
    )
    folder = projects.beside_real(tmp_path / "p", page, dict.fromkeys(names, faults.pausing(2)))
    errors = tmp_path / "errors"
    with open(errors, "w") as file:
        run = projects.start(
            folder, "snakemake", "--cores", "1", "--keep-going", faults.TARGET, output=file
        )
    # Kills begin once the machine was saved, after its first cell: a boot takes a minute and is
    # tried again.
    projects.until(lambda: run.poll() is not None or faults.logs(folder), 900)
    kills = 0
    while kills < times and run.poll() is None:
        if kills:
            time.sleep(chance.uniform(0, 8))
        else:
            # The first kill hits a cell that is being measured.
            projects.until(
                lambda: run.poll() is not None or list(folder.glob("results/tmp/vm/*/*.log")), 300
            )
        kills += kill_machines()
    run.wait(timeout=600 + 60 * times)
    printed = errors.read_text()
    assert kills == times, printed
    assert "Traceback" not in printed
    projects.until(faults.settled, 120)
    assert libvirt.list_domains() == []
    assert faults.whole(folder)
    assert "its run step was ended: its virtual machine ended under it" in printed
    failed = [path.parent.name for path in folder.glob("results/failed/vm/*/1.json")]
    for name in failed:
        assert f"cell failed: vm · {name} · repetition 1" in printed
        assert f"snakemake --cores 1 results/raw/vm/{name}/1.log" in printed
        assert not (folder / f"results/raw/vm/{name}/1.log").exists()
    assert len(faults.logs(folder)) + len(failed) == 2 * times
    assert run.returncode == (1 if failed else 0)
    assert failed
    faults.finish(folder, 2 * times)


# Prints a machine's network card, processors, memory and boot.
TELL = (
    "cat /sys/class/net/eth0/address; nproc; awk '/MemTotal/ {print $2}' /proc/meminfo; "
    "cat /proc/sys/kernel/random/boot_id"
)
# Ends once it has reached the other machine and was reached by it, which takes both at once.
MEET = (
    "use IO::Socket::INET; my ($own, $part) = @ARGV; (my $other = $own) =~ s/\\d+$/11 - $part/e; "
    "my $s = IO::Socket::INET->new(LocalPort => 7777, Listen => 9, ReuseAddr => 1) or die qq(no "
    "port: $@\\n); "
    "sleep 1 until IO::Socket::INET->new(PeerAddr => $other, PeerPort => 7777, Timeout => 5); "
    "$s->accept; print qq(met\\n)"
)


@pytest.mark.long
def test_two_machines_share_the_host_and_run_at_the_same_time(tmp_path, image, machine_stays):
    number = {
        "about": "Systems",
        "schema": {"type": "integer", "minimum": 1, "maximum": 64},
        "value": 2,
    }
    both = {
        **projects.NOOP,
        "parameters": {"systems": number},
        "systems": "systems",
        "run": [
            {"argv": ["/bin/sh", "-c", TELL], "timeout": 60},
            {"argv": ["/usr/bin/perl", "-e", MEET, "{address}", "{part}"], "timeout": 60},
        ],
    }
    settings = projects.default(
        environments={"vm": {"layers": [{"vm": {"profile": "half", "fresh": "boot"}}]}},
        workloads={"both": None},
        repetitions=1,
        vm={"profiles": {"half": {"memory": "host", "pin": True}}},
    )
    folder = projects.beside_real(tmp_path / "p", settings, {"both": both})
    projects.good(folder, "snakemake", "--cores", "1", "results/raw/vm/both/1.log", timeout=1800)
    (record,) = projects.records(folder)
    machines = [system["vm"] for system in record["system"]["each"]]
    assert record["system"]["vm"] == machines[0]
    assert [row for vm in machines for row in vm["settings"] if not row["applied"]] == []
    sections = log_sections.split_sections(
        (folder / "results/raw/vm/both/1.log").read_text().splitlines(), log_sections.SYSTEM_MARKER
    )
    first, second = (
        " ".join(log_sections.select_system_lines(sections, system)).split() for system in (0, 1)
    )
    for at in (0, 3):
        assert first[at] != second[at]
    assert first[1] == second[1] == str(max(1, len(os.sched_getaffinity(0)) // 2))
    # Kernels lie at random places, and so manage a page more or less.
    assert int(first[2]) == pytest.approx(int(second[2]), rel=0.001)


@pytest.fixture
def tuned(checkout, image, machine_stays):
    """The tuned machine of the default config, booted, under the machine's lock.

    Gone afterwards.
    """
    entry = planning.build_plan(config.read_config(), capacity.read_host_facts())["environments"][
        "vm-tuned"
    ]
    with locks.hold_machine_lock():
        try:
            yield lifecycle.System("vm-tuned", entry["layers"], image)
        finally:
            lifecycle.take_down_systems()


@contextlib.contextmanager
def somebody_else():
    """Define a domain and a network that are not Strata's; gives their name."""
    libvirt.start_libvirt_daemon()
    name = "strata-somebody-else"
    xml = (
        f"<domain type='qemu'><name>{name}</name><memory "
        "unit='MiB'>64</memory><os><type>hvm</type></os></domain>",
        f"<network><name>{name}</name><bridge name='somebody0'/></network>",
    )
    for command, text in zip(("define", "net-define"), xml, strict=True):
        subprocess.run(
            [*VIRSH, command, "/dev/stdin"], input=text, text=True, check=True, capture_output=True
        )
    try:
        yield name
    finally:
        subprocess.run([*VIRSH, "undefine", name], check=True, capture_output=True)
        subprocess.run([*VIRSH, "net-undefine", name], check=True, capture_output=True)


def libvirt_knows(name):
    """Whether libvirt knows a domain and a network of this name."""
    listed = ("list", "net-list")
    return [
        name in subprocess.check_output([*VIRSH, kind, "--all", "--name"], text=True).split()
        for kind in listed
    ] == [True, True]


# In short runs the machine of test_vm_workloads.py is a tuned one.
@pytest.mark.long
def test_a_tuned_machine_shows_what_was_applied(tuned, image):
    facts = tuned.facts["facts"]["vm"]
    rows = {row["name"]: row for row in facts["settings"]}
    assert facts["started"] == "boot"
    assert facts["boot_seconds"] > 0
    for row in rows.values():
        assert row["applied"] or row["why"]
    if facts["accelerator"] == "tcg":
        assert rows["vhost-net"]["why"] == "emulation does not offer it"
        assert not rows["caches of the host"]["applied"]

    # The same files as everywhere, byte for byte.
    listing = json.loads(open(os.path.join(image["folder"], "manifest.json")).read())
    programs = sorted(path for path in listing["files"] if path.startswith("opt/strata/"))
    sums = inside(tuned.top, "sha256sum", *(f"/{path}" for path in programs)).splitlines()
    assert {line.split()[1].lstrip("/"): f"sha256:{line.split()[0]}" for line in sums} == {
        path: listing["files"][path] for path in programs
    }
    versions = inside(
        tuned.top, "dpkg-query", "--show", "--showformat", "${Package} ${Version}\\n"
    ).splitlines()
    assert dict(line.split(" ", 1) for line in versions) == listing["packages"]

    # The data disk is a disk of its own.
    assert inside(tuned.top, "stat", "-c", "%d", "/data") != inside(
        tuned.top, "stat", "-c", "%d", "/"
    )

    # It is reached over Strata's bridge.
    address = tuned.top.get_address()
    route = subprocess.check_output(["ip", "-o", "route", "get", address], text=True)
    assert paths.get_name_prefix() in route
