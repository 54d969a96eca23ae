"""Who and what there is at first, as the loader makes it and the driver knows it."""

import math
import random
import struct
import zlib

# As published: persons by users, of whom there are at least so many; tags and events follow.
PERSONS_OF_A_USER = 100
LEAST_USERS = 25
SOME_TEXT = (
    "autumn bridge candle dance evening forest garden harbour island jazz kitchen lantern market night ocean park "
    "quiet river summer theatre under village winter young art band chess drama early film guitar hiking improv "
    "juggling kayak lecture museum nature opera poetry quiz running story tango union violin walk yoga zither"
)
WORDS = SOME_TEXT.split()


def sizes(users: int) -> dict[str, int]:
    """How many persons, tags and events are loaded for a number of users."""
    users = max(users, LEAST_USERS)
    tags = round(5000 * math.tanh(users / 20000))
    return {"persons": PERSONS_OF_A_USER * users, "tags": tags, "events": 3 * tags}


def username(number: int) -> str:
    """The name of a person that was loaded, from 1."""
    return f"person{number}"


def password(number: int) -> str:
    """What that person logs in with."""
    return f"open-{number}-sesame"


def tag(number: int) -> str:
    """A tag that was loaded, from 1."""
    return f"{WORDS[number % len(WORDS)]}-{number}"


def text(chance: random.Random, words: int) -> str:
    """So many words."""
    return " ".join(chance.choices(WORDS, k=words))


def address(chance: random.Random) -> list[str]:
    """Street, second line (mostly empty), city, state, ZIP code and country."""
    street, city = chance.choice(WORDS).capitalize(), chance.choice(WORDS).capitalize()
    second = f"Flat {chance.randint(1, 99)}" if chance.random() < 0.2 else ""
    return [
        f"{chance.randint(1, 999)} {street} Street",
        second,
        f"{city}ton",
        "CA",
        f"{chance.randint(10000, 99999)}",
        "USA",
    ]


def place(parts: list[str]) -> tuple[str, str]:
    """Latitude and longitude of an address, as the geocoder gives them."""
    checksum = zlib.crc32(", ".join(part for part in parts if part).encode())
    return f"{checksum % 120_000_001 / 1e6 - 60:.6f}", f"{checksum // 7 % 360_000_001 / 1e6 - 180:.6f}"


def picture(chance: random.Random, width: int, height: int) -> bytes:
    """A PNG of one colour with noise over it, which packs to about half a byte for each of a pixel's three."""
    base = chance.randbytes(3)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = b"".join(
        b"\0" + bytes(base[i % 3] & 0xF0 | noise & 0x0F for i, noise in enumerate(chance.randbytes(3 * width)))
        for _ in range(height)
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    packed = zlib.compress(rows, 6)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
