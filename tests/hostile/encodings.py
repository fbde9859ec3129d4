"""Encodings: bodies that are packed, broken, labelled wrongly or in no charset that there is. Cases 13 to 22."""

import gzip
import hashlib
import zlib
from typing import Final

from gossamer.outcomes import Flag, Outcome
from tests.hostile.case import Case
from tests.hostile.crawl import CAP, Closed
from tests.hostile.peers import Connection
from tests.hostile.playing import M2, PAGE, Check, flagged, message, page, played, says, shown

DONE: Final = Outcome.DONE
NO_CONTENT: Final = Outcome.NO_CONTENT
MALFORMED: Final = Outcome.MALFORMED
TOO_LARGE: Final = Outcome.TOO_LARGE
WRONG_TYPE: Final = Outcome.WRONG_TYPE
BAD_ENCODING: Final = Outcome.BAD_ENCODING


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(body) + packer.flush()


def bomb(megabytes: int) -> bytes:
    """gzip of so many megabytes of zeros, made of one of them. Its checksum is wrong: nobody gets that far."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    one = packer.compress(bytes(1_000_000)) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + one * megabytes + b"\x03\0" + bytes(8)


ZIPPED: Final = gzip.compress(PAGE)
NOISE: Final = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(600))


def is_the_page(closed: Closed) -> None:
    """Whatever it came in, its text and its fingerprint are the same."""
    assert shown(closed).html.encode() == PAGE
    assert shown(closed).sha256 == hashlib.sha256(PAGE).digest()


def coded(id: str, name: str, coding: bytes, body: bytes, *expected: str, check: Check | None = None) -> Case:
    """A body under a content coding."""
    if check is None and expected == (DONE,):
        check = is_the_page
    return played(id, name, page(body, b"Content-Encoding: " + coding), *expected, check=check)


# --- 13 to 18: content codings ---

BOMB = bomb(470)
PACKED_ERROR = (b"Content-Encoding: gzip", b"Content-Length: %d" % len(BOMB))

BOMBS = [
    coded("13a", "gzip: 0.5 MB of it are 470 MB", b"gzip", BOMB, TOO_LARGE),
    coded("13b", "gzip: 4 KB of it are 4 MB", b"gzip", bomb(4), TOO_LARGE),
    coded("13c", "10,000 members of gzip", b"gzip", gzip.compress(b"x") * 10_000, DONE, TOO_LARGE),
    played(
        "13d.1",
        "a bomb on a 301",
        message(b"HTTP/1.1 301 Moved", b"Location: /x", *PACKED_ERROR, body=BOMB),
        Outcome.REDIRECT,
    ),
    played("13d.2", "a bomb on a 404", message(b"HTTP/1.1 404 Not Found", *PACKED_ERROR, body=BOMB), Outcome.GONE),
]

LAYERS = [
    coded("14a", "gzip, gzip: truly twice", b"gzip, gzip", gzip.compress(ZIPPED), DONE),
    coded("14b", "gzip: twice, once said", b"gzip", gzip.compress(ZIPPED), WRONG_TYPE),
    coded("14c", "six codings", b", ".join([b"gzip"] * 6), ZIPPED, BAD_ENCODING),
    coded("14d", "a thousand codings", b", ".join([b"gzip"] * 1000), ZIPPED, BAD_ENCODING),
    coded("14e", "gzip, deflate: in the wrong order", b"gzip, deflate", gzip.compress(zlib.compress(PAGE)), BAD_ENCODING),
]

#: Neither brotli nor zstd is offered, so all of these are refused by their labels: there is no decoder to be overwhelmed.
UNOFFERED = [
    coded("15a", "brotli: a bomb", b"br", b"\x5b\xff\xff\x03\x60\x02\x60" * 100, BAD_ENCODING),
    coded("15b", "zstd: 16 KB of 512 MB", b"zstd", b"\x28\xb5\x2f\xfd\xa4" + bytes(16_000), BAD_ENCODING),
    coded("15c", "zstd: a window of 2 GB", b"zstd", b"\x28\xb5\x2f\xfd\x00\xa8" + bytes(100), BAD_ENCODING),
    coded("15d", "zstd: skippable frames alone", b"zstd", b"\x50\x2a\x4d\x18\x04\0\0\0xxxx" * 10, BAD_ENCODING),
    coded("15e.1", "brotli, that nobody offered", b"br", b"\x0b\x14\x80" + PAGE + b"\x03", BAD_ENCODING),
    coded("15e.2", "zstd, that nobody offered", b"zstd", b"\x28\xb5\x2f\xfd\x20\x29\x49\x01\0" + PAGE, BAD_ENCODING),
]


def bad_checksum(closed: Closed) -> None:
    is_the_page(closed)
    flagged(Flag.CHECKSUM_BAD)(closed)


async def _cut_once(connection: Connection) -> None:
    while await connection.request():
        body = ZIPPED[:-15] if len(connection.requests) == 1 else ZIPPED
        await connection.send(page(body, b"Content-Encoding: gzip"))


LONG_NAME = ZIPPED[:3] + b"\x08" + ZIPPED[4:10] + b"n" * 400_000 + b"\0" + ZIPPED[10:]

BROKEN = [
    coded("16a", "gzip without its trailer", b"gzip", ZIPPED[:-8], DONE, check=bad_checksum),
    played(
        "16b.1",
        "gzip cut within a block, length right",
        page(gzip.compress(NOISE)[:9000], b"Content-Encoding: gzip"),
        MALFORMED,
        requests=2,
    ),
    played("16b.2", "the same, but whole the second time", _cut_once, DONE, requests=2, check=is_the_page),
    coded("16c", "gzip with a wrong checksum", b"gzip", ZIPPED[:-8] + bytes(4) + ZIPPED[-4:], DONE, check=bad_checksum),
    coded("16d", "gzip with a wrong length", b"gzip", ZIPPED[:-4] + b"\x01\x02\x03\x04", DONE, check=bad_checksum),
    coded("16e", "junk after the end of gzip", b"gzip", ZIPPED + b"JUNKJUNK", DONE),
    coded("16f", "gzip of no byte at all", b"gzip", b"", NO_CONTENT),
    coded("16g", "gzip with a name of 400 KB", b"gzip", LONG_NAME, BAD_ENCODING),
    coded("16h", "deflate with a preset dictionary", b"deflate", b"\x78\xbb" + bytes(4) + raw_deflate(PAGE), BAD_ENCODING),
]

#: A stored block of 257 bytes, whose first two bytes are those of zlib's wrapper.
LOOKS_WRAPPED: Final = b"\x78\x01\x01\xfe\xfe" + PAGE.ljust(257) + raw_deflate(b"more")

DEFLATE = [
    coded("17a", "deflate in zlib's wrapper", b"deflate", zlib.compress(PAGE), DONE),
    coded("17b", "deflate without wrapper", b"deflate", raw_deflate(PAGE), DONE),
    coded("17c", "raw deflate that looks wrapped", b"deflate", LOOKS_WRAPPED, DONE, check=says("hello more")),
]

LABELS = [
    coded("18a", "gzip, it says, over plain HTML", b"gzip", PAGE, DONE),
    played("18b", "gzip that does not say so", page(gzip.compress(PAGE * 50)), WRONG_TYPE),
    coded("18c.1", "coding none", b"none", PAGE, DONE),
    coded("18c.2", "coding identity", b"identity", PAGE, DONE),
    coded("18c.3", "coding utf-8", b"utf-8", PAGE, DONE),
    coded("18c.4", "an empty coding", b"", PAGE, DONE),
    coded("18d.1", "coding x-foo over text", b"x-foo", PAGE, DONE),
    coded("18d.2", "coding x-foo over something packed", b"x-foo", ZIPPED, BAD_ENCODING),
    coded("18e.1", "coding x-gzip", b"x-gzip", ZIPPED, DONE),
    coded("18e.2", "coding GZIP, with blanks", b"  GZIP ", ZIPPED, DONE),
    played(
        "18f",
        "coding gzip on a plain 302",
        message(b"HTTP/1.1 302 Found", b"Location: /x", b"Content-Encoding: gzip", b"Content-Length: 2", body=b"hi"),
        Outcome.REDIRECT,
    ),
]

# --- 19 to 22: charsets ---

RUSSIAN: Final = "Привет, мир"
META: Final = b'<meta charset="windows-1251">'


def text(id: str, name: str, body: bytes, said: str, type: bytes = b"text/html") -> Case:
    """A page that is done, and says this."""
    return played(id, name, page(body, type=type), DONE, check=says(said))


def labelled(charset: bytes) -> bytes:
    return b"text/html; charset=" + charset


def unlabelled(id: str, charset: bytes) -> Case:
    """A label that is none, and counts as absent."""
    return text(id, f"charset {charset.decode('latin-1')}", "<p>é".encode(), "é", labelled(charset))


CHARSETS = [
    text(
        "19a",
        "utf-8, it says, over windows-1251",
        RUSSIAN.encode("cp1251"),
        RUSSIAN.encode("cp1251").decode("utf-8", "replace"),
        labelled(b"utf-8"),
    ),
    *(unlabelled(f"19b.{at}", name) for at, name in enumerate((b"foo-bar", b"utf8mb4", b"utf-8,gbk"), 1)),
    *(
        unlabelled(f"19c.{at}", name)
        for at, name in enumerate((b"unicode_escape", b"hex", b"rot13", b"zlib", b"base64", b"idna", b"undefined"), 1)
    ),
    # curl takes no NUL anywhere in a head.
    played("19d.1", "a NUL in the charset", page(b"<p>x", type=labelled(b"\0utf-8")), DONE, MALFORMED),
    unlabelled("19d.2", b'"utf-8'),
    unlabelled("19d.3", b"\xe9\xff"),
    text("19e", "iso-8859-1, which means windows-1252", b"<p>\x93x\x94", "“x”", labelled(b"iso-8859-1")),
]

WHO_WINS = [
    text("20a", "BOM against header", b"\xef\xbb\xbf" + "é".encode(), "é", labelled(b"windows-1251")),
    text("20b", "header against meta", META + "é".encode(), "é", labelled(b"utf-8")),
    text("20c", "meta alone", META + RUSSIAN.encode("cp1251"), RUSSIAN),
    text(
        "20d",
        "meta after byte 1,024",
        b"<!--" + b"x" * 1024 + b"-->" + META + RUSSIAN.encode("cp1251"),
        RUSSIAN.encode("cp1251").decode("cp1252", "replace"),
    ),
    text("20e", "meta says utf-16, which it can't be", b"<meta charset=utf-16>" + "é".encode(), "é"),
    text("20f", "two metas", META + b"<meta charset=koi8-r>" + RUSSIAN.encode("cp1251"), RUSSIAN),
    text("20g.1", "meta in a comment", b"<!-- <meta charset=koi8-r> -->" + META + RUSSIAN.encode("cp1251"), RUSSIAN),
    # A prescan knows tags and comments, and nothing of scripts (HTML Standard).
    text("20g.2", "meta in a script", b"<script>'<meta charset=windows-1251>'</script>" + RUSSIAN.encode("cp1251"), RUSSIAN),
    text("20h", "BOM after a blank", b"<p>x \xef\xbb\xbfy", "x \ufeffy", labelled(b"utf-8")),
]

WIDE = [
    text("21a.1", "UTF-16LE with its BOM", "<p>hé".encode("utf-16"), "hé"),
    text("21a.2", "UTF-16BE with its BOM", b"\xfe\xff" + "<p>hé".encode("utf-16-be"), "hé"),
    played("21b", "UTF-16LE that does not say so", page("<p>hello".encode("utf-16-le")), BAD_ENCODING),
    text("21c", "UTF-16 of an odd length", "<p>hé".encode("utf-16-le") + b"x", "hé\ufffd", labelled(b"utf-16")),
    played("21d", "UTF-32 with its BOM", page(b"\xff\xfe\0\0" + "<p>x".encode("utf-32-le")), BAD_ENCODING),
    text("21e", "charset utf-7", b"+ADw-script+AD4-", "+ADw-script+AD4-", labelled(b"utf-7")),
    played("21f.1", "ISO-2022-KR", page(b"\x1b$)C\x0e!!\x0f<p>x", type=labelled(b"iso-2022-kr")), BAD_ENCODING),
    played("21f.2", "HZ", page(b"~{<:Ky2;~}", type=labelled(b"hz-gb-2312")), BAD_ENCODING),
]


def _cut_within_a_character(closed: Closed) -> None:
    assert shown(closed).text.endswith("x\ufffd")
    assert shown(closed).size == CAP


def _title_is_kept(closed: Closed) -> None:
    assert shown(closed).title == "a\u202eb\u202cc"


BAD_BYTES = [
    text("22a", "a lone FF", b"a\xffb", "a\ufffdb", labelled(b"utf-8")),
    text("22b", "an overlong slash", b"a\xc0\xafb", "a\ufffd\ufffdb", labelled(b"utf-8")),
    text("22c", "an encoded surrogate", b"a\xed\xa0\x80b", "a\ufffd\ufffd\ufffdb", labelled(b"utf-8")),
    text("22d", "a NUL between letters", b"x" * 30 + b"a\0b", "x" * 30 + "a\ufffdb", labelled(b"utf-8")),
    played("22e", "a body of NULs", page(bytes(5000)), WRONG_TYPE),
    played(
        "22f",
        "a character cut by the cap",
        page(b"x" * (CAP - 2) + b"\xe2\x82", type=labelled(b"utf-8")),
        DONE,
        check=_cut_within_a_character,
        memory_bytes=M2,
    ),
    text("22g", "references to what is no character", b"a&#xD800;b&#0;c&#x110000;d", "a\ufffdb\ufffdc\ufffdd"),
    played("22h", "bidi overrides in the title", page("<title>a\u202eb\u202cc</title>x".encode()), DONE, check=_title_is_kept),
]

CASES = [*BOMBS, *LAYERS, *UNOFFERED, *BROKEN, *DEFLATE, *LABELS, *CHARSETS, *WHO_WINS, *WIDE, *BAD_BYTES]
