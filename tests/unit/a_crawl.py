"""A crawl for the controller's tests: values to be shown, and an engine that does next to nothing, on a real ledger."""

import asyncio
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from adapters import wiring
from gossamer import kept
from gossamer.clock import Clock, SystemClock
from gossamer.errors import SettingsError
from gossamer.ids import CrawlId, Epoch, UrlId, WorkerId
from gossamer.messages import Url
from gossamer.notes import NOTHING_TO_SAY, FrontierNote
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.ports.ledger import Ledger
from gossamer.records import (
    Closing,
    Counts,
    CrawlRecord,
    CrawlStatus,
    DomainRecord,
    Rules,
    UrlRecord,
    Visit,
    WorkerRecord,
)
from gossamer.settings import Settings
from gossamer.states import State
from gossamer.urls import domain_of, identity, url_id
from services.controller.engines import Ended, Engine, ModuleTrouble, Snapshot, Stop
from services.controller.outside import Outside

NOW = 1_763_476_000.0  # 2025-11-18 14:26:40 UTC


# --- Values -----------------------------------------------------------------------------------------------------------


def a_record(
    status: CrawlStatus = CrawlStatus.RUNNING,
    outcome: CrawlOutcome | None = None,
    rules: Rules | None = None,
    kept_until: float = NOW + 3600,
) -> CrawlRecord:
    rules = rules or Rules(max_pages=1000, max_bytes=50_000_000)
    return CrawlRecord(status=status, outcome=outcome, rules=rules, scope=frozenset(), created_at=NOW - 100, kept_until=kept_until)


def some_counts(
    *,
    stored: int = 120,
    waiting: int = 30,
    fetching: int = 4,
    outcomes: Mapping[Outcome, int] | None = None,
    refused: Mapping[str, int] | None = None,
    budgets: Mapping[str, int] | None = None,
    used_bytes: int = 5_100_000,
    charged_bytes: int = 0,
) -> Counts:
    states = {State.WAITING: waiting, State.PARKED: 20, State.ROUTED: 6, State.FETCHING: fetching, State.CLOSED: 140}
    return Counts(
        states=states if waiting or fetching else dict.fromkeys(State, 0) | {State.CLOSED: 140},
        outcomes=dict(outcomes if outcomes is not None else {Outcome.DONE: 120, Outcome.GONE: 3, Outcome.TIMEOUT: 12}),
        stored=stored,
        requests=150,
        used_bytes=used_bytes,
        charged_bytes=charged_bytes,
        reserved_bytes=0,
        domains=7,
        refused=dict(refused or {}),
        budgets=dict(budgets or {}),
    )


def a_domain(
    name: str = "a.example",
    *,
    busy: UrlId | None = None,
    out: int = 1,
    next_at: float = 0.0,
    not_before: float = 0.0,
    rests: int = 0,
    closed: Outcome | None = None,
) -> DomainRecord:
    return DomainRecord(
        name=name,
        site=name,
        owner=WorkerId(0),
        owner_until=NOW + 300,
        out=out,
        parked=10,
        busy=busy,
        next_at=next_at,
        delay_s=1.0,
        not_before=not_before,
        due_at=None,
        failures=0,
        rests=rests,
        stored=5,
        begun=5,
        closed=closed,
    )


def a_worker(id: int, load: int = 3) -> WorkerRecord:
    return WorkerRecord(id=WorkerId(id), epoch=Epoch(1), process="p", lease_until=NOW + 15, load=load)


def an_open_url(url: str) -> UrlRecord:
    return UrlRecord(
        url=Url(UrlId(bytes(16)), url, "a.example"),
        state=State.ROUTED,
        worker=WorkerId(0),
        priority=50,
        suspect=False,
        deaths=0,
        deferrals=0,
        added_at=NOW,
        changed_at=NOW,
        outcome=None,
        reason="",
        facts=None,
    )


def a_snapshot(
    *,
    counts: Counts | None = None,
    status: CrawlStatus = CrawlStatus.RUNNING,
    workers: Sequence[WorkerRecord] = (),
    domains: Sequence[DomainRecord] = (),
    modules: Mapping[str, ModuleTrouble] | None = None,
    now: float = NOW,
    frontier: FrontierNote = NOTHING_TO_SAY,
) -> Snapshot:
    return Snapshot(
        status=a_record(status),
        counts=counts or some_counts(),
        workers=workers,
        domains=domains,
        queues={"urls": 3, "band.0": 12, "band.1": 0, "band.2": 1_500, "worker.0": 2},
        domains_owned={WorkerId(0): 5},
        modules=modules or {},
        now=now,
        frontier=frontier,
    )


def an_end(
    outcome: CrawlOutcome | None = CrawlOutcome.COMPLETE,
    *,
    counts: Counts | None = None,
    least_gap_s: Mapping[str, float] | None = None,
    modules: Mapping[str, ModuleTrouble] | None = None,
    seeds_failed: bool = False,
    stalled_on: Sequence[UrlRecord] = (),
    outputs: Sequence[Path] = (),
) -> Ended:
    return Ended(
        record=a_record(CrawlStatus.ENDED, outcome),
        counts=counts or some_counts(waiting=0, fetching=0),
        least_gap_s=least_gap_s or {},
        modules=modules or {},
        seeds_failed=seeds_failed,
        stalled_on=stalled_on,
        outputs=outputs,
    )


# --- An engine --------------------------------------------------------------------------------------------------------


@dataclass
class FakeMaker:
    """Opens engines that fetch nothing: each seed is closed as `outcome`, after `meanwhile` has had its say."""

    outcome: Outcome = Outcome.DONE
    ends_as: CrawlOutcome | None = None  #: stopped as this before anything is fetched
    seeds_failed: bool = False
    refuses: str = ""  #: by `check`
    opens: Exception | None = None  #: raised instead of opening
    breaks: BaseException | None = None  #: raised in the middle of a run
    meanwhile: Callable[[Stop], object] = lambda stop: None  #: called in the middle of a run
    waits: bool = False  #: the run goes on until it is stopped
    dawdles: bool = False  #: and then until it is to end now
    clock: Clock = field(default_factory=SystemClock)
    opened: list[tuple[Settings, CrawlId, Path, bool]] = field(default_factory=list)

    def check(self, settings: Settings) -> None:
        if self.refuses:
            raise SettingsError(self.refuses)

    async def open_engine(self, settings: Settings, crawl: CrawlId, folder: Path, *, resume: bool) -> Engine:
        self.opened.append((settings, crawl, folder, resume))
        if self.opens is not None:
            raise self.opens
        rules = Rules(
            max_pages=settings.budgets.max_pages,
            max_bytes=settings.budgets.max_bytes,
            ttl_s=settings.storage.ttl_s,
            settings=kept.to_text(settings),
        )
        ledger = wiring.open_file(folder, self.clock)
        await (ledger.resume(rules) if resume else ledger.create(rules))
        return FakeEngine(self, ledger, settings)


@dataclass
class FakeEngine:
    maker: FakeMaker
    ledger: Ledger
    settings: Settings

    async def run(self, watch: Callable[[Snapshot], None], stop: Stop) -> Ended:
        try:
            await self.ledger.add([Url(url_id(identity(url)), url, domain_of(url)) for url in self.settings.start.seeds])
            watch(await self._snapshot())
            self.maker.meanwhile(stop)
            if self.maker.breaks is not None:
                raise self.maker.breaks
            if self.maker.waits:
                await self._wait(stop)
            elif self.maker.ends_as is not None:
                await self.ledger.stop(self.maker.ends_as)
            if self.maker.dawdles:
                await stop.now.wait()
            await self._close_all()
            watch(await self._snapshot())
            return Ended(
                record=await self.ledger.end(),
                counts=await self.ledger.counts(),
                least_gap_s={},
                modules={},
                seeds_failed=self.maker.seeds_failed,
                stalled_on=(),
                outputs=(),
            )
        finally:
            await self.ledger.close()

    async def _wait(self, stop: Stop) -> None:
        """As a real one does: until told by a signal, or by another process through the ledger."""
        while (await self.ledger.crawl()).status is CrawlStatus.RUNNING:
            if stop.gently.is_set():
                await self.ledger.stop(CrawlOutcome.STOPPED)
            await asyncio.sleep(0.01)

    async def _close_all(self) -> None:
        seat = await self.ledger.register("test")
        for url, priority in await self.ledger.waiting(100, idle=True):
            await self.ledger.route([(url.id, priority)])
            await self.ledger.begin(seat, [url.id])
            await self.ledger.finish(
                seat, [Closing(id=url.id, outcome=self.maker.outcome, visit=Visit(received_bytes=100, answered=True))]
            )
        await self.ledger.release(seat)

    async def _snapshot(self) -> Snapshot:
        return Snapshot(
            status=await self.ledger.crawl(),
            counts=await self.ledger.counts(),
            workers=await self.ledger.workers(),
            domains=await self.ledger.domains(10),
            queues={},
            domains_owned={},
            modules={},
            now=self.maker.clock.now(),
        )


@dataclass
class World:
    """The outside of a command, with what it said."""

    maker: FakeMaker = field(default_factory=FakeMaker)
    environ: dict[str, str] = field(default_factory=dict)
    stdout: io.StringIO = field(default_factory=io.StringIO)
    stderr: io.StringIO = field(default_factory=io.StringIO)

    @property
    def outside(self) -> Outside:
        return Outside(
            stdout=self.stdout,
            stderr=self.stderr,
            clock=self.maker.clock,
            token=lambda: "3f2a",
            environ=self.environ,
            maker=lambda engine: self.maker,
            open_ledger=lambda place, clock: wiring.open_file(place.folder, clock),
            open_blobs=lambda place, storage, clock: wiring.open_directory(place.folder, place.id, clock),
            open_broker=lambda place: None,
        )
