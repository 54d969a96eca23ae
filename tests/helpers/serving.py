"""Runs the servers of a web application from its image's files, on this machine's loopback.

Their mounts and processes end with the test.
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
from typing import Any

import projects
import requests
import yaml

# Runs before the commands of an application.  The workload's programs are in $programs; `inside`
# runs a command in the image's files, `start NAME COMMAND…` a server whose output is kept, and
# `wait_for` a command until it succeeds.
PROLOGUE = r"""
set -eu
tree=$1 root=$2 programs=/opt/strata/workloads/$3
mount --bind "$tree" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
for name in tmp data run; do mount -t tmpfs tmpfs "$root/$name"; done
(umask 077; head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$root/data/password")
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
start() { local name=$1; shift; inside "$@" >>"$root/tmp/$name" 2>&1 & }
wait_for() { until inside "$@" >/dev/null 2>&1; do sleep 0.2; done; }
"""
EPILOGUE = """
echo ready
read -r _
"""


class Servers:
    """The running servers of an application, its sites' URLs and the settings of its visitors."""

    def __init__(self, process: subprocess.Popen, root: str, workload: str, settings: dict):
        self.root, self.workload, self.settings = root, workload, settings
        self.urls: list[str] = []
        argv = ["pgrep", "--parent", str(process.pid)]
        children = subprocess.run(argv, capture_output=True, text=True, check=True)
        self.child = children.stdout.split()[0]

    def run_inside(self, *argv: str, text: str | None = None) -> subprocess.CompletedProcess:
        """Run a command in the image's files, among the servers."""
        enter = ["nsenter", f"--target={self.child}", "--mount", "--pid", "chroot", self.root]
        options = {"input": text, "capture_output": True, "text": True, "timeout": 120}
        return subprocess.run([*enter, *argv], check=False, **options)

    def query_database(self, database: str, sql: str, number: int = 0) -> str:
        """Send SQL to the PostgreSQL server of a site as its own user; return the rows."""
        as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        psql = ["psql", "--no-psqlrc", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"]
        socket = f"--host=/data/{self.workload}/{number}"
        return self.run_inside(*as_postgres, *psql, socket, database, text=sql).stdout

    def read_output(self, server: str) -> str:
        """Return the output of a server by the name with which `start` was called."""
        return self.run_inside("cat", f"/tmp/{server}").stdout

    def make_visitor(self, number: int = 0, **settings: object) -> Any:
        """Make a visitor of a site who does what the test says."""
        from user import Point
        from visitor import Visitor

        session, url = requests.Session(), self.urls[number]
        session.trust_env = False

        def send(method: str, path: str, **options: object) -> tuple:
            answer = session.request(method, url + path, timeout=300, **options)
            return answer.status_code, answer.content, answer.headers.get("Content-Type")

        point = {"sites": [url], "begin": 0, "ramp": 0, "seconds": 0, "seed": "test"}
        point |= self.settings | settings
        return Visitor(send, 0, random.Random(str(point["seed"])), Point(point))

    def read_books(self, number: int = 0) -> dict[str, Any]:
        """Return the books of a site."""
        from visitor import Visitor

        return requests.get(self.urls[number] + Visitor.books_path, timeout=60).json()

    def check_operations(self) -> dict[str, list[str]]:
        """Do every operation as a cell does before its load; return servers' lines of trouble."""
        words = [str(word) for pair in {**self.settings, "seed": 3}.items() for word in pair]
        driver = f"/opt/strata/workloads/{self.workload}/driver.py"
        address, port = self.urls[0].removeprefix("http://").split(":")
        argv = ["/usr/bin/python3", "-B", driver, "check", address, port, *words]
        result = self.run_inside(*argv)
        assert result.returncode == 0, result.stderr
        path = projects.ROOT / "workloads" / self.workload / "workload.yaml"
        troubles = {}
        for server in yaml.safe_load(path.read_text())["servers"]:
            pattern = f"(?m)^.*(?:{server['trouble']}).*$"
            if lines := re.findall(pattern, self.read_output(server["name"])):
                troubles[server["name"]] = lines
        return troubles


def build_project(folder: Path, parameters: dict[str, dict] | None = None, **keys: object) -> Path:
    """Make a project with the workloads of `make everything`, and build their one image.

    parameters: of workloads, by name.  keys: of config.yaml.
    A RAM disk of the host, which some environments refuse, is left out.
    """
    config = projects.default(repetitions=1, **keys)
    everything = yaml.safe_load((projects.ROOT / "everything.yaml").read_text())
    config["workloads"] |= everything["workloads"] | (parameters or {})
    del config["workloads"]["ramdisk"]
    projects.make(folder, config)
    projects.image(folder)
    return folder


def find_environments(*names: str) -> dict[str, dict]:
    """Return the checkout's environments without a virtual machine, and those of these names."""
    known = yaml.safe_load((projects.ROOT / "config.yaml").read_text())["environments"]
    return projects.default()["environments"] | {name: known[name] for name in names}


def find_tree(project: Path) -> str:
    """Return the folder with the files of a project's image."""
    return os.path.join(projects.image(project)["folder"], "tree")


@contextlib.contextmanager
def run_servers(
    project: Path, workload: str, commands: str, folder: Path, **settings: object
) -> Iterator[Servers]:
    """Start servers by shell commands; the workload's Python modules can be imported meanwhile.

    folder: an empty one.  settings: of visitors.
    """
    root, log = folder / "root", folder / "log"
    root.mkdir()
    script = PROLOGUE + commands + EPILOGUE
    argv = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", script, "strata"]
    argv += [find_tree(project), str(root), workload]
    pipe = subprocess.PIPE
    with (
        projects.importable(workload),
        open(log, "w") as errors,
        subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=errors, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", log.read_text()[-2000:]
            yield Servers(process, str(root), workload, settings)
        finally:
            process.kill()


def run_together(function: Callable, arguments: Sequence) -> list:
    """Call a function with each argument at the same time; return the results."""
    with concurrent.futures.ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(function, arguments))


def measure_cells(project: Path, workload: str, *environments: str) -> list[dict]:
    """Measure a cell in each environment and make the workload's table; return the records."""
    logs = [f"results/raw/{name}/{workload}/1.log" for name in environments]
    projects.good(project, "snakemake", "--cores", "1", *logs, timeout=1200)
    table = f"results/tidy/{workload}.csv"
    projects.good(project, "snakemake", "--cores", "1", "--config", "partial=true", "--", table)
    return [json.loads((project / log.replace(".log", ".json")).read_text()) for log in logs]
