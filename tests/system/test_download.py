"""The downloader against real sockets: what each peer does, the one outcome it ends in, and within which bounds."""

import asyncio
import contextlib
import errno
import gzip
import os
import socket
import time
from collections.abc import AsyncIterator
from ipaddress import ip_network
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from gossamer.clock import SystemClock
from gossamer.outcomes import Outcome
from services.worker.decode import Undecodable, decode
from services.worker.download import READ_BYTES, Answer, Downloader, Request, Trouble
from services.worker.resolve import Record, Resolved, Resolver
from tests.hostile.peers import Connection, Script, closes, drips, floods, listening, replies, resets, silent, until

CAP = 500_000
LOOPBACK = [ip_network("127.0.0.0/8")]

OK = b"HTTP/1.1 200 OK\r\n"
HTML = OK + b"Content-Type: text/html\r\n"
PAGE = b"<html><title>t</title><p>hello</p></html>"
LENGTH = b"Content-Length: 41\r\n"
WHOLE = HTML + LENGTH + b"\r\n" + PAGE
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
CHUNKS = b"29\r\n" + PAGE + b"\r\n0\r\n\r\n"


async def anywhere(name: str) -> list[Record]:
    """Every name is on loopback."""
    return [Record("127.0.0.1", 300)]


@pytest.fixture
async def downloader() -> AsyncIterator[Downloader]:
    clock = SystemClock()
    made = Downloader(Resolver(anywhere, clock, LOOPBACK), clock, user_agent="Gossamer/0 (+test)", connect_timeout_s=0.3)
    yield made
    await made.close()


def asking(port: int, path: str = "/", *, deadline_s: float = 5.0, types: bool = True, host: str = "h.test") -> Request:
    return Request(f"http://{host}:{port}{path}", CAP + READ_BYTES, CAP, deadline_s, types)


def ending(result: Answer | Trouble) -> str:
    """What the walk would close the URL with, as far as one download can tell."""
    if isinstance(result, Trouble):
        return result.outcome
    if 300 <= result.status < 400 and any(name == "Location" for name, _ in result.headers):
        return Outcome.REDIRECT
    if result.status in (404, 410):
        return Outcome.GONE
    if result.status >= 300:
        return Outcome.HTTP_ERROR
    decoded = decode(result.headers, result.body, CAP)
    return decoded.outcome if isinstance(decoded, Undecodable) else Outcome.DONE


def status(line: bytes, *headers: bytes, body: bytes = b"") -> bytes:
    return b"".join((line, b"\r\n", *(header + b"\r\n" for header in headers), b"\r\n", body))


def html(body: bytes, *headers: bytes) -> bytes:
    return status(b"HTTP/1.1 200 OK", b"Content-Type: text/html", b"Content-Length: %d" % len(body), *headers, body=body)


def typed(body: bytes, *headers: bytes) -> bytes:
    return status(b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers, body=body)


def chunked(body: bytes) -> bytes:
    return HTML + CHUNKED + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"


DONE = Outcome.DONE
NO_CONTENT = Outcome.NO_CONTENT
MALFORMED = Outcome.MALFORMED
TOO_LARGE = Outcome.TOO_LARGE
WRONG_TYPE = Outcome.WRONG_TYPE
HTTP_ERROR = Outcome.HTTP_ERROR
CONNECT_FAILED = Outcome.CONNECT_FAILED
REDIRECT = Outcome.REDIRECT

#: Redirects and errors: their bodies don't matter. What else a peer may do to us is in `tests/hostile`.
PEERS: dict[str, tuple[Script, str]] = {
    "a redirect nowhere": (replies(status(b"HTTP/1.1 302 F", b"Content-Length: 0")), HTTP_ERROR),
    "a redirect with a large body": (
        replies(status(b"HTTP/1.1 301 M", b"Location: /x", b"Content-Length: 400000", body=b"x" * 400_000)),
        REDIRECT,
    ),
    "a redirect with an endless body": (floods(b"HTTP/1.1 301 M\r\nLocation: /x\r\n\r\n", b"x"), REDIRECT),
    "a redirect with a body that never comes": (
        replies(b"HTTP/1.1 301 M\r\nLocation: /x\r\nContent-Length: 400\r\n\r\n", to_each=False),
        REDIRECT,
    ),
    "a redirect with a bomb": (
        replies(
            status(b"HTTP/1.1 301 M", b"Location: /x", b"Content-Encoding: gzip", b"Content-Length: 9", body=b"\x1f\x8b" + b"x" * 7)
        ),
        REDIRECT,
    ),
    "a missing page in chunks": (replies(chunked(b"x" * 3000).replace(b"200 OK", b"404 N")), Outcome.GONE),
}


@pytest.mark.parametrize(("script", "expected"), PEERS.values(), ids=PEERS)
async def test_a_peer_ends_in_one_outcome_within_bounds(downloader: Downloader, script: Script, expected: str) -> None:
    async with listening(script) as peer:
        began = time.monotonic()
        result = await downloader.fetch(asking(peer.port))
        took_s = time.monotonic() - began

        if isinstance(result, Trouble):
            await until(lambda: peer.open == 0)  # a connection in doubt is never used again

    assert ending(result) == expected
    assert result.received_bytes <= CAP + READ_BYTES
    assert took_s < 2.0


@pytest.mark.parametrize(
    ("script", "again"),
    [
        pytest.param(replies(HTML + b"Content-Length: 999\r\n\r\n", close=True), True, id="a body that ended early"),
        pytest.param(replies(HTML, close=True), True, id="a head that ended early"),
        pytest.param(closes, True, id="no byte"),
        pytest.param(resets(HTML + LENGTH + b"\r\n"), True, id="a reset"),
        pytest.param(replies(PAGE), False, id="not HTTP"),
        pytest.param(replies(html(b"x" * (CAP + 1))), False, id="too large"),
        pytest.param(replies(typed(PAGE, b"Content-Type: image/png")), False, id="another type"),
    ],
)
async def test_a_second_try_is_worth_it_where_it_may_end_otherwise(downloader: Downloader, script: Script, again: bool) -> None:
    async with listening(script) as peer:
        result = await downloader.fetch(asking(peer.port))

    assert isinstance(result, Trouble)
    assert result.again is again


# --- The request ---


async def test_a_request_says_who_we_are_and_nothing_else(downloader: Downloader) -> None:
    async with listening(replies(html(PAGE, b"Set-Cookie: a=b"))) as peer:
        await downloader.fetch(asking(peer.port, "/a/%2e%2e/b?q='x'|y"))
        await downloader.fetch(asking(peer.port))

    assert peer.requests[0].decode() == (
        "GET /a/%2e%2e/b?q='x'|y HTTP/1.1\r\n"
        f"Host: h.test:{peer.port}\r\n"
        "User-Agent: Gossamer/0 (+test)\r\n"
        "Accept: text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.1\r\n"
        "Accept-Encoding: gzip, deflate\r\n"
        "\r\n"
    )
    assert b"Cookie" not in peer.requests[1]


async def test_an_answer_tells_all_that_came(downloader: Downloader) -> None:
    packed = gzip.compress(PAGE)
    async with listening(replies(html(packed, b"Content-Encoding: gzip", b"X-A: \xe9 ", b"X-B : dropped"))) as peer:
        before = time.monotonic()
        answer = await downloader.fetch(asking(peer.port))

    assert isinstance(answer, Answer)
    assert (answer.status, answer.body, answer.received_bytes, answer.cut) == (200, packed, len(packed), False)
    assert answer.headers == (
        ("Content-Type", "text/html"),
        ("Content-Length", str(len(packed))),
        ("Content-Encoding", "gzip"),
        ("X-A", "é"),
    )
    assert answer.address == "127.0.0.1"
    assert before <= answer.started_at <= answer.started_at + answer.took_s <= time.monotonic()


async def test_a_name_that_ends_in_a_dot_is_the_same_machine(downloader: Downloader) -> None:
    async with listening(replies(WHOLE)) as peer:
        answer = await downloader.fetch(asking(peer.port, host="h.test."))

    assert ending(answer) == DONE


async def test_a_proxy_in_the_environment_is_not_used(downloader: Downloader, monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(replies(WHOLE)) as proxy, listening(replies(WHOLE)) as peer:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        answer = await downloader.fetch(asking(peer.port))

    assert ending(answer) == DONE
    assert proxy.connections == 0


# --- robots.txt: any type, and the first part of a long one ---


@pytest.mark.parametrize("said", [b"Content-Length: 600000\r\n\r\n", b"\r\n"], ids=["with its length", "without"])
async def test_a_long_robots_txt_is_cut_and_not_refused(downloader: Downloader, said: bytes) -> None:
    async with listening(floods(OK + b"Content-Type: image/png\r\n" + said, b"Allow: /\n")) as peer:
        answer = await downloader.fetch(asking(peer.port, "/robots.txt", types=False))

    assert isinstance(answer, Answer)
    assert (len(answer.body), answer.cut) == (CAP, True)
    assert CAP < answer.received_bytes <= CAP + READ_BYTES


async def test_no_more_is_received_than_was_allowed(downloader: Downloader) -> None:
    async with listening(floods(HTML + b"\r\n", b"x")) as peer:
        result = await downloader.fetch(Request(f"http://h.test:{peer.port}/", 40_000, CAP, 5.0, types=True))

    assert isinstance(result, Trouble)
    assert result.outcome is TOO_LARGE
    assert result.received_bytes <= 40_000


# --- Connections ---


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(WHOLE, id="a page"),
        pytest.param(chunked(PAGE), id="a page in chunks"),
        pytest.param(WHOLE.replace(b"200 OK", b"404 Not Found"), id="an error with a short body"),
        pytest.param(chunked(PAGE).replace(b"200 OK", b"301 Moved"), id="a redirect with a short body"),
        pytest.param(status(b"HTTP/1.1 204 N"), id="no body"),
        pytest.param(b"HTTP/1.1 103 E\r\n\r\n" + WHOLE, id="after an interim answer"),
    ],
)
async def test_a_connection_is_kept_after_a_clean_end(downloader: Downloader, reply: bytes) -> None:
    async with listening(replies(reply)) as peer:
        for _ in range(3):
            assert isinstance(await downloader.fetch(asking(peer.port)), Answer)

    assert (peer.connections, len(peer.requests)) == (1, 3)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(WHOLE + WHOLE, id="a second answer"),
        pytest.param(WHOLE + b"junk", id="junk"),
        pytest.param(HTML + b"Content-Length: 10\r\n\r\n" + PAGE, id="more than it said"),
        pytest.param(status(b"HTTP/1.1 204 N", body=WHOLE), id="a body where none may be"),
    ],
)
async def test_a_connection_with_something_left_on_it_is_not_used_again(downloader: Downloader, reply: bytes) -> None:
    async with listening(replies(reply)) as peer:
        for _ in range(2):
            assert isinstance(await downloader.fetch(asking(peer.port)), Answer)

    assert peer.connections == 2


@pytest.mark.parametrize("after_s", [0.0, 0.05], ids=["with the first", "while nobody asks"])
async def test_an_answer_that_comes_unasked_is_nobodys(downloader: Downloader, after_s: float) -> None:
    sent = asyncio.Event()

    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.send(html(b"first"))
        if connection.number == 1:
            await asyncio.sleep(after_s)
            await connection.send(html(b"forged"))
            sent.set()
        await connection.hold()

    async with listening(script) as peer:
        first = await downloader.fetch(asking(peer.port, "/1"))
        await sent.wait()
        await asyncio.sleep(0.02)  # until it lies in our socket
        second = await downloader.fetch(asking(peer.port, "/2"))

    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    assert (first.body, second.body) == (b"first", b"first")


async def test_a_connection_that_closes_as_it_is_used_again_costs_nothing(downloader: Downloader) -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.send(WHOLE)
        if connection.number == 1:
            await connection.request()  # and closes
        else:
            await connection.hold()

    async with listening(script) as peer:
        assert ending(await downloader.fetch(asking(peer.port, "/1"))) == DONE
        assert ending(await downloader.fetch(asking(peer.port, "/2"))) == DONE

    assert peer.connections == 2


async def test_a_full_backlog_is_a_failed_connection(downloader: Downloader) -> None:
    with socket.socket() as listener, contextlib.ExitStack() as fillers:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        result = await downloader.fetch(asking(listener.getsockname()[1]))

    assert isinstance(result, Trouble)
    assert (result.outcome, result.again) == (CONNECT_FAILED, True)


async def test_a_closed_port_is_a_failed_connection(downloader: Downloader) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        result = await downloader.fetch(asking(bound.getsockname()[1]))

    assert isinstance(result, Trouble)
    assert (result.outcome, result.again, result.received_bytes) == (CONNECT_FAILED, True, 0)
    assert result.started_at is not None


async def test_no_free_descriptor_is_a_failed_connection(downloader: Downloader, monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(replies(WHOLE)) as peer:

        def exhausted(*_: object) -> socket.socket:
            raise OSError(errno.EMFILE, "Too many open files")

        monkeypatch.setattr("services.worker.download.socket", SimpleNamespace(socket=exhausted))
        result = await downloader.fetch(asking(peer.port))

    assert isinstance(result, Trouble)
    assert (result.outcome, result.reason, result.again) == (CONNECT_FAILED, "no socket: Too many open files", True)


async def test_a_hostile_peer_does_not_slow_another_one_down(downloader: Downloader) -> None:
    async with (
        listening(silent) as hung,
        listening(floods(HTML + CHUNKED + b"1;", b"x")) as loud,
        listening(replies(WHOLE)) as well,
    ):
        hostile = [asyncio.create_task(downloader.fetch(asking(peer.port, deadline_s=1.0))) for peer in (hung, loud)]
        began = time.monotonic()
        for _ in range(20):
            assert ending(await downloader.fetch(asking(well.port))) == DONE
        took_s = time.monotonic() - began
        await asyncio.gather(*hostile)

    assert took_s < 0.9


# --- Names and addresses: nothing is dialled that was not judged ---


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Whatever is about to be dialled; nothing is."""
    seen: list[object] = []

    def refuse(*arguments: object) -> socket.socket:
        seen.append(arguments)
        raise OSError(errno.EPERM, "not in this test")

    monkeypatch.setattr("services.worker.download.socket", SimpleNamespace(socket=refuse))
    return seen


@pytest.mark.parametrize(
    ("url", "addresses", "outcome"),
    [
        pytest.param("http://public.example.com/", ["10.0.0.1"], Outcome.ADDRESS_REFUSED, id="a name that leads inside"),
        pytest.param("http://a.example.com/", ["93.184.216.34", "::1"], Outcome.ADDRESS_REFUSED, id="one of its addresses does"),
        pytest.param("http://169.254.169.254/latest", [], Outcome.ADDRESS_REFUSED, id="a cloud's metadata"),
        pytest.param("http://[::ffff:7f00:1]/", [], Outcome.ADDRESS_REFUSED, id="loopback in IPv6's clothes"),
        pytest.param("http://a.example.com:6379/", ["93.184.216.34"], Outcome.URL_REFUSED, id="a port of something else"),
        pytest.param("http://metadata.google.internal/", ["93.184.216.34"], Outcome.URL_REFUSED, id="a name for inside"),
        pytest.param("http://localhost/", ["93.184.216.34"], Outcome.URL_REFUSED, id="ourselves"),
        pytest.param("http://a.example.com/", [], Outcome.DNS_FAILED, id="a name without address"),
    ],
)
async def test_nothing_inside_is_dialled(url: str, addresses: list[str], outcome: Outcome, dialled: list[object]) -> None:
    async def lookup(_: str) -> list[Record]:
        return [Record(address, 300) for address in addresses]

    clock = SystemClock()
    downloader = Downloader(Resolver(lookup, clock), clock, user_agent="x")
    result = await downloader.fetch(Request(url, CAP + READ_BYTES, CAP, 1.0, types=True))
    await downloader.close()

    assert isinstance(result, Trouble)
    assert (result.outcome, result.started_at, result.received_bytes) == (outcome, None, 0)
    assert not dialled


async def test_only_the_judged_address_is_dialled_whatever_curl_makes_of_the_url(dialled: list[object]) -> None:
    class Believing(Resolver):
        def known(self, host: str, port: int) -> Resolved:
            return Resolved(("127.0.0.1",))

    clock = SystemClock()
    downloader = Downloader(Believing(anywhere, clock), clock, user_agent="x")
    result = await downloader.fetch(Request("http://[::1]/", CAP + READ_BYTES, CAP, 1.0, types=True))
    await downloader.close()

    assert isinstance(result, Trouble)
    assert (result.outcome, result.reason) == (Outcome.ADDRESS_REFUSED, "::1 is not the address that was judged")
    assert not dialled


async def test_another_address_is_tried_when_one_does_not_answer() -> None:
    async def lookup(_: str) -> list[Record]:
        return [Record("127.0.0.9", 300), Record("127.0.0.1", 300)]

    clock = SystemClock()
    downloader = Downloader(Resolver(lookup, clock, LOOPBACK), clock, user_agent="x")
    async with listening(replies(WHOLE)) as peer:
        answer = await downloader.fetch(asking(peer.port))
        await downloader.close()

    assert isinstance(answer, Answer)
    assert answer.address == "127.0.0.1"


async def test_an_address_of_a_family_that_this_machine_lacks_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lookup(_: str) -> list[Record]:
        return [Record("::1", 300), Record("127.0.0.1", 300)]

    def lacking(family: int, *rest: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "no such family")
        return socket.socket(family, *rest)

    clock = SystemClock()
    downloader = Downloader(Resolver(lookup, clock, [*LOOPBACK, ip_network("::1/128")]), clock, user_agent="x")
    monkeypatch.setattr("services.worker.download.socket", SimpleNamespace(socket=lacking))
    async with listening(replies(WHOLE)) as peer:
        answer = await downloader.fetch(asking(peer.port))
        await downloader.close()

    assert ending(answer) == DONE


async def test_the_deadline_counts_from_the_look_up() -> None:
    async def never(_: str) -> list[Record]:
        await asyncio.sleep(60)
        return []

    clock = SystemClock()
    resolver = Resolver(never, clock, LOOPBACK)
    downloader = Downloader(resolver, clock, user_agent="x")
    began = time.monotonic()
    result = await downloader.fetch(asking(80, deadline_s=0.2))
    took_s = time.monotonic() - began
    await resolver.close()
    await downloader.close()

    assert isinstance(result, Trouble)
    assert (result.outcome, result.again, result.started_at) == (Outcome.DNS_FAILED, True, None)
    assert took_s < 0.7


# --- Cancelling, closing, and mistakes of our own ---


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


async def test_a_cancelled_fetch_lets_go_of_its_connection_at_once(downloader: Downloader) -> None:
    async with listening(replies(WHOLE)) as well, listening(drips(HTML + b"\r\n", b"x", 0.01)) as slow:
        await downloader.fetch(asking(well.port))
        before = descriptors()
        fetches = [asyncio.create_task(downloader.fetch(asking(slow.port, host=f"h{n}.test"))) for n in range(5)]
        await until(lambda: len(slow.requests) == 5)

        for fetch in fetches:
            fetch.cancel()
        await asyncio.gather(*fetches, return_exceptions=True)

        await until(lambda: slow.open == 0)
        assert descriptors() == before
        assert ending(await downloader.fetch(asking(well.port))) == DONE  # on the connection of the first
    assert well.connections == 1


async def test_fetches_in_flight_are_cancelled_by_closing() -> None:
    async with listening(silent) as peer:
        before = descriptors()
        clock = SystemClock()
        downloader = Downloader(Resolver(anywhere, clock, LOOPBACK), clock, user_agent="x")
        fetch = asyncio.create_task(downloader.fetch(asking(peer.port)))
        await until(lambda: peer.open == 1)

        await downloader.close()

        with pytest.raises(asyncio.CancelledError):
            await fetch
        await until(lambda: peer.open == 0)
        assert descriptors() == before


@pytest.mark.parametrize("where", ["_headers", "refusal_by_bytes", "ip_address"])
async def test_a_mistake_in_a_callback_costs_its_fetch_and_no_other(
    downloader: Downloader, where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def mistaken(*_: object) -> None:
        raise ZeroDivisionError(where)

    async with listening(replies(html(PAGE * 100))) as peer, listening(silent) as other:
        hung = asyncio.create_task(downloader.fetch(asking(other.port, deadline_s=0.4)))
        await until(lambda: other.open == 1)
        with monkeypatch.context() as patch:
            patch.setattr(f"services.worker.download.{where}", mistaken)
            assert ending(await downloader.fetch(asking(peer.port))) == Outcome.MALFORMED

        assert f"ZeroDivisionError: {where}" in caplog.text
        assert ending(await downloader.fetch(asking(peer.port))) == DONE
        assert ending(await hung) == Outcome.TIMEOUT


async def test_a_mistake_in_the_glue_reaches_all_who_wait(downloader: Downloader, monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken(*_: object) -> None:
        raise ZeroDivisionError

    async with listening(silent) as peer:
        with monkeypatch.context() as patch:
            patch.setattr(asyncio.get_running_loop(), "add_writer", mistaken)
            with pytest.raises(ZeroDivisionError):
                await downloader.fetch(asking(peer.port))


# --- Sitemaps ---

URLSET = b"<?xml version='1.0'?><urlset>" + b"<url><loc>http://h.test/</loc></url>" * 60_000
XML = b"Content-Type: application/xml"


@pytest.mark.parametrize(
    ("said", "whole"),
    [
        pytest.param(typed(URLSET[:900], XML), True, id="a short one"),
        pytest.param(typed(URLSET[:90_000], XML), True, id="a longer one"),
        pytest.param(typed(gzip.compress(URLSET), b"Content-Type: application/x-gzip"), True, id="a gzip file"),
        pytest.param(typed(gzip.compress(URLSET), XML, b"Content-Encoding: gzip"), True, id="compressed"),
        pytest.param(typed(URLSET[:9_000]), True, id="without a label"),
        pytest.param(typed(URLSET[:900], XML, b"Content-Disposition: attachment"), True, id="an attachment"),
        pytest.param(typed(URLSET, XML), False, id="one that says it is too long"),
        pytest.param(OK + XML + b"\r\n\r\n" + URLSET, False, id="one that is too long"),
        pytest.param(typed(b"http://h.test/\n" * 60_000, b"Content-Type: text/plain"), False, id="a long list"),
    ],
)
async def test_a_sitemap_is_taken_where_it_is_wanted_and_cut_at_the_cap(downloader: Downloader, said: bytes, whole: bool) -> None:
    async with listening(replies(said, close=True)) as peer:
        refused = await downloader.fetch(asking(peer.port))
        taken = await downloader.fetch(replace(asking(peer.port), sitemaps=True))

    body = said.partition(b"\r\n\r\n")[2]
    assert isinstance(taken, Answer)
    assert (taken.body, taken.cut) == (body if whole else body[:CAP], not whole)
    assert taken.received_bytes <= CAP + READ_BYTES
    assert ending(refused) in (Outcome.WRONG_TYPE, Outcome.TOO_LARGE)


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        pytest.param(typed(b"<?xml version='1.0'?><rss>" + b"x" * 9_000, XML), WRONG_TYPE, id="a feed"),
        pytest.param(typed(b"<?xml version='1.0'?><rss>", XML), WRONG_TYPE, id="a short feed"),
        pytest.param(typed(gzip.compress(os.urandom(9_000)), b"Content-Type: application/gzip"), WRONG_TYPE, id="an archive"),
        pytest.param(typed(URLSET[:900], b"Content-Type: image/svg"), WRONG_TYPE, id="a type that no sitemap has"),
        pytest.param(typed(b"x" * (CAP + 1), b"Content-Type: text/plain"), TOO_LARGE, id="a text that says it is too long"),
        pytest.param(OK + b"Content-Type: text/plain\r\n\r\n" + b"x" * (CAP + 1), TOO_LARGE, id="a text that is too long"),
        pytest.param(html(b"x" * (CAP + 1)), TOO_LARGE, id="a page that is too long"),
    ],
)
async def test_what_is_neither_a_page_nor_a_sitemap_is_refused_as_ever(
    downloader: Downloader, said: bytes, outcome: Outcome
) -> None:
    async with listening(replies(said, close=True)) as peer:
        refused = await downloader.fetch(asking(peer.port))
        also = await downloader.fetch(replace(asking(peer.port), sitemaps=True))

    assert isinstance(refused, Trouble)
    assert isinstance(also, Trouble)
    assert refused.outcome is also.outcome is outcome
    assert refused.reason == also.reason
