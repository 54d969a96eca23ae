"""The host itself, the layer at the bottom of every stack."""

import os

from strata.environments.common import layer
from strata.host import cgroups, holders
from strata.util import paths
from strata.util.data_types import Fields
from strata.util.files import remove_tree
from strata.util.process import capture_output, wrap_as_root

# Arguments: a folder for the file system in memory, the bytes of the disk, and the folder to mount
# the disk on.  Run as root by sh -eu.  The loop device is removed with its last mount.  ext4's own
# journal takes a part of the disk, so a workload must request more bytes than its files take.
MOUNT_DISK = """
memory=$1 bytes=$2 data=$3
mount -t tmpfs -o "size=$((bytes + 1048576)),mode=700" strata "$memory"
truncate -s "$bytes" "$memory/disk"
mkfs.ext4 -q -m 0 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard "$memory/disk"
mount -o loop "$memory/disk" "$data"
"""


class Layer(layer.Layer):
    """The bare host with its own files; only tests use it as an environment."""

    isolation = "bare"
    title = "none: the host’s own files"
    stands_on = ()
    image_forms = ()
    stands_idle = True

    @classmethod
    def remove_systems(cls) -> list[str]:
        """Remove the folders of all systems, with their programs, control groups and mounts.

        Returns a phrase for each removed folder.  Call it after all other layers' remove_systems:
        some of them find what is theirs by these folders.
        """
        parent = paths.get_systems_folder()
        phrases = []
        # A system's folder has the name of its control group.
        for name in sorted(os.listdir(parent)) if os.path.isdir(parent) else ():
            folder = os.path.join(parent, name)
            cgroups.remove_groups(name)
            holders.kill_folder_holders(folder)
            remove_tree(folder, unmount=True)
            phrases.append(f"folder {folder}")
        return phrases

    def list_cleanups(self) -> list[Fields]:
        """Return the journal's entry that removes the system's folder.

        If no layer stands on the host, a second entry ends the programs that run on the bare host.
        It must be the last entry: entries are carried out from the last to the first.
        """
        kinds = ["folder"] if self.above else ["folder", "programs"]
        return [{"kind": kind, "id": self.context.folder} for kind in kinds]

    def start(self) -> None:
        """Create the system's folder, which only this user may enter, and the data folder in it.

        If the context has `disk_bytes`, the data folder is on a RAM disk of this size, which is
        removed with the system's folder.
        Raises FileExistsError if the system has a folder already, and UserError if the disk cannot
        be mounted.
        """
        os.makedirs(os.path.dirname(self.context.folder), 0o755, exist_ok=True)
        os.mkdir(self.context.folder, 0o700)
        os.mkdir(self.context.data)
        if self.context.disk_bytes:
            memory = os.path.join(self.context.folder, "memory")
            os.mkdir(memory)
            arguments = [memory, str(self.context.disk_bytes), self.context.data]
            capture_output(wrap_as_root(["sh", "-euc", MOUNT_DISK, "strata", *arguments]))
            # Root owns the root of a new file system.
            capture_output(
                wrap_as_root(["chown", f"{os.getuid()}:{os.getgid()}", self.context.data])
            )

    def wrap_command(self, argv: list[str], reads_stdin: bool = False) -> list[str]:
        """Return the command that runs `argv` on the host.

        With a layer above, it is `argv` itself: that layer ends its own programs.  Otherwise, the
        command also keeps the system's folder open: clean-up finds programs to end by that.
        reads_stdin: not used; the command always gets its standard input.
        """
        return (
            argv
            if self.above
            else [*holders.build_folder_holding_command(self.context.folder), *argv]
        )

    def get_address(self) -> str:
        """Return the host's IP address where the client reaches it."""
        return self.context.address
