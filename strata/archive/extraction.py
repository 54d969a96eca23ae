"""Find all text in files, through compression, archive formats and encodings.

A file is searched for compressed data at every offset, so that neither other bytes around that data
nor a missing end hides it: modules such as `zipfile` need a whole file.
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
from dataclasses import dataclass
from typing import Any, NamedTuple

from strata.measure import log_sections

# The largest number of bytes to which one file may unpack (64 MiB), and of levels of compression.
MAX_BYTES = 64 << 20
MAX_DEPTH = 6
# Bytes that are decompressed at a time: few, so that little is lost before a damaged place.
_STEP = 16
# First bytes of compressed data: gzip, bzip2, xz, the older lzma, zlib (in PDF and PNG), a member
# of a zip file; and in base64 these, PDF, PNG, ELF, SQLite, and base64 of compressed data.
_PACKED = re.compile(
    rb"\x1f\x8b\x08[\0-\x1f]|BZh[1-9]1AY&SY|\xfd7zXZ\0|\A\x5d\0\0[\0-\xff]{2}"
    rb"|x[\x01\x5e\x9c\xda]|PK\x03\x04"
    rb"|(?P<base64>(?:H4sI|Qlpo[MNOQRSTUV]|/Td6WFo|UEsDB|XQAA|e[AFJNV][A-Za-z0-9+/]|JVBERi|iVBORw"
    rb"|f0VMRg|U1FMaXRl|SDRzS|UWxwb|L1RkN|VUVzRE)(?:[A-Za-z0-9+/]|\\[nr]|[\s\"']){20,})"
)
# The decompressor of each format, by its first byte; those of zip members by the number of their
# compression method (8 deflate, 12 bzip2).  zlib's window bits: 31 expects the header of gzip, -15
# none.
_UNPACKERS: dict[bytes | int, Callable[[], Any]] = {
    b"\x1f": lambda: zlib.decompressobj(31),
    b"x": zlib.decompressobj,
    b"B": bz2.BZ2Decompressor,
    b"\xfd": lzma.LZMADecompressor,
    b"]": lzma.LZMADecompressor,
    8: lambda: zlib.decompressobj(-15),
    12: bz2.BZ2Decompressor,
}
# First bytes of images, fonts, videos and PDF, in which noise is not a sign of encryption.
_MEDIA = re.compile(rb"\x89PNG|\xff\xd8\xff|GIF8|RIFF|wOF[F2]|%PDF|\0{3}.ftyp", re.DOTALL)
# A value of a database that is not text, as SQL writes it.
_BLOB = re.compile("X'((?:[0-9A-Fa-f]{2})+)'")
# Bytes of an ASCII text.
_PRINTABLE = bytes(range(32, 127)) + b"\t\n\r\x1b"


class Part(NamedTuple):
    """A file, or data that was unpacked from one.

    name: path of the file; a member of an archive format adds its own path after a slash.
    content: the bytes, without those that other parts hold unpacked.
    problem: a clause that says why the part cannot be searched as a whole; empty if it can.
    is_file: whether the part is a whole file, and not a piece of one.
    is_noise: whether its bytes look random, so that short texts in them mean nothing.
    """

    name: str
    content: bytes
    problem: str = ""
    is_file: bool = True
    is_noise: bool = False


@dataclass
class Budget:
    """How many bytes may still be unpacked from a file; unpacking lowers it."""

    left: int


def unwrap_file(name: str, content: bytes) -> Iterator[Part]:
    """Yield a file without the compressed data in it, and then the unpacked data.

    name: the path of the file, which begins the names of the parts.
    content: the bytes of the file.
    Compressed data in compressed data is unpacked, too.  If the file exceeds `MAX_DEPTH` levels or
    `MAX_BYTES` bytes, the `problem` of a part says so.
    The file itself must be the first part: :func:`unwrap_text` drops it.
    """
    yield from _unwrap_part(Part(name, content), MAX_DEPTH, Budget(MAX_BYTES))


def unwrap_text(name: str, text: str) -> list[Part]:
    """Return the parts that are unpacked from base64 in a text.

    name: the path of the file that holds the text.
    text: the text; characters that have no UTF-8 are replaced.
    The list is empty if no base64 in the text begins like compressed data or a file of `_PACKED`.
    """
    content = text.encode(errors="replace")
    if not any(match["base64"] for match in _PACKED.finditer(content)):
        return []
    _, *unpacked_parts = unwrap_file(name, content)
    return unpacked_parts


def _unwrap_part(part: Part, depth: int, budget: Budget) -> Iterator[Part]:
    """Yield a part without the compressed data in it, and then parts with the unpacked data.

    part: the part, whose content is not changed.
    depth: how many levels of compression may still be unpacked.
    budget: how many bytes may still be unpacked; it is lowered.
    The part itself comes first.  A part that cannot be searched as a whole has a `problem`.
    """
    name, content = part.name, part.content
    if content.startswith(b"\x89PNG"):
        content = _remove_pixels(content)
    if content.startswith(b"SQLite format 3\0"):
        members = _read_sqlite(name, content)
        remainder = content
    # A header of tar has this magic at offset 257.
    elif content[257:262] == b"ustar":
        members, remainder = _split_tar(name, content)
    else:
        members, remainder = _extract_compressed_data(name, content, budget)
    problem = part.problem
    is_noise = _is_noise(remainder)
    if not problem:
        if b"/Encrypt" in content and content.startswith(b"%PDF"):
            problem = "it is encrypted"
        elif members and not depth:
            problem = f"it is packed more than {MAX_DEPTH} times"
        elif is_noise and part.is_file and not members and not _MEDIA.match(content):
            problem = "it is packed or encrypted in a way that is not known here"
    yield Part(name, remainder, problem, part.is_file, is_noise)
    if depth:
        for member in members:
            yield from _unwrap_part(member, depth - 1, budget)


def _remove_pixels(content: bytes) -> bytes:
    """Return a PNG file without its pixels (chunks IDAT), which hold no text.

    Bytes that do not belong to a chunk stay.
    """
    # After a signature of 8 bytes, a chunk is its length (4 bytes), type (4), data and CRC (4).
    start = 8
    chunks = [content[:start]]
    while start + 12 <= len(content):
        end = start + 12 + int.from_bytes(content[start : start + 4], "big")
        if end > len(content):
            break
        # The length and checksum around a chunk's data could pass for letters of its text.
        if content[start + 4 : start + 8] != b"IDAT":
            chunks.append(b"\n" + content[start + 8 : end - 4] + b"\n")
        start = end
    return b"".join([*chunks, content[start:]])


def _is_noise(content: bytes) -> bool:
    """Return whether bytes look random, as compressed or encrypted data does.

    They do if at least 16 of them are not zero, they are not UTF-8, at most 60 % are printable, and
    they compress by less than 5 %.  Only the first 256 KiB are considered.
    A file of noise is reported as encrypted.  Noise is searched only for secrets.
    """
    sample = content[: 1 << 18].replace(b"\0", b"")
    with contextlib.suppress(UnicodeError):
        sample.decode()
        return False
    printable = len(sample) - len(sample.translate(None, _PRINTABLE))
    if len(sample) < 16 or printable > 0.6 * len(sample):
        return False
    return len(zlib.compress(sample)) > 0.95 * len(sample)


def _split_tar(name: str, content: bytes) -> tuple[list[Part], bytes]:
    """Return the regular files in a tar archive as parts, and the archive's remaining bytes.

    name: the path of the archive.
    For a damaged archive, the files before the damaged place are returned, and a part that names
    the problem.  Sparse files, whose data is in pieces, stay in the remaining bytes.
    """
    members: list[Part] = []
    remainder: list[bytes] = []
    end = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            for member in archive:
                if member.isreg() and not member.sparse:
                    start = member.offset_data
                    remainder.append(content[end:start])
                    end = start + member.size
                    problem = "its end is missing" if end > len(content) else ""
                    members.append(Part(f"{name}/{member.name}", content[start:end], problem))
    except (tarfile.TarError, OSError, ValueError):
        members.append(Part(name, b"", "it is damaged"))
    return members, b"".join([*remainder, content[end:]])


def _read_sqlite(name: str, content: bytes) -> list[Part]:
    """Return parts with the content of an SQLite database: the whole as SQL, and each binary value.

    The file's bytes are not enough, since a long text may be split over pages.
    name: the path of the database.  For a damaged database, the only part names the problem.
    """
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        try:
            database.deserialize(content)
            text = "\n".join(database.iterdump())
        except (sqlite3.Error, OverflowError, UnicodeError):
            return [Part(name, b"", "it is damaged")]
    blobs = [bytes.fromhex(digits) for digits in _BLOB.findall(text)]
    return [Part(name, value, is_file=False) for value in (text.encode(errors="replace"), *blobs)]


def _extract_compressed_data(name: str, content: bytes, budget: Budget) -> tuple[list[Part], bytes]:
    """Return the data that is compressed in a content as unpacked parts, and the remaining bytes.

    name: the path of the file.
    content: the bytes in which compressed data is looked for, at every offset.
    budget: how many bytes may still be unpacked; it is lowered, and the search ends at 0.
    The remaining bytes keep their order.  A space replaces the data that was cut out, so that the
    bytes around it do not form a new text.
    """
    members: list[Part] = []
    remainder: list[bytes] = []
    search_offset = 0
    # The bytes before this offset are in a member or in the remainder.
    remainder_offset = 0
    while budget.left > 0 and (match := _PACKED.search(content, search_offset)):
        search_offset = match.end()
        if match["base64"]:
            letters = re.sub(rb"\\[nr]|[^A-Za-z0-9+/]", b"", match["base64"])
            # Four letters stand for three bytes; letters of an incomplete group are dropped.
            data = base64.b64decode(letters[: len(letters) // 4 * 4])
            # The letters stay in the remainder: a text may look like packed data in base64, too.
            members.append(Part(name, data, is_file=False))
            continue
        if match[0].startswith(b"P"):
            unpacked_data = _unpack_zip_member(name, content, match.start(), budget)
        else:
            unpacked_data = _unpack_stream(name, content, match.start(), budget)
        if unpacked_data is None:
            continue
        data_start, member, data_end = unpacked_data
        members.append(member)
        remainder.append(content[remainder_offset:data_start])
        if match[0].startswith(b"\x1f"):
            remainder.append(_read_gzip_strings(content, data_start))
        search_offset = max(search_offset, data_end)
        remainder_offset = search_offset
    return members, b" ".join([*remainder, content[remainder_offset:]])


def _unpack_stream(
    name: str, content: bytes, start: int, budget: Budget
) -> tuple[int, Part, int] | None:
    """Unpack data that gzip, bzip2, xz, lzma or zlib compressed, which may be damaged.

    name: the path of the file.
    content: the bytes that hold the compressed data.
    start: the offset in `content` of the first byte, which shows the format.
    budget: how many bytes may still be unpacked; it is lowered.
    Returns the offset of the compressed data, the unpacked part, and the offset after the data;
    None if the bytes only look like compressed data.
    """
    first_byte = content[start : start + 1]
    is_zlib = first_byte == b"x"
    data, end, problem = _decompress(_UNPACKERS[first_byte](), content, start, budget)
    # Bytes of a text or a picture may look like the beginning of compressed data, most often the
    # two bytes of zlib.  Then little is unpacked, or none, and with damage.  If 256 bytes or more
    # are unpacked, they count as compressed data in spite of the damage.
    is_likely = bool(data)
    if is_zlib and problem:
        is_likely = False
    elif not is_zlib and start == 0:
        is_likely = True
    if not is_likely and len(data) < 256:
        return None
    return start, Part(name, data, problem, is_file=not is_zlib), end


def _unpack_zip_member(
    name: str, content: bytes, start: int, budget: Budget
) -> tuple[int, Part, int] | None:
    """Unpack one member of a zip file, which may be damaged or lack its central directory.

    name: the path of the zip file.
    content: the bytes that hold the zip file.
    start: the offset in `content` of the bytes that look like the member's local header.
    budget: how many bytes may still be unpacked; it is lowered.
    Returns the offset of the member's data, the member, and the offset after its data; None if the
    bytes are not such a header.
    """
    # Local file header: signature, version needed, flags, compression method, time, date, CRC-32,
    # compressed size, size, length of the name, length of the extra field.
    header = content[start : start + 30].ljust(30, b"\0")
    fields = struct.unpack("<4xHHH8xI4xHH", header)
    version, flags, method, size, name_length, extra_length = fields
    # No version is above 9.9, and a name this long is not a path of Linux.
    if version > 99 or not 0 < name_length < 4096:
        return None
    name_end = start + 30 + name_length
    path = f"{name}/{content[start + 30 : name_end].decode(errors='replace')}"
    data_start = name_end + extra_length
    # Flag 1 is encryption.
    if flags & 1:
        return data_start, Part(path, b"", "it is encrypted"), data_start
    # Method 0 stores the data without compression.
    if method == 0:
        end = min(data_start + size, len(content))
        return data_start, Part(path, content[data_start:end]), end
    if method not in _UNPACKERS:
        problem = f"its method of packing in zip, {method}, is not known here"
        return data_start, Part(path, b"", problem), data_start
    data, end, problem = _decompress(_UNPACKERS[method](), content, data_start, budget)
    return data_start, Part(path, data, problem), end


def _read_gzip_strings(content: bytes, start: int) -> bytes:
    """Return the extra field, name and comment of gzip data, a space before each.

    content: the bytes that hold the gzip data.
    start: the offset in `content` of the gzip header (RFC 1952).
    The result has the length bytes of the extra field and the NUL bytes after name and comment,
    too.  A field whose end is missing lasts until the end of `content`.
    """
    # The fixed header has 10 bytes, its flags at 3: 4 FEXTRA (with a length of 2 bytes), 8 FNAME
    # and 16 FCOMMENT (each ended by NUL).
    flags = content[start + 3]
    field_start = start + 10
    strings = b""
    if flags & 4:
        length_bytes = content[field_start : field_start + 2]
        field_end = field_start + 2 + int.from_bytes(length_bytes, "little")
        strings += b" " + content[field_start:field_end]
        field_start = field_end
    for flag in (8, 16):
        if flags & flag:
            nul_offset = content.find(b"\0", field_start)
            field_end = len(content) if nul_offset == -1 else nul_offset + 1
            strings += b" " + content[field_start:field_end]
            field_start = field_end
    return strings


def _decompress(
    unpacker: Any, content: bytes, start: int, budget: Budget
) -> tuple[bytes, int, str]:
    """Decompress data from an offset of a content until its end, damage, or an empty budget.

    unpacker: a new decompressor object of zlib, bz2 or lzma.
    content: the bytes that hold the compressed data.
    start: the offset in `content` where the compressed data begins.
    budget: how many bytes may still be unpacked; it is lowered, below 0 if it ended the data.
    Returns the data, the offset after its compressed form, and a clause that says why the data is
    incomplete, such as "its end is missing"; "" if it is complete.
    """
    pieces: list[bytes] = []
    end = start
    problem = ""
    try:
        while not unpacker.eof:
            # zlib keeps input that it has not used yet here; the others keep it inside.
            packed = getattr(unpacker, "unconsumed_tail", b"")
            if not packed and getattr(unpacker, "needs_input", True):
                packed = content[end : end + _STEP]
                end += len(packed)
                if not packed:
                    problem = "its end is missing"
                    break
            # At most 1 MiB at a time, so that little is unpacked beyond the budget.
            pieces.append(unpacker.decompress(packed, 1 << 20))
            budget.left -= len(pieces[-1])
            if budget.left < 0:
                problem = f"it unpacks to more than {MAX_BYTES >> 20} MiB"
                break
        else:
            end -= len(unpacker.unused_data)
    except (zlib.error, OSError, lzma.LZMAError, EOFError, ValueError):
        problem = "it is damaged"
    return b"".join(pieces), end, problem


# Characters that nobody sees: controls, and formats such as marks of direction or without width.
_HIDDEN = (
    "\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff9-\ufffb\U000e0000-\U000e0fff"
)
# Text that a terminal does not show: hidden characters, colours, titles, the letter before a
# backspace.
_UNSEEN = re.compile(
    r"(?:\x1b|\\e)(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\^_])"
    rf"|\x9b[0-9;]+[mK]|[^\n]\x08|[{_HIDDEN}]+"
)
# Escapes of URLs, JSON, programming languages and shells.
_ESCAPED = re.compile(
    r"""(?P<percent>(?:%[0-9A-Fa-f]{2})+)|\\(?:(?:x|u00)(?P<byte>[0-9A-Fa-f]{2})"""
    r"""|u(?P<code>[0-9A-Fa-f]{4})|(?P<octal>[0-3][0-7]{2})|[nrtfb]|(?P<letter>[\\/"']))"""
)
# The length before a text in a binary file, which may look like a letter of the text.
_COUNT = re.compile(r"([\0-\x08\x0e-\x1f\ufffd])[ -~](?=[!-~]{8})")
# The end of one quoted text and the beginning of the next, as programs and lists of JSON join them.
_QUOTES = re.compile(r"""(?<=[\w.+/=-])(["'`])[ \t]*[+.,]?[ \t]*\1(?=[\w.+/=-])""")
# Characters that may follow a secret.  Characters that begin a placeholder, for example < and {,
# are not among them.
_AFTER_SECRET = re.compile(r"</|[,)\]}>&|*]")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
# A piece of a text that may be cut over lines.
_PIECE = re.compile(r"[\w.+/=~:%@-]+")
# Characters that may stand before the next piece of a text that was cut over lines.
_MARGIN = " \t\"'`+>|#*"
# The most letters of a line that belong to a text which is cut there.
_MAX_PIECE_LETTERS = 4096
# The fewest letters in a line of a block of base64.
_MIN_BLOCK_LETTERS = 40
# The most lines of a short text, of which the first two, three and so on are also joined.
_MAX_SHORT_PIECES = 4
# The most lines of any text but a block of base64.
_MAX_PIECES = 8
# A line that Strata writes between two sections of a log, over which a text runs on.
_MARKER = re.compile(f"{log_sections.SYSTEM_MARKER.pattern}|{log_sections.LAP_MARKER.pattern}")
# How many layers of escapes and base64, one around the other, are decoded.
_LAYERS = 8


class Reading(NamedTuple):
    """The text of a content by one way of reading it.

    text: has the line numbers of the content; lines equal to those of an earlier reading may be
    empty.
    is_guess: whether letters were joined or separated that need not belong together or apart.
    is_decoded: whether escapes or base64 were decoded.
    """

    text: str
    is_guess: bool = False
    is_decoded: bool = False


def decode_text(content: bytes) -> str:
    """Return bytes as text: UTF-32 or UTF-16 if they begin with its byte order mark, else UTF-8.

    Invalid bytes become U+FFFD, since a tool may print in another encoding.
    """
    # UTF-32 comes first: its little-endian mark begins with that of UTF-16.
    for mark, encoding in (
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    return content.decode(errors="replace")


def list_readings(content: bytes) -> Iterator[Reading]:
    """Yield the readings of a content: as it is, decoded layer by layer, and joined over lines.

    content: the bytes of a file, or of data unpacked from one.
    Invisible characters are dropped in one reading, since they may split a text, and replaced by a
    space in another, since they may be all that separates a text from others.
    The order must stay: strata/archive/private.py skips a secret of a later reading that an earlier
    one has shown.
    """
    plain = decode_text(content)
    separated = plain
    # Letters of UTF-16 and UTF-32 without a mark stand between zeros, also amid other data.
    if "\0" in plain:
        separated = _COUNT.sub(r"\1 ", plain)
    unquoted = _QUOTES.sub("", _decode_escapes(plain, ""))
    joined = _join_lines(unquoted.split("\n"))
    yield Reading(plain)
    yield from _decode_layers(plain, "")
    yield from _decode_layers(separated, " ")
    yield from _decode_layers(joined, "")
    for text in (_AFTER_SECRET.sub(" ", _decode_escapes(separated, " ")), unquoted, joined):
        if changed := _keep_changed_lines(plain, text):
            yield Reading(changed, is_guess=True)


def _decode_layers(text: str, gap: str) -> Iterator[Reading]:
    """Yield a reading of a text after each layer of escapes or base64 that is decoded.

    gap: the text that replaces invisible characters.
    Lines that a layer leaves unchanged are empty, since the caller has read them.
    All escapes are decoded, up to `_LAYERS` layers, and then one layer of base64; both are repeated
    up to `_LAYERS` times.
    """
    for _ in range(_LAYERS):
        for _ in range(_LAYERS):
            unescaped = _decode_escapes(text, gap)
            if unescaped == text:
                break
            yield Reading(_keep_changed_lines(text, unescaped), is_decoded=True)
            text = unescaped
        # Base64 comes last: half of a word in which an escape stands may look like it.
        text = _keep_changed_lines(text, _BASE64.sub(_decode_base64, text))
        if not text:
            return
        yield Reading(text, is_decoded=True)


def _decode_escapes(text: str, gap: str) -> str:
    """Return a text with its escapes decoded once, and without its invisible characters.

    gap: the text that replaces invisible characters and escapes of white space.
    The number of lines stays: :func:`_keep_changed_lines` relies on it.
    """

    def decode_escape(match: re.Match[str]) -> str:
        """Return the characters that a match of `_ESCAPED` encodes."""
        if match["percent"]:
            letters = urllib.parse.unquote(match["percent"])
        elif digits := match["byte"] or match["code"]:
            letters = chr(int(digits, 16))
        elif match["octal"]:
            letters = chr(int(match["octal"], 8))
        else:
            return gap + (match["letter"] or "")
        # A surrogate, half of a pair of UTF-16, is not a character.
        return "" if "\ud800" <= letters[:1] <= "\udfff" else letters.replace("\n", " ")

    return _ESCAPED.sub(decode_escape, _UNSEEN.sub(gap, text))


def _keep_changed_lines(old: str, new: str) -> str:
    """Return a new text in which each line that equals the old text's line is empty.

    old: the old text.
    new: the new text, with the same number of lines.
    Returns "" if the texts are equal.
    Raises ValueError if the numbers of lines differ.
    """
    if new == old:
        return ""
    pairs = zip(new.split("\n"), old.split("\n"), strict=True)
    return "\n".join("" if new_line == old_line else new_line for new_line, old_line in pairs)


def _decode_base64(match: re.Match[str]) -> str:
    """Return the text that a match of `_BASE64` encodes, in one line.

    Returns the base64 itself if the decoded bytes are not text, or fewer than six.
    """
    letters = match[0].rstrip("=").replace("-", "+").replace("_", "/")
    # Four letters stand for three bytes; one letter more stands for none.
    if len(letters) % 4 == 1:
        letters = letters[:-1]
    content = base64.b64decode(letters + "=" * (-len(letters) % 4))
    content = content.replace(b"\0", b"").replace(b"\n", b" ")
    head = content[:64]
    # A text has few bytes that are not printable, for example those beyond ASCII; data has many.
    if len(content) > 5 and len(head.translate(None, _PRINTABLE)) <= len(head) / 4:
        return content.decode(errors="replace")
    return match[0]


def _join_lines(lines: list[str]) -> str:
    """Return a text in which each line is joined to the lines after it.

    lines: the lines of a text in which a secret may be cut at the end of a line.
    Each line of the result holds the line joined to the next one, to the next two, and so on, with
    spaces between these strings: ["ab", "cd", "ef"] gives "abcd abcdef", "cdef" and "".  It is
    empty if no string can continue after the line.
    The number of lines stays, since findings name lines.
    """
    joined_lines = [""] * len(lines)
    # Whether a line has the length of the preceding line, as within a block of base64.
    continues_block = [False]
    for line, preceding_line in zip(lines[1:], lines, strict=False):
        continues_block.append(len(line) == len(preceding_line) >= _MIN_BLOCK_LETTERS)
    for index, line in enumerate(lines):
        first_piece = _strip_continuation(line[-_MAX_PIECE_LETTERS:])
        # A string continues only after a character of `_PIECE`.
        if not _PIECE.match(first_piece[-1:]):
            continue
        # No string begins within a block.
        if continues_block[index] and _PIECE.fullmatch(line):
            continue
        joined_lines[index] = _join_following_lines(first_piece, lines, index, continues_block)
    return "\n".join(joined_lines)


def _join_following_lines(
    first_piece: str, lines: list[str], index: int, continues_block: list[bool]
) -> str:
    """Return a piece joined to the pieces in the lines after it, with spaces between the strings.

    first_piece: the end of the line with this index.
    lines: all lines of the text.
    index: the index of the line, from 0.
    continues_block: for each line, whether it has the length of the preceding line.
    Lines that Strata writes between sections of a log are skipped.
    """
    pieces = [first_piece]
    joined_strings = []
    for next_index in range(index + 1, len(lines)):
        next_line = lines[next_index]
        if _MARKER.fullmatch(next_line):
            continue
        piece = next_line[:_MAX_PIECE_LETTERS].lstrip(_MARGIN)
        if not _PIECE.match(piece):
            break
        # The line after the last piece of a short string may be another string.
        if len(pieces) < _MAX_SHORT_PIECES:
            joined_strings.append("".join([*pieces, piece]))
        pieces.append(_strip_continuation(piece))
        is_too_long = len(pieces) > _MAX_PIECES and not continues_block[next_index]
        if is_too_long or not _PIECE.fullmatch(pieces[-1]):
            break
    if len(pieces) > _MAX_SHORT_PIECES:
        joined_strings.append("".join(pieces))
    return " ".join(joined_strings)


def _strip_continuation(line: str) -> str:
    """Return a line without the characters at its end that continue it in the next line.

    These are spaces, quotes, a backslash or a plus sign.
    """
    return line.rstrip().removesuffix("+").removesuffix("\\").rstrip().rstrip("\"'`")
