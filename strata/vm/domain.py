"""Read the XML of libvirt's domains, and add the settings that Vagrant cannot write."""

import xml.etree.ElementTree as ElementTree
from xml.etree.ElementTree import Element

from strata.util.data_types import Fields


def _ensure_child(parent: Element, tag: str, /, **attributes: str) -> Element:
    """Create an XML element's child with a tag if it is missing, set its attributes, and return it.

    parent: the element.
    tag: the child's tag; if several children have it, the first is taken.
    attributes: the attributes to set.  Others of the child stay, so that several settings can share
    an element.
    """
    child = parent.find(tag)
    if child is None:
        child = ElementTree.SubElement(parent, tag)
    child.attrib.update(attributes)
    return child


def add_domain_settings(xml: str, extra: Fields) -> str:
    """Return a domain's XML with the settings that Vagrant cannot write.

    xml: the domain as Vagrant defined it.
    extra: the key `extra` of the result of :func:`strata.vm.settings.resolve_machine_settings`.
    A value that is None or false adds nothing.  `arguments` is not read: Vagrant sets it.
    """
    domain = ElementTree.fromstring(xml)
    if extra["mask"]:
        _ensure_child(domain, "vcpu", cpuset=extra["mask"])
    if extra["host_caches"]:
        _ensure_child(_ensure_child(domain, "cpu"), "cache", mode="passthrough")
    if extra["iothread"]:
        _ensure_child(domain, "iothreads").text = "1"
        for disk in domain.findall("devices/disk[@device='disk']"):
            _ensure_child(disk, "driver", iothread="1")
    for guest_node, host_node in enumerate(extra["memory_nodes"] or []):
        binding = {"cellid": str(guest_node), "mode": "strict", "nodeset": str(host_node)}
        ElementTree.SubElement(_ensure_child(domain, "numatune"), "memnode", binding)
    if extra["emulator"]:
        tuning = _ensure_child(domain, "cputune")
        _ensure_child(tuning, "emulatorpin", cpuset=extra["emulator"])
        if extra["iothread"]:
            _ensure_child(tuning, "iothreadpin", iothread="1", cpuset=extra["emulator"])
    for card in domain.findall("devices/interface"):
        if extra["vhost"]:
            _ensure_child(card, "driver", name="vhost")
        if extra["queues"]:
            _ensure_child(card, "driver", queues=str(extra["queues"]))
    ElementTree.indent(domain)
    return ElementTree.tostring(domain, encoding="unicode")


def parse_domain_settings(xml: str) -> Fields:
    """Return ``{disks: [{cache, io, iothread}, …], devices: [PCI address, …]}`` of a domain's XML.

    A disk's value is None if the domain does not set it.  The devices are those that are passed
    through; an address is, for example, "0000:03:10.0".
    :func:`strata.vm.applied.compare_settings` reads the keys.
    """
    domain = ElementTree.fromstring(xml)
    disks = []
    for driver in domain.findall("devices/disk[@device='disk']/driver"):
        disks.append({key: driver.get(key) for key in ("cache", "io", "iothread")})
    devices = []
    for address in domain.findall("devices/hostdev/source/address"):
        # libvirt writes 0x0000, where a PCI address has 0000.
        text = "{domain}:{bus}:{slot}.{function}".format(**address.attrib)
        devices.append(text.replace("0x", ""))
    return {"disks": disks, "devices": devices}
