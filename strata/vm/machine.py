"""The life cycle of one virtual machine: Vagrant defines it, virsh starts and restores it."""

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
from strata.util.process import capture_output, wait_for_process, wrap_as_root
from strata.util.progress import count_one_off_time, print_topic_message, report_step
from strata.util.timeouts import scale_timeout
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

# The number of attempts to boot a machine before its cell fails.
ATTEMPTS = 3
# Seconds within which a machine must boot and answer, by accelerator.
BOOT_TIMEOUT = {"kvm": 180, "tcg": 480}


class Machine:
    """One virtual machine of a system, from its definition to its removal.

    options: the resolved options of the layer vm.
    context: the context of the system.
    image: the image whose Vagrant box contains the disk.
    warmup: name of the layer above → commands that run in the machine once: before the machine is
    saved as a snapshot, or after its boot.

    Attributes: `wanted` are the settings that Vagrant and libvirt get, set by :meth:`start`;
    `refused` is key of the profile → why the machine cannot have that setting here; `booted` is
    ``{attempts, boot_seconds}`` of the boot, both None without a boot.
    """

    wanted: WantedMachine

    def __init__(
        self,
        options: Fields,
        context: Context,
        image: Image,
        warmup: dict[str, list[list[str]]] | None = None,
    ) -> None:
        """Store the arguments, which the class describes; the machine is not defined yet."""
        self.options = options
        self.context = context
        self.image = image
        self.warmup = warmup or {}
        self.folder = context.folder
        self.refused: dict[str, str] = {}
        self.booted: Fields = {"attempts": None, "boot_seconds": None}

    def start(self) -> Fields:
        """Boot the machine or restore it from a snapshot, and return ``system.vm`` for the records.

        docs/files.md describes the keys.  Sets `wanted`, `refused` and `booted`.  A run's first
        machine may be booted only to save a snapshot, and then be restored from it.
        The journal must already hold the machine's cleanup.
        Raises UserError if the machine does not start, or may run on other CPUs than the
        experiment's.
        """
        owner = run.identify_run_process()
        with count_one_off_time():
            self.wanted = self.prepare_machine()
        uses_snapshot = (
            self.options["fresh"] == "snapshot"
            # A cell that runs outside of a workflow has no later system to use the snapshot.
            and owner["pid"] != os.getpid()
            # The state of a device that is passed through cannot be saved.
            and not self.wanted["passthrough"]
        )
        restore_seconds = None
        if uses_snapshot:
            with count_one_off_time():
                snapshot_name = self._ensure_snapshot(owner)
            restore_seconds = self._restore_snapshot(snapshot_name, owner)
        else:
            self._boot_machine()
        with count_one_off_time():
            if not uses_snapshot:
                # A snapshot was saved after the warm-up.
                self._run_warmup()
            profile = self.options["settings"]
            observed_facts = applied.observe_machine(
                self.folder, self.wanted, profile, self.refused
            )
        return {
            "accelerator": self.options["accelerator"],
            "accelerator_reason": acceleration.read_known_accelerator()["accelerator_reason"],
            "profile": self.options["profile"],
            "started": "snapshot" if uses_snapshot else "boot",
            **self.booted,
            "restore_seconds": restore_seconds,
            **observed_facts,
        }

    def prepare_machine(self) -> WantedMachine:
        """Prepare the host for the machine, and return the settings for Vagrant and libvirt.

        The first of several equal machines prepares network, storage pool and huge pages for all.
        Writes the ssh configuration and vm.json into the system's folder; vagrant/Vagrantfile reads
        vm.json.  Adds to `refused`.
        The machine's name ends with a hash of all inputs of its domain, and snapshots are found by
        the name.  An input that is not hashed would let a machine be restored with old settings.
        Raises UserError if KVM was not tried yet, the box is missing, or the host lacks memory.
        """
        if self.options["accelerator"] is None:
            raise UserError(
                "whether KVM runs a guest was not tested yet: run `python3 -m strata image`"
            )
        part = self.context.part
        part_count = self.context.part_count
        box = vagrant_box.require_box(self.image["recipe"])
        machines = self._resolve_all_machines()
        domain_inputs = [
            self.options, machines[part], part, part_count, box["box"], box["host_key"],
        ]  # fmt: skip
        digest = sha256(json.dumps(domain_inputs, sort_keys=True).encode()).hexdigest()[:8]
        name = f"{paths.get_name_prefix()}-{digest}"
        libvirt.start_libvirt_daemon()
        subnet, refusal = self._prepare_shared_host(machines)
        if refusal:
            self.refused["huge_pages"] = refusal
        mac, address = libvirt.compute_interface_addresses(subnet, part)
        machine_settings: WantedMachine = {
            **machines[part],
            "huge_pages": machines[part]["huge_pages"] and not refusal,
            "huge_pages_refused": refusal,
            "name": name,
            "box": box["box"],
            "data_disk": f"{name}-data.img",
            # This path must be the same for the saved domain and the restored one.
            "console": vagrant_box.get_machine_cache_path("consoles", f"{name}.log"),
            "home": paths.get_name_prefix(),
            "subnet": subnet,
            "mac": mac,
            "address": address,
        }
        key = os.path.join(box["folder"], "key")
        ssh.write_ssh_configuration(self.folder, address, key, box["host_key"])
        write_json(os.path.join(self.folder, "vm.json"), machine_settings)
        return machine_settings

    def _prepare_shared_host(self, machines: list[WantedMachine]) -> tuple[str, str | None]:
        """Return (the machines' network, why they have no huge pages or None).

        machines: the settings of all equal machines.
        The network is ADDRESS/24.  The first machine removes all domains of Strata, creates the
        network, and reserves huge pages if the settings request them.  Later machines read the
        first one's vm.json, which must be complete.
        """
        if self.context.part > 0:
            first: WantedMachine = read_json(os.path.join(self.context.first_folder, "vm.json"))
            return first["subnet"], first["huge_pages_refused"]
        libvirt.remove_domains()
        subnet = libvirt.create_network(self.context.part_count)
        refusal = None
        if machines[0]["huge_pages"]:
            refusal = hugepages.reserve_huge_pages(machines, self.context)
        return subnet, refusal

    def _resolve_all_machines(self) -> list[WantedMachine]:
        """Return the settings of each of the equal machines, in the order of their numbers.

        Adds to `refused` the devices that no machine can have; the machines start without them.
        Raises UserError if the machines do not fit in the host's memory.
        """
        machine_count = self.context.part_count
        profile = dict(self.options["settings"])
        if refusal := self._explain_refused_devices():
            self.refused |= {"passthrough": refusal, "card": refusal}
            profile |= {"passthrough": [], "card": None}
        memory_bytes = capacity.read_host_facts()["memory_bytes"]
        machines = [
            settings.resolve_machine_settings(
                profile,
                capacity.read_topology(),
                memory_bytes,
                self.options["accelerator"],
                part=part,
                machine_count=machine_count,
                mask=self.context.mask,
            )
            for part in range(machine_count)
        ]
        machine_mib = machines[0]["memory_mib"]
        host_mib = memory_bytes // settings.MIB
        if machine_count > 1 and machine_count * machine_mib > host_mib:
            raise UserError(
                f"config.yaml: vm.profiles.{self.options['profile']}.memory: {machine_count} "
                f"machines of {machine_mib} MiB do not fit in {host_mib} MiB; give each less, or "
                "say host"
            )
        return machines

    def _explain_refused_devices(self) -> str | None:
        """Return why the machine cannot have the devices of its profile; None if it can.

        If one device is refused, the machine gets none of them.
        """
        devices = self.options["settings"]["passthrough"]
        if devices and self.context.part_count > 1:
            return "a device can be in one machine only"
        accelerator = self.options["accelerator"]
        reasons = [passthrough.explain_unusable_device(device, accelerator) for device in devices]
        return "; ".join(filter(None, reasons)) or None

    def _ensure_snapshot(self, owner: Fields) -> str:
        """Return the name of this run's snapshot of this machine after the warm-up; save it first.

        owner: the process of the run.
        If the snapshot is missing, the machine boots, warms up and is saved, which stops it.  The
        state before the warm-up is saved, too, for environments with other layers in the machine.
        Raises UserError if the machine does not boot or cannot be saved.
        """
        snapshot.remove_orphaned_snapshots()
        # A snapshot fits only its own network and its own kind of memory.
        third_subnet_byte = self.wanted["subnet"].split(".")[2]
        name_parts = [self.wanted["name"], third_subnet_byte]
        if self.wanted["huge_pages"]:
            name_parts.append("huge")
        booted_name = "-".join(name_parts)
        # Without a warm-up, both names are equal.
        warm_name = "-".join([booted_name, *sorted(self.warmup)])
        if snapshot.has_snapshot(warm_name, owner):
            return warm_name
        if not snapshot.has_snapshot(booted_name, owner):
            self._boot_machine()
            # A restored machine then has its data disk mounted, and the programs of the guest's
            # script in its page cache.
            applied.prepare_guest(self.folder)
            self._save_snapshot(booted_name, owner)
        if self.warmup:
            self._restore_snapshot(booted_name, owner)
            self._run_warmup()
            self._save_snapshot(warm_name, owner)
        return warm_name

    def _save_snapshot(self, name: str, owner: Fields) -> None:
        """Save the machine as a snapshot for this run, which stops the machine.

        name: the name of the snapshot.
        owner: the process of the run, ``{pid, start}``.
        Raises UserError if the machine cannot be saved.
        """
        # A restored machine would not recognize this ssh connection.
        ssh.close_ssh_connection(self.folder)
        with report_step("vm", "saving the machine, from which later ones are restored"):
            snapshot.save_snapshot(name, owner, self.wanted["name"])

    def _run_warmup(self) -> None:
        """Run the warm-up commands of the layer above in the machine.

        Raises UserError if a command fails, or takes longer than a boot may.
        """
        for name, commands in self.warmup.items():
            with report_step("vm", f"starting {name} in the machine"):
                for argv in commands:
                    ssh.run_in_machine(
                        self.folder, argv, timeout=BOOT_TIMEOUT[self.options["accelerator"]]
                    )

    def _restore_snapshot(self, name: str, owner: Fields) -> float:
        """Restore the machine from a snapshot of this run, and set its clock to the host's.

        name: the name of the snapshot.
        owner: the process of the run, ``{pid, start}``.
        Returns the seconds from the beginning to the end of the machine's first command, rounded to
        milliseconds.
        Raises UserError if the machine is not restored, or does not answer.
        """
        start = time.monotonic()
        snapshot.restore_snapshot(name, owner)
        # The machine's clock stopped when the machine was saved.
        set_clock = ["date", "--utc", "--set", f"@{time.time():.3f}"]
        ssh.run_in_machine(self.folder, set_clock, timeout=120)
        return round(time.monotonic() - start, 3)

    def _boot_machine(self) -> None:
        """Define the machine and boot it; remove it and try again if that fails.

        The method makes at most :data:`ATTEMPTS` attempts, and prints the reason of each failure.
        Sets `booted`, whose seconds are from the domain's start to the end of the first command.
        Raises UserError after the last attempt.
        """
        name = self.wanted["name"]
        console = self.wanted["console"]
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with count_one_off_time(), report_step("vm", "making the machine with Vagrant"):
                    define_machine(self.folder, self.wanted)
                started = time.monotonic()
                with report_step("vm", f"booting the machine, attempt {attempt} of {ATTEMPTS}"):
                    libvirt.run_virsh("start", name)
                    self._wait_for_ssh()
                    ssh.run_in_machine(self.folder, ["true"], timeout=60)
                seconds = round(time.monotonic() - started, 3)
                self.booted = {"attempts": attempt, "boot_seconds": seconds}
                return
            except UserError as error:
                reason = f"attempt {attempt} of {ATTEMPTS} to boot failed: {error}"
                reason += f"; its console: {console}"
                print_topic_message("vm", reason)
                # The next attempt must find nothing of this one.
                ssh.close_ssh_connection(self.folder)
                libvirt.remove_domains(name)
                remove_vagrant_files(self.folder)
        raise UserError(f"the virtual machine did not boot: {reason}")

    def _wait_for_ssh(self) -> None:
        """Wait until the machine's ssh server answers.

        Raises UserError if QEMU ends, the guest's kernel panics, or the boot exceeds its time
        limit.
        """
        timeout = scale_timeout(BOOT_TIMEOUT[self.options["accelerator"]])
        deadline = time.monotonic() + timeout
        pid = libvirt.find_domain_process(self.wanted["name"])
        while not _is_ssh_answering(self.wanted["address"]):
            # This wait of 0.05 s also paces the loop.
            if pid is None or wait_for_process(pid, 0.05):
                raise UserError("QEMU ended")
            # Under emulation, the kernel sometimes loses a race when it patches its own code.
            with open(self.wanted["console"], errors="replace") as file:
                if "Kernel panic" in file.read():
                    raise UserError("the guest's kernel panicked")
            if time.monotonic() > deadline:
                raise UserError(f"no ssh answered within {timeout:g} s")


def define_machine(folder: str, machine_settings: WantedMachine) -> None:
    """Define the machine in libvirt, with its console and data disk, without starting it.

    folder: the folder of the system, whose vm.json Vagrant reads.
    machine_settings: the content of vm.json.
    The first definition from a box copies the box's disk into the storage pool.  A file with the
    extension ``.whole`` marks a complete copy, and is removed together with the copy.
    Raises UserError if Vagrant or libvirt fails; what was done until then is not undone.
    """
    _create_console(machine_settings["console"])
    _create_data_disk(machine_settings)
    # Vagrant copies the disk of a box into the pool once, and then assumes that an existing copy is
    # complete.
    copy_name = f"{machine_settings['box']}{vagrant_box.COPY}"
    mark_path = vagrant_box.get_machine_cache_path("pool", f"{copy_name}.whole")
    if not os.path.exists(mark_path):
        vagrant_box.remove_volumes(copy_name)
    libvirt.run_virsh("pool-refresh", paths.get_name_prefix())
    _run_vagrant(folder)
    write_text(mark_path, "")
    # The definition is replaced by one that adds the settings that Vagrant cannot write.
    xml = libvirt.run_virsh("dumpxml", "--inactive", machine_settings["name"])
    libvirt.create_libvirt_object(
        "define", domain.add_domain_settings(xml, machine_settings["extra"])
    )


def _create_console(path: str) -> None:
    """Create an empty file for the output of the guest's console.

    path: the path of the file, which is emptied if it exists.
    QEMU writes the file as root; this user owns it, and so can read it.  After a failed boot, a
    message names it.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    owner = ["-m", "0644", "-o", str(os.getuid())]
    capture_output(wrap_as_root(["install", *owner, "/dev/null", path]))


def _create_data_disk(machine_settings: WantedMachine) -> None:
    """Create a machine's sparse data disk in the storage pool, with an ext4 file system.

    machine_settings: the settings of the machine; `data_disk` and `data_disk_bytes` are read.
    An earlier disk of this name is overwritten.  applied.prepare_guest mounts the disk by its
    label.  The file system is initialized completely here: otherwise the guest's kernel would do so
    during a measurement.
    """
    path = vagrant_box.get_machine_cache_path("pool", machine_settings["data_disk"])
    kib = machine_settings["data_disk_bytes"] // 1024
    # -m 0: no blocks are reserved for root, as whom all programs run anyway.
    options = ["-q", "-F", "-t", "ext4", "-L", applied.DATA_LABEL, "-m", "0"]
    options += ["-E", "lazy_itable_init=0,lazy_journal_init=0"]
    capture_output(wrap_as_root(["mke2fs", *options, path, f"{kib}k"]), timeout=300)


def _run_vagrant(folder: str) -> None:
    """Run Vagrant as root to define a machine by the file vm.json in the system's folder.

    folder: the folder of the system.
    vagrant/Vagrantfile reads STRATA_VM, and ends `vagrant up` before the machine starts.
    :func:`remove_vagrant_files` removes what Vagrant leaves in the system's folder.
    Raises UserError if Vagrant fails.
    """
    variables = {
        "VAGRANT_HOME": vagrant_box.get_machine_cache_path("vagrant"),
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
    capture_output(wrap_as_root(argv), timeout=600)


def _is_ssh_answering(address: str) -> bool:
    """Return whether an ssh server answers at an IP address, within about 10 seconds.

    address: the IP address; the port is 22.
    A port that is open is not enough: the server must send the beginning of ssh's greeting.
    """
    try:
        with socket.create_connection((address, 22), timeout=1) as connection:
            # An emulated machine takes seconds to start the server's process.
            connection.settimeout(10)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def remove_machine(folder: str) -> None:
    """Remove all of Strata's machines, with volumes, network and storage pool, from libvirt.

    folder: the folder of a system, with the ssh configuration.  Vagrant's files in it are removed,
    too.  libvirt is started if it does not answer.  A second call is not an error.
    The journal's cleanups of the kind "machine" call this, once for each of several equal machines.
    """
    ssh.close_ssh_connection(folder)
    libvirt.start_libvirt_daemon()
    libvirt.remove_libvirt_objects()
    remove_vagrant_files(folder)


def remove_vagrant_files(folder: str) -> None:
    """Remove Vagrant's files about the machine of a system, and its index of all machines.

    folder: the folder of the system.
    With these files, Vagrant would take a machine that was removed for an existing one.
    """
    index = vagrant_box.get_machine_cache_path("vagrant", "data", "machine-index")
    for path in (os.path.join(folder, "vagrant"), index):
        remove_tree(path)
