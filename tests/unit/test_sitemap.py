"""Sitemaps: what is one, what it lists, and that no bytes make it fail, grow or run long."""

import gzip
import time
import zlib
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from services.worker.sitemap import LOCS_MAX, UNPACKED_TIMES, Sitemap, begins_as_one, may_be_one, read
from services.worker.types import FIRST_BYTES, Headers

CAP = 500_000
XML: Headers = (("Content-Type", "application/xml; charset=utf-8"),)
TEXT: Headers = (("Content-Type", "text/plain"),)
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*locs: str) -> bytes:
    entries = "".join(f"<url>\n<loc>{loc}</loc><lastmod>2026-01-01</lastmod></url>" for loc in locs)
    return f"{HEAD}<urlset {NAMESPACE}>{entries}</urlset>".encode()


def locs(body: bytes, headers: Headers = XML) -> tuple[str, ...] | None:
    found = read(headers, body, CAP)
    return None if found is None else found.locs


def test_a_urlset_lists_pages_and_an_index_sitemaps() -> None:
    index = f"{HEAD}<sitemapindex {NAMESPACE}><sitemap><loc>http://a.test/1.xml</loc></sitemap></sitemapindex>"

    assert read(XML, urlset("http://a.test/1", "http://a.test/2"), CAP) == Sitemap(
        ("http://a.test/1", "http://a.test/2"), False, False
    )
    assert read(XML, index.encode(), CAP) == Sitemap(("http://a.test/1.xml",), True, False)


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        pytest.param("<loc> http://a.test/ \n</loc>", ["http://a.test/"], id="white space around it"),
        pytest.param("<loc>/a</loc><loc>/a</loc>", ["/a"], id="twice the same"),
        pytest.param("<loc>/?a=1&amp;b=2</loc>", ["/?a=1&b=2"], id="an escaped ampersand"),
        pytest.param("<loc>/?a=1&b=2&copy=3</loc>", ["/?a=1&b=2&copy=3"], id="bare ampersands, which are no HTML either"),
        pytest.param("<loc>/&#97;&#x62;&#0;&#xD800;&#9999999;</loc>", ["/ab\ufffd\ufffd\ufffd"], id="numbers"),
        pytest.param("<loc>/&amp;amp;</loc>", ["/&amp;"], id="resolved once"),
        pytest.param("<loc>/&bomb;</loc>", ["/&bomb;"], id="an entity that nobody declared"),
        pytest.param("<loc><![CDATA[/?a=1&amp;b=<2>]]></loc><loc>/b</loc>", ["/b"], id="CDATA that is no URL"),
        pytest.param("<loc>\n<![CDATA[/?a=1&b=2]]>\n</loc>", ["/?a=1&b=2"], id="CDATA"),
        pytest.param("<![CDATA[<loc>/no</loc>]]><loc>/a</loc>", ["/a"], id="a loc that is CDATA"),
        pytest.param("<!-- <loc>/no</loc> --><loc>/a<!-- b --></loc>", ["/a"], id="comments"),
        pytest.param("<?x <loc>/no</loc> ?><loc>/a</loc>", ["/a"], id="a processing instruction"),
        pytest.param("<loc id='1'>/a</loc ><location>/no</location>", ["/a"], id="attributes, and a longer name"),
        pytest.param("<image:loc>/no.png</image:loc><loc>/a</loc>", ["/a"], id="the loc of an image"),
        pytest.param("<loc>/a<b>/c</b></loc><loc>/d</loc>", ["/d"], id="markup in a loc"),
        pytest.param("<loc></loc><loc> </loc><loc/>", [], id="empty ones"),
        pytest.param("<loc>/a<loc>/b</loc>", ["/b"], id="one that was never closed"),
        pytest.param("</loc><loc>/a</loc></loc>", ["/a"], id="ends without beginnings"),
        pytest.param("<loc>/a</loc><loc>/half", ["/a"], id="the end is missing"),
    ],
)
def test_what_stands_in_loc_is_what_is_listed(inside: str, expected: list[str]) -> None:
    assert locs(f"{HEAD}<urlset {NAMESPACE}><url>{inside}".encode()) == tuple(expected)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<urlset><loc>/a</loc></urlset>", id="no declaration"),
        pytest.param(b"\xef\xbb\xbf\n<?xml version='1.0'?><urlset><loc>/a</loc>", id="a mark and a line before it"),
        pytest.param(b"<?xml version='1.0'?><?xml-stylesheet href='x'?><!-- by > us --><urlset><loc>/a</loc>", id="a style sheet"),
        pytest.param(b"<sm:urlset xmlns:sm='x'><loc>/no</loc><sm:loc>/a</sm:loc>", id="a prefix"),
        pytest.param("<?xml version='1.0'?><urlset><loc>/a</loc>".encode("utf-16"), id="UTF-16"),
        pytest.param(b"<?xml version='1.0' encoding='latin-1'?><urlset>\xe9<loc>/a</loc>", id="Latin-1"),
    ],
)
def test_a_sitemap_is_known_by_its_root(body: bytes) -> None:
    assert locs(body) == ("/a",)
    assert locs(gzip.compress(body)) == ("/a",)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<!doctype html><urlset><loc>/a</loc>", id="a page"),
        pytest.param(b"<html><body><urlset><loc>/a</loc></urlset>", id="one in a page"),
        pytest.param(b"<?xml version='1.0'?><rss><loc>/a</loc></rss>", id="a feed"),
        pytest.param(b"<!DOCTYPE urlset [<!ENTITY a 'aa'>]><urlset><loc>/&a;</loc></urlset>", id="a document type"),
        pytest.param(b"<urlsets><loc>/a</loc>", id="a longer name"),
        pytest.param(b"<!-- <urlset><loc>/a</loc>", id="in a comment"),
        pytest.param(b"<!-- " + b"x" * FIRST_BYTES + b" --><urlset><loc>/a</loc>", id="too far down"),
        pytest.param(b"see http://a.test/", id="a text with a URL in it"),
        pytest.param(b"\n\n", id="nothing"),
        pytest.param(b"", id="nothing at all"),
        pytest.param(gzip.compress(b"GIF89a" + bytes(500)), id="another file, packed"),
        pytest.param(b"\x1f\x8b\x08", id="no gzip"),
    ],
)
def test_what_is_no_sitemap_is_left_to_others(body: bytes) -> None:
    assert read(XML, body, CAP) is None


def test_a_text_of_nothing_but_urls_is_a_sitemap() -> None:
    body = b"\xef\xbb\xbfhttp://a.test/1\r\n\r\nHTTPS://a.test/2\r\nhttp://a.test/3"

    assert locs(body, TEXT) == ("http://a.test/1", "HTTPS://a.test/2", "http://a.test/3")
    assert read(TEXT, body, CAP, cut=True) == Sitemap(("http://a.test/1", "HTTPS://a.test/2"), False, True), "half a URL is another"
    assert locs(body + b"\nand more", TEXT) is None
    assert locs(body, (("Content-Type", "text/html"),)) is None, "that is what its label says it is: a page"
    long = b"http://a.test/%d\n" * 200 % tuple(range(200))
    assert locs(long + b"and more\nhttp://a.test/x", TEXT) == (*map("http://a.test/{}".format, range(200)), "http://a.test/x")


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(XML, id="a file, as XML"),
        pytest.param((("Content-Type", "application/x-gzip"),), id="a file"),
        pytest.param((*XML, ("Content-Encoding", "gzip")), id="a coding"),
    ],
)
def test_gzip_is_known_by_its_bytes(headers: Headers) -> None:
    body = urlset("http://a.test/1")

    assert locs(gzip.compress(body), headers) == ("http://a.test/1",)
    assert locs(gzip.compress(gzip.compress(body)), headers) == ("http://a.test/1",), "a file, and a coding"
    assert locs(body, headers) == ("http://a.test/1",), "a label without the thing"


@pytest.mark.parametrize("pack", [zlib.compress, lambda body: zlib.compress(body)[2:-4]], ids=["with a wrapper", "without"])
def test_deflate_is_known_by_its_label(pack: Callable[[bytes], bytes]) -> None:
    headers = (*XML, ("Content-Encoding", "deflate"))

    assert locs(pack(urlset("http://a.test/1")), headers) == ("http://a.test/1",)


def test_of_a_body_that_was_cut_what_came_whole_is_used() -> None:
    names = [f"http://a.test/{zlib.crc32(str(n).encode())}/{n}" for n in range(5_000)]
    body = urlset(*names)
    packed = gzip.compress(body)

    plain, half = read(XML, body[:100_000], CAP, cut=True), read(XML, packed[: len(packed) // 2], CAP, cut=True)

    assert plain is not None
    assert half is not None
    assert plain.cut
    assert half.cut
    assert plain.locs == tuple(names[: len(plain.locs)])
    assert half.locs == tuple(names[: len(half.locs)])
    assert len(plain.locs) > 1_000
    assert 1_000 < len(half.locs) < 5_000
    early = read(XML, packed[: len(packed) // 2], CAP)
    assert early is not None
    assert early.cut, "whoever cut it"


def test_no_more_is_unpacked_than_the_cap_allows() -> None:
    bomb = gzip.compress(gzip.compress(urlset("http://a.test/1") + b" " * 100_000_000))

    found = read(XML, bomb, 10_000)

    assert found == Sitemap(("http://a.test/1",), False, True)
    filled = urlset(*(f"http://a.test/{n}" for n in range(2_000)))
    cut = read(XML, gzip.compress(filled), 10_000)
    assert cut is not None
    assert cut.cut
    assert len(cut.locs) == filled[: UNPACKED_TIMES * 10_000].count(b"</loc>")


def test_no_more_entries_are_kept_than_the_bound() -> None:
    whole, more = (read(XML, urlset(*map(str, range(n))), CAP * 4) for n in (LOCS_MAX, LOCS_MAX + 1))

    assert whole is not None
    assert more is not None
    assert (len(whole.locs), whole.cut) == (LOCS_MAX, False)
    assert (more.locs, more.cut) == (whole.locs, True)


def test_only_what_may_be_a_sitemap_is_looked_at() -> None:
    labels = ["application/xml", "text/xml", "application/rss+xml", "text/plain", "application/gzip", "application/octet-stream"]

    assert all(may_be_one((("Content-Type", label),)) for label in labels)
    assert may_be_one(())
    assert not any(may_be_one((("Content-Type", label),)) for label in ("text/html", "image/png", "video/mp4", "application/pdf"))


WORDS = "<urlset> <sitemapindex> <loc> </loc> <x:loc <![CDATA[ ]]> <!-- --> <? ?> < > &amp; &# &#x110000; http://a.test/"
PIECES = st.sampled_from([*WORDS.encode().split(), b"\n", b" ", b"\xff\xfe", b"\x1f\x8b\x08", b"\0", b"\xe9"]) | st.binary(
    max_size=4
)


@given(st.lists(PIECES, max_size=60).map(b"".join), st.sampled_from([bytes, gzip.compress]), st.booleans())
@example(b"", bytes, False)
@settings(deadline=None)
def test_no_bytes_make_it_fail(body: bytes, pack: Callable[[bytes], bytes], cut: bool) -> None:
    packed = pack(body)

    found = read(XML, packed, 200, cut=cut)

    assert (found is not None) == begins_as_one(XML, packed)
    if found is not None:
        assert len(set(found.locs)) == len(found.locs)
        assert all(found.locs)
        assert all(each == each.strip() for each in found.locs)
        assert found.cut or not cut


@pytest.mark.parametrize(
    "piece",
    [
        b"<loc>",
        b"<loc ",
        b"<loc><![CDATA[",
        b"<!--",
        b"<?",
        b"<",
        b"</",
        b"<a:",
        b"&#1",
        b"<loc>/a</loc>",
        b"<loc>&",
        b"<![CDATA[]]>",
    ],
)
def test_no_bytes_make_it_run_long(piece: bytes) -> None:
    """Two megabytes take some tenths of a second. Whatever looked at the rest again at each piece would take minutes."""
    body = b"<urlset><loc>" + piece * (UNPACKED_TIMES * CAP // len(piece))

    start = time.thread_time()
    found = read(XML, gzip.compress(body), CAP)

    assert found is not None
    assert time.thread_time() - start < 10
