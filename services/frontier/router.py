"""The router: draws a band, has the ledger route a batch of it, and hints at each URL in its worker's queue.

Draws only while some worker has room: the backlog stays in bands and ledger.
"""

from collections.abc import Sequence

from gossamer.answers import RouteAnswer, Unrouted
from gossamer.clock import Clock
from gossamer.crash import step
from gossamer.hints import Hints, read
from gossamer.ids import WorkerId
from gossamer.messages import Ranked, Routed, Url, encode, in_hints
from gossamer.ports.broker import Broker, band_queue, worker_queue
from gossamer.ports.ledger import Ledger
from services.frontier.bands import BandTable
from services.frontier.draw import Draw

#: Messages: some hundreds of URLs for the ledger to route in one go.
TAKE = 4
WAIT_S = 1.0
#: How long the router waits for room once no worker has any.
FULL_S = 0.05


class Routing:
    """One loop of the frontier."""

    def __init__(self, broker: Broker, ledger: Ledger, table: BandTable, draw: Draw, clock: Clock) -> None:
        self._broker, self._ledger, self._draw, self._clock = broker, ledger, draw, clock
        self._queues = table.queues()
        self.busy = False  #: something is in hand

    async def run(self, bands: Hints) -> None:
        while True:
            if not await bands.wait(WAIT_S):
                continue
            self.busy = True
            full = await self.turn(bands)
            self.busy = False
            if full:
                await self._clock.sleep(FULL_S)

    async def turn(self, bands: Hints) -> bool:
        """One draw. Whether the workers are full."""
        band = self._draw.band([bands.ready(queue) > 0 for queue in self._queues])
        if band is None:
            return False
        deliveries = bands.take(band_queue(band), TAKE)
        ranked, unreadable = read(deliveries, Ranked)
        full = await self.handle([pair for each in ranked for pair in each.urls])
        await bands.done(deliveries, unreadable)
        return full

    async def handle(self, ranked: Sequence[tuple[Url, int]]) -> bool:
        """Whether the workers are full."""
        answers = await self.route(ranked)
        routed: dict[WorkerId, list[tuple[Url, int]]] = {}
        for pair, answer in zip(ranked, answers, strict=True):
            if not isinstance(answer, Unrouted):
                routed.setdefault(answer, []).append(pair)
        await send(self._broker, routed)
        return Unrouted.NO_ROOM in answers

    @step("frontier.route")
    async def route(self, ranked: Sequence[tuple[Url, int]]) -> list[RouteAnswer]:
        return await self._ledger.route([(url.id, priority) for url, priority in ranked]) if ranked else []


@step("frontier.send")
async def send(broker: Broker, routed: dict[WorkerId, list[tuple[Url, int]]]) -> None:
    """A refused hint is no loss: the worker asks the ledger what it holds."""
    for worker, urls in routed.items():
        await broker.publish(worker_queue(worker), [encode(Routed(each)) for each in in_hints(urls)])
