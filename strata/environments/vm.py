"""A virtual machine of the image, run by Vagrant and libvirt."""

import os
from types import MappingProxyType

from strata.environments.common import layer
from strata.util.data_types import Fields, HostFacts
from strata.vm import acceleration, libvirt, machine, settings, snapshot, ssh

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
    """A machine; commands go through one kept ssh connection.

    Options: `profile`, the name of one of the config's vm.profiles (docs/virtual-machines.md);
    `fresh`, boot (each system boots a machine) or snapshot (the first boots one and saves it, and
    all restore that).
    """

    isolation = "machine"
    title = "virtual machine"
    image_forms = ("disk",)
    # QEMU, libvirt and Vagrant, and what makes the data disk.
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
    options_schema = layer.options_schema(
        profile={"type": "string", "known": {"in": "profiles", "what": "profile of vm.profiles"}},
        fresh={"enum": ["boot", "snapshot"], "description": "boot or snapshot"},
    )
    data = "/data"

    profile_settings = MappingProxyType(settings.DEFAULTS)
    """All settings of a profile, with their defaults; schemas/vm.schema.json explains them."""

    @classmethod
    def unavailable_reason(cls) -> str | None:
        """Refuse hosts of another architecture, too."""
        if (architecture := os.uname().machine) != "x86_64":
            return f"virtual machines are built for x86_64 only; this host is {architecture}"
        return super().unavailable_reason()

    @classmethod
    def resolve_options(cls, options: Fields, config: Fields) -> Fields:
        """Resolve the profile, and add the accelerator: both decide a cell's result."""
        name, accelerator = (
            options.get("profile", "default"),
            acceleration.known_accelerator()["accelerator"],
        )
        # Emulated machines run the workloads at their smallest.
        memory_bytes = 0 if accelerator == "tcg" else config.get("takes", 0)
        profile = config["vm"]["profiles"].get(name)
        return {
            "profile": name,
            "fresh": options.get("fresh", "boot"),
            "settings": settings.complete(profile, config["scale"], memory_bytes),
            "accelerator": accelerator,
        }

    @classmethod
    def machine_above(cls, resolved: Fields, machine: HostFacts) -> HostFacts:
        """Return the machine with the guest's number of processors."""
        cpus = resolved["settings"]["cpus"]
        return machine if cpus == "host" else {**machine, "cpus": int(cpus)}

    @classmethod
    def labels(cls, resolved: Fields) -> Fields:
        """Return nothing: the paper names a machine by its title alone."""
        return {}

    @classmethod
    def describe(cls, resolved: Fields) -> Fields:
        """Return the accelerator, its reason, and the text that replaces {vm} in labels."""
        return {
            **acceleration.known_accelerator(),
            "shown": acceleration.MACHINE_NAMES[resolved["accelerator"]],
        }

    @classmethod
    def remove_systems(cls) -> list[str]:
        """Remove all machines with their network, storage pool and snapshots."""
        return [
            *libvirt.remove_all(),
            *(f"snapshots of run {name}" for name in snapshot.remove_snapshots()),
        ]

    def cleanup_entries(self) -> list[Fields]:
        """Return the entry for the machine of the system's folder."""
        return [{"kind": "machine", "id": self.context.folder}]

    def up(self) -> None:
        """Boot a machine or restore its snapshot."""
        warmup = {self.above.name: [*self.above.warmup]} if self.above and self.above.warmup else {}
        self._machine = machine.Machine(self.options, self.context, self.image, warmup)
        self._facts = self._machine.up()

    def facts(self) -> Fields:
        """Return how the machine started, and which settings of its profile were applied."""
        return {"vm": self._facts}

    def wrap(self, argv: list[str], fed: bool = False) -> list[str]:
        """Return the command of ssh that runs `argv` in the machine."""
        return ssh.command(self.context.folder, argv)

    def address(self) -> str:
        """Return the machine's address, on its own card where it has one."""
        wanted = self._machine.wanted
        address: str = wanted["card"]["address"] if wanted["card"] else wanted["address"]
        return address.partition("/")[0]

    def listen_address(self) -> str:
        """Return the machine's address, which nothing translates."""
        return self.address()

    def passed_card(self) -> tuple[str, str | None] | None:
        """Return the card that was passed through to the machine, if a client reaches it there."""
        wanted = self._machine.wanted
        return (wanted["passthrough"][0], wanted["card"].get("client")) if wanted["card"] else None

    def virtual_machine(self) -> layer.Layer:
        """Return this layer."""
        return self

    def kernel_process(self) -> int | None:
        """Return QEMU's process."""
        return libvirt.domain_process(self._machine.wanted["name"])

    def memory_processes(self) -> list[int]:
        """Return QEMU's process, if it runs."""
        process = self.kernel_process()
        return [process] if process else []
