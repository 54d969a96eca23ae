"""The hardware that a run chooses: arguments for QEMU and for the kernel of the emulated host."""

import base64
from dataclasses import dataclass, field

from strata.util import constants

# AMD's virtualisation is what QEMU emulates whole, with nested paging.
PROCESSOR = "EPYC"
# The clock of an emulated host would be mistrusted, and a busy machine taken for a stuck processor.
KERNEL = (
    "root=/dev/vda rw console=ttyS0 tsc=reliable no_timer_check nowatchdog mitigations=off "
    "net.ifnames=0 systemd.show_status=0 "
    "systemd.mount-extra=/var/cache/strata/docker:/var/lib/docker:none:bind,nofail"
)


@dataclass
class Hardware:
    """cpus in all; sockets, each with a memory node of its own; memory in MiB.

    kvm: whether the processor offers virtualisation.  card: an SR-IOV card (igb) behind an IOMMU.
    """

    cpus: int = 2
    sockets: int = 1
    memory: int = 6144
    kvm: bool = True
    card: bool = False
    credentials: dict[str, str] = field(default_factory=dict)

    def kernel(self) -> str:
        """The command line of the host's kernel."""
        return KERNEL + (" intel_iommu=on iommu=pt" if self.card else "")

    def arguments(self) -> list[str]:
        """QEMU's arguments without disks, network and kernel."""
        flags = "+svm" if self.kvm else "-svm"
        shape = f"{self.cpus},sockets={self.sockets},cores={self.cpus // self.sockets},threads=1"
        words = ["-machine", "q35,accel=tcg", "-cpu", f"{PROCESSOR},{flags}"]
        words += [
            "-smp",
            shape,
            "-m",
            f"{self.memory}M",
            "-nodefaults",
            "-no-user-config",
            "-no-reboot",
        ]
        words += ["-display", "none"]
        # By this name the product knows that the host is none.
        words += ["-smbios", f"type=1,product={constants.read_constants('hosts')['emulated'][0]}"]
        for name, value in self.credentials.items():
            coded = base64.b64encode(value.encode()).decode()
            words += ["-smbios", f"type=11,value=io.systemd.credential.binary:{name}={coded}"]
        if self.sockets > 1:
            each, share = self.cpus // self.sockets, self.memory // self.sockets
            for node in range(self.sockets):
                words += ["-object", f"memory-backend-ram,id=memory{node},size={share}M"]
                cpus = f"{node * each}-{(node + 1) * each - 1}"
                words += ["-numa", f"node,nodeid={node},memdev=memory{node},cpus={cpus}"]
            words += ["-numa", "dist,src=0,dst=1,val=20"]
        if self.card:
            words += [
                "-device",
                "intel-iommu,caching-mode=on",
                "-device",
                "pcie-root-port,id=port1,slot=1",
            ]
            words += [
                "-netdev",
                "user,id=card,net=10.0.9.0/24",
                "-device",
                "igb,netdev=card,bus=port1",
            ]
        return [*words, "-device", "virtio-rng-pci"]
