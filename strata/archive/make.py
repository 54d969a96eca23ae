"""An archive of the project in the working directory: copies of its files as they are, and what describes them."""

import importlib.metadata
import json
import os
import shutil
import stat

from strata import __version__
from strata.archive import check, checksums, crate, metadata, private, source, zip_file
from strata.experiment import blocks, config, plan, recipe
from strata.host.observe import NOT_AVAILABLE
from strata.image import cache
from strata.results import outputs
from strata.util import paths, programs, progress, run
from strata.util.data_types import Fields, Plan
from strata.util.errors import UserError
from strata.util.files import read_json, remove_tree

# More than this many lines are no help to look through in a terminal.
MOST = 40
# Of an image's folder in the cache, what makes up the image; never a key.
IMAGE_FILES = (".tar", ".qcow2", ".box", ".img", "image.json", "manifest.json", "disk.json")
_REMEDY = (
    "take it out and measure or write that anew, or allow it: archive_allow in config.yaml lists such texts, files, or "
    "places as FILE:LINE"
)


def make(
    out: str,
    with_image: bool = False,
    allowed: list[str] | None = None,
    light: bool = False,
    snakemake: str | None = None,
) -> None:
    """Write the archive to `out` and say on standard error what it holds.

    allowed: as of :class:`strata.archive.private.Private`.  light: without the source, of which the commit is named
    alone, and without the list of the image's files.  snakemake: the version that ran (default: the one installed).
    Raises UserError where something is missing or private, or where what was put together would not verify.
    """
    os.makedirs("results/tmp", exist_ok=True)
    found = source.listing(os.getcwd())
    if light and (found.revision is None or found.changed):
        raise UserError("an archive without its source is of a commit: commit all changes first")
    experiment = plan.read_checked()
    with programs.scratch("archive", "results/tmp") as folder:
        names = [name for name in metadata.ON_TOP if name in found.files]
        _copy(folder, {name: name for name in [*names, *_results(experiment, light)]})
        _copy(folder, {f"source/{name}": name for name in _source(experiment, found)})
        if with_image:
            _copy(folder, _image(experiment))
        for name, lines in metadata.packages().items():
            _write(folder, name, "".join(f"{line}\n" for line in lines))
        told = _given(folder, found, light, snakemake or _installed("snakemake"))
        facts = metadata.facts(folder, told)
        _write(folder, metadata.FACTS, json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
        _write(folder, metadata.README, metadata.readme(facts))
        if wrong := _private(folder, experiment, found, allowed or []):
            lines = [f"{one.place}: {one.what}: {one.text[:80]}" for one in wrong]
            why = "archive: not written, since this is private or cannot be looked through:"
            raise UserError(why, *_some(lines), _REMEDY)
        if light:
            remove_tree(os.path.join(folder, "source"))
        _write(folder, crate.FILE, crate.text(folder, facts))
        checksums.write(folder)
        with check.blameless(out):
            faults = check.findings(folder)
        if faults:
            raise UserError("archive: not written, since it would not verify:", *faults)
        zip_file.pack(folder, out)
        _report(found, metadata.notes(facts), out, len(zip_file.files_below(folder)))


def _copy(folder: str, files: dict[str, str]) -> None:
    """Copy files of this machine, by their names in the archive."""
    for name, origin in files.items():
        target = os.path.join(folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(origin, target)
        os.chmod(target, 0o755 if os.stat(origin).st_mode & stat.S_IXUSR else 0o644)


def _write(folder: str, name: str, text: str) -> None:
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def _installed(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return NOT_AVAILABLE


def _given(folder: str, found: source.Source, light: bool, snakemake: str) -> Fields:
    """The facts that do not follow from other files."""
    return {
        "strata": __version__,
        "snakemake": snakemake,
        "source": {
            "revision": found.revision,
            "changed": found.changed,
            "swhid": source.tree(os.path.join(folder, "source")).swhid,
            "packed": not light,
        },
    }


def _source(experiment: Plan, found: source.Source) -> list[str]:
    """The project's own files.  Raises UserError where one that something was measured by is none of them."""
    image = {**config.read()["image"], "workloads": experiment["image"].get("workloads", [])}
    parsers = [
        f"workloads/{name}/{file}"
        for name in experiment["workloads"]
        for file in ("workload.yaml", "parse.py")
    ]
    needed = {*parsers, *recipe.files(image)}
    if lacking := sorted(name for name in needed - set(found.files) if os.path.exists(name)):
        raise UserError(
            f"the paper rests on files that git does not track: {', '.join(lacking)}; `git add` them first"
        )
    return found.files


def _results(experiment: Plan, light: bool) -> list[str]:
    """Plan, image's facts, logs, records, and what was made of them.  Raises UserError where a file is missing."""
    found = [paths.PLAN, paths.CELLS, paths.IMAGE, *([] if light else [paths.MANIFEST])]
    found = [name for name in found if os.path.exists(name)]
    for cell in blocks.Order(experiment).cells():
        log, record = (paths.cell_path("raw", *cell, kind) for kind in ("log", "json"))
        if not os.path.exists(log):
            failed = (paths.cell_path("failed", *cell, kind) for kind in ("json", "log"))
            found += [name for name in failed if os.path.exists(name)]
            continue
        if not os.path.exists(record):
            raise UserError(
                f"{record}: missing; remove {log} too, so that snakemake measures the cell again"
            )
        folder, number = os.path.split(log.removesuffix(".log"))
        found += [
            f"{folder}/{name}"
            for name in sorted(os.listdir(folder))
            if name.startswith(f"{number}.")
        ]
    made = [*outputs.decisions(experiment), *outputs.made(experiment)]
    for name in made:
        if not os.path.exists(name):
            raise UserError(f"{name}: missing; `{run.again('archive')}` makes it first")
    return found + made


def _image(experiment: Plan) -> dict[str, str]:
    """The image from the machine's cache, without the tree that its archive holds too, and without keys."""
    cached = cache.require(experiment["image"]["recipe"])["folder"]
    found = {
        name: os.path.join(cached, name)
        for name in zip_file.files_below(cached)
        if name.endswith(IMAGE_FILES)
    }
    regular = {
        name: path
        for name, path in found.items()
        if os.path.isfile(path) and not os.path.islink(path)
    }
    return {
        f"image/{name}": path for name, path in regular.items() if "tree" not in name.split("/")
    }


def _private(
    folder: str, experiment: Plan, found: source.Source, allowed: list[str]
) -> list[private.Found]:
    """What is private in the archive's files and not allowed.

    The image's files are its own, and its manifest lists their names.
    """
    changed = {*found.changed, "config.yaml"}
    texts = [*experiment["environments"], *experiment["workloads"]]
    for name in set(found.files) - changed:
        with open(name, "rb") as file:
            texts.append(private.said(file.read()) or "")
    given = [
        value
        for entry in experiment["workloads"].values()
        for key in entry["cell"]["files"]
        if os.path.isabs(str(value := entry["parameters"].get(key) or ""))
    ]
    folders = {os.path.dirname(value) for value in given} - {"/"}
    client: Fields = read_json(paths.CLIENT) or {}
    look = private.Private(
        os.getcwd(), private.words_of(texts), allowed, folders, client.get("ssh", "").split()
    )
    seen: list[private.Found] = []
    for name in zip_file.files_below(folder):
        if not name.startswith("image/") and name not in (paths.IMAGE, paths.MANIFEST):
            with open(os.path.join(folder, name), "rb") as file:
                public = name.startswith("source/") and name.removeprefix("source/") not in changed
                seen += look.look(name, file.read(), public)
    return seen


def _some(lines: list[str]) -> list[str]:
    return lines[:MOST] + ([f"… and {len(lines) - MOST} more"] if len(lines) > MOST else [])


def _report(found: source.Source, notes: list[str], out: str, count: int) -> None:
    if untracked := found.untracked:
        progress.shown(
            f"archive: not in it, since git does not track them: {', '.join(_some(untracked))}"
        )
    for text in notes:
        progress.shown(f"archive: note: {text}")
    size = os.path.getsize(out)
    progress.shown(
        f"archive: {out}: {count} files, {size:,} bytes, SHA-256 {checksums.of_file(out)}"
    )
