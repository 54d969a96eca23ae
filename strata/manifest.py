"""What an image's tree holds: the packages with their versions, and a hash for every file."""

import hashlib
import json
import os
import re

# Files that Docker lays over every container, and what the kernel mounts: no part of the image.
LAID_OVER = {"etc/hostname", "etc/hosts", "etc/resolv.conf", ".dockerenv"}
NOT_FILES = {"proc", "sys", "dev", "run", "tmp", "data"}


def hash_tree(tree: str) -> dict[str, str]:
    """Path (relative to the tree) → ``sha256:…`` of a regular file or ``link:…`` of a symbolic link, sorted."""
    found = {}
    for folder, inner, names in os.walk(tree):
        inside = os.path.relpath(folder, tree)
        if inside == ".":
            inner[:] = [name for name in inner if name not in NOT_FILES]
        for name in [*names, *(part for part in inner if os.path.islink(os.path.join(folder, part)))]:
            path = os.path.join(folder, name)
            key = os.path.normpath(os.path.join(inside, name))
            if key in LAID_OVER:
                continue
            if os.path.islink(path):
                found[key] = f"link:{os.readlink(path)}"
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    found[key] = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    return dict(sorted(found.items()))


def packages(tree: str) -> dict[str, str]:
    """Package → version, from the package manager's own list in the tree."""
    with open(os.path.join(tree, "var/lib/dpkg/status"), encoding="utf-8") as file:
        stanzas = file.read().split("\n\n")
    found = {}
    for stanza in stanzas:
        if "\nStatus: install ok installed" in stanza:
            name = re.search(r"^Package: (.+)$", stanza, re.MULTILINE)
            version = re.search(r"^Version: (.+)$", stanza, re.MULTILINE)
            if name and version:
                found[name[1]] = version[1]
    return dict(sorted(found.items()))


def make(tree: str) -> dict:
    """``{packages, files}`` of a tree."""
    return {"packages": packages(tree), "files": hash_tree(tree)}


def digest(manifest: dict) -> str:
    """The hash of a manifest."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
