"""LXC containers: the image's files under a writable overlay, with an init that only waits."""

import os
from types import MappingProxyType

from strata.environments import chroot
from strata.environments.common import layer
from strata.host import cgroups
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.files import write_text
from strata.util.process import capture_output, wrap_as_root

# Arguments: the image's files, the overlay's folder for writes, the new root.  Run as root by
# sh -eu.  The device name, strata, is only shown: clean-up finds mounts by their folder.
MOUNT = """
tree=$1 written=$2 root=$3
mkdir -p "$written/upper" "$written/work" "$root"
mount -t overlay -o "lowerdir=$tree,upperdir=$written/upper,workdir=$written/work" strata "$root"
mount --make-private "$root"
"""


class Layer(chroot.Layer):
    """An LXC container with the host's network, and with /data on the host's disk.

    lxc-attach runs commands in the container's namespaces and control groups, with its capabilities
    and its filter of system calls.
    """

    isolation = "container"
    title = "LXC container"
    programs = ("lxc-start",)
    package = "lxc"
    stands_idle = False
    refuses_own_images = "LXC does not apply the image’s USER and WORKDIR; Docker does"
    differences = layer.CONTAINER_DIFFERENCES
    option_differences = MappingProxyType({})
    options_schema = layer.build_options_schema()

    @property
    def monitor_group(self) -> str:
        """The name of the control group of LXC's monitor process, which runs the container."""
        return f"{self.context.id}-monitor"

    def list_cleanups(self) -> list[Fields]:
        """Return the journal's entries that remove both control groups.

        Their order matters: entries are carried out from the last to the first, and the monitor
        must end first, because it cleans up after itself when it ends.
        """
        return [
            {"kind": "group", "id": self.context.id},
            {"kind": "group", "id": self.monitor_group},
        ]

    def start(self) -> None:
        """Mount the image's files under a writable overlay, and start the container.

        Writes LXC's configuration and log into a folder that is named after the system's ID: LXC
        looks for a container's configuration in the folder with the container's name.
        Raises UserError with LXC's log if the container does not start.
        """
        overlay_folder = os.path.join(self.context.folder, "written")
        folder = os.path.join(self.context.folder, self.context.id)
        mount = ["sh", "-euc", MOUNT, "strata", self.tree, overlay_folder, self.root]
        capture_output(wrap_as_root(mount))
        os.mkdir(folder)
        write_text(os.path.join(folder, "config"), self._format_configuration())
        log = os.path.join(folder, "log")
        start = self._build_lxc_command(
            "lxc-start", "--daemon", f"--logfile={log}", "--logpriority=ERROR"
        )
        if capture_output(start, check=False).returncode != 0:
            # The log may be missing, and belongs to root.
            read_log = capture_output(wrap_as_root(["cat", "--", log]), check=False)
            reason = read_log.stdout or "its log is empty"
            raise UserError(f"LXC did not start a container:\n{reason}")

    def _format_configuration(self) -> str:
        """Return LXC's configuration of the container: a line ``KEY = VALUE`` for each setting.

        The container has the host's network, /data on the host's disk, and, if the experiment is
        restricted to some CPUs, only these.
        """
        # Spaces separate the columns of a mount entry, as in fstab.
        data = self.context.data.replace(" ", "\\040")
        settings = [
            # The distribution's settings for every container: devices, mounts, capabilities, filter
            # of system calls.
            "lxc.include = /usr/share/lxc/config/common.conf",
            "lxc.uts.name = strata",
            f"lxc.rootfs.path = dir:{self.root}",
            f"lxc.mount.entry = {data} data none bind 0 0",
            "lxc.net.0.type = none",
            f"lxc.cgroup.dir.container = {cgroups.get_group_path(self.context.id)}",
            f"lxc.cgroup.dir.monitor = {cgroups.get_group_path(self.monitor_group)}",
            f"lxc.init.cmd = {' '.join(cgroups.HOLDER)}",
        ]
        if self.context.mask:
            version = "cgroup2" if cgroups.is_unified() else "cgroup"
            settings.append(f"lxc.{version}.cpuset.cpus = {self.context.mask}")
        return "\n".join(settings) + "\n"

    def wrap_command(self, argv: list[str], reads_stdin: bool = False) -> list[str]:
        """Return the lxc-attach command that runs `argv` in the container.

        The command gets none of the caller's environment variables.
        reads_stdin: not used; the command always gets its standard input.
        """
        return self._build_lxc_command("lxc-attach", "--clear-env", "--", *argv)

    def collect_facts(self) -> Fields:
        """Return ``{container: {program, version}}`` for the records.

        ENGINE_ROWS of analysis/markdown_tables.R reads these keys of LXC's and Podman's facts.
        Raises UserError if lxc-start prints no version.
        """
        output = capture_output(["lxc-start", "--version"]).stdout.strip()
        if not output:
            raise UserError("`lxc-start --version` printed nothing: install LXC again")
        version = output.splitlines()[0].strip()
        return {"container": {"program": "lxc-start", "version": version}}

    def list_memory_processes(self) -> list[int]:
        """Return the sorted IDs of the processes in the container's control group."""
        return sorted(cgroups.list_group_processes(self.context.id))

    def _build_lxc_command(self, program: str, *options: str) -> list[str]:
        """Return the command that runs a program of LXC as root for this container.

        program: the program's name, such as lxc-attach.
        options: its further arguments.
        """
        container = [f"--name={self.context.id}", f"--lxcpath={self.context.folder}"]
        return wrap_as_root([program, *container, *options])
