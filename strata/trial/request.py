"""What a command line of ``strata try`` asks for: checked, and as a configuration."""

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from strata.environments.common import passed_options
from strata.experiment import config, workload
from strata.experiment.precision import LOOKS
from strata.util import paths, validation, yaml_files
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.files import read_json, write_text
from strata.util.units import parse_amount

# The workload that runs a command, and the folder in a system in which it runs.
WORKLOAD, WORK_FOLDER = "command", "/data/work"
# Where experiments lie, and the archive of the given files in one of them.
FOLDER, ARCHIVE = "try", "files.tar"
# The environments that are tried unless --in names others.
USUAL = ("native", "docker", "docker-gvisor")
REFERENCE = "native"
# A lap lasts about so long, and the laps of an environment in a block together, in seconds.
LAP_SECONDS, BLOCK_SECONDS = 0.3, 1.2
# The share of the budget for runs; the rest is for the trial run, Snakemake and the tables.
MEASURED = 0.8
# Runs of more seconds are not warmed up.
LONG_RUN = 2.0
# How many of the last bytes that a run prints are searched for metrics.
KEPT_BYTES = 65536
# The parameters that follow from the trial run.
CHOSEN = ("runs", "warmups", "laps", "limit")


@dataclass(frozen=True)
class Request:
    """A command to be tried, and how.

    argv: the command's words, with given files at their places in the system.
    environments: names of those in which it is tried, native first.
    files: paths of the given files and folders.  patterns: further metrics.
    packages: of the distribution.  margin, budget: as in config.yaml.
    image: a Docker image of one's own, or None.  docker_options: for its containers.
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
    def shown(self) -> str:
        """The command line as a person would type it."""
        return shlex.join(self.argv)

    @property
    def budget_seconds(self) -> float:
        """The budget in seconds."""
        return float(parse_amount(self.budget) or 0)


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
    """Return the request of a command line.

    argv: the command's words.  names: of environments, with commas between; None: the usual ones.
    The other arguments are the options' values.
    Raises UserError with all mistakes.
    """
    if not argv:
        raise UserError(
            "there is no command: type it after two hyphens, as in `strata try -- xz -k FILE`"
        )
    checked: dict[str, Any] = {}

    def check_environments() -> None:
        checked["environments"] = choose_environments(names)

    def check_files() -> None:
        checked["argv"] = place_files(argv, files)

    def check_amounts() -> None:
        schema = validation.load_schema("config").schema["properties"]["repetitions"]["properties"]
        for key, text in (("margin", margin), ("budget", budget)):
            refuse_faults(f"--{key}", schema[key], text)

    def check_metrics() -> None:
        with inside(paths.PROJECT):
            declared = workload.read_declaration(WORKLOAD)
        measured = declared["metrics"]
        names_seen = set(measured)
        for text in metrics:
            refuse_faults("--metric", declared["parameters"]["patterns"]["schema"]["items"], text)
            try:
                name, _ = workload.read_pattern(text)
            except UserError as error:
                raise UserError(f"--metric: {error}") from None
            if name in names_seen:
                state = "is measured in any case" if name in measured else "is given twice"
                raise UserError(f"--metric: {name} {state}: choose another name")
            names_seen.add(name)

    validation.check_all(check_amounts, check_metrics, check_environments, check_files)
    return Request(
        **checked,
        files=files,
        patterns=metrics,
        packages=[name for group in packages for name in group],
        margin=margin,
        budget=budget,
        image=image,
        docker_options=docker_options,
    )


def refuse_faults(option: str, schema: Fields, text: str) -> None:
    """Raise UserError, which names the option, if its value does not fit a schema."""
    faults = validation.find_faults(validation.make_validator(schema), text)
    if faults:
        raise UserError(*(f"{option}: {sentence}" for _, sentence in faults))


def read_base() -> tuple[str, Fields]:
    """Return the configuration whose environments are tried, with its path.

    It is config.yaml of the working directory, or else of the project.
    """
    path = config.FILE if os.path.exists(config.FILE) else os.path.join(paths.PROJECT, config.FILE)
    return path, yaml_files.read_mapping(path)


def choose_environments(names: str | None) -> list[str]:
    """Return the names of the environments to try, native first.

    names: those that a person chose, with commas between; None: the usual ones.
    Raises UserError with the nearest name for one that the configuration lacks.
    """
    path, base = read_base()
    known = [*base.get("environments", {})]
    if REFERENCE not in known:
        raise UserError(
            f"{path}: has no environment {REFERENCE}, with which the others are compared: add it"
        )
    wanted = [name for name in USUAL if name in known]
    if names is not None:
        wanted = [name.strip() for name in names.split(",") if name.strip()]
        for name in wanted:
            if name not in known:
                raise UserError(
                    f"--in: {path} has no environment {name}; "
                    f"{validation.suggest_name(name, known)}"
                )
    chosen = list(dict.fromkeys([REFERENCE, *wanted]))
    if len(chosen) < 2:
        raise UserError(
            f"--in: names no environment to compare with {REFERENCE}: {', '.join(known)} are there"
        )
    return chosen


def place_files(argv: list[str], files: list[str]) -> list[str]:
    """Return a command's words, where those that name given files name their copies instead.

    files: paths of files and folders of this host, which are put into the folder in which the
    command runs, by their names.
    Raises UserError for a path that does not exist, and for two of the same name.
    """
    places: dict[str, str] = {}
    for path in files:
        name = os.path.basename(os.path.abspath(path))
        if not os.path.exists(path):
            raise UserError(f"--file: {path}: there is no such file or folder")
        if not os.access(path, os.R_OK):
            raise UserError(f"--file: {path}: this user may not read it: `chmod a+r {path}`")
        if not name or name in [os.path.basename(place) for place in places.values()]:
            raise UserError(f"--file: {path}: another given file is called {name!r}: rename one")
        places[path.rstrip("/")] = f"./{name}"
    placed = []
    for word in argv:
        for path, place in places.items():
            if word.rstrip("/") == path or word.startswith(f"{path}/"):
                word = place + word.removeprefix(path)
        placed.append(word)
    return placed


def pack_files(files: Sequence[str], target: str) -> str:
    """Pack files and folders of the host into a tar archive, and return its SHA-1.

    The bytes follow from names, modes and contents alone, so that equal files are not measured
    again.  Raises UserError for a file that cannot be read.
    """

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime = entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    part = f"{target}.part"
    try:
        with tarfile.open(part, "w", format=tarfile.GNU_FORMAT) as archive:
            for path in files:
                real = os.path.realpath(path)
                archive.add(real, os.path.basename(os.path.abspath(path)), filter=plain)
        os.replace(part, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(part)
        reason = error.strerror or str(error)
        raise UserError(f"--file: {error.filename or ', '.join(files)}: {reason}") from None
    with open(target, "rb") as file:
        return hashlib.file_digest(file, "sha1").hexdigest()


def make_configuration(request: Request, sha1: str) -> Fields:
    """Return the configuration of a request's experiment, before its trial run.

    sha1: of the archive of the given files; empty without one.
    """
    _, base = read_base()
    environments = {name: base["environments"][name] for name in request.environments}
    if request.docker_options:
        environments = {name: add_options(environments[name], request) for name in environments}
    image = {"docker": request.image} if request.image else dict(base.get("image", {}))
    if request.packages:
        image["packages"] = sorted({*image.get("packages", []), *request.packages})
    stacks = [
        layer if isinstance(layer, str) else next(iter(layer))
        for entry in environments.values()
        for layer in entry["layers"]
    ]
    if request.docker_options and "docker" not in stacks:
        raise UserError("--docker-option: no chosen environment has Docker: choose one by --in")
    seed = int.from_bytes(hashlib.sha256(request.shown.encode()).digest()[:3], "big")
    shown = " ".join(request.shown.split())
    settings: Fields = {
        "title": f"How fast is {shown if len(shown) <= 100 else shown[:99] + '…'}?",
        "scale": "standard",
        "repetitions": {
            "min": 3,
            "max": LOOKS[-1],
            "margin": request.margin,
            "budget": f"{max(1, round(MEASURED * request.budget_seconds))}s",
        },
        "seed": seed,
        **({"image": image} if image else {}),
        "environments": environments,
        **({"vm": base["vm"]} if "vm" in stacks and "vm" in base else {}),
        "emulation": False,
        "interference": {**base.get("interference", {}), "action": "flag"},
        "workloads": {
            WORKLOAD: {
                "command": request.shown,
                "patterns": request.patterns,
                "kept_bytes": KEPT_BYTES if request.patterns else 0,
                **({"files": ARCHIVE, "files_sha1": sha1} if sha1 else {}),
            }
        },
    }
    return settings


def add_options(entry: Fields, request: Request) -> Fields:
    """Return an environment with a request's options for Docker in each layer of Docker."""
    layers = []
    for layer in entry["layers"]:
        if isinstance(layer, dict) and "docker" in layer:
            given = layer["docker"].get("options", [])
            docker = {**layer["docker"], "options": [*given, *request.docker_options]}
            if passed_options.network_of(docker):
                # The option replaces the key.
                docker.pop("network", None)
            layer = {"docker": docker}
        layers.append(layer)
    return {**entry, "layers": layers}


def choose_laps(seconds: float) -> Fields:
    """Return the parameters of the workload that fit a run of so many seconds.

    Many short runs fill a lap; a long run is a lap, and the only one of its cell.  Two laps at
    least let the environments of a block alternate.
    """
    seconds = max(seconds, 1e-4)
    runs = max(1, round(LAP_SECONDS / seconds))
    fewest = 1 if seconds > LONG_RUN else 2
    return {
        "runs": runs,
        "warmups": 0 if seconds > LONG_RUN else max(1, round(runs / 3)),
        "laps": min(4, max(fewest, round(BLOCK_SECONDS / (runs * seconds)))),
        "limit": float(max(60, round(10 * seconds))),
    }


def is_same_experiment(existing: Fields | None, settings: Fields) -> bool:
    """Return whether two configurations measure the same command in the same environments."""

    def select_deciding(configuration: Fields) -> Fields:
        work = configuration.get("workloads", {}).get(WORKLOAD, {})
        kept = {key: value for key, value in work.items() if key not in CHOSEN}
        keys = ("environments", "image", "vm")
        return {**{key: configuration.get(key) for key in keys}, WORKLOAD: kept}

    return existing is not None and select_deciding(existing) == select_deciding(settings)


def read_settings(folder: str) -> Fields | None:
    """Return the configuration in an experiment's folder; None if there is none."""
    path = os.path.join(folder, config.FILE)
    return yaml_files.read_mapping(path) if os.path.exists(path) else None


def write_settings(folder: str, settings: Fields, shown: str) -> None:
    """Write the configuration of an experiment.

    shown: the command line of ``strata try``, for the file's first line.
    """
    text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=90)
    first = " ".join(shown.split())
    write_text(
        os.path.join(folder, config.FILE),
        f"# {first}\n# docs/config.md explains every key; `snakemake --cores 1` here measures it.\n"
        f"{text}",
    )


def choose_name(request: Request, settings: Fields, name: str | None, fresh: bool) -> str:
    """Return the folder of a request's experiment: that of the same command, or a new one.

    name: the one that a person chose; None: the command's.
    Raises UserError if the chosen name is another experiment's, unless it begins anew.
    """
    if name is not None:
        if not re.fullmatch("[a-z0-9][a-z0-9._-]{0,39}", name):
            raise UserError(
                f"--name: is {name!r}; must be at most 40 lower-case letters, digits, points, "
                "hyphens and underscores"
            )
        folder = os.path.join(FOLDER, name)
        if (
            not fresh
            and (existing := read_settings(folder))
            and not is_same_experiment(existing, settings)
        ):
            command = (
                existing.get("workloads", {}).get(WORKLOAD, {}).get("command", "another workload")
            )
            raise UserError(
                f"--name: {folder} holds another experiment ({command}): choose another name, or "
                "add --fresh to begin it anew"
            )
        return folder
    stem = re.sub("[^a-z0-9._-]+", "-", os.path.basename(request.argv[0]).lower()).strip("-.")
    stem = (stem or "command")[:30]
    number = 1
    while True:
        folder = os.path.join(FOLDER, stem if number == 1 else f"{stem}-{number}")
        if not os.path.lexists(folder) or is_same_experiment(read_settings(folder), settings):
            return folder
        number += 1


def extend_budget(settings: Fields, existing: Fields, folder: str) -> None:
    """Let a repeated experiment go on: its budget comes on top of what was spent.

    settings: the new configuration, which is changed.
    existing: the one in the folder.
    """
    spent = 0.0
    decisions = os.path.join(folder, "results/precision")
    for name in os.listdir(decisions) if os.path.isdir(decisions) else ():
        decision = read_json(os.path.join(decisions, name)) or {}
        spent = max(spent, float(decision.get("spent_seconds", 0)))
    rule = settings["repetitions"]
    rule["budget"] = f"{spent + float(parse_amount(rule['budget']) or 0):.0f}s"
    settings["seed"] = existing["seed"]
    chosen = {key: existing["workloads"][WORKLOAD][key] for key in CHOSEN}
    settings["workloads"][WORKLOAD] |= chosen


def find_hints(request: Request, message: str) -> list[str]:
    """Return what a person may change, as sentences, if a command failed with this message."""
    program = request.argv[0]
    given = {os.path.basename(os.path.abspath(path)) for path in request.files}
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
    existing_files = [
        word
        for word in request.argv[1:]
        if os.path.exists(word) and not word.startswith("-") and os.path.basename(word) not in given
    ]
    if existing_files and "cannot be started" not in message:
        hints.append(
            f"{existing_files[0]} exists on this host, and in a system only if you add "
            f"`--file {existing_files[0]}`"
        )
    if re.search(r"\btty\b|terminal", message, re.IGNORECASE):
        hints.append("no measured program has a terminal: give it options for use without one")
    if "no end after" in message:
        hints.append(
            "does it wait for input, which no measured program has, or serve? a longer --budget "
            "allows longer runs"
        )
    if "left a process" in message:
        hints.append("let the command wait for what it starts, as by `sh -c '…; wait'`")
    if "exists" in message.lower() and "exit code" in message:
        hints.append(
            "it runs many times in one folder: let it overwrite its output, or write to /dev/null"
        )
    return hints


@contextlib.contextmanager
def inside(folder: str) -> Iterator[None]:
    """Make a folder the working directory for the block."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
