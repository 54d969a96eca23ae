"""A profile with all settings, an invented host, and golden files, for tests of machines."""

import os

import projects

# Two sockets, each with a memory node, two cores and four threads.
TWO_SOCKETS = [
    {"cpu": 4 * thread + 2 * socket + core, "socket": socket, "core": core, "node": socket}
    for socket in (0, 1)
    for core in (0, 1)
    for thread in (0, 1)
]
PROFILE = {
    "memory": "4GiB",
    "pin": True,
    "topology": "host",
    "huge_pages": True,
    "disk_cache": "none",
    "disk_io": "native",
    "iothread": True,
    "pin_emulator": True,
    "vhost": True,
    "queues": "cpus",
    "passthrough": ["0000:03:10.0"],
}


def golden(name: str) -> str:
    """Return the text of a golden file."""
    return (projects.ROOT / "tests/golden" / name).read_text()


def compare(name: str, text: str) -> None:
    """Compare a text with a golden file; UPDATE_GOLDEN=1 writes it anew."""
    if os.environ.get("UPDATE_GOLDEN"):
        (projects.ROOT / "tests/golden" / name).write_text(text)
    assert text == golden(name)
