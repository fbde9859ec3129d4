"""A ledger driven at random beside a plain one: verbs, clocks, lost answers and dead workers, and I1-I7 after every step.

`ledger_machine(make_harness)` gives a Hypothesis state machine; its `TestCase` runs under pytest. A counterexample is shrunk to
the few verbs that matter. Whatever the real ledger answers must be what the plain one does (gossamer/testing/plain.py), and
every step of every URL must be in the table of gossamer/states.py.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, precondition, rule
from msgspec.structs import replace

from gossamer.answers import Fresh, GateAnswer, Go, Judgement, Twin, Wait
from gossamer.errors import Fenced
from gossamer.ids import URL_ID_BYTES, UrlId
from gossamer.messages import Link, Url
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.ports.blobs import BlobRef
from gossamer.records import (
    Closing,
    Content,
    CrawlStatus,
    Deferral,
    Facts,
    Leaving,
    PassedUp,
    Rules,
    Seat,
    UrlRecord,
    Visit,
)
from gossamer.states import HELD, State, Verb, legal
from gossamer.testing.harness import LedgerHarness
from gossamer.testing.plain import PlainLedger

PAGES = 15
DOMAINS = 5
#: Three domains are of one site; the last of them is first met by a link.
SITES = {f"d{number}.example": "s.example" for number in (0, 1, 4)}
SEEDS = (0, 1, 2, 3, 5, 6)
CAP = 10
BLOB = BlobRef("segment", 0, 1, b"\0" * 32)
EPSILON_S = 0.05

T = TypeVar("T")

pages = st.integers(0, PAGES - 1)
page_lists = st.lists(pages, max_size=6)
#: Which of the pages that a step is about; `chosen` turns it into one, mostly of those that the step can move.
picks = st.integers(0, 799)
ranked = st.lists(st.tuples(picks, st.integers(0, 100)), min_size=1, max_size=8)
seldom = st.integers(0, 7).map(lambda n: n == 7)
waits = st.sampled_from([None, 0.5, 3.0, 30.0])
delays = st.sampled_from([None, None, 0.0, 1.0, 5.0])
failures = st.sampled_from([None, None, Outcome.TIMEOUT, Outcome.HTTP_ERROR])


def id_of(page: int) -> UrlId:
    return UrlId(bytes([page]) * URL_ID_BYTES)


def link_to(page: int) -> Link:
    family = b"variants" if page % DOMAINS == 3 else b""
    return Link(
        id_of(page), f"http://d{page % DOMAINS}.example/{page}", f"d{page % DOMAINS}.example", family, family != b"" and page > 8
    )


def url_of(page: int) -> Url:
    return link_to(page).found()


def content_of(page: int, text: int) -> Content:
    """Texts 0 and 1 are alike but not the same; 2 is like nothing else."""
    if text == 2:
        return Content(id=id_of(page), exact=bytes([page, 2]), signature=bytes([page]) * 40, bands=[bytes([page])])
    return Content(id=id_of(page), exact=bytes([text]), signature=b"same" * 9 + bytes([text]) * 4, bands=[b"shared"])


def reachable(before: State | None, verbs: Sequence[Verb]) -> set[State | None]:
    """Where a URL may be after these, one after another: what a dead worker held is reaped, and may be routed at once."""
    found = {before}
    for verb in verbs:
        found |= {after for state in found for after in State if legal(state, verb, after)}
    return found


def ledger_machine(make_harness: Callable[[], LedgerHarness]) -> type[RuleBasedStateMachine]:
    """The machine for one kind of ledger."""

    class LedgerMachine(RuleBasedStateMachine):
        seats = Bundle("seats")  # what workers believe; some are zombies'

        def __init__(self) -> None:
            super().__init__()
            self.loop = asyncio.new_event_loop()
            self.harness = make_harness()
            self.ledger = self.harness.ledger
            self.before: dict[UrlId, UrlRecord] = {}
            self.started: dict[str, float] = {}  # domain → start of its last request
            self.in_flight: dict[str, UrlId] = {}

        def teardown(self) -> None:
            self.loop.run_until_complete(self.harness.close())
            self.loop.close()

        def run(self, call: Awaitable[T]) -> T:
            async def await_it() -> T:
                return await call

            return self.loop.run_until_complete(await_it())

        # --- Steps that need no worker ---

        @initialize(
            target=seats,
            max_pages=st.sampled_from([3, 100]),
            max_bytes=st.sampled_from([4 * CAP, 10_000]),
            queue_size=st.sampled_from([1, 3, 100]),
            similarity=st.sampled_from([None, 0.9]),
            poison_deaths=st.sampled_from([0, 1, 2]),
            budgets=st.fixed_dictionaries(
                {
                    "max_host_pages": st.sampled_from([None, 1, 2]),
                    "max_domain_pages": st.sampled_from([None, 2, 3]),
                    "max_hosts": st.sampled_from([None, 2]),
                    "max_variants": st.sampled_from([None, 2]),
                    "lifted": st.sampled_from([(), ("d1.example",), ("s.example",)]),
                }
            ),
        )
        def create(
            self,
            max_pages: int,
            max_bytes: int,
            queue_size: int,
            similarity: float | None,
            poison_deaths: int,
            budgets: dict[str, Any],
        ) -> Seat:
            rules = Rules(
                **budgets,
                max_pages=max_pages,
                max_bytes=max_bytes,
                request_bytes=CAP,
                queue_size=queue_size,
                similarity=similarity,
                poison_deaths=poison_deaths,
                domain_failures=3,
                domain_rests=1,
            )
            self.run(self.ledger.create(rules))
            self.plain = PlainLedger(rules, self.harness.now)
            seeds = [url_of(page) for page in SEEDS]
            assert self.run(self.ledger.add(seeds, (), SITES)) == self.plain.add(seeds, (), SITES)
            self.check_steps(Verb.ADD)
            return self.enrolled("one")

        @rule(urls=page_lists)
        def add(self, urls: list[int]) -> None:
            seeds = [url_of(page) for page in urls]
            assert self.run(self.ledger.add(seeds, ["d0.example"], SITES)) == self.plain.add(seeds, ["d0.example"], SITES)
            self.check_steps(Verb.ADD)

        @rule(urls=ranked)
        def route(self, urls: list[tuple[int, int]]) -> None:
            pairs = [(id_of(self.chosen(pick, State.WAITING)), priority) for pick, priority in urls]
            assert self.run(self.ledger.route(pairs)) == self.plain.route(pairs)
            self.check_steps(Verb.REAP, Verb.ROUTE)

        @rule()
        def promote(self) -> None:
            real = self.run(self.ledger.promote(1000))
            assert {(routing.worker, routing.url.id) for routing in real} == self.plain.promote()
            self.check_steps(Verb.REAP, Verb.PROMOTE)

        @rule()
        def reap(self) -> None:
            assert set(self.run(self.ledger.reap())) == set(self.plain.reap())
            self.check_steps(Verb.REAP)

        @rule(urls=ranked)
        def rank(self, urls: list[tuple[int, int]]) -> None:
            pairs = [(id_of(self.chosen(pick, State.WAITING, State.PARKED)), priority) for pick, priority in urls]
            self.run(self.ledger.rank(pairs))
            self.plain.rank(pairs)
            self.check_steps()

        @rule(open_max=st.integers(2, 8), most=st.integers(0, 2), really=seldom)
        def shed(self, open_max: int, most: int, really: bool) -> None:
            if not really:
                return
            assert self.run(self.ledger.shed(open_max, most)) == self.plain.shed(open_max, most)
            self.check_steps(Verb.SHED)

        @rule(most=st.integers(1, 20), idle=st.booleans())
        def waiting(self, most: int, idle: bool) -> None:
            offered = self.run(self.ledger.waiting(most, idle=idle))
            there = self.plain.those(State.WAITING)
            ids = [url.id for url, _ in offered]
            assert len(set(ids)) == len(ids)
            assert set(ids) <= {u.url.id for u in there}
            assert all(priority == self.plain.urls[url.id].priority for url, priority in offered)
            if idle:
                assert len(offered) == min(most, len(there))
                best = sorted(u.priority for u in there)[: most - most // 4]
                assert sorted(priority for _, priority in offered)[: len(best)] == best
            self.check_steps()

        @rule()
        def end(self) -> None:
            self.plain.end()
            assert self.run(self.ledger.end()).status is self.plain.status
            self.check_steps()

        @rule(really=seldom)
        def stop(self, really: bool) -> None:
            if not really:
                return
            self.run(self.ledger.stop(CrawlOutcome.STOPPED))
            self.plain.stop(CrawlOutcome.STOPPED)
            self.check_steps()

        @rule(more_pages=st.integers(0, 2), more_bytes=st.integers(0, 4), nobody_lives=st.booleans())
        @precondition(lambda self: self.plain.status is not CrawlStatus.RUNNING)
        def resume(self, more_pages: int, more_bytes: int, nobody_lives: bool) -> None:
            old = self.plain.rules
            raised = replace(
                old,
                max_pages=old.max_pages + more_pages,
                max_bytes=old.max_bytes + more_bytes * CAP,
                max_host_pages=None if old.max_host_pages is None else old.max_host_pages + more_pages,
            )
            self.run(self.ledger.resume(raised, nobody_lives=nobody_lives))
            self.plain.resume(raised, nobody_lives=nobody_lives)
            self.in_flight.clear()
            self.check_steps(Verb.RESUME)

        @rule(seconds=st.sampled_from([0.0, 1.0, 5.0]))
        def crawl_on(self, seconds: float) -> None:
            """All is well for a moment: leases are renewed, what can be routed and begun is. The way to the deeper states."""
            self.run(self.harness.advance(seconds))
            if not self.live():
                self.enrolled("one")
            for seat in self.live():
                self.renew(seat)
            self.route([(8 * n + 1, 10 * n) for n in range(6)])
            self.promote()
            for seat in self.live():
                routed = [u.url.id for u in self.plain.those(State.ROUTED, worker=seat.worker)]
                for id, answer in zip(routed, self.begun(seat, routed) or (), strict=True):
                    self.dialled(id, answer)

        @rule(text=st.integers(0, 2), links=page_lists)
        def work(self, text: int, links: list[int]) -> None:
            """Each worker brings one page to its end, as the walk does: judged, stored if it is fresh, closed with its links."""
            for seat in self.live():
                for u in self.plain.those(State.FETCHING, worker=seat.worker)[:1]:
                    page = u.url.id[0]
                    match self.judged(seat, content_of(page, text)):
                        case Fresh():
                            outcome, facts = Outcome.DONE, Facts(status=200, blob=BLOB)
                        case Twin(id=twin, similarity=similarity):
                            outcome, facts = Outcome.DUPLICATE, Facts(status=200, twin=twin, similarity=similarity)
                        case _:
                            continue
                    self.close(
                        seat,
                        Closing(
                            id=id_of(page),
                            outcome=outcome,
                            facts=facts,
                            visit=self.visit(page, CAP, None, None),
                            links=[link_to(other) for other in links],
                            sites=SITES,
                        ),
                    )

        def judged(self, seat: Seat, content: Content) -> Judgement | None:
            """None: fenced."""
            answers = self.both(lambda: self.ledger.judge(seat, [content]), lambda: [self.plain.judge(seat, content)])
            return None if answers is None else answers[0]

        def close(self, seat: Seat, closing: Closing) -> None:
            self.both(lambda: self.ledger.finish(seat, [closing]), lambda: self.plain.finish(seat, [closing]), Verb.FINISH)

        @rule(seconds=st.sampled_from([0.5, 1.0, 1.0, 1.0, 5.0, 5.0, 20.0, 400.0]))
        def advance(self, seconds: float) -> None:
            """Leases end by this alone: a worker that isn't renewed is dead, or a zombie."""
            self.run(self.harness.advance(seconds))

        # --- Workers ---

        @rule(target=seats, process=st.sampled_from(["one", "two"]))
        @precondition(lambda self: len(self.live()) < 3)
        def register(self, process: str) -> Seat:
            return self.enrolled(process)

        @rule(target=seats, former=consumes(seats), process=st.sampled_from(["one", "two"]))
        def register_again(self, former: Seat, process: str) -> Any:
            try:
                self.plain.seated(former)
            except Fenced:
                return self.enrolled(process, former)
            return multiple(former)

        def enrolled(self, process: str, former: Seat | None = None) -> Seat:
            seat = self.run(self.ledger.register(process, former))
            assert seat.worker == self.plain.register(process, former)
            self.plain.seat(seat)
            self.check_steps(Verb.REAP)
            return seat

        @rule(seat=seats)
        def renew(self, seat: Seat) -> None:
            self.both(lambda: self.ledger.renew(seat), lambda: self.plain.renew(seat), compare=False)

        @rule(seat=seats, really=seldom)
        def release(self, seat: Seat, really: bool) -> None:
            if not really:
                return
            self.both(lambda: self.ledger.release(seat), lambda: set(self.plain.release(seat)), Verb.RELEASE, as_type=set)

        @rule(seat=seats)
        def held(self, seat: Seat) -> None:
            real = self.both(
                lambda: self.ledger.held(seat),
                lambda: self.plain.seated(seat) and [u.url for u in self.plain.those(*HELD, worker=seat.worker)],
            )
            assert real is None or all(isinstance(url, Url) for url in real)

        @rule(seat=seats, urls=st.lists(picks, min_size=1, max_size=6), again=st.booleans())
        def begin(self, seat: Seat, urls: list[int], again: bool) -> None:
            ids = [id_of(self.chosen(pick, State.ROUTED, at=seat)) for pick in urls]
            answers = self.begun(seat, ids)
            if answers is None:
                return
            for id, answer in zip(ids, answers, strict=True):
                self.dialled(id, answer)
            if again:  # the answer was lost: *go* is said again, and nothing moves
                first_go = [id for id, answer in zip(ids, answers, strict=True) if isinstance(answer, Go)]
                repeated = self.both(lambda: self.ledger.begin(seat, first_go), lambda: self.plain.begin(seat, first_go))
                assert repeated is not None
                assert all(isinstance(answer, Go) for answer in repeated)

        def begun(self, seat: Seat, ids: Sequence[UrlId]) -> list[GateAnswer] | None:
            answers: list[GateAnswer] | None
            answers = self.both(lambda: self.ledger.begin(seat, ids), lambda: self.plain.begin(seat, ids), Verb.BEGIN)
            return answers

        @rule(seat=seats, pick=picks)
        def knock(self, seat: Seat, pick: int) -> None:
            page = self.chosen(pick, *HELD, at=seat)
            id = id_of(page)
            answer = self.both(lambda: self.ledger.knock(seat, id), lambda: self.plain.knock(seat, id), Verb.KNOCK)
            if answer is not None:
                self.dialled(id, answer)

        @rule(
            seat=seats,
            urls=st.lists(picks, min_size=1, max_size=3),
            received=st.integers(0, CAP),
            until_s=waits,
            delay_s=delays,
            failed=failures,
        )
        def leave(
            self, seat: Seat, urls: list[int], received: int, until_s: float | None, delay_s: float | None, failed: Outcome | None
        ) -> None:
            pages = [self.chosen(pick, *HELD, at=seat) for pick in urls]
            leavings = [
                Leaving(id=id_of(page), visit=self.visit(page, received, delay_s, failed), until_s=until_s) for page in pages
            ]
            self.both(lambda: self.ledger.leave(seat, leavings), lambda: self.plain.leave(seat, leavings))

        @rule(seat=seats, pick=picks, text=st.integers(0, 2))
        def judge(self, seat: Seat, pick: int, text: int) -> None:
            content = content_of(self.chosen(pick, State.FETCHING, at=seat), text)
            judgement = self.judged(seat, content)
            if isinstance(judgement, Twin):
                assert self.plain.urls[judgement.id].facts is not None

        @rule(
            seat=seats,
            pick=picks,
            stored=st.booleans(),
            links=page_lists,
            moved_to=st.none() | pages,
            received=st.integers(0, CAP),
            delay_s=delays,
            failed=failures,
        )
        def finish(
            self,
            seat: Seat,
            pick: int,
            stored: bool,
            links: list[int],
            moved_to: int | None,
            received: int,
            delay_s: float | None,
            failed: Outcome | None,
        ) -> None:
            page = self.chosen(pick, State.FETCHING, at=seat)
            # A worker stores only what was judged fresh.
            fresh = id_of(page) in self.plain.contents
            closing = Closing(
                id=id_of(page),
                outcome=Outcome.DONE if stored and fresh else failed or Outcome.GONE,
                facts=Facts(status=200, blob=BLOB if stored and fresh else None),
                visit=self.visit(page, received if self.is_in_flight(page) else 0, delay_s, failed),
                links=[link_to(other) for other in links],
                sites=SITES,
                target=None if moved_to is None else link_to(moved_to),
                scope_host=None if moved_to is None else link_to(moved_to).domain,
            )
            self.close(seat, closing)

        @rule(seat=seats, pick=picks, until_s=waits, received=st.integers(0, CAP), failed=failures)
        def defer(self, seat: Seat, pick: int, until_s: float | None, received: int, failed: Outcome | None) -> None:
            page = self.chosen(pick, State.FETCHING, at=seat)
            visit = self.visit(page, received if self.is_in_flight(page) else 0, None, failed)
            deferral = Deferral(id=id_of(page), until_s=until_s, visit=visit)
            self.both(lambda: self.ledger.defer(seat, [deferral]), lambda: self.plain.defer(seat, [deferral]), Verb.DEFER)

        @rule(seat=seats, pick=picks, really=seldom)
        def pass_up(self, seat: Seat, pick: int, really: bool) -> None:
            if not really:
                return
            ending = PassedUp(id=id_of(self.chosen(pick, State.ROUTED, at=seat)), outcome=Outcome.ROBOTS_DENIED)
            self.both(lambda: self.ledger.pass_up(seat, [ending]), lambda: self.plain.pass_up(seat, [ending]), Verb.PASS_UP)

        # --- What a step is about ---

        def live(self) -> list[Seat]:
            return [Seat(w.id, w.epoch) for w in self.plain.workers.values() if w.lease_until > self.harness.now()]

        def chosen(self, pick: int, *states: State, at: Seat | None = None) -> int:
            """One of the pages in these states, with this worker; now and then any page, since workers are confused at times."""
            worker = None if at is None else at.worker
            there = [u.url.id[0] for u in self.plain.those(*states, worker=worker)]
            return there[pick % len(there)] if there and pick % 8 else pick % PAGES

        # --- What each step is held against ---

        def both(
            self,
            real: Callable[[], Awaitable[Any]],
            plain: Callable[[], Any],
            *verbs: Verb,
            compare: bool = True,
            as_type: Callable[[Any], Any] = lambda answer: answer,
        ) -> Any:
            """The same verb on both. Fenced on one is fenced on the other, and then changes nothing (I6); None says so."""
            try:
                expected = plain()
            except Fenced:
                try:
                    self.run(real())
                except Fenced:
                    self.check_steps()
                    return None
                raise AssertionError("I6 a verb of a fenced worker was not refused") from None
            answer = as_type(self.run(real()))
            if compare:
                assert kinds(answer) == kinds(expected)
            self.check_steps(*verbs)
            return answer

        def visit(self, page: int, received: int, delay_s: float | None, failed: Outcome | None) -> Visit:
            """As the worker that made the request would tell it."""
            since_start_s = self.harness.now() - self.started[url_of(page).domain] if self.is_in_flight(page) else 0.0
            return Visit(
                received_bytes=received if self.is_in_flight(page) else 0,
                since_start_s=since_start_s,
                delay_s=delay_s,
                failed=failed,
                answered=failed is None,
            )

        def is_in_flight(self, page: int) -> bool:
            return self.in_flight.get(url_of(page).domain) == id_of(page)

        def dialled(self, id: UrlId, answer: GateAnswer) -> None:
            """I3, as the server sees it: a request goes out the moment the gate says go."""
            if not isinstance(answer, Go):
                return
            domain = self.plain.domains[self.plain.urls[id].url.domain]
            now = self.harness.now()
            if self.in_flight.get(domain.name) != id:  # else *go* was said again, after a lost answer
                assert domain.name not in self.in_flight, "I3 two requests in flight"
                last = self.started.get(domain.name)
                assert last is None or now >= last + domain.delay_s - EPSILON_S, "I3 two starts less than the delay apart"
                assert now >= domain.not_before - EPSILON_S, "I3 a request before not_before"
            self.started[domain.name] = now
            self.in_flight[domain.name] = id

        def settled(self) -> None:
            """A request is over when the ledger says that its domain is idle: finished, left, or its worker is dead."""
            self.in_flight = {name: id for name, id in self.in_flight.items() if self.plain.domains[name].busy == id}

        def snapshot(self) -> dict[UrlId, UrlRecord]:
            ids = [id_of(page) for page in range(PAGES)]
            return {record.url.id: record for record in self.run(self.ledger.records(ids)) if record is not None}

        def check_steps(self, *verbs: Verb) -> None:
            """Every URL moved by the table, if at all; a closed one did not change (I2). Verbs act in this order."""
            after = self.snapshot()
            for id, record in after.items():
                old = self.before.get(id)
                before = None if old is None else old.state
                assert record.state in reachable(before, verbs), f"illegal: {before!r} → {record.state!r} by {verbs}"
                if old is not None and before is State.CLOSED:
                    assert record == old, "I2 a closed URL changed"
            self.before = after
            self.settled()

        # --- The invariants, on what the real ledger says ---

        @invariant()
        def agrees_with_the_plain_ledger(self) -> None:
            if not hasattr(self, "plain"):
                return
            for id, u in self.plain.urls.items():
                record = self.before[id]
                assert (record.state, record.worker, record.priority) == (u.state, u.worker, u.priority), id
                assert (record.suspect, record.deaths, record.deferrals) == (bool(u.suspect), u.deaths, u.deferrals), id
                assert record.outcome == u.outcome
                assert record.outcome is not Outcome.BUDGET or record.reason == u.reason
                assert record.url == u.url
            assert len(self.before) == len(self.plain.urls)
            for name, d in self.plain.domains.items():
                real = self.run(self.ledger.domain(name))
                assert real is not None
                parked = len(self.plain.those(State.PARKED, domain=name))
                assert (real.out, real.parked, real.busy) == (self.plain.out(d), parked, d.busy), name
                assert (real.failures, real.rests, real.closed) == (d.failures, d.rests, d.closed), name
                assert (real.site, real.begun) == (d.site, d.begun), name
                for ours, theirs in ((real.next_at, d.next_at), (real.not_before, d.not_before), (real.delay_s, d.delay_s)):
                    assert abs(ours - theirs) < EPSILON_S, name
                assert (real.due_at is None) == (d.due_at is None), f"{name}: due at {real.due_at}, not {d.due_at}"
            workers = self.run(self.ledger.workers())
            live = [w for w in self.plain.workers.values() if w.lease_until > self.harness.now()]
            assert [(w.id, w.load) for w in workers] == [(w.id, self.plain.load(w)) for w in sorted(live, key=lambda w: w.id)]

        @invariant()
        def i1_nothing_is_lost(self) -> None:
            for record in self.before.values():
                if record.state is State.PARKED:
                    domain = self.run(self.ledger.domain(record.url.domain))
                    assert domain is not None
                    assert domain.due_at is not None or domain.out > 0, "I1 parked, its domain neither due nor out"

        @invariant()
        def i2_every_twins_original_is_stored_once(self) -> None:
            stored = [r for r in self.before.values() if r.facts is not None and r.facts.blob is not None]
            exact = [self.plain.contents[r.url.id].exact for r in stored if r.url.id in self.plain.contents]
            assert len(exact) == len(stored)
            assert len(set(exact)) == len(exact), "I2 a content is stored twice"

        @invariant()
        def the_pages_that_are_told_are_those_that_are_stored_each_once(self) -> None:
            if not hasattr(self, "plain"):
                return
            told = self.run(self.ledger.pages(0, 1_000))
            assert [place for place, _ in told] == list(range(1, self.plain.stored + 1))
            assert all(record == self.before[record.url.id] for _, record in told)
            assert len({record.url.id for _, record in told}) == self.plain.stored

        @invariant()
        def i4_budgets_are_exact(self) -> None:
            if not hasattr(self, "plain"):
                return
            counts, rules = self.run(self.ledger.counts()), self.plain.rules
            assert counts.stored == self.plain.stored
            assert counts.fetching == self.plain.fetching
            assert counts.reserved_bytes == self.plain.reserved_bytes
            assert (counts.used_bytes, counts.charged_bytes) == (self.plain.used_bytes, self.plain.charged_bytes)
            assert counts.stored + counts.fetching <= rules.max_pages, "I4 more pages than the budget"
            committed = counts.used_bytes + counts.charged_bytes + counts.reserved_bytes
            assert committed <= rules.max_bytes, "I4 more bytes than the budget"
            tally = {state: sum(1 for r in self.before.values() if r.state is state) for state in State}
            assert counts.states == tally
            assert sum(counts.outcomes.values()) == tally[State.CLOSED]

        @invariant()
        def i4_budgets_of_hosts_sites_and_paths_are_exact(self) -> None:
            if not hasattr(self, "plain"):
                return
            counts, plain = self.run(self.ledger.counts()), self.plain
            assert counts.refused == dict(plain.refused)
            assert counts.budgets == Counter(r.reason for r in self.before.values() if r.outcome is Outcome.BUDGET)
            for name in {d.site for d in plain.domains.values()}:
                site = self.run(self.ledger.site(name))
                assert site is not None
                assert (site.hosts, site.begun, site.own) == (plain.hosts(name), plain.begun(name), name in plain.own), name
            for d in plain.domains.values():
                bound = d.name not in plain.scope and not plain.lifted(d)
                assert not bound or plain.rules.max_host_pages is None or d.begun <= plain.rules.max_host_pages, (
                    "I4 a host's budget"
                )

        @invariant()
        def i5_a_domain_is_with_one_worker(self) -> None:
            owners: dict[str, set[int | None]] = {}
            for record in self.before.values():
                if record.state in HELD:
                    owners.setdefault(record.url.domain, set()).add(record.worker)
            assert all(len(workers) == 1 for workers in owners.values()), "I5 a domain is with two workers"

        @invariant()
        def i7_complete_means_complete(self) -> None:
            if not hasattr(self, "plain"):
                return
            crawl = self.run(self.ledger.crawl())
            assert (crawl.status, crawl.outcome) == (self.plain.status, self.plain.outcome)
            assert crawl.scope == self.plain.scope
            if crawl.outcome is CrawlOutcome.COMPLETE:
                assert all(r.state is State.CLOSED for r in self.before.values()), "I7 complete with open URLs"
            if crawl.status is CrawlStatus.ENDED:
                assert not any(r.state is State.FETCHING for r in self.before.values()), "I7 ended with requests in flight"

    return LedgerMachine


def kinds(answer: Any) -> Any:
    """Answers without what may differ: how long to wait is advice, and of two twins that are equally alike either will do."""
    if isinstance(answer, Sequence) and not isinstance(answer, str | bytes):
        return [kinds(one) for one in answer]
    match answer:
        case Wait(why=why):
            return why
        case Twin(similarity=similarity):
            return Twin, round(similarity, 6)
        case _:
            return answer
