"""A worker's lease by its own clock: no dialling when half of it is over, and an end when it can't be renewed."""

import asyncio
from typing import cast

import pytest

from gossamer.clock import ManualClock
from gossamer.errors import Fenced
from gossamer.ids import Epoch, WorkerId
from gossamer.ports.ledger import Ledger
from gossamer.records import CrawlRecord, Seat
from services.worker.lease import Lease

SEAT = Seat(WorkerId(0), Epoch(1))
LEASE_S = 0.06  # of real time where a test waits for it


class Away:
    """A ledger that does not answer."""

    async def renew(self, seat: Seat) -> CrawlRecord:
        await asyncio.sleep(60)
        raise AssertionError("not reached")


def lease(clock: ManualClock) -> Lease:
    return Lease(cast(Ledger, Away()), SEAT, clock, 10.0, clock.monotonic())


def test_requests_go_out_while_the_lease_is_fresh() -> None:
    clock = ManualClock()
    held = lease(clock)
    clock.advance(4.9)

    held.check()


def test_no_request_goes_out_with_half_of_the_lease_gone() -> None:
    """Frozen between the gate's word and the dialling: the ledger may have given the domain to another by now."""
    clock = ManualClock()
    held = lease(clock)
    clock.advance(5.1)

    with pytest.raises(Fenced):
        held.check()


async def test_a_lease_that_can_not_be_renewed_in_time_is_over() -> None:
    from gossamer.clock import SystemClock

    clock = SystemClock()
    held = Lease(cast(Ledger, Away()), SEAT, clock, LEASE_S, clock.monotonic())

    async def renewed(crawl: CrawlRecord) -> None:
        raise AssertionError("never")

    with pytest.raises(Fenced):
        async with asyncio.timeout(10):
            await held.keep(renewed)


class Answering:
    """A ledger that renews, and then is away."""

    def __init__(self) -> None:
        self.renewed = 0

    async def renew(self, seat: Seat) -> CrawlRecord:
        self.renewed += 1
        if self.renewed > 1:
            await asyncio.sleep(60)
        return cast(CrawlRecord, None)


async def test_a_ledger_that_goes_away_after_it_renewed_keeps_no_lease_alive() -> None:
    from gossamer.clock import SystemClock

    clock, ledger = SystemClock(), Answering()
    held = Lease(cast(Ledger, ledger), SEAT, clock, LEASE_S, clock.monotonic())

    async def left_a_note(crawl: CrawlRecord) -> None:
        await asyncio.sleep(60)  # which is repeated until the ledger is back

    with pytest.raises(Fenced):
        async with asyncio.timeout(10):
            await held.keep(left_a_note)
    assert ledger.renewed == 2
