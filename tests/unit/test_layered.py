"""Containers by LXC without one: what was there before any command, what they are asked for, and how they end."""

import subprocess

import pytest

from strata.base.errors import UserError
from strata.host import cgroups
from strata.host.context import Context
from strata.layers import layered, lxc
from strata.layers.lxc import Lxc


def test_what_is_there_before_any_command_is_nothing_that_was_left(monkeypatch, tmp_path):
    idle = " ".join(layered.IDLE)
    lines = [idle, "sleep 300", "redis-server *:1"]
    monkeypatch.setattr(cgroups, "command_lines", lambda printed: lines)
    monkeypatch.setattr(Lxc, "run_below", lambda self, argv: "")
    assert Lxc(None, {}, Context("strata-x", str(tmp_path), None)).left() == ["sleep 300", "redis-server *:1"]


@pytest.mark.parametrize("group", ["", "payload", ".lxc"])
def test_what_was_left_is_seen_in_any_group_of_the_containers(monkeypatch, tmp_path, group):
    monkeypatch.setattr(cgroups, "groups_of", lambda id: [str(tmp_path / "strata-x.scope")])
    monkeypatch.setattr(Lxc, "run_below", lambda self, argv: subprocess.check_output(argv, text=True))
    (tmp_path / "strata-x.scope" / group).mkdir(parents=True)
    with subprocess.Popen(["sleep", "300"]) as left:
        (tmp_path / "strata-x.scope" / group / "cgroup.procs").write_text(f"{left.pid}\n")
        try:
            assert Lxc(None, {}, Context("strata-x", str(tmp_path), None)).left() == ["sleep 300"]
        finally:
            left.kill()


def test_without_the_program_it_is_told_what_would_change_that(monkeypatch):
    monkeypatch.setattr(layered.shutil, "which", lambda name: None)
    assert Lxc.unavailable() == f"{Lxc.program} is not installed: install the distribution's package lxc"
    assert Lxc.examine() == [(Lxc.program, None, Lxc.unavailable())]


@pytest.mark.parametrize(
    ("told", "there"),
    [
        (None, True),
        ("docker-default (enforce)\nlxc-container-default-cgns (enforce)\n", True),
        ("docker-default (enforce)\nlxc-container-default-cgns-mine (enforce)\n", False),
        ("", False),
    ],
)
def test_a_kernel_with_apparmor_has_to_know_lxcs_profile(tmp_path, monkeypatch, told, there):
    monkeypatch.setattr(lxc, "PROFILES", str(tmp_path / "profiles"))
    if told is not None:
        (tmp_path / "profiles").write_text(told)
    reason = Lxc.refusal({}, "host", {})
    assert reason is None if there else "install the distribution’s package apparmor" in reason


def test_lxc_is_asked_for_a_group_beside_those_of_containers(monkeypatch):
    monkeypatch.setattr(cgroups, "managed_by_systemd", lambda: False)
    words = Lxc(None, {}, Context("strata-x", "/a b/strata-x", None)).configuration().splitlines()
    assert "lxc.cgroup.dir.container = strata/strata-x" in words
    assert "lxc.cgroup.dir.monitor = strata/strata-x-monitor" in words
    assert "lxc.mount.entry = /a\\040b/strata-x/data data none bind 0 0" in words
    monkeypatch.setattr(cgroups, "managed_by_systemd", lambda: True)
    assert cgroups.groups_of("strata-x") == ["/sys/fs/cgroup/strata.slice/strata-x.scope"]


def test_what_holds_a_container_is_ended_before_it(monkeypatch, tmp_path):
    traces, commands = [], []
    layer = Lxc(None, {}, Context("strata-x", str(tmp_path), {"folder": "/nowhere"}, note=traces.append))
    done = subprocess.CompletedProcess([], 0, "", "")
    for module in (layered, lxc):
        monkeypatch.setattr(module, "capture", lambda argv, **more: commands.append(argv) or done)
    layer.up()
    assert [trace["id"] for trace in reversed(traces)] == ["strata-x-monitor", "strata-x"]
    done.returncode, done.stdout = 1, "lxc-start x 2026 ERROR    start - ../src/lxc/start.c:1 - No such group\n"
    (tmp_path / "strata-x/config").unlink()
    (tmp_path / "strata-x").rmdir()
    with pytest.raises(UserError, match="LXC did not start a container: No such group"):
        layer.up()


def test_groups_that_were_made_in_a_systems_group_go_with_it(monkeypatch, tmp_path):
    for name, pid in (("a", 1), ("a/payload", 2), ("b", 3)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.procs").write_text(f"{pid}\n")
    monkeypatch.setattr(
        cgroups, "groups_of", lambda id: [str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "c")]
    )
    assert cgroups.members("x") == {1, 2, 3}
    assert cgroups._folders("x") == [str(tmp_path / name) for name in ("a/payload", "a", "b")]
