"""One image for every environment: the container's files and the native tree are the same."""

import glob
import json
import os
import shutil
import signal
import subprocess
import time

import projects
import pytest
import small_image

from strata.environments.common import engine
from strata.image import build, cache, manifest
from strata.testbed import lifecycle
from strata.util import locks, paths
from strata.util.files import write_json
from strata.vm import vagrant_box

# Prints of each file below a folder its hash or target, and its path.
INSIDE = r"""
cd "$1"
listed() {
    find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./run -o -path ./tmp \
        -o -path ./data \) -prune -o "$@"
}
listed -type f -print0 | sort -z | xargs -0 sha256sum -z | tr '\0' '\n' |
    sed 's|^\(.*\)  \./|sha256:\1 |'
listed -type l -printf 'link:%l %P\n'
"""


def files_below(*argv):
    """The manifest's entries for files below a folder.

    argv: the words that run a shell there, then the folder.
    """
    done = subprocess.run(
        [*argv[:-1], "bash", "-c", INSIDE, "look", argv[-1]], capture_output=True, check=True
    )
    lines = [line.rsplit(" ", 1) for line in done.stdout.decode().splitlines()]
    return {path: value for value, path in lines if path not in manifest.LAID_OVER}


def test_container_and_tree_are_the_same_files(image, see_image):
    see_image(image)
    listed = json.loads(open(os.path.join(image["folder"], "manifest.json")).read())["files"]
    assert len(listed) > 5000
    assert "opt/strata/workloads/linpack/linpack" in listed
    listed = {path: value for path, value in listed.items() if " " not in path}
    docker = ["docker", "run", "--rm", "--network", "none", "--pull", "never", image["id"]]
    assert files_below(*docker, "/") == listed
    assert files_below(os.path.join(image["folder"], "tree")) == listed


def test_the_guide_lists_the_packages_that_the_image_holds(image):
    guide = (projects.ROOT / "docs/workloads.md").read_text()
    listed = guide.split("<!-- packages -->")[1].split("<!-- end -->")[0].split()
    held = json.loads(open(os.path.join(image["folder"], "manifest.json")).read())["packages"]
    assert listed == [name for name in held if not name.startswith(("lib", "linux-image-6"))]


def test_the_image_names_no_source_of_packages(image):
    tree = os.path.join(image["folder"], "tree")
    assert not os.path.exists(f"{tree}/etc/apt/sources.list")
    assert os.listdir(f"{tree}/etc/apt/sources.list.d") == []
    assert not os.path.exists(os.path.join(image["folder"], "sources.list"))


def test_a_second_checkout_finds_it_in_the_cache(image, tmp_path):
    folder = projects.make(tmp_path / "second", projects.default(), copy=True)
    assert "is in the cache" in projects.run(folder, "strata", "image").stderr
    assert projects.image(folder)["id"] == image["id"]


@pytest.mark.long
def test_a_changed_recipe_builds_another_image_and_a_comment_does_not(
    image, tmp_path, machine_stays
):
    folder = projects.make(tmp_path / "changed", projects.default(), copy=True)
    program = folder / "workloads/stream/src/stream.c"
    program.write_text("/* Another comment. */\n" + program.read_text())
    assert "is in the cache" in projects.run(folder, "strata", "image").stderr
    program.write_text(program.read_text().replace("SCALAR = 0.4", "SCALAR = 0.5"))
    built = projects.image(folder)
    try:
        assert built["recipe"] != image["recipe"]
        assert built["id"] != image["id"]
        old, new = (
            json.loads(open(f"{cache.get_image_folder(name)}/manifest.json").read())["files"]
            for name in (image["recipe"], built["recipe"])
        )
        assert {path for path in old if old[path] != new.get(path)} == {
            "opt/strata/workloads/stream/stream"
        }
    finally:
        subprocess.run(
            ["docker", "rmi", engine.format_image_name(built)], check=True, capture_output=True
        )
        shutil.rmtree(cache.get_image_folder(built["recipe"]))


@pytest.mark.long
def test_the_same_recipe_gives_the_same_files_again(
    image, see_image, tmp_path, monkeypatch, machine_stays
):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    try:
        again = projects.image(projects.make(tmp_path / "again", projects.default()))
        assert again["manifest_sha256"] == image["manifest_sha256"]
    finally:
        see_image(image)


def test_a_program_that_does_not_compile_is_told_and_leaves_nothing(image, tmp_path, machine_stays):
    folder = projects.make(tmp_path / "broken", projects.default(), copy=True)
    program = folder / "workloads/stream/src/stream.c"
    program.write_text(program.read_text() + "\nthis is not C;\n")
    done = projects.run(folder, "strata", "image", timeout=900)
    assert done.returncode == 1
    assert "Packer could not make the image" in done.stderr
    assert "stream.c" in done.stderr
    assert "Traceback" not in done.stderr
    with locks.hold_machine_lock():
        lifecycle.clean_machine()


def test_updates_that_are_lost_are_noticed_however_many_passes(image, see_image, tmp_path):
    see_image(image)
    program = (projects.ROOT / "workloads/randomaccess/src/randomaccess.c").read_text()
    update = "table[r & mask] ^= r;"
    assert program.count(update) == 1
    (tmp_path / "good.c").write_text(program)
    (tmp_path / "lossy.c").write_text(program.replace(update, f"if (i % 40) {update}"))
    shutil.copy(projects.ROOT / "workloads/common/strata.h", tmp_path)
    # One thread: it loses nothing to another, and no barrier slows it where the machine is busy.
    run = """set -e; cd /src
    for name in good lossy; do gcc -O2 -fopenmp -I . -o /tmp/$name $name.c; done
    for name in good lossy; do for passes in 1 2 10 100; do
        /tmp/$name --threads 1 --log2 12 --updates-per-word 4 --passes $passes |
            grep verified || true
    done; done"""
    docker = ["docker", "run", "--rm", "--network", "none", "--pull", "never"]
    argv = [*docker, "-v", f"{tmp_path}:/src:ro"]
    printed = subprocess.run(
        [*argv, image["id"], "bash", "-c", run], capture_output=True, text=True, check=True
    )
    assert [json.loads(line)["verified"] for line in printed.stdout.splitlines()] == [True] * 4 + [
        False
    ] * 4


def test_an_image_removed_from_docker_comes_back_from_the_cache(image, see_image, machine_stays):
    subprocess.run(["docker", "rmi", "--force", image["id"]], check=True, capture_output=True)
    see_image(image)
    form = ["docker", "image", "inspect", "--format", "{{.Id}}", image["id"]]
    assert subprocess.check_output(form, text=True).strip() == image["id"]


# Replaces Packer: makes the container and image, and then fails, never ends, or names the image.
PACKER = """#!/bin/bash
set -e
for word; do
    case $word in home=* | tag=* | base=*) declare "${word%%=*}=${word#*=}" ;; esac
done
recipe=${tag#*:} here=$(dirname "$0")
container=$(docker run -d --network none --label "strata.building=$home" "$base" sleep 900)
labels="strata.building= strata.image=$home strata.recipe=$recipe"
id=$(docker commit --change "LABEL $labels" "$container")
echo "out of order"
[ ! -e "$here/fail" ] || exit 1
if [ ! -e "$here/export" ]; then touch "$here/reached"; sleep 900; fi
docker tag "$id" "$tag"
docker rm --force "$container"
"""
# Replaces Docker: exporting an image's files never ends.
DOCKER = """#!/bin/bash
case $1 in
save) exec touch "$3" ;;
export) touch "$(dirname "$0")/reached" && exec sleep 900 ;;
*) PATH=${PATH#*:} exec docker "$@" ;;
esac
"""
# A line of a build's output, and seconds after it, at which the build is killed; the first two
# need another base.
MOMENTS = [
    ("bootstrapping", 20),
    ("importing", 1),
    ("provisioning", 3),
    ("taking its files", 0),
    ("taking its files", 8),
    ("hashing", 1),
    *[("making the machines", seconds) for seconds in (1, 15, 40)],
]


def left():
    """All that builds leave: containers, images, marked processes, folders and mounts."""
    containers, images = (
        subprocess.run(["docker", *argv], capture_output=True, text=True, check=True).stdout
        for argv in (["ps", "--all", "--quiet"], ["images", "--all", "--no-trunc"])
    )
    mark = [
        "grep",
        "-lsz",
        f"STRATA_BUILDING={paths.compute_home_mark()}",
        *glob.glob("/proc/[0-9]*/environ"),
    ]
    marked = subprocess.run(mark, capture_output=True, text=True, check=False).stdout.split()
    folders = [
        path
        for name in ("images", "vm/vagrant/boxes")
        for path in glob.glob(f"{paths.get_home_folder()}/{name}/*")
    ]
    mounts = [line for line in open("/proc/self/mountinfo") if paths.get_home_folder() in line]
    return {
        "containers": {id for id in containers.split() if paths.compute_home_mark() in labels(id)},
        "images": {
            line.split()[2]
            for line in images.splitlines()
            if paths.compute_home_mark() in labels(line.split()[2])
        },
        "processes": set(marked),
        "folders": set(folders) - {os.path.join(paths.get_home_folder(), "images", "packer.log")},
        "mounts": set(mounts),
    }


def labels(id):
    form = ["docker", "inspect", "--format", "{{.Config.Labels}}", id]
    return subprocess.run(form, capture_output=True, text=True, check=False).stdout.strip()


@pytest.fixture
def building(image, tmp_path):
    """A project with an image that is not built yet, on the same base, and a stub for Packer."""
    folder = projects.beside_real(tmp_path / "p", projects.default(), {"another": projects.NOOP})
    (folder / "workloads/another/build.sh").write_text("true\n")
    (tmp_path / "bin").mkdir()
    for name, program in (("packer", PACKER), ("docker", DOCKER)):
        (tmp_path / "bin" / name).write_text(program)
        (tmp_path / "bin" / name).chmod(0o755)
    return folder, f"{tmp_path}/bin:{os.environ['PATH']}"


def test_a_build_that_fails_leaves_nothing(building, tmp_path):
    folder, path = building
    (tmp_path / "bin/fail").touch()
    before = left()
    done = projects.run(folder, "strata", "image", PATH=path)
    assert done.returncode == 1
    assert "Packer could not make the image" in done.stderr
    assert "out of order" in done.stderr
    # It said what ran, and not that it had ended.
    assert "with Packer …" in done.stderr
    assert "is built" not in done.stderr
    assert left() == before


def removed(folder, before):
    """Run `strata clean`, which names all that it removes; return what it prints."""
    leftovers = left()
    assert leftovers != before
    cleaned = projects.good(folder, "strata", "clean").stdout
    assert left() == before, cleaned
    for id in (leftovers["containers"] - before["containers"]) | (
        leftovers["images"] - before["images"]
    ):
        shown = subprocess.run(["docker", "inspect", id], capture_output=True, check=False)
        assert shown.returncode != 0
    assert "unfinished image" in cleaned
    return cleaned


@pytest.mark.parametrize("stage", ["packer", "export"])
def test_what_a_killed_build_left_is_removed(building, tmp_path, machine_stays, stage):
    folder, path = building
    (tmp_path / "bin" / stage).touch()
    before = left()
    with projects.start(folder, "strata", "image", output=subprocess.DEVNULL, PATH=path) as process:
        projects.until((tmp_path / "bin/reached").exists)
        os.kill(process.pid, signal.SIGKILL)
    assert left()["containers"] - before["containers"]
    cleaned = removed(folder, before)
    assert "container" in cleaned
    assert "image strata-" in cleaned or stage == "packer"


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("line", "seconds"), MOMENTS)
def test_a_build_may_be_killed_at_any_moment(image, tmp_path, line, seconds):
    page, more = projects.default(), {"another": projects.NOOP}
    if line == "making the machines":
        page["environments"]["vm"] = {"label": "{vm}", "layers": ["vm"]}
        vagrant_box.remove_box(image["recipe"])
        more = {}
    elif line in ("bootstrapping", "importing"):
        more["another"] = {**projects.NOOP, "packages": ["hello"]}
    folder = projects.beside_real(tmp_path / "p", page, more)
    for name in more:
        (folder / "workloads" / name / "build.sh").write_text("true\n")
    before = left()
    with projects.start(folder, "strata", "image") as process:
        printed = next((one for one in process.stdout if line in one), None)
        assert printed, "it never came so far"
        time.sleep(seconds)
        os.kill(process.pid, signal.SIGKILL)
    cleaned = removed(folder, before)
    print(f"{line} + {seconds} s: {cleaned}")


def test_homes_leave_each_other_their_images(tmp_path, monkeypatch):
    """Two homes with images of one recipe, one of which lost its name in Docker to the other."""
    made = {}
    for home in ("a", "b"):
        monkeypatch.setenv("STRATA_HOME", str(tmp_path / home))
        (tmp_path / home / "images").mkdir(parents=True)
        folder = tmp_path / home / "images" / small_image.RECIPE
        made[home] = {**small_image.make(folder), "base": "0" * 64}
        write_json(str(folder / "image.json"), made[home])
        subprocess.run(
            ["docker", "load", "--input", folder / "image.tar"], check=True, capture_output=True
        )
    # Another home's build took the same name.
    subprocess.run(
        ["docker", "tag", made["a"]["id"], engine.format_image_name(made["b"])], check=True
    )
    assert "<none>" in subprocess.check_output(
        ["docker", "images", "--filter", "dangling=true"], text=True
    )
    try:
        for home in ("a", "b"):
            monkeypatch.setenv("STRATA_HOME", str(tmp_path / home))
            assert build.prune_images() == []
        monkeypatch.setenv("STRATA_HOME", str(tmp_path / "a"))
        assert f"image {small_image.RECIPE[:12]}" in build.prune_images(0)
        assert not labels(made["a"]["id"])
        assert labels(made["b"]["id"])
    finally:
        for image in made.values():
            subprocess.run(
                ["docker", "image", "rm", "--force", image["id"]], check=False, capture_output=True
            )
