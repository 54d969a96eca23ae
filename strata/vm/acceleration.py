"""Find out whether KVM runs virtual machines here, by a trial with a short guest.

A file ``/dev/kvm`` does not mean that a guest runs: it may belong to a nested or paravirtual
hypervisor that cannot run an unmodified kernel.  So the image's own kernel boots under KVM without
a disk: the error that it prints on the console, within a time limit, shows that it ran.  The
finding is kept until the host boots again.
"""

import os

from strata.host import node
from strata.util import paths
from strata.util.data_types import Fields
from strata.util.files import read_json, write_json, write_text
from strata.util.process import capture_output, wrap_as_root
from strata.util.timeouts import scale_timeout

# Accelerator (None: before the trial) → the name of virtual machines in labels.
MACHINE_NAMES = {"kvm": "KVM", "tcg": "VM (TCG emulation)", None: "VM"}
# The device through which the kernel offers KVM.
DEVICE = "/dev/kvm"
# Text that the guest's kernel prints if it runs, since the guest has no root file system.
COMPLAINT = "Unable to mount root fs"
# Seconds after which the short guest is killed.
TIME_LIMIT = 15.0
# QEMU's options for the short guest, without the kernel.
GUEST = (
    *("-machine", "q35,accel=kvm", "-cpu", "host", "-smp", "1", "-m", "256"),
    *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"),
    *("-append", "console=ttyS0 panic=-1 quiet"),
)


def get_trial_result_path() -> str:
    """Return the path of the file that keeps the result of the last trial of KVM.

    The trial's output is in the same folder, in a file with the extension ``.log``.
    """
    return os.path.join(paths.get_home_folder(), "acceleration.json")


def read_trial_conditions() -> Fields:
    """Return ``{boot, device}``, the conditions on which the result of a trial of KVM depends.

    boot: the ID of the host's boot.
    device: whether /dev/kvm exists.
    A stored result counts only while these values are the same.  The workflow compares them, too,
    and tries KVM again if they changed.
    """
    return {"boot": node.read_boot_id(), "device": os.path.exists(DEVICE)}


def read_known_accelerator() -> Fields:
    """Return ``{accelerator, accelerator_reason}`` of virtual machines, without a trial of KVM.

    The accelerator is kvm, tcg (emulation), or None if a trial is needed.  Plan and records have
    both keys.
    """
    if not os.path.exists(DEVICE):
        return {
            "accelerator": "tcg",
            "accelerator_reason": f"there is no {DEVICE}: the machine offers no KVM",
        }
    trial_result: Fields = read_json(get_trial_result_path()) or {}
    if trial_result.get("circumstances") == read_trial_conditions():
        return dict(trial_result["finding"])
    reason = f"{DEVICE} exists; whether it runs a guest `python3 -m strata image` tests"
    return {"accelerator": None, "accelerator_reason": reason}


def run_kvm_trial(kernel: str) -> Fields:
    """Boot a short guest under KVM; keep and return ``{accelerator, accelerator_reason}``.

    kernel: the path of the guest's kernel, which is the image's.
    Runs QEMU as root.  The guest is killed after TIME_LIMIT seconds, which STRATA_PATIENCE
    multiplies.  Writes the result, which :func:`read_known_accelerator` reads, and a log.  If the
    guest does not report back, the accelerator is tcg; that is not an error.
    """
    limit = scale_timeout(TIME_LIMIT)
    # `timeout` kills QEMU, which runs as root.  capture_output waits 10 s longer, so that its own
    # limit is not reached first.
    argv = ["timeout", "--signal=KILL", f"{limit:g}", "qemu-system-x86_64", *GUEST]
    result = capture_output(
        wrap_as_root([*argv, "-kernel", kernel]), timeout=limit + 10, check=False
    )
    if COMPLAINT in result.stdout:
        accelerator = "kvm"
        reason = "a short guest booted under KVM and reported back"
    else:
        accelerator = "tcg"
        reason = f"{DEVICE} exists, but a short guest under KVM gave no report within {limit:g} s"
    finding = {"accelerator": accelerator, "accelerator_reason": reason}
    log = f"printed by QEMU:\n{result.stderr}\nthe guest's console:\n{result.stdout}\n"
    write_text(f"{get_trial_result_path().removesuffix('.json')}.log", log)
    write_json(
        get_trial_result_path(), {"circumstances": read_trial_conditions(), "finding": finding}
    )
    return finding
