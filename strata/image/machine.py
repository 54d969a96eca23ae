"""Make the disk of a virtual machine: the base root filesystem made bootable, provisioned by Packer, and a Vagrant box.

It is put where :mod:`strata.vm.disk` looks for it.
"""

import contextlib
import os
import time

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import remove_tree, write_json, write_text
from strata.base.locks import locked
from strata.base.process import as_root, capture
from strata.base.progress import duration, say, step
from strata.experiment import recipe
from strata.image import manifest, rootfs
from strata.image.cache import manifest_of
from strata.image.packer import run_packer
from strata.vm import acceleration, disk, libvirt
from strata.vm.disk import box_name, find, folder_of, vagrant_home
from strata.vm.settings import qemu_processor

SIZE = "32G"
LABEL = "strata-root"
# The clock of an emulated machine would otherwise be mistrusted, and a busy host be taken for a stuck CPU.
EMULATED_ARGUMENTS = "tsc=reliable no_timer_check nowatchdog rcupdate.rcu_cpu_stall_suppress=1"
# Without AppArmor: its parser is not in the image, and Docker in the guest would look for it.
ARGUMENTS = f"root=LABEL={LABEL} ro net.ifnames=0 console=ttyS0 quiet apparmor=0"
# What may differ between the files of the container and those of the machine, and why.
MAY_DIFFER = {
    "boot/": "the kernel, which a container shares with its host",
    "usr/lib/modules/": "the kernel's modules",
    "etc/fstab": "the root disk",
    "etc/machine-id": "the identity of a machine",
    "etc/ssh/ssh_host_": "the keys of a machine",
    "etc/.updated": "tells systemd that nothing was updated",
    "var/.updated": "tells systemd that nothing was updated",
    "root/.ssh/": "the key that is let in",
    "root/.docker/": "the client's own files",
    "var/lib/docker/": "the container image, for Docker in the machine",
    "var/lib/containerd/": "state of Docker in the machine",
    "var/lib/systemd/": "state that systemd keeps from boot to boot",
    "var/lib/dbus/": "a link to the identity of a machine",
    "var/log/": "logs of the boot in which it was provisioned",
    "var/lib/private/": "state that systemd keeps from boot to boot",
    "var/cache/private/": "state that systemd keeps from boot to boot",
    "etc/.pwd.lock": "a lock that systemd touches",
}


def kernel_and_initrd(root: str) -> tuple[str, str]:
    """Names of the newest kernel and its initrd in ``boot`` of a root filesystem."""
    names = os.listdir(os.path.join(root, "boot"))
    kernels = sorted(name for name in names if name.startswith("vmlinuz-"))
    if not kernels:
        raise UserError(f"{root}/boot holds no kernel: run `python -m strata image --rebuild`")
    version = kernels[-1].removeprefix("vmlinuz-")
    return kernels[-1], f"initrd.img-{version}"


def probe(config: dict) -> dict:
    """What accelerates virtual machines here; tried now, with the image's own kernel, if it is not known."""
    found = acceleration.known()
    if found["accelerator"] is not None:
        return found
    archive = rootfs.ensure_archive(config, recipe.describe(config))
    work = os.path.join(places.home(), "images", f"building-probe-{os.getpid()}")
    os.makedirs(work)
    try:
        capture(["tar", "-C", work, "--wildcards", "-xf", archive, "./boot/vmlinuz-*"], timeout=300)
        kernel, _ = kernel_and_initrd(work)
        with step("vm", "trying whether KVM runs a guest here"):
            found = acceleration.attempt(os.path.join(work, "boot", kernel))
    finally:
        remove_tree(work)
    say("vm", f"{acceleration.shown(found['accelerator'])}: {found['accelerator_reason']}")
    return found


def ensure(config: dict, image: dict, accelerator: str) -> dict:
    """The disk of an image for this accelerator: from the cache, or built now (some minutes under emulation)."""
    name = image["recipe"]
    with locked(os.path.join(places.home(), "images", f"{name}.vm.lock"), "vm: another process builds the disk"):
        found = find(name, accelerator)
        if found:
            disk.verify(found)
            return found
        described = recipe.describe(config)
        remove_tree(folder_of(name, accelerator))
        return _build(config, described, image, accelerator)


def _build(config: dict, described: dict, image: dict, accelerator: str) -> dict:
    """Build it; of a build that failed only what it said stays."""
    begun = time.monotonic()
    work = os.path.join(places.home(), "images", f"building-vm-{image['recipe'][:12]}")
    remove_tree(work)
    os.makedirs(work)
    os.chmod(work, 0o755)
    try:
        facts = _made(config, described, image, accelerator, work)
    except BaseException:
        with contextlib.suppress(OSError):
            os.replace(os.path.join(work, "console.log"), os.path.join(places.home(), "images", "packer-console.log"))
        remove_tree(work)
        raise
    folder = folder_of(image["recipe"], accelerator)
    os.rename(work, folder)
    say("vm", f"disk of {image['recipe'][:12]} built in {duration(time.monotonic() - begun)}")
    return {**facts, "folder": folder}


def _made(config: dict, described: dict, image: dict, accelerator: str, work: str) -> dict:
    """Build the disk into a folder; returns its facts."""
    root = os.path.join(work, "root")
    base = os.path.join(work, "base.qcow2")
    with step("vm", "making a bootable disk of the base"):
        rootfs.unpack(rootfs.ensure_archive(config, described), root)
        _put_container_image(image, root)
        host_keys = _personalise(work, root, accelerator)
        _make_disk(work, root, base)
        remove_tree(root)

    with step("vm", "provisioning it with Packer, which boots it"):
        cpu = qemu_processor(accelerator)
        run_packer(
            config,
            "qemu.machine",
            {"disk": base, "key": os.path.join(work, "key"), "accelerator": accelerator, "cpu": cpu, "output": work},
            work,
        )
    os.unlink(base)

    provisioned = os.path.join(work, "disk", "disk.qcow2")
    with step("vm", "comparing its files with the container's"):
        listing = read_manifest(provisioned, work)
        compare(manifest_of(image), listing)
    with step("vm", "giving it to Vagrant and libvirt"):
        volume = _add_box(work, image["recipe"], accelerator)
    facts = {
        "format": 1,
        "accelerator": accelerator,
        "box": box_name(image["recipe"], accelerator),
        "volume": {"path": volume, "sha256": disk.digest(volume), "seen": disk.look(volume)},
        "bytes": os.stat(provisioned).st_blocks * 512,
        "host_keys": host_keys,
        "kernel": next(key for key in listing["files"] if key.startswith("boot/vmlinuz-")).removeprefix(
            "boot/vmlinuz-"
        ),
        "files": len(listing["files"]),
        "differing": sorted(path for path in MAY_DIFFER),
        "built": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    remove_tree(os.path.join(work, "disk"))
    write_json(os.path.join(work, "disk.json"), facts)
    return facts


def _put_container_image(image: dict, root: str) -> None:
    """Put the container image into Docker's store of a root filesystem, by that filesystem's own daemon.

    The daemon runs in mount, process and network namespaces of its own, which end with it: outside of a network
    namespace it would take the host daemon's bridge away.
    """
    archive = os.path.join(image["folder"], "image.tar")
    script = """
        root=$1 archive=$2
        mount --bind "$root" "$root"
        for name in proc sys dev; do mount --rbind "/$name" "$root/$name"; mount --make-rslave "$root/$name"; done
        mount -t proc proc "$root/proc"
        mount -t tmpfs tmpfs "$root/run"
        begin() {
            chroot "$root" dockerd --bridge=none --iptables=false --ip6tables=false --storage-driver=overlay2 \
                --host=unix:///run/docker.sock >>"$root/run/dockerd.log" 2>&1 &
        }
        begin
        for _ in $(seq 300); do
            chroot "$root" docker version >/dev/null 2>&1 && break
            # It gives its containerd 15 s, which may not be enough on a host that is slow or busy.
            kill -0 $! 2>/dev/null || begin
            sleep 0.2
        done
        if ! chroot "$root" docker load --quiet <"$archive"; then
            tail -n 5 "$root/run/dockerd.log" >&2
            exit 1
        fi
        kill $! && wait $! || true
    """
    inner = [
        "unshare",
        "--mount",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "bash",
        "-uec",
        script,
        "strata",
        root,
        archive,
    ]
    capture(as_root(inner), timeout=1800)


def _personalise(work: str, root: str, accelerator: str) -> list[str]:
    """Make the keys and the identity of this disk; returns the public keys by which ssh knows it."""
    key = os.path.join(work, "key")
    capture(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "strata", "-f", key])
    kernel, initrd = kernel_and_initrd(root)
    arguments = f"{ARGUMENTS} {EMULATED_ARGUMENTS}" if accelerator == "tcg" else ARGUMENTS
    files = os.path.join(work, "files")
    os.makedirs(os.path.join(files, "etc"))
    write_text(
        os.path.join(files, "boot/extlinux/extlinux.conf"),
        "SERIAL 0 115200\nDEFAULT strata\nPROMPT 0\nLABEL strata\n"
        f"  LINUX /boot/{kernel}\n  INITRD /boot/{initrd}\n  APPEND {arguments}\n",
    )
    write_text(os.path.join(files, "etc/fstab"), f"LABEL={LABEL} / ext4 defaults 0 0\n")
    write_text(os.path.join(files, "etc/hostname"), "strata\n")
    write_text(os.path.join(files, "etc/hosts"), "127.0.0.1 localhost strata\n")
    with open("/proc/sys/kernel/random/uuid") as file:
        write_text(os.path.join(files, "etc/machine-id"), file.read().replace("-", ""))
    with open(f"{key}.pub") as file:
        write_text(os.path.join(files, "root/.ssh/authorized_keys"), file.read())
    script = """
        files=$1 root=$2
        ssh-keygen -q -t ed25519 -N "" -C strata -f "$files/etc/ssh_host_ed25519_key"
        mkdir -p "$root/etc/ssh"
        mv "$files"/etc/ssh_host_ed25519_key* "$root/etc/ssh/"
        chown -R 0:0 "$files"
        chmod 0700 "$files/root/.ssh"
        cp -rT --preserve=mode,ownership "$files" "$root"
        chown 0:0 "$root"/etc/ssh/ssh_host_*
        chmod 0600 "$root/etc/ssh/ssh_host_ed25519_key"
        chmod 0700 "$root/root"
        touch "$root/etc/.updated" "$root/var/.updated"
        cat "$root/etc/ssh/ssh_host_ed25519_key.pub"
        rm -r "$files"
    """
    printed = capture(as_root(["sh", "-uec", script, "strata", files, root])).stdout
    return [" ".join(line.split()[:2]) for line in printed.splitlines()]


def make_file_system(root: str, raw: str) -> None:
    """A file that is the file system of a machine's root disk, with the files of `root`."""
    # Nothing is left for the guest's kernel to initialise beside a measurement; extlinux reads no newer features.
    make = ["mke2fs", "-q", "-F", "-t", "ext4", "-L", LABEL, "-m", "0", "-O", "^64bit,^metadata_csum"]
    make += ["-E", "lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0", "-d", root, raw, SIZE]
    capture(as_root(make), timeout=1200)


def _make_disk(work: str, root: str, disk: str) -> None:
    """A disk with the files of `root`, that a BIOS boots by extlinux."""
    raw, point = os.path.join(work, "disk.raw"), os.path.join(work, "mnt")
    os.makedirs(point)
    make_file_system(root, raw)
    # The mount is in a namespace of its own and ends with it.
    script = 'mount -o loop "$1" "$2"; extlinux --install "$2/boot/extlinux"; umount "$2"'
    capture(as_root(["unshare", "--mount", "sh", "-uec", script, "strata", raw, point]), timeout=300)
    capture(["qemu-img", "convert", "-O", "qcow2", raw, disk], timeout=1200)
    capture(as_root(["rm", "-f", "--", raw]))
    os.rmdir(point)


def read_manifest(disk: str, work: str) -> dict:
    """``{packages, files}`` (as of :mod:`strata.image.manifest`) of a disk, read from outside of any guest."""
    raw, tree, archive = (os.path.join(work, name) for name in ("read.raw", "read", "read.tar"))
    remove_tree(tree)
    os.makedirs(tree)
    try:
        capture(["qemu-img", "convert", "-O", "raw", disk, raw], timeout=1200)
        # debugfs reads the file system itself: nothing is mounted.  It complains where it may not set an owner.
        capture(as_root(["debugfs", "-R", f"rdump / {tree}", raw]), timeout=1200)
        capture(as_root(["tar", "-C", tree, "-cf", archive, "."]), timeout=1200)
        return {"packages": manifest.packages(tree), "files": manifest.hash_archive(archive)}
    finally:
        remove_tree(tree)
        capture(as_root(["rm", "-f", "--", raw, archive]))


def differences(container: dict, machine: dict) -> list[str]:
    """What differs between two manifests outside of :data:`MAY_DIFFER`, in words."""
    found = []
    names = sorted({*container["packages"], *machine["packages"]})
    for name in names:
        ours, theirs = container["packages"].get(name), machine["packages"].get(name)
        if ours != theirs:
            found.append(f"package {name}: {ours or 'missing'} in the container, {theirs or 'missing'} in the machine")
    for path in sorted({*container["files"], *machine["files"]}):
        if path.startswith(tuple(MAY_DIFFER)):
            continue
        ours, theirs = container["files"].get(path), machine["files"].get(path)
        if ours != theirs:
            where = "only in the machine" if ours is None else "only in the container" if theirs is None else "differs"
            found.append(f"{path}: {where}")
    return found


def compare(container: dict, machine: dict) -> None:
    """Raise UserError where the machine's files are not the container's."""
    found = differences(container, machine)
    if found:
        more = f"\n  … and {len(found) - 20} more" if len(found) > 20 else ""
        raise UserError(
            "the virtual machine's files are not those of the container:\n  "
            + "\n  ".join(found[:20])
            + more
            + "\nrun `python -m strata image --rebuild`"
        )


def _vagrant(*words: str, timeout: float = 1800) -> str:
    command = ["env", f"VAGRANT_HOME={vagrant_home()}", "VAGRANT_CHECKPOINT_DISABLE=1", "vagrant", *words]
    return capture(as_root(command), timeout).stdout


def _add_box(work: str, name: str, accelerator: str) -> str:
    """Give the box to Vagrant, in place of an older one of that name, and its disk to libvirt's pool: its path there.

    Vagrant would copy the disk into the pool with the first machine, in the time that its boot takes; a second
    name for the same file spares that.  Under another name than Vagrant expects it would be copied all the same.
    """
    box, called = os.path.join(work, "strata.box"), box_name(name, accelerator)
    os.makedirs(vagrant_home(), exist_ok=True)
    os.makedirs(libvirt.pool_folder(), exist_ok=True)
    for old in os.listdir(libvirt.pool_folder()):
        if old.startswith(called):
            capture(as_root(["rm", "-f", "--", os.path.join(libvirt.pool_folder(), old)]))
    _vagrant("box", "add", "--force", "--no-tty", "--provider", "libvirt", "--name", called, f"file://{box}")
    capture(as_root(["rm", "-f", "--", box]))
    image = os.path.join(vagrant_home(), "boxes", called, "0", "libvirt", "box.img")
    name = f"{called}_vagrant_box_image_0_{int(os.stat(image).st_mtime)}_box.img"
    volume = os.path.join(libvirt.pool_folder(), name)
    capture(as_root(["ln", "--", image, volume]))
    return volume
