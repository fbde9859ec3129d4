"""Oversight: a crawl from its seeds to its end, looked after from outside, whoever does the work.

All of it is read off the ledger: that it is complete, that it stands still, what the workers left in their notes. So it is the same
whether the roles run in this process or on other machines.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from adapters.wiring import Ports
from gossamer.clock import Clock
from gossamer.errors import BrokerUnavailable, LedgerUnavailable, MessageError
from gossamer.forms import Output
from gossamer.ids import UrlId, WorkerId
from gossamer.notes import FrontierNote, WorkerNote, decode_frontier_note, decode_note, is_frontiers, together
from gossamer.outcomes import CrawlOutcome
from gossamer.parts import merge
from gossamer.ports.broker import URLS
from gossamer.records import CrawlRecord, CrawlStatus, Seat, UrlRecord
from gossamer.settings import Politeness, Settings
from services.controller import seed
from services.controller.engines import Ended, ModuleTrouble, Snapshot, Stop, nothing_was_had
from services.frontier.bands import BandTable
from services.role.registrable import registrable

log = logging.getLogger("gossamer.controller")

WATCH_S: Final = 0.25
#: Queues are asked for their depths this often: each is a question to the broker.
DEPTHS_EVERY_S: Final = 1.0
#: How long open URLs may stand still, none of them waiting for a time, until the crawl counts as stalled.
STALLED_S: Final = 300.0
#: A look that took longer than this waited for a server. What stood still meanwhile is not the crawl's fault.
LONG_LOOK_S: Final = 5.0
#: Whoever wants everything to end at once does not wait for a server that is away.
CUT_S: Final = 10.0
DOMAINS_SHOWN: Final = 20
NAMED: Final = 20


class Oversight:
    """Over one run of one crawl."""

    def __init__(self, settings: Settings, ports: Ports, clock: Clock, outputs: Sequence[Output]) -> None:
        self._settings, self._clock, self._outputs = settings, clock, outputs
        self._ledger, self._broker = ports.ledger, ports.broker
        self._registrable = registrable if settings.manners.politeness is Politeness.DOMAIN else None
        self._seen: CrawlRecord  # as it was last
        self._notes_before: frozenset[str] = frozenset()  # those of earlier runs
        self._depths: Mapping[str, int] = {}
        self._depths_at = float("-inf")

    async def begin(self) -> None:
        """Declares the queues, adds the seeds and hints at them. A broker that is away is no obstacle: the frontier asks."""
        self._seen = await self._ledger.crawl()
        self._notes_before = frozenset(await self._ledger.notes())
        frontier = self._settings.frontier
        queues = dict.fromkeys((URLS, *BandTable(frontier.bands).queues()), frontier.queue_size)
        try:
            await self._broker.declare(queues)
        except BrokerUnavailable as error:
            log.warning("the broker is away, and is waited for: %s", error)
        seeds = seed.seeds(self._settings.start.seeds, self._registrable)
        await seed.announce(self._broker, await seed.add(self._ledger, seeds, registrable))

    async def until_it_ends(self, watch: Callable[[Snapshot], None], stop: Stop) -> CrawlRecord:
        """Or until it is cut off: then as it was last seen, since a ledger that is away would be waited for."""
        looking = asyncio.ensure_future(self._look_after(watch, stop))
        cut = asyncio.ensure_future(stop.now.wait())
        try:
            await asyncio.wait((looking, cut), return_when=asyncio.FIRST_COMPLETED)
        finally:
            cut.cancel()
            if not looking.done():
                looking.cancel()
                await asyncio.wait((looking,))
        return self._seen if looking.cancelled() else looking.result()

    async def _look_after(self, watch: Callable[[Snapshot], None], stop: Stop) -> CrawlRecord:
        """The operator's wishes, the crawl's end, and whether it moves at all."""
        moved_at, last = self._clock.monotonic(), None
        while True:
            looked_at = self._clock.monotonic()
            if stop.gently.is_set():
                await self._ledger.stop(CrawlOutcome.STOPPED)
            crawl = self._seen = await self._ledger.end()
            snapshot = await self._snapshot(crawl)
            watch(snapshot)
            if crawl.status is CrawlStatus.ENDED:
                return crawl
            now = self._clock.monotonic()
            if snapshot.counts != last or _waits_for_a_time(snapshot) or now - looked_at > LONG_LOOK_S:
                moved_at, last = now, snapshot.counts
            elif now - moved_at > STALLED_S:
                await self._ledger.stop(CrawlOutcome.STALLED)
                return await self._ledger.crawl()
            await self._pause(stop)

    async def ended(self, crawl: CrawlRecord, living: Collection[Seat] = (), *, cut: bool = False) -> Ended:
        """How it ended, with its outputs merged; what workers that live have written waits for a `resume`.

        Raises `LedgerUnavailable` if the run was cut off and the ledger is away: then there is nobody to ask what is stored.
        """
        try:
            async with asyncio.timeout(CUT_S if cut else None):
                return await self._ended(crawl, living)
        except TimeoutError:
            raise LedgerUnavailable("the ledger is away, so nothing was merged; `resume` goes on from here") from None

    async def _ended(self, crawl: CrawlRecord, living: Collection[Seat]) -> Ended:
        if living and self._outputs:
            log.warning("%d workers are still at work; what they write is merged by `resume`", len(living))
        for output in self._outputs:
            await merge(output.path, self._are_stored, living, output.form)
        counts, (notes, frontier) = await self._ledger.counts(), await self._notes()
        stalled = crawl.outcome is CrawlOutcome.STALLED
        return Ended(
            record=crawl,
            counts=counts,
            least_gap_s=_least_gaps(notes),
            modules=_trouble(notes),
            seeds_failed=nothing_was_had(counts),
            stalled_on=await self._ledger.unfinished(NAMED) if stalled else (),
            outputs=[output.path for output in self._outputs if output.path.exists()],
            frontier=frontier,
        )

    async def _pause(self, stop: Stop) -> None:
        """Shorter if the operator wants something."""
        with suppress(TimeoutError):
            async with asyncio.timeout(WATCH_S):
                await (stop.now if stop.gently.is_set() else stop.gently).wait()

    async def _snapshot(self, crawl: CrawlRecord) -> Snapshot:
        domains = await self._ledger.domains(DOMAINS_SHOWN)
        owned: dict[WorkerId, int] = {}
        for domain in domains:
            if domain.owner is not None and domain.out:
                owned[domain.owner] = owned.get(domain.owner, 0) + 1
        notes, frontier = await self._notes()
        return Snapshot(
            status=crawl,
            counts=await self._ledger.counts(),
            workers=await self._ledger.workers(),
            domains=domains,
            queues=await self._queues(),
            domains_owned=owned,
            modules=_trouble(notes),
            now=self._clock.now(),
            frontier=frontier,
        )

    async def _queues(self) -> Mapping[str, int]:
        now = self._clock.monotonic()
        if now - self._depths_at >= DEPTHS_EVERY_S:
            try:
                self._depths = await self._broker.depths()
            except BrokerUnavailable:
                self._depths = {}  # what isn't known isn't shown
            self._depths_at = now
        return self._depths

    async def _notes(self) -> tuple[list[WorkerNote], FrontierNote]:
        """What the workers and the frontiers of this run left."""
        workers, frontiers = [], []
        for name, text in (await self._ledger.notes()).items():
            if name not in self._notes_before:
                try:
                    if is_frontiers(name):
                        frontiers.append(decode_frontier_note(text))
                    else:
                        workers.append(decode_note(text))
                except MessageError as error:
                    log.warning("note.unreadable", extra={"note": name, "error": str(error)})
        return workers, together(frontiers)

    async def _are_stored(self, ids: Sequence[UrlId]) -> list[bool]:
        return [_is_stored(record) for record in await self._ledger.records(ids)]


def _least_gaps(notes: Iterable[WorkerNote]) -> dict[str, float]:
    gaps: dict[str, float] = {}
    for note in notes:
        for domain, gap_s in note.least_gap_s.items():
            gaps[domain] = min(gap_s, gaps.get(domain, gap_s))
    return gaps


def _trouble(notes: Iterable[WorkerNote]) -> dict[str, ModuleTrouble]:
    """Of all workers together, by module."""
    trouble: dict[str, ModuleTrouble] = {}
    for note in notes:
        for name, each in note.modules.items():
            had = trouble.get(name, ModuleTrouble(0, "", switched_off=False))
            trouble[name] = ModuleTrouble(
                had.failures + each.failures, each.last, switched_off=had.switched_off or each.switched_off
            )
    return trouble


def _is_stored(record: UrlRecord | None) -> bool:
    return record is not None and record.facts is not None and record.facts.blob is not None


def _waits_for_a_time(snapshot: Snapshot) -> bool:
    return any(
        domain.not_before > snapshot.now or (domain.due_at or 0.0) > snapshot.now or domain.next_at > snapshot.now
        for domain in snapshot.domains
    )
