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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
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
# The texts that convert_text_values() replaces: JSON's true, false, null, and numbers, whose length
# is limited.
SPELLED_VALUE = re.compile(r"true|false|null|-?(0|[1-9][0-9]{0,39})(\.[0-9]{1,40})?")
# The document that is checked, with the names that it may use of other files, for `known`.
_document: contextvars.ContextVar[Mapping[str, Any]] = contextvars.ContextVar("document")


def _check_known_name(
    validator: Any, keyword: Fields, value: object, schema: Fields
) -> Iterator[jsonschema.ValidationError]:
    """Yield an error if a value is not a declared name: the keyword `known` of Strata's schemas.

    The signature is that of jsonschema's keywords.
    keyword: ``{in, what, like}``.  `in`: the section of the document that declares names, or a list
    of sections.  `what`: the kind of thing that a name denotes, for messages.  `like`, optional: a
    schema that the name's declaration must fit.
    :func:`find_schema_faults` sets the document.  No error is yielded if the value is not text, or
    the document has no such section.
    """
    if not isinstance(value, str):
        return
    section_names = [keyword["in"]] if isinstance(keyword["in"], str) else keyword["in"]
    sections = [_document.get({}).get(name) for name in section_names]
    if not any(isinstance(section, list | dict) for section in sections):
        return
    declaration_validator = validator.evolve(schema=keyword.get("like", {}))
    declared: list[str] = []
    for section in sections:
        # In a mapping a declaration is the value of its name, in a list the name itself.
        declarations: Iterable[tuple[Any, Any]] = ()
        if isinstance(section, dict):
            declarations = section.items()
        elif isinstance(section, list):
            declarations = [(name, name) for name in section]
        for name, declaration in declarations:
            if isinstance(name, str) and declaration_validator.is_valid(declaration):
                declared.append(name)
    for _, sentence in find_unknown_name("", value, declared, keyword["what"]):
        yield jsonschema.ValidationError(sentence)


def _check_pattern(
    validator: Any, pattern: str, value: object, schema: Fields
) -> Iterator[jsonschema.ValidationError]:
    """Yield an error if a text does not match a pattern: the keyword `pattern`.

    It replaces jsonschema's keyword, and has the signature of jsonschema's keywords.
    A final `$` matches only at the very end of the text; in Python, it also matches before a line
    break there.  Matching beyond PATTERN_SECONDS is an error, too.
    """
    if not isinstance(value, str):
        return
    try:
        with _limit_matching_time():
            matches = re.search(re.sub(r"\$$", r"\\Z", pattern), value)
    except TimeoutError:
        yield jsonschema.ValidationError(
            f"matching {pattern!r} takes more than {PATTERN_SECONDS} s: write a simpler pattern",
            # _describe_error() shows the message of this validator unchanged.
            validator="time",
        )
        return
    if not matches:
        yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")


@contextlib.contextmanager
def _limit_matching_time() -> Iterator[None]:
    """Raise TimeoutError if the `with` block takes longer than PATTERN_SECONDS.

    Uses SIGALRM and its timer, which only the main thread may set: in other threads nothing is
    limited.  A timer that the caller had set is lost.
    """

    def raise_timeout(number: int, frame: object) -> None:
        """Raise TimeoutError: the handler of SIGALRM."""
        raise TimeoutError

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier_handler = signal.signal(signal.SIGALRM, raise_timeout)
    signal.setitimer(signal.ITIMER_REAL, PATTERN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier_handler)


def _is_number(checker: jsonschema.TypeChecker, value: object) -> bool:
    """Return whether a value is a finite number: JSON has no other numbers.

    checker: jsonschema's, which decides what an integer is.
    """
    return checker.is_type(value, "integer") or (isinstance(value, float) and math.isfinite(value))


_extend: Any = jsonschema.validators.extend
# As in draft 4, 5.0 is not an integer: commands would be given "5.0".
_type_checker = jsonschema.Draft4Validator.TYPE_CHECKER.redefine("number", _is_number)
_Validator = _extend(
    jsonschema.Draft202012Validator,
    {"known": _check_known_name, "pattern": _check_pattern},
    type_checker=_type_checker,
)
_format_checker = jsonschema.FormatChecker(("regex",))


@_format_checker.checks("ipv4-interface", ValueError)
def _is_ipv4_interface(value: object) -> bool:
    """Return whether a value is an IPv4 address with a prefix length, such as 192.168.120.1/24.

    Raises ValueError for other texts, as the format checker expects.
    """
    return isinstance(value, str) and bool(ipaddress.IPv4Interface(value))


def build_validator(schema: Fields, **options: object) -> Any:
    """Return a validator for a schema, with Strata's keywords, number type and formats.

    options: further arguments for the validator's class, such as `registry`.
    """
    return _Validator(schema, format_checker=_format_checker, **options)


@functools.cache
def load_schema(name: str) -> Any:
    """Return the validator of schemas/NAME.schema.json, loaded once for each process.

    The schema may refer to other schemas in that folder.  All callers share the validator: do not
    change its schema.  Raises KeyError if there is no such schema.
    """
    schemas = {}
    for file_name in os.listdir(SCHEMAS):
        if file_name.endswith(".schema.json"):
            with open(os.path.join(SCHEMAS, file_name), encoding="utf-8") as file:
                schemas[file_name] = json.load(file)
            # This key would make jsonschema check references to the schema by its own validator.
            schemas[file_name].pop("$schema", None)
    resources = []
    for file_name, content in schemas.items():
        resources.append((file_name, DRAFT202012.create_resource(content)))
    registry = referencing.Registry().with_resources(resources)
    return build_validator(schemas[f"{name}.schema.json"], registry=registry)


def find_schema_faults(
    validator: Any, data: object, prefix: str = "", names: Mapping[str, Any] | None = None
) -> list[Finding]:
    """Return a finding for each key at which data break the schema of a validator, sorted by key.

    The list is empty if the data are valid; :func:`raise_for_findings` turns it into an error.
    validator: the result of :func:`build_validator` or :func:`load_schema`.
    prefix: a text put before each key.
    names: sections that declare names for the keyword `known`, in addition to those of `data`.
    """
    sections = data if isinstance(data, dict) else {}
    token = _document.set({**(names or {}), **sections})
    errors = sorted(
        validator.iter_errors(data), key=lambda error: [str(part) for part in error.absolute_path]
    )
    _document.reset(token)
    sentences: dict[str, str] = {}
    for error in errors:
        for key, sentence in _describe_error(error):
            # Only a key's first error is kept: a name that breaks its pattern is unknown, too.
            sentences.setdefault((prefix + key).strip("."), sentence)
    return [*sentences.items()]


def _describe_error(error: Any) -> list[Finding]:
    """Convert an error of the validator to findings, whose keys begin with a dot.

    An error about unknown or missing keys gives a finding for each of them.
    """
    error = best_match([error])
    key = "".join(f".{part}" for part in error.absolute_path)
    declared = error.schema.get("properties", {})
    if error.validator == "additionalProperties":
        unknown = [str(name) for name in error.instance if name not in declared]
        return [
            (f"{key}.{name}", f"unknown key; {suggest_name(name, [*declared])}") for name in unknown
        ]
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return [
            (f"{key}.{name}", f"missing{_describe_demand(declared.get(name, {}))}")
            for name in missing
        ]
    # An error about the name of a key: the name is the error's value, and not in its path.
    if "propertyNames" in error.absolute_schema_path:
        key = f"{key}.{error.instance}"
    if error.validator in ("known", "time"):
        return [(key, error.message)]
    if error.validator in LIMITS:
        limit = "be " + LIMITS[error.validator].format(error.validator_value)
        if error.validator_value == 1 and error.instance in ("", [], {}):
            limit = "not be empty"
        description = error.schema.get("description")
        note = f" ({description})" if description else ""
        return [(key, f"is {describe_value(error.instance)}; must {limit}{note}")]
    schema = error.schema
    description = schema.get("description", "")
    is_content = error.validator in OF_VALUES and error.validator not in ("type", "enum", "const")
    is_noun = description and not description.startswith("must ")
    type_validator = build_validator({"type": schema.get("type", [])})
    if is_content and is_noun and type_validator.is_valid(error.instance):
        # The value has the right type: its content is wrong, which the description explains.
        return [(key, f"is {describe_value(error.instance)}; expected: {description}")]
    demand = _describe_demand(schema) if error.validator in OF_VALUES else ""
    return [(key, f"is {describe_value(error.instance)}{demand or f'; {error.message[:300]}'}")]


def describe_value(value: object) -> str:
    """Return a value as messages show it: the kind of a mapping or list; otherwise its JSON text.

    The text is cut after 100 characters, so that the sentence around it stays readable.
    """
    if isinstance(value, dict | list):
        kind = TYPE_NAMES["object" if isinstance(value, dict) else "array"]
        return kind if value else f"an empty {kind.split()[-1]}"
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) < 100 else text[:100] + "…"


def _describe_demand(schema: Fields) -> str:
    """Return what a schema demands of a value, as the end of a sentence ("; must be …").

    A description that begins with "must " is the whole demand; any other is added in parentheses.
    The text is empty if the schema declares nothing.
    """
    kinds = schema.get("type", [])
    description = schema.get("description")
    default = schema.get("default")
    if description and description.startswith("must "):
        return f"; {description}"
    alternatives = [TYPE_NAMES[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values:
        alternatives = [json.dumps(value) for value in values]
        description = None
    elif "pattern" in schema and isinstance(default, str):
        alternatives[0] += f" such as {json.dumps(default)}"
        description = None
    elif "pattern" in schema and not description:
        description = f"of the form {schema['pattern']}"
    if not alternatives:
        return f"; must be {description}" if description else ""
    *first_alternatives, last = alternatives
    demand = f"{', '.join(first_alternatives)} or {last}" if first_alternatives else last
    return f"; must be {demand} ({description})" if description else f"; must be {demand}"


def convert_text_values(validator: Any, data: Any) -> Any:
    """Return data with texts replaced by the number, true, false or null that they spell.

    Values of the command line are text.  A text is replaced only if the schema refuses the text
    and accepts the value.
    validator: the result of :func:`build_validator` or :func:`load_schema`.
    data: what a configuration holds; it is not changed.
    """
    errors = [error for error in validator.iter_errors(data) if isinstance(error.instance, str)]
    converted = copy.deepcopy(data) if errors else data
    for error in errors:
        # A key stays text: JSON has no other keys.
        is_key = "propertyNames" in error.absolute_schema_path
        if is_key or not SPELLED_VALUE.fullmatch(error.instance):
            continue
        value = json.loads(error.instance)
        if not validator.evolve(schema=error.schema).is_valid(value):
            continue
        path = [*error.absolute_path]
        if path:
            container = functools.reduce(operator.getitem, path[:-1], converted)
            container[path[-1]] = value
        else:
            converted = value
    return converted


def suggest_name(unknown_name: str, known: list[str]) -> str:
    """Return a hint for a message: the known name that was probably meant, or all known names.

    The hint is a clause for the end of the message, without a period.
    """
    similar_names = difflib.get_close_matches(unknown_name, known, n=1)
    if similar_names:
        return f"did you mean '{similar_names[0]}'?"
    return "known are " + ", ".join(sorted(known)) if known else "none is known here"


def find_unknown_name(key: str, name: str, known: Collection[str], kind: str) -> list[Finding]:
    """Return a finding if a name is not among the known names, otherwise an empty list.

    key: the key at which the name is in its file.
    kind: the kind of thing that the known names stand for, for the message.
    """
    if name in known:
        return []
    return [
        (key, f"{describe_value(name)} is not a known {kind}; {suggest_name(str(name), [*known])}")
    ]


def raise_for_findings(source: str | Callable[[str], str], findings: list[Finding]) -> None:
    """Raise UserError with a line for each finding; do nothing if there is none.

    Equal lines are written once.
    source: the name of the file, or a function that returns the name of the file that has a key.
    A finding whose key is empty is about the whole file.
    """
    lines = []
    for key, sentence in findings:
        file = source if isinstance(source, str) else source(key)
        # A key may be any text of the file: it is shown in one line of limited length.
        shown_key = " ".join(key.split())[:120] or "the whole"
        lines.append(f"{file}: {shown_key}: {sentence}")
    if lines:
        raise UserError(*dict.fromkeys(lines))


def run_all_checks(*checks: Callable[[], object]) -> None:
    """Run all checks, and raise one UserError with the lines of all checks that raise UserError.

    The checks' return values are ignored.  No check may rely on an earlier one, which may have
    failed.  Equal lines are written once.  Any other exception is raised at once.
    """
    lines: list[str] = []
    for check in checks:
        try:
            check()
        except UserError as error:
            lines += error.args
    if lines:
        raise UserError(*dict.fromkeys(lines))
