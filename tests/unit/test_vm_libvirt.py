"""Names, networks and disks of ours in libvirt."""

import ipaddress
import xml.etree.ElementTree as ElementTree

import pytest

from strata.host import addresses
from strata.vm import libvirt, ssh


def test_a_client_that_gives_up_its_network_leaves_the_machines_theirs(monkeypatch, tmp_path):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))
    monkeypatch.setattr(libvirt, "virsh", lambda *words, **more: "")
    monkeypatch.setattr(addresses, "host_routes", lambda: "10.0.0.0/24 dev eth0")
    alone = libvirt.bring_up()
    link = addresses.free_subnet(addresses.host_routes())
    monkeypatch.setattr(addresses, "host_routes", lambda: f"{link} dev veth0")
    assert libvirt.bring_up() == alone != link


@pytest.mark.parametrize("machines", [1, 8])
def test_every_machine_has_a_fixed_address(machines):
    subnet = "192.168.130.0/24"
    network = ElementTree.fromstring(libvirt.network_xml(subnet, machines))
    hosts = [(host.get("mac"), host.get("ip")) for host in network.iter("host")]
    assert hosts == [libvirt.card_address(subnet, number) for number in range(machines)]
    assert len({mac for mac, _ in hosts}) == machines
    span = network.find("ip/dhcp/range")
    first, last = ipaddress.ip_address(span.get("start")), ipaddress.ip_address(span.get("end"))
    assert int(last) - int(first) + 1 == machines
    assert network.find("forward") is None


def test_the_way_in_is_pinned_to_the_machines_own_key(tmp_path):
    folder = tmp_path / "strata-x"
    folder.mkdir()
    ssh.write(str(folder), "192.168.120.10", "/key", "ssh-ed25519 AAAA")
    text = (folder / "ssh_config").read_text()
    assert "StrictHostKeyChecking yes" in text
    assert (folder / "known_hosts").read_text() == "192.168.120.10 ssh-ed25519 AAAA\n"
    assert f"ControlPath {folder}/ssh\n" in text
