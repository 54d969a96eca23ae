import pytest

from strata.util.errors import UserError
from strata.vm import passthrough

DEVICE = "0000:03:10.0"


def test_what_keeps_a_device_from_a_guest_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(passthrough, "DEVICES", str(tmp_path))
    assert "lspci -D" in passthrough.explain_unusable_device(DEVICE, "kvm")
    (tmp_path / DEVICE).mkdir()
    assert "under KVM only" in passthrough.explain_unusable_device(DEVICE, "tcg")
    assert "IOMMU on" in passthrough.explain_unusable_device(DEVICE, "kvm")
    (tmp_path / DEVICE / "iommu_group").mkdir()
    assert passthrough.explain_unusable_device(DEVICE, "kvm") is None


def test_the_hosts_side_of_a_function_is_its_card(tmp_path, monkeypatch):
    monkeypatch.setattr(passthrough, "DEVICES", str(tmp_path))
    (tmp_path / DEVICE / "physfn/net/enp3s0").mkdir(parents=True)
    assert passthrough.find_network_interface(DEVICE) == "enp3s0"
    with pytest.raises(UserError, match="a second machine may"):
        passthrough.find_network_interface("0000:03:00.0")
