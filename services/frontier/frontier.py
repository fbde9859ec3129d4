"""The frontier role: its loops over one broker and one ledger. If one of them dies, so does the role."""

import asyncio
import random

from gossamer.clock import Clock
from gossamer.hints import Hints
from gossamer.ports.broker import URLS, Broker
from gossamer.ports.ledger import Ledger
from gossamer.settings import Settings
from services.frontier.bands import BandTable
from services.frontier.draw import Draw
from services.frontier.keeper import Keeping
from services.frontier.prioritizer import Prioritizing
from services.frontier.ranking import Ranking
from services.frontier.router import Routing

PREFETCH = 64


async def run(broker: Broker, ledger: Ledger, settings: Settings, clock: Clock, rng: random.Random, name: str) -> None:
    """Until the crawl has ended, or this is cancelled. `name` tells this frontier from others."""
    table, size = BandTable(settings.frontier.bands), settings.frontier.queue_size
    hints = Hints(broker, {URLS: size}, PREFETCH, clock)
    bands = Hints(broker, dict.fromkeys(table.queues(), size), PREFETCH, clock)
    ranking = Ranking(settings.frontier, ledger, clock, name, lease_s=settings.patience.lease_s)
    prioritizing = Prioritizing(broker, ledger, table, ranking)
    routing = Routing(broker, ledger, table, Draw(table, rng, settings.frontier.draw), clock)

    def is_idle() -> bool:
        """Nothing is in our hands, nor on its way into them."""
        waiting = hints.ready(URLS) or any(bands.ready(queue) for queue in table.queues())
        return not waiting and not prioritizing.busy and not routing.busy

    keeping = Keeping(
        broker,
        ledger,
        table,
        clock,
        is_idle,
        tick_s=settings.patience.tick_s,
        lease_s=settings.patience.lease_s,
        max_open=settings.budgets.max_open,
    )
    try:
        async with asyncio.TaskGroup() as tasks:
            loops = [
                tasks.create_task(prioritizing.run(hints), name="prioritizer"),
                tasks.create_task(routing.run(bands), name="router"),
                tasks.create_task(ranking.run(), name="ranking"),
            ]
            await keeping.run()
            for loop in loops:
                loop.cancel()
    finally:
        await hints.close()
        await bands.close()
