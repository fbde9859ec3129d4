"""The walk of one URL, as a worker takes it: the real steps on the embedded engine, from the gate to the closing.

So an outcome here is the one that a crawl would close the URL with, retries and all. Every name is on loopback, and every origin is
known to have no robots.txt, so that a peer is asked for the page alone.
"""

import fcntl
import os
import socket
import sys
import tempfile
import termios
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Final

import pycurl

from adapters.wiring import Ports, open_embedded
from gossamer.clock import Clock, SystemClock
from gossamer.ids import CrawlId
from gossamer.messages import Url
from gossamer.module import Module
from gossamer.options import parse_spec
from gossamer.outcomes import Flag, Outcome
from gossamer.page import Page
from gossamer.records import Robots
from gossamer.settings import Budgets, Fetching, Manners, Patience, Settings
from gossamer.states import State
from gossamer.urls import domain_of, host_of, identity, origin_of, url_id
from services.controller.engines.beginning import rules
from services.worker import download
from services.worker.agenda import Agenda
from services.worker.download import READ_BYTES
from services.worker.equipment import Equipment, Noted
from services.worker.lease import Lease
from services.worker.permission import NONE_THERE
from services.worker.plugins import Loaded
from services.worker.resolve import Record, Resolver
from services.worker.walk import Steps, approach, settle
from tests.hostile import certificates

CAP: Final = 500_000
LOOPBACK: Final = "127.0.0.0/8"
#: D, the deadline of an attempt: where the case is about it, and where it must not matter on a busy machine.
HASTY_S: Final = 0.5
PATIENT_S: Final = 20.0
LEASE_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Closed:
    """What became of a URL."""

    outcome: Outcome
    reason: str
    flags: tuple[Flag, ...]
    page: Page | None  #: as modules were shown it
    followed: tuple[str, ...]  #: what the ledger was given to go on with: links, or a redirect's target
    refused: tuple[str, ...]  #: why links were not followed


class Crawl:
    """A crawl of which one worker's walk is taken by hand."""

    def __init__(self, ports: Ports, steps: Steps, agenda: Agenda, clock: Clock, pages: list[Page], read_bytes: list[int]) -> None:
        self._ledger, self._steps, self._agenda, self._clock, self._pages = ports.ledger, steps, agenda, clock, pages
        self.read_bytes = read_bytes  #: of each connection that was closed, all that was read from it; empty if not `counted`

    async def walk(self, address: str) -> Closed:
        """From a URL that is new to its closing."""
        ledger = self._ledger
        url = Url(url_id(identity(address)), address, domain_of(address))
        before = {each.id for each, _ in await ledger.waiting(10_000, idle=True)}
        await ledger.know_robots(origin_of(address), Robots(None, NONE_THERE), 3600)
        await ledger.add([url], [host_of(address)])
        await ledger.route([(url.id, 50)])
        self._agenda.add([(url, 50)])
        (taken,) = self._agenda.next(self._clock.monotonic(), 1)
        self._steps.hand.take_up(taken)
        arrived = await approach(url, self._steps)
        if arrived is not None:
            await settle(arrived, self._steps)
        (record,) = await ledger.records([url.id])
        assert record is not None
        assert record.state is State.CLOSED, f"left {record.state}: {record.reason}"
        assert record.outcome is not None
        return Closed(
            outcome=record.outcome,
            reason=record.reason,
            flags=() if record.facts is None else record.facts.flags,
            page=next((page for page in self._pages if page.id == url.id), None),
            followed=tuple(each.url for each, _ in await ledger.waiting(10_000, idle=True) if each.id not in before),
            refused=tuple(reason for reason, _ in await ledger.refused()),
        )


@asynccontextmanager
async def crawling(*, deadline_s: float = PATIENT_S, page_bytes: int = CAP, counted: bool = False) -> AsyncIterator[Crawl]:
    """A crawl in a folder of its own. `counted`: what is read of each connection, none of which may be one that is kept."""
    settings = Settings(
        budgets=Budgets(max_page_bytes=page_bytes),
        manners=Manners(delay_s=0.0, allow_net=(LOOPBACK,)),
        patience=Patience(lease_s=LEASE_S),
        fetching=Fetching(attempt_timeout_s=deadline_s, connect_timeout_s=deadline_s),
    )
    clock = SystemClock()
    pages: list[Page] = []
    resolver = Resolver(_anywhere, clock, [ip_network(LOOPBACK)])
    with tempfile.TemporaryDirectory() as folder, _trusting(Path(folder)), _counting(counted) as read_bytes:
        ports = await open_embedded(Path(folder), CrawlId("hostile"), clock)
        try:
            await ports.ledger.create(rules(settings))
            seat = await ports.ledger.register("hostile")
            equipment = Equipment(
                crawl=CrawlId("hostile"),
                settings=settings,
                ledger=ports.ledger,
                broker=ports.broker,
                blobs=ports.blobs,
                clock=clock,
                modules=[_showing_to(pages)],
                out_dir=Path(folder),
                registrable=lambda host: host,
                resolver=resolver,
                pauses=ports.pauses,
            )
            agenda = Agenda()
            lease = Lease(ports.ledger, seat, clock, LEASE_S, clock.monotonic())
            async with equipment(lease, agenda, Noted(equipment.pauses)) as steps:
                yield Crawl(ports, steps, agenda, clock, pages, read_bytes)
            counts = await ports.ledger.counts()
            assert counts.used_bytes <= counts.requests * (page_bytes + READ_BYTES)
        finally:
            await resolver.close()
            await ports.close()


async def _anywhere(name: str) -> list[Record]:
    """Every name is on loopback."""
    return [Record("127.0.0.1", 300)]


def _showing_to(pages: list[Page]) -> Loaded:
    class Keeping(Module):
        async def visit(self, page: Page) -> None:
            pages.append(page)

    return Loaded(parse_spec("keeping"), Keeping)


@contextmanager
def _trusting(folder: Path) -> Iterator[None]:
    """The tests' own authority, told in the usual way."""
    authorities, before = folder / "authorities.pem", os.environ.get("SSL_CERT_FILE")
    authorities.write_text(certificates.CA, encoding="ascii")
    os.environ["SSL_CERT_FILE"] = str(authorities)
    try:
        yield
    finally:
        if before is None:
            del os.environ["SSL_CERT_FILE"]
        else:
            os.environ["SSL_CERT_FILE"] = before


@contextmanager
def _counting(wanted: bool) -> Iterator[list[int]]:
    """What is read of each connection, by the kernel's count when it is closed: nothing else sees what is thrown away."""
    counts: list[int] = []
    if not wanted:
        yield counts
        return
    made = download._handle

    def closing(fd: int) -> int:
        counts.append(_bytes_read(fd))
        os.close(fd)
        return 0

    def counted(user_agent: str) -> pycurl.Curl:
        curl = made(user_agent)
        curl.setopt(pycurl.CLOSESOCKETFUNCTION, closing)
        return curl

    download._handle = counted
    try:
        yield counts
    finally:
        download._handle = made


def _bytes_read(fd: int) -> int:
    """Received, but for what lies in the socket still. 0 where nobody counts."""
    if sys.platform != "linux":
        return 0
    borrowed = socket.socket(socket.AF_INET, socket.SOCK_STREAM, fileno=fd)
    try:
        info = borrowed.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
        left = int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)
    finally:
        borrowed.detach()
    return int.from_bytes(info[128:136], sys.byteorder) - left
