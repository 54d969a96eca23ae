"""A setting of a profile counts as applied where it is seen, not where it was configured."""

import pytest
import tuned

from strata.util import validation
from strata.vm import applied, settings

TOPOLOGY = [{"cpu": cpu, "socket": 0, "core": cpu, "node": 0} for cpu in range(2)]
DISK = {"cache": "none", "io": "native", "iothread": "1"}
TUNED = settings.complete_profile(tuned.PROFILE, "tiny")


# Observations of a tuned machine with all settings applied.
SEEN = {
    "disks": [DISK, DISK],
    "devices": ["0000:03:10.0"],
    "huge_mib": 4096,
    "vcpus": {"0": "0", "1": "1"},
    "emulator": "0",
    "vhost": True,
    "bound": {},
    "cpus": 2,
    "memory_bytes": 4 * 2**30 - 10**8,
    "shape": [1, 2, 1],
    "queues": 2,
    "nodes": 1,
    "caches": "L3 32768K",
    "host_caches": "L3 32768K",
}


def rows(accelerator="kvm", refused=None, **changes):
    wanted = settings.resolve_machine_settings(TUNED, TOPOLOGY, 24 * 2**30, accelerator)
    found_rows = applied.compare_settings(TUNED, wanted, SEEN | changes, refused or {})
    record = validation.load_schema("record")
    layout = record.schema["$defs"]["vm"]["properties"]["settings"]
    assert validation.find_schema_faults(record.evolve(schema=layout), found_rows) == []
    return {row["name"]: row for row in found_rows}


def test_all_that_is_seen_is_applied():
    by_name = rows()
    assert len(by_name) == 14
    assert all(row["applied"] and row["why"] is None for row in by_name.values())


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("vCPUs", {"cpus": 1}),
        ("memory", {"memory_bytes": 2**30}),
        ("vCPUs pinned one to one", {"vcpus": {"0": "0-1", "1": "0-1"}}),
        ("topology of the host", {"shape": [2, 1, 1]}),
        ("memory nodes", {"nodes": 2}),
        ("caches of the host", {"caches": "L3 16384K"}),
        ("memory in huge pages", {"huge_mib": 0}),
        ("cache mode of the disks", {"disks": [DISK, {**DISK, "cache": None}]}),
        ("disk I/O", {"disks": [DISK, {**DISK, "io": "threads"}]}),
        ("thread of its own for disk I/O", {"disks": [DISK, {**DISK, "iothread": None}]}),
        ("QEMU's other threads", {"emulator": "0-1"}),
        ("vhost-net", {"vhost": None}),
        ("queues of the network card", {"queues": 1}),
        ("device 0000:03:10.0", {"devices": []}),
    ],
)
def test_what_is_not_seen_is_not_applied_and_says_why(name, change):
    assert [row["name"] for row in rows(**change).values() if not row["applied"]] == [name]
    assert rows(**change)[name]["why"]


def test_what_was_left_out_before_the_start_says_why():
    by_name = rows(
        huge_mib=0, refused={"huge_pages": "the host could reserve 3 of 2048 huge pages"}
    )
    assert by_name["memory in huge pages"]["why"].startswith("the host could reserve 3")


def test_qemus_process_is_read_from_the_kernel(tmp_path):
    place = tmp_path / "42"
    for task, name, cpus in (
        ("42", "qemu-system-x86", "0-1"),
        ("43", "CPU 0/KVM", "0"),
        ("44", "CPU 1/KVM", "1"),
    ):
        (place / "task" / task).mkdir(parents=True)
        (place / "task" / task / "status").write_text(
            f"Name:\t{name}\nCpus_allowed_list:\t{cpus}\n"
        )
    (place / "status").write_text("HugetlbPages:\t 2048 kB\nCpus_allowed_list:\t0-1\n")
    (place / "fd").mkdir()
    (place / "fd/7").symlink_to("/dev/vhost-net")
    assert applied.observe_qemu_process(42, str(tmp_path)) == {
        "huge_mib": 2,
        "vcpus": {"0": "0", "1": "1"},
        "emulator": "0-1",
        "vhost": True,
        "bound": {},
    }
    (place / "fd/7").unlink()
    assert applied.observe_qemu_process(42, str(tmp_path))["vhost"] is False


MAPS = """
55d0 default file=/usr/bin/qemu-system-x86_64 mapped=9 N0=9 kernelpagesize_kB=4
7f10 bind:0 file=/dev/hugepages/libvirt/qemu/1/a huge dirty=512 N0=512 kernelpagesize_kB=2048
7f50 bind=static:1 anon=262144 dirty=262144 N1=262144 kernelpagesize_kB=4
7f90 bind:1 anon=3 dirty=3 N1=3 kernelpagesize_kB=4
7fd0 bind:1
"""


def test_memory_that_is_bound_to_a_node_is_read_from_the_kernel():
    assert applied.parse_bound_memory(MAPS) == {"0": 1024, "1": 1024}
    assert applied.parse_bound_memory("") == {}
