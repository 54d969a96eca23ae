"""Report what this machine can measure, and what would change that; nothing is started."""

import os
import shutil

from strata import client
from strata.environments.common import registry
from strata.experiment import config, planning
from strata.host import capacity, cgroups, observe
from strata.host.daemons import find_program
from strata.util import access, paths, progress
from strata.util.data_types import Fields, HostFacts, PlannedEnvironment
from strata.util.process import can_run_as_root
from strata.vm import acceleration

# A line of the report: (subject, mark, details).  The mark is True if the subject is available,
# False if it is not, and None if the line is only a note.
Row = tuple[str, bool | None, str]
# Program → the step of an experiment that needs it.
PROGRAMS = {
    "packer": "provisions the image",
    "mmdebstrap": "makes the base of the image",
    "Rscript": "aggregates and draws",
    "pdflatex": "sets the paper",
}
# The text of each mark.
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

    A good setting has the mark True, and any other one is only a note: a setting never prevents a
    measurement.
    """
    host = observe.observe_host(capacity.list_usable_cpus())
    rows: list[Row] = []
    if emulation_sign := observe.find_emulated_host_mark():
        rows.append(("the host", None, emulation_sign))
    governor = host["governor"]
    governor_mark = True if governor == "performance" else None
    rows.append(("frequency policy", governor_mark, f"{governor} (the originals: performance)"))
    mode = host["huge_pages"]
    mode_mark = True if mode in ("madvise", "always") else None
    rows.append(("huge pages", mode_mark, f"{mode} (STREAM and RandomAccess use madvise)"))
    sandbox_count = _count_sandboxes()
    if sandbox_count:
        details = (
            f"{sandbox_count} of gVisor run: even idle ones slow what is measured (docs/method.md)"
        )
        rows.append(("sandboxes", None, details))
    return rows


def _count_sandboxes() -> int:
    """Return how many gVisor sandboxes run on this machine, including those of Strata."""
    pids = filter(str.isdecimal, observe.list_folder("/proc"))
    command_lines = observe.read_files([f"/proc/{pid}/cmdline" for pid in pids])
    # The kernel separates the arguments by NUL characters.
    programs = [command_line.split("\0")[0] for command_line in command_lines.values()]
    return programs.count(SANDBOX)


def _list_layer_rows() -> list[Row]:
    """Return the lines of the report on the layers of environments, and on KVM.

    The line on KVM has the mark True if an earlier trial booted a guest under KVM; otherwise it is
    only a note, since virtual machines can be emulated.
    """
    # The layer `host` is this machine itself.
    names = [name for name in registry.list_layer_names() if name != "host"]
    rows: list[Row] = [registry.load_layer_class(name).format_doctor_line() for name in names]
    facts = acceleration.read_known_accelerator()
    kvm_mark = True if facts["accelerator"] == "kvm" else None
    rows.append(("KVM", kvm_mark, facts["accelerator_reason"]))
    return rows


def _list_environment_rows(environments: dict[str, PlannedEnvironment]) -> list[Row]:
    """Return a line of the report for each environment of the plan.

    environments: name → environment of the plan.
    The mark is False if the machine or this user's rights exclude the environment.
    """
    rows: list[Row] = []
    for name, environment in environments.items():
        # A layer is {name: options}, and the lowest decides which rights are needed.
        [lowest_layer] = environment["layers"][0]
        reason = environment["reason"]
        if not reason:
            reason = registry.load_layer_class(lowest_layer).explain_missing_permission()
        if reason:
            rows.append((name, False, reason))
        else:
            rows.append((name, True, environment["label"]))
    return rows


def _print_rows(rows: list[Row]) -> bool:
    """Print rows of the report; return False if a row's mark is False, which means missing.

    A mark of True means available, and None a note.
    """
    for subject, mark, details in rows:
        progress.print_line(f"  {subject:18} {MARKS[mark]:9} {details}")
    return all(mark is not False for _, mark, _ in rows)


def main(overrides: Fields) -> int:
    """Print which environments this machine can measure, and return the exit status.

    overrides: values that replace values of config.yaml.
    Returns 0 if every configured environment can be measured, no program is missing, and the disk
    space is sufficient; otherwise 1.
    Raises UserError for mistakes in `overrides` and config.yaml, after printing the lines on the
    machine.
    """
    facts = capacity.read_host_facts()
    progress.print_line(_describe_machine(facts))
    machine_rows = [
        _build_root_row(),
        *_list_program_rows(),
        _build_disk_row(),
        *_list_host_rows(),
        *_list_layer_rows(),
    ]
    is_machine_good = _print_rows(machine_rows)
    settings = config.read_config(overrides)
    experiment = planning.build_plan(settings, facts)
    progress.print_line("Client and environments of config.yaml:")
    client_row = client.format_client_doctor_line(settings["client"])
    environment_rows = _list_environment_rows(experiment["environments"])
    are_environments_good = _print_rows([client_row, *environment_rows])
    for name, workload in experiment["workloads"].items():
        for note in workload["notes"]:
            progress.print_line(f"  {name}: {note}")
    return 0 if is_machine_good and are_environments_good else 1


def _describe_machine(facts: HostFacts) -> str:
    """Return a line on CPUs, memory, caches and control groups of this machine.

    facts: the facts of :func:`strata.host.capacity.read_host_facts`.
    Returns for example "This machine: 2 CPUs, 8.3 GB of memory, last-level caches of 33 MiB,
    control groups version 2".
    """
    caches = observe.NOT_AVAILABLE
    if facts["cache_bytes"]:
        caches = f"{facts['cache_bytes'] / 2**20:.0f} MiB"
    return (
        f"This machine: {facts['cpus']} CPUs, {facts['memory_bytes'] / 1e9:.1f} GB of memory, "
        f"last-level caches of {caches}, control groups version "
        f"{2 if cgroups.is_unified() else 1}"
    )


def _list_program_rows() -> list[Row]:
    """Return a line of the report for each of the PROGRAMS; the mark is False if it is missing."""
    rows: list[Row] = []
    for name, purpose in PROGRAMS.items():
        if find_program(name):
            rows.append((name, True, purpose))
        else:
            rows.append((name, False, f"{purpose}: run `make setup`"))
    return rows
