"""The embedded engine: frontier and workers in this process, over SQLite, memory and a directory. No server.

Killed at any moment it leaves a folder from which it can be taken up again.
"""

import asyncio
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from adapters.wiring import Ports, open_embedded
from gossamer.clock import Clock, SystemClock
from gossamer.ids import CrawlId
from gossamer.outcomes import CrawlOutcome
from gossamer.records import CrawlRecord
from gossamer.settings import Settings
from services.controller.engines import Ended, Snapshot, Stop, beginning
from services.controller.engines.beginning import OUT, Plugins
from services.controller.engines.oversight import Oversight
from services.frontier import frontier
from services.role.garbage import keep_all
from services.role.registrable import registrable
from services.worker.addresses import allowed_nets, own_servers
from services.worker.equipment import Equipment
from services.worker.resolve import Dns, Lookup, Resolver

check = beginning.check


async def open_engine(settings: Settings, crawl: CrawlId, folder: Path, *, resume: bool) -> "EmbeddedEngine":
    plugins = beginning.load_plugins(settings, crawl, resume=resume)
    clock = SystemClock()
    ports = await open_embedded(folder, crawl, clock)
    rules = beginning.rules(settings)
    try:
        await ports.ledger.create(rules)
        if resume:
            await ports.ledger.resume(rules, nobody_lives=True)  # the caller holds the lock of the folder
    except BaseException:
        await ports.close()
        raise
    return EmbeddedEngine(settings, crawl, ports, clock, plugins)


class EmbeddedEngine:
    """One run of one crawl: all roles in this process, whatever the ports are."""

    def __init__(
        self,
        settings: Settings,
        crawl: CrawlId,
        ports: Ports,
        clock: Clock,
        plugins: Plugins,
        lookup: Callable[[], Lookup] = Dns,
    ) -> None:
        """`lookup`: makes what looks names up, in the loop that it will run in."""
        self._lookup = lookup
        self._settings, self._crawl, self._ports, self._clock, self._plugins = settings, crawl, ports, clock, plugins
        self._oversight = Oversight(settings, ports, clock, plugins.outputs)

    async def run(self, watch: Callable[[Snapshot], None], stop: Stop) -> Ended:
        try:
            crawl = await self._ports.ledger.crawl()
            if crawl.outcome is not CrawlOutcome.COMPLETE:
                crawl = await self._run(watch, stop)
            return await self._oversight.ended(crawl, cut=stop.now.is_set())
        finally:
            await self._ports.close()

    async def _run(self, watch: Callable[[Snapshot], None], stop: Stop) -> CrawlRecord:
        keep_all()
        storage = self._settings.storage
        own = own_servers((storage.rabbitmq_url, storage.redis_url, storage.s3_url))
        resolver = Resolver(self._lookup(), self._clock, allowed_nets(self._settings), own)
        equipment = self._equipment(resolver)
        workers = [equipment.worker(str(os.getpid())) for _ in range(self._settings.start.workers)]
        try:
            await self._oversight.begin(stop)
            async with asyncio.TaskGroup() as tasks:
                roles = [tasks.create_task(worker.run(), name="worker") for worker in workers]
                ahead = tasks.create_task(self._frontier(), name="frontier")
                crawl = await self._oversight.until_it_ends(watch, stop)
                ahead.cancel()
                for worker in workers:
                    worker.drain()
                at_once = tasks.create_task(_end_when(stop.now, roles))
                await asyncio.wait(roles)
                at_once.cancel()
            return crawl
        finally:
            await resolver.close()

    async def _frontier(self) -> None:
        rng = random.Random(self._settings.frontier.random_seed)
        await frontier.run(self._ports.broker, self._ports.ledger, self._settings, self._clock, rng, str(os.getpid()))

    def _equipment(self, resolver: Resolver) -> Equipment:
        return Equipment(
            crawl=self._crawl,
            settings=self._settings,
            ledger=self._ports.ledger,
            broker=self._ports.broker,
            blobs=self._ports.blobs,
            clock=self._clock,
            modules=self._plugins.modules,
            out_dir=OUT,
            registrable=registrable,
            resolver=resolver,
            pauses=self._ports.pauses,
        )


async def _end_when(event: asyncio.Event, roles: Sequence["asyncio.Task[None]"]) -> None:
    """What drains may wait for something that is away, or full, for hours."""
    await event.wait()
    for role in roles:
        role.cancel()
