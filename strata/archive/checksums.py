"""SHA256SUMS: a checksum for every other file of an archive, in the form of the tool sha256sum."""

import hashlib
import os
import re
import stat
from collections import Counter

from strata.archive.zip_file import list_files

NAME = "SHA256SUMS"


def hash_file(path: str) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def format_checksum(folder: str, name: str) -> str:
    """Return the line of SHA256SUMS for a file: its hash, two spaces and its path, as given.

    folder: the folder that holds the file.
    name: the file's path, relative to the folder.
    The form must stay: ``sha256sum --check`` and :func:`find_checksum_faults` read such lines, and
    the digest in light.json covers some of them.
    """
    return f"{hash_file(os.path.join(folder, name))}  {name}\n"


def write_checksums(folder: str) -> None:
    """Write the file SHA256SUMS of a folder, with a line for each other file below it.

    Must come last: :func:`find_checksum_faults` reports files that are written or changed later.
    """
    with open(os.path.join(folder, NAME), "w", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(format_checksum(folder, name) for name in _list_hashed_files(folder))


def _list_hashed_files(folder: str) -> list[str]:
    """Return the relative paths of all files below a folder except SHA256SUMS itself.

    The lines of SHA256SUMS have this order, which must stay so that equal files give equal bytes.
    """
    return [name for name in list_files(folder) if name != NAME]


def find_checksum_faults(folder: str) -> list[str]:
    """Compare the files of a folder with its SHA256SUMS, and return a sentence for each fault.

    folder: the folder of an unpacked archive.
    A fault is a file that is changed, missing, added or listed twice, or that is a link or a
    special file.  It is also a fault if SHA256SUMS is missing or has a line of another form.
    A sentence is for example "paper/report.pdf: missing".
    """
    try:
        with open(os.path.join(folder, NAME), encoding="utf-8") as file:
            matches = [re.fullmatch(r"([0-9a-f]{64})  (.+)\n", line) for line in file]
    except FileNotFoundError:
        return [f"{NAME}: missing, so that no file can be checked"]
    except UnicodeDecodeError:
        return [f"{NAME}: changed: it is not text"]
    faults = []
    if not all(matches):
        faults.append(f"{NAME}: changed: it is not a list of checksums")
    entries = [match.groups() for match in matches if match]
    digests = {name: digest for digest, name in entries}
    for name, count in sorted(Counter(name for _, name in entries).items()):
        if count > 1:
            faults.append(f"{NAME}: changed: it lists {name} {count} times")
    files_in_folder = set(_list_hashed_files(folder))
    for name in sorted(digests.keys() | files_in_folder):
        path = os.path.join(folder, name)
        if name not in digests:
            faults.append(f"{name}: added: {NAME} does not list it")
        elif name not in files_in_folder:
            faults.append(f"{name}: missing")
        elif not stat.S_ISREG(os.lstat(path).st_mode):
            faults.append(f"{name}: changed: it is a link or a special file, not a file")
        elif hash_file(path) != digests[name]:
            faults.append(f"{name}: changed: its SHA-256 is not that of {NAME}")
    return faults
