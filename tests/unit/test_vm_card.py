import pytest

from strata.base.errors import UserError
from strata.vm import card

DEVICE = "0000:03:10.0"


def test_what_keeps_a_device_from_a_guest_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(card, "DEVICES", str(tmp_path))
    assert "lspci -D" in card.complaint(DEVICE, "kvm")
    (tmp_path / DEVICE).mkdir()
    assert "under KVM only" in card.complaint(DEVICE, "tcg")
    assert "IOMMU on" in card.complaint(DEVICE, "kvm")
    (tmp_path / DEVICE / "iommu_group").mkdir()
    assert card.complaint(DEVICE, "kvm") is None


def test_the_hosts_side_of_a_function_is_its_card(tmp_path, monkeypatch):
    monkeypatch.setattr(card, "DEVICES", str(tmp_path))
    (tmp_path / DEVICE / "physfn/net/enp3s0").mkdir(parents=True)
    assert card.port(DEVICE) == "enp3s0"
    with pytest.raises(UserError, match="a second machine may"):
        card.port("0000:03:00.0")
