"""The worker role: a seat by lease, a hand full of URLs, and as many walks at once as it may.

It holds no state that the ledger doesn't: killed at any moment it loses no URL. A worker that is fenced (its lease ran out while it
was frozen, or cut off) drops all that it holds and registers again.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from gossamer.clock import Clock
from gossamer.errors import Fenced
from gossamer.messages import Url
from gossamer.ports.broker import Broker, Subscription, worker_queue
from gossamer.ports.ledger import Ledger
from gossamer.records import Seat
from services.worker.agenda import Agenda, take
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
Equip = Callable[[Seat, Agenda], AbstractAsyncContextManager[Steps]]


class Worker:
    """One worker, on one seat at a time."""

    def __init__(
        self,
        ledger: Ledger,
        broker: Broker,
        clock: Clock,
        equip: Equip,
        *,
        process: str,
        parallel: int,
        queue_size: int,
        lease_s: float,
    ) -> None:
        self._ledger, self._broker, self._clock, self._equip = ledger, broker, clock, equip
        self._process, self._parallel, self._queue_size, self._lease_s = process, parallel, queue_size, lease_s
        self._draining = False
        self._news = asyncio.Event()  # something may be taken up: a URL came, a walk ended, a domain is free

    def drain(self) -> None:
        """Take no more; finish what is in flight; hand the rest back."""
        self._draining = True
        self._news.set()

    async def run(self) -> None:
        """Until it is drained or cancelled."""
        formerly: Seat | None = None
        while not self._draining:
            seat = await self._ledger.register(self._process, formerly)
            try:
                await self._serve(seat)
            except* Fenced:
                log.warning("worker.fenced", extra={"worker": seat.worker})
            formerly = seat

    async def _serve(self, seat: Seat) -> None:
        """What a worker does on one seat, until it is drained. Raises `Fenced`, in a group, when the seat is lost."""
        agenda, queue = Agenda(), worker_queue(seat.worker)
        await self._broker.declare({queue: self._queue_size})
        hints = await self._broker.subscribe([queue], PREFETCH)
        try:
            async with self._equip(seat, agenda) as steps, asyncio.TaskGroup() as tasks:
                loops = [
                    tasks.create_task(self._keep_lease(seat), name="lease"),
                    tasks.create_task(self._take_hints(hints, queue, agenda), name="hints"),
                    tasks.create_task(self._ask(seat, agenda), name="asking"),
                ]
                await self._walk_all(agenda, steps)
                for loop in loops:
                    loop.cancel()
            await self._ledger.release(seat)
        finally:
            await hints.close()

    async def _keep_lease(self, seat: Seat) -> None:
        while True:
            await self._clock.sleep(self._lease_s / 3)
            await self._ledger.renew(seat)

    async def _take_hints(self, hints: Subscription, queue: str, agenda: Agenda) -> None:
        while True:
            if not await hints.wait(WAIT_S):
                continue
            deliveries = hints.take(queue, TAKE)
            urls, unreadable = take(deliveries)
            self._take_up(agenda, urls)
            await hints.ack(deliveries)  # at once: the ledger already says that they are ours
            for error in unreadable:
                log.warning("hint.unreadable", extra={"queue": queue, "error": str(error)})

    async def _ask(self, seat: Seat, agenda: Agenda) -> None:
        """Whoever is idle asks; and everybody once a lease, since a hint may have been lost among others."""
        asked_at = self._clock.monotonic()
        while True:
            await self._clock.sleep(IDLE_S)
            now = self._clock.monotonic()
            if not len(agenda) or now - asked_at >= self._lease_s:
                self._take_up(agenda, await self._ledger.held(seat))
                asked_at = now

    def _take_up(self, agenda: Agenda, urls: list[Url]) -> None:
        if urls:
            agenda.add(urls)
            self._news.set()

    async def _walk_all(self, agenda: Agenda, steps: Steps) -> None:
        """Starts walks while there are slots and domains that may be asked; returns when it drains and all have ended."""
        self._heads = self._tails = 0
        async with asyncio.TaskGroup() as tasks:
            while not (self._draining and not self._heads and not self._tails):
                self._news.clear()
                slots = 0 if self._draining or self._tails >= TAILS_MAX else self._parallel - self._heads
                for url in agenda.next(self._clock.monotonic(), slots) if slots > 0 else ():
                    self._heads += 1
                    steps.hand.take_up(url)
                    tasks.create_task(self._walk(url, steps))
                if not self._heads:
                    steps.store.hurry()  # nothing is on its way that could keep a page company
                await self._sleep_until(agenda.ready_at() if slots > 0 else None)

    async def _walk(self, url: Url, steps: Steps) -> None:
        try:
            arrived = await approach(url, steps)
        finally:
            self._heads -= 1
            self._news.set()
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
