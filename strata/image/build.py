"""Build the image once for each recipe, by one run of Packer, and keep it in the cache.

A built image is a folder ``images/RECIPE`` of :func:`strata.util.paths.get_home_folder`: ``tree``
(the files, for native runs), ``image.tar`` (for Docker in a machine), ``manifest.json`` and
``image.json``.  Machines start from a Vagrant box (:mod:`strata.vm.vagrant_box`) that is made from
these.
"""

import contextlib
import glob
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator, Sequence

from strata.environments import docker
from strata.environments.common import engine, registry
from strata.experiment import recipe
from strata.host import daemons, distribution, observe
from strata.image import cache, manifest, own_image
from strata.util import paths, programs
from strata.util.data_types import Described, Fields, Image
from strata.util.errors import MachineError, UserError
from strata.util.files import remove_atomically, remove_tree, write_json, write_text
from strata.util.process import capture_output, find_remedy, wrap_as_root
from strata.util.progress import print_topic_message, report_step
from strata.vm import vagrant_box

# The number of images that stay, those used last, with their bases and boxes; and the number of the
# user's own.
KEPT = 3
# An environment variable of all processes that a build starts, with the home's mark as its value:
# they are found by it, even after the build was killed.
BUILDING = "STRATA_BUILDING"
# The bytes of available memory from which on a base is made in memory: it needs a quarter of them.
PLENTY_OF_MEMORY = 12 << 30
# Argument: NAME=VALUE.  Ends all processes that have the variable, and those that they start
# meanwhile; fails if some remain after five seconds.
END_PROCESSES = """
for _ in $(seq 100); do
    left=$(grep -lszxFe "$1" /proc/[0-9]*/environ | cut -d / -f 3)
    [ -n "$left" ] || exit 0
    kill -KILL $left 2>/dev/null
    sleep 0.05
done
exit 1
"""
# Arguments: Docker's image, the file for the archive that Docker loads, a container of the image,
# the file for an archive of its files, and a command that unpacks such an archive from its input.
SAVE = """
docker save --output "$2" "$1" &
saving=$!
docker export "$3" | tee "$4" | "${@:5}"
wait "$saving"
"""


def ensure_image(config: Fields, machines: bool = False) -> Image:
    """Return the image of a configuration; build it, which takes minutes, if it is not cached.

    config: the configuration's ``image``.  If it has the key `docker`, the files of that Docker
    image are copied, and nothing is built.
    machines: whether the Vagrant box of virtual machines is needed, too.
    Waits for another process that builds or removes an image.  Sets the modification time of the
    image's folder to now: :func:`prune_images` keeps the images that were used last.
    Raises UserError or MachineError if it cannot be built.
    """
    image_recipe = recipe.describe_image(config)
    recipe_hash = image_recipe["recipe"]
    folder = os.path.join(paths.get_home_folder(), "images")
    os.makedirs(folder, exist_ok=True)
    # The image has setuid programs, and folders that every user may write to.
    os.chmod(folder, 0o700)
    with cache.lock_cache():
        if image := cache.find_image(recipe_hash):
            print_topic_message("image", f"{recipe_hash[:12]} is in the cache")
        else:
            # A box that exists is of an earlier build, whose files may differ.
            vagrant_box.remove_box(recipe_hash)
            image = _build_image(config, image_recipe)
        if machines and not vagrant_box.has_box(recipe_hash):
            _build_box(image)
        os.utime(cache.get_image_folder(recipe_hash))
    return image


def _build_box(image: Image) -> None:
    """Build the Vagrant box of virtual machines from an image's files, and install it.

    Runs packer/box.sh as root; the head of that script lists its arguments.
    Raises UserError if the script fails.
    """
    recipe_hash = image["recipe"]
    description = "making the machines' disk from the image's files"
    with (
        _create_build_folder(f"box-{recipe_hash[:12]}") as build_folder,
        report_step("vm", description),
    ):
        sources = [os.path.join(image["folder"], name) for name in ("tree", "image.tar")]
        script = os.path.abspath("packer/box.sh")
        command = _build_marked_command(build_folder, [script, *sources, build_folder], root=True)
        # Half an hour: the script copies all files of the image to a disk, which takes minutes.
        capture_output(command, timeout=1800)
        vagrant_box.install_box(recipe_hash, build_folder)


@contextlib.contextmanager
def _create_build_folder(name: str) -> Iterator[str]:
    """Create an empty folder to build in, yield its path, and remove it after the `with` block.

    name: the end of the folder's name.
    A folder of that name that a killed build left is removed first, and its processes are killed.
    The folder must be created before everything else and removed last: it shows
    :func:`list_unfinished_builds` that a build began.  The block may move the folder away.
    """
    build_folder = paths.get_unfinished_folder(name)
    _remove_build_folder(build_folder)
    os.makedirs(build_folder)
    try:
        yield build_folder
    finally:
        _remove_build_folder(build_folder)


def _remove_build_folder(build_folder: str) -> None:
    """Remove a build's folder, if it exists, after killing the processes of killed builds.

    build_folder: the path of the folder.
    The processes of all builds of this home folder are killed: the caller must hold the cache's
    lock, so that no build is under way.
    """
    if os.path.isdir(build_folder):
        _end_build_processes()
        remove_tree(build_folder, unmount=True)


def _end_build_processes() -> None:
    """Kill the processes that killed builds left running, found by their environment variable.

    :func:`_build_marked_command` sets the variable.  Processes that cannot be killed stay, without
    a message.
    """
    variable = f"{BUILDING}={paths.compute_home_mark()}"
    kill = ["sh", "-uc", END_PROCESSES, "strata", variable]
    capture_output(kill, check=False)
    with contextlib.suppress(UserError):
        # For a user without root's rights, no process of a build runs as root.
        capture_output(wrap_as_root(kill), check=False)


def _build_marked_command(build_folder: str, argv: Sequence[str], root: bool = False) -> list[str]:
    """Return the command that runs `argv` with the environment variable that marks a build.

    build_folder: the path of the build's folder, in which temporary files are put.
    argv: the program and its arguments.
    root: whether to run as root.
    :func:`_end_build_processes` finds the processes of killed builds by this variable.
    Raises MachineError if the program is not installed.
    """
    if not daemons.find_program(argv[0]):
        raise MachineError(f"{argv[0]} is not installed: run `make setup`")
    variables = [f"{BUILDING}={paths.compute_home_mark()}", f"TMPDIR={build_folder}"]
    command = ["env", *variables, *argv]
    return wrap_as_root(command) if root else command


def _build_image(config: Fields, image_recipe: Described) -> Image:
    """Build an image, move it into the cache atomically, and return it.

    config: the configuration's ``image``.
    image_recipe: the image's recipe, as :func:`strata.experiment.recipe.describe_image` returns it.
    The caller must hold the cache's lock.  Starts Docker's daemon if it does not run.
    A failed build leaves nothing behind.  Raises UserError if the build fails, or if source files
    of the image change meanwhile.
    """
    recipe_hash = image_recipe["recipe"]
    docker.start_docker_daemon()
    _remove_builds()
    try:
        with _create_build_folder(recipe_hash[:12]) as build_folder:
            _build_image_files(config, image_recipe, build_folder)
            # The recipe must still be the one whose files were built in.
            if recipe.describe_image(config)["recipe"] != recipe_hash:
                raise UserError(
                    "files that go into the image changed while it was built: run "
                    "`python3 -m strata image` again"
                )
            os.rename(build_folder, cache.get_image_folder(recipe_hash))
    finally:
        _remove_builds()
        # This removes Docker's image of a failed build, and an earlier image that lost its name to
        # this one.  The base stays for later builds.
        _remove_unneeded_engine_images(engine.format_base_name(image_recipe["base"]))
    print_topic_message(
        "image", f"{recipe_hash[:12]} is {'taken over' if 'docker' in config else 'built'}"
    )
    return cache.require_image(recipe_hash)


def _build_image_files(config: Fields, image_recipe: Described, build_folder: str) -> None:
    """Build an image, and write its files, archive, manifest and facts into a folder.

    config: the configuration's ``image``.
    image_recipe: the image's recipe, as :func:`strata.experiment.recipe.describe_image` returns it.
    build_folder: the path of the folder.
    The facts are in image.json: papers, archives and records rely on its keys, which docs/files.md
    lists.  This file must be written last: :func:`strata.image.cache.require_unchanged_tree`
    compares the times of the image's files with its time.
    """
    tree = os.path.join(build_folder, "tree")
    # Further facts of the user's own image.
    own_image_facts: Fields = {}
    program_hashes: dict[str, str] = {}
    if "docker" in config:
        inspected = docker.inspect_image(config["docker"])
        name = inspected["Id"]
        archive = _save_image_files(name, build_folder)
        run_settings = own_image.prepare_run_settings(inspected, tree)
        workloads = recipe.list_portable_workloads(config)
        program_hashes = own_image.build_programs(workloads, os.path.join(build_folder, "programs"))
        # An image that was built here and never pushed has no digest.
        digests = inspected.get("RepoDigests") or [None]
        own_image_facts = {
            "source": inspected["reference"],
            "digest": digests[0],
            "run": {**run_settings, "programs": program_hashes},
        }
    else:
        name = _provision_image(config, image_recipe, build_folder)
        archive = _save_image_files(name, build_folder)
    with report_step("image", "hashing every file"):
        listing = {
            "packages": manifest.list_packages(tree),
            "files": {**manifest.hash_archive(archive), **program_hashes},
        }
    os.unlink(archive)
    write_json(os.path.join(build_folder, "manifest.json"), listing)
    inspect_id = ["docker", "image", "inspect", "--format", "{{.Id}}", name]
    image: Fields = {
        "recipe": image_recipe["recipe"],
        "format": 1,
        "id": capture_output(inspect_id).stdout.strip(),
        "distribution": image_recipe["distribution"],
        "release": image_recipe["release"],
        "architecture": platform.machine(),
        "package_count": len(listing["packages"]),
        "file_count": len(listing["files"]),
        "manifest_sha256": manifest.hash_manifest(listing),
        "base": image_recipe["base"],
        "built": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **own_image_facts,
    }
    write_json(os.path.join(build_folder, "image.json"), image)


def _provision_image(config: Fields, image_recipe: Described, build_folder: str) -> str:
    """Build the Docker image of a recipe from its base by Packer, and return the image's name.

    config: the configuration's ``image``.
    image_recipe: the image's recipe, as :func:`strata.experiment.recipe.describe_image` returns it.
    build_folder: the path of the build's folder.
    packer/image.pkr.hcl declares the variables, and labels the image with the home folder's mark
    and with the recipe in its name.
    Raises UserError if the build fails.
    """
    name = engine.format_image_name(image_recipe)
    base = _ensure_base_image(config, image_recipe)
    with report_step("image", "provisioning with Packer"):
        _run_packer(
            config, build_folder, {"base": base, "tag": name, "home": paths.compute_home_mark()}
        )
    return name


def _ensure_base_image(config: Fields, image_recipe: Described) -> str:
    """Return Docker's name of an image's base root filesystem; build it if it is missing.

    A build takes about a minute.
    config: the configuration's ``image``.
    image_recipe: the image's recipe, as :func:`strata.experiment.recipe.describe_image` returns it.
    Raises UserError with apt's reasons if mmdebstrap cannot build it.
    """
    name = engine.format_base_name(image_recipe["base"])
    if capture_output(["docker", "image", "inspect", name], check=False).returncode == 0:
        print_topic_message("image", "the base root filesystem is in the cache")
        return name
    release = f"{image_recipe['distribution']} {image_recipe['release']}"
    with _create_build_folder("base") as build_folder:
        # Further packages of the user's own may need more memory than there is.
        folder = build_folder if config.get("packages") else _mount_memory(build_folder)
        with report_step("image", f"bootstrapping {release} with mmdebstrap"):
            archive = _bootstrap_base(config, image_recipe, folder)
        with report_step("image", "importing the base root filesystem into Docker"):
            label = f"LABEL strata.image={paths.compute_home_mark()}"
            command = ["docker", "import", "--change", label, archive, name]
            capture_output(_build_marked_command(build_folder, command), timeout=600)
    return name


def _mount_memory(build_folder: str) -> str:
    """Mount a file system of memory in a build's folder, and return the path of its folder.

    build_folder: the path of the folder, whose removal unmounts the file system.
    A bootstrap takes three quarters of the time there.  If the host has less than
    :data:`PLENTY_OF_MEMORY` available, or does not let this process mount, nothing is mounted and
    the build's folder itself is returned.
    """
    available_bytes = observe.read_available_memory() or 0
    if available_bytes < PLENTY_OF_MEMORY:
        return build_folder
    folder = os.path.join(build_folder, "memory")
    os.mkdir(folder)
    options = f"size={available_bytes // 2},mode=0755,uid={os.getuid()}"
    command = wrap_as_root(["mount", "-t", "tmpfs", "-o", options, "strata", folder])
    is_mounted = capture_output(command, check=False).returncode == 0
    return folder if is_mounted else build_folder


def _bootstrap_base(config: Fields, image_recipe: Described, folder: str) -> str:
    """Build the base root filesystem with mmdebstrap, and return the path of its tar archive.

    config: the configuration's ``image``.
    image_recipe: the image's recipe, as :func:`strata.experiment.recipe.describe_image` returns it.
    folder: the path of the folder for the archive and all temporary files.
    The host's settings for apt's downloads apply, for example a proxy.
    Raises UserError with apt's reasons if mmdebstrap fails.
    """
    packages = ",".join(recipe.list_base_packages(config, image_recipe))
    options = [
        *_list_apt_options(),
        "--variant=minbase",
        f"--include={packages}",
        f"--customize-hook=copy-in '{os.path.abspath(recipe.BASE_SCRIPT)}' /tmp",
        '--customize-hook=chroot "$1" sh /tmp/base.sh',
        '--customize-hook=rm "$1/tmp/base.sh"',
    ]
    mirror = config.get("mirror")
    sources = os.path.join(folder, "sources.list")
    write_text(
        sources,
        distribution.format_sources_list(image_recipe, mirror, distribution.read_os_release()),
    )
    archive = os.path.join(folder, "base.tar")
    # The kernel's package makes no initial root file system, since base.sh makes a smaller one.
    command = [
        "env",
        "INITRD=No",
        "mmdebstrap",
        *options,
        image_recipe["release"],
        archive,
        sources,
    ]
    result = capture_output(
        _build_marked_command(folder, command, root=True), timeout=3600, check=False
    )
    if result.returncode != 0:
        raise _build_bootstrap_error(image_recipe, mirror, result.stderr)
    return archive


def _list_apt_options() -> list[str]:
    """Return the options of mmdebstrap that pass on the host's settings for apt's downloads.

    An option is, for example, ``--aptopt=Acquire::http::Proxy "http://proxy:3128";``.
    Raises UserError if apt-config fails.
    """
    options = []
    for line in capture_output(["apt-config", "dump"]).stdout.splitlines():
        # apt prints settings without a value, too.
        is_empty = '"";' in line
        if line.startswith("Acquire::") and not is_empty:
            options.append(f"--aptopt={line}")
    return options


def _build_bootstrap_error(
    image_recipe: Described, mirror: str | None, error_output: str
) -> UserError:
    """Write mmdebstrap's log, and return the error for a base that could not be built.

    image_recipe: the image's recipe.
    mirror: the configured package mirror; None: the host's package sources.
    error_output: the error output of mmdebstrap.  It is written to images/mmdebstrap.log in the
    home folder.
    The error has apt's reasons, or else the last 20 lines, and a remedy.
    """
    log = os.path.join(paths.get_home_folder(), "images", "mmdebstrap.log")
    write_text(log, error_output)
    lines = error_output.strip().splitlines()
    # Beginnings of lines that only name the failed command, without a reason.
    consequences = "setup failed|mmdebstrap |apt-get |apt download |Download is"
    reasons = [line for line in lines if re.match(f"[EW]: (?!{consequences})", line)]
    release = f"{image_recipe['distribution']} {image_recipe['release']}"
    if unknown_packages := re.findall(r"(?m)^E: Unable to locate package (\S+)", error_output):
        return UserError(
            f"{', '.join(unknown_packages)}: {release} has no such package: correct image.packages "
            "of config.yaml, or --packages of `strata try`"
        )
    source = mirror or "the host's package sources"
    shown_lines = "\n".join(reasons or lines[-20:])
    return UserError(
        f"mmdebstrap could not make the base of {release} from {source} (config.yaml: image; whole "
        f"log: {log}):\n{shown_lines}{find_remedy(error_output)}"
    )


@report_step("image", "taking its files out of Docker")
def _save_image_files(name: str, build_folder: str) -> str:
    """Save a Docker image as ``image.tar`` and its files as ``tree`` into a build's folder.

    name: Docker's name or ID of the image; ``image.tar`` has the image under this name.
    build_folder: the path of the build's folder.
    Creates a container of the image for that, and removes it.  ``tree`` lacks the files of Docker
    and Packer that are no part of the image.
    Returns the path of a tar archive of the files, which the caller must remove.
    Raises UserError if a command fails.
    """
    tree = os.path.join(build_folder, "tree")
    archive = os.path.join(build_folder, "tree.tar")
    # If this process is killed, a later one finds the container by this label.
    label = f"{engine.BUILDING}={paths.compute_home_mark()}"
    create = ["docker", "create", "--label", label, name, "true"]
    container = capture_output(_build_marked_command(build_folder, create)).stdout.strip()
    os.mkdir(tree)
    # The file .dockerenv would make systemd take a virtual machine for a container; the folder
    # packer-files is Packer's own.
    excluded = ["--anchored", "--exclude=.dockerenv", "--exclude=packer-files"]
    rights = ["--numeric-owner", "--xattrs", "--xattrs-include=security.capability"]
    unpack = wrap_as_root(["tar", "-C", tree, *rights, *excluded, "-xpf", "-"])
    image_tar = os.path.join(build_folder, "image.tar")
    save = ["bash", "-euo", "pipefail", "-c", SAVE, "strata", name, image_tar, container, archive]
    try:
        capture_output(_build_marked_command(build_folder, [*save, *unpack]), timeout=1800)
    finally:
        capture_output(["docker", "rm", "--volumes", container])
    return archive


def _run_packer(config: Fields, build_folder: str, variables: dict[str, str]) -> None:
    """Run Packer to build the image, with the files of its workloads.

    config: the configuration's ``image``.
    build_folder: the path of the build's folder; the workloads' files are copied into it for
    Packer, and removed afterwards.
    variables: name → value for packer/image.pkr.hcl, without `context`, which is added here.
    packer/provision.sh expects the files and the list ``workloads/packages`` in the image's /tmp.
    Packer's log stays in the images' folder.
    Raises UserError with the end of Packer's output if the build fails.
    """
    context = os.path.join(build_folder, "context")
    os.makedirs(context)
    paths_of_workloads = [
        path for path in recipe.list_image_files(config) if path.startswith("workloads/")
    ]
    capture_output(["cp", "--parents", "--preserve=mode", "--", *paths_of_workloads, context])
    packages = os.path.join(context, "workloads", "packages")
    write_text(packages, "\n".join(recipe.list_packages(config)) + "\n")
    log = os.path.join(paths.get_home_folder(), "images", "packer.log")
    settings = ["CHECKPOINT_DISABLE=1", "PACKER_LOG=1", f"PACKER_LOG_PATH={log}"]
    settings += [f"PACKER_{name}_DIR={context}/{name}" for name in ("CACHE", "TMP")]
    options = []
    for key, value in {**variables, "context": context}.items():
        options += ["-var", f"{key}={value}"]
    packer = ["packer", "build", "-color=false", *options, "packer/image.pkr.hcl"]
    # Packer's plugins listen on sockets in TMPDIR.  The kernel limits the paths of sockets to 107
    # bytes, and a path in Strata's home may be longer.
    with programs.create_temporary_folder("packer", "/tmp") as socket_folder:
        command = _build_marked_command(
            build_folder, ["env", *settings, f"TMPDIR={socket_folder}", *packer]
        )
        result = capture_output(command, timeout=3600, check=False)
    remove_tree(context)
    if result.returncode != 0:
        last_lines = "\n".join((result.stdout + result.stderr).strip().splitlines()[-20:])
        raise UserError(f"Packer could not make the image (whole log: {log}):\n{last_lines}")


def list_unfinished_builds() -> list[str]:
    """Return the sorted paths of the folders of builds that have begun and not ended.

    They include builds under way: each build's folder is created first and removed last.
    """
    return sorted(glob.glob(glob.escape(paths.get_unfinished_folder("")) + "*"))


def _remove_builds() -> list[str]:
    """Remove processes, containers and folders of killed builds; return a phrase for each.

    The caller must hold the cache's lock, so that no build is under way.  ``strata clean`` prints
    the phrases.
    """
    phrases = []
    for folder in list_unfinished_builds():
        _remove_build_folder(folder)
        name = os.path.basename(folder).removeprefix("building-")
        phrases.append(f"unfinished image {name}")
    container_ids = docker.Layer.remove_containers(engine.BUILDING)
    phrases += [
        f"container {container_id} of an unfinished image" for container_id in container_ids
    ]
    return phrases


def remove_killed_builds() -> list[str]:
    """Remove everything that killed builds left, and return a phrase for each removed thing.

    Takes the cache's lock; removes nothing while another process holds the lock.
    """
    with cache.lock_cache(wait=False) as is_held:
        return _remove_builds() if is_held else []


def copy_image_facts_to_results(image: Image) -> None:
    """Write an image's facts, and copy its manifest, into the project in the working directory.

    The files are results/image.json and results/image-manifest.json (docs/files.md).  The image's
    folder, which is a path on this machine, and its base are left out of the facts.
    """
    facts = {key: value for key, value in image.items() if key not in ("folder", "base")}
    write_json(paths.IMAGE, facts)
    shutil.copyfile(os.path.join(image["folder"], "manifest.json"), paths.MANIFEST)


def prune_images(keep: int = KEPT) -> list[str]:
    """Remove all images except those used last; return a phrase for each removed thing.

    Also removes what killed builds left, and volumes without an image.
    keep: the number of images of each kind that stay; the kinds are built images and copies of the
    user's own.
    If another process holds the cache's lock, removes nothing and prints that.  The caller must
    ensure that no system is up.
    """
    with cache.lock_cache(wait=False) as is_held:
        if not is_held:
            print_topic_message(
                "image", "nothing is removed from the cache, since another process makes an image"
            )
            return []
        phrases = _remove_builds()
        # Hashes of the recipes of built images and of copies of the user's own images, in the order
        # of use, the last used first.  They are counted separately: copying one takes seconds,
        # building another takes minutes.
        build_hashes = []
        copy_hashes = []
        for recipe_hash in cache.list_image_recipes():
            image = cache.find_image(recipe_hash)
            # Only the user's own images have the key `run`.  An incomplete image counts as built.
            if image is not None and "run" in image:
                copy_hashes.append(recipe_hash)
            else:
                build_hashes.append(recipe_hash)
        for recipe_hash in build_hashes[keep:] + copy_hashes[keep:]:
            vagrant_box.remove_box(recipe_hash)
            remove_atomically(
                cache.get_image_folder(recipe_hash), paths.get_unfinished_folder("removed")
            )
            phrases.append(f"image {recipe_hash[:12]}")
        phrases += [f"volume {name}" for name in vagrant_box.remove_orphaned_copies()]
        return phrases + _remove_unneeded_engine_images()


def _remove_unneeded_engine_images(*kept_names: str) -> list[str]:
    """Remove the container engines' images that belong to no image in the cache.

    kept_names: Docker's names of further images that stay.
    The caller must hold the cache's lock.
    Returns a phrase for each removed image, for example "the image NAME of Docker".
    """
    needed_images = {*kept_names}
    for recipe_hash in cache.list_image_recipes():
        if image := cache.find_image(recipe_hash):
            needed_images |= {
                image["id"],
                engine.format_image_name(image),
                engine.format_base_name(image["base"]),
            }
    phrases = []
    for layer_name in registry.list_layer_names():
        phrases += registry.load_layer_class(layer_name).remove_images(needed_images)
    return phrases
