"""Virtual machines of the image, defined by Vagrant and run by libvirt."""

import os
from types import MappingProxyType

from strata.environments.common import layer
from strata.util.data_types import Fields, HostFacts
from strata.vm import acceleration, libvirt, machine, settings, snapshot, ssh

# Values in programs' starting state that a machine's own kernel sets, and those that its place on
# the host sets.
_OWN_KERNEL = (
    "processors",
    "memory nodes",
    "capabilities",
    "speculation",
    "indirect branches",
    "time slice",
)
_PLACED = ("processors on the host", "memory nodes on the host", "memory policy on the host")


class Layer(layer.Layer):
    """A virtual machine; all commands use one ssh connection that stays open.

    Options: `profile`, the name of one of the configuration's vm.profiles
    (docs/virtual-machines.md); `fresh`, boot (each system boots a machine) or snapshot (the first
    system boots one and saves it, and all restore that).
    """

    isolation = "machine"
    title = "virtual machine"
    peers_are_clients = True
    image_forms = ("disk",)
    refuses_own_images = "the image has no kernel and init"
    # QEMU, libvirt, Vagrant, ssh, and the program that makes the data disk.
    programs = (
        "qemu-system-x86_64",
        "qemu-img",
        "libvirtd",
        "virsh",
        "dnsmasq",
        "vagrant",
        "mke2fs",
        "ssh",
        "ssh-keygen",
    )
    needs_root = True
    daemons = ("libvirtd", "virtlogd", "virtqemud", "virtnetworkd", "virtstoraged", "dnsmasq")
    differences = MappingProxyType(
        dict.fromkeys(_OWN_KERNEL, "a kernel and processors of its own")
        | dict.fromkeys(_PLACED, "as its profile places it")
    )
    options_schema = layer.build_options_schema(
        profile={"type": "string", "known": {"in": "profiles", "what": "profile of vm.profiles"}},
        fresh={"enum": ["boot", "snapshot"], "description": "boot or snapshot"},
    )
    data = "/data"

    @classmethod
    def explain_unavailability(cls) -> str | None:
        """Return why this host cannot run virtual machines, with the remedy; None if it can.

        Only hosts of the architecture x86_64 can.
        """
        if (architecture := os.uname().machine) != "x86_64":
            return f"virtual machines are built for x86_64 only; this host is {architecture}"
        return super().explain_unavailability()

    @classmethod
    def resolve_options(cls, options: Fields, config: Fields) -> Fields:
        """Return ``{profile, fresh, settings, accelerator}``, which decide a cell's result.

        `settings` is the complete profile.  The accelerator is None until KVM has been tried.
        """
        name = options.get("profile", "default")
        accelerator = acceleration.read_known_accelerator()["accelerator"]
        # The planner sets `takes`, the bytes of memory of the largest workload.  Emulated machines
        # run the workloads at the smallest scale, for which the smallest memory is enough.
        memory_bytes = 0 if accelerator == "tcg" else config.get("takes", 0)
        profile = config["vm"]["profiles"].get(name)
        return {
            "profile": name,
            "fresh": options.get("fresh", "boot"),
            "settings": settings.complete_profile(profile, config["scale"], memory_bytes),
            "accelerator": accelerator,
        }

    @classmethod
    def describe_machine_above(cls, resolved: Fields, machine: HostFacts) -> HostFacts:
        """Return the host's facts with the number of CPUs that layers above the machine see.

        The number is the host's unless the machine's profile sets another one.
        """
        cpus = resolved["settings"]["cpus"]
        return machine if cpus == "host" else {**machine, "cpus": int(cpus)}

    @classmethod
    def has_data_on_host(cls, resolved: Fields) -> bool:
        """Return False: a virtual machine has /data on a disk of its own."""
        return False

    @classmethod
    def get_labels(cls, resolved: Fields) -> Fields:
        """Return no names: the paper names a virtual machine only by its title."""
        return {}

    @classmethod
    def describe_for_plan(cls, resolved: Fields) -> Fields:
        """Return ``{accelerator, accelerator_reason, shown}`` for the plan.

        The planner replaces ``{vm}`` in the environment's label by ``shown``, and removes that key.
        """
        return {
            **acceleration.read_known_accelerator(),
            "shown": acceleration.MACHINE_NAMES[resolved["accelerator"]],
        }

    @classmethod
    def remove_systems(cls) -> list[str]:
        """Remove all machines of Strata with their network, storage pool and snapshots.

        Returns a phrase for each removed thing.  If libvirt does not answer, only the snapshots are
        removed.
        """
        machines = libvirt.remove_libvirt_objects()
        return machines + [f"snapshots of run {name}" for name in snapshot.remove_snapshots()]

    def list_cleanups(self) -> list[Fields]:
        """Return the journal's entry that removes the machine, by the system's folder."""
        return [{"kind": "machine", "id": self.context.folder}]

    def start(self) -> None:
        """Boot the machine or restore it from its snapshot, with the warm-up of the layer above.

        Keeps the machine and its facts for :meth:`collect_facts`, :meth:`get_address` and the
        methods for its card and process.  Raises UserError if it does not start.
        """
        warmup = {}
        if self.above and self.above.warmup:
            warmup[self.above.name] = [*self.above.warmup]
        self._machine = machine.Machine(self.options, self.context, self.image, warmup)
        self._facts = self._machine.start()

    def collect_facts(self) -> Fields:
        """Return ``{vm: …}`` for the records: how the machine started, and its settings.

        :meth:`strata.vm.machine.Machine.start` sets the keys.
        """
        return {"vm": self._facts}

    def wrap_command(self, argv: list[str], reads_stdin: bool = False) -> list[str]:
        """Return the ssh command that runs `argv` in the machine.

        Its exit code is ssh.CONNECTION_LOST if the machine no longer answers.
        reads_stdin: not used; the command always gets its standard input.
        """
        return ssh.build_ssh_command(self.context.folder, argv)

    def get_address(self) -> str:
        """Return the machine's IP address; if it has a passed-through card, the card's address."""
        settings_of_machine = self._machine.wanted
        card = settings_of_machine["card"]
        address = card["address"] if card else settings_of_machine["address"]
        # A card's address has a prefix length.
        return str(address.partition("/")[0])

    def get_listen_address(self) -> str:
        """Return the machine's IP address: no address is translated."""
        return self.get_address()

    def find_passthrough_card(self) -> tuple[str, str | None] | None:
        """Return (PCI address, client's IP address or None) of the machine's passed-through card.

        None if the machine has no such network card.  The client's link to the machine depends on
        this value (:meth:`strata.client.link.Link.join_systems`).
        """
        settings_of_machine = self._machine.wanted
        card = settings_of_machine["card"]
        if not card:
            return None
        # The card is the first of the devices that the profile passes to the machine.
        return settings_of_machine["passthrough"][0], card.get("client")

    def find_virtual_machine(self) -> layer.Layer:
        """Return this layer, which is a virtual machine."""
        return self

    def find_kernel_process(self) -> int | None:
        """Return the ID of QEMU's process; None if it does not run."""
        return libvirt.find_domain_process(self._machine.wanted["name"])

    def list_memory_processes(self) -> list[int]:
        """Return the ID of QEMU's process in a list, which is empty if QEMU does not run."""
        pid = self.find_kernel_process()
        return [] if pid is None else [pid]
