"""Small projects for tests and benchmarks: the real code on an experiment of their own."""

import contextlib
import csv
import json
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from strata.util.process import identify_process

ROOT = Path(__file__).resolve().parents[2]
SHARED = [
    "Snakefile",
    "rules",
    "schemas",
    "strata",
    "analysis",
    "published",
    "profiles",
    "envs",
    "packer",
    "vagrant",
    "scripts",
    "CITATION.cff",
]

# A workload that needs nothing but the host: prints what a program would.
NOOP = {
    "title": "No operation",
    "about": "Prints a number and ends.",
    "packages": [],
    "metrics": {"rate": {"label": "Rate", "unit": "1/s", "better": "higher"}},
    "parameters": {
        "number": {"about": "What is printed", "schema": {"type": "integer"}, "value": 7}
    },
    "warmup": {"about": "none"},
    "run": [{"argv": ["/bin/echo", "{number}"], "timeout": 20}],
}


def write_yaml(path: Path, data: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(data, sort_keys=False))


def make(
    folder: Path, config: dict, workloads: dict[str, dict] | None = None, copy: bool = False
) -> Path:
    """A project in `folder` with this config.

    Its workloads are the real ones, or those given as data; with `copy` its files may be edited.
    """

    def bring(source: Path, target: Path) -> None:
        if not copy:
            target.symlink_to(source)
        elif source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "paper").mkdir()
    sources = [ROOT / name for name in SHARED]
    sources += [
        file
        for file in (ROOT / "paper").glob("*")
        if file.name not in ("report.pdf", "report.html")
    ]
    for source in sources:
        bring(source, folder / source.relative_to(ROOT))
    if workloads is None:
        bring(ROOT / "workloads", folder / "workloads")
    for name, data in (workloads or {}).items():
        write_yaml(folder / "workloads" / name / "workload.yaml", data)
        write_parser(folder, name, data["metrics"])
    if workloads is not None:
        (folder / "workloads").mkdir(exist_ok=True)
        bring(ROOT / "workloads" / "kit", folder / "workloads" / "kit")
    write_yaml(folder / "config.yaml", config)
    return folder


def git(folder: Path, *words: str) -> str:
    """What git says in a folder, as somebody whom nobody knows."""
    identity = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.org"]
    done = subprocess.run(
        ["git", "-C", folder, *identity, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def track(folder: Path, commit: bool = False) -> Path:
    """Tell git of the files that a project has now: an archive holds those."""
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    if commit:
        git(folder, "commit", "--quiet", "--message", "Begin")
    return folder


def table(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV table."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def factors(row: dict[str, str]) -> dict[str, str]:
    """The factors of a row of a table."""
    return {
        name.removeprefix("factor_"): text
        for name, text in row.items()
        if name.startswith("factor_") and text
    }


def write_parser(folder: Path, name: str, metrics: dict) -> None:
    """Write a parser that refuses a log with the line "broken".

    The value of each metric is the first line that is a number, else 1.
    """
    text = f"""from kit.checks import require
from kit.logs import build_value

METRICS = { ({metric: entry["unit"] for metric, entry in metrics.items()})!r}


def parse(lines, parameters):
    require("broken" not in lines, "its program is broken")
    number = next((float(line) for line in lines if line.isdigit() and int(line)), 1.0)
    return [build_value(metric, unit, number) for metric, unit in METRICS.items()]
"""
    (folder / "workloads" / name / "parse.py").write_text(text)


def beside_real(folder: Path, config: dict, workloads: dict[str, dict]) -> Path:
    """Make a project of the real workloads and of some more that are given as data.

    They run in the checkout's own image.
    """
    made = make(folder, config, workloads)
    for source in (ROOT / "workloads").iterdir():
        if source.name == "kit":
            continue
        (made / "workloads" / source.name).symlink_to(source)
    return made


def on_host(**more: object) -> dict:
    """A config whose only environment is the host itself."""
    return {
        "scale": "tiny",
        "repetitions": 2,
        "seed": 1,
        "environments": {"bare": {"layers": ["host"]}},
        "workloads": {"noop": None},
        **more,
    }


def default(**more: object) -> dict:
    """The config of the checkout with some keys replaced, at the scale of tests.

    It has no virtual machines, which take minutes, and no sandboxes, which cannot do everything.
    """
    page = yaml.safe_load((ROOT / "config.yaml").read_text()) | {"scale": "tiny"}
    stacks = {name: entry["layers"] for name, entry in page["environments"].items()}

    def is_plain(stack: list) -> bool:
        return not any(
            "vm" in layer or "runtime" in layer.get("docker", {})
            for layer in stack
            if layer != "chroot"
        )

    page["environments"] = {
        name: page["environments"][name] for name in stacks if is_plain(stacks[name])
    }
    return {**page, "repetitions": 5, "interference": {"action": "flag"}, **more}


def beside(folder: Path, packages: Path | None = None) -> Path:
    """Make a virtual environment that also has the packages of the one that runs the tests.

    Its own packages come first.  Returns its Python.

    packages: a list of its own packages, which are installed.
    """
    venv.create(folder, symlinks=True)
    [place] = folder.glob("lib/python3*/site-packages")
    (place / "packages.pth").write_text(
        "".join(f"{path}\n" for path in sys.path if path.endswith("site-packages"))
    )
    python = folder / "bin/python"
    if packages is not None:
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "--quiet",
            "--no-deps",
        ]
        subprocess.run([*pip, "--requirement", str(packages)], check=True)
    return python


@contextlib.contextmanager
def importable(workload: str) -> Iterator[None]:
    """Make the programs of a workload and of the kit importable, as in the image.

    Programs of another workload may have the same names.
    """
    before, path, writes = dict(sys.modules), list(sys.path), sys.dont_write_bytecode
    paths = tuple(str(ROOT / "workloads" / name) for name in (workload, "kit/load"))
    sys.path[:0] = paths
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.path[:], sys.dont_write_bytecode = path, writes
        for name in set(sys.modules) - set(before):
            if (getattr(sys.modules[name], "__file__", "") or "").startswith(paths):
                del sys.modules[name]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", *words]


def environment() -> dict[str, str]:
    """The variables of a command in a small project, without those of a run around it."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    variables.pop("STRATA_OWNER", None)
    return variables


def owner(process: subprocess.Popen) -> str:
    """A process as the run that a command belongs to: the value of STRATA_OWNER."""
    named = identify_process(process.pid)
    return f"{named['pid']}:{named['start']}"


def run(
    folder: Path, *words: str, timeout: float = 600, **more: str
) -> subprocess.CompletedProcess:
    """Run ``python -m WORDS`` in a project."""
    return subprocess.run(
        command(*words),
        cwd=folder,
        env={**environment(), **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def good(
    folder: Path, *words: str, timeout: float = 600, **more: str
) -> subprocess.CompletedProcess:
    """Run it, which ends well."""
    done = run(folder, *words, timeout=timeout, **more)
    assert done.returncode == 0, done.stderr + done.stdout
    return done


def start(
    folder: Path, *words: str, output: Any = subprocess.PIPE, **more: str
) -> subprocess.Popen:
    """Start ``python -m WORDS`` in a project, in a new session.

    Everything that it prints goes into one output.
    """
    return subprocess.Popen(
        command(*words),
        cwd=folder,
        env={**environment(), **more},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def until(look: Callable[[], Any], seconds: float = 60) -> Any:
    """What is found, as soon as it is anything."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return found


def plan(folder: Path, **over: object) -> dict:
    """Write the plan of a project as a run does when it begins; the plan."""
    code = (
        "import json, sys; from strata import client;"
        "from strata.experiment import config, plan, planning;"
        "from strata.host import capacity;"
        "settings = config.read_config(json.loads(sys.argv[1]));"
        "made = planning.build_plan(settings, capacity.read_host_facts());"
        "client.write_client_connection(settings['client']);"
        "plan.write_plan({**made, 'source': {'revision': None, 'changed': None}})"
    )
    subprocess.run(
        [sys.executable, "-c", code, json.dumps(over)],
        cwd=folder,
        env=environment(),
        check=True,
        text=True,
    )
    return json.loads((folder / "results/plan.json").read_text())


def image(folder: Path) -> dict:
    """Build the image of a project where it is not in the cache; the facts of it there."""
    done = run(folder, "strata", "image", timeout=1800)
    assert done.returncode == 0, done.stderr
    code = (
        "import json; from strata.experiment import config, recipe; from strata.image import cache;"
        "print(json.dumps(cache.require_image("
        "recipe.describe_image(config.read_config({})['image'])['recipe'])))"
    )
    found = subprocess.check_output(
        [sys.executable, "-c", code], cwd=folder, env=environment(), text=True
    )
    return json.loads(found)


def cell_of(record: dict) -> tuple[str, str, int]:
    """The cell of a record."""
    return (record["environment"], record["workload"], record["repetition"])


def planned(folder: Path) -> list[tuple[str, str, int]]:
    """The cells of a project in the planned order."""
    rows = table(folder / "results/plan.csv")
    return [(row["environment"], row["workload"], int(row["repetition"])) for row in rows]


def records(folder: Path) -> list[dict]:
    """All records of a project, in the order in which they were measured.

    Records that began at the same time are in the planned order.
    """
    found = [json.loads(path.read_text()) for path in folder.glob("results/raw/*/*/*.json")]
    place = {cell: at for at, cell in enumerate(planned(folder) if found else ())}
    return sorted(found, key=lambda record: (record["started"], place[cell_of(record)]))
