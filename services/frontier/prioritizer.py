"""The prioritizer: takes hints from `urls`, gives each URL its priority, and hands it to the band of that priority."""

import logging
from collections.abc import Sequence

from gossamer.crash import step
from gossamer.errors import MessageError
from gossamer.messages import Found, Url, decode
from gossamer.ports.broker import URLS, Broker, Delivery, Subscription
from gossamer.ports.ledger import Ledger
from services.frontier.bands import BandTable, publish
from services.frontier.prioritizers import Prioritizer

log = logging.getLogger("gossamer.frontier")

TAKE = 64
WAIT_S = 1.0


class Prioritizing:
    """One loop of the frontier."""

    def __init__(self, broker: Broker, ledger: Ledger, table: BandTable, rank: Prioritizer) -> None:
        self._broker, self._ledger, self._table, self._rank = broker, ledger, table, rank

    async def run(self, hints: Subscription) -> None:
        while True:
            if await hints.wait(WAIT_S):
                deliveries = hints.take(URLS, TAKE)
                await self.handle(deliveries)
                await hints.ack(deliveries)  # only now: what is lost before comes again

    async def handle(self, deliveries: Sequence[Delivery]) -> None:
        ranked = self.prioritize(_urls(deliveries))
        if refused := await publish(self._broker, self._table, ranked):
            # Its priority stays in the ledger, so that asking brings the best first.
            await self._ledger.rank([(url.id, priority) for url, priority in refused])

    @step("frontier.prioritize")
    def prioritize(self, urls: Sequence[Url]) -> list[tuple[Url, int]]:
        return list(zip(urls, self._rank(urls), strict=True))


def _urls(deliveries: Sequence[Delivery]) -> list[Url]:
    urls: list[Url] = []
    for delivery in deliveries:
        try:
            urls += decode(delivery.body, Found).urls
        except MessageError as error:
            log.warning("hint.unreadable", extra={"queue": delivery.queue, "error": str(error)})
    return urls
