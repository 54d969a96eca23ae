"""Results as after a run, made from captured logs: what archives and comparisons are tested on."""

import hashlib
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import projects

from strata.archive import remake
from strata.experiment import blocks, config, plan, planning, workload
from strata.host import capacity
from strata.image import manifest
from strata.measure import parsing
from strata.measure.arguments import fill_command, iterate_steps
from strata.measure.cell import FORMAT
from strata.results import outputs
from strata.util import paths
from strata.util.clock import format_utc

SLOWER = {"native": 1.0, "docker": 1.02, "docker-hostnet": 1.01}
_SECONDS = ("seconds", "best_seconds", "worst_seconds")
_RATES = ("gbps", "best_gbps", "gflops", "gflops_of_all")
_BYTES = {"copy": 16, "scale": 16, "add": 24, "triad": 24}
MANIFEST = {
    "packages": {"gcc": "14.2.0", "xz-utils": "5.8.1"},
    "files": {"usr/bin/env": "sha256:" + "0a" * 32},
}


def page(**more: object) -> dict:
    """A config of two environments and two workloads whose captured logs are at hand."""
    environments = projects.default()["environments"]
    return projects.default(
        **{
            "scale": "standard",
            "repetitions": 3,
            "environments": {name: environments[name] for name in ("native", "docker")},
            # The sizes of the captured logs.
            "workloads": {
                "stream": {"elements": 20_000_000, "trials": 10, "laps": 2},
                "linpack": {"sizes": [1000], "min_seconds": 0, "laps": 1},
            },
            **more,
        }
    )


def slow_log(text: str, factor: float) -> str:
    """Turn a captured log into that of a run that took `factor` times as long.

    Rates follow from times and work.
    """
    lines = text.splitlines()
    elements = next((json.loads(line)["elements"] for line in lines if '"elements"' in line), 0)

    def scaled(line: str) -> str:
        line = re.sub(
            rf'"({"|".join(_SECONDS)})": ([0-9.e+-]+)',
            lambda match: f'"{match[1]}": {float(match[2]) * factor:.9g}',
            line,
        )
        told = json.loads(line)
        if "first" in told:
            key = "gb_per_second" if "gb_per_second" in told else "first"
            return re.sub(rf'"{key}": [0-9.e+-]+', f'"{key}": {told[key] / factor:.6g}', line)
        if "kernel" in told:
            gigabytes = 1e-9 * _BYTES[told["kernel"]] * elements
            for rate, seconds in (("gbps", "seconds"), ("best_gbps", "best_seconds")):
                told[rate] = float(f"{gigabytes / told[seconds]:.6g}")
            return json.dumps(told)
        if "n" in told:
            work = (2 / 3 * told["n"] ** 3 + 2 * told["n"] ** 2) * told.get("trials", 1)
            seconds = told["seconds"]
        else:
            return line
        rate = f"{1e-9 * work / seconds:.6g}"
        return re.sub(
            rf'"({"|".join(_RATES)})": [0-9.e+-]+', lambda match: f'"{match[1]}": {rate}', line
        )

    return "\n".join(map(scaled, lines)) + "\n"


def measure(
    folder: Path,
    experiment: dict,
    slower: dict | None = None,
    seed: int = 1,
    noise: float = 0.01,
    noisier: dict[str, float] | None = None,
    wanted: Callable[[str], bool] = lambda log: True,
) -> None:
    """Write a plan, its image's facts, and every cell's log and record, as `snakemake cells` would.

    wanted: whether a log, by its path, is written.
    """
    chance = random.Random(seed)
    slower = SLOWER if slower is None else slower
    image = {
        "format": 1,
        "recipe": experiment["image"]["recipe"],
        "id": "sha256:" + "f0" * 32,
        "distribution": "debian",
        "release": "trixie",
        "architecture": "x86_64",
        "package_count": 2,
        "file_count": 1,
        "manifest_sha256": manifest.hash_manifest(MANIFEST),
        "built": "2026-01-01T00:00:00Z",
    }
    write_json(folder / paths.IMAGE, image)
    write_json(folder / "results/image-manifest.json", MANIFEST)
    for (environment, load, repetition), (place, round) in blocks.Order(experiment).places.items():
        path = folder / paths.get_cell_path("raw", environment, load, repetition, "log")
        if not wanted(str(path.relative_to(folder))):
            continue
        fixture = projects.ROOT / f"workloads/{load}/fixtures/tiny.log"
        log, factor = fixture.read_text(), slower.get(environment, 1.0)
        factor *= 1 + chance.gauss(0, (noisier or {}).get(environment, noise))
        log = log if factor == 1 else slow_log(log, factor)
        laps = plan.count_laps(experiment, environment, load)
        marker = '{{"lap": {}, "how": "whole"}}\n{}'
        log = "".join(marker.format(lap, log) for lap in range(1, laps + 1)) if laps > 1 else log
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(log)
        entry = (environment, load, repetition, place, round)
        write_json(path.with_suffix(".json"), record(experiment, image, log.encode(), *entry))


def record(
    experiment: dict,
    image: dict,
    log: bytes,
    environment: str,
    load: str,
    repetition: int,
    place: int,
    round: int,
) -> dict:
    """The record of a cell whose log this is."""
    planned = experiment["workloads"][load]
    parameters = {
        key: {"cpus": 2, "first-cpu": 0, "client-last-cpu": 1}[value["rule"]]
        if isinstance(value, dict)
        else value
        for key, value in planned["parameters"].items()
    }
    begun = 1_767_225_600 + 10 * place
    inside = {
        "kernel": "6.12.0",
        "os": "Debian GNU/Linux 13 (trixie)",
        "cpu_model": "A processor",
        "cpus": 2,
        "memory_bytes": 8 * 2**30,
        "huge_pages": "madvise",
        "clocksource": "tsc",
        "cgroup": "/",
    }
    share = {
        "steal_share": 0.001,
        "busy_share": 0.01,
        "swapped_bytes": 0,
        "throttled": "not available",
    }
    share |= {"processes_share": 0.0, "processes": []}
    moment = {
        "load1": 0.5,
        "swap_used_bytes": 0,
        "temperature_c": "not available",
        "frequency_mhz": "not available",
    }
    return {
        "format": FORMAT,
        "environment": environment,
        "workload": load,
        "repetition": repetition,
        "round": round,
        "fingerprint": plan.compute_fingerprint(experiment, environment, load),
        "node": {"name": "node-000000", "machine": "0" * 12, "boot": None, "docker": None},
        "started": format_utc(begun),
        "ended": format_utc(begun + 8),
        "seconds": 8.0,
        "seed": plan.compute_cell_seed(experiment, load, repetition),
        "scale": experiment["scale"],
        "source": {"revision": None, "changed": None},
        "parameters": parameters,
        "commands": [
            {
                "step": step["step"],
                **lap,
                "argv": fill_command(step["argv"], values, load),
                "exit": 0,
                "started": format_utc(begun + 1),
                "seconds": 6.0,
                "timeout": step["timeout"],
            }
            for steps, lap in in_laps(
                planned["cell"]["steps"], plan.count_laps(experiment, environment, load)
            )
            for step, values in iterate_steps(
                steps, {**parameters, "seed": 1, "address": "192.0.2.1"}
            )
            if "argv" in step
        ],
        "costs": [
            costs_of(lap.get("lap", 1), environment)
            for _, lap in in_laps([], plan.count_laps(experiment, environment, load))[1:]
        ],
        **parsing.find_program_facts(log),
        "image": {key: image[key] for key in ("recipe", "id", "manifest_sha256")},
        "system": {
            "id": f"strata-{repetition}",
            "layers": experiment["environments"][environment]["layers"],
            "up_started": format_utc(begun),
            "up_seconds": 0.5,
            "count": 1,
            "cpus": 2,
            "vm": None,
        },
        "starting_state": {"values": {"nice": "0"}, "differences": []},
        "observed": {
            "inside": {**inside, "versions": {"gcc": "14.2.0"}},
            "host": {
                "static": {**inside, "governor": "not available", "turbo": "not available"},
                "before": {**moment, **share},
                "after": moment,
                "during": share,
            },
            "client": None,
        },
        "interference": {**experiment["interference"], "flags": []},
        "ways": ["whole"],
        "log": {"bytes": len(log), "sha256": hashlib.sha256(log).hexdigest()},
    }


def costs_of(lap: int, environment: str) -> dict:
    """What a run of six seconds was spent on: in native the program, elsewhere waiting too."""
    busy = 6.0 if environment == "native" else 5.0
    times = {"user_seconds": busy, "system_seconds": 0}
    machine = {"busy_seconds": busy, "foreign_seconds": 0, "interrupt_seconds": 0}
    other = ("throttled_seconds", "major_faults", "io_bytes", "io_operations")
    return {
        "lap": lap,
        "how": "whole",
        "elapsed_seconds": 6.0,
        "system": {**times, **dict.fromkeys(other, 0)},
        "client": dict.fromkeys(times, "not available"),
        "helpers": dict.fromkeys(times, 0),
        "machine": {**machine, "context_switches": 100},
    }


def in_laps(steps: list[dict], laps: int) -> list[tuple[list[dict], dict]]:
    """The steps before the run, and those of the run in each lap.

    Each comes with the fields about the lap that its commands record.
    """
    before = [step for step in steps if step["step"] != "run"]
    run = [step for step in steps if step["step"] == "run"]
    laps_of_run = [{"lap": lap, "how": "whole"} if laps > 1 else {} for lap in range(1, laps + 1)]
    return [(before, {}), *((run, lap) for lap in laps_of_run)]


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


# Stands for Snakemake: "measures" the logs that are its targets, or all that are planned, from
# STRATA_TRUTH: how much slower each environment is, the noise, the boot, whether all or one
# environment fails, and whether a signal comes in the end.
STUB = """
import json, os, signal, sys, time, uuid
from pathlib import Path
sys.path.insert(0, os.environ["STRATA_HELPERS"])
import measured
from strata.experiment import blocks, plan
from strata.util import paths
truth = json.loads(os.environ["STRATA_TRUTH"])
if truth.get("fails") is True:
    sys.exit("cell: the program ended with 7")
folder, experiment = Path.cwd(), measured.planned()
logs = {word for word in sys.argv if word.startswith("results/raw/")}
places = blocks.Order(experiment).places
logs = logs or {paths.get_cell_path("raw", *cell, "log") for cell in places}
failing = {log for log in logs if f"raw/{truth.get('fails')}/" in log}
for log in failing:
    path = folder / log.replace("raw", "failed", 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    path.with_suffix(".json").write_text(json.dumps({"error": "it ended with 7"}))
new = {log for log in logs - failing if not (folder / log).exists()}
plan.write_plan({**experiment, "source": {"revision": None, "changed": None}})
seed = hash((truth["boot"], len(new), *sorted(truth["slower"].items())))
measured.measure(folder, experiment, truth["slower"], seed, truth["noise"], wanted=new.__contains__)
boot = str(uuid.uuid5(uuid.NAMESPACE_DNS, str(truth["boot"])))
for log in new:
    node = {"name": "node-000000", "boot": boot}
    path = (folder / log).with_suffix(".json")
    # A start of the machine is on a day of its own.
    path.write_text(path.read_text().replace("2026-01-01T", f"2026-01-{truth['boot'] + 1:02}T"))
    measured.edit(path, lambda record: record.update(node={**record.get("node", {}), **node}))
if truth.get("signal"):
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(60)
sys.exit(1 if failing else 0)
"""


def replace_snakemake(folder: Path) -> None:
    """Put STUB in the place of Snakemake, for the commands of a copied project."""
    (folder / "snakemake").mkdir()
    (folder / "snakemake/__init__.py").write_text("__version__ = '0'\n")
    (folder / "snakemake/__main__.py").write_text(STUB)


def edit(path: Path, change: Callable[[dict], object]) -> None:
    """Change what a file of JSON holds."""
    value = json.loads(path.read_text())
    change(value)
    write_json(path, value)


def planned() -> dict:
    """The plan of the project in the working directory.

    Its environments count as available, whatever this machine has.
    """
    experiment = planning.build_plan(
        config.read_config(), {**capacity.read_host_facts(), "cpus": 2, "mask": None}
    )
    for entry in experiment["environments"].values():
        entry |= {"available": True, "reason": None}
    return experiment


def decide(
    folder: Path,
    experiment: dict,
    round: int,
    more: dict[str, int],
    results: str = "results",
    **told,
) -> None:
    """Write a plan's decision after a round: the number of further blocks of each workload."""
    states = {load: {"again": [], "more": number} for load, number in more.items()}
    found = {
        "round": round,
        "rests_on": blocks.hash_decision_basis(experiment),
        "blocks_rest_on": blocks.hash_block_basis(experiment),
        "enough": not any(more.values()),
        "workloads": states,
        **told,
    }
    write_json(folder / results / f"precision/{round}.json", found)


def project(
    folder: Path,
    monkeypatch,
    settings: dict | None = None,
    slower: dict | None = None,
    commit: bool = False,
    **more,
) -> Path:
    """Make a project whose cells all seem to be measured, and make it the working directory.

    Nothing is made of the cells yet.  The project's environments count as available, whatever this
    machine has.
    """
    workload.read_declaration.cache_clear()
    projects.make(folder, settings or page(), copy=True)
    for name in ("LICENSE", "CITATION.cff"):
        (folder / name).write_bytes((projects.ROOT / name).read_bytes())
    (folder / ".gitignore").write_text(
        "/results/\n/paper/report.pdf\n/paper/report.html\n*.zip\n__pycache__/\n"
    )
    projects.track(folder, commit)
    monkeypatch.chdir(folder)
    experiment = planned()
    plan.write_plan({**experiment, "source": {"revision": None, "changed": None}})
    measure(folder, experiment, slower, **more)
    return folder


def pretend(folder: Path) -> None:
    """Make all tables of a project, and files in the places of its papers.

    It is for tests that are not about these.
    """
    remake.compute_tables(str(folder), partial=True)
    for name in outputs.PAPERS:
        (folder / name).write_text(f"{name}\n")
