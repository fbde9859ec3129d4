"""The external engine: frontier and workers as processes of this machine, over RabbitMQ, Redis and S3 servers.

The crawl lives on the servers: whatever dies here, even the whole machine, it can be taken up again from any place that reaches
them and has the crawl's folder. More workers may be started anywhere (`python -m services.worker --crawl ID`), and ended, at any
time.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from adapters.wiring import Ports, Servers, open_announcements, open_external, open_redis, servers
from gossamer.clock import Clock, SystemClock
from gossamer.errors import BrokerUnavailable, LedgerUnavailable, NoCrawl, SettingsError
from gossamer.ids import CrawlId
from gossamer.outcomes import CrawlOutcome
from gossamer.records import CrawlRecord, CrawlStatus, Seat
from gossamer.settings import BY_KEY, PREFIX, Roles, Settings
from services.controller.engines import CUT_S, Ended, Snapshot, Stop, beginning
from services.controller.engines.elsewhere import Elsewhere
from services.controller.engines.oversight import Oversight
from services.controller.engines.processes import Crew
from services.role.garbage import keep_all

log = logging.getLogger("gossamer.engine")

LOOK_EVERY_S: Final = 0.25


class External:
    """`Maker` of engines on the servers that settings and environment name."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def check(self, settings: Settings) -> None:
        beginning.check(settings)
        servers(settings.storage, self._environ)
        if settings.storage.ttl_s < settings.patience.lease_s:  # the keeper renews the one three times in the other
            raise SettingsError("--ttl is shorter than --lease: the crawl would be forgotten while it runs")

    async def open_engine(self, settings: Settings, crawl: CrawlId, folder: Path, *, resume: bool) -> "ExternalEngine":
        out = Path(self._environ.get("OUT", "").strip() or beginning.OUT)
        plugins = beginning.load_plugins(settings, crawl, resume=resume, out=out)
        clock, at = SystemClock(), servers(settings.storage, self._environ)
        ports = open_external(at, crawl, settings, clock)
        try:
            for check in ports.checks.values():  # before anything is begun: an address that is wrong is said at once
                for warning in await check() or ():
                    log.warning("%s", warning)
            if settings.storage.roles is Roles.ELSEWHERE:
                await _refuse_a_second(at, crawl)
            rules = beginning.rules(settings)
            await ports.ledger.create(rules)
            if resume:
                await ports.ledger.resume(rules)
        except BaseException:
            await ports.close()
            raise
        crew: Crew | Elsewhere
        if settings.storage.roles is Roles.ELSEWHERE:
            crew = Elsewhere(open_announcements(at), crawl, clock)
        else:
            key = settings.frontier.rank_api_key
            crew = Crew(
                crawl,
                folder,
                _environment(at, self._environ),
                clock,
                workers=settings.start.workers,
                for_frontiers={BY_KEY["rank_api_key"].variable: key} if key else {},
            )
        return ExternalEngine(ports, clock, crew, Oversight(settings, ports, clock, plugins.outputs))


class ExternalEngine:
    """One run of one crawl."""

    def __init__(self, ports: Ports, clock: Clock, crew: "Crew | Elsewhere", oversight: Oversight) -> None:
        self._ports, self._clock, self._crew, self._oversight = ports, clock, crew, oversight

    async def run(self, watch: Callable[[Snapshot], None], stop: Stop) -> Ended:
        try:
            crawl = await self._ports.ledger.crawl()
            if crawl.outcome is not CrawlOutcome.COMPLETE:
                crawl = await self._run(watch, stop)
            cut = stop.now.is_set()
            return await self._oversight.ended(crawl, await self._at_work(cut=cut), cut=cut)
        finally:
            await self._ports.close()

    async def _run(self, watch: Callable[[Snapshot], None], stop: Stop) -> CrawlRecord:
        keep_all()
        await self._oversight.begin(stop)
        try:
            async with asyncio.TaskGroup() as tasks:
                self._crew.start(tasks)
                crawl = await self._oversight.until_it_ends(watch, stop)
                await self._crew.end(now=stop.now.is_set())
        finally:
            self._crew.kill()  # whoever is left, because something failed here
        if not stop.now.is_set():
            await self._until_nobody_is_at_work(crawl.rules.lease_s)
        await self._remove_queues()
        return crawl

    async def _at_work(self, *, cut: bool) -> list[Seat]:
        """The workers that live by the ledger's word, but for our own, which have ended whether or not it knows yet.

        Raises `LedgerUnavailable` if the run was cut off and the ledger is away: nobody's parts may be taken for a dead worker's.
        """
        try:
            async with asyncio.timeout(CUT_S if cut else None):
                workers = await self._ports.ledger.workers()
        except TimeoutError:
            raise LedgerUnavailable("the ledger is away, so nothing was merged; `resume` goes on from here") from None
        return [Seat(each.id, each.epoch) for each in workers if not self._crew.had(each.process)]

    async def _until_nobody_is_at_work(self, lease_s: float) -> None:
        """Workers that others started see the crawl's end when they renew their leases; what they wrote is merged after that."""
        for _ in range(math.ceil(2 * lease_s / LOOK_EVERY_S)):
            if not await self._ports.ledger.workers():
                return
            await self._clock.sleep(LOOK_EVERY_S)

    async def _remove_queues(self) -> None:
        """Hints are only hints: a crawl that is resumed declares them anew."""
        with suppress(BrokerUnavailable):  # they go by themselves when nobody has used them for the crawl's time to live
            await self._ports.broker.remove()


async def _refuse_a_second(at: Servers, crawl: CrawlId) -> None:
    """One set of roles serves one crawl: raises `SettingsError` while they are at work on another."""
    announcements = open_announcements(at)
    try:
        other = await announcements.current()
    finally:
        await announcements.close()
    if other is None or other == crawl:
        return
    ledger = open_redis(at, other)
    try:
        with suppress(NoCrawl):
            if (await ledger.crawl()).status is not CrawlStatus.ENDED and await ledger.workers():
                raise SettingsError(f"the roles are at work on crawl {other}; stop it first (stop --crawl {other}), or wait")
    finally:
        await ledger.close()


def _environment(at: Servers, environ: Mapping[str, str]) -> dict[str, str]:
    """What the roles see: ours, with the servers as they were named here, by whatever means."""
    kept = {name: value for name, value in environ.items() if not name.startswith(PREFIX) and not name.startswith("AWS_")}
    urls = {"rabbitmq_url": at.rabbitmq_url, "redis_url": at.redis_url, "s3_url": at.s3_url}
    kept |= {BY_KEY[key].variable: url for key, url in urls.items()}
    aws = {name: value for name, value in environ.items() if name.startswith("AWS_") and not name.endswith("_FILE")}
    keys = {"AWS_ACCESS_KEY_ID": at.access_key, "AWS_SECRET_ACCESS_KEY": at.secret_key}
    return kept | aws | {name: key for name, key in keys.items() if key is not None}
