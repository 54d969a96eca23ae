import pytest

from strata.base.errors import UserError
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
