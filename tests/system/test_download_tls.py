"""The downloader over TLS: a good certificate is accepted. Bad ones, and handshakes that fail, are in `tests/hostile`."""

from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path

import pytest

from gossamer.clock import SystemClock
from services.worker.download import READ_BYTES, Answer, Downloader, Request
from services.worker.resolve import Record, Resolver
from tests.hostile import certificates
from tests.hostile.peers import listening, replies
from tests.hostile.playing import server_context

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


def asking(port: int, *, host: str = "h.test", deadline_s: float = 5.0) -> Request:
    return Request(f"https://{host}:{port}/", CAP + READ_BYTES, CAP, deadline_s, types=True)


@pytest.mark.parametrize("host", ["h.test", "h.test.", "a.wild.test"])
async def test_a_good_certificate_is_accepted_and_the_connection_kept(downloader: Downloader, host: str) -> None:
    async with listening(replies(WHOLE), server_context(certificates.GOOD)) as peer:
        for _ in range(2):
            answer = await downloader.fetch(asking(peer.port, host=host))
            assert isinstance(answer, Answer)
            assert answer.body == PAGE

    assert peer.connections == 1
