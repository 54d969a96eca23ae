"""libvirt's domain: settings that Vagrant cannot write go in, and those of a live one come out."""

from xml.etree import ElementTree

from strata.vm import domain

BEFORE = """
<domain type='kvm'>
  <name>machine</name>
  <vcpu>4</vcpu>
  <cpu mode='host-passthrough'><topology sockets='1' cores='2' threads='2'/></cpu>
  <cputune><vcpupin vcpu='0' cpuset='0'/><vcpupin vcpu='1' cpuset='2'/></cputune>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='none' io='native'/>
      <source file='/a.img'/><target dev='vda' bus='virtio'/>
    </disk>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/><source file='/b.img'/><target dev='vdb'/>
    </disk>
    <disk type='file' device='cdrom'><target dev='sda'/></disk>
    <interface type='network'>
      <mac address='52:54:00:00:00:01'/><source network='strata'/>
    </interface>
    <hostdev mode='subsystem' type='pci' managed='yes'>
      <source><address domain='0x0000' bus='0x03' slot='0x10' function='0x1'/></source>
    </hostdev>
  </devices>
</domain>
"""
EXTRA = {
    "mask": "1,3",
    "host_caches": True,
    "emulator": "4-7",
    "iothread": True,
    "vhost": True,
    "queues": 4,
    "memory_nodes": [3],
}
NOTHING = dict.fromkeys(EXTRA)
# Path of each setting in the domain's XML, and its attributes there.
WRITTEN = {
    "vcpu": {"cpuset": "1,3"},
    "cpu/cache": {"mode": "passthrough"},
    "cputune/emulatorpin": {"cpuset": "4-7"},
    "cputune/iothreadpin": {"iothread": "1", "cpuset": "4-7"},
    "devices/interface/driver": {"name": "vhost", "queues": "4"},
    "numatune/memnode": {"cellid": "0", "mode": "strict", "nodeset": "3"},
}


def test_what_vagrant_cannot_write_is_in_the_domain_where_it_is_asked_for():
    def written(extra):
        xml = ElementTree.fromstring(domain.add_domain_settings(BEFORE, extra))
        return {path: node.attrib for path in WRITTEN if (node := xml.find(path)) is not None}

    assert written(EXTRA) == WRITTEN
    assert written(NOTHING) == {"vcpu": {}}


def test_disks_and_devices_are_read_from_a_domain():
    disk = {"cache": "none", "io": "native", "iothread": None}
    plain = dict.fromkeys(disk)
    assert domain.parse_domain_settings(BEFORE) == {
        "disks": [disk, plain],
        "devices": ["0000:03:10.1"],
    }
    assert domain.parse_domain_settings(
        domain.add_domain_settings(BEFORE, NOTHING)
    ) == domain.parse_domain_settings(BEFORE)
    tuned = domain.add_domain_settings(BEFORE, NOTHING | {"iothread": True})
    assert domain.parse_domain_settings(tuned)["disks"] == [
        {**disk, "iothread": "1"},
        {**plain, "iothread": "1"},
    ]
