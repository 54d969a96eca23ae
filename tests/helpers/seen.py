"""A captured host, as the observers see it: for tests in Python, and printed for those in R.

tests/golden/host.txt holds the files as `tail -v` prints them.
Usage: PYTHONPATH=. python tests/helpers/seen.py
"""

import json
import sys
from pathlib import Path

from strata.host import observe

TEXT = (Path(__file__).parents[1] / "golden/host.txt").read_text()
CPUS = {0, 1}


def files(bare: bool = False) -> dict[str, str]:
    """Return path → text; `bare`: of a processor without the flag of a hypervisor."""
    return observe.split_printed_files(TEXT.replace(" hypervisor ", " ") if bare else TEXT)


class Host:
    """Files in the place of the kernel's, such as those of :func:`files`.

    `paths` are those that were read.
    """

    def __init__(self, files: dict[str, str]) -> None:
        self.files, self.paths = files, set()

    def read(self, path: str) -> str | None:
        self.paths.add(path)
        return self.files.get(path)

    def listed(self, folder: str) -> list[str]:
        inner = [
            path.removeprefix(f"{folder}/") for path in self.files if path.startswith(f"{folder}/")
        ]
        return sorted({path.split("/")[0] for path in inner})

    def put(self, set_attribute) -> None:
        """Let the observers read these files; set_attribute: `setattr`, or pytest's for a test."""
        set_attribute(observe, "read_file", self.read)
        set_attribute(observe, "list_folder", self.listed)


if __name__ == "__main__":
    hosts = {}
    for kind in ("guest", "bare"):
        texts = files(kind == "bare")
        Host(texts).put(setattr)
        steal = 10 if kind == "guest" else 0
        during = observe.compute_cpu_time_shares((0,) * 10, (500, 0, 40, 450, 0, 0, 0, steal, 0, 0))
        inside = observe.parse_system_facts(texts)
        hosts[kind] = {
            "host": {"static": observe.observe_host(CPUS), "during": during},
            "inside": inside,
        }
    json.dump(hosts, sys.stdout)
