"""URLs and addresses: what a page may not lead to, in every spelling and by every door, and what counts as one page.

The dialler is a recorder (stage.py): each case knows who was dialled, and whose name was looked up. A text that must not be asked
for is offered by every door there is: as a seed, in a link, as the target of a redirect and of a refresh, as a base, in headers,
and as the place that a robots.txt was moved to. Its outcome is that of the seed; the other doors must lead nowhere. One word is of
this file: *apart* (several URLs that look alike were each asked for).
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from ipaddress import IPv4Address, IPv6Address
from typing import Final
from unittest.mock import patch

from gossamer.errors import UrlError
from gossamer.settings import Links, Settings, Storage
from gossamer.urls import requested
from services.worker.addresses import BAD_PORTS, SERVICE_PORTS, url_refusal
from services.worker.resolve import LookupFailed
from tests.hostile.case import MB, Case, Seen
from tests.hostile.stage import GONE, PUBLIC, Asked, Crawled, Hurried, Reply, Stage, hasty, moved, page, site, text

A: Final = "a.example.com"
HOME: Final = f"http://{A}/"
INSIDE: Final = "inside.example.com"
#: A crawl as a whole, ledger and all.
MEMORY_BYTES: Final = 16 * MB
SECONDS: Final = 15.0
#: To say no, and nothing else.
REFUSAL_S: Final = 0.005

Run = Callable[[], Awaitable[Seen]]
Names = Mapping[str, Sequence[Sequence[str] | LookupFailed]]
#: Everything is asked for: the shape of a URL is not what these cases are about.
_ANY_SHAPE: Final = Links(max_path_components=100)


def _case(id: str, name: str, expected: str, run: Run) -> Case:
    return Case(id=id, name=name, expected=frozenset({expected}), run=run, memory_bytes=MEMORY_BYTES, seconds=SECONDS)


# --- Every door ---


def _refused(*texts: str) -> Run:
    """None of these is ever asked for, nor anybody dialled for it."""

    async def run() -> Seen:
        doors = {f"door{number}.example.com": _doors(given) for number, given in enumerate(texts)}
        stage = Stage({A: site({"/": page("home", "".join(map(_link, texts)))}), **doors})
        seeds = [url for given in texts if (url := _requested(given)) is not None]
        outcomes = {"url_refused"} if len(seeds) < len(texts) else set()
        crawled = await stage.crawl(HOME, *(f"http://{door}/" for door in doors), *seeds)
        outcomes |= {str(crawled.outcome(url)) for url in seeds}
        assert set(stage.dialled) == {(PUBLIC, 80)}
        assert {each.host for each in stage.asked} <= stage.sites.keys()
        assert not any("authorization" in each.head.lower() for each in stage.asked)
        assert crawled.outcome(HOME) == "done"
        for door in doors:
            assert crawled.outcome(f"http://{door}/") == "robots_denied", "its robots.txt was moved there"
        await _by_other_doors(texts)
        return Seen(" and ".join(sorted(outcomes)), crawled.reason(seeds[-1]) if seeds else "not a URL")

    return run


async def _by_other_doors(texts: Sequence[str]) -> None:
    """Redirect, refresh and base, on a host whose robots.txt is in order."""
    pages: dict[str, Reply] = {}
    for number, given in enumerate(texts):
        pages[f"/redirect/{number}"] = moved(_in_a_header(given))
        pages[f"/refresh/{number}"] = page(f"refresh {number}", f'<meta http-equiv=refresh content="0; url={escape(given)}">')
        pages[f"/base/{number}"] = page(f"base {number}", f'<base href="{escape(given)}"><a href="#x">x</a>')
        pages[f"/header/{number}"] = page(
            f"header {number}",
            "",
            f"Refresh: 0; url={_in_a_header(given)}",
            f"Link: <{_in_a_header(given)}>; rel=preload",
            'Alt-Svc: h2="10.0.0.1:80"',
        )
    stage = Stage({A: site(pages)})
    crawled = await stage.crawl(*(f"http://{A}{path}" for path in pages))
    assert set(stage.dialled) == {(PUBLIC, 80)}
    assert {each.host for each in stage.asked} == {A}
    assert set(stage.seen(A)) - {"/robots.txt"} == set(pages)
    for path in pages:
        assert crawled.outcome(f"http://{A}{path}") == ("redirect" if path.startswith("/redirect") else "done")


async def _redirects_to(texts: Sequence[str]) -> Seen:
    """The hop keeps its own outcome, and says why it was the last."""
    await _by_other_doors(texts)
    stage = Stage({A: site({"/": moved(texts[0])})})
    crawled = await stage.crawl(HOME)
    return Seen(str(crawled.outcome(HOME)), crawled.reason(HOME))


def _doors(given: str) -> Callable[[Asked], Reply]:
    return site({}, robots=moved(_in_a_header(given)))


def _link(given: str) -> str:
    return f'<a href="{escape(given)}">x</a>'


def _in_a_header(given: str) -> str:
    """As far as a header can say it: a line ends where it ends, and is not much longer than a URL may be."""
    return given.replace("\r", "").replace("\n", "").encode().decode("latin-1")[:8000]


def _requested(given: str) -> str | None:
    """None: it is refused before anything else; and quickly, but for what happens to happen meanwhile."""
    took_s = []
    for _ in range(3):
        began = time.process_time()
        url: str | None = None
        with suppress(UrlError):
            url = requested(given)
            url_refusal(url, ())
        took_s.append(time.process_time() - began)
    assert min(took_s) < REFUSAL_S, f"{given[:50]} took {min(took_s):.3f} s"
    return url


# --- What is asked for instead ---


def _asked_as(expected: Mapping[str, str], *, sites: Sequence[str] = (A,), settings: Settings | None = None) -> Run:
    """Links on A's home page, each asked for as a browser would: host and target by text. Nobody else is looked up."""

    async def run() -> Seen:
        stage = Stage({host: site({}) for host in sites} | {A: site({"/": page("home", "".join(map(_link, expected)))})})
        crawled = await stage.crawl(HOME, settings=settings or replace(hasty(), links=_ANY_SHAPE))
        seen = {f"{each.host}{each.target}" for each in stage.asked if each.target != "/robots.txt"}
        assert seen == {f"{A}/", *expected.values()}
        assert set(stage.looked_up) <= set(sites)
        for each in stage.asked:
            line = each.head.partition("\r\n")[0]
            assert line == f"GET {each.target} HTTP/1.1"
        return _outcomes(crawled)

    return run


def _outcomes(crawled: Crawled) -> Seen:
    return Seen(" and ".join(sorted(map(str, crawled.counts.outcomes))), f"{sum(crawled.counts.outcomes.values())} URLs")


def _ended(names: Names, expected_dials: set[str], *, clock: float = 0.0, robots: str = "", host: str = A, lookups: int = 0) -> Run:
    """How a page of A ends, whose name servers say these things; nobody but these addresses is dialled."""

    async def run() -> Seen:
        stage = Stage({host: site({}, robots=text(robots) if robots else GONE)}, names)
        if clock:
            stage.clock = Hurried(clock)
        crawled = await stage.crawl(f"http://{host}/page")
        assert {address for address, _ in stage.dialled} == expected_dials
        assert not lookups or len(stage.looked_up) == lookups
        return Seen(str(crawled.outcome(f"http://{host}/page")), crawled.reason(f"http://{host}/page"))

    return run


_SCHEMES: Final = [
    *[
        "file:///etc/passwd",
        "ftp://a.example.com/x",
        "data:text/html,<p>x",
        "javascript:alert(1)",
        "gopher://a.example.com/",
        "s3://b/k",
    ],
    *[
        "ws://a.example.com/",
        "wss://a.example.com/",
        "blob:http://a.example.com/x",
        "view-source:http://a.example.com/",
        "about:blank",
    ],
]

_TEXTS: Final = [
    _case("41a", "other schemes", "url_refused", _refused(*_SCHEMES)),
    _case("41b", "a redirect to one of them", "redirect", lambda: _redirects_to(_SCHEMES)),
    _case("41c", "a file on a public host", "url_refused", _refused("file://public.example.com/etc/passwd")),
    _case(
        "41d",
        "user names and passwords",
        "url_refused",
        _refused("http://user:pw@a.example.com/", "http://a@b@c.example.com/", "http://good.example.com@10.0.0.1/"),
    ),
    _case(
        "42a",
        "backslashes",
        "done",
        _asked_as({f"http:\\\\{A}\\x": f"{A}/x", f"http://{A}\\@evil.example.com/": f"{A}/@evil.example.com/"}),
    ),
    _case(
        "42b",
        "tabs, line breaks, blanks and control characters",
        "done",
        _asked_as({"ht\ttp://a.exa\nmple.com/t\rab": f"{A}/tab", f" \x01\x1f http://{A}/blank \n": f"{A}/blank"}),
    ),
    _case(
        "42c",
        "too many slashes, too few",
        "done",
        _asked_as({f"http:///{A}/three": f"{A}/three", "http:none": f"{A}/none", f"//{A}/two": f"{A}/two"}),
    ),
    _case("42d", "a blank or a < in the host", "url_refused", _refused("http://a b.example.com/", "http://a<b.example.com/")),
    _case("42e", "brackets", "url_refused", _refused("http://[v1.x]/", "http://[::1", "http://[::1]x/")),
    _case(
        "42f",
        "an @ in the fragment or the query",
        "done",
        _asked_as({f"http://{A}/f#@evil.example.com": f"{A}/f", f"http://{A}?@evil.example.com": f"{A}/?@evil.example.com"}),
    ),
]


# --- 43 to 46: names and addresses ---


async def _look_alikes() -> Seen:
    """One of them has a Cyrillic letter."""
    hosts = ["apple.example.com", "xn--pple-43d.example.com"]
    stage = Stage({host: site({}) for host in hosts})
    await stage.crawl("http://apple.example.com/", "http://аpple.example.com/")
    assert sorted({each.host for each in stage.asked}) == hosts
    return Seen("apart", ", ".join(hosts))


_LONG_NAMES: Final = [
    *["http://" + "a" * 64 + ".example.com/", "http://" + "ab." * 84 + "com/", "http://" + "a." * 10_000 + "com/"],
    *["http://" + "ß" * 20_000 + "/", "http://a..example.com/", "http://.example.com/"],
]
_LOOPBACK: Final = [
    *["0177.0.0.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "127.1", "127.0.1", "127.0.0.1.", "①②⑦.0.0.1"],
]
_NO_ADDRESSES: Final = ["1.2.3.08", "256.1.1.1", "1.1.1.1.1", "foo.0x4"]


def _embedded() -> list[str]:
    """127.0.0.1, 10.0.0.1 and a cloud's metadata, by every scheme that carries an IPv4 address."""
    found = ["[::]", "[::1]"]
    for inner in map(IPv4Address, ("127.0.0.1", "10.0.0.1", "169.254.169.254")):
        bits = int(inner)
        found += [
            f"[{IPv6Address(address)}]"
            for address in (
                0xFFFF << 32 | bits,  # mapped
                bits,  # compatible
                0xFFFF << 48 | bits,  # translated
                0x0064FF9B << 96 | bits,  # NAT64
                0x0064FF9B0001 << 80 | bits,  # local NAT64
                0x2002 << 112 | bits << 80,  # 6to4
                0x2A00 << 112 | 0x5EFE << 32 | bits,  # ISATAP
                0x20010000 << 96 | 0x08080808 << 64 | ~bits & 0xFFFF_FFFF,  # Teredo, inverted
            )
        ]
    return found


_INSIDE_NAMES: Final = [
    *["localhost", "localhost.", "a.localhost", "printer.local", "x.internal", "x.home.arpa", "abc.onion", "intranet"],
    *["metadata.google.internal", "host.docker.internal", "kubernetes.default.svc", "redis", "rabbitmq", "s3", "controller"],
]


def _http(hosts: Sequence[str]) -> list[str]:
    return [f"http://{host}/" for host in hosts]


_PLACES: Final = [
    _case("43a", "names that look alike", "apart", _look_alikes),
    _case(
        "43b",
        "Punycode that stands for nothing",
        "url_refused",
        _refused(*_http(["xn--a.example.com", "xn--.com", "xn--abc-.com"])),
    ),
    _case(
        "43c",
        "escapes in the host",
        "address_refused and url_refused",
        _refused("http://%31%32%37.0.0.1/", "http://a%00.example.com/", "http://a%2fb.example.com/"),
    ),
    _case("43d", "letters in circles", "url_refused", _refused("http://ⓛocalhost/")),
    _case("43d.2", "full-width digits and dots", "address_refused", _refused("http://１２７.0.0.1/", "http://127。0。0。1/")),
    _case("43e", "labels of 64, names of 254 and 20,000, empty labels", "url_refused", _refused(*_LONG_NAMES)),
    _case(
        "43f",
        "an underscore, a hyphen in front",
        "done",
        _asked_as(
            {"http://a_b.example.com/": "a_b.example.com/", "http://-a.example.com/": "-a.example.com/"},
            sites=(A, "a_b.example.com", "-a.example.com"),
        ),
    ),
    _case(
        "43g",
        "a long s, an ideographic dot",
        "done",
        _asked_as({"http://ſ.example。com/": "s.example.com/"}, sites=(A, "s.example.com")),
    ),
    _case("44a", "loopback, in nine spellings", "address_refused", _refused(*_http(_LOOPBACK))),
    _case("44b", "numbers that are no address", "url_refused", _refused(*_http(_NO_ADDRESSES))),
    _case("45a", "IPv4 inside IPv6", "address_refused", _refused(*_http(_embedded()))),
    _case("45b", "network cards", "url_refused", _refused("http://[fe80::1%25lo]/", "http://[fe80::1%lo]/")),
    _case("46a", "names for inside", "url_refused", _refused(*_http(_INSIDE_NAMES))),
    _case(
        "46b",
        "a public name of loopback",
        "address_refused",
        _ended({"127.0.0.1.nip.io": [["127.0.0.1"]]}, set(), host="127.0.0.1.nip.io"),
    ),
]


# --- 47: what name servers say ---


async def _slow_names() -> Seen:
    stage = Stage({A: site({})})

    async def never(name: str) -> Sequence[object]:
        await asyncio.Event().wait()
        return ()

    with patch.object(Stage, "_look_up", lambda self, name: never(name)):
        crawled = await stage.crawl(f"http://{A}/page", settings=hasty(attempt_timeout_s=0.1))
    assert not stage.dialled
    assert "no answer" in crawled.reason(f"http://{A}/page")
    return Seen(str(crawled.outcome(f"http://{A}/page")), crawled.reason(f"http://{A}/page"))


_THOUSAND: Final = [f"93.184.{n // 256}.{n % 256}" for n in range(1000)]

_ANSWERS: Final = [
    _case("47a", "public, then private: the first is kept", "done", _ended({A: [[PUBLIC], ["10.0.0.1"]]}, {PUBLIC}, lookups=1)),
    _case("47b", "public and private at once", "address_refused", _ended({A: [[PUBLIC, "10.0.0.1"]]}, set())),
    _case("47c", "an alias of a name inside", "address_refused", _ended({A: [["192.168.0.1"]]}, set())),
    _case("47d", "public in IPv4, loopback in IPv6", "address_refused", _ended({A: [[PUBLIC, "::1"]]}, set())),
    _case("47e", "1,000 addresses", "done", _ended({A: [_THOUSAND]}, {_THOUSAND[0]})),
    _case("47f", "no such name", "dns_failed", _ended({A: [LookupFailed("NXDOMAIN", again=False)]}, set(), lookups=1)),
    _case("47f.2", "an empty answer", "dns_failed", _ended({A: [[]]}, set(), lookups=1)),
    _case(
        "47f.3",
        "a server that fails: robots.txt is out of reach",
        "robots_denied",
        _ended({A: [LookupFailed("SERVFAIL", again=True)]}, set()),
    ),
    _case("47g", "no answer: robots.txt is out of reach", "robots_denied", _slow_names),
    _case(
        "47h",
        "it moves inside between robots.txt and the page",
        "address_refused",
        _ended({A: [[PUBLIC], ["10.0.0.1"]]}, {PUBLIC}, clock=100, robots="User-agent: *\nCrawl-delay: 90\n", lookups=2),
    ),
]


# --- 48: the second door ---


def _inward(pages: Mapping[str, Reply], robots: Reply = GONE) -> Run:
    """A public page leads to a name that has an address inside: what it leads to is refused, and nobody there is dialled."""

    async def run() -> Seen:
        stage = Stage({A: site(pages, robots=robots)}, {INSIDE: [["10.0.0.1"]], A: [[PUBLIC]]})
        crawled = await stage.crawl(HOME, also=[f"http://{INSIDE}/x"])
        assert set(stage.dialled) == {(PUBLIC, 80)}
        assert {each.host for each in stage.asked} == {A}
        return Seen(str(crawled.outcome(f"http://{INSIDE}/x")), crawled.reason(f"http://{INSIDE}/x"))

    return run


async def _proxies() -> Seen:
    """Variables that would have somebody else dial."""
    proxy = "http://127.0.0.1:9/"
    names = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    with patch.dict(os.environ, dict.fromkeys(names, proxy)):
        stage = Stage({A: site({})})
        crawled = await stage.crawl(HOME)
    assert stage.dialled == [(PUBLIC, 80)]
    return Seen(str(crawled.outcome(HOME)))


_TO_INSIDE: Final = f"http://{INSIDE}/x"

_SECOND_DOORS: Final = [
    _case(
        "48a",
        "302, at once and as the third hop",
        "address_refused",
        _inward({"/": moved("/2"), "/2": moved("/3"), "/3": moved(_TO_INSIDE)}),
    ),
    _case(
        "48b",
        "meta refresh",
        "address_refused",
        _inward({"/": page("home", f'<meta http-equiv=refresh content="0; url={_TO_INSIDE}">')}),
    ),
    _case("48c", "base", "address_refused", _inward({"/": page("home", f'<base href="http://{INSIDE}/"><a href="x">x</a>')})),
    _case("48d", "robots.txt that is moved", "robots_denied", lambda: _moved_inward()),
    _case(
        "48e",
        "a sitemap that robots.txt names",
        "done",
        lambda: _sitemap_inside(),
    ),
    _case("48f", "302 to a mapped address", "address_refused", _refused("http://[::ffff:7f00:1]/")),
    _case("48g", "Alt-Svc, preload and Refresh headers", "done", lambda: _headers()),
    _case("48h", "proxies in the environment", "done", _proxies),
]


async def _moved_inward() -> Seen:
    stage = Stage({A: site({}, robots=moved(_TO_INSIDE))}, {INSIDE: [["10.0.0.1"]]})
    crawled = await stage.crawl(HOME)
    assert set(stage.dialled) == {(PUBLIC, 80)}
    assert stage.seen(A) == ["/robots.txt"]
    return Seen(str(crawled.outcome(HOME)), crawled.reason(HOME))


async def _sitemap_inside() -> Seen:
    robots = text(f"Sitemap: {_TO_INSIDE}\nSitemap: http://10.0.0.1/s.xml\nSitemap: file:///etc/passwd\n")
    stage = Stage({A: site({}, robots=robots)}, {INSIDE: [["10.0.0.1"]], A: [[PUBLIC]]})
    crawled = await stage.crawl(HOME)
    assert set(stage.dialled) == {(PUBLIC, 80)}
    return Seen(str(crawled.outcome(HOME)))


async def _headers() -> Seen:
    headers = (f"Refresh: 0; url={_TO_INSIDE}", f"Link: <{_TO_INSIDE}>; rel=preload", f'Alt-Svc: h2="{INSIDE}:443"')
    stage = Stage({A: site({"/": page("home", "", *headers)})}, {INSIDE: [["10.0.0.1"]], A: [[PUBLIC]]})
    crawled = await stage.crawl(HOME)
    assert stage.looked_up == [A]
    return Seen(str(crawled.outcome(HOME)))


# --- 49: ports ---

_PORTS: Final = sorted({*BAD_PORTS, *SERVICE_PORTS})


async def _own_servers() -> Seen:
    """In a network that is allowed, the ports of the crawl's own servers are not: under none of the machine's names."""
    storage = Storage(
        rabbitmq_url="amqp://u:p@10.9.0.1:40001", redis_url="redis://:p@10.9.0.1:40002/0", s3_url="http://10.9.0.1:40003/bucket"
    )
    hosts = ["10.9.0.1", "10.9.0.2", "own.example.com"]
    names = {"own.example.com": [["10.9.0.1"]], A: [["10.9.0.1"]]}
    stage = Stage({f"{A}:8080": site({}), "10.9.0.2:8080": site({})}, names)
    refused = [f"http://{host}:{port}/" for host in hosts for port in (40001, 40002, 40003)]
    welcome = [f"http://{A}:8080/", "http://10.9.0.2:8080/"]
    crawled = await stage.crawl(*refused, *welcome, settings=hasty(allow_net=("10.9.0.0/16",), storage=storage))
    assert {port for _, port in stage.dialled} == {8080}
    assert {str(crawled.outcome(url)) for url in welcome} == {"done"}
    return Seen(" and ".join(sorted({str(crawled.outcome(url)) for url in refused})), crawled.reason(refused[0]))


_PORT_CASES: Final = [
    _case("49a", f"{len(_PORTS)} ports of other services", "url_refused", _refused(*(f"http://{A}:{port}/" for port in _PORTS))),
    _case("49b", "ports that are none", "url_refused", _refused(f"http://{A}:99999/", f"http://{A}:%38%30/", f"http://{A}:8o/")),
    _case(
        "49c",
        ":080, : alone, 80 tab 80",
        "done",
        _asked_as(
            {f"http://{A}:080/x": f"{A}/x", f"http://{A}:/y": f"{A}/y", f"http://{A}:80\t80/": f"{A}:8080/"}, sites=(A, f"{A}:8080")
        ),
    ),
    _case("49d", "an escaped line break in the path", "done", _asked_as({"/%0d%0aSET x": f"{A}/%0d%0aSET%20x"})),
    _case("49e", "the crawl's own servers", "url_refused", _own_servers),
]


# --- 50: one page or several ---


def _one_page(*spellings: str) -> Run:
    """Of all of these one is asked for: the rest are known before any request."""

    async def run() -> Seen:
        stage = Stage({A: site({"/": page("home", "".join(map(_link, spellings)))}), f"{A}.": site({})})
        crawled = await stage.crawl(HOME)
        asked = [each.url for each in stage.asked if each.target != "/robots.txt"]
        assert len(asked) <= 2, asked
        assert asked[0] == HOME
        return _outcomes(crawled)

    return run


def _several(*spellings: str) -> Run:
    async def run() -> Seen:
        stage = Stage({A: site({"/": page("home", "".join(map(_link, spellings)))})})
        await stage.crawl(HOME)
        asked = [each.url for each in stage.asked if each.target not in ("/robots.txt", "/")]
        assert len(asked) == len(spellings), asked
        return Seen("apart", f"{len(asked)} requests")

    return run


_IDENTITIES: Final = [
    _case("50a", "64 KB", "url_refused", _refused(f"http://{A}/" + "a" * 65_536)),
    _case("50b", "fragments", "done", _one_page("/x", "/x#a", "/x#", "/x#?b")),
    _case("50c", "no path", "done", _one_page(f"http://{A}", f"http://{A}/", f"http://{A}?")),
    _case("50d", "dots", "done", _one_page("/b/c", "/a/../b/./c", "/%2e%2e/b/c", "/../../b/c")),
    _case("50e", "default ports", "done", _one_page(f"http://{A}/x", f"http://{A}:80/x", f"http://{A}:080/x")),
    _case("50f", "escapes that need not be", "done", _one_page("/%7Ea", "/%7ea", "/~a", "/~%61")),
    _case("50f.2", "escapes that must stay", "apart", _several("/a%2Fb", "/a/b", "/%252e", "/%25252e")),
    _case("50g", "a dot at the end, capitals", "done", _one_page(f"http://{A}/x", f"http://{A}./x", f"HTTP://{A.upper()}/x")),
    _case("50h", "empty queries and values", "done", _one_page("/x", "/x?", "/x?&")),
    _case("50h.2", "empty values", "done", _one_page("/x?a=&a", "/x?a&a=", "/x?a&&a")),
    _case("50i", "+ and %20", "apart", _several("/x?a=b+c", "/x?a=b%20c")),
    _case("50j", "the case of a path", "apart", _several("/x", "/X")),
]

CASES: Final = [*_TEXTS, *_PLACES, *_ANSWERS, *_SECOND_DOORS, *_PORT_CASES, *_IDENTITIES]
