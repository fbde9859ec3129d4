"""One sweeper at a time; and one that is stopped in the middle keeps nobody waiting."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable

from adapters.distributed.ledger import RedisLedger, connect
from adapters.distributed.sweeping import ALL, Sweeper
from gossamer.ids import CrawlId
from tests.servers import redis_url


class Endless:
    """A blob store whose sweep takes for ever."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def sweep(self, gone: Callable[[CrawlId], Awaitable[bool]]) -> list[CrawlId]:
        self.begun.set()
        await asyncio.Event().wait()
        return []


async def test_a_sweep_that_is_cut_short_lets_the_next_one_begin() -> None:
    blobs = Endless()
    one, other = (Sweeper(redis_url(), blobs, secrets.token_hex(8)) for _ in range(2))  # type: ignore[arg-type]
    task = asyncio.create_task(one())
    try:
        await blobs.begun.wait()
        assert await other() == []  # it is another's turn

        task.cancel()
        await asyncio.wait((task,))

        client = connect(redis_url())
        assert await RedisLedger(client, ALL).lease("sweeper", "somebody", 0)
        await client.aclose()
    finally:
        task.cancel()
        await asyncio.wait((task,))
        await one.close()
        await other.close()
