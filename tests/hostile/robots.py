"""Robots and politeness: what a robots.txt, its absence and its wreckage mean, and how a host that asks for time is given it.

Each case is a crawl on a stage (stage.py): the outcome is that of its pages, and what the hosts saw is checked request by request.
Where several hosts differ in one thing each, they are crawled together and must come to the same. Three outcomes are words of this
file: *rules hold* (what is forbidden was not asked for, and the rest was), *no rules* (both were), *kept* (the pauses that were
asked for were, by the host's own clock).
"""

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Final

from gossamer.outcomes import Flag
from gossamer.settings import Links, Nofollow, Settings
from services.worker.resolve import LookupFailed
from services.worker.robotstxt import KEPT_S, KEPT_S_MIN, kept_s, read_rules
from tests.hostile.case import MB, Case, Seen
from tests.hostile.stage import GONE, PUBLIC, Asked, Crawled, Hurried, Reply, Site, Stage, hasty, moved, page, reply, site, text

RULES: Final = "User-agent: *\nDisallow: /secret\n"
A: Final = "a.example.com"
B: Final = "b.example.com"
#: A crawl as a whole, ledger and all: so that the bound is about what a peer can add to it.
MEMORY_BYTES: Final = 24 * MB
SECONDS: Final = 15.0

Robots = Reply | Callable[[], Reply]
Run = Callable[[], Awaitable[Seen]]


def _case(id: str, name: str, expected: str, run: Run, *, seconds: float = SECONDS) -> Case:
    return Case(id=id, name=name, expected=frozenset({expected}), run=run, memory_bytes=MEMORY_BYTES, seconds=seconds)


def _host(number: int) -> str:
    return f"h{number}.example.com"


def _rules_first(stage: Stage) -> None:
    """Whoever is asked for a page was asked for its rules before, and for one thing at a time."""
    for host in {each.host for each in stage.asked}:
        assert stage.seen(host)[0] == "/robots.txt", f"{host} was asked for {stage.seen(host)[0]} first"
        assert stage.most_in_flight[host] == 1


def _ended(*robots: Robots, settings: Settings | None = None) -> Run:
    """How a page ends on hosts with these robots.txt."""

    async def run() -> Seen:
        stage = Stage({_host(number): site({}, robots=each) for number, each in enumerate(robots)})
        seeds = [f"http://{host}/page" for host in stage.sites]
        crawled = await stage.crawl(*seeds, settings=settings)
        _rules_first(stage)
        return _same(crawled, seeds)

    return run


def _held(*robots: Robots, settings: Settings | None = None) -> Run:
    """Whether what they forbid was left alone, on hosts with these robots.txt."""

    async def run() -> Seen:
        stage = Stage({_host(number): site({}, robots=each) for number, each in enumerate(robots)})
        free, secret = ([f"http://{host}/{path}" for host in stage.sites] for path in ("page", "secret"))
        crawled = await stage.crawl(*free, *secret, settings=settings)
        _rules_first(stage)
        for host in stage.sites:
            assert ("/secret" in stage.seen(host)) == (crawled.outcome(f"http://{host}/secret") == "done")
        outcomes = _same(crawled, free).outcome, _same(crawled, secret).outcome
        words = {("done", "robots_denied"): "rules hold", ("done", "done"): "no rules"}
        return Seen(words.get(outcomes) or " and ".join(sorted(set(outcomes))), _same(crawled, secret).note)

    return run


def _same(crawled: Crawled, urls: Sequence[str]) -> Seen:
    outcomes = sorted({str(crawled.outcome(url)) for url in urls})
    return Seen(" and ".join(outcomes), crawled.reason(urls[-1]))


def _judged(robots: str, expected: Mapping[str, str]) -> Run:
    """By a robots.txt, path by path."""

    async def run() -> Seen:
        stage = Stage({A: site({}, robots=text(robots))})
        crawled = await stage.crawl(*(f"http://{A}{path}" for path in expected))
        _rules_first(stage)
        assert {path: str(crawled.outcome(f"http://{A}{path}")) for path in expected} == dict(expected)
        return Seen("rules hold", ", ".join(sorted(set(expected.values()))))

    return run


# --- 51, 52: none there, and out of reach ---


async def _never() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


async def _reset() -> AsyncIterator[bytes]:
    raise ConnectionResetError
    yield b""


async def _cut() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + RULES.encode()


async def _dripping() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"
    while True:
        yield b"#"
        await asyncio.sleep(0.05)


async def _asked_to_wait() -> Seen:
    """It waits as long as it was told to, though its own first wait is shorter; then robots.txt is there."""
    answers = [reply("", "Retry-After: 30", status=429), text(RULES)]
    clock = Hurried(100)
    stage = Stage({A: site({}, robots=lambda: answers.pop(0))}, clock=clock)
    crawled = await stage.crawl(f"http://{A}/page", settings=hasty(robots_wait_s=1.0))
    assert stage.seen(A) == ["/robots.txt", "/robots.txt", "/page"]
    assert stage.gaps_s(A)[0] >= 30
    return Seen(str(crawled.outcome(f"http://{A}/page")), f"asked again after {stage.gaps_s(A)[0]:.0f} s")


async def _told_never() -> Seen:
    stage = Stage({A: site({}, robots=reply("", "Retry-After: 864000", status=503))})
    crawled = await stage.crawl(f"http://{A}/page")
    assert stage.seen(A) == ["/robots.txt"]
    return Seen(str(crawled.outcome(f"http://{A}/page")), crawled.reason(f"http://{A}/page"))


async def _for_thirty_days() -> Seen:
    stage = Stage({A: site({}, robots=reply(RULES, status=503))}, clock=Hurried(500))
    crawled = await stage.crawl(f"http://{A}/page", settings=hasty(robots_wait_s=10.0))
    assert stage.seen(A) == ["/robots.txt"] * 4
    assert [gap >= wait for gap, wait in zip(stage.gaps_s(A), (10, 60, 300), strict=True)] == [True] * 3
    return Seen(
        str(crawled.outcome(f"http://{A}/page")), "asked " + ", ".join(f"{gap:.0f}" for gap in stage.gaps_s(A)) + " s later"
    )


async def _names_and_certificates() -> Seen:
    """One whose servers fail, one that speaks no TLS: put off, and then denied."""
    stage = Stage({A: site({}), B: site({})}, {A: [LookupFailed("SERVFAIL", again=True)]})
    urls = [f"http://{A}/page", f"https://{B}/page"]
    crawled = await stage.crawl(*urls)
    assert not stage.asked
    assert stage.looked_up.count(A) == 4
    return _same(crawled, urls)


async def _no_such_name() -> Seen:
    stage = Stage({A: site({})}, {A: [LookupFailed("NXDOMAIN", again=False)]})
    crawled = await stage.crawl(f"http://{A}/page")
    assert stage.looked_up == [A]
    assert not stage.dialled
    return _same(crawled, [f"http://{A}/page"])


_UNREACHABLE: Final = [
    _case("51a", "404, 410", "done", _ended(GONE, reply(status=410))),
    _case("51b", "401, 403", "done", _ended(reply(status=401), reply(status=403))),
    _case("51c", "429, with Retry-After", "done", _asked_to_wait),
    _case("51d", "418, 451", "done", _ended(reply(status=418), reply(status=451))),
    _case("51e", "403 whose body forbids all", "done", _ended(reply("User-agent: *\nDisallow: /", status=403, type="text/plain"))),
    _case("52a", "500, 503", "robots_denied", _ended(reply(RULES, status=500), reply(RULES, status=503))),
    _case("52b", "no answer", "robots_denied", _ended(_never, settings=hasty(attempt_timeout_s=0.2))),
    _case("52c", "reset", "robots_denied", _ended(_reset)),
    _case("52d", "name servers that fail, no TLS", "robots_denied", _names_and_certificates),
    _case("52e", "200, cut in the middle", "robots_denied", _ended(_cut)),
    _case("52f", "503 for 30 days", "robots_denied", _for_thirty_days),
    _case("52g", "503, and a wait of ten days", "robots_denied", _told_never),
    _case("52h", "a name that does not exist", "dns_failed", _no_such_name),
]


# --- 53: moved ---


def _chain(hops: int) -> Site:
    """robots.txt, so many redirects away on the same host."""

    def answer(asked: Asked) -> Reply:
        target = asked.target
        if target == "/robots.txt":
            return moved("/r1")
        if target.startswith("/r"):
            number = int(target[2:])
            return text(RULES) if number == hops else moved(f"/r{number + 1}")
        return page(target)

    return answer


def _after_hops(hops: int) -> Run:
    async def run() -> Seen:
        stage = Stage({A: _chain(hops)})
        crawled = await stage.crawl(f"http://{A}/page", f"http://{A}/secret")
        _rules_first(stage)
        held = "rules hold" if crawled.outcome(f"http://{A}/secret") == "robots_denied" else "no rules"
        return Seen(held, f"{sum(path.startswith('/r') for path in stage.seen(A))} requests for rules")

    return run


async def _elsewhere() -> Seen:
    """A's lies on B and binds A alone: B is crawled by its own. Neither is ever asked for two things at once."""
    robots = text("User-agent: *\nDisallow: /secret\nCrawl-delay: 20\n")
    clock = Hurried(10)
    sites = {A: site({}, robots=moved(f"http://{B}/common.txt")), B: site({"/common.txt": robots}, robots=GONE)}
    stage = Stage(sites, clock=clock)
    urls = [f"http://{host}/{path}" for host in (A, B) for path in ("secret", "1", "2", "3")]
    crawled = await stage.crawl(*urls, settings=hasty(delay_s=10.0, robots_wait_s=10.0))
    _rules_first(stage)
    assert stage.seen(B).count("/common.txt") == 1
    assert "/secret" not in stage.seen(A)
    assert "/secret" in stage.seen(B)
    assert min(stage.gaps_s(A)[1:]) >= 20, "the rules that were found are A's, its delay among them"
    assert min(stage.gaps_s(B)) >= 10, "who reads for A keeps B's delay"
    return Seen("rules hold" if crawled.outcome(f"http://{A}/secret") == "robots_denied" else "no rules", "asked at B's own gate")


async def _to_one_host_too_many() -> Seen:
    """Whom a budget keeps out is not waited for."""
    clock = Hurried(100)
    stage = Stage({A: site({}, robots=moved(f"http://{B}/robots.txt")), B: site({})}, clock=clock)
    settings = hasty(robots_wait_s=1_000.0)
    crawled = await stage.crawl(f"http://{A}/page", settings=replace(settings, budgets=replace(settings.budgets, max_hosts=1)))
    assert stage.seen(A) == ["/robots.txt"]
    assert stage.seen(B) == []
    assert list(crawled.counts.refused.values()) == [1]
    return Seen(str(crawled.outcome(f"http://{A}/page")), crawled.reason(f"http://{A}/page"))


async def _in_a_circle() -> Seen:
    sites = {A: site({}, robots=moved(f"http://{B}/robots.txt")), B: site({}, robots=moved(f"http://{A}/robots.txt"))}
    stage = Stage({**sites, "c.example.com": site({}, robots=moved("/robots.txt"))})
    urls = [f"http://{host}/page" for host in stage.sites]
    # Whoever waits for another host's file waits in earnest here: on a busy machine a hasty one would give up before it has come.
    crawled = await stage.crawl(*urls, settings=hasty(robots_wait_s=10.0))
    assert len(stage.seen(A)) <= 8
    assert len(stage.seen("c.example.com")) == 7
    return _same(crawled, urls)


def _inward(*targets: str, names: Mapping[str, Sequence[Sequence[str]]] = {}) -> Run:
    """robots.txt of a public host leads inside: closed at once, without a second try, and nobody there is dialled."""

    async def run() -> Seen:
        sites = {_host(number): site({}, robots=moved(target)) for number, target in enumerate(targets)}
        stage = Stage(sites, {host: [[PUBLIC]] for host in sites} | dict(names))
        urls = [f"http://{host}/page" for host in sites]
        crawled = await stage.crawl(*urls)
        assert set(stage.dialled) == {(PUBLIC, 80)}
        assert all(stage.seen(host) == ["/robots.txt"] for host in sites)
        return _same(crawled, urls)

    return run


async def _without_tls() -> Seen:
    """The stage's certificate is for h.test, a name that is looked up only where networks inside are allowed."""
    plain = {"/robots.txt": moved("http://h.test/rules"), "/rules": text(RULES)}
    stage = Stage({"h.test": lambda asked: plain.get(asked.target, page(asked.url))}, tls=True)
    urls = [f"https://h.test/{path}" for path in ("page", "secret")]
    crawled = await stage.crawl(*urls, settings=hasty(allow_net=("192.168.0.0/16",)))
    assert stage.seen("h.test") == ["/robots.txt", "/rules", "/page"]
    assert stage.dialled == [(PUBLIC, 443), (PUBLIC, 80)]
    assert stage.most_in_flight["h.test"] == 1
    return Seen("rules hold" if crawled.outcome(urls[1]) == "robots_denied" else "no rules")


_INSIDE: Final = (
    "http://127.0.0.1/robots.txt",
    "http://[::ffff:7f00:1]/",
    "http://169.254.169.254/",
    "http://x.internal/",
    "file:///x",
)

_MOVED: Final = [
    _case("53a", "5 hops", "rules hold", _after_hops(5)),
    _case("53b", "6 hops", "no rules", _after_hops(6)),
    _case("53c", "to another host", "rules hold", _elsewhere),
    _case("53c.2", "to a host that is one too many", "robots_denied", _to_one_host_too_many),
    _case("53d", "in a circle, over two hosts and on one", "done", _in_a_circle),
    _case("53e", "to a private address, by number", "robots_denied", _inward(*_INSIDE)),
    _case(
        "53e.2",
        "to a private address, by name",
        "robots_denied",
        _inward("http://inside.example.com/robots.txt", names={"inside.example.com": [["10.0.0.1"]]}),
    ),
    _case("53f", "to an HTML page", "no rules", _held(moved("/home"))),
    _case("53g", "from https to http", "rules hold", lambda: _without_tls()),
    _case("53h", "to nowhere", "no rules", _held(reply(status=302))),
]


# --- 54, 55: size and content ---


def _endless(line: bytes) -> Robots:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n\r\n" + RULES.encode()
        while True:
            yield line * (1 + 65_536 // len(line))

    return pieces


async def _large() -> AsyncIterator[bytes]:
    piece = b"Disallow: /not-here\n" * 3_000
    yield b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(RULES) + 170 * len(piece)) + RULES.encode()
    for _ in range(170):
        yield piece


async def _inside_a_line() -> AsyncIterator[bytes]:
    """The limit falls behind `/pa`, which would forbid what `/pages-of-old` does not."""
    filling = RULES.encode()
    line = b"Disallow: /pages-of-old\n"
    filling += b"#" * (500 * 1024 - len(filling) - len(b"\nDisallow: /pa")) + b"\n"
    yield b"HTTP/1.1 200 OK\r\n\r\n" + filling + line * 10_000


_BOMB: Final = reply(gzip.compress(bytes(50_000_000)), "Content-Encoding: gzip", type="text/plain")

_SIZE: Final = [
    _case("54a", "10 MB of rules", "rules hold", _held(lambda: _large())),
    _case("54b", "endless", "rules hold", _held(_endless(b"Disallow: /not-here\n"), _endless(b"#"))),
    _case("54c", "gzip bomb", "robots_denied", _ended(_BOMB)),
    _case("54d", "a byte now and then", "robots_denied", _ended(_dripping, settings=hasty(attempt_timeout_s=0.3))),
    _case("54e", "the limit falls inside a line", "rules hold", _held(lambda: _inside_a_line())),
    _case("54f", "10 MB, behind a redirect", "rules hold", lambda: _large_elsewhere()),
]


async def _large_elsewhere() -> Seen:
    stage = Stage({A: site({}, robots=moved(f"http://{B}/big.txt")), B: lambda asked: _large()})
    crawled = await stage.crawl(f"http://{A}/page", f"http://{A}/secret", settings=hasty(robots_wait_s=10.0))
    assert crawled.outcome(f"http://{A}/page") == "done"
    return Seen("rules hold" if crawled.outcome(f"http://{A}/secret") == "robots_denied" else "no rules")


_PNG: Final = b"\x89PNG\r\n\x1a\n" + bytes(64)

_CONTENT: Final = [
    _case(
        "55a", "HTML with 200", "no rules", _held(reply("<html><p>User-agent: *\nDisallow: /"), reply("<!DOCTYPE html>" + RULES))
    ),
    _case("55b", "PNG", "no rules", _held(reply(_PNG, type="image/png"))),
    _case("55c", "UTF-8 with BOM", "rules hold", _held(text(b"\xef\xbb\xbf" + RULES.encode()))),
    _case(
        "55d", "UTF-16 with BOM", "rules hold", _held(text(RULES.encode("utf-16")), text(b"\xfe\xff" + RULES.encode("utf-16-be")))
    ),
    _case("55e", "a byte of Latin-1 in a comment", "rules hold", _held(text(b"# caf\xe9\n" + RULES.encode()))),
    _case("55f", "NULs", "rules hold", _held(text(b"\0\0User-agent: *\nDis\0allow: /secret\n"))),
    _case("55g", "lines that end in CR alone", "rules hold", _held(text(RULES.replace("\n", "\r")))),
    _case(
        "55h",
        "a line of 1 MB",
        "rules hold",
        _held(text(RULES + "Disallow: /" + "p" * 1_000_000), text(f"Disallow: /{'p' * 99_999}\n{RULES}")),
    ),
    _case("55i", "no newline at the end", "rules hold", _held(text(RULES.rstrip()))),
]


# --- 56, 57: grammar and matching ---

_D: Final = "robots_denied"
_O: Final = "done"


def _starred(stars: str) -> Run:
    """The rule is matched quickly, against a path that is made for it."""

    async def run() -> Seen:
        rules = read_rules(f"User-agent: *\nDisallow: {stars}")
        began = time.process_time()
        for _ in range(20):
            rules.allows("http://h/" + "a" * 2_000)
        took_ms = (time.process_time() - began) / 20 * 1000
        assert took_ms < 5
        judged = await _judged(f"User-agent: *\nDisallow: {stars}\n", {"/" + "a" * 1_900: _O, "/" + "ab" * 60: _D})()
        return Seen(judged.outcome, f"{took_ms:.3f} ms")

    return run


async def _many_rules() -> Seen:
    robots = "User-agent: *\n" + "".join(f"Disallow: /{number}\n" for number in range(30_000))
    robots = robots[: 500 * 1024].rpartition("\n")[0] + "\n"
    began = time.process_time()
    rules = read_rules(robots)
    read_ms = (time.process_time() - began) * 1000
    assert read_ms < 400
    began = time.process_time()
    for number in range(100):
        rules.allows(f"http://h/x{number}")
    look_up_ms = (time.process_time() - began) * 10
    assert look_up_ms < 5
    del rules  # the crawl has its own
    judged = await _judged(robots, {"/77": _D, "/x": _O})()
    return Seen(judged.outcome, f"read in {read_ms:.0f} ms, a look-up {look_up_ms:.3f} ms")


_GRAMMAR: Final = [
    _case(
        "56a",
        "one agent in three groups",
        "rules hold",
        _judged(
            "User-agent: gossamer\nDisallow: /a\n\nUser-agent: x\nDisallow: /\n\nUser-agent: gossamer\nDisallow: /b\n"
            "User-agent: Gossamer\nDisallow: /c",
            {"/a": _D, "/b": _D, "/c": _D, "/d": _O},
        ),
    ),
    _case(
        "56b",
        "two agents, one group",
        "rules hold",
        _judged("User-agent: x\nUser-agent: gossamer\nDisallow: /a", {"/a": _D, "/b": _O}),
    ),
    _case("56c", "capitals", "rules hold", _judged("USER-AGENT: GOSSAMER\nDISALLOW: /a", {"/a": _D, "/b": _O})),
    _case("56d", "with a version", "rules hold", _judged("User-agent: Gossamer/1.0\nDisallow: /a", {"/a": _D, "/b": _O})),
    _case(
        "56e", "a rule before any group", "rules hold", _judged("Disallow: /a\nUser-agent: *\nDisallow: /b", {"/a": _O, "/b": _D})
    ),
    _case(
        "56f",
        "blank and unknown lines, Sitemap inside a group",
        "rules hold",
        _judged(
            "User-agent: *\n\nHost: x\nSitemap: http://x/s.xml\n\nNoindex: /\nDisallow: /a\n\nSitemap: /y\nDisallow: /b",
            {"/a": _D, "/b": _D, "/c": _O},
        ),
    ),
    _case("56g", "an empty Disallow", "rules hold", _judged("User-agent: *\nDisallow:\n", {"/a": _O})),
    _case("56h", "no colon", "rules hold", _judged("User-agent: *\nDisallow /a\nDisallow: /b", {"/a": _O, "/b": _D})),
    _case(
        "56i",
        "a group for all beside ours",
        "rules hold",
        _judged("User-agent: *\nDisallow: /a\n\nUser-agent: gossamer\nDisallow: /b", {"/a": _O, "/b": _D}),
    ),
    _case(
        "57a",
        "the longest rule, Allow of equals",
        "rules hold",
        _judged(
            "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c\nDisallow: /t\nAllow: /t",
            {"/a/x": _D, "/a/b/x": _O, "/a/b/c/x": _D, "/t": _O},
        ),
    ),
    _case(
        "57b",
        "* and $",
        "rules hold",
        _judged(
            "User-agent: *\nDisallow: /*.cgi$\nDisallow: /x*y\nDisallow: /p$q",
            {"/a.cgi": _D, "/a.cgi?b": _O, "/x-1-y-2": _D, "/x-1": _O, "/p$q1": _D, "/p": _O},
        ),
    ),
    _case("57c", "30 times *a, then b", "rules hold", _starred("/*" + "*a" * 30 + "b")),
    _case("57d", "50 stars", "rules hold", _starred("/" + "*" * 50 + "b")),
    _case("57e", "as many rules as 500 KiB hold", "rules hold", _many_rules),
    _case(
        "57f",
        "escapes and UTF-8",
        "rules hold",
        _judged(
            "User-agent: *\nDisallow: /%7Ea\nDisallow: /é\nDisallow: /b%2Fc", {"/~a": _D, "/%C3%A9": _D, "/b%2fc": _D, "/b/c": _O}
        ),
    ),
    _case(
        "57g",
        "a query in the rule",
        "rules hold",
        _judged("User-agent: *\nDisallow: /a?x=", {"/a?x=1": _D, "/a?y=1": _O, "/a": _O}),
    ),
    _case("57h", "/robots.txt itself", "rules hold", _judged("User-agent: *\nDisallow: /", {"/robots.txt": _O, "/a": _D})),
]


# --- 58, 59: pauses ---


def _paced(robots: str, least_s: float, *, times: float = 20) -> Run:
    """Four pages of a host that asks for a pause."""

    async def run() -> Seen:
        stage = Stage({A: site({}, robots=text(robots))}, clock=Hurried(times))
        urls = [f"http://{A}/{number}" for number in range(4)]
        crawled = await stage.crawl(*urls)
        assert _same(crawled, urls).outcome == "done"
        assert stage.most_in_flight[A] == 1
        assert min(stage.gaps_s(A)) >= least_s
        return Seen("kept", f"least gap {min(stage.gaps_s(A)):.2f} s")

    return run


def _unpaced(*robots: str) -> Run:
    async def run() -> Seen:
        assert {read_rules(each).crawl_delay_s for each in robots} == {None}
        return await _ended(*map(text, robots))()

    return run


def _delay(*values: str) -> str:
    return "User-agent: *\n" + "".join(f"Crawl-delay: {value}\n" for value in values)


_NO_DELAYS: Final = tuple(_delay(value) for value in ("-5", "NaN", "inf", "1e400", "abc", "", "1,5"))
_NOT_OURS: Final = "User-agent: gossamer\nDisallow: /x\n\nUser-agent: *\nCrawl-delay: 99\n"


class _Storm:
    """A host that says *later* to the first so many requests for pages."""

    def __init__(self, later: bytes, times: int = 1_000_000, only: str = "") -> None:
        self._later, self._left, self._only = later, times, only

    def __call__(self, asked: Asked) -> Reply:
        target = asked.target
        if target == "/robots.txt":
            return GONE
        if self._left and target.endswith(self._only):
            self._left -= 1
            return self._later
        return page(asked.url)


def _later(retry_after: str | None, status: int = 429) -> bytes:
    return reply("", *([] if retry_after is None else [f"Retry-After: {retry_after}"]), status=status)


async def _waits_three_seconds() -> Seen:
    """The whole host: nothing else of it is asked for meanwhile."""
    stage = Stage({A: _Storm(_later("3"), 1)}, clock=Hurried(5))
    urls = [f"http://{A}/{number}" for number in range(4)]
    crawled = await stage.crawl(*urls)
    assert _same(crawled, urls).outcome == "done"
    assert stage.gaps_s(A)[1] >= 3
    return Seen("kept", f"{stage.gaps_s(A)[1]:.1f} s")


def _is_left_alone(*values: str) -> Run:
    """Of ten pages one was asked for."""

    async def run() -> Seen:
        stage = Stage({_host(number): _Storm(_later(value)) for number, value in enumerate(values)})
        urls = [f"http://{host}/{number}" for host in stage.sites for number in range(10)]
        crawled = await stage.crawl(*urls)
        assert all(len(stage.seen(host)) == 2 for host in stage.sites), "robots.txt, and the page that was refused"
        return _same(crawled, urls)

    return run


def _own_back_off(*values: str) -> Run:
    """Senseless times are none: the host's delay doubles, and it is asked again."""

    async def run() -> Seen:
        stage = Stage({_host(number): _Storm(_later(value), 1) for number, value in enumerate(values)}, clock=Hurried(20))
        urls = [f"http://{host}/page" for host in stage.sites]
        crawled = await stage.crawl(*urls, settings=hasty(delay_s=2.0))
        assert all(stage.seen(host) == ["/robots.txt", "/page", "/page"] for host in stage.sites)
        assert all(stage.gaps_s(host)[1] >= 4 for host in stage.sites)
        return _same(crawled, urls)

    return run


def _storm(later: bytes) -> Run:
    """Fifty pages of a host that never has time. Delays, deferrals and rests grow; in the end it is given up."""

    async def run() -> Seen:
        stage = Stage({A: _Storm(later)}, clock=Hurried(100))
        urls = [f"http://{A}/{number}" for number in range(50)]
        crawled = await stage.crawl(*urls, settings=hasty(delay_s=1.0))
        gaps, asked = stage.gaps_s(A), len(stage.seen(A)) - 1
        assert asked <= 20
        return Seen(_same(crawled, urls).outcome, f"{asked} requests in {sum(gaps):.0f} s, gaps up to {max(gaps):.0f} s")

    return run


async def _one_of_ten() -> Seen:
    stage = Stage({A: _Storm(_later(None), 1, only="/7")}, clock=Hurried(20))
    urls = [f"http://{A}/{number}" for number in range(10)]
    crawled = await stage.crawl(*urls, settings=hasty(delay_s=0.5))
    assert len(stage.seen(A)) == 12
    return _same(crawled, urls)


def _date(days: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(days=days), usegmt=True)


_PAUSES: Final = [
    _case("58a", "Crawl-delay: 10", "kept", _paced(_delay("10"), 10)),
    _case("58b", "Crawl-delay: 0.5", "kept", _paced(_delay("0.5"), 0.5, times=1)),
    _case("58c", "Crawl-delay: 86400", "robots_denied", _ended(text(_delay("86400")))),
    _case("58d", "-5, NaN, inf, 1e400, abc, nothing, 1,5", "done", _unpaced(*_NO_DELAYS)),
    _case("58e", "two of them", "kept", _paced(_delay("2", "9", "4"), 9)),
    _case("58f", "for all, and we have a group of our own", "done", _unpaced(_NOT_OURS)),
    _case("59a", "429, Retry-After: 3", "kept", _waits_three_seconds),
    _case("59b", "Retry-After in 2099", "http_error", _is_left_alone("Wed, 01 Jan 2099 00:00:00 GMT")),
    _case("59c", "Retry-After: -1, soon, nothing", "done", _own_back_off("-1", "soon", "")),
    _case("59c.2", "Retry-After: 10^12", "http_error", _is_left_alone(str(10**12), "9" * 400)),
    _case("59d", "a past date, a year of two digits", "done", _own_back_off(_date(-2), "Sunday, 06-Nov-94 08:49:37 GMT")),
    _case("59e", "429 on every page", "http_error", _storm(_later(None))),
    _case("59f", "503 for ever", "http_error", _storm(_later(None, 503))),
    _case("59g", "429 on one of ten", "done", _one_of_ten),
]


# --- 60: how long rules are kept, and what a page asks for itself ---


def _read_again(hours: float, *headers: str) -> Run:
    """Pages take their time, and after them robots.txt says something else."""

    async def run() -> Seen:
        clock = Hurried(hours * 3600)  # so many hours in a second

        async def slow(number: int) -> AsyncIterator[bytes]:
            await asyncio.sleep(0.3)
            yield page(f"slow {number}", f'<a href="{"/secret" if number == 3 else number + 1}">x</a>')

        def answer(asked: Asked) -> Reply:
            if asked.target == "/robots.txt":
                return text(RULES if stage.seen(A).count("/robots.txt") > 1 else "", *headers)
            return slow(int(asked.target[1:]))

        stage = Stage({A: answer}, clock=clock)
        settings = hasty(attempt_timeout_s=10_000_000)
        crawled = await stage.crawl(f"http://{A}/0", settings=settings, also=[f"http://{A}/secret"])
        assert "/secret" not in stage.seen(A)
        return Seen("rules hold" if crawled.outcome(f"http://{A}/secret") == "robots_denied" else "no rules")

    return run


async def _within_bounds() -> Seen:
    said = {
        "max-age=60": KEPT_S_MIN,
        "no-store": KEPT_S_MIN,
        "public, max-age=7200": 7200,
        "max-age=315360000": KEPT_S,
        "x": KEPT_S,
    }
    assert {value: kept_s([("Cache-Control", value)]) for value in said} == said
    assert KEPT_S_MIN >= 300
    assert KEPT_S + 300 <= 24 * 3600
    return await _read_again(0.25, "Cache-Control: max-age=60")()


def _page_rules(pages: Mapping[str, Sequence[Flag]], made: Callable[[str], bytes], settings: Settings | None = None) -> Run:
    """Pages that ask for something, each with a link that nobody else has."""

    async def run() -> Seen:
        numbered = {f"/{number}": asks for number, asks in enumerate(pages)}
        stage = Stage({A: site({path: made(asks) for path, asks in numbered.items()})})
        links = [f"http://{A}/from/{asks_number}" for asks_number in range(len(pages))]
        crawled = await stage.crawl(*(f"http://{A}{path}" for path in numbered), settings=settings, also=links)
        for number, (path, asks) in enumerate(numbered.items()):
            record = crawled.records[f"http://{A}{path}"]
            assert record.facts is not None
            assert set(record.facts.flags) == set(pages[asks]), asks
            assert (record.facts.blob is None) == (Flag.NOINDEX in pages[asks])
            assert (f"/from/{number}" in stage.seen(A)) == (Flag.NOFOLLOW not in pages[asks]), asks
        return _same(crawled, [f"http://{A}{path}" for path in numbered])

    return run


_INDEX, _FOLLOW = Flag.NOINDEX, Flag.NOFOLLOW
_TAGS: Final = {
    "noindex": [_INDEX],
    "none": [_INDEX, _FOLLOW],
    "gossamer: nofollow": [_FOLLOW],
    "otherbot: none": [],
    "otherbot: noindex, nofollow": [],
    "noindex\r\nX-Robots-Tag: nofollow": [_INDEX, _FOLLOW],
}
_OUT_OF_DATE: Final[Mapping[str, Sequence[Flag]]] = {"unavailable_after: 25 Jun 2010 15:00:00 GMT": []}
_METAS: Final = {
    "<META NAME=ROBOTS CONTENT='NOINDEX'>": [_INDEX],
    "<meta name=gossamer content=nofollow>": [_FOLLOW],
    "<meta name=robots content='index, follow'><meta name=robots content=none>": [_INDEX, _FOLLOW],
    "<body><p>Words.</p><meta name=robots content=noindex>": [_INDEX],
    "<meta name=otherbot content=none>": [],
}


def _numbered(asks: Mapping[str, object], wanted: str) -> str:
    """The link of the page that asks for this."""
    return f'<a href="/from/{list(asks).index(wanted)}">x</a>'


async def _marked_links() -> Seen:
    stage = Stage({A: site({"/": page("home", '<a rel=nofollow href="/1">x</a><a rel="ugc nofollow" href="/2">x</a>')})})
    crawled = await stage.crawl(f"http://{A}/")
    assert set(stage.seen(A)) == {"/robots.txt", "/", "/1", "/2"}
    stage = Stage(stage.sites)
    await stage.crawl(f"http://{A}/", settings=replace(hasty(), links=Links(nofollow=Nofollow.SKIP)))
    assert set(stage.seen(A)) == {"/robots.txt", "/"}
    return _same(crawled, [f"http://{A}/1", f"http://{A}/2"])


_KEPT: Final = [
    _case("60a", "robots.txt changes, 25 h later", "rules hold", _read_again(25)),
    _case("60b", "Cache-Control: max-age=60, no-store, ten years", "rules hold", _within_bounds),
    _case(
        "60c",
        "X-Robots-Tag",
        "done",
        _page_rules(_TAGS, lambda asks: page(f"tag {asks[:9]}", _numbered(_TAGS, asks), f"X-Robots-Tag: {asks}")),
    ),
    _case("60d", "meta robots", "done", _page_rules(_METAS, lambda asks: page(f"meta {asks}", asks + _numbered(_METAS, asks)))),
    _case("60e", "rel=nofollow, ugc", "done", _marked_links),
    _case(
        "60f",
        "unavailable_after",
        "done",
        _page_rules(_OUT_OF_DATE, lambda asks: page("a tag", _numbered(_OUT_OF_DATE, asks), f"X-Robots-Tag: {asks}")),
    ),
]

CASES: Final = [*_UNREACHABLE, *_MOVED, *_SIZE, *_CONTENT, *_GRAMMAR, *_PAUSES, *_KEPT]
