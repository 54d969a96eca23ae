"""Tables of keys that schemas declare, and those of docs/ that stand between comments.

Usage: python scripts/schema_tables.py [--check]; with --check nothing is written, and a difference is an error.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARKED = re.compile(r"<!-- keys of (schemas/\w+\.schema\.json) -->\n.*?<!-- end -->", re.DOTALL)


def cell(text: str) -> str:
    """A text as a cell of a table, which a bar outside of code would end."""
    return re.sub(
        r"(`+).+?\1|\|", lambda match: match[0] if match[1] else "&#124;", text.replace("\n", " ")
    )


def code(text: str) -> str:
    """A text as code, in which backquotes may stand."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def allowed(schema: dict, root: dict) -> str:
    """What a schema lets through, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return allowed(root["$defs"][name], root) if name in root.get("$defs", {}) else "mapping"
    if "const" in schema:
        return code(json.dumps(schema["const"]).strip('"'))
    if "enum" in schema:
        return ", ".join(code(str(value)) for value in schema["enum"])
    if "oneOf" in schema and "type" not in schema:
        return "; or ".join(
            dict.fromkeys(allowed(one, root) for one in schema["oneOf"] if "required" not in one)
        )
    kinds = schema.get("type", "anything")
    return " or ".join(
        _kind(kind, schema, root) for kind in ([kinds] if isinstance(kinds, str) else kinds)
    )


def _kind(kind: str, schema: dict, root: dict) -> str:
    if kind in ("integer", "number"):
        low, high = schema.get("minimum"), schema.get("maximum")
        words = "integer" if kind == "integer" else "number"
        if "exclusiveMinimum" in schema:
            return f"{words} > {schema['exclusiveMinimum']}"
        if low is not None and high is not None:
            return f"{words} {low}–{high}"
        return f"{words} ≥ {low}" if low is not None else words
    if kind == "string":
        word = re.fullmatch(r"\^(\w+)\$", schema.get("pattern", ""))
        return code(word[1]) if word else "text"
    if kind == "array":
        return f"list: {allowed(schema['items'], root)}" if "items" in schema else "list"
    return {"object": "mapping", "boolean": "`true`, `false`", "null": "empty"}.get(kind, kind)


def keys(schema: dict, root: dict, prefix: str = "") -> list[tuple[str, dict, bool]]:
    """(key, its schema, whether it is required) of a mapping's schema, inner keys after the one that holds them."""
    found = []
    entries = [
        (f"{prefix}{name}", inner, name in schema.get("required", []))
        for name, inner in _properties(schema)
    ]
    for name, inner, needed in entries:
        found.append((name, inner, needed))
        for one in [inner, *inner.get("oneOf", [])]:
            if "$ref" in one:
                continue
            found += keys(one, root, f"{name}.")
            if isinstance(one.get("items"), dict):
                found += keys(one["items"], root, f"{name}[].")
    return found


def _properties(schema: dict) -> list[tuple[str, dict]]:
    """The keys of a mapping; where they are any names, NAME."""
    more = schema.get("additionalProperties")
    named = [("NAME", more)] if isinstance(more, dict) else []
    return [*schema.get("properties", {}).items(), *named]


def described(schema: dict) -> str:
    """The table of all keys that a schema describes; neighbours with one description share a row."""
    rows: list[list[str]] = []
    for key, inner, needed in keys(schema, schema):
        if "description" not in inner:
            continue
        meaning = cell(inner["description"] + (" (**required**)" if needed else ""))
        if rows and rows[-1][2] == meaning:
            rows[-1][0] += f", {code(key)}"
        else:
            rows.append([code(key), cell(allowed(inner, schema)), meaning])
    return table(["key", "value", "meaning"], rows)


def page(text: str) -> str:
    """A page with its tables as the schemas are."""

    def fresh(match: re.Match) -> str:
        return f"<!-- keys of {match[1]} -->\n{described(json.loads((ROOT / match[1]).read_text()))}\n<!-- end -->"

    return MARKED.sub(fresh, text)


if __name__ == "__main__":
    for path in sorted((ROOT / "docs").glob("*.md")):
        there = path.read_text()
        if page(there) == there:
            continue
        if sys.argv[1:] == ["--check"]:
            sys.exit(f"docs/{path.name} is not as the schemas are: run `make keys`")
        path.write_text(page(there))
