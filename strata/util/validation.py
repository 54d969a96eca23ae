"""Check data against a JSON Schema, and describe each mistake in a sentence that helps."""

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

# The time limit for matching one pattern, which a workload's author may have written.
PATTERN_SECONDS = 10
SCHEMAS = os.path.join(paths.PROJECT, "schemas")
# A mistake: its key, as names with dots between them, and a sentence.
Finding = tuple[str, str]
# The types of JSON Schema in plain English.
TYPE_NAMES = {
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
# The document that is checked, with the names that it may use of other files, for `known`.
_document: contextvars.ContextVar[Mapping[str, Any]] = contextvars.ContextVar("document")


def _known(
    validator: Any, wanted: Fields, value: object, schema: Fields
) -> Iterator[jsonschema.ValidationError]:
    """Yield an error where a value is no declared name: the keyword `known`, ``{in, what, like}``.

    in: the section of the document that declares the name, or a list of sections.
    what: the kind of thing that the name stands for, for messages.
    like: a schema that the name's declaration must fit.
    No error is yielded where the value is no text, or the document has no such section.
    """
    names = [wanted["in"]] if isinstance(wanted["in"], str) else wanted["in"]
    sections = [_document.get({}).get(name) for name in names]
    if not isinstance(value, str) or not any(isinstance(one, list | dict) for one in sections):
        return
    like = validator.evolve(schema=wanted.get("like", {}))
    declared: list[str] = []
    for section in sections:
        if isinstance(section, dict):
            declared += [name for name, entry in section.items() if like.is_valid(entry)]
        elif isinstance(section, list):
            declared += [name for name in section if like.is_valid(name)]
    declared = [name for name in declared if isinstance(name, str)]
    for _, sentence in find_unknown("", value, declared, wanted["what"]):
        yield jsonschema.ValidationError(sentence)


def _pattern(
    validator: Any, pattern: str, value: object, schema: Fields
) -> Iterator[jsonschema.ValidationError]:
    """Yield an error where a text does not match a pattern: the keyword `pattern`.

    A final `$` matches only at the very end of the text; in Python, it also matches before a line
    break there.  Matching beyond PATTERN_SECONDS is an error, too.
    """
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
    """Raise TimeoutError where the block takes longer than PATTERN_SECONDS.

    Uses SIGALRM and its timer, so there is no limit outside of the main thread.
    """

    def stop(number: int, frame: object) -> None:
        raise TimeoutError

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, PATTERN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _is_number(checker: jsonschema.TypeChecker, value: object) -> bool:
    """Return whether a value is a finite number."""
    return checker.is_type(value, "integer") or (isinstance(value, float) and math.isfinite(value))


_extend: Any = jsonschema.validators.extend
# As in draft 4, 5.0 is not an integer: commands would be given "5.0".
_types = jsonschema.Draft4Validator.TYPE_CHECKER.redefine("number", _is_number)
_Validator = _extend(
    jsonschema.Draft202012Validator, {"known": _known, "pattern": _pattern}, type_checker=_types
)
_formats = jsonschema.FormatChecker(("regex",))


@_formats.checks("ipv4-interface", ValueError)
def _is_interface(value: object) -> bool:
    """Return whether a value is an IPv4 address with a prefix length, such as 192.168.120.1/24.

    Raises ValueError for other texts, as the format checker expects.
    """
    return isinstance(value, str) and bool(ipaddress.IPv4Interface(value))


def make_validator(schema: Fields, **more: object) -> Any:
    """Return a validator for a schema, with Strata's keywords, number type and formats.

    more: further arguments for the validator's class, such as `registry`.
    """
    return _Validator(schema, format_checker=_formats, **more)


@functools.cache
def load_schema(name: str) -> Any:
    """Return the validator of schemas/NAME.schema.json, loaded once for each process.

    The schema may refer to other schemas in that folder.
    """
    schemas = {}
    for file_name in os.listdir(SCHEMAS):
        if file_name.endswith(".schema.json"):
            with open(os.path.join(SCHEMAS, file_name), encoding="utf-8") as file:
                schemas[file_name] = json.load(file)
            # With this key, another schema that refers to it would use jsonschema's own validator.
            schemas[file_name].pop("$schema", None)
    resources = []
    for file_name, content in schemas.items():
        resources.append((file_name, DRAFT202012.create_resource(content)))
    registry = referencing.Registry().with_resources(resources)
    return make_validator(schemas[f"{name}.schema.json"], registry=registry)


def find_faults(
    validator: Any, data: object, prefix: str = "", names: Mapping[str, Any] | None = None
) -> list[Finding]:
    """Return a finding for each key at which data break the schema of a validator, sorted by key.

    prefix: a text put before each key.
    names: sections that declare names for the keyword `known`, in addition to those of `data`.
    """
    before = _document.set({**(names or {}), **(data if isinstance(data, dict) else {})})
    errors = sorted(
        validator.iter_errors(data), key=lambda error: [str(part) for part in error.absolute_path]
    )
    _document.reset(before)
    sentences: dict[str, str] = {}
    for error in errors:
        for key, sentence in _sentences(error):
            # The first alone: a name that breaks its pattern is an unknown name, too.
            sentences.setdefault((prefix + key).strip("."), sentence)
    return [*sentences.items()]


def _sentences(error: Any) -> list[Finding]:
    """Convert an error of the validator to findings, whose keys begin with a dot."""
    error = best_match([error])
    key = "".join(f".{part}" for part in error.absolute_path)
    declared = error.schema.get("properties", {})
    if error.validator == "additionalProperties":
        extra = [str(name) for name in error.instance if name not in declared]
        return [
            (f"{key}.{name}", f"unknown key; {suggest_name(name, [*declared])}") for name in extra
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
    schema = error.schema
    about = schema.get("description", "")
    is_content = error.validator in OF_VALUES and error.validator not in ("type", "enum", "const")
    if is_content and about and not about.startswith("must ") and _has_type(error.instance, schema):
        return [(key, f"is {show_value(error.instance)}; expected: {about}")]
    wanted = _wanted(schema) if error.validator in OF_VALUES else ""
    return [(key, f"is {show_value(error.instance)}{wanted or f'; {error.message[:300]}'}")]


def _has_type(value: object, schema: Fields) -> bool:
    """Return whether a value has one of the types that a schema declares."""
    return "type" in schema and make_validator({"type": schema["type"]}).is_valid(value)


def show_value(value: object) -> str:
    """Return a value as messages show it: a mapping's or list's kind, or up to 100 characters."""
    if isinstance(value, dict | list):
        kind = TYPE_NAMES["object" if isinstance(value, dict) else "array"]
        return kind if value else f"an empty {kind.split()[-1]}"
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) < 100 else text[:100] + "…"


def _wanted(schema: Fields) -> str:
    """Return what a schema demands of a value, as the end of a sentence ("; must be …").

    The text is empty where the schema declares nothing.
    """
    kinds = schema.get("type", [])
    about = schema.get("description")
    default = schema.get("default")
    if about and about.startswith("must "):
        return f"; {about}"
    wanted = [TYPE_NAMES[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values:
        wanted = [json.dumps(value) for value in values]
        about = None
    elif "pattern" in schema and isinstance(default, str):
        wanted[0] += f" such as {json.dumps(default)}"
        about = None
    elif "pattern" in schema and not about:
        about = f"of the form {schema['pattern']}"
    if not wanted:
        must = about if not about or about.startswith("must ") else f"must be {about}"
        return f"; {must}" if must else ""
    alternatives = " or ".join(filter(None, (", ".join(wanted[:-1]), wanted[-1])))
    return f"; must be {alternatives} ({about})" if about else f"; must be {alternatives}"


def convert_texts(validator: Any, data: Any) -> Any:
    """Return `data` with texts replaced by the number, true, false or null that they spell.

    Values of the command line are text.  A text is replaced only where the schema refuses the text
    and accepts the value.  `data` itself is not changed.
    """
    errors = [error for error in validator.iter_errors(data) if isinstance(error.instance, str)]
    # In a list, so that the whole can be replaced, too.
    whole = [copy.deepcopy(data)] if errors else [data]
    for error in errors:
        if re.fullmatch(r"true|false|null|-?(0|[1-9][0-9]{0,39})(\.[0-9]{1,40})?", error.instance):
            value = json.loads(error.instance)
            place = [0, *error.absolute_path]
            fits = validator.evolve(schema=error.schema).is_valid(value)
            if fits and "propertyNames" not in error.absolute_schema_path:
                functools.reduce(operator.getitem, place[:-1], whole)[place[-1]] = value
    return whole[0]


def suggest_name(word: str, known: list[str]) -> str:
    """Return a hint for a message: the known name that was probably meant, or all known names."""
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return "known are " + ", ".join(sorted(known)) if known else "none is known here"


def find_unknown(key: str, name: str, known: Iterable[str], kind: str) -> list[Finding]:
    """Return a finding where a name is not among the known ones, otherwise an empty list.

    key: the place of the name in its file.  kind: what the known names stand for, for the message.
    """
    if name in known:
        return []
    return [(key, f"{show_value(name)} is not a known {kind}; {suggest_name(str(name), [*known])}")]


def raise_findings(source: str | Callable[[str], str], findings: list[Finding]) -> None:
    """Raise UserError with a line for each finding; do nothing where there is none.

    source: the name of the file, or a function that returns the name of the file that has a key.
    """
    lines = []
    for key, sentence in findings:
        file = source if isinstance(source, str) else source(key)
        lines.append(f"{file}: {' '.join(key.split())[:120] or 'the whole'}: {sentence}")
    if lines:
        raise UserError(*dict.fromkeys(lines))


def check_all(*checks: Callable[[], object]) -> None:
    """Run all checks, and raise one UserError with the lines of all checks that raise UserError."""
    lines: list[str] = []
    for check in checks:
        try:
            check()
        except UserError as error:
            lines += error.args
    if lines:
        raise UserError(*dict.fromkeys(lines))
