"""What is noted beside each product when it is made: of which plan, code and files, and what came out.

A product is good while all of them are as they were.  What is not is made again, and until then nothing is made
of it.
"""

import functools
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Collection, Iterable

from strata.base import places, progress
from strata.base.errors import UserError
from strata.base.files import read_json, write_json
from strata.experiment import plan, sets
from strata.results import accept, digests, judge, products
from strata.results.products import Product

FORMAT = 1
# The commands that read logs, and those that read records; others that read records do so by these' tables.
_ACCEPTED = ("tidy", "precision")
_JUDGED = ("report",)
# Set where a paper is made again of what was archived, so that nothing of that may change.
KEEP = "STRATA_KEEP"
_IMAGE = (places.IMAGE, "results/image-manifest.json")


class State:
    """The products of an experiment as its files are now.

    experiment: the plan, with the revision of the source.  results, source: the folders in which the results and
    the project's own files lie; in a project both are the project.
    """

    def __init__(
        self, experiment: dict, results: str = ".", source: str = ".", found: digests.Digests | None = None
    ) -> None:
        self.experiment, self.results, self.source = experiment, results, source
        self.digests = found or digests.Digests()
        everything = {key: value for key, value in experiment.items() if key != "source"}
        self._lines: dict[tuple[str, str, int], list[str]] = {}
        self._plan = _digest([json.dumps(everything, sort_keys=True)])

    @functools.cached_property
    def order(self) -> sets.Order:
        """The order of the plan's cells, as far as it is decided."""
        return sets.Order(self.experiment, os.path.join(self.results, "results"))

    @functools.cached_property
    def _cells(self) -> dict[str, list[tuple[int, tuple[str, str, int]]]]:
        """The block of every cell and the cell, by their workload."""
        found: dict[str, list] = {}
        for _, block, name, load, repetition in self.order.rows():
            found.setdefault(load, []).append((block, (name, load, repetition)))
        return found

    def cells(self, workload: str, blocks: int | None = None) -> list[tuple[str, str, int]]:
        """The cells of a workload in the first blocks of the plan; in all that are known unless it is said."""
        return [cell for block, cell in self._cells.get(workload, []) if blocks is None or block <= blocks]

    def measured(self) -> list[str]:
        """The workloads that have a cell to show."""
        return [load for load in sorted(self._cells) if any(map(self._raw, self.cells(load)))]

    def products(self, measured: Collection[str] | None = None) -> dict[str, Product]:
        """The products of this experiment (:func:`strata.results.products.of_experiment`).

        measured: workloads that have, or will have, a cell to show; those that have one unless they are given.
        """
        asked = [block for block in self.order.asked if self._there(f"results/precision/{block}.json")]
        return products.of_experiment(self.experiment, self.measured() if measured is None else measured, asked)

    def sources(self, product: Product) -> dict[str, str | None]:
        """Digests of the code and texts that make a product, by their files and folders."""
        found: dict[str, str | None] = {}
        for name in (*_code(self.source, product.command), *product.sources):
            path = os.path.join(self.source, name)
            if os.path.isdir(path):
                below = sorted(file for file in os.listdir(path) if file.endswith((".R", ".json")))
                found[name] = self._together(self.source, [f"{name}/{file}" for file in below])
            else:
                found[name] = self.digests.of(path)
        return found

    def inputs(self, product: Product) -> dict[str, str | None]:
        """Digests of the plan, tables, logs and records that a product is made of."""
        found: dict[str, str | None] = {}
        if product.planned:
            found[places.PLAN] = self._plan
        if product.whole:
            found["revision"] = (self.experiment.get("source") or {}).get("revision")
        for name in (*product.reads, *(_IMAGE if product.whole else ())):
            found[name] = self.digests.of(os.path.join(self.results, name))
        for load in product.cells:
            cells = self.cells(load, product.blocks)
            found[f"results/raw/*/{load}"] = _digest(line for cell in cells for line in self._raw(cell))
            if product.whole:
                lost = [places.cell_path("failed", *cell, "json") for cell in cells if not self._raw(cell)]
                found[f"results/failed/*/{load}"] = self._together(self.results, lost)
        return found

    def files(self, product: Product) -> dict[str, str | None]:
        """Digests of the files of a product."""
        return {name: self.digests.of(os.path.join(self.results, name)) for name in product.files}

    def note(self, product: Product, again: int = 0) -> dict:
        """What is noted of a product as its files are now; `again` is of :meth:`again`."""
        told = {
            "format": FORMAT,
            "files": self.files(product),
            "sources": self.sources(product),
            "inputs": self.inputs(product),
        }
        return {**told, "again": again} if again else told

    def noted(self, product: Product) -> dict | None:
        """What was noted when a product was made; None where nothing was, or nothing that can be read."""
        told = read_json(os.path.join(self.results, product.note))
        parts = ("files", "sources", "inputs")
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            return None
        return told if all(isinstance(told.get(part), dict) for part in parts) else None

    def _differences(self, product: Product) -> list[tuple[str, str]]:
        """(what differs, a sentence about it) for all in which a product is not what would be made now."""
        told, now = self.noted(product), self.note(product)
        first = product.files[0]
        if told is None:
            return [(product.note, f"{first}: {product.note}, which tells how it was made, is missing or broken")]
        found = [(name, f"{name}: it is not as it was made") for name in _differing(told["files"], now["files"])]
        found += [
            (name, f"{first}: it was not made by the {name} that is there")
            for name in _differing(told["sources"], now["sources"])
        ]
        return found + [
            (name, f"{first}: it was not made of the {name} that is there")
            for name in _differing(told["inputs"], now["inputs"])
        ]

    def faults(self, product: Product) -> list[str]:
        """Why the files of a product are not those that would be made now, a sentence each; none where they are."""
        return [sentence for _, sentence in self._differences(product)]

    def made_by(self, product: Product) -> str:
        """One digest of the plan and of all code and texts that make a product."""
        return _digest([self._plan if product.planned else "", json.dumps(self.sources(product), sort_keys=True)])

    def again(self, product: Product) -> int:
        """A number that is another one where a product has to be made again though no rule's parameter says so.

        It is noted with what is made, and stays as long as that is as it was made.
        """
        told = self.noted(product)
        if told is not None and not self.faults(product):
            return told.get("again", 0)
        there = [os.path.join(self.results, name) for name in (*product.files, product.note) if self._there(name)]
        return int(_digest(str(os.stat(path).st_ctime_ns) for path in there)[:12], 16) if there else 0

    def findings(self) -> list[str]:
        """What is wrong with the products, a sentence for each thing that is, at the first product that it is in."""
        found: dict[str, str] = {}
        for product in self.products().values():
            missing = [(name, f"{name}: missing") for name in product.files if not self._there(name)]
            for name, sentence in missing or self._differences(product):
                found.setdefault(name, sentence)
        return list(found.values())

    def _there(self, name: str) -> bool:
        return os.path.exists(os.path.join(self.results, name))

    def _raw(self, cell: tuple[str, str, int]) -> list[str]:
        """Digests and names of a cell's log and record; none where it has no log.  They are looked at once."""
        if cell not in self._lines:
            names = [places.cell_path("raw", *cell, kind) for kind in ("log", "json")]
            lines = [f"{self.digests.of(os.path.join(self.results, name))}  {name}" for name in names]
            self._lines[cell] = [] if lines[0].startswith("None ") else lines
        return self._lines[cell]

    def _together(self, folder: str, names: list[str]) -> str:
        """One digest of those of several files."""
        return _digest(f"{self.digests.of(os.path.join(folder, name))}  {name}" for name in names)


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()


def _differing(told: dict, now: dict) -> list[str]:
    return sorted(name for name in {**told, **now} if name not in told or name not in now or told[name] != now[name])


def _code(source: str, command: str) -> list[str]:
    """The file of an R command, the contracts, and the rooms that it loads; all rooms where it does not say."""
    analysis = os.path.join(source, "analysis")
    rooms = re.findall(r'^  (\w+) = "', _text(f"{analysis}/load.R"), re.MULTILINE)
    last = re.search(r'^load_rooms\(root, "(\w+)"', _text(f"{analysis}/{command}.R"), re.MULTILINE)
    if last and last[1] in rooms:
        rooms = rooms[: rooms.index(last[1]) + 1]
    return [f"analysis/{command}.R", "analysis/load.R", "contracts", *(f"analysis/{room}" for room in rooms)]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def make(name: str, again: int, command: list[str]) -> int:
    """Run the command that makes a product, and note of what it did; gives the command's exit status.

    Raises UserError where what the product is made of is itself not as it was made.
    """
    others = products.of_reanalysis()
    state = State({} if name in others else plan.read_checked(), found=digests.Digests(digests.MEMORY))
    if name not in others:
        others = state.products()
    product = find(others, state.experiment, name)
    for other in others.values():
        faults = state.faults(other) if set(other.files) & set(product.reads) else []
        if faults:
            raise UserError(f"{faults[0]}; remove {' '.join(other.files)} and run snakemake again")
    if product.command in _ACCEPTED and KEEP not in os.environ:
        accept.accept(state.experiment, list(product.cells), product.blocks, "--partial" in command)
        # A cell may have been measured again, or be gone.
        state = State(state.experiment, found=state.digests)
    elif product.command in (*_ACCEPTED, *_JUDGED):
        _judge(state, product)
    if os.path.exists(product.note):
        os.unlink(product.note)
    before = state.note(product, again)
    try:
        done = subprocess.run(command, check=False)
    except FileNotFoundError:
        raise UserError(f"{command[0]} is missing; `make setup-paper` installs it") from None
    if done.returncode == 0:
        write_json(product.note, {**before, "files": state.files(product)})
        if product.blocks is not None:
            _go_on(state.experiment)
    state.digests.save()
    return done.returncode


def _go_on(experiment: dict) -> None:
    """Write down the cells that a decision added, and that they are to come."""
    order = sets.Order(experiment)
    plan.write_cells(experiment)
    coming = [cell for cell in order.cells() if not os.path.exists(places.cell_path("raw", *cell, "log"))]
    progress.go_on(coming, [(cell[0], order.turn(*cell)) for cell in coming], more=not order.decided)


def _judge(state: State, product: Product) -> None:
    """Raise UserError where a record is not that of its cell, or a log not that of its record."""
    cells = [cell for load in product.cells for cell in state.cells(load, product.blocks)]
    wrong = judge.faults(state.experiment, judge.measured(cells))
    if wrong:
        raise UserError(judge.complaint(wrong))


def find(known: dict[str, Product], experiment: dict, name: str) -> Product:
    """The product of a name.  Raises UserError where there is none."""
    block = re.fullmatch(r"precision/([1-9][0-9]*)", name)
    if block and "precision" in experiment:
        return products.precision(experiment, int(block[1]), sets.Order(experiment).asked)
    if name not in known:
        raise UserError(f"{name}: the experiment makes no such thing")
    return known[name]
