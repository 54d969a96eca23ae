"""Say what this machine can and cannot measure, and what would change that.  Tries rather than trusts."""

import importlib.util
import os
import re
import shutil
import sys

from strata import layers
from strata.base import pages, places
from strata.base.errors import UserError
from strata.base.process import capture
from strata.experiment import config
from strata.host import capacity, cgroups, observe

# The oldest that Snakemake takes.
CONDA = [24, 7, 1]
GOOD, LACKING, BAD = "yes", "not here", "NO"
MARKS = {True: GOOD, False: BAD, None: LACKING}


def _layers() -> list[tuple[str, str, str]]:
    """What each layer says of itself here."""
    found = [row for name in layers.LAYERS for row in layers.layer_class(name).examine()]
    return [(topic, MARKS[there], words) for topic, there, words in found]


def _program(name: str, purpose: str) -> tuple[str, str]:
    place = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    return (GOOD, purpose) if place else (BAD, f"{purpose}: run `make setup`")


def _software(profile: str = "profiles/default/config.yaml") -> tuple[str, str]:
    """Whether R and Python of the rules are those of the distribution and of .venv, or of conda environments."""
    told = pages.read(profile) if os.path.exists(profile) else {}
    chosen = [told.get(key) or () for key in ("software-deployment-method", "deployment-method", "sdm")]
    by_conda = any("conda" in value for value in chosen) or told.get("use-conda") is True
    place = shutil.which("conda")
    version = capture([place, "--version"], check=False).stdout.strip() if place else ""
    found = re.search(r"\d+(?:\.\d+)+", version)
    fit = found is not None and [int(part) for part in found[0].split(".")] >= CONDA
    needed = f"conda {'.'.join(map(str, CONDA))} or newer"
    if by_conda:
        words = f"conda environments (envs/), as {profile} says"
        return (
            (GOOD, f"{words}, by {version}")
            if fit
            else (BAD, f"{words}; {needed} is needed, and {version or 'none'} is here")
        )
    words = f"the distribution's R and the Python of {os.path.relpath(sys.prefix)}"
    there = f"; {version} is here: `--software-deployment-method conda` takes envs/ instead" if fit else ""
    return GOOD, words + there


def _slurm(facts: dict, profile: str = "profiles/slurm") -> tuple[str, str]:
    """Whether sets can be shared out among the nodes of a Slurm cluster from here.

    facts: as of :func:`strata.host.capacity.facts`.
    """
    asking = f"`--workflow-profile {profile}`"
    if not (shutil.which("sbatch") and shutil.which("sinfo")):
        return LACKING, "no sbatch here: this machine measures all (docs/slurm.md: several nodes)"
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        words = f"{os.path.relpath(sys.executable)} -m pip install --requirement requirements-slurm.txt"
        return LACKING, f"sbatch is here, and Snakemake's executor for it is not: `{words}` for {asking}"
    told = capture(["sinfo", "--noheader", "--Node", "--format=%N %t %c %m"], check=False)
    lines = {line for line in told.stdout.splitlines() if len(line.split()) == 4}
    if told.returncode != 0 or not lines:
        why = (told.stderr.strip().splitlines() or ["it names no node"])[-1]
        return LACKING, f"sinfo tells of no nodes ({why}); without {asking} this machine measures all"
    nodes = [line.split() for line in sorted(lines)]
    up = {name for name, state, _, _ in nodes if state.rstrip("*~#!%$@^-") in ("idle", "alloc", "mix", "comp")}
    other = sorted({name for name, _, cpus, _ in nodes if int(cpus) != facts["cpus"]})
    words = f"{len({row[0] for row in nodes})} nodes, {len(up)} of them up; {asking} shares the sets out among them"
    if other:
        shown = ", ".join(other[:5]) + (f" and {len(other) - 5} more" if len(other) > 5 else "")
        return (
            LACKING,
            f"{words}, but {shown} are not as this machine, on which the run is planned ({facts['cpus']} CPUs)",
        )
    return (GOOD if up else LACKING), words


def _root() -> tuple[str, str]:
    if os.geteuid() == 0:
        return GOOD, "this user is root"
    if shutil.which("sudo") and capture(["sudo", "-n", "true"], check=False).returncode == 0:
        return GOOD, "through sudo without a password"
    return BAD, "native runs and the image need root: run as root, or allow sudo without a password"


def _counters() -> tuple[str, str]:
    devices = "/sys/bus/event_source/devices"
    if os.path.isdir(devices) and any(name.startswith("cpu") for name in os.listdir(devices)):
        return GOOD, "cycles can be counted"
    return LACKING, "cycles are shown as not available; a machine (or hypervisor) that exposes them would change that"


def _frequency() -> tuple[str, str]:
    governor = observe.host()["governor"]
    if governor == observe.NOT_AVAILABLE:
        return LACKING, "the frequency policy is shown as not available; bare metal would change that"
    if governor != "performance":
        return LACKING, f"the governor is {governor}; the originals measured with performance"
    return GOOD, "the governor is performance"


def _huge_pages() -> tuple[str, str]:
    mode = observe.host()["huge_pages"]
    if mode in ("madvise", "always"):
        return GOOD, f"transparent huge pages: {mode}"
    return LACKING, f"transparent huge pages: {mode}; `madvise` would let STREAM and RandomAccess use them"


def _host() -> list[tuple[str, str, str]]:
    mark = observe.mark()
    return [("the host", LACKING, f"{mark}: so says the paper")] if mark else []


def _client(settled: dict) -> list[tuple[str, str, str]]:
    """Both ends of the client's link, where there is a second machine."""
    from strata.client import ends

    return [(topic, MARKS[there], words) for topic, there, words in ends.examine(settled)]


def _space(needed: float = 10e9) -> tuple[str, str]:
    folder = places.home()
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    free = shutil.disk_usage(folder).free
    words = f"{free / 1e9:.0f} GB free for {places.home()}"
    return (GOOD, words) if free > needed else (BAD, f"{words}; the image needs {needed / 1e9:.0f} GB")


def _print(rows: list[tuple[str, str, str]]) -> None:
    for name, mark, words in rows:
        print(f"  {name:18} {mark:9} {words}")


def main(over: dict | None = None) -> int:
    """Print the findings; returns 0 if every configured environment can be measured.

    over: values laid over config.yaml.
    """
    facts = capacity.facts()
    cache = facts["cache_bytes"]
    print(
        f"This machine: {facts['cpus']} CPUs, {facts['memory_bytes'] / 1e9:.1f} GB of memory, last-level cache "
        + (f"{cache / 2**20:.0f} MiB" if cache else observe.NOT_AVAILABLE)
        + f", control groups version {2 if cgroups.unified() else 1}"
    )
    rows = [
        *_host(),
        ("root rights", *_root()),
        ("Packer", *_program("packer", "provisions the image")),
        ("mmdebstrap", *_program("mmdebstrap", "makes the base of the image")),
        ("R", *_program("Rscript", "aggregates and draws")),
        ("LaTeX", *_program("pdflatex", "sets the paper")),
        ("software", *_software()),
        ("disk space", *_space()),
        ("Slurm", *_slurm(facts)),
        ("huge pages", *_huge_pages()),
        ("hardware counters", *_counters()),
        ("frequency policy", *_frequency()),
        *_layers(),
    ]
    _print(rows)
    try:
        experiment = config.experiment(config.read(over or {}), facts)
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    print("Client of config.yaml:")
    ends = _client(experiment["client"])
    _print(ends)
    print("Environments of config.yaml:")
    for name, entry in experiment["environments"].items():
        print(f"  {name:18} {GOOD if entry['available'] else BAD:9} {entry['reason'] or entry['label']}")
    for name, entry in experiment["workloads"].items():
        for note in entry["notes"]:
            print(f"  {name}: {note}")
    bad = any(mark == BAD for _, mark, _ in [*rows, *ends])
    return int(bad or not all(entry["available"] for entry in experiment["environments"].values()))
