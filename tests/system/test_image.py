"""One image for every environment: the container's files and the native tree are the same."""

import hashlib
import json
import os
import shutil
import subprocess

import projects
import pytest

from strata.image import cache, manifest
from strata.layers import docker
from strata.system import testbed

# Prints what manifest.hash_tree finds, from inside a container: hash or target, and path.
INSIDE = r"""
cd /
find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./run -o -path ./tmp -o -path ./data \) -prune \
    -o -type f -print0 | sort -z | xargs -0 sha256sum -z | tr '\0' '\n' | sed 's|^\(.*\)  \./|sha256:\1 |'
find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./run -o -path ./tmp -o -path ./data \) -prune \
    -o -type l -printf 'link:%l %P\n'
"""


def hash_tree(tree):
    """What the manifest should say of the tree that native runs use."""
    found = {}
    for folder, inner, names in os.walk(tree):
        inside = os.path.relpath(folder, tree)
        if inside == ".":
            inner[:] = [name for name in inner if name not in manifest.NOT_FILES]
        for name in names + [part for part in inner if os.path.islink(os.path.join(folder, part))]:
            path, key = os.path.join(folder, name), os.path.normpath(os.path.join(inside, name))
            if key in manifest.LAID_OVER:
                continue
            if os.path.islink(path):
                found[key] = f"link:{os.readlink(path)}"
            else:
                found[key] = f"sha256:{hashlib.sha256(open(path, 'rb').read()).hexdigest()}"
    return found


def test_container_and_tree_are_the_same_files(image):
    argv = ["docker", "run", "--rm", "--network", "none", "--pull", "never", docker.tag(image), "bash", "-c", INSIDE]
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    inside = {}
    for line in printed.splitlines():
        value, path = line.rsplit(" ", 1)
        inside[path] = value
    inside = {path: value for path, value in inside.items() if path not in manifest.LAID_OVER}
    listed = json.loads(open(os.path.join(image["folder"], "manifest.json")).read())["files"]
    assert len(listed) > 5000
    assert "opt/strata/workloads/linpack/linpack" in listed
    assert inside == {path: value for path, value in listed.items() if " " not in path}
    assert hash_tree(os.path.join(image["folder"], "tree")) == listed


def test_the_manifest_is_what_the_image_says_it_is(image):
    listing = json.loads(open(os.path.join(image["folder"], "manifest.json")).read())
    assert manifest.digest(listing) == image["manifest_sha256"]
    assert len(listing["packages"]) == image["package_count"]
    assert {"xz-utils", "libopenblas-dev", "gcc", "libc6"} <= set(listing["packages"])


def test_the_image_names_no_source_of_packages(image):
    tree = os.path.join(image["folder"], "tree")
    assert not os.path.exists(f"{tree}/etc/apt/sources.list")
    assert os.listdir(f"{tree}/etc/apt/sources.list.d") == []
    assert not os.path.exists(os.path.join(image["folder"], "sources.list"))


def test_programs_do_not_depend_on_the_builders_cpu(image):
    script = open(os.path.join(projects.ROOT, "workloads/stream/build.sh")).read()
    assert "-march" not in script
    assert "-mtune" not in script


def test_a_second_checkout_finds_it_in_the_cache(image, tmp_path):
    folder = projects.make(tmp_path / "second", projects.default(), copy=True)
    done = projects.run(folder, "strata", "image")
    assert done.returncode == 0
    assert "is in the cache" in done.stderr
    assert json.loads((folder / "results/image.json").read_text())["id"] == image["id"]


def test_a_changed_recipe_builds_another_image_and_a_comment_does_not(image, tmp_path, machine_stays):
    folder = projects.make(tmp_path / "changed", projects.default(), copy=True)
    program = folder / "workloads/stream/src/stream.c"
    program.write_text("/* Another comment. */\n" + program.read_text())
    assert "is in the cache" in projects.run(folder, "strata", "image").stderr
    program.write_text(program.read_text().replace("SCALAR = 0.4", "SCALAR = 0.5"))
    done = projects.run(folder, "strata", "image", timeout=900)
    assert done.returncode == 0, done.stderr
    built = json.loads((folder / "results/image.json").read_text())
    try:
        assert built["recipe"] != image["recipe"]
        assert built["id"] != image["id"]
        old, new = (
            json.loads(open(f"{cache.folder_of(name)}/manifest.json").read())["files"]
            for name in (image["recipe"], built["recipe"])
        )
        assert {path for path in old if old[path] != new.get(path)} == {"opt/strata/workloads/stream/stream"}
    finally:
        subprocess.run(["docker", "rmi", docker.tag(built)], check=True, capture_output=True)
        shutil.rmtree(cache.folder_of(built["recipe"]))


def test_the_same_recipe_gives_the_same_files_again(image, see_image, tmp_path, monkeypatch, machine_stays):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    done = projects.run(projects.make(tmp_path / "again", projects.default()), "strata", "image", timeout=900)
    try:
        assert done.returncode == 0, done.stderr
        again = json.loads((tmp_path / "again/results/image.json").read_text())
        assert again["manifest_sha256"] == image["manifest_sha256"]
    finally:
        see_image(image)


def test_a_program_that_does_not_compile_is_told_and_leaves_nothing(image, tmp_path, machine_stays):
    folder = projects.make(tmp_path / "broken", projects.default(), copy=True)
    program = folder / "workloads/stream/src/stream.c"
    program.write_text(program.read_text() + "\nthis is not C;\n")
    done = projects.run(folder, "strata", "image", timeout=900)
    assert done.returncode == 1
    assert "Packer could not provision the image" in done.stderr
    assert "stream.c" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "results/image.json").exists()
    with testbed.exclusive():
        testbed.clean()


def test_an_image_removed_from_docker_comes_back_from_the_cache(image, see_image, machine_stays):
    subprocess.run(["docker", "rmi", "--force", docker.tag(image)], check=True, capture_output=True)
    see_image(image)
    form = ["docker", "image", "inspect", "--format", "{{.Id}}", docker.tag(image)]
    assert subprocess.check_output(form, text=True).strip() == image["id"]


def test_a_missing_image_is_told_with_the_command_that_builds_it():
    with pytest.raises(Exception, match="python -m strata image"):
        cache.require("0" * 64)
