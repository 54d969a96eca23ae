"""Create, find and remove Strata's objects in libvirt: network, storage pool, domains, volumes.

Strata's objects are recognized by their names.
Every name is :func:`strata.util.paths.get_name_prefix`, or begins with it: no other object is
touched.  The prefix itself is the name of the network, of its bridge (15 characters at most) and of
the storage pool.
"""

import ipaddress
import os
from hashlib import sha256

from strata.host import addresses, daemons, observe
from strata.util import paths
from strata.util.errors import UserError
from strata.util.files import write_text
from strata.util.paths import get_name_prefix
from strata.util.process import capture_output, wait_for_process, wrap_as_root
from strata.vm import vagrant_box

# The socket of libvirt's daemon.
SOCKET = "/run/libvirt/libvirt-sock"
# The folder where libvirt keeps the IDs of its domains' processes.
PROCESSES = "/run/libvirt/qemu"
# The number N at which the search for the machines' network 192.168.N.0/24 begins.  The client's
# link begins at a lower one, and gives its network up once it joins the machines'.  If both began
# at the same number, a later machine could get another network than that of its snapshot.
FIRST_SUBNET = 185


def is_libvirt_answering() -> bool:
    """Return whether libvirt's daemon, or systemd for it, listens at its socket."""
    return daemons.has_listener(SOCKET)


def start_libvirt_daemon() -> None:
    """Start libvirt's daemon if it does not answer and no service manager starts it.

    Raises UserError if the daemon does not answer then.
    """
    daemons.start_daemon_by_script("libvirt does not answer", "libvirtd.sh", is_libvirt_answering)


def run_virsh(*arguments: str, check: bool = True, timeout: float = 120) -> str:
    """Run virsh as root with these arguments, and return its standard output.

    arguments: virsh's command, such as "list", and its arguments.
    check: whether a failure of virsh is an error; otherwise the output may be empty.
    timeout: seconds, which STRATA_PATIENCE multiplies.
    Raises UserError with virsh's message if it fails and `check` is set, and MachineError if it
    takes too long.
    """
    argv = ["virsh", "--quiet", "--connect", "qemu:///system", *arguments]
    return capture_output(wrap_as_root(argv), timeout, check).stdout


def list_domains() -> list[str]:
    """Return the names of Strata's domains, running or not, found by the prefix of their names.

    strata/vm/machine.py forms the names, ``PREFIX-DIGEST``.
    Raises UserError if libvirt does not answer.
    """
    names = run_virsh("list", "--all", "--name").split()
    return [name for name in names if name.startswith(f"{get_name_prefix()}-")]


def compute_interface_addresses(subnet: str, number: int) -> tuple[str, str]:
    """Return (MAC address, IP address) of a machine's network interface.

    subnet: the machines' network, as ADDRESS/24.
    number: the number of the machine, from 0.
    The same home folder, network and number must always give the same addresses: a snapshot cannot
    be restored with others.
    """
    digest = sha256(f"{paths.compute_home_mark()}/{number}".encode()).digest()
    # Addresses below .10 are the bridge's and the client's.
    address = ipaddress.ip_network(subnet).network_address + 10 + number
    return f"52:54:00:{digest[:3].hex(':')}", str(address)


def format_network_xml(subnet: str, machine_count: int = 1) -> str:
    """Return the XML of the machines' network: an isolated bridge with a fixed address for each.

    subnet: the network, as ADDRESS/24.
    machine_count: the number of machines, at least one.
    Bridge and network have the same name, by which the client's link finds the bridge.
    """
    network = ipaddress.ip_network(subnet)
    interfaces = [compute_interface_addresses(subnet, number) for number in range(machine_count)]
    reservations = "".join(f"<host mac='{mac}' ip='{address}'/>" for mac, address in interfaces)
    _, first_address = interfaces[0]
    _, last_address = interfaces[-1]
    return (
        f"<network><name>{get_name_prefix()}</name>"
        f"<bridge name='{get_name_prefix()}' stp='off' delay='0'/><dns enable='no'/>"
        f"<ip address='{network.network_address + 1}' netmask='{network.netmask}'>"
        f"<dhcp><range start='{first_address}' end='{last_address}'/>{reservations}</dhcp>"
        "</ip></network>"
    )


def create_network(machine_count: int = 1) -> str:
    """Create the machines' network, replacing an earlier one, and a missing storage pool.

    machine_count: the number of machines that get an address.
    Returns the network, as ADDRESS/24.
    No machine may be up: it would lose its network.
    Raises UserError if the network or the pool cannot be created.
    """
    # This fails if no earlier network exists.
    run_virsh("net-destroy", get_name_prefix(), check=False)
    subnet = addresses.find_free_subnet(addresses.read_host_routes(), FIRST_SUBNET)
    create_libvirt_object("net-create", format_network_xml(subnet, machine_count))
    pool = vagrant_box.get_machine_cache_path("pool")
    os.makedirs(pool, exist_ok=True)
    if get_name_prefix() not in run_virsh("pool-list", "--name").split():
        run_virsh("pool-create-as", get_name_prefix(), "dir", "--target", pool)
    return subnet


def create_libvirt_object(command: str, xml: str) -> None:
    """Create a libvirt object from its XML.

    command: the virsh command that creates it, for example net-create.
    Raises UserError if the command fails.  The XML stays in the cache, as object.xml.
    """
    path = vagrant_box.get_machine_cache_path("object.xml")
    write_text(path, xml)
    run_virsh(command, path)


def remove_domains(only_name: str | None = None) -> list[str]:
    """Kill and remove Strata's domains, and delete their volumes; return a phrase for each.

    only_name: the name of the only domain to be removed; None removes all.
    A missing domain is not an error.  Raises UserError if libvirt does not answer, or if a
    domain still exists afterwards.
    """
    names = [name for name in list_domains() if only_name in (None, name)]
    for name in names:
        # A kill, unlike virsh, saves the time in which QEMU writes its disks, which are deleted.
        if pid := find_domain_process(name):
            capture_output(wrap_as_root(["kill", "-KILL", "--", str(pid)]), check=False)
            # The kernel needs some seconds to free the process's memory.
            wait_for_process(pid, 10)
        # Each command fails if libvirt has already done it.
        run_virsh("destroy", name, check=False)
        run_virsh(
            "undefine", name, "--managed-save", "--snapshots-metadata", "--nvram", check=False
        )
    names_after_removal = set(names) & set(list_domains())
    if names_after_removal:
        name = min(names_after_removal)
        raise UserError(f"libvirt did not remove the domain {name}: see `virsh list --all`")
    volume_names = vagrant_box.remove_volumes(only_name or f"{get_name_prefix()}-")
    phrases = [f"domain {name}" for name in names]
    return phrases + [f"volume {name}" for name in volume_names]


def find_domain_process(name: str) -> int | None:
    """Return the ID of a domain's QEMU process; None if it does not run.

    name: the name of the domain.
    Reads the file in which libvirt keeps the ID, as root; libvirt need not answer.
    """
    # check=False: a domain that does not run has no such file, and `pid` is then empty.
    read_pid = wrap_as_root(["cat", "--", f"{PROCESSES}/{name}.pid"])
    pid = capture_output(read_pid, check=False).stdout.strip()
    path = f"/proc/{pid}/cmdline"
    # The domain may have ended, and another process may have its ID by now: QEMU's process is
    # recognized by the argument `-name guest=NAME,...`, with which libvirt starts it.
    command_line = observe.read_files([path]).get(path, "")
    return int(pid) if f"guest={name}," in command_line else None


def remove_libvirt_objects() -> list[str]:
    """Remove Strata's domains, volumes, network and storage pool; return a phrase for each.

    The pool's folder stays, with the disks of boxes.  Nothing is removed if libvirt does not
    answer.  A second call removes nothing.
    """
    if not is_libvirt_answering():
        return []
    phrases = remove_domains()
    for kind, description in (("net", "network"), ("pool", "storage pool")):
        if get_name_prefix() in run_virsh(f"{kind}-list", "--name").split():
            run_virsh(f"{kind}-destroy", get_name_prefix(), check=False)
            phrases.append(f"{description} {get_name_prefix()}")
    return phrases
