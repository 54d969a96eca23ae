"""Images and boxes in the cache: made once, kept, and removed with their image."""

import os
import time

import projects
import pytest

from strata.image import build, cache
from strata.util.errors import UserError
from strata.util.files import remove_tree, write_json
from strata.vm import vagrant_box


def flip(path):
    """Change a file's content, and keep its size and time."""
    before = path.stat()
    path.write_text(path.read_text().upper())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(path):
    path.with_name("new").write_text("#!/bin/sh\n")
    path.with_name("new").rename(path)


def link(path):
    path.unlink()
    path.symlink_to("elsewhere")


def add(path):
    path.with_name("zzz").write_text("new")


@pytest.mark.parametrize("change", [flip, replace, link, add, os.unlink])
def test_a_changed_file_is_an_error_before_it_runs_and_stays_one(tmp_path, change):
    program = tmp_path / "tree/bin/serve"
    program.parent.mkdir(parents=True)
    program.write_text("serve")
    write_json(str(tmp_path / "image.json"), {})
    # The kernel counts the times of files in ticks.
    time.sleep(0.05)
    image = {"folder": str(tmp_path)}
    cache.require_unchanged_tree(image)
    change(program)
    for _ in range(2):
        with pytest.raises(UserError, match="not as it was built"):
            cache.require_unchanged_tree(image)


def test_a_box_is_kept_with_its_facts_and_removed_with_its_image(tmp_path, monkeypatch):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))
    made = tmp_path / "made"
    made.mkdir()
    for name in ("box.img", "kernel", "initrd", "version", "host_key.pub"):
        (made / name).write_text("one two three")
    assert not vagrant_box.has_box("r")
    vagrant_box.install_box("r", str(made))
    assert vagrant_box.has_box("r")
    assert vagrant_box.require_box("r")["host_key"] == "one two"
    vagrant_box.remove_box("r")
    with pytest.raises(UserError, match="python3 -m strata image"):
        vagrant_box.require_box("r")


def test_a_box_of_an_earlier_build_goes_when_its_image_is_built_again(tmp_path, monkeypatch):
    """Its machines would run other files than the containers beside them."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))
    monkeypatch.setattr(build.recipe, "describe_image", lambda config: {"recipe": "r", "base": "b"})
    os.makedirs(vagrant_box.get_box_folder("r"))
    image_in_cache("r", 1)
    build.ensure_image({})
    assert vagrant_box.has_box("r")
    remove_tree(cache.get_image_folder("r"))
    monkeypatch.setattr(build, "_build_image", lambda *words: image_in_cache("r", 2))
    build.ensure_image({})
    assert not vagrant_box.has_box("r")


def image_in_cache(name, used, base="b", **more):
    """Put the folder of an image into the cache, last used at a time."""
    folder = cache.get_image_folder(name)
    os.makedirs(folder)
    facts = {"recipe": name, "id": name, "base": base, **more}
    write_json(os.path.join(folder, "image.json"), facts)
    os.utime(folder, (used, used))


def test_the_three_images_that_were_used_last_stay(tmp_path, monkeypatch):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))
    names = [str(number) * 64 for number in range(5)]
    for number, name in enumerate(names):
        image_in_cache(name, number + 1, base=f"base{number}")
    # Those of the user's own count for themselves.
    own = [letter * 64 for letter in "abcd"]
    for number, name in enumerate(own):
        image_in_cache(name, number + 10, base="", run={"variables": []})
    os.makedirs(tmp_path / "images/building-x/deep")
    os.utime(cache.get_image_folder(names[0]))
    removed = build.prune_images()
    assert cache.list_image_recipes() == [names[0], *own[:0:-1], names[4], names[3]]
    assert {*removed} == {
        "image 222222222222",
        "image 111111111111",
        "image aaaaaaaaaaaa",
        "unfinished image x",
    }
    assert build.prune_images() == []
    build.prune_images(0)
    assert os.listdir(tmp_path / "images") == ["cache.lock"]


def test_nobody_else_reaches_an_images_files(tmp_path, monkeypatch):
    """Among the files are setuid programs, and a /tmp that everybody may write."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))
    monkeypatch.setattr(build.recipe, "describe_image", lambda config: {"recipe": "r", "base": "b"})
    (tmp_path / "images/r").mkdir(parents=True)
    monkeypatch.setattr(
        build, "_build_image", lambda *words: (tmp_path / "images").stat().st_mode & 0o777
    )
    assert build.ensure_image({}) == 0o700


def count_files(folder):
    """Return the number of files in a folder and in those below it."""
    return sum(len(names) for _, _, names in os.walk(folder))


@pytest.mark.parametrize("part", ["x", "removed", "removed-box"])
def test_a_killed_clean_leaves_nothing_that_looks_complete_and_the_next_one_ends_it(
    project, tmp_path, part
):
    folder, home, name = project(), tmp_path / "home", "1" * 64
    image_in_cache(name, 1)
    trees = {
        "x": home / "images/building-x",
        "removed": home / "images" / name / "tree",
        "removed-box": home / "vm/vagrant/boxes" / vagrant_box.get_box_name(name) / "0/libvirt",
    }
    for removed, tree in trees.items():
        os.makedirs(tree)
        # The removal of so many files takes a while.
        for number in range(3000 if removed == part else 1):
            (tree / str(number)).touch()
    place = home / f"images/building-{part}"
    with projects.start(folder, "strata", "clean", "--images") as process:
        projects.until(lambda: place.exists() and count_files(place) < 3000)
        process.kill()
    assert count_files(place), "it had ended before it was killed"
    assert vagrant_box.has_box(name) is (part == "x")
    assert (cache.find_image(name) is None) is (part == "removed")
    cleaned = projects.good(folder, "strata", "clean", "--images").stdout
    assert f"removed unfinished image {part}" in cleaned
    assert os.listdir(home / "images") == ["cache.lock"]
    assert not count_files(home / "vm")


def test_packages_that_the_distribution_lacks_are_named_with_their_key(monkeypatch, tmp_path):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))
    (tmp_path / "images").mkdir()
    described = {"distribution": "debian", "release": "trixie"}
    printed = (
        "Reading lists\nE: Unable to locate package nosuch\nE: setup failed: E: apt-get failed"
    )
    error = build._build_bootstrap_error(described, None, printed)
    assert str(error).startswith("nosuch: debian trixie has no such package")
    assert "image.packages" in str(error)
