"""libvirt's domain: what Vagrant cannot say goes in, and what a live one became comes out."""

from xml.etree import ElementTree

from strata.vm import domain

BEFORE = """
<domain type='kvm'>
  <name>machine</name>
  <vcpu>4</vcpu>
  <os><cmdline>quiet</cmdline></os>
  <cpu mode='host-passthrough'><topology sockets='1' cores='2' threads='2'/></cpu>
  <cputune><vcpupin vcpu='0' cpuset='0'/><vcpupin vcpu='1' cpuset='2'/></cputune>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='none' io='native'/><source file='/a.img'/><target dev='vda' bus='virtio'/>
    </disk>
    <disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/b.img'/><target dev='vdb'/></disk>
    <disk type='file' device='cdrom'><target dev='sda'/></disk>
    <interface type='network'><mac address='52:54:00:00:00:01'/><source network='strata'/></interface>
    <hostdev mode='subsystem' type='pci' managed='yes'>
      <source><address domain='0x0000' bus='0x03' slot='0x10' function='0x1'/></source>
    </hostdev>
  </devices>
</domain>
"""
EVERYTHING = {
    "host_caches": True,
    "emulator": "4-7",
    "iothread": True,
    "vhost": True,
    "queues": 4,
    "memory_nodes": [0, 1],
    "arguments": "tsc=reliable",
}
NOTHING = {
    "host_caches": False,
    "emulator": None,
    "iothread": False,
    "vhost": False,
    "queues": None,
    "memory_nodes": None,
    "arguments": None,
}


def test_everything_that_is_asked_is_in_the_domain():
    found = domain.read(domain.tune(BEFORE, EVERYTHING))
    assert "<cmdline>quiet tsc=reliable</cmdline>" in domain.tune(BEFORE, EVERYTHING)
    assert found["caches"] == "passthrough"
    assert found["emulator"] == "4-7"
    assert found["iothreads"] == 1
    assert [disk["iothread"] for disk in found["disks"]] == ["1", "1"]
    assert found["cards"][0]["driver"] == "vhost"
    assert found["cards"][0]["queues"] == 4
    assert found["topology"] == {"sockets": 1, "cores": 2, "threads": 2}
    assert found["affinity"] == {"0": "0", "1": "2"}


def test_the_memory_of_each_node_is_bound_to_one_of_the_hosts():
    tuned = ElementTree.fromstring(domain.tune(BEFORE, {**NOTHING, "memory_nodes": [1, 3]}))
    bound = [(node.get("cellid"), node.get("mode"), node.get("nodeset")) for node in tuned.findall("numatune/memnode")]
    assert bound == [("0", "strict", "1"), ("1", "strict", "3")]


def test_nothing_asked_changes_nothing():
    assert domain.read(domain.tune(BEFORE, NOTHING)) == domain.read(BEFORE)


def test_what_a_domain_says_is_read():
    found = domain.read(BEFORE)
    assert found["type"] == "kvm"
    assert [disk["file"] for disk in found["disks"]] == ["/a.img", "/b.img"]
    assert found["disks"][0]["cache"] == "none"
    assert found["disks"][1]["cache"] is None
    assert found["devices"] == ["0000:03:10.1"]
    assert found["iothreads"] == 0
    assert not found["huge_pages"]
