"""What a file holds behind its wrappings: packed files in it, and the forms in which a text may stand in another.

A file is searched for packed data at every place, so data before and behind it, or its end missing, hides nothing.
"""

import base64
import bz2
import codecs
import contextlib
import io
import lzma
import re
import sqlite3
import struct
import tarfile
import urllib.parse
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from strata.measure import log_sections

# The most bytes that one file may unpack to, and how often a packed file may be packed again.
MOST_BYTES = 64 << 20
DEEPEST = 6
# Few at a time, so that little is lost before a damage.
_STEP = 16
# Where packed data may begin: gzip, bzip2, xz, the older lzma, zlib (in PDF and PNG), a member of a zip
# file; and in base64 these, PDF, PNG, ELF, SQLite, and base64 of packed data.
_PACKED = re.compile(
    rb"\x1f\x8b\x08[\0-\x1f]|BZh[1-9]1AY&SY|\xfd7zXZ\0|\A\x5d\0\0[\0-\xff]{2}|x[\x01\x5e\x9c\xda]|PK\x03\x04"
    rb"|(?P<base64>(?:H4sI|Qlpo[MNOQRSTUV]|/Td6WFo|UEsDB|XQAA|e[AFJNV][A-Za-z0-9+/]|JVBERi|iVBORw"
    rb"|f0VMRg|U1FMaXRl|SDRzS|UWxwb|L1RkN|VUVzRE)(?:[A-Za-z0-9+/]|\\[nr]|[\s\"']){20,})"
)
# Pictures, fonts and films: texts in them are found; what they show is not read.
_SHOWN = re.compile(rb"\x89PNG|\xff\xd8\xff|GIF8|RIFF|wOF[F2]|%PDF|\0{3}.ftyp", re.DOTALL)
# A value of a database that is no text.
_BLOB = re.compile("X'((?:[0-9A-Fa-f]{2})+)'")
_WRITTEN = bytes(range(32, 127)) + b"\t\n\r\x1b"


class Part(NamedTuple):
    """A file, or what was packed in one.

    trouble: why it could not all be looked through, or empty.  whole: whether it is a file, not a piece of one.
    noise: whether its bytes are as good as random, so that short texts in them mean nothing.
    """

    name: str
    content: bytes
    trouble: str = ""
    whole: bool = True
    noise: bool = False


def parts(name: str, content: bytes) -> Iterator[Part]:
    """A file and all that is packed in it, at any depth."""
    yield from _parts(Part(name, content), DEEPEST, [MOST_BYTES])


def _parts(part: Part, depth: int, left: list[int]) -> Iterator[Part]:
    """left: the bytes that may still be unpacked."""
    name, content, trouble, whole, _ = part
    if content.startswith(b"\x89PNG"):
        content = _without_pixels(content)
    if content.startswith(b"SQLite format 3\0"):
        inner, rest = _of_sqlite(name, content), content
    else:
        inner, rest = (_of_tar if content[257:262] == b"ustar" else _unpacked)(name, content, left)
    noise = _is_noise(rest)
    if not trouble:
        if b"/Encrypt" in content and content.startswith(b"%PDF"):
            trouble = "it is encrypted"
        elif inner and not depth:
            trouble = f"it is packed more than {DEEPEST} times"
        elif noise and whole and not inner and not _SHOWN.match(content):
            trouble = "it is packed or encrypted in a way that is not known here"
    yield Part(name, rest, trouble, whole, noise)
    for one in inner if depth else []:
        yield from _parts(one, depth - 1, left)


def _without_pixels(content: bytes) -> bytes:
    """A PNG file without the data of its picture; what is no chunk stays."""
    kept, at = [content[:8]], 8
    while at + 12 <= len(content):
        end = at + 12 + int.from_bytes(content[at : at + 4], "big")
        if end > len(content):
            break
        # The bytes around a chunk's data would pass for letters of a text in it.
        if content[at + 4 : at + 8] != b"IDAT":
            kept.append(b"\n" + content[at + 8 : end - 4] + b"\n")
        at = end
    return b"".join([*kept, content[at:]])


def _is_noise(content: bytes) -> bool:
    """Whether a content has no structure that can be seen, as what is packed or encrypted has none."""
    sample = content[: 1 << 18].replace(b"\0", b"")
    with contextlib.suppress(UnicodeError):
        sample.decode()
        return False
    if len(sample) < 16 or len(sample) - len(sample.translate(None, _WRITTEN)) > 0.6 * len(sample):
        return False
    return len(zlib.compress(sample)) > 0.95 * len(sample)


def _of_tar(name: str, content: bytes, left: list[int]) -> tuple[list[Part], bytes]:
    """The files in a tar archive, those before its damage where it has one, and the rest of it.

    What is left to unpack, `left`, stays: these are no more bytes than the archive has.
    """
    found: list[Part] = []
    rest: list[bytes] = []
    at = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            for member in archive:
                if member.isreg() and not member.sparse:
                    begin = member.offset_data
                    rest.append(content[at:begin])
                    at = begin + member.size
                    why = "its end is missing" if at > len(content) else ""
                    found.append(Part(f"{name}/{member.name}", content[begin:at], why))
    except (tarfile.TarError, OSError, ValueError):
        found.append(Part(name, b"", "it is damaged"))
    return found, b"".join([*rest, content[at:]])


def _of_sqlite(name: str, content: bytes) -> list[Part]:
    """The rows of a database as text: in its file a text may lie in pieces, and others before and behind it."""
    with contextlib.closing(sqlite3.connect(":memory:")) as base:
        try:
            base.deserialize(content)
            text = "\n".join(base.iterdump())
            blobs = (bytes.fromhex(digits) for digits in _BLOB.findall(text))
            texts = [text.encode(errors="replace"), *blobs]
            return [Part(name, content, whole=False) for content in texts]
        except (sqlite3.Error, OverflowError, UnicodeError):
            return [Part(name, b"", "it is damaged")]


def _unpacked(name: str, content: bytes, left: list[int]) -> tuple[list[Part], bytes]:
    """What is packed in a content, wherever it begins, in its order, and the rest of the content."""
    found: list[Part] = []
    rest: list[bytes] = []
    at = done = 0
    while left[0] > 0 and (match := _PACKED.search(content, at)):
        at, start, label, mark = match.end(), match.start(), name, match[0][:1]
        if match["base64"]:
            letters = re.sub(rb"\\[nr]|[^A-Za-z0-9+/]", b"", match["base64"])
            data = base64.b64decode(letters[: len(letters) // 4 * 4])
            # Other letters may look like the beginning of packed data in base64, too.
            found.append(Part(name, data, whole=False))
            continue
        if mark == b"P":
            header = content[start : start + 30].ljust(30, b"\0")
            version, flags, method, size, length, extra = struct.unpack("<4xHHH8xI4xHH", header)
            if version > 99 or not 0 < length < 4096:
                continue
            label += "/" + content[start + 30 : start + 30 + length].decode(errors="replace")
            start += 30 + length + extra
            if flags & 1 or method not in (0, 8, 12):
                way = f"its method of packing in zip, {method}, is not known here"
                found.append(Part(label, b"", "it is encrypted" if flags & 1 else way))
                continue
        if mark == b"P" and method == 0:
            data, end, trouble = content[start : start + size], min(start + size, len(content)), ""
        else:
            data, end, trouble = _unpack(
                _UNPACKERS[b"B" if mark == b"P" and method == 12 else mark](), content, start, left
            )
        # Two bytes of a text or a picture may look like a beginning.
        first = match.start() == 0 and mark != b"x"
        if first or mark == b"P" or len(data) > 255 or (data and (mark != b"x" or not trouble)):
            found.append(Part(label, data, trouble, whole=mark != b"x"))
            rest.append(content[done:start])
            if mark == b"\x1f":
                rest.append(_gzip_texts(content, start))
            at = done = max(at, end)
    return found, b" ".join([*rest, content[done:]])


def _gzip_texts(content: bytes, start: int) -> bytes:
    """The extra field, the name and the comment in the header of gzip data (RFC 1952), a space before each."""
    flags, at, texts = content[start + 3], start + 10, b""
    if flags & 4:
        end = at + 2 + int.from_bytes(content[at : at + 2], "little")
        texts += b" " + content[at:end]
        at = end
    for field in (8, 16):
        if flags & field:
            end = content.find(b"\0", at) + 1 or len(content)
            texts += b" " + content[at:end]
            at = end
    return texts


_UNPACKERS: dict[bytes, Callable[[], Any]] = {
    b"\x1f": lambda: zlib.decompressobj(31),
    b"x": zlib.decompressobj,
    b"P": lambda: zlib.decompressobj(-15),
    b"B": bz2.BZ2Decompressor,
    b"\xfd": lzma.LZMADecompressor,
    b"]": lzma.LZMADecompressor,
}


def _unpack(unpacker: Any, content: bytes, start: int, left: list[int]) -> tuple[bytes, int, str]:
    """Unpacked data, where its packed form ends, and why it is not all of it, or empty."""
    found: list[bytes] = []
    at = start
    try:
        while not unpacker.eof:
            given = getattr(unpacker, "unconsumed_tail", b"")
            if not given and getattr(unpacker, "needs_input", True):
                given = content[at : at + _STEP]
                at += len(given)
                if not given:
                    return b"".join(found), at, "its end is missing"
            found.append(unpacker.decompress(given, 1 << 20))
            left[0] -= len(found[-1])
            if left[0] < 0:
                return b"".join(found), at, f"it unpacks to more than {MOST_BYTES >> 20} MiB"
    except (zlib.error, OSError, lzma.LZMAError, EOFError, ValueError):
        return b"".join(found), at, "it is damaged"
    return b"".join(found), at - len(unpacker.unused_data), ""


# Characters that nobody sees: controls, and formats such as marks of direction or without width.
_HIDDEN = (
    "\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e0fff"
)
# What a terminal does not show: colours, titles, the letter that a backspace takes back, and these.
_UNSEEN = re.compile(
    r"(?:\x1b|\\e)(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\^_])"
    rf"|\x9b[0-9;]+[mK]|[^\n]\x08|[{_HIDDEN}]+"
)
_ESCAPED = re.compile(
    r"""(?P<percent>(?:%[0-9A-Fa-f]{2})+)|\\(?:(?:x|u00)(?P<byte>[0-9A-Fa-f]{2})|u(?P<code>[0-9A-Fa-f]{4})"""
    r"""|(?P<octal>[0-3][0-7]{2})|[nrtfb]|(?P<letter>[\\/"']))"""
)
# The number before a text in a binary file may read as a letter of it.
_COUNT = re.compile(r"([\0-\x08\x0e-\x1f\ufffd])[ -~](?=[!-~]{8})")
# One text in two quotes, as Python, C, JavaScript, R and lists of JSON join them.
_QUOTES = re.compile(r"""(?<=[\w.+/=-])(["'`])[ \t]*[+.,]?[ \t]*\1(?=[\w.+/=-])""")
# What may stand behind a secret.  What stands before what is to be put in its place, such as < and {, stays.
_BEHIND = re.compile(r"</|[,)\]}>&|*]")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_PIECE = re.compile(r"[\w.+/=~:%@-]+")
_MARGIN = " \t\"'`+>|#*"
# The most letters of a line that belong to a text which is cut there, and the fewest in a line of base64.
_LONGEST, _BLOCK = 4096, 40
# So many layers of escapes and base64, one around the other, are taken off.
_LAYERS = 8


class Reading(NamedTuple):
    """A text with the lines of its file; those that read as in an earlier one may be empty.

    cut: whether letters were joined or parted in it that need not belong together.
    """

    text: str
    cut: bool = False


def text_of(content: bytes) -> str:
    """The text of a content: UTF-32 and UTF-16 where they say so, or else UTF-8."""
    for mark, encoding in (
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    # A log may hold what a tool printed in an encoding of its own.
    return content.decode(errors="replace")


def readings(content: bytes) -> Iterator[Reading]:
    """Yield the ways to read a content, by line: as it is, layer by layer without what hides a text, and joined.

    Each layer is read in two ways, since what is taken out of a line may part two texts, or stand in one.
    """
    plain = text_of(content)
    # Letters of UTF-16 and UTF-32 without a mark stand between zeros, also amid other data.
    parted = _COUNT.sub(r"\1 ", plain) if "\0" in plain else plain
    quoted = _QUOTES.sub("", _unescaped(plain, ""))
    joined = _joined(quoted.split("\n"))
    yield Reading(plain)
    for text, gap in ((plain, ""), (parted, " "), (joined, "")):
        yield from _layers(text, gap)
    for text in (_BEHIND.sub(" ", _unescaped(parted, " ")), quoted, joined):
        if changed := _changed_lines(plain, text):
            yield Reading(changed, cut=True)


def _layers(text: str, gap: str) -> Iterator[Reading]:
    """Yield what a text holds below each of its layers of escapes and base64, as far as it differs.

    gap: what takes the place of hidden characters.
    """
    for _ in range(_LAYERS):
        for _ in range(_LAYERS):
            unescaped = _unescaped(text, gap)
            if unescaped == text:
                break
            yield Reading(_changed_lines(text, unescaped))
            text = unescaped
        # Not before: half of a text that an escape parts may look like base64.
        decoded = _BASE64.sub(_decoded, text)
        text = _changed_lines(text, decoded)
        if not text:
            return
        yield Reading(text)


def _unescaped(text: str, gap: str) -> str:
    """A text without what a terminal does not show, and its escapes and percent signs decoded once."""

    def unescape(match: re.Match[str]) -> str:
        if match["percent"]:
            letters = urllib.parse.unquote(match["percent"])
        elif digits := match["byte"] or match["code"]:
            letters = chr(int(digits, 16))
        elif match["octal"]:
            letters = chr(int(match["octal"], 8))
        else:
            return gap + (match["letter"] or "")
        # Half of a pair of UTF-16 is no letter.
        return "" if "\ud800" <= letters[:1] <= "\udfff" else letters.replace("\n", " ")

    return _ESCAPED.sub(unescape, _UNSEEN.sub(gap, text))


def _changed_lines(old: str, new: str) -> str:
    """A text whose lines that are as in an older one are empty; empty itself where all are."""
    if new == old:
        return ""
    pairs = zip(new.split("\n"), old.split("\n"), strict=True)
    return "\n".join("" if line == former else line for line, former in pairs)


def _decoded(match: re.Match[str]) -> str:
    """What base64 stands for, in one line, or the same again where that is no text."""
    letters = match[0].rstrip("=").replace("-", "+").replace("_", "/")
    with contextlib.suppress(ValueError):
        whole = letters[: len(letters) - (len(letters) % 4 == 1)]
        content = base64.b64decode(whole + "=" * (-len(whole) % 4))
        content = content.replace(b"\0", b"").replace(b"\n", b" ")
        head = content[:64]
        # Letters beyond ASCII are among a text's, and few bytes of other data are letters.
        if len(content) > 5 and len(head.translate(None, _WRITTEN)) <= len(head) / 4:
            return content.decode(errors="replace")
    return match[0]


def _joined(lines: list[str]) -> str:
    """Each line whose end and the next one's beginning may be a text that was cut there, with what follows it."""
    found = [""] * len(lines)
    for number, line in enumerate(lines):
        text = _trimmed(line[-_LONGEST:])
        if not _PIECE.match(text[-1:]):
            continue
        # Within a block of lines of one length, as base64 has them, no text begins.
        if number and len(line) == len(lines[number - 1]) >= _BLOCK and _PIECE.fullmatch(line):
            continue
        pieces, texts = [text], []
        for at in range(number + 1, len(lines)):
            # Between two parts of a log stands a line of ours.
            if log_sections.MARK.fullmatch(lines[at]) or log_sections.LAP.fullmatch(lines[at]):
                continue
            rest = lines[at][:_LONGEST].lstrip(_MARGIN)
            if not _PIECE.match(rest):
                break
            # The line behind the last piece of a short text may be another text.
            if len(pieces) < 4:
                texts.append("".join([*pieces, rest]))
            pieces.append(_trimmed(rest))
            ends = len(pieces) > 8 and not len(lines[at]) == len(lines[at - 1]) >= _BLOCK
            if ends or not _PIECE.fullmatch(pieces[-1]):
                break
        if len(pieces) > 4:
            texts.append("".join(pieces))
        found[number] = " ".join(texts)
    return "\n".join(found)


def _trimmed(line: str) -> str:
    """A line without what joins it to the next."""
    return line.rstrip().removesuffix("+").removesuffix("\\").rstrip().rstrip("\"'`")
