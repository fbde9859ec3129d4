"""The embedded engine: frontier and workers in this process, over SQLite, memory and a directory. No server.

The crawl ends when the ledger says so, and is watched for standing still. Killed at any moment it leaves a folder from which it can
be taken up again.
"""

import asyncio
import os
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from adapters.wiring import Ports, open_embedded
from gossamer.clock import Clock, SystemClock
from gossamer.errors import SettingsError
from gossamer.ids import CrawlId, Epoch, UrlId, WorkerId
from gossamer.module import CrawlInfo
from gossamer.options import parse_spec
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.parts import merge
from gossamer.patience import patient
from gossamer.ports.broker import URLS
from gossamer.ports.ledger import Ledger
from gossamer.records import Counts, CrawlRecord, CrawlStatus, Rules, UrlRecord
from gossamer.settings import Politeness, Settings
from services.controller import kept, seed
from services.controller.engines import Ended, ModuleTrouble, Snapshot, Stop
from services.frontier import frontier
from services.frontier.bands import BandTable
from services.frontier.prioritizers import prioritizer
from services.worker import plugins
from services.worker.addresses import url_refusal
from services.worker.equipment import Equipment, Noted, allowed_nets
from services.worker.links import registrable
from services.worker.plugins import Loaded
from services.worker.resolve import Dns, Resolver
from services.worker.worker import Worker

WATCH_S: Final = 0.25
#: How long open URLs may stand still, none of them waiting for a time, until the crawl counts as stalled.
STALLED_S: Final = 300.0
DOMAINS_SHOWN: Final = 20
NAMED: Final = 20
#: One read beyond a page's cap: what a request may receive at most.
READ_BYTES: Final = 16_384
OUT: Final = Path("out")


def check(settings: Settings) -> None:
    prioritizer(settings.frontier.prioritizer)
    plugins.load(map(parse_spec, settings.start.modules))
    for url in settings.start.seeds:
        if (reason := url_refusal(url, allowed_nets(settings))) is not None:
            hint = "" if reason.startswith("port") else "; --allow-net admits networks of your own"
            raise SettingsError(f"--seed {url}: {reason}{hint}")


async def open_engine(settings: Settings, crawl: CrawlId, folder: Path, *, resume: bool) -> "EmbeddedEngine":
    loaded = plugins.load(map(parse_spec, settings.start.modules))
    outputs = plugins.outputs(loaded, CrawlInfo(id=crawl, out_dir=OUT, worker=WorkerId(0), epoch=Epoch(0)))
    if not resume:
        plugins.refuse_taken(outputs)
    clock = SystemClock()
    ports = await open_embedded(folder, crawl, clock)
    rng = random.Random(settings.frontier.random_seed)
    ledger = patient(ports.ledger, clock, rng)
    await ledger.create(rules(settings))
    if resume:
        await ledger.resume(rules(settings), nobody_lives=True)  # the caller holds the lock of the folder
    return EmbeddedEngine(settings, crawl, ports, ledger, clock, rng, loaded, outputs)


def rules(settings: Settings) -> Rules:
    """What the ledger decides by."""
    budgets, patience = settings.budgets, settings.patience
    return Rules(
        max_pages=budgets.max_pages,
        max_bytes=budgets.max_bytes,
        request_bytes=budgets.max_page_bytes + READ_BYTES,
        queue_size=settings.frontier.queue_size,
        delay_s=settings.manners.delay_s,
        lease_s=patience.lease_s,
        owner_s=patience.owner_s,
        ttl_s=settings.storage.ttl_s,
        poison_deaths=patience.poison_deaths,
        domain_failures=patience.domain_failures,
        domain_rest_s=patience.domain_rest_s,
        domain_rests=patience.domain_rests,
        similarity=settings.fetching.similarity,
        settings=kept.to_text(settings),
    )


class EmbeddedEngine:
    """One run of one crawl."""

    def __init__(
        self,
        settings: Settings,
        crawl: CrawlId,
        ports: Ports,
        ledger: Ledger,
        clock: Clock,
        rng: random.Random,
        modules: Sequence[Loaded],
        outputs: Sequence[Path],
    ) -> None:
        self._settings, self._crawl, self._ports, self._ledger = settings, crawl, ports, ledger
        self._clock, self._rng, self._modules, self._outputs = clock, rng, modules, outputs
        self._noted = [Noted() for _ in range(settings.start.workers)]
        self._registrable = registrable if settings.manners.politeness is Politeness.DOMAIN else None

    async def run(self, watch: Callable[[Snapshot], None], stop: Stop) -> Ended:
        try:
            crawl = await self._ledger.crawl()
            if crawl.outcome is not CrawlOutcome.COMPLETE:
                crawl = await self._run(watch, stop)
            for path in self._outputs:
                await merge(path, self._are_stored)
            return await self._ended(crawl)
        finally:
            await self._ports.close()

    async def _run(self, watch: Callable[[Snapshot], None], stop: Stop) -> CrawlRecord:
        await self._declare()
        resolver = Resolver(Dns(), self._clock, allowed_nets(self._settings))
        workers = [self._worker(resolver, noted) for noted in self._noted]
        try:
            async with asyncio.TaskGroup() as tasks:
                roles = [tasks.create_task(worker.run(), name="worker") for worker in workers]
                ahead = tasks.create_task(self._frontier(), name="frontier")
                crawl = await self._until_it_ends(watch, stop)
                ahead.cancel()
                for role, worker in zip(roles, workers, strict=True):
                    role.cancel() if stop.now.is_set() else worker.drain()
            return crawl
        finally:
            await resolver.close()

    async def _declare(self) -> None:
        size = self._settings.frontier.queue_size
        bands = BandTable(self._settings.frontier.bands)
        await self._ports.broker.declare({URLS: size, **dict.fromkeys(bands.queues(), size)})

    async def _frontier(self) -> None:
        await frontier.run(self._ports.broker, self._ledger, self._settings, self._clock, self._rng)

    def _worker(self, resolver: Resolver, noted: Noted) -> Worker:
        settings = self._settings
        equipment = Equipment(
            crawl=self._crawl,
            settings=settings,
            ledger=self._ledger,
            broker=self._ports.broker,
            blobs=self._ports.blobs,
            clock=self._clock,
            rng=self._rng,
            modules=self._modules,
            out_dir=OUT,
            registrable=registrable,
            resolver=resolver,
        )
        return Worker(
            self._ledger,
            self._ports.broker,
            self._clock,
            partial(equipment, noted=noted),
            process=str(os.getpid()),
            parallel=settings.fetching.parallel,
            queue_size=settings.frontier.queue_size,
            lease_s=settings.patience.lease_s,
        )

    async def _until_it_ends(self, watch: Callable[[Snapshot], None], stop: Stop) -> CrawlRecord:
        """Seeds the crawl, then looks after it: the operator's wishes, its end, and whether it moves at all."""
        seeds = seed.seeds(self._settings.start.seeds, self._registrable)
        await seed.announce(self._ports.broker, await seed.add(self._ledger, seeds))
        moved_at, last = self._clock.monotonic(), None
        while not stop.now.is_set():
            if stop.gently.is_set():
                await self._ledger.stop(CrawlOutcome.STOPPED)
            crawl = await self._ledger.end()
            snapshot = await self._snapshot(crawl)
            watch(snapshot)
            if crawl.status is CrawlStatus.ENDED:
                return crawl
            now = self._clock.monotonic()
            if snapshot.counts != last or _waits_for_a_time(snapshot):
                moved_at, last = now, snapshot.counts
            elif now - moved_at > STALLED_S:
                await self._ledger.stop(CrawlOutcome.STALLED)
                return await self._ledger.crawl()
            await self._pause(stop)
        return await self._ledger.crawl()

    async def _pause(self, stop: Stop) -> None:
        hasty = stop.now if stop.gently.is_set() else stop.gently
        try:
            async with asyncio.timeout(WATCH_S):
                await hasty.wait()
        except TimeoutError:
            pass

    async def _snapshot(self, crawl: CrawlRecord) -> Snapshot:
        domains = await self._ledger.domains(DOMAINS_SHOWN)
        owned: dict[WorkerId, int] = {}
        for domain in domains:
            if domain.owner is not None and domain.out:
                owned[domain.owner] = owned.get(domain.owner, 0) + 1
        return Snapshot(
            status=crawl,
            counts=await self._ledger.counts(),
            workers=await self._ledger.workers(),
            domains=domains,
            queues=await self._ports.broker.depths(),
            domains_owned=owned,
            modules=self._trouble(),
            now=self._clock.now(),
        )

    async def _ended(self, crawl: CrawlRecord) -> Ended:
        counts = await self._ledger.counts()
        stalled = crawl.outcome is CrawlOutcome.STALLED
        return Ended(
            record=crawl,
            counts=counts,
            least_gap_s=self._least_gaps(),
            modules=self._trouble(),
            seeds_failed=_nothing_was_had(counts),
            stalled_on=await self._ledger.unfinished(NAMED) if stalled else (),
            outputs=[path for path in self._outputs if path.exists()],
        )

    def _least_gaps(self) -> dict[str, float]:
        gaps: dict[str, float] = {}
        for noted in self._noted:
            for domain, gap_s in noted.least_gap_s.items():
                gaps[domain] = min(gap_s, gaps.get(domain, gap_s))
        return gaps

    def _trouble(self) -> dict[str, ModuleTrouble]:
        """Of all workers together, by module."""
        trouble: dict[str, ModuleTrouble] = {}
        for noted in self._noted:
            for name, failures in noted.failures().items():
                if failures.count:
                    had = trouble.get(name, ModuleTrouble(0, "", switched_off=False))
                    trouble[name] = ModuleTrouble(
                        had.failures + failures.count, failures.last, switched_off=had.switched_off or bool(failures.off)
                    )
        return trouble

    async def _are_stored(self, ids: Sequence[UrlId]) -> list[bool]:
        return [_is_stored(record) for record in await self._ledger.records(ids)]


def _is_stored(record: UrlRecord | None) -> bool:
    return record is not None and record.facts is not None and record.facts.blob is not None


def _nothing_was_had(counts: Counts) -> bool:
    had = (Outcome.DONE, Outcome.DUPLICATE, Outcome.NO_CONTENT)
    return not counts.open and not any(counts.outcomes.get(outcome) for outcome in had)


def _waits_for_a_time(snapshot: Snapshot) -> bool:
    return any(
        domain.not_before > snapshot.now or (domain.due_at or 0.0) > snapshot.now or domain.next_at > snapshot.now
        for domain in snapshot.domains
    )
