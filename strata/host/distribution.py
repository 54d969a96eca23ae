"""The image's distribution, and the host's package sources that it is made from."""

import csv
import os
import re

from strata.host import observe
from strata.util.data_types import Chosen, Fields
from strata.util.errors import UserError
from strata.util.process import capture_output

# For each distribution: the release of an image on another host, the components of its archive, and
# the package with the keys that apt checks that archive with.
DEFAULT_RELEASE = {"debian": "trixie", "ubuntu": "noble"}
COMPONENTS = {"debian": "main", "ubuntu": "main universe"}
KEY_PACKAGES = {"debian": "debian-archive-keyring", "ubuntu": "ubuntu-keyring"}

# Tables of releases, one for each distribution (package distro-info-data).
RELEASES = "/usr/share/distro-info"


def read_os_release() -> dict[str, str]:
    """Return the fields of the host's os-release file.

    The key ``ID`` always exists; its value is "unknown" if no file sets it.
    """
    # parse_named_values() removes double quotes; os-release(5) allows single ones, too.
    text = observe.read_file("/etc/os-release") or observe.read_file("/usr/lib/os-release") or ""
    fields = {name: value.strip("'") for name, value in observe.parse_named_values(text).items()}
    return {"ID": "unknown"} | fields


def choose_image_release(image: Fields, host: dict[str, str]) -> Chosen:
    """Return ``{distribution, release}`` of the image that the configuration asks for.

    Both are part of the image's recipe: if a default changes, hosts build another image.
    image: the configuration's `image`.  The default distribution, also written ``host``, is the
    host's.  The default release is in DEFAULT_RELEASE; for Ubuntu on Ubuntu, it is the host's.
    host: the fields of :func:`read_os_release`.
    Raises UserError if the distribution is ``host`` and the host is neither Debian nor Ubuntu.
    Raises UserError, too, if no mirror is configured and the distribution is not the host's, or
    :func:`list_release_names` returns names, but not this one.
    """
    requested = image.get("distribution", "host")
    host_distribution = host["ID"]
    distribution = host_distribution if requested == "host" else requested
    # The schema of config.yaml admits only host, debian and ubuntu.
    if distribution not in DEFAULT_RELEASE:
        raise UserError(
            f"config.yaml: image.distribution: is 'host', which is {host_distribution} here; name "
            "debian or ubuntu, and a mirror"
        )
    if distribution != host_distribution and "mirror" not in image:
        raise UserError(
            f"config.yaml: image.mirror: missing; this host is {host_distribution} and has no "
            f"package sources for {distribution}: give the address of an archive"
        )
    default = DEFAULT_RELEASE[distribution]
    # Debian's default is fixed: hosts of any release then make the same image.
    if distribution == host_distribution == "ubuntu":
        default = host.get("VERSION_CODENAME", default)
    release = image.get("release", default)
    known_releases = list_release_names(distribution)
    # The archive of a mirror may have releases of its own.
    if "mirror" not in image and known_releases and release not in [*known_releases, default]:
        # Cells import this module where only the standard library is installed.
        from strata.util.validation import suggest_name

        # The message names only the latest eight releases, four years of Ubuntu's.
        hint = suggest_name(release, known_releases[-8:])
        raise UserError(
            f"config.yaml: image.release: '{release}' is not a release of {distribution}; {hint}"
        )
    return {"distribution": distribution, "release": release}


def list_release_names(distribution: str) -> list[str]:
    """Return the code names of a distribution's releases, the oldest first.

    They come from the package distro-info-data; the list is empty if that is not installed.
    """
    rows = csv.DictReader((observe.read_file(f"{RELEASES}/{distribution}.csv") or "").splitlines())
    return [row["series"] for row in rows if row.get("series")]


def format_sources_list(chosen_release: Chosen, mirror: str | None, host: dict[str, str]) -> str:
    """Return the text of the image's sources.list, for the chosen release.

    chosen_release: ``{distribution, release}``, the result of :func:`choose_image_release`.
    mirror: the address of an archive.  None: the host's own sources, as apt has read them; in their
    suites (RELEASE, RELEASE-updates, RELEASE-security) the chosen release replaces the host's.
    Other suites, such as backports, are dropped.
    host: the fields of :func:`read_os_release`.
    A line is, for example, "deb [signed-by=KEYRING] https://deb.debian.org/debian trixie main".
    Raises UserError if the host lacks the keys of another distribution, or a package source.
    """
    distribution = chosen_release["distribution"]
    release = chosen_release["release"]
    keyring = f"/usr/share/keyrings/{distribution}-archive-keyring.gpg"
    if distribution != host["ID"] and not os.path.exists(keyring):
        raise UserError(
            f"{keyring} is missing, which checks packages of {distribution}: install "
            f"{KEY_PACKAGES[distribution]}, or take the file from the package of this name in "
            f"{mirror}"
        )
    option = f"[signed-by={keyring}] " if os.path.exists(keyring) else ""
    if mirror:
        # The system that is built cannot see this host's files; with copy: apt copies them.
        mirror = re.sub("^file:", "copy:", mirror)
        return f"deb {option}{mirror} {release} {COMPONENTS[distribution]}\n"
    codename = host.get("VERSION_CODENAME", "")
    # Prints a line for each list of binary packages: the archive's address and the suite.
    arguments = ["--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages"]
    targets = capture_output(["apt-get", "indextargets", *arguments]).stdout
    lines = []
    for target in targets.splitlines():
        address, _, suite = target.partition(" ")
        base, dash, pocket = suite.partition("-")
        if base == codename and pocket in ("", "updates", "security"):
            suite = f"{release}{dash}{pocket}"
            lines.append(f"deb {option}{address} {suite} {COMPONENTS[distribution]}")
    if not any(f" {release} " in line for line in lines):
        raise UserError(
            f"apt has no package source of {codename or 'this release'} to take {release} from: "
            "run `apt-get update`, or name image.mirror in config.yaml"
        )
    # A suite has a list for each of its components: equal lines are written once.
    return "\n".join(dict.fromkeys(lines)) + "\n"
