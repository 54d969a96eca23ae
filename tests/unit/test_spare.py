"""The machine's cache: what no image needs goes with it, and nothing that somebody uses."""

import fcntl
import json
import os
import subprocess

import pytest

from strata.base.errors import UserError
from strata.image import cache, spare
from strata.layers import docker
from strata.layers.podman import Podman
from strata.system import state, testbed
from strata.vm import disk, libvirt

BASE = {name: name * 64 for name in "xyz"}


def recipe(letter):
    return letter * 64


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A cache of the machine in which nothing is yet."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(spare.docker, "forget", lambda but: [f"but {name}" for name in sorted(but)])
    (tmp_path / "home/images").mkdir(parents=True, mode=0o700)
    return tmp_path / "home"


@pytest.fixture
def folder_of(tmp_path, monkeypatch):
    """A project's folder by its name, as the working directory, whose results name an image."""

    def enter(name, letter):
        folder = tmp_path / name
        (folder / "results/tmp").mkdir(parents=True, exist_ok=True)
        (folder / "results/image.json").write_text(json.dumps({"recipe": recipe(letter)}))
        monkeypatch.chdir(folder)
        return folder

    return enter


def make(home, letter, base="x", disks=("tcg",), used=None):
    """An image as a build leaves it, with its base, its locks and its disks; `used`: when it was used last."""
    folder = home / "images" / recipe(letter)
    (folder / "tree/bin").mkdir(parents=True)
    (folder / "tree/bin/sh").write_text("x")
    (folder / "image.json").write_text(json.dumps({"recipe": recipe(letter), "id": letter}))
    (home / f"images/base-{BASE[base][:12]}.tar").write_text("base")
    for kind in ("lock", "vm.lock"):
        (home / f"images/{recipe(letter)}.{kind}").touch()
    for which in disks:
        box = disk.box_name(recipe(letter), which)
        image = home / f"vm/vagrant/boxes/{box}/0/libvirt/box.img"
        image.parent.mkdir(parents=True)
        image.write_text("disk")
        volume = home / f"vm/pool/{box}_vagrant_box_image_0_17_box.img"
        volume.parent.mkdir(parents=True, exist_ok=True)
        os.link(image, volume)
        (folder / f"vm-{which}").mkdir()
        (folder / f"vm-{which}/disk.json").write_text(json.dumps({"box": box, "volume": {"path": str(volume)}}))
    if used is not None:
        spare.note(recipe(letter), BASE[base], built=True)
        os.utime(spare.note_path(recipe(letter)), (used, used))
    return folder


def there(home):
    """Paths of all files of the cache but for its lock."""
    return {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()} - {"images/cache.lock"}


def test_with_an_image_goes_all_that_no_other_needs(home, folder_of):
    folder_of("p", "a")
    make(home, "a", used=1)
    before = there(home)
    make(home, "b", base="y", disks=("tcg", "kvm"), used=2)
    removed = spare.prune([recipe("b")])
    box = "strata-bbbbbbbbbbbb"
    assert removed[:3] == ["image bbbbbbbbbbbb", f"box {box}-kvm", f"box {box}-tcg"]
    assert f"volume {box}-tcg_vagrant_box_image_0_17_box.img" in removed
    assert "base-yyyyyyyyyyyy.tar" in removed
    assert removed[-2:] == ["but strata/base:xxxxxxxxxxxx", "but strata/image:aaaaaaaaaaaa"]
    assert there(home) == before
    assert cache.find(recipe("a"))
    assert cache.find(recipe("b")) is None


def test_a_base_of_two_images_stays_with_one_of_them(home, folder_of):
    folder_of("p", "a")
    for letter in "ab":
        make(home, letter, used=1)
    assert "base-xxxxxxxxxxxx.tar" not in spare.prune([recipe("b")])
    assert (home / "images/base-xxxxxxxxxxxx.tar").exists()


def test_what_was_left_of_images_that_somebody_removed_goes(home, folder_of):
    folder_of("p", "a")
    make(home, "a", used=1)
    before = there(home)
    gone = make(home, "b", base="y", used=1)
    spare.remove_tree(str(gone))
    # A machine's own volumes, and whatever else is there, are none of an image.
    for name in (f"{libvirt.prefix()}-534a8c3a.img", f"{libvirt.prefix()}-534a8c3a-data.img", "mine.img"):
        (home / "vm/pool" / name).write_text("x")
        before.add(f"vm/pool/{name}")
    assert len(spare.prune()) == 2
    # A base may be of an image that was not finished.
    assert there(home) == before | {"images/base-yyyyyyyyyyyy.tar"}
    assert "base-yyyyyyyyyyyy.tar" in spare.prune([])
    assert there(home) == before


def test_an_image_of_which_nothing_is_noted_stays_with_every_base(home, folder_of):
    """It was made by an earlier version, and may be of any base and anybody's."""
    folder_of("p", "a")
    make(home, "c")
    make(home, "a", base="y", used=1)
    (home / "images/base-zzzzzzzzzzzz.tar").write_text("z")
    before = there(home)
    assert spare.idle() == []
    assert [words for words in spare.prune([]) if not words.startswith("but ")] == []
    assert there(home) == before
    for damaged in ("[]", '{"base": 1, "folders": []}', '{"base": "b", "folders": [1]}'):
        (home / f"images/{recipe('c')}.used.json").write_text(damaged)
        assert spare.base_of(recipe("c")) is None
        assert spare.idle() == []


def test_an_image_is_needed_while_results_name_it_and_the_last_used_ones_stay(home, folder_of, tmp_path):
    folder_of("p", "a")
    for used, letter in enumerate("abcdef"):
        make(home, letter, used=used)
    # All were used by this folder, whose results name the first.
    assert spare.idle() == [recipe("d"), recipe("c"), recipe("b")]
    folder_of("q", "c")
    spare.note(recipe("c"), BASE["x"])
    os.utime(spare.note_path(recipe("c")), (2, 2))
    assert spare.idle() == [recipe("d"), recipe("b")]
    # Where the results went, nobody needs it.
    spare.remove_tree(str(tmp_path / "q"))
    assert spare.idle() == [recipe("d"), recipe("c"), recipe("b")]
    noted = json.loads((home / f"images/{recipe('b')}.used.json").read_text())
    assert noted == {"base": BASE["x"], "folders": [str(tmp_path / "p")], "others": False}


def test_an_image_of_an_earlier_version_stays_when_it_is_used_again(home, folder_of):
    """Who used it before is not known; of which base it is, is then."""
    folder_of("p", "f")
    for used, letter in enumerate("abcd"):
        make(home, letter, used=used)
    make(home, "e", base="y")
    spare.note(recipe("e"), BASE["y"])
    spare.note(recipe("e"), BASE["y"], built=True)
    os.utime(spare.note_path(recipe("e")), (0, 0))
    assert spare.idle() == [recipe("b"), recipe("a")]
    assert spare.base_of(recipe("e")) == BASE["y"]


def test_ten_changes_of_a_page_do_not_fill_the_disk(home, folder_of, monkeypatch):
    monkeypatch.setattr(state, "read", lambda: {"system": None, "cell": None})
    monkeypatch.setattr(testbed, "exclusive", turn_of(free=True))
    for used, letter in enumerate("0123456789"):
        folder_of("p", letter)
        make(home, letter, base="xyz"[used % 3], used=used)
        testbed.tidy()
    assert [name[0] for name in spare.names()] == ["7", "8", "9"]
    assert sorted(os.listdir(home / "vm/vagrant/boxes")) == [f"strata-{n * 12}-tcg" for n in "789"]
    assert len(os.listdir(home / "vm/pool")) == 3
    # Three images, each with a folder, two locks and a note; three bases; the cache's own lock.
    assert len(os.listdir(home / "images")) == 3 * 4 + 3 + 1


def turn_of(free):
    """In the place of the machine's lock: free, or another's."""

    class Turn:
        def __init__(self, wait=True):
            assert not wait

        def __enter__(self):
            if not free:
                raise UserError("another measurement is under way")

        def __exit__(self, *_):
            return None

    return Turn


@pytest.mark.parametrize("busy", ["measuring", "a system is up", "a snapshot"])
def test_nothing_goes_while_a_machine_may_stand_on_it(home, folder_of, monkeypatch, capsys, busy):
    system = {"id": "s"} if busy == "a system is up" else None
    monkeypatch.setattr(state, "read", lambda: {"system": system, "cell": None})
    monkeypatch.setattr(testbed, "exclusive", turn_of(free=busy != "measuring"))
    if busy == "a snapshot":
        (home / "vm/snapshots/key").mkdir(parents=True)
    for used, letter in enumerate("abcdef"):
        folder_of("p", letter)
        make(home, letter, used=used)
    before = there(home)
    testbed.tidy()
    assert there(home) == before
    said = "image: nothing is removed from the cache: another measurement is under way\n"
    assert capsys.readouterr().err == (said if busy == "measuring" else "")


@pytest.mark.parametrize("holds", ["the cache", "an image"])
def test_nothing_goes_while_another_process_makes_an_image(home, folder_of, capsys, holds):
    folder_of("p", "a")
    for letter in "ab":
        make(home, letter, used=1)
    # What looks as if a killed build had left it is at work here.
    (home / f"images/building-vm-{recipe('b')[:12]}").mkdir()
    (home / f"images/building-vm-{recipe('b')[:12]}/root").write_text("half")
    (home / "images/base-xxxxxxxxxxxx.part.tar").write_text("half")
    before = there(home)
    lock = cache.lock() if holds == "the cache" else str(home / f"images/{recipe('b')}.vm.lock")
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_SH if holds == "the cache" else fcntl.LOCK_EX)
        assert spare.prune([recipe("b")]) == []
        assert there(home) == before
        assert "another process makes or packs an image" in capsys.readouterr().err
    removed = spare.prune([recipe("b")])
    unfinished = ["unfinished base base-xxxxxxxxxxxx.part.tar", "unfinished image building-vm-bbbbbbbbbbbb"]
    assert removed[:3] == [*unfinished, "image bbbbbbbbbbbb"]
    assert not [name for name in os.listdir(home / "images") if "building" in name or "part" in name]


def test_many_may_need_the_cache_at_once_and_none_while_something_is_removed(home):
    with cache.kept(), cache.kept(), open(cache.lock()) as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with open(cache.lock()) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with open(cache.lock()) as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)


def test_the_image_of_a_run_that_is_at_work_stays_where_all_are_to_go(home, folder_of):
    folder = folder_of("p", "a")
    make(home, "a", used=1)
    folder_of("q", "b")
    make(home, "b", used=1)
    with open(folder / "results/tmp/run.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert spare.prune(spare.names())[0] == "image bbbbbbbbbbbb"
        assert spare.names() == [recipe("a")]
    spare.prune(spare.names())
    assert there(home) == set()


def test_where_there_is_no_cache_nothing_is_made(tmp_path, monkeypatch):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    assert spare.prune([]) == []
    assert spare.idle() == []
    assert not (tmp_path / "home").exists()


def test_layers_with_a_store_forget_what_goes_from_the_cache_and_nothing_before(home, folder_of, monkeypatch):
    asked = []
    monkeypatch.setattr(Podman, "discard", lambda kept: asked.append(kept) or ["store"])
    folder_of("project", "a")
    make(home, "a", used=2)
    make(home, "b", used=1)
    spare.prune()
    assert asked == []
    assert spare.prune([recipe("b")])[-1] == "store"
    assert asked == [{"a"}]


@pytest.mark.parametrize("builds", [False, True])
def test_docker_keeps_a_container_in_which_another_process_builds_an_image(home, monkeypatch, builds):
    asked = []
    listed = f"aa \nbb {recipe('b')[:12]}\ncc {recipe('c')[:12]}\n"

    def capture(argv, *_, **__):
        asked.append(argv)
        return subprocess.CompletedProcess(argv, 0, listed if "ps" in argv else "", "")

    monkeypatch.setattr("strata.base.process.capture", capture)
    monkeypatch.setattr(docker, "answers", lambda: True)
    monkeypatch.setattr(docker.shutil, "which", lambda name: f"/usr/bin/{name}")
    with open(home / f"images/{recipe('b')}.lock", "w") as file:
        if builds:
            fcntl.flock(file, fcntl.LOCK_EX)
        found = docker.sweep()
    assert found == (["aa", "cc"] if builds else ["aa", "bb", "cc"])
    assert asked[1] == ["docker", "rm", "--force", "--volumes", *found]
    # An image that has no name yet may be the one that is being built.
    assert any("prune" in argv for argv in asked) is not builds


def test_docker_forgets_what_is_ours_and_not_in_the_cache(tmp_path, monkeypatch):
    """What it refuses, since a container of it is there, is not said to be gone."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))
    asked = tmp_path / "asked"
    program = f"""#!/bin/sh
echo "$*" >>{asked}
case "$*" in
    "image ls "*) printf 'strata/image:aa\\nstrata/image:bb\\nstrata/base:cc\\nstrata/image:dd\\nmine/image:bb\\n' ;;
    "image rm strata/image:dd") exit 1 ;;
esac
"""
    (tmp_path / "docker").write_text(program)
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(docker, "answers", lambda: True)
    assert docker.forget({"strata/image:aa"}) == ["Docker's strata/base:cc", "Docker's strata/image:bb"]
    first, *rest = asked.read_text().splitlines()
    assert f"--filter label=strata.image={docker.places.home_mark()}" in first
    assert rest == ["image rm strata/base:cc", "image rm strata/image:bb", "image rm strata/image:dd"]
    monkeypatch.setattr(docker, "answers", lambda: False)
    assert docker.forget(set()) == []
