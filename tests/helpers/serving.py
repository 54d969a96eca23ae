"""The servers of an application, up in its image's files: in mounts and processes of their own that end with them.

They listen on this machine's loopback.
"""

import concurrent.futures
import contextlib
import json
import os
import random
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import projects
import pytest
import requests
import yaml

# What stands before a test's own commands, in which the workload's programs are in $of, `inside` runs a command in the
# files, and `until_ready` does it until it succeeds.
BEGIN = r"""
set -eu
tree=$1 root=$2 of=/opt/strata/workloads/$3
mount --bind "$tree" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
for name in tmp data run; do mount -t tmpfs tmpfs "$root/$name"; done
(umask 077; head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$root/data/password")
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
until_ready() { until inside "$@" >/dev/null 2>&1; do sleep 0.2; done; }
"""
END = """
echo ready
read -r _
"""


class Served:
    """The servers, and what is asked of them beside their pages."""

    def __init__(self, process: subprocess.Popen, root: str):
        self.root = root
        children = subprocess.run(
            ["pgrep", "--parent", str(process.pid)], capture_output=True, text=True, check=True
        )
        self.inner = children.stdout.split()[0]

    def inside(self, *words: str, text: str | None = None) -> subprocess.CompletedProcess:
        """Run a command in the files, among the servers."""
        enter = ["nsenter", f"--target={self.inner}", "--mount", "--pid", "chroot", self.root]
        return subprocess.run(
            [*enter, *words], input=text, capture_output=True, text=True, timeout=120, check=False
        )

    def sql(
        self, socket: str, database: str, account: str, text: str
    ) -> subprocess.CompletedProcess:
        """Ask PostgreSQL at the socket in a folder: as its own user, or as the pages' user with their account."""
        user = "postgres" if account == "postgres" else "www-data"
        words = [
            "setpriv",
            f"--reuid={user}",
            f"--regid={user}",
            "--clear-groups",
            "psql",
            "--no-psqlrc",
        ]
        words += [
            "--tuples-only",
            "--no-align",
            "--set=ON_ERROR_STOP=1",
            f"--host={socket}",
            f"--username={account}",
        ]
        return self.inside(*words, database, text=text)

    def said(self, server: str) -> str:
        """What a server printed, for which the test's commands keep it in /tmp by its name."""
        return self.inside("cat", f"/tmp/{server}").stdout


def built(folder: Path, parameters: dict[str, dict] | None = None, **more: object) -> Path:
    """A project with the workloads of `make everything`, whose image, one for all these tests, was built.

    parameters: of workloads; more: keys of the page.
    """
    page = projects.default(repetitions=1, **more)
    page["workloads"] |= yaml.safe_load((projects.ROOT / "everything.yaml").read_text())[
        "workloads"
    ]
    page["workloads"] |= parameters or {}
    projects.make(folder, page)
    projects.image(folder)
    return folder


def environments(*names: str) -> dict[str, dict]:
    """The checkout's environments without a machine, and more of them."""
    known = yaml.safe_load((projects.ROOT / "config.yaml").read_text())["environments"]
    return projects.default()["environments"] | {name: known[name] for name in names}


def tree(project: Path) -> str:
    """The files of a project's image."""
    return os.path.join(projects.image(project)["folder"], "tree")


@contextlib.contextmanager
def served(project: Path, workload: str, commands: str, folder: Path) -> Iterator[Served]:
    """Bring servers up by shell commands; `folder` is to be empty."""
    root, log = folder / "root", folder / "log"
    root.mkdir()
    argv = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "bash",
        "-c",
        BEGIN + commands + END,
        "strata",
    ]
    with (
        open(log, "w") as told,
        subprocess.Popen(
            [*argv, tree(project), str(root), workload],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=told,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", log.read_text()[-2000:]
            yield Served(process, str(root))
        finally:
            process.kill()


def servers(workload: str, commands: str) -> Callable:
    """A fixture of a test's module: the servers that shell commands bring up from the image of its `project`.

    The workload's programs can be imported meanwhile.
    """

    @pytest.fixture(scope="module")
    def up(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
        with (
            projects.importable(workload),
            served(project, workload, commands, tmp_path_factory.mktemp("served")) as found,
        ):
            yield found

    return up


def visitor(site: str, **settings: object) -> object:
    """A user of a site without load, whose module `visitor` can be imported."""
    from user import Point
    from visitor import Visitor

    session = requests.Session()
    session.trust_env = False

    def send(method: str, path: str, **more: object) -> tuple:
        answer = session.request(method, site + path, timeout=300, **more)
        return answer.status_code, answer.content, answer.headers.get("Content-Type")

    settings = {"sites": [site], "begin": 0, "ramp": 0, "seconds": 0, "seed": "test", **settings}
    return Visitor(send, 0, random.Random(str(settings["seed"])), Point(settings))


def check(found: Served, workload: str, port: int, **settings: object) -> dict[str, list[str]]:
    """Do every operation as a cell does before its load; the lines of servers by which it would fail."""
    words = [str(word) for pair in {**settings, "seed": 3}.items() for word in pair]
    argv = ["/usr/bin/python3", "-B", f"/opt/strata/workloads/{workload}/driver.py", "check"]
    done = found.inside(*argv, "127.0.0.1", str(port), *words)
    assert done.returncode == 0, done.stderr
    declared = yaml.safe_load(
        (projects.ROOT / "workloads" / workload / "workload.yaml").read_text()
    )
    return {
        server["name"]: wrong
        for server in declared["servers"]
        if (wrong := re.findall(f"(?m)^.*(?:{server['trouble']}).*$", found.said(server["name"])))
    }


def together(work: Callable, many: Sequence) -> list:
    """Do it with each at the same time."""
    with concurrent.futures.ThreadPoolExecutor(len(many)) as pool:
        return list(pool.map(work, many))


def measure(project: Path, workload: str, *environments: str) -> list[dict]:
    """Measure a cell in each environment, one after the other, and make the table; their records."""
    logs = [f"results/raw/{name}/{workload}/1.log" for name in environments]
    projects.good(project, "snakemake", "--cores", "1", *logs, timeout=1200)
    table = f"results/tidy/{workload}.csv"
    projects.good(project, "snakemake", "--cores", "1", "--config", "partial=true", "--", table)
    return [json.loads((project / log.replace(".log", ".json")).read_text()) for log in logs]
