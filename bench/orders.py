"""In which order a web's pages are fetched: by the frontier as it runs, and by those that it is measured against.

`as_it_runs` is the real thing but for the network and the time: the SQLite ledger, prioritizer, bands, draw, router, promotion and
rank's owner, workers' agendas and the gate. Pages are arrays, a download is a moment in simulated time.
"""

import asyncio
import hashlib
import heapq
import random
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from adapters.embedded.broker import MemoryBroker
from adapters.embedded.ledger import SqliteLedger
from bench.webgraphs import Web
from gossamer.answers import Go, Wait
from gossamer.clock import ManualClock
from gossamer.hints import Hints
from gossamer.ids import UrlId
from gossamer.messages import Found, Link, Url, encode, in_hints
from gossamer.outcomes import Outcome
from gossamer.ports.blobs import BlobRef
from gossamer.ports.broker import URLS, worker_queue
from gossamer.prioritizer import Prioritizer
from gossamer.records import Closing, Facts, Rules, Seat, Visit
from services.frontier.bands import BandTable
from services.frontier.draw import Draw
from services.frontier.keeper import Keeping
from services.frontier.prioritizer import Prioritizing
from services.frontier.prioritizers.pagerank import Pagerank
from services.frontier.rank.owner import TURN_S, Owner
from services.frontier.router import Routing
from services.worker.agenda import Agenda, take

DAMPING: Final = 0.85

WORKERS: Final = 4
PARALLEL: Final = 16
DELAY_S: Final = 1.0
LATENCY_S: Final = 1.0  #: of a download, on average
TICK_S: Final = 0.05
LEASE_S: Final = 15.0
QUEUE_SIZE: Final = 10_000

Order = NDArray[np.int64]


# --- What is compared with ---


def true_pagerank(web: Web) -> NDArray[np.float64]:
    return _pagerank(web, range(len(web)))


def optimum(web: Web, count: int) -> Order:
    """Knows the whole web, and fetches what nobody has linked to yet."""
    return np.argsort(-true_pagerank(web), kind="stable")[:count]


def greedy(web: Web, count: int, at_once: int = 20) -> Order:
    """The best known page next, by the exact PageRank of what was seen, without bands, draws or politeness."""

    def choose(order: list[int], known: list[int]) -> list[int]:
        worth = _pagerank(web, order)
        return sorted(known, key=lambda page: -worth[page])[:at_once]

    return _crawl(web, count, choose)


def greedy_with_manners(web: Web, count: int) -> Order:
    """The same, with one page of a host in each second: what can be had at the pace of `as_it_runs`."""

    def choose(order: list[int], known: list[int]) -> list[int]:
        worth = _pagerank(web, order)
        best: dict[int, int] = {}
        for page in sorted(known, key=lambda page: -worth[page]):
            best.setdefault(int(web.site[page]), page)
        return list(best.values())[: round(WORKERS * PARALLEL * DELAY_S / LATENCY_S)]

    return _crawl(web, count, choose)


def breadth(web: Web, count: int) -> Order:
    return _crawl(web, count, lambda _, known: known[:1])


def at_random(web: Web, count: int) -> Order:
    rng = random.Random(1)
    return _crawl(web, count, lambda _, known: [rng.choice(known)])


def _crawl(web: Web, count: int, choose: Callable[[list[int], list[int]], list[int]]) -> Order:
    """`choose` is given what was fetched and, in the order of discovery, what is known."""
    order: list[int] = []
    known = dict.fromkeys(web.seeds)
    seen = set(known)
    while known and len(order) < count:
        for page in choose(order, list(known)):
            del known[page]
            order.append(page)
            for to in web.links[page].tolist():
                if to not in seen:
                    seen.add(to)
                    known[to] = None
    return np.array(order[:count])


def _pagerank(web: Web, fetched: "range | list[int]") -> NDArray[np.float64]:
    """Of a graph in which these pages have their links and the others have none; pages without links link to all."""
    counts = np.array([len(web.links[page]) for page in fetched], np.int64)
    to = np.concatenate([web.links[page] for page in fetched]) if len(counts) else np.empty(0, np.int64)
    shares = np.repeat(1 / np.maximum(counts, 1), counts)
    size = len(web)
    steps = sparse.csr_array((shares, (to, np.repeat(np.array(fetched, np.int64), counts))), (size, size))
    worth = np.full(size, 1 / size)
    for _ in range(200):
        handed_on = DAMPING * (steps @ worth)
        new = handed_on + (1 - handed_on.sum()) / size
        if np.abs(new - worth).sum() < 1e-8:
            break
        worth = new
    return worth


# --- The frontier as it runs ---


def as_it_runs(web: Web, count: int, prioritizer: Prioritizer, seed: int = 1, parallel: int = PARALLEL) -> Order:
    """`parallel`: downloads at once in each worker."""
    shelf = Path("/dev/shm")
    with TemporaryDirectory(dir=shelf if shelf.is_dir() else None) as folder:
        return asyncio.run(_run(web, count, prioritizer, Path(folder), seed, parallel))


async def _run(web: Web, count: int, prioritizer: Prioritizer, folder: Path, seed: int, parallel: int) -> Order:
    clock, broker = ManualClock(), MemoryBroker()
    ledger = SqliteLedger(folder / "ledger.sqlite", clock)
    try:
        simulation = Simulation(web, prioritizer, ledger, broker, clock, seed, parallel)
        await simulation.begin()
        while len(simulation.order) < count and await simulation.tick():
            clock.advance(TICK_S)
        return np.array(simulation.order[:count])
    finally:
        await ledger.close()


class Simulation:
    def __init__(
        self,
        web: Web,
        prioritizer: Prioritizer,
        ledger: SqliteLedger,
        broker: MemoryBroker,
        clock: ManualClock,
        seed: int,
        parallel: int,
    ) -> None:
        self.web, self.ledger, self.broker, self.clock, self.parallel = web, ledger, broker, clock, parallel
        self.order: list[int] = []
        self.links = [_link(web, page) for page in range(len(web))]
        self.numbers = {each.id: number for number, each in enumerate(self.links)}
        table, rng = BandTable(10), random.Random(seed)
        self._hints = Hints(broker, {URLS: QUEUE_SIZE}, 64, clock)
        self._bands = Hints(broker, dict.fromkeys(table.queues(), QUEUE_SIZE), 64, clock)
        self._table = table
        self._prioritizing = Prioritizing(broker, ledger, table, prioritizer)
        self._routing = Routing(broker, ledger, table, Draw(table, rng), clock)
        self._keeping = Keeping(broker, ledger, table, clock, lambda: True, tick_s=TICK_S, lease_s=LEASE_S, max_open=1_000_000)
        self._owner = Owner(ledger, prioritizer, clock, "bench", lease_s=LEASE_S) if isinstance(prioritizer, Pagerank) else None
        self._workers: list[SimulatedWorker] = []
        self.rng = random.Random(seed)
        self._ticks = 0

    async def begin(self) -> None:
        rules = Rules(
            max_pages=10**9, max_bytes=10**15, delay_s=DELAY_S, queue_size=QUEUE_SIZE, lease_s=LEASE_S, keep_outlinks=True
        )
        await self.ledger.create(rules)
        await self._hints.wait(0)
        await self._bands.wait(0)
        for _ in range(WORKERS):
            worker = SimulatedWorker(self, await self.ledger.register("bench"))
            await worker.hints.wait(0)
            self._workers.append(worker)
        added = await self.ledger.add([self.links[page].found() for page in self.web.seeds])
        await self.publish(added)

    async def publish(self, urls: list[Url]) -> None:
        await self.broker.publish(URLS, [encode(Found(each)) for each in in_hints(urls)])

    async def tick(self) -> bool:
        """What happens within a tick, each as often as it has something to do. False: nothing is left to fetch."""
        if self._ticks % round(LEASE_S / 3 / TICK_S) == 0:
            for worker in self._workers:
                await self.ledger.renew(worker.seat)
            await self._keeping.housekeep()
        self._ticks += 1
        if self._owner is not None and self._ticks % round(TURN_S / TICK_S) == 0:
            while await self._owner.turn():
                pass
        while self._hints.ready(URLS):
            await self._prioritizing.turn(self._hints)
        while any(self._bands.ready(queue) for queue in self._table.queues()) and not await self._routing.turn(self._bands):
            pass
        await self._keeping.promote()
        for worker in self._workers:
            await worker.tick()
        return any(worker.busy for worker in self._workers) or (await self.ledger.counts()).open > 0


class SimulatedWorker:
    """Takes, begins and finishes as a worker does; what lies between is a wait."""

    def __init__(self, at: Simulation, seat: Seat) -> None:
        self._at, self.seat = at, seat
        self._agenda = Agenda()
        self._queue = worker_queue(seat.worker)
        self.hints = Hints(at.broker, {self._queue: QUEUE_SIZE}, 64, at.clock)
        self._downloads: list[tuple[float, float, bytes, Url]] = []  # (ends, began, id, URL)

    @property
    def busy(self) -> bool:
        return bool(self._downloads)

    async def tick(self) -> None:
        now = self._at.clock.monotonic()
        while self.hints.ready(self._queue):
            urls, deliveries, unreadable = take(self.hints, self._queue, 32)
            self._agenda.add(urls)
            await self.hints.done(deliveries, unreadable)
        await self._finish(now)
        await self._begin(now)

    async def _finish(self, now: float) -> None:
        closings = []
        while self._downloads and self._downloads[0][0] <= now:
            _, began, _, url = heapq.heappop(self._downloads)
            closings.append(self._closing(url, now - began))
            self._agenda.disengage(url.domain, began + DELAY_S)
            self._agenda.drop(url.id)
        if closings:
            await self._at.publish(await self._at.ledger.finish(self.seat, closings))

    async def _begin(self, now: float) -> None:
        if urls := self._agenda.next(now, self._at.parallel - len(self._downloads)):
            for url, answer in zip(urls, await self._at.ledger.begin(self.seat, [url.id for url in urls]), strict=True):
                if isinstance(answer, Go):
                    self._at.order.append(self._at.numbers[url.id])
                    took_s = self._at.rng.lognormvariate(np.log(LATENCY_S) - 0.125, 0.5)
                    heapq.heappush(self._downloads, (now + took_s, now, url.id, url))
                elif isinstance(answer, Wait):
                    self._agenda.later(url, now + answer.seconds)
                else:
                    self._agenda.disengage(url.domain, now)
                    self._agenda.drop(url.id)

    def _closing(self, url: Url, took_s: float) -> Closing:
        page = self._at.numbers[url.id]
        blob = BlobRef("segment", page, 1, hashlib.sha256(url.id).digest())
        visit = Visit(received_bytes=5_000, since_start_s=took_s, delay_s=DELAY_S, answered=True)
        links = [self._at.links[to] for to in self._at.web.links[page]]
        return Closing(id=url.id, outcome=Outcome.DONE, facts=Facts(status=200, blob=blob), visit=visit, links=links)


def _link(web: Web, page: int) -> Link:
    domain = f"site{web.site[page]}.example"
    url = f"http://{domain}/{page}"
    return Link(UrlId(hashlib.blake2b(url.encode(), digest_size=16).digest()), url, domain)
