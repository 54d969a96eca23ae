"""libvirt's objects of ours: the network, the storage pool, domains and volumes, each told by its name.

Every name begins with :func:`prefix`, which is of this user's installation alone: nothing else is
ever touched.
"""

import ipaddress
import os
from hashlib import sha256

from strata.base import places
from strata.base.errors import UserError
from strata.base.process import as_root, capture, wait_for
from strata.base.shapes import Fields
from strata.host import addresses, daemons
from strata.vm import disk, domain

SOCKET = "/run/libvirt/libvirt-sock"
# A client's link has the first that is free, and gives it up once it is joined to the machines' network.  Where theirs
# began there too, a machine brought up afresh would get another than before, which its snapshot does not fit.
FIRST_SUBNET = 185
# For the kernel to take a process that was killed, and its memory, away.
SECONDS_TO_END = 10


def prefix() -> str:
    """What the names of all our objects begin with."""
    return f"strata-{places.home_mark()[:8]}"


def pool() -> str:
    """Name of the storage pool, which is also that of its folder in the machine's cache."""
    return prefix()


def pool_folder() -> str:
    """Folder of the storage pool."""
    return disk.pool_folder()


def network() -> str:
    """Name of the network."""
    return prefix()


def bridge() -> str:
    """Name of the network's bridge on the host (15 characters at most)."""
    return f"strata{places.home_mark()[:7]}"


def answers() -> bool:
    """Whether libvirt listens."""
    return daemons.listens(SOCKET)


def start_daemon() -> None:
    """See that libvirt answers; start it where no service manager does."""
    daemons.start("libvirt does not answer", "libvirtd.sh", answers)


def virsh(*words: str, check: bool = True, timeout: float = 120) -> str:
    """What virsh prints.  Raises UserError with its own words if it fails and `check` is set."""
    return capture(as_root(["virsh", "--quiet", "--connect", "qemu:///system", *words]), timeout, check).stdout


def _names(*words: str) -> list[str]:
    return [name for name in virsh(*words, "--name").split() if name]


def domains() -> list[str]:
    """Names of our domains, running or not."""
    return [name for name in _names("list", "--all") if name.startswith(f"{prefix()}-")]


def card_address(subnet: str, number: int) -> tuple[str, str]:
    """(hardware address, IP address) of the machine with this number (from 0) in a network."""
    digest = sha256(f"{places.home_mark()}/{number}".encode()).digest()
    address = ipaddress.ip_network(subnet).network_address + 10 + number
    return "52:54:00:" + ":".join(f"{byte:02x}" for byte in digest[:3]), str(address)


def network_xml(subnet: str, machines: int = 1) -> str:
    """The network: a bridge of its own with fixed addresses, no way out, so that nothing but us talks to a machine."""
    net = ipaddress.ip_network(subnet)
    hosts = [card_address(subnet, number) for number in range(machines)]
    reserved = "".join(f"<host mac='{mac}' ip='{address}'/>" for mac, address in hosts)
    last = net.network_address + 10 + max(machines, 1) - 1
    return (
        f"<network><name>{network()}</name><bridge name='{bridge()}' stp='off' delay='0'/>"
        f"<dns enable='no'/><ip address='{net.network_address + 1}' netmask='{net.netmask}'>"
        f"<dhcp><range start='{net.network_address + 10}' end='{last}'/>{reserved}</dhcp></ip></network>"
    )


def bring_up_network(machines: int = 1) -> str:
    """Make the network afresh and return its subnet."""
    take_down_network()
    subnet = addresses.free_subnet(addresses.host_routes(), FIRST_SUBNET)
    _create("net-create", network_xml(subnet, machines))
    return subnet


def take_down_network() -> None:
    """Remove the network with its bridge and its DHCP server."""
    if network() in _names("net-list", "--all"):
        virsh("net-destroy", network(), check=False)
        virsh("net-undefine", network(), check=False)


def _create(command: str, xml: str) -> None:
    """Hand an object's XML to virsh by a file."""
    folder = os.path.join(places.home(), "vm")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{command}.xml")
    with open(path, "w") as file:
        file.write(xml)
    virsh(command, path)
    os.unlink(path)


def bring_up_pool() -> None:
    """See that libvirt knows the storage pool and what lies in it now."""
    os.makedirs(pool_folder(), exist_ok=True)
    if pool() not in _names("pool-list"):
        xml = f"<pool type='dir'><name>{pool()}</name><target><path>{pool_folder()}</path></target></pool>"
        _create("pool-create", xml)
    virsh("pool-refresh", pool())


def take_down_pool() -> None:
    """Make libvirt forget the storage pool; the base image's file stays in the cache."""
    if pool() in _names("pool-list", "--all"):
        virsh("pool-destroy", pool(), check=False)
        virsh("pool-undefine", pool(), check=False)


def tune(name: str, extra: Fields) -> None:
    """Write the settings of `extra` (:func:`strata.vm.domain.tune`) into a domain that is defined and not running."""
    _create("define", domain.tune(virsh("dumpxml", "--inactive", name), extra))


def remove_domains(only: str | None = None) -> list[str]:
    """End and remove our domains, or the `only` one of this name, with their volumes; returns their names."""
    found = [name for name in domains() if only in (None, name)]
    for name in found:
        _kill(name)
        virsh("destroy", name, check=False)
        virsh("undefine", name, "--managed-save", "--snapshots-metadata", "--nvram", check=False)
    left = [name for name in domains() if name in found]
    if left:
        raise UserError(f"libvirt did not remove the domain {left[0]}: see `virsh list --all`")
    if os.path.isdir(pool_folder()):
        for name in os.listdir(pool_folder()):
            if name.startswith(only or f"{prefix()}-"):
                capture(as_root(["rm", "-f", "--", os.path.join(pool_folder(), name)]))
    return found


def process(name: str) -> int | None:
    """The id of a running domain's process; None where libvirt names none that is."""
    text = capture(as_root(["cat", "--", f"/run/libvirt/qemu/{name}.pid"]), check=False).stdout.strip()
    return int(text) if text.isdigit() else None


def _command_line(pid: int) -> str:
    """What a process was started with; nothing where it has ended."""
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().replace("\0", " ")
    except OSError:
        return ""


def _kill(name: str) -> None:
    """End a domain's process at once: asked to end, it would first write its disks, which are thrown away."""
    pid = process(name)
    if pid is None or f"guest={name}," not in _command_line(pid):
        return
    capture(as_root(["kill", "-KILL", "--", str(pid)]), check=False)
    wait_for(pid, SECONDS_TO_END)


def sweep() -> list[str]:
    """Remove everything of ours from libvirt; returns what it was, in words.  Nothing where libvirt is not up."""
    if not answers():
        return []
    removed = [f"domain {name}" for name in remove_domains()]
    if network() in _names("net-list", "--all"):
        take_down_network()
        removed.append(f"network {network()}")
    if pool() in _names("pool-list", "--all"):
        take_down_pool()
        removed.append(f"storage pool {pool()}")
    return removed
