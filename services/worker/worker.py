"""The worker role: a seat by lease, a hand full of URLs, and as many walks at once as it may.

It holds no state that the ledger doesn't: killed at any moment it loses no URL. A worker that is fenced (its lease ran out while it
was frozen, or cut off) drops all that it holds and registers again.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Final

from gossamer.clock import Clock
from gossamer.errors import Fenced
from gossamer.hints import Hints
from gossamer.messages import Url
from gossamer.notes import note_name
from gossamer.ports.broker import Broker, worker_queue
from gossamer.ports.ledger import Ledger
from gossamer.racing import unless
from gossamer.records import UNRANKED, CrawlRecord, CrawlStatus, Seat
from services.worker.agenda import Agenda, take
from services.worker.lease import Lease
from services.worker.missing import missing
from services.worker.walk import Steps, approach, settle

log = logging.getLogger("gossamer.worker")

PREFETCH: Final = 64
TAKE: Final = 32
WAIT_S: Final = 1.0
#: Pages that are past the network and wait to be judged, stored and closed. They hold memory, so there is an end to them.
TAILS_MAX: Final = 256
#: A look around, when nothing happens that would be a reason for one.
IDLE_S: Final = 1.0

#: Makes the steps of a walk for one seat, and closes what they opened.
Equip = Callable[[Lease, Agenda], AbstractAsyncContextManager[Steps]]


class Worker:
    """One worker, on one seat at a time."""

    def __init__(
        self,
        ledger: Ledger,
        broker: Broker,
        clock: Clock,
        equip: Equip,
        note: Callable[[], str],
        *,
        process: str,
        parallel: int,
        queue_size: int,
        lease_s: float,
    ) -> None:
        self._ledger, self._broker, self._clock, self._equip, self._note = ledger, broker, clock, equip, note
        self._process, self._parallel, self._queue_size, self._lease_s = process, parallel, queue_size, lease_s
        self._drained = asyncio.Event()
        self._noted = ""  # what was left in the ledger last
        self._news = asyncio.Event()  # something may be taken up: a URL came, a walk ended, a domain is free

    def drain(self) -> None:
        """Take no more; finish what is in flight; hand the rest back."""
        self._drained.set()
        self._news.set()

    async def run(self) -> None:
        """Until it is drained or cancelled, or the crawl has ended."""
        formerly: Seat | None = None
        while not self._drained.is_set():
            asked_at = self._clock.monotonic()
            seat = await unless(self._drained.wait(), self._ledger.register(self._process, formerly))
            if seat is None:
                return
            try:
                await self._serve(Lease(self._ledger, seat, self._clock, self._lease_s, asked_at))
            except* Fenced:
                meaning = "its lease ran out while it was frozen or cut off; what it held goes to others, and it begins anew"
                log.warning("worker.fenced", extra={"worker": seat.worker, "meaning": meaning})
            formerly = seat

    async def _serve(self, lease: Lease) -> None:
        """What a worker does on one seat, until it is drained. Raises `Fenced`, in a group, when the seat is lost."""
        seat, agenda, queue = lease.seat, Agenda(), worker_queue(lease.seat.worker)
        hints = Hints(self._broker, {queue: self._queue_size}, PREFETCH, self._clock)
        self._noted = ""

        async def renewed(crawl: CrawlRecord) -> None:
            if crawl.status is CrawlStatus.ENDED:
                self.drain()
            await self._leave_note(seat)

        try:
            async with asyncio.TaskGroup() as tasks, AsyncExitStack() as opened:
                loops = [tasks.create_task(lease.keep(renewed), name="lease")]
                steps = await unless(self._drained.wait(), opened.enter_async_context(self._equip(lease, agenda)))
                if steps is not None:
                    loops.append(tasks.create_task(self._take_hints(hints, queue, seat, agenda), name="hints"))
                    loops.append(tasks.create_task(self._ask(seat, agenda), name="asking"))
                    await self._walk_all(agenda, steps)
                for loop in loops:
                    loop.cancel()
            with suppress(TimeoutError):  # a ledger that is away is not waited for: when the lease is over it does the same
                async with asyncio.timeout(self._lease_s):
                    await self._leave_note(seat)
                    await self._ledger.release(seat)
        finally:
            await hints.close()

    async def _leave_note(self, seat: Seat) -> None:
        """What whoever watches the crawl should know of this worker, if it is not what was left already."""
        if (note := self._note()) != self._noted:
            await self._ledger.note(note_name(seat), note)
            self._noted = note

    async def _take_hints(self, hints: Hints, queue: str, seat: Seat, agenda: Agenda) -> None:
        # What was routed to the seat before its queue was there could not be hinted at: it is asked for, once hints come.
        await hints.wait(0)
        await self._take_missing(seat, agenda)
        while True:
            if await hints.wait(WAIT_S):
                urls, deliveries, unreadable = take(hints, queue, TAKE)
                self._take_up(agenda, urls)
                await hints.done(deliveries, unreadable)  # at once: the ledger already says that they are ours

    async def _ask(self, seat: Seat, agenda: Agenda) -> None:
        """Whoever is idle asks; and everybody once a lease, since a hint may have been lost among others."""
        asked_at = self._clock.monotonic()
        while True:
            await self._clock.sleep(IDLE_S)
            now = self._clock.monotonic()
            if not len(agenda) or now - asked_at >= self._lease_s:
                await self._take_missing(seat, agenda)
                asked_at = now

    async def _take_missing(self, seat: Seat, agenda: Agenda) -> None:
        self._take_up(agenda, [(url, UNRANKED) for url in await missing(self._ledger, seat, agenda)])

    def _take_up(self, agenda: Agenda, urls: list[tuple[Url, int]]) -> None:
        if urls:
            agenda.add(urls)
            self._news.set()

    async def _walk_all(self, agenda: Agenda, steps: Steps) -> None:
        """Starts walks while there are slots and domains that may be asked; returns when it drains and all have ended."""
        self._heads = self._tails = 0
        idle: list[asyncio.Future[Url | None]] = []
        async with asyncio.TaskGroup() as tasks:
            while not (self._drained.is_set() and not self._heads and not self._tails):
                self._news.clear()
                slots = 0 if self._drained.is_set() or self._tails >= TAILS_MAX else self._parallel - self._heads
                for url in agenda.next(self._clock.monotonic(), slots) if slots > 0 else ():
                    self._heads += 1
                    steps.hand.take_up(url)
                    if idle:
                        idle.pop().set_result(url)
                    else:
                        tasks.create_task(self._walk_on(url, steps, idle))
                await self._sleep_until(agenda.ready_at() if slots > 0 else None)
            for each in idle:
                each.set_result(None)

    async def _walk_on(self, first: Url, steps: Steps, idle: list["asyncio.Future[Url | None]"]) -> None:
        """One walk after another: to make a task for each would cost as much as one of its steps."""
        url: Url | None = first
        while url is not None:
            await self._walk(url, steps)
            turn: asyncio.Future[Url | None] = asyncio.get_running_loop().create_future()
            idle.append(turn)
            url = await turn

    async def _walk(self, url: Url, steps: Steps) -> None:
        steps.store.one_comes()
        try:
            arrived = await approach(url, steps)
        finally:
            self._heads -= 1
            self._news.set()
            steps.store.one_came()
        if arrived is not None:
            self._tails += 1
            try:
                await settle(arrived, steps)
            finally:
                self._tails -= 1
                self._news.set()

    async def _sleep_until(self, at: float | None) -> None:
        """Until there is news, or a domain's delay is over."""
        wait_s = IDLE_S if at is None else min(max(at - self._clock.monotonic(), 0.0), IDLE_S)
        try:
            async with asyncio.timeout(wait_s):
                await self._news.wait()
        except TimeoutError:
            pass
