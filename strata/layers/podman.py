"""A Podman container of the image: by no daemon, but by programs that come and go, in a store of our own."""

from __future__ import annotations

import json
import os
import re
import shutil

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import clear_tree, note_json, read_json
from strata.base.process import as_root, capture
from strata.base.progress import once, step
from strata.host import cgroups
from strata.host.observe import NOT_AVAILABLE
from strata.layers import inside, ports
from strata.layers import options as bounds
from strata.layers import podman_here as here
from strata.layers.layer import TYPE_CHECKING, Layer

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import ClassVar

# The network of containers with a bridge: our own, so that no address is also that of a container of somebody else's.
NETWORK = "strata"
# Without root Podman keeps a process for the user's namespace, whatever it was asked; so that is ended.
END_PAUSE = ["system", "migrate"]
# Where Docker is it lets nothing through this host but to its own containers; netavark lets in answers alone.  So what
# was led to a published port is let in, by a rule that has the system's name, and goes with it.
LET_IN = '"$1" --wait --insert FORWARD --match conntrack --ctstate DNAT --ctorigdst "$2" --match comment '
LET_IN += '--comment "$3" --jump ACCEPT'
KEEP_OUT = """
"$1" --wait --list-rules FORWARD | sed -n "s/^-A \\(.* --comment $2 .*\\)/-D \\1/p" |
    xargs --no-run-if-empty -L 1 "$1" --wait
"""
# What is recorded of Podman.
FACTS = ("version", "runtime", "conmon", "storage_driver", "network_backend", "cgroup_driver")
# Where slirp4netns leads what comes from outside.
SLIRP_ADDRESS = "10.0.2.100"


class Podman(Layer):
    """A container that stays up for its cell, or for those that share it; commands are executed in it.

    network and data are Docker's, and slirp4netns the network of a program of the user's.  runtime: crun or runc.
    user: root, or the user's own, for which no root is needed but for its place in the control groups.  The others
    are those of :mod:`strata.layers.options`.
    """

    name = "podman"
    kind = "container"
    title = "Podman container"
    daemons = ("conmon", "slirp4netns", "rootlessport")
    options_schema: ClassVar[dict] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["network", "data"],
        "properties": {
            "network": {"enum": ["bridge", "host", "slirp4netns"], "description": "bridge, host or slirp4netns"},
            "data": {"enum": ["volume", "layered", "tmpfs"], "description": "volume, layered or tmpfs"},
            "runtime": {"enum": list(here.RUNTIMES), "description": "crun or runc"},
            "user": {"enum": ["root", "own"], "description": "root or own"},
            **{key: bounds.PROPERTIES[key] for key in ("seccomp", "cpuset-cpus", "memory")},
        },
    }

    @classmethod
    def check(cls, options: dict, config: dict, below: str = "host") -> list[tuple[str, str]]:
        found = bounds.check(options)
        if options.get("user") == "own":
            if options["network"] == "bridge":
                found.append(("network", "is bridge, which root alone can make; must be host or slirp4netns"))
            bound = [key for key in ("cpuset-cpus", "memory") if key in options]
            found += [(key, "needs control groups of root’s; leave it out, or set user: root") for key in bound]
        return found

    @classmethod
    def settle(cls, options: dict, config: dict) -> dict:
        # crun is what Podman takes by itself.
        return {"runtime": here.RUNTIMES[0], "user": "root", **options}

    @classmethod
    def unavailable(cls) -> str | None:
        if not shutil.which("podman"):
            return "Podman is not installed: install the distribution’s package podman"
        if os.geteuid() != 0 and not shutil.which("sudo"):
            return "Podman’s containers need root here: run as root or install sudo"
        return None

    @classmethod
    def refusal(cls, options: dict, below: str, machine: dict) -> str | None:
        if reason := here.unfit(options["runtime"]):
            return reason
        if not here.program(*here.INITS):
            return "no init program for containers was found: install the distribution’s package tini"
        if options["network"] == "bridge" and not any(map(os.path.exists, here.MAKES_BRIDGES)):
            return "Podman has nothing here that makes a bridge: install the distribution’s package netavark"
        if options["network"] == "bridge" and here.lacks_firewall():
            return "netavark, which makes Podman’s bridge, wants nft: install the distribution’s package nftables"
        if options["network"] == "slirp4netns" and not shutil.which("slirp4netns"):
            return "slirp4netns is not installed: install the distribution’s package of that name"
        if options["network"] == "slirp4netns" and not os.access(here.TUN, os.R_OK | os.W_OK):
            return f"slirp4netns needs {here.TUN}, which this user may not open: let the user in (chmod 666, say)"
        if options["user"] == "own" and (reason := here.rootless_refusal(options["runtime"])):
            return reason
        return bounds.refusal(options, os.sched_getaffinity(0), machine["memory_bytes"])

    @classmethod
    def memory(cls, options: dict) -> int | None:
        return bounds.size(options["memory"]) if "memory" in options else None

    @classmethod
    def examine(cls) -> list[tuple[str, bool | None, str]]:
        if reason := cls.unavailable():
            return [("Podman", None, reason)]
        said = capture(["podman", "--version"], check=False).stdout.strip()
        each = [here.unfit(name) or f"{name} is there" for name in here.RUNTIMES]
        there = any(here.unfit(name) is None for name in here.RUNTIMES)
        return [("Podman", True if there else None, "; ".join([said, *each]))]

    @classmethod
    def told(cls, options: dict) -> dict:
        networks = {"bridge": "bridge with NAT", "host": "its host’s", "slirp4netns": "slirp4netns"}
        places_of_data = {"volume": "volume", "layered": "layered file system", "tmpfs": "memory (tmpfs)"}
        return {"network": networks[options["network"]], "data": places_of_data[options["data"]]}

    @classmethod
    def sweep(cls) -> list[str]:
        found = []
        for own, podman in here.stores():
            listed = capture([*podman, "ps", "--all", "--external", "--quiet", "--no-trunc"], check=False).stdout
            if ids := listed.split():
                capture([*podman, "rm", "--force", "--ignore", "--time", "0", "--volumes", *ids])
            found += [f"Podman container {id}" for id in ids]
            if own:
                capture([*podman, *END_PAUSE], check=False)
        return found

    @classmethod
    def discard(cls, kept: Collection[str]) -> list[str]:
        found, left = [], False
        for own, podman in here.stores():
            known = set(capture([*podman, "image", "ls", "--quiet", "--no-trunc"], check=False).stdout.split())
            spare = sorted(known - set(kept))
            if known & set(kept):
                left = True
                rm = [*podman, "image", "rm", "--force"]
                removed = [id for id in spare if capture([*rm, id], check=False).returncode == 0]
                found += [f"Podman’s image {id.removeprefix('sha256:')[:12]}" for id in removed]
                continue
            capture([*podman, "network", "rm", "--force", NETWORK], check=False)
            if own:
                capture([*podman, *END_PAUSE], check=False)
            for folder in (here.store(own), here.running(own)):
                clear_tree(folder)
        folder = os.path.join(places.home(), "podman")
        if left or not os.path.isdir(folder):
            return found
        clear_tree(folder)
        return [f"Podman’s images in {folder}"]

    @property
    def _own(self) -> bool:
        return self.options["user"] == "own"

    def _podman(self, *words: str) -> list[str]:
        """A command of Podman's for the host; without root it stands in the system's control groups."""
        if not self._own:
            return as_root([*here.command(False), *words])
        return self._beside([*here.command(True), *words])

    def _beside(self, argv: list[str]) -> list[str]:
        """A command of this user's in the system's control groups, which root alone can enter."""
        user = ["setpriv", f"--reuid={os.geteuid()}", f"--regid={os.getegid()}", "--init-groups", "--"]
        return as_root([*cgroups.join(self.context.id), *user, *argv])

    def up(self) -> None:
        assert self.below
        assert self.context.image
        os.makedirs(os.path.dirname(here.store(self._own)), exist_ok=True)
        if self._own:
            self.context.note({"kind": "group", "id": self.context.id})
            cgroups.hold(self.context.id)
        podman = here.command(self._own)
        remove = [[*podman, "rm", "--force", "--ignore", "--time", "0", "--volumes", self.context.id]]
        if self._own:
            remove.append([*podman, *END_PAUSE])
        self.context.note(
            {
                "kind": "Podman container",
                "id": self.context.id,
                "root": not self._own,
                "find": [*podman, "ps", "--all", "--quiet", "--filter", f"name=^{self.context.id}$"],
                "remove": [here.locked(self._own, argv) for argv in remove],
            }
        )
        self._let_in()
        self._start(self._words())
        self._seen = bounds.see(self.options, lambda: self.run_below(self.wrap(bounds.LOOK), check=False), "Podman")
        self._info = self._told()

    def _let_in(self) -> None:
        """Let through what is sent to published ports, where this host has rules for what it lets through."""
        rules = here.program("iptables")
        if self.options["network"] != "bridge" or not self.context.ports or not rules:
            return
        remove = ["sh", "-c", KEEP_OUT, "strata", rules, self.context.id]
        self.context.note(
            {"kind": "rule", "id": self.context.id, "root": True, "find": ["true"], "remove": [remove]},
        )
        self.run_below(as_root(["sh", "-c", LET_IN, "strata", rules, self._at(), self.context.id]))

    def _words(self) -> list[str]:
        """What Podman is asked for."""
        assert self.below
        assert self.context.image
        init, host = here.program(*here.INITS) or here.INITS[0], self.options["network"] == "host"
        words = ["--runtime", self.options["runtime"], "run", "--detach", "--init", "--init-path", init]
        words += ["--pull", "never", "--replace", "--name", self.context.id, *["--hostname", "strata"] * (not host)]
        bridge = self.options["network"] == "bridge"
        words += ["--network", NETWORK if bridge else self.options["network"]]
        if not self._own:
            # conmon, which holds the container, stays where it was started: the group is the container's alone.
            words += ["--cgroups", "no-conmon", "--cgroup-parent", self._parent, *here.limits()]
        elif self.options["runtime"] == "crun":
            words += ["--cgroups", "disabled"]
        if self.options["data"] == "volume":
            words += ["--volume", f"{self.below.data}:/data"]
        elif self.options["data"] == "tmpfs":
            words += bounds.tmpfs("/data")
        words += ports.published([] if host else self.context.ports, self._at())
        return [*words, *bounds.words(self.options), _id(self.context.image), *inside.REST]

    @property
    def _parent(self) -> str:
        return cgroups.parent_for("systemd" if cgroups.managed_by_systemd() else "cgroupfs")

    def _at(self) -> str:
        """The address at which ports are published."""
        assert self.below
        return self.below.listen()

    def _start(self, words: list[str]) -> None:
        """Start the container; image and network are brought where they are missing.  Raises UserError.

        Whatever ends the wait for it, Podman itself comes to its end: what it does by half is known to nobody.
        """
        alone = ["setsid", "--fork", "--wait", *here.locked(self._own, [*here.command(self._own), *words])]
        argv = self._beside(alone) if self._own else as_root(alone)
        while True:
            try:
                self.run_below(argv)
                return
            except UserError as error:
                # Whatever words it has for that: what is missing is brought, once, and what is not is no reason.
                if not (self._bring_network() or self._bring_image()):
                    raise ports.told(error, self._at) from None

    def _bring_network(self) -> bool:
        """Make the network with a bridge, where it is asked for; whether it was missing.  Raises UserError."""
        there = self._podman("network", "exists", NETWORK)
        if self.options["network"] != "bridge" or capture(there, check=False).returncode == 0:
            return False
        with once():
            self.run_below(self._podman("network", "create", "--disable-dns", NETWORK))
        capture(there)
        return True

    def _bring_image(self) -> bool:
        """Import the image, in the place of an earlier one of its name; whether it was missing.  Raises UserError."""
        assert self.context.image
        wanted = _id(self.context.image)
        there = self._podman("image", "exists", wanted)
        if capture(there, check=False).returncode == 0:
            return False
        archive = os.path.join(self.context.image["folder"], "image.tar")
        with once(), step("podman", "importing the image"):
            self.run_below(self._podman("load", "--quiet", "--input", archive), timeout=3600)
            self.run_below(self._podman("image", "prune", "--force"))
        if capture(there, check=False).returncode != 0:
            known = self.run_below(self._podman("image", "ls", "--quiet", "--no-trunc")).split()
            raise UserError(
                f"Podman knows the image in {archive} as {', '.join(known) or 'none'}, not as {wanted}: run "
                "`python3 -m strata image --rebuild`"
            )
        return True

    def _told(self) -> dict:
        """What Podman says of itself; it is asked once, as long as its programs are the same.

        Raises UserError where that is no object.
        """
        runtime = self.options["runtime"]
        kept = os.path.join(os.path.dirname(here.store(self._own)), f"{runtime}-{self.options['user']}.json")
        programs = here.versions(runtime)
        known = read_json(kept) or {}
        if known.get("programs") == programs and set(known.get("told", {})) == set(FACTS):
            return dict(known["told"])
        told = self.run_below(self._podman("--runtime", runtime, "info", "--format", "json"))
        try:
            found = facts_of(dict(json.loads(told)))
        except (ValueError, TypeError, AttributeError):
            raise UserError(f"`podman info` prints another JSON object than Podman’s: {told.strip()[:80]!r}") from None
        if NOT_AVAILABLE not in found.values():
            note_json(kept, {"programs": programs, "told": found})
        return found

    def facts(self) -> dict:
        """What Podman says of itself, and of what it starts containers by."""
        return {"container": {"program": "podman", **self._info, **self._seen}}

    def wrap(self, argv: list[str]) -> list[str]:
        return self._podman("exec", self.context.id, *argv)

    def cpus(self) -> int | None:
        return len(bounds.cpus(self.options["cpuset-cpus"])) if "cpuset-cpus" in self.options else None

    def left(self) -> list[str]:
        if self._own:
            # What holds the container is in its groups, too.
            return inside.seen(cgroups.command_lines(self.run_below(self.wrap(inside.LOOK))))
        # crun makes a group in its own under systemd.
        folders = [*cgroups.of_containers(), f"{cgroups.ROOT}/{cgroups.SLICE}/*/container"]
        return inside.left(cgroups.command_lines(self.run_below(cgroups.look(folders))), self.context.of)

    @property
    def _inside(self) -> list[str]:
        """The words that run a command in the container with standard input."""
        return self._podman("exec", "--interactive", self.context.id)

    def put(self, source: str, target: str) -> None:
        self.run_below(["sh", "-euc", inside.PUT, "strata", source, target, *self._inside], timeout=3600)

    def get(self, source: str, target: str) -> None:
        self.run_below(["sh", "-euc", inside.GET, "strata", target, source, *self._inside], timeout=3600)

    def listen(self) -> str:
        assert self.below
        if self.options["network"] == "host":
            return self.below.listen()
        if self.options["network"] == "slirp4netns":
            return SLIRP_ADDRESS
        return self._inspect("{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}")

    def processes(self) -> list[int]:
        """The container's processes, and conmon, which holds it."""
        if self._own:
            return sorted(cgroups.members(self.context.id) - cgroups.holders(self.context.id))
        return cgroups.beside(int(self._inspect("{{.State.Pid}}")))

    def _inspect(self, form: str) -> str:
        return self.run_below(self._podman("inspect", "--format", form, self.context.id)).strip()


def facts_of(info: dict) -> dict:
    """What is recorded of Podman, from what `podman info` says; "not available" what it does not say."""
    host = info.get("host") or {}
    made, conmon = host.get("ociRuntime") or {}, host.get("conmon") or {}
    runtime, holder = (re.search(r"version ([^\s,]+)", one.get("version") or "") for one in (made, conmon))
    values = [
        (info.get("version") or {}).get("Version"),
        f"{made['name']} {runtime[1]}" if runtime and "name" in made else None,
        holder and holder[1],
        (info.get("store") or {}).get("graphDriverName"),
        host.get("networkBackend"),
        host.get("cgroupManager"),
    ]
    return {name: value or NOT_AVAILABLE for name, value in zip(FACTS, values, strict=True)}


def _id(image: dict) -> str:
    """The image's id as Podman writes it: the hash of its configuration."""
    return image["id"].removeprefix("sha256:")
