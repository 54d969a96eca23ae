"""What goes into an archive: copies of the project's files in a folder, without what is private.

Raw logs stay the bytes that were measured unless they hold something private.  Where a log or record had to
be rewritten, the record's size and digest of its log are those of the archived bytes, `log.rewritten` says so,
and ``rewritten.json`` lists the file with the count of every mark.
"""

import hashlib
import json
import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable
from typing import Any

from strata.archive import private, source
from strata.base import places, run
from strata.base.errors import UserError
from strata.base.files import read_json
from strata.experiment import plan, sets
from strata.host import node
from strata.image import cache
from strata.results import products

REWRITTEN = "rewritten.json"
# Of an image's folder in the cache, what makes up the image; never a key.
IMAGE_FILES = (".tar", ".qcow2", ".box", ".img", "image.json", "manifest.json", "disk.json")

# What of a workload's folder its logs are read by.
_OF_WORKLOADS = ("workload.yaml", "parse.py")

Rewriter = Callable[[str], tuple[str, Counter]]


class Stage:
    """A folder that fills with an archive's files.

    rewritten: file → mark → count.  warnings: sentences for whoever makes the archive and for its readers.
    """

    def __init__(self, project: str, folder: str) -> None:
        self.project, self.folder = project, folder
        self.rewritten: dict[str, Counter] = {}
        self.warnings: list[str] = []
        self.source = source.listing(project)
        self.experiment = plan.read_checked()
        client = self.experiment["client"].get("ssh") or ""
        self.private = private.Private(project, self._public_words(), client, self._nodes())
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

    def _nodes(self) -> set[str]:
        """The nodes that the records tell of, where cells were measured on several."""
        if not self.experiment.get("spread"):
            return set()
        cells = sets.Order(self.experiment).cells()
        told = (node.of_record(read_json(places.cell_path("raw", *cell, "json"))) for cell in cells)
        return {name for name in told if name}

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

    def copy(self, origin: str, name: str, rewrite: Rewriter | None = None) -> bool:
        """Copy a file of the machine; texts without what `rewrite` finds.  Whether it was rewritten."""
        target = self.path(name)
        shutil.copyfile(origin, target)
        executable = os.stat(origin).st_mode & stat.S_IXUSR
        os.chmod(target, 0o755 if executable else 0o644)
        if rewrite is None:
            return False
        with open(origin, "rb") as file:
            content = file.read()
        if not private.is_text(content) and name.startswith("source/"):
            return False
        return self.put(name, content, rewrite) != content

    def put(self, name: str, content: bytes, rewrite: Rewriter) -> bytes:
        """Put in what is left of a content, and note what was taken out; gives the bytes that went in."""
        self.private.place = name
        text, found = rewrite(content.decode(errors="surrogateescape"))
        written = text.encode(errors="surrogateescape") if found else content
        with open(self.path(name), "wb") as file:
            file.write(written)
        if found:
            self.rewritten[name] = self.rewritten.get(name, Counter()) + found
        return written

    def add_source(self) -> None:
        """The project's own files, below source/.  Raises UserError where one that was measured by is none of them."""
        needed = [f"workloads/{name}/{file}" for name in self.experiment["workloads"] for file in _OF_WORKLOADS]
        lacking = [name for name in needed if os.path.exists(name) and name not in self.source.files]
        if lacking:
            raise UserError(
                f"the paper rests on files that git does not track: {', '.join(lacking)}; `git add` them first"
            )
        for name in self.source.files:
            # The page of the experiment, and what was changed, is of this machine rather than public.
            own = name in self.source.changed
            rewrite = self.private.of_own_source if own else self.private.of_source
            rewrite = self.private.of_log if name == "config.yaml" else rewrite
            self.copy(os.path.join(self.project, name), f"source/{name}", rewrite)
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

    def _json(self, origin: str, files: set[str]) -> Rewriter:
        def rewrite(text: str) -> tuple[str, Counter]:
            try:
                return self.private.of_json(text, files)
            except ValueError:
                raise UserError(f"{origin}: not valid JSON; remove it and run snakemake again") from None

        return rewrite

    def _file_parameters(self) -> set[str]:
        return {key for entry in self.experiment["workloads"].values() for key in entry["cell"]["files"]}

    def add_results(self) -> None:
        """Plan, image's facts, logs, records, and what was made of them.  Raises UserError where a file lacks."""
        files = self._file_parameters()
        self.copy(places.PLAN, places.PLAN, self._json(places.PLAN, files))
        self.copy("results/plan.csv", "results/plan.csv", self.private.of_source)
        for name in (places.IMAGE, "results/image-manifest.json"):
            if os.path.exists(name):
                # Paths of a manifest are the image's own.
                self.copy(name, name, self.private.of_source)
        for cell in sets.Order(self.experiment).cells():
            self._add_cell(cell, files)
        self._add_products()

    def _add_cell(self, cell: tuple[str, str, int], files: set[str]) -> None:
        log, record = (places.cell_path("raw", *cell, kind) for kind in ("log", "json"))
        if not os.path.exists(log):
            self.missing.append(cell)
            for name in (places.cell_path("failed", *cell, kind) for kind in ("json", "log")):
                if os.path.exists(name):
                    self.copy(name, name, self._json(name, files) if name.endswith(".json") else self.private.of_log)
            return
        self.measured.append(cell)
        folder, number = os.path.split(log.removesuffix(".log"))
        others = [f"{folder}/{name}" for name in sorted(os.listdir(folder)) if name.startswith(f"{number}.")]
        for name in others:
            if name not in (log, record):
                self.copy(name, name, self._json(name, files) if name.endswith(".json") else self.private.of_log)
        with open(log, "rb") as file:
            measured = file.read()
        written = self.put(log, measured, self.private.of_log)
        if not os.path.exists(record):
            raise UserError(f"{record}: missing; remove {log} too, so that snakemake measures the cell again")
        with open(record, "rb") as file:
            content = file.read()
        content = self.put(record, content, self._json(record, files))
        facts = json.loads(content)
        if written != measured:
            digest = hashlib.sha256(written).hexdigest()
            facts["log"] = {**facts["log"], "bytes": len(written), "sha256": digest, "rewritten": True}
        if places.PLAN in self.rewritten:
            # That of something private goes with it.
            archived = read_json(self.path(places.PLAN)) or {}
            facts["fingerprint"] = plan.fingerprint(archived, *cell[:2])
        if facts != json.loads(content):
            self.write_json(record, facts)

    def _add_products(self) -> None:
        """Decisions, tables, figures and papers.  Raises UserError where one is missing."""
        for name in (*products.decisions(self.experiment), *products.made(self.experiment), places.SUMS):
            if not os.path.exists(name):
                raise UserError(f"{name}: missing; `{run.again('archive')}` makes it first")
            self.copy(name, name)

    def inputs_were_rewritten(self) -> bool:
        """Whether the paper has to be made again, since what it rests on is not what it was."""
        return any(name.startswith("results/") for name in self.rewritten)

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
                    rewrite = self.private.of_source if name.endswith(".json") else None
                    self.copy(path, f"image/{below}", rewrite)

    def check_leaks(self) -> None:
        """Raise UserError where a file that was made rather than measured still holds something private.

        What was measured was searched when it was put in, by the same rules.
        """
        for where, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(where, name)
                below = os.path.relpath(path, self.folder)
                if (
                    below.startswith(("image/", "source/", "results/raw/", "results/failed/"))
                    or below in self.rewritten
                ):
                    continue
                with open(path, "rb") as file:
                    content = file.read()
                if private.is_text(content):
                    rule = self.private.of_source if below.startswith("results/image") else self.private.of_log
                    _, found = rule(private.unpacked(content.decode()))
                    if found:
                        kinds = ", ".join(private.MARKS[mark] for mark in sorted(found))
                        raise UserError(f"{below} would be archived with something private in it ({kinds})")

    def finish_rewriting(self) -> None:
        """Write rewritten.json: what each mark stands for, and which files hold how many of them."""
        files = {name: dict(sorted(found.items())) for name, found in sorted(self.rewritten.items())}
        self.write_json(REWRITTEN, {"format": 1, "marks": private.MARKS, "files": files})
