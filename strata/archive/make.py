"""The command ``strata archive``: write the archive of the working directory's project."""

import importlib.metadata
import json
import os
import shutil
import stat
from collections.abc import Callable
from typing import Any

from strata import __version__
from strata.archive import (
    check,
    checksums,
    crate,
    extraction,
    light,
    metadata,
    private,
    remake,
    source,
    zip_file,
)
from strata.experiment import blocks, config, plan, recipe
from strata.host.observe import NOT_AVAILABLE
from strata.image import cache
from strata.results import outputs
from strata.util import paths, programs, progress, run
from strata.util.data_types import Fields, Plan
from strata.util.errors import UserError
from strata.util.files import prepare_outputs, read_json, remove_tree

# The most files or findings that a message lists: a longer list hides its first lines.
_MAX_LINES = 40
# The ends of the names of an image's files; keys of virtual machines have other names.
_IMAGE_NAME_ENDS = (".tar", ".qcow2", ".box", ".img", "image.json", "manifest.json", "disk.json")
_REMEDY = (
    "take it out and measure or write that again, or allow it: archive_allow in config.yaml lists "
    "such texts, files, or places as FILE:LINE"
)


def write_requested_archive(
    is_light: bool, out: str | None, allowed: list[str] | None, **options: Any
) -> None:
    """Run the command ``archive``: write a light archive, or a whole one, to a file.

    is_light: whether :func:`write_light` writes the archive, and not :func:`write_archive`.
    out: the path of the file; None for archive.zip, or light.zip if the archive is light.
    allowed: strings, files, or places as FILE:LINE, that are published although they look private.
    options: the arguments with_image, without_source and snakemake of :func:`write_archive`.
    Raises UserError for options that a light archive does not have, and as the function that writes
    the archive.
    The parameters and the keys of `options` must have the names that ``add_archive_options`` of
    strata/options.py gives to the options.
    """
    if is_light and (options["with_image"] or options["without_source"]):
        raise UserError("archive: --light holds neither image nor source: leave the other out")
    # An archive cannot be written to standard output, since it is renamed when it is complete.
    if out == "-":
        raise UserError("--out: is -; name a file")
    with prepare_outputs({"--out": out}):
        if is_light:
            write_light(out or "light.zip", allowed)
        else:
            write_archive(out or "archive.zip", allowed=allowed, **options)


def write_light(out: str, allowed: list[str] | None = None) -> None:
    """Write the light archive of the project in the working directory, and print its checksum.

    out: the path of the file, which is replaced.
    allowed: strings, files, or places as FILE:LINE, that are published although they look private.
    Raises UserError if a table is missing, was edited or holds private strings; `out` is then
    unchanged.
    The plan and the tables `light.FILES` must exist.  Temporary files go below results/tmp.
    """
    os.makedirs("results/tmp", exist_ok=True)
    project = source.read_project_source(os.getcwd())
    experiment = plan.read_checked_plan()
    if wrong_tables := {*light.FILES} & {*remake.list_edited_tables()}:
        names = ", ".join(sorted(wrong_tables))
        raise UserError(
            f"{names}: missing or edited; `{run.format_target_command('light')}` makes it again"
        )
    with programs.create_temporary_folder("light", "results/tmp") as folder:
        _copy_files(folder, {name: name for name in light.FILES})
        given_facts = {
            "strata": __version__,
            "source": {"revision": project.revision, "changed": bool(project.changed)},
        }
        facts = light.build_summary(".", given_facts)
        _write_text(folder, light.FACTS, json.dumps(facts, indent=1) + "\n")
        _check_private_texts(folder, experiment, project, allowed or [])
        _check_and_pack(folder, out, light.find_light_archive_faults)
    progress.print_message(f"archive: {out}: {_format_size_and_digest(out)}")


def write_archive(
    out: str,
    with_image: bool = False,
    allowed: list[str] | None = None,
    without_source: bool = False,
    snakemake: str | None = None,
) -> None:
    """Write the archive of the project in the working directory to a file, and print its checksum.

    out: the path of the file, which is replaced.
    with_image: whether the archive holds the files of the image.
    allowed: strings, files, or places as FILE:LINE, that are published although they look private.
    without_source: whether the source is only named by its commit, and the manifest of the image is
    left out.
    snakemake: the version of Snakemake that made the results; None for the installed one.
    Raises UserError if a file is missing or holds private strings, or if the archive would not pass
    ``verify``, and MachineError if that cannot be checked; `out` is then unchanged.
    All results and papers must exist.  Temporary files go below results/tmp.  Files that git does
    not track are not in the archive; they are printed, and so are the notes of
    :func:`strata.archive.metadata.describe_origin`.
    """
    os.makedirs("results/tmp", exist_ok=True)
    project = source.read_project_source(os.getcwd())
    if without_source and (project.revision is None or project.changed):
        raise UserError(
            "--without-source: the source can be named only by a commit that holds all of it; "
            "commit all changes first"
        )
    experiment = plan.read_checked_plan()
    with programs.create_temporary_folder("archive", "results/tmp") as folder:
        _copy_files(folder, {name: name for name in _list_result_files(experiment, without_source)})
        _check_files_are_tracked(experiment, project)
        _copy_files(folder, {f"source/{name}": project.locate_file(name) for name in project.files})
        top_names = [name for name in metadata.ON_TOP if name in project.files]
        _copy_files(folder, {name: project.locate_file(name) for name in top_names})
        if with_image:
            _copy_files(folder, _list_image_files(experiment))
        facts = _write_descriptions(folder, project, snakemake, has_source=not without_source)
        # The source is searched even if it is left out: the commit publishes it.
        _check_private_texts(folder, experiment, project, allowed or [])
        if without_source:
            remove_tree(os.path.join(folder, "source"))
        _write_text(folder, crate.FILE, crate.format_crate(folder, facts))
        _check_and_pack(folder, out, check.find_archive_faults)
        count = len(zip_file.list_files(folder))
    if project.untracked:
        names = ", ".join(_shorten_list(project.untracked))
        progress.print_message(f"archive: not in it, since git does not track them: {names}")
    for note in metadata.describe_origin(facts):
        progress.print_message(f"archive: note: {note}")
    progress.print_message(f"archive: {out}: {count} files, {_format_size_and_digest(out)}")


def _write_descriptions(
    folder: str, project: source.Source, snakemake: str | None, has_source: bool
) -> Fields:
    """Write environment/, archive.json and README.md, and return the object of archive.json.

    folder: the folder of the archive, which must hold results and source already.
    project: the source of the project.
    snakemake: the version of Snakemake that made the results; None for the installed one.
    has_source: whether the archive will hold the source; it is removed later otherwise.
    The keys of archive.json that are given here are `metadata.GIVEN`; ``verify`` cannot derive
    them.
    """
    for name, lines in metadata.list_software().items():
        _write_text(folder, name, "".join(f"{line}\n" for line in lines))
    given_facts = {
        "strata": __version__,
        "snakemake": snakemake or _get_package_version("snakemake"),
        "source": {
            "revision": project.revision,
            "changed": project.changed,
            "swhid": source.read_tree(os.path.join(folder, "source")).swhid,
            "packed": has_source,
        },
    }
    facts = metadata.collect_facts(folder, given_facts)
    _write_text(folder, metadata.FACTS, json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    _write_text(folder, metadata.README, metadata.format_readme(facts))
    return facts


def _check_and_pack(folder: str, out: str, find_faults: Callable[[str], list[str]]) -> None:
    """Write the checksums of an archive's files, check the archive, and pack it into a file.

    folder: the folder of the archive.
    out: the path of the file, which is replaced.
    find_faults: the check that ``verify`` makes of such an archive.
    Raises UserError if the archive would not pass ``verify``, and MachineError if that cannot be
    checked.
    """
    checksums.write_checksums(folder)
    with check.convert_to_machine_error(out):
        faults = find_faults(folder)
    if faults:
        raise UserError("archive: not written, since it would not verify:", *faults)
    zip_file.pack_folder(folder, out)


def _format_size_and_digest(path: str) -> str:
    """Return the size and the SHA-256 of a file, such as ``1,234 bytes, SHA-256 9f86…``."""
    return f"{os.path.getsize(path):,} bytes, SHA-256 {checksums.hash_file(path)}"


def _copy_files(folder: str, files: dict[str, str]) -> None:
    """Copy files into a folder, and create the folders between.

    folder: the path of the folder.
    files: relative path in `folder` → path of the file that is copied there.
    A copy gets the mode 755 if the file's owner may execute the file, and 644 otherwise.  So
    archives of equal files are byte-identical.
    """
    for name, path in files.items():
        target = os.path.join(folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(path, target)
        os.chmod(target, 0o755 if os.stat(path).st_mode & stat.S_IXUSR else 0o644)


def _write_text(folder: str, name: str, text: str) -> None:
    """Write a text to a file in a folder as UTF-8, without converting the ends of lines.

    folder: the path of the folder.
    name: the relative path of the file; the folders between are created.
    text: the content of the file.
    """
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def _get_package_version(package: str) -> str:
    """Return the version of an installed Python package; `NOT_AVAILABLE` if it is missing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return NOT_AVAILABLE


def _check_files_are_tracked(experiment: Plan, project: source.Source) -> None:
    """Raise UserError if git does not track a file that the measurements depend on.

    experiment: the plan.
    project: the source of the project, which lists the tracked files.
    The files are those that the image is built from, and the declaration and parser of each planned
    workload.  Files that do not exist pass.
    """
    image = {**config.read_config()["image"], "workloads": experiment["image"].get("workloads", [])}
    needed_files = {*recipe.list_image_files(image)}
    for name in experiment["workloads"]:
        needed_files |= {f"workloads/{name}/workload.yaml", f"workloads/{name}/parse.py"}
    untracked_files = needed_files - set(project.files)
    if names := sorted(filter(os.path.exists, untracked_files)):
        raise UserError(
            f"the paper depends on files that git does not track: {', '.join(names)}; "
            "`git add` them first"
        )


def _list_result_files(experiment: Plan, without_manifest: bool) -> list[str]:
    """Return the paths of all files of results that go into the archive, relative to the project.

    experiment: the plan.
    without_manifest: whether the manifest of the image is left out.
    The files are the plan, the facts on the image, logs, records, decisions, tables and papers, and
    the record and log of each failed cell.  Cells that were neither measured nor failed are left
    out.
    Raises UserError, with the command that helps, if a record, a table or a paper is missing.
    """
    optional_files = [paths.PLAN, paths.CELLS, paths.IMAGE]
    if not without_manifest:
        optional_files.append(paths.MANIFEST)
    cell_files = []
    for cell in blocks.Order(experiment).list_cells():
        log = paths.get_cell_path("raw", *cell, "log")
        record = paths.get_cell_path("raw", *cell, "json")
        if not os.path.exists(log):
            for kind in ("json", "log"):
                optional_files.append(paths.get_cell_path("failed", *cell, kind))
            continue
        if not os.path.exists(record):
            raise UserError(
                f"{record}: missing; remove {log} too, so that snakemake measures the cell again"
            )
        cell_files += [log, record]
    output_files = [
        *outputs.list_decision_paths(experiment),
        *outputs.list_output_paths(experiment),
    ]
    for name in output_files:
        if not os.path.exists(name):
            raise UserError(
                f"{name}: missing; `{run.format_target_command('archive')}` makes it first"
            )
    return [*filter(os.path.exists, optional_files), *cell_files, *output_files]


def _list_image_files(experiment: Plan) -> dict[str, str]:
    """Return ``{path in the archive: path in this machine's cache}`` of the image's files.

    experiment: the plan, which names the image.
    Raises UserError if the image is not complete in the cache.
    The unpacked tree is left out, since the image's tar file holds it, and so are the keys of
    virtual machines, and links.
    """
    cache_folder = cache.require_image(experiment["image"]["recipe"])["folder"]
    files = {}
    for name in zip_file.list_files(cache_folder):
        path = os.path.join(cache_folder, name)
        is_regular_file = os.path.isfile(path) and not os.path.islink(path)
        is_in_tree = "tree" in name.split("/")
        if is_regular_file and name.endswith(_IMAGE_NAME_ENDS) and not is_in_tree:
            files[f"image/{name}"] = path
    return files


def _check_private_texts(
    folder: str, experiment: Plan, project: source.Source, allowed: list[str]
) -> None:
    """Raise UserError if an archive holds private strings that are not allowed.

    folder: the folder of the archive's files, with the source below ``source``.
    experiment: the plan.
    project: the source of the project.
    allowed: strings, files, or places as FILE:LINE, that may be published.
    The message lists at most _MAX_LINES findings, each cut to 80 characters of its string.
    Files of the image and the manifest are not searched, since nothing of this machine is in them.
    Source files that equal the commit count as public, except config.yaml, in which users write
    names and folders of their machine.
    """
    changed_files = {*project.changed, "config.yaml"}
    scanner = _create_scanner(experiment, project, changed_files, allowed)
    findings: list[private.Finding] = []
    for name in zip_file.list_files(folder):
        if name.startswith("image/") or name == paths.MANIFEST:
            continue
        is_source = name.startswith("source/")
        is_public = is_source and name.removeprefix("source/") not in changed_files
        with open(os.path.join(folder, name), "rb") as file:
            findings += scanner.scan_file(name, file.read(), is_public)
    if findings:
        lines = [f"{finding.place}: {finding.kind}: {finding.text[:80]}" for finding in findings]
        reason = "archive: not written, since this is private or cannot be looked through:"
        raise UserError(reason, *_shorten_list(lines), _REMEDY)


def _create_scanner(
    experiment: Plan, project: source.Source, changed_files: set[str], allowed: list[str]
) -> private.Scanner:
    """Return the scanner that finds private strings in the files of an archive.

    experiment: the plan.
    project: the source of the project, whose unchanged files are public.
    changed_files: the paths of the source files that are not public.
    allowed: strings, files, or places as FILE:LINE, that may be published.
    A word of the public source is not private, even if it is the name of a user or host.
    The folders of files that workloads name by their parameters, and the machine of the client
    (results/tmp/client.json), are private, too.
    """
    public_strings = [*experiment["environments"], *experiment["workloads"]]
    for name in set(project.files) - changed_files:
        with open(project.locate_file(name), "rb") as file:
            text = extraction.decode_text(file.read())
        # A text with NUL characters is a binary file, whose letters are not words.
        if "\0" not in text:
            public_strings.append(text)
    parameter_folders = set()
    for workload in experiment["workloads"].values():
        for key in workload["cell"]["files"]:
            path = str(workload["parameters"].get(key) or "")
            if os.path.isabs(path):
                parameter_folders.add(os.path.dirname(path))
    client: Fields = read_json(paths.CLIENT) or {}
    # Without a second machine the key is missing.
    ssh_destinations = [client["ssh"]] if client.get("ssh") else []
    return private.Scanner(
        os.getcwd(),
        private.collect_public_words(public_strings),
        allowed,
        parameter_folders - {"/"},
        ssh_destinations,
    )


def _shorten_list(lines: list[str]) -> list[str]:
    """Return the first `_MAX_LINES` lines; if there are more, "… and N more" is appended."""
    omitted_count = len(lines) - _MAX_LINES
    if omitted_count <= 0:
        return lines
    return [*lines[:_MAX_LINES], f"… and {omitted_count} more"]
