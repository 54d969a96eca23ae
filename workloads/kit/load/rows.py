"""Values and files of rows: each follows from what was drawn before or from its place alone."""

import datetime
import hashlib
import json
import random
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

# Words of a kind, for names and texts.
NAMES = {of: words.split() for of, words in json.loads(Path(__file__).with_name("words.json").read_text()).items()}
WORDS = NAMES["words"]


def text(chance: random.Random, words: int) -> str:
    """So many words."""
    return " ".join(chance.choices(WORDS, k=words))


def picture(chance: random.Random, width: int, height: int, colours: int = 1) -> bytes:
    """A PNG of noise over one shade of grey (1 colour) or one colour (3): about half a byte for each of a pixel's."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    shade = [one & 0xF0 for one in chance.randbytes(colours)]
    row = colours * width
    rows = b"".join(
        b"\0" + bytes(shade[at % colours] | noise & 0x0F for at, noise in enumerate(chance.randbytes(row)))
        for _ in range(height)
    )
    head = struct.pack(">IIBBBBB", width, height, 8, colours - 1, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 6)) + chunk(b"IEND", b"")


def write(path: Path, rows: Iterable[tuple]) -> tuple[int, str]:
    """Write rows as PostgreSQL's COPY and MariaDB's LOAD DATA read them; their number and SHA-256."""
    digest, count = hashlib.sha256(), 0
    with path.open("wb") as file:
        for row in rows:
            line = "\t".join(map(_written, row)).encode() + b"\n"
            digest.update(line)
            file.write(line)
            count += 1
    return count, digest.hexdigest()


def _written(value: object) -> str:
    if isinstance(value, datetime.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}{'+00' if value.tzinfo else ''}"
    return r"\N" if value is None else str(value)
