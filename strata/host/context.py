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
    folder: the system's own folder on the host; the attribute `data` is the folder in it for the
    data of a system that keeps data outside of itself.
    image: the content of the image's image.json (with `folder`), or None if no layer needs one.
    address: the address where the client reaches the host.
    ports: the ports that servers in the system listen on.
    mask: a list of the CPUs that all that is measured is restricted to; None: all of the host.
    disk_bytes: the size of the RAM disk on which the data folder lies; None: the folder lies on
    the host's own disk.
    part, of: the system is number `part` (from 0) of `of` equal ones; `first` is the folder of
    number 0.
    The user's own image sets further attributes: `own_image` is whether it is one; `user` is
    ``{uid, gid, groups, name}`` of the user as whom programs run (None: root), `folder_inside` the
    one in which they start, `variables` their environment variables as NAME=VALUE, `entrypoint` the
    words before a command, `volumes` the folders that programs may write to in addition to /data
    and /tmp, `programs` the host's folder that every system sees as /opt/strata (None: the
    image's).
    note: the attribute `note_cleanup`, called with the entry in the journal
    (:mod:`strata.testbed.journal`) of each thing on the host before the thing is made: clean-up
    after a kill relies on that order.
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
        of: int = 1,
        first: str | None = None,
        note: Callable[[Fields], None] = lambda cleanup: None,
    ) -> None:
        """Set the attributes that the class describes, by the arguments and the image's `run`.

        Makes nothing on the host: the layers do that later.
        """
        self.id = system_id
        self.folder = folder
        self.image = image
        self.address = address
        self.ports = ports
        self.mask = mask
        self.disk_bytes = disk_bytes
        self.part = part
        self.parts = of
        self.first_folder = first or folder
        self.data = os.path.join(folder, "data")
        self.note_cleanup = note
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

        `env` must be in the system that runs it; it finds the command by the declared PATH.
        """
        return ["env", "-i", *self.variables, *argv]
