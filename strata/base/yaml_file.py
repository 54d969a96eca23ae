"""Read a YAML page that people write: YAML 1.2, in which a word is text unless it is plainly something else.

So ``no``, ``1:30`` and a date are text, and ``010`` is ten.  ruamel.yaml reads it; refused here is what pages have no
use for and what would hide something: tags that name programs, ``<<``, other than UTF-8, and files above a size.
Aliases that hold themselves or unfold to very much are met by :func:`strata.base.checking.plain`.
"""

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import ConstructorError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import MappingNode, Node
from ruamel.yaml.reader import ReaderError

from strata.base.errors import UserError

MAX_BYTES = 2**20
MAX_DEPTH = 40
MAX_NODES = 100_000


class _Constructor(SafeConstructor):
    """Plain values, and an error with its place for whatever is none."""

    def construct_object(self, node: Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, TypeError) as error:
            wrong = f"{legible(str(node.value), 60)} is not what its tag or its form says: {error}"
            raise ConstructorError(None, None, wrong, node.start_mark) from None

    def flatten_mapping(self, node: MappingNode) -> None:
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                wrong = "the key << (merge) is not used here: write out what is meant"
                raise ConstructorError(None, None, wrong, key.start_mark)


# In YAML 1.2 a date is text.
_Constructor.add_constructor("tag:yaml.org,2002:timestamp", SafeConstructor.construct_yaml_str)


def read(path: str) -> Any:
    """What a YAML file holds.  Raises UserError with file, line and reason."""
    text = _text(path)
    reader = YAML(typ="safe", pure=True)
    reader.Constructor = _Constructor
    try:
        return reader.load(text)
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UserError(
            f"{path}: line {line}: not valid YAML: the character U+{ord(text[error.position]):04X} is not allowed"
        ) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"
        wrong = legible(error.problem or error.context or "", 400)
        raise UserError(f"{path}: {where}: not valid YAML: {wrong}") from None
    except RecursionError:
        raise UserError(f"{path}: not valid YAML: nested too deeply; {MAX_DEPTH} levels are enough") from None


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
