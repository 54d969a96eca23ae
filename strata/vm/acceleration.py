"""Whether a virtual machine is accelerated here: tried with a short guest, never assumed.

A file ``/dev/kvm`` does not mean that a guest runs: it may be a nested or a paravirtual hypervisor
that cannot run an unmodified kernel.  So the image's own kernel is booted under KVM without any disk: its complaint on
the console, within a time limit, shows that it ran.  The finding is kept until the host boots again.
"""

import os

from strata.host import node
from strata.util import paths
from strata.util.data_types import Fields
from strata.util.files import read_json, write_json, write_text
from strata.util.process import as_root, capture
from strata.util.timeouts import stretched

# What machines are called, by what accelerates them; None: by what is not known yet.
CALLED = {"kvm": "KVM", "tcg": "VM (TCG emulation)", None: "VM"}
DEVICE = "/dev/kvm"
# A kernel that ran has looked for its root file system, of which this guest has none.
WORD = "Unable to mount root fs"
LIMIT = 15.0


def path() -> str:
    """Where the finding is kept; beside it, in a ``.log``, all that the last attempt printed."""
    return os.path.join(paths.home(), "acceleration.json")


def circumstances() -> Fields:
    """What the finding holds for: this boot of the host; the device may appear later."""
    return {"boot": node.boot(), "device": os.path.exists(DEVICE)}


def known() -> Fields:
    """``{accelerator, accelerator_reason}`` as far as it is known: kvm, tcg, or None where it was not tried yet."""
    if not os.path.exists(DEVICE):
        return {
            "accelerator": "tcg",
            "accelerator_reason": f"there is no {DEVICE}: the machine offers no KVM",
        }
    found: Fields = read_json(path()) or {}
    if found.get("circumstances") == circumstances():
        return dict(found["finding"])
    reason = f"{DEVICE} exists; whether it runs a guest `python3 -m strata image` tests"
    return {"accelerator": None, "accelerator_reason": reason}


def attempt(kernel: str) -> Fields:
    """Boot the short guest with this kernel, keep and return the finding.  It is ended after LIMIT s (stretched)."""
    limit = stretched(LIMIT)
    guest = [
        "qemu-system-x86_64",
        "-machine",
        "q35,accel=kvm",
        "-cpu",
        "host",
        "-smp",
        "1",
        "-m",
        "256",
    ]
    guest += [
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
        "-display",
        "none",
        "-serial",
        "stdio",
    ]
    guest += ["-kernel", kernel, "-append", "console=ttyS0 panic=-1 quiet"]
    done = capture(
        as_root(["timeout", "--signal=KILL", f"{limit:g}", *guest]), timeout=limit + 10, check=False
    )
    finding = {
        "accelerator": "kvm",
        "accelerator_reason": "a short guest booted under KVM and reported back",
    }
    if WORD not in done.stdout:
        reason = f"{DEVICE} exists, but a short guest under KVM gave no report within {LIMIT:g} s"
        finding = {"accelerator": "tcg", "accelerator_reason": reason}
    write_text(
        f"{path()[:-5]}.log", f"QEMU's words:\n{done.stderr}\nthe guest's console:\n{done.stdout}\n"
    )
    write_json(path(), {"circumstances": circumstances(), "finding": finding})
    return finding
