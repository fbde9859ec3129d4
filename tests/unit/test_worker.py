"""The worker role: what must not hold it up when it is to end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adapters.wiring import open_embedded
from gossamer.clock import SystemClock
from gossamer.ids import CrawlId
from gossamer.records import CrawlRecord, Rules, Seat
from services.worker.agenda import Agenda
from services.worker.lease import Lease
from services.worker.walk import Steps
from services.worker.worker import Worker

LEASE_S = 3.0


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
