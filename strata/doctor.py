"""Report what this machine can measure, and what would change that; nothing is started."""

import os
import shutil

from strata import client
from strata.environments.common import registry
from strata.experiment import config, planning
from strata.host import capacity, cgroups, observe
from strata.host.daemons import find_program
from strata.util import access, paths, progress
from strata.util.data_types import Fields
from strata.util.process import has_root
from strata.vm import acceleration

# A line of the report: its subject, whether that is available (None: only a note), and details.
Row = tuple[str, bool | None, str]
PROGRAMS = {
    "packer": "provisions the image",
    "mmdebstrap": "makes the base of the image",
    "Rscript": "aggregates and draws",
    "pdflatex": "sets the paper",
}
MARKS = {True: "yes", False: "NO", None: "note"}
NEEDED_BYTES = 10e9


def _check_root() -> Row:
    """Return the line of the report on root rights."""
    if os.geteuid() == 0:
        return "root rights", True, "this user is root"
    if has_root():
        return "root rights", True, "through sudo without a password"
    return (
        "root rights",
        False,
        "native and the image need root: run as root, or allow sudo without a password",
    )


def _check_space() -> Row:
    """Return the line of the report on the disk space for Strata's files."""
    folder = paths.home_folder()
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    if obstacle := access.find_obstacle(folder):
        return "disk space", False, f"{obstacle}; {access.OTHER_HOME}"
    free = shutil.disk_usage(folder).free
    short = "" if free > NEEDED_BYTES else f"; the image needs {NEEDED_BYTES / 1e9:.0f} GB"
    return "disk space", not short, f"{free / 1e9:.0f} GB free for {paths.home_folder()}{short}"


def _check_host() -> list[Row]:
    """Return lines of the report on settings of the host that affect results."""
    host = observe.observe_host(capacity.usable_processors())
    rows: list[Row] = []
    mark = observe.emulated_host_mark()
    if mark:
        rows.append(("the host", None, mark))
    governor = host["governor"]
    details = f"{governor} (the originals: performance)"
    rows.append(("frequency policy", governor == "performance" or None, details))
    mode = host["huge_pages"]
    details = f"{mode} (STREAM and RandomAccess use madvise)"
    rows.append(("huge pages", mode in ("madvise", "always") or None, details))
    return rows


def _print(rows: list[Row]) -> bool:
    """Print lines of the report, and return whether none of them has the mark NO."""
    for subject, is_available, details in rows:
        progress.print_line(f"  {subject:18} {MARKS[is_available]:9} {details}")
    return all(is_available is not False for _, is_available, _ in rows)


def main(overrides: Fields) -> int:
    """Print the report, and return 0 if every configured environment can be measured, otherwise 1.

    A missing program or too little disk space gives 1, too.
    overrides: values that replace those of config.yaml.
    """
    facts = capacity.read_facts()
    cache = observe.NOT_AVAILABLE
    if facts["cache_bytes"]:
        cache = f"{facts['cache_bytes'] / 2**20:.0f} MiB"
    groups = f"control groups version {2 if cgroups.is_unified() else 1}"
    memory = f"{facts['memory_bytes'] / 1e9:.1f} GB of memory"
    progress.print_line(
        f"This machine: {facts['cpus']} CPUs, {memory}, last-level caches of {cache}, {groups}"
    )
    programs: list[Row] = []
    for name, purpose in PROGRAMS.items():
        is_installed = bool(find_program(name))
        details = purpose if is_installed else f"{purpose}: run `make setup`"
        programs.append((name, is_installed, details))
    layers = [
        registry.layer_class(name).doctor_line()
        for name in registry.layer_names()
        if name != "host"
    ]
    kvm = acceleration.known_accelerator()
    layers.append(("KVM", kvm["accelerator"] == "kvm" or None, kvm["accelerator_reason"]))
    is_good = _print([_check_root(), *programs, _check_space(), *_check_host(), *layers])
    settings = config.read_config(overrides)
    experiment = planning.make_plan(settings, facts)
    progress.print_line("Client and environments of config.yaml:")
    environments: list[Row] = []
    for name, environment in experiment["environments"].items():
        [lowest] = environment["layers"][0]
        reason = environment["reason"] or registry.layer_class(lowest).permission_reason()
        environments.append((name, not reason, reason or environment["label"]))
    is_good &= _print([client.examine_client(settings["client"]), *environments])
    for name, entry in experiment["workloads"].items():
        for note in entry["notes"]:
            progress.print_line(f"  {name}: {note}")
    return int(not is_good)
