"""What of the client needs neither a namespace nor a second machine."""

import projects
import pytest

from strata import client
from strata.base.errors import UserError
from strata.client import link, remote
from strata.experiment import config
from strata.host import addresses
from strata.host.context import Context


def test_the_client_is_settled_with_every_default():
    assert client.settle("namespace") == {"kind": "namespace", "rate": None}
    assert client.settle({"rate": "1gbit"}) == {"kind": "namespace", "rate": "1gbit"}
    there, other = client.settle({"ssh": "a@b"}), client.settle({"ssh": "c@d"})
    assert there["kind"] == "ssh"
    assert there != other
    assert "a@b" not in str(there)
    assert isinstance(client.make({**there, **client.way({"ssh": "a@b"})}, Context("i", "f", None))[-1], remote.Remote)


@pytest.mark.parametrize(
    "wrong",
    [
        "moon",
        {},
        {"ssh": "-oProxyCommand=x"},
        {"ssh": "a b"},
        {"ssh": "a@-b"},
        {"ssh": "a;b"},
        {"rate": "fast"},
        {"rate": "0gbit"},
        {"rate": 5},
        {"port": 5},
        None,
    ],
)
def test_a_client_that_is_none_is_refused_with_its_key(project, wrong):
    folder = project(config=projects.on_host(client=wrong))
    with pytest.raises(UserError, match=r"config.yaml: client(\.\w+)?: "):
        config.read(path=str(folder / "config.yaml"))


def test_a_bucket_lets_through_what_its_rate_needs():
    assert link.bits_per_second("100mbit") == 10**8
    words = link.bucket("eth0", "10gbit")
    assert words[:8] == ["tc", "qdisc", "add", "dev", "eth0", "root", "handle", link.HANDLE]
    burst = int(words[words.index("burst") + 1])
    assert burst == 10**10 // 8 // 250
    assert "131072" in link.bucket("eth0", "1mbit")
    with pytest.raises(UserError, match="1gbyte"):
        link.bits_per_second("1gbyte")


def test_a_free_network_touches_no_route():
    assert addresses.free_subnet("default via 10.0.0.1") == "192.168.120.0/24"
    assert addresses.free_subnet("192.168.120.0/24 dev x\n192.168.121.7/32") == "192.168.122.0/24"
    with pytest.raises(UserError, match="is free"):
        addresses.free_subnet("192.168.0.0/16 dev x")
    assert addresses.member("192.168.7.0/24", 2) == "192.168.7.2"
    assert addresses.member("192.168.7.10/24", 0) == "192.168.7.0"
