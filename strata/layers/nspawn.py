"""A container by systemd-nspawn, whose first program does nothing; commands enter it beside that."""

from __future__ import annotations

import os
import re
import time

from strata.base.errors import UserError
from strata.base.process import as_root, capture
from strata.host import cgroups
from strata.layers.layered import IDLE, Layered

# Command lines of what nspawn itself has in the group.
OWN = ("systemd-nspawn", "(sd-stubinit)")
PATIENCE = 20.0
# Arguments: the file for what nspawn says, its command.  The container lives as long as its group.
START = 'said=$1; shift; setsid "$@" </dev/null >"$said" 2>&1 &'


class Nspawn(Layered):
    """Commands are run in its namespaces and its group, with its capabilities, by nsenter.

    The filter of system calls that nspawn gives to what it starts itself is not theirs.
    """

    name = "nspawn"
    title = "systemd-nspawn container, entered by nsenter"
    program = "systemd-nspawn"
    package = "systemd-container"

    @property
    def _leader(self) -> str:
        """The file that names the container's first program, and what it may."""
        return os.path.join(self.context.folder, "leader")

    def up(self) -> None:
        self.context.note({"kind": "group", "id": self.context.id})
        self.lay()
        cgroups.make(self.context.id)
        said = os.path.join(self.context.folder, "nspawn.log")
        argv = [self.program, "--quiet", "--keep-unit", "--register=no", "--as-pid2", f"--machine={self.context.id}"]
        argv += ["--hostname=strata", f"--directory={self.root}", f"--bind={self.context.data}:/data", *IDLE]
        capture(as_root([*cgroups.enter(self.context.id), "sh", "-euc", START, "strata", said, *argv]))
        deadline = time.monotonic() + PATIENCE
        while (leader := first(cgroups.members(self.context.id))) is None:
            if time.monotonic() > deadline:
                with open(said, errors="replace") as file:
                    words = " / ".join(line.strip() for line in file if line.strip())
                raise UserError(f"{self.program} did not start a container: {words or 'it said nothing'}")
            time.sleep(0.02)
        with open(self._leader, "w") as file:
            file.write(f"{leader} {capabilities(leader)} {cgroups.below(leader, self.context.id)}")

    def wrap(self, argv: list[str]) -> list[str]:
        with open(self._leader) as file:
            leader, allowed, *below = file.read().split()
        inside = ["nsenter", f"--target={leader}", "--mount", "--uts", "--ipc", "--pid", "--root", "--wd"]
        bounded = ["/usr/bin/setpriv", f"--bounding-set={allowed}", "--"]
        return as_root([*cgroups.join(self.context.id, *below), *inside, *bounded, *argv])

    def left(self) -> list[str]:
        return [line for line in super().left() if not line.startswith(OWN)]


def first(processes: set[int], proc: str = "/proc") -> int | None:
    """The one that is the first program, in a namespace of numbers of its own; None as long as there is none."""
    for process in sorted(processes):
        try:
            with open(f"{proc}/{process}/status") as file:
                numbers = re.search(r"^NSpid:\t\d+\t(\d+)$", file.read(), re.MULTILINE)
            with open(f"{proc}/{process}/cmdline") as file:
                ready = file.read().rstrip("\0").split("\0") == IDLE
        except (FileNotFoundError, ProcessLookupError):
            continue
        if numbers and ready:
            return process
    return None


def capabilities(process: int, proc: str = "/proc") -> str:
    """The capabilities that a process may ever have, as setpriv is told of them."""
    with open(f"{proc}/{process}/status") as file:
        found = re.search(r"^CapBnd:\t([0-9a-f]+)$", file.read(), re.MULTILINE)
    bits = int(found[1], 16) if found else 0
    return ",".join(["-all", *(f"+cap_{bit}" for bit in range(64) if bits >> bit & 1)])
