"""The life of one virtual machine: Vagrant makes it, virsh starts, restores and removes it."""

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
from strata.util.process import as_root, capture, wait_for_process
from strata.util.progress import one_off, print_topic, report_step
from strata.util.timeouts import stretch
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
BOOT_TIMEOUT = {"kvm": 180, "tcg": 480}


class Machine:
    """The machine of a system (context) with the vm layer's resolved options and the image's disk.

    warmup: name of the layer above → commands that run in the machine once: before it is saved, or
    once it is up.

    Attributes: `wanted` is what Vagrant and libvirt get, once :meth:`prepare` resolved it;
    `refused` is key of the profile → why the machine cannot have that here; `booted` is
    ``{attempts, boot_seconds}`` of its boot, if any.
    """

    wanted: WantedMachine

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
        self.refused: dict[str, str] = {}
        self.booted: Fields = {"attempts": None, "boot_seconds": None}

    def up(self) -> Fields:
        """Bring the machine up, fresh; return the facts of ``system.vm`` (docs/files.md).

        Raises UserError.
        """
        owner = run.identify_run()
        with one_off():
            self.wanted = self.prepare()
        # A cell without a workflow around it has no later system for which a snapshot is worth its
        # time, and what a device holds cannot be saved.
        restores = self.options["fresh"] == "snapshot" and owner["pid"] != os.getpid()
        restores = restores and not self.wanted["passthrough"]
        restore_seconds = None
        if restores:
            with one_off():
                name = self._ensure_snapshot(owner)
            restore_seconds = self._restore(name, owner)
        else:
            self._boot()
        with one_off():
            if not restores:
                self._run_warmup()
            profile = self.options["settings"]
            seen = applied.observe_machine(self.folder, self.wanted, profile, self.refused)
        return {
            "accelerator": self.options["accelerator"],
            "accelerator_reason": acceleration.known_accelerator()["accelerator_reason"],
            "profile": self.options["profile"],
            "started": "snapshot" if restores else "boot",
            **self.booted,
            "restore_seconds": restore_seconds,
            **seen,
        }

    def prepare(self) -> WantedMachine:
        """Make what the machine needs: network, storage pool, huge pages, ssh configuration.

        Raises UserError.

        The first of several equal machines makes what they share.  Returns all that Vagrant and
        libvirt get, which Vagrant reads from the system's folder.
        """
        if self.options["accelerator"] is None:
            raise UserError(
                "whether KVM runs a guest was not tested yet: run `python3 -m strata image`"
            )
        part, of = self.context.part, self.context.parts
        box = vagrant_box.require_box(self.image["recipe"])
        machines = self._resolve_machines()
        # All that decides what the domain is: a snapshot is of a domain with this name.
        contents = [self.options, machines[part], part, of, box["box"], box["host_key"]]
        digest = sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:8]
        name = f"{paths.name_prefix()}-{digest}"
        libvirt.start_daemon()
        subnet, complaint = self._share_host(machines)
        if complaint:
            self.refused["huge_pages"] = complaint
        mac, address = libvirt.card_address(subnet, part)
        wanted: WantedMachine = {
            **machines[part],
            "huge_pages": machines[part]["huge_pages"] and not complaint,
            "huge_pages_refused": complaint,
            "name": name,
            "box": box["box"],
            "data_disk": f"{name}-data.img",
            # The same for the domain that was saved and the restored one.
            "console": vagrant_box.cache_path("consoles", f"{name}.log"),
            "home": paths.name_prefix(),
            "subnet": subnet,
            "mac": mac,
            "address": address,
        }
        key = os.path.join(box["folder"], "key")
        ssh.write_configuration(self.folder, address, key, box["host_key"])
        write_json(os.path.join(self.folder, "vm.json"), wanted)
        return wanted

    def _share_host(self, machines: list[WantedMachine]) -> tuple[str, str | None]:
        """Make what equal machines share, or read it from the first one's folder.

        Returns (subnet of the network, why there are no huge pages or None).
        """
        if self.context.part > 0:
            first: WantedMachine = read_json(os.path.join(self.context.first_folder, "vm.json"))
            return first["subnet"], first["huge_pages_refused"]
        libvirt.remove_domains()
        subnet = libvirt.create_network(self.context.parts)
        wants_pages = machines[0]["huge_pages"]
        return subnet, hugepages.reserve(machines, self.context) if wants_pages else None

    def _resolve_machines(self) -> list[WantedMachine]:
        """Return the settings of each of the equal machines; fills `refused`.

        Raises UserError where they do not fit in the host's memory.
        """
        of, profile = self.context.parts, dict(self.options["settings"])
        if complaint := self._passthrough_complaint():
            self.refused |= {"passthrough": complaint, "card": complaint}
            profile |= {"passthrough": [], "card": None}
        memory_bytes, topology = capacity.read_facts()["memory_bytes"], capacity.read_topology()
        accelerator, mask = self.options["accelerator"], self.context.mask
        machines = [
            settings.resolve(profile, topology, memory_bytes, accelerator, part, of, mask)
            for part in range(of)
        ]
        mib, available = machines[0]["memory_mib"], memory_bytes // settings.MIB
        if of > 1 and of * mib > available:
            raise UserError(
                f"config.yaml: vm.profiles.{self.options['profile']}.memory: {of} machines of "
                f"{mib} MiB do not fit in {available} MiB; give each less, or say host"
            )
        return machines

    def _passthrough_complaint(self) -> str | None:
        """Return why the machine cannot have the profile's devices; None where it can."""
        devices, accelerator = self.options["settings"]["passthrough"], self.options["accelerator"]
        if devices and self.context.parts > 1:
            return "a device can be in one machine only"
        complaints = [passthrough.complaint(device, accelerator) for device in devices]
        return "; ".join(filter(None, complaints)) or None

    def _ensure_snapshot(self, owner: Fields) -> str:
        """Return the name of this run's snapshot of this machine, warmed up.

        A missing one is made by a boot.
        """
        snapshot.remove_orphans()
        # A snapshot fits no other network, and no other kind of memory.
        names = [self.wanted["name"], self.wanted["subnet"].split(".")[2]]
        if self.wanted["huge_pages"]:
            names.append("huge")
        plain = "-".join(names)
        warm = "-".join([plain, *sorted(self.warmup)])
        if snapshot.exists(warm, owner):
            return warm
        if not snapshot.exists(plain, owner):
            self._boot()
            # A restored machine has its data disk mounted, and what looks at it in memory.
            applied.prepare_guest(self.folder)
            self._save(plain, owner)
        if self.warmup:
            self._restore(plain, owner)
            self._run_warmup()
            self._save(warm, owner)
        return warm

    def _save(self, name: str, owner: Fields) -> None:
        """Save the machine as a snapshot of this run; it stops."""
        ssh.close(self.folder)
        with report_step("vm", "saving the machine, from which later ones are restored"):
            snapshot.save(name, owner, self.wanted["name"])

    def _run_warmup(self) -> None:
        """Run in the machine what layers above it want run once."""
        for name, commands in self.warmup.items():
            with report_step("vm", f"starting {name} in the machine"):
                for argv in commands:
                    ssh.run(self.folder, argv, timeout=BOOT_TIMEOUT[self.options["accelerator"]])

    def _restore(self, name: str, owner: Fields) -> float:
        """Restore a snapshot and set the machine's clock.

        Returns the seconds to the end of the first command.
        """
        started = time.monotonic()
        snapshot.restore(name, owner)
        ssh.run(self.folder, ["date", "--utc", "--set", f"@{time.time():.3f}"], timeout=120)
        return round(time.monotonic() - started, 3)

    def _boot(self) -> None:
        """Make the machine and boot it; one that hangs or fails is removed and made again.

        Raises UserError.

        Sets `booted`; its seconds are from the domain's start to the end of the first command.
        """
        name, console = self.wanted["name"], self.wanted["console"]
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with one_off(), report_step("vm", "making the machine with Vagrant"):
                    define(self.folder, self.wanted)
                started = time.monotonic()
                with report_step("vm", f"booting the machine, attempt {attempt} of {ATTEMPTS}"):
                    libvirt.virsh("start", name)
                    self._wait_for_ssh()
                    ssh.run(self.folder, ["true"], timeout=60)
                seconds = round(time.monotonic() - started, 3)
                self.booted = {"attempts": attempt, "boot_seconds": seconds}
                return
            except UserError as error:
                reason = (
                    f"attempt {attempt} of {ATTEMPTS} to boot failed: {error}; its console: "
                    f"{console}"
                )
                print_topic("vm", reason)
                ssh.close(self.folder)
                libvirt.remove_domains(name)
                forget_vagrant(self.folder)
        raise UserError(f"the virtual machine did not boot: {reason}")

    def _wait_for_ssh(self) -> None:
        """Wait until ssh answers.

        Raises UserError where QEMU ends, the kernel panics, or the time is over.
        """
        timeout = stretch(BOOT_TIMEOUT[self.options["accelerator"]])
        deadline = time.monotonic() + timeout
        process = libvirt.domain_process(self.wanted["name"])
        while not answers_ssh(self.wanted["address"]):
            if process is None or wait_for_process(process, 0.05):
                raise UserError("QEMU ended")
            # Emulated processors lose a race now and then when the kernel patches itself.
            with open(self.wanted["console"], errors="replace") as file:
                if "Kernel panic" in file.read():
                    raise UserError("the guest's kernel panicked")
            if time.monotonic() > deadline:
                raise UserError(f"no ssh answered within {timeout:g} s")


def define(folder: str, wanted: WantedMachine) -> None:
    """Make the machine of a system's folder, which holds its vm.json, with its data disk.

    It is not started.
    """
    _make_console(wanted["console"])
    _make_data_disk(wanted)
    # Vagrant copies the disk of a box into the pool once, and takes a copy that is there for
    # complete.
    copy = f"{wanted['box']}{vagrant_box.COPY}"
    complete = vagrant_box.cache_path("pool", f"{copy}.whole")
    if not os.path.exists(complete):
        vagrant_box.remove_volumes(copy)
    libvirt.virsh("pool-refresh", paths.name_prefix())
    _vagrant_up(folder)
    write_text(complete, "")
    defined = libvirt.virsh("dumpxml", "--inactive", wanted["name"])
    libvirt.create_object("define", domain.tune(defined, wanted["extra"]))


def _make_console(path: str) -> None:
    """Make the file of the guest's console, which this user reads while root's QEMU writes it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    owner = ["-m", "0644", "-o", str(os.getuid())]
    capture(as_root(["install", *owner, "/dev/null", path]))


def _make_data_disk(wanted: WantedMachine) -> None:
    """Make the sparse data disk with a complete file system: the guest initialises nothing."""
    path, kib = (
        vagrant_box.cache_path("pool", wanted["data_disk"]),
        wanted["data_disk_bytes"] // 1024,
    )
    options = ["-q", "-F", "-t", "ext4", "-L", applied.DATA_LABEL, "-m", "0"]
    options += ["-E", "lazy_itable_init=0,lazy_journal_init=0"]
    capture(as_root(["mke2fs", *options, path, f"{kib}k"]), timeout=300)


def _vagrant_up(folder: str) -> None:
    """Let Vagrant define the machine whose settings are in the system's folder."""
    variables = {
        "VAGRANT_HOME": vagrant_box.cache_path("vagrant"),
        "VAGRANT_CWD": os.path.join(paths.PROJECT, "vagrant"),
        "VAGRANT_DOTFILE_PATH": os.path.join(folder, "vagrant"),
        "VAGRANT_CHECKPOINT_DISABLE": "1",
        "STRATA_VM": os.path.join(folder, "vm.json"),
    }
    # If this process is killed, Vagrant must not go on and define a machine while another process
    # cleans up.
    argv = ["env", *(f"{name}={value}" for name, value in variables.items())]
    argv += ["setpriv", "--pdeathsig", "KILL"]
    argv += ["vagrant", "up", "--no-tty", "--provider", "libvirt"]
    capture(as_root(argv), timeout=600)


def answers_ssh(address: str) -> bool:
    """Return whether a machine's ssh answers at an address."""
    try:
        with socket.create_connection((address, 22), timeout=1) as connection:
            connection.settimeout(10)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def remove_machine(folder: str) -> None:
    """Remove the machine of a system's folder, its volumes and its network.

    It may be called twice.
    """
    ssh.close(folder)
    libvirt.start_daemon()
    libvirt.remove_all()
    forget_vagrant(folder)


def forget_vagrant(folder: str) -> None:
    """Remove what Vagrant remembers of a machine: its folder, and the index of all machines."""
    index = vagrant_box.cache_path("vagrant", "data", "machine-index")
    for path in (os.path.join(folder, "vagrant"), index):
        remove_tree(path)
