"""Which crawl a role serves: the one that it was told, or else the one that its stack's controller announced last."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from adapters.wiring import Servers, open_announcements, open_redis
from gossamer.errors import LedgerUnavailable, NoCrawl
from gossamer.ids import CrawlId
from gossamer.ports.ledger import Ledger
from gossamer.records import CrawlRecord, CrawlStatus

log = logging.getLogger("gossamer.role")

LOOK_EVERY_S: Final = 0.5


class Following:
    """Not patient: whoever waits for a crawl can still be told to end."""

    def __init__(self, servers: Servers, crawl: CrawlId | None, stopping: asyncio.Event) -> None:
        self._servers, self._crawl, self._stopping = servers, crawl, stopping
        self._announcements = open_announcements(servers)
        self._ledgers: dict[CrawlId, Ledger] = {}  # the one that was last looked at

    async def next(self) -> tuple[CrawlId, CrawlRecord] | None:
        """The crawl with work to do, once there is one; None if this process is to end before."""
        told: object = ""
        while not self._stopping.is_set():
            crawl = self._crawl or await self._current()
            if crawl is not None and (record := await self._record(crawl)) is not None:
                return crawl, record
            if told != crawl:
                log.info("role.waiting", extra={"crawl": crawl or "any"})
                told = crawl
            await self._pause()
        return None

    @asynccontextmanager
    async def serving(self, crawl: CrawlId) -> AsyncIterator[asyncio.Event]:
        """While it lasts; the event tells when it is time to leave: the process is to end, or another crawl was announced."""
        leaving = asyncio.Event()

        async def look() -> None:
            while not self._stopping.is_set() and (self._crawl or await self._current() or crawl) == crawl:
                await self._pause()
            leaving.set()

        looking = asyncio.create_task(look(), name="following")
        try:
            yield leaving
        finally:
            looking.cancel()
            await asyncio.wait((looking,))

    async def close(self) -> None:
        await self._close_ledgers()
        await self._announcements.close()

    async def _current(self) -> CrawlId | None:
        with suppress(LedgerUnavailable):  # it is asked again soon
            return await self._announcements.current()
        return None

    async def _record(self, crawl: CrawlId) -> CrawlRecord | None:
        if crawl not in self._ledgers:
            await self._close_ledgers()
            self._ledgers[crawl] = open_redis(self._servers, crawl)
        with suppress(NoCrawl, LedgerUnavailable):
            record = await self._ledgers[crawl].crawl()
            return record if record.status is not CrawlStatus.ENDED else None
        return None

    async def _close_ledgers(self) -> None:
        while self._ledgers:
            await self._ledgers.popitem()[1].close()

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_EVERY_S):
                await self._stopping.wait()
