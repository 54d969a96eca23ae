"""The groups of systems, with plain files in the place of the kernel's.

Groups that systemd makes are in tests/rig, others in tests/system.
"""

import pytest

from strata.host import cgroups
from strata.measure import costs
from strata.util.errors import UserError


@pytest.fixture
def root(tmp_path, monkeypatch):
    """The top of control groups of version 2, or of 1 once `cgroup.controllers` is removed."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root/cgroup.controllers").write_text("cpu memory\n")
    monkeypatch.setattr(cgroups, "ROOT", str(tmp_path / "root"))
    monkeypatch.setattr(cgroups, "is_managed_by_systemd", lambda: False)
    monkeypatch.setattr(cgroups, "wrap_as_root", list)
    return tmp_path / "root"


@pytest.mark.parametrize("place", ["strata/ID", "strata.slice/docker-ID.scope"])
def test_the_group_of_a_container_is_removed_by_the_file_that_holds_its_id(root, tmp_path, place):
    ours, other = root / place.replace("ID", "0a1b"), root / "strata/strata-other"
    for group in (ours, other):
        group.mkdir(parents=True)
    cgroups.remove_groups(str(tmp_path / "container"))
    (tmp_path / "container").write_text("")
    cgroups.remove_groups(str(tmp_path / "container"))
    assert ours.exists()
    (tmp_path / "container").write_text("0a1b")
    cgroups.remove_groups(str(tmp_path / "container"))
    assert (ours.exists(), other.exists()) == (False, True)


def test_a_freeze_ends_once_the_kernel_shows_it(root, monkeypatch):
    """Version 2 shows it in another file and later, version 1 in the same file, here at once."""
    new = root / "strata/b"
    new.mkdir(parents=True)
    monkeypatch.setattr(cgroups, "FREEZE_PATIENCE", 0.2)
    (new / "cgroup.freeze").write_text("0\n")
    (new / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    assert cgroups.find_freezable_folders("b") == [str(new)]
    assert cgroups.find_freezable_folders("c") == []
    with pytest.raises(UserError, match="could not be frozen"):
        cgroups.set_groups_frozen([str(new)])
    assert (new / "cgroup.freeze").read_text() == "1"
    (new / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    cgroups.set_groups_frozen([str(new)])
    cgroups.set_groups_frozen([str(root / "gone")], False)
    (root / "cgroup.controllers").unlink()
    for name, file in (("freezer", "freezer.state"), ("unified", "cgroup.freeze")):
        (root / name / "strata/a").mkdir(parents=True)
        (root / name / "cgroup.procs").touch()
        (root / name / "strata/a" / file).write_text("THAWED\n")
    old = root / "freezer/strata/a"
    assert cgroups.find_freezable_folders("a") == [str(old)]
    cgroups.set_groups_frozen([str(old)])
    assert (old / "freezer.state").read_text() == "FROZEN"
    cgroups.set_groups_frozen([str(old)], False)
    assert (old / "freezer.state").read_text() == "THAWED"


KINDS = {"": 12_000, "_user": 10_000_000, "_sys": 14_000_000}


def test_the_usage_of_groups_is_read_in_both_versions_and_none_where_it_is_not_counted(root):
    group = root / "strata/b"
    group.mkdir(parents=True)
    unknown = dict.fromkeys(("user_seconds", "system_seconds", "peak_bytes", "throttled"))
    assert cgroups.read_and_reset_group_usage(["b", ""]) == {"observed": "group", **unknown}
    (group / "cpu.stat").write_text(
        "usage_usec 3000000\nuser_usec 1000000\nsystem_usec 2000000\nnr_throttled 9\n"
    )
    (group / "memory.peak").write_text("4096\n")
    known = {"user_seconds": 1.0, "system_seconds": 2.0, "peak_bytes": 4096, "throttled": 9}
    assert cgroups.read_and_reset_group_usage(["b"]) == {"observed": "group", **known}
    # Several equal systems are counted together.
    assert cgroups.read_and_reset_group_usage(["b", "b"])["peak_bytes"] == 2 * 4096
    (root / "cgroup.controllers").unlink()
    # The sum is exact, and split by ticks; another hierarchy counts it again, and it is one time.
    files = {"cpuacct": {f"cpuacct.usage{kind}": n for kind, n in KINDS.items()}}
    files["memory"] = {"memory.max_usage_in_bytes": 100}
    files["unified"] = {"cpu.stat": "usage_usec 12\nuser_usec 5\nsystem_usec 7"}
    files["cpu"] = {"cpu.stat": "nr_periods 4\nnr_throttled 3", "cpu.cfs_burst_us": 0}
    for name, texts in files.items():
        (root / name / "strata/a").mkdir(parents=True)
        (root / name / "cgroup.procs").touch()
        for file, number in texts.items():
            (root / name / "strata/a" / file).write_text(f"{number}\n")
    known = {"user_seconds": 5e-6, "system_seconds": pytest.approx(7e-6), "peak_bytes": 100}
    known["throttled"] = 3
    assert cgroups.read_and_reset_group_usage(["a"]) == {"observed": "group", **known}
    # The peak begins anew.
    assert (root / "memory/strata/a/memory.max_usage_in_bytes").read_text() == "0"
    cgroups.set_cpu_burst("a", 60)
    assert (root / "cpu/strata/a/cpu.cfs_burst_us").read_text() == "60000"
    with pytest.raises(UserError, match="needs Linux"):
        cgroups.set_cpu_burst("c", 60)


def _blkio(number):
    return f"8:0 Read {number}\n8:0 Total {number}\nTotal {number}\n"


VERSION_2 = {
    "cpu.stat": lambda n: (
        f"usage_usec {3 * n}\nuser_usec {n}\nsystem_usec {2 * n}\n"
        f"nr_throttled 1\nthrottled_usec {n}\n"
    ),
    "memory.stat": lambda n: f"anon 5\npgmajfault {n}\n",
    # A device has no line before its first operation.
    "io.stat": lambda n: f"8:0 rbytes={n} wbytes={n} rios={n} wios=0 dbytes=9 dios=9\n" * (n > 9),
}
VERSION_1 = {
    "cpuacct.usage": lambda n: 3000 * n,
    # Counted by ticks, which are not exact.
    "cpuacct.usage_user": lambda n: 1100 * n,
    "cpuacct.usage_sys": lambda n: 2200 * n,
    "cpu.stat": lambda n: f"nr_throttled 1\nthrottled_time {1000 * n}\n",
    "memory.stat": lambda n: f"pgmajfault 0\ntotal_pgmajfault {n}\n",
    "blkio.throttle.io_service_bytes_recursive": lambda n: _blkio(2 * n),
    "blkio.throttle.io_serviced_recursive": _blkio,
}
COUNTED = {
    "user_seconds": 1.0,
    "system_seconds": 2.0,
    "throttled_seconds": 1.0,
    "major_faults": 1000000,
    "io_bytes": 2000000,
    "io_operations": 1000000,
}


@pytest.mark.parametrize(
    ("files", "begun", "expected"),
    [
        (VERSION_2, 10, COUNTED),
        (VERSION_2, 0, COUNTED),
        (VERSION_1, 10, COUNTED),
        # This kernel counts the operations of no device; without a line there is nothing to tell.
        (
            VERSION_1 | {name: lambda n: "Total 0\n" for name in VERSION_1 if "blkio" in name},
            10,
            COUNTED | dict.fromkeys(("io_bytes", "io_operations"), "not available"),
        ),
        ({}, 10, dict.fromkeys(COUNTED, "not available")),
    ],
)
def test_a_run_s_costs_are_what_its_groups_used_meanwhile(root, files, begun, expected):
    group = root / "strata/a"
    if files is not VERSION_2:
        (root / "cgroup.controllers").unlink()
        (root / "all").mkdir()
        (root / "all/cgroup.procs").touch()
        group = root / "all/strata/a"
    group.mkdir(parents=True)

    def count(number):
        for file, text in files.items():
            (group / file).write_text(str(text(number)))

    spent = {"elapsed_seconds": 1.0, "client_user_seconds": 0.5}
    count(begun)
    counters = costs.CostCounters({"native": costs.Spender(["a"], (), spent)}, ())
    early = counters.read_counts((), None)
    count(begun + 1_000_000)
    spent |= {"elapsed_seconds": 3.0, "client_user_seconds": 0.75}
    record = costs.compute_run_costs(
        early, counters.read_counts((), None), "native", is_alone=False
    )
    counters.close()
    assert record["system"] == pytest.approx(expected)
    assert record["elapsed_seconds"] == 2
    assert record["client"]["user_seconds"] == 0.25
    assert set(record["helpers"].values()) == {"not available"}
