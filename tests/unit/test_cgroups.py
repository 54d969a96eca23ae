"""The groups of native systems and of containers, above all where systemd makes them."""

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
def root(tmp_path, monkeypatch):
    """A machine with version 2 of control groups, as long as `cgroup.controllers` is there: the top of them."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root/cgroup.controllers").write_text("cpu memory\n")
    monkeypatch.setattr(cgroups, "ROOT", str(tmp_path / "root"))
    monkeypatch.setattr(cgroups, "managed_by_systemd", lambda: False)
    for module in (cgroups, chroot):
        monkeypatch.setattr(module, "as_root", list)
    return tmp_path / "root"


@pytest.fixture
def systemd(root, tmp_path, monkeypatch):
    """A machine whose groups systemd makes."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/systemd-run").write_text(SYSTEMD_RUN)
    (tmp_path / "bin/systemd-run").chmod(0o755)
    (root / "strata.slice").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("ROOT", str(root))
    monkeypatch.setattr(cgroups, "managed_by_systemd", lambda: True)
    held = f'echo "$$" >>{tmp_path}/holders; exec sleep 60'
    monkeypatch.setattr(cgroups, "HOLDER", ["sh", "-c", held])
    yield root
    if (root / "asked").exists():
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
    assert cgroups.groups_of("strata-x") == cgroups.groups_named("strata-x") == [str(group)]
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


def test_without_systemd_the_groups_are_folders_and_nothing_holds_them(root):
    (root / "cgroup.controllers").unlink()
    for name in ("cpu,cpuacct", "memory"):
        (root / name).mkdir()
        (root / name / "cgroup.procs").touch()
    (root / "cpu").symlink_to("cpu,cpuacct")
    (root / "other").mkdir()
    cgroups.hold("x")
    groups = [root / "cpu,cpuacct/strata/x", root / "memory/strata/x"]
    assert cgroups.groups_named("x") == [str(group) for group in groups]
    assert [list(group.iterdir()) for group in groups] == [[], []]
    cgroups.remove("x")
    assert cgroups.groups_named("x") == []


@pytest.mark.parametrize("place", ["strata/ID", "strata.slice/docker-ID.scope"])
def test_the_group_of_a_container_is_removed_by_the_file_that_holds_its_id(root, tmp_path, place):
    ours, other = root / place.replace("ID", "0a1b"), root / "strata/strata-other"
    for group in (ours, other):
        group.mkdir(parents=True)
    cgroups.remove(str(tmp_path / "container"))
    (tmp_path / "container").write_text("")
    cgroups.remove(str(tmp_path / "container"))
    assert ours.exists()
    (tmp_path / "container").write_text("0a1b")
    cgroups.remove(str(tmp_path / "container"))
    assert (ours.exists(), other.exists()) == (False, True)


def test_a_group_is_frozen_and_thawed_and_seen_to_be_so(root):
    """Of version 2, which says it in another file and later, and of version 1, whose file says it at once here."""
    new = root / "strata/b"
    new.mkdir(parents=True)
    (new / "cgroup.freeze").write_text("0\n")
    (new / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    assert cgroups.freezers("b") == [str(new)]
    assert cgroups.freezers("c") == []
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
    assert cgroups.freezers("a") == [str(old)]
    cgroups.freeze([str(old)])
    assert (old / "freezer.state").read_text() == "FROZEN"
    cgroups.freeze([str(old)], False)
    assert (old / "freezer.state").read_text() == "THAWED"
