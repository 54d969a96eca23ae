"""Provide the native environment: the image's files on the bare host, by a change of root only."""

import os
from types import MappingProxyType

from strata.environments.common import layer
from strata.host import cgroups
from strata.host.daemons import find_program
from strata.util.data_types import Fields, HostFacts
from strata.util.process import capture_output, wrap_as_root

# Arguments: the new root, the image's files, folders for /data and /tmp.  Run as root by sh -eu, on
# this host and on a second machine that is the client.
MOUNT = """
root=$1 tree=$2 data=$3 tmp=$4
mount --bind "$tree" "$root"
mount --make-private "$root"
mount -o remount,bind,ro "$root"
mount --bind /proc "$root/proc"
mount --bind /sys "$root/sys"
mount --rbind /dev "$root/dev"
for name in proc sys dev; do
    mount --make-rslave "$root/$name"
done
mount --bind "$data" "$root/data"
mount --bind "$tmp" "$root/tmp"
"""

# Arguments: the root, the image's files, the programs that are brought along (or ""), a folder, and
# folders of the user's own image, each of which gets a writable copy of its files.  Run as
# root by sh -eu.
MOUNT_COPIES = """
root=$1 tree=$2 programs=$3 folder=$4
shift 4
[ -z "$programs" ] || mount --bind -o ro "$programs" "$root/opt/strata"
number=0
for path; do
    number=$((number + 1))
    mkdir -p "$folder/$number"
    cp -a -- "$tree$path/." "$folder/$number"
    mount --bind "$folder/$number" "$root$path"
done
"""

# Runs a command without huge pages (PR_SET_THP_DISABLE), which holds for its children, too.  Python
# ignores two signals, which the command must not.
NO_HUGE_PAGES = """
import ctypes, os, signal, sys
for number in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
_NUMACTL_OPTION = (
    r"--(interleave|membind|preferred|cpunodebind|physcpubind|localalloc)(=[0-9a-z,+!-]+)?"
)


class Layer(layer.Layer):
    """The image's files, read-only, with the host's /proc, /sys and /dev, and /data on its disk.

    Options: `numactl`, options of the host's program numactl, which then runs every command;
    `huge_pages`, False for commands whose memory never lies on huge pages.
    """

    isolation = "bare"
    title = "change of root"
    image_forms = ("tree",)
    stands_idle = True
    needs_root = True
    option_differences = MappingProxyType(
        {"numactl": ("processors", "memory policy"), "huge_pages": ("huge pages",)}
    )
    options_schema = layer.build_options_schema(
        numactl={
            "type": "string",
            "pattern": rf"^{_NUMACTL_OPTION}( {_NUMACTL_OPTION})*$",
            "description": "options of numactl, such as --cpunodebind=0 --membind=0",
        },
        huge_pages={"const": False, "description": "false: memory never lies on huge pages"},
    )

    @classmethod
    def explain_refusal(cls, resolved: Fields, below: str, machine: HostFacts) -> str | None:
        """Return the reason if the option `numactl` is set and the host lacks that program.

        None in all other cases.
        """
        if "numactl" in resolved and not find_program("numactl"):
            return "numactl is not installed: install the distribution's package of that name"
        return None

    @property
    def root(self) -> str:
        """The path on the host of the folder that commands see as their root."""
        return os.path.join(self.context.folder, "root")

    @property
    def tree(self) -> str:
        """The path on the host of the image's root file system."""
        return os.path.join(self.image["folder"], "tree")

    def list_cleanups(self) -> list[Fields]:
        """Return the journal's entry that ends the processes and removes the control group.

        strata.testbed.journal recognizes its kind, "group".  The mounts are removed with the
        system's folder, by the entry of the layer host.
        """
        return [{"kind": "group", "id": self.context.id}]

    def start(self) -> None:
        """Mount the image's files as the root, and create the control group of all commands.

        Creates the folders for the root, /data and /tmp in the system's folder.  Volumes of the
        user's own image are folders there, too, with a copy of the image's files.
        Call it only once for a system: a second call would mount everything again.
        Raises UserError if a mount fails.
        """
        temporary_folder = os.path.join(self.context.folder, "tmp")
        for folder in (self.root, self.context.data, temporary_folder):
            os.makedirs(folder, exist_ok=True)
        os.chmod(temporary_folder, 0o1777)
        mount_arguments = [self.root, self.tree, self.context.data, temporary_folder]
        capture_output(wrap_as_root(["sh", "-euc", MOUNT, "strata", *mount_arguments]))
        if self.context.own_image:
            copies_folder = os.path.join(self.context.folder, "copies")
            # /data is every system's own folder, even if the image has a volume there.
            writable_paths = sorted({"/tmp", *self.context.volumes} - {"/data"})
            copy_arguments = [self.root, self.tree, self.context.programs or "", copies_folder]
            copy_arguments += writable_paths
            capture_output(wrap_as_root(["sh", "-euc", MOUNT_COPIES, "strata", *copy_arguments]))
        if self.context.user:
            # Programs of another user than root write to /data, too.
            os.chmod(self.context.data, 0o1777)
        cgroups.create_groups(self.context.id, self.context.mask)

    def wrap_command(self, argv: list[str], reads_stdin: bool = False) -> list[str]:
        """Return the command that runs `argv` in the new root and in the system's control group.

        reads_stdin: not used; the command always gets its standard input.
        The command runs as the image's user, in the image's folder, with the options `numactl` and
        `huge_pages`.  It joins the control group before it changes its root, since the new root's
        /sys lacks the control groups.
        """
        user_options = []
        if user := self.context.user:
            groups = ",".join(map(str, user["groups"]))
            user_options = [f"--userspec={user['uid']}:{user['gid']}", f"--groups={groups}"]
        # chroot starts the command in /, so a shell changes to the image's folder.
        if self.context.folder_inside != "/":
            argv = ["sh", "-c", 'cd "$0" && exec "$@"', self.context.folder_inside, *argv]
        command = ["chroot", *user_options, self.root, *argv]
        if "numactl" in self.options:
            command = ["numactl", *self.options["numactl"].split(), "--", *command]
        if "huge_pages" in self.options:
            command = ["python3", "-S", "-c", NO_HUGE_PAGES, *command]
        return wrap_as_root([*cgroups.build_join_command(self.context.id), *command])

    def find_cgroup(self) -> str | None:
        """Return the system's ID, which is the name of its control group."""
        return self.context.id
