"""Report what this machine can measure, and what would change that; nothing is started."""

import os
import shutil

from strata import client
from strata.environments.common import registry
from strata.experiment import config, planning
from strata.host import capacity, cgroups, observe
from strata.host.daemons import find_program
from strata.util import access, paths, progress
from strata.util.data_types import Fields, PlannedEnvironment
from strata.util.process import can_run_as_root
from strata.vm import acceleration

# A line of the report: its subject, whether that is available (None: only a note), and details.
Row = tuple[str, bool | None, str]
# Programs, and what each is needed for.
PROGRAMS = {
    "packer": "provisions the image",
    "mmdebstrap": "makes the base of the image",
    "Rscript": "aggregates and draws",
    "pdflatex": "sets the paper",
}
# The mark of a line by its second value.
MARKS = {True: "yes", False: "NO", None: "note"}
# The first argument of a gVisor sandbox's process.  The kernel's name of the process is "exe".
SANDBOX = "runsc-sandbox"
# The disk space that the image needs while it is built.
NEEDED_BYTES = 10e9


def _build_root_row() -> Row:
    """Return the line of the report on root rights."""
    if os.geteuid() == 0:
        return "root rights", True, "this user is root"
    if can_run_as_root():
        return "root rights", True, "through sudo without a password"
    return (
        "root rights",
        False,
        "native and the image need root: run as root, or allow sudo without a password",
    )


def _build_disk_row() -> Row:
    """Return the line of the report on the disk space for Strata's files."""
    # The folder may not exist yet; the nearest existing folder above it is on the same disk.
    folder = paths.get_home_folder()
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    if obstacle := access.explain_denied_write(folder):
        return "disk space", False, f"{obstacle}; {access.OTHER_HOME}"
    free_bytes = shutil.disk_usage(folder).free
    details = f"{free_bytes / 1e9:.0f} GB free for {paths.get_home_folder()}"
    if free_bytes > NEEDED_BYTES:
        return "disk space", True, details
    return "disk space", False, f"{details}; the image needs {NEEDED_BYTES / 1e9:.0f} GB"


def _list_host_rows() -> list[Row]:
    """Return lines of the report on settings of the host that affect results.

    No line has the mark NO, since a setting never prevents a measurement.
    """
    host = observe.observe_host(capacity.list_usable_cpus())
    rows: list[Row] = []
    mark = observe.find_emulated_host_mark()
    if mark:
        rows.append(("the host", None, mark))
    # A setting that the originals did not have is only noted.
    governor = host["governor"]
    details = f"{governor} (the originals: performance)"
    rows.append(("frequency policy", governor == "performance" or None, details))
    mode = host["huge_pages"]
    details = f"{mode} (STREAM and RandomAccess use madvise)"
    rows.append(("huge pages", mode in ("madvise", "always") or None, details))
    if sandboxes := _count_sandboxes():
        details = (
            f"{sandboxes} of gVisor run: even idle ones slow what is measured (docs/method.md)"
        )
        rows.append(("sandboxes", None, details))
    return rows


def _count_sandboxes() -> int:
    """Return how many gVisor sandboxes run on this machine, including those of Strata."""
    pids = filter(str.isdecimal, observe.list_folder("/proc"))
    command_lines = observe.read_files([f"/proc/{pid}/cmdline" for pid in pids])
    return sum(line.split("\0")[0] == SANDBOX for line in command_lines.values())


def _list_layer_rows() -> list[Row]:
    """Return the lines of the report on the layers of environments, and on KVM."""
    # The layer `host` is this machine itself.
    names = [name for name in registry.list_layer_names() if name != "host"]
    rows: list[Row] = [registry.load_layer_class(name).format_doctor_line() for name in names]
    kvm = acceleration.read_known_accelerator()
    rows.append(("KVM", kvm["accelerator"] == "kvm" or None, kvm["accelerator_reason"]))
    return rows


def _list_environment_rows(environments: dict[str, PlannedEnvironment]) -> list[Row]:
    """Return a line of the report for each environment of the plan.

    The line has the mark NO if the machine or this user's rights exclude the environment.
    """
    rows: list[Row] = []
    for name, environment in environments.items():
        # A layer is {name: options}, and the lowest decides which rights are needed.
        [lowest] = environment["layers"][0]
        reason = (
            environment["reason"] or registry.load_layer_class(lowest).explain_missing_permission()
        )
        rows.append((name, not reason, reason or environment["label"]))
    return rows


def _print_rows(rows: list[Row]) -> bool:
    """Print lines of the report, and return whether none of them has the mark NO."""
    for subject, is_available, details in rows:
        progress.print_line(f"  {subject:18} {MARKS[is_available]:9} {details}")
    return all(is_available is not False for _, is_available, _ in rows)


def main(overrides: Fields) -> int:
    """Print a report of what this machine can measure, and return the exit status.

    The status is 0 if every configured environment can be measured; otherwise, and if a program is
    missing or the disk space is too small, it is 1.
    overrides: values that replace values of config.yaml.
    Raises UserError for mistakes in `overrides` and config.yaml, after printing the lines on the
    machine.
    """
    facts = capacity.read_host_facts()
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
    rows = [
        _build_root_row(),
        *programs,
        _build_disk_row(),
        *_list_host_rows(),
        *_list_layer_rows(),
    ]
    is_good = _print_rows(rows)
    settings = config.read_config(overrides)
    experiment = planning.build_plan(settings, facts)
    progress.print_line("Client and environments of config.yaml:")
    environments = _list_environment_rows(experiment["environments"])
    is_good &= _print_rows([client.format_client_doctor_line(settings["client"]), *environments])
    for name, planned in experiment["workloads"].items():
        for note in planned["notes"]:
            progress.print_line(f"  {name}: {note}")
    return int(not is_good)
