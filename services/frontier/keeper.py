"""The keeper: what nobody else would notice. Promotes due domains, asks for URLs without a hint, reaps the dead, keeps the crawl.

Its rule is the protocol's: whoever is idle while the ledger says that there is work for it asks the ledger.
"""

from collections.abc import Callable
from typing import Final

from gossamer.clock import Clock
from gossamer.crash import step
from gossamer.ids import WorkerId
from gossamer.messages import Found, Url, encode, in_hints
from gossamer.ports.broker import URLS, Broker
from gossamer.ports.ledger import Ledger
from gossamer.records import UNRANKED, CrawlStatus
from gossamer.states import State
from services.frontier.bands import BandTable, publish
from services.frontier.router import send

PROMOTED_AT_ONCE: Final = 500
ASKED_AT_ONCE: Final = 1_000
SHED_AT_ONCE: Final = 10_000
#: Ticks without anything in hand, after which the frontier counts as idle: a hint may be on its way to it.
IDLE_TICKS: Final = 3
#: Ticks until an idle frontier asks again when there was nothing to be had.
REST_TICKS: Final = 5


class Keeping:
    """One loop of the frontier."""

    def __init__(
        self,
        broker: Broker,
        ledger: Ledger,
        table: BandTable,
        clock: Clock,
        is_idle: Callable[[], bool],
        *,
        tick_s: float,
        lease_s: float,
        max_open: int,
    ) -> None:
        self._broker, self._ledger, self._table, self._clock, self._is_idle = broker, ledger, table, clock, is_idle
        self._tick_s, self._lease_s, self._max_open = tick_s, lease_s, max_open

    async def run(self) -> None:
        """Until the crawl has ended."""
        housekeeping_at, idle, rest = 0.0, 0, 0
        while True:
            await self.promote()
            now = self._clock.monotonic()
            idle, rest = idle + 1 if self._is_idle() else 0, max(rest - 1, 0)
            if now >= housekeeping_at:
                if await self._has_ended():
                    return
                await self.housekeep()
                housekeeping_at = now + self._lease_s / 3
            elif idle >= IDLE_TICKS and not rest and not await self.ask(idle=True):
                rest = REST_TICKS
            await self._clock.sleep(self._tick_s)

    async def _has_ended(self) -> bool:
        """A crawl that drains is ended here as well: its controller may be dead, and it would be kept for ever."""
        crawl = await self._ledger.crawl()
        if crawl.status is CrawlStatus.DRAINING:
            crawl = await self._ledger.end()
        return crawl.status is CrawlStatus.ENDED

    @step("frontier.promote")
    async def promote(self) -> None:
        routed: dict[WorkerId, list[tuple[Url, int]]] = {}
        for routing in await self._ledger.promote(PROMOTED_AT_ONCE):
            routed.setdefault(routing.worker, []).append((routing.url, routing.priority))
        if routed:
            await send(self._broker, routed)

    async def housekeep(self) -> None:
        """Three times a lease: whoever is dead is noticed soon, and what has no hint gets one, also if queues never run empty."""
        await self._ledger.reap()
        await self._ledger.keep()
        await self._ledger.shed(self._max_open, SHED_AT_ONCE)
        await self.ask(idle=False)

    @step("frontier.ask")
    async def ask(self, *, idle: bool) -> bool:
        """Whether there was something to hint at."""
        crawl = await self._ledger.crawl()
        if crawl.status is not CrawlStatus.RUNNING or not (await self._ledger.counts()).states[State.WAITING]:
            return False
        # No more than the workers have room for: the router would only be told *no room*, again and again.
        room = sum(crawl.rules.queue_size - worker.load for worker in await self._ledger.workers())
        if room <= 0:
            return False
        waiting = await self._ledger.waiting(min(room, ASKED_AT_ONCE), idle=idle)
        # What was ranked goes by that: the rank's owner told it, and this may be another frontier.
        await publish(self._broker, self._table, [pair for pair in waiting if pair[1] != UNRANKED])
        unranked = [url for url, priority in waiting if priority == UNRANKED]
        await self._broker.publish(URLS, [encode(Found(urls)) for urls in in_hints(unranked)])
        return bool(waiting)
