"""Compute the recipe of the image: the hash of everything that decides its content.

Comments do not count: editing one neither builds an image nor reruns a cell.
"""

import hashlib
import json
import os
import re

from strata.environments import docker
from strata.experiment import workload
from strata.host import distribution
from strata.util import paths, programs
from strata.util.data_types import Chosen, Described, Fields
from strata.util.errors import UserError
from strata.util.files import read_json

# Names in a workload's folder that belong to the analysis or the plan, not to the image.
NOT_IN_IMAGE = {"workload.yaml", "parse.py", "fixtures", "__pycache__"}
# Folders of shared files: each file is in the image if the build script of a workload names it.
SHARED = ("workloads/common/sourced", "workloads/kit/load")
BASE_PACKAGES = ["bash", "coreutils", "gcc", "gzip", "libc6-dev", "mawk", "procps", "util-linux"]
# Packages that make a virtual machine of the same files, and Docker in it; containers have them too
# but start none of their programs.
MACHINE_PACKAGES = [
    *["dbus", "e2fsprogs", "iproute2", "openssh-server", "systemd-sysv", "udev"],
    *["docker.io", "iptables"],
]
# Kernel packages of virtual machines: with drivers for hypervisors' devices, or for all hardware.
KERNELS = {
    "machines": {"debian": "linux-image-cloud-amd64", "ubuntu": "linux-image-virtual"},
    "hardware": {"debian": "linux-image-amd64", "ubuntu": "linux-image-generic"},
}
BASE_SCRIPT = "packer/base.sh"
# Strings and characters in C, which may contain "//", and comments.
_C_TOKENS = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)


def strip_comments(name: str, content: bytes) -> bytes:
    """Return the content of a file without comments and blank lines, which cannot change the image.

    name: the name of the file, whose ending shows its language.  Files in other languages than C,
    shell, Ruby and HCL are returned as they are.
    In these languages, trailing spaces go, too.  In shell, Ruby and HCL, only whole lines are
    comments.
    The result is hashed: if it changes for an unchanged file, all images are built again.
    """
    kind = os.path.splitext(name)[1]
    if kind not in (".c", ".h", ".sh", ".hcl", ".rb"):
        return content
    text = content.decode(errors="surrogateescape")
    if kind in (".c", ".h"):
        text = _C_TOKENS.sub(lambda token: " " if token[0].startswith("/") else token[0], text)
    lines = [line.rstrip() for line in text.splitlines()]
    if kind in (".sh", ".hcl", ".rb"):
        # A line that begins with "#!", such as a script's first line, is not a comment.
        lines = [line for line in lines if not re.match(r"\s*#(?!!)", line)]
    return "\n".join(filter(None, lines)).encode(errors="surrogateescape")


def list_workloads_in_image(image: Fields) -> list[str]:
    """Return the names of the workloads that the image contains.

    They are all workloads except those that declare ``image: planned`` and are not in the plan.
    image: the value of `image` from :func:`strata.experiment.config.read_config`; its `workloads`
    lists the names of the workloads in the plan.
    """
    names = workload.list_workloads()
    planned_names = image.get("workloads", [])
    return [name for name in names if name in planned_names or not _is_optional_workload(name)]


def _is_optional_workload(name: str) -> bool:
    """Return whether the image contains a workload only if it is in the plan.

    Its declaration then has ``image: planned``.
    """
    return bool(workload.read_declaration(name).get("image") == "planned")


def list_image_files(image: Fields) -> list[str]:
    """Return the sorted paths, relative to the project, of the files that the build uses.

    image: the value of `image` in the configuration; see :func:`list_workloads_in_image`.
    Files that git ignores (.gitignore) are left out; outside a git repository every file counts.
    For the user's own image the result holds only the files of portable workloads.
    The recipe hashes the files in this order, and image/build.py copies them.
    """
    if "docker" in image:
        names = list_portable_workloads(image)
        return _list_workload_files(names) if names else []
    packer_files = [
        f"packer/{name}"
        for name in _list_source_files("packer", ["."])
        if "/" not in name and name.endswith((".hcl", ".rb", ".sh"))
    ]
    workloads = ["common", "kit/load", *list_workloads_in_image(image)]
    files = packer_files + _list_workload_files(workloads)
    # A shared file is in the image only if a build script names it.
    scripts = b"".join(_read_bytes(path) for path in files if path.endswith("/build.sh"))
    return sorted(
        path
        for path in files
        if os.path.dirname(path) not in SHARED
        or os.path.relpath(path, "workloads").encode() in scripts
    )


def _list_workload_files(folders: list[str]) -> list[str]:
    """Return the sorted paths, relative to the project, of workloads' files in the image.

    folders: the folders of the workloads, as paths relative to workloads/.
    Documentation (.md) and the names in NOT_IN_IMAGE are left out.
    """
    return sorted(
        f"workloads/{path}"
        for path in _list_source_files("workloads", folders)
        if not path.endswith(".md") and NOT_IN_IMAGE.isdisjoint(path.split("/"))
    )


def _list_source_files(folder: str, subfolders: list[str]) -> list[str]:
    """Return the paths of all files in subfolders, relative to their parent folder, unsorted.

    folder: the path of the folder.
    subfolders: the paths of the subfolders, relative to the folder.
    If git tracks any of these files, files that git ignores are left out, and so are tracked files
    that are deleted.  Otherwise all files count.
    """
    root = os.path.realpath(folder)
    options = ["-z", "-t", "--cached", "--others", "--exclude-standard", "--", *subfolders]
    try:
        # Each row is "TAG PATH"; git ends every row, the last one too, with a NUL character.
        output = programs.run_git(root, "ls-files", *options).stdout
    except UserError:
        # Without git, or where git refuses to read the repository, all files count.
        output = ""
    rows = output.removesuffix("\0").split("\0")
    # "H" marks a tracked file.  A repository that tracks no file here is not the project's own.
    if any(row.startswith("H ") for row in rows):
        # A set, since git lists a file with a merge conflict several times.
        tracked_and_new = {row.partition(" ")[2] for row in rows}
        return [path for path in tracked_and_new if os.path.isfile(os.path.join(root, path))]
    paths_in_folder: list[str] = []
    for subfolder in subfolders:
        for parent, _, file_names in os.walk(os.path.join(root, subfolder)):
            for name in file_names:
                paths_in_folder.append(os.path.relpath(os.path.join(parent, name), root))
    return paths_in_folder


def _read_bytes(path: str) -> bytes:
    """Return the content of a file."""
    with open(path, "rb") as file:
        return file.read()


def _hash_files(files: list[str]) -> list[str]:
    """Return a line for each file, such as "packer/base.sh x 5feceb66…", without a line feed.

    files: the paths of the files, relative to the working directory.
    The second field is x if the file is executable, and - otherwise.  The third is the SHA-256 of
    the content without comments.  The format must stay: it is hashed in the recipes of images.
    """
    lines = []
    for path in files:
        content = strip_comments(path, _read_bytes(path))
        mode = "x" if os.access(path, os.X_OK) else "-"
        lines.append(f"{path} {mode} {hashlib.sha256(content).hexdigest()}")
    return lines


def list_packages(image: Fields) -> list[str]:
    """Return the sorted names of the packages that the workloads and the build need.

    image: the value of `image` in the configuration; see :func:`list_workloads_in_image`.  Its key
    `packages` adds further names.
    """
    names = {*BASE_PACKAGES, *image.get("packages", [])}
    for name in list_workloads_in_image(image):
        names.update(workload.read_declaration(name)["packages"])
    return sorted(names)


def list_base_packages(image: Fields, chosen_release: Chosen) -> list[str]:
    """Return the sorted names of all packages in the base root filesystem.

    image: the value of `image` in the configuration; see :func:`list_workloads_in_image`.
    chosen_release: ``{distribution, release}`` of the image.
    Dependencies of the packages are not listed.  The base's hash contains the list.
    """
    names = {*list_packages(image), *MACHINE_PACKAGES}
    names.add(KERNELS[image.get("kernel", "machines")][chosen_release["distribution"]])
    # From Debian 13 on, Docker's client is a separate package.
    includes_client = chosen_release["release"] in ("bullseye", "bookworm")
    if chosen_release["distribution"] == "debian" and not includes_client:
        names.add("docker-cli")
    return sorted(names)


def list_portable_workloads(image: Fields) -> list[str]:
    """Return the names of the plan's workloads whose programs run in any image.

    image: the value of `image` in the configuration; see :func:`list_workloads_in_image`.
    """
    return [name for name in image.get("workloads", []) if workload.is_portable(name)]


def _describe_own_image(image: Fields) -> Described:
    """Return ``{recipe, base, distribution, release}`` of the user's own Docker image.

    image: the value of `image` in the configuration, with the image's name as `docker`.
    The recipe is a hash of the image's ID and of the files of portable workloads.  `base` is "".
    If Docker no longer has the image, the recipe is copied from the plan in results/, because
    papers are made without the image.
    Raises UserError if Docker does not have the image, and that plan is missing or has another one.
    """
    reference = image["docker"]
    described = {"base": "", "distribution": "docker", "release": reference}
    try:
        # The format must stay: another one would change the recipe.
        inputs = ["docker", docker.inspect_image(reference)["Id"]]
        inputs += _hash_files(list_image_files(image))
    except UserError:
        last_plan = read_json(paths.PLAN) or {}
        planned_image = last_plan.get("image", {})
        has_same_image = (
            planned_image.get("distribution") == "docker"
            and planned_image.get("release") == reference
        )
        if not has_same_image:
            raise
        return {**described, "recipe": planned_image["recipe"]}
    return {**described, "recipe": hashlib.sha256(json.dumps(inputs).encode()).hexdigest()}


def describe_image(image: Fields) -> Described:
    """Return ``{recipe, base, distribution, release}`` of the image that the workloads need.

    image: the value of `image` in the configuration; see :func:`list_workloads_in_image`.
    base: the SHA-256 of everything that decides the base root filesystem.
    recipe: the SHA-256 of everything that decides the image.
    workloads: the workloads that are in the image only because they are in the plan; the key is
    missing if there are none.
    The user's own image (`docker`) has its name as the release, and a recipe that follows from its
    ID (:func:`_describe_own_image`).  Raises UserError if Docker does not have it.
    The computation must stay: if a hash changes, images are built and cells are measured again.
    """
    if "docker" in image:
        return _describe_own_image(image)
    chosen_release = distribution.choose_image_release(image, distribution.read_os_release())
    script = strip_comments(BASE_SCRIPT, _read_bytes(BASE_SCRIPT)).decode()
    names = list_base_packages(image, chosen_release)
    base_inputs = {
        **chosen_release,
        "mirror": image.get("mirror"),
        "packages": names,
        "script": script,
    }
    base_hash = hashlib.sha256(json.dumps(base_inputs, sort_keys=True).encode()).hexdigest()
    recipe_hash = hashlib.sha256(base_hash.encode())
    for line in _hash_files(list_image_files(image)):
        recipe_hash.update(f"{line}\n".encode())
    described: Described = {
        "recipe": recipe_hash.hexdigest(),
        "base": base_hash,
        "distribution": chosen_release["distribution"],
        "release": chosen_release["release"],
    }
    optional_workloads = [
        name for name in list_workloads_in_image(image) if _is_optional_workload(name)
    ]
    if optional_workloads:
        described["workloads"] = optional_workloads
    return described
