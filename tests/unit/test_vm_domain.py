"""libvirt's domain: what Vagrant cannot say goes in, and what a live one became comes out."""

from xml.etree import ElementTree

import pytest

from strata.vm import domain

BEFORE = """
<domain type='kvm'>
  <name>machine</name>
  <vcpu>4</vcpu>
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
NOTHING = dict.fromkeys(
    ("mask", "host_caches", "emulator", "iothread", "vhost", "queues", "memory_nodes")
)


@pytest.mark.parametrize(
    ("asked", "path", "attributes"),
    [
        ({"mask": "1,3"}, "vcpu", {"cpuset": "1,3"}),
        ({"host_caches": True}, "cpu/cache", {"mode": "passthrough"}),
        ({"emulator": "4-7"}, "cputune/emulatorpin", {"cpuset": "4-7"}),
        (
            {"emulator": "4-7", "iothread": True},
            "cputune/iothreadpin",
            {"iothread": "1", "cpuset": "4-7"},
        ),
        (
            {"vhost": True, "queues": 4},
            "devices/interface/driver",
            {"name": "vhost", "queues": "4"},
        ),
        (
            {"memory_nodes": [3]},
            "numatune/memnode",
            {"cellid": "0", "mode": "strict", "nodeset": "3"},
        ),
    ],
)
def test_what_vagrant_cannot_say_is_in_the_domain(asked, path, attributes):
    before = ElementTree.fromstring(BEFORE).find(path)
    assert before is None or not attributes.items() <= before.attrib.items()
    assert (
        ElementTree.fromstring(domain.tune(BEFORE, NOTHING | asked)).find(path).attrib == attributes
    )


def test_what_a_domain_says_is_read():
    disk = {"cache": "none", "io": "native", "iothread": None}
    plain = dict.fromkeys(disk)
    assert domain.read(BEFORE) == {"disks": [disk, plain], "devices": ["0000:03:10.1"]}
    assert domain.read(domain.tune(BEFORE, NOTHING)) == domain.read(BEFORE)
    tuned = domain.tune(BEFORE, NOTHING | {"iothread": True})
    assert domain.read(tuned)["disks"] == [{**disk, "iothread": "1"}, {**plain, "iothread": "1"}]
