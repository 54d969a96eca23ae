"""Write the tables of keys in docs/, between their marks, from the schemas that declare the keys.

Usage: python scripts/schema_tables.py [--check]
With --check, nothing is written, and a table that differs from its schema is an error.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A table in a document, with its marks; group 1 is the path of the schema.
MARKED = re.compile(r"<!-- keys of (schemas/\w+\.schema\.json) -->\n.*?<!-- end -->", re.DOTALL)


def escape_cell(text: str) -> str:
    """Return a text as a cell of a Markdown table.

    Bars outside of code are escaped, and line breaks become spaces.
    """
    # The first alternative takes code with its backquotes, which stays as it is.
    code_or_bar = re.compile(r"(`+).+?\1|\|")
    return code_or_bar.sub(
        lambda match: match[0] if match[1] else "&#124;", text.replace("\n", " ")
    )


def format_code(text: str) -> str:
    """Return a text as Markdown code; the text may contain backquotes."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def describe_values(schema: dict, root: dict) -> str:
    """Return a phrase in Markdown that describes the values that a schema accepts.

    schema: the schema of one key.
    root: the whole schema of the file, to whose definitions `schema` may refer.  A reference to
    another file counts as a mapping.
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in root.get("$defs", {}):
            return "mapping"
        return describe_values(root["$defs"][name], root)
    if "const" in schema:
        return format_code(json.dumps(schema["const"]).strip('"'))
    if "enum" in schema:
        return ", ".join(format_code(str(value)) for value in schema["enum"])
    if "oneOf" in schema and "type" not in schema:
        # Alternatives with "required" only restrict which keys occur together.
        alternatives = [choice for choice in schema["oneOf"] if "required" not in choice]
        phrases = [describe_values(choice, root) for choice in alternatives]
        return "; or ".join(dict.fromkeys(phrases))
    types = schema.get("type", "anything")
    if isinstance(types, str):
        types = [types]
    return " or ".join(_describe_type(type_name, schema, root) for type_name in types)


def _describe_type(type_name: str, schema: dict, root: dict) -> str:
    """Return a phrase in Markdown that describes the values of one type that a schema accepts.

    type_name: the type, such as "integer".
    schema: the schema of one key.
    root: the whole schema of the file, to whose definitions `schema` may refer.
    Returns for example "integer 1–100" or "list: text".
    """
    if type_name in ("integer", "number"):
        low, high = schema.get("minimum"), schema.get("maximum")
        text = "integer" if type_name == "integer" else "number"
        if "exclusiveMinimum" in schema:
            return f"{text} > {schema['exclusiveMinimum']}"
        if low is not None and high is not None:
            return f"{text} {low}–{high}"
        return f"{text} ≥ {low}" if low is not None else text
    if type_name == "string":
        # A pattern that is only a word accepts nothing but this word.
        word = re.fullmatch(r"\^(\w+)\$", schema.get("pattern", ""))
        return format_code(word[1]) if word else "text"
    if type_name == "array":
        return f"list: {describe_values(schema['items'], root)}" if "items" in schema else "list"
    phrases = {"object": "mapping", "boolean": "`true`, `false`", "null": "empty"}
    return phrases.get(type_name, type_name)


def list_nested_keys(schema: dict, prefix: str = "") -> list[tuple[str, dict, bool]]:
    """Return (key, schema, is_required) for each key of a mapping and of the mappings in it.

    Inner keys follow their outer key, and begin with it and a period, such as ``vm.cpus``; keys of
    a list's items begin with the key of the list and ``[].``.
    schema: the schema of the mapping.
    prefix: the key of the mapping with a period, such as ``vm.``; "" for the whole schema.
    """
    rows = []
    for name, inner in _list_properties(schema):
        key = f"{prefix}{name}"
        rows.append((key, inner, name in schema.get("required", [])))
        # Alternatives may be mappings with keys of their own.
        for choice in [inner, *inner.get("oneOf", [])]:
            # Keys of a definition have a table of their own.
            if "$ref" in choice:
                continue
            rows += list_nested_keys(choice, f"{key}.")
            if isinstance(choice.get("items"), dict):
                rows += list_nested_keys(choice["items"], f"{key}[].")
    return rows


def _list_properties(schema: dict) -> list[tuple[str, dict]]:
    """Return (key, schema) for each key of a mapping's schema; the key NAME stands for any name."""
    additional = schema.get("additionalProperties")
    any_name = [("NAME", additional)] if isinstance(additional, dict) else []
    return [*schema.get("properties", {}).items(), *any_name]


def format_keys(schema: dict) -> str:
    """Return a Markdown table of the keys in a schema that have a description.

    schema: the whole schema of a file.
    Neighbouring keys with the same description share a row, which shows the values of the first.
    """
    rows: list[list[str]] = []
    for key, inner, is_required in list_nested_keys(schema):
        if "description" not in inner:
            continue
        note = " (**required**)" if is_required else ""
        meaning = escape_cell(inner["description"] + note)
        if rows and rows[-1][2] == meaning:
            rows[-1][0] += f", {format_code(key)}"
        else:
            rows.append([format_code(key), escape_cell(describe_values(inner, schema)), meaning])
    lines = [["key", "value", "meaning"], ["---"] * 3, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def update_tables(text: str) -> str:
    """Return the text of a document, in which each marked table is made from its present schema.

    A table is between the marks of MARKED; the rest of the text does not change.
    """

    def make_table(match: re.Match) -> str:
        """Return the new table of a match of MARKED, whose group 1 is the path of the schema."""
        keys = format_keys(json.loads((ROOT / match[1]).read_text()))
        return f"<!-- keys of {match[1]} -->\n{keys}\n<!-- end -->"

    return MARKED.sub(make_table, text)


if __name__ == "__main__":
    for path in sorted((ROOT / "docs").glob("*.md")):
        text = path.read_text()
        updated = update_tables(text)
        if updated == text:
            continue
        if sys.argv[1:] == ["--check"]:
            sys.exit(f"docs/{path.name} differs from the schemas: run `make keys`")
        path.write_text(updated)
