"""Check data against a JSON Schema and say what is wrong in words that help."""

import contextlib
import copy
import difflib
import functools
import json
import math
import operator
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import jsonschema
import referencing

from strata.base import places, yaml_file
from strata.base.errors import UserError

SCHEMAS = os.path.join(places.PROJECT, "schemas")
KINDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "empty",
}
# Up to here every whole number is exact as a number of JSON and of R.
MAX_NUMBER = 2**53
MAX_TEXT = 10_000
# Control characters, halves of characters, what stands for none, what breaks a line, and what is not seen.
UNREADABLE = {"Cc", "Cs", "Cn", "Zl", "Zp", "Cf"}
# Letters and signs that are not seen, and spaces that are not told from one another.
BLANK = "\u034f\u115f\u1160\u2800\u3164\uffa0" + "".join(map(chr, [0x1680, *range(0x2000, 0x200B), 0x205F, 0x3000]))
# Marks that turn the order in which characters are shown.
TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def _matches(validator: Any, pattern: str, value: object, schema: dict) -> Iterator[jsonschema.ValidationError]:
    """The keyword `pattern`, for which the end of the text is its end, and not the newline before it."""
    whole = re.sub(r"(?<!\\)\$$", r"\\Z", pattern)
    if isinstance(value, str) and not re.search(whole, value):
        yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")


def _is_whole(checker: object, value: object) -> bool:
    """Whether a value is a whole number as it is written: 5.0 is none, since it would be printed as 5.0."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(checker: object, value: object) -> bool:
    """Whether a value is a number with which one can reckon: infinity is none, and what is no number neither."""
    return _is_whole(checker, value) or (isinstance(value, float) and math.isfinite(value))


Validator: Any = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    {"pattern": _matches},
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": _is_whole, "number": _is_number}
    ),
)


def read_yaml(path: str) -> dict:
    """The mapping in a YAML file, as of :mod:`strata.base.yaml_file`.  Raises UserError with file, line and key."""
    data = yaml_file.read(path)
    if not isinstance(data, dict):
        raise UserError(f"{path}: must be a mapping of keys to values, not {describe(data)}")
    return data


def read_json_words(source: str, text: str) -> dict:
    """The JSON object in a word of the command line.  Raises UserError with what is wrong in it."""

    def constant(name: str) -> None:
        raise ValueError(f"{name} is no finite number")

    def once(pairs: list[tuple[str, Any]]) -> dict:
        for number, (key, _) in enumerate(pairs):
            if key in dict(pairs[:number]):
                raise ValueError(f"the key '{key}' stands twice: keep one")
        return dict(pairs)

    try:
        data = json.loads(text, parse_constant=constant, object_pairs_hook=once)
    except RecursionError:
        raise UserError(f"{source}: is not JSON: nested too deeply") from None
    except ValueError as error:
        raise UserError(f"{source}: is not JSON: {yaml_file.legible(str(error), 200)}") from None
    if not isinstance(data, dict):
        raise UserError(f"{source}: must be a JSON object, not {describe(data)}")
    return data


def plain(data: object, lines: bool = False) -> list[tuple[str, str]]:
    """Findings about values that nothing here can mean, whatever their key: (key, sentence).

    Texts must be printable (`lines` allows line breaks and tabs), numbers finite and small enough to be exact in
    JSON and R, keys text.  What holds itself or unfolds to very much (by aliases) is a finding by itself.
    """
    if not _is_bounded(data):
        most = f"{yaml_file.MAX_DEPTH} levels, or unfolds to more than {yaml_file.MAX_NODES} values"
        return [("", f"is nested deeper than {most}, maybe by its aliases: write out what is meant")]
    found = []

    def visit(key: str, value: object) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                where = f"{key}.{name}".lstrip(".")
                if not isinstance(name, str):
                    found.append((where, f"the key {describe(name)} is not text: put it in quotes"))
                elif sentence := _unreadable(name, False):
                    found.append((where, f"its name {sentence}"))
                else:
                    visit(where, inner)
        elif isinstance(value, list):
            for number, inner in enumerate(value):
                visit(f"{key}.{number}".lstrip("."), inner)
        elif sentence := _odd(value, lines):
            found.append((key, sentence))

    visit("", data)
    return found


def _is_bounded(data: object) -> bool:
    """Whether data end within a depth and a number of values, also where they hold themselves."""
    left = yaml_file.MAX_NODES
    pending = [(data, 0)]
    while pending:
        value, depth = pending.pop()
        left -= 1
        if depth > yaml_file.MAX_DEPTH or left < 0:
            return False
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
        pending += [(item, depth + 1) for item in inner]
    return True


def _odd(value: object, lines: bool) -> str | None:
    """Why a single value can mean nothing here; None where it can."""
    if isinstance(value, str):
        return _unreadable(value, lines)
    if isinstance(value, float) and not math.isfinite(value):
        return f"is {value}; must be a finite number"
    if isinstance(value, int | float) and abs(value) > MAX_NUMBER:
        return f"is {describe(value)}; must be at most {MAX_NUMBER}, up to which numbers are exact"
    if value is None or isinstance(value, bool | int | float):
        return None
    return f"is a {type(value).__name__}; must be text, a number, true or false, a list or a mapping"


def _unreadable(text: str, lines: bool) -> str | None:
    """Why a text cannot be shown and read as it is; None where it can."""
    if len(text) > MAX_TEXT:
        return f"has {len(text)} characters; must have at most {MAX_TEXT}"
    for character in text:
        if character in TURNING:
            return f"holds the character U+{ord(character):04X}, which turns the order of the others; remove it"
        unreadable = unicodedata.category(character) in UNREADABLE or character in BLANK
        if unreadable and not (lines and character in "\n\t"):
            return f"holds the character U+{ord(character):04X}, which cannot be shown; remove it"
    return None


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
    if isinstance(value, int) and abs(value) > MAX_NUMBER:
        return f"a number of about {math.log10(abs(value)):.0f} digits"
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
            choice = ", ".join("empty" if item is None else str(item) for item in limit)
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
            meant = f" ({declared['description']})" if "description" in declared else ""
            return [(name.lstrip("."), f"is {describe(value)}; must match {limit}{meant}")]
        case "const":
            said = declared.get("description", "")
            return [(key, f"is {describe(value)}; {said if said.startswith('must') else f'must be {describe(limit)}'}")]
        case "oneOf":
            return _of_choice(error) or [(key, declared.get("description", error.message))]
        case "propertyNames":
            return [finding for inner in error.context for finding in _sentence(inner)]
        case _:
            return [(key, error.message)]


def _of_choice(error: jsonschema.ValidationError) -> list[tuple[str, str]]:
    """What is wrong with a value of which the kind fits one of several schemas alone; none where it fits no one."""
    meant: dict[Any, list[jsonschema.ValidationError]] = {}
    for inner in error.context:
        meant.setdefault(inner.schema_path[0], []).append(inner)
    # Where the value itself does not fit, another one was meant.
    of_kind = [errors for errors in meant.values() if all(inner.path and inner.validator for inner in errors)]
    return [finding for inner in of_kind[0] for finding in _sentence(inner)] if len(of_kind) == 1 else []


@functools.cache
def schema(name: str) -> Any:
    """The validator of schemas/NAME.schema.json, which may refer to the others there."""
    others = [other for other in sorted(os.listdir(SCHEMAS)) if other.endswith(".schema.json")]
    known = referencing.Registry().with_resources(
        (other, referencing.Resource.from_contents(_read_schema(other))) for other in others
    )
    return Validator(_read_schema(f"{name}.schema.json"), registry=known)


def _read_schema(file_name: str) -> dict:
    with open(os.path.join(SCHEMAS, file_name), encoding="utf-8") as file:
        return json.load(file)


def findings(validator: Any, data: object, prefix: str = "") -> list[tuple[str, str]]:
    """Every (key, sentence) in which `data` breaks the schema; `prefix` is put before each key."""
    return _told(validator.iter_errors(data), prefix)


def _told(errors: Iterable[Any], prefix: str = "") -> list[tuple[str, str]]:
    in_order = sorted(errors, key=lambda error: [str(part) for part in error.absolute_path])
    found = [finding for error in in_order for finding in _sentence(error)]
    return [(f"{prefix}.{key}".strip("."), sentence) for key, sentence in found]


def examined(validator: Any, data: dict) -> tuple[list[tuple[str, str]], dict]:
    """The :func:`findings` of `data`, and what is :func:`fitting` of it: looked through once where all is good."""
    errors = list(validator.iter_errors(data))
    return _told(errors), fitting(validator, data, errors)


def fitting(validator: Any, data: dict, errors: list | None = None) -> dict:
    """A copy of `data` without what breaks the schema, so that what is left can be looked at further.

    What lacks something goes too, but for the whole; a mapping in a list leaves an empty one in its place.
    `errors` are those of `data`, where they are known.
    """
    rest = copy.deepcopy(data)
    errors = list(validator.iter_errors(data)) if errors is None else errors
    while errors:
        before = copy.deepcopy(rest)
        for error in errors:
            path = list(error.absolute_path)
            gone = [path]
            if error.validator == "additionalProperties":
                gone = [[*path, name] for name in error.instance if name not in error.schema.get("properties", {})]
            elif "propertyNames" in error.absolute_schema_path:
                gone = [[*path, error.instance]]
            for place in gone:
                with contextlib.suppress(LookupError, TypeError):
                    _remove(rest, place, error)
        # What lost a part that it needs does not fit any more.
        errors = [] if rest == before else list(validator.iter_errors(copy.deepcopy(rest)))
    return rest


def _remove(data: Any, place: list, error: Any) -> None:
    """Take out of nested data what an error is about."""
    of_kind = error.validator != "type"
    while place:
        around = functools.reduce(operator.getitem, place[:-1], data)
        if isinstance(around, dict):
            del around[place[-1]]
            return
        # A list keeps the places of its mappings; without a text, say, it has lost its meaning.
        if isinstance(around[place[-1]], dict) if of_kind else error.validator_value == "object":
            around[place[-1]] = {}
            return
        place, of_kind = place[:-1], True


def lines(source: str, found: list[tuple[str, str]]) -> list[str]:
    """A line for each finding."""
    pairs = ((yaml_file.legible(key, 120) or "the whole", yaml_file.legible(sentence, 400)) for key, sentence in found)
    return list(dict.fromkeys(f"{source}: {key}: {sentence}" for key, sentence in pairs))


def together(*checks: Callable[[], object]) -> None:
    """Do several checks, and raise one UserError with what all of them complain of."""
    complaints: dict[str, None] = {}
    for check in checks:
        try:
            check()
        except UserError as error:
            complaints |= dict.fromkeys(str(error).splitlines())
    if complaints:
        raise UserError("\n".join(complaints))


def complain(source: str, found: list[tuple[str, str]]) -> None:
    """Raise UserError with a line for each finding, if there are any."""
    if found:
        raise UserError("\n".join(lines(source, found)))
