"""Which distribution the image is made of, and from which of the host's package sources."""

import csv
import os
import re

from strata.host import observe
from strata.util.data_types import Chosen, Fields
from strata.util.errors import UserError
from strata.util.process import capture
from strata.util.validation import nearest

DEFAULT_RELEASE = {"debian": "trixie", "ubuntu": "noble"}
COMPONENTS = {"debian": "main", "ubuntu": "main universe"}
# Packages of an archive that hold the keys by which apt checks it.
KEYS = {"debian": "debian-archive-keyring", "ubuntu": "ubuntu-keyring"}

# Tables of releases, one for each distribution (package distro-info-data).
RELEASES = "/usr/share/distro-info"


def os_release() -> dict[str, str]:
    """The fields of the host's os-release file; where there is none, a distribution that is unknown."""
    paths = ("/etc/os-release", "/usr/lib/os-release")
    text = next(filter(None, map(observe.read, paths)), "")
    found = {name: value.strip("'") for name, value in observe.fields(text).items()}
    return {"ID": "unknown"} | found


def choose(image: Fields, host: dict[str, str]) -> Chosen:
    """``{distribution, release}`` for the config's `image` on a host with these os-release fields.

    ``host`` gives Debian 13 on Debian and the host's own release on Ubuntu.
    """
    named = image.get("distribution", "host")
    own = host["ID"]
    distribution = own if named == "host" else named
    if distribution not in DEFAULT_RELEASE:
        raise UserError(
            f"config.yaml: image.distribution: is 'host', which is {own} here; name debian or ubuntu, and a mirror"
        )
    if distribution != own and "mirror" not in image:
        raise UserError(
            f"config.yaml: image.mirror: missing; this host is {own} and has no package sources for {distribution}: "
            "give the address of an archive"
        )
    usual = DEFAULT_RELEASE[distribution]
    if distribution == own == "ubuntu":
        usual = host.get("VERSION_CODENAME", usual)
    release = image.get("release", usual)
    names = releases(distribution)
    # Another archive may have releases of its own.
    if "mirror" not in image and names and release not in [*names, usual]:
        hint = nearest(release, names[-8:])
        raise UserError(
            f"config.yaml: image.release: '{release}' is not a release of {distribution}; {hint}"
        )
    return {"distribution": distribution, "release": release}


def releases(distribution: str) -> list[str]:
    """Return the code names of a distribution's releases, the oldest first.

    They are those of the package distro-info-data; the list is empty where it is not installed.
    """
    rows = csv.DictReader((observe.read(f"{RELEASES}/{distribution}.csv") or "").splitlines())
    return [row["series"] for row in rows if row.get("series")]


def sources(chosen: Chosen, mirror: str | None, host: dict[str, str]) -> str:
    """Text of a sources.list for the chosen release, from the mirror or the host's own sources, as apt has read them.

    The host's suites (its release, -updates and -security) are replaced by those of the chosen one.
    Raises UserError where the host has no keys of another distribution, or no package source.
    """
    distribution, release = chosen["distribution"], chosen["release"]
    keyring = f"/usr/share/keyrings/{distribution}-archive-keyring.gpg"
    if distribution != host["ID"] and not os.path.exists(keyring):
        raise UserError(
            f"{keyring} is missing, by which packages of {distribution} are checked: install "
            f"{KEYS[distribution]}, or take the file from the package of this name in {mirror}"
        )
    option = f"[signed-by={keyring}] " if os.path.exists(keyring) else ""
    if mirror:
        # What is built cannot see this host's files; apt copies them.
        mirror = re.sub("^file:", "copy:", mirror)
        return f"deb {option}{mirror} {release} {COMPONENTS[distribution]}\n"
    codename = host.get("VERSION_CODENAME", "")
    told = capture(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages"]
    ).stdout
    lines = []
    for line in told.splitlines():
        address, _, suite = line.partition(" ")
        base, dash, pocket = suite.partition("-")
        if base == codename and pocket in ("", "updates", "security"):
            lines.append(
                f"deb {option}{address} {release}{dash}{pocket} {COMPONENTS[distribution]}"
            )
    if not any(f" {release} " in line for line in lines):
        raise UserError(
            f"apt has no package source of {codename or 'this release'} to take {release} from: run `apt-get update`, "
            "or name image.mirror in config.yaml"
        )
    return "\n".join(dict.fromkeys(lines)) + "\n"
