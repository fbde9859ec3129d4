"""The adapters under test: a new engine joins these lists and nothing else."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from adapters.distributed.ledger import RedisLedger, connect
from adapters.embedded.ledger import SqliteLedger
from gossamer.clock import ManualClock
from gossamer.ids import CrawlId
from gossamer.ports.ledger import Ledger
from gossamer.testing.harness import LedgerHarness
from tests.servers import redis_url


class SqliteHarness:
    """A ledger in a file of its own, and its clock."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="gossamer-ledger-"))
        self._clock = ManualClock()
        self.ledger: Ledger = SqliteLedger(self._folder / "ledger.sqlite", self._clock)

    def now(self) -> float:
        return self._clock.now()

    async def advance(self, seconds: float) -> None:
        self._clock.advance(seconds)

    async def close(self) -> None:
        await self.ledger.close()
        shutil.rmtree(self._folder)


class RedisHarness:
    """A ledger on the server that all tests share, under a name of its own, with the clock in the test's hand."""

    def __init__(self, url: str | None = None) -> None:
        self.crawl = CrawlId(f"test-{uuid4().hex}")
        self.client = connect(url or redis_url())
        self.clock = ManualClock()
        self.ledger: Ledger = RedisLedger(self.client, self.crawl, self.clock)

    def now(self) -> float:
        return self.clock.now()

    async def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    async def keys(self) -> list[str]:
        """All that the server has of this crawl."""
        return [key.decode() async for key in self.client.scan_iter(match=f"gossamer:{{{self.crawl}}}:*", count=1000)]

    async def close(self) -> None:
        await self.ledger.close()
        if keys := await self.keys():
            await self.client.unlink(*keys)
        await self.client.aclose()


LEDGERS: dict[str, Callable[[], LedgerHarness]] = {"sqlite": SqliteHarness, "redis": RedisHarness}
