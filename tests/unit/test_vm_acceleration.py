"""Whether KVM runs a guest: what the short guest and QEMU say decides, and nothing else."""

import json
import re

import pytest

from strata.base.files import write_json
from strata.vm import acceleration


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    device = tmp_path / "kvm"
    device.touch()
    return str(device)


def test_a_report_proves_kvm():
    found = acceleration.understand(f"x\r\n{acceleration.WORD}\r\n", "", ended=True)
    assert found["accelerator"] == "kvm"


DUMP = """KVM internal error. Suberror: 1
extra data[0]: 0x0000000000000001
emulation failure
EAX=00000000 EBX=00000000 ECX=00000000 EDX=000006a0
EIP=0000fff0 EFL=00000002 [-------] CPL=0 II=0 A20=1 SMM=0 HLT=0
Code=00 66 89 d8 66 e8 af a1 ff ff 66 83 c4 0c 66 5b 66 5e 66 c3 <ea> 5b e0 00 f0 30 36 2f
"""
PANIC = """[    0.512345] Code: 48 8b 05 00 00 00 00 <0f> 0b 48 8b
[    0.512399] RIP: 0010:native_write_msr+0x4/0x20
[    0.513001] Kernel panic - not syncing: Attempted to kill init!
[    0.513100] ---[ end Kernel panic - not syncing: Attempted to kill init! ]---
"""


@pytest.mark.parametrize(
    ("console", "words", "ended", "reason"),
    [
        ("", "", False, "no report from a short guest under KVM within 30 s"),
        ("", "qemu: could not access KVM kernel module\n", True, "(qemu: could not access KVM kernel module)"),
        ("", DUMP, True, "ended without its report (KVM internal error. Suberror: 1)"),
        (PANIC, "", True, "(Kernel panic - not syncing: Attempted to kill init!)"),
        ("", "EAX=00000000 EBX=00000000\nCode=0f 01 c4\n", True, "ended without its report"),
        ("kernel panic\n", "", True, "(kernel panic)"),
        ("", "", True, "ended without its report"),
    ],
)
def test_anything_else_is_emulation_with_its_reason(console, words, ended, reason):
    found = acceleration.understand(console, words, ended)
    assert found["accelerator"] == "tcg"
    assert reason in found["accelerator_reason"]
    assert not re.search("EAX|Code|RIP|=0", found["accelerator_reason"])


@pytest.mark.parametrize("finding", ["gone", None, "kvm", {}, {"accelerator": "xen", "accelerator_reason": "x"}])
def test_a_damaged_finding_is_none(home, finding):
    good = {"accelerator": "kvm", "accelerator_reason": "it booted"}
    for told, expected in ((good, "kvm"), (finding, None)):
        kept = {"circumstances": acceleration.circumstances(home), "finding": told}
        write_json(acceleration.path(), {"x": 1} if told == "gone" else kept)
        assert acceleration.known(home)["accelerator"] == expected


def test_without_the_device_there_is_nothing_to_try(tmp_path, home):
    found = acceleration.known(str(tmp_path / "missing"))
    assert found["accelerator"] == "tcg"
    assert "there is no" in found["accelerator_reason"]


def test_a_device_alone_proves_nothing(home):
    found = acceleration.known(home)
    assert found["accelerator"] is None
    assert acceleration.shown(None) == "VM"


def test_a_finding_holds_until_its_circumstances_change(home):
    finding = {"accelerator": "kvm", "accelerator_reason": "it reported"}
    kept = {"circumstances": acceleration.circumstances(home), "finding": finding}
    (path := acceleration.path())
    acceleration.write_json(path, kept)
    assert acceleration.known(home) == finding
    acceleration.write_json(path, {**kept, "circumstances": {**kept["circumstances"], "boot": "another"}})
    assert acceleration.known(home)["accelerator"] is None


def test_the_guest_runs_the_hosts_processor_under_kvm_alone():
    words = acceleration.arguments("/k", "/c")
    assert words[words.index("-machine") + 1] == "q35,accel=kvm"
    assert words[words.index("-cpu") + 1] == "host"
    assert "tcg" not in json.dumps(words)
