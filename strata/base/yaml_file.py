"""Read a YAML page that people write, so that it means what it seems to mean.

YAML has traps: ``no`` is a truth value, ``010`` is eight, ``1:30`` is ninety, a date is no text, an alias can hold
itself or unfold to billions, and a tag can name any program.  Whatever is not plainly text, a decimal number, true,
false, empty, a list or a mapping is refused with its line and its key.
"""

import math
import re
from typing import Any

import yaml

from strata.base.errors import UserError

# In Python, so that what is nested deeply is an error and not the end of the process.
LOADER = yaml.SafeLoader
MAX_BYTES = 2**20
MAX_DEPTH = 40
MAX_NODES = 100_000
_TAG = "tag:yaml.org,2002:"
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9_]*)")


def read(path: str, dates: bool = False) -> Any:
    """What a YAML file holds; with `dates`, a date is its text.  Raises UserError with file, line, key and reason."""
    text = _text(path)
    try:
        node = yaml.compose(text, Loader=LOADER)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UserError(
            f"{path}: line {line}: not valid YAML: the character U+{ord(text[error.position]):04X} is not allowed"
        ) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"
        raise UserError(f"{path}: {where}: not valid YAML: {error.problem or error.context}") from None
    except RecursionError:
        raise UserError(f"{path}: not valid YAML: nested too deeply; {MAX_DEPTH} levels are enough") from None
    return None if node is None else _Reader(path, dates).value(node, "", 0)


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise UserError(f"{path}: larger than {MAX_BYTES // 2**20} MiB, which no page needs; give a smaller file")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}: line {line}: not UTF-8 text (byte {error.start})") from None


def legible(text: str, most: int) -> str:
    """A text on one line of a message, with what cannot be shown written out."""
    shown = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
    return shown if len(shown) <= most else shown[: most - 1] + "…"


class _Reader:
    """From the nodes of a document to plain values."""

    def __init__(self, path: str, dates: bool) -> None:
        self.path, self.dates = path, dates
        # By the identity of a node: its value, of how many values that consists, and whether it is being built.
        self.built: dict[int, Any] = {}
        self.sizes: dict[int, int] = {}
        self.open: set[int] = set()

    def refused(self, node: yaml.Node, key: str, reason: str) -> UserError:
        """The error about a node."""
        mark = node.start_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}"
        shown = f"{legible(key, 120)}: " if key else ""
        return UserError(f"{self.path}: {place}: {shown}{legible(reason, 400)}")

    def value(self, node: yaml.Node, key: str, depth: int) -> Any:
        """The value of a node; an alias gives the very value of its anchor."""
        mark = id(node)
        if mark in self.open:
            raise self.refused(node, key, "holds itself by an alias; write out what is meant")
        if mark not in self.built:
            if depth > MAX_DEPTH:
                raise self.refused(node, key, f"nested too deeply; {MAX_DEPTH} levels are enough")
            self.open.add(mark)
            self.built[mark] = self._build(node, key, depth)
            self.open.discard(mark)
        return self.built[mark]

    def _build(self, node: yaml.Node, key: str, depth: int) -> Any:
        value: Any
        parts: list[yaml.Node] = []
        if isinstance(node, yaml.ScalarNode):
            value = self._scalar(node, key)
        elif isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            parts = node.value
            value = [self.value(item, _join(key, number), depth + 1) for number, item in enumerate(parts)]
        elif isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
            parts = [inner for _, inner in node.value]
            value = {}
            for key_node, inner in node.value:
                name = self._name(key_node, key)
                if name in value:
                    raise self.refused(key_node, key, f"the key '{name}' stands twice: keep one")
                value[name] = self.value(inner, _join(key, name), depth + 1)
        else:
            raise self._foreign_tag(node, key)
        size = 1 + sum(self.sizes[id(part)] for part in parts)
        if size > MAX_NODES:
            reason = f"its aliases unfold to more than {MAX_NODES} values; write out what is meant"
            raise self.refused(node, key, reason)
        self.sizes[id(node)] = size
        return value

    def _name(self, node: yaml.Node, key: str) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self.refused(node, key, "a key must be one word of text, not a list or a mapping")
        if node.tag == f"{_TAG}merge":
            raise self.refused(node, key, "the key << (merge) is not used here: write out what is meant")
        if node.tag != f"{_TAG}str":
            raise self.refused(node, key, f"the key {node.value or 'that is empty'} is not text: put it in quotes")
        return node.value

    def _scalar(self, node: yaml.ScalarNode, key: str) -> Any:
        text = node.value
        kind = node.tag.removeprefix(_TAG)
        if kind == "str" or (kind == "timestamp" and self.dates):
            return text
        if kind == "null" and text.lower() in ("", "~", "null"):
            return None
        if kind == "bool":
            if text.lower() in ("true", "false"):
                return text.lower() == "true"
            reason = f"is {text}, which YAML takes for true or false: write that, or '{text}' in quotes"
            raise self.refused(node, key, reason)
        if kind == "int":
            if _WHOLE.fullmatch(text) and len(text) <= 40:
                return int(text.replace("_", ""))
            reason = f"is {legible(text, 60)}, which is no plain decimal number; write one, or text in quotes"
            raise self.refused(node, key, reason)
        if kind == "float":
            try:
                number = float(text.replace("_", ""))
            except ValueError:
                number = math.nan
            if not math.isfinite(number):
                raise self.refused(node, key, f"is {legible(text, 60)}; must be a finite number in plain decimal form")
            return number
        if kind == "timestamp":
            raise self.refused(node, key, f"is {text}, which YAML takes for a date: put it in quotes")
        if kind in ("merge", "value"):
            raise self.refused(node, key, f"is {text}, which has a meaning of its own in YAML: put it in quotes")
        raise self._foreign_tag(node, key)

    def _foreign_tag(self, node: yaml.Node, key: str) -> UserError:
        tag = node.tag.replace(_TAG, "!!")
        return self.refused(node, key, f"has the tag {legible(tag, 60)}, which is not used here: remove the tag")


def _join(key: str, part: object) -> str:
    return f"{key}.{part}" if key else str(part)
