"""Make what a light machine boots: a disk of the native tree's files, a full machine's kernel, and a first program.

It is put where :mod:`strata.vm.disk` looks for it.  The first program is ``light-init.sh`` beside this file; it brings
the modules along that the kernel needs for disk and network, and the keys, which are made for this disk here.
"""

import lzma
import os
import shutil
import time

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import remove_tree, write_json
from strata.base.locks import locked
from strata.base.process import capture
from strata.base.progress import duration, say, step
from strata.experiment import recipe
from strata.image import intact, rootfs
from strata.image.cache import manifest_of
from strata.image.machine import EMULATED_ARGUMENTS, LABEL, kernel_and_initrd, make_file_system
from strata.vm import disk

# In the order in which they are needed; each is loaded after those that it needs itself.
MODULES = ["virtio_mmio", "virtio_blk", "virtio_net", "ext4"]
# As a full machine's, but that the root disk is the first program's to mount.
ARGUMENTS = f"strata.root={LABEL} net.ifnames=0 console=ttyS0 quiet apparmor=0"
FIRST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "light-init.sh")


def ensure(config: dict, image: dict, accelerator: str) -> dict:
    """What light machines of an image boot: from the cache, or made now (half a minute)."""
    name = image["recipe"]
    with locked(os.path.join(places.home(), "images", f"{name}.light.lock"), "vm: another process makes the disk"):
        found = disk.find(name, disk.LIGHT)
        if found:
            disk.verify(found)
            return found
        intact.verify(image)
        remove_tree(disk.folder_of(name, disk.LIGHT))
        work = os.path.join(places.home(), "images", f"building-light-{name[:12]}")
        remove_tree(work)
        os.makedirs(work)
        try:
            return _made(config, image, work)
        finally:
            remove_tree(work)


def _made(config: dict, image: dict, work: str) -> dict:
    """Make it in a folder, and put that in its place; returns the facts of :func:`strata.vm.disk.find`."""
    begun = time.monotonic()
    archive = rootfs.ensure_archive(config, recipe.describe(config))
    target, boot, raw = (os.path.join(work, name) for name in ("target", "boot", "root.raw"))
    for folder in (target, boot):
        os.makedirs(folder)
    with step("vm", "making the disk and the first program of light machines"):
        make_file_system(os.path.join(image["folder"], "tree"), raw)
        root = os.path.join(target, "root.qcow2")
        capture(["qemu-img", "convert", "-O", "qcow2", raw, root], timeout=1200)
        wanted = ["./boot/vmlinuz-*", "./usr/lib/modules/*/modules.dep", "./usr/lib/modules/*/kernel/*"]
        capture(["tar", "-C", boot, "--wildcards", "-xf", archive, *wanted], timeout=300)
        kernel, _ = kernel_and_initrd(boot)
        version = kernel.removeprefix("vmlinuz-")
        shutil.copy(os.path.join(boot, "boot", kernel), os.path.join(target, "kernel"))
        host_key = _make_first(os.path.join(boot, "usr/lib/modules", version), target, os.path.join(work, "first"))
    folder = disk.folder_of(image["recipe"], disk.LIGHT)
    # It is looked at where it will stay: the time of a change of name is none of a change.
    os.rename(target, folder)
    path = os.path.join(folder, "root.qcow2")
    facts = {
        "format": 1,
        "box": os.path.basename(folder),
        "volume": {"path": path, "sha256": disk.digest(path), "seen": disk.look(path)},
        "bytes": os.stat(path).st_blocks * 512,
        "host_keys": [host_key],
        "kernel": version,
        "arguments": {"kvm": ARGUMENTS, "tcg": f"{ARGUMENTS} {EMULATED_ARGUMENTS}"},
        "files": len(manifest_of(image)["files"]),
        "built": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    write_json(os.path.join(folder, "disk.json"), facts)
    say("vm", f"disk of light machines of {image['recipe'][:12]} made in {duration(time.monotonic() - begun)}")
    return {**facts, "folder": folder}


def order(dependencies: str, wanted: list[str]) -> list[str]:
    """Paths of the modules `wanted` and of all that they need, in the order in which they are loaded.

    dependencies: a modules.dep.  What is not in it is part of the kernel.
    """
    lines = [line.partition(":") for line in dependencies.splitlines() if ":" in line]
    paths = {os.path.basename(path).partition(".")[0].replace("-", "_"): path for path, _, _ in lines}
    needs = {path: rest.split() for path, _, rest in lines}
    found: list[str] = []
    for name in wanted:
        if name in paths:
            # modules.dep names first what is loaded last.
            found += [path for path in [*reversed(needs[paths[name]]), paths[name]] if path not in found]
    return found


def _unpacked(path: str, target: str) -> None:
    """Write a module as the kernel takes it."""
    if path.endswith(".xz"):
        with lzma.open(path) as source, open(target, "wb") as file:
            shutil.copyfileobj(source, file)
    elif path.endswith(".zst"):
        capture(["zstd", "-q", "-d", "-o", target, path])
    elif path.endswith(".ko"):
        shutil.copy(path, target)
    else:
        raise UserError(f"{os.path.basename(path)} is packed in a way that is not known here")


def _make_first(modules: str, target: str, root: str) -> str:
    """The archive with the first program, and the keys; returns the public key by which ssh knows the machine."""
    for name in ("bin", "dev", "keys", "modules", "proc", "root", "sys"):
        os.makedirs(os.path.join(root, name))
    shutil.copy(FIRST, os.path.join(root, "init"))
    os.chmod(os.path.join(root, "init"), 0o755)
    busybox = shutil.which("busybox", path="/bin:/usr/bin")
    # ldd fails for a program that needs no library.
    if busybox is None or capture(["ldd", busybox], check=False).returncode == 0:
        raise UserError("no static busybox, which a light machine begins with: run `make setup`")
    shutil.copy(busybox, os.path.join(root, "bin/busybox"))
    with open(os.path.join(modules, "modules.dep")) as file:
        paths = order(file.read(), MODULES)
    for number, path in enumerate(paths):
        name = os.path.basename(path).partition(".")[0]
        _unpacked(os.path.join(modules, path), os.path.join(root, "modules", f"{number:02}-{name}"))
    key, host_key = os.path.join(target, "key"), os.path.join(root, "keys/host_key")
    for path in (key, host_key):
        capture(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "strata", "-f", path])
    shutil.copy(f"{key}.pub", os.path.join(root, "keys/key.pub"))
    pack = 'cd "$1" && find . | LC_ALL=C sort | cpio --quiet --create --format=newc --owner=0:0 >"$2"'
    initrd = os.path.join(target, "initrd")
    capture(["sh", "-euc", pack, "strata", root, initrd])
    # A key is in it.
    os.chmod(initrd, 0o600)
    with open(f"{host_key}.pub") as file:
        return " ".join(file.read().split()[:2])
