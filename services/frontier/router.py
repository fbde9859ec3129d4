"""The router: draws a band, has the ledger route a batch of it, and hints at each URL in its worker's queue.

Draws only while some worker has room: the backlog stays in bands and ledger.
"""

import logging
from collections.abc import Sequence

from gossamer.answers import RouteAnswer, Unrouted
from gossamer.clock import Clock
from gossamer.crash import step
from gossamer.errors import MessageError
from gossamer.ids import WorkerId
from gossamer.messages import Ranked, Routed, Url, decode, encode
from gossamer.ports.broker import Broker, Delivery, Subscription, band_queue, worker_queue
from gossamer.ports.ledger import Ledger
from services.frontier.bands import BandTable
from services.frontier.draw import Draw

log = logging.getLogger("gossamer.frontier")

TAKE = 8
WAIT_S = 1.0
#: How long the router waits for room once no worker has any.
FULL_S = 0.05


class Routing:
    """One loop of the frontier."""

    def __init__(self, broker: Broker, ledger: Ledger, table: BandTable, draw: Draw, clock: Clock) -> None:
        self._broker, self._ledger, self._table, self._draw, self._clock = broker, ledger, table, draw, clock

    async def run(self, bands: Subscription) -> None:
        queues = self._table.queues()
        while True:
            if not await bands.wait(WAIT_S):
                continue
            band = self._draw.band([bands.ready(queue) > 0 for queue in queues])
            if band is None:
                continue
            deliveries = bands.take(band_queue(band), TAKE)
            full = await self.handle(deliveries)
            await bands.ack(deliveries)
            if full:
                await self._clock.sleep(FULL_S)

    async def handle(self, deliveries: Sequence[Delivery]) -> bool:
        """Whether the workers are full."""
        ranked = _ranked(deliveries)
        answers = await self.route(ranked)
        routed: dict[WorkerId, list[Url]] = {}
        for (url, _), answer in zip(ranked, answers, strict=True):
            if not isinstance(answer, Unrouted):
                routed.setdefault(answer, []).append(url)
        await send(self._broker, routed)
        return Unrouted.NO_ROOM in answers

    @step("frontier.route")
    async def route(self, ranked: Sequence[tuple[Url, int]]) -> list[RouteAnswer]:
        return await self._ledger.route([(url.id, priority) for url, priority in ranked]) if ranked else []


@step("frontier.send")
async def send(broker: Broker, routed: dict[WorkerId, list[Url]]) -> None:
    """One message a worker. A refused hint is no loss: the worker asks the ledger what it holds."""
    for worker, urls in routed.items():
        await broker.publish(worker_queue(worker), [encode(Routed(tuple(urls)))])


def _ranked(deliveries: Sequence[Delivery]) -> list[tuple[Url, int]]:
    ranked: list[tuple[Url, int]] = []
    for delivery in deliveries:
        try:
            ranked += decode(delivery.body, Ranked).urls
        except MessageError as error:
            log.warning("hint.unreadable", extra={"queue": delivery.queue, "error": str(error)})
    return ranked
