"""The prioritizer: takes hints from `urls`, gives each URL its priority, and hands it to the band of that priority."""

from collections.abc import Sequence

from gossamer.crash import step
from gossamer.hints import Hints, read
from gossamer.messages import Found, Url
from gossamer.ports.broker import URLS, Broker
from gossamer.ports.ledger import Ledger
from gossamer.prioritizer import Prioritizer
from services.frontier.bands import BandTable, publish

TAKE = 16
#: What the ledger is told in one go.
RANKED_AT_ONCE = 1_000
WAIT_S = 1.0


class Prioritizing:
    """One loop of the frontier."""

    def __init__(self, broker: Broker, ledger: Ledger, table: BandTable, rank: Prioritizer) -> None:
        self._broker, self._ledger, self._table, self._rank = broker, ledger, table, rank
        self.busy = False  #: something is in hand

    async def run(self, hints: Hints) -> None:
        while True:
            if await hints.wait(WAIT_S):
                self.busy = True
                await self.turn(hints)
                self.busy = False

    async def turn(self, hints: Hints) -> None:
        """One batch of hints."""
        deliveries = hints.take(URLS, TAKE)
        found, unreadable = read(deliveries, Found)
        await self.handle([url for each in found for url in each.urls])
        await hints.done(deliveries, unreadable)  # only now: what is lost before comes again

    async def handle(self, urls: Sequence[Url]) -> None:
        if refused := await publish(self._broker, self._table, self.prioritize(urls)):
            # Its priority stays in the ledger, so that asking brings the best first.
            for start in range(0, len(refused), RANKED_AT_ONCE):
                portion = refused[start : start + RANKED_AT_ONCE]
                await self._ledger.rank([(url.id, priority) for url, priority in portion])

    @step("frontier.prioritize")
    def prioritize(self, urls: Sequence[Url]) -> list[tuple[Url, int]]:
        return list(zip(urls, self._rank(urls), strict=True))
