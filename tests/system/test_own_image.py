"""An image of one's own, made here without a network, and any option of Docker's."""

import json
import os
import subprocess

import debian_python
import projects
import pytest
from test_image import files_below

from strata.image import cache

PROGRAM = """
import hashlib, os, sys
print(sorted(os.environ.items()), os.getcwd(), os.getuid(), os.getgid(), os.getgroups())
print(open("where.txt").read(), hashlib.sha256(open(sys.executable, "rb").read()).hexdigest())
for folder in ("/var/kept", "/data", "/tmp"):
    open(f"{folder}/mine", "w").write("x")
print(sorted(os.listdir("/var/kept")))
print(42)
"""
DOCKER = {"network": "bridge", "data": "volume"}
OPTIONS = ["--cpus=1.5", "--ulimit=nofile=1024:1024", "--log-driver=none"]
NETWORK = "strata-test-own"
# Another version of the image, with another file.
NEWER = f"{debian_python.NAME}-newer"
STACKS = {
    "native": ["chroot"],
    "docker": [{"docker": DOCKER}],
    "layered": [{"docker": {**DOCKER, "data": "layered"}}],
    "limited": [{"docker": {**DOCKER, "options": OPTIONS}}],
    "networked": [{"docker": {"data": "volume", "options": [f"--network={NETWORK}"]}}],
    "gvisor": [{"docker": {**DOCKER, "runtime": "runsc", "stack": "host"}}],
    "podman": [{"podman": {**DOCKER, "runtime": "runc"}}],
    "newer": [{"docker": {**DOCKER, "image": NEWER}}],
    "vm": ["vm"],
}
# What native, Docker and gVisor all print.
PRINTED = """\
hello
[('ENTERED', 'yes'), ('GREETING', 'good-day'), ('HOME', '/'), ('PATH', \
'/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'), \
('PWD', '/usr/share/app'), ('PYTHONDONTWRITEBYTECODE', '1')] /usr/share/app 1000 1000 [1000]
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Have a cache of one's own, and afterwards no image of the tests in Docker."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    debian_python.remove(debian_python.NAME)
    subprocess.run(["docker", "network", "create", NETWORK], capture_output=True)
    yield tmp_path
    for name in (NEWER, debian_python.NAME):
        debian_python.remove(name)
    subprocess.run(["docker", "network", "rm", NETWORK], capture_output=True)


def project(folder, stacks):
    (folder / "program.py").write_text(PROGRAM)
    text = {"about": "A text", "schema": {"type": "string"}}
    workload = {
        **projects.NOOP,
        "parameters": {
            "program": {**text, "file": "sha", "value": str(folder / "program.py")},
            "sha": {**text, "value": "none"},
            # One process measures all environments together.
            "laps": {
                **text,
                "schema": {"type": "integer", "maximum": 1000, "minimum": 1},
                "value": 2,
            },
        },
        "laps": "laps",
        "portable": True,
        "run": [{"argv": ["begin.sh", "{entrypoint}", "python3", "{program}"], "timeout": 60}],
    }
    config = projects.on_host(
        environments={name: {"layers": layers} for name, layers in stacks.items()},
        image={"docker": debian_python.NAME},
        repetitions=1,
    )
    made = projects.make(folder / "project", config, {"noop": workload})
    # Programs of the workload's own, one of them compiled here.
    begin = '#!/bin/sh\n"${0%/*}/hello"\nexec "$@"\n'
    build = 'install -m 755 begin.sh "$1"\ngcc -static -o "$1/hello" hello.c\n'
    hello = '#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n'
    for name, text in (("begin.sh", begin), ("build.sh", build), ("hello.c", hello)):
        (made / "workloads/noop" / name).write_text(text)
    return made


def test_its_program_runs_alike_in_native_docker_and_a_sandbox(image, own, machine_stays):
    tree = os.path.join(image["folder"], "tree")
    debian_python.make(tree, own)
    (own / "newer").mkdir()
    (own / "newer/where.txt").write_text("the newer version\n")
    (own / "newer/Dockerfile").write_text(
        f"FROM {debian_python.NAME}\nCOPY where.txt /usr/share/app/where.txt\n"
    )
    build = ["docker", "build", "--quiet", "--tag", NEWER, own / "newer"]
    subprocess.run(build, check=True, capture_output=True)
    folder = project(own, STACKS)
    argv = ["snakemake", "--cores", "1", "cells", "results/image.json"]
    projects.good(folder, *argv, timeout=850)
    plan = json.loads((folder / "results/plan.json").read_text())
    measured = [name for name, entry in plan["environments"].items() if entry["available"]]
    assert {"native", "docker", "layered", "limited", "networked"} <= {*measured}
    assert plan["environments"]["vm"]["reason"] == "the image has no kernel and init"
    records, logs = {}, set()
    for name in measured:
        raw = folder / "results/raw" / name / "noop"
        records[name] = json.loads((raw / "1.json").read_text())
        logs.add((raw / "1.log").read_text())
    [newer] = {log for log in logs if "the newer version" in log}
    [log] = logs - {newer}
    assert newer == (folder / "results/raw/newer/noop/1.log").read_text()
    assert PRINTED in log
    assert "['first', 'mine']\n42" in log
    assert {record["image"]["id"] for record in records.values()} == {
        subprocess.check_output(
            ["docker", "image", "inspect", "--format", "{{.Id}}", debian_python.NAME], text=True
        ).strip()
    }
    # The same files in the container and in native's tree.
    made = cache.require_image(plan["image"]["recipe"])
    listed = json.loads(open(os.path.join(made["folder"], "manifest.json")).read())["files"]
    argv = ["docker", "run", "--rm", "--user", "0", "--network", "none", "--entrypoint", "env"]
    of_image = {path: value for path, value in listed.items() if path.split("/")[0] != "opt"}
    assert {*listed} - {*of_image} == {
        f"opt/strata/workloads/noop/{name}" for name in ("begin.sh", "hello")
    }
    # A volume is another file system.
    in_volume = {path for path in of_image if path.startswith("var/kept/")}
    of_container = {path: of_image[path] for path in {*of_image} - in_volume}
    assert files_below(*argv, debian_python.NAME, "/") == of_container
    assert files_below(os.path.join(made["folder"], "tree")) == of_image
    assert records["native"]["image"]["manifest_sha256"] == made["manifest_sha256"]
    assert "HEALTHCHECK" in made["run"]["without_effect"]
    # What the options did is seen inside, or is as requested.
    rows = {
        row["name"]: row["observed"] for row in records["limited"]["system"]["docker"]["settings"]
    }
    assert "150000" in rows["--cpus"]
    assert rows["--ulimit"] == "limit nofile: 1024 (without: 16384)"
    assert rows["--log-driver"] == "as requested"
    declared = {
        row["name"]: row["by"] for row in records["limited"]["starting_state"]["differences"]
    }
    assert declared["limit nofile"] == "option --ulimit=nofile=1024:1024"
    assert "--cpus=1.5" in plan["environments"]["limited"]["label"]
    [row] = records["networked"]["system"]["docker"]["settings"]
    assert "127.0.0.11" in row["observed"]
    packages = projects.good(folder, "strata", "image", "--packages").stdout
    assert "python3.13 3.13" in packages
    # Podman was given the image, and loses it with the cache; Docker's is the user's.
    cleaned = projects.good(folder, "strata", "clean", "--images", timeout=850).stdout
    assert ("of Podman" in cleaned) is ("podman" in measured)
    assert "of Docker" not in cleaned


@pytest.mark.parametrize(
    ("changes", "more", "reason"),
    [
        (["USER nobody-here"], "true", "USER nobody-here: the image has no such user"),
        ([], "mkdir data; touch data/x", "it has /data/x"),
        ([], "ln -s /var/tmp tmp", "/tmp is not a folder, or is behind a symbolic link"),
        (["VOLUME /loop/kept"], "ln -s /etc loop", "VOLUME /loop/kept is not a folder"),
    ],
)
def test_what_cannot_be_taken_over_is_refused_by_name(image, own, changes, more, reason):
    debian_python.make(os.path.join(image["folder"], "tree"), own, changes=changes, more=more)
    folder = project(own, {"native": ["chroot"]})
    done = projects.run(folder, "strata", "image")
    assert done.returncode == 1
    assert f"image.docker: is {debian_python.NAME}; " in done.stderr
    assert reason in done.stderr
    assert not [name for name in os.listdir(own / "home/images") if len(name) == 64]


def test_an_image_without_a_shell_or_that_docker_lacks_is_refused_with_the_remedy(own):
    folder = project(own, {"native": ["chroot"]})
    done = projects.run(folder, "strata", "image")
    assert f"`docker pull {debian_python.NAME}` fetches it" in done.stderr
    subprocess.run(["tar", "-cf", own / "one.tar", "-C", own, "program.py"], check=True)
    subprocess.run(
        ["docker", "import", own / "one.tar", debian_python.NAME], check=True, capture_output=True
    )
    done = projects.run(folder, "strata", "image")
    assert done.returncode == 1
    assert "it lacks a shell (sh)" in done.stderr
