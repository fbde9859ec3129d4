"""Equipment: the steps of a walk, made for one worker on one seat, from the crawl's settings."""

import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path

from gossamer import __version__
from gossamer.clock import Clock
from gossamer.ids import CrawlId
from gossamer.module import CrawlInfo
from gossamer.ports.blobs import Blobs
from gossamer.ports.broker import Broker
from gossamer.ports.ledger import Ledger
from gossamer.records import Seat
from gossamer.settings import Politeness, Settings
from services.worker.addresses import Network
from services.worker.agenda import Agenda
from services.worker.download import Downloader
from services.worker.fetch import Fetching
from services.worker.finish import Finish
from services.worker.gate import Gate
from services.worker.hand import Hand
from services.worker.judge import Judge
from services.worker.links import Links
from services.worker.permission import Permission
from services.worker.plugins import Loaded
from services.worker.read import Reader
from services.worker.requests import Requests
from services.worker.resolve import Resolver
from services.worker.showing import Showing
from services.worker.store import Store
from services.worker.visit import Failures, Visitor
from services.worker.walk import Steps


@dataclass
class Noted:
    """What a worker's steps have seen, for who watches. Survives the seat."""

    least_gap_s: dict[str, float] = field(default_factory=dict)
    visitor: Visitor | None = None

    def failures(self) -> Mapping[str, Failures]:
        return {} if self.visitor is None else self.visitor.failures


@dataclass(frozen=True)
class Equipment:
    """What all workers of a process share."""

    crawl: CrawlId
    settings: Settings
    ledger: Ledger
    broker: Broker
    blobs: Blobs
    clock: Clock
    rng: random.Random
    modules: Sequence[Loaded]
    out_dir: Path
    registrable: Callable[[str], str]  #: the registered domain of a host
    resolver: Resolver

    @asynccontextmanager
    async def __call__(self, seat: Seat, agenda: Agenda, noted: Noted) -> AsyncIterator[Steps]:
        settings, clock = self.settings, self.clock
        visitor = noted.visitor = Visitor(self.modules, timeout_s=settings.fetching.module_timeout_s)
        await visitor.open(CrawlInfo(id=self.crawl, out_dir=self.out_dir, worker=seat.worker, epoch=seat.epoch))
        downloader = Downloader(
            self.resolver, clock, user_agent=user_agent(settings), connect_timeout_s=settings.fetching.connect_timeout_s
        )
        requests = Requests(
            downloader,
            clock,
            delay_s=settings.manners.delay_s,
            page_bytes=settings.budgets.max_page_bytes,
            deadline_s=settings.fetching.attempt_timeout_s,
            least_gap_s=noted.least_gap_s,
        )
        gate = Gate(self.ledger, seat)
        finish = Finish(self.ledger, seat, self.broker, visitor.flush)
        hand = Hand(self.ledger, seat, agenda, gate, finish, clock)
        by_domain = settings.manners.politeness is Politeness.DOMAIN
        links = Links(self.ledger, settings.links, allowed_nets(settings), self.registrable, by_domain=by_domain)
        try:
            yield Steps(
                hand=hand,
                permission=Permission(
                    self.ledger,
                    gate,
                    requests,
                    clock,
                    allowed_nets(settings),
                    max_crawl_delay_s=settings.manners.max_crawl_delay_s,
                    robots_wait_s=settings.patience.robots_wait_s,
                ),
                gate=gate,
                fetch=Fetching(
                    gate,
                    hand,
                    self.ledger,
                    requests,
                    links,
                    clock,
                    max_hops=settings.links.max_hops,
                    max_deferrals=settings.patience.max_deferrals,
                ),
                read=Reader(settings.budgets.max_page_bytes, settings.links.max_links),
                judge=Judge(self.ledger, seat, clock),
                store=Store(self.blobs, clock, self.rng),
                show=Showing(visitor, clock),
                links=links,
            )
        finally:
            await downloader.close()
            await visitor.flush()
            await visitor.close()


def user_agent(settings: Settings) -> str:
    manners = settings.manners
    if manners.user_agent is not None:
        return manners.user_agent
    return f"Gossamer/{__version__}" + (f" (+{manners.contact})" if manners.contact else "")


def allowed_nets(settings: Settings) -> list[Network]:
    return [ip_network(each) for each in settings.manners.allow_net]
