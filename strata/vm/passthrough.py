"""Devices that a guest has for itself, by PCI address (SR-IOV functions above all): whether it can, and its card."""

import glob
import os

from strata.util.data_types import WantedMachine
from strata.util.errors import UserError
from strata.vm import ssh

DEVICES = "/sys/bus/pci/devices"
# Seconds until a card that got an address shows it: its driver waits for the link.
PATIENCE = 60
# "$1": the hardware address of the machine's other card; "$2": the address for this one.  Prints the names of all
# others, and where it is one a line with its address once it has that.
_GIVE = f"""
for device in /sys/class/net/*/device; do
    place=${{device%/device}}
    [ "$(cat "$place/address")" = "$1" ] || cards="$cards ${{place##*/}}"
done
echo $cards
set -- "$2" $cards
[ $# = 2 ] || exit 0
mkdir -p /run/systemd/network
# The link goes down and up whenever the host changes something on its side.
printf '[Match]\\nName=%s\\n[Network]\\nAddress=%s\\nLinkLocalAddressing=no\\nIgnoreCarrierLoss=yes\\n' "$2" "$1" \\
    >/run/systemd/network/10-strata-card.network
networkctl reload
networkctl reconfigure "$2"
for _ in $(seq {PATIENCE}); do
    ip -4 -o address show dev "$2" | grep -q -F " $1 " && ip -o link show dev "$2" | grep -q LOWER_UP && break
    sleep 1
done
ip -4 -o address show dev "$2" | sed -n 's/.* inet \\([^ ]*\\) .*/\\1/p'
"""


def complaint(address: str, accelerator: str | None) -> str | None:
    """Why the device cannot be handed to a guest here, with what would change that; None if it can."""
    place = os.path.join(DEVICES, address)
    if not os.path.isdir(place):
        return f"there is no PCI device {address}: `lspci -D` lists those of this host"
    if accelerator != "kvm":
        return f"device {address} can be handed to a guest under KVM only, which does not run here"
    if not os.path.exists(os.path.join(place, "iommu_group")):
        return f"device {address} is in no IOMMU group: switch the IOMMU on (firmware, and intel_iommu=on or its like)"
    return None


def give(folder: str, wanted: WantedMachine) -> str:
    """Give the card in the guest its address; the address that is then seen there.

    Raises UserError where the guest has no such card, or several, or it has no link.
    """
    own = (wanted["card"] or {})["address"]
    cards, *seen = ssh.run(
        folder, ["sh", "-c", _GIVE, "strata", wanted["mac"], own], timeout=180
    ).splitlines()
    if not seen:
        raise UserError(
            f"the guest has no card with {own}: of {', '.join(wanted['passthrough'])} it has drivers for "
            f"{cards or 'none'}; there must be one (image.kernel: hardware has the drivers of all), whose link is up "
            f"within {PATIENCE} s: see that it is plugged in, and up on the host's side"
        )
    return seen[0]


def port(address: str) -> str:
    """The network device of this host whose virtual function a device is.  Raises UserError where it is none's."""
    names = sorted(glob.glob(f"{DEVICES}/{address}/physfn/net/*"))
    if not names:
        raise UserError(
            f"device {address} is no virtual function of a network card that this host has: a client of this host "
            "does not reach the machine over it; a second machine may (client: {ssh: …})"
        )
    return os.path.basename(names[0])
