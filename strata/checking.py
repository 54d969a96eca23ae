"""Check data against a JSON Schema and say what is wrong in words that help."""

import difflib
import functools
import json
import os
from typing import Any, cast

import jsonschema
import yaml

from strata.errors import UserError

SCHEMAS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "schemas")
KINDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "empty",
}


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which a key that stands twice is an error, not the later value."""


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode, deep: bool = False) -> dict:
    seen = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise yaml.MarkedYAMLError(
                problem=f"the key {key!r} is not text: put it in quotes", problem_mark=key_node.start_mark
            )
        if key in seen:
            raise yaml.MarkedYAMLError(
                problem=f"the key '{key}' stands twice: keep one", problem_mark=key_node.start_mark
            )
        seen.add(key)
    return loader.construct_mapping(node, deep)


_UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_yaml(path: str) -> dict:
    """The mapping in a YAML file.  Raises UserError with file and line."""
    try:
        with open(path, encoding="utf-8") as file:
            data = yaml.load(file, Loader=_UniqueKeys)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"
        raise UserError(f"{path}: {where}: {error.problem or 'not valid YAML'}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UserError(f"{path}: not valid YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(data, dict):
        raise UserError(f"{path}: must be a mapping of keys to values, not {describe(data)}")
    return data


def describe(value: object) -> str:
    """A value as a person would name it."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + '…"'


def nearest(word: str, known: list[str]) -> str:
    """A hint at the known word that was probably meant, or at all of them."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    return "known are " + ", ".join(sorted(known)) if known else "none is known here"


def _kinds(types: str | list[str]) -> str:
    return " or ".join(KINDS[kind] for kind in ([types] if isinstance(types, str) else types))


def _sentence(error: jsonschema.ValidationError) -> list[tuple[str, str]]:
    """(key, what is wrong and what would be right) for one finding of the schema."""
    key = ".".join(str(part) for part in error.absolute_path)
    limit, declared, value = cast(Any, error.validator_value), cast(dict, error.schema), cast(Any, error.instance)
    match error.validator:
        case "additionalProperties":
            known = list(declared.get("properties", {}))
            extra = [name for name in value if name not in known]
            return [(f"{key}.{name}".lstrip("."), f"unknown key; {nearest(str(name), known)}") for name in extra]
        case "required":
            missing = [name for name in limit if name not in value]
            hint = declared.get("properties", {})
            return [
                (f"{key}.{name}".lstrip("."), f"missing; it is {hint.get(name, {}).get('description', 'required')}")
                for name in missing
            ]
        case "enum":
            choice = ", ".join(str(item) for item in limit)
            return [(key, f"is {describe(value)}; must be one of {choice}")]
        case "type":
            return [(key, f"is {describe(value)}; must be {_kinds(limit)}")]
        case "minimum" | "maximum" | "exclusiveMinimum":
            word = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "more than"}[error.validator]
            return [(key, f"is {describe(value)}; must be {word} {limit}")]
        case "minItems" | "minProperties" | "minLength":
            return [(key, f"is {'empty' if not value else 'too short'}; must have at least {limit} of its kind")]
        case "maxItems" | "maxLength":
            return [(key, f"is too long; must have at most {limit}")]
        case "uniqueItems":
            return [(key, f"is {describe(value)} that names something twice; each may stand once")]
        case "pattern":
            name = f"{key}.{value}" if "propertyNames" in error.absolute_schema_path else key
            return [(name.lstrip("."), f"is {describe(value)}; must match {limit}")]
        case "oneOf":
            return [(key, declared.get("description", error.message))]
        case "propertyNames":
            return [finding for inner in error.context for finding in _sentence(inner)]
        case _:
            return [(key, error.message)]


@functools.cache
def schema(name: str) -> jsonschema.Draft202012Validator:
    """The validator of schemas/NAME.schema.json."""
    with open(os.path.join(SCHEMAS, f"{name}.schema.json")) as file:
        return jsonschema.Draft202012Validator(json.load(file))


def findings(validator: jsonschema.Draft202012Validator, data: object, prefix: str = "") -> list[tuple[str, str]]:
    """Every (key, sentence) in which `data` breaks the schema; `prefix` is put before each key."""
    errors = sorted(validator.iter_errors(data), key=lambda error: [str(part) for part in error.absolute_path])
    found = [finding for error in errors for finding in _sentence(error)]
    return [(f"{prefix}.{key}".strip("."), sentence) for key, sentence in found]


def complain(source: str, found: list[tuple[str, str]]) -> None:
    """Raise UserError with a line for each finding, if there are any."""
    if found:
        unique = dict.fromkeys(f"{source}: {key or 'the whole'}: {sentence}" for key, sentence in found)
        raise UserError("\n".join(unique))
