"""From the bytes of a body to its text: content coding off, then charset. Bounded, and never an exception.

The client hands bodies over as they came, since clients unpack whatever they are sent. Here that stops one byte past the cap, a
body that ended early is told from one that is whole, and a wrong checksum does not cost the page. The text is valid Unicode: it
can be stored, hashed and sent as UTF-8 whatever went in.

Pure. Must not know: HTTP beyond two headers, what becomes of the text.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec
from isal import isal_zlib

from gossamer.outcomes import Outcome
from services.worker.charsets import CODECS, REPLACEMENT, UTF_8, UTF_16, WINDOWS_1252, charset_of
from services.worker.types import FIRST_BYTES, NO_LABEL, Headers, Label, in_two_bytes, label_of, refusal_by_bytes

#: Twice happens, by a proxy that did not look. Each further one only multiplies what a bomb weighs.
LAYERS_MAX: Final = 2

#: What is inflated at a time. Short, because what lies behind the end of a stream is copied, and a body may be 20,000 streams.
PIECE_BYTES: Final = 16 * 1024

#: File name and comment in front of a gzip member. No server writes one.
GZIP_HEAD_BYTES_MAX: Final = 4096

#: Where `<meta charset>` counts (HTML Standard, prescan).
PRESCAN_BYTES: Final = 1024


class Decoded(msgspec.Struct, frozen=True):
    """A body that can be read."""

    html: str
    raw: bytes  #: the body without its content coding: what its sha256 is of
    charset: str  #: by its name in the Encoding Standard
    checksum_bad: bool = False
    utf8: bytes | None = None  #: what `html` would be encoded to, if it came as that


class Undecodable(msgspec.Struct, frozen=True):
    """A body that can't be, or that is no page."""

    outcome: Outcome
    reason: str
    again: bool = False  #: it ended early: a second try is worth it


def decode(headers: Headers, body: bytes, cap_bytes: int) -> Decoded | Undecodable:
    """The text of a body as it came. No layer of it is unpacked further than one byte past the cap."""
    codings = list(_codings(headers))
    if len(codings) > LAYERS_MAX:
        return Undecodable(Outcome.BAD_ENCODING, f"{len(codings)} content codings")
    checksum_bad = False
    for coding in reversed(codings):
        if body:
            layer = _unpacked(coding, body, cap_bytes)
            if isinstance(layer, Undecodable):
                return layer
            body, checksum_bad = layer.out, checksum_bad or layer.checksum_bad
    if len(body) > cap_bytes:
        return _too_large(cap_bytes)
    return _read(body, label_of(headers), checksum_bad)


# --- Content codings ---


class _Unpacked(msgspec.Struct, frozen=True):
    """What was under one coding."""

    out: bytes
    checksum_bad: bool = False


def _codings(headers: Headers) -> Iterator[str]:
    for name, value in headers:
        if len(name) == 16 and name.lower() == "content-encoding":
            for coding in value.split(","):
                if (token := coding.strip(" \t").lower()) not in _NO_CODINGS:
                    yield token


def _unpacked(coding: str, body: bytes, cap_bytes: int) -> _Unpacked | Undecodable:
    if coding in ("gzip", "x-gzip"):
        unpacked = _gunzipped(body, cap_bytes)
    elif coding == "deflate":
        unpacked = _undeflated(body, cap_bytes)
    else:
        unpacked = Undecodable(Outcome.BAD_ENCODING, f"content coding {coding[:40]}")
    # A label without the thing: the page is there, plain to be read.
    if isinstance(unpacked, Undecodable) and unpacked.outcome is Outcome.BAD_ENCODING and coding not in _OTHER_CODINGS:
        return _Unpacked(body) if _is_text(body) else unpacked
    return unpacked


def _gunzipped(body: bytes, cap_bytes: int) -> _Unpacked | Undecodable:
    """Of all members in a row. What follows the first and is none is junk, which browsers pass over as well."""
    parts: list[bytes] = []
    at, room, checksum_bad = 0, cap_bytes, False
    while body.startswith(b"\x1f\x8b", at) or not parts:
        start = _gzip_head_end(body, at)
        inflated = None if start is None else _inflated(body, start, room)
        if inflated is None:
            if parts:
                break
            return Undecodable(Outcome.BAD_ENCODING, "not gzip")
        out, end = inflated
        if len(out) > room:
            return _too_large(cap_bytes)
        if end is None:
            return Undecodable(Outcome.MALFORMED, "gzip that ended early", again=True)
        checksum = isal_zlib.crc32(out).to_bytes(4, "little") + (len(out) & 0xFFFF_FFFF).to_bytes(4, "little")
        checksum_bad |= body[end : end + 8] != checksum
        parts.append(out)
        at, room = end + 8, room - len(out)
    return _Unpacked(b"".join(parts), checksum_bad)


def _gzip_head_end(body: bytes, at: int) -> int | None:
    """Where the deflate stream of the member at this place begins (RFC 1952); None if there is no member."""
    head = body[at : at + GZIP_HEAD_BYTES_MAX]
    if len(head) < 10 or not head.startswith(b"\x1f\x8b\x08") or head[3] & 0xE0:
        return None
    flags, end = head[3], 10
    if flags & _FEXTRA:
        end += 2 + int.from_bytes(head[10:12], "little")
    for flag in (_FNAME, _FCOMMENT):
        if flags & flag:
            end = head.find(b"\0", end) + 1
            if end == 0:
                return None
    if flags & _FHCRC:
        end += 2
    return at + end if end <= len(head) else None


def _undeflated(body: bytes, cap_bytes: int) -> _Unpacked | Undecodable:
    """With zlib's wrapper, as the standard has it, or without, as some servers do. Two bytes can't tell: both are tried."""
    early = False
    for start in (2, 0) if _zlib_head(body) else (0,):
        inflated = _inflated(body, start, cap_bytes)
        if inflated is None:
            continue
        out, end = inflated
        if len(out) > cap_bytes:
            return _too_large(cap_bytes)
        if end is not None:
            return _Unpacked(out, start == 2 and body[end : end + 4] != isal_zlib.adler32(out).to_bytes(4, "big"))
        early = True
    if early and not _is_text(body):
        return Undecodable(Outcome.MALFORMED, "deflate that ended early", again=True)
    return Undecodable(Outcome.BAD_ENCODING, "not deflate")


def unpacked_part(headers: Headers, body: bytes, cap_bytes: int) -> tuple[bytes, bool]:
    """What can be had of a body that may have been cut: as far as it goes, up to the cap; and whether that is all of it.

    gzip is known by its first bytes, whether it is the coding or the file itself; so servers that label both, or neither, don't
    matter. Of several members in a row it is the first.
    """
    whole = True
    if "deflate" in _codings(headers):
        body, whole = _inflated_part(body, 2 if _zlib_head(body) else 0, 4, cap_bytes)
    for _ in range(LAYERS_MAX + 1):
        start = _gzip_head_end(body, 0)
        if start is None:
            break
        body, all_of_it = _inflated_part(body, start, 8, cap_bytes)
        whole = whole and all_of_it
    return body[:cap_bytes], whole and len(body) <= cap_bytes


def _inflated_part(body: bytes, start: int, checksum_bytes: int, room: int) -> tuple[bytes, bool]:
    inflated = _inflated(body, start, room)
    if inflated is None:
        return body, True  # not deflate: it is taken as it is
    out, end = inflated
    return out[:room], end is not None and len(out) <= room and len(body) <= end + checksum_bytes


def _zlib_head(body: bytes) -> bool:
    """Deflate, a true check of the two bytes, and no preset dictionary, which nobody could have agreed on (RFC 1950)."""
    return len(body) > 2 and body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0 and not body[1] & 0x20


def _inflated(body: bytes, start: int, room: int) -> tuple[bytes, int | None] | None:
    """A raw deflate stream, and where it ends: None if it does not. Past `room` it stops. None if there is no such stream."""
    inflater = isal_zlib.decompressobj(-15)
    pieces: list[bytes] = []
    size = 0
    for at in range(start, len(body), PIECE_BYTES):
        try:
            piece = inflater.decompress(body[at : at + PIECE_BYTES], room + 1 - size)
        except isal_zlib.error:  # type: ignore[misc]  # the stub types it as a value
            return None
        pieces.append(piece)
        size += len(piece)
        if size > room:
            break
        if inflater.eof:
            return b"".join(pieces), min(at + PIECE_BYTES, len(body)) - len(inflater.unused_data)
    return b"".join(pieces), None


def _is_text(body: bytes) -> bool:
    return refusal_by_bytes(body, NO_LABEL) is None and not in_two_bytes(body[:FIRST_BYTES])


def _too_large(cap_bytes: int) -> Undecodable:
    return Undecodable(Outcome.TOO_LARGE, f"more than {cap_bytes} bytes")


_NO_CODINGS: Final = frozenset({"", "identity", "none", "utf-8", "binary"})

#: Known, not offered, and never text: a label without the thing is not to be looked for in them.
_OTHER_CODINGS: Final = frozenset({"br", "zstd", "compress", "x-compress", "dcb", "dcz", "aes128gcm", "exi", "pack200-gzip"})

_FHCRC, _FEXTRA, _FNAME, _FCOMMENT = 2, 4, 8, 16


# --- Charsets ---


def _read(raw: bytes, label: Label, checksum_bad: bool) -> Decoded | Undecodable:
    if not raw or raw.isspace():
        return Undecodable(Outcome.NO_CONTENT, "an empty body")
    if raw.startswith(_UTF_32_BOMS):
        return Undecodable(Outcome.BAD_ENCODING, "UTF-32")
    charset, text = _charset(raw, label)
    if charset == REPLACEMENT:
        return Undecodable(Outcome.BAD_ENCODING, f"charset {label.charset}")
    if charset not in UTF_16:
        if (reason := refusal_by_bytes(raw, label)) is not None:
            return Undecodable(Outcome.WRONG_TYPE, reason)
        if in_two_bytes(raw[:FIRST_BYTES]):
            return Undecodable(Outcome.BAD_ENCODING, "UTF-16 that does not say so")
    if charset is None:
        charset, html = _guessed(text)
    else:
        html = text.decode(CODECS[charset], "replace")
    if html.isspace() or not html:
        return Undecodable(Outcome.NO_CONTENT, "a blank body")
    if "\0" in html:
        html = html.replace("\0", "\ufffd")
    utf8 = text if charset == UTF_8 and "\ufffd" not in html else None  # else a byte of it may have been none of a character
    return Decoded(html, raw, charset, checksum_bad, utf8)


def _charset(raw: bytes, label: Label) -> tuple[str | None, bytes]:
    """Who says it first: BOM, header, `<meta>`. With it the body without its BOM, which is no part of the text."""
    for bom, charset in _BOMS:
        if raw.startswith(bom):
            return charset, raw[len(bom) :]
    return charset_of(label.charset) or _charset_in_meta(raw[:PRESCAN_BYTES]), raw


def _guessed(raw: bytes) -> tuple[str, str]:
    """Text in another charset is hardly ever valid UTF-8 by chance."""
    try:
        return UTF_8, raw.decode("utf-8")
    except UnicodeDecodeError:
        return WINDOWS_1252, raw.decode(CODECS[WINDOWS_1252], "replace")


def _charset_in_meta(head: bytes) -> str | None:
    """The HTML Standard's prescan: the first `<meta>` with a charset that is one. Comments and attributes don't count."""
    lowered = head.lower()
    if b"charset" not in lowered and b"encoding" not in lowered:
        return None
    at = 0
    while (tag := _TAG(lowered, at)) is not None:
        attributes, at = _attributes(lowered, tag.end()) if tag[1] else ({}, tag.end())
        if tag[1] == b"meta" and (charset := _declared(attributes)) is not None:
            return charset
    declaration = _XML_ENCODING(lowered)
    return None if declaration is None else _readable(declaration[1])


def _attributes(head: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    found: dict[bytes, bytes] = {}
    while (attribute := _ATTRIBUTE(head, at)) is not None:
        found.setdefault(attribute[1], attribute[2] or attribute[3] or attribute[4] or b"")
        at = attribute.end()
    return found, at


def _declared(attributes: dict[bytes, bytes]) -> str | None:
    if b"charset" in attributes:
        return _readable(attributes[b"charset"])
    if attributes.get(b"http-equiv") == b"content-type":
        content = _CHARSET_IN_CONTENT(attributes.get(b"content", b""))
        return None if content is None else _readable(content[1])
    return None


def _readable(label: bytes) -> str | None:
    """A page whose `<meta>` could be read as ASCII is not in UTF-16, whatever it says."""
    charset = charset_of(label.decode("latin-1"))
    return UTF_8 if charset in UTF_16 else charset


_BOMS: Final = ((b"\xef\xbb\xbf", UTF_8), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
_UTF_32_BOMS: Final = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")

#: A comment, a tag with its name, or something else in angle brackets.
_TAG: Final = re.compile(rb"<!--(?:-?>|.*?-->|.*)|<(/?[a-z][^\t\n\f\r />]*+)|<[!?/][^>]*+", re.DOTALL).search
_ATTRIBUTE: Final = re.compile(
    rb"[\t\n\f\r /]*+([^\t\n\f\r />][^\t\n\f\r />=]*+)"
    rb"(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"([^\"]*+)(?:\"|$)|'([^']*+)(?:'|$)|([^\t\n\f\r >]*+)))?+"
).match
_CHARSET_IN_CONTENT: Final = re.compile(rb"charset[\t\n\f\r ]*+=[\t\n\f\r ]*+[\"']?+([^\"';\t\n\f\r ]++)").search
_XML_ENCODING: Final = re.compile(rb"<\?xml[^>]*?encoding[\t\n\f\r ]*+=[\t\n\f\r ]*+[\"']([^\"'>]*+)[\"']").match
