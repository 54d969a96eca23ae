"""What a schema cannot say of a workload.yaml: that its own values, patterns and commands make sense."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import jsonschema

from strata.base import checking
from strata.base.placeholders import BUILT_IN
from strata.host import sizing

SCALES = ("value", "smoke", "quick", "paper")
# Longer than any measurement, and as long as the kernel can be asked to wait.
MAX_SECONDS = 2_000_000
# The keywords of a parameter's schema that are understood here; others would be passed over in silence.
KEYWORDS = [
    *["type", "enum", "const", "description"],
    *["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
    *["minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"],
    *["items", "contains", "minContains", "maxContains"],
]
ONE_LINE = ("title", "label", "unit", "name", "pattern", "trouble")
Findings = list[tuple[str, str]]


def findings(data: dict) -> Findings:
    """Every (key, sentence) in which a declaration that fits the schema makes no sense."""
    found = []
    for name, parameter in data["parameters"].items():
        found += _of_parameter(f"parameters.{name}", name, parameter, data["parameters"])
    for key, part in _parts("", data):
        found += _of_texts(key, part)
        found += _of_command(key, part, data["parameters"])
    return found


def value_findings(schema: dict, value: object, key: str) -> Findings:
    """Findings about a value for a parameter with this schema, which must be a good one."""
    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, dict | list) for item in items):
        return [(key, f"is {checking.describe(value)} of more; must be text, a number, true or false, or a list")]
    return checking.findings(checking.Validator(schema), value, key)


def _of_parameter(key: str, name: str, parameter: dict, declared: dict) -> Findings:
    if name in BUILT_IN:  # which would hide it
        return [(key, "is the name of what every cell knows by itself; choose another")]
    found = _of_schema(f"{key}.schema", parameter["schema"])
    if found:
        return found
    if "memory" in parameter and not _holds_whole_numbers(parameter["schema"]):
        found.append((f"{key}.memory", "belongs to a parameter whose schema asks for whole numbers, or a list of them"))
    given = parameter.get("file")
    if given == name:
        found.append((f"{key}.file", "names the parameter itself; must name the one that holds its SHA-1"))
    elif given in declared and declared[given]["schema"].get("type") != "string":
        found.append((f"{key}.file", f"names {given}, whose schema does not ask for text; must name one with a SHA-1"))
    for scale in SCALES:
        if scale in parameter:
            value = parameter[scale]
            check = _of_rule if isinstance(value, dict) else value_findings
            found += check(parameter["schema"], value, f"{key}.{scale}")
    return found


def _of_schema(key: str, schema: object) -> Findings:
    """Findings about a parameter's schema: one that cannot be used must not be met when a value is checked."""
    if not isinstance(schema, dict):
        return [(key, f"is {checking.describe(schema)}; must be a mapping")]
    unknown = [word for word in schema if word not in KEYWORDS]
    if unknown:
        return [(f"{key}.{word}", f"unknown key; {checking.nearest(word, KEYWORDS)}") for word in unknown]
    pattern = schema.get("pattern")
    found = _of_pattern(f"{key}.pattern", pattern) if isinstance(pattern, str) else []
    if found:
        return found
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        where = ".".join([key, *(str(part) for part in error.absolute_path)])
        return [(where, f"is not a JSON Schema: {error.message}")]
    for least, most in (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems")):
        if least in schema and most in schema and schema[least] > schema[most]:
            found.append((f"{key}.{most}", f"is {schema[most]}; must be at least {least}, {schema[least]}"))
    for inner in ("items", "contains"):
        if inner in schema:
            found += _of_schema(f"{key}.{inner}", schema[inner])
    return found


def _holds_whole_numbers(schema: dict) -> bool:
    if schema.get("type") == "array":
        schema = schema.get("items", {})
    return schema.get("type") == "integer"


def _of_rule(schema: dict, value: dict, key: str) -> Findings:
    """Findings about the arguments of a rule; whether there is such a rule is asked elsewhere."""
    rule = value.get("rule")
    if not isinstance(rule, str):
        wrong = f"is {checking.describe(rule)}" if "rule" in value else "missing"
        return [(f"{key}.rule", f"{wrong}; must be the name of a rule, beside which its arguments stand")]
    if rule not in (*sizing.OF_THE_CELL, *sizing.RULES):
        return []
    known = list(inspect.signature(sizing.RULES[rule]).parameters)[1:] if rule in sizing.RULES else []
    given = [name for name in value if name != "rule"]
    found = [(f"{key}.{name}", f"unknown key; {checking.nearest(name, known)}") for name in given if name not in known]
    for name in known:
        if name not in value:
            found.append((f"{key}.{name}", f"missing; the rule {rule} needs it"))
        elif not _is_argument(name, value[name]):
            shape = "a list of whole numbers above 0" if name == "values" else "a number above 0"
            found.append((f"{key}.{name}", f"is {checking.describe(value[name])}; must be {shape}"))
    return found


def _is_argument(name: str, value: object) -> bool:
    if name == "values":
        return isinstance(value, list) and bool(value) and all(type(item) is int and item > 0 for item in value)
    kinds = (int, float) if name in ("fraction", "factor") else (int,)
    return type(value) in kinds and value > 0  # type: ignore[operator]


def _parts(key: str, data: Any) -> Iterator[tuple[str, dict]]:
    """Every mapping of a declaration with its key, but for what parameters hold."""
    if isinstance(data, dict):
        yield key, data
        for name, inner in data.items():
            if key or name != "parameters":
                yield from _parts(f"{key}.{name}".lstrip("."), inner)
    elif isinstance(data, list):
        for number, inner in enumerate(data):
            yield from _parts(f"{key}.{number}", inner)


def _of_texts(key: str, part: dict) -> Findings:
    found = []
    for name in (*ONE_LINE, "about"):
        text, where = part.get(name), f"{key}.{name}".lstrip(".")
        if not isinstance(text, str):
            continue
        if not text.strip():
            found.append((where, "is blank; must say something"))
        elif name in ONE_LINE and re.search(r"[\n\t]", text):
            found.append((where, "holds a line break or a tab; must be one line"))
        elif name in ("pattern", "trouble"):
            found += _of_pattern(where, text) or _of_empty_match(where, text)
    return found


def _of_pattern(key: str, pattern: str) -> Findings:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return [(key, f"is {checking.describe(pattern)}, which is no regular expression: {error}")]
    return []


def _of_empty_match(key: str, pattern: str) -> Findings:
    if re.search(pattern, ""):
        return [(key, f"is {checking.describe(pattern)}, which matches an empty line; must match what is meant alone")]
    return []


def _of_command(key: str, part: dict, declared: dict) -> Findings:
    """Findings about the program, the words and the time limit of a command."""
    found = []
    argv = part.get("argv")
    if isinstance(argv, list):
        where = f"{key}.argv"
        program = argv[0]
        named = program in [f"{{{name}}}" for name in (*declared, *BUILT_IN)]
        if program == "" or program[0] == "-" or "=" in program or named:
            found.append((f"{where}.0", f"is {checking.describe(program)}; must be the name or the path of a program"))
        for word in argv:
            within = [name for name in declared if f"{{{name}}}" in word and word != f"{{{name}}}"]
            if within:
                found.append(
                    (where, f"'{word}' holds {{{within[0]}}} within a word; a parameter stands for a whole one")
                )
    timeout = part.get("timeout")
    for name, seconds in timeout.items() if isinstance(timeout, dict) else [("", timeout)]:
        if isinstance(seconds, int | float) and seconds > MAX_SECONDS:
            where = f"{key}.timeout.{name}".rstrip(".")
            found.append((where, f"is {checking.describe(seconds)}; must be at most {MAX_SECONDS} seconds"))
    return found
