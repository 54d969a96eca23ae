"""libvirt's objects of ours: the network, the storage pool, domains and volumes, each told by its name.

Every name is :func:`strata.util.paths.prefix`, or begins with it: no other is touched.  It is that of our network, of
its bridge (15 characters at most) and of our storage pool.
"""

import ipaddress
import os
from hashlib import sha256

from strata.host import addresses, daemons, observe
from strata.util import paths
from strata.util.errors import UserError
from strata.util.files import write_text
from strata.util.paths import prefix
from strata.util.process import as_root, capture, wait_for
from strata.vm import vagrant_box

SOCKET = "/run/libvirt/libvirt-sock"
# Where libvirt keeps the ids of its domains' processes.
PROCESSES = "/run/libvirt/qemu"
# A client's link has the first that is free, and gives it up once it is joined to the machines' network.  Where theirs
# began there too, a machine brought up afresh would get another than before, which its snapshot does not fit.
FIRST_SUBNET = 185


def answers() -> bool:
    """Whether libvirt listens."""
    return daemons.listens(SOCKET)


def start_daemon() -> None:
    """See that libvirt answers; start it where no service manager does."""
    daemons.start("libvirt does not answer", "libvirtd.sh", answers)


def virsh(*words: str, check: bool = True, timeout: float = 120) -> str:
    """What virsh prints.  Raises UserError with its own words if it fails and `check` is set."""
    return capture(
        as_root(["virsh", "--quiet", "--connect", "qemu:///system", *words]), timeout, check
    ).stdout


def domains() -> list[str]:
    """Names of our domains, running or not."""
    return [
        name for name in virsh("list", "--all", "--name").split() if name.startswith(f"{prefix()}-")
    ]


def card_address(subnet: str, number: int) -> tuple[str, str]:
    """(hardware address, IP address) of the machine with this number (from 0) in a network."""
    digest = sha256(f"{paths.home_mark()}/{number}".encode()).digest()
    address = ipaddress.ip_network(subnet).network_address + 10 + number
    return f"52:54:00:{digest[:3].hex(':')}", str(address)


def network_xml(subnet: str, machines: int = 1) -> str:
    """The network: a bridge of its own with fixed addresses, no way out, so that nothing but us talks to a machine."""
    net = ipaddress.ip_network(subnet)
    hosts = [card_address(subnet, number) for number in range(machines)]
    reserved = "".join(f"<host mac='{mac}' ip='{address}'/>" for mac, address in hosts)
    return (
        f"<network><name>{prefix()}</name><bridge name='{prefix()}' stp='off' delay='0'/>"
        f"<dns enable='no'/><ip address='{net.network_address + 1}' netmask='{net.netmask}'>"
        f"<dhcp><range start='{hosts[0][1]}' end='{hosts[-1][1]}'/>{reserved}</dhcp></ip></network>"
    )


def bring_up(machines: int = 1) -> str:
    """Make the network afresh, see that libvirt knows the storage pool, and return the network's subnet."""
    virsh("net-destroy", prefix(), check=False)
    subnet = addresses.free_subnet(addresses.host_routes(), FIRST_SUBNET)
    create("net-create", network_xml(subnet, machines))
    os.makedirs(vagrant_box.place("pool"), exist_ok=True)
    if prefix() not in virsh("pool-list", "--name").split():
        virsh("pool-create-as", prefix(), "dir", "--target", vagrant_box.place("pool"))
    return subnet


def create(command: str, xml: str) -> None:
    """Hand an object's XML to virsh by a file."""
    path = vagrant_box.place("object.xml")
    write_text(path, xml)
    virsh(command, path)


def remove_domains(only: str | None = None) -> list[str]:
    """End and remove our domains, or the `only` one of this name, with their volumes; what it was, in words."""
    found = [name for name in domains() if only in (None, name)]
    for name in found:
        # Asked to end, it would first write its disks, which are thrown away.
        if pid := process(name):
            capture(as_root(["kill", "-KILL", "--", str(pid)]), check=False)
            # The kernel takes its time to take its memory away.
            wait_for(pid, 10)
        virsh("destroy", name, check=False)
        virsh("undefine", name, "--managed-save", "--snapshots-metadata", "--nvram", check=False)
    if left := [name for name in domains() if name in found]:
        raise UserError(f"libvirt did not remove the domain {left[0]}: see `virsh list --all`")
    volumes = vagrant_box.remove_volumes(only or f"{prefix()}-")
    return [*(f"domain {name}" for name in found), *(f"volume {name}" for name in volumes)]


def process(name: str) -> int | None:
    """The id of a domain's process; None where it does not run."""
    pid = capture(as_root(["cat", "--", f"{PROCESSES}/{name}.pid"]), check=False).stdout.strip()
    words = f"/proc/{pid}/cmdline"
    # Whoever has the id now may be another.
    return int(pid) if f"guest={name}," in observe.read_files([words]).get(words, "") else None


def sweep() -> list[str]:
    """Remove everything of ours from libvirt, if it is up, but the pool's folder; returns what it was, in words."""
    if not answers():
        return []
    removed = remove_domains()
    for kind, words in (("net", "network"), ("pool", "storage pool")):
        if prefix() in virsh(f"{kind}-list", "--name").split():
            virsh(f"{kind}-destroy", prefix(), check=False)
            removed.append(f"{words} {prefix()}")
    return removed
