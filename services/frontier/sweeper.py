"""The sweeper: deletes what crawls that are gone left in the blob store. One frontier of all does it at a time, by lease."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from gossamer.clock import Clock
from gossamer.errors import GossamerError
from gossamer.ids import CrawlId

log = logging.getLogger("gossamer.frontier")

#: So often within a crawl's time to live; what is left behind outlives it by as much at most.
SWEEPS: Final = 12
LONGEST_S: Final = 300.0


@asynccontextmanager
async def sweeping(sweep: Callable[[], Awaitable[Sequence[CrawlId]]], ttl_s: float, clock: Clock) -> AsyncIterator[None]:
    """While it lasts, the store is swept now and then."""

    async def again_and_again() -> None:
        while True:
            try:
                if swept := await sweep():
                    log.info("blobs.swept", extra={"crawls": len(swept)})
            except GossamerError as error:
                log.info("blobs.unswept", extra={"error": str(error)})  # the next time will do
            await clock.sleep(min(ttl_s / SWEEPS, LONGEST_S))

    task = asyncio.create_task(again_and_again(), name="sweeper")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))
