"""Run a command on an emulated host with KVM: ``make rig RUN="make paper"`` (docs/testing.md).

A measurement there is no result, since the host's processor is a program.  Logs and results come
into a folder.
"""

import argparse
import os
import shlex
import shutil
import signal
import sys
from pathlib import Path

import projects

from rig import host, images, root, users
from rig.hardware import Hardware
from strata.util.errors import UserError
from strata.util.progress import print_topic_message

# What comes back: below the project, and of the host.
RESULTS = ["results", "paper/report.pdf", "paper/report.html", "archive.zip"]
LOGS = [
    "/var/log/libvirt",
    "/var/cache/strata/*.json",
    "/var/cache/strata/*.log",
    "/var/cache/strata/images/*.log",
]


def options(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m rig", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "run", nargs="?", default="make doctor", help="what the host's shell runs in the checkout"
    )
    parser.add_argument(
        "--to", type=Path, default=projects.ROOT / "rig-results", help="where logs and results come"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=90,
        metavar="MINUTES",
        help="the most that the command may take",
    )
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--sockets", type=int, default=1, help="each with a memory node of its own")
    parser.add_argument("--memory", type=int, default=6144, metavar="MIB")
    parser.add_argument(
        "--without-kvm", action="store_true", help="a processor that offers no virtualisation"
    )
    parser.add_argument("--card", action="store_true", help="an SR-IOV card behind an IOMMU")
    parser.add_argument("--user", choices=["root", *users.MAY], default="root", help="who runs it")
    parser.add_argument(
        "--blocks", type=int, default=2, help="blocks of each workload; 0: as the config has it"
    )
    parser.add_argument("--fresh", action="store_true", help="no image is there yet")
    return parser.parse_args(words)


def settle(rig: host.Rig, chosen: argparse.Namespace) -> tuple[str, str]:
    """Prepare the host as chosen, with the checkout in it.

    Returns the user who runs the command, and the folder in which it runs.
    """
    rig.bring_checkout()
    if chosen.blocks:
        choices = CHOICES.format(
            chosen.blocks, ", ".join(f"{name}: {{laps: 1}}" for name in LAPPED)
        )
        rig.good(f"mkdir -p {PROFILE} && echo {shlex.quote(choices)} >{PROFILE}/config.yaml")
    return ("root", host.PROJECT) if chosen.user == "root" else users.add(rig, chosen.user)


# A Snakemake profile with the rig's choices, for a command that makes none.  A block takes the rig
# half an hour, so a time budget and laps do not suit it.  On a processor that is a program,
# everything is disturbed.
PROFILE = "/opt/rig-profile"
CHOICES = 'config:\n  - repetitions={}\n  - "interference={{action: flag}}"\n  - "workloads={{{}}}"'
LAPPED = ("pxz", "linpack", "stream", "randomaccess")
# As if nobody had ever measured there.
FRESH = (
    "systemctl stop docker.socket docker; rm -rf /var/cache/strata/*; "
    "mkdir -p /var/lib/docker; systemctl start docker"
)


def main(words: list[str]) -> int:
    """Boot, run, bring back; the command's own exit code."""
    chosen = options(words)
    hardware = Hardware(
        chosen.cpus, chosen.sockets, chosen.memory, not chosen.without_kvm, chosen.card
    )
    disk = root.host_disk()
    shutil.rmtree(chosen.to, ignore_errors=True)
    chosen.to.mkdir(parents=True)
    with host.up(hardware, [disk, images.disk(disk)], disk) as rig:
        if chosen.fresh:
            rig.good(FRESH)
        user, project = settle(rig, chosen)
        print_topic_message("rig", f"{chosen.run}")
        settings = f"export SNAKEMAKE_PROFILE={PROFILE} && " if chosen.blocks else ""
        command = f"{settings}{host.begin(project)} && sh -c {shlex.quote(chosen.run)}"
        try:
            code, _ = rig.run(command, chosen.limit * 60, user, chosen.to / "output.log")
        finally:
            rig.fetch([f"-C {project}", *RESULTS], chosen.to)
            rig.run("journalctl --no-pager -b >/var/log/journal.txt", 120)
            rig.fetch(["-C /", "/var/log/journal.txt", *LOGS], chosen.to / "host")
            shutil.copy(rig.console, chosen.to / "console.log")
    print_topic_message(
        "rig",
        f"ended with {code}; what it printed, made and logged is in {os.path.relpath(chosen.to)}",
    )
    return code


if __name__ == "__main__":
    # An end that was asked for leaves nothing either.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except UserError as error:
        sys.exit(f"rig: {error}")
