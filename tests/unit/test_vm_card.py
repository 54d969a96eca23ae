import pytest

from strata.base.errors import UserError
from strata.base.files import write_json
from strata.client import namespace, remote
from strata.host.context import Context
from strata.layers import vm
from strata.vm import card, passthrough

DEVICE = "0000:03:10.0"
WANTED = {"mac": "52:54:00:00:00:01", "passthrough": [DEVICE], "card": {"address": "192.0.2.20/24"}}


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


def test_an_address_needs_a_device():
    assert [key for key, _ in card.complaints({"card": {"address": "192.0.2.20/24"}})] == ["card"]


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("eth1 192.0.2.20/24\n", None),
        ("eth1 \n", "eth1 has no address"),
        ("0 cards:\n", "there must be one"),
        ("2 cards: eth1 eth2\n", "there must be one"),
    ],
)
def test_the_card_is_what_has_a_device_and_is_not_the_machines_other_one(monkeypatch, said, wrong):
    asked = []
    monkeypatch.setattr(card.ssh, "run", lambda folder, argv, **more: asked.append(argv) or said)
    if wrong:
        with pytest.raises(UserError, match=wrong):
            card.give("folder", WANTED)
    else:
        assert card.give("folder", WANTED) == "192.0.2.20/24"
    assert asked[0][3:] == ["strata", WANTED["mac"], "192.0.2.20/24"]


def test_the_hosts_side_of_a_function_is_its_card(tmp_path):
    (tmp_path / DEVICE / "physfn/net/enp3s0").mkdir(parents=True)
    assert card.port(DEVICE, str(tmp_path)) == "enp3s0"
    with pytest.raises(UserError, match="a second machine may"):
        card.port("0000:03:00.0", str(tmp_path))
    assert card.DEVICES == passthrough.DEVICES


class Reached:
    """A system that is reached over a card of its own."""

    def __init__(self, *own):
        self.own = own

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


def test_a_client_of_this_host_is_put_on_the_card(client):
    one, made = client
    one.join([Reached(DEVICE, "192.0.2.21/24")])
    words = [" ".join(line) for line in made]
    assert any("link enp3s0" in line and "macvlan" in line for line in words)
    assert any("192.0.2.21/24" in line for line in words)


@pytest.mark.parametrize(
    ("address", "rate", "words"), [(None, None, "give it client"), ("192.0.2.21/24", "1gbit", "leave it out")]
)
def test_what_it_lacks_for_that_is_named(client, address, rate, words):
    one, made = client
    one.options = {"rate": rate}
    with pytest.raises(UserError, match=words):
        one.join([Reached(DEVICE, address)])
    assert made == []


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


def test_a_second_machine_is_given_no_way_over_this_host_and_no_rate_that_limits_nothing(second):
    one, system, _ = second
    one.join([system])
    # What is told of the link is told of the card that leads there.
    assert one.facts() == {"kind": "network of a second machine", "mtu": 9000, "rate": "not limited"}
    one.options["rate"] = "1gbit"
    with pytest.raises(UserError, match="leave it out"):
        one.join([system])


@pytest.mark.parametrize("way", ["", "192.0.2.20 via 198.51.100.1 dev eth0 src 198.51.100.2 uid 0"])
def test_a_second_machine_without_a_card_in_that_network_is_named(second, way):
    one, system, said = second
    said["ip -o route get 192.0.2.20"] = way
    with pytest.raises(UserError, match="no card of other is in its network"):
        one.join([system])


def test_a_machine_is_reached_at_the_address_of_its_card(tmp_path, monkeypatch):
    one = vm.Layer.__new__(vm.Layer)
    told = dict(WANTED)
    monkeypatch.setattr(one, "_wanted", lambda: told)
    assert (one.address(), one.bridge(), one.card()) == ("192.0.2.20", None, (DEVICE, None))
