"""The host itself, at the bottom of every stack."""

import os

from strata.environments.common import layer
from strata.host import cgroups, holders
from strata.util import paths
from strata.util.files import remove_tree


class Kind(layer.Kind):
    """The bare host with its own files, for tests."""

    kind = "bare"
    title = "none: the host’s own files"
    stands_on = ()
    forms = ()
    stands_idle = True

    def sweep(self) -> list[str]:
        found = sorted(os.listdir(paths.systems())) if os.path.isdir(paths.systems()) else []
        folders = [os.path.join(paths.systems(), name) for name in found]
        for folder in folders:
            # A native system's groups have the name of its folder.
            cgroups.remove(os.path.basename(folder))
            holders.end_holders(folder)
            remove_tree(folder, unmount=True)
        return [f"folder {folder}" for folder in folders]


class Layer(layer.Layer):
    """Runs commands as they are."""

    def up(self) -> None:
        # Nobody else may enter, whatever lies in it.
        self.context.note({"kind": "folder", "id": self.context.folder})
        if self.above is None:
            self.context.note({"kind": "programs", "id": self.context.folder})
        os.makedirs(os.path.dirname(self.context.folder), 0o755, exist_ok=True)
        os.mkdir(self.context.folder, 0o700)
        os.mkdir(self.context.data)

    def wrap(self, argv: list[str], fed: bool = False) -> list[str]:
        # Programs in a layer above end with that.
        return [*holders.holding(self.context.folder), *argv] if self.above is None else argv

    def address(self) -> str:
        return self.context.address

    def listen(self) -> str:
        return self.context.address

    def machine(self) -> None:
        return None
