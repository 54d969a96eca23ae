"""Read YAML files that people write; the message about a mistake has the file and the line.

These files are YAML 1.1, as Snakemake reads it: `no`, `on` and `1:30` are text only in quotes.  A
date is read as text.  A key may appear once.
"""

import os
import re
from typing import Any

import yaml

from strata.util.data_types import Fields
from strata.util.errors import UserError

# A few aliases of aliases can expand to more values than memory holds.
MAX_VALUES = 100_000
_TAG = "tag:yaml.org,2002:"
_Loader: Any = type("_Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
_Loader.add_constructor(_TAG + "timestamp", yaml.SafeLoader.construct_yaml_str)


def read_yaml_mapping(path: str) -> Fields:
    """Return the mapping in a YAML file.

    Raises UserError, with file, line and reason, if the file is missing or is not a valid mapping.
    """
    try:
        with open(path, "rb") as file:
            data = parse_yaml(path, file.read())
    except FileNotFoundError:
        raise UserError(f"{path}: there is no file {os.path.abspath(path)}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    if not isinstance(data, dict):
        state = "is empty" if data is None else "has no keys"
        raise UserError(f"{path}: {state}: it must be a mapping of keys to values, as KEY: VALUE")
    return data


def parse_yaml(source: str, text: str | bytes) -> Any:
    """Return the value of a YAML text; None if the text is empty.

    source: the text's name in messages, such as the path of its file.
    text: the whole text; bytes must be UTF-8 or UTF-16, as YAML demands.
    Raises UserError, with line and reason, if the text is not valid, a key is not text or appears
    twice, or the aliases expand to more than :data:`MAX_VALUES` values.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if _count_values(node, {}) > MAX_VALUES:
            raise yaml.MarkedYAMLError(
                problem=f"its aliases stand for more than {MAX_VALUES:,} values: write fewer",
                problem_mark=node.start_mark,
            )
        _require_unique_text_keys(node)
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        decoded_text = text if isinstance(text, str) else text.decode(errors="replace")
        lines = decoded_text.splitlines()
        line = ""
        location = ""
        if mark:
            # PyYAML counts from 0.  A mark at the end may be behind the last line.
            line = lines[mark.line] if mark.line < len(lines) else ""
            location = f"line {mark.line + 1}: "
        problem = _explain_yaml_error(error, line)
        raise UserError(f"{source}: {location}not valid YAML: {problem}") from None
    except yaml.reader.ReaderError:
        raise UserError(
            f"{source}: is not text: a YAML file is needed, such as config.yaml"
        ) from None
    # PyYAML lets errors of Python through, for example from a number with too many digits.
    except (yaml.YAMLError, ValueError, LookupError, RecursionError) as error:
        raise UserError(f"{source}: not valid YAML: {' '.join(str(error).split())[:200]}") from None


def _explain_yaml_error(error: yaml.MarkedYAMLError, line: str) -> str | None:
    """Return the description of a YAML error, with the remedy if the cause is known.

    error: PyYAML's error.
    line: the text of the line that the error is about; empty if it is unknown.
    The causes are recognized by PyYAML's own messages; any other message is returned unchanged.
    """
    problem: str | None = error.problem or error.context
    if re.match(" *\t", line):
        return "indented by a tab: use spaces"
    if problem == "mapping values are not allowed in this context":
        return (
            "a colon where none may stand: quote a text that holds one, or look for a missing "
            "colon or a wrong indentation in this line and the one before"
        )
    if problem in ("did not find expected <document start>", "could not find expected ':'"):
        return "a colon is missing in this line or the one before: write KEY: VALUE"
    if problem == "did not find expected alphabetic or numeric character":
        return "a value may not begin with * or &: put it in quotes"
    if error.context and "flow" in error.context:
        return "a bracket or brace is not closed"
    if problem == "found unexpected ':'":
        return f"{problem}: put a space behind each colon, and quotes around a text that holds one"
    return problem


def _count_values(node: yaml.Node, counts: dict[int, int]) -> int:
    """Return the number of values in a node; an alias counts each time that it is used.

    node: the node of a YAML document, as PyYAML composes it.
    counts: id() of a node → its number of values.  The node and those in it are added, so that each
    is counted only once.
    Raises RecursionError if a node contains itself.
    """
    if id(node) not in counts:
        children: list[yaml.Node] = []
        for entry in node.value if isinstance(node, yaml.CollectionNode) else []:
            # An entry of a mapping is a pair of nodes, the key and the value.
            children += entry if isinstance(entry, tuple) else [entry]
        counts[id(node)] = 1 + sum(_count_values(child, counts) for child in children)
    return counts[id(node)]


def _require_unique_text_keys(node: yaml.Node) -> None:
    """Check that each key in a node is text and is unique: PyYAML silently takes the last of two.

    node: the node of a YAML document, as PyYAML composes it.
    The merge key ``<<`` counts as text.
    Call this only after :func:`_count_values` has bounded the work: this function visits an alias
    each time that it is used.
    Raises MarkedYAMLError at the first key that is not text or not unique.
    """
    earlier_keys: list[object] = []
    for entry in node.value if isinstance(node, yaml.CollectionNode) else []:
        child = entry
        if isinstance(node, yaml.MappingNode):
            key, child = entry
            problem = None
            if key.tag not in (_TAG + "str", _TAG + "merge"):
                problem = (
                    "a key that is not text (in YAML 1.1, no and on are not): put it in quotes"
                )
            elif key.value in earlier_keys:
                problem = f"the key {key.value} appears twice: keep one"
            if problem:
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            earlier_keys.append(key.value)
        _require_unique_text_keys(child)
