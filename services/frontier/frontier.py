"""The frontier role: three loops over one broker and one ledger. If one of them dies, so does the role."""

import asyncio
import random

from gossamer.clock import Clock
from gossamer.ports.broker import URLS, Broker
from gossamer.ports.ledger import Ledger
from gossamer.settings import Settings
from services.frontier.bands import BandTable
from services.frontier.draw import Draw
from services.frontier.keeper import Keeping
from services.frontier.prioritizer import Prioritizing
from services.frontier.prioritizers import prioritizer
from services.frontier.router import Routing

PREFETCH = 64


async def run(broker: Broker, ledger: Ledger, settings: Settings, clock: Clock, rng: random.Random) -> None:
    """Until it is cancelled."""
    table = BandTable(settings.frontier.bands)
    hints = await broker.subscribe([URLS], PREFETCH)
    bands = await broker.subscribe(table.queues(), PREFETCH)
    keeping = Keeping(
        broker,
        ledger,
        clock,
        tick_s=settings.patience.tick_s,
        lease_s=settings.patience.lease_s,
        max_open=settings.budgets.max_open,
    )
    try:
        async with asyncio.TaskGroup() as tasks:
            rank = prioritizer(settings.frontier.prioritizer)
            tasks.create_task(Prioritizing(broker, ledger, table, rank).run(hints), name="prioritizer")
            tasks.create_task(Routing(broker, ledger, table, Draw(table, rng), clock).run(bands), name="router")
            tasks.create_task(keeping.run(), name="keeper")
    finally:
        await hints.close()
        await bands.close()
