"""Transport: peers that are slow, endless, contradictory or no HTTP at all. Cases 1 to 12."""

import asyncio
import contextlib
import gzip
import socket
from typing import Final

from gossamer.outcomes import Outcome
from services.worker.download import READ_BYTES, WIRE_EXTRA_BYTES
from tests.hostile import certificates
from tests.hostile.case import Case, Seen
from tests.hostile.crawl import CAP, HASTY_S, Closed, crawling
from tests.hostile.measure import mark
from tests.hostile.peers import Connection, Script, closes, drips, floods, listening, replies, resets, silent, spells, until
from tests.hostile.playing import (
    CHUNKED,
    CHUNKS,
    HTML,
    LENGTH,
    OK,
    PAGE,
    TD,
    WHOLE,
    chunked,
    follows,
    message,
    page,
    played,
    server_context,
    shown,
)

DONE: Final = Outcome.DONE
NO_CONTENT: Final = Outcome.NO_CONTENT
MALFORMED: Final = Outcome.MALFORMED
TOO_LARGE: Final = Outcome.TOO_LARGE
TIMEOUT: Final = Outcome.TIMEOUT
CONNECT_FAILED: Final = Outcome.CONNECT_FAILED
TLS_FAILED: Final = Outcome.TLS_FAILED
HTTP_ERROR: Final = Outcome.HTTP_ERROR
REDIRECT: Final = Outcome.REDIRECT
BAD_ENCODING: Final = Outcome.BAD_ENCODING

#: A body's cap and one read: what is taken of a body that is too large.
BODY_READ: Final = CAP + 2 * READ_BYTES
#: Of framing that is thrown away, and so costs no memory: curl reads 256 KB at a time, and is looked after every second time.
WIRE_READ: Final = CAP + WIRE_EXTRA_BYTES + 2 * 16 * READ_BYTES
#: curl's own limit for a line, and a read.
LINE_READ: Final = 100 * 1024 + READ_BYTES
#: Our limit for a head, and a read.
HEAD_READ: Final = 64 * 1024 + READ_BYTES


def slow(id: str, name: str, script: Script, *, https: bool = False) -> Case:
    """What never ends: the deadline ends it, twice."""
    return played(
        id, name, script, TIMEOUT, deadline_s=HASTY_S, https=https, connections=2, dropped=True, memory_bytes=3_000_000, seconds=TD
    )


def odd(id: str, name: str, reply: bytes, *expected: str) -> Case:
    """An answer of which nothing is kept, least of all the connection."""
    return played(id, name, replies(reply, to_each=False), *expected, dropped=True)


# --- 1 and 2: slow ---


async def _tarpit(connection: Connection) -> None:
    await connection.request()
    await connection.send(HTML + b"Content-Length: 400000\r\n\r\n")
    await asyncio.sleep(HASTY_S / 2)
    while True:
        await connection.send(b"x" * 10)
        await asyncio.sleep(0.05)


async def _full_backlog() -> Seen:
    async with crawling(deadline_s=HASTY_S) as crawl:
        with socket.socket() as listener, contextlib.ExitStack() as fillers:
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            for _ in range(4):
                filler = fillers.enter_context(socket.socket())
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
            mark()
            closed = await crawl.walk(f"http://h.test:{listener.getsockname()[1]}/")
    return Seen(closed.outcome, closed.reason)


ALL_BUT_ONE = HTML + b"Content-Length: 400000\r\n\r\n" + b"x" * 399_999

SLOW = [
    slow("1a", "accepts, and sends nothing", silent),
    slow("1b", "spells the status line", spells(b"HTTP/1.1 200 OK", 0.05)),
    slow("1c", "sends headers one by one, without end", drips(OK, b"X-N: 1\r\n", 0.05)),
    Case(id="1d", name="a full backlog: no answer to SYN", expected=frozenset({CONNECT_FAILED}), run=_full_backlog, seconds=TD),
    slow("2a", "a body byte by byte", drips(HTML + b"Content-Length: 400000\r\n\r\n", b"x", 0.05)),
    slow("2b", "a byte just before one loses patience", drips(HTML + b"Content-Length: 400000\r\n\r\n", b"x", 0.45 * HASTY_S)),
    slow("2c", "silence, then 200 bytes a second", _tarpit),
    slow("2d", "chunks of a byte", drips(HTML + CHUNKED, b"1\r\nx\r\n", 0.05)),
    slow("2e", "all but the last byte", replies(ALL_BUT_ONE, to_each=False)),
]

# --- 3: endless ---

ENDLESS = [
    played(
        "3a",
        "chunks for ever",
        floods(HTML + CHUNKED, b"4000\r\n" + b"x" * 0x4000 + b"\r\n"),
        TOO_LARGE,
        read_bytes=BODY_READ,
        dropped=True,
    ),
    played("3b", "no length, for ever", floods(HTML + b"\r\n", b"x"), TOO_LARGE, read_bytes=BODY_READ, dropped=True),
    played(
        "3c",
        "says that it is a terabyte, and sends",
        floods(HTML + b"Content-Length: 1000000000000\r\n\r\n", b"x"),
        TOO_LARGE,
        read_bytes=READ_BYTES,  # refused by the head: the first read had it
        dropped=True,
    ),
    played(
        "3d.1",
        "a chunk extension without end",
        floods(HTML + CHUNKED + b"29;", b"x"),
        MALFORMED,
        read_bytes=WIRE_READ,
        dropped=True,
    ),
    played(
        "3d.2",
        "an extension to each byte, without end",
        floods(HTML + CHUNKED, b"1;" + b"x" * 16_000 + b"\r\ny\r\n"),
        MALFORMED,
        read_bytes=WIRE_READ,
        dropped=True,
    ),
    played(
        "3e",
        "trailers without end",
        floods(HTML + CHUNKED + CHUNKS[:-2], b"X-T: 1\r\n"),
        MALFORMED,
        read_bytes=HEAD_READ,
        dropped=True,
    ),
    odd("3f.2", "a chunk size that is no number", HTML + CHUNKED + b"zz\r\n", MALFORMED),
    odd("3f.1", "a chunk of 2^64 bytes", HTML + CHUNKED + b"FFFFFFFFFFFFFFFF\r\nxxx", MALFORMED),
    played("3g", "a chunk extension of 100 KB, then a page", HTML + CHUNKED + b"29;" + b"x" * 100_000 + CHUNKS[2:], DONE),
]


# --- 4: lengths; 5: framing ---


def _has_ten_bytes(closed: Closed) -> None:
    assert shown(closed).size == 10


def length(said: bytes, *more: bytes) -> bytes:
    return HTML + b"".join(b"Content-Length:%s\r\n" % each for each in (said, *more)) + b"\r\n" + PAGE


def transfer(coding: bytes, head: bytes = HTML) -> bytes:
    return head + b"Transfer-Encoding: " + coding + b"\r\n\r\n" + CHUNKS


LENGTHS = [
    played("4a.1", "says 999, sends 41 and closes", replies(length(b" 999"), close=True), MALFORMED, connections=2),
    played("4a.2", "closes within a chunk", replies(HTML + CHUNKED + CHUNKS[:20], close=True), MALFORMED, connections=2),
    played("4a.3", "closes within the head", replies(HTML + b"X-A", close=True), MALFORMED, connections=2),
    slow("4b", "says 999, sends 41 and stays", replies(length(b" 999"), to_each=False)),
    played("4c", "says 10, sends 41", length(b" 10"), DONE, check=_has_ten_bytes, dropped=True),
    played("4d", "says 41, twice", length(b" 41", b" 41"), DONE),
    odd("4e", "says 5 and 41", length(b" 5", b" 41"), MALFORMED),
    odd("4f.1", "a length of -1", length(b" -1"), MALFORMED),
    odd("4f.2", "a length of +41", length(b" +41"), MALFORMED),
    odd("4f.3", "a length of 0x29", length(b" 0x29"), MALFORMED),
    odd("4f.4", "an empty length", length(b""), MALFORMED),
    odd("4f.5", "a length of 41, 5", length(b" 41, 5"), MALFORMED),
    odd("4f.6", "a length of twenty digits", length(b" 99999999999999999999"), MALFORMED),
    # By the chunks; the connection is kept if nothing is left on it, and 12 sees that nobody gets what was not meant for him.
    played("5a", "a length and chunks", HTML + b"Content-Length: 5\r\n" + CHUNKED + CHUNKS, DONE),
    odd("5b", "transfer coding gzip, chunked", transfer(b"gzip, chunked"), BAD_ENCODING),
    played("5c", "transfer coding identity", replies(HTML + b"Transfer-Encoding: identity\r\n\r\n" + PAGE, close=True), DONE),
    odd("5d.1", "chunked, chunked", transfer(b"chunked, chunked"), MALFORMED),
    odd("5d.3", "chunked in two lines", transfer(b"chunked\r\nTransfer-Encoding: chunked"), MALFORMED),
    # curl names an unknown coding as it does one that it was not asked for; neither is tried again.
    odd("5d.2", "transfer coding xchunked", transfer(b"xchunked"), MALFORMED, BAD_ENCODING),
    played("5e", "chunks in HTTP/1.0", transfer(b"chunked", HTML.replace(b"1.1", b"1.0")), DONE),
    played(
        "5f",
        "gzip, chunks and a wrong length",
        chunked(gzip.compress(PAGE), HTML + b"Content-Encoding: gzip\r\nContent-Length: 7\r\n"),
        DONE,
    ),
]

# --- 6: connections ---


async def _half_closes(connection: Connection) -> None:
    await connection.request()
    await connection.send(WHOLE)
    connection.writer.write_eof()
    await connection.hold()


async def _stops_reading(connection: Connection) -> None:
    raw: socket.socket = connection.writer.get_extra_info("socket")
    raw.shutdown(socket.SHUT_RD)
    await asyncio.sleep(0.05)


async def _closes_when_used_again() -> Seen:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.send(page(b"page %d" % connection.number))
        if connection.number == 1:
            await connection.request()  # and closes
        else:
            await connection.hold()

    async with crawling() as crawl, listening(script) as peer:
        mark()
        await crawl.walk(f"http://h.test:{peer.port}/1")
        closed = await crawl.walk(f"http://h.test:{peer.port}/2")
    assert shown(closed).text == "page 2"
    assert peer.connections == 2
    return Seen(closed.outcome, closed.reason)


CONNECTIONS = [
    played("6a.1", "a reset after the head", resets(HTML + LENGTH + b"\r\n"), MALFORMED, connections=2),
    played("6a.2", "a reset before the head", resets(b""), CONNECT_FAILED, connections=2),
    played("6b", "a reset within the body", resets(HTML + LENGTH + b"\r\n" + PAGE[:20]), MALFORMED, connections=2),
    played("6c", "closes without a byte", closes, CONNECT_FAILED, connections=2),
    played("6d", "answers, and half closes", _half_closes, DONE),
    played("6e", "stops reading before we ask", _stops_reading, CONNECT_FAILED, connections=2),
    Case(
        id="6f",
        name="closes in the moment of being used again",
        expected=frozenset({DONE}),
        run=_closes_when_used_again,
    ),
]

# --- 7: handshakes; 8: certificates ---

TLS_1_0, TLS_1_2 = b"\x03\x01", b"\x03\x03"
SERVER_HELLO = b"\x02\x00\x00\x26%s" + bytes(32) + b"\x00\xc0\x2b\x00"
A_MEGABYTE = b"\x0b\x10\x00\x00\x0f\xff\xfd" + bytes(16_000)


def record(version: bytes, message: bytes) -> bytes:
    return b"\x16" + version + len(message).to_bytes(2, "big") + message


HELLO = record(TLS_1_2, SERVER_HELLO % TLS_1_2)


def at_once(data: bytes) -> Script:
    """Sends these bytes to whoever connects."""

    async def script(connection: Connection) -> None:
        await connection.send(data)
        await connection.hold()

    return script


async def _empty_records(connection: Connection) -> None:
    while True:
        await connection.send(record(TLS_1_2, b"") * 1000)
        await asyncio.sleep(0)


async def _leaves_without_goodbye(connection: Connection) -> None:
    await connection.request()
    await connection.send(WHOLE[:-10])  # and the peer aborts


def handshake(id: str, name: str, data: bytes) -> Case:
    return played(id, name, at_once(data), TLS_FAILED, https=True, connections=2, dropped=True)


def certificate(id: str, name: str, pem: str, host: str = "h.test") -> Case:
    """No second try, and none without TLS."""
    return played(id, name, replies(WHOLE), TLS_FAILED, certificate=pem, host=host, connections=1, dropped=True)


TLS = [
    slow("7a", "no ServerHello", silent, https=True),
    slow("7b", "a ServerHello byte by byte", spells(HELLO, 0.05, asked=False), https=True),
    handshake("7c", "plain HTTP instead of TLS", WHOLE),
    handshake("7d", "a fatal alert", b"\x15\x03\x03\x00\x02\x02\x28"),
    handshake("7e", "a certificate of a megabyte", HELLO + record(TLS_1_2, A_MEGABYTE) * 60),
    handshake("7f", "TLS 1.0 alone", record(TLS_1_0, SERVER_HELLO % TLS_1_0)),
    played(
        "7g",
        "leaves in mid body, without close_notify",
        _leaves_without_goodbye,
        MALFORMED,
        certificate=certificates.GOOD,
        connections=2,
    ),
    # OpenSSL counts them, and has enough after 32: sooner than any deadline.
    played(
        "7h",
        "empty records without end",
        _empty_records,
        TIMEOUT,
        TLS_FAILED,
        https=True,
        deadline_s=HASTY_S,
        dropped=True,
        seconds=TD,
    ),
    certificate("8a", "self-signed", certificates.SELF_SIGNED),
    certificate("8b", "expired", certificates.EXPIRED),
    certificate("8c", "not yet valid", certificates.NOT_YET_VALID),
    certificate("8d", "of another host", certificates.ELSEWHERE),
    certificate("8e", "of an unknown authority", certificates.UNKNOWN_AUTHORITY),
    certificate("8f", "the name in its subject alone", certificates.COMMON_NAME_ALONE),
    certificate("8g", "a wildcard over two labels", certificates.GOOD, "a.b.wild.test"),
]

# --- 9 to 11: heads ---


def header(line: bytes) -> bytes:
    return HTML + line + b"\r\n" + LENGTH + b"\r\n" + PAGE


def located(target: bytes) -> bytes:
    return message(b"HTTP/1.1 302 Found", b"Location: " + target, b"Content-Length: 0")


def first_line(line: bytes) -> bytes:
    return WHOLE.replace(b"HTTP/1.1 200 OK", line)


MANY_COOKIES = b"".join(b"Set-Cookie: c%d=%s\r\n" % (number, b"v" * 4096) for number in range(300))


def large_head(id: str, name: str, reply: bytes, read_bytes: int) -> Case:
    return played(id, name, replies(reply, to_each=False), MALFORMED, read_bytes=read_bytes, dropped=True)


HEADS = [
    played("9a", "line feeds alone", WHOLE.replace(b"\r\n", b"\n"), DONE),
    odd("9b", "a bare CR in a value", header(b"X-A: a\rb"), MALFORMED),
    played(
        "9c",
        "a type folded over lines",
        OK + b"Content-Type:\r\n text/html;\r\n\tcharset=utf-8\r\n" + LENGTH + b"\r\n" + PAGE,
        DONE,
    ),
    played("9d", "a blank before the colon", header(b"X-A : b"), DONE),
    # curl takes no such line, and the message with it.
    odd("9e", "a line without colon", header(b"nonsense"), DONE, MALFORMED),
    played("9f.1", "a control character in a cookie", header(b"Set-Cookie: a=\x01b"), DONE),
    # curl takes no NUL anywhere in a head.
    odd("9f.2", "a NUL in a cookie", header(b"Set-Cookie: a=\x00b"), DONE, MALFORMED),
    odd("9f.3", "bytes that are no text in a coding", header(b"Transfer-Encoding: chu\xa9ked"), BAD_ENCODING),
    played("9g.1", "raw UTF-8 in a location", located(b"/\xc3\xa9"), REDIRECT, check=follows("/%C3%A9")),
    played("9g.2", "raw Latin-1 in a location", located(b"/\xe9"), REDIRECT, check=follows("/%E9")),
    played("9h", "a header without name", header(b": x"), DONE),
    large_head("10a", "a header of a megabyte", HTML + b"X-A: " + b"v" * 1_000_000 + b"\r\n\r\n", LINE_READ),
    large_head("10b", "10,000 headers", HTML + b"".join(b"X-%d: v\r\n" % n for n in range(10_000)) + b"\r\n", HEAD_READ),
    large_head("10c", "a reason of a megabyte", b"HTTP/1.1 200 " + b"O" * 1_000_000 + b"\r\n\r\n", LINE_READ),
    large_head("10d", "300 cookies of 4 KB", HTML + MANY_COOKIES + b"\r\n", HEAD_READ),
    played("10e", "120 headers", header(b"".join(b"X-%d: v\r\n" % n for n in range(120))[:-2]), DONE),
    odd("11a", "HTTP/0.9: a page alone", PAGE, MALFORMED),
    odd("11b", "ICY 200 OK", first_line(b"ICY 200 OK"), MALFORMED),
    odd("11c", "HTTP/2 in plain text", first_line(b"HTTP/2 200 OK"), MALFORMED),
    played("11d.1", "status 999", first_line(b"HTTP/1.1 999 ?"), HTTP_ERROR),
    played("11d.2", "status 600", first_line(b"HTTP/1.1 600 ?"), HTTP_ERROR),
    odd("11d.3", "status 099", first_line(b"HTTP/1.1 099 ?"), MALFORMED),
    odd("11d.4", "status 20", first_line(b"HTTP/1.1 20 ?"), MALFORMED),
    odd("11d.5", "status 2000", first_line(b"HTTP/1.1 2000 OK"), MALFORMED),
    played("11e", "no reason", first_line(b"HTTP/1.1 200"), DONE),
    played("11e.2", "no blank before the reason", first_line(b"HTTP/1.1 200OK"), DONE),
    odd("11f.1", "a banner of SSH", b"SSH-2.0-OpenSSH_9.9\r\n", MALFORMED),
    odd("11f.2", "a banner of SMTP", b"220 mx ESMTP\r\n", MALFORMED),
    odd("11f.3", "a blank line, then a page", b"\r\n" + WHOLE, MALFORMED),
    odd("11f.4", "the same behind an interim answer", b"HTTP/1.1 103 Early Hints\r\n\r\n\r\n" + WHOLE, MALFORMED),
    played(
        "11g",
        "103 every 10 ms, for ever",
        drips(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.01),
        MALFORMED,
        TIMEOUT,
        deadline_s=HASTY_S,
        dropped=True,
        seconds=TD,
    ),
    played("11h", "ten interim answers, then a page", b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n" * 10 + WHOLE, DONE),
    odd("11i", "101, unasked", b"HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\n" + PAGE, MALFORMED),
]

# --- 12: bytes after the message ---

FORGED = page(b"forged")


async def _second_gets_its_own(script: Script, pem: str | None) -> Seen:
    """Two URLs of a host, one after the other: whatever the peer adds to the first answer, the second URL does not get it."""
    scheme, tls = ("http", None) if pem is None else ("https", server_context(pem))
    async with crawling() as crawl, listening(script, tls) as peer:
        mark()
        first = await crawl.walk(f"{scheme}://h.test:{peer.port}/1")
        await until(lambda: len(peer.requests) == 1)
        await asyncio.sleep(0.15)  # until it lies in our socket
        second = await crawl.walk(f"{scheme}://h.test:{peer.port}/2")
    assert shown(second).text == "own 2", shown(second).text
    if first.outcome is DONE:
        assert shown(first).text == "own 1"
    return Seen(first.outcome, first.reason)


def adding(more: bytes, after_s: float = 0.0, first: bytes = b"") -> Script:
    """Answers each request with a page of its own, and adds something to the first answer."""

    async def script(connection: Connection) -> None:
        while await connection.request():
            number = len(connection.requests)
            own = page(b"own %d" % number)
            if number > 1:
                await connection.send(own)
            elif after_s:
                await connection.send(own)
                await asyncio.sleep(after_s)
                await connection.send(more)
            else:
                await connection.send((first or own) + more)

    return script


async def _answers_before_it_is_asked(connection: Connection) -> None:
    await connection.send(page(b"own %d" % (len(connection.requests) + 1)))
    await connection.request()
    while await connection.request():
        await connection.send(page(b"own %d" % len(connection.requests)))


def behind(id: str, name: str, script: Script, *expected: str, certificate: str | None = None) -> Case:
    async def run() -> Seen:
        return await _second_gets_its_own(script, certificate)

    return Case(id=id, name=name, expected=frozenset(expected), run=run)


BEHIND = [
    behind("12a", "two answers at once", adding(FORGED), DONE),
    behind("12b", "junk after the body", adding(b"junk" * 100), DONE),
    behind("12c.1", "204 with a body", adding(FORGED, first=message(b"HTTP/1.1 204 N")), NO_CONTENT),
    behind("12c.2", "304 with a body", adding(FORGED, first=message(b"HTTP/1.1 304 N")), HTTP_ERROR),
    behind("12d", "an answer before the request", _answers_before_it_is_asked, DONE),
    behind("12e.1", "a second answer, 100 ms later", adding(FORGED, after_s=0.1), DONE),
    behind("12e.2", "the same over TLS", adding(FORGED, after_s=0.1), DONE, certificate=certificates.GOOD),
]

CASES = [*SLOW, *ENDLESS, *LENGTHS, *CONNECTIONS, *TLS, *HEADS, *BEHIND]
