"""Snapshots of booted machines: saved once in a run, restored for each of its systems.

The snapshots of a run are in a folder that is named after the run's process, and are removed at the
run's end.  An `owner` is that process: ``{pid, start}``, as
:func:`strata.util.run.identify_run_process` returns it.
"""

import os

from strata.util import paths
from strata.util.data_types import Fields
from strata.util.files import remove_tree
from strata.util.process import capture_output, is_alive, wrap_as_root
from strata.vm import libvirt, vagrant_box


def _get_snapshot_folder(owner: Fields, *names: str) -> str:
    """Return the path of the folder of a run's snapshots, or of one of them.

    owner: the process of the run, ``{pid, start}``.
    names: the snapshot's name, or nothing for the folder of all snapshots of the run.
    :func:`remove_orphaned_snapshots` parses the name of the run's folder, ``PID-START``.
    """
    return vagrant_box.get_machine_cache_path(
        "snapshots", f"{owner['pid']}-{owner['start']}", *names
    )


def has_snapshot(name: str, owner: Fields) -> bool:
    """Return whether a run has saved a complete snapshot of this name.

    name: the name of the snapshot.
    owner: the process of the run, ``{pid, start}``.
    An unfinished snapshot has another name.
    """
    return os.path.isdir(_get_snapshot_folder(owner, name))


def remove_orphaned_snapshots() -> None:
    """Remove the snapshots of runs whose process has ended, for example by a kill.

    Those of other runs stay: their later systems are restored from them.
    """
    for run in list_runs_with_snapshots():
        pid, _, start = run.partition("-")
        if not is_alive({"pid": int(pid), "start": start}):
            remove_tree(vagrant_box.get_machine_cache_path("snapshots", run))


def save_snapshot(name: str, owner: Fields, domain: str) -> None:
    """Save a running domain, its memory and disks, as a snapshot of this run; stop the domain.

    name: the name of the snapshot.
    owner: the process of the run, ``{pid, start}``.
    domain: the domain's name; its disks' names begin with it.
    The snapshot gets its name atomically, once it is complete.
    Raises UserError if virsh or the copy of the disks fails.
    """
    unfinished = _get_snapshot_folder(owner, f"{name}.part")
    remove_tree(unfinished)
    # The folder gets the machine's memory, which no other user may read.
    os.makedirs(unfinished, 0o700)
    libvirt.run_virsh("save", domain, f"{unfinished}/memory", timeout=600)
    _copy_disks(vagrant_box.get_machine_cache_path("pool"), domain, unfinished)
    os.rename(unfinished, _get_snapshot_folder(owner, name))


def restore_snapshot(name: str, owner: Fields) -> None:
    """Copy a snapshot's disks back into the storage pool, and resume its domain.

    name: the name of the snapshot.
    owner: the process of the run, ``{pid, start}``.
    The snapshot stays.  The saved machine's domain must not exist any more, and the network must
    have the same addresses as when the machine was saved.
    Raises UserError if virsh or the copy of the disks fails.
    """
    folder = _get_snapshot_folder(owner, name)
    _copy_disks(folder, paths.get_name_prefix(), vagrant_box.get_machine_cache_path("pool"))
    libvirt.run_virsh("pool-refresh", paths.get_name_prefix())
    libvirt.run_virsh("restore", f"{folder}/memory", timeout=600)


def _copy_disks(source: str, prefix: str, target: str) -> None:
    """Copy the disks in a folder whose names begin with a prefix to another folder, as root.

    source: the path of the folder with the disks.
    prefix: the beginning of the disks' names; an empty prefix would copy all files.
    target: the path of the other folder; disks of these names there are overwritten.
    Raises UserError if no disk has such a name, or if the copy fails.
    """
    names = [name for name in os.listdir(source) if name.startswith(prefix)]
    disks = [os.path.join(source, name) for name in names]
    copy = ["cp", "--sparse=always", "--reflink=auto", "--", *disks, target]
    capture_output(wrap_as_root(copy), timeout=1200)


def list_runs_with_snapshots() -> list[str]:
    """Return the sorted names of the runs that have snapshots, each ``PID-START``.

    They are the names of the folders whose paths :func:`_get_snapshot_folder` returns.
    """
    folder = vagrant_box.get_machine_cache_path("snapshots")
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def remove_snapshots(owner: Fields | None = None) -> list[str]:
    """Remove the snapshots of a run, and return the names of the runs that had any.

    owner: the process of the run; None removes the snapshots of all runs.
    """
    runs = list_runs_with_snapshots()
    if owner is not None:
        owner_run = os.path.basename(_get_snapshot_folder(owner))
        runs = [run for run in runs if run == owner_run]
    for run in runs:
        remove_tree(vagrant_box.get_machine_cache_path("snapshots", run))
    return runs
