"""A walk that was made before, told to a ledger and to the frontier once more: what its verbs and messages cost alone.

The pages come in turns, one of a domain at most, as workers have them in their hands at one time; so calls have as many items in
them, and ledgers as many calls to make durable together, as in a crawl of the same web. Works on any engine.
"""

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, TypeVar

from bench.walked import SETTINGS, Visited
from gossamer.answers import Fresh, Go, RouteAnswer, Unrouted
from gossamer.clock import Clock, SystemClock
from gossamer.hints import Hints
from gossamer.ids import WorkerId
from gossamer.messages import Found, Url, encode, in_hints
from gossamer.outcomes import Outcome
from gossamer.ports.blobs import BlobRef, Capture
from gossamer.ports.broker import URLS, Broker, worker_queue
from gossamer.ports.ledger import Ledger
from gossamer.records import UNRANKED, Closing, Content, Facts, Leaving, PassedUp, Rules, Seat, Visit
from services.frontier.bands import BandTable
from services.frontier.draw import Draw
from services.frontier.prioritizer import Prioritizing
from services.frontier.prioritizers.pagerank import Pagerank
from services.frontier.rank.owner import Owner
from services.frontier.rank.quantiles import cuts
from services.frontier.router import Routing
from services.worker.agenda import Agenda, take

WORKERS: Final = 4
#: Pages that all workers together have at one time in the same step.
TURN_PAGES: Final = 10
#: Pages that a store puts into one segment before the next is due.
SEGMENT_PAGES: Final = 50
#: Pages that are read while the rank's owner sleeps.
RANK_PAGES: Final = 100
PREFETCH: Final = 64
TAKE: Final = 32
PATIENCE_S: Final = 10.0

T = TypeVar("T")
Watching = Callable[[str], AbstractContextManager[None]]


def turns(pages: Sequence[Visited]) -> Iterator[list[Visited]]:
    """In order, of each domain one."""
    turn: dict[str, Visited] = {}
    for page in pages:
        if page.url.domain in turn or len(turn) >= TURN_PAGES:
            yield list(turn.values())
            turn = {}
        turn[page.url.domain] = page
    if turn:
        yield list(turn.values())


def new_links(pages: Sequence[Visited]) -> list[list[Url]]:
    """What each page brings that no page before it had."""
    known = {page.url.id for page in pages if not page.url.depth}
    brought = []
    for page in pages:
        new = [link.found(page.url.depth + 1, parent=page.url.id) for link in page.followed.links if link.id not in known]
        known.update(url.id for url in new)
        brought.append(new)
    return brought


def portions(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def captures(pages: Sequence[Visited]) -> list[Capture]:
    return [Capture(page.url.url, 0.0, 200, page.answer.headers, page.answer.body, page.answer.address) for page in pages]


def rules() -> Rules:
    return Rules(
        max_pages=10**9,
        max_bytes=10**15,
        max_host_pages=None,
        max_domain_pages=None,
        delay_s=0.0,
        lease_s=3600.0,
        similarity=SETTINGS.fetching.similarity,
        keep_outlinks=True,
    )


class Lives:
    """Begin, leave, judge and finish, as four workers call them; and the rank's owner, who reads what they finish."""

    def __init__(self, ledger: Ledger, pages: Sequence[Visited], seats: dict[WorkerId, Seat]) -> None:
        self._ledger, self._pages, self._seats = ledger, pages, seats
        self._owner = Owner(ledger, Pagerank(), SystemClock(), "bench", lease_s=3600.0)

    @classmethod
    async def begun(cls, ledger: Ledger, pages: Sequence[Visited]) -> "Lives":
        await ledger.create(rules())
        seats = [await ledger.register(f"bench {number}") for number in range(WORKERS)]
        # Targets of redirects as well: they are nobody's links.
        linked = {url.id for new in new_links(pages) for url in new}
        await ledger.add([page.url for page in pages if page.url.id not in linked])
        return cls(ledger, pages, {seat.worker: seat for seat in seats})

    async def run(self, watch: Watching) -> None:
        read = 0
        for turn in turns(self._pages):
            with watch("ledger"):
                owners = await self._ledger.route([(page.url.id, UNRANKED) for page in turn])
            hands: dict[WorkerId, list[Visited]] = {}
            for page, owner in zip(turn, owners, strict=True):
                assert not isinstance(owner, Unrouted)
                hands.setdefault(owner, []).append(page)
            held = [(self._seats[owner], hand) for owner, hand in hands.items()]
            with watch("ledger"):
                gates = await asyncio.gather(*(self._ledger.begin(seat, [page.url.id for page in hand]) for seat, hand in held))
                await asyncio.gather(*(self._ledger.leave(seat, [_leaving(page) for page in hand]) for seat, hand in held))
            assert all(isinstance(gate, Go) for each in gates for gate in each)
            contents = [(seat, [_content(page) for page in hand]) for seat, hand in held]
            with watch("judge"):
                judged = await asyncio.gather(*(self._ledger.judge(seat, each) for seat, each in contents))
            closings = [
                (seat, [_closing(page, fresh=isinstance(said, Fresh)) for page, said in zip(hand, answers, strict=True)])
                for (seat, hand), answers in zip(held, judged, strict=True)
            ]
            with watch("ledger"):
                await asyncio.gather(*(self._ledger.finish(seat, each) for seat, each in closings))
            read += len(turn)
            if read >= RANK_PAGES:
                read = 0
                with watch("rank"):
                    await self._owner.turn()


def _visit(page: Visited) -> Visit:
    return Visit(received_bytes=page.answer.received_bytes, since_start_s=page.answer.took_s, delay_s=0.0, answered=True)


def _leaving(page: Visited) -> Leaving:
    return Leaving(id=page.url.id, visit=_visit(page))


def _content(page: Visited) -> Content:
    return Content(id=page.url.id, exact=page.reading.sha256, signature=page.sketch.signature, bands=page.sketch.bands)


def _closing(page: Visited, *, fresh: bool) -> Closing:
    blob = BlobRef("00000000-segment", 123_456, 7_890, hashlib.sha256(page.url.id).digest()) if fresh else None
    facts = Facts(status=200, blob=blob, flags=page.reading.flags, title=page.reading.parsed.title, took_s=page.answer.took_s)
    outcome = Outcome.DONE if fresh else Outcome.DUPLICATE
    return Closing(id=page.url.id, outcome=outcome, facts=facts, links=page.followed.links, refused=page.followed.refused)


class Passing:
    """New links from the worker that found them to the worker that will ask for them: hint, rank, band, draw, route, hint."""

    def __init__(self, ledger: Ledger, broker: Broker, pages: Sequence[Visited], seats: Sequence[Seat]) -> None:
        self._ledger, self._broker, self._pages, self._seats = ledger, broker, pages, seats
        table, size, clock = BandTable(SETTINGS.frontier.bands), SETTINGS.frontier.queue_size, SystemClock()
        self._hints = Hints(broker, {URLS: size}, PREFETCH, clock)
        self._bands = Hints(broker, dict.fromkeys(table.queues(), size), PREFETCH, clock)
        self._hands = {seat: Hints(broker, {worker_queue(seat.worker): size}, PREFETCH, clock) for seat in seats}
        self._rank = Pagerank()
        self._prioritizing = Prioritizing(broker, ledger, table, self._ranked)
        self._routing = _Counting(broker, ledger, table, Draw(table, random.Random(1)), clock)
        self._ranked_urls = 0

    @classmethod
    async def begun(cls, ledger: Ledger, broker: Broker, pages: Sequence[Visited]) -> "Passing":
        await ledger.create(rules())
        seats = [await ledger.register(f"bench {number}") for number in range(WORKERS)]
        await ledger.add([url for new in new_links(pages) for url in new])
        passing = cls(ledger, broker, pages, seats)
        for hints in (passing._hints, passing._bands, *passing._hands.values()):
            await hints.wait(0)  # it subscribes
        return passing

    async def run(self, watch: Watching) -> None:
        brought = dict(zip((page.url.id for page in self._pages), new_links(self._pages), strict=True))
        found = 0
        for turn in turns(self._pages):
            new = [url for page in turn for url in brought[page.url.id]]
            found += len(new)
            with watch("frontier"):
                if new:
                    await self._broker.publish(URLS, [encode(Found(urls)) for urls in in_hints(new)])
                while self._ranked_urls < found:
                    await self._hints.wait(PATIENCE_S)
                    await self._prioritizing.turn(self._hints)
                while self._routing.asked < found:
                    await self._bands.wait(PATIENCE_S)
                    await self._routing.turn(self._bands)
                taken = [await self._taken(seat) for seat in self._seats]
            await self._make_room(taken)
            self._learn(turn)

    async def close(self) -> None:
        for hints in (self._hints, self._bands, *self._hands.values()):
            await hints.close()

    def _ranked(self, urls: Sequence[Url]) -> Sequence[int]:
        self._ranked_urls += len(urls)
        return self._rank(urls)

    async def _taken(self, seat: Seat) -> tuple[Seat, list[Url]]:
        agenda, hints, due = Agenda(), self._hands[seat], self._routing.routed.pop(seat.worker, 0)
        taken: list[Url] = []
        while len(taken) < due:
            await hints.wait(PATIENCE_S)
            urls, deliveries, unreadable = take(hints, worker_queue(seat.worker), TAKE)
            agenda.add(urls)
            taken += [url for url, _ in urls]
            await hints.done(deliveries, unreadable)
        return seat, taken

    async def _make_room(self, taken: Sequence[tuple[Seat, Sequence[Url]]]) -> None:
        """A domain has a window, which would be full soon: what was taken is closed again."""
        for seat, urls in taken:
            if urls:
                passed = [PassedUp(id=url.id, outcome=Outcome.ROBOTS_DENIED) for url in urls]
                await self._ledger.pass_up(seat, passed)

    def _learn(self, turn: Sequence[Visited]) -> None:
        """As the rank's owner does, whose work is measured elsewhere."""
        ranks = self._rank.ranks
        ranks.add([(page.url.id, b"".join(link.id for link in page.followed.links)) for page in turn])
        ranks.cuts = cuts(ranks.graph.worth[ranks.open()])


class _Counting(Routing):
    """Counts what it asked the ledger for, and what became of it: so nobody has to wait for hints that won't come."""

    def __init__(self, broker: Broker, ledger: Ledger, table: BandTable, draw: Draw, clock: Clock) -> None:
        super().__init__(broker, ledger, table, draw, clock)
        self.asked = 0
        self.routed: dict[WorkerId, int] = {}

    async def route(self, ranked: Sequence[tuple[Url, int]]) -> list[RouteAnswer]:
        answers = await super().route(ranked)
        self.asked += len(answers)
        for answer in answers:
            if not isinstance(answer, Unrouted):
                self.routed[answer] = self.routed.get(answer, 0) + 1
        return answers
