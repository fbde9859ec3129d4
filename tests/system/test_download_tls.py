"""The downloader over TLS: certificates are checked, handshakes are bounded, connections are kept."""

import ssl
from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path

import pytest

from gossamer.clock import SystemClock
from gossamer.outcomes import Outcome
from services.worker.download import READ_BYTES, Answer, Downloader, Request, Trouble
from services.worker.resolve import Record, Resolver
from tests.system import certificates
from tests.system.peers import Connection, Script, listening, replies, silent, spells, until

CAP = 500_000
PAGE = b"<html><title>t</title><p>hello</p></html>"
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 41\r\n\r\n" + PAGE


async def anywhere(name: str) -> list[Record]:
    return [Record("127.0.0.1", 300)]


@pytest.fixture
async def downloader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Downloader]:
    """One that trusts the tests' own authority, told in the usual way."""
    authorities = tmp_path / "authorities.pem"
    authorities.write_text(certificates.CA, encoding="ascii")
    monkeypatch.setenv("SSL_CERT_FILE", str(authorities))
    clock = SystemClock()
    made = Downloader(Resolver(anywhere, clock, [ip_network("127.0.0.0/8")]), clock, user_agent="x")
    yield made
    await made.close()


def context(certificate: str, folder: Path) -> ssl.SSLContext:
    """A server's, with this certificate."""
    chain = folder / "server.pem"
    chain.write_text(certificate + certificates.KEY, encoding="ascii")
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(chain)
    return made


def asking(port: int, *, host: str = "h.test", deadline_s: float = 5.0) -> Request:
    return Request(f"https://{host}:{port}/", CAP + READ_BYTES, CAP, deadline_s, types=True)


@pytest.mark.parametrize("host", ["h.test", "h.test.", "a.wild.test"])
async def test_a_good_certificate_is_accepted_and_the_connection_kept(downloader: Downloader, tmp_path: Path, host: str) -> None:
    async with listening(replies(WHOLE), context(certificates.GOOD, tmp_path)) as peer:
        for _ in range(2):
            answer = await downloader.fetch(asking(peer.port, host=host))
            assert isinstance(answer, Answer)
            assert answer.body == PAGE

    assert peer.connections == 1


@pytest.mark.parametrize(
    ("certificate", "host"),
    [
        pytest.param(certificates.SELF_SIGNED, "h.test", id="self-signed"),
        pytest.param(certificates.EXPIRED, "h.test", id="expired"),
        pytest.param(certificates.NOT_YET_VALID, "h.test", id="not yet valid"),
        pytest.param(certificates.ELSEWHERE, "h.test", id="of another host"),
        pytest.param(certificates.UNKNOWN_AUTHORITY, "h.test", id="of an unknown authority"),
        pytest.param(certificates.GOOD, "a.b.wild.test", id="with a wildcard for two labels"),
    ],
)
async def test_a_bad_certificate_ends_it_for_good(downloader: Downloader, tmp_path: Path, certificate: str, host: str) -> None:
    async with listening(replies(WHOLE), context(certificate, tmp_path)) as peer:
        result = await downloader.fetch(asking(peer.port, host=host))

    assert isinstance(result, Trouble)
    assert (result.outcome, result.again) == (Outcome.TLS_FAILED, False)
    assert not peer.requests


RANDOM = bytes(32)
SERVER_HELLO = b"\x02\x00\x00\x26%s" + RANDOM + b"\x00\xc0\x2b\x00"


def record(version: bytes, message: bytes) -> bytes:
    return b"\x16" + version + len(message).to_bytes(2, "big") + message


def at_once(data: bytes) -> Script:
    """Sends these bytes to whoever connects."""

    async def script(connection: Connection) -> None:
        await connection.send(data)
        await connection.hold()

    return script


TLS_1_0, TLS_1_2 = b"\x03\x01", b"\x03\x03"
A_MEGABYTE = b"\x0b\x10\x00\x00\x0f\xff\xfd" + bytes(16_000)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(at_once(WHOLE), id="plain HTTP"),
        pytest.param(at_once(b"\x15\x03\x03\x00\x02\x02\x28"), id="a fatal alert"),
        pytest.param(at_once(record(TLS_1_0, SERVER_HELLO % TLS_1_0)), id="TLS 1.0"),
        pytest.param(
            at_once(record(TLS_1_2, SERVER_HELLO % TLS_1_2) + record(TLS_1_2, A_MEGABYTE) * 60), id="a certificate of a megabyte"
        ),
    ],
)
async def test_a_handshake_that_fails_may_be_tried_again(downloader: Downloader, script: Script) -> None:
    async with listening(script) as peer:
        result = await downloader.fetch(asking(peer.port))
        await until(lambda: peer.open == 0)

    assert isinstance(result, Trouble)
    assert (result.outcome, result.again) == (Outcome.TLS_FAILED, True)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(silent, id="never"),
        pytest.param(spells(record(TLS_1_2, SERVER_HELLO % TLS_1_2), 0.05, asked=False), id="byte by byte"),
    ],
)
async def test_a_handshake_that_never_ends_is_ended_by_the_deadline(downloader: Downloader, script: Script) -> None:
    async with listening(script) as peer:
        result = await downloader.fetch(asking(peer.port, deadline_s=0.4))

    assert isinstance(result, Trouble)
    assert (result.outcome, result.again) == (Outcome.TIMEOUT, True)


async def test_a_body_that_ends_without_goodbye_ended_early(downloader: Downloader, tmp_path: Path) -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.send(WHOLE[:-10])  # and the peer aborts

    async with listening(script, context(certificates.GOOD, tmp_path)) as peer:
        result = await downloader.fetch(asking(peer.port))

    assert isinstance(result, Trouble)
    assert (result.outcome, result.again) == (Outcome.MALFORMED, True)
