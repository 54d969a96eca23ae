"""Containers by systemd-nspawn and LXC without one: who is first, what they may, what was there before any command."""

import subprocess

import pytest

from strata.base.errors import UserError
from strata.host import cgroups
from strata.host.context import Context
from strata.layers import layered, lxc, nspawn
from strata.layers.lxc import Lxc
from strata.layers.nspawn import Nspawn

STATUS = "Name:\tsleep\nNSpid:\t{numbers}\nCapBnd:\t{bound}\n"


def process(proc, pid, numbers, words, bound="00000000fdecafff"):
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "status").write_text(STATUS.format(numbers=numbers, bound=bound))
    (folder / "cmdline").write_bytes(b"\0".join(word.encode() for word in [*words, ""]))


def test_the_first_program_in_a_namespace_of_its_own_is_found_once_it_is_what_it_will_be(tmp_path):
    process(tmp_path, 10, "10", layered.IDLE)
    process(tmp_path, 11, "11\t1", ["(sd-stubinit)"])
    process(tmp_path, 12, "12\t2", ["systemd-nspawn", "--quiet"])
    assert nspawn.first({10, 11, 12, 13}, str(tmp_path)) is None
    process(tmp_path, 13, "13\t2", layered.IDLE)
    assert nspawn.first({10, 11, 12, 13}, str(tmp_path)) == 13


@pytest.mark.parametrize(
    ("bound", "words"),
    [("0000000000000005", "-all,+cap_0,+cap_2"), ("0000000000000000", "-all"), ("0000010000000000", "-all,+cap_40")],
)
def test_commands_may_what_the_container_may(tmp_path, bound, words):
    process(tmp_path, 7, "7\t2", layered.IDLE, bound)
    assert nspawn.capabilities(7, str(tmp_path)) == words


@pytest.mark.parametrize("layer", [Nspawn, Lxc])
def test_what_is_there_before_any_command_is_nothing_that_was_left(monkeypatch, tmp_path, layer):
    idle = " ".join(layered.IDLE)
    lines = [idle, "sleep 300", "redis-server *:1"]
    lines += ["systemd-nspawn --quiet --keep-unit", "(sd-stubinit)"] if layer is Nspawn else []
    monkeypatch.setattr(cgroups, "command_lines", lambda printed: lines)
    monkeypatch.setattr(layer, "run_below", lambda self, argv: "")
    assert layer(None, {}, Context("strata-x", str(tmp_path), None)).left() == ["sleep 300", "redis-server *:1"]


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


def test_a_command_enters_the_container_that_was_started(tmp_path):
    (tmp_path / "leader").write_text("4711 -all,+cap_0")
    argv = Nspawn(None, {}, Context("strata-x", str(tmp_path), None)).wrap(["env", "a b"])
    assert argv[-2:] == ["env", "a b"]
    assert "--target=4711" in argv
    assert "--bounding-set=-all,+cap_0" in argv


@pytest.mark.parametrize(("below", "joined"), [("", ""), ("payload", "/payload")])
def test_a_command_joins_the_group_that_nspawn_made_for_what_it_started(tmp_path, monkeypatch, below, joined):
    monkeypatch.setattr(cgroups, "managed_by_systemd", lambda: True)
    (tmp_path / "leader").write_text(f"4711 -all,+cap_0 {below}")
    argv = Nspawn(None, {}, Context("strata-x", str(tmp_path), None)).wrap(["env"])
    assert f"/sys/fs/cgroup/strata.slice/strata-x.scope{joined}" in argv


@pytest.mark.parametrize(("layer", "package"), [(Nspawn, "systemd-container"), (Lxc, "lxc")])
def test_without_the_program_it_is_told_what_would_change_that(monkeypatch, layer, package):
    monkeypatch.setattr(layered.shutil, "which", lambda name: None)
    assert layer.unavailable() == f"{layer.program} is not installed: install the distribution's package {package}"
    assert layer.examine() == [(layer.program, None, layer.unavailable())]


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
