"""A light machine: QEMU's microvm, which boots the image's kernel itself, from start to the way in.

It is :class:`strata.vm.machine.Machine` with another way to be started: neither firmware nor PCI, and a first program
(``strata/image/light-init.sh``) in place of a service manager.  libvirt knows no such machine, so QEMU is started
here, in a control group beside those of containers; the network is libvirt's all the same, as a full machine's is.
"""

import itertools
import os
import re
import socket
import time

from strata.base import places
from strata.base.errors import UserError
from strata.base.patience import stretched
from strata.base.process import as_root, capture
from strata.host import addresses, cgroups
from strata.host.observe import NOT_AVAILABLE
from strata.vm import disk, libvirt, look
from strata.vm.acceleration import PROGRAM
from strata.vm.machine import PATIENCE, Machine, panicked
from strata.vm.settings import qemu_processor

TYPE = "microvm"
# QEMU's firmware for such machines, which leaves disks alone.  Some take SeaBIOS's in its place, that of Debian 13 say;
# it reads from disks, and waits for ever where these have a thread of their own under KVM.
FIRMWARE = "qboot.rom"
# How a processor shows the caches of the host's, as libvirt says it.
HOST_CACHES = ["host-cache-info=on", "l3-cache=off"]
# As libvirt starts it, but that it may become a process of its own first.
SANDBOX = "on,obsolete=deny,resourcecontrol=deny"


def tap(part: int) -> str:
    """Name of the tap device of the machine with this number (15 characters at most); it ends with QEMU."""
    return f"stvt{places.home_mark()[:8]}{part}"


def pid_file(folder: str) -> str:
    """The file that holds the id of QEMU's process, of a system's folder."""
    return os.path.join(folder, "qemu.pid")


def process_of(folder: str) -> int:
    """The id of QEMU's process.  Raises UserError where none was started."""
    text = capture(as_root(["cat", "--", pid_file(folder)]), check=False).stdout.strip()
    if not text.isdigit():
        raise UserError(f"{pid_file(folder)} names no process: QEMU was not started")
    return int(text)


def _file(path: str) -> str:
    """A path as a value of QEMU's options."""
    return path.replace(",", ",,")


def _drive(name: str, path: str, form: str, wanted: dict) -> list[str]:
    """A disk: its file, how that is read, and the device in the guest."""
    words = [f"id={name}", "if=none", f"format={form}", f"file={_file(path)}"]
    words += [f"cache={wanted['disk']['cache']}"] if wanted["disk"]["cache"] else []
    words += [f"aio={wanted['disk']['io']}"] if wanted["disk"]["io"] else []
    thread = ",iothread=disks" if wanted["extra"]["iothread"] else ""
    return ["-drive", ",".join(words), "-device", f"virtio-blk-device,drive={name}{thread}"]


def arguments(wanted: dict, folder: str) -> list[str]:
    """QEMU's command for the settings of a machine (:meth:`Light.settings`); a pure function."""
    accelerator = "kvm" if wanted["driver"] == "kvm" else "tcg"
    shape = wanted["topology"] or {"sockets": wanted["cpus"], "cores": 1, "threads": 1}
    memory = f"{wanted['memory_mib']}M"
    pages = f"memory-backend-memfd,id=memory,size={memory},hugetlb=on,hugetlbsize=2M,prealloc=on"
    net = f"tap,id=net,ifname={wanted['tap']},script=no,downscript=no"
    queues = wanted["extra"]["queues"]
    shown = HOST_CACHES if wanted["extra"]["host_caches"] else []
    network = f"strata.address={wanted['address']} strata.host={wanted['host']}"
    counter = [f"tsc_early_khz={wanted['counter_khz']}"] if wanted["counter_khz"] else []
    return [
        *[PROGRAM, "-name", f"{wanted['name']},debug-threads=on"],
        *["-machine", f"{TYPE},accel={accelerator}" + (",memory-backend=memory" if wanted["huge_pages"] else "")],
        *["-cpu", ",".join([qemu_processor(accelerator), *shown]), "-m", memory],
        *["-smp", ",".join([str(wanted["cpus"]), *(f"{key}={count}" for key, count in shape.items())])],
        *(["-object", pages] if wanted["huge_pages"] else []),
        *(["-object", "iothread,id=disks"] if wanted["extra"]["iothread"] else []),
        *["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"],
        *["-serial", f"file:{_file(wanted['console'])}"],
        *["-bios", FIRMWARE, "-kernel", wanted["kernel"], "-initrd", wanted["initrd"]],
        *["-append", " ".join([wanted["arguments"], *counter, network])],
        *_drive("root", root_disk(wanted), "qcow2", wanted),
        *_drive("data", os.path.join(libvirt.pool_folder(), wanted["data_disk"]), "raw", wanted),
        "-netdev",
        net + (",vhost=on" if wanted["extra"]["vhost"] else "") + (f",queues={queues}" if queues else ""),
        *["-device", f"virtio-net-device,netdev=net,mac={wanted['mac']}" + (",mq=on" if queues else "")],
        *["-sandbox", SANDBOX, "-daemonize", "-pidfile", pid_file(folder)],
    ]


def root_disk(wanted: dict) -> str:
    """The machine's own root disk: what differs from that of the image."""
    return os.path.join(libvirt.pool_folder(), f"{wanted['name']}.img")


def read(argv: list[str]) -> dict:
    """What QEMU was started with, from its process, as :func:`strata.vm.domain.read` tells it of a domain."""
    found: dict[str, list[dict[str, str]]] = {"-drive": [], "-device": [], "-object": []}
    caches = None
    for option, value in itertools.pairwise(argv):
        if option == "-cpu" and HOST_CACHES[0] in value.split(","):
            caches = "passthrough"
        if option in found:
            kind, _, rest = value.partition(",") if option != "-drive" else ("", "", value)
            pairs = (word.partition("=") for word in re.split(r"(?<!,),(?!,)", rest))
            found[option].append({"": kind, **{key: text for key, _, text in pairs}})
    threads = {device["drive"]: device.get("iothread") for device in found["-device"] if "drive" in device}
    return {
        "caches": caches,
        "huge_pages": any(one.get("hugetlb") == "on" for one in found["-object"]),
        "disks": [
            {"cache": one.get("cache"), "io": one.get("aio"), "iothread": threads.get(one["id"])}
            for one in found["-drive"]
        ],
        "iothreads": sum(one[""] == "iothread" for one in found["-object"]),
        "devices": [],
    }


def version() -> str:
    """The version of QEMU."""
    found = re.search(r"version ([\d.]+)", capture([PROGRAM, "--version"], check=False).stdout)
    return found[1] if found else NOT_AVAILABLE


def pin(process: int, affinity: dict[str, str] | None, others: str | None) -> None:
    """Put QEMU's threads where they belong: those of vCPUs by `affinity`, all `others` on these CPUs."""
    for task in sorted(os.listdir(f"/proc/{process}/task"), key=int):
        with open(f"/proc/{process}/task/{task}/comm") as file:
            vcpu = re.fullmatch(r"CPU (\d+)/(KVM|TCG)", file.read().strip())
        cpus = (affinity or {}).get(vcpu[1]) if vcpu else others
        if cpus:
            capture(as_root(["taskset", "--pid", "--cpu-list", cpus, task]))


def counter_khz(seconds: float = 0.1) -> int:
    """The rate of the host's time stamp counter, which is an emulated guest's as well, in thousands a second."""
    import ctypes
    import mmap

    # rdtsc; shl $32,%rdx; or %rdx,%rax; ret
    code = bytes.fromhex("0f31 48c1e220 4809d0 c3")
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
        page.write(code)
        place = ctypes.c_char.from_buffer(page)
        count = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(place))
        begun, first = time.monotonic_ns(), count()
        time.sleep(seconds)
        ended, last = time.monotonic_ns(), count()
        del place
    return round((last - first) * 1_000_000 / (ended - begun))


def answers(address: str, patience: float = 1.0) -> bool:
    """Whether the ssh of a machine says its name."""
    try:
        with socket.create_connection((address, 22), timeout=patience) as connection:
            connection.settimeout(10 * patience)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


class Light(Machine):
    """The light machine of a system (context) with the microvm layer's settled options."""

    def _disk(self) -> dict:
        assert self.context.image
        return disk.require(self.context.image["recipe"], disk.LIGHT)

    def _left_out(self, profile: dict) -> dict[str, str]:
        found = {}
        if profile["passthrough"]:
            found["passthrough"] = "a light machine has no PCI bus"
        if profile["iothread"] and self.options["accelerator"] != "kvm":
            found["iothread"] = "emulation does not offer it to devices without PCI"
        return found

    def settings(self, facts: dict) -> dict:
        """Everything that QEMU's command needs and that follows from the profile; fills `refused`."""
        own = {key: os.path.join(facts["folder"], key) for key in ("kernel", "initrd")}
        words = facts["arguments"][self.options["accelerator"]]
        base = facts["volume"]["path"]
        return {**super().settings(facts), **own, "arguments": words, "base": base, "tap": tap(self.context.part)}

    def prepare(self) -> tuple[dict, dict]:
        """Like the full machine's, with what the guest is told by the kernel's command line."""
        wanted, facts = super().prepare()
        wanted["host"] = addresses.member(wanted["subnet"], 1)
        # Without KVM's clock and without a timer by which it could be found, the guest has to be told.
        wanted["counter_khz"] = counter_khz() if self.options["accelerator"] == "tcg" else None
        return wanted, facts

    def first_command(self) -> list[str]:
        """Sets the clock, since the guest has none to read it from."""
        return ["date", "--utc", "--set", f"@{time.time():.3f}"]

    def _start(self, wanted: dict) -> None:
        base = ["-b", wanted["base"], "-F", "qcow2"]
        capture(as_root(["qemu-img", "create", "-q", "-f", "qcow2", *base, root_disk(wanted)]))
        os.makedirs(os.path.dirname(wanted["console"]), exist_ok=True)
        cgroups.make(self.context.id)
        command = as_root([*cgroups.enter(self.context.id), *arguments(wanted, self.folder)])
        done = capture(command, timeout=60, check=False)
        if done.returncode != 0:
            words = done.stderr.strip() or "it said nothing"
            raise UserError(f"QEMU did not start (exit code {done.returncode}): {words}")
        capture(as_root(["ip", "link", "set", wanted["tap"], "master", libvirt.bridge(), "up"]))
        process = process_of(self.folder)
        if wanted["affinity"] or wanted["extra"]["emulator"]:
            pin(process, wanted["affinity"], wanted["extra"]["emulator"])
        self._wait(wanted, process)

    def _wait(self, wanted: dict, process: int) -> None:
        """Wait until the machine can be reached.  Raises UserError where it will not."""
        patience = stretched(PATIENCE[self.options["accelerator"]])
        begun = looked = time.monotonic()
        while not answers(wanted["address"]):
            now = time.monotonic()
            trouble = None
            if not os.path.exists(f"/proc/{process}"):
                trouble = "QEMU ended"
            elif now - begun > patience:
                trouble = f"no ssh answered within {patience:g} s"
            elif now - looked > 2:
                trouble, looked = panicked(wanted["console"]), now
            if trouble:
                raise UserError(trouble)
            time.sleep(0.05)

    def _end(self, wanted: dict) -> None:
        cgroups.remove(self.context.id)
        super()._end(wanted)

    def _look(self, wanted: dict) -> dict:
        process = process_of(self.folder)
        with open(f"/proc/{process}/cmdline") as file:
            live = read(file.read().split("\0"))
        told = {"qemu": version(), "kernel": self._disk()["kernel"]}
        return look.at(self.folder, wanted, self.options["settings"], self.refused, live, process, told)
