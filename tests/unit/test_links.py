"""Links: which are followed, which are not and why, and that knowing a site changes nothing but the time it takes."""

import asyncio
import random
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import synthweb
from gossamer.messages import Link
from gossamer.records import Refused
from gossamer.settings import Links as Limits
from gossamer.settings import Nofollow, Scope
from gossamer.urls import identity, requested, url_id
from services.role.registrable import registrable
from services.worker.decode import Decoded, decode
from services.worker.links import (
    LENGTH_KEPT,
    PLAIN_KEPT,
    SPELLED_KEPT,
    Followable,
    LinkReader,
    LinkRules,
    Links,
    in_charset,
    repeats,
)
from services.worker.parse import Parsed, parse

PAGE = "http://site.test/dir/page?q=1"
RULES = LinkRules()


def reader(rules: LinkRules = RULES, *, scope: tuple[str, ...] = (), by_domain: bool = False) -> LinkReader:
    def url_refusal(url: str) -> str | None:
        return "a name for inside" if "//inside" in url else None

    made = LinkReader(rules, url_refusal=url_refusal, registrable=registrable, by_domain=by_domain)
    made.widen(scope)
    return made


def page_with(*hrefs: str, base: str | None = None, nofollow: tuple[str, ...] = (), refresh: str | None = None) -> Parsed:
    return msgspec.structs.replace(parse(""), hrefs=hrefs, base=base, nofollow=frozenset(nofollow), refresh=refresh)


def read(parsed: Parsed, at: LinkReader | None = None, url: str = PAGE, **facts: object) -> Followable:
    at = at or reader()
    return at.followable(parsed, url=url, id=url_id(identity(url)), **facts)  # type: ignore[arg-type]


def urls(followable: Followable) -> list[str]:
    return [link.url for link in followable.links]


def reasons(followable: Followable) -> dict[str, int]:
    counts: dict[str, int] = {}
    for refused in followable.refused:
        counts[refused.reason] = counts.get(refused.reason, 0) + refused.count
    return counts


def test_links_are_resolved_and_each_page_is_named_once() -> None:
    parsed = page_with("a", "/b", "./a#x", "//other.test", "HTTP://SITE.test:80/b", "/b?utm_source=x", "../c?b=1&a=2", "/c?a=2&b=1")

    followable = read(parsed)

    assert urls(followable) == ["http://site.test/dir/a", "http://site.test/b", "http://other.test/", "http://site.test/c?b=1&a=2"]
    assert followable.links[2] == Link(url_id("http://other.test/"), "http://other.test/", "other.test")
    assert followable.found[-1] == "http://site.test/c?a=2&b=1"
    assert followable.refused == []


def test_a_link_to_the_page_itself_is_no_news() -> None:
    followable = read(page_with("", "#top", "?q=1", "/dir/page?q=1&utm_source=x", "/dir/page"))

    assert urls(followable) == ["http://site.test/dir/page"]


@pytest.mark.parametrize(
    ("base", "url"),
    [
        pytest.param(None, "http://site.test/dir/x", id="none"),
        pytest.param("/other/", "http://site.test/other/x", id="relative"),
        pytest.param("http://other.test/y/z", "http://other.test/y/x", id="another site"),
        pytest.param("http://", "http://site.test/dir/x", id="no URL"),
        pytest.param("http://user:pw@other.test/", "http://site.test/dir/x", id="with a password"),
    ],
)
def test_links_are_relative_to_the_base(base: str | None, url: str) -> None:
    assert urls(read(page_with("x", base=base))) == [url]


def test_where_a_page_refreshes_to_is_a_link() -> None:
    assert urls(read(page_with("a", refresh="/next"))) == ["http://site.test/dir/a", "http://site.test/next"]


@pytest.mark.parametrize(
    ("href", "reason"),
    [
        pytest.param("mailto:a@b.test", "not http or https", id="mail"),
        pytest.param("javascript:void(0)", "not http or https", id="script"),
        pytest.param("ftp://site.test/", "not http or https", id="other schemes"),
        pytest.param("http://user:pw@site.test/", "user name or password", id="credentials"),
        pytest.param("http://[::1", "not a URL", id="no URL"),
        pytest.param("http://a..test/", "not a host name", id="no host"),
        pytest.param("/" + "x" * 3000, "too long", id="too long"),
        pytest.param("/a.jpg", "file type", id="an image"),
        pytest.param("/a.PDF?x=1#y", "file type", id="a document"),
        pytest.param("a/b.tar.gz", "file type", id="an archive"),
        pytest.param("/1/2/3/4/5/6/7/8/9/10/11", "path components", id="too deep a path"),
        pytest.param("/a/b/a/c/a/d/a", "repeated path segments", id="a segment four times"),
        pytest.param("/a/b/a/b/a/b/", "repeated path segments", id="a run three times"),
        pytest.param("http://inside.test/", "address or port", id="a refused place"),
    ],
)
def test_a_link_that_is_refused_is_counted_with_its_reason(href: str, reason: str) -> None:
    followable = read(page_with(href, href + " "))

    assert followable.links == []
    assert reasons(followable) == {reason: 2}
    assert all(len(refused.example) <= 500 for refused in followable.refused)


def test_a_few_refused_links_are_shown_not_those_of_every_page_alone() -> None:
    hrefs = ["mailto:top@a.test", *(f"mailto:{n}@a.test" for n in range(7)), "mailto:foot@a.test"]

    assert read(page_with(*hrefs)).refused == [
        Refused("not http or https", 7, "mailto:top@a.test"),
        Refused("not http or https", 1, "mailto:3@a.test"),
        Refused("not http or https", 1, "mailto:foot@a.test"),
    ]
    assert read(page_with("mailto:x@a.test")).refused == [Refused("not http or https", 1, "mailto:x@a.test")]


@pytest.mark.parametrize(
    "href",
    [
        pytest.param("/", id="the root"),
        pytest.param("/a.html", id="a page"),
        pytest.param("/a.jpg/", id="a folder that is called so"),
        pytest.param("/a.jpg/b", id="below a folder that is called so"),
        pytest.param("/download?file=a.pdf", id="an ending in the query"),
        pytest.param("/about/open.ai", id="an ending that is a name"),
        pytest.param("/jpg", id="a name without a dot"),
        pytest.param("/1/2/3/4/5/6/7/8/9/10/", id="ten components"),
        pytest.param("/2024/05/05/05", id="a segment three times"),
        pytest.param("/a/b/a/b/", id="a run twice"),
        pytest.param("http://site.test:8080/", id="another port"),
    ],
)
def test_a_link_that_is_only_unusual_is_followed(href: str) -> None:
    assert len(read(page_with(href)).links) == 1


@pytest.mark.parametrize(
    ("rules", "href", "reason"),
    [
        pytest.param(replace(RULES, max_url_params=2), "/?a=1&&b=2", None, id="two parameters of two"),
        pytest.param(replace(RULES, max_url_params=2), "/?a=1&b=2&c", "query parameters", id="three of two"),
        pytest.param(replace(RULES, max_path_components=2), "/a/b/", None, id="two components of two"),
        pytest.param(replace(RULES, max_path_components=2), "/a/b/c", "path components", id="three of two"),
        pytest.param(replace(RULES, max_url_length=30), "/" + "x" * 20, "too long", id="a limit on length"),
        pytest.param(replace(RULES, include=(re.compile("blog"),)), "/x", "not included", id="not included"),
        pytest.param(replace(RULES, include=(re.compile("x"), re.compile("blog"))), "/blog", None, id="included"),
        pytest.param(
            replace(RULES, include=(re.compile("blog"),), exclude=(re.compile("print=1$"),)),
            "/blog?print=1",
            "excluded",
            id="excluded, which beats included",
        ),
    ],
)
def test_the_operator_draws_the_line(rules: LinkRules, href: str, reason: str | None) -> None:
    followable = read(page_with(href), reader(rules))

    assert reasons(followable) == ({} if reason is None else {reason: 1})


@pytest.mark.parametrize(
    ("scope", "hosts", "followed"),
    [
        pytest.param(Scope.WEB, (), {"site.test", "www.site.test", "other.test", "10.0.0.1", "20.0.0.1"}, id="anywhere"),
        pytest.param(Scope.DOMAIN, ("www.site.test.",), {"site.test", "www.site.test"}, id="the seeds' domains"),
        pytest.param(Scope.DOMAIN, ("10.0.0.1",), {"10.0.0.1"}, id="an address is a domain of its own"),
        pytest.param(Scope.HOST, ("site.test", "other.test"), {"site.test", "other.test"}, id="the seeds' hosts"),
        pytest.param(Scope.HOST, (), set(), id="no host yet"),
    ],
)
def test_a_crawl_stays_in_its_scope(scope: Scope, hosts: tuple[str, ...], followed: set[str]) -> None:
    parsed = page_with("/x", "//www.site.test/", "//other.test:8080/", "http://10.0.0.1/", "http://20.0.0.1/")

    followable = read(parsed, reader(replace(RULES, scope=scope), scope=hosts))

    assert {link.domain for link in followable.links} == followed
    assert len(followable.found) == 5


def test_a_wider_scope_counts_for_links_that_are_known() -> None:
    at = reader(replace(RULES, scope=Scope.HOST), scope=("site.test",))
    parsed = page_with("http://other.test/")
    assert reasons(read(parsed, at)) == {"scope": 1}

    at.widen(["site.test", "other.test"])

    assert urls(read(parsed, at)) == ["http://other.test/"]


@pytest.mark.parametrize(
    ("max_depth", "depth", "reason"),
    [
        pytest.param(None, 1_000, None, id="no limit"),
        pytest.param(2, 1, None, id="within"),
        pytest.param(2, 2, "depth", id="at the limit"),
        pytest.param(0, 0, "depth", id="seeds alone"),
    ],
)
def test_what_depends_on_the_page_is_not_remembered_of_its_site(max_depth: int | None, depth: int, reason: str | None) -> None:
    at = reader(replace(RULES, max_depth=max_depth))
    parsed = page_with("/x")
    read(parsed, at, depth=0)

    followable = read(parsed, at, depth=depth)

    assert reasons(followable) == ({} if reason is None else {reason: 1})
    assert followable.found == ("http://site.test/x",)


def test_a_page_that_says_nofollow_has_its_links_left_alone() -> None:
    followable = read(page_with("/x", "mailto:a@b"), nofollow=True)

    assert followable.links == []
    assert reasons(followable) == {"nofollow": 1, "not http or https": 1}


def test_a_single_nofollow_is_obeyed_if_the_operator_says_so() -> None:
    parsed = page_with("/x", "/y", nofollow=("/y",))

    assert urls(read(parsed)) == ["http://site.test/x", "http://site.test/y"]
    assert reasons(read(parsed, reader(replace(RULES, nofollow=Nofollow.SKIP)))) == {"nofollow": 1}


@pytest.mark.parametrize(
    ("charset", "href", "url"),
    [
        pytest.param("utf-8", "?q=café", "?q=caf%C3%A9", id="UTF-8"),
        pytest.param("windows-1252", "?q=café", "?q=caf%E9", id="Latin letters"),
        pytest.param("windows-1252", "é?q=é#é", "%C3%A9?q=%E9", id="the query alone"),
        pytest.param("windows-1252", "x#é?é", "x", id="not what is in the fragment"),
        pytest.param("windows-1252", "?q=щ", "?q=%26%231097%3B", id="what the charset lacks"),
        pytest.param("windows-1251", "?q=щ", "?q=%F9", id="Cyrillic letters"),
        pytest.param("shift_jis", "?q=表", "?q=%95\\", id="a second byte that is a sign"),
        pytest.param("iso-2022-jp", "?q=表x", "?q=%1B$BI=%1B(Bx", id="a charset with escapes"),
        pytest.param("utf-16le", "?q=é", "?q=%C3%A9", id="UTF-16 counts as UTF-8"),
    ],
)
def test_a_query_is_sent_in_the_charset_of_its_page(charset: str, href: str, url: str) -> None:
    parsed = page_with(href, nofollow=(href,))

    assert urls(read(parsed, url="http://site.test/", charset=charset)) == ["http://site.test/" + url]
    skipping = reader(replace(RULES, nofollow=Nofollow.SKIP))
    assert urls(read(parsed, skipping, url="http://site.test/", charset=charset)) == []


@pytest.mark.parametrize(
    ("location", "target"),
    [
        pytest.param("/x", "http://site.test/x", id="relative"),
        pytest.param("https://www.site.test/", "https://www.site.test/", id="absolute"),
        pytest.param("/x.pdf", "file type", id="a file"),
        pytest.param("file:///etc/passwd", "not http or https", id="another scheme"),
        pytest.param("http://inside.test/", "address or port", id="inside"),
        pytest.param("http://other.test/", "scope", id="out of scope"),
    ],
)
def test_the_target_of_a_redirect_passes_the_same_checks(location: str, target: str) -> None:
    at = reader(replace(RULES, scope=Scope.DOMAIN), scope=("site.test",))

    found = at.redirect_target(PAGE, location)

    assert (found.url if isinstance(found, Link) else found) == target


def test_a_seed_may_be_moved_out_of_scope_but_not_past_the_other_checks() -> None:
    at = reader(replace(RULES, scope=Scope.HOST), scope=("site.test",))

    moved = at.redirect_target(PAGE, "http://other.test/", in_scope=False)

    assert isinstance(moved, Link)
    assert at.redirect_target(PAGE, "http://other.test/x.pdf", in_scope=False) == "file type"
    assert at.redirect_target(PAGE, "http://inside.test/", in_scope=False) == "address or port"


def test_the_unit_of_politeness_may_be_the_registered_domain() -> None:
    (link,) = read(page_with("http://a.b.example.co.uk/"), reader(by_domain=True)).links

    assert link.domain == "example.co.uk"


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        pytest.param("www.example.com", "example.com", id="a host"),
        pytest.param("a.b.example.co.uk", "example.co.uk", id="a suffix of two labels"),
        pytest.param("me.github.io", "me.github.io", id="a suffix of a company"),
        pytest.param("co.uk", "co.uk", id="a suffix itself"),
        pytest.param("localhost", "localhost", id="a single label"),
        pytest.param("127.0.0.1", "127.0.0.1", id="an address"),
        pytest.param("[::1]", "[::1]", id="an address of version 6"),
    ],
)
def test_the_registered_domain_of_a_host(host: str, domain: str) -> None:
    assert registrable(host) == domain


@settings(deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=12))
def test_paths_without_repeats_are_never_refused_for_them(segments: list[str]) -> None:
    if repeats(segments):
        assert max(map(segments.count, segments)) >= 3
    else:
        assert max(map(segments.count, segments), default=0) <= 3


PIECES = [
    "a",
    "../b/",
    "/",
    "//other.test",
    "?x=é",
    "#f",
    "http://site.test/c",
    "\\d",
    ":",
    " ",
    "\t",
    "é",
    "%zz",
    ".",
    "x:y",
    "javascript:",
    *["./", "../", "/dir/", "dir", "http://site.test", "http:", "https://site.test/dir/a", "%2e%2e/", "b%2ec", ".h", "//"],
    *["/\\e", "/\t/e", "http://site.test/dir/", "http://site.test/\\e", "http://site.test//e", "//e", "#", "\\\\e"],
    *["ı:x", "http\u017f://site.test/x", "\u212a://a/b", "/a//b?\u00e9", "/a//b?%E9"],
]
HREFS = st.lists(st.sampled_from(PIECES), max_size=4).map("".join) | st.text(max_size=12)
SITES = st.sampled_from(
    [PAGE, "http://site.test/", "http://site.test/dir/other", "http://site.test/a/b/c", "https://site.test/dir/x"]
)


@settings(deadline=None)
@given(st.lists(st.tuples(SITES, st.lists(HREFS, max_size=6)), max_size=5), st.sampled_from(["utf-8", "windows-1252", "big5"]))
def test_a_reader_that_knows_the_site_reads_as_one_that_does_not(pages: list[tuple[str, list[str]]], charset: str) -> None:
    knowing = reader()

    for url, hrefs in pages * 2:
        parsed = page_with(*dict.fromkeys(hrefs))
        assert read(parsed, knowing, url=url, charset=charset) == read(parsed, url=url, charset=charset)


@settings(deadline=None)
@given(st.lists(HREFS, max_size=8))
def test_the_links_of_links_are_themselves(hrefs: list[str]) -> None:
    first = read(page_with(*dict.fromkeys(hrefs)))

    again = read(page_with(*first.found), url="http://elsewhere.test/")

    assert [link.id for link in again.links if link.url != PAGE] == [
        link.id for link in first.links if link.url != "http://elsewhere.test/"
    ]
    assert all(requested(url) == url for url in first.found)


@settings(deadline=None)
@given(
    hrefs=st.lists(st.one_of(st.text(), HREFS), max_size=5),
    base=st.one_of(st.none(), st.text(), HREFS),
    refresh=st.one_of(st.none(), st.text(), HREFS),
    charset=st.sampled_from(["utf-8", "utf-16le", "windows-1252", "big5", "iso-2022-jp", "no such charset"]),
)
def test_no_markup_makes_the_reading_of_links_fail(hrefs: list[str], base: str | None, refresh: str | None, charset: str) -> None:
    found = read(page_with(*dict.fromkeys(hrefs), base=base, refresh=refresh), charset=charset)

    given = len(dict.fromkeys(hrefs)) + (refresh is not None)
    assert len(found.links) + sum(each.count for each in found.refused) <= given
    assert all(requested(url) == url for url in found.found)


@given(st.text(max_size=20), st.sampled_from(["cp1252", "shift_jis", "gb18030", "iso2022_jp", "euc_kr"]))
def test_no_href_makes_the_charset_fail(href: str, codec: str) -> None:
    encoded = in_charset(href, codec)

    assert in_charset(encoded, codec) == encoded
    assert encoded.partition("#")[0].partition("?")[2].isascii()


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.worker.links.PLAIN_KEPT", 100)
    monkeypatch.setattr("services.worker.links.SPELLED_KEPT", 50)
    at = reader()
    for number in range(1_000):
        read(page_with("/x", f"/{number}", f"/{number}//y"), at, url=f"http://site{number % 70}.test/")
        assert len(at._plain) == at._plain._kept <= 102  # a site and its first link may be one too many
        assert len(at._spelled) == at._spelled._kept <= 52
    long, encoded = f"/{'x' * 2_000}", "%E4%B8%AD" * 200  # the second is short where it stands
    found = read(page_with(long, "/" + "\u4e2d" * 200), at).links
    assert [link.url for link in found] == [f"http://site.test{long}", f"http://site.test/{encoded}"]

    assert all(len(site) + len(key) <= LENGTH_KEPT for site, known in at._plain._sites.items() for key in known)
    kept = [verdict for memory in (at._plain, at._spelled) for known in memory._sites.values() for verdict in known.values()]
    assert max(len(verdict.url) for verdict in kept if isinstance(verdict, Link)) <= 2 * LENGTH_KEPT
    assert (PLAIN_KEPT + SPELLED_KEPT) * (2 * LENGTH_KEPT + 320) < 85_000_000  # the objects around a link's texts are of 320 bytes


def test_a_link_that_was_forgotten_is_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.worker.links.PLAIN_KEPT", 4)
    monkeypatch.setattr("services.worker.links.SPELLED_KEPT", 4)
    at, rng = reader(), random.Random(5)
    for _ in range(2_000):
        # In windows-1252 the last two are one.
        hrefs = rng.choices(["/a//b", "/a//c?x", "mailto:a", "http://other.test/", "d", "../e", "/a//b?\u00e9", "/a//b?%E9"], k=6)
        parsed = msgspec.structs.replace(page_with(*dict.fromkeys(hrefs)), refresh=rng.choice([None, "/a//b"]))
        url = f"http://site{rng.randrange(5)}.test/{rng.randrange(3)}/"

        assert read(parsed, at, url=url, charset="windows-1252") == read(parsed, url=url, charset="windows-1252")
        assert len(at._plain) == at._plain._kept
        assert len(at._spelled) == at._spelled._kept


def test_every_link_of_the_synthetic_web_is_read_as_it_is_meant() -> None:
    options = synthweb.argument_parser().parse_args(["--sites", "6", "--pages", "240"])
    world = synthweb.World(options, 8080)
    sites = {site.origin: site for site in world.sites}
    at, met = reader(), set()

    for site in world.sites:
        for number, path in enumerate(site.paths):
            parts, label = world.page_parts(site, number)
            decoded = decode((("content-type", label),), b"".join(raw for raw, _ in parts), 1_000_000)
            assert isinstance(decoded, Decoded)
            for link in read(parse(decoded.html), at, url=site.origin + path, charset=decoded.charset).links:
                there = sites[link.url[: link.url.index("/", 8)]]
                target = synthweb.normal_escapes(link.url[len(there.origin) :])
                code = there.routes[synthweb.sorted_query(synthweb.without_tracking(target))]
                assert code >= 0 or there.extras[-code - 1].kind not in ("hidden", "trap", "resource"), link.url
                met.add((there.number, code))

    assert met >= {
        (site.number, number) for site in world.sites for number in range(1, site.size) if site.linked[number] == site.paths[number]
    }


# --- Sitemaps ---


def test_an_index_lists_sitemaps_whatever_they_end_with() -> None:
    parsed = page_with("/a.xml", "/b.xml.gz", "http://inside.test/c.xml", "/d/d/d/d/d.xml", "/no.xml")
    at = reader(replace(RULES, include=(re.compile("/article/"),), exclude=(re.compile("/no"),)))

    index, pages = (read(parsed, at, of_sitemaps=of_sitemaps) for of_sitemaps in (True, False))

    assert urls(index) == ["http://site.test/a.xml", "http://site.test/b.xml.gz"]
    assert reasons(index) == {"address or port": 1, "repeated path segments": 1, "excluded": 1}
    assert urls(pages) == []


def test_sitemaps_are_left_alone_whose_own_links_would_be_too_deep() -> None:
    at = reader(replace(RULES, max_depth=3))

    def named(depth: int) -> list[str]:
        return [link.url for link in at.named_sitemaps(["/a.xml"], url="http://site.test/robots.txt", depth=depth)]

    assert named(1) == ["http://site.test/a.xml"]
    assert named(2) == []
    assert urls(read(page_with("/a.xml"), at, depth=1, of_sitemaps=True)) == ["http://site.test/a.xml"]
    assert reasons(read(page_with("/a.xml"), at, depth=2, of_sitemaps=True)) == {"depth": 1}
    assert urls(read(page_with("/a"), at, depth=2)) == ["http://site.test/a"]


def test_a_named_sitemap_passes_the_checks_of_a_link() -> None:
    at = reader(replace(RULES, scope=Scope.HOST), scope=("site.test",))
    named = ["http://site.test/a.xml", "/a.xml#x", "", "#", "/list", "http://other.test/a.xml", "ftp://site.test/a.xml", "http://["]

    found = at.named_sitemaps(named, url="http://site.test/robots.txt", depth=0)

    assert [link.url for link in found] == ["http://site.test/a.xml", "http://site.test/list"]


def test_a_sitemap_that_has_moved_is_followed_where_sitemaps_are_read() -> None:
    rules = replace(RULES, include=(re.compile("/article/"),))
    reading, not_reading = reader(replace(rules, sitemaps=True)), reader(rules)

    moved = reading.redirect_target("http://site.test/sitemap.xml", "/sitemap_index.xml?x=1.html")

    assert isinstance(moved, Link)
    assert reading.redirect_target("http://site.test/sitemap.xml", "/x.pdf") == "file type"
    assert not_reading.redirect_target("http://site.test/sitemap.xml", "/sitemap_index.xml") == "file type"


async def test_an_answer_about_the_scope_that_was_overtaken_changes_nothing() -> None:
    class Ledger:
        """Answers the first question last."""

        def __init__(self) -> None:
            self.hosts = [("a.test",), ("a.test", "b.test")]
            self.first_may_go = asyncio.Event()

        async def crawl(self) -> object:
            hosts, self.hosts = self.hosts[0], self.hosts[1:]
            if self.hosts:
                await self.first_may_go.wait()
            return SimpleNamespace(scope=hosts)

    ledger = Ledger()
    links = Links(cast(Any, ledger), Limits(scope=Scope.HOST), (), str, by_domain=False)
    first = asyncio.create_task(links.widen(1))
    await asyncio.sleep(0)
    await links.widen(2)
    ledger.first_may_go.set()
    await first

    assert links._reader.is_in_scope("b.test")
