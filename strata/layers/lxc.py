"""A container by LXC, whose first program does nothing; commands enter it beside that."""

from __future__ import annotations

import os

from strata.base.errors import UserError
from strata.base.process import as_root, capture
from strata.host import cgroups
from strata.layers.layered import IDLE, Layered

# What the distribution gives to every container: its devices, mounts, capabilities and filter of system calls.
COMMON = "/usr/share/lxc/config/common.conf"
# Where a kernel with AppArmor tells which profiles are loaded, and the one that LXC gives to a container.
PROFILES = "/sys/kernel/security/apparmor/profiles"
PROFILE = "lxc-container-default-cgns"


class Lxc(Layered):
    """Commands are run as lxc-attach does: in its namespaces and groups, with its capabilities and its filter."""

    name = "lxc"
    title = "LXC container"
    program = "lxc-start"
    package = "lxc"

    @classmethod
    def unavailable(cls) -> str | None:
        if reason := super().unavailable():
            return reason
        return None if os.path.exists(COMMON) else f"there is no {COMMON}: install the distribution's package lxc"

    @classmethod
    def refusal(cls, options: dict, below: str, machine: dict) -> str | None:
        try:
            with open(PROFILES, encoding="utf-8") as file:
                loaded = any(line.split(" ", 1)[0] == PROFILE for line in file)
        except OSError:
            # No AppArmor, or nothing is told of it.
            return None
        if loaded:
            return None
        return (
            f"this kernel has AppArmor, and LXC’s profile {PROFILE} is not loaded: install the distribution’s package "
            "apparmor, and run `systemctl restart apparmor`"
        )

    @property
    def _monitor(self) -> str:
        """The group of the process that holds the container."""
        return f"{self.context.id}-monitor"

    def _command(self, name: str) -> list[str]:
        return [name, f"--name={self.context.id}", f"--lxcpath={self.context.folder}"]

    def configuration(self) -> str:
        """What LXC is asked for."""
        data = self.context.data.replace(" ", "\\040")
        return "".join(
            f"{key} = {value}\n"
            for key, value in (
                ("lxc.include", COMMON),
                ("lxc.uts.name", "strata"),
                ("lxc.rootfs.path", f"dir:{self.root}"),
                ("lxc.mount.entry", f"{data} data none bind 0 0"),
                ("lxc.net.0.type", "none"),
                ("lxc.cgroup.dir.container", cgroups.path_of(self.context.id)),
                ("lxc.cgroup.dir.monitor", cgroups.path_of(self._monitor)),
                ("lxc.init.cmd", " ".join(IDLE)),
            )
        )

    def up(self) -> None:
        # What is noted last is removed first: what holds the container must not tidy up beside us.
        self.context.note({"kind": "group", "id": self.context.id})
        self.context.note({"kind": "group", "id": self._monitor})
        self.lay()
        own = os.path.join(self.context.folder, self.context.id)
        os.mkdir(own)
        with open(os.path.join(own, "config"), "w", encoding="utf-8") as configuration:
            configuration.write(self.configuration())
        log = os.path.join(own, "log")
        start = [*self._command("lxc-start"), "--daemon", f"--logfile={log}", "--logpriority=ERROR"]
        if capture(as_root(start), check=False).returncode != 0:
            said = capture(as_root(["cat", "--", log]), check=False).stdout
            words = " / ".join(line.rpartition(" - ")[2] for line in said.splitlines())
            raise UserError(f"LXC did not start a container: {words or 'it said nothing'}")

    def wrap(self, argv: list[str]) -> list[str]:
        return as_root([*self._command("lxc-attach"), "--clear-env", "--", *argv])
