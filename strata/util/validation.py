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

    jsonschema calls this function, and so decides its parameters; `schema` is not used.
    validator: the validator that found the keyword.
    keyword: ``{in, what, like}``.  `in`: the section of the document that declares names, or a list
    of sections.  `what`: the kind of thing that a name denotes, for messages.  `like`, optional: a
    schema that the name's declaration must fit.
    value: the value in the document.
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
    declared_names: list[str] = []
    for section in sections:
        declarations: Iterable[tuple[Any, Any]] = ()
        if isinstance(section, dict):
            declarations = section.items()
        elif isinstance(section, list):
            # A list declares only names: each is its own declaration.
            declarations = zip(section, section, strict=True)
        for name, declaration in declarations:
            if isinstance(name, str) and declaration_validator.is_valid(declaration):
                declared_names.append(name)
    for _, sentence in find_unknown_name("", value, declared_names, keyword["what"]):
        yield jsonschema.ValidationError(sentence)


def _check_pattern(
    validator: Any, pattern: str, value: object, schema: Fields
) -> Iterator[jsonschema.ValidationError]:
    """Yield an error if a text does not match a pattern: the keyword `pattern`.

    jsonschema calls this function in place of its own for the keyword, and so decides its
    parameters; `validator` and `schema` are not used.
    pattern: a regular expression of Python, searched anywhere in the text.  A final `$` matches
    only at the very end of the text; in Python, it also matches before a line break there.
    value: the value in the document; only a text is checked.
    If matching takes longer than PATTERN_SECONDS, an error is yielded, too.
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

    Sets SIGALRM's handler and its timer, which only the main thread may set: in other threads
    nothing is limited.  The handler is restored afterwards; a timer that the caller had set is
    lost.
    """

    def raise_timeout(number: int, frame: object) -> None:
        """Raise TimeoutError: the handler of SIGALRM, whose parameters Python decides."""
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

    jsonschema calls this function for the type `number`.
    checker: jsonschema's type checker, which decides what an integer is: true and false are none.
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

    Returns False for a value that is not text.  Raises ValueError for any other text, as the format
    checker expects.  An address without a prefix length is accepted: its prefix length is 32.
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

    validator: the result of :func:`build_validator` or :func:`load_schema`.
    data: the content of a document, as json or yaml loads it.
    prefix: a text put before each key, such as "workloads.stream".
    names: further sections that declare names for the keyword `known`: section → its content.  A
    section of `data` with the same name replaces it.
    The list is empty if the data are valid; :func:`raise_for_findings` turns it into an error.
    Only the first error of a key is returned.
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

    error: jsonschema's ValidationError.
    An error about unknown or missing keys gives a finding for each of these keys, for example
    (".cpus", "is 0; must be at least 1").
    """
    # An error of oneOf or anyOf has errors of its alternatives: the most relevant is described.
    error = best_match([error])
    key = "".join(f".{part}" for part in error.absolute_path)
    properties = error.schema.get("properties", {})
    if error.validator == "additionalProperties":
        unknown_keys = [str(name) for name in error.instance if name not in properties]
        hints = [suggest_name(name, [*properties]) for name in unknown_keys]
        return [
            (f"{key}.{name}", f"unknown key; {hint}")
            for name, hint in zip(unknown_keys, hints, strict=True)
        ]
    if error.validator == "required":
        missing_keys = [name for name in error.validator_value if name not in error.instance]
        return [
            (f"{key}.{name}", f"missing{_describe_demand(properties.get(name, {}))}")
            for name in missing_keys
        ]
    # An error about the name of a key: the name is the error's value, and not in its path.
    if "propertyNames" in error.absolute_schema_path:
        key = f"{key}.{error.instance}"
    if error.validator in ("known", "time"):
        # _check_known_name() and _check_pattern() write sentences for users.
        return [(key, error.message)]
    shown_value = describe_value(error.instance)
    if error.validator in LIMITS:
        return [(key, f"is {shown_value}; must {_describe_limit(error)}")]
    return [(key, f"is {shown_value}; {_describe_expected_value(error)}")]


def _describe_limit(error: Any) -> str:
    """Return the limit that a value exceeds, as the end of a sentence after "must ".

    error: jsonschema's ValidationError of a keyword of :data:`LIMITS`.
    The result is, for example, "be at least 1 (the number of CPUs)"; the schema's description is in
    parentheses.
    """
    limit = "be " + LIMITS[error.validator].format(error.validator_value)
    if error.validator_value == 1 and error.instance in ("", [], {}):
        limit = "not be empty"
    description = error.schema.get("description")
    return f"{limit} ({description})" if description else limit


def _describe_expected_value(error: Any) -> str:
    """Return which value a schema expects in place of a wrong one, as the end of a sentence.

    error: jsonschema's ValidationError of any other keyword than those of :data:`LIMITS`.
    The result is, for example, "must be true or false"; "expected: DESCRIPTION" if only the content
    is wrong; or jsonschema's own message, cut after 300 characters.
    """
    schema = error.schema
    description = schema.get("description", "")
    is_about_content = error.validator in OF_VALUES and error.validator not in (
        "type", "enum", "const",
    )  # fmt: skip
    # Other descriptions begin with "must ": _describe_demand() uses them as they are.
    is_noun = description and not description.startswith("must ")
    type_validator = build_validator({"type": schema.get("type", [])})
    if is_about_content and is_noun and type_validator.is_valid(error.instance):
        # The value has the right type: its content is wrong, which the description explains.
        return f"expected: {description}"
    demand = _describe_demand(schema) if error.validator in OF_VALUES else ""
    if demand:
        return demand.removeprefix("; ")
    return str(error.message[:300])


def describe_value(value: object) -> str:
    """Return a value as messages show it: the kind of a mapping or list; otherwise its JSON text.

    The result is, for example, "a list", "an empty mapping" or ``"abc"``.  The text is cut after
    100 characters, so that the sentence around it stays readable.
    """
    if isinstance(value, dict | list):
        kind = TYPE_NAMES["object" if isinstance(value, dict) else "array"]
        return kind if value else f"an empty {kind.split()[-1]}"
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) < 100 else text[:100] + "…"


def _describe_demand(schema: Fields) -> str:
    """Return the demand that a schema makes on a value, as the end of a sentence.

    schema: the schema of the value; its keys type, description, default, enum, const and pattern
    are read.
    The result is, for example, "; must be a whole number (the number of CPUs)".  A description that
    begins with "must " is the whole demand; any other is added in parentheses.  The result is empty
    if the schema declares nothing.
    """
    description = schema.get("description")
    default = schema.get("default")
    if description and description.startswith("must "):
        return f"; {description}"
    # JSON Schema allows one type or a list of types.
    types = schema.get("type", [])
    if isinstance(types, str):
        types = [types]
    alternatives = [TYPE_NAMES[type_name] for type_name in types]
    values = schema.get("enum", [])
    if "enum" not in schema and "const" in schema:
        values = [schema["const"]]
    if values:
        # The values say more than the type and the description.
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
    """Return data with strings replaced by the number, true, false or null that they spell.

    Values of the command line are strings.  A string is replaced only if the schema refuses the
    string and accepts the value; numbers of more than 40 digits stay strings (SPELLED_VALUE).
    validator: the result of :func:`build_validator` or :func:`load_schema`.
    data: a configuration's content.  It is not changed: a copy is returned if a string is refused.
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


def suggest_name(unknown_name: str, known_names: list[str]) -> str:
    """Return a hint for a message: the known name that was probably meant, or all known names.

    unknown_name: the name that the user wrote.
    known_names: the names that are permitted in its place.
    The hint is a clause for the end of the message, without a period, for example
    "did you mean 'stream'?" or "known are fio, stream".
    """
    similar_names = difflib.get_close_matches(unknown_name, known_names, n=1)
    if similar_names:
        return f"did you mean '{similar_names[0]}'?"
    if known_names:
        return f"known are {', '.join(sorted(known_names))}"
    return "none is known here"


def find_unknown_name(
    key: str, name: str, known_names: Collection[str], kind: str
) -> list[Finding]:
    """Return a finding if a name is not among the known names, otherwise an empty list.

    key: the key at which the name is in its file.
    known_names: the permitted names.
    kind: the kind of thing that the names denote, for the message, such as "workload".
    """
    if name in known_names:
        return []
    hint = suggest_name(str(name), [*known_names])
    return [(key, f"{describe_value(name)} is not a known {kind}; {hint}")]


def raise_for_findings(source: str | Callable[[str], str], findings: list[Finding]) -> None:
    """Raise UserError with a line for each finding; do nothing if there is none.

    source: the name of the file, or a function that returns the name of the file that has a key.
    findings: (key, sentence) pairs.  A finding whose key is empty is about the whole file.
    A line is, for example, "config.yaml: seed: is 1.5; must be a whole number".  Equal lines are
    written once, and keys are cut after 120 characters.
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
