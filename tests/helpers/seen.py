"""A captured host, as the observers see it: for tests in Python, and printed for those in R.

tests/golden/host.txt holds the files as `tail -v` prints them.  Usage: PYTHONPATH=. python tests/helpers/seen.py
"""

import json
import sys
from pathlib import Path

from strata.host import observe

TEXT = (Path(__file__).parents[1] / "golden/host.txt").read_text()
CPUS = {0, 1}


def files(bare: bool = False) -> dict[str, str]:
    """Path → text; `bare`: as on a processor without the flag of a hypervisor."""
    return observe.split(TEXT.replace(" hypervisor ", " ") if bare else TEXT)


class Host:
    """In place of the kernel's files: those of :func:`files`, or others; `paths` are those that were read."""

    def __init__(self, there: dict[str, str]) -> None:
        self.there, self.paths = there, set()

    def read(self, path: str) -> str | None:
        self.paths.add(path)
        return self.there.get(path)

    def listed(self, folder: str) -> list[str]:
        inner = [
            path.removeprefix(f"{folder}/") for path in self.there if path.startswith(f"{folder}/")
        ]
        return sorted({path.split("/")[0] for path in inner})

    def put(self, set_attribute) -> None:
        """Let the observers read these; set_attribute: such as that of pytest's monkeypatch."""
        set_attribute(observe, "read", self.read)
        set_attribute(observe, "listed", self.listed)


if __name__ == "__main__":
    found = {}
    for kind in ("guest", "bare"):
        there = files(kind == "bare")
        Host(there).put(setattr)
        steal = 10 if kind == "guest" else 0
        during = observe.shares((0,) * 10, (500, 0, 40, 450, 0, 0, 0, steal, 0, 0))
        inside = observe.understand(there)
        found[kind] = {"host": {"static": observe.host(CPUS), "during": during}, "inside": inside}
    json.dump(found, sys.stdout)
