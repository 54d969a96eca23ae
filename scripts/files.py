"""Writes the tables of docs/files.md that tell of the plan and of the record, from their schemas.

Usage: python scripts/files.py [--check]; with --check nothing is written, and a difference is an error.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/files.md"


def rows(properties: dict, prefix: str = "") -> list[tuple[str, str]]:
    """(key, description) of every property that has one, inner ones after the one that holds them."""
    found = []
    for name, declared in properties.items():
        if "description" in declared:
            found.append((f"{prefix}{name}", declared["description"]))
        found += rows(declared.get("properties", {}), f"{prefix}{name}.")
    return found


def table(name: str) -> str:
    """The table of a schema; neighbours of which the same is said share a row."""
    schema = json.loads((ROOT / f"schemas/{name}.schema.json").read_text())
    lines = ["| key | value |", "|---|---|"]
    told: list[tuple[list[str], str]] = []
    for key, text in rows(schema["properties"]):
        if told and told[-1][1] == text:
            told[-1][0].append(key)
        else:
            told.append(([key], text))
    lines += [f"| {', '.join(f'`{key}`' for key in keys)} | {text} |" for keys, text in told]
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with its tables as the schemas are."""

    def fresh(match: re.Match) -> str:
        return f"<!-- from schemas/{match[1]}.schema.json -->\n{table(match[1])}\n<!-- end -->"

    return re.sub(r"<!-- from schemas/(\w+)\.schema\.json -->\n.*?<!-- end -->", fresh, text, flags=re.DOTALL)


if __name__ == "__main__":
    there = PAGE.read_text()
    if sys.argv[1:] == ["--check"]:
        if page(there) != there:
            sys.exit("docs/files.md is not as the schemas are: run `make files`")
    else:
        PAGE.write_text(page(there))
