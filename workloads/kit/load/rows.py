"""Draws names, texts and pictures for data sets, and writes the files of their tables."""

import datetime
import json
import random
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

_FILE = Path(__file__).with_name("words.json")
# Lists of names and words, by kind.
NAMES = {kind: words.split() for kind, words in json.loads(_FILE.read_text()).items()}
WORDS = NAMES["words"]


def draw_text(rng: random.Random, words: int) -> str:
    """Draw a text of `words` words."""
    return " ".join(rng.choices(WORDS, k=words))


def draw_picture(rng: random.Random, width: int, height: int, colours: int = 1) -> bytes:
    """Draw a PNG of noise, about half a byte for each value, over a constant shade.

    width, height: in pixels.  colours: 1 (grey) or 3 (red, green and blue).
    """

    def encode_chunk(kind: bytes, content: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + checksum

    shade = [value & 0xF0 for value in rng.randbytes(colours)]
    lines = b""
    for _ in range(height):
        noise = enumerate(rng.randbytes(colours * width))
        lines += b"\0" + bytes(shade[at % colours] | value & 0x0F for at, value in noise)
    header = encode_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colours - 1, 0, 0, 0))
    data = encode_chunk(b"IDAT", zlib.compress(lines, 6))
    return b"\x89PNG\r\n\x1a\n" + header + data + encode_chunk(b"IEND", b"")


def write_tables(folder: str, tables: Iterable[tuple[str, Iterable[tuple]]]) -> None:
    """Write each table into a file of its name, and print that name once the file is complete.

    A file has a line for each row, as PostgreSQL's COPY and MariaDB's LOAD DATA read it: fields
    with tabs between them, None as \\N.  tables: (name, rows), consumed one table after another.
    """
    for name, rows in tables:
        with Path(folder, name).open("w", encoding="utf-8", newline="\n") as file:
            for row in rows:
                file.write("\t".join(map(_encode_field, row)) + "\n")
        print(name)


def _encode_field(value: object) -> str:
    if isinstance(value, datetime.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}{'+00' if value.tzinfo else ''}"
    return r"\N" if value is None else str(value)
