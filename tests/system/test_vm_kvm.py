"""Settings, domain and QEMU's arguments of machines under KVM, compared without KVM.

The host is an invented one with two sockets.  Vagrant defines the domain for real and is stopped
before it starts it; libvirt translates the tuned domain into QEMU's arguments.  UPDATE_GOLDEN=1
writes the files anew.
"""

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
import tuned

from strata.environments.common import registry
from strata.experiment import config
from strata.testbed import lifecycle
from strata.util import locks, paths
from strata.vm import applied, libvirt, settings
from strata.vm.machine import Machine, define_machine, remove_vagrant_files

MEMORY = 64 * 2**30
# Arguments of QEMU for a tuned machine alone.
TUNED = [
    *[
        "host-cache-info=on",
        "-smp 8,sockets=2,dies=1,cores=2,threads=2",
        "-numa node,nodeid=1,cpus=4-7",
    ],
    *['"aio":"native"', '"direct":true', '"iothread":"iothread1"'],
]


def compare(name, text):
    """Compare a text with a golden file, without names and numbers of this machine."""
    text = re.sub(r"<uuid>.*?</uuid>", "<uuid/>", text)
    text = re.sub(r"52:54:00(:[0-9a-f]{2}){3}", "MAC", text)
    text = re.sub(r"strata-[0-9a-f]{12}\b", "BOX", text)
    text = re.sub(r"strata-[0-9a-f]{8}(-[0-9a-f]{1,8})?", "NAME", text)
    text = re.sub(r"pc-q35-[0-9.]+", "pc-q35-VERSION", text)
    text = text.replace(paths.get_home_folder(), "HOME")
    tuned.compare(
        name, "\n".join(line.rstrip() for line in text.splitlines() if line.strip()) + "\n"
    )


def wanted(profile):
    complete = settings.complete_profile(config.read_config()["vm"]["profiles"][profile], "paper")
    return settings.resolve_machine_settings(complete, tuned.TWO_SOCKETS, MEMORY, "kvm")


@pytest.fixture
def network(image, machine_stays):
    """The machine's lock; the network and all that a machine stands on is gone afterwards."""
    libvirt.start_libvirt_daemon()
    with locks.hold_machine_lock():
        lifecycle.take_down_systems()
        try:
            yield
        finally:
            libvirt.remove_libvirt_objects()


def defined_by_vagrant(profile, image, folder):
    """The domain that Vagrant and virsh define for a profile."""
    options = {"profile": profile, "fresh": "boot", "settings": {}, "accelerator": "kvm"}
    context = registry.Context("strata-golden", str(folder), image)
    machine = Machine(
        {**options, "settings": settings.complete_profile({}, "paper")}, context, image
    )
    given = {**machine.prepare_machine(), **wanted(profile), "huge_pages": profile == "tuned"}
    (folder / "vm.json").write_text(json.dumps(given))
    define_machine(str(folder), given)
    remove_vagrant_files(str(folder))
    return libvirt.run_virsh("dumpxml", "--inactive", given["name"])


@pytest.fixture
def same_libvirt():
    """Skip with another libvirt than that of the golden files, or one that knows no KVM."""
    libvirt.start_libvirt_daemon()
    version = applied.read_libvirt_versions()["libvirt"]
    if version != "9.0.0":
        pytest.skip(f"the golden files are of libvirt 9.0.0, this is {version}")
    if not libvirt.run_virsh("domcapabilities", "--virttype", "kvm", check=False):
        pytest.skip(
            "libvirt finds no KVM here, not even one that runs no guest, and defines no domain for "
            "it"
        )


@pytest.mark.parametrize("profile", ["default", "tuned"])
def test_domain_and_arguments(profile, same_libvirt, network, image, checkout, tmp_path):
    xml = ElementTree.fromstring(defined_by_vagrant(profile, image, tmp_path))
    ElementTree.indent(xml)
    tuned = ElementTree.tostring(xml, encoding="unicode")
    compare(f"kvm-{profile}.xml", tuned)
    path = tmp_path / "tuned.xml"
    # Huge pages and memory nodes are left out here: libvirt looks for them on the host when it
    # translates.
    path.write_text(re.sub(r"<(memoryBacking|numatune)>.*?</\1>", "", tuned, flags=re.DOTALL))
    argv = libvirt.run_virsh("domxml-to-native", "qemu-argv", str(path))
    assert "-accel kvm" in argv
    for word in TUNED:
        assert (word in argv) is (profile == "tuned"), word
