"""The emulated host: a patched QEMU boots it, ssh runs commands in it, and it is gone in the end.

QEMU runs from a separate root filesystem.  Everything that is mounted for QEMU is mounted in QEMU's
own mount namespace, and QEMU ends with the process that started it.  However that process ends, no
mount and no process is left, and the next run removes its folder.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import projects

from rig import emulator, root
from rig.hardware import Hardware
from strata.util import process
from strata.util.errors import UserError
from strata.util.files import remove_tree
from strata.util.progress import format_duration, print_topic_message

ATTEMPTS = 3
# Seconds for a boot, and for a shutdown before QEMU is ended.
BOOT = 600
SHUTDOWN = 90
HOME = "/root"
# Not written out: an archive refuses text that names the folder in which it was made.
PROJECT = f"{HOME}/strata"
# What stretches the project's limits of time, which are those of hardware (docs/testing.md).
PATIENCE = 6

# QEMU sees the host's kernel and its own root filesystem, read only, with this machine's /dev and
# /proc and the rig's folder in it.  With its process name nobody takes it for a machine that a test
# left.
_START = """
point=$1 emulator=$2 host=$3 kept=$4; shift 4
mount -o loop,ro,noload "$emulator" "$point"
mount -o loop,ro,noload "$host" "$point/media"
for name in dev proc; do mount --bind "/$name" "$point/$name"; done
mount --bind "$kept" "$point/mnt"
exec chroot "$point" bash -c 'exec -a rig-host "$0" "$@"' "$@"
"""


class Rig:
    """An emulated host that is up."""

    def __init__(
        self, folder: Path, key: Path, port: int, qemu: subprocess.Popen, console: Path
    ) -> None:
        self.folder, self.key, self.port, self.qemu, self.console = folder, key, port, qemu, console

    def ssh(self, command: str, user: str = "root") -> list[str]:
        """The command line that runs a command of the shell in the host."""
        options = [
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "ConnectTimeout=20",
        ]
        options += ["BatchMode=yes", "ServerAliveInterval=30", "ServerAliveCountMax=20"]
        words = [
            "ssh",
            "-i",
            str(self.key),
            "-p",
            str(self.port),
            *(f"-o{option}" for option in options),
        ]
        return [*words, f"{user}@127.0.0.1", command]

    def run(
        self, command: str, limit: float = 600, user: str = "root", log: Path | None = None
    ) -> tuple[int, str]:
        """Run a shell command in the host, and return its exit code and its output.

        The code is 124 after `limit` seconds.  With `log` all output is shown and written there as
        it comes.
        """
        said = bytearray()
        deadline = time.monotonic() + limit
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(log.open("ab")) if log else None
            child = subprocess.Popen(
                [
                    "timeout",
                    "--signal=TERM",
                    "--kill-after=30",
                    f"{limit:g}",
                    *self.ssh(command, user),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                assert child.stdout
                pieces = iter(lambda: child.stdout.read1(65536), b"")  # type: ignore[union-attr]
                for piece in pieces:
                    said += piece
                    if file:
                        file.write(piece)
                        file.flush()
                        sys.stdout.buffer.write(piece)
                        sys.stdout.flush()
                code = child.wait()
            finally:
                process.end_processes(child)
        late = time.monotonic() >= deadline
        return (124 if late else code), said.decode(errors="replace")

    def good(self, command: str, limit: float = 600, user: str = "root") -> str:
        """Like :meth:`run`, for what must succeed; what it printed.  Raises UserError."""
        code, said = self.run(command, limit, user)
        if code != 0:
            raise UserError(f"in the rig, `{command}` ended with {code}:\n{said[-3000:]}")
        return said

    def send(self, source: list[str], command: str, limit: float = 1200) -> None:
        """Give what a command here prints to one in the host."""
        with subprocess.Popen(source, stdout=subprocess.PIPE, cwd=projects.ROOT) as giver:
            try:
                done = subprocess.run(
                    self.ssh(command),
                    stdin=giver.stdout,
                    capture_output=True,
                    text=True,
                    timeout=limit,
                    check=False,
                )
            finally:
                giver.kill()
        if done.returncode != 0:
            raise UserError(
                f"in the rig, `{command}` ended with {done.returncode}: {done.stderr.strip()}"
            )

    def fetch(self, paths: list[str], target: Path, limit: float = 1200) -> None:
        """Bring files and folders of the host, those that are there, into a folder here."""
        target.mkdir(parents=True, exist_ok=True)
        pack = "tar -cf - --ignore-failed-read --sparse " + " ".join(paths) + " 2>/dev/null || true"
        with subprocess.Popen(self.ssh(pack), stdout=subprocess.PIPE) as giver:
            try:
                unpack = ["tar", "-C", str(target), "--no-same-owner", "-xf", "-"]
                subprocess.run(
                    unpack, stdin=giver.stdout, capture_output=True, timeout=limit, check=False
                )
            finally:
                giver.kill()

    def bring_checkout(self, user: str = "root", project: str = PROJECT) -> None:
        """Put this checkout there, with its commits and with what was changed and added since."""
        owned = f"chown -R {user}: {project}"
        begin = f"mkdir -p {project} && cd {project} && cat >.bundle && git init -q -b main"
        take = "git fetch -q .bundle HEAD && git reset -q --hard FETCH_HEAD && rm .bundle"
        self.send(["git", "bundle", "create", "--quiet", "-", "HEAD"], f"{begin} && {take}")
        self.send(["sh", "-c", _CHANGED], f"tar -C {project} -xf - && {owned}")


# The files of the checkout as they are now; what was deleted since the last commit stays out.
_CHANGED = """
git ls-files -z --cached --others --exclude-standard |
    xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\\0" "$f"; done' sh | \
tar -cf - --null --no-recursion -T -
"""


def _sweep(place: Path) -> None:
    """Remove the folders of runs that were killed."""
    for folder in place.glob("run-*"):
        with contextlib.suppress(OSError, ValueError):
            if process.is_alive(json.loads((folder / "owner.json").read_text())):
                continue
        remove_tree(str(folder))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def up(hardware: Hardware, disks: list[Path], host: Path) -> Iterator[Rig]:
    """An emulated host with these disks, the host's own first; what it writes is gone afterwards.

    host: the disk of :func:`rig.root.host_disk`, which holds the kernel.
    """
    place, hardware_disk = root.place(), emulator.disk()
    _sweep(place)
    owner = process.identify_process(os.getpid())
    folder = place / f"run-{owner['pid']}-{owner['start']}"
    folder.mkdir()
    try:
        (folder / "owner.json").write_text(json.dumps(owner))
        for attempt in range(1, ATTEMPTS + 1):
            layers = [
                root.layer(disk, folder / f"disk{n}-{attempt}.qcow2")
                for n, disk in enumerate(disks)
            ]
            rig = _start(hardware, layers, (hardware_disk, host), folder)
            try:
                trouble = _wait(rig)
                if trouble is None:
                    yield rig
            finally:
                _keep(rig)
                _stop(rig)
            if trouble is None:
                return
            print_topic_message("rig", f"attempt {attempt} of {ATTEMPTS} to boot failed: {trouble}")
        raise UserError(
            f"the rig did not boot in {ATTEMPTS} attempts: {trouble}; its console: {_keep(rig)}"
        )
    finally:
        remove_tree(str(folder))


def _keep(rig: Rig) -> Path:
    """Put what the host's kernel said where the next run finds it."""
    kept = root.place() / "console.log"
    if rig.console.exists():
        shutil.copyfile(rig.console, kept)
    return kept


def _start(hardware: Hardware, layers: list[Path], shown: tuple[Path, Path], folder: Path) -> Rig:
    port, console, point = _free_port(), folder / "console.log", folder / "root"
    point.mkdir(exist_ok=True)
    seen = Path("/mnt") / folder.name
    words = ["qemu-system-x86_64", *hardware.arguments(), "-serial", f"file:{seen / console.name}"]
    words += [
        "-kernel",
        "/media/vmlinuz",
        "-initrd",
        "/media/initrd.img",
        "-append",
        hardware.kernel(),
    ]
    for disk in layers:
        words += [
            "-drive",
            f"file={seen / disk.name},format=qcow2,if=virtio,cache=unsafe,discard=unmap",
        ]
    words += [
        "-netdev",
        f"user,id=net,hostfwd=tcp:127.0.0.1:{port}-:22",
        "-device",
        "virtio-net-pci,netdev=net",
    ]
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private"]
    command += [
        "sh",
        "-uec",
        _START,
        "rig",
        str(point),
        *map(str, shown),
        str(root.place()),
        *words,
    ]
    with (folder / "qemu.log").open("ab") as log:
        qemu = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Rig(folder, shown[1].with_suffix(".key"), port, qemu, console)


def _wait(rig: Rig) -> str | None:
    """Wait for the host's ssh; why it did not come, else None."""
    begun = time.monotonic()
    while time.monotonic() - begun < BOOT:
        if rig.qemu.poll() is not None:
            said = (rig.folder / "qemu.log").read_text(errors="replace").strip()[-500:]
            return f"QEMU ended with {rig.qemu.returncode}: {said}"
        console = rig.console.read_text(errors="replace") if rig.console.exists() else ""
        if "Kernel panic" in console:
            return "its kernel panicked"
        done = subprocess.run(
            rig.ssh("true"), stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False
        )
        if done.returncode == 0:
            print_topic_message(
                "rig",
                f"it answers after {format_duration(time.monotonic() - begun)} (port {rig.port})",
            )
            return None
        time.sleep(2)
    return f"it did not answer within {BOOT} s"


def _stop(rig: Rig) -> None:
    """Shut the host down, and end QEMU by its id if that takes long."""
    if rig.qemu.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired, UserError):
            rig.run("systemctl poweroff", 30)
            rig.qemu.wait(SHUTDOWN)
    process.end_processes(rig.qemu)


def begin(project: str = PROJECT) -> str:
    """What a command in a checkout there begins with, for the shell."""
    return f"cd {project} && export PATH=$PWD/.venv/bin:$PATH STRATA_PATIENCE={PATIENCE}"
