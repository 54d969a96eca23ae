"""Read YAML pages that people write: plain values, each key once, and a message with file and line for all else.

They are YAML 1.1, as Snakemake reads it: `no`, `on` and `1:30` are text in quotes alone.  A date is text.
"""

from typing import Any

import yaml

from strata.base.errors import UserError
from strata.base.shapes import Fields

_TAG = "tag:yaml.org,2002:"
_PLAIN = {_TAG + kind for kind in ("null", "bool", "int", "float", "str", "timestamp", "seq", "map")}
_Loader: Any = type("_Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
_Loader.add_constructor(_TAG + "timestamp", yaml.SafeLoader.construct_yaml_str)


def read(path: str) -> Fields:
    """The mapping in a YAML file.  Raises UserError with file, line and reason."""
    try:
        with open(path, "rb") as file:
            content = file.read()
        return mapping(path, content.decode("utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}: line {line}: not UTF-8 text (byte {error.start})") from None


def mapping(source: str, text: str) -> Fields:
    """The mapping in a YAML text; `source` names it in messages.  Raises UserError."""
    data = parse(source, text)
    if not isinstance(data, dict):
        raise UserError(f"{source}: must be a mapping of keys to values")
    return data


def parse(source: str, text: str) -> Any:
    """What a YAML text holds; `source` names it in messages.  Raises UserError with line and reason."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, [])
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise UserError(f"{source}: {where}not valid YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, LookupError, RecursionError) as error:
        raise UserError(f"{source}: not valid YAML: {' '.join(str(error).split())[:200]}") from None


def _check(node: yaml.Node, above: list[yaml.Node]) -> None:
    """Refuse keys that stand twice or are no text, values that are not plain, and aliases that hold themselves."""
    within: list[yaml.Node] = []
    problem, place = None, node
    if node in above:
        problem = "a value that holds itself"
    elif node.tag not in _PLAIN:
        problem = f"a value of the kind {node.tag.removeprefix(_TAG)} is not used here; text belongs in quotes"
    elif isinstance(node, yaml.SequenceNode):
        within = node.value
    elif isinstance(node, yaml.MappingNode):
        names = set()
        for key, value in node.value:
            if key.tag not in (_TAG + "str", _TAG + "merge") or not isinstance(key, yaml.ScalarNode):
                problem, place = "a key that is not text (in YAML 1.1, no and on are not): put it in quotes", key
            elif key.value in names:
                problem, place = f"the key {key.value} stands twice: keep one", key
            names.add(str(key.value))
            within.append(value)
    if problem:
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)
    for inner in within:
        _check(inner, [*above, node])
