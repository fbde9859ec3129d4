"""A worker's lease by its own clock: no dialling when half of it is over, and an end when it can't be renewed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from ipaddress import ip_network
from typing import cast

import pytest

from gossamer.answers import Go
from gossamer.clock import ManualClock
from gossamer.errors import Fenced
from gossamer.ids import Epoch, UrlId, WorkerId
from gossamer.messages import Url
from gossamer.ports.ledger import Ledger
from gossamer.records import CrawlRecord, Seat
from services.worker.download import Downloader
from services.worker.lease import Lease
from services.worker.requests import Requests
from services.worker.resolve import Record, Resolver

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


# --- The requests that it covers ---


@pytest.fixture
async def peer() -> AsyncIterator[tuple[int, list[object]]]:
    """A port, and whoever dialled it."""
    dialled: list[object] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        dialled.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1], dialled
    server.close()


@pytest.mark.parametrize(
    ("frozen_s", "dials"),
    [pytest.param(4.9, 1, id="not for long"), pytest.param(5.1, 0, id="for half its lease")],
)
async def test_a_worker_frozen_while_a_name_is_looked_up_dials_only_in_time(
    peer: tuple[int, list[object]], frozen_s: float, dials: int
) -> None:
    clock, (port, dialled) = ManualClock(), peer

    async def frozen_meanwhile(name: str) -> list[Record]:
        clock.advance(frozen_s)
        return [Record("127.0.0.1", 300)]

    resolver = Resolver(frozen_meanwhile, clock, [ip_network("127.0.0.0/8")])
    downloader = Downloader(resolver, clock, user_agent="x")
    requests = Requests(downloader, clock, lease(clock), delay_s=1.0, page_bytes=1000, deadline_s=30.0, least_gap_s={})
    url = Url(UrlId(bytes(16)), f"http://h.test:{port}/", "h.test")
    try:
        with nullcontext() if dials else pytest.raises(Fenced):
            await requests.page(url, url.url, Go(allowance_bytes=100_000, scope_hosts=0))
    finally:
        await resolver.close()
        await downloader.close()

    assert len(dialled) == dials
