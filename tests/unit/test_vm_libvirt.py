"""Networks and domains of Strata in libvirt."""

import ipaddress
import signal
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

from strata.host import addresses
from strata.vm import libvirt


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    """A cache of the test's own, and a virsh that does nothing."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))
    monkeypatch.setattr(libvirt, "run_virsh", lambda *words, **more: "")


def test_a_client_that_gives_up_its_network_leaves_the_machines_theirs(monkeypatch):
    monkeypatch.setattr(addresses, "read_host_routes", lambda: "10.0.0.0/24 dev eth0")
    machines_alone = libvirt.create_network()
    link = addresses.find_free_subnet(addresses.read_host_routes())
    monkeypatch.setattr(addresses, "read_host_routes", lambda: f"{link} dev veth0")
    assert libvirt.create_network() == machines_alone != link


def test_every_machine_has_a_fixed_address_and_none_a_way_out():
    subnet, machines = "192.168.130.0/24", 8
    network = ElementTree.fromstring(libvirt.format_network_xml(subnet, machines))
    hosts = [(host.get("mac"), host.get("ip")) for host in network.iter("host")]
    assert hosts == [
        libvirt.compute_interface_addresses(subnet, number) for number in range(machines)
    ]
    assert len({mac for mac, _ in hosts}) == machines
    span = network.find("ip/dhcp/range")
    first, last = (int(ipaddress.ip_address(span.get(end))) for end in ("start", "end"))
    assert last - first + 1 == machines
    assert network.find("forward") is None


@pytest.mark.parametrize(("guest", "code"), [("strata-x", -signal.SIGKILL), ("strata-xb", None)])
def test_a_domain_is_ended_at_once_and_no_process_but_its_own(monkeypatch, tmp_path, guest, code):
    listings = [["strata-x"], []]
    monkeypatch.setattr(libvirt, "PROCESSES", str(tmp_path))
    monkeypatch.setattr(libvirt, "list_domains", lambda: listings.pop(0))
    ignores_term = ["bash", "-c", "trap : TERM; echo up; read -r"]
    argv = [*ignores_term, "-name", f"guest={guest},debug-threads=on"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        # The kernel shows its command line only a moment after its start.
        process.stdout.readline()
        (tmp_path / "strata-x.pid").write_text(f"{process.pid}\n")
        assert libvirt.remove_domains() == ["domain strata-x"]
        assert process.poll() == code
        process.kill()
