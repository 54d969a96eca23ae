"""What an image's tree holds: the packages with their versions, and a hash for every file."""

import hashlib
import json
import os
import tarfile

from strata.util.data_types import Fields
from strata.util.process import capture

# Files that Docker lays over every container, and what the kernel mounts: no part of the image.
LAID_OVER = {"etc/hostname", "etc/hosts", "etc/resolv.conf", "etc/mtab", ".dockerenv"}
NOT_FILES = {"proc", "sys", "dev", "run", "tmp", "data"}


def hash_archive(path: str) -> dict[str, str]:
    """Path → ``sha256:…`` of a regular file or ``link:…`` of a symbolic link, sorted, of a tar archive of a container.

    The archive is read rather than its tree, of which some files are root's alone.
    """
    found: dict[str, str] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            key = os.path.normpath(member.name)
            if key in LAID_OVER or key.split("/")[0] in NOT_FILES:
                continue
            if member.issym():
                found[key] = f"link:{member.linkname}"
            elif member.islnk():
                found[key] = found[os.path.normpath(member.linkname)]
            elif member.isfile():
                content = archive.extractfile(member)
                assert content
                found[key] = f"sha256:{hashlib.sha256(content.read()).hexdigest()}"
    return dict(sorted(found.items()))


def packages(tree: str) -> dict[str, str]:
    """Package → version, from the package manager's own list in the tree."""
    form = ["--showformat", "${db:Status-Status} ${Package} ${Version}\n"]
    listed = capture(
        ["dpkg-query", "--admindir", os.path.join(tree, "var/lib/dpkg"), "--show", *form]
    ).stdout
    return dict(
        sorted(line.split()[1:] for line in listed.splitlines() if line.startswith("installed "))
    )


def digest(manifest: Fields | None) -> str:
    """The hash of a manifest."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
