"""The disks of a host in which what takes long was done once: the disk of machines, made under KVM."""

from pathlib import Path

from rig import host, root
from rig.hardware import Hardware
from strata.base.errors import UserError
from strata.base.files import remove_tree
from strata.base.locks import locked
from strata.base.progress import say

COMMAND = "python -m strata image"
LIMIT = 5400
ATTEMPTS = 2
# The checkout is each run's own.
LEAVE = f"cd {host.PROJECT} && find . -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -r {{}} + && sync"


def disks(disk: Path, images: Path) -> list[Path]:
    """Layers above the disks of :func:`rig.root.host_disk` and :func:`rig.root.image_disk`: kept, or made now."""
    place = root.place()
    kept = place / f"prepared-{disk.stem.partition('-')[2]}-{images.stem.partition('-')[2]}"
    with locked(str(place / "prepared.lock"), "rig: another process prepares it"):
        if not kept.is_dir():
            say("rig", "preparing it, once for this image: the disk of machines is made under KVM")
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    _prepare(disk, images, kept)
                    break
                except UserError as error:
                    # Emulated virtualisation lets a host fall over now and then.
                    say("rig", f"attempt {attempt} of {ATTEMPTS} to prepare it failed: {error}")
                    if attempt == ATTEMPTS:
                        raise
            for other in place.glob("prepared-*/"):
                if other != kept:
                    remove_tree(str(other))
    return [kept / "disk0.qcow2", kept / "disk1.qcow2"]


def _prepare(disk: Path, images: Path, kept: Path) -> None:
    with host.up(Hardware(), [disk, images], disk, kept) as rig:
        rig.bring_checkout()
        code, said = rig.run(f"{host.begin()} && {COMMAND}", LIMIT, log=root.place() / "prepare.log")
        if code != 0:
            raise UserError(f"the rig could not be prepared: {said[-2000:]}")
        rig.good(LEAVE)
