"""What goes into an archive: copies of the project's files in a folder, as they are."""

import json
import os
import shutil
import stat
from typing import Any

from strata.archive import private, source
from strata.base import places, run
from strata.base.errors import UserError
from strata.experiment import plan, sets
from strata.image import cache
from strata.results import products

# Of an image's folder in the cache, what makes up the image; never a key.
IMAGE_FILES = (".tar", ".qcow2", ".box", ".img", "image.json", "manifest.json", "disk.json")

# What of a workload's folder its logs are read by.
_OF_WORKLOADS = ("workload.yaml", "parse.py")


class Stage:
    """A folder that fills with an archive's files.  warnings: for whoever makes the archive, and for its readers."""

    def __init__(self, project: str, folder: str) -> None:
        self.project, self.folder = project, folder
        self.warnings: list[str] = []
        self.source = source.listing(project)
        self.experiment = plan.read_checked()
        self.measured: list[tuple[str, str, int]] = []
        self.missing: list[tuple[str, str, int]] = []

    def _public_words(self) -> set[str]:
        """Words of the source as it was published, and the experiment's own names."""
        new = set(self.source.changed) | {"config.yaml"}
        texts = []
        for name in self.source.files:
            if name not in new:
                with open(os.path.join(self.project, name), "rb") as file:
                    content = file.read()
                texts += [content.decode()] if private.is_text(content) else []
        names = [*self.experiment["environments"], *self.experiment["workloads"]]
        return private.words_of([*texts, *names])

    def path(self, name: str) -> str:
        """Where a file of the archive lies while it is made; its folder is there."""
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def write(self, name: str, text: str) -> None:
        """Put a text in."""
        with open(self.path(name), "w", encoding="utf-8", newline="") as file:
            file.write(text)

    def write_json(self, name: str, value: Any) -> None:
        """Put a JSON value in, as the project writes it."""
        self.write(name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    def copy(self, origin: str, name: str) -> None:
        """Copy a file of the machine."""
        target = self.path(name)
        shutil.copyfile(origin, target)
        executable = os.stat(origin).st_mode & stat.S_IXUSR
        os.chmod(target, 0o755 if executable else 0o644)

    def add_source(self) -> None:
        """The project's own files, below source/.  Raises UserError where one that was measured by is none of them."""
        needed = [f"workloads/{name}/{file}" for name in self.experiment["workloads"] for file in _OF_WORKLOADS]
        lacking = [name for name in needed if os.path.exists(name) and name not in self.source.files]
        if lacking:
            raise UserError(
                f"the paper rests on files that git does not track: {', '.join(lacking)}; `git add` them first"
            )
        for name in self.source.files:
            self.copy(os.path.join(self.project, name), f"source/{name}")
        for name in ("LICENSE", "CITATION.cff"):
            if name in self.source.files:
                self.copy(os.path.join(self.project, name), name)
            else:
                self.warnings.append(f"The project has no {name}.")
        if self.source.revision is None:
            self.warnings.append("The revision of the source is not known: there is no commit of it.")
        elif self.source.changed:
            count = len(self.source.changed)
            self.warnings.append(
                f"The source is not that of revision {self.source.revision}: {count} "
                f"{'file differs' if count == 1 else 'files differ'} from it."
            )
        self.warnings += [f"Left out of the source: {name}: {why}." for name, why in self.source.left_out.items()]

    def add_results(self) -> None:
        """Plan, image's facts, logs, records, and what was made of them.  Raises UserError where a file lacks."""
        for name in (places.PLAN, "results/plan.csv", places.IMAGE, places.MANIFEST):
            if os.path.exists(name):
                self.copy(name, name)
        for cell in sets.Order(self.experiment).cells():
            self._add_cell(cell)
        for name in (*products.decisions(self.experiment), *products.made(self.experiment), places.SUMS):
            if not os.path.exists(name):
                raise UserError(f"{name}: missing; `{run.again('archive')}` makes it first")
            self.copy(name, name)

    def _add_cell(self, cell: tuple[str, str, int]) -> None:
        log, record = (places.cell_path("raw", *cell, kind) for kind in ("log", "json"))
        if not os.path.exists(log):
            self.missing.append(cell)
            for name in (places.cell_path("failed", *cell, kind) for kind in ("json", "log")):
                if os.path.exists(name):
                    self.copy(name, name)
            return
        if not os.path.exists(record):
            raise UserError(f"{record}: missing; remove {log} too, so that snakemake measures the cell again")
        self.measured.append(cell)
        folder, number = os.path.split(log.removesuffix(".log"))
        for name in sorted(os.listdir(folder)):
            if name.startswith(f"{number}."):
                self.copy(f"{folder}/{name}", f"{folder}/{name}")

    def add_image(self) -> None:
        """The image from the machine's cache, without the tree that its archive holds too, and without keys."""
        found = cache.require(self.experiment["image"]["recipe"])
        for where, folders, names in os.walk(found["folder"]):
            folders[:] = sorted(name for name in folders if name != "tree")
            for name in sorted(names):
                path = os.path.join(where, name)
                below = os.path.relpath(path, found["folder"])
                regular = os.path.isfile(path) and not os.path.islink(path)
                if name.endswith(IMAGE_FILES) and regular and not source.KEY_FILES.search(below):
                    self.copy(path, f"image/{below}")

    def look(self, allowed: list[str], others: list[str]) -> list[private.Found]:
        """What is private in the archive's files and not allowed.

        The image's files are its own, and its manifest lists their names.
        """
        given = [
            value
            for entry in self.experiment["workloads"].values()
            for key in entry["cell"]["files"]
            if os.path.isabs(str(value := entry["parameters"].get(key) or ""))
        ]
        folders = {os.path.dirname(value) for value in given} - {"/"}
        look = private.Private(self.project, self._public_words(), allowed, folders, others)
        own = {f"source/{name}" for name in [*self.source.changed, "config.yaml"]}
        found: list[private.Found] = []
        for where, names, files in os.walk(self.folder):
            names.sort()
            for path in (os.path.join(where, name) for name in sorted(files)):
                name = os.path.relpath(path, self.folder)
                if name.startswith("image/") or name in (places.IMAGE, places.MANIFEST):
                    continue
                with open(path, "rb") as file:
                    found += look.look(name, file.read(), public=name.startswith("source/") and name not in own)
        return found
