"""Reading as a whole, from bytes and headers to links: nothing that a server sends makes it fail, or cost more than it may."""

import gzip
import time
import zlib

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gossamer.ids import UrlId
from gossamer.outcomes import Outcome
from services.worker.decode import Undecodable, decode
from services.worker.download import Answer
from services.worker.links import LinkReader, LinkRules
from services.worker.parse import TITLE_LENGTH_MAX, Parsed, parse
from services.worker.read import Reader, Reading, Unreadable
from services.worker.sketch import NO_SKETCH, Sketcher
from services.worker.types import Headers

CAP = 20_000
MAX_LINKS = 5
SKETCH = Sketcher(0.9)
URL = "http://h.test/a/b"
ENDINGS = {
    Outcome.NO_CONTENT,
    Outcome.TOO_LARGE,
    Outcome.TOO_COMPLEX,
    Outcome.WRONG_TYPE,
    Outcome.BAD_ENCODING,
    Outcome.MALFORMED,
}


def an_answer(headers: Headers, body: bytes) -> Answer:
    return Answer(200, headers, body, "127.0.0.1", started_at=0.0, took_s=0.1, received_bytes=len(body))


# --- Bytes: pages in any charset, packed in any way, and then broken ---

NAMES = st.sampled_from(
    (
        *(
            "a",
            "b",
            "i",
            "font",
            "p",
            "div",
            "span",
            "ul",
            "li",
            "table",
            "tr",
            "td",
            "select",
            "option",
            "template",
            "svg",
            "math",
        ),
        *("mi", "desc", "title", "style", "script", "textarea", "base", "meta", "frameset", "frame", "iframe", "noscript", "form"),
        *("br", "h1", "ruby", "rt", "button", "object", "html", "body", "plaintext"),
    )
)
WORDS = st.one_of(
    st.text(max_size=12), st.sampled_from(["&#xD800;", "&#0;", "&amp", "<![CDATA[", "]]>", "<!--", "-->", "<", "'", '"'])
)
LINKS = st.builds('<a href="{}" rel={}>'.format, st.text(max_size=20), st.sampled_from(["x", "nofollow"]))
RULES = st.builds('<meta {}="{}" content="{}">'.format, st.sampled_from(["name", "http-equiv"]), WORDS, WORDS)
TAGS = st.one_of(
    NAMES.map("<{}>".format),
    NAMES.map("</{}>".format),
    st.builds("<{} {}='{}'>".format, NAMES, st.sampled_from(["href", "src", "charset", "a"]), WORDS),
    st.builds("<{} {}>".format, NAMES, st.sampled_from(["class=sidebar", "id=nav", "role=banner"])),
    LINKS,
    RULES,
    WORDS,
)
MARKUP = st.builds(lambda pieces, times: "".join(pieces) * times, st.lists(TAGS, max_size=12), st.integers(1, 200))
IN_BYTES = st.builds(
    lambda text, codec: text.encode(codec, "replace"),
    MARKUP,
    st.sampled_from(["utf-8", "utf-16", "utf-16-be", "utf-32", "cp1251", "shift_jis", "utf-7"]),
)


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(body) + packer.flush()


def broken(body: bytes, at: int, by: bytes) -> bytes:
    at %= len(body) + 1
    return body[:at] + by + body[at + len(by) :]


PACKED = st.builds(lambda pack, body: pack(body), st.sampled_from([bytes, gzip.compress, zlib.compress, raw_deflate]), IN_BYTES)
BODIES = st.one_of(
    st.binary(max_size=300),
    PACKED,
    st.builds(broken, PACKED, st.integers(0, 30_000), st.binary(max_size=4)),
    st.builds(lambda body, cut: body[: cut % (len(body) + 1)], PACKED, st.integers(0, 30_000)),
)

CODINGS = st.sampled_from(["gzip", "deflate", "gzip, deflate", "br", "x-foo", "", "gzip, gzip, gzip"])
CHARSETS = st.sampled_from(
    ["utf-8", "utf-16", "windows-1251", "x-user-defined", "unicode_escape", "iso-2022-kr", "utf-7", '"', "\xff"]
)
TYPES = st.one_of(st.text(max_size=20), st.builds("text/html; charset={}".format, st.one_of(CHARSETS, st.text(max_size=9))))
HEADERS = st.lists(
    st.one_of(
        st.tuples(st.just("Content-Encoding"), CODINGS),
        st.tuples(st.just("Content-Type"), TYPES),
        st.tuples(st.just("X-Robots-Tag"), st.one_of(st.text(max_size=20), st.sampled_from(["noindex", "gossamer: nofollow"]))),
        st.tuples(st.text(max_size=20), st.text(max_size=20)),
    ),
    max_size=4,
).map(tuple)


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(HEADERS, BODIES)
@example((("Content-Encoding", "gzip"),), gzip.compress(bytes(4_000_000)))
@example((), "\ufeff<p>Stra\xdfe".encode())
@example((("Content-Type", "text/html; charset=utf-8"),), b"<p>Stra\xffe<a href=x>\0")
@example((), b"<base href='http://[::1'><a href='//'>")
@example((), b"<a href='http://h.test:99999/'><a href='\\\\x'><a href='http://a b/'>")
def test_nothing_that_a_server_sends_makes_reading_fail(headers: Headers, body: bytes) -> None:
    (page,) = Reader(CAP, MAX_LINKS, sketch=SKETCH)([an_answer(headers, body)])

    decoded = decode(headers, body, CAP)
    assert isinstance(decoded, Undecodable) or decoded.utf8 is None or decoded.utf8.decode() == decoded.html
    if isinstance(page, Unreadable):
        assert "fault of ours" not in page.reason
        assert page.outcome in ENDINGS
        page.reason.encode()
        assert len(page.reason) < 200
        return
    parsed = page.parsed
    assert page.size <= CAP
    assert len(page.html) <= CAP
    assert len(parsed.text) <= len(page.html)
    assert len(parsed.title) <= TITLE_LENGTH_MAX
    assert len(parsed.hrefs) <= MAX_LINKS
    (page.html + parsed.title + parsed.text + "".join(parsed.hrefs)).encode()  # all of it can be stored
    _links_are_bounded(page)


def _links_are_bounded(page: Reading) -> None:
    rules = LinkRules(max_url_length=100)
    reader = LinkReader(rules, url_refusal=lambda origin: None, registrable=lambda host: host)
    followable = reader.followable(page.parsed, url=URL, id=UrlId(bytes(16)), charset=page.charset)
    assert len(followable.links) <= MAX_LINKS + 1  # and where the page sends its reader
    assert all(len(link.url) <= rules.max_url_length and link.url.isascii() for link in followable.links)
    (" ".join(followable.found) + " ".join(each.example for each in followable.refused)).encode()


# --- Markup, as much of it as the cap allows ---

LARGE = 200_000
CHEAP = st.one_of(NAMES.map("<{}>".format), NAMES.map("</{}>".format), st.builds("<{} a#>".format, NAMES), st.just("x"))


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.lists(CHEAP, min_size=1, max_size=5), st.lists(CHEAP, max_size=5))
def test_no_markup_that_passes_the_guard_is_dear(before: list[str], after: list[str]) -> None:
    # A piece again and again, then another: what is quadratic shows itself so. The number makes each tag another one.
    halves = []
    for piece in ("".join(before), "".join(after)):
        count = LARGE // 2 // max(len(piece), 1) if piece else 0
        halves.append("".join(piece.replace("#", str(number)) for number in range(count)))
    body = "".join(halves).encode()[:LARGE]
    began = time.process_time()
    Reader(LARGE, MAX_LINKS, sketch=SKETCH)([an_answer((("Content-Type", "text/html"),), body)])

    assert time.process_time() - began < 2.0  # a fifth of it on an idle machine


HTML = (("content-type", "text/html"),)


def test_a_fault_of_ours_costs_the_page_and_no_other(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def broken(html: bytes, **limits: object) -> Parsed:
        if b"bad" in html:
            raise ZeroDivisionError("on purpose")
        return parse(html)

    monkeypatch.setattr("services.worker.read.parse", broken)
    first, bad, last = Reader(CAP, MAX_LINKS)([an_answer(HTML, body) for body in (b"<p>a page", b"<p>a bad page", b"<p>another")])

    assert bad == Unreadable(Outcome.MALFORMED, "a fault of ours: ZeroDivisionError while it was read")
    assert isinstance(first, Reading)
    assert isinstance(last, Reading)
    assert (first.html, last.html) == ("<p>a page", "<p>another")
    assert "on purpose" in caplog.text


def test_pages_read_together_are_read_as_each_alone() -> None:
    words = " ".join(f"word{number}" for number in range(200))
    bodies = [b"<title>one</title><a href=/x>x</a>", b"", f"<p>{words}".encode(), b"\0" * 50, b"<p>" * 20_000]
    answers = [an_answer(HTML, body) for body in bodies]
    reader = Reader(CAP, MAX_LINKS, sketch=SKETCH)

    together = reader(answers)

    assert together == [page for answer in answers for page in reader([answer])]
    assert isinstance(together[2], Reading)
    assert together[2].sketch == SKETCH(words)
    assert isinstance(together[0], Reading)
    assert together[0].sketch == NO_SKETCH, "too short"
