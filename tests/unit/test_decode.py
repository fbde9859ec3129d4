"""Decoding: content codings within bounds, charsets by their labels, and no body that could raise."""

import gzip
import random
import time
import tracemalloc
import zlib
from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gossamer.outcomes import Outcome
from services.worker.charsets import CODECS, LABELS, charset_of
from services.worker.decode import Decoded, Undecodable, decode
from services.worker.types import Headers

CAP = 500_000
PAGE = b"<html><title>t</title><p>hello</p></html>"
TEXT = PAGE.decode()


def coded(*codings: str, type: str = "text/html") -> Headers:
    return ("Content-Type", type), *(("Content-Encoding", coding) for coding in codings)


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(body) + packer.flush()


def read(body: bytes, *codings: str, type: str = "text/html", cap: int = CAP) -> Decoded:
    decoded = decode(coded(*codings, type=type), body, cap)
    assert isinstance(decoded, Decoded), decoded
    return decoded


def unread(body: bytes, *codings: str, type: str = "text/html", cap: int = CAP) -> Undecodable:
    decoded = decode(coded(*codings, type=type), body, cap)
    assert isinstance(decoded, Undecodable), decoded
    return decoded


# --- Content codings ---

ZIPPED = gzip.compress(PAGE)
NOISE = random.Random(1).randbytes(20_000)
WITH_A_NAME = ZIPPED[:3] + b"\x08" + ZIPPED[4:10] + b"index.html\0" + ZIPPED[10:]
WITH_EVERYTHING = ZIPPED[:3] + b"\x1e" + ZIPPED[4:10] + b"\x03\0abc" + b"n\0c\0" + b"\0\0" + ZIPPED[10:]


@pytest.mark.parametrize(
    ("body", "codings"),
    [
        pytest.param(PAGE, [], id="plain"),
        pytest.param(ZIPPED, ["gzip"], id="gzip"),
        pytest.param(ZIPPED, ["x-gzip"], id="by its old name"),
        pytest.param(ZIPPED, [" GZIP "], id="in capitals, with blanks"),
        pytest.param(ZIPPED, ["identity, gzip"], id="with identity beside it"),
        pytest.param(WITH_A_NAME, ["gzip"], id="with a file's name"),
        pytest.param(WITH_EVERYTHING, ["gzip"], id="with all that a header may have"),
        pytest.param(ZIPPED + b"JUNKJUNK", ["gzip"], id="with junk behind it"),
        pytest.param(ZIPPED + b"\x1f\x8bJUNK", ["gzip"], id="with junk that begins as a member"),
        pytest.param(gzip.compress(PAGE[:9]) + gzip.compress(PAGE[9:]), ["gzip"], id="in two members"),
        pytest.param(b"".join(gzip.compress(bytes([byte])) for byte in PAGE), ["gzip"], id="in forty members"),
        pytest.param(gzip.compress(gzip.compress(PAGE)), ["gzip, gzip"], id="twice"),
        pytest.param(gzip.compress(zlib.compress(PAGE)), ["deflate", "gzip"], id="two codings in two lines"),
        pytest.param(zlib.compress(PAGE), ["deflate"], id="deflate"),
        pytest.param(raw_deflate(PAGE), ["deflate"], id="deflate without its wrapper"),
        pytest.param(PAGE, ["gzip"], id="a label without gzip"),
        pytest.param(PAGE, ["deflate"], id="a label without deflate"),
        pytest.param(PAGE, ["none"], id="none"),
        pytest.param(PAGE, ["utf-8"], id="a charset for a coding"),
        pytest.param(PAGE, [""], id="empty"),
        pytest.param(PAGE, ["x-foo"], id="unknown over text"),
    ],
)
def test_a_content_coding_is_undone(body: bytes, codings: Sequence[str]) -> None:
    decoded = read(body, *codings)

    assert (decoded.html, decoded.raw, decoded.checksum_bad) == (TEXT, PAGE, False)


def test_raw_deflate_that_looks_wrapped_is_read_all_the_same() -> None:
    # A stored block of 257 bytes. The five bits after its type don't count, and so it can begin as zlib's wrapper does.
    stored = PAGE.ljust(257)
    packed = b"\x78\x01\x01\xfe\xfe" + stored + raw_deflate(b"more")

    assert read(packed, "deflate").raw == stored + b"more"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(ZIPPED[:-8], id="without its trailer"),
        pytest.param(ZIPPED[:-3], id="with half a trailer"),
        pytest.param(ZIPPED[:-8] + b"\0\0\0\0" + ZIPPED[-4:], id="with a wrong checksum"),
        pytest.param(ZIPPED[:-4] + b"\x01\x02\x03\x04", id="with a wrong length"),
        pytest.param(gzip.compress(PAGE[:9])[:-8] + bytes(8) + gzip.compress(PAGE[9:]), id="wrong in the first of two members"),
    ],
)
def test_a_whole_page_with_a_bad_checksum_is_a_page(body: bytes) -> None:
    decoded = read(body, "gzip")

    assert (decoded.html, decoded.checksum_bad) == (TEXT, True)


def test_a_bad_checksum_of_deflate_is_seen() -> None:
    assert read(zlib.compress(PAGE)[:-4] + bytes(4), "deflate").checksum_bad


@pytest.mark.parametrize(
    ("body", "codings", "outcome", "again"),
    [
        pytest.param(ZIPPED[:-15], ["gzip"], Outcome.MALFORMED, True, id="gzip cut within a block"),
        pytest.param(ZIPPED + ZIPPED[:-15], ["gzip"], Outcome.MALFORMED, True, id="gzip cut within its second member"),
        pytest.param(gzip.compress(NOISE)[:9000], ["gzip"], Outcome.MALFORMED, True, id="gzip cut early"),
        pytest.param(zlib.compress(NOISE)[:9000], ["deflate"], Outcome.MALFORMED, True, id="deflate cut early"),
        pytest.param(b"", ["gzip"], Outcome.NO_CONTENT, False, id="nothing"),
        pytest.param(gzip.compress(b""), ["gzip"], Outcome.NO_CONTENT, False, id="nothing, packed"),
        pytest.param(gzip.compress(b" \n\t "), ["gzip"], Outcome.NO_CONTENT, False, id="blanks, packed"),
        pytest.param(gzip.compress(bytes(4_000_000)), ["gzip"], Outcome.TOO_LARGE, False, id="a bomb"),
        pytest.param(zlib.compress(bytes(4_000_000)), ["deflate"], Outcome.TOO_LARGE, False, id="a bomb of deflate"),
        pytest.param(
            gzip.compress(gzip.compress(bytes(40_000_000), 9)),
            ["gzip, gzip"],
            Outcome.TOO_LARGE,
            False,
            id="a bomb in two layers",
        ),
        pytest.param(gzip.compress(b"x" * 300_000) * 2, ["gzip"], Outcome.TOO_LARGE, False, id="a bomb by its sum"),
        pytest.param(gzip.compress(ZIPPED), ["gzip"], Outcome.WRONG_TYPE, False, id="once more than it says"),
        pytest.param(gzip.compress(b"%PDF-1.7" + PAGE), ["gzip"], Outcome.WRONG_TYPE, False, id="a PDF, packed"),
        pytest.param(ZIPPED, [], Outcome.WRONG_TYPE, False, id="gzip without a label"),
        pytest.param(ZIPPED, ["gzip"] * 6, Outcome.BAD_ENCODING, False, id="six layers"),
        pytest.param(ZIPPED, [", ".join(["gzip"] * 1000)], Outcome.BAD_ENCODING, False, id="a thousand layers"),
        pytest.param(zlib.compress(gzip.compress(PAGE)), ["deflate, gzip"], Outcome.BAD_ENCODING, False, id="in the wrong order"),
        pytest.param(b"\x0b\x14\x80" + PAGE + b"\x03", ["br"], Outcome.BAD_ENCODING, False, id="brotli, that nobody offered"),
        pytest.param(b"\x28\xb5\x2f\xfd" + PAGE, ["zstd"], Outcome.BAD_ENCODING, False, id="zstd, that nobody offered"),
        pytest.param(ZIPPED, ["x-foo"], Outcome.BAD_ENCODING, False, id="unknown over something packed"),
        pytest.param(ZIPPED[:3] + b"\x08" + ZIPPED[4:10] + b"n" * 400_000, ["gzip"], Outcome.BAD_ENCODING, False, id="a long name"),
        pytest.param(ZIPPED[:3] + b"\xe0" + ZIPPED[4:], ["gzip"], Outcome.BAD_ENCODING, False, id="flags of the future"),
        pytest.param(ZIPPED[:10] + b"\x07" * 40, ["gzip"], Outcome.BAD_ENCODING, False, id="broken within"),
        pytest.param(
            b"\x78\xbb" + bytes(4) + raw_deflate(PAGE), ["deflate"], Outcome.BAD_ENCODING, False, id="a preset dictionary"
        ),
    ],
)
def test_what_can_not_be_undone_has_an_outcome(body: bytes, codings: list[str], outcome: Outcome, again: bool) -> None:
    undecodable = unread(body, *codings)

    assert (undecodable.outcome, undecodable.again) == (outcome, again)


@pytest.mark.parametrize(("size", "passes"), [(CAP - 1, True), (CAP, True), (CAP + 1, False)])
@pytest.mark.parametrize(
    ("coding", "pack"),
    [("identity", bytes), ("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", raw_deflate)],
    ids=["plain", "gzip", "deflate", "deflate without its wrapper"],
)
def test_a_page_of_exactly_the_cap_passes(coding: str, pack: Callable[[bytes], bytes], size: int, passes: bool) -> None:
    decoded = decode(coded(coding), pack(b"x" * size), CAP)

    assert isinstance(decoded, Decoded) is passes
    assert passes or (isinstance(decoded, Undecodable) and decoded.outcome is Outcome.TOO_LARGE)


def test_a_bomb_costs_no_more_than_the_cap() -> None:
    bomb = gzip.compress(bytes(48_000_000), 9)
    tracemalloc.start()
    began = time.perf_counter()
    assert unread(bomb, "gzip").outcome is Outcome.TOO_LARGE
    took_s = time.perf_counter() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 3 * CAP  # the pieces, and the pieces put together
    assert took_s < 0.5


def test_twenty_thousand_members_are_read_in_no_time() -> None:
    body = gzip.compress(b"x") * 20_000
    began = time.perf_counter()

    assert len(read(body, "gzip").raw) == 20_000
    assert time.perf_counter() - began < 1.0


@given(st.binary(max_size=300), st.sampled_from([[], ["gzip"], ["deflate"], ["gzip, deflate"], ["x-foo"]]), st.booleans())
def test_any_bytes_get_an_answer_that_is_valid_unicode(body: bytes, codings: list[str], packed: bool) -> None:
    if packed:
        body = gzip.compress(body)
    decoded = decode(coded(*codings), body, 200)

    if isinstance(decoded, Decoded):
        assert decoded.html.encode().decode() == decoded.html
        assert len(decoded.raw) <= 200


@given(st.text(min_size=1), st.sampled_from(["gzip", "deflate"]))
@example("x" * 20_000, "gzip")
def test_the_same_text_comes_out_whatever_coding_it_came_in(text: str, coding: str) -> None:
    body = text.encode()
    pack = gzip.compress if coding == "gzip" else zlib.compress

    assert decode(coded(coding), pack(body), CAP) == decode(coded(), body, CAP)


# --- Charsets ---


def named(charset: str) -> str:
    return f"text/html; charset={charset}"


RUSSIAN = "<p>Привет, мир</p>"
META = b'<meta charset="windows-1251">'


@pytest.mark.parametrize(
    ("body", "type", "charset", "html"),
    [
        pytest.param("<p>é".encode(), "text/html", "utf-8", "<p>é", id="UTF-8 that does not say so"),
        pytest.param(b"<p>\xe9", "text/html", "windows-1252", "<p>é", id="not UTF-8, and no word"),
        pytest.param(RUSSIAN.encode("cp1251"), named("windows-1251"), "windows-1251", RUSSIAN, id="by the header"),
        pytest.param(META + RUSSIAN.encode("cp1251"), "text/html", "windows-1251", META.decode() + RUSSIAN, id="by the page"),
        pytest.param(b"\xef\xbb\xbf" + "é".encode(), named("windows-1251"), "utf-8", "é", id="the BOM beats the header"),
        pytest.param(META + "é".encode(), named("utf-8"), "utf-8", META.decode() + "é", id="the header beats the page"),
        pytest.param(b"<p>\x93", named("iso-8859-1"), "windows-1252", "<p>“", id="Latin-1 is windows-1252"),
        pytest.param(b"<p>\x93", named("US-ASCII"), "windows-1252", "<p>“", id="and so is ASCII"),
        pytest.param("<p>é".encode(), named("utf-7"), "utf-8", "<p>é", id="UTF-7 is no charset"),
        pytest.param(b"+ADw-script+AD4-", named("utf-7"), "utf-8", "+ADw-script+AD4-", id="nor decoded"),
        pytest.param("hé".encode("utf-16"), "text/html", "utf-16le", "hé", id="UTF-16 with its BOM"),
        pytest.param(b"\xfe\xff" + "hé".encode("utf-16-be"), "text/html", "utf-16be", "hé", id="UTF-16, the other way round"),
        pytest.param("hé".encode("utf-16-le"), named("utf-16"), "utf-16le", "hé", id="UTF-16 by the header"),
        pytest.param("hé".encode("utf-16-le") + b"x", named("utf-16"), "utf-16le", "hé\ufffd", id="with an odd byte"),
        pytest.param("東京".encode("utf-16-be"), named("utf-16be"), "utf-16be", "東京", id="without a NUL in it"),
        pytest.param("東京".encode("shift_jis"), named("x-sjis"), "shift_jis", "東京", id="Japanese"),
        pytest.param("東京".encode("gbk"), named("gb2312"), "gbk", "東京", id="Chinese"),
        pytest.param("한국".encode("cp949"), named("ks_c_5601-1987"), "euc-kr", "한국", id="Korean"),
        pytest.param(b"a\xff b", named("utf-8"), "utf-8", "a\ufffd b", id="a byte that is none"),
        pytest.param(b"a\xc0\xafb", named("utf-8"), "utf-8", "a\ufffd\ufffdb", id="an overlong one"),
        pytest.param(b"a\xed\xa0\x80b", named("utf-8"), "utf-8", "a\ufffd\ufffd\ufffdb", id="a surrogate"),
        pytest.param(b"x" * 30 + b"a\0b", named("utf-8"), "utf-8", "x" * 30 + "a\ufffdb", id="a NUL"),
        pytest.param(" \ufeffx".encode(), named("utf-8"), "utf-8", " \ufeffx", id="a BOM that is not at the beginning"),
    ],
)
def test_who_says_it_first_is_believed(body: bytes, type: str, charset: str, html: str) -> None:
    decoded = read(body, type=type)

    assert (decoded.charset, decoded.html) == (charset, html)


@pytest.mark.parametrize(
    "label",
    [
        "foo-bar",
        "utf8mb4",
        "unicode_escape",
        "hex",
        "rot13",
        "zlib",
        "base64",
        "idna",
        "undefined",
        "\0",
        "é",
        '"',
        "''",
    ],
)
def test_a_label_that_is_none_counts_as_absent(label: str) -> None:
    assert read("<p>é".encode(), type=named(label)).charset == "utf-8"
    assert read(META + b"\xcf", type=named(label)).charset == "windows-1251"


@pytest.mark.parametrize(
    ("head", "charset"),
    [
        pytest.param("<meta charset=koi8-r>", "koi8-r", id="without quotes"),
        pytest.param("<META CHARSET = 'KOI8-R' />", "koi8-r", id="in capitals"),
        pytest.param("<meta name=x content=y><meta charset=koi8-r>", "koi8-r", id="the second one"),
        pytest.param("<meta charset=koi8-r><meta charset=gbk>", "koi8-r", id="the first of two"),
        pytest.param("<meta charset=nonsense><meta charset=gbk>", "gbk", id="the first that is one"),
        pytest.param('<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">', "koi8-r", id="the old way"),
        pytest.param(
            "<meta content='text/html; charset=koi8-r' http-equiv=content-type>", "koi8-r", id="the old way, turned round"
        ),
        pytest.param('<meta content="text/html; charset=koi8-r">', None, id="half of the old way"),
        pytest.param("<meta charset=utf-16>", "utf-8", id="UTF-16 can't be"),
        pytest.param("<meta charset=x-user-defined>", "windows-1252", id="user-defined"),
        pytest.param("<!-- <meta charset=gbk> --><meta charset=koi8-r>", "koi8-r", id="not within a comment"),
        pytest.param("<!--><meta charset=koi8-r>", "koi8-r", id="an empty comment"),
        pytest.param("<!-- <meta charset=gbk>", None, id="a comment without end"),
        pytest.param('<a title="<meta charset=gbk>"><meta charset=koi8-r>', "koi8-r", id="not within an attribute"),
        pytest.param("<metadata charset=gbk>", None, id="another element"),
        pytest.param("</meta charset=gbk>", None, id="an end tag"),
        pytest.param("<?xml version='1.0' encoding='koi8-r'?><html>", "koi8-r", id="the way of XML"),
        pytest.param("x" * 1001 + "<meta charset=koi8-r>", "koi8-r", id="up to byte 1,024"),
        pytest.param("x" * 1024 + "<meta charset=koi8-r>", None, id="not after it"),
        pytest.param("<meta charset=", None, id="cut"),
    ],
)
def test_a_page_says_its_charset_in_its_first_bytes(head: str, charset: str | None) -> None:
    decoded = read(head.encode() + b"\xc1")

    assert decoded.charset == (charset or "windows-1252")


@pytest.mark.parametrize(
    ("body", "type", "outcome"),
    [
        pytest.param("hello".encode("utf-16-le"), "text/html", Outcome.BAD_ENCODING, id="UTF-16 that does not say so"),
        pytest.param("hello".encode("utf-32"), "text/html", Outcome.BAD_ENCODING, id="UTF-32"),
        pytest.param(b"\0\0\xfe\xff" + "hello".encode("utf-32-be"), "text/html", Outcome.BAD_ENCODING, id="UTF-32, turned round"),
        pytest.param(b"hello", named("iso-2022-kr"), Outcome.BAD_ENCODING, id="a charset that can be read in two ways"),
        pytest.param(b"hello", named("hz-gb-2312"), Outcome.BAD_ENCODING, id="and another"),
        pytest.param(bytes(5000), "text/html", Outcome.WRONG_TYPE, id="NULs"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + bytes(50), "text/html", Outcome.WRONG_TYPE, id="a picture"),
        pytest.param(b"<?xml version='1.0'?><rss/>", "", Outcome.WRONG_TYPE, id="XML without a type"),
        pytest.param(b"\xef\xbb\xbf \n", "text/html", Outcome.NO_CONTENT, id="a BOM and blanks"),
        pytest.param(" \n".encode("utf-16"), "text/html", Outcome.NO_CONTENT, id="blanks in UTF-16"),
    ],
)
def test_what_is_no_text_has_an_outcome(body: bytes, type: str, outcome: Outcome) -> None:
    assert unread(body, type=type).outcome is outcome


@given(st.sampled_from(sorted(CODECS)), st.binary(min_size=1, max_size=60))
def test_no_charset_lets_a_lone_surrogate_through(charset: str, body: bytes) -> None:
    html = body.decode(CODECS[charset], "replace")

    assert html.encode().decode() == html


def test_every_charset_is_a_label_of_its_own_and_has_a_codec() -> None:
    assert all(charset_of(f" {name.upper()}\n") == name for name in CODECS)
    assert set(LABELS.values()) == {*CODECS, "replacement"}
    assert all(label == label.lower() and label.isascii() for label in LABELS)
    assert len(LABELS) == 228
