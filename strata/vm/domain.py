"""libvirt's domain: what Vagrant cannot say is written into it, and what it became is read from it (pure functions)."""

import xml.etree.ElementTree as ElementTree
from xml.etree.ElementTree import Element

from strata.util.data_types import Fields


def _child(parent: Element, tag: str, /, **attributes: str) -> Element:
    """The child with that tag, made if it is not there, with these attributes."""
    found = parent.find(tag)
    if found is None:
        found = ElementTree.SubElement(parent, tag)
    found.attrib.update(attributes)
    return found


def tune(xml: str, extra: Fields) -> str:
    """A domain's XML with the settings of `extra` (of :func:`strata.vm.settings.resolve`) in it."""
    domain = ElementTree.fromstring(xml)
    if extra["mask"]:
        _child(domain, "vcpu", cpuset=extra["mask"])
    if extra["host_caches"]:
        _child(_child(domain, "cpu"), "cache", mode="passthrough")
    if extra["iothread"]:
        _child(domain, "iothreads").text = "1"
        for disk in domain.findall("devices/disk[@device='disk']"):
            _child(disk, "driver", iothread="1")
    for cell, node in enumerate(extra["memory_nodes"] or []):
        binding = _child(domain, "numatune")
        ElementTree.SubElement(
            binding, "memnode", cellid=str(cell), mode="strict", nodeset=str(node)
        )
    if extra["emulator"]:
        tuning = _child(domain, "cputune")
        _child(tuning, "emulatorpin", cpuset=extra["emulator"])
        if extra["iothread"]:
            _child(tuning, "iothreadpin", iothread="1", cpuset=extra["emulator"])
    for card in domain.findall("devices/interface"):
        if extra["vhost"]:
            _child(card, "driver", name="vhost")
        if extra["queues"]:
            _child(card, "driver", queues=str(extra["queues"]))
    ElementTree.indent(domain)
    return ElementTree.tostring(domain, encoding="unicode")


def read(xml: str) -> Fields:
    """What a live domain's XML says: ``{disks: [{cache, io, iothread}], devices: [PCI addresses]}``."""
    domain = ElementTree.fromstring(xml)
    drivers = domain.findall("devices/disk[@device='disk']/driver")
    return {
        "disks": [
            {key: driver.get(key) for key in ("cache", "io", "iothread")} for driver in drivers
        ],
        "devices": [
            "{domain}:{bus}:{slot}.{function}".format(**address.attrib).replace("0x", "")
            for address in domain.findall("devices/hostdev/source/address")
        ],
    }
