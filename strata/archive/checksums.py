"""SHA256SUMS: a checksum for every file of an archive but this one, in the form of the tool sha256sum."""

import hashlib
import os
import re
import stat
from collections import Counter

from strata.archive.zip_file import files_below

NAME = "SHA256SUMS"


def of_file(path: str) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(folder: str) -> None:
    """Write the checksums of all files below a folder into it."""
    with open(os.path.join(folder, NAME), "w", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(
            f"{of_file(os.path.join(folder, name))}  {name}\n" for name in _others(folder)
        )


def _others(folder: str) -> list[str]:
    return [name for name in files_below(folder) if name != NAME]


def findings(folder: str) -> list[str]:
    """Every file that was changed, is missing, was added or is listed twice, a sentence each."""
    try:
        with open(os.path.join(folder, NAME), encoding="utf-8") as file:
            lines = [re.fullmatch(r"([0-9a-f]{64})  (.+)\n", line) for line in file]
    except FileNotFoundError:
        return [f"{NAME}: missing, so that no file can be checked"]
    except UnicodeDecodeError:
        return [f"{NAME}: changed: it is not text"]
    written = {line[2]: line[1] for line in lines if line}
    found = [] if all(lines) else [f"{NAME}: changed: it is not a list of checksums"]
    times = Counter(line[2] for line in lines if line)
    twice = [name for name in sorted(times) if times[name] > 1]
    found += [f"{NAME}: changed: it lists {name} {times[name]} times" for name in twice]
    there = set(_others(folder))
    for name in sorted(written.keys() | there):
        path = os.path.join(folder, name)
        if name not in written:
            found.append(f"{name}: added: {NAME} does not list it")
        elif name not in there:
            found.append(f"{name}: missing")
        elif not stat.S_ISREG(os.lstat(path).st_mode):
            found.append(f"{name}: changed: it is a link or a special file, not a file")
        elif of_file(path) != written[name]:
            found.append(f"{name}: changed: its SHA-256 is not that of {NAME}")
    return found
