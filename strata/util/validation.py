"""Check data against a JSON Schema and say what is wrong in words that help."""

import contextlib
import contextvars
import copy
import difflib
import functools
import ipaddress
import json
import math
import operator
import os
import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jsonschema
import referencing
from jsonschema.exceptions import best_match
from referencing.jsonschema import DRAFT202012

from strata.util import paths
from strata.util.data_types import Fields
from strata.util.errors import UserError

# Seconds for matching one pattern, which may be a workload's author's.
PATTERN_SECONDS = 10
SCHEMAS = os.path.join(paths.PROJECT, "schemas")
Finding = tuple[str, str]
# Types of JSON Schema, in words.
KINDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a mapping",
    "array": "a list",
    "null": "empty",
}
# Keywords of JSON Schema that limit a value, as the end of "must be …".
LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "above {}",
    "exclusiveMaximum": "below {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters long",
    "maxLength": "at most {} characters long",
    "minItems": "a list of at least {}",
    "maxItems": "a list of at most {}",
    "minProperties": "a mapping of at least {}",
    "maxProperties": "a mapping of at most {}",
    "uniqueItems": "a list without duplicates",
}
# Keywords of JSON Schema that a schema's type and description explain.
OF_VALUES = ("type", "enum", "const", "pattern", "format", "oneOf", "anyOf", "not")
# What is checked, for the keyword `known`: the whole document, and the names that it may use of other files.
_document: contextvars.ContextVar[Mapping[str, Any]] = contextvars.ContextVar("document")


def _known(
    validator: Any, wanted: Fields, value: object, schema: Fields
) -> Iterator[jsonschema.ValidationError]:
    """The keyword `known`: ``{in, what, like}``.  The value must be a name in that section of the
    whole document, or in one of several, and what stands under it there as the schema `like` says."""
    sections = [wanted["in"]] if isinstance(wanted["in"], str) else wanted["in"]
    found = [
        one for name in sections if isinstance(one := _document.get({}).get(name), list | dict)
    ]
    if isinstance(value, str) and found:
        like = validator.evolve(schema=wanted.get("like", {}))
        entries = [
            pair
            for one in found
            for pair in (one.items() if isinstance(one, dict) else zip(one, one, strict=True))
        ]
        names = [name for name, entry in entries if isinstance(name, str) and like.is_valid(entry)]
        for _, words in unknown("", value, names, wanted["what"]):
            yield jsonschema.ValidationError(words)


def _pattern(
    validator: Any, pattern: str, value: object, schema: Fields
) -> Iterator[jsonschema.ValidationError]:
    """The keyword `pattern`, whose `$` is the end; Python's is one before a last line break, too."""
    if not isinstance(value, str):
        return
    try:
        with _limited():
            matches = re.search(re.sub(r"\$$", r"\\Z", pattern), value)
    except TimeoutError:
        yield jsonschema.ValidationError(
            f"matching {pattern!r} takes more than {PATTERN_SECONDS} s: write a simpler pattern",
            validator="time",
        )
        return
    if not matches:
        yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Raise TimeoutError where a pattern comes to no end; other threads than the first have no alarm."""

    def end(number: int, frame: object) -> None:
        raise TimeoutError

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, PATTERN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _is_number(checker: jsonschema.TypeChecker, value: object) -> bool:
    """Whether a value is a finite number."""
    return checker.is_type(value, "integer") or (isinstance(value, float) and math.isfinite(value))


_extend: Any = jsonschema.validators.extend
# To Draft 4 5.0 is no whole number: it would be printed as 5.0.
_types = jsonschema.Draft4Validator.TYPE_CHECKER.redefine("number", _is_number)
_Validator = _extend(
    jsonschema.Draft202012Validator, {"known": _known, "pattern": _pattern}, type_checker=_types
)
_formats = jsonschema.FormatChecker(("regex",))


@_formats.checks("ipv4-interface", ValueError)
def _is_interface(value: object) -> bool:
    """Return whether a text is an IPv4 address with the length of its network's prefix."""
    return isinstance(value, str) and bool(ipaddress.IPv4Interface(value))


def validator(schema: Fields, **more: object) -> Any:
    """The validator of a schema that is at hand."""
    return _Validator(schema, format_checker=_formats, **more)


@functools.cache
def schema(name: str) -> Any:
    """The validator of schemas/NAME.schema.json, which may refer to the others there."""
    found = {}
    for file_name in (name for name in os.listdir(SCHEMAS) if name.endswith(".schema.json")):
        with open(os.path.join(SCHEMAS, file_name), encoding="utf-8") as file:
            found[file_name] = json.load(file)
        # A schema that names its dialect would be checked by that one's validator, once another refers to it.
        found[file_name].pop("$schema", None)
    resources = [
        (file_name, DRAFT202012.create_resource(content)) for file_name, content in found.items()
    ]
    return validator(
        found[f"{name}.schema.json"], registry=referencing.Registry().with_resources(resources)
    )


def findings(
    validator: Any, data: object, prefix: str = "", names: Mapping[str, Any] | None = None
) -> list[Finding]:
    """(key, sentence) for every key at which `data` breaks the schema; `prefix` is put before each.

    names: what the keyword `known` finds beside the sections of the data, by section.
    """
    before = _document.set({**(names or {}), **(data if isinstance(data, dict) else {})})
    errors = sorted(
        validator.iter_errors(data), key=lambda error: [str(part) for part in error.absolute_path]
    )
    _document.reset(before)
    found = [
        ((prefix + key).strip("."), sentence)
        for error in errors
        for key, sentence in _sentences(error)
    ]
    # One for each key: a name that may not be is unknown, too.
    return [
        (key, sentence)
        for number, (key, sentence) in enumerate(found)
        if key not in dict(found[:number])
    ]


def _sentences(error: Any) -> list[Finding]:
    """Return (key, sentence) for each mistake that a validation error is about."""
    error = best_match([error])
    key = "".join(f".{part}" for part in error.absolute_path)
    declared = error.schema.get("properties", {})
    if error.validator == "additionalProperties":
        extra = [str(name) for name in error.instance if name not in declared]
        return [
            (f"{key}.{name}", f"unknown key; {nearest(name, list(declared))}") for name in extra
        ]
    if error.validator == "required":
        names = [name for name in error.validator_value if name not in error.instance]
        return [(f"{key}.{name}", f"missing{_wanted(declared.get(name, {}))}") for name in names]
    if "propertyNames" in error.absolute_schema_path:
        key = f"{key}.{error.instance}"
    if error.validator in ("known", "time"):
        return [(key, error.message)]
    if error.validator in LIMITS:
        limit = "be " + LIMITS[error.validator].format(error.validator_value)
        if error.validator_value == 1 and error.instance in ("", [], {}):
            limit = "not be empty"
        description = error.schema.get("description")
        about = f" ({description})" if description else ""
        return [(key, f"is {show_value(error.instance)}; must {limit}{about}")]
    wanted = _wanted(error.schema) if error.validator in OF_VALUES else ""
    return [(key, f"is {show_value(error.instance)}{wanted or f'; {error.message[:300]}'}")]


def show_value(value: object) -> str:
    """Return a value as a message shows it: at most 100 characters of a text or number."""
    if isinstance(value, dict | list):
        kind = KINDS["object" if isinstance(value, dict) else "array"]
        return kind if value else f"an empty {kind.split()[-1]}"
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) < 100 else text[:100] + "…"


def _wanted(schema: Fields) -> str:
    """Return the end of a sentence that says which values a schema accepts; may be empty."""
    kinds, about, usual = schema.get("type", []), schema.get("description"), schema.get("default")
    if about and about.startswith("must "):
        return f"; {about}"
    wanted = [KINDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    if values := schema.get("enum", [schema["const"]] if "const" in schema else []):
        wanted, about = [json.dumps(value) for value in values], None
    elif "pattern" in schema and isinstance(usual, str):
        wanted[0], about = f"{wanted[0]} such as {json.dumps(usual)}", None
    elif "pattern" in schema and not about:
        about = f"of the form {schema['pattern']}"
    if not wanted:
        return f"; must be {about}" if about else ""
    words = " or ".join(filter(None, (", ".join(wanted[:-1]), wanted[-1])))
    return f"; must be {words} ({about})" if about else f"; must be {words}"


def converted(validator: Any, data: Any) -> Any:
    """`data` with a number, true, false or null for a text that says so, where the schema takes that and not the text.

    Words of the command line are text, also where Snakemake hands them over.
    """
    texts = [error for error in validator.iter_errors(data) if isinstance(error.instance, str)]
    whole = [copy.deepcopy(data)] if texts else [data]
    for error in texts:
        if re.fullmatch(r"true|false|null|-?(0|[1-9][0-9]{0,39})(\.[0-9]{1,40})?", error.instance):
            value, place = json.loads(error.instance), [0, *error.absolute_path]
            fits = validator.evolve(schema=error.schema).is_valid(value)
            if fits and "propertyNames" not in error.absolute_schema_path:
                functools.reduce(operator.getitem, place[:-1], whole)[place[-1]] = value
    return whole[0]


def nearest(word: str, known: list[str]) -> str:
    """A hint at the known word that was probably meant, or at all of them."""
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return "known are " + ", ".join(sorted(known)) if known else "none is known here"


def unknown(key: str, name: str, known: Iterable[str], kind: str) -> list[Finding]:
    """A finding where a name is not among those that are known; `kind` says what these are."""
    return (
        []
        if name in known
        else [(key, f"{show_value(name)} is not a known {kind}; {nearest(str(name), [*known])}")]
    )


def complain(source: str | Callable[[str], str], found: list[Finding]) -> None:
    """Raise UserError with a line for each finding, if there are any; source: the file, or the file of a key."""
    named = (lambda key: source) if isinstance(source, str) else source
    lines = [
        f"{named(key)}: {' '.join(key.split())[:120] or 'the whole'}: {words}"
        for key, words in found
    ]
    if lines:
        raise UserError(*dict.fromkeys(lines))


def together(*checks: Callable[[], object]) -> None:
    """Do several checks, and raise one UserError with what all of them complain of."""
    lines: list[str] = []
    for check in checks:
        try:
            check()
        except UserError as error:
            lines += error.args
    if lines:
        raise UserError(*dict.fromkeys(lines))
