"""Podman containers of the image, run as root by commands that end, without a daemon."""

import os

from strata.environments.common import engine
from strata.host import cgroups, firewall
from strata.host.daemons import find_program
from strata.util import paths
from strata.util.data_types import Fields, HostFacts
from strata.util.process import wrap_as_root

RUNTIMES = ("crun", "runc")
# Init programs for containers, which reap orphaned processes; Docker's is preferred, so that both
# engines use the same.
INITS = ("docker-init", "tini-static", "catatonit")
BRIDGE_MAKERS = (
    "/usr/lib/podman/netavark",
    "/usr/libexec/podman/netavark",
    "/usr/lib/cni/bridge",
)


def _build_podman_command(*arguments: str) -> list[str]:
    """Return the command that runs Podman with these arguments and the host's cgroup driver."""
    return ["podman", "--cgroup-manager", cgroups.get_driver_name(), *arguments]


class Layer(engine.Container):
    """A container that Podman runs as root.

    The container has its own control group: conmon, the process that supervises it, stays
    outside.  Option `runtime`: crun or runc.
    """

    title = "Podman container"
    engine_name = "Podman"
    daemons = ("conmon",)
    programs = ("podman",)
    package = "podman"
    needs_root = True
    options_schema = engine.build_container_schema(
        runtime={"enum": list(RUNTIMES), "description": "crun or runc"}
    )

    @classmethod
    def list_host_commands(cls) -> list[list[str]]:
        """Return the command that runs Podman as root; empty if this user cannot use Podman now."""
        if cls.explain_unavailability() or cls.explain_missing_permission():
            return []
        return [wrap_as_root(_build_podman_command())]

    @classmethod
    def resolve_options(cls, options: Fields, config: Fields) -> Fields:
        """Return the options with the runtime, by default crun, and the user."""
        # `user` has no effect, but must stay: without it, measured cells would have another plan.
        return {"runtime": RUNTIMES[0], "user": "root", **options}

    @classmethod
    def explain_refusal(cls, resolved: Fields, below: str, machine: HostFacts) -> str | None:
        """Return why this host cannot run the container, with the remedy; None if it can.

        It checks the runtime, the init program, the program that makes a bridge, whether crun
        supports the host's control groups, and whether the host can grant the limits.
        """
        runtime = resolved["runtime"]
        if reason := engine.explain_missing_runtime(runtime):
            return reason
        if not find_program(*INITS):
            return (
                "no init program for containers was found: install the distribution’s package tini"
            )
        if resolved["network"] == "bridge" and not any(map(os.path.exists, BRIDGE_MAKERS)):
            return (
                "Podman has nothing here that makes a bridge: install the distribution’s package "
                "netavark"
            )
        return super().explain_refusal(resolved, below, machine)

    def build_engine_command(self, *arguments: str) -> list[str]:
        """Return the command that runs Podman as root, with the chosen runtime and arguments."""
        return wrap_as_root(_build_podman_command("--runtime", self.options["runtime"], *arguments))

    def build_load_command(self) -> list[str]:
        """Return Podman's command that loads an image from standard input.

        Podman's temporary file is in the system's folder, and is removed with that folder.
        """
        return wrap_as_root(
            ["env", f"TMPDIR={self.context.folder}", *_build_podman_command("load", "--quiet")]
        )

    def select_engine_facts(self, info: Fields) -> Fields:
        """Return the versions, storage and confinement from ``podman info``, for the records.

        info: the object that ``podman info`` prints; the keys host, store and version must exist.
        A value that Podman does not give is None.  ENGINE_ROWS of analysis/markdown_tables.R reads
        the keys; some are Docker's, too.
        """
        host = info["host"]
        store = info["store"]
        security = engine.get_nested_value(host, "security") or {}
        mechanisms = [
            name for name in ("seccomp", "apparmor", "selinux") if security.get(f"{name}Enabled")
        ]
        return {
            "version": info["version"]["Version"],
            "runtime": engine.get_nested_value(host, "ociRuntime", "version"),
            "conmon": engine.get_nested_value(host, "conmon", "version"),
            "storage_driver": store.get("graphDriverName"),
            "backing_filesystem": engine.get_nested_value(
                store, "graphStatus", "Backing Filesystem"
            ),
            "log_driver": host.get("logDriver"),
            "network_backend": host.get("networkBackend"),
            "cgroup_driver": host.get("cgroupManager"),
            # Podman prints v2, where Docker prints 2.
            "cgroup_version": (host.get("cgroupVersion") or "").removeprefix("v"),
            "users": "rootless" if security.get("rootless") else "the host’s",
            "security": ", ".join(mechanisms) or "none",
        }

    def start(self) -> None:
        """Allow packets to the published ports through the firewall, and start the container.

        The removal of the firewall's rule is written into the journal.
        Raises UserError if the rule is refused or the container does not start.
        """
        if self.list_publish_options():
            # Netavark's own rules accept only packets of established connections.
            match = ["--match", "conntrack", "--ctstate", "DNAT"]
            firewall.allow_forwarded_packets(
                self.context, [*match, "--ctorigdst", self.below.get_listen_address()]
            )
        super().start()

    def list_run_options(self) -> list[str]:
        """Return the options for the init program and for the container's control group."""
        parent = cgroups.get_parent_group(cgroups.get_driver_name())
        # --replace: a start is tried again after a failure, which may have left a container of this
        # name.
        options = ["--init-path", find_program(*INITS) or INITS[0], "--replace"]
        options += ["--cgroups", "no-conmon", "--cgroup-parent", parent]
        if self.context.user:
            # Unlike Docker, Podman does not give programs the supplementary groups of USER.
            options += [f"--group-add={group}" for group in self.context.user["groups"]]
        return options

    def wrap_uninterruptibly(self, argv: list[str]) -> list[str]:
        """Return Podman's command in a form that no signal interrupts and that runs alone.

        An interrupted command would leave an unknown state.  All commands of this form take the
        same lock, a file in Strata's home folder.  The command itself does not inherit the lock:
        otherwise, a process that outlives it would keep the lock.
        """
        lock = os.path.join(paths.get_home_folder(), "podman.lock")
        return ["setsid", "--fork", "--wait", "flock", "--close", lock, *argv]

    def collect_facts(self) -> Fields:
        """Return ``{container: …}`` for the records: Podman's facts, `settings` and `network`."""
        return {"container": {"program": "podman", **self._facts}}
