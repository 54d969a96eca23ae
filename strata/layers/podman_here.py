"""Podman on this machine: where it keeps what is ours, what it can make, and what it may."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shutil

from strata.base import places
from strata.base.process import as_root, capture
from strata.host import cgroups

RUNTIMES = ("crun", "runc")
# What a container's first program takes in orphans by; Docker's own, so that both have the same, and others.
INITS = ("docker-init", "tini-static", "catatonit")
NETAVARK = ("/usr/lib/podman/netavark", "/usr/libexec/podman/netavark")
MAKES_BRIDGES = (
    *NETAVARK,
    *("/usr/lib/cni/bridge", "/usr/libexec/cni/bridge", "/opt/cni/bin/bridge"),
)
TUN = "/dev/net/tun"
# The bit of CAP_SYS_RESOURCE, without which no limit is raised.
SYS_RESOURCE = 24
# To so many processes Podman holds itself, and so what it starts.
MOST_PROCESSES = 32768


def store(own: bool) -> str:
    """The folder of images and containers: root's, or this user's own."""
    return os.path.join(places.home(), "podman", "own" if own else "root")


def running(own: bool) -> str:
    """The folder for what Podman keeps until the machine's next start."""
    user = f"/run/user/{os.geteuid()}"
    base = "/run" if not own else user if os.path.isdir(user) else "/tmp"
    return os.path.join(base, f"strata-{places.home_mark()[:8]}-podman")


def command(own: bool) -> list[str]:
    """Podman with a store that is nobody else's; without root it is told where its user's files are, and finds that."""
    if own:
        os.makedirs(running(True), 0o700, exist_ok=True)
    manager = "systemd" if cgroups.managed_by_systemd() and not own else "cgroupfs"
    words = ["podman", "--root", f"{store(own)}/storage", "--runroot", running(own), "--tmpdir", f"{running(own)}/tmp"]
    words += ["--network-config-dir", f"{store(own)}/networks", "--cgroup-manager", manager]
    return [*_variables(), *words] if own else words


def _variables() -> list[str]:
    found = {"HOME": os.path.expanduser("~"), "PATH": _path(), "XDG_RUNTIME_DIR": running(True)}
    return ["env", *(f"{name}={value}" for name, value in found.items())]


def _path() -> str:
    return os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


def program(*names: str) -> str | None:
    """The first of these programs that is there, root's among them."""
    return next((place for name in names if (place := shutil.which(name, path=_path()))), None)


def versions(runtime: str) -> list:
    """What is another once Podman, what it starts, or how that is configured was changed."""
    paths = [program("podman"), program(runtime), program("conmon"), "/etc/containers/containers.conf"]
    found = []
    for path in paths:
        with contextlib.suppress(OSError, TypeError):
            seen = os.stat(path)  # type: ignore[arg-type]
            found.append([path, seen.st_ino, seen.st_mtime_ns])
    return found


def locked(own: bool, argv: list[str]) -> list[str]:
    """A command that waits for the end of another such one, which whoever asked for it may have left alone."""
    return ["flock", "--close", f"{store(own)}.lock", *argv]


def hybrid(root: str = cgroups.ROOT) -> list[str]:
    """Controllers of control groups' version 2 on a machine that has version 1 beside it."""
    try:
        with open(f"{root}/unified/cgroup.controllers", encoding="utf-8") as file:
            return file.read().split()
    except OSError:
        return []


def lacks_firewall() -> bool:
    """Whether netavark sets its firewall by a program that is not here; older ones take iptables, as Docker does."""
    netavark = next(filter(os.path.exists, NETAVARK), None)
    if program("nft") or netavark is None:
        return False
    try:
        return json.loads(capture([netavark, "version"], check=False).stdout)["default_fw_driver"] == "nftables"
    except (ValueError, KeyError, TypeError):
        return False


def unfit(runtime: str) -> str | None:
    """Why a runtime makes no container on this machine; None if it does."""
    if not program(runtime):
        return f"{runtime} is not installed: install the distribution’s package of that name, or choose another runtime"
    if runtime == "crun" and (controllers := hybrid()):
        there = ", ".join(controllers)
        return (
            f"crun makes no container where control groups are hybrid, as here, where version 2 has {there} and "
            "version 1 the others: set runtime: runc, or start the machine with one version alone"
        )
    return None


def rootless_refusal(runtime: str) -> str | None:
    """Why this user's own Podman makes no container here; None if it does."""
    if os.geteuid() == 0:
        return "root runs Strata here, whose containers are root’s: run it as another user (docs/privileges.md)"
    if cgroups.unified() and runtime != "crun":
        return f"{runtime} needs control groups, which users do not have here: set runtime: crun"
    if not shutil.which("newuidmap"):
        return "newuidmap is not installed: install the distribution’s package uidmap"
    import getpass

    user = getpass.getuser()
    for path in ("/etc/subuid", "/etc/subgid"):
        try:
            with open(path, encoding="utf-8") as file:
                named = {line.partition(":")[0] for line in file}
        except OSError:
            named = set()
        if not named & {user, str(os.geteuid())}:
            return f"{path} gives {user} no further users: run `usermod --add-subuids 100000-165535 --add-subgids …`"
    if capture(["unshare", "--user", "true"], check=False).returncode != 0:
        return "this kernel gives no namespaces to users without root (see the sysctl user.max_user_namespaces)"
    return None


def limits(status: str = "/proc/self/status") -> list[str]:
    """Words by which files and processes stay limited as they are here and in Podman, where nobody may raise that.

    Podman 4 asks for more than that, and so cannot start a container as root in a container, say.
    """
    with open(status, encoding="utf-8") as file:
        bound = re.search(r"^CapBnd:\t([0-9a-f]+)$", file.read(), re.MULTILINE)
    if bound is None or int(bound[1], 16) >> SYS_RESOURCE & 1:
        return []
    files, processes = (resource.getrlimit(kind) for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
    least = [min(limit, MOST_PROCESSES) if limit >= 0 else MOST_PROCESSES for limit in processes]
    return ["--ulimit", f"nofile={files[0]}:{files[1]}", "--ulimit", f"nproc={least[0]}:{least[1]}"]


def stores() -> list[tuple[bool, list[str]]]:
    """Of each store that is there, whether it is this user's own, and Podman with it."""
    if not shutil.which("podman"):
        return []
    each = [(own, command(own)) for own in (False, True) if os.path.isdir(store(own))]
    return [(own, argv if own else as_root(argv)) for own, argv in each]
