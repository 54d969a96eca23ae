"""Whether KVM runs virtual machines here: tried with a short guest, never assumed.

A file ``/dev/kvm`` does not mean that a guest runs: it may belong to a nested or paravirtual
hypervisor that cannot run an unmodified kernel.  So the image's own kernel boots under KVM without
any disk: its complaint on the console, within a time limit, shows that it ran.  The finding is kept
until the host boots again.
"""

import os

from strata.host import node
from strata.util import paths
from strata.util.data_types import Fields
from strata.util.files import read_json, write_json, write_text
from strata.util.process import as_root, capture
from strata.util.timeouts import stretch

# What labels call machines, by their accelerator; None: before the trial.
MACHINE_NAMES = {"kvm": "KVM", "tcg": "VM (TCG emulation)", None: "VM"}
DEVICE = "/dev/kvm"
# What a kernel prints that ran and looked for its root file system, of which this guest has none.
COMPLAINT = "Unable to mount root fs"
# Seconds for the short guest.
TIME_LIMIT = 15.0
# QEMU's options for it, without the kernel.
GUEST = (
    *("-machine", "q35,accel=kvm", "-cpu", "host", "-smp", "1", "-m", "256"),
    *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"),
    *("-append", "console=ttyS0 panic=-1 quiet"),
)


def finding_path() -> str:
    """Return the file of the finding; the last trial's output is in a ``.log`` of the same name."""
    return os.path.join(paths.home_folder(), "acceleration.json")


def current_circumstances() -> Fields:
    """Return for what a finding holds: this boot of the host, with or without the device."""
    return {"boot": node.boot_id(), "device": os.path.exists(DEVICE)}


def known_accelerator() -> Fields:
    """Return ``{accelerator, accelerator_reason}``: kvm, tcg, or None before the trial."""
    if not os.path.exists(DEVICE):
        return {
            "accelerator": "tcg",
            "accelerator_reason": f"there is no {DEVICE}: the machine offers no KVM",
        }
    kept: Fields = read_json(finding_path()) or {}
    if kept.get("circumstances") == current_circumstances():
        return dict(kept["finding"])
    reason = f"{DEVICE} exists; whether it runs a guest `python3 -m strata image` tests"
    return {"accelerator": None, "accelerator_reason": reason}


def try_kvm(kernel: str) -> Fields:
    """Boot the short guest with this kernel; keep and return the finding, as :func:`known` does.

    It is ended after TIME_LIMIT seconds (stretched where timeouts are).
    """
    limit = stretch(TIME_LIMIT)
    argv = ["timeout", "--signal=KILL", f"{limit:g}", "qemu-system-x86_64", *GUEST]
    done = capture(as_root([*argv, "-kernel", kernel]), timeout=limit + 10, check=False)
    if COMPLAINT in done.stdout:
        accelerator, reason = "kvm", "a short guest booted under KVM and reported back"
    else:
        accelerator = "tcg"
        reason = f"{DEVICE} exists, but a short guest under KVM gave no report within {limit:g} s"
    finding = {"accelerator": accelerator, "accelerator_reason": reason}
    log = f"printed by QEMU:\n{done.stderr}\nthe guest's console:\n{done.stdout}\n"
    write_text(f"{finding_path()[:-5]}.log", log)
    write_json(finding_path(), {"circumstances": current_circumstances(), "finding": finding})
    return finding
