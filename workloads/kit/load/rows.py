"""The rows of a data set: names, pictures and files, each from its seed alone."""

import datetime
import json
import random
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

# Names and words by kind.
_FILE = Path(__file__).with_name("words.json")
NAMES = {kind: words.split() for kind, words in json.loads(_FILE.read_text()).items()}
WORDS = NAMES["words"]


def text(chance: random.Random, words: int) -> str:
    """A text of so many words."""
    return " ".join(chance.choices(WORDS, k=words))


def picture(chance: random.Random, width: int, height: int, colours: int = 1) -> bytes:
    """A PNG of noise over one shade of grey (1 colour) or one colour (3), half a byte a value."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + checksum

    shade = [value & 0xF0 for value in chance.randbytes(colours)]
    rows = b""
    for _ in range(height):
        noise = enumerate(chance.randbytes(colours * width))
        rows += b"\0" + bytes(shade[at % colours] | value & 0x0F for at, value in noise)
    head = struct.pack(">IIBBBBB", width, height, 8, colours - 1, 0, 0, 0)
    data = chunk(b"IDAT", zlib.compress(rows, 6))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + data + chunk(b"IEND", b"")


def write_tables(folder: str, tables: Iterable[tuple[str, Iterable[tuple]]]) -> None:
    """Write a file for each table, as COPY and LOAD DATA read it, and print the tables' names."""
    for name, rows in tables:
        with Path(folder, name).open("w", encoding="utf-8", newline="\n") as file:
            for row in rows:
                file.write("\t".join(map(_field, row)) + "\n")
        print(name)


def _field(value: object) -> str:
    if isinstance(value, datetime.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}{'+00' if value.tzinfo else ''}"
    return r"\N" if value is None else str(value)
