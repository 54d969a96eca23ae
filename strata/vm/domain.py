"""libvirt's domain: what Vagrant cannot say is written into it, and what it became is read from it (pure functions)."""

import xml.etree.ElementTree as ElementTree
from xml.etree.ElementTree import Element

from strata.base.shapes import Fields


def _child(parent: Element, tag: str, /, **attributes: str) -> Element:
    """The child with that tag, made if it is not there, with these attributes."""
    found = parent.find(tag)
    if found is None:
        found = ElementTree.SubElement(parent, tag)
    for key, value in attributes.items():
        found.set(key, value)
    return found


def tune(xml: str, extra: Fields) -> str:
    """A domain's XML with the settings of `extra` (of :func:`strata.vm.settings.resolve`) in it.

    Raises ValueError if it is no domain's XML.
    """
    domain = ElementTree.fromstring(xml)
    if domain.tag != "domain":
        raise ValueError(f"expected a domain, found <{domain.tag}>")
    devices = domain.find("devices")
    assert devices is not None
    cpu = domain.find("cpu")
    if extra["host_caches"] and cpu is not None:
        _child(cpu, "cache", mode="passthrough")
    if extra["arguments"]:
        line = _child(_child(domain, "os"), "cmdline")
        if extra["arguments"] not in (line.text or ""):
            line.text = f"{line.text or ''} {extra['arguments']}".strip()
    if extra["iothread"]:
        _child(domain, "iothreads").text = "1"
        for disk in devices.findall("disk[@device='disk']"):
            _child(disk, "driver", iothread="1")
    if extra["memory_nodes"]:
        binding = _child(domain, "numatune")
        for old in binding.findall("memnode"):
            binding.remove(old)
        for cell, node in enumerate(extra["memory_nodes"]):
            ElementTree.SubElement(binding, "memnode", cellid=str(cell), mode="strict", nodeset=str(node))
    if extra["emulator"]:
        tuning = _child(domain, "cputune")
        _child(tuning, "emulatorpin", cpuset=extra["emulator"])
        if extra["iothread"]:
            _child(tuning, "iothreadpin", iothread="1", cpuset=extra["emulator"])
    for card in devices.findall("interface"):
        if extra["vhost"]:
            _child(card, "driver", name="vhost")
        if extra["queues"]:
            _child(card, "driver", queues=str(extra["queues"]))
    ElementTree.indent(domain)
    return ElementTree.tostring(domain, encoding="unicode")


def read(xml: str) -> Fields:
    """What a live domain's XML says about the settings.

    ``{type, cpu_mode, topology, caches, affinity: {vcpu: cpus}, emulator, iothreads, huge_pages, disks: [{target,
    file, cache, io, iothread}], cards: [{mac, bridge, network, driver, queues}], devices: [PCI addresses]}``
    """
    domain = ElementTree.fromstring(xml)

    def attribute(path: str, name: str) -> str | None:
        found = domain.find(path)
        return None if found is None else found.get(name)

    shape = domain.find("cpu/topology")
    threads = domain.findtext("iothreads")
    return {
        "type": domain.get("type"),
        "cpu_mode": attribute("cpu", "mode"),
        "topology": {key: int(shape.get(key, 0)) for key in ("sockets", "cores", "threads")}
        if shape is not None
        else None,
        "caches": attribute("cpu/cache", "mode"),
        "affinity": {pin.get("vcpu", ""): pin.get("cpuset", "") for pin in domain.findall("cputune/vcpupin")},
        "emulator": attribute("cputune/emulatorpin", "cpuset"),
        "iothreads": int(threads) if threads else 0,
        "huge_pages": domain.find("memoryBacking/hugepages") is not None,
        "disks": [_disk(disk) for disk in domain.findall("devices/disk[@device='disk']")],
        "cards": [_card(card) for card in domain.findall("devices/interface")],
        "devices": [_address(source) for source in domain.findall("devices/hostdev/source/address")],
    }


def _disk(disk: Element) -> Fields:
    driver, target, source = (disk.find(name) for name in ("driver", "target", "source"))
    return {
        "target": target.get("dev") if target is not None else None,
        "file": source.get("file") if source is not None else None,
        **{key: driver.get(key) if driver is not None else None for key in ("cache", "io", "iothread")},
    }


def _card(card: Element) -> Fields:
    driver, source, mac = (card.find(name) for name in ("driver", "source", "mac"))
    return {
        "mac": mac.get("address") if mac is not None else None,
        "network": source.get("network") if source is not None else None,
        "bridge": source.get("bridge") if source is not None else None,
        "driver": driver.get("name") if driver is not None else None,
        "queues": int(driver.get("queues") or 1) if driver is not None else 1,
    }


def _address(address: Element) -> str:
    parts = [address.get(name, "0").removeprefix("0x") for name in ("domain", "bus", "slot", "function")]
    return "{:0>4}:{:0>2}:{:0>2}.{}".format(*parts)
