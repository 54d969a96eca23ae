"""The life of one virtual machine: made by Vagrant, started by virsh or from a snapshot, and taken down."""

import json
import os
import socket
import time
from hashlib import sha256
from typing import cast

from strata.base import places, run
from strata.base.errors import UserError
from strata.base.files import read_json, write_json
from strata.base.patience import stretched
from strata.base.process import as_root, capture
from strata.base.progress import once, say, step
from strata.base.shapes import Fields, WantedMachine
from strata.host import capacity
from strata.host.context import Context
from strata.vm import acceleration, card, disk, domain, hugepages, libvirt, look, settings, snapshot, ssh

ATTEMPTS = 3
# Seconds within which a machine must boot and answer, by accelerator.
PATIENCE = {"kvm": 180, "tcg": 480}


class Machine:
    """The machine of a system (context) with the vm layer's settled options.

    warmup: by the name of each layer above, what is run in the machine before it is saved, or else once it is up.
    """

    def __init__(self, options: Fields, context: Context, warmup: dict[str, list[list[str]]] | None = None) -> None:
        self.options, self.context, self.warmup = options, context, warmup or {}
        self.folder = context.folder
        # What of its profile the machine cannot have here: key → why.
        self.refused: dict[str, str] = {}

    def up(self) -> Fields:
        """Bring the machine up, fresh; returns the facts of ``system.vm`` (docs/files.md).  Raises UserError."""
        owner = run.owner()
        with once():
            wanted = self.wanted = self.prepare()
        # A cell without a workflow around it has no later system that a snapshot would serve; and what a device holds
        # cannot be saved.
        keeps = self.options.get("fresh") == "snapshot" and owner["pid"] != os.getpid() and not wanted["passthrough"]
        restored = None
        if keeps:
            with once():
                name, booted = self._see_snapshot(wanted, owner)
            restored = self._restore(name, owner)
        else:
            booted = self._boot(wanted)
        with once():
            if not keeps:
                self._warm()
            seen = look.at(self.folder, wanted, self.options["settings"], self.refused)
        return {
            "accelerator": self.options["accelerator"],
            "accelerator_reason": acceleration.known()["accelerator_reason"],
            "profile": self.options["profile"],
            "started": "snapshot" if keeps else "boot",
            **(booted or {"attempts": None, "boot_seconds": None}),
            "restore_seconds": restored,
            **seen,
        }

    def prepare(self) -> WantedMachine:
        """Make what the machine stands on: network, storage pool, huge pages, the way in.

        What several equal machines share is made with the first of them, for all.
        Returns the machine's settings.
        """
        if self.options["accelerator"] is None:
            raise UserError("whether KVM runs a guest was not tested yet: run `python3 -m strata image`")
        assert self.context.image
        facts = disk.require(self.context.image["recipe"])
        wanted = self.settings(facts)
        libvirt.start_daemon()
        if self.context.part == 0:
            libvirt.remove_domains()
            wanted["subnet"] = libvirt.bring_up_network(self.context.of)
            libvirt.bring_up_pool()
            memory, complaint = self.context.of * wanted["memory_mib"], None
            if wanted["huge_pages"]:
                complaint = hugepages.reserve(memory, self.context, wanted["memory_by_node"])
            wanted["huge_pages_refused"] = complaint
        else:
            first: WantedMachine = read_json(os.path.join(self.context.first, "vm.json"))
            wanted["subnet"], wanted["huge_pages_refused"] = first["subnet"], first["huge_pages_refused"]
        if complaint := wanted["huge_pages_refused"]:
            wanted["huge_pages"], self.refused["huge_pages"] = False, complaint
        wanted["mac"], wanted["address"] = libvirt.card_address(wanted["subnet"], self.context.part)
        ssh.write(self.folder, wanted["address"], os.path.join(facts["folder"], "key"), facts["host_key"])
        write_json(os.path.join(self.folder, "vm.json"), wanted)
        return wanted

    def settings(self, facts: Fields) -> WantedMachine:
        """Everything that is said to Vagrant or to libvirt and that follows from the profile; fills `refused`."""
        part, of, accelerator = self.context.part, self.context.of, self.options["accelerator"]
        profile = dict(self.options["settings"])
        complaints = [found for device in profile["passthrough"] if (found := card.complaint(device, accelerator))]
        if profile["passthrough"] and of > 1:
            complaints = ["a device can be in one machine only"]
        if complaints:
            self.refused |= dict.fromkeys(("passthrough", "card"), "; ".join(complaints))
            profile |= {"passthrough": [], "card": None}
        memory, topology = capacity.facts()["memory_bytes"], capacity.topology()
        every = [settings.resolve(profile, topology, memory, accelerator, number, of) for number in range(of)]
        wanted = every[part]
        if of > 1 and of * wanted["memory_mib"] * settings.MIB > memory:
            raise UserError(
                f"config.yaml: vm.profiles.{self.options['profile']}.memory: {of} machines of {wanted['memory_mib']} "
                f"MiB do not fit in {memory // settings.MIB} MiB; give each less, or say host"
            )
        which = [part, of] if of > 1 else []
        decides = json.dumps([self.options, wanted, facts["box"], facts["host_key"], *which], sort_keys=True)
        key = sha256(decides.encode()).hexdigest()[:8]
        name = f"{libvirt.prefix()}-{key}"
        made = {
            **wanted,
            "key": key,
            "name": name,
            "memory_by_node": settings.memory_by_node(every),
            "box": facts["box"],
            "data_disk": f"{name}-data.img",
            # The same for the domain that was saved and the restored one.
            "console": os.path.join(places.home(), "vm", "consoles", f"{name}.log"),
            "home": libvirt.prefix(),
        }
        return cast(WantedMachine, made)

    def _see_snapshot(self, wanted: WantedMachine, owner: Fields) -> tuple[str, Fields | None]:
        """See that a snapshot like this machine is there: its name, and what :meth:`_boot` tells if it took a boot."""
        # In the name is what must be as it was.
        plain = "-".join([wanted["key"], wanted["subnet"].split(".")[2], *["huge"] * wanted["huge_pages"]])
        warm, booted = "-".join([plain, *sorted(self.warmup)]), None

        def save(name: str) -> None:
            ssh.close(self.folder)
            with step("vm", "saving the machine, from which later ones are restored"):
                snapshot.save(name, owner, wanted["name"])

        if snapshot.made(warm, owner):
            return warm, None
        if not snapshot.made(plain, owner):
            booted = self._boot(wanted)
            # A machine that goes on finds its data disk mounted, and what looks at it in the memory.
            look.inside(self.folder)
            save(plain)
        if self.warmup:
            self._restore(plain, owner)
            self._warm()
            save(warm)
        return warm, booted

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

    def _boot(self, wanted: WantedMachine) -> Fields:
        """Make the machine and boot it; one that hangs or fails is removed and made again.

        ``{attempts, boot_seconds}``: the seconds are from the domain's start to the end of the first command.
        """
        trouble = ""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with once(), step("vm", "making the machine with Vagrant"):
                    define(self.folder, wanted)
                begun = time.monotonic()
                with step("vm", f"booting the machine, attempt {attempt} of {ATTEMPTS}"):
                    libvirt.virsh("start", wanted["name"])
                    self._wait(wanted)
                    ssh.run(self.folder, ["true"], timeout=60)
                return {"attempts": attempt, "boot_seconds": round(time.monotonic() - begun, 3)}
            except UserError as error:
                trouble = str(error)
                words = f"attempt {attempt} of {ATTEMPTS} to boot failed: {trouble}; its console: {wanted['console']}"
                say("vm", words)
                ssh.close(self.folder)
                libvirt.remove_domains(wanted["name"])
                forget_vagrant(self.folder)
        raise UserError(f"the virtual machine did not boot in {ATTEMPTS} attempts: {trouble}")

    def _wait(self, wanted: WantedMachine) -> None:
        """Wait until ssh answers.  Raises UserError where it will not."""
        patience = stretched(PATIENCE[self.options["accelerator"]])
        begun = looked = time.monotonic()
        while not answers(wanted["address"]):
            now = time.monotonic()
            if now - begun > patience:
                raise UserError(f"no ssh answered within {patience:g} s")
            if now - looked > 2:
                looked = now
                # Emulated processors lose a race now and then when the kernel patches itself.
                with open(wanted["console"], errors="replace") as file:
                    if "Kernel panic" in file.read():
                        raise UserError("the guest's kernel panicked")
                if libvirt.process(wanted["name"]) is None:
                    raise UserError("QEMU ended")
            time.sleep(0.05)


def define(folder: str, wanted: WantedMachine) -> None:
    """Make the machine of a system's folder, whose settings are in it, with its data disk; it is not started."""
    os.makedirs(os.path.dirname(wanted["console"]), exist_ok=True)
    # What writes it is root's, and leaves it to whom it belongs.
    capture(as_root(["install", "-m", "0644", "-o", str(os.getuid()), "/dev/null", wanted["console"]]))
    _make_data_disk(wanted)
    project = os.path.dirname(os.path.realpath(os.path.join(places.PROJECT, "strata")))
    variables = {
        "VAGRANT_HOME": disk.vagrant_home(),
        "VAGRANT_CWD": os.path.join(project, "vagrant"),
        "VAGRANT_DOTFILE_PATH": os.path.join(folder, "vagrant"),
        "VAGRANT_CHECKPOINT_DISABLE": "1",
        "STRATA_VM": os.path.join(folder, "vm.json"),
    }
    command = ["env", *(f"{key}={value}" for key, value in variables.items())]
    # If this process is killed, Vagrant must not go on and define a machine behind the back of who cleans up.
    command += ["setpriv", "--pdeathsig", "KILL", "vagrant", "up", "--no-tty", "--provider", "libvirt"]
    # The first machine of an image has its disk copied.
    capture(as_root(command), timeout=600)
    defined = libvirt.virsh("dumpxml", "--inactive", wanted["name"])
    libvirt.create("define", domain.tune(defined, wanted["extra"]))


def _make_data_disk(wanted: WantedMachine) -> None:
    """The disk for data: sparse, with its file system made here, so that nothing is left to do in the guest."""
    path = os.path.join(disk.pool_folder(), wanted["data_disk"])
    make = ["mke2fs", "-q", "-F", "-t", "ext4", "-L", look.DATA_LABEL, "-m", "0"]
    make += ["-E", "lazy_itable_init=0,lazy_journal_init=0", path, f"{wanted['data_disk_bytes'] // 1024}k"]
    capture(as_root(make), timeout=300)
    libvirt.virsh("pool-refresh", libvirt.prefix())


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
    for path in (os.path.join(folder, "vagrant"), os.path.join(disk.vagrant_home(), "data", "machine-index")):
        capture(as_root(["rm", "-rf", "--", path]), check=False)
