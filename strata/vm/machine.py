"""The life of one virtual machine: made by Vagrant, started by virsh or from a snapshot, and taken down."""

import json
import os
import socket
import time
from hashlib import sha256

from strata.host import capacity
from strata.host.context import Context
from strata.util import paths, run
from strata.util.data_types import Fields, Image, WantedMachine
from strata.util.errors import UserError
from strata.util.files import read_json, remove_tree, write_json, write_text
from strata.util.process import as_root, capture, wait_for
from strata.util.progress import once, say, step
from strata.util.timeouts import stretched
from strata.vm import (
    acceleration,
    applied,
    domain,
    hugepages,
    libvirt,
    passthrough,
    settings,
    snapshot,
    ssh,
    vagrant_box,
)

ATTEMPTS = 3
# Seconds within which a machine must boot and answer, by accelerator.
PATIENCE = {"kvm": 180, "tcg": 480}


class Machine:
    """The machine of a system (context) with the vm layer's settled options.

    warmup: by the name of each layer above, what is run in the machine before it is saved, or else once it is up.
    """

    def __init__(
        self,
        options: Fields,
        context: Context,
        image: Image,
        warmup: dict[str, list[list[str]]] | None = None,
    ) -> None:
        self.options, self.context, self.image = options, context, image
        self.warmup = warmup or {}
        self.folder = context.folder
        # What of its profile the machine cannot have here: key → why.
        self.refused: dict[str, str] = {}
        self.booted: Fields = {"attempts": None, "boot_seconds": None}

    def up(self) -> Fields:
        """Bring the machine up, fresh; returns the facts of ``system.vm`` (docs/files.md).  Raises UserError."""
        owner = run.owner()
        with once():
            wanted = self.wanted = self.prepare()
        # A cell without a workflow around it has no later system that a snapshot would serve; and what a device holds
        # cannot be saved.
        keeps = (
            self.options.get("fresh") == "snapshot"
            and owner["pid"] != os.getpid()
            and not wanted["passthrough"]
        )
        restored = None
        if keeps:
            with once():
                name = self._see_snapshot(wanted, owner)
            restored = self._restore(name, owner)
        else:
            self._boot(wanted)
        with once():
            if not keeps:
                self._warm()
            seen = applied.at(self.folder, wanted, self.options["settings"], self.refused)
        return {
            "accelerator": self.options["accelerator"],
            "accelerator_reason": acceleration.known()["accelerator_reason"],
            "profile": self.options["profile"],
            "started": "snapshot" if keeps else "boot",
            **self.booted,
            "restore_seconds": restored,
            **seen,
        }

    def prepare(self) -> WantedMachine:
        """Make what the machine stands on: network, storage pool, huge pages, the way in.

        What several equal machines share is made with the first of them, for all.
        Returns the machine's settings, which Vagrant reads in its folder.
        """
        if self.options["accelerator"] is None:
            raise UserError(
                "whether KVM runs a guest was not tested yet: run `python3 -m strata image`"
            )
        box, part, of = (
            vagrant_box.require(self.image["recipe"]),
            self.context.part,
            self.context.of,
        )
        every = self._resolved()
        decides = json.dumps(
            [self.options, every[part], part, of, box["box"], box["host_key"]], sort_keys=True
        )
        name = f"{paths.prefix()}-{sha256(decides.encode()).hexdigest()[:8]}"
        libvirt.start_daemon()
        if part == 0:
            libvirt.remove_domains()
            subnet = libvirt.bring_up(of)
            complaint = hugepages.reserve(every, self.context) if every[0]["huge_pages"] else None
        else:
            first: WantedMachine = read_json(os.path.join(self.context.first, "vm.json"))
            subnet, complaint = first["subnet"], first["huge_pages_refused"]
        if complaint:
            self.refused["huge_pages"] = complaint
        mac, address = libvirt.card_address(subnet, part)
        wanted: WantedMachine = {
            **every[part],
            "huge_pages": every[part]["huge_pages"] and not complaint,
            "huge_pages_refused": complaint,
            "name": name,
            "box": box["box"],
            "data_disk": f"{name}-data.img",
            # The same for the domain that was saved and the restored one.
            "console": vagrant_box.place("consoles", f"{name}.log"),
            "home": paths.prefix(),
            "subnet": subnet,
            "mac": mac,
            "address": address,
        }
        ssh.write(self.folder, address, os.path.join(box["folder"], "key"), box["host_key"])
        write_json(os.path.join(self.folder, "vm.json"), wanted)
        return wanted

    def _resolved(self) -> list[WantedMachine]:
        """What follows for each of the equal machines from the profile and the host; fills `refused`."""
        of, accelerator, profile = (
            self.context.of,
            self.options["accelerator"],
            dict(self.options["settings"]),
        )
        complaints = [
            found
            for device in profile["passthrough"]
            if (found := passthrough.complaint(device, accelerator))
        ]
        if profile["passthrough"] and of > 1:
            complaints = ["a device can be in one machine only"]
        if complaints:
            self.refused |= dict.fromkeys(("passthrough", "card"), "; ".join(complaints))
            profile |= {"passthrough": [], "card": None}
        memory, topology = capacity.facts()["memory_bytes"], capacity.topology()
        every = [
            settings.resolve(profile, topology, memory, accelerator, part, of, self.context.mask)
            for part in range(of)
        ]
        each, there = every[0]["memory_mib"], memory // settings.MIB
        if of > 1 and of * each > there:
            key = f"vm.profiles.{self.options['profile']}.memory"
            much = f"{of} machines of {each} MiB do not fit in {there} MiB"
            raise UserError(f"config.yaml: {key}: {much}; give each less, or say host")
        return every

    def _see_snapshot(self, wanted: WantedMachine, owner: Fields) -> str:
        """See that a snapshot like this machine is there, be it by a boot; its name."""
        # In the name is what must be as it was.
        plain = "-".join(
            [wanted["name"], wanted["subnet"].split(".")[2], *["huge"] * wanted["huge_pages"]]
        )
        warm = "-".join([plain, *sorted(self.warmup)])

        def save(name: str) -> None:
            ssh.close(self.folder)
            with step("vm", "saving the machine, from which later ones are restored"):
                snapshot.save(name, owner, wanted["name"])

        if not snapshot.made(warm, owner):
            if not snapshot.made(plain, owner):
                self._boot(wanted)
                # A machine that goes on finds its data disk mounted, and what looks at it in the memory.
                applied.inside(self.folder)
                save(plain)
            if self.warmup:
                self._restore(plain, owner)
                self._warm()
                save(warm)
        return warm

    def _warm(self) -> None:
        """Do in the machine what layers above it want done once."""
        for name, commands in self.warmup.items():
            with step("vm", f"starting {name} in the machine"):
                for argv in commands:
                    ssh.run(self.folder, argv, timeout=PATIENCE[self.options["accelerator"]])

    def _restore(self, name: str, owner: Fields) -> float:
        """Restore a snapshot and set the machine's clock; returns the seconds to the first command's end."""
        begun = time.monotonic()
        snapshot.restore(name, owner)
        ssh.run(self.folder, ["date", "--utc", "--set", f"@{time.time():.3f}"], timeout=120)
        return round(time.monotonic() - begun, 3)

    def _boot(self, wanted: WantedMachine) -> None:
        """Make the machine and boot it; one that hangs or fails is removed and made again.

        Sets `booted`; its seconds are from the domain's start to the end of the first command.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with once(), step("vm", "making the machine with Vagrant"):
                    define(self.folder, wanted)
                begun = time.monotonic()
                with step("vm", f"booting the machine, attempt {attempt} of {ATTEMPTS}"):
                    libvirt.virsh("start", wanted["name"])
                    self._wait(wanted)
                    ssh.run(self.folder, ["true"], timeout=60)
                self.booted = {
                    "attempts": attempt,
                    "boot_seconds": round(time.monotonic() - begun, 3),
                }
                return
            except UserError as error:
                trouble = f"attempt {attempt} of {ATTEMPTS} to boot failed: {error}; its console: {wanted['console']}"
                say("vm", trouble)
                ssh.close(self.folder)
                libvirt.remove_domains(wanted["name"])
                forget_vagrant(self.folder)
        raise UserError(f"the virtual machine did not boot: {trouble}")

    def _wait(self, wanted: WantedMachine) -> None:
        """Wait until ssh answers.  Raises UserError where it will not."""
        patience = stretched(PATIENCE[self.options["accelerator"]])
        deadline = time.monotonic() + patience
        process = libvirt.process(wanted["name"])
        while not answers(wanted["address"]):
            if process is None or wait_for(process, 0.05):
                raise UserError("QEMU ended")
            # Emulated processors lose a race now and then when the kernel patches itself.
            with open(wanted["console"], errors="replace") as file:
                if "Kernel panic" in file.read():
                    raise UserError("the guest's kernel panicked")
            if time.monotonic() > deadline:
                raise UserError(f"no ssh answered within {patience:g} s")


def define(folder: str, wanted: WantedMachine) -> None:
    """Make the machine of a system's folder, whose settings are in it, with its data disk; it is not started."""
    os.makedirs(os.path.dirname(wanted["console"]), exist_ok=True)
    # What writes it is root's, and leaves it to whom it belongs.
    capture(
        as_root(["install", "-m", "0644", "-o", str(os.getuid()), "/dev/null", wanted["console"]])
    )
    # Sparse, with its file system made here, so that nothing is left to do in the guest.
    data = ["mke2fs", "-q", "-F", "-t", "ext4", "-L", applied.DATA_LABEL, "-m", "0"]
    data += [
        "-E",
        "lazy_itable_init=0,lazy_journal_init=0",
        vagrant_box.place("pool", wanted["data_disk"]),
    ]
    capture(as_root([*data, f"{wanted['data_disk_bytes'] // 1024}k"]), timeout=300)
    # Vagrant copies the disk of a box into the pool once, and takes for whole what is there.
    copy = f"{wanted['box']}{vagrant_box.COPY}"
    whole = vagrant_box.place("pool", f"{copy}.whole")
    if not os.path.exists(whole):
        vagrant_box.remove_volumes(copy)
    libvirt.virsh("pool-refresh", paths.prefix())
    variables = {
        "VAGRANT_HOME": vagrant_box.place("vagrant"),
        "VAGRANT_CWD": os.path.join(paths.PROJECT, "vagrant"),
        "VAGRANT_DOTFILE_PATH": os.path.join(folder, "vagrant"),
        "VAGRANT_CHECKPOINT_DISABLE": "1",
        "STRATA_VM": os.path.join(folder, "vm.json"),
    }
    command = ["env", *(f"{key}={value}" for key, value in variables.items())]
    # If this process is killed, Vagrant must not go on and define a machine behind the back of who cleans up.
    command += [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "vagrant",
        "up",
        "--no-tty",
        "--provider",
        "libvirt",
    ]
    capture(as_root(command), timeout=600)
    write_text(whole, "")
    defined = libvirt.virsh("dumpxml", "--inactive", wanted["name"])
    libvirt.create("define", domain.tune(defined, wanted["extra"]))


def answers(address: str) -> bool:
    """Whether the ssh of a machine says its name."""
    try:
        with socket.create_connection((address, 22), timeout=1) as connection:
            connection.settimeout(10)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def remove(folder: str) -> None:
    """Remove the machine of a system's folder, its volumes and its network; it may be called twice."""
    ssh.close(folder)
    libvirt.start_daemon()
    libvirt.sweep()
    forget_vagrant(folder)


def forget_vagrant(folder: str) -> None:
    """Vagrant lists every machine in an index; ours are gone before it could look."""
    index = vagrant_box.place("vagrant", "data", "machine-index")
    for path in (os.path.join(folder, "vagrant"), index):
        remove_tree(path)
