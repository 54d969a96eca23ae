"""The request of a command line of ``strata try``: checked, and as a configuration."""

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
# The environments that are tried unless the option --in names others.
DEFAULT_ENVIRONMENTS = ("native", "docker", "docker-gvisor")
# About how long a lap lasts, and the laps of an environment in a block together.
LAP_SECONDS = 0.3
BLOCK_SECONDS = 1.2
# The share of the budget for runs; the rest is for the trial run, Snakemake and the tables.
MEASURED_SHARE = 0.8
# Longer runs are not warmed up.
LONG_RUN_SECONDS = 2.0
# The smallest time limit of a run, and how many times longer than the trial run it is.
LEAST_LIMIT_SECONDS = 60
LIMIT_FACTOR = 10
# How many of the last bytes that a run prints are searched for metrics.
KEPT_BYTES = 65536
# The parameters that follow from the trial run: the keys of :func:`choose_lap_parameters`.
CHOSEN = ("runs", "warmups", "laps", "limit")
# The longest command in a title.
TITLE_LENGTH = 100
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


# The folder in an experiment's folder that holds the earlier _PARTS until the trial run of the new
# experiment has succeeded, and its name while it is removed.
_EARLIER, _DISCARDED = ".earlier", ".discarded"
_PARTS = ("results", config.FILE, ARCHIVE)


@dataclass(frozen=True)
class Request:
    """A command to be tried, with the checked options of ``strata try``.

    argv: the command's words, in which given files have their paths in the system; not empty.
    environments: the names of the environments where it is tried, native first.
    files: the paths of the given files and folders.
    patterns: further metrics, for :func:`strata.experiment.workload.parse_metric_pattern`.
    packages: the packages of the distribution that the image holds in addition.
    margin, budget: as in config.yaml's `repetitions`, such as ``2%`` and ``5min``.
    image: the user's own Docker image; None: the project's image.
    docker_options: options for Docker's containers.
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
        """The budget in seconds."""
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
    """Return the request of a command line, checked.

    argv: the program and the arguments of the command.
    names: the names of environments, with commas between; None for DEFAULT_ENVIRONMENTS.
    packages: a list of packages for each time that the option is given.
    The other arguments are the options' values, as :class:`Request` describes them.
    The parameters must have the names that strata/options.py gives to the options.
    Raises UserError with the mistakes of all options.
    """
    if not argv:
        raise UserError(
            "there is no command: type it after two hyphens, as in "
            "`python3 -m strata try -- xz -k FILE`"
        )
    if not argv[0].strip():
        raise UserError("the command is empty: type its name after two hyphens")
    if image is not None and not image.strip():
        raise UserError("--image: is empty: name a Docker image, as `docker images` lists them")
    repetitions = build_repetitions(margin, budget)
    environments: list[str] = []
    placed_argv: list[str] = []
    validation.run_all_checks(
        lambda: check_repetitions(repetitions, {"margin": "--margin", "budget": "--budget"}),
        lambda: _check_metrics(metrics),
        lambda: environments.extend(choose_environments(names)),
        lambda: placed_argv.extend(replace_file_paths(argv, files)),
    )
    return Request(
        argv=placed_argv,
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
    """Return the configuration's `repetitions` of an experiment; the values are not checked."""
    # The planned tests (LOOKS) share the error rate, so no block may follow the last test.
    return {"min": 3, "max": LOOKS[-1], "margin": margin, "budget": budget}


def _check_metrics(metrics: list[str]) -> None:
    """Raise UserError unless each value of the option --metric declares a metric of a new name.

    metrics: as :func:`strata.experiment.workload.parse_metric_pattern` takes them.
    """
    # Declarations of workloads are read relative to the working directory.
    with contextlib.chdir(paths.PROJECT):
        declared = workload.read_declaration(WORKLOAD)
    accepted = validation.build_validator(declared["parameters"]["patterns"]["schema"]["items"])
    names = set(declared["metrics"])
    for text in metrics:
        if mistakes := validation.find_schema_faults(accepted, text):
            raise UserError(*(f"--metric: {sentence}" for _, sentence in mistakes))
        try:
            name, _ = workload.parse_metric_pattern(text)
        except UserError as error:
            raise UserError(f"--metric: {error}") from None
        if name in names:
            state = "is measured in any case" if name in declared["metrics"] else "is given twice"
            raise UserError(f"--metric: {name} {state}: choose another name")
        names.add(name)


def choose_environments(names: str | None) -> list[str]:
    """Return the names of the environments to try: native, and at least one other.

    names: the chosen names, with commas between; None for those of DEFAULT_ENVIRONMENTS that the
    nearest config.yaml has.
    Raises UserError with a similar name for an unknown one, and if there is nothing to compare.
    """
    path, base = config.read_nearest_config()
    known = [*base.get("environments", {})]
    if REFERENCE not in known:
        raise UserError(
            f"{path}: has no environment {REFERENCE}, with which the others are compared: add it"
        )
    requested = [name for name in DEFAULT_ENVIRONMENTS if name in known]
    if names is not None:
        requested = [name.strip() for name in names.split(",") if name.strip()]
        for name in requested:
            if name not in known:
                raise UserError(
                    f"--in: {path} has no environment {name}; "
                    f"{validation.suggest_name(name, known)}"
                )
    environments = list(dict.fromkeys([REFERENCE, *requested]))
    if len(environments) < 2:
        raise UserError(
            f"--in: names no environment to compare with {REFERENCE}: {', '.join(known)} are there"
        )
    return environments


def replace_file_paths(argv: list[str], files: list[str]) -> list[str]:
    """Return a command in which paths of given files are replaced by the paths of their copies.

    argv: the program and the arguments of the command.  One is replaced if it is a given path, or a
    path in a given folder.
    files: the paths of files and folders of this host.  :func:`pack_files` packs them under their
    own names, and workloads/command/prepare.sh unpacks them in the folder where the command runs.
    Raises UserError for a path that is neither a file nor a folder, and for two of the same name.
    """
    # The path of a given file → the path of its copy; the name of a copy → the file.
    copies: dict[str, str] = {}
    sources: dict[str, str] = {}
    for path in files:
        name = os.path.basename(os.path.abspath(path))
        if not os.path.exists(path):
            raise UserError(f"--file: {path}: there is no such file or folder")
        if not (os.path.isfile(path) or os.path.isdir(path)):
            raise UserError(f"--file: {path}: is neither a file nor a folder")
        if not os.access(path, os.R_OK):
            raise UserError(f"--file: {path}: this user may not read it: `chmod a+r {path}`")
        if not name:
            raise UserError(f"--file: {path}: is the whole host: name a file or folder in it")
        source = sources.setdefault(name, os.path.realpath(path))
        if source != os.path.realpath(path):
            raise UserError(f"--file: {path}: {source} is also called {name}: rename one")
        copies[path.rstrip("/")] = f"./{name}"
    placed_argv = []
    for word in argv:
        for path, copy in copies.items():
            if word.rstrip("/") == path or word.startswith(f"{path}/"):
                word = copy + word.removeprefix(path)
        placed_argv.append(word)
    return placed_argv


def pack_files(files: Sequence[str], target: str) -> str:
    """Pack files and folders of the host into a tar archive, and return its SHA-1.

    files: the paths of the files and folders; a path that is a symbolic link is followed.
    target: the path of the archive, which is replaced.
    The archive has no times or owners, so that the same files give the same bytes and are not
    measured again.  workloads/command/prepare.sh compares the archive with the SHA-1.
    Raises UserError if a file cannot be read or the archive cannot be written; an older archive
    then stays.
    """

    def clear_time_and_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
        """Return an entry of the archive without its time and its owner."""
        member.mtime = member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    unfinished = f"{target}.part"
    try:
        with tarfile.open(unfinished, "w", format=tarfile.GNU_FORMAT) as archive:
            # A file may be given twice.
            sources = {os.path.basename(os.path.abspath(path)): path for path in files}
            for name, path in sources.items():
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

    The keys are those of config.yaml; the trial run adds those of :func:`choose_lap_parameters`.
    sha1: the SHA-1 of the archive of the given files; empty if there is none.
    Environments, image, machine and interference are those of the nearest config.yaml.
    Raises UserError if the request has options for Docker that are refused, or that no environment
    takes.
    """
    _, base = config.read_nearest_config()
    environments = {name: base["environments"][name] for name in request.environments}
    image = {"docker": request.image} if request.image else dict(base.get("image", {}))
    if request.packages:
        image["packages"] = sorted({*image.get("packages", []), *request.packages})
    layers = [layer for environment in environments.values() for layer in environment["layers"]]
    layer_names = {layer if isinstance(layer, str) else next(iter(layer)) for layer in layers}
    if request.docker_options:
        if "docker" not in layer_names:
            raise UserError("--docker-option: no chosen environment has Docker: choose one by --in")
        environments = {
            name: _add_docker_options(environment, request.docker_options)
            for name, environment in environments.items()
        }
    title = " ".join(request.command_line.split())
    if len(title) > TITLE_LENGTH:
        title = title[: TITLE_LENGTH - 1] + "…"
    measuring_seconds = max(1, round(MEASURED_SHARE * request.budget_seconds))
    # The same command has the same seed, and so the same order of measurement.
    seed = hashlib.sha256(request.command_line.encode()).digest()[:3]
    parameters: Fields = {
        "command": request.command_line,
        "patterns": request.patterns,
        "kept_bytes": KEPT_BYTES if request.patterns else 0,
    }
    if sha1:
        parameters |= {"files": ARCHIVE, "files_sha1": sha1}
    return {
        "title": f"How fast is {title}?",
        "scale": "standard",
        "repetitions": build_repetitions(request.margin, f"{measuring_seconds}s"),
        "seed": int.from_bytes(seed, "big"),
        **({"image": image} if image else {}),
        "environments": environments,
        **({"vm": base["vm"]} if "vm" in layer_names and "vm" in base else {}),
        "emulation": False,
        "interference": {**base.get("interference", {}), "action": "flag"},
        "workloads": {WORKLOAD: parameters},
    }


def _add_docker_options(environment: Fields, options: Sequence[str]) -> Fields:
    """Return an environment of config.yaml with further options in each of its Docker layers.

    environment: the environment, which is not changed.
    options: options for ``docker run``.
    Raises UserError, which names --docker-option, for options that are refused.
    """
    accepted = validation.build_validator(passed_options.SCHEMA)
    layers = []
    for layer in environment["layers"]:
        if isinstance(layer, dict) and "docker" in layer:
            docker = {**layer["docker"]}
            docker["options"] = [*dict.fromkeys([*docker.get("options", []), *options])]
            if passed_options.find_network(docker):
                # The option replaces the key.
                docker.pop("network", None)
            mistakes = validation.find_schema_faults(
                accepted, docker["options"]
            ) or passed_options.find_passed_option_mistakes(docker)
            if mistakes:
                raise UserError(*(f"--docker-option: {sentence}" for _, sentence in mistakes))
            if reason := docker_daemon.explain_refused_options({"options": docker["options"]}):
                raise UserError(f"--docker-option: {reason}")
            layer = {"docker": docker}
        layers.append(layer)
    return {**environment, "layers": layers}


def choose_lap_parameters(seconds: float) -> Fields:
    """Return the parameters of the workload `command` for the duration of one run.

    seconds: the duration of a run, as the trial run measured it.
    The keys are CHOSEN: the runs of a lap (`runs`), the runs before the first lap (`warmups`), the
    laps of a cell (`laps`), and the time limit of a run in seconds (`limit`).
    Short runs fill a lap of LAP_SECONDS.  A run longer than LONG_RUN_SECONDS is the only lap of its
    cell, without a warm-up.  Otherwise a cell has two to four laps, so that the environments of a
    block alternate.
    """
    # A clock may show no time for the shortest run.
    seconds = max(seconds, 1e-4)
    runs = max(1, round(LAP_SECONDS / seconds))
    is_long = seconds > LONG_RUN_SECONDS
    laps = round(BLOCK_SECONDS / (runs * seconds))
    return {
        "runs": runs,
        "warmups": 0 if is_long else max(1, round(runs / 3)),
        "laps": min(4, max(1 if is_long else 2, laps)),
        "limit": float(max(LEAST_LIMIT_SECONDS, round(LIMIT_FACTOR * seconds))),
    }


def is_same_experiment(existing: Fields | None, settings: Fields) -> bool:
    """Return whether two configurations measure the same command in the same environments.

    existing: the configuration of an earlier experiment; if it is None, the result is False.
    Precision, seed, title and the parameters of the trial run may differ.
    """

    def select_deciding(configuration: Fields) -> Fields:
        """Return the parts of a configuration that decide the results."""
        parameters = configuration.get("workloads", {}).get(WORKLOAD, {})
        deciding_parameters = {key: value for key, value in parameters.items() if key not in CHOSEN}
        sections = {key: configuration.get(key) for key in ("environments", "image", "vm")}
        return {**sections, WORKLOAD: deciding_parameters}

    return existing is not None and select_deciding(existing) == select_deciding(settings)


def read_settings(folder: str) -> Fields | None:
    """Return the content of the config.yaml in an experiment's folder; None if there is none."""
    path = os.path.join(folder, config.FILE)
    return yaml_files.read_yaml_mapping(path) if os.path.exists(path) else None


def write_settings(folder: str, settings: Fields, comment: str) -> None:
    """Write the config.yaml of an experiment; Snakemake makes the plan from it.

    comment: the text of the file's first line, such as the command line of ``strata try``.
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
    """Move results, configuration and files of an experiment into the folder _EARLIER within it.

    The experiment begins again; :func:`restore_earlier_results` undoes this.
    """
    os.mkdir(os.path.join(folder, _EARLIER))
    for name in _PARTS:
        if os.path.lexists(os.path.join(folder, name)):
            os.rename(os.path.join(folder, name), os.path.join(folder, _EARLIER, name))


def restore_earlier_results(folder: str) -> None:
    """Undo :func:`set_aside_results`; results that were made since are removed.

    Nothing is done if nothing is set aside.
    """
    earlier = os.path.join(folder, _EARLIER)
    if not os.path.isdir(earlier):
        return
    for name in os.listdir(earlier):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            remove_tree(path)
        # This replaces a file.
        os.rename(os.path.join(earlier, name), path)
    os.rmdir(earlier)


def remove_earlier_results(folder: str) -> None:
    """Remove the results that :func:`set_aside_results` moved, if there are any.

    Their folder is renamed first, so that a call that is killed meanwhile leaves no part of them to
    be restored; the next call removes the rest.
    """
    earlier, discarded = (os.path.join(folder, name) for name in (_EARLIER, _DISCARDED))
    if os.path.isdir(discarded):
        remove_tree(discarded)
    if os.path.isdir(earlier):
        os.rename(earlier, discarded)
        remove_tree(discarded)


def choose_experiment_folder(
    request: Request, settings: Fields, name: str | None, fresh: bool
) -> str:
    """Return the folder of a request's experiment: an earlier one of this command, or a new one.

    The folder is not created; results that a killed call left set aside are restored.
    settings: the configuration of the experiment.
    name: the name that the user chose; None for a name derived from the command.
    fresh: whether the folder of the chosen name may hold another experiment, which the caller then
    replaces.
    Raises UserError if the name is not valid, or if another experiment has it.
    """
    if name is None:
        program = os.path.basename(request.argv[0])
        # A number may follow: a name has at most 40 characters (check_experiment_name).
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
            f"--name: {folder} holds another experiment ({command}): choose another name, or "
            "add --fresh to begin it again"
        )
    return folder


def extend_budget(settings: Fields, existing: Fields, folder: str) -> None:
    """Change a new configuration so that it continues an existing experiment.

    The new budget becomes the time already spent plus the larger of the given budget and the time
    of a block.  The seed and the parameters of the trial run become the existing ones.
    settings: the new configuration, which is changed.
    existing: the configuration in the experiment's folder.
    folder: the experiment's folder; its decisions (strata/results/decide.py) hold the time spent.
    """
    spent = block_seconds = 0.0
    decisions = os.path.join(folder, "results/precision")
    for name in os.listdir(decisions) if os.path.isdir(decisions) else ():
        decision = read_json(os.path.join(decisions, name)) or {}
        if decision.get("spent_seconds", 0) > spent:
            spent = float(decision["spent_seconds"])
            block_seconds = float(decision["workloads"][WORKLOAD]["seconds"])
    rule = settings["repetitions"]
    further_seconds = max(float(parse_quantity(rule["budget"]) or 0), block_seconds)
    rule["budget"] = f"{math.ceil(spent + further_seconds)}s"
    settings["seed"] = existing["seed"]
    earlier_parameters = {key: existing["workloads"][WORKLOAD][key] for key in CHOSEN}
    settings["workloads"][WORKLOAD] |= earlier_parameters


def list_hints(request: Request, message: str) -> list[str]:
    """Return hints, as sentences, for a user whose command failed with this message.

    message: the error of a cell.
    The hints follow from texts in the message (HINTS, and "cannot be started", which
    workloads/command/src/timed.c writes), and from files of this host that the command names.
    """
    program = request.argv[0]
    given_names = {os.path.basename(os.path.abspath(path)) for path in request.files}
    hints = []
    if "cannot be started" in message:
        if "/" in program and os.path.exists(program):
            hints.append(f"{program} is a file of this host: `--file {program}` puts it there")
        elif path := shutil.which(program):
            hints.append(
                f"{program} is on this host ({path}) and not in the image: `--packages PACKAGE` "
                f"installs a package, `--file {path}` copies a file"
            )
        else:
            hints.append(
                "the image lacks it: `--packages PACKAGE` installs a package of the distribution, "
                "`--file FILE` copies a file of this host"
            )
    words = [word for word in request.argv[1:] if not word.startswith("-") and os.path.exists(word)]
    existing_files = [word for word in words if os.path.basename(word) not in given_names]
    if existing_files and "cannot be started" not in message:
        hints.append(
            f"{existing_files[0]} exists on this host, and in a system only if you add "
            f"`--file {existing_files[0]}`"
        )
    return hints + [hint for pattern, hint in HINTS.items() if re.search(pattern, message)]
