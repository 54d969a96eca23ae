"""PCI devices that are passed through to a guest, for example SR-IOV functions."""

import glob
import os

from strata.util.data_types import WantedMachine
from strata.util.errors import UserError
from strata.vm import ssh

DEVICES = "/sys/bus/pci/devices"
# Seconds within which a network card must show its new address: its driver waits for the link.
LINK_TIMEOUT = 60
# "$1": the MAC address of the guest's other network interface; "$2": the IP address for this one.
# Prints a line with the names of all interfaces except that other one; if there is exactly one, a
# second line with the address that it then has.
_SET_ADDRESS = f"""
for device in /sys/class/net/*/device; do
    folder=${{device%/device}}
    [ "$(cat "$folder/address")" = "$1" ] || cards="$cards ${{folder##*/}}"
done
echo $cards
set -- "$2" $cards
[ $# = 2 ] || exit 0
mkdir -p /run/systemd/network
# The link goes down and up whenever the host changes something on its side.
cat >/run/systemd/network/10-strata-card.network <<END
[Match]
Name=$2
[Network]
Address=$1
LinkLocalAddressing=no
IgnoreCarrierLoss=yes
END
networkctl reload
networkctl reconfigure "$2"
for _ in $(seq {LINK_TIMEOUT}); do
    ip -4 -o address show dev "$2" | grep -q -F " $1 " &&
        ip -o link show dev "$2" | grep -q LOWER_UP && break
    sleep 1
done
ip -4 -o address show dev "$2" | sed -n 's/.* inet \\([^ ]*\\) .*/\\1/p'
"""


def explain_unusable_device(address: str, accelerator: str) -> str | None:
    """Return why a PCI device of this host cannot be passed through to a guest; None if it can.

    The reason includes the remedy if one exists.
    address: the device's PCI address.
    accelerator: the accelerator of virtual machines on this host, "kvm" or "tcg".
    """
    folder = os.path.join(DEVICES, address)
    if not os.path.isdir(folder):
        return f"there is no PCI device {address}: `lspci -D` lists those of this host"
    if accelerator != "kvm":
        return f"device {address} can be handed to a guest under KVM only, which does not run here"
    if not os.path.exists(os.path.join(folder, "iommu_group")):
        return (
            f"device {address} is in no IOMMU group: switch the IOMMU on (firmware, and "
            "intel_iommu=on or its like)"
        )
    return None


def set_card_address(folder: str, machine_settings: WantedMachine) -> str:
    """Set the IP address of the guest's passed-through network card; return the observed address.

    folder: the folder of the system, with the ssh configuration.
    machine_settings: the settings of the machine, whose `card` is not None.
    Writes a network configuration in the guest, and waits up to LINK_TIMEOUT seconds for the link.
    Raises UserError if the guest does not have exactly one such card, or if it has no link.
    """
    # This is for type checkers: the caller has checked it.
    assert machine_settings["card"]
    address = machine_settings["card"]["address"]
    script = ["sh", "-c", _SET_ADDRESS, "strata", machine_settings["mac"], address]
    # The first line has the names of the cards; a second line has the address, if one card exists
    # and has a link.  The timeout is longer than the script waits for the link.
    output = ssh.run_in_machine(folder, script, timeout=180)
    card_names, *observed_addresses = output.splitlines()
    if not observed_addresses:
        devices = ", ".join(machine_settings["passthrough"])
        raise UserError(
            f"the guest has no card with {address}: of {devices} it has drivers for "
            f"{card_names or 'none'}; there must be one (image.kernel: hardware has the drivers of "
            f"all), whose link is up within {LINK_TIMEOUT} s: see that it is plugged in, and up on "
            "the host's side"
        )
    return observed_addresses[0]


def find_network_interface(address: str) -> str:
    """Return the name of the host's network interface to which a virtual function (SR-IOV) belongs.

    address: the PCI address of the virtual function.
    Raises UserError if the device is not a virtual function of an interface of this host.
    """
    interface_paths = sorted(glob.glob(f"{DEVICES}/{address}/physfn/net/*"))
    if not interface_paths:
        raise UserError(
            f"device {address} is not a virtual function of a network card that this host has: a "
            "client of this host does not reach the machine over it; a second machine may (client: "
            "{ssh: …})"
        )
    # A card with several interfaces: the first by name is taken.
    return os.path.basename(interface_paths[0])
