"""The groups of native systems, above all where systemd makes them."""

import os
import signal
import subprocess
import time

import pytest

from strata.base.errors import UserError
from strata.host import cgroups
from strata.layers import chroot

# In the place of systemd-run: a scope with its first process, and no second one of its name.
SYSTEMD_RUN = """#!/bin/sh
while [ "$1" != -- ]; do
    echo "$1" >>"$ROOT/asked"
    case $1 in
        --unit=*) unit=${1#*=} ;;
        --slice=*) slice=${1#*=} ;;
    esac
    shift
done
shift
mkdir "$ROOT/$slice/$unit.scope" || exit 1
echo $$ >"$ROOT/$slice/$unit.scope/cgroup.procs"
exec "$@"
"""


@pytest.fixture
def systemd(tmp_path, monkeypatch):
    """A machine whose groups systemd makes: the folder of its hierarchy."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/systemd-run").write_text(SYSTEMD_RUN)
    (tmp_path / "bin/systemd-run").chmod(0o755)
    (tmp_path / "root/strata.slice").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("ROOT", str(tmp_path / "root"))
    monkeypatch.setattr(cgroups, "ROOT", str(tmp_path / "root"))
    monkeypatch.setattr(cgroups, "managed_by_systemd", lambda: True)
    for module in (cgroups, chroot):
        monkeypatch.setattr(module, "as_root", list)
    held = f'echo "$$" >>{tmp_path}/holders; exec sleep 60'
    monkeypatch.setattr(cgroups, "HOLDER", ["sh", "-c", held])
    yield tmp_path / "root"
    if (tmp_path / "root/asked").exists():
        os.kill(holder(tmp_path), signal.SIGKILL)


def holder(folder):
    """The process that holds the group, once it runs."""
    deadline = time.monotonic() + 60
    while not (folder / "holders").exists() or not (folder / "holders").read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int((folder / "holders").read_text())


def run(command, *argv):
    return subprocess.run([*command, *argv], capture_output=True, text=True, timeout=20, check=False)


def test_a_server_runs_beside_other_commands_of_a_native_system(systemd):
    cgroups.hold("strata-x")
    group = systemd / "strata.slice/strata-x.scope"
    assert cgroups.groups_of("strata-x") == [str(group)]
    serving = ["sh", "-c", "echo ready; read line; echo $line"]
    server = subprocess.Popen([*cgroups.join("strata-x"), *serving], stdin=-1, stdout=-1)
    try:
        assert server.stdin
        assert server.stdout
        # It has joined, so that what follows finds its number there no more.
        assert server.stdout.readline() == b"ready\n"
        for _ in range(2):
            done = run(cgroups.join("strata-x"), "sh", "-c", "echo $$")
            assert (done.returncode, done.stderr) == (0, "")
            # It is in the group by its own number.
            assert (group / "cgroup.procs").read_text() == done.stdout
    finally:
        out, _ = server.communicate(b"served\n", timeout=20)
    assert (out, server.returncode) == (b"served\n", 0)
    # All of it in one group, as in a container: systemd would have refused another one of its name.
    asked = (systemd / "asked").read_text().split()
    assert asked.count("--unit=strata-x") == 1
    assert {"--scope", "--collect", "--slice=strata.slice", "--property=Delegate=yes"} <= set(asked)
    assert run(cgroups.enter("strata-x"), "true").returncode == 1


@pytest.mark.parametrize("removed", [True, False], ids=["systemd's", "somebody else's"])
def test_a_group_that_systemd_does_not_remove_is_removed_after_a_while(systemd, monkeypatch, removed):
    group = systemd / "strata.slice/strata-x.scope"
    (group / "payload").mkdir(parents=True)
    commands, looked = [], []

    def members(id):
        # Empty from the first look on; systemd notices between two looks.
        looked.append(id)
        if removed:
            (group / "payload").rmdir()
            group.rmdir()
        return set()

    monkeypatch.setattr(cgroups, "members", members)
    monkeypatch.setattr(cgroups, "capture", lambda argv, **more: commands.append((argv, more)))
    cgroups.remove("strata-x", notice=0.05)
    assert looked == ["strata-x"]
    asked = [(["rmdir", "--", f"{group}/payload", str(group)], {"check": False})]
    assert commands == ([] if removed else asked)


def test_without_systemd_the_groups_are_folders_and_nothing_holds_them(tmp_path, monkeypatch):
    monkeypatch.setattr(cgroups, "managed_by_systemd", lambda: False)
    monkeypatch.setattr(cgroups, "as_root", list)
    monkeypatch.setattr(cgroups, "groups_of", lambda id: [str(tmp_path / f"a/{id}"), str(tmp_path / f"b/{id}")])
    cgroups.hold("x")
    assert cgroups.enter("x") == cgroups.join("x")
    assert [path.name for path in sorted(tmp_path.glob("*/x/*"))] == []
    assert sorted(path.parent.name for path in tmp_path.glob("*/x")) == ["a", "b"]


@pytest.mark.parametrize(
    ("told", "unified", "found"),
    [
        ("0::/strata.slice/strata-x.scope/payload\n", True, "payload"),
        ("0::/strata.slice/strata-x.scope\n", True, ""),
        ("0::/user.slice/session-1.scope\n", True, ""),
        # In version 1 nobody needs a group below, and hierarchies may differ.
        ("4:memory:/strata/strata-x\n0::/strata/strata-x/payload\n", False, ""),
    ],
)
def test_the_group_of_a_first_program_is_found_below_its_systems(tmp_path, monkeypatch, told, unified, found):
    monkeypatch.setattr(cgroups, "managed_by_systemd", lambda: unified)
    monkeypatch.setattr(cgroups, "unified", lambda: unified)
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cgroup").write_text(told)
    assert cgroups.below(7, "strata-x", str(tmp_path)) == found


def test_a_group_is_frozen_and_thawed_and_seen_to_be_so(tmp_path):
    """Of version 1, whose file says it at once here, and of version 2, which says it in another file and later."""
    old, new = tmp_path / "freezer/strata/a", tmp_path / "strata/b"
    for folder in (old, new):
        folder.mkdir(parents=True)
    (old / "freezer.state").write_text("THAWED\n")
    (new / "cgroup.freeze").write_text("0\n")
    (new / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    assert cgroups.freezers("a", str(tmp_path)) == [str(old)]
    assert cgroups.freezers("b", str(tmp_path)) == [str(new)]
    assert cgroups.freezers("c", str(tmp_path)) == []
    cgroups.freeze([str(old)])
    assert (old / "freezer.state").read_text() == "FROZEN"
    cgroups.freeze([str(old)], False)
    assert (old / "freezer.state").read_text() == "THAWED"
    with pytest.raises(UserError, match="could not be frozen"):
        cgroups.freeze([str(new)], patience=0.2)
    assert (new / "cgroup.freeze").read_text() == "1"
    (new / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    cgroups.freeze([str(new)])
    cgroups.freeze([str(tmp_path / "gone")], False)
