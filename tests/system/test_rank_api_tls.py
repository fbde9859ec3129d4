"""The rank API over TLS: its certificate is checked, before it is told anything."""

import ssl
from pathlib import Path

import pytest

from services.frontier.outside.answers import Failed
from services.frontier.outside.client import RankApi
from tests.hostile import certificates
from tests.hostile.peers import listening, replies
from tests.rank_server import response

ANSWER = '{"status_code": 200, "response": [{"status_code": 200, "domain": "a.example", "page_rank_decimal": 5}]}'


def context(certificate: str, folder: Path) -> ssl.SSLContext:
    chain = folder / "server.pem"
    chain.write_text(certificate + certificates.KEY, encoding="ascii")
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(chain)
    return made


async def test_a_certificate_that_nobody_vouches_for_is_a_failure_and_the_key_stays_here(tmp_path: Path) -> None:
    async with listening(replies(response(ANSWER)), context(certificates.GOOD, tmp_path)) as peer:
        api = RankApi(f"https://127.0.0.1:{peer.port}/api", "very-hidden")
        with pytest.raises(Failed, match="it can't be reached") as failed:
            await api.ask(["a.example"])
        await api.close()
    assert "CERTIFICATE_VERIFY_FAILED" in str(failed.value.__cause__)
    assert peer.requests == []
