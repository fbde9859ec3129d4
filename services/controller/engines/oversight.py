"""Oversight: a crawl from its seeds to its end, looked after from outside, whoever does the work.

All of it is read off the ledger: that it is complete, that it stands still, what the workers left in their notes. So it is the same
whether the roles run in this process or on other machines.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from adapters.wiring import LEDGER_AWAY, Ports
from gossamer.clock import Clock
from gossamer.errors import BrokerUnavailable, EngineUnavailable, LedgerUnavailable, MessageError
from gossamer.forms import Output
from gossamer.ids import UrlId, WorkerId
from gossamer.messages import Found, encode
from gossamer.notes import FrontierNote, WorkerNote, decode_frontier_note, decode_note, is_frontiers, note_name, together
from gossamer.outcomes import CrawlOutcome
from gossamer.parts import merge
from gossamer.pauses import lacks_room
from gossamer.ports.broker import URLS
from gossamer.racing import unless
from gossamer.records import CrawlRecord, CrawlStatus, Seat, UrlRecord
from gossamer.settings import Politeness, Settings
from services.controller import seed
from services.controller.engines import CUT_S, Ended, ModuleTrouble, Snapshot, Stop, nothing_was_had
from services.controller.wording import several
from services.frontier.bands import BandTable
from services.role.registrable import registrable

log = logging.getLogger("gossamer.controller")

WATCH_S: Final = 0.25
#: The first look after the one at the beginning.
SOON_S: Final = 0.02
#: Queues are asked for their depths this often: each is a question to the broker.
DEPTHS_EVERY_S: Final = 1.0
#: How long open URLs may stand still, none of them waiting for a time, until the crawl counts as stalled: so long, and as long
#: besides as the slowest page that is still in time.
STALLED_S: Final = 300.0
#: Between two looks that are further apart than this a server was waited for, or this process was frozen. What stood still
#: meanwhile is not the crawl's fault.
LONG_LOOK_S: Final = 5.0
#: How long a crawl may be without a worker until that is said. They take a moment to start, and to register again.
ALONE_S: Final = 20.0
#: A look that takes longer waits for the ledger.
LOOK_S_MAX: Final = 1.0
DOMAINS_SHOWN: Final = 20
NAMED: Final = 20


class Oversight:
    """Over one run of one crawl."""

    def __init__(self, settings: Settings, ports: Ports, clock: Clock, outputs: Sequence[Output]) -> None:
        self._settings, self._clock, self._outputs = settings, clock, outputs
        self._ledger, self._broker, self._checks = ports.ledger, ports.broker, ports.checks
        self._pauses = ports.pauses
        self._stop = Stop()
        self._registrable = registrable if settings.manners.politeness is Politeness.DOMAIN else None
        self._seen: CrawlRecord  # as it was last
        self._notes_before: frozenset[str] = frozenset()  # those of earlier runs
        self._depths: Mapping[str, int] = {}
        self._depths_at = float("-inf")
        fetching = settings.fetching
        slowest_page_s = 2 * fetching.attempt_timeout_s + (1 + len(settings.start.modules)) * fetching.module_timeout_s
        self._stalled_s = STALLED_S + slowest_page_s
        self._alone_s = 0.0  # without a worker, though there is work
        self._looked_at = clock.monotonic()
        self._shown: Snapshot | None = None  # what was seen then

    async def begin(self, stop: Stop) -> None:
        """Declares the queues, adds the seeds and hints at them. A broker that is away is no obstacle: the frontier asks.

        Raises `EngineUnavailable` if that can't be done, and the operator wants it to end.
        """
        if not await unless(stop.impatiently(), self._begin()):
            raise EngineUnavailable("stopped before it had begun; `resume` goes on from here")

    async def _begin(self) -> bool:
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
        return True

    async def until_it_ends(self, watch: Callable[[Snapshot], None], stop: Stop) -> CrawlRecord:
        """Or until it is cut off: then as it was last seen, since a ledger that is away would be waited for."""
        self._stop = stop
        looking = asyncio.ensure_future(self._look_after(watch, stop))
        others = [asyncio.ensure_future(stop.now.wait()), asyncio.ensure_future(self._see_that_it_looks(watch, stop))]
        try:
            await asyncio.wait((looking, others[0]), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (looking, *others):
                each.cancel()
            await asyncio.wait((looking, *others))
        return self._seen if looking.cancelled() else looking.result()

    async def _see_that_it_looks(self, watch: Callable[[Snapshot], None], stop: Stop) -> None:
        """A look waits for a ledger that is away: that is shown meanwhile, and whoever wants the crawl to end does not wait."""
        asked_s = 0.0
        while asked_s <= CUT_S:
            await self._clock.sleep(LOOK_S_MAX)
            away = self._clock.monotonic() - self._looked_at > LOOK_S_MAX and self._pauses.reasons
            if away and self._shown is not None:
                watch(replace(self._shown, paused=self._pauses.reasons))
            asked_s = asked_s + LOOK_S_MAX if away and stop.gently.is_set() else 0.0
        self._cut(stop, self._pauses.reasons[0])

    async def _look_after(self, watch: Callable[[Snapshot], None], stop: Stop) -> CrawlRecord:
        """The operator's wishes, the crawl's end, and whether it moves at all."""
        still_s, last = 0.0, None
        began_at = self._looked_at = self._clock.monotonic()
        while True:
            if stop.gently.is_set():
                await self._ledger.stop(CrawlOutcome.STOPPED)
            crawl = self._seen = await self._ledger.end()
            snapshot = self._shown = await self._snapshot(crawl)
            watch(snapshot)
            if crawl.status is CrawlStatus.ENDED:
                return crawl
            now = self._clock.monotonic()
            since_s, self._looked_at = now - self._looked_at, now
            self._tell_if_alone(snapshot, since_s)
            if snapshot.counts != last or _waits_for_a_time(snapshot) or since_s > LONG_LOOK_S:
                still_s, last = 0.0, snapshot.counts
            else:
                still_s += since_s
            if snapshot.paused:
                if still_s > CUT_S and (stop.gently.is_set() or crawl.outcome is CrawlOutcome.STOPPED):
                    self._cut(stop, snapshot.paused[0])
                still_s = min(still_s, CUT_S)  # when it goes on, it is given its time anew
            elif still_s > self._stalled_s:
                excuse = await self._excuse()
                if excuse is None:
                    await self._ledger.stop(CrawlOutcome.STALLED)
                    return await self._ledger.crawl()
                log.warning("nothing has moved for %.0f s, which goes on until it is mended: %s", still_s, excuse)
                still_s = 0.0
            await self._pause(stop, pause_s(now - began_at))

    def _cut(self, stop: Stop, reason: str) -> None:
        """Whoever wants it to end does not wait for what may be away, or full, for hours."""
        log.warning("what is in flight can't be finished, and is let go: %s; `resume` goes on from here", reason)
        stop.now.set()

    def _tell_if_alone(self, snapshot: Snapshot, since_s: float) -> None:
        """Nothing moves without a worker, and only who started them, or did not, can mend that."""
        if snapshot.workers or snapshot.status.status is not CrawlStatus.RUNNING:
            if self._alone_s > ALONE_S:
                log.warning("%s at work again", several(len(snapshot.workers), "worker"))
            self._alone_s = 0.0
            return
        before_s, self._alone_s = self._alone_s, self._alone_s + min(since_s, LONG_LOOK_S)
        if before_s <= ALONE_S < self._alone_s:
            log.warning("no worker is at work, with %s open", several(snapshot.counts.open, "URL"))

    async def _excuse(self) -> str | None:
        """The server that holds the crawl up, in words; None if there is none, and nothing will ever move."""
        for check in self._checks.values():
            try:
                await check()
            except EngineUnavailable as error:
                return str(error)
        queues, limit = await self._queues(), self._settings.frontier.queue_size
        hints = [encode(Found((record.url,))) for record in await self._ledger.unfinished(1)]
        # What a queue with room in it does not take is kept out by the broker itself: it is short of memory, or of disk.
        if queues.get(URLS, 0) < limit and await self._broker.publish(URLS, hints) < len(hints):
            return "the broker takes no messages"
        return None

    async def ended(self, crawl: CrawlRecord, living: Collection[Seat] = (), *, cut: bool = False) -> Ended:
        """How it ended, with its outputs merged; what workers that live have written waits for a `resume`.

        Raises `LedgerUnavailable` if the run was cut off and the ledger is away: then there is nobody to ask what is stored.
        """
        try:
            async with asyncio.timeout(CUT_S if cut else None):
                await self._ledger.crawl()
        except TimeoutError:
            raise LedgerUnavailable("the ledger is away, so nothing was merged; `resume` goes on from here") from None
        return await self._ended(crawl, living)

    async def _ended(self, crawl: CrawlRecord, living: Collection[Seat]) -> Ended:
        if living and self._outputs:
            log.warning("%d workers are still at work; what they write is merged by `resume`", len(living))
        for output in self._outputs:
            await self._merge(output, living, wait=not _was_stopped(crawl))
        counts, (notes, frontier) = await self._ledger.counts(), await self._notes()
        stalled = crawl.outcome is CrawlOutcome.STALLED
        return Ended(
            record=crawl,
            counts=counts,
            least_gap_s=_least_gaps(notes.values()),
            modules=_trouble(notes.values()),
            seeds_failed=nothing_was_had(counts),
            stalled_on=await self._ledger.unfinished(NAMED) if stalled else (),
            outputs=[output.path for output in self._outputs if output.path.exists()],
            frontier=frontier,
        )

    async def _merge(self, output: Output, living: Collection[Seat], *, wait: bool) -> None:
        """Raises `EngineUnavailable` if there is no room for it, and the operator does not want to wait."""

        async def merged() -> bool:
            try:
                await merge(output.path, self._are_stored, living, output.form)
                return True
            except OSError as error:
                if not lacks_room(error):
                    raise
                raise EngineUnavailable(f"{output.path} can't be written: {error.strerror}", full=True) from error

        try:
            await merged()
        except EngineUnavailable as full:
            if not wait:
                log.warning("%s; `resume` merges what modules wrote", full)
                return
            waiting = self._pauses.outlast(merged, EngineUnavailable, full, f"no space left for {output.path}")
            if not await unless(self._stop.gently.wait(), waiting):
                raise EngineUnavailable(f"{full}; `resume` merges what modules wrote") from full

    async def _pause(self, stop: Stop, seconds: float) -> None:
        """Shorter if the operator wants something."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await (stop.now if stop.gently.is_set() else stop.gently).wait()

    async def _snapshot(self, crawl: CrawlRecord) -> Snapshot:
        domains = await self._ledger.domains(DOMAINS_SHOWN)
        owned: dict[WorkerId, int] = {}
        for domain in domains:
            if domain.owner is not None and domain.out:
                owned[domain.owner] = owned.get(domain.owner, 0) + 1
        notes, frontier = await self._notes()
        workers = await self._ledger.workers()
        at_work = {note_name(Seat(each.id, each.epoch)) for each in workers}
        # What a worker said of the ledger is over: else we could not have read it.
        told = {reason for name, note in notes.items() if name in at_work for reason in note.paused}
        paused = {reason for reason in told if not reason.startswith(LEDGER_AWAY)}
        return Snapshot(
            status=crawl,
            counts=await self._ledger.counts(),
            workers=workers,
            paused=sorted(paused.union(self._pauses.reasons)),
            domains=domains,
            queues=await self._queues(),
            domains_owned=owned,
            modules=_trouble(notes.values()),
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

    async def _notes(self) -> tuple[dict[str, WorkerNote], FrontierNote]:
        """What the workers of this run left, by name, and its frontiers."""
        workers, frontiers = {}, []
        for name, text in (await self._ledger.notes()).items():
            if name not in self._notes_before:
                try:
                    if is_frontiers(name):
                        frontiers.append(decode_frontier_note(text))
                    else:
                        workers[name] = decode_note(text)
                except MessageError as error:
                    log.warning("note.unreadable", extra={"note": name, "error": str(error)})
        return workers, together(frontiers)

    async def _are_stored(self, ids: Sequence[UrlId]) -> list[bool]:
        return [_is_stored(record) for record in await self._ledger.records(ids)]


def pause_s(age_s: float) -> float:
    """From one look to the next: nobody waits for a crawl's end much longer than a quarter of what the crawl took."""
    return min(max(age_s / 4, SOON_S), WATCH_S)


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


def _was_stopped(crawl: CrawlRecord) -> bool:
    """By the operator, or it was cut off."""
    return crawl.outcome is CrawlOutcome.STOPPED or (crawl.status is not CrawlStatus.ENDED and crawl.outcome is None)


def _waits_for_a_time(snapshot: Snapshot) -> bool:
    return any(
        domain.not_before > snapshot.now or (domain.due_at or 0.0) > snapshot.now or domain.next_at > snapshot.now
        for domain in snapshot.domains
    )
