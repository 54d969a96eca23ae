"""The groups of systems, with plain files in the place of the kernel's.

Groups that systemd makes are in tests/rig, others in tests/system.
"""

import pytest

from strata.host import cgroups
from strata.util.errors import UserError


@pytest.fixture
def root(tmp_path, monkeypatch):
    """The top of control groups of version 2, or of 1 once `cgroup.controllers` is removed."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root/cgroup.controllers").write_text("cpu memory\n")
    monkeypatch.setattr(cgroups, "ROOT", str(tmp_path / "root"))
    monkeypatch.setattr(cgroups, "managed_by_systemd", lambda: False)
    monkeypatch.setattr(cgroups, "as_root", list)
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


def test_a_freeze_ends_once_the_kernel_shows_it(root):
    """Version 2 shows it in another file and later, version 1 in the same file, here at once."""
    new = root / "strata/b"
    new.mkdir(parents=True)
    (new / "cgroup.freeze").write_text("0\n")
    (new / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    assert cgroups.freezable_folders("b") == [str(new)]
    assert cgroups.freezable_folders("c") == []
    with pytest.raises(UserError, match="could not be frozen"):
        cgroups.freeze([str(new)], patience=0.2)
    assert (new / "cgroup.freeze").read_text() == "1"
    (new / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    cgroups.freeze([str(new)])
    cgroups.freeze([str(root / "gone")], False)
    (root / "cgroup.controllers").unlink()
    for name, file in (("freezer", "freezer.state"), ("unified", "cgroup.freeze")):
        (root / name / "strata/a").mkdir(parents=True)
        (root / name / "cgroup.procs").touch()
        (root / name / "strata/a" / file).write_text("THAWED\n")
    old = root / "freezer/strata/a"
    assert cgroups.freezable_folders("a") == [str(old)]
    cgroups.freeze([str(old)])
    assert (old / "freezer.state").read_text() == "FROZEN"
    cgroups.freeze([str(old)], False)
    assert (old / "freezer.state").read_text() == "THAWED"


def test_the_usage_of_groups_is_read_in_both_versions_and_none_where_it_is_not_counted(root):
    group = root / "strata/b"
    group.mkdir(parents=True)
    unknown = dict.fromkeys(("user_seconds", "system_seconds", "peak_bytes", "throttled"))
    assert cgroups.read_usage(["b", ""]) == {"observed": "group", **unknown}
    (group / "cpu.stat").write_text("user_usec 1000000\nsystem_usec 2000000\nnr_throttled 9\n")
    (group / "memory.peak").write_text("4096\n")
    known = {"user_seconds": 1.0, "system_seconds": 2.0, "peak_bytes": 4096, "throttled": 9}
    assert cgroups.read_usage(["b"]) == {"observed": "group", **known}
    # Several equal systems are counted together.
    assert cgroups.read_usage(["b", "b"])["peak_bytes"] == 2 * 4096
    (root / "cgroup.controllers").unlink()
    files = {"cpuacct": {"cpuacct.usage_user": 5, "cpuacct.usage_sys": 7}}
    files["memory"] = {"memory.max_usage_in_bytes": 100}
    files["cpu"] = {"cpu.stat": "nr_periods 4\nnr_throttled 3", "cpu.cfs_burst_us": 0}
    for name, texts in files.items():
        (root / name / "strata/a").mkdir(parents=True)
        (root / name / "cgroup.procs").touch()
        for file, number in texts.items():
            (root / name / "strata/a" / file).write_text(f"{number}\n")
    known = {"user_seconds": 5e-9, "system_seconds": 7e-9, "peak_bytes": 100, "throttled": 3}
    assert cgroups.read_usage(["a"]) == {"observed": "group", **known}
    # The peak begins anew.
    assert (root / "memory/strata/a/memory.max_usage_in_bytes").read_text() == "0"
    cgroups.set_burst("a", 60)
    assert (root / "cpu/strata/a/cpu.cfs_burst_us").read_text() == "60000"
    with pytest.raises(UserError, match="needs Linux"):
        cgroups.set_burst("c", 60)
