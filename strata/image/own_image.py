"""Prepare the files and settings of the user's own Docker image for use in every environment."""

import hashlib
import os
import posixpath
from collections.abc import Sequence

from strata.environments import docker
from strata.experiment import workload
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.process import capture_output, wrap_as_root

# Programs that Strata runs in every system.
NEEDED = ("sh", "cat", "chmod", "env", "head", "mkdir", "sleep", "tail")
# Folders of every system that are mounted over the image's.
MOUNTED = ("/proc", "/sys", "/dev", "/data", "/tmp", "/opt/strata")
# Key of an image's configuration → the instruction that sets it, which has no effect here.
WITHOUT_EFFECT = {
    "Cmd": "CMD",
    "ExposedPorts": "EXPOSE",
    "Healthcheck": "HEALTHCHECK",
    "StopSignal": "STOPSIGNAL",
    "OnBuild": "ONBUILD",
}

# Arguments: names of programs.  Prints the missing ones, one a line.
PRINT_MISSING = 'for name; do command -v "$name" >/dev/null || echo "$name"; done'
# Arguments: the image's files, and absolute paths of folders.  Makes the folders.  Prints a path
# that leads over a symbolic link, since the host's own folder could be mounted over, or the first
# file in /data.
MAKE_FOLDERS = """
tree=$1
shift
for path; do
    at=$tree rest=${path#/}
    while [ -n "$rest" ]; do
        at=$at/${rest%%/*}
        case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
        if [ -L "$at" ] || { [ -e "$at" ] && [ ! -d "$at" ]; }; then echo "$path"; exit 0; fi
    done
    [ -d "$at" ] || mkdir -p "$at"
done
chmod 1777 "$tree/tmp"
ls -A "$tree/data" | sed 's|^|/data/|;q'
"""


def prepare_run_settings(inspected: Fields, tree: str) -> Fields:
    """Return how programs of the user's own image run, and create its missing mount points.

    inspected: the object that ``docker image inspect`` prints of the image, with the added key
    `reference`, the image's name in config.yaml.
    tree: the folder with the image's files, which is changed.
    Returns:
    variables: the environment variables, each as "NAME=VALUE";
    user: the result of :func:`resolve_user`; None: root;
    folder: the folder in which programs start;
    entrypoint: the arguments of the ENTRYPOINT;
    volumes: the sorted folders of its volumes;
    without_effect: the instructions that have no effect, such as "EXPOSE".
    image.json keeps the result as `run`, and :class:`strata.host.context.Context` reads its keys.
    Raises UserError if a part of the image cannot be used.
    """
    reference = inspected["reference"]
    settings = inspected["Config"] or {}
    _require_programs(reference, tree)
    volumes = sorted(map(posixpath.normpath, settings.get("Volumes") or {}))
    _create_mount_folders(reference, tree, volumes)
    folder = settings.get("WorkingDir") or "/"
    # Docker would create this folder in a container.
    _run_in_image(tree, ["mkdir", "-p", folder])
    user = None
    if user_text := settings.get("User"):
        passwd = _read_image_file(tree, "/etc/passwd")
        group = _read_image_file(tree, "/etc/group")
        user = resolve_user(user_text, passwd, group)
        if user is None:
            raise _build_refusal_error(
                reference, f"USER {user_text}: the image has no such user or group"
            )
    is_root = user is None or (user["uid"], user["gid"], user["groups"]) == (0, 0, [0])
    # Docker sets these variables if the image does not.
    _, _, default_path = docker.DEFAULT_PATH.partition("=")
    variables = {"PATH": default_path, "HOME": user["home"] if user else "/root"}
    for entry in settings.get("Env") or ():
        name, _, value = entry.partition("=")
        variables[name] = value
    return {
        "variables": [f"{name}={value}" for name, value in variables.items()],
        "user": None if is_root else user,
        "folder": folder,
        "entrypoint": settings.get("Entrypoint") or [],
        "volumes": volumes,
        "without_effect": [
            instruction for key, instruction in WITHOUT_EFFECT.items() if settings.get(key)
        ],
    }


def build_programs(names: Sequence[str], folder: str) -> dict[str, str]:
    """Build the programs of portable workloads on this host, for an image that lacks them.

    names: the names of the workloads.
    folder: the folder to write, which every system sees as /opt/strata; it must lack ``workloads``.
    Each workload's build.sh is called with its output folder.
    Returns the path of each program in a system, without the first slash, → ``sha256:…``, as the
    image's manifest lists files.
    Raises UserError with the last lines of a build script that failed.
    """
    hashes: dict[str, str] = {}
    for name in names:
        output_folder = os.path.join(folder, "workloads", name)
        os.makedirs(output_folder)
        script = ["sh", "-euc", 'umask 022; cd "$1"; exec bash build.sh "$2"', "strata"]
        build = [*script, f"workloads/{name}", output_folder]
        result = capture_output(build, timeout=600, check=False)
        if result.returncode != 0:
            last_lines = "\n".join((result.stdout + result.stderr).strip().splitlines()[-10:])
            packages = " ".join(workload.read_declaration(name)["packages"])
            raise UserError(
                f"workloads/{name}/build.sh: the programs could not be built on this host, for an "
                f"image that lacks them; `apt-get install {packages}` has what it needs:\n"
                f"{last_lines}"
            )
        capture_output(["chmod", "-R", "a+rX", folder])
        for program in sorted(os.listdir(output_folder)):
            with open(os.path.join(output_folder, program), "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            hashes[f"opt/strata/workloads/{name}/{program}"] = f"sha256:{digest}"
    return hashes


def _build_refusal_error(reference: str, reason: str) -> UserError:
    """Return the error for a Docker image that cannot be used.

    reference: the image's name, as configured.
    reason: the reason and its remedy, without a full stop.
    """
    return UserError(f"config.yaml: image.docker: is {reference}; {reason}")


def _run_in_image(tree: str, argv: Sequence[str]) -> tuple[int, str]:
    """Run a command as root, with an image's files as the root directory (chroot).

    tree: the folder of the image's files, which the command may change.
    The command's only environment variable is PATH.
    Returns the exit code and the standard output.
    """
    command = wrap_as_root(["env", "-i", docker.DEFAULT_PATH, "chroot", tree, *argv])
    result = capture_output(command, check=False)
    return result.returncode, result.stdout


def _read_image_file(tree: str, path: str) -> str:
    """Return the text of a file of an image; empty if the image lacks the file.

    tree: the folder of the image's files.
    path: the file's absolute path in the image.  The file is read by a command in the image, so
    that a symbolic link leads to the image's files, and never to the host's.
    """
    _, output = _run_in_image(tree, ["cat", path])
    return output


def _require_programs(reference: str, tree: str) -> None:
    """Check that an image has the programs :data:`NEEDED`, which Strata runs in every system.

    reference: the image's name, as configured.
    tree: the folder of its files.
    Raises UserError, which names the missing programs.
    """
    exit_code, output = _run_in_image(tree, ["sh", "-c", PRINT_MISSING, "strata", *NEEDED])
    missing_programs = output.split()
    if exit_code != 0:
        missing_programs = ["a shell (sh) that runs here"]
    if missing_programs:
        raise _build_refusal_error(
            reference,
            f"it lacks {', '.join(missing_programs)}, which Strata runs in every system: add a "
            "package such as busybox or coreutils to the image",
        )


def _create_mount_folders(reference: str, tree: str, volumes: Sequence[str]) -> None:
    """Create the mount points, :data:`MOUNTED` and the volumes, that an image lacks.

    reference: the image's name, as configured.
    tree: the folder of its files.
    volumes: the absolute paths of its volumes.
    Raises UserError if a mount point is not a folder, or if the image has files in /data.
    """
    argv = ["sh", "-euc", MAKE_FOLDERS, "strata", tree, *MOUNTED, *volumes]
    path = capture_output(wrap_as_root(argv)).stdout.strip()
    if path.startswith("/data/"):
        raise _build_refusal_error(
            reference, f"it has {path}, and Strata keeps data in /data: move it"
        )
    if path:
        kind = f"VOLUME {path}" if path in volumes else path
        raise _build_refusal_error(
            reference, f"{kind} is not a folder, or is behind a symbolic link: make it a folder"
        )


def resolve_user(text: str, passwd: str, group: str) -> Fields | None:
    """Return ``{name, uid, gid, groups, home}`` of an image's USER, as Docker resolves it.

    text: USER[:GROUP], each a name or a number.
    passwd: the text of the image's file /etc/passwd; empty if the image has none.
    group: the text of the image's file /etc/group; empty if the image has none.
    `groups` has the group and, if the text names no group, the user's supplementary groups.  A
    number without an entry in passwd gets group 0 and the home ``/``.
    Returns None if a name is unknown.
    """
    user_name, _, group_name = text.partition(":")
    group_entries = _split_account_entries(group, 4)
    user_entry = _find_account_entry(user_name, _split_account_entries(passwd, 7))
    if user_entry:
        # The columns of passwd are name, password, user, group, comment, home and shell.
        user_id = int(user_entry[2])
        group_id = int(user_entry[3])
        home = user_entry[5]
    elif user_name.isdecimal():
        user_id = int(user_name)
        group_id = 0
        home = "/"
    else:
        return None
    supplementary_ids: set[int] = set()
    if group_name:
        group_entry = _find_account_entry(group_name, group_entries)
        if group_entry is None and not group_name.isdecimal():
            return None
        group_id = int(group_entry[2] if group_entry else group_name)
    elif user_entry:
        # The columns of group are name, password, group and its users.
        for entry in group_entries:
            if user_entry[0] in entry[3].split(","):
                supplementary_ids.add(int(entry[2]))
    return {
        "name": text,
        "uid": user_id,
        "gid": group_id,
        "groups": sorted({group_id, *supplementary_ids}),
        "home": home or "/",
    }


def _split_account_entries(text: str, column_count: int) -> list[list[str]]:
    """Return the entries of /etc/passwd or /etc/group, each as a list of its columns.

    text: the text of the file.
    column_count: the number of columns; lines with fewer are dropped.
    """
    entries = [line.split(":") for line in text.splitlines()]
    return [entry for entry in entries if len(entry) >= column_count]


def _find_account_entry(name: str, entries: list[list[str]]) -> list[str] | None:
    """Return the first entry of a user or group with this name or ID; None if there is none.

    name: the name, or the ID as digits.
    entries: the entries of /etc/passwd or /etc/group.  In both files the first column is the name
    and the third is the ID.
    """
    for entry in entries:
        if name in (entry[0], entry[2]):
            return entry
    return None


def list_alpine_packages(tree: str) -> dict[str, str]:
    """Return the packages of an Alpine image, name → version; empty for other images.

    tree: the folder of the image's files.
    """
    path = "/lib/apk/db/installed"
    if not os.path.lexists(tree + path):
        return {}
    versions: dict[str, str] = {}
    # The entries of packages are separated by empty lines; each line is "LETTER:VALUE", and other
    # lines are ignored.  P is the package's name, V its version.
    for entry in _read_image_file(tree, path).split("\n\n"):
        values = dict(line.split(":", 1) for line in entry.splitlines() if line[1:2] == ":")
        if "P" in values and "V" in values:
            versions[values["P"]] = values["V"]
    return dict(sorted(versions.items()))
