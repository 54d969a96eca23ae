"""A virtual machine of the image, run by Vagrant and libvirt."""

import os

from strata.environments.common import layer
from strata.util.data_types import Fields, HostFacts
from strata.vm import acceleration, libvirt, machine, settings, snapshot, ssh

# What it takes: of QEMU, libvirt and Vagrant, and to make its disk.
PROGRAMS = (
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


class Kind(layer.Kind):
    """profile: the name of one of the config's vm.profiles.  fresh: boot (each system boots a machine) or snapshot
    (the first boots one and saves it, and all restore that).
    """

    kind = "machine"
    title = "virtual machine"
    forms = ("disk",)
    programs = PROGRAMS
    needs_root = True
    changes = dict.fromkeys(
        (
            "processors", "memory nodes", "capabilities", "speculation", "indirect branches",
            "time slice",
        ),
        "a kernel and processors of its own",
    ) | dict.fromkeys(
        ("processors on the host", "memory nodes on the host", "memory policy on the host"), "as its profile places it"
    )  # fmt: skip
    daemons = ("libvirtd", "virtlogd", "virtqemud", "virtnetworkd", "virtstoraged", "dnsmasq")
    options_schema = layer.takes(
        profile={"type": "string", "known": {"in": "profiles", "what": "profile of vm.profiles"}},
        fresh={"enum": ["boot", "snapshot"], "description": "boot or snapshot"},
    )

    def unavailable(self) -> str | None:
        if (machine := os.uname().machine) != "x86_64":
            return f"virtual machines are built for x86_64 only; this host is {machine}"
        return super().unavailable()

    def labels(self, settled: Fields) -> Fields:
        return {}

    def settle(self, options: Fields, config: Fields) -> Fields:
        """The options with the profile's own settings and the accelerator, which decide a cell's result."""
        name, accelerator = options.get("profile", "default"), acceleration.known()["accelerator"]
        # Emulated machines run the workloads at their smallest.
        takes = 0 if accelerator == "tcg" else config.get("takes", 0)
        return {
            "profile": name,
            "fresh": options.get("fresh", "boot"),
            "settings": settings.complete(
                config["vm"]["profiles"].get(name), config["scale"], takes
            ),
            "accelerator": accelerator,
        }

    def grants(self, settled: Fields, machine: HostFacts) -> HostFacts:
        own = settled["settings"]["cpus"]
        return {**machine, "cpus": machine["cpus"] if own == "host" else int(own)}

    def describe(self, settled: Fields) -> Fields:
        """What accelerates the machine, why that is known, and the word that stands for {vm} in labels."""
        return {**acceleration.known(), "shown": acceleration.CALLED[settled["accelerator"]]}

    def sweep(self) -> list[str]:
        return [*libvirt.sweep(), *(f"snapshots of run {name}" for name in snapshot.remove())]


class Layer(layer.Layer):
    """A machine; commands go through one kept ssh connection."""

    data = "/data"

    def up(self) -> None:
        self.context.note({"kind": "machine", "id": self.context.folder})
        warmup = {self.above.name: [*self.above.warmup]} if self.above and self.above.warmup else {}
        self._machine = machine.Machine(self.options, self.context, warmup)
        self._facts = self._machine.up()

    def facts(self) -> Fields:
        return {"vm": self._facts}

    def wrap(self, argv: list[str], fed: bool = False) -> list[str]:
        return ssh.command(self.context.folder, argv)

    def address(self) -> str:
        wanted = self._machine.wanted
        return (wanted["card"] or {"address": wanted["address"]})["address"].partition("/")[0]

    def listen(self) -> str:
        return self.address()

    def card(self) -> tuple[str, str | None] | None:
        wanted = self._machine.wanted
        return (wanted["passthrough"][0], wanted["card"].get("client")) if wanted["card"] else None

    def machine(self) -> layer.Layer:
        return self

    def host_process(self) -> int | None:
        return libvirt.process(self._machine.wanted["name"])

    def processes(self) -> list[int]:
        found = self.host_process()
        return [found] if found else []
