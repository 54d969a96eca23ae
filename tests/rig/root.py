"""The rig's disks: a current Debian after `make setup`, and the images of this machine's cache.

They are made natively, in minutes, and kept by the hash of their inputs.  Nothing writes to them:
each run writes into its own layers above them.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import projects

from strata.host import distribution
from strata.util import paths
from strata.util.errors import UserError
from strata.util.files import remove_tree
from strata.util.locks import hold_lock
from strata.util.process import capture_output
from strata.util.progress import report_step

RELEASE = "trixie"
# What a host has before anybody installs Strata; all else the project's setup brings.
PACKAGES = [
    *[
        "linux-image-amd64",
        "initramfs-tools",
        "systemd-sysv",
        "udev",
        "dbus",
        "libpam-systemd",
        "openssh-server",
    ],
    *[
        "iproute2",
        "kmod",
        "procps",
        "pciutils",
        "numactl",
        "ca-certificates",
        "git",
        "make",
        "python3",
        "sudo",
    ],
]
INSIDE = Path(__file__).with_name("inside.sh")
SIZE = "24G"


def place() -> Path:
    """Where the rig's disks are kept."""
    return Path(paths.get_home_folder()) / "rig"


def sources() -> str:
    """The package sources: this host's own, with the release replaced."""
    chosen = {"distribution": "debian", "release": RELEASE}
    return distribution.format_sources_list(chosen, None, distribution.read_os_release())


def _decides() -> str:
    """A hash of all that decides what is on the host's disk."""
    names = ["scripts/setup.sh", "scripts/packages.txt", "scripts/other-release.sh"]
    names += ["requirements.txt", "requirements-test.txt", "strata/host/distribution.py"]
    texts = [sources(), " ".join(PACKAGES), SIZE, INSIDE.read_text()]
    texts += [(projects.ROOT / name).read_text() for name in names]
    return sha256("\0".join(texts).encode()).hexdigest()[:12]


def forget(kind: str, but: str) -> None:
    """Remove what was kept of a kind, `but` for one."""
    for path in place().glob(f"{kind}-*"):
        if not path.name.startswith(f"{kind}-{but}"):
            path.unlink()


def check() -> None:
    """See that disks can be made, in a folder that is root's alone.  Raises UserError."""
    if os.geteuid() != 0:
        raise UserError("the rig is built by root: run it as root")
    for program in ("mmdebstrap", "mke2fs", "ssh-keygen", "unshare"):
        if not shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
            raise UserError(f"{program} is not installed: run `make setup`")
    os.makedirs(place(), exist_ok=True)
    os.chmod(place(), 0o700)


def host_disk() -> Path:
    """The disk of the host, with its key beside it (``….key``).

    It is made now, in some minutes, if it is not kept.
    """
    check()
    name = _decides()
    disk = place() / f"host-{name}.img"
    with hold_lock(str(place() / "host.lock"), "rig: another process builds its disk"):
        if not disk.exists():
            _build(disk)
            forget("host", name)
    return disk


def _build(disk: Path) -> None:
    key = disk.with_suffix(".key")
    with workplace("building") as work:
        key.unlink(missing_ok=True)
        capture_output(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "rig", "-f", str(key)])
        hook = f'"{INSIDE}" "$1" "{projects.ROOT}" "{key}.pub"'
        with report_step(
            "rig", f"bootstrapping Debian {RELEASE} and installing what the project needs"
        ):
            chosen = [f"--include={','.join(PACKAGES)}", f"--customize-hook={hook}"]
            bootstrap(sources(), chosen, work / "root")
        with report_step("rig", "making its disk"):
            make_disk(work / "root", disk, work, SIZE)


@contextlib.contextmanager
def workplace(name: str) -> Iterator[Path]:
    """A folder that is empty, and gone afterwards."""
    work = place() / name
    remove_tree(str(work))
    work.mkdir()
    try:
        yield work
    finally:
        remove_tree(str(work))


def bootstrap(text: str, chosen: list[str], tree: Path) -> None:
    """Make a tree of the release, with its packages from these sources.

    chosen: further options of mmdebstrap.
    """
    listing = tree.with_name("sources.list")
    listing.write_text(text)
    command = [
        "mmdebstrap",
        "--mode=root",
        "--format=directory",
        "--variant=apt",
        '--aptopt=Acquire::Retries "3"',
    ]
    capture_output([*command, *chosen, RELEASE, str(tree), str(listing)], timeout=3600)


def make_disk(tree: Path, disk: Path, work: Path, size: str) -> None:
    """Make a disk of a tree; it is there when it is whole."""
    make = [
        "mke2fs",
        "-q",
        "-F",
        "-t",
        "ext4",
        "-m",
        "0",
        "-E",
        "lazy_itable_init=1",
        "-d",
        str(tree),
    ]
    capture_output([*make, str(work / "disk"), size], timeout=1800)
    os.rename(work / "disk", disk)


def layer(disk: Path, above: Path) -> Path:
    """A disk that holds what differs from another one, which must stay as it is."""
    kind = "raw" if re.search(r"\.img$", disk.name) else "qcow2"
    backing = os.path.relpath(disk, above.parent)
    capture_output(
        ["qemu-img", "create", "-q", "-f", "qcow2", "-F", kind, "-b", backing, str(above)]
    )
    return above


# Changes root natively, into the content of a host's disk.  Everything that is written goes with
# the mount namespace.
_NATIVE = """
disk=$1 point=$2 project=$3 checkout=$4 command=$5
mount -t tmpfs tmpfs "$point"
cd "$point"
mkdir below above work root
mount -o loop,ro,noload "$disk" below
mount -t overlay overlay -o lowerdir=below,upperdir=above,workdir=work root
for name in dev sys; do mount --rbind "/$name" "root/$name"; done
mount -t proc proc root/proc
# Podman's storage lies on no overlay.
mkdir -p root/var/lib/containers
for name in run tmp var/lib/containers; do mount -t tmpfs tmpfs "root/$name"; done
mkdir root/run/lock && chmod 1777 root/run/lock
git -C "$checkout" ls-files -z --cached --others --exclude-standard |
    tar -C "$checkout" --ignore-failed-read -cf - --null --no-recursion -T - | \
tar -C "root$project" -xf -
git -C "root$project" init -q && git -C "root$project" add -A
exec chroot root sh -c "cd $project && export PATH=$project/.venv/bin:$PATH HOME=/root && $command"
"""


def natively(disk: Path, project: str, command: str) -> list[str]:
    """The command line of a shell command in this checkout, with the programs of a host's disk.

    Kernel and daemons are this machine's.  It is for commands that need neither, and that would
    take long in an emulated host.
    """
    point = place() / "native"
    point.mkdir(exist_ok=True)
    command_line = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-uec",
    ]
    return [
        *command_line,
        _NATIVE,
        "rig",
        str(disk),
        str(point),
        project,
        str(projects.ROOT),
        command,
    ]
