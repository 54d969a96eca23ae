"""Read and check the command line of ``strata try``, and derive the experiment's config.yaml."""

import contextlib
import hashlib
import math
import os
import re
import shlex
import shutil
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from strata.environments.common import docker_daemon, passed_options
from strata.experiment import config, workload
from strata.experiment.blocks import REFERENCE
from strata.experiment.folder import check_experiment_name, check_repetitions, format_folder_name
from strata.experiment.precision import LOOKS
from strata.util import paths, validation, yaml_files
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.files import read_json, remove_tree, write_text
from strata.util.units import parse_quantity

# The workload that runs a command, and the folder in a system where the command runs.
WORKLOAD = "command"
WORK_FOLDER = "/data/work"
# The folder of experiments, and the archive of the given files in an experiment's folder.
FOLDER = "try"
ARCHIVE = "files.tar"
# The environments that are tried unless the option --in names others.  The help of --in in
# strata/options.py repeats them.
DEFAULT_ENVIRONMENTS = ("native", "docker", "docker-gvisor")
# The wanted duration of a lap, and of all laps of an environment in a block.  The environments
# take turns by laps, so that four laps spread a disturbance over all of them.
LAP_SECONDS = 0.3
BLOCK_SECONDS = 1.2
# The share of the budget for runs; the rest is for the trial run, Snakemake and the tables.
MEASURED_SHARE = 0.8
# Longer runs are not warmed up.
LONG_RUN_SECONDS = 2.0
# The time limit of a run is LIMIT_FACTOR times the duration of the trial run, and at least this:
# a first run in another environment may be far slower than a short native run.
MIN_LIMIT_SECONDS = 60
LIMIT_FACTOR = 10
# How many of the last bytes that a run prints are searched for metrics.
KEPT_BYTES = 65536
# The parameters that follow from the trial run: the keys of :func:`choose_lap_parameters`.
LAP_PARAMETERS = ("runs", "warmups", "laps", "limit")
# The most characters of a command in the paper's title, which is then about two lines long.
MAX_TITLE_LENGTH = 100
# What a person may change if the message of a failure matches a regular expression.  Most of these
# messages are written by workloads/command/src/timed.c, others by the command itself.
HINTS = {
    r"(?i)\btty\b|terminal": (
        "no measured program has a terminal: give it options for use without one"
    ),
    "no end after": (
        "does it wait for input, which no measured program has, or serve? a longer --budget "
        "allows longer runs"
    ),
    "left a process": "let the command wait for what it starts, as by `sh -c '…; wait'`",
    r"(?s)\A(?=.*exit code)(?=.*(?i:exists))": (
        "it runs many times in one folder: let it overwrite its output, or write to /dev/null"
    ),
}


# The files and folders of an experiment that are replaced when the experiment begins again.
_REPLACED_NAMES = ("results", config.FILE, ARCHIVE)
# The folder in an experiment's folder that holds the earlier ones of them until the trial run of
# the new experiment has succeeded, and the name of this folder while it is removed.
_BACKUP_FOLDER, _DISCARDED_FOLDER = ".earlier", ".discarded"


@dataclass(frozen=True)
class Request:
    """A command to be tried, with the checked options of ``strata try``.

    argv: the program and its arguments; not empty.  Paths of the given files are replaced by those
    of their copies in the system.
    environments: the names of the environments where the command is tried; native is the first.
    files: the host's paths of the files and folders that the user gave.
    patterns: further metrics, each as ``NAME[:UNIT[:lower]]=REGEX``.
    packages: the names of the packages that are added to the project's image.
    margin: the smallest difference that matters, as a percentage such as ``2%``.
    budget: the largest time of measurement, such as ``5min``.
    image: the name of the user's own Docker image; None for the project's image.
    docker_options: options for ``docker run``, each as one string such as ``--cpus=0.5``.
    """

    argv: list[str]
    environments: list[str]
    files: list[str]
    patterns: list[str]
    packages: list[str]
    margin: str
    budget: str
    image: str | None = None
    docker_options: Sequence[str] = ()

    @property
    def command_line(self) -> str:
        """The command line as a person would type it."""
        return shlex.join(self.argv)

    @property
    def budget_seconds(self) -> float:
        """The budget in seconds; 0.0 if it is empty, which :func:`read_request` refuses."""
        return float(parse_quantity(self.budget) or 0)


def read_request(
    argv: list[str],
    names: str | None,
    files: list[str],
    metrics: list[str],
    packages: list[list[str]],
    margin: str,
    budget: str,
    image: str | None,
    docker_options: list[str],
) -> Request:
    """Check the options of ``strata try``, and return them as a request.

    argv: the program and the arguments of the command.
    names: the names of environments, comma-separated; None for DEFAULT_ENVIRONMENTS.
    files: the paths of files and folders of this host.
    metrics: further metrics, each as ``NAME[:UNIT[:lower]]=REGEX``.
    packages: a list of package names for each time that the option is given.
    margin: the smallest difference that matters, as a percentage such as ``2%``.
    budget: the largest time of measurement, such as ``5min``.
    image: the name of the user's own Docker image; None for the project's image.
    docker_options: options for ``docker run``; :func:`build_configuration` checks them.
    Raises UserError for a missing command or an empty image name, and otherwise with the mistakes
    of all options.
    The parameters must have the names that ``add_try_options`` of strata/options.py gives to the
    options.
    """
    if not argv:
        raise UserError(
            "there is no command. Type it after two hyphens, as in "
            "`python3 -m strata try -- xz -k FILE`."
        )
    if not argv[0].strip():
        raise UserError("the command is empty. Type its name after two hyphens.")
    if image is not None and not image.strip():
        raise UserError("--image: is empty. Name a Docker image that `docker images` lists.")
    repetitions = build_repetitions(margin, budget)
    environments: list[str] = []
    argv_in_system: list[str] = []
    validation.run_all_checks(
        lambda: check_repetitions(repetitions, {"margin": "--margin", "budget": "--budget"}),
        lambda: _check_metrics(metrics),
        lambda: environments.extend(choose_environments(names)),
        lambda: argv_in_system.extend(replace_file_paths(argv, files)),
    )
    return Request(
        argv=argv_in_system,
        environments=environments,
        files=files,
        patterns=metrics,
        packages=[name for group in packages for name in group],
        margin=margin,
        budget=budget,
        image=image,
        docker_options=docker_options,
    )


def build_repetitions(margin: str, budget: str) -> Fields:
    """Return the value of `repetitions` in an experiment's config.yaml.

    margin: the smallest difference that matters, as a percentage such as ``2%``.
    budget: the largest time of measurement, such as ``5min``.
    The values are not checked; :func:`strata.experiment.folder.check_repetitions` does it.
    """
    # Three blocks give a first interval.  The planned interim analyses (LOOKS) share the error
    # rate, so that no block may follow the last of them.
    return {"min": 3, "max": LOOKS[-1], "margin": margin, "budget": budget}


def _check_metrics(metrics: list[str]) -> None:
    """Raise UserError unless each value of the option --metric defines a metric of a new name.

    metrics: the values, each as ``NAME[:UNIT[:lower]]=REGEX``.
    """
    # Declarations of workloads are read relative to the working directory.
    with contextlib.chdir(paths.PROJECT):
        declaration = workload.read_declaration(WORKLOAD)
    validator = validation.build_validator(declaration["parameters"]["patterns"]["schema"]["items"])
    names = set(declaration["metrics"])
    for definition in metrics:
        if mistakes := validation.find_schema_faults(validator, definition):
            raise UserError(*(f"--metric: {sentence}" for _, sentence in mistakes))
        try:
            name, _ = workload.parse_metric_pattern(definition)
        except UserError as error:
            raise UserError(f"--metric: {error}") from None
        if name in declaration["metrics"]:
            raise UserError(f"--metric: {name} is measured in any case. Choose another name.")
        if name in names:
            raise UserError(f"--metric: {name} is given twice. Choose another name.")
        names.add(name)


def choose_environments(names: str | None) -> list[str]:
    """Return the names of the environments to try: native, and at least one other.

    names: the names that the user chose, comma-separated; None for those of DEFAULT_ENVIRONMENTS
    that the nearest config.yaml has.  Empty names and repeats are dropped.
    Returns the names in the given order, with native first.
    Raises UserError, which suggests a similar name, for a name that the nearest config.yaml does
    not have, and if no environment but native is left.
    """
    path, base = config.read_nearest_config()
    configured_names = [*base.get("environments", {})]
    if REFERENCE not in configured_names:
        raise UserError(
            f"{path}: has no environment {REFERENCE}, with which the others are compared. Add it."
        )
    if names is None:
        chosen_names = [name for name in DEFAULT_ENVIRONMENTS if name in configured_names]
    else:
        chosen_names = [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen_names:
        if name not in configured_names:
            raise UserError(
                f"--in: {path} has no environment {name}; "
                f"{validation.suggest_name(name, configured_names)}"
            )
    environments = list(dict.fromkeys([REFERENCE, *chosen_names]))
    if len(environments) < 2:
        raise UserError(
            f"--in: names no environment to compare with {REFERENCE}. Choose one of: "
            f"{', '.join(configured_names)}."
        )
    return environments


def replace_file_paths(argv: list[str], files: list[str]) -> list[str]:
    """Return a command in which paths of given files are replaced by the paths of their copies.

    argv: the program and the arguments of the command.
    files: the paths of files and folders of this host.
    An argument is replaced if it is such a path, or a path in such a folder, spelled alike:
    ``data/in.txt`` becomes ``./data/in.txt`` if ``files`` holds ``data``.
    Raises UserError for a path that is neither a readable file nor a readable folder, and for two
    paths with the same base name.
    :func:`pack_files` packs the files under their base names, and workloads/command/prepare.sh
    unpacks them in the folder where the command runs.
    """
    # The path of each given file → the path of its copy.
    copies: dict[str, str] = {}
    # The base name of each given file → its path without symbolic links.
    real_paths: dict[str, str] = {}
    for path in files:
        name = os.path.basename(os.path.abspath(path))
        if not os.path.exists(path):
            raise UserError(f"--file: {path}: there is no such file or folder")
        if not (os.path.isfile(path) or os.path.isdir(path)):
            raise UserError(f"--file: {path}: is neither a file nor a folder")
        if not os.access(path, os.R_OK):
            raise UserError(f"--file: {path}: this user may not read it. Type `chmod a+r {path}`.")
        if not name:
            raise UserError(f"--file: {path}: is the whole host. Name a file or folder in it.")
        real_path = os.path.realpath(path)
        if real_paths.setdefault(name, real_path) != real_path:
            raise UserError(
                f"--file: {path}: {real_paths[name]} is also called {name}; rename one of them"
            )
        copies[path.rstrip("/")] = f"./{name}"
    new_argv = []
    for argument in argv:
        for path, copy in copies.items():
            if argument.rstrip("/") == path or argument.startswith(f"{path}/"):
                argument = copy + argument.removeprefix(path)
        new_argv.append(argument)
    return new_argv


def pack_files(files: Sequence[str], target: str) -> str:
    """Pack files and folders of the host into a tar archive, and return its SHA-1.

    files: the paths of the files and folders; a path that is a symbolic link is followed.
    target: the path of the archive, which is replaced.
    Returns the SHA-1 of the archive in hexadecimal.
    Raises UserError if a file cannot be read or the archive cannot be written; an older archive
    then stays.
    The archive has no times or owners, so that the same files give the same bytes and are not
    measured again.  workloads/command/prepare.sh compares the archive with the SHA-1.
    """

    def clear_time_and_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
        """Return an entry of the archive without its time and its owner."""
        member.mtime = member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    unfinished = f"{target}.part"
    try:
        with tarfile.open(unfinished, "w", format=tarfile.GNU_FORMAT) as archive:
            # A file that is given twice has one entry.
            paths_by_name = {os.path.basename(os.path.abspath(path)): path for path in files}
            for name, path in paths_by_name.items():
                archive.add(os.path.realpath(path), name, filter=clear_time_and_owner)
        os.replace(unfinished, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        reason = error.strerror or str(error)
        raise UserError(f"--file: {error.filename or ', '.join(files)}: {reason}") from None
    with open(target, "rb") as file:
        return hashlib.file_digest(file, "sha1").hexdigest()


def build_configuration(request: Request, sha1: str) -> Fields:
    """Return the configuration of a request's experiment, before its trial run.

    sha1: the SHA-1 of the archive of the given files, in hexadecimal; empty if there is no archive.
    Returns a mapping with keys of config.yaml.  The parameters of :func:`choose_lap_parameters` are
    missing in it; they are added after the trial run.
    Raises UserError if the request has options for Docker that are refused, or if it has such
    options and none of its environments has Docker.
    Environments, image, machine and interference come from the nearest config.yaml.
    """
    _, base = config.read_nearest_config()
    environments = {name: base["environments"][name] for name in request.environments}
    layers = [layer for environment in environments.values() for layer in environment["layers"]]
    # A layer of config.yaml is a name, or a mapping with the name as its only key.
    layer_names = {layer if isinstance(layer, str) else next(iter(layer)) for layer in layers}
    if request.docker_options:
        if "docker" not in layer_names:
            raise UserError(
                "--docker-option: no chosen environment has Docker. Choose one by --in."
            )
        environments = {
            name: _add_docker_options(environment, request.docker_options)
            for name, environment in environments.items()
        }
    measuring_seconds = max(1, round(MEASURED_SHARE * request.budget_seconds))
    # The same command has the same seed, and so the same order of measurement.  Three bytes of the
    # hash are enough to tell commands apart, and give a short number in config.yaml.
    seed_bytes = hashlib.sha256(request.command_line.encode()).digest()[:3]
    settings: Fields = {
        "title": f"How fast is {_shorten_command(request.command_line)}?",
        "scale": "standard",
        "repetitions": build_repetitions(request.margin, f"{measuring_seconds}s"),
        "seed": int.from_bytes(seed_bytes, "big"),
    }
    if image := _build_image_section(request, base.get("image", {})):
        settings["image"] = image
    settings["environments"] = environments
    if "vm" in layer_names and "vm" in base:
        settings["vm"] = base["vm"]
    return {
        **settings,
        "emulation": False,
        # Blocks are flagged, and not measured again, since the budget is short.
        "interference": {**base.get("interference", {}), "action": "flag"},
        "workloads": {WORKLOAD: _build_command_parameters(request, sha1)},
    }


def _shorten_command(command_line: str) -> str:
    """Return a command line in one line, cut to MAX_TITLE_LENGTH characters with a final "…"."""
    title = " ".join(command_line.split())
    if len(title) <= MAX_TITLE_LENGTH:
        return title
    return title[: MAX_TITLE_LENGTH - 1] + "…"


def _build_image_section(request: Request, base_image: Fields) -> Fields:
    """Return the value of `image` in a request's configuration; empty if all defaults apply.

    base_image: the value of `image` in the nearest config.yaml, which is not changed.
    """
    image: Fields = {"docker": request.image} if request.image else dict(base_image)
    if request.packages:
        image["packages"] = sorted({*image.get("packages", []), *request.packages})
    return image


def _build_command_parameters(request: Request, sha1: str) -> Fields:
    """Return the parameters of the workload `command` that are known before the trial run.

    sha1: the SHA-1 of the archive of the given files, in hexadecimal; empty if there is no archive.
    The keys are parameters in workloads/command/workload.yaml.
    """
    parameters: Fields = {
        "command": request.command_line,
        "patterns": request.patterns,
        "kept_bytes": KEPT_BYTES if request.patterns else 0,
    }
    if sha1:
        parameters |= {"files": ARCHIVE, "files_sha1": sha1}
    return parameters


def _add_docker_options(environment: Fields, options: Sequence[str]) -> Fields:
    """Return an environment of config.yaml with further options in each of its Docker layers.

    environment: the environment as config.yaml has it, which is not changed.
    options: options for ``docker run``, each as one string such as ``--cpus=0.5``.
    Options that a layer has already are not repeated.  An option ``--network`` replaces the layer's
    key `network`.
    Raises UserError, which names --docker-option, for options that are refused.
    """
    validator = validation.build_validator(passed_options.SCHEMA)
    layers = []
    for layer in environment["layers"]:
        if isinstance(layer, dict) and "docker" in layer:
            docker = {**layer["docker"]}
            docker["options"] = [*dict.fromkeys([*docker.get("options", []), *options])]
            if passed_options.find_network(docker):
                docker.pop("network", None)
            mistakes = validation.find_schema_faults(validator, docker["options"])
            if not mistakes:
                # This check needs options of the right form.
                mistakes = passed_options.find_passed_option_mistakes(docker)
            if mistakes:
                raise UserError(*(f"--docker-option: {sentence}" for _, sentence in mistakes))
            if reason := docker_daemon.explain_refused_options({"options": docker["options"]}):
                raise UserError(f"--docker-option: {reason}")
            layer = {"docker": docker}
        layers.append(layer)
    return {**environment, "layers": layers}


def choose_lap_parameters(seconds: float) -> Fields:
    """Choose laps, runs and time limit of the workload `command` by the duration of one run.

    seconds: the duration of a run, as the trial run measured it; below 0.1 ms it counts as 0.1 ms.
    Returns ``{runs, warmups, laps, limit}``, the keys LAP_PARAMETERS: the runs of a lap, the runs
    before the first lap, the laps of a cell, and the time limit of a run in seconds.
    Short runs fill a lap of LAP_SECONDS.  A run longer than LONG_RUN_SECONDS is the only lap of its
    cell, without a warm-up.  Otherwise a cell has two to four laps, so that the environments of a
    block alternate.
    The keys are parameters in workloads/command/workload.yaml.
    """
    # A clock may show no time for the shortest run.
    seconds = max(seconds, 1e-4)
    runs = max(1, round(LAP_SECONDS / seconds))
    laps = round(BLOCK_SECONDS / (runs * seconds))
    if seconds > LONG_RUN_SECONDS:
        warmups = 0
        min_laps = 1
    else:
        # A short warm-up: a third of the runs of a lap.
        warmups = max(1, round(runs / 3))
        min_laps = 2
    return {
        "runs": runs,
        "warmups": warmups,
        "laps": min(4, max(min_laps, laps)),
        "limit": float(max(MIN_LIMIT_SECONDS, round(LIMIT_FACTOR * seconds))),
    }


def is_same_experiment(existing: Fields | None, settings: Fields) -> bool:
    """Return whether two configurations measure the same command in the same environments.

    existing: the configuration of an earlier experiment; if it is None, the result is False.
    settings: the configuration that :func:`build_configuration` returns.
    Only environments, image, machine and the command's parameters are compared; the parameters
    LAP_PARAMETERS may differ.
    """
    if existing is None:
        return False
    return _select_identity(existing) == _select_identity(settings)


def _select_identity(settings: Fields) -> Fields:
    """Return the values of a configuration by which :func:`is_same_experiment` compares it."""
    parameters = settings.get("workloads", {}).get(WORKLOAD, {})
    return {
        **{key: settings.get(key) for key in ("environments", "image", "vm")},
        WORKLOAD: {key: value for key, value in parameters.items() if key not in LAP_PARAMETERS},
    }


def read_settings(folder: str) -> Fields | None:
    """Return the content of the config.yaml in an experiment's folder; None if there is none."""
    path = os.path.join(folder, config.FILE)
    return yaml_files.read_yaml_mapping(path) if os.path.exists(path) else None


def write_settings(folder: str, settings: Fields, comment: str) -> None:
    """Write the config.yaml of an experiment, from which Snakemake makes the plan.

    folder: the experiment's folder; it must exist.
    settings: the content of the file.
    comment: the text of the file's first line, such as the command line of ``strata try``; line
    breaks in it become spaces.
    """
    text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=90)
    first_line = " ".join(comment.split())
    write_text(
        os.path.join(folder, config.FILE),
        f"# {first_line}\n"
        "# docs/config.md explains every key; `snakemake --cores 1` here measures it.\n"
        f"{text}",
    )


def set_aside_results(folder: str) -> None:
    """Move results, configuration and files of an experiment into the folder ``.earlier`` in it.

    folder: the experiment's folder, without a folder ``.earlier``.
    The experiment can then begin again; :func:`restore_earlier_results` moves everything back.
    """
    os.mkdir(os.path.join(folder, _BACKUP_FOLDER))
    for name in _REPLACED_NAMES:
        if os.path.lexists(os.path.join(folder, name)):
            os.rename(os.path.join(folder, name), os.path.join(folder, _BACKUP_FOLDER, name))


def restore_earlier_results(folder: str) -> None:
    """Move back what :func:`set_aside_results` moved, and remove what replaced it since.

    folder: the experiment's folder.  It is not changed if it has no folder ``.earlier``.
    """
    backup = os.path.join(folder, _BACKUP_FOLDER)
    if not os.path.isdir(backup):
        return
    for name in os.listdir(backup):
        path = os.path.join(folder, name)
        # A folder must be removed first; os.rename replaces a file.
        if os.path.isdir(path):
            remove_tree(path)
        os.rename(os.path.join(backup, name), path)
    os.rmdir(backup)


def remove_earlier_results(folder: str) -> None:
    """Remove the results that :func:`set_aside_results` moved, if there are any.

    folder: the experiment's folder.
    The folder ``.earlier`` is renamed before it is removed.  If the removal is killed, the next
    call removes the rest, and :func:`restore_earlier_results` does not restore a part.
    """
    backup = os.path.join(folder, _BACKUP_FOLDER)
    discarded_backup = os.path.join(folder, _DISCARDED_FOLDER)
    if os.path.isdir(discarded_backup):
        remove_tree(discarded_backup)
    if os.path.isdir(backup):
        os.rename(backup, discarded_backup)
        remove_tree(discarded_backup)


def choose_experiment_folder(
    request: Request, settings: Fields, name: str | None, fresh: bool
) -> str:
    """Choose a request's folder, and restore the results that a killed call set aside there.

    request: the request, whose program gives the folder its name if the user chose none.
    settings: the configuration of the experiment.
    name: the name that the user chose; None for a name derived from the command.
    fresh: whether the folder of the chosen name may hold another experiment, which the caller then
    replaces.
    Returns the path of an earlier folder of the same experiment, or of a new one such as
    ``try/xz-2``, which is not created.
    Raises UserError if the name is not valid, or if another experiment has it.
    """
    if name is None:
        program = os.path.basename(request.argv[0])
        # A name has at most 40 characters (check_experiment_name); 30 leave room for a number.
        stem = format_folder_name(program, "command", length=30)
        folder = os.path.join(FOLDER, stem)
        number = 1
        restore_earlier_results(folder)
        while os.path.lexists(folder) and not is_same_experiment(read_settings(folder), settings):
            number += 1
            folder = os.path.join(FOLDER, f"{stem}-{number}")
            restore_earlier_results(folder)
        return folder
    check_experiment_name(name)
    folder = os.path.join(FOLDER, name)
    restore_earlier_results(folder)
    existing = None if fresh else read_settings(folder)
    if existing and not is_same_experiment(existing, settings):
        parameters = existing.get("workloads", {}).get(WORKLOAD, {})
        command = parameters.get("command", "another workload")
        raise UserError(
            f"--name: {folder} holds another experiment ({command}). Choose another name, or "
            "add --fresh to begin it again."
        )
    return folder


def extend_budget(settings: Fields, existing: Fields, folder: str) -> None:
    """Change a new configuration in place so that it continues an existing experiment.

    settings: the new configuration, which is changed.  Its budget becomes the time spent so far
    plus the larger of the given budget and the time of a block, rounded up to seconds.  Its seed
    and LAP_PARAMETERS become those of `existing`.
    existing: the configuration in the experiment's folder.
    folder: the experiment's folder.
    The time spent is `spent_seconds` of the decisions in results/precision/, which
    strata/results/decide.py writes.  Without a decision it is 0.
    """
    spent_seconds = 0.0
    block_seconds = 0.0
    decisions_folder = os.path.join(folder, "results/precision")
    decision_names = os.listdir(decisions_folder) if os.path.isdir(decisions_folder) else []
    for name in decision_names:
        # A file that vanished or is not JSON counts as no decision.
        decision = read_json(os.path.join(decisions_folder, name)) or {}
        if decision.get("spent_seconds", 0) > spent_seconds:
            spent_seconds = float(decision["spent_seconds"])
            block_seconds = float(decision["workloads"][WORKLOAD]["seconds"])
    repetitions = settings["repetitions"]
    budget_seconds = float(parse_quantity(repetitions["budget"]) or 0)
    # At least one more block must fit.
    total_seconds = spent_seconds + max(budget_seconds, block_seconds)
    repetitions["budget"] = f"{math.ceil(total_seconds)}s"
    settings["seed"] = existing["seed"]
    existing_parameters = existing["workloads"][WORKLOAD]
    for key in LAP_PARAMETERS:
        settings["workloads"][WORKLOAD][key] = existing_parameters[key]


def list_hints(request: Request, message: str) -> list[str]:
    """Return hints for a user whose command failed with this message.

    request: the request, whose command may name programs and files of this host.
    message: the error of a cell.
    Returns phrases for the terminal, such as "the image lacks it: `--packages PACKAGE` installs a
    package …"; an empty list if there is no hint.
    HINTS has the messages that give a hint.  workloads/command/src/timed.c writes "cannot be
    started".
    """
    hints = []
    if "cannot be started" in message:
        hints.append(_explain_missing_program(request.argv[0]))
    elif path := _find_file_only_on_host(request):
        hints.append(f"{path} exists on this host, and in a system only if you add `--file {path}`")
    for pattern, hint in HINTS.items():
        if re.search(pattern, message):
            hints.append(hint)
    return hints


def _explain_missing_program(program: str) -> str:
    """Return a hint how a program that cannot be started gets into the image.

    program: the first word of the command, which is a path or a name.
    """
    if "/" in program and os.path.exists(program):
        return f"{program} is a file of this host: `--file {program}` puts it there"
    if path := shutil.which(program):
        return (
            f"{program} is on this host ({path}) and not in the image: `--packages PACKAGE` "
            f"installs a package, `--file {path}` copies a file"
        )
    return (
        "the image lacks it: `--packages PACKAGE` installs a package of the distribution, "
        "`--file FILE` copies a file of this host"
    )


def _find_file_only_on_host(request: Request) -> str:
    """Return the command's first argument that names a file of this host that was not given.

    Options, which begin with a hyphen, are skipped.  A file counts as given if --file names one of
    the same base name.  Returns "" if there is no such argument.
    """
    given_names = {os.path.basename(os.path.abspath(path)) for path in request.files}
    for argument in request.argv[1:]:
        if argument.startswith("-") or not os.path.exists(argument):
            continue
        if os.path.basename(argument) not in given_names:
            return argument
    return ""
