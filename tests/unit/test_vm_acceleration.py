"""Whether KVM runs a guest: what the short guest and QEMU say decides, and nothing else."""

import pytest

from strata.vm import acceleration


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    device = tmp_path / "kvm"
    device.touch()
    return str(device)


@pytest.mark.parametrize(
    ("console", "accelerator", "reason"),
    [
        (f"x\r\n{acceleration.WORD}\r\n", "kvm", "reported back"),
        ("Kernel panic", "tcg", "no report within 15 s"),
    ],
)
def test_a_report_alone_proves_kvm(console, accelerator, reason):
    found = acceleration.understand(console)
    assert found["accelerator"] == accelerator
    assert reason in found["accelerator_reason"]


def test_without_the_device_there_is_nothing_to_try(tmp_path, home):
    found = acceleration.known(str(tmp_path / "missing"))
    assert found["accelerator"] == "tcg"
    assert "there is no" in found["accelerator_reason"]


def test_a_finding_holds_until_its_circumstances_change(home):
    finding = {"accelerator": "kvm", "accelerator_reason": "it reported"}
    kept = {"circumstances": acceleration.circumstances(home), "finding": finding}
    path = acceleration.path()
    acceleration.write_json(path, kept)
    assert acceleration.known(home) == finding
    acceleration.write_json(path, {**kept, "circumstances": {**kept["circumstances"], "boot": "another"}})
    assert acceleration.known(home)["accelerator"] is None
