"""Which crawl the roles of a stack are to serve: the one that its controller announced last.

In a stack of containers the roles are there before any crawl is, and stay for the next one. So they are not told a crawl's name
when they start, but look it up, on the Redis server that they share.
"""

from typing import Final

from redis import exceptions as errors

from adapters.distributed.cancelling import heedful
from adapters.distributed.ledger import connect
from gossamer.errors import LedgerUnavailable
from gossamer.ids import CrawlId

KEY: Final = "gossamer:current"
#: Renewed while a controller looks after the crawl; roles that serve it already need it no more.
KEPT_S: Final = 86_400


class RedisAnnouncements:
    def __init__(self, redis_url: str) -> None:
        self._client = connect(redis_url)

    async def announce(self, crawl: CrawlId) -> None:
        """Raises `LedgerUnavailable`."""
        try:
            await heedful(self._client.set(KEY, crawl, ex=KEPT_S))
        except (errors.RedisError, OSError) as error:
            raise LedgerUnavailable(f"Redis can't be used now: {error}") from error

    async def current(self) -> CrawlId | None:
        """Raises `LedgerUnavailable`."""
        try:
            name = await heedful(self._client.get(KEY))
        except (errors.RedisError, OSError) as error:
            raise LedgerUnavailable(f"Redis can't be used now: {error}") from error
        return None if name is None else CrawlId(name.decode() if isinstance(name, bytes) else name)

    async def close(self) -> None:
        await self._client.aclose()
