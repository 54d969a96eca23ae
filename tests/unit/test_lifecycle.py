"""The journal of systems that are up, and their removal by cells, runs and `clean`."""

import os

import projects
import pytest

from strata.measure import block
from strata.testbed import journal, lifecycle
from strata.util import locks
from strata.util.errors import UserError
from strata.util.process import identify_process


def up(owner, *cleanups):
    """Write a system into the journal."""
    journal.create_entry("strata-x", "e", owner)
    for cleanup in cleanups:
        journal.note_cleanup("strata-x", cleanup)


GONE = {"pid": 2**22 + 1, "start": "0"}
OWNER = {"pid": 1, "start": "0"}


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("owner", "removed"), [(None, False), (GONE, True), (identify_process(os.getpid()), False)]
)
def test_the_end_of_a_run_removes_what_killed_cells_left_and_waits_for_nobody(
    project, tmp_path, owner, removed
):
    project()
    system = tmp_path / "home/systems/strata-x"
    system.mkdir(parents=True)
    if owner is not None:
        up(owner, {"kind": "folder", "id": str(system)})
    before = journal.read_entries()
    with locks.hold_machine_lock():
        lifecycle.clean_up_after_run(identify_process(os.getpid()))
    assert journal.read_entries() == before
    build = tmp_path / "home/images/building-x"
    (build / "tree").mkdir(parents=True)
    lifecycle.clean_up_after_run(identify_process(os.getpid()))
    assert not build.exists()
    assert (journal.read_entries() == before) is not removed
    assert system.exists() is not removed


def test_a_system_of_an_unknown_layer_is_removed_by_its_cleanups(project, tmp_path):
    """Another checkout has a layer that this one lacks."""
    folder = project()
    system, thing = tmp_path / "home/systems/strata-x", tmp_path / "thing"
    (system / "data").mkdir(parents=True)
    cleanups = [
        {"kind": "folder", "id": str(system)},
        {
            "kind": "zone",
            "id": "z",
            "find": ["find", str(thing)],
            "remove": [["rm", "-r", "--", str(thing)]],
        },
    ]
    thing.mkdir()
    up(OWNER, *cleanups)
    projects.plan(folder)
    done = projects.run(folder, "strata", "cell", "bare", "noop", "1")
    assert done.returncode == 0, done.stderr
    assert not system.exists()
    assert not thing.exists()
    assert journal.read_entries() == []


def test_unknown_kinds_of_cleanups_are_printed_and_the_rest_is_removed(project, tmp_path, capsys):
    project()
    system = tmp_path / "home/systems/strata-x"
    system.mkdir(parents=True)
    up(OWNER, {"kind": "folder", "id": str(system)}, {"kind": "zone", "id": "z"})
    with open(journal.get_entry_path("strata-y"), "w") as file:
        file.write('{"id": \n')
    assert lifecycle.take_down_systems() == ["system strata-x (e)", "system strata-y (unknown)"]
    assert not system.exists()
    printed = capsys.readouterr().err
    assert "zone z: another version made it" in printed
    assert "strata-y.up: another version made it" in printed
    assert journal.read_entries() == []


def test_a_part_that_cannot_be_removed_yet_stays_in_the_journal_and_all_else_is_removed(
    project, tmp_path
):
    project()
    client, thing = tmp_path / "home/systems/strata-x-client", tmp_path / "thing/within"
    for folder in (client, thing):
        folder.mkdir(parents=True)
    stays = {
        "kind": "zone",
        "id": "z",
        "find": ["find", str(thing.parent)],
        "remove": [["rmdir", str(thing.parent)]],
    }
    up(OWNER, {"kind": "folder", "id": str(client)}, stays)
    with pytest.raises(UserError, match="zone z could not be removed"):
        lifecycle.take_down_systems()
    assert not client.exists()
    assert journal.read_entries()[-1]["id"] == "strata-x"
    thing.rmdir()
    assert lifecycle.take_down_systems() == ["system strata-x (e)"]
    assert not thing.parent.exists()
    assert journal.read_entries() == []


def test_journal_and_systems_are_in_folders_that_nobody_else_may_enter(project, tmp_path):
    look = [
        "/bin/sh",
        "-c",
        f"cd {tmp_path}/home; stat -c %a . state systems systems/strata-*; echo 7",
    ]
    folder = project(
        projects.on_host(), {"noop": {**projects.NOOP, "run": [{"argv": look, "timeout": 20}]}}
    )
    old = os.umask(0)
    try:
        projects.plan(folder)
        done = projects.run(folder, "strata", "cell", "bare", "noop", "1")
    finally:
        os.umask(old)
    assert done.returncode == 0, done.stderr
    modes = (folder / "results/raw/bare/noop/1.log").read_text().split()
    assert modes == ["755", "700", "755", "700", "7"]


def test_a_cell_is_good_though_its_system_cannot_be_removed(project, monkeypatch, capsys):

    def fail(*_):
        raise UserError("no answer")

    projects.plan(project())
    monkeypatch.setattr("strata.util.signals.raise_on_signals", lambda: None)
    answers = iter([lambda: None, fail])
    monkeypatch.setattr(lifecycle, "take_down_systems", lambda *_: next(answers)())
    block.measure_cell("bare", "noop", 1)
    assert "no answer" in capsys.readouterr().err
    assert os.path.exists("results/raw/bare/noop/1.log")


def test_a_system_with_an_image_is_refused_under_the_lock_of_tests(monkeypatch, tmp_path):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(locks, "TEST_FOLDER", str(tmp_path / "lock"))
    with pytest.raises(UserError, match="STRATA_TEST_LOCK is set"):
        lifecycle.System("native", [{"chroot": {}}], {"id": "x"})
    assert not journal.read_entries()
