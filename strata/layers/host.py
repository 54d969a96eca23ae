"""The host itself, at the bottom of every stack."""

import os

from strata.base import places
from strata.layers.layer import Layer


def copy(source: str, target: str) -> None:
    """Copy a file's bytes and rights."""
    import shutil

    shutil.copy(source, target)


class Host(Layer):
    """Runs commands as they are, with the host's own files."""

    name = "host"
    kind = "bare"
    stands_idle = True
    title = "none: the host’s own files"
    stands_on = ()
    forms = ()

    @classmethod
    def unavailable(cls) -> str | None:
        return None

    @classmethod
    def told(cls, options: dict) -> dict:
        return {"network": "the host’s", "data": "the host’s disk"}

    @classmethod
    def sweep(cls) -> list[str]:
        from strata.base.files import clear_tree

        found = sorted(os.listdir(places.systems())) if os.path.isdir(places.systems()) else []
        folders = [os.path.join(places.systems(), name) for name in found]
        for folder in folders:
            clear_tree(folder)
        return [f"folder {folder}" for folder in folders]

    def up(self) -> None:
        self.context.make_folder()
        os.mkdir(self.context.data)

    def wrap(self, argv: list[str]) -> list[str]:
        return argv

    def put(self, source: str, target: str) -> None:
        copy(source, target)

    def get(self, source: str, target: str) -> None:
        copy(source, target)

    def address(self) -> str:
        return self.context.address

    def listen(self) -> str:
        return self.context.address

    def bridge(self) -> str | None:
        return None

    def card(self) -> tuple[str, str | None] | None:
        return None

    def machine(self) -> Layer | None:
        return None
