"""Devices that a guest gets for itself, by PCI address (SR-IOV functions above all): checked, and explained."""

import os

DEVICES = "/sys/bus/pci/devices"


def complaint(address: str, accelerator: str | None, devices: str = DEVICES) -> str | None:
    """Why the device cannot be handed to a guest here, with what would change that; None if it can."""
    place = os.path.join(devices, address)
    if not os.path.isdir(place):
        return f"there is no PCI device {address}: `lspci -D` lists those of this host"
    if accelerator != "kvm":
        return f"device {address} can be handed to a guest under KVM only, which does not run here"
    if not os.path.exists(os.path.join(place, "iommu_group")):
        return f"device {address} is in no IOMMU group: switch the IOMMU on (firmware, and intel_iommu=on or its like)"
    if os.path.exists(os.path.join(place, "sriov_numvfs")) and not os.path.exists(os.path.join(place, "physfn")):
        return (
            f"device {address} is a whole SR-IOV card, which the host would lose: make virtual functions "
            f"(echo 1 >{place}/sriov_numvfs) and name one of them"
        )
    group = os.path.join(place, "iommu_group", "devices")
    others = sorted(set(os.listdir(group)) - {address}) if os.path.isdir(group) else []
    if others:
        return (
            f"device {address} shares its IOMMU group with {', '.join(others)}: they can only be handed over together"
        )
    return None
