"""Is this a page? Decided from the head and the first bytes, so that nothing else is ever read to its end.

HTML and plain text are pages, and nothing else is. A label is believed unless the bytes say that it can't be true; where there is
none, or a senseless one, the bytes decide, by the rules that browsers follow (MIME Sniffing Standard). Both questions are pure,
and asked twice: while the body arrives, and of what a content coding hid.

Must not know: how bytes arrive, or how they are decoded.
"""

import re
from functools import lru_cache
from typing import Final

import msgspec

Headers = tuple[tuple[str, str], ...]

#: What a decision by the bytes looks at (MIME Sniffing Standard, section 7).
FIRST_BYTES: Final = 1445

PAGE_TYPES: Final = frozenset({"text/html", "application/xhtml+xml", "text/plain"})

#: Labels that say nothing, as none does: written by servers that don't know.
SENSELESS_TYPES: Final = frozenset({"*/*", "unknown/unknown", "application/unknown", "application/x-unknown-content-type"})


class Label(msgspec.Struct, frozen=True):
    """What the head says of the body."""

    type: str | None  #: in lower case, without parameters; None if it says nothing
    charset: str | None  #: as it stands there


def label_of(headers: Headers) -> Label:
    """The last `Content-Type` that is one decides, as in browsers."""
    label = NO_LABEL
    for name, value in headers:
        if len(name) == 12 and name.lower() == "content-type":
            # Few labels label the whole web; overlong ones are not worth remembering.
            label = (_label_in(value) if len(value) <= 128 else _label_in.__wrapped__(value)) or label
    return label


def refusal_by_head(headers: Headers) -> str | None:
    """Why the body is not worth reading, or None."""
    for name, value in headers:
        if len(name) == 19 and name.lower() == "content-disposition" and _ATTACHMENT(value):
            return "an attachment"
    type = label_of(headers).type
    return None if type is None or type in PAGE_TYPES else f"a body of type {type[:80]}"


def refusal_by_bytes(first: bytes, label: Label) -> str | None:
    """Why a body that begins so is no page, whatever its label says; or None. `first` is the body if it is shorter."""
    first = first[:FIRST_BYTES]
    if first.startswith(_SIGNATURES) or _SIGNATURE(first):
        return "a body that begins as a file of another type"
    if label.type is None and _XML(first) and b"<html" not in first.lower():
        return "a body of XML"
    if first.startswith(_BOMS) or in_two_bytes(first):
        return None
    binary = len(first.translate(None, _TEXT_BYTES))
    # Old pages have a stray control character or two; one byte in ten of compressed or random data is one.
    return "a binary body" if binary * BINARY_SHARE > len(first) else None


def in_two_bytes(first: bytes) -> bool:
    """Is every second byte of these nearly always NUL, and the other one seldom? So Western text looks in UTF-16."""
    if 0 not in first:
        return False
    half = len(first) // 2
    low, high = sorted((first[::2].count(0), first[1::2].count(0)))
    return half > 1 and high * 10 >= half * 6 and low * 10 <= half


#: One in twenty.
BINARY_SHARE: Final = 20

NO_LABEL: Final = Label(None, None)


@lru_cache(maxsize=256)
def _label_in(value: str) -> Label | None:
    """Of one header line; None if it is no label. A list is what proxies make of several lines."""
    found = None
    for part in value.split(","):
        if (match := _MEDIA_TYPE(part)) is not None:
            charset = _CHARSET(part, match.end(1))
            type = match[1].lower()
            found = Label(None if type in SENSELESS_TYPES else type, charset and charset[1])
    return found


_MEDIA_TYPE: Final = re.compile(r"[ \t]*([!#$%&'*+\-.^_`|~\w]++/[!#$%&'*+\-.^_`|~\w]++)[ \t]*(?:;|$)", re.ASCII).match
_CHARSET: Final = re.compile(r"[; \t]charset[ \t]*=[ \t]*[\"']?([^\"';\s]++)", re.IGNORECASE).search
_ATTACHMENT: Final = re.compile(r"[ \t]*attachment[ \t]*(?:;|$)", re.IGNORECASE).match

#: UTF-8, and both orders of UTF-16 (UTF-32 begins as one of them).
_BOMS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")

#: Those no text begins with. Formats whose mark could be a word (BM, MZ, ID3) are full of binary bytes, and found by these.
_SIGNATURES: Final = (
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"GIF87a",
    b"GIF89a",
    b"%PDF-",
    b"%!PS-Adobe-",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"\x1f\x8b\x08",
    b"BZh91AY&SY",
    b"\xfd7zXZ\x00",
    b"\x28\xb5\x2f\xfd",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    b"\x7fELF",
    b"\x00asm",
    b"\xca\xfe\xba\xbe",
    b"OggS\x00",
    b"fLaC",
    b"MThd\x00",
    b"\x1aE\xdf\xa3",
    b"FLV\x01",
    b"wOFF\x00",
    b"wOF2\x00",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    b"SQLite format 3\x00",
)
_SIGNATURE: Final = re.compile(rb".{4}ftyp|RIFF.{4}(?:WEBPVP|AVI |WAVE)", re.DOTALL).match
_XML: Final = re.compile(rb"[\t\n\f\r ]*<\?xml").match

#: All but the binary data bytes of the MIME Sniffing Standard, section 3.
_TEXT_BYTES: Final = bytes(
    byte for byte in range(256) if not (byte <= 0x08 or byte == 0x0B or 0x0E <= byte <= 0x1A or 0x1C <= byte <= 0x1F)
)
