"""The record format that both blob stores write: WARC 1.1 responses, each its own gzip member.

So the content store is a WARC archive as it stands, and one page is had by one ranged read. What comes from the web must not
be able to forge a header or a record, and must come back as it was: a header that can't stand as one line of HTTP is
written percent-encoded under a name of ours, in its place. Its text is taken as latin-1, which is what HTTP means by its bytes.
Must not know: where segments lie, or how they are named.
"""

import hashlib
import re
import struct
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, unquote

from isal import isal_zlib

from gossamer.errors import BlobsUnavailable
from gossamer.ports.blobs import TRANSFER_HEADERS, BlobRef, Capture

#: isal's own scale (0 … 3): a third of zlib 1's time, and about its size.
LEVEL: Final = 1

#: Headers beyond this are left out, and the record says `WARC-Truncated: length`. FastWARC raises at a head of 32 KiB, so one
#: hostile page would spoil its whole segment for it; most servers refuse to send more than 8 or 16 KiB.
HEAD_BYTES_MAX: Final = 30 * 1024

#: `X-Crawler-Escaped: <name>=<value>`, both percent-encoded: stands for a header that would not be one line.
ESCAPED: Final = "X-Crawler-Escaped"

_GZIP: Final = 31  # wbits: a gzip header and trailer, and the largest window
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_NO_CODINGS: Final = frozenset({"", "identity"})
_PRINTABLE: Final = "".join(map(chr, range(0x21, 0x7F)))
_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TEXT: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
#: Lines that `_header` leaves as they are.
_PLAIN_LINES: Final = re.compile(
    r"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++: (?:[!-~\xa1-\xff]++(?:[\t \x80-\xa0]++[!-~\xa1-\xff]++)*+)?\r\n)*+"
).fullmatch


def write(segment: str, captures: Sequence[Capture]) -> tuple[bytes, list[BlobRef]]:
    """The bytes of a segment, and where in it each capture lies, in order."""
    members, refs, offset = [], [], 0
    for capture in captures:
        sha256 = hashlib.sha256(capture.body).digest()
        record = _record(capture, sha256)
        # What came compressed can't be made any smaller, and to try takes eight times as long; heads are a twentieth of it.
        member = _wrapped(record) if _is_encoded(capture) else isal_zlib.compress(record, LEVEL, _GZIP)
        members.append(member)
        refs.append(BlobRef(segment, offset, len(member), sha256))
        offset += len(member)
    return b"".join(members), refs


def _is_encoded(capture: Capture) -> bool:
    return any(name.lower() == "content-encoding" and value.lower() not in _NO_CODINGS for name, value in capture.headers)


def _wrapped(record: bytes) -> bytes:
    """A gzip member with the record as it stands, in stored blocks (RFC 1951, 3.2.4).

    zlib would set up a whole compressor first, which takes forty times as long.
    """
    parts = [_GZIP_HEAD]
    for at in range(0, len(record), _STORED_MAX):
        block = record[at : at + _STORED_MAX]
        parts += _BLOCK_HEAD(at + _STORED_MAX >= len(record), len(block), len(block) ^ _STORED_MAX), block
    parts.append(_GZIP_TAIL(isal_zlib.crc32(record), len(record)))
    return b"".join(parts)


#: No name, no time, and no word of what wrote it.
_GZIP_HEAD: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_GZIP_TAIL: Final = struct.Struct("<II").pack
#: Whether it is the last one, its length, and that once more with each bit turned over.
_BLOCK_HEAD: Final = struct.Struct("<?HH").pack
_STORED_MAX: Final = 0xFFFF


def read(member: bytes, sha256: bytes) -> Capture:
    """The capture in one gzip member. Raises `BlobsUnavailable` for anything else than a whole record with that very body."""
    try:
        capture = _parse(_inflate(member))
    except (ValueError, LookupError, isal_zlib.error) as error:  # type: ignore[misc]  # the stub types it as a value
        raise BlobsUnavailable(f"a record is torn, or not one of ours: {error}") from error
    if hashlib.sha256(capture.body).digest() != sha256:
        raise BlobsUnavailable("a record holds another body than the one that was put")
    return capture


def _record(capture: Capture, sha256: bytes) -> bytes:
    head, whole = _http_head(capture)
    # The digest of the payload alone: one of the block as well would read the body a second time, and the gzip member's own
    # checksum guards the head. In hex, since readers take that as well, and base32 costs 4 µs.
    fields = (
        "WARC/1.1\r\n"
        "WARC-Type: response\r\n"
        f"WARC-Record-ID: <urn:uuid:{uuid.uuid4()}>\r\n"
        f"WARC-Date: {_date(capture.fetched_at)}\r\n"
        f"WARC-Target-URI: {_one_word(capture.url)}\r\n"
        + (f"WARC-IP-Address: {_one_word(capture.address)}\r\n" if capture.address is not None else "")
        + ("" if whole else "WARC-Truncated: length\r\n")
        + f"WARC-Payload-Digest: sha256:{sha256.hex()}\r\n"
        "Content-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {len(head) + len(capture.body)}\r\n"
        "\r\n"
    )
    return b"".join((fields.encode("ascii"), head, capture.body, b"\r\n\r\n"))


def _http_head(capture: Capture) -> tuple[bytes, bool]:
    """The status line and the headers up to the empty line, and whether all of them found room."""
    status = f"HTTP/1.1 {capture.status:03d} {_REASONS.get(capture.status, '')}\r\n"
    length = f"Content-Length: {len(capture.body)}\r\n\r\n"
    headers = [header for header in capture.headers if header[0].lower() not in TRANSFER_HEADERS]
    # Most heads are plain, which is seen at once. As many lines as headers, since a value must not be able to write one; and as
    # many colons besides those in values, since a name must not be able to write a value.
    text = "".join([f"{name}: {value}\r\n" for name, value in headers])
    is_plain = text.count("\n") == text.count(":") - sum([value.count(":") for _, value in headers]) == len(headers)
    if is_plain and len(text) <= HEAD_BYTES_MAX and _PLAIN_LINES(text) and ESCAPED not in text:
        return f"{status}{text}{length}".encode("latin-1"), True
    lines, room = [status], HEAD_BYTES_MAX
    for name, value in headers:
        line = _header(name, value)
        room -= len(line)
        if room < 0:
            break
        lines.append(line)
    return "".join([*lines, length]).encode("latin-1"), room >= 0


def _header(name: str, value: str) -> str:
    """One line, whatever is in the two; as plain text if it is one line by itself and a reader who trims it loses nothing."""
    if _TOKEN.fullmatch(name) and name != ESCAPED and _TEXT.fullmatch(value) and value == value.strip():
        return f"{name}: {value}\r\n"
    return f"{ESCAPED}: {_escape(name)}={_escape(value)}\r\n"


def _escape(text: str) -> str:
    # Lone surrogates, too: a client that decodes headers with `surrogateescape` makes them.
    return quote(text, safe="", errors="surrogatepass")


def _unescape(text: str) -> str:
    return unquote(text, errors="surrogatepass")


def _one_word(text: str) -> str:
    """A URL or an address as it is; whatever no normalised one has in it (blanks, control characters, non-ASCII) encoded."""
    if text.isascii() and text.isprintable() and " " not in text:
        return text
    return quote(text, safe=_PRINTABLE, errors="surrogatepass")


def _date(fetched_at: float) -> str:
    moment = _EPOCH + timedelta(microseconds=round(fetched_at * 1_000_000))
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def _inflate(member: bytes) -> bytes:
    """The one record in a gzip member, and never more bytes than its trailer says there are."""
    length = int.from_bytes(member[-4:], "little")
    if length == 0:  # zlib's word for "no limit"; and no record is empty
        raise ValueError("an empty member")
    inflater = isal_zlib.decompressobj(wbits=_GZIP)
    record = inflater.decompress(member, length)
    if not inflater.eof or inflater.unused_data:
        raise ValueError("not one whole gzip member")
    return record


def _parse(record: bytes) -> Capture:
    block = record.index(b"\r\n\r\n") + 4
    fields = dict(line.split(": ", 1) for line in record[: block - 4].decode("ascii").split("\r\n")[1:])
    end = block + int(fields["Content-Length"])
    if record[end:] != b"\r\n\r\n":
        raise ValueError("the record is not as long as it says")
    body = record.index(b"\r\n\r\n", block, end) + 4
    status_line, *lines = record[block : body - 4].decode("latin-1").split("\r\n")
    moment = datetime.fromisoformat(fields["WARC-Date"])
    return Capture(
        url=fields["WARC-Target-URI"],
        fetched_at=(moment - _EPOCH) // _MICROSECOND / 1_000_000,
        status=int(status_line.split(" ", 2)[1]),
        headers=_headers(lines),
        body=record[body:end],
        address=fields.get("WARC-IP-Address"),
    )


def _headers(lines: Sequence[str]) -> tuple[tuple[str, str], ...]:
    headers = []
    for line in lines:
        name, _, value = line.partition(": ")
        if name == ESCAPED:
            name, value = map(_unescape, value.split("=", 1))
        if name.lower() not in TRANSFER_HEADERS:
            headers.append((name, value))
    return tuple(headers)
