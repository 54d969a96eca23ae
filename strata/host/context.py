"""What the parts of one system under test share: its names, its places, and the variables of its commands."""

import os
from collections.abc import Callable, Sequence

from strata.util.data_types import Fields, Image

# The environment variables of every measured command, the same in every layer.
VARIABLES = [
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/root",
    "LC_ALL=C.UTF-8",
]


def with_variables(argv: Sequence[str]) -> list[str]:
    """A command that has these variables, and no others."""
    return ["env", "-i", *VARIABLES, *argv]


class Context:
    """What the layers of one system under test share.

    id: names everything that belongs to the system (container, cgroup, folder).
    folder: the system's own folder on the host.
    data: the host's folder for the data of a system that keeps them outside of itself.
    image: the object in the image's image.json (with `folder`), or None where no layer needs one.
    address: the host's address as the client reaches it.  ports: those that servers in the system listen on.
    mask: the processors to which all that is measured is held, as a list; None: all that the host has.
    part, of: the system is number `part` (from 0) of so many equal ones; `first` is the folder of number 0.
    note: what is called with the trace (:mod:`strata.testbed.journal`) of each thing on the host before it is made.
    """

    def __init__(
        self,
        id: str,
        folder: str,
        image: Image | None,
        address: str = "127.0.0.1",
        ports: Sequence[int] = (),
        mask: str | None = None,
        part: int = 0,
        of: int = 1,
        first: str | None = None,
        note: Callable[[Fields], None] = lambda trace: None,
    ) -> None:
        self.id, self.folder, self.image, self.address, self.ports = (
            id,
            folder,
            image,
            address,
            ports,
        )
        self.mask = mask
        self.part, self.of, self.first = part, of, first or folder
        self.data, self.note = os.path.join(folder, "data"), note
