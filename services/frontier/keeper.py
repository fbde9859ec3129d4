"""The keeper: what nobody else would notice. Promotes due domains, asks for URLs without a hint, reaps the dead, keeps the crawl.

Its rule is the protocol's: whoever is idle while the ledger says that there is work for it asks the ledger.
"""

from gossamer.clock import Clock
from gossamer.crash import step
from gossamer.ids import WorkerId
from gossamer.messages import Found, Url, encode
from gossamer.ports.broker import URLS, Broker
from gossamer.ports.ledger import Ledger
from gossamer.records import CrawlStatus
from gossamer.states import State
from services.frontier.router import send

PROMOTED_AT_ONCE = 500
ASKED_AT_ONCE = 1_000
SHED_AT_ONCE = 10_000
#: URLs in one hint: a page's worth.
HINT = 50


class Keeping:
    """One loop of the frontier."""

    def __init__(self, broker: Broker, ledger: Ledger, clock: Clock, *, tick_s: float, lease_s: float, max_open: int) -> None:
        self._broker, self._ledger, self._clock = broker, ledger, clock
        self._tick_s, self._lease_s, self._max_open = tick_s, lease_s, max_open

    async def run(self) -> None:
        housekeeping_at = 0.0
        while True:
            await self.promote()
            now = self._clock.monotonic()
            if now >= housekeeping_at:
                await self.housekeep()
                housekeeping_at = now + self._lease_s / 3
            elif await self._queues_are_empty():
                await self.ask(idle=True)
            await self._clock.sleep(self._tick_s)

    @step("frontier.promote")
    async def promote(self) -> None:
        routed: dict[WorkerId, list[Url]] = {}
        for routing in await self._ledger.promote(PROMOTED_AT_ONCE):
            routed.setdefault(routing.worker, []).append(routing.url)
        if routed:
            await send(self._broker, routed)

    async def housekeep(self) -> None:
        """Three times a lease: whoever is dead is noticed soon, and what has no hint gets one, also if queues never run empty."""
        await self._ledger.reap()
        await self._ledger.keep()
        await self._ledger.shed(self._max_open, SHED_AT_ONCE)
        await self.ask(idle=False)

    @step("frontier.ask")
    async def ask(self, *, idle: bool) -> None:
        crawl = await self._ledger.crawl()
        if crawl.status is not CrawlStatus.RUNNING or not (await self._ledger.counts()).states[State.WAITING]:
            return
        # No more than the workers have room for: the router would only be told *no room*, again and again.
        room = sum(crawl.rules.queue_size - worker.load for worker in await self._ledger.workers())
        if room <= 0:
            return
        waiting = [url for url, _ in await self._ledger.waiting(min(room, ASKED_AT_ONCE), idle=idle)]
        bodies = [encode(Found(tuple(waiting[start : start + HINT]))) for start in range(0, len(waiting), HINT)]
        await self._broker.publish(URLS, bodies)

    async def _queues_are_empty(self) -> bool:
        depths = await self._broker.depths()
        return not any(depth for name, depth in depths.items() if name == URLS or name.startswith("band."))
