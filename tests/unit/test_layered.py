"""Containers by LXC without one: what was there before any command, what they are asked for, and how they end."""

import subprocess

import pytest

from strata.base.errors import UserError
from strata.host import cgroups
from strata.host.context import Context
from strata.layers import layered, lxc
from strata.layers.lxc import Lxc


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
