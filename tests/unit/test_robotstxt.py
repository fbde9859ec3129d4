"""robots.txt: what it means, how it is read, what it allows; and what pages ask for themselves."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protego import Protego

from services.worker.robotstxt import (
    ALLOW_ALL,
    BYTES_MAX,
    KEPT_S,
    KEPT_S_MIN,
    PATTERNS_MAX,
    Meaning,
    denial,
    kept_s,
    meaning,
    page_rules,
    read_rules,
    text_of,
)

SITE = "http://site.test"


def allowed(robots: str, path: str) -> bool:
    return read_rules(robots).allows(SITE + path).allowed


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(200, Meaning.READ, id="200"),
        pytest.param(204, Meaning.READ, id="an empty success"),
        pytest.param(301, Meaning.MOVED, id="301"),
        pytest.param(404, Meaning.ALLOWS_ALL, id="404"),
        pytest.param(410, Meaning.ALLOWS_ALL, id="410"),
        pytest.param(401, Meaning.ALLOWS_ALL, id="401, by the RFC"),
        pytest.param(403, Meaning.ALLOWS_ALL, id="403, by the RFC"),
        pytest.param(418, Meaning.ALLOWS_ALL, id="418"),
        pytest.param(429, Meaning.NOT_NOW, id="429"),
        pytest.param(500, Meaning.NOT_NOW, id="500"),
        pytest.param(503, Meaning.NOT_NOW, id="503"),
        pytest.param(999, Meaning.NOT_NOW, id="a senseless status"),
    ],
)
def test_what_can_not_be_had_is_never_taken_for_leave(status: int, expected: Meaning) -> None:
    assert meaning(status) is expected


@pytest.mark.parametrize(
    ("said", "expected_s"),
    [
        pytest.param([], KEPT_S, id="nothing"),
        pytest.param(["max-age=60"], KEPT_S_MIN, id="a minute: not between any two pages"),
        pytest.param(["no-store"], KEPT_S_MIN, id="not at all"),
        pytest.param(["public", "MAX-AGE=7200"], 7200, id="two hours, in two headers"),
        pytest.param(["max-age=315360000"], KEPT_S, id="ten years: a day"),
        pytest.param(["max-age=" + "9" * 400], KEPT_S, id="for ever"),
        pytest.param(["s-max-age=9, x-max-age=7, max-age=soon"], KEPT_S, id="nothing that makes sense"),
    ],
)
def test_rules_are_kept_as_long_as_their_server_says_within_bounds(said: list[str], expected_s: float) -> None:
    assert kept_s([("cache-Control", value) for value in said]) == expected_s


RULES = "User-agent: *\nDisallow: /private/\n"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(RULES.encode(), id="plain"),
        pytest.param(RULES.encode("utf-8-sig"), id="byte order mark"),
        pytest.param(RULES.encode("utf-16"), id="UTF-16, little-endian"),
        pytest.param(b"\xfe\xff" + RULES.encode("utf-16-be"), id="UTF-16, big-endian"),
        pytest.param(b"# caf\xe9\n" + RULES.encode(), id="a byte of Latin-1 in a comment"),
        pytest.param(RULES.replace("private", "pri\0vate").encode(), id="NULs"),
        pytest.param(RULES.replace("\n", "\r").encode(), id="CR alone"),
        pytest.param(RULES.replace("\n", "\r\n").encode(), id="CR LF"),
        pytest.param(RULES.strip().encode(), id="no last newline"),
        pytest.param(b"x" * 100_000 + b"\n" + RULES.encode(), id="behind a very long line"),
        pytest.param(RULES.encode() + b"Disallow: /x" + b"x" * 1_000_000, id="in front of a line of a megabyte"),
    ],
)
def test_rules_hold_however_they_are_written(body: bytes) -> None:
    rules = read_rules(text_of(body))

    assert not rules.allows(f"{SITE}/private/x").allowed
    assert rules.allows(f"{SITE}/xxx").allowed


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\n <!doctype html><pre>\n" + RULES.encode(), id="a page"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40, id="an image"),
    ],
)
def test_what_is_no_robots_txt_has_no_rules(body: bytes) -> None:
    assert read_rules(text_of(body)) == ALLOW_ALL


def test_a_file_that_is_cut_ends_with_its_last_whole_line() -> None:
    many = RULES.encode() + b"Disallow: /page-number-1/\n" * 40_000

    assert text_of(many).endswith("Disallow: /page-number-1/\n")
    assert BYTES_MAX - 30 < len(text_of(many)) <= BYTES_MAX
    assert text_of(b"User-agent: *\nDisallow: /a", cut=True) == "User-agent: *\n"
    assert text_of(b"Disallow: /a", cut=True) == ""


@pytest.mark.parametrize(
    ("robots", "path", "expected"),
    [
        pytest.param("User-agent: *\nDisallow: /p\nAllow: /p/open", "/p/open/x", True, id="the longest rule wins"),
        pytest.param("User-agent: *\nDisallow: /p\nAllow: /p", "/p", True, id="Allow wins ties"),
        pytest.param("User-agent: *\nAllow: /p\nDisallow: /p", "/p", True, id="Allow wins ties, in any order"),
        pytest.param("User-agent: *\nDisallow: /*.cgi\nAllow: /x.cgi", "/x.cgi", True, id="also against a pattern"),
        pytest.param("User-agent: *\nDisallow: /x\nAllow: /*x", "/x", True, id="also of a pattern that is longer"),
        pytest.param("User-agent: *\nDisallow: /p/long\nAllow: /*", "/p/long", False, id="a long path beats a short pattern"),
        pytest.param("User-agent: *\nDisallow:", "/x", True, id="an empty rule allows all"),
        pytest.param("User-agent: *\nDisallow: /", "/robots.txt", True, id="robots.txt itself"),
        pytest.param("User-agent: *\nDisallow: /", "/robots.txt.html", False, id="but nothing that only begins so"),
        pytest.param("Disallow: /", "/x", True, id="a rule before any group"),
        pytest.param("User-agent: *\nDisallow /x", "/x", True, id="a line without a colon"),
        pytest.param("User-agent: *\nDisallow: x", "/x", True, id="a rule that is no path"),
        pytest.param("User-agent: *\nDissallow: /x", "/x", False, id="a slip of the pen"),
        pytest.param("User-agent: *\n disallow : /x # no", "/x", False, id="blanks, case, comment"),
        pytest.param("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf", False, id="pattern with an end"),
        pytest.param("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf?x", True, id="pattern with an end, and more behind it"),
        pytest.param("User-agent: *\nDisallow: /a$b", "/a$b/c", False, id="a dollar inside is one"),
        pytest.param("User-agent: *\nDisallow: /x$", "/x", False, id="an end without a star"),
        pytest.param("User-agent: *\nDisallow: /x$", "/xy", True, id="an end without a star, and more behind it"),
        pytest.param("User-agent: *\nDisallow: *x", "/a/x", False, id="a star in front"),
        pytest.param("User-agent: *\nDisallow: /*ab*b$", "/ab", True, id="parts do not overlap"),
        pytest.param("User-agent: *\nDisallow: /*?*sort=", "/a?b=1&sort=up", False, id="in the query"),
        pytest.param("User-agent: *\nDisallow: /a?b", "/a", True, id="the query is part of the rule"),
        pytest.param("User-agent: *\nDisallow: /%7Ejoe/%3c", "/~joe/%3C", False, id="escapes of what needs none, and their case"),
        pytest.param("User-agent: *\nDisallow: /~joe", "/%7ejoe", False, id="escapes in the URL"),
        pytest.param("User-agent: *\nDisallow: /größe", "/gr%C3%B6%C3%9Fe/x", False, id="UTF-8 against its escapes"),
        pytest.param("User-agent: *\nDisallow: /a b", "/a%20b", False, id="a blank against its escape"),
        pytest.param("User-agent: *\nDisallow: /a%2Fb", "/a/b", True, id="an escaped slash is none"),
        pytest.param("User-agent: *\nDisallow: /a%2A", "/ab", True, id="an escaped star is none"),
        pytest.param("User-agent: *\nDisallow: /100%", "/100%25", False, id="a stray percent sign"),
    ],
)
def test_a_path_is_judged_as_the_rfc_says(robots: str, path: str, expected: bool) -> None:
    assert allowed(robots, path) is expected


@pytest.mark.parametrize(
    "robots",
    [
        pytest.param("User-agent: gossamer\nDisallow: /x", id="our name"),
        pytest.param("USER-AGENT: GOSSAMER\nDisallow: /x", id="in capitals"),
        pytest.param("User-agent: Gossamer/1.0\nDisallow: /x", id="with a version"),
        pytest.param("User-agent: a\nUser-agent: gossamer\nDisallow: /x", id="among others"),
        pytest.param("User-agent: gossamer\nUser-agent: a\nDisallow: /x", id="followed by others"),
        pytest.param("User-agent: gossamer\nDisallow: /y\n\nUser-agent: gossamer\nDisallow: /x", id="in two groups"),
        pytest.param("User-agent: gossamer\n\n\nFoo: bar\nSitemap: /s\nDisallow: /x", id="with lines that mean nothing"),
        pytest.param("User-agent: gossamer\nFoo: bar\nUser-agent: a\nDisallow: /x", id="with such lines among the names"),
        pytest.param("User-agent: *\nDisallow: /x", id="all"),
        pytest.param("User-agent: *\nAllow: /x\n\nUser-agent: gossamer\nDisallow: /x", id="not all, if we are named"),
    ],
)
def test_the_group_for_us_holds(robots: str) -> None:
    assert not allowed(robots, "/x")


@pytest.mark.parametrize(
    "robots",
    [
        pytest.param("User-agent: gossamer-news\nDisallow: /x", id="a name that begins as ours"),
        pytest.param("User-agent: notgossamer\nDisallow: /x", id="a name that ends as ours"),
        pytest.param("User-agent: a\nDisallow: /x\nUser-agent: *\nDisallow: /y", id="another's"),
        pytest.param("User-agent: *\nDisallow: /x\nUser-agent: gossamer\nDisallow:", id="all's, if we are named"),
        pytest.param("User-agent:\nDisallow: /x", id="nobody's"),
    ],
)
def test_a_group_for_others_does_not(robots: str) -> None:
    assert allowed(robots, "/x")


def test_the_line_that_decides_is_named() -> None:
    rules = read_rules("# ours\nUser-agent: gossamer\nDisallow: /p/  # not this\nAllow: /*/open$\n")

    assert rules.allows(f"{SITE}/p/x") == (False, "line 3: Disallow: /p/")
    assert rules.allows(f"{SITE}/p/open") == (True, "line 4: Allow: /*/open$")
    assert rules.allows(f"{SITE}/q") == (True, "")


def test_both_the_url_and_its_identity_must_be_allowed() -> None:
    rules = read_rules("User-agent: *\nDisallow: /*.cgi$\nDisallow: /*?utm_\n")

    assert rules.allows(f"{SITE}/x.cgi?utm_source=a").line == "line 3: Disallow: /*?utm_"
    rules = read_rules("User-agent: *\nDisallow: /*.cgi$\n")
    assert rules.allows(f"{SITE}/x.cgi?utm_source=a").allowed
    assert rules.admits(f"{SITE}/x.cgi?utm_source=a") == (False, "line 2: Disallow: /*.cgi$")
    assert rules.admits(f"{SITE}/x.cgi?a=1").allowed


@pytest.mark.parametrize(
    ("lines", "delay_s"),
    [
        pytest.param("Crawl-delay: 10", 10.0, id="ten seconds"),
        pytest.param("Crawl-delay: 0.5", 0.5, id="half a second"),
        pytest.param("Crawl-delay: 2\nCrawl-delay: 5\nCrawl-delay: 3", 5.0, id="the longest of several"),
        pytest.param("Crawl-delay: 86400", 86400.0, id="a day"),
        *(
            pytest.param(f"Crawl-delay: {value}", None, id=f"no number: {value!r}")
            for value in ("1,5", "-5", "NaN", "inf", "1e400", "abc", "", "5 s", "٣")
        ),
    ],
)
def test_the_delay_is_a_plain_number_of_seconds(lines: str, delay_s: float | None) -> None:
    assert read_rules(f"User-agent: *\n{lines}").crawl_delay_s == delay_s


def test_the_delay_of_another_group_is_not_ours() -> None:
    robots = "User-agent: *\nCrawl-delay: 10\nUser-agent: gossamer\nDisallow: /x\nUser-agent: other\nCrawl-delay: 20"

    assert read_rules(robots).crawl_delay_s is None
    assert read_rules(robots, "anybody").crawl_delay_s == 10


def test_sitemaps_belong_to_no_group() -> None:
    robots = "Sitemap: http://a/1\nUser-agent: x\nSitemap: http://a/2\nDisallow: /\nSITEMAP: http://a/3"

    assert read_rules(robots).sitemaps == ("http://a/1", "http://a/2", "http://a/3")


def test_a_denial_says_why() -> None:
    rules = read_rules("User-agent: *\nDisallow: /x\nCrawl-delay: 301")

    assert denial(rules, f"{SITE}/y", max_crawl_delay_s=300) == "robots.txt asks for a delay of 301 s, and 300 s are accepted"
    assert denial(rules, f"{SITE}/x", max_crawl_delay_s=400) == "robots.txt, line 2: Disallow: /x"
    assert denial(rules, f"{SITE}/y", max_crawl_delay_s=400) is None
    assert denial(ALLOW_ALL, f"{SITE}/", max_crawl_delay_s=0) is None


@pytest.mark.parametrize(
    ("rule", "path", "limit_s"),
    [
        pytest.param("/*" + "*a" * 30 + "b", "/" + "a" * 2_000, 0.05, id="thirty stars that nearly match"),
        pytest.param("/" + "*" * 50 + "x", "/" + "a" * 2_000, 0.05, id="fifty stars in a row"),
        pytest.param("/" + "*a*aa" * 2_000 + "b", "/" + "a" * 2_000, 0.05, id="four thousand stars"),
        pytest.param("\nDisallow: ".join(f"/page-{number}/" for number in range(30_000)), "/page-29999/x", 2.0, id="30,000 rules"),
        pytest.param(
            "\nDisallow: ".join(f"/*x{number}*y$" for number in range(15_000)), "/" + "x" * 2_000, 2.0, id="15,000 patterns"
        ),
    ],
)
def test_no_file_makes_the_matcher_run_away(rule: str, path: str, limit_s: float) -> None:
    began = time.process_time()
    rules = read_rules(f"User-agent: *\nDisallow: {rule}")
    rules.allows(SITE + path)

    assert time.process_time() - began < limit_s  # a tenth of it on an idle machine


def test_more_patterns_than_can_be_tried_on_every_url_forbid_everything() -> None:
    lines = [f"Disallow: /*x{number}$" for number in range(PATTERNS_MAX)]
    read, unread = (read_rules("\n".join(("User-agent: *", *lines, *more))) for more in ([], ["Allow: /*.html$"]))

    assert read.allows(f"{SITE}/y").allowed
    assert not read.allows(f"{SITE}/x{PATTERNS_MAX - 1}").allowed
    assert denial(unread, f"{SITE}/y", max_crawl_delay_s=0) == "robots.txt, 3001 rules with * or $, more than are read"


PATHS = st.text(st.sampled_from("ab/.?=*$"), max_size=8).map(lambda text: "/" + text)
RULE_LINES = st.builds("{}: {}".format, st.sampled_from(["Allow", "Disallow"]), PATHS)
URLS = st.text(st.sampled_from("ab/.=-?"), max_size=8).map(lambda text: "/a" + text)


def is_common_ground(line: str) -> bool:
    """Where protego reads a rule as the RFC does: it takes a `$` for a letter as well."""
    return "$" not in line


@settings(deadline=None)
@given(st.lists(RULE_LINES.filter(is_common_ground), max_size=6), st.lists(URLS, min_size=1, max_size=5))
def test_the_matcher_agrees_with_protego(lines: list[str], paths: list[str]) -> None:
    robots = "\n".join(["User-agent: *", *lines])
    rules, oracle = read_rules(robots), Protego.parse(robots)

    for path in paths:
        assert rules.allows(SITE + path).allowed == oracle.can_fetch(SITE + path, "gossamer"), path


@settings(deadline=None)
@given(st.lists(RULE_LINES, max_size=6), URLS)
def test_more_leave_never_forbids_and_more_bans_never_allow(lines: list[str], path: str) -> None:
    rules = read_rules("\n".join(["User-agent: *", *lines]))
    freer = read_rules("\n".join(["User-agent: *", *lines, f"Allow: {path}$", "Allow: /" + "*" * 60]))

    assert freer.allows(SITE + path).allowed or not rules.allows(SITE + path).allowed


@settings(deadline=None)
@given(
    st.binary(max_size=300)
    | st.lists(st.sampled_from([b"User-agent: *", b"Disallow:", b"/\xff%", b"\n", b"\r", b"\xff\xfe"])).map(b"".join)
)
def test_no_bytes_make_it_fail(body: bytes) -> None:
    text = text_of(body)

    assert text_of(text.encode("utf-8", "replace")) in (text, "")
    read_rules(text).admits(f"{SITE}/x?y=%zz")


@pytest.mark.parametrize(
    ("headers", "meta", "expected"),
    [
        pytest.param([], set(), (False, False), id="nothing asked"),
        pytest.param([("X-Robots-Tag", "noindex")], set(), (True, False), id="in a header"),
        pytest.param([("x-robots-tag", "NONE")], set(), (True, True), id="none is both"),
        pytest.param([], {"nofollow"}, (False, True), id="in the page"),
        pytest.param([("X-Robots-Tag", "nofollow")], {"noindex", "follow"}, (True, True), id="the strictest of both"),
        pytest.param([("X-Robots-Tag", "gossamer: nofollow")], set(), (False, True), id="for us"),
        pytest.param([("X-Robots-Tag", "otherbot: noindex, nofollow")], set(), (False, False), id="for another"),
        pytest.param([("X-Robots-Tag", "otherbot: noindex, gossamer: nofollow")], set(), (False, True), id="for both"),
        pytest.param([("X-Robots-Tag", "otherbot: none"), ("X-Robots-Tag", "noindex")], set(), (True, False), id="in several"),
        pytest.param([("X-Robots-Tag", "unavailable_after: 25 Jun 2010 15:00:00 PST, noindex")], set(), (True, False), id="dates"),
        pytest.param([("X-Robots-Tag", "max-snippet:-1, index, follow")], set(), (False, False), id="values"),
    ],
)
def test_a_page_is_treated_as_strictly_as_it_asks(
    headers: list[tuple[str, str]], meta: set[str], expected: tuple[bool, bool]
) -> None:
    assert page_rules(headers, meta) == expected
