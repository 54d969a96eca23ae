"""A light virtual machine of the image, run by QEMU without firmware, PCI and a service manager."""

from __future__ import annotations

import functools
import os
import shutil

from strata.host import cgroups
from strata.layers.layer import TYPE_CHECKING
from strata.layers.vm import Vm

if TYPE_CHECKING:
    from typing import ClassVar

    from strata.vm.light import Light

PROGRAMS = ("qemu-system-x86_64", "qemu-img", "libvirtd", "virsh", "dnsmasq", "mke2fs", "busybox", "cpio", "ssh")


@functools.cache
def version() -> str | None:
    """The version of QEMU; None where it has no such machine."""
    from strata.base.process import capture
    from strata.vm import light

    if not shutil.which(light.PROGRAM):
        return None
    types = capture([light.PROGRAM, "-machine", "help"], check=False).stdout
    return light.version() if any(line.startswith(f"{light.TYPE} ") for line in types.splitlines()) else None


class Microvm(Vm):
    """Like the full machine, with a profile of the same kind; each system boots one.

    Its files are those of the native tree, its kernel that of a full machine.
    """

    name = "microvm"
    title = "light virtual machine (microvm)"
    forms = ("root",)
    # Into which its first program puts the ssh daemon.
    sessions: ClassVar[list[str]] = [f"{cgroups.ROOT}/{cgroups.GROUP}"]
    options_schema: ClassVar[dict] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"profile": {"type": "string", "description": "the name of a profile of vm.profiles"}},
    }

    @classmethod
    def unavailable(cls) -> str | None:
        from strata.vm import disk

        reason = disk.unsupported()
        path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
        lacking = next((program for program in PROGRAMS if not shutil.which(program, path=path)), None)
        if reason or lacking:
            return reason or f"{lacking} is not installed: run `make setup`"
        if os.geteuid() != 0 and not shutil.which("sudo"):
            return "virtual machines need root: run as root or install sudo"
        return None

    @classmethod
    def refusal(cls, options: dict, below: str, machine: dict) -> str | None:
        if options["qemu"] is None:
            return "this QEMU has no machine of the type microvm: install another (Debian's and Ubuntu's have it)"
        return None

    @classmethod
    def examine(cls) -> list[tuple[str, bool | None, str]]:
        reason = cls.unavailable()
        if reason is None and version() is None:
            reason = "this QEMU has no machine of the type microvm"
        return [("light machines", None if reason else True, reason or f"QEMU {version()} has the type microvm")]

    @classmethod
    def settle(cls, options: dict, config: dict) -> dict:
        """As the full machine's, with QEMU's version: it alone decides what a light machine is."""
        settled = super().settle(options, config)
        del settled["fresh"]
        return {**settled, "qemu": version()}

    @property
    def _machine(self) -> Light:
        from strata.vm.light import Light

        return Light(self.options, self.context)

    @classmethod
    def sweep(cls) -> list[str]:
        # Its group has the name of its folder, as that of a native system; its network and disks are swept as vm's.
        return []

    def up(self) -> None:
        # What is noted last is removed first: QEMU, then what it stands on.
        self._note()
        self.context.note({"kind": "group", "id": self.context.id})
        self._facts = self._machine.up()

    def processes(self) -> list[int]:
        from strata.vm import light

        return [light.process_of(self.context.folder)]
