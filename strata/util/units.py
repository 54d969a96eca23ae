"""Sizes as people write them, and lists of numbers as the kernel does.  A cell needs no more to read them."""

from collections.abc import Iterable

UNIT = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_OTHER = {"%": 1 / 100, "s": 1, "min": 60, "h": 3600}


def size(text: str) -> int:
    """Bytes of a size such as ``2GiB``."""
    return int(text[:-3]) * UNIT[text[-3:]]


def amount(value: str | float | None) -> float | None:
    """The number that a text with a unit means: a share, seconds or bytes.  What is no text stays as it is."""
    if not isinstance(value, str):
        return value
    digits = value.rstrip("%bhimnsBGKM")
    return float(digits) * (UNIT | _OTHER)[value[len(digits) :]]


def ranges(values: Iterable[int]) -> str:
    """The list of some numbers: 0, 1, 2, 5 give ``0-2,5``."""
    found: list[list[int]] = []
    for value in sorted(values):
        if found and value == found[-1][1] + 1:
            found[-1][1] = value
        else:
            found.append([value, value])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def numbers(text: str) -> list[int]:
    """The numbers of a list: ``0-2,5`` gives 0, 1, 2, 5."""
    found: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found
