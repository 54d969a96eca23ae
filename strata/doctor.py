"""Say what this machine can and cannot measure, and what would change that; it installs and starts nothing."""

import os
import shutil

from strata import client
from strata.environments.common import registry
from strata.experiment import config
from strata.host import capacity, cgroups, observe
from strata.host.daemons import where
from strata.util import access, paths, progress
from strata.util.data_types import Fields
from strata.util.process import has_root
from strata.vm import acceleration

# A line: its subject, whether it is available (None: neither needed nor an error), and the details.
Row = tuple[str, bool | None, str]
PROGRAMS = {
    "packer": "provisions the image",
    "mmdebstrap": "makes the base of the image",
    "Rscript": "aggregates and draws",
    "pdflatex": "sets the paper",
}
MARKS = {True: "yes", False: "NO", None: "note"}
NEEDED_BYTES = 10e9


def _root() -> Row:
    if os.geteuid() == 0:
        return "root rights", True, "this user is root"
    if has_root():
        return "root rights", True, "through sudo without a password"
    return (
        "root rights",
        False,
        "native and the image need root: run as root, or allow sudo without a password",
    )


def _space() -> Row:
    folder = paths.home()
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    if obstacle := access.find_obstacle(folder):
        return "disk space", False, f"{obstacle}; {access.OTHER_HOME}"
    free = shutil.disk_usage(folder).free
    short = "" if free > NEEDED_BYTES else f"; the image needs {NEEDED_BYTES / 1e9:.0f} GB"
    return "disk space", not short, f"{free / 1e9:.0f} GB free for {paths.home()}{short}"


def _seen() -> list[Row]:
    """What of the host decides results, and may be out of sight."""
    host, mark = observe.host(capacity.processors()), observe.mark()
    governor, pages_of = host["governor"], host["huge_pages"]
    return [
        *([("the host", None, mark)] if mark else []),
        (
            "frequency policy",
            governor == "performance" or None,
            f"{governor} (the originals: performance)",
        ),
        (
            "huge pages",
            pages_of in ("madvise", "always") or None,
            f"{pages_of} (STREAM and RandomAccess use madvise)",
        ),
    ]


def _print(rows: list[Row]) -> bool:
    for name, there, words in rows:
        progress.printed(f"  {name:18} {MARKS[there]:9} {words}")
    return all(there is not False for _, there, _ in rows)


def main(overrides: Fields) -> int:
    """Print the findings; returns 0 if every configured environment can be measured.

    overrides: values laid over config.yaml.
    """
    facts = capacity.facts()
    cache = (
        f"{facts['cache_bytes'] / 2**20:.0f} MiB" if facts["cache_bytes"] else observe.NOT_AVAILABLE
    )
    groups = f"control groups version {2 if cgroups.unified() else 1}"
    memory = f"{facts['memory_bytes'] / 1e9:.1f} GB of memory"
    progress.printed(
        f"This machine: {facts['cpus']} CPUs, {memory}, last-level caches of {cache}, {groups}"
    )
    of_layers = [registry.kind(name).examine() for name in registry.names() if name != "host"]
    kvm = acceleration.known()
    of_layers.append(("KVM", kvm["accelerator"] == "kvm" or None, kvm["accelerator_reason"]))
    missing = {name: "" if where(name) else ": run `make setup`" for name in PROGRAMS}
    programs = [
        (name, not missing[name], about + missing[name]) for name, about in PROGRAMS.items()
    ]
    good = _print([_root(), *programs, _space(), *_seen(), *of_layers])
    settings = config.read(overrides)
    experiment = config.experiment(settings, facts)
    progress.printed("Client and environments of config.yaml:")
    told: list[Row] = []
    for name, environment in experiment["environments"].items():
        [lowest] = environment["layers"][0]
        reason = environment["reason"] or registry.kind(lowest).barred()
        told.append((name, not reason, reason or environment["label"]))
    good &= _print([client.examine(settings["client"]), *told])
    for name, entry in experiment["workloads"].items():
        for note in entry["notes"]:
            progress.printed(f"  {name}: {note}")
    return int(not good)
