"""A worker's lease, by its own clock: renewed in time, and no request without it.

The ledger fences a worker whose lease is over; but it can't call back a request that is in flight, nor reach a worker that can't
reach it. So a worker doubts itself first: with half of its lease gone since it last was renewed it dials no more, and when it is
over it cuts its requests. Only a request that goes out at the very moment in which the process is frozen escapes this.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from gossamer.clock import Clock
from gossamer.errors import Fenced
from gossamer.ports.ledger import Ledger
from gossamer.records import CrawlRecord, Seat


class Lease:
    """For one seat."""

    def __init__(self, ledger: Ledger, seat: Seat, clock: Clock, lease_s: float, taken_at: float) -> None:
        self.seat = seat
        self._ledger, self._clock, self._lease_s = ledger, clock, lease_s
        self._renewed_at = taken_at  # when it was asked for, by the monotonic clock: the ledger counts from later on

    def check(self) -> None:
        """To be called before a request goes out. Raises `Fenced`."""
        if self._clock.monotonic() - self._renewed_at > self._lease_s / 2:
            raise Fenced("half of the lease is over, and it could not be renewed")

    async def keep(self, renewed: Callable[[CrawlRecord], Awaitable[None]]) -> None:
        """For ever, telling `renewed` each time how the crawl stands. Raises `Fenced` when the lease is over.

        What `renewed` does with it is cut short when it takes too long: a ledger that is away just then would keep this going on.
        """
        while True:
            await self._clock.sleep(self._lease_s / 3)
            asked_at = self._clock.monotonic()
            left_s = self._renewed_at + self._lease_s - asked_at
            try:
                async with asyncio.timeout(max(left_s, 0)):
                    crawl = await self._ledger.renew(self.seat)
            except TimeoutError:
                raise Fenced("the lease is over, and the ledger could not be reached") from None
            self._renewed_at = asked_at
            with suppress(TimeoutError):
                async with asyncio.timeout(self._lease_s / 6):
                    await renewed(crawl)
