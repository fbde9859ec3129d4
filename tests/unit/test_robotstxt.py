"""robots.txt and page rules, as texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.worker.robotstxt import page_rules, read_rules, text_of

SITE = "http://a.example"


def allowed(text: str, path: str) -> bool:
    return read_rules(text).allow(SITE + path, SITE + path)


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        pytest.param("User-agent: *\nDisallow: /x", "/x/y", False, id="a rule for all"),
        pytest.param("User-agent: *\nDisallow: /x", "/y", True, id="another path"),
        pytest.param("User-agent: gossamer\nDisallow: /a\n\nUser-agent: *\nDisallow: /", "/b", True, id="our group alone counts"),
        pytest.param("USER-AGENT: GOSSAMER\nDISALLOW: /a", "/a", False, id="in capitals"),
        pytest.param("User-agent: Gossamer/1.0\nDisallow: /a", "/a", False, id="with a version"),
        pytest.param("User-agent: *\nDisallow: /x\nAllow: /x/open", "/x/open/1", True, id="the longest rule wins"),
        pytest.param("User-agent: *\nDisallow: /x\nAllow: /x", "/x", True, id="allow wins a tie"),
        pytest.param("User-agent: *\nDisallow: /*.cgi$", "/run.cgi", False, id="wildcards"),
        pytest.param("User-agent: *\nDisallow: /*.cgi$", "/run.cgi?x", True, id="and the end of the URL"),
        pytest.param("User-agent: *\nDisallow:", "/x", True, id="an empty rule allows"),
        pytest.param("Disallow: /x", "/x", True, id="a rule before any group"),
        pytest.param("User-agent: a\nUser-agent: gossamer\nDisallow: /x", "/x", False, id="two agents on one group"),
    ],
)
def test_rules_are_read_as_the_standard_says(text: str, path: str, expected: bool) -> None:
    assert allowed(text, path) is expected


def test_both_the_requested_url_and_its_identity_must_be_allowed() -> None:
    rules = read_rules("User-agent: *\nDisallow: /*.cgi$")
    assert not rules.allow(f"{SITE}/run.cgi?utm_source=a", f"{SITE}/run.cgi")


@pytest.mark.parametrize(
    ("text", "delay_s"),
    [
        pytest.param("User-agent: *\nCrawl-delay: 10", 10.0, id="whole"),
        pytest.param("User-agent: *\nCrawl-delay: 0.5", 0.5, id="a half"),
        pytest.param("User-agent: *\nCrawl-delay: 1,5", None, id="a comma"),
        pytest.param("User-agent: *\nCrawl-delay: -5", None, id="negative"),
        pytest.param("User-agent: *\nCrawl-delay: inf", None, id="infinite"),
        pytest.param("User-agent: *\nCrawl-delay: 1e400", None, id="beyond numbers"),
        pytest.param("User-agent: *\nCrawl-delay: 2\nCrawl-delay: 7", 7.0, id="the larger of two"),
        pytest.param("User-agent: gossamer\nDisallow: /x\n\nUser-agent: *\nCrawl-delay: 9", None, id="of a group that is not ours"),
        pytest.param("User-agent: gossamer\nCrawl-delay: 3\n\nUser-agent: *\nCrawl-delay: 9", 3.0, id="of our group"),
    ],
)
def test_a_crawl_delay_is_a_number_that_makes_sense(text: str, delay_s: float | None) -> None:
    assert read_rules(text).crawl_delay_s == delay_s


@pytest.mark.parametrize(
    ("body", "path", "expected"),
    [
        pytest.param(b"\xef\xbb\xbfUser-agent: *\nDisallow: /x", "/x", False, id="a byte order mark"),
        pytest.param("User-agent: *\nDisallow: /x".encode("utf-16"), "/x", False, id="UTF-16"),
        pytest.param(b"# \xe9\nUser-agent: *\nDisallow: /x", "/x", False, id="a Latin-1 byte in a comment"),
        pytest.param(b"User-agent: *\rDisallow: /x\r", "/x", False, id="CR alone ends lines"),
        pytest.param(b"User-agent: *\0\nDisallow: /x", "/x", False, id="a NUL"),
        pytest.param(b"<html>User-agent: *\nDisallow: /</html>", "/x", True, id="a page"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + bytes(100), "/x", True, id="an image"),
        pytest.param(b"", "/x", True, id="nothing"),
    ],
)
def test_bytes_that_are_hardly_text_are_read_all_the_same(body: bytes, path: str, expected: bool) -> None:
    assert allowed(text_of(body, cut=False), path) is expected


def test_a_cut_file_ends_with_its_last_whole_line() -> None:
    assert text_of(b"User-agent: *\nDisallow: /x\nDisallow: /", cut=True) == "User-agent: *\nDisallow: /x\n"


@given(st.binary(max_size=400), st.booleans())
def test_no_bytes_make_it_fail(body: bytes, cut: bool) -> None:
    read_rules(text_of(body, cut=cut)).allow(f"{SITE}/x", f"{SITE}/x")


@pytest.mark.parametrize(
    ("header", "meta", "expected"),
    [
        pytest.param(None, (), (False, False), id="nothing"),
        pytest.param("noindex", (), (True, False), id="a header"),
        pytest.param("none", (), (True, True), id="none means both"),
        pytest.param("gossamer: nofollow", (), (False, True), id="for us"),
        pytest.param("otherbot: noindex, nofollow", (), (False, False), id="for another"),
        pytest.param("NOINDEX, nofollow", (), (True, True), id="several, in any case"),
        pytest.param(None, ("nofollow",), (False, True), id="the page's own meta"),
        pytest.param("noindex", ("nofollow",), (True, True), id="the strictest of both"),
    ],
)
def test_what_a_page_asks_is_heeded(header: str | None, meta: tuple[str, ...], expected: tuple[bool, bool]) -> None:
    headers = () if header is None else (("X-Robots-Tag", header),)
    assert page_rules(headers, frozenset(meta)) == expected
