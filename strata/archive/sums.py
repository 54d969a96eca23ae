"""SHA256SUMS: a checksum for every file of an archive but this one, in the form of the tool sha256sum."""

import os
import re

from strata.archive.container import files_below
from strata.base import places
from strata.base.digest import of_file as digest

NAME = "SHA256SUMS"


def _text(found: dict[str, str]) -> str:
    return "".join(f"{found[name]}  {name}\n" for name in sorted(found, key=lambda name: name.encode()))


def write(folder: str) -> None:
    """Write the checksums of all files below a folder into it."""
    found = {name: digest(os.path.join(folder, name)) for name in files_below(folder) if name != NAME}
    with open(os.path.join(folder, NAME), "w") as file:
        file.write(_text(found))


def read(folder: str) -> tuple[dict[str, str], list[str]]:
    """Name → checksum as they are written down, and what is wrong with the list, a sentence each."""
    try:
        with open(os.path.join(folder, NAME), newline="", encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return {}, [f"{NAME}: missing, so that no file can be checked"]
    except UnicodeDecodeError:
        return {}, [f"{NAME}: changed: it is not text"]
    lines = [re.fullmatch(r"([0-9a-f]{64})  (.+)", line) for line in text.split("\n")]
    found = {match[2]: match[1] for match in lines if match}
    if _text(found) != text:
        return found, [f"{NAME}: changed: it is not the sorted list that an archive holds"]
    return found, []


def findings(folder: str) -> list[str]:
    """Every file that was changed, is missing or was added, a sentence each."""
    written, found = read(folder)
    there = [name for name in files_below(folder) if name != NAME]
    for name in sorted(written.keys() | set(there)):
        if name not in written:
            found.append(f"{name}: added: {NAME} does not list it")
        elif name not in there:
            found.append(f"{name}: missing")
        elif digest(os.path.join(folder, name)) != written[name]:
            found.append(f"{name}: changed: its SHA-256 is not that of {NAME}")
    return found


def write_tables(folder: str, names: list[str]) -> None:
    """Write the checksums of tables, by their names below a folder, as the rule that makes them does."""
    with open(os.path.join(folder, places.SUMS), "w") as file:
        file.writelines(f"{digest(os.path.join(folder, name))}  {name}\n" for name in names)


def of_tables(folder: str, names: list[str]) -> list[str]:
    """Every table that is missing, or not the one that was made, a sentence each."""
    try:
        with open(os.path.join(folder, places.SUMS), encoding="utf-8") as file:
            written = {name: found for found, _, name in (line.rstrip("\n").partition("  ") for line in file)}
    except (OSError, ValueError):
        return [f"{places.SUMS}: missing, so that no table can be checked"]
    paths = {name: os.path.join(folder, name) for name in names}
    found = [f"{name}: missing" for name, path in paths.items() if not os.path.isfile(path)]
    return found + [
        f"{name}: changed: it is not the table that was made, whose SHA-256 stands in {places.SUMS}"
        for name, path in paths.items()
        if os.path.isfile(path) and written.get(name) != digest(path)
    ]
