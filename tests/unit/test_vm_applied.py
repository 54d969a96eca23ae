"""What a profile asked for against what is seen: nothing counts as applied because it was configured."""

import tuned

from strata.vm import applied, settings

TOPOLOGY = [{"cpu": cpu, "socket": 0, "core": cpu, "node": 0} for cpu in range(2)]
TUNED = settings.complete(tuned.PROFILE, "tiny")


def seen(**changes):
    """What a tuned machine shows when everything was applied."""
    disk = {"target": "vda", "file": "/a", "cache": "none", "io": "native", "iothread": "1"}
    found = {
        "live": {
            "caches": "passthrough",
            "huge_pages": True,
            "disks": [disk, {**disk, "target": "vdb"}],
            "iothreads": 1,
            "devices": ["0000:03:10.0"],
        },
        "process": {
            "resident_bytes": 10**8,
            "huge_bytes": 4 * 2**30,
            "vcpus": {"0": "0", "1": "1"},
            "emulator": "0",
            "vhost": True,
            "bound": {},
        },
        "guest": {
            "cpus": 2,
            "memory_bytes": 4 * 2**30 - 10**8,
            "shape": {"sockets": 1, "cores": 2, "threads": 1},
            "queues": 2,
            "nodes": 1,
            "caches": "L3 32768K",
            "host_caches": "L3 32768K",
        },
    }
    for path, value in changes.items():
        part, key = path.split("__")
        found[part][key] = value
    return found


def rows(accelerator="kvm", refused=None, **changes):
    wanted = settings.resolve(TUNED, TOPOLOGY, 24 * 2**30, accelerator)
    found = applied.rows(TUNED, wanted, **seen(**changes), refused=refused or {})
    return {row["name"]: row for row in found}


def test_all_that_is_seen_is_applied():
    found = rows()
    assert len(found) == 14
    assert all(row["applied"] and row["why"] is None for row in found.values())


def only_wrong(found):
    wrong = [row for row in found.values() if not row["applied"]]
    assert len(wrong) == 1
    return wrong[0]


def test_threads_that_run_elsewhere_are_seen():
    row = only_wrong(rows(process__vcpus={"0": "0-1", "1": "0-1"}))
    assert row["seen"] == "0→0-1, 1→0-1"
    assert row["why"]


def test_a_topology_that_was_dropped_on_the_way_is_seen():
    row = only_wrong(rows(guest__shape={"sockets": 2, "cores": 1, "threads": 1}))
    assert row["asked"] == "1 socket × 2 cores × 1 thread"
    assert row["seen"] == "2 sockets × 1 core × 1 thread"


def test_huge_pages_in_the_domain_alone_do_not_count():
    assert only_wrong(rows(process__huge_bytes=0))["name"] == "memory in huge pages"
    row = only_wrong(rows(process__huge_bytes=0, refused={"huge_pages": "the host could reserve 3 of 2048 huge pages"}))
    assert row["why"].startswith("the host could reserve 3")


def test_qemus_process_is_read_from_the_kernel(tmp_path):
    place = tmp_path / "42"
    for task, name, cpus in (("42", "qemu-system-x86", "0-1"), ("43", "CPU 0/KVM", "0"), ("44", "CPU 1/KVM", "1")):
        (place / "task" / task).mkdir(parents=True)
        (place / "task" / task / "comm").write_text(name + "\n")
        (place / "task" / task / "status").write_text(f"Name:\tx\nCpus_allowed_list:\t{cpus}\n")
    (place / "status").write_text("VmRSS:\t  1000 kB\nHugetlbPages:\t 2048 kB\nCpus_allowed_list:\t0-1\n")
    (place / "fd").mkdir()
    (place / "fd/7").symlink_to("/dev/vhost-net")
    assert applied.process(42, str(tmp_path)) == {
        "resident_bytes": 1024000,
        "huge_bytes": 2097152,
        "vcpus": {"0": "0", "1": "1"},
        "emulator": "0-1",
        "vhost": True,
        "bound": {},
    }
    (place / "fd/7").unlink()
    assert applied.process(42, str(tmp_path))["vhost"] is False


MAPS = """
55d0 default file=/usr/bin/qemu-system-x86_64 mapped=9 N0=9 kernelpagesize_kB=4
7f10 bind:0 file=/dev/hugepages/libvirt/qemu/1/a huge dirty=512 N0=512 kernelpagesize_kB=2048
7f50 bind=static:1 anon=262144 dirty=262144 N1=262144 kernelpagesize_kB=4
7f90 bind:1 anon=3 dirty=3 N1=3 kernelpagesize_kB=4
7fd0 bind:1
"""


def test_memory_that_is_bound_to_a_node_is_read_from_the_kernel():
    assert applied.bound(MAPS) == {"0": 1024, "1": 1024}
    assert applied.bound("") == {}
