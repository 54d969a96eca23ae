"""The manifest of an image: its packages with their versions, and a hash of every file."""

import hashlib
import json
import os
import tarfile

from strata.image import own_image
from strata.util.data_types import Any, Fields
from strata.util.process import capture_output

# Not parts of the image: files that Docker replaces in every container, and mount points.
LAID_OVER = {"etc/hostname", "etc/hosts", "etc/resolv.conf", "etc/mtab", ".dockerenv"}
NOT_FILES = {"proc", "sys", "dev", "run", "tmp", "data"}


def hash_archive(path: str) -> dict[str, str]:
    """Return the hashes of the files in a tar archive: path → ``sha256:…``, sorted by path.

    path: the tar archive of a container's files.  It is read instead of the unpacked files, some of
    which only root may read.
    A symbolic link has ``link:TARGET`` instead of a hash; a hard link has the hash of its file.
    Files that Docker replaces in each container, mount points, devices, pipes and folders are left
    out.  The format must stay: :func:`hash_manifest` digests it, and records name the digest.
    """
    hashes: dict[str, str] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            file_path = os.path.normpath(member.name)
            if file_path in LAID_OVER or file_path.split("/")[0] in NOT_FILES:
                continue
            if member.issym():
                hashes[file_path] = f"link:{member.linkname}"
            elif member.islnk():
                # A hard link to an earlier member.  If that member was left out, so is the link.
                target = os.path.normpath(member.linkname)
                if target in hashes:
                    hashes[file_path] = hashes[target]
            elif member.isfile():
                content: Any = archive.extractfile(member)
                digest = hashlib.file_digest(content, "sha256").hexdigest()
                hashes[file_path] = f"sha256:{digest}"
    return dict(sorted(hashes.items()))


def list_packages(tree: str) -> dict[str, str]:
    """Return the packages installed in an image, name → version, sorted by name.

    tree: the folder of the image's files.
    The package database of dpkg, or else of apk, is read; the result is empty if the image has
    neither.
    """
    database = os.path.join(tree, "var/lib/dpkg")
    if not os.path.exists(os.path.join(database, "status")):
        return own_image.list_alpine_packages(tree)
    line_format = "${db:Status-Status} ${Package} ${Version}\n"
    query = ["dpkg-query", "--admindir", database, "--show", "--showformat", line_format]
    versions: dict[str, str] = {}
    for line in sorted(capture_output(query).stdout.splitlines()):
        # Removed packages whose settings remain have another status.
        if line.startswith("installed "):
            _, name, version = line.split()
            versions[name] = version
    return versions


def hash_manifest(manifest: Fields | None) -> str:
    """Return the hexadecimal SHA-256 of a manifest; a missing manifest counts as JSON's null.

    manifest: ``{packages, files}``, as in manifest.json of an image.
    The serialization must stay: records identify images by this digest (`manifest_sha256`).
    """
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
