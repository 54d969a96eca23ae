"""The names, folders and variables that the layers of one system under test share."""

import os
from collections.abc import Callable, Sequence

from strata.util.data_types import Fields, Image

# The environment variables of every measured command, the same in every layer; an image of the
# user's own has others.
VARIABLES = [
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/root",
    "LC_ALL=C.UTF-8",
]


class Context:
    """The names, folders, addresses and variables that the layers of one system share.

    system_id: the attribute `id`, which names everything that belongs to the system (container,
    control group, folder).
    folder: the system's own folder on the host.  The attribute `data` is the path of a folder in
    it, for the data of systems that keep their data on the host.
    image: the content of the image's image.json (with `folder`), or None if no layer needs one.
    address: the address where the client reaches the host.
    ports: the ports that servers in the system listen on.
    mask: a list of the CPUs that all measured programs are restricted to; None: all of the host.
    disk_bytes: the size of the RAM disk that holds the data folder; None: the data folder is on
    the host's own disk.
    part: the system's number among equal ones, from 0.
    part_count: the number of equal systems.
    first_folder: the folder of the system with number 0; None: the system's own folder.
    Further attributes depend on whether the image is the user's own (`own_image`): `user` is
    ``{uid, gid, groups, name}`` of the user as whom programs run (None: root), `folder_inside` the
    folder in which they start, `variables` their environment variables as NAME=VALUE, `entrypoint`
    the image's ENTRYPOINT, `volumes` the folders that programs may write to in addition to /data
    and /tmp, `programs` the host's folder that every system sees as /opt/strata (None: the
    image's).
    note_cleanup: a function that appends a cleanup to the journal (:mod:`strata.testbed.journal`).
    Each thing on the host is noted before it is made: clean-up after a kill relies on that order.
    """

    def __init__(
        self,
        system_id: str,
        folder: str,
        image: Image | None,
        address: str = "127.0.0.1",
        ports: Sequence[int] = (),
        mask: str | None = None,
        disk_bytes: int | None = None,
        part: int = 0,
        part_count: int = 1,
        first_folder: str | None = None,
        note_cleanup: Callable[[Fields], None] = lambda cleanup: None,
    ) -> None:
        """Set the attributes that the class describes, by the arguments and the image's `run`.

        Creates nothing on the host: the layers do that later.
        """
        self.id = system_id
        self.folder = folder
        self.image = image
        self.address = address
        self.ports = ports
        self.mask = mask
        self.disk_bytes = disk_bytes
        self.part = part
        self.part_count = part_count
        self.first_folder = first_folder or folder
        self.data = os.path.join(folder, "data")
        self.note_cleanup = note_cleanup
        run: Fields = image.get("run", {}) if image else {}
        self.own_image = bool(run)
        self.user: Fields | None = run.get("user")
        self.folder_inside: str = run.get("folder", "/")
        self.variables: list[str] = run.get("variables", VARIABLES)
        self.entrypoint: list[str] = run.get("entrypoint", [])
        self.programs: str | None = None
        if image and run.get("programs"):
            self.programs = os.path.join(image["folder"], "programs")
        self.volumes: list[str] = run.get("volumes", [])

    def wrap_with_variables(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs a command with the declared variables and no others.

        The program `env` must exist in the system; it finds the command by the declared PATH.
        """
        return ["env", "-i", *self.variables, *argv]
