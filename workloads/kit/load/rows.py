"""Draws names, texts and pictures for data sets, and writes the files of their tables."""

import datetime
import json
import random
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

_FILE = Path(__file__).with_name("words.json")
# Lists of names and words, by kind.  Their order decides the data of every seed.
NAMES = {kind: words.split() for kind, words in json.loads(_FILE.read_text()).items()}
WORDS = NAMES["words"]


def draw_text(rng: random.Random, length: int) -> str:
    """Draw a text of `length` words with spaces between; a word may come again.

    It takes one draw for each word: another way to draw would change the data of every seed.
    """
    return " ".join(rng.choices(WORDS, k=length))


def draw_picture(rng: random.Random, width: int, height: int, colours: int = 1) -> bytes:
    """Draw a picture of noise over a constant shade, and return it as PNG.

    width, height: in pixels.  colours: 1 (grey) or 3 (red, green and blue).
    The picture has about half a byte for each value of a pixel: noise is hardly compressed.
    The draws are the shade, then the noise of each line; they decide the data of every seed.
    """
    # The upper four bits of each colour are constant, the lower four are noise.
    shade = [value & 0xF0 for value in rng.randbytes(colours)]
    lines = b""
    for _ in range(height):
        noise = rng.randbytes(colours * width)
        line = bytes(shade[at % colours] | noise[at] & 0x0F for at in range(len(noise)))
        # The first byte of a line is its filter: none.
        lines += b"\0" + line
    # Eight bits for each colour.  The type of the colours is 0 for grey and 2 for red, green, blue.
    header = struct.pack(">IIBBBBB", width, height, 8, colours - 1, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines, 6)), (b"IEND", b"")]
    picture = b"\x89PNG\r\n\x1a\n"
    for kind, content in chunks:
        checksum = zlib.crc32(kind + content)
        picture += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
    return picture


def write_tables(folder: str, tables: Iterable[tuple[str, Iterable[tuple]]]) -> None:
    """Write each table into a file of its name, and print that name once the file is complete.

    A file has a line for each row, as PostgreSQL's COPY and MariaDB's LOAD DATA read it: fields
    with tabs between them, None as \\N.
    folder: for the files; it must exist.
    tables: name and rows of each, which are consumed one table after another.
    fill_tables of data.sh reads the printed names, and fills the tables in their order.
    """
    for name, rows in tables:
        with Path(folder, name).open("w", encoding="utf-8", newline="\n") as file:
            for row in rows:
                file.write("\t".join(map(_encode_field, row)) + "\n")
        print(name)


def _encode_field(value: object) -> str:
    """Return a value of a row as PostgreSQL and MariaDB read it.

    A text is written as it is: it has no tab or line end, and a backslash in it is an escape.
    """
    if isinstance(value, datetime.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}{'+00' if value.tzinfo else ''}"
    return r"\N" if value is None else str(value)
