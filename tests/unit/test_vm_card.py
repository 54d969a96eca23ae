import pytest

from strata.base.errors import UserError
from strata.base.files import write_json
from strata.client import namespace, remote
from strata.host.context import Context
from strata.vm import card

DEVICE = "0000:03:10.0"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, []),
        ({"address": "192.0.2.20/24"}, []),
        ({"address": "192.0.2.20/24", "client": "192.0.2.21/24"}, []),
        ({"address": "192.0.2.20"}, ["card.address"]),
        ({"address": "192.0.2.200/33"}, ["card.address"]),
        ({"address": "lab/24"}, ["card.address"]),
        ({"address": "192.0.2.20/255.255.255.0"}, ["card.address"]),
        ({"address": "192.0.2.20/24", "client": "192.0.2.20/24"}, ["card.client"]),
        ({"address": "192.0.2.20/24", "client": "198.51.100.1/24"}, ["card.client"]),
    ],
)
def test_addresses_that_lead_nowhere_are_told(given, found):
    profile = {"passthrough": [DEVICE], **({"card": given} if given else {})}
    assert [key for key, _ in card.complaints(profile)] == found


def test_what_keeps_a_device_from_a_guest_is_said(tmp_path):
    assert "lspci -D" in card.complaint(DEVICE, "kvm", str(tmp_path))
    (tmp_path / DEVICE).mkdir()
    assert "under KVM only" in card.complaint(DEVICE, "tcg", str(tmp_path))
    assert "IOMMU on" in card.complaint(DEVICE, "kvm", str(tmp_path))
    (tmp_path / DEVICE / "iommu_group").mkdir()
    assert card.complaint(DEVICE, "kvm", str(tmp_path)) is None


def test_the_hosts_side_of_a_function_is_its_card(tmp_path):
    (tmp_path / DEVICE / "physfn/net/enp3s0").mkdir(parents=True)
    assert card.port(DEVICE, str(tmp_path)) == "enp3s0"
    with pytest.raises(UserError, match="a second machine may"):
        card.port("0000:03:00.0", str(tmp_path))


class Reached:
    """A system that is reached over a card of its own."""

    def __init__(self, *own):
        self.own = own

    def machine(self):
        return self

    def card(self):
        return self.own

    def address(self):
        return "192.0.2.20"


@pytest.fixture
def client(monkeypatch):
    """A client in a namespace without one, and the commands that it gives."""
    made = []
    monkeypatch.setattr(namespace, "_ip", lambda *words, check=True: made.append(words) or "")
    monkeypatch.setattr(namespace.card, "port", lambda device: "enp3s0")
    one = namespace.Namespace.__new__(namespace.Namespace)
    one.options = {"rate": None}
    return one, made


@pytest.fixture
def second(tmp_path, monkeypatch):
    """A client on a second machine, and what that says of the way to an address; nothing is to be set on this host."""
    monkeypatch.setattr(remote, "capture", lambda *words: pytest.fail("nothing is to be set"))
    one = remote.Remote(None, {"ssh": "other", "ssh_config": None, "rate": None}, Context("i", str(tmp_path), None))
    write_json(str(tmp_path / "remote.json"), {"device_there": "eth0"})
    said = {"ip -o route get 192.0.2.20": "192.0.2.20 dev eth1 src 192.0.2.21 uid 0"}
    said["ip -o link show eth1"] = "3: eth1: <BROADCAST> mtu 9000 qdisc mq"
    monkeypatch.setattr(one, "_do", lambda argv, check=True: said[" ".join(argv)])
    system = Reached(DEVICE, None)
    system.bridge = lambda: None
    return one, system, said
