"""The worker role: what must not hold it up when it begins, or is to end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from adapters.wiring import open_embedded
from gossamer.clock import ManualClock, SystemClock
from gossamer.ids import CrawlId, UrlId
from gossamer.messages import Routed, Url, encode
from gossamer.ports.broker import worker_queue
from gossamer.records import CrawlRecord, Rules, Seat
from services.worker.agenda import Agenda
from services.worker.lease import Lease
from services.worker.walk import Steps
from services.worker.worker import Worker

LEASE_S = 3.0


async def test_what_is_routed_to_a_seat_before_its_queue_is_there_is_taken_up_at_once(tmp_path: Path) -> None:
    """The hint has nowhere to go, and the clock stands still: nobody is idle for long enough to ask."""
    clock, hands = ManualClock(), list[Agenda]()
    ports = await open_embedded(tmp_path, CrawlId("crawl"), clock)
    await ports.ledger.create(Rules(delay_s=0.0))
    url = Url(UrlId(bytes(16)), "http://a.example/", "a.example")
    await ports.ledger.add([url])

    @asynccontextmanager
    async def routed_meanwhile(lease: Lease, agenda: Agenda) -> AsyncIterator[Steps]:
        assert await ports.ledger.route([(url.id, 0)]) == [lease.seat.worker]
        assert await ports.broker.publish(worker_queue(lease.seat.worker), [encode(Routed(((url, 0),)))]) == 0
        hands.append(agenda)
        yield cast(Steps, object())  # no step is taken, since there are no slots

    worker = Worker(
        ports.ledger,
        ports.broker,
        clock,
        routed_meanwhile,
        lambda: "",
        process="a process",
        parallel=0,
        queue_size=10,
        lease_s=LEASE_S,
    )
    working = asyncio.ensure_future(worker.run())
    async with asyncio.timeout(30):
        while not any(url.id in agenda for agenda in hands):
            await clock.sleep(0)

    worker.drain()
    await asyncio.wait_for(working, 30)
    await ports.close()


async def test_a_worker_whose_modules_can_t_be_opened_yet_keeps_its_seat_and_ends_when_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module waits for room on a disk that is full."""
    clock, closed = SystemClock(), asyncio.Event()
    ports = await open_embedded(tmp_path, CrawlId("crawl"), clock)
    await ports.ledger.create(Rules(delay_s=0.0, lease_s=LEASE_S))

    @asynccontextmanager
    async def never(lease: Lease, agenda: Agenda) -> AsyncIterator[Steps]:
        try:
            await asyncio.Event().wait()
            raise AssertionError
            yield
        finally:
            closed.set()

    worker = Worker(
        ports.ledger, ports.broker, clock, never, lambda: "", process="a process", parallel=1, queue_size=10, lease_s=LEASE_S
    )
    renewed, renew = asyncio.Event(), ports.ledger.renew

    async def noted(seat: Seat) -> CrawlRecord:
        renewed.set()
        return await renew(seat)

    monkeypatch.setattr(ports.ledger, "renew", noted)
    working = asyncio.ensure_future(worker.run())
    await asyncio.wait_for(renewed.wait(), 60)

    worker.drain()
    await asyncio.wait_for(working, 30)
    assert closed.is_set()
    assert await ports.ledger.workers() == []
    await ports.close()
