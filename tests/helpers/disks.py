"""Small file systems for tests of what happens when they are full."""

import contextlib
import os
import subprocess


@contextlib.contextmanager
def small_disk(tmp_path, folder, size="4M", free=0):
    """Loop-mount a file system at a folder, full but for `free` bytes.

    Yields a function that makes room.
    """
    disk = tmp_path / "disk.img"
    subprocess.run(["truncate", "-s", size, disk], check=True)
    subprocess.run(["mkfs.ext4", "-q", disk], check=True)
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-o", "loop", disk, folder], check=True)
    filler = folder / "filler"
    try:
        if free:
            there = os.statvfs(folder)
            taken = there.f_bfree * there.f_bsize - free
            subprocess.run(["fallocate", "--length", str(taken), filler], check=True)
        else:
            fill = ["dd", "if=/dev/zero", f"of={filler}", "bs=1k", "status=none"]
            subprocess.run(fill, capture_output=True, check=False)
        yield lambda: filler.unlink()
    finally:
        subprocess.run(["umount", folder], check=True)
