"""Sweeping a blob store that many crawls share: what belongs to a crawl that no ledger knows any more is deleted.

One sweeper at a time, by a lease that all crawls of the Redis server share. A crawl is gone when its ledger is: that has its own
time to live there, renewed while the crawl lives.
"""

from collections.abc import Sequence
from typing import Final

from adapters.distributed.blobs import S3Blobs
from adapters.distributed.ledger import RedisLedger, connect
from gossamer.errors import NoCrawl
from gossamer.ids import CrawlId

#: The id under which the lease is kept. No crawl can have it: theirs are in lower case.
ALL: Final = CrawlId("ALL")
#: A sweeper that died is followed by the next after so long.
LEASE_S: Final = 60.0


class Sweeper:
    """`Ports.sweep` of the distributed engine."""

    def __init__(self, redis_url: str, blobs: S3Blobs, holder: str) -> None:
        self._client, self._blobs, self._holder = connect(redis_url), blobs, holder

    async def __call__(self) -> Sequence[CrawlId]:
        """Raises `EngineUnavailable` if one of the servers is away; the next sweep will do."""
        everybody = RedisLedger(self._client, ALL)
        if not await everybody.lease("sweeper", self._holder, LEASE_S):
            return []
        try:
            return await self._blobs.sweep(self._is_gone)
        finally:  # also when its frontier ends in the middle
            await everybody.lease("sweeper", self._holder, 0)  # over: the next one need not wait

    async def close(self) -> None:
        await self._client.aclose()

    async def _is_gone(self, crawl: CrawlId) -> bool:
        try:
            await RedisLedger(self._client, crawl).crawl()
        except NoCrawl:
            return True
        return False
