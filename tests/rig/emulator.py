"""The QEMU that emulates hosts, in a separate root filesystem: the release's QEMU, patched.

The unpatched QEMU damages the memory of a host whose guests run on its first processor
(docs/testing.md).
"""

from hashlib import sha256
from pathlib import Path

from rig import root
from strata.util.locks import hold_lock
from strata.util.progress import report_step

MEND = Path(__file__).with_name("emulator.sh")
SIZE = "6G"


def disk() -> Path:
    """The disk of that root filesystem, made now (five minutes) if it is not kept."""
    root.check()
    name = sha256("\0".join([root.sources(), MEND.read_text(), SIZE]).encode()).hexdigest()[:12]
    kept = root.place() / f"emulator-{name}.img"
    with hold_lock(str(root.place() / "emulator.lock"), "rig: another process builds its emulator"):
        if not kept.exists():
            with root.workplace("emulating") as work:
                with report_step(
                    "rig", f"bootstrapping Debian {root.RELEASE} and building its QEMU, mended"
                ):
                    chosen = ["--include=qemu-system-x86", f'--customize-hook="{MEND}" "$1"']
                    root.bootstrap(root.sources(), chosen, work / "root")
                with report_step("rig", "making its disk"):
                    root.make_disk(work / "root", kept, work, SIZE)
            root.forget("emulator", name)
    return kept
