"""Content: what is no page, what would cost the parser dearly, and links where none should be followed. Cases 23 to 32."""

import gzip
import random
from typing import Final

from gossamer.outcomes import Flag, Outcome
from services.worker.download import READ_BYTES
from tests.hostile.case import MB, Case
from tests.hostile.crawl import CAP, Closed
from tests.hostile.peers import floods, replies
from tests.hostile.playing import (
    HTML,
    LENGTH,
    M2,
    OK,
    PAGE,
    Check,
    chunked,
    follows,
    message,
    page,
    played,
    says,
    shown,
    untyped,
)

DONE: Final = Outcome.DONE
NO_CONTENT: Final = Outcome.NO_CONTENT
MALFORMED: Final = Outcome.MALFORMED
TOO_LARGE: Final = Outcome.TOO_LARGE
TOO_COMPLEX: Final = Outcome.TOO_COMPLEX
WRONG_TYPE: Final = Outcome.WRONG_TYPE
HTTP_ERROR: Final = Outcome.HTTP_ERROR

# --- 23 to 25: types ---


def binary(id: str, name: str, beginning: bytes) -> Case:
    """A long file that says it is HTML: it is not read to its end."""
    body = beginning + bytes(range(256)) * 1500
    return played(id, f"{name}, as text/html", page(body), WRONG_TYPE, read_bytes=2 * READ_BYTES, dropped=True)


BINARIES = [
    binary("23a", "PNG", b"\x89PNG\r\n\x1a\n"),
    binary("23b", "PDF", b"%PDF-1.7\n"),
    binary("23c", "MP4", b"\x00\x00\x00\x20ftypisom"),
    binary("23d", "ZIP", b"PK\x03\x04"),
    binary("23e", "ELF", b"\x7fELF\x02\x01\x01"),
    binary("23f", "gzip", b"\x1f\x8b\x08\0"),
    binary("23g", "WebAssembly", b"\x00asm\x01\x00\x00\x00"),
    played("23h", "64 KB of noise, as text/html", page(random.Random(1).randbytes(65_536)), WRONG_TYPE, dropped=True),
]

ENTITIES: Final = b"".join(b"<!ENTITY e%d '&e%d;&e%d;&e%d;&e%d;'>" % (n, *[n - 1] * 4) for n in range(1, 12))
ENTITY_BOMB: Final = b"<?xml version='1.0'?><!DOCTYPE html [<!ENTITY e0 'ha'>" + ENTITIES + b"]><html><body>&e11;</body></html>"
XHTML: Final = b"application/xhtml+xml"


def _no_entity_is_expanded(closed: Closed) -> None:
    assert len(shown(closed).text) < 1000


POLYGLOTS = [
    played("24a", "GIF and HTML at once", page(b"GIF89a/*" + PAGE * 100), WRONG_TYPE),
    played("24b", "HTML with a PDF's mark at byte 800", page(b"<p>" + b"x" * 797 + b"%PDF-" + PAGE * 20), DONE),
    played("24c", "JSON as text/html", page(b'{"a": 1}'), DONE),
    played("24d", "HTML as text/plain", page(PAGE, type=b"text/plain"), DONE),
    played("24e", "words without an element", page(b"just words"), DONE, check=says("just words")),
    played("24f.1", "XHTML", page(b"<?xml version='1.0'?><html><p>x</p></html>", type=XHTML), DONE, check=says("x")),
    played("24f.2", "XHTML that is no XML", page(b"<?xml version='1.0'?><html><p>x</html>", type=XHTML), DONE, check=says("x")),
    played("24g", "RSS as text/xml", page(b"<rss/>", type=b"text/xml"), WRONG_TYPE, dropped=True),
    played("24h", "TEXT/HTML;foo", page(PAGE, type=b"TEXT/HTML;foo"), DONE),
    played(
        "24i",
        "parts without end (multipart/x-mixed-replace)",
        floods(OK + b"Content-Type: multipart/x-mixed-replace;boundary=b\r\n\r\n", b"--b\r\n\r\nx\r\n"),
        WRONG_TYPE,
        read_bytes=READ_BYTES,
        dropped=True,
    ),
    played("24j", "XHTML with an entity bomb", page(ENTITY_BOMB, type=XHTML), DONE, check=_no_entity_is_expanded),
]

NOISE: Final = random.Random(2).randbytes(4000)

TYPES = [
    played("25a", "no type over HTML", untyped(PAGE), DONE),
    played("25b", "no type over noise", untyped(NOISE), WRONG_TYPE, dropped=True),
    played("25c.1", "two types, the last HTML", untyped(PAGE, b"Content-Type: image/png", b"Content-Type: text/html"), DONE),
    played("25c.2", "two types, the last PNG", untyped(PAGE, b"Content-Type: text/html", b"Content-Type: image/png"), WRONG_TYPE),
    played("25c.3", "two types, the last none", untyped(PAGE, b"Content-Type: text/html", b"Content-Type: nonsense"), DONE),
    played("25d.1", "type */*", page(PAGE, type=b"*/*"), DONE),
    played("25d.2", "type html", page(PAGE, type=b"html"), DONE),
    played("25d.3", "an empty type", page(PAGE, type=b""), DONE),
    played("25e", "octet-stream over HTML", page(PAGE, type=b"application/octet-stream"), WRONG_TYPE, dropped=True),
    played("25f", "an attachment", page(PAGE, b"Content-Disposition: attachment; filename=a.html"), WRONG_TYPE, dropped=True),
]

# --- 26 and 27: lengths ---

BODYLESS = [
    played("26a", "204", message(b"HTTP/1.1 204 N"), NO_CONTENT),
    played("26b", "205 with a body", message(b"HTTP/1.1 205 R", LENGTH.strip(), body=PAGE), NO_CONTENT),
    played("26c", "304, though nothing was conditional", message(b"HTTP/1.1 304 N"), HTTP_ERROR),
    played("26d", "206, unasked", page(PAGE).replace(b"200 OK", b"206 Partial Content"), MALFORMED, dropped=True),
    played("26e", "200 with a length of 0", page(b""), NO_CONTENT),
    played("26f", "200 with blanks alone", page(b" \r\n\t" * 30), NO_CONTENT),
    played("26g", "200, and closes", replies(HTML + b"\r\n", close=True), NO_CONTENT),
]


def at_the_cap(size: int, mark: str, outcome: str) -> list[Case]:
    """Of this size as it came, in chunks, and unpacked. What is parsed costs more than its bytes: the text and its copies too."""
    body = b"x" * size
    memory_bytes = 8 * MB if outcome == DONE else 2 * MB
    packed = page(gzip.compress(body), b"Content-Encoding: gzip")
    return [
        played(f"27a.{mark}", f"{size} bytes", page(body), outcome, memory_bytes=memory_bytes),
        played(f"27b.{mark}", f"{size} bytes in chunks", chunked(body), outcome, memory_bytes=memory_bytes),
        played(f"27c.{mark}", f"{size} bytes, unpacked", packed, outcome, memory_bytes=memory_bytes),
    ]


AT_THE_CAP = [
    *at_the_cap(CAP - 1, "1", DONE),
    *at_the_cap(CAP, "2", DONE),
    *at_the_cap(CAP + 1, "3", TOO_LARGE),
    played(
        "27d",
        "says one byte more, and sends none",
        replies(HTML + b"Content-Length: %d\r\n\r\n" % (CAP + 1), to_each=False),
        TOO_LARGE,
        read_bytes=READ_BYTES,
        dropped=True,
    ),
]

# --- 28 to 30: the parser ---


def filled(piece: bytes, size: int = CAP) -> bytes:
    return piece * (size // len(piece))


def numbered(template: bytes, count: int) -> bytes:
    return b"".join(template.replace(b"#", b"%d" % number) for number in range(count))


def markup(id: str, name: str, body: bytes, *expected: str, check: Check | None = None, page_bytes: int = CAP) -> Case:
    """A page within the cap that is hard to parse, or looks so."""
    assert len(body) <= page_bytes, f"{id}: {len(body)}"
    return played(id, name, page(body), *expected, check=check, page_bytes=page_bytes, memory_bytes=M2)


DEEP = [
    markup("28a", "<div> up to the cap", filled(b"<div>"), TOO_COMPLEX),
    markup("28b", "<ul><li> up to the cap", filled(b"<ul><li>"), TOO_COMPLEX),
    markup("28c", "<div><p> up to the cap", filled(b"<div><p>"), TOO_COMPLEX),
    markup("28d", "<x> 83,000 times, </y> 62,000 times", b"<x>" * 83_000 + b"</y>" * 62_000, TOO_COMPLEX),
    markup("28e", "<span> up to the cap", filled(b"<span>"), TOO_COMPLEX),
    markup("28f", "<table> in cells, up to the cap", filled(b"<table><tr><td>"), TOO_COMPLEX),
    markup("28g", "<svg><g> up to the cap", b"<svg>" + filled(b"<g>", CAP - 5), TOO_COMPLEX),
    markup("28h", "<template> up to the cap", filled(b"<template>"), TOO_COMPLEX),
    markup("28i", "a million levels, the cap raised", b"<div>" * 1_000_000, TOO_COMPLEX, page_bytes=5 * MB),
    markup("28j", "400 levels, and a long page", b"<div>" * 400 + b"<p>words</p>" * 5_000, DONE),
]

FORMATTING = [
    markup(
        "29a",
        "3,000 <b>, 3,000 <i>, closed crosswise",
        numbered(b"<b #>", 3_000) + numbered(b"<i #>", 3_000) + b"x</b>" * 3_000,
        TOO_COMPLEX,
    ),
    markup(
        "29b", "100 <b> that come back in each <p>", b"<p>" + numbered(b"<b #>", 100) + filled(b"<p>x", CAP - 1_000), TOO_COMPLEX
    ),
    markup("29c", "30,000 <font>, all different", numbered(b"<font a=#>", 30_000), TOO_COMPLEX),
    markup("29d", "<font><div> up to the cap", filled(b"<font><div>"), TOO_COMPLEX),
]


def _is_cut_at_a_thousand(closed: Closed) -> None:
    assert Flag.LINKS_CUT in closed.flags
    assert len(closed.followed) == 1000


def _long_link_is_refused(closed: Closed) -> None:
    assert closed.followed == ()
    assert closed.refused != ()


WIDE_PAGES = [
    markup("30a.1", "25,000 links", numbered(b"<a href=#>x</a>", 25_000), DONE, check=_is_cut_at_a_thousand),
    # So many elements are more than the guard lets through, whatever they are.
    markup("30a.2", "200,000 links, the cap raised", numbered(b"<a href=#>x</a>", 200_000), TOO_COMPLEX, page_bytes=5 * MB),
    markup("30b", "a tag of 70,000 attributes", b"<a " + numbered(b"a# ", 70_000) + b">", TOO_COMPLEX),
    markup("30c", "one text", b"x" * CAP, DONE),
    markup("30d.1", "&amp; up to the cap", filled(b"&amp;"), DONE),
    markup("30d.2", "& up to the cap", filled(b"&"), DONE),
    markup("30d.3", "&#x41; up to the cap", filled(b"&#x41;"), DONE),
    markup("30e", "60,000 options", b"<select>" + filled(b"<option>", CAP - 8), TOO_COMPLEX),
    markup("30f", "30,000 <html> with an attribute each", numbered(b"<html a#>", 30_000), TOO_COMPLEX),
    markup("30g.1", "a comment that is never closed", b"<p>x<!--" + filled(b"<div>", CAP - 8), DONE, check=says("x")),
    markup("30g.2", "an attribute that is never closed", b"<p>x<a b='" + filled(b"<div>", CAP - 10), DONE),
    markup("30g.3", "a script that is never closed", b"<p>x<script>" + filled(b"<div>", CAP - 12), DONE, check=says("x")),
    markup("30g.4", "a textarea that is never closed", b"<p>x<textarea>" + filled(b"<div>", CAP - 14), DONE),
    markup("30g.5", "a title that is never closed", b"<title>" + filled(b"<div>", CAP - 7), DONE),
    markup("30g.6", "plaintext, which has no end", b"<plaintext>" + filled(b"<div>", CAP - 11), DONE),
    markup("30h", "a link of 490 KB", b"<p>x<a href=/" + b"x" * 490_000 + b">y</a>", DONE, check=_long_link_is_refused),
]

# --- 31 and 32: links ---


def linking(id: str, name: str, body: bytes, *paths: str) -> Case:
    """A page that is done, and from which these are followed."""
    return played(id, name, page(b"<p>x</p>" + body), DONE, check=follows(*paths), memory_bytes=M2)


def leading(id: str, name: str, body: bytes, *urls: str) -> Case:
    """The same, with URLs on other hosts."""
    return played(id, name, page(b"<p>x</p>" + body), DONE, check=follows(*urls, elsewhere=True), memory_bytes=M2)


def refreshing(id: str, content: bytes, *paths: str) -> Case:
    return linking(id, f"a refresh: {content.decode()}", b'<meta http-equiv=refresh content="%s">' % content, *paths)


THERE: Final = b"<a href=there></a>"

BASES = [
    leading("31a", "a base on another host", b"<base href=http://other.test/b/>" + THERE, "http://other.test/b/there"),
    linking("31b.1", "two bases", b"<base href=/1/><base href=/2/>" + THERE, "/1/there"),
    linking("31b.2", "a base after the links", THERE + b"<base href=/1/>", "/1/there"),
    linking("31b.3", "a base of data:", b"<base href=data:text/html,x><base href=/2/>" + THERE, "/2/there"),
    linking("31b.4", "a base of javascript:", b"<base href=javascript:alert(1)>" + THERE, "/there"),
    linking("31b.5", "a base at a private address", b"<base href=http://10.0.0.1/>" + THERE),
    refreshing("31c.1", b"0; url=/next", "/next"),
    refreshing("31c.2", b"10; url='/next'", "/next"),
    refreshing("31c.3", b" 3 ; URL = /next ", "/next"),
    refreshing("31c.4", b"9999; url=/next"),
    refreshing("31c.5", b"NaN; url=/next"),
    refreshing("31c.6", b"0; url=/"),
    refreshing("31c.7", b"0"),
    linking("31d.1", "a refresh in noscript", b"<noscript><meta http-equiv=refresh content='0; url=/next'></noscript>"),
    linking("31d.2", "a refresh in a comment", b"<!-- <meta http-equiv=refresh content='0; url=/next'> -->"),
    linking("31e.1", "an iframe", b"<iframe src=/inner></iframe>", "/inner"),
    linking("31e.2", "an iframe with a document of its own", b"<iframe srcdoc='<a href=/inner>x</a>'></iframe>"),
    played(
        "31e.3",
        "frames",
        page(b"<title>t</title><frameset><frame src=/1><frame src=/2></frameset>"),
        DONE,
        check=follows("/1", "/2"),
        memory_bytes=M2,
    ),
    played("31f", "a Refresh header", page(PAGE, b"Refresh: 0; url=/next"), DONE, check=follows()),
    linking("31g", "a canonical link to another host", b"<link rel=canonical href=http://other.test/>"),
]

FOREIGN = [
    linking("32a", "links in SVG", b"<svg><a href=/1>x</a><a xlink:href=/2>y</a></svg>", "/1", "/2"),
    linking("32b", "links in MathML", b"<math><mrow href=/1><mi>x</mi></mrow></math>", "/1"),
    linking("32c", "links in a template", b"<template><a href=/no>x</a></template>"),
    linking("32d", "links in noscript", b"<noscript><a href=/1>x</a></noscript>", "/1"),
    linking("32e", "links in CDATA", b"<svg><![CDATA[<a href=/no>]]></svg><![CDATA[<a href=/no>]]>"),
    linking("32f", "links in comments", b"<!-- <a href=/no> --><!--[if IE]><a href=/no>x</a><![endif]-->"),
    linking("32g.1", "a template in SVG", b"<svg><template><a href=/1>x</a></template></svg>", "/1"),
    linking("32g.2", "SVG in a select", b"<select><svg><option><a href=/1>x</a></svg></select><a href=/2>y</a>", "/1", "/2"),
    linking(
        "32h",
        "area, and what is no link",
        b"<map><area href=/1></map><link href=/no><form action=/no><a ping=/no></a><img srcset='/no 2x'>",
        "/1",
    ),
    linking("32i", "links in a shadow root", b"<div><template shadowrootmode=open><a href=/no>x</a></template></div>"),
]

CASES = [
    *BINARIES,
    *POLYGLOTS,
    *TYPES,
    *BODYLESS,
    *AT_THE_CAP,
    *DEEP,
    *FORMATTING,
    *WIDE_PAGES,
    *BASES,
    *FOREIGN,
]
