"""`python -m services.frontier.api`, beside a crawl on either engine, asked by the client that a crawl has for rank APIs."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from adapters.distributed.ledger import RedisLedger
from adapters.embedded.ledger import SqliteLedger
from adapters.wiring import LEDGER_FILE
from gossamer.clock import SystemClock
from gossamer.ids import CrawlId
from gossamer.ports.ledger import Ledger
from services.frontier.outside.answers import Failed
from services.frontier.outside.client import RankApi
from tests.contract.test_domain_ranks import crawled
from tests.servers import redis_url
from tests.servers.ports import free_ports
from tests.system.web import PATIENCE_S, ROOT


@asynccontextmanager
async def a_crawl(engine: str, folder: Path) -> AsyncIterator[tuple[Ledger, list[str]]]:
    """Its ledger, and the words that lead to it."""
    crawl = CrawlId(f"test-{uuid4().hex}")
    ledger: Ledger
    if engine == "external":
        ledger, words = RedisLedger(redis_url(), crawl), ["--crawl", crawl]
    else:
        ledger, words = SqliteLedger(folder / LEDGER_FILE, SystemClock()), ["--state", str(folder)]
    try:
        yield ledger, words
    finally:
        await ledger.close()


@contextmanager
def served(words: list[str], port: int, environ: Mapping[str, str]) -> Iterator[None]:
    command = [sys.executable, "-m", "services.frontier.api", *words, "--address", f"127.0.0.1:{port}"]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environ}, stderr=subprocess.PIPE, text=True)
    try:
        yield
    finally:
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE_S)
    assert said == "", "nothing went wrong, and no key was logged"


async def until_it_knows(port: int, domains: int) -> None:
    async with httpx.AsyncClient(trust_env=False) as client, asyncio.timeout(PATIENCE_S):
        while True:
            try:
                answer = await client.get(f"http://127.0.0.1:{port}/health")
                if answer.json()["domains"] == domains:
                    assert answer.status_code == 200
                    return
            except httpx.HTTPError:
                pass
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("engine", ["embedded", "external"])
async def test_one_crawl_can_rank_by_another(engine: str, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    servers = {"GOSSAMER_RABBITMQ_URL": "amqp://h", "GOSSAMER_REDIS_URL": redis_url(), "GOSSAMER_S3_URL": "http://h/b"}
    async with a_crawl(engine, tmp_path) as (ledger, words):
        await crawled(ledger)
        with served(words, port, {**servers, "API_KEY": "very-hidden"}):
            await until_it_knows(port, 4)
            url = f"http://127.0.0.1:{port}/api/v1.0/getPageRank"
            api, stranger = RankApi(url, "very-hidden"), RankApi(url, None)
            found = await api.ask(["hub.example", "seed.example", "no.example"])
            with pytest.raises(Failed, match="status 401"):
                await stranger.ask(["hub.example"])
            await api.close()
            await stranger.close()

    assert found == {"hub.example": 0, "seed.example": 100, "no.example": 100}
