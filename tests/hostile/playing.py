"""A case is played: a peer follows its script, and a URL of it is walked to its closing."""

import gc
import ssl
import tempfile
from collections.abc import Callable
from typing import Final

from gossamer.outcomes import Flag
from gossamer.page import Page
from tests.hostile import certificates
from tests.hostile.case import MB, Case, Seen
from tests.hostile.crawl import CAP, HASTY_S, PATIENT_S, Closed, crawling
from tests.hostile.measure import mark
from tests.hostile.peers import Script, listening, replies, until

OK: Final = b"HTTP/1.1 200 OK\r\n"
HTML: Final = OK + b"Content-Type: text/html\r\n"
PAGE: Final = b"<html><title>t</title><p>hello</p></html>"
LENGTH: Final = b"Content-Length: 41\r\n"
WHOLE: Final = HTML + LENGTH + b"\r\n" + PAGE
CHUNKED: Final = b"Transfer-Encoding: chunked\r\n\r\n"
CHUNKS: Final = b"29\r\n" + PAGE + b"\r\n0\r\n\r\n"

#: While a page is parsed; what is left of it afterwards is the collector's.
M2: Final = 64 * MB
#: Two attempts, each with half a second to spare.
TD: Final = 2 * (HASTY_S + 0.5)

Check = Callable[[Closed], None]


def message(first_line: bytes, *headers: bytes, body: bytes = b"") -> bytes:
    return b"".join((first_line, b"\r\n", *(header + b"\r\n" for header in headers), b"\r\n", body))


def page(body: bytes, *headers: bytes, type: bytes = b"text/html") -> bytes:
    """A page of this type, whole."""
    return message(b"HTTP/1.1 200 OK", b"Content-Type: " + type, b"Content-Length: %d" % len(body), *headers, body=body)


def untyped(body: bytes, *headers: bytes) -> bytes:
    return message(b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers, body=body)


def chunked(body: bytes, head: bytes = HTML) -> bytes:
    return head + CHUNKED + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"


def played(
    id: str,
    name: str,
    script: Script | bytes,
    *expected: str,
    check: Check | None = None,
    deadline_s: float = PATIENT_S,
    page_bytes: int = CAP,
    connections: int | None = None,
    requests: int | None = None,
    dropped: bool = False,
    read_bytes: int | None = None,
    certificate: str | None = None,
    https: bool = False,
    host: str = "h.test",
    memory_bytes: int = 2 * MB,
    seconds: float = 1.0,
) -> Case:
    """A case of one walk: this script, or these bytes in answer to each request.

    `connections`, `requests`: how many there must have been. `dropped`: no connection is kept. `read_bytes`: the most that may be
    read of any of them, none of which is kept. `certificate`: the peer speaks TLS, with this one; `https`: it is asked for TLS.
    """

    async def run() -> Seen:
        tls = None if certificate is None else server_context(certificate)
        async with crawling(deadline_s=deadline_s, page_bytes=page_bytes, counted=read_bytes is not None) as crawl:
            async with listening(replies(script) if isinstance(script, bytes) else script, tls) as peer:
                mark()
                closed = await crawl.walk(f"{'https' if https or tls else 'http'}://{host}:{peer.port}/")
                if dropped:
                    await until(lambda: peer.open == 0)
            if read_bytes is not None:
                assert 0 < max(crawl.read_bytes) <= read_bytes, f"{crawl.read_bytes} bytes were read"
        assert connections in (None, peer.connections), f"{peer.connections} connections"
        assert requests in (None, len(peer.requests)), f"{len(peer.requests)} requests"
        if check is not None:
            check(closed)
        return Seen(closed.outcome, closed.reason)

    return Case(id=id, name=name, expected=frozenset(expected), run=run, memory_bytes=memory_bytes, seconds=seconds)


async def warm_up() -> None:
    """Plays a page or two for nothing: what is loaded once, and kept for good, is no case's own."""
    for case in (played("0a", "a page", WHOLE), played("0b", "a page over TLS", WHOLE, certificate=certificates.GOOD)):
        await case.run()
    gc.collect()
    gc.freeze()  # so that the collection before each case has only what cases leave to look at


def server_context(certificate: str) -> ssl.SSLContext:
    """A server's, with this certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as chain:
        chain.write(certificate + certificates.KEY)
        chain.flush()
        made.load_cert_chain(chain.name)
    return made


# --- What must be true of a page ---


def shown(closed: Closed) -> Page:
    """The page as modules saw it."""
    assert closed.page is not None, "no module saw it"
    return closed.page


def says(text: str) -> Check:
    """These words are the page's, and all of it can be stored."""

    def check(closed: Closed) -> None:
        page = shown(closed)
        assert page.text == text, f"text {page.text[:80]!r}"
        (page.html + page.text + page.title).encode()

    return check


def flagged(flag: Flag) -> Check:
    def check(closed: Closed) -> None:
        assert closed.flags == (flag,), closed.flags

    return check


def follows(*paths: str, elsewhere: bool = False) -> Check:
    """These are the URLs that go on, without their origin; `elsewhere`: they are whole."""

    def check(closed: Closed) -> None:
        found = [url if elsewhere else url[url.index("/", 8) :] for url in closed.followed]
        assert sorted(found) == sorted(paths), found

    return check
