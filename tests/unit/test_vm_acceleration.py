"""The console of a short guest decides whether KVM runs here, and nothing else."""

from types import SimpleNamespace

import pytest

from strata.vm import acceleration


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    device = tmp_path / "kvm"
    device.touch()
    monkeypatch.setattr(acceleration, "DEVICE", str(device))
    return device


@pytest.mark.parametrize(
    ("console", "accelerator", "reason"),
    [
        (f"x\r\n{acceleration.COMPLAINT}\r\n", "kvm", "reported back"),
        ("Kernel panic", "tcg", "no report within 15 s"),
    ],
)
def test_a_report_alone_proves_kvm(home, monkeypatch, console, accelerator, reason):
    monkeypatch.setattr(
        acceleration,
        "capture_output",
        lambda *argv, **more: SimpleNamespace(stdout=console, stderr=""),
    )
    finding = acceleration.run_kvm_trial("kernel")
    assert finding["accelerator"] == accelerator
    assert reason in finding["accelerator_reason"]
    assert acceleration.read_known_accelerator() == finding


def test_without_the_device_there_is_nothing_to_try(home):
    home.unlink()
    finding = acceleration.read_known_accelerator()
    assert finding["accelerator"] == "tcg"
    assert "there is no" in finding["accelerator_reason"]


def test_a_finding_holds_until_its_circumstances_change(home):
    finding = {"accelerator": "kvm", "accelerator_reason": "it reported"}
    kept = {"circumstances": acceleration.read_trial_conditions(), "finding": finding}
    path = acceleration.get_trial_result_path()
    acceleration.write_json(path, kept)
    assert acceleration.read_known_accelerator() == finding
    acceleration.write_json(
        path, {**kept, "circumstances": {**kept["circumstances"], "boot": "another"}}
    )
    assert acceleration.read_known_accelerator()["accelerator"] is None
