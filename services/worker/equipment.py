"""Equipment: the steps of a walk, made for one worker on one seat, from the crawl's settings."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Final

import msgspec

from gossamer import __version__
from gossamer.clock import Clock
from gossamer.ids import CrawlId
from gossamer.module import CrawlInfo
from gossamer.notes import ModuleNote, WorkerNote, encode_note
from gossamer.pauses import Pauses
from gossamer.ports.blobs import Blobs
from gossamer.ports.broker import Broker
from gossamer.ports.ledger import Ledger
from gossamer.settings import DuplicateLinks, Politeness, Settings
from gossamer.together import Together
from services.worker.addresses import allowed_nets
from services.worker.agenda import Agenda
from services.worker.download import Answer, Downloader
from services.worker.errands import Errands
from services.worker.fetch import Fetching
from services.worker.finish import Finish
from services.worker.gate import Gate
from services.worker.hand import Hand
from services.worker.judge import Judge
from services.worker.lease import Lease
from services.worker.links import Links
from services.worker.named_sitemaps import NamedSitemaps
from services.worker.permission import Permission
from services.worker.plugins import Loaded
from services.worker.read import Reader, Reading, Unreadable
from services.worker.requests import Requests
from services.worker.resolve import Resolver
from services.worker.showing import Showing
from services.worker.sketch import Sketcher
from services.worker.store import Store
from services.worker.visit import Visitor
from services.worker.walk import Steps
from services.worker.worker import Worker

#: Pages. More don't fit into a processor's caches, and the loop has others to serve.
READ_AT_ONCE: Final = 16
#: How long a page waits for others that are on their way.
READ_LINGER_S: Final = 0.002


class Noted(msgspec.Struct):
    """What a worker's steps have seen, for who watches. Survives the seat."""

    pauses: Pauses
    least_gap_s: dict[str, float] = msgspec.field(default_factory=dict)
    visitor: Visitor | None = None

    def text(self) -> str:
        """As it is left in the ledger."""
        failures = {} if self.visitor is None else self.visitor.failures
        modules = {
            name: ModuleNote(each.count, each.last, switched_off=bool(each.off)) for name, each in failures.items() if each.count
        }
        return encode_note(WorkerNote(least_gap_s=self.least_gap_s, modules=modules, paused=self.pauses.reasons))


class Equipment(msgspec.Struct, frozen=True, dict=True):  # a dict, since what is made once is kept there
    """What all workers of a process share."""

    crawl: CrawlId
    settings: Settings
    ledger: Ledger
    broker: Broker
    blobs: Blobs
    clock: Clock
    modules: Sequence[Loaded]
    out_dir: Path
    registrable: Callable[[str], str]  #: the registered domain of a host
    resolver: Resolver
    pauses: Pauses

    @cached_property
    def read(self) -> Together[Answer, Reading | Unreadable]:
        """What arrives at about the same time is read together."""
        settings = self.settings
        threshold = settings.fetching.similarity
        reader = Reader(
            settings.budgets.max_page_bytes,
            settings.links.max_links,
            settings.links.sitemaps,
            text=self._wants_pages,
            sketch=None if threshold is None else Sketcher(threshold),  # pages are twins only if they are equal
        )

        async def read_all(answers: Sequence[Answer]) -> list[Reading | Unreadable]:
            return reader(answers)

        return Together(read_all, most=READ_AT_ONCE, linger_s=READ_LINGER_S, clock=self.clock)

    @cached_property
    def links(self) -> Links:
        settings = self.settings
        nets, wanted = allowed_nets(settings), self._wants_pages
        return Links(self.ledger, settings.links, nets, self.registrable, by_domain=self._by_domain, tells_all=wanted)

    @property
    def _wants_pages(self) -> bool:
        return any(each.cls.wants_pages for each in self.modules)

    @property
    def _by_domain(self) -> bool:
        return self.settings.manners.politeness is Politeness.DOMAIN

    @cached_property
    def store(self) -> Store:
        return Store(self.blobs, self.clock)

    @asynccontextmanager
    async def __call__(self, lease: Lease, agenda: Agenda, noted: Noted) -> AsyncIterator[Steps]:
        settings, clock, seat = self.settings, self.clock, lease.seat
        visitor = noted.visitor = Visitor(self.modules, timeout_s=settings.fetching.module_timeout_s, pauses=self.pauses)
        await visitor.open(CrawlInfo(id=self.crawl, out_dir=self.out_dir, worker=seat.worker, epoch=seat.epoch))
        downloader = Downloader(
            self.resolver, clock, user_agent=user_agent(settings), connect_timeout_s=settings.fetching.connect_timeout_s
        )
        requests = Requests(
            downloader,
            clock,
            lease,
            delay_s=settings.manners.delay_s,
            page_bytes=settings.budgets.max_page_bytes,
            deadline_s=settings.fetching.attempt_timeout_s,
            least_gap_s=noted.least_gap_s,
            sitemaps=settings.links.sitemaps,
        )
        gate = Gate(self.ledger, seat)
        finish = Finish(self.ledger, seat, self.broker, visitor.flush_with_room, self.registrable)
        hand = Hand(self.ledger, seat, agenda, gate, finish, clock)
        links = self.links
        permission = Permission(
            self.ledger,
            gate,
            requests,
            clock,
            allowed_nets(settings),
            Errands(self.ledger, seat, finish.announce, self.registrable, by_domain=self._by_domain),
            max_crawl_delay_s=settings.manners.max_crawl_delay_s,
            robots_wait_s=settings.patience.robots_wait_s,
            sitemaps=NamedSitemaps(self.ledger, seat, links, finish.announce) if settings.links.sitemaps else None,
        )
        try:
            yield Steps(
                hand=hand,
                permission=permission,
                gate=gate,
                fetch=Fetching(
                    gate,
                    hand,
                    self.ledger,
                    requests,
                    self.read,
                    links,
                    clock,
                    permission.leave_alone,
                    max_hops=settings.links.max_hops,
                    max_deferrals=settings.patience.max_deferrals,
                ),
                judge=Judge(self.ledger, seat, clock),
                store=self.store,
                show=Showing(visitor, clock),
                links=links,
                follows_duplicates=settings.fetching.duplicate_links is DuplicateLinks.FOLLOW,
            )
        finally:
            await downloader.close()
            await visitor.flush()
            await visitor.close()

    def worker(self, process: str) -> Worker:
        """One of the workers of this process, which has this name wherever else the crawl's processes are."""
        noted = Noted(self.pauses)
        return Worker(
            self.ledger,
            self.broker,
            self.clock,
            partial(self, noted=noted),
            noted.text,
            process=process,
            parallel=self.settings.fetching.parallel,
            queue_size=self.settings.frontier.queue_size,
            lease_s=self.settings.patience.lease_s,
        )


def user_agent(settings: Settings) -> str:
    manners = settings.manners
    if manners.user_agent is not None:
        return manners.user_agent
    return f"Gossamer/{__version__}" + (f" (+{manners.contact})" if manners.contact else "")
