"""The ledger's contract: what the port promises, said again as tests.

    class TestMyLedger(LedgerContract):
        @pytest.fixture
        async def harness(self):
            made = MyHarness()          # gossamer.testing.harness.LedgerHarness: a fresh ledger, and its clock
            yield made
            await made.close()

The random walk beside the plain ledger is gossamer/testing/ledger_machine.py; these are its named examples.
"""

from collections.abc import Sequence
from inspect import signature

import pytest

from gossamer.answers import Dropped, Fresh, Go, Routing, Twin, Unrouted, Wait, Why
from gossamer.budgets import Budget
from gossamer.errors import Fenced, NoCrawl
from gossamer.ids import URL_ID_BYTES, UrlId
from gossamer.messages import Link, Url
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.ports.blobs import BlobRef
from gossamer.ports.ledger import Ledger
from gossamer.records import (
    Closing,
    Content,
    CrawlStatus,
    Deferral,
    DomainRecord,
    Facts,
    Leaving,
    PassedUp,
    Refused,
    Robots,
    Rules,
    Seat,
    SiteRecord,
    UrlRecord,
    Visit,
)
from gossamer.states import STEPS, State, Verb
from gossamer.testing.harness import LedgerHarness

REQUEST_BYTES = 100
BLOB = BlobRef("segment", 0, 1, bytes(32))
STORED = Facts(status=200, blob=BLOB)


def url(number: int, domain: str = "a.example") -> Url:
    return link(number, domain).found()


def link(number: int, domain: str = "a.example") -> Link:
    return Link(UrlId(number.to_bytes(URL_ID_BYTES)), f"http://{domain}/{number}", domain)


def rules(
    *,
    max_pages: int = 100,
    max_bytes: int = 100_000,
    queue_size: int = 100,
    delay_s: float = 1.0,
    poison_deaths: int = 2,
    similarity: float | None = None,
    keep_outlinks: bool = False,
    max_host_pages: int | None = None,
    max_domain_pages: int | None = None,
    max_hosts: int | None = None,
    max_variants: int | None = None,
    lifted: tuple[str, ...] = (),
) -> Rules:
    return Rules(
        max_host_pages=max_host_pages,
        max_domain_pages=max_domain_pages,
        max_hosts=max_hosts,
        max_variants=max_variants,
        lifted=lifted,
        max_pages=max_pages,
        max_bytes=max_bytes,
        request_bytes=REQUEST_BYTES,
        queue_size=queue_size,
        delay_s=delay_s,
        lease_s=15.0,
        poison_deaths=poison_deaths,
        domain_failures=3,
        domain_rest_s=10.0,
        domain_rests=2,
        similarity=similarity,
        keep_outlinks=keep_outlinks,
    )


class Crawl:
    """A crawl under test: the ledger, and the steps that most tests begin with."""

    def __init__(self, harness: LedgerHarness) -> None:
        self.harness = harness
        self.ledger = harness.ledger
        self.advance = harness.advance

    async def record(self, of: Url) -> UrlRecord:
        (record,) = await self.ledger.records([of.id])
        assert record is not None
        return record

    async def state(self, of: Url) -> State:
        return (await self.record(of)).state

    async def domain(self, name: str = "a.example") -> DomainRecord:
        domain = await self.ledger.domain(name)
        assert domain is not None
        return domain

    async def routed(self, *urls: Url) -> None:
        """Adds these and routes them; each must find a worker."""
        await self.ledger.add(urls)
        answers = await self.ledger.route([(one.id, 50) for one in urls])
        assert not any(isinstance(answer, Unrouted) for answer in answers), answers

    async def fetching(self, seat: Seat, *urls: Url) -> None:
        """Adds, routes and begins these; each must be let through."""
        await self.routed(*urls)
        answers = await self.ledger.begin(seat, [one.id for one in urls])
        assert all(isinstance(answer, Go) for answer in answers), answers

    async def finish(
        self, seat: Seat, of: Url, outcome: Outcome = Outcome.GONE, links: Sequence[Link] = (), facts: Facts | None = None
    ) -> list[Url]:
        facts = facts or (STORED if outcome is Outcome.DONE else Facts(status=404))
        return await self.ledger.finish(seat, [Closing(id=of.id, outcome=outcome, facts=facts, links=links)])


async def begun(harness: LedgerHarness, some: Rules | None = None, workers: int = 1) -> tuple[Crawl, list[Seat]]:
    """A running crawl with so many workers, each in a process of its own."""
    crawl = Crawl(harness)
    await crawl.ledger.create(some or rules())
    return crawl, [await crawl.ledger.register(f"process {n}") for n in range(workers)]


#: Those that carry its seat, as the port names them.
_WORKERS_VERBS = [
    name for name in vars(Ledger) if not name.startswith("_") and "seat" in signature(getattr(Ledger, name)).parameters
]


class LedgerContract:
    """Subclass it, give it a `harness` fixture."""

    # --- The crawl ---

    async def test_a_ledger_without_a_crawl_says_so(self, harness: LedgerHarness) -> None:
        with pytest.raises(NoCrawl):
            await harness.ledger.crawl()
        with pytest.raises(NoCrawl):
            await harness.ledger.resume(rules())
        with pytest.raises(NoCrawl):
            await harness.ledger.add([url(1)])
        await harness.ledger.create(rules())
        assert (await harness.ledger.crawl()).status is CrawlStatus.RUNNING, "what was refused left nothing behind"

    async def test_creating_a_crawl_twice_leaves_the_first(self, harness: LedgerHarness) -> None:
        await harness.ledger.create(rules(max_pages=7))
        await harness.ledger.create(rules(max_pages=8))

        crawl = await harness.ledger.crawl()
        assert crawl.rules == rules(max_pages=7)
        assert crawl.status is CrawlStatus.RUNNING
        assert crawl.outcome is None

    async def test_a_url_is_added_once_whatever_the_spelling_of_the_call(self, harness: LedgerHarness) -> None:
        crawl, _ = await begun(harness)

        assert await crawl.ledger.add([url(1), url(2), url(1)], scope=["a.example"]) == [url(1), url(2)]
        assert await crawl.ledger.add([url(2), url(3)], scope=["a.example", "b.example"]) == [url(3)]

        assert (await crawl.ledger.counts()).open == 3
        assert (await crawl.ledger.crawl()).scope == {"a.example", "b.example"}
        assert (await crawl.record(url(3))).url == url(3)

    async def test_a_crawl_is_complete_only_when_nothing_is_open(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        assert (await crawl.ledger.end()).status is CrawlStatus.RUNNING

        await crawl.finish(seat, url(1), Outcome.DONE, links=[link(2)])
        assert (await crawl.ledger.end()).status is CrawlStatus.RUNNING, "the last page brought a link"

        await crawl.advance(1)
        await crawl.fetching(seat, url(2))
        await crawl.finish(seat, url(2))
        ended = await crawl.ledger.end()
        assert (ended.status, ended.outcome) == (CrawlStatus.ENDED, CrawlOutcome.COMPLETE)

    async def test_a_stopped_crawl_drains_and_then_ends(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        await crawl.ledger.add([url(2, "b.example")])

        await crawl.ledger.stop(CrawlOutcome.STOPPED)

        assert (await crawl.ledger.end()).status is CrawlStatus.DRAINING, "a request is in flight"
        assert await crawl.ledger.route([(url(2).id, 50)]) == [Unrouted.NO_ROOM]
        assert await crawl.finish(seat, url(1), Outcome.DONE, links=[link(3)]) == [link(3).found(1, 0, url(1).id)]
        ended = await crawl.ledger.end()
        assert (ended.status, ended.outcome) == (CrawlStatus.ENDED, CrawlOutcome.STOPPED)

    async def test_a_resumed_crawl_goes_on_at_once_and_blames_no_page(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        await crawl.ledger.stop(CrawlOutcome.STOPPED)

        await crawl.ledger.resume(rules(max_pages=7), nobody_lives=True)

        record = await crawl.record(url(1))
        assert (record.state, record.suspect) == (State.WAITING, False)
        assert await crawl.ledger.workers() == []
        with pytest.raises(Fenced):
            await crawl.ledger.renew(seat)
        resumed = await crawl.ledger.crawl()
        assert (resumed.status, resumed.outcome, resumed.rules) == (CrawlStatus.RUNNING, None, rules(max_pages=7))
        assert (await crawl.ledger.counts()).charged_bytes == REQUEST_BYTES
        (new_seat,) = [await crawl.ledger.register("new")]
        await crawl.ledger.route([(url(1).id, 50)])
        (answer,) = await crawl.ledger.begin(new_seat, [url(1).id])
        assert isinstance(answer, Wait), "a request was in flight: its domain waits one delay from then"
        await crawl.advance(1)
        assert isinstance((await crawl.ledger.begin(new_seat, [url(1).id]))[0], Go)

    async def test_an_operator_who_may_err_about_the_dead_waits_for_their_requests(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        await crawl.advance(5)

        await crawl.ledger.resume(rules())

        again = await crawl.ledger.register("again")
        await crawl.ledger.route([(url(1).id, 50)])
        (answer,) = await crawl.ledger.begin(again, [url(1).id])
        assert isinstance(answer, Wait)
        assert answer.seconds == pytest.approx(11, abs=0.1), "the rest of the old lease, and a delay"

    async def test_a_complete_crawl_that_is_given_more_goes_on(self, harness: LedgerHarness) -> None:
        crawl, _ = await begun(harness)
        assert (await crawl.ledger.end()).outcome is CrawlOutcome.COMPLETE

        await crawl.ledger.add([url(1)])

        assert (await crawl.ledger.crawl()).status is CrawlStatus.RUNNING
        assert await crawl.ledger.route([(url(1).id, 50)]) == [0]

    async def test_a_worker_that_comes_too_late_wakes_no_complete_crawl(self, harness: LedgerHarness) -> None:
        crawl, (late,) = await begun(harness)
        await crawl.advance(15)
        assert (await crawl.ledger.end()).outcome is CrawlOutcome.COMPLETE

        with pytest.raises(Fenced):
            await crawl.ledger.add([url(1)], seat=late)

        assert (await crawl.ledger.crawl()).outcome is CrawlOutcome.COMPLETE
        assert await crawl.ledger.records([url(1).id]) == [None]

    async def test_a_worker_brings_urls_as_whoever_starts_the_crawl_does(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)

        assert await crawl.ledger.add([url(1)], seat=seat) == [url(1)]
        assert await crawl.ledger.add([url(1)], seat=seat) == []

    async def test_a_complete_crawl_stays_complete_when_it_is_resumed(self, harness: LedgerHarness) -> None:
        crawl, _ = await begun(harness)
        await crawl.ledger.end()

        await crawl.ledger.resume(rules(max_pages=7))

        assert (await crawl.ledger.crawl()).outcome is CrawlOutcome.COMPLETE

    async def test_a_crawl_is_kept_for_its_time_to_live_from_its_last_step(self, harness: LedgerHarness) -> None:
        crawl, _ = await begun(harness)
        await crawl.advance(1000)

        await crawl.ledger.keep()

        assert (await crawl.ledger.crawl()).kept_until == pytest.approx(harness.now() + rules().ttl_s, abs=0.5)

    # --- Leases ---

    async def test_a_crawl_is_kept_from_its_end_on_whoever_still_looks_after_it(self, harness: LedgerHarness) -> None:
        crawl, _ = await begun(harness)
        await crawl.advance(100)
        assert (await crawl.ledger.end()).status is CrawlStatus.ENDED
        kept_until = (await crawl.ledger.crawl()).kept_until
        assert kept_until == pytest.approx(harness.now() + rules().ttl_s, abs=0.5), "its end is its last step"

        await crawl.advance(60)
        await crawl.ledger.keep()

        assert (await crawl.ledger.crawl()).kept_until == kept_until

    async def test_workers_get_the_lowest_ids_and_each_a_newer_epoch(self, harness: LedgerHarness) -> None:
        crawl, seats = await begun(harness, workers=3)
        assert [seat.worker for seat in seats] == [0, 1, 2]

        await crawl.ledger.release(seats[1])
        again = await crawl.ledger.register("four")

        assert again.worker == 1
        assert again.epoch > seats[1].epoch
        assert [worker.id for worker in await crawl.ledger.workers()] == [0, 1, 2]

    async def test_a_lease_that_is_renewed_is_never_over(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        for _ in range(10):
            await crawl.advance(14)
            assert (await crawl.ledger.renew(seat)).status is CrawlStatus.RUNNING
        assert [worker.id for worker in await crawl.ledger.workers()] == [0]

    @pytest.mark.parametrize("verb", _WORKERS_VERBS)
    async def test_a_worker_whose_lease_is_over_changes_nothing(self, harness: LedgerHarness, verb: str) -> None:
        crawl, (late,) = await begun(harness)
        await crawl.fetching(late, url(1))
        await crawl.routed(url(2))
        await crawl.advance(15)
        before = await _everything(crawl)

        with pytest.raises(Fenced):
            await _call(crawl, late, verb)

        assert await _everything(crawl) == before

    @pytest.mark.parametrize("verb", _WORKERS_VERBS)
    async def test_a_worker_with_an_old_epoch_changes_nothing_that_its_successor_holds(
        self, harness: LedgerHarness, verb: str
    ) -> None:
        crawl, (old,) = await begun(harness)
        await crawl.fetching(old, url(1))
        await crawl.advance(15)
        new = await crawl.ledger.register("another", old)
        assert new.worker == old.worker
        await crawl.routed(url(1), url(2))
        await crawl.advance(1)  # its domain's delay
        assert isinstance((await crawl.ledger.begin(new, [url(1).id]))[0], Go)
        before = await _everything(crawl)

        with pytest.raises(Fenced):
            await _call(crawl, old, verb)

        assert await _everything(crawl) == before
        assert {one.id for one in await crawl.ledger.held(new)} == {url(1).id, url(2).id}

    async def test_what_a_dead_worker_held_waits_again(self, harness: LedgerHarness) -> None:
        crawl, (dead, live) = await begun(harness, workers=2)
        await crawl.fetching(dead, url(1))
        await crawl.routed(url(2))
        assert [u.id for u in await crawl.ledger.held(dead)] == [url(1).id, url(2).id]
        await crawl.advance(10)
        await crawl.ledger.renew(live)
        await crawl.advance(5)

        assert set(await crawl.ledger.reap()) == {url(1).id, url(2).id}

        fetched, routed = await crawl.record(url(1)), await crawl.record(url(2))
        assert (fetched.state, fetched.suspect, fetched.worker) == (State.WAITING, True, None)
        assert (routed.state, routed.suspect) == (State.WAITING, False)
        counts = await crawl.ledger.counts()
        assert (counts.charged_bytes, counts.reserved_bytes) == (REQUEST_BYTES, 0)
        assert await crawl.ledger.reap() == []
        # Its domain waits a delay from now: nobody knows when the request went out.
        assert await crawl.ledger.route([(url(2).id, 50)]) == [live.worker]
        (answer,) = await crawl.ledger.begin(live, [url(2).id])
        assert isinstance(answer, Wait)
        assert answer.why is Why.DELAY

    async def test_released_urls_wait_again_and_are_no_suspects(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        await crawl.routed(url(2))

        assert set(await crawl.ledger.release(seat)) == {url(1).id, url(2).id}

        for one in (url(1), url(2)):
            record = await crawl.record(one)
            assert (record.state, record.suspect) == (State.WAITING, False)
        assert await crawl.ledger.workers() == []

    # --- Suspects and poison ---

    async def test_a_page_that_kills_its_worker_again_and_again_is_poison(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        for deaths in range(3):
            assert await crawl.state(url(1)) is State.WAITING if deaths else True
            await crawl.fetching(seat, url(1))
            await crawl.advance(15)
            seat = await crawl.ledger.register("next")
            await crawl.advance(1)

        record = await crawl.record(url(1))
        assert (record.state, record.outcome, record.deaths) == (State.CLOSED, Outcome.POISON, 2)

    async def test_poisoned_pages_are_listed_the_newest_first(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(poison_deaths=1))
        for one in (url(1), url(2, "b.example")):
            await crawl.ledger.add([one])
            for _ in range(2):
                await crawl.ledger.route([(one.id, 50)])
                await crawl.ledger.begin(seat, [one.id])
                await crawl.advance(15)
                seat = await crawl.ledger.register("process 0")
                await crawl.advance(1)
        await crawl.fetching(seat, url(3, "c.example"))
        await crawl.finish(seat, url(3, "c.example"))

        assert [record.url for record in await crawl.ledger.poisoned(10)] == [url(2, "b.example"), url(1)]
        assert [record.url for record in await crawl.ledger.poisoned(1)] == [url(2, "b.example")]

    async def test_with_poison_off_a_page_is_tried_for_ever(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(poison_deaths=0))
        for _ in range(5):
            await crawl.fetching(seat, url(1))
            await crawl.advance(15)
            seat = await crawl.ledger.register("next")
            await crawl.advance(1)
        assert await crawl.state(url(1)) is State.WAITING

    async def test_a_suspect_is_fetched_alone_in_its_process(self, harness: LedgerHarness) -> None:
        crawl, (dead,) = await begun(harness)
        await crawl.fetching(dead, url(1))
        await crawl.advance(15)
        one = await crawl.ledger.register("p")
        two = await crawl.ledger.register("p")
        elsewhere = await crawl.ledger.register("q")
        await crawl.advance(1)
        b, c, d = url(2, "b.example"), url(3, "c.example"), url(4, "d.example")
        await crawl.routed(url(1), b, c, d)
        assert [(await crawl.record(u)).worker for u in (url(1), b, c, d)] == [0, 1, 2, 0]

        assert isinstance((await crawl.ledger.begin(two, [b.id]))[0], Go)
        (answer,) = await crawl.ledger.begin(one, [url(1).id])
        assert isinstance(answer, Wait)
        assert answer.why is Why.ALONE, "another page is being fetched in its process"

        await crawl.finish(two, b)
        assert isinstance((await crawl.ledger.begin(one, [url(1).id]))[0], Go)
        (answer,) = await crawl.ledger.begin(one, [d.id])
        assert isinstance(answer, Wait)
        assert answer.why is Why.ALONE, "a suspect is being fetched in its process"
        assert isinstance((await crawl.ledger.begin(elsewhere, [c.id]))[0], Go), "other processes go on"

        await crawl.finish(one, url(1))
        assert isinstance((await crawl.ledger.begin(one, [d.id]))[0], Go)

    async def test_a_worker_that_lives_clears_what_its_lapse_made_suspect(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        await crawl.advance(15)
        await crawl.ledger.reap()
        assert (await crawl.record(url(1))).suspect

        await crawl.ledger.register("process 0", formerly=seat)

        record = await crawl.record(url(1))
        assert (record.suspect, record.deaths) == (False, 0)

    async def test_a_suspect_that_is_being_fetched_is_cleared_by_that_visit_alone(self, harness: LedgerHarness) -> None:
        crawl, (lapsed,) = await begun(harness)
        await crawl.fetching(lapsed, url(1))
        await crawl.advance(16)
        seat = await crawl.ledger.register("another")
        await crawl.advance(1)
        await crawl.fetching(seat, url(1))

        await crawl.ledger.register("process 0", formerly=lapsed)

        b, c = url(2, "b.example"), url(3, "c.example")
        await crawl.finish(seat, url(1))
        await crawl.ledger.add([b, c])
        held = {one: await crawl.ledger.route([(one.id, 50)]) for one in (b, c)}
        mine = [one for one, answer in held.items() if answer == [seat.worker]]
        assert all(isinstance(answer, Go) for answer in await crawl.ledger.begin(seat, [one.id for one in mine]))
        await crawl.routed(url(4, "d.example"), url(5, "e.example"), url(6, "f.example"))
        more = [one.id for one in await crawl.ledger.held(seat)]
        assert all(isinstance(answer, Go) for answer in await crawl.ledger.begin(seat, more))

    async def test_a_suspect_that_is_deferred_by_a_living_worker_is_no_suspect(self, harness: LedgerHarness) -> None:
        crawl, (dead,) = await begun(harness)
        await crawl.fetching(dead, url(1))
        await crawl.advance(16)
        seat = await crawl.ledger.register("another")
        await crawl.advance(1)
        await crawl.fetching(seat, url(1))
        assert (await crawl.record(url(1))).suspect

        await crawl.ledger.defer(seat, [Deferral(id=url(1).id)])

        assert not (await crawl.record(url(1))).suspect

    async def test_robots_txt_is_company_too(self, harness: LedgerHarness) -> None:
        crawl, (dead,) = await begun(harness)
        await crawl.fetching(dead, url(1))
        await crawl.advance(16)
        seat = await crawl.ledger.register("p")
        await crawl.advance(1)
        b = url(2, "b.example")
        await crawl.routed(url(1), b)

        assert isinstance(await crawl.ledger.knock(seat, b.id), Go)
        (answer,) = await crawl.ledger.begin(seat, [url(1).id])
        assert isinstance(answer, Wait)
        assert answer.why is Why.ALONE
        await crawl.ledger.leave(seat, [Leaving(id=b.id)])
        assert isinstance((await crawl.ledger.begin(seat, [url(1).id]))[0], Go)
        await crawl.advance(1)
        answer = await crawl.ledger.knock(seat, b.id)
        assert isinstance(answer, Wait)
        assert answer.why is Why.ALONE

    async def test_a_robots_txt_that_kills_its_worker_is_the_domains_failure(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.ledger.add([url(1)])
        for _ in range(3):
            await crawl.ledger.route([(url(1).id, 50)])
            assert isinstance(await crawl.ledger.knock(seat, url(1).id), Go)
            await crawl.advance(15)
            seat = await crawl.ledger.register("next")
            await crawl.advance(1)

        domain = await crawl.domain()
        assert (domain.failures, domain.rests) == (3, 1)
        assert not (await crawl.record(url(1))).suspect

    async def test_a_page_that_hangs_its_worker_is_pardoned_once(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        pardons = []
        for _ in range(2):
            await crawl.fetching(seat, url(1))
            await crawl.advance(16)
            seat = await crawl.ledger.register("it lives", formerly=seat)
            await crawl.advance(1)
            pardons.append((await crawl.record(url(1))).suspect)
        assert pardons == [False, True]

    # --- Route and promote ---

    async def test_a_domain_stays_with_its_worker(self, harness: LedgerHarness) -> None:
        crawl, (_, second) = await begun(harness, workers=2)
        a, b = [url(n) for n in range(3)], url(10, "b.example")
        await crawl.ledger.add([*a, b])

        assert await crawl.ledger.route([(u.id, 50) for u in (a[0], b, a[1])]) == [0, 1, 0]

        domain = await crawl.domain()
        assert (domain.owner, domain.out) == (0, 2)
        assert [worker.load for worker in await crawl.ledger.workers()] == [2, 1]
        assert second.worker == 1

    async def test_a_domain_without_work_keeps_its_worker_for_a_while(self, harness: LedgerHarness) -> None:
        crawl, (first, second) = await begun(harness, workers=2)
        await crawl.routed(url(1))
        await crawl.ledger.pass_up(first, [PassedUp(id=url(1).id, outcome=Outcome.ROBOTS_DENIED)])
        await crawl.routed(url(2, "b.example"), url(3, "c.example"))  # to 0 and 1: loads are even, so 0 would be next
        await crawl.ledger.pass_up(second, [PassedUp(id=url(3).id, outcome=Outcome.ROBOTS_DENIED)])

        await crawl.ledger.add([url(4)])
        assert await crawl.ledger.route([(url(4).id, 50)]) == [first.worker], "less loaded or not"
        await crawl.ledger.pass_up(first, [PassedUp(id=url(4).id, outcome=Outcome.ROBOTS_DENIED)])

        for _ in range(31):
            await crawl.advance(10)
            await crawl.ledger.renew(first)
            await crawl.ledger.renew(second)
        await crawl.ledger.add([url(5)])
        assert await crawl.ledger.route([(url(5).id, 50)]) == [second.worker], "after five minutes the least loaded"

    async def test_a_domain_with_something_out_stays_with_its_worker_however_long(self, harness: LedgerHarness) -> None:
        crawl, seats = await begun(harness, workers=2)
        await crawl.routed(url(1))
        for _ in range(40):
            await crawl.advance(10)
            for seat in seats:
                await crawl.ledger.renew(seat)

        await crawl.routed(url(2))

        assert (await crawl.record(url(2))).worker == (await crawl.record(url(1))).worker == 0

    async def test_a_doubled_hint_is_routed_once(self, harness: LedgerHarness) -> None:
        crawl, _ = await begun(harness)
        await crawl.ledger.add([url(1)])
        assert await crawl.ledger.route([(url(1).id, 50), (url(1).id, 50), (url(9).id, 1)]) == [
            0,
            Unrouted.CLOSED,
            Unrouted.CLOSED,
        ]

    async def test_without_a_worker_that_has_room_a_url_goes_on_waiting(self, harness: LedgerHarness) -> None:
        crawl = Crawl(harness)
        await crawl.ledger.create(rules(queue_size=1))
        await crawl.ledger.add([url(1), url(2, "b.example")])
        assert await crawl.ledger.route([(url(1).id, 50)]) == [Unrouted.NO_ROOM]

        await crawl.ledger.register("late")

        assert await crawl.ledger.route([(url(1).id, 50), (url(2).id, 50)]) == [0, Unrouted.NO_ROOM]
        assert await crawl.state(url(2)) is State.WAITING

    async def test_a_domain_takes_no_more_than_its_window_and_parks_the_rest(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)  # delay 1 s: a window of 2
        urls = [url(n) for n in range(7)]
        await crawl.ledger.add(urls)

        answers = await crawl.ledger.route([(u.id, 90 - n) for n, u in enumerate(urls)])

        assert answers == [0, 0, *[Unrouted.PARKED] * 5]
        assert await crawl.ledger.promote(10) == []
        assert isinstance((await crawl.ledger.begin(seat, [urls[0].id]))[0], Go)
        await crawl.finish(seat, urls[0])
        (promoted,) = await crawl.ledger.promote(10)
        assert promoted == Routing(seat.worker, urls[6], 84), "the best of the parked"
        assert (await crawl.domain()).parked == 4

    async def test_a_new_url_does_not_go_ahead_of_those_that_are_parked(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        urls = [url(n) for n in range(4)]
        await crawl.ledger.add(urls)
        await crawl.ledger.route([(urls[0].id, 50), (urls[1].id, 50), (urls[2].id, 10)])
        await crawl.ledger.pass_up(seat, [PassedUp(id=urls[0].id, outcome=Outcome.ROBOTS_DENIED)])

        assert await crawl.ledger.route([(urls[3].id, 20)]) == [Unrouted.PARKED], "though the window has room"

        assert [routing.url for routing in await crawl.ledger.promote(10)] == [urls[2]]

    async def test_a_parked_url_whose_rank_rises_is_promoted_first(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        urls = [url(n) for n in range(6)]
        await crawl.ledger.add(urls)
        await crawl.ledger.route([(u.id, 50) for u in urls])

        await crawl.ledger.rank([(urls[5].id, 3), (urls[0].id, 1), (url(99).id, 1)])

        assert (await crawl.record(urls[5])).priority == 3
        assert (await crawl.record(urls[0])).priority == 50, "it is routed already"
        await crawl.ledger.pass_up(seat, [PassedUp(id=urls[0].id, outcome=Outcome.ROBOTS_DENIED)])
        assert [routing.url for routing in await crawl.ledger.promote(10)] == [urls[5]]

    async def test_a_due_domain_waits_for_a_worker_with_room(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(queue_size=1))
        a, b = url(1), url(2, "b.example")
        await crawl.fetching(seat, a)
        await crawl.ledger.defer(seat, [Deferral(id=a.id, until_s=5)])
        await crawl.fetching(seat, b)
        await crawl.advance(5)
        assert await crawl.ledger.promote(10) == []

        await crawl.finish(seat, b)

        assert [routing.url for routing in await crawl.ledger.promote(10)] == [a]

    async def test_a_due_domain_whose_worker_died_goes_to_a_live_one(self, harness: LedgerHarness) -> None:
        crawl, (dead,) = await begun(harness)
        urls = [url(n) for n in range(6)]
        await crawl.ledger.add(urls)
        await crawl.ledger.route([(u.id, 50) for u in urls])  # four routed, two parked
        await crawl.ledger.pass_up(dead, [PassedUp(id=urls[0].id, outcome=Outcome.ROBOTS_DENIED)])  # it is due now
        await crawl.advance(10)
        live = await crawl.ledger.register("live")
        await crawl.advance(5)

        promoted = await crawl.ledger.promote(10)

        assert {routing.worker for routing in promoted} == {live.worker}
        assert (await crawl.domain()).owner == live.worker

    # --- The gate ---

    async def test_one_request_at_a_time_and_a_delay_between_two(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        await crawl.routed(url(2))

        (answer,) = await crawl.ledger.begin(seat, [url(2).id])
        assert isinstance(answer, Wait)
        assert answer.why is Why.BUSY
        await crawl.advance(0.4)
        await crawl.ledger.finish(seat, [Closing(id=url(1).id, outcome=Outcome.GONE, visit=Visit(since_start_s=0.4))])
        (answer,) = await crawl.ledger.begin(seat, [url(2).id])
        assert isinstance(answer, Wait)
        assert answer.why is Why.DELAY
        assert answer.seconds == pytest.approx(0.6, abs=0.05)
        await crawl.advance(0.6)
        assert isinstance((await crawl.ledger.begin(seat, [url(2).id]))[0], Go)

    async def test_the_delay_is_counted_from_the_requests_own_start(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        await crawl.advance(5)  # a slow dial: the request went out 0.1 s ago
        visit = Visit(since_start_s=0.1)
        await crawl.ledger.finish(seat, [Closing(id=url(1).id, outcome=Outcome.GONE, visit=visit)])
        await crawl.routed(url(2))

        (answer,) = await crawl.ledger.begin(seat, [url(2).id])

        assert isinstance(answer, Wait)
        assert answer.seconds == pytest.approx(0.9, abs=0.05)

    async def test_a_page_that_is_closed_long_after_its_request_holds_nobody_up(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        await crawl.ledger.leave(seat, [Leaving(id=url(1).id, visit=Visit(received_bytes=10))])
        await crawl.advance(5)  # a slow module
        await crawl.finish(seat, url(1), Outcome.DONE)
        await crawl.routed(url(2))

        assert isinstance((await crawl.ledger.begin(seat, [url(2).id]))[0], Go)

    async def test_the_delay_that_a_visit_reports_is_the_domains_from_then_on(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        visit = Visit(delay_s=7.0)
        await crawl.ledger.finish(seat, [Closing(id=url(1).id, outcome=Outcome.GONE, visit=visit)])
        await crawl.routed(url(2))

        (answer,) = await crawl.ledger.begin(seat, [url(2).id])

        assert isinstance(answer, Wait)
        assert answer.seconds == pytest.approx(7.0, abs=0.05)
        assert (await crawl.domain()).delay_s == 7.0

    async def test_a_delay_that_is_told_after_its_request_was_written_off_holds_all_the_same(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        assert isinstance(await crawl.ledger.knock(seat, url(1).id), Wait), "nobody left the first request: it is over"

        await crawl.ledger.finish(seat, [Closing(id=url(1).id, outcome=Outcome.GONE, visit=Visit(delay_s=5.0))])

        await crawl.routed(url(2))
        await crawl.advance(1)
        assert isinstance((await crawl.ledger.begin(seat, [url(2).id]))[0], Wait)
        await crawl.advance(4)
        assert isinstance((await crawl.ledger.begin(seat, [url(2).id]))[0], Go)

    async def test_a_begin_whose_answer_was_lost_says_go_again(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))

        assert await crawl.ledger.begin(seat, [url(1).id]) == [Go(REQUEST_BYTES, 0)]

        counts = await crawl.ledger.counts()
        assert (counts.requests, counts.reserved_bytes, counts.fetching) == (1, REQUEST_BYTES, 1)

    async def test_a_url_begun_again_when_its_request_is_over_passes_the_gate_again(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        await crawl.ledger.leave(seat, [Leaving(id=url(1).id)])

        (answer,) = await crawl.ledger.begin(seat, [url(1).id])
        assert isinstance(answer, Wait)
        assert answer.why is Why.DELAY
        await crawl.advance(1)
        assert isinstance((await crawl.ledger.begin(seat, [url(1).id]))[0], Go)
        assert (await crawl.ledger.counts()).fetching == 1

    async def test_a_url_that_is_not_the_workers_is_not_begun(self, harness: LedgerHarness) -> None:
        crawl, (first, second) = await begun(harness, workers=2)
        await crawl.routed(url(1))
        await crawl.ledger.add([url(2, "b.example")])

        assert await crawl.ledger.begin(second, [url(1).id, url(2).id, url(99).id]) == [Dropped.CLOSED] * 3
        assert await crawl.ledger.knock(second, url(1).id) is Dropped.CLOSED
        assert await crawl.state(url(1)) is State.ROUTED
        assert first.worker == 0

    async def test_before_its_not_before_a_routed_url_is_parked_and_comes_back(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(delay_s=0.5))
        await crawl.fetching(seat, url(1))
        await crawl.routed(url(2))
        await crawl.ledger.defer(seat, [Deferral(id=url(1).id, until_s=5.0, reason="429")])

        assert await crawl.ledger.begin(seat, [url(2).id]) == [Dropped.CLOSED]

        assert [await crawl.state(u) for u in (url(1), url(2))] == [State.PARKED, State.PARKED]
        await crawl.ledger.add([url(3)])
        assert await crawl.ledger.route([(url(3).id, 50)]) == [Unrouted.PARKED]
        assert await crawl.ledger.promote(10) == []
        assert (await crawl.record(url(1))).deferrals == 1
        await crawl.advance(5)
        assert {routing.url.id for routing in await crawl.ledger.promote(10)} == {url(1).id, url(2).id, url(3).id}

    async def test_a_url_parked_before_not_before_with_nothing_out_comes_back(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.routed(url(1))
        await crawl.ledger.knock(seat, url(1).id)
        await crawl.ledger.leave(seat, [Leaving(id=url(1).id, until_s=5)])
        await crawl.ledger.pass_up(seat, [PassedUp(id=url(1).id, outcome=Outcome.ROBOTS_DENIED)])
        await crawl.ledger.add([url(2)])

        assert await crawl.ledger.route([(url(2).id, 50)]) == [Unrouted.PARKED]

        await crawl.advance(5)
        assert [routing.url for routing in await crawl.ledger.promote(10)] == [url(2)]

    async def test_a_knock_passes_the_same_gate_but_reserves_no_page(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(max_pages=1))
        await crawl.routed(url(1))

        assert await crawl.ledger.knock(seat, url(1).id) == Go(REQUEST_BYTES, 0)

        counts = await crawl.ledger.counts()
        assert (counts.fetching, counts.reserved_bytes, counts.requests) == (0, REQUEST_BYTES, 1)
        assert (await crawl.domain()).busy == url(1).id
        await crawl.ledger.leave(seat, [Leaving(id=url(1).id, visit=Visit(received_bytes=40))])
        await crawl.ledger.leave(seat, [Leaving(id=url(1).id, visit=Visit(received_bytes=40))])  # its answer was lost
        counts = await crawl.ledger.counts()
        assert (counts.reserved_bytes, counts.used_bytes) == (0, 40)
        (answer,) = await crawl.ledger.begin(seat, [url(1).id])
        assert isinstance(answer, Wait)
        assert answer.why is Why.DELAY

    async def test_requests_left_together_end_as_they_would_one_by_one(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        fetched, knocked, over, waits = urls = [url(number, f"{name}.example") for number, name in enumerate("abcd")]
        await crawl.fetching(seat, fetched, over)
        await crawl.routed(knocked, waits)
        await crawl.ledger.knock(seat, knocked.id)
        await crawl.finish(seat, over)
        visit = Visit(received_bytes=10, delay_s=7.0)

        await crawl.ledger.leave(
            seat,
            [
                Leaving(id=over.id, visit=visit),  # in nobody's hand
                Leaving(id=url(9).id, visit=visit),  # nor was this one ever
                Leaving(id=waits.id, visit=visit, until_s=60),  # it has no request
                Leaving(id=fetched.id, visit=visit),
                Leaving(id=fetched.id, visit=visit),  # it is over by now
                Leaving(id=knocked.id, visit=visit, until_s=60),
            ],
        )

        counts = await crawl.ledger.counts()
        assert (counts.reserved_bytes, counts.used_bytes) == (0, 20)
        domains = [await crawl.domain(one.domain) for one in urls]
        assert [domain.busy for domain in domains] == [None] * 4
        assert [domain.delay_s for domain in domains] == [7.0, 7.0, 1.0, 1.0]
        assert [domain.not_before > harness.now() for domain in domains] == [False, True, False, False]

    async def test_a_robots_txt_that_cant_be_had_yet_holds_the_domain_off(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.routed(url(1))
        await crawl.ledger.knock(seat, url(1).id)

        await crawl.ledger.leave(seat, [Leaving(id=url(1).id, until_s=10)])

        assert await crawl.ledger.knock(seat, url(1).id) is Dropped.CLOSED
        assert await crawl.state(url(1)) is State.PARKED

    async def test_a_retry_waits_for_its_domain_and_is_never_parked(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        await crawl.ledger.leave(seat, [Leaving(id=url(1).id, visit=Visit(received_bytes=10), until_s=3)])

        answer = await crawl.ledger.knock(seat, url(1).id)
        assert isinstance(answer, Wait)
        assert answer.why is Why.NOT_BEFORE
        assert await crawl.state(url(1)) is State.FETCHING
        await crawl.advance(3)
        assert isinstance(await crawl.ledger.knock(seat, url(1).id), Go)

    # --- Budgets ---

    async def test_a_page_budget_ends_at_exactly_its_pages(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(max_pages=2))
        urls = [url(n, f"{n}.example") for n in range(4)]
        await crawl.routed(*urls)
        ids = [u.id for u in urls]

        answers = await crawl.ledger.begin(seat, ids)
        assert [isinstance(answer, Go) for answer in answers] == [True, True, False, False]
        assert all(isinstance(answer, Wait) and answer.why is Why.BUDGET for answer in answers[2:])

        await crawl.finish(seat, urls[0])  # it fails, and frees its share
        assert isinstance((await crawl.ledger.begin(seat, [ids[2]]))[0], Go)
        for done in urls[1:3]:
            await crawl.finish(seat, done, Outcome.DONE)
        assert await crawl.ledger.begin(seat, [ids[3]]) == [Dropped.BUDGET]

        ended = await crawl.ledger.end()
        assert (ended.status, ended.outcome) == (CrawlStatus.ENDED, CrawlOutcome.PAGE_BUDGET)
        counts = await crawl.ledger.counts()
        assert (counts.stored, counts.open) == (2, 1)

    async def test_no_request_begins_that_could_pass_the_byte_budget(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(max_bytes=250))
        urls = [url(n, f"{n}.example") for n in range(4)]
        await crawl.routed(*urls)
        ids = [u.id for u in urls]
        answers = await crawl.ledger.begin(seat, ids[:3])
        assert [isinstance(answer, Go) for answer in answers] == [True, True, False]

        closing = [Closing(id=id, outcome=Outcome.GONE, visit=Visit(received_bytes=90)) for id in ids[:2]]
        await crawl.ledger.finish(seat, closing)

        assert await crawl.ledger.begin(seat, [ids[2]]) == [Dropped.BUDGET]
        assert (await crawl.ledger.end()).outcome is CrawlOutcome.BYTE_BUDGET
        assert (await crawl.ledger.counts()).used_bytes == 180

    async def test_a_retry_without_bytes_left_is_deferred_and_the_crawl_drains(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(max_bytes=150))
        await crawl.fetching(seat, url(1))
        await crawl.ledger.leave(seat, [Leaving(id=url(1).id, visit=Visit(received_bytes=80))])
        await crawl.advance(1)

        assert await crawl.ledger.knock(seat, url(1).id) is Dropped.BUDGET
        assert (await crawl.ledger.end()).status is CrawlStatus.DRAINING
        await crawl.ledger.defer(seat, [Deferral(id=url(1).id)])

        ended = await crawl.ledger.end()
        assert (ended.status, ended.outcome) == (CrawlStatus.ENDED, CrawlOutcome.BYTE_BUDGET)
        await crawl.ledger.resume(rules(max_bytes=1000))
        again = await crawl.ledger.register("again")
        assert [routing.url for routing in await crawl.ledger.promote(10)] == [url(1)]
        assert isinstance((await crawl.ledger.begin(again, [url(1).id]))[0], Go)

    async def test_a_request_that_nobody_left_is_charged_before_the_next(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(max_bytes=150))
        await crawl.routed(url(1))
        assert isinstance(await crawl.ledger.knock(seat, url(1).id), Go)

        assert isinstance(await crawl.ledger.knock(seat, url(1).id), Wait), "the delay, from the request that may have gone out"

        counts = await crawl.ledger.counts()
        assert (counts.charged_bytes, counts.reserved_bytes) == (REQUEST_BYTES, 0)
        await crawl.advance(1)
        assert await crawl.ledger.knock(seat, url(1).id) is Dropped.BUDGET
        assert (await crawl.ledger.end()).outcome is CrawlOutcome.BYTE_BUDGET

    async def test_a_crawl_does_not_end_while_robots_txt_is_being_fetched(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.routed(url(1))
        await crawl.ledger.knock(seat, url(1).id)
        await crawl.ledger.stop(CrawlOutcome.STOPPED)

        assert (await crawl.ledger.end()).status is CrawlStatus.DRAINING
        await crawl.ledger.leave(seat, [Leaving(id=url(1).id)])
        assert (await crawl.ledger.end()).status is CrawlStatus.ENDED

    async def test_bytes_count_once_whoever_tells_of_them(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        await crawl.ledger.leave(seat, [Leaving(id=url(1).id, visit=Visit(received_bytes=50))])
        closing = Closing(id=url(1).id, outcome=Outcome.GONE, visit=Visit(received_bytes=50))
        await crawl.ledger.finish(seat, [closing])
        assert (await crawl.ledger.counts()).used_bytes == 50

    # --- Judge ---

    async def test_of_two_equal_pages_one_is_fresh_and_the_other_waits_until_it_is_stored(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        a, b = url(1), url(2, "b.example")
        await crawl.fetching(seat, a, b)
        same = [Content(id=a.id, exact=b"text"), Content(id=b.id, exact=b"text")]

        fresh, wait = await crawl.ledger.judge(seat, same)
        assert isinstance(fresh, Fresh)
        assert isinstance(wait, Wait)
        assert await crawl.ledger.judge(seat, same[:1]) == [Fresh()], "its own entry is never its twin"

        await crawl.finish(seat, a, Outcome.DONE)
        assert await crawl.ledger.judge(seat, same[1:]) == [Twin(a.id, 1.0)]

    async def test_pages_whose_hashes_begin_alike_are_not_the_same(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        a, b = url(1), url(2, "b.example")
        await crawl.fetching(seat, a, b)
        await crawl.ledger.judge(seat, [Content(id=a.id, exact=bytes(31) + b"a")])
        await crawl.finish(seat, a, Outcome.DONE)

        assert await crawl.ledger.judge(seat, [Content(id=b.id, exact=bytes(31) + b"b")]) == [Fresh()]

    async def test_the_entry_of_a_page_that_fails_is_withdrawn(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        a, b = url(1), url(2, "b.example")
        await crawl.fetching(seat, a, b)
        await crawl.ledger.judge(seat, [Content(id=a.id, exact=b"text")])

        await crawl.finish(seat, a, Outcome.TOO_COMPLEX)

        assert await crawl.ledger.judge(seat, [Content(id=b.id, exact=b"text")]) == [Fresh()]

    async def test_near_duplicates_are_found_by_a_shared_band_and_judged_by_their_signatures(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(similarity=0.9))
        a, near, far, apart = (url(n, f"{n}.example") for n in range(4))
        await crawl.fetching(seat, a, near, far, apart)
        base = b"".join(n.to_bytes(4) for n in range(10))
        contents = {
            a: Content(id=a.id, exact=b"a", signature=base, bands=[b"x", b"y"]),
            near: Content(id=near.id, exact=b"b", signature=base[:36] + b"else", bands=[b"y", b"z"]),
            far: Content(id=far.id, exact=b"c", signature=base[:32] + b"anything", bands=[b"x"]),
            apart: Content(id=apart.id, exact=b"d", signature=base, bands=[b"w"]),
        }
        assert await crawl.ledger.judge(seat, [contents[a]]) == [Fresh()]
        assert isinstance((await crawl.ledger.judge(seat, [contents[near]]))[0], Wait)
        await crawl.finish(seat, a, Outcome.DONE)

        (twin,) = await crawl.ledger.judge(seat, [contents[near]])
        assert isinstance(twin, Twin)
        assert twin.id == a.id
        assert twin.similarity == pytest.approx(0.9)
        assert await crawl.ledger.judge(seat, [contents[far]]) == [Fresh()], "8 of 10 values agree"
        assert await crawl.ledger.judge(seat, [contents[apart]]) == [Fresh()], "no band is shared"

    async def test_a_twin_is_found_behind_many_pages_that_are_merely_like_it(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(similarity=0.9))
        signature, bands = b"".join(n.to_bytes(4) for n in range(10)), [b"x", b"y", b"z"]
        a, *like, b = (url(n, f"{n}.example") for n in range(50))
        await crawl.fetching(seat, a, *like, b)
        contents = [Content(id=a.id, exact=b"a", signature=signature, bands=bands)]
        for at, each in enumerate(like):
            half = signature[:20] + b"".join(n.to_bytes(4) for n in range(100 * at, 100 * at + 5))
            contents.append(Content(id=each.id, exact=b"like %d" % at, signature=half, bands=[bands[at % 3]]))
        assert await crawl.ledger.judge(seat, contents) == [Fresh()] * len(contents)
        for each in (a, *like):
            await crawl.finish(seat, each, Outcome.DONE)

        assert await crawl.ledger.judge(seat, [Content(id=b.id, exact=b"b", signature=signature, bands=bands)]) == [Twin(a.id, 1.0)]

    async def test_a_page_judged_again_with_another_text_has_one_entry(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        a, b = url(1), url(2, "b.example")
        await crawl.fetching(seat, a, b)
        await crawl.ledger.judge(seat, [Content(id=a.id, exact=b"old")])
        assert await crawl.ledger.judge(seat, [Content(id=a.id, exact=b"new")]) == [Fresh()]
        assert await crawl.ledger.judge(seat, [Content(id=b.id, exact=b"old")]) == [Fresh()]

    async def test_only_what_the_worker_is_fetching_is_judged(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.routed(url(1))
        assert await crawl.ledger.judge(seat, [Content(id=url(1).id, exact=b"x")]) == [Dropped.CLOSED]

    # --- Endings ---

    async def test_links_are_added_in_the_step_that_closes_their_page(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))

        new = await crawl.finish(seat, url(1), Outcome.DONE, links=[link(2), link(1), link(3, "b.example"), link(2)])

        children = [link(2).found(1, 0, url(1).id), link(3, "b.example").found(1, 0, url(1).id)]
        assert new == children
        assert [await crawl.state(u) for u in (url(1), url(2), url(3))] == [State.CLOSED, State.WAITING, State.WAITING]
        assert await crawl.finish(seat, url(1), Outcome.DONE, links=[link(4)]) == [], "its answer was lost: passed over"
        assert await crawl.ledger.records([url(4).id]) == [None]
        counts = await crawl.ledger.counts()
        assert (counts.stored, counts.outcomes) == (1, {Outcome.DONE: 1})

    async def test_a_page_may_bring_as_many_links_as_a_large_sitemap_has(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(0))

        new = await crawl.finish(seat, url(0), Outcome.DONE, links=[link(number) for number in range(10_001)])

        assert [each.id for each in new] == [url(number).id for number in range(1, 10_001)]
        assert (await crawl.ledger.counts()).states[State.WAITING] == 10_000

    async def test_a_redirects_target_is_as_deep_as_its_source_and_one_hop_on(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        target = link(2, "b.example")

        closing = Closing(id=url(1).id, outcome=Outcome.REDIRECT, target=target, scope_host="b.example")
        assert await crawl.ledger.finish(seat, [closing]) == [target.found(0, 1, url(1).id)]

        assert (await crawl.ledger.crawl()).scope == {"b.example"}
        await crawl.ledger.route([(target.id, 50)])
        assert await crawl.ledger.begin(seat, [target.id]) == [Go(REQUEST_BYTES, 1)]

    async def test_what_was_finished_keeps_its_facts(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        facts = Facts(status=200, blob=BLOB, title="Été", took_s=0.25)

        await crawl.finish(seat, url(1), Outcome.DONE, facts=facts)

        record = await crawl.record(url(1))
        assert (record.state, record.outcome, record.facts, record.worker) == (State.CLOSED, Outcome.DONE, facts, None)
        assert (await crawl.domain()).stored == 1

    async def test_a_url_passed_up_is_closed_without_a_request(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.routed(url(1))

        await crawl.ledger.pass_up(seat, [PassedUp(id=url(1).id, outcome=Outcome.ROBOTS_DENIED, reason="Disallow: /")])

        record = await crawl.record(url(1))
        assert (record.outcome, record.reason) == (Outcome.ROBOTS_DENIED, "Disallow: /")
        assert (await crawl.ledger.counts()).requests == 0
        assert (await crawl.ledger.workers())[0].load == 0

    async def test_the_worst_are_shed_and_nothing_that_is_held(self, harness: LedgerHarness) -> None:
        crawl, _ = await begun(harness, rules(delay_s=0.5))
        urls = [url(n) for n in range(6)]
        await crawl.ledger.add([*urls, url(7, "b.example")])
        await crawl.ledger.route([(u.id, 60 + n) for n, u in enumerate(urls)])  # four routed, two parked
        await crawl.ledger.rank([(url(7).id, 99)])

        assert await crawl.ledger.shed(5, 100) == 2
        assert await crawl.ledger.shed(5, 100) == 0, "its answer was lost: nothing is too many any more"
        assert [(await crawl.record(u)).outcome for u in (url(7), urls[5])] == [Outcome.SHED, Outcome.SHED]
        assert await crawl.ledger.shed(0, 100) == 1
        assert [await crawl.state(u) for u in urls[:4]] == [State.ROUTED] * 4
        assert (await crawl.domain()).parked == 0

    async def test_a_domain_that_keeps_failing_rests_longer_and_longer_and_is_given_up(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(delay_s=0.0))
        numbers = iter(range(100))

        async def fail() -> None:
            one = url(next(numbers))
            await crawl.fetching(seat, one)
            visit = Visit(failed=Outcome.TIMEOUT)
            await crawl.ledger.finish(seat, [Closing(id=one.id, outcome=Outcome.TIMEOUT, visit=visit)])

        for _ in range(2):
            await fail()
        assert (await crawl.domain()).rests == 0
        for rest_s in (10, 20):
            await fail()
            assert (await crawl.domain()).not_before == pytest.approx(harness.now() + rest_s, abs=0.5)
            for _ in range(rest_s // 10):
                await crawl.ledger.renew(seat)
                await crawl.advance(10)
        await crawl.ledger.renew(seat)
        parked, waits = url(50), url(51)
        await crawl.routed(parked)
        await fail()

        assert (await crawl.domain()).closed is Outcome.TIMEOUT
        assert await crawl.ledger.begin(seat, [parked.id]) == [Dropped.CLOSED]
        await crawl.ledger.add([waits])
        assert await crawl.ledger.route([(waits.id, 50)]) == [Unrouted.CLOSED]
        assert [(await crawl.record(u)).outcome for u in (parked, waits)] == [Outcome.TIMEOUT] * 2

    async def test_the_parked_urls_of_a_domain_that_was_given_up_are_closed_by_promote(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)  # a window of 2: most of these are parked
        urls = [url(n) for n in range(20)]
        await crawl.ledger.add(urls)
        await crawl.ledger.route([(u.id, 50) for u in urls])
        for _ in range(200):
            for held in await crawl.ledger.held(seat):
                if isinstance((await crawl.ledger.begin(seat, [held.id]))[0], Go):
                    visit = Visit(failed=Outcome.TIMEOUT)
                    await crawl.ledger.finish(seat, [Closing(id=held.id, outcome=Outcome.TIMEOUT, visit=visit)])
            if (await crawl.domain()).closed is not None:
                break
            await crawl.advance(1)
            await crawl.ledger.renew(seat)
            await crawl.ledger.promote(100)
        domain = await crawl.domain()
        assert domain.closed is Outcome.TIMEOUT
        assert domain.parked > 5

        for _ in range(len(urls)):
            assert await crawl.ledger.promote(3) == []
        await crawl.ledger.begin(seat, [u.id for u in await crawl.ledger.held(seat)])

        assert {(await crawl.record(u)).outcome for u in urls} == {Outcome.TIMEOUT}
        assert (await crawl.ledger.counts()).requests == 5, "three failures, and one after each rest"
        assert (await crawl.ledger.end()).outcome is CrawlOutcome.COMPLETE

    async def test_a_good_answer_forgives_a_domain_its_failures(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(delay_s=0.0))
        for number in range(3):
            await crawl.fetching(seat, url(number))
            visit = Visit(failed=Outcome.TIMEOUT)
            await crawl.ledger.finish(seat, [Closing(id=url(number).id, outcome=Outcome.TIMEOUT, visit=visit)])
        domain = await crawl.domain()
        assert (domain.failures, domain.rests) == (3, 1)
        await crawl.advance(10)

        await crawl.fetching(seat, url(3))
        await crawl.ledger.finish(seat, [Closing(id=url(3).id, outcome=Outcome.GONE, visit=Visit(answered=True))])

        domain = await crawl.domain()
        assert (domain.failures, domain.rests) == (0, 0)

    async def test_a_failure_that_comes_while_a_domain_rests_is_no_reason_to_rest_again(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(delay_s=0.0))
        urls = [url(number) for number in range(4)]
        for one in urls:  # each is being fetched, its request over: they wait for their retry
            await crawl.fetching(seat, one)
            await crawl.ledger.leave(seat, [Leaving(id=one.id)])

        closings = [Closing(id=u.id, outcome=Outcome.TIMEOUT, visit=Visit(failed=Outcome.TIMEOUT)) for u in urls]
        await crawl.ledger.finish(seat, closings)

        domain = await crawl.domain()
        assert (domain.failures, domain.rests, domain.closed) == (4, 1, None)

    async def test_a_deferral_is_no_rest_that_would_excuse_its_failure(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(delay_s=0.0))
        await crawl.routed(*(url(number) for number in range(3)))
        for number in range(3):
            assert isinstance((await crawl.ledger.begin(seat, [url(number).id]))[0], Go)
            deferral = Deferral(id=url(number).id, until_s=5, visit=Visit(failed=Outcome.HTTP_ERROR))
            await crawl.ledger.defer(seat, [deferral])
            await crawl.advance(5)
            assert (await crawl.domain()).rests == number // 2

        assert (await crawl.domain()).not_before == pytest.approx(harness.now() + 5, abs=0.5), "10 s from the third failure"

    # --- Asking ---

    # --- Budgets of hosts, sites and paths ---

    async def test_what_is_open_of_a_host_closes_when_its_pages_are_used_up(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(max_host_pages=2))  # a window of 4: the fifth is parked
        urls = [url(n) for n in range(5)]
        await crawl.ledger.add([*urls, url(5), url(9, "b.example")])
        await crawl.ledger.route([(u.id, n) for n, u in enumerate(urls)])
        for u in urls[:2]:
            assert isinstance((await crawl.ledger.begin(seat, [u.id]))[0], Go)
            await crawl.finish(seat, u, Outcome.DONE)
            await crawl.advance(1)

        assert await crawl.ledger.begin(seat, [urls[2].id]) == [Dropped.CLOSED]
        assert await crawl.ledger.knock(seat, urls[3].id) is Dropped.CLOSED, "nor is robots.txt asked for"
        assert await crawl.ledger.promote(10) == []
        assert await crawl.ledger.route([(url(5).id, 50), (url(9, "b.example").id, 50)]) == [Unrouted.CLOSED, seat.worker]

        reason = Budget.HOST_PAGES.used_up(2)
        closed = [await crawl.record(u) for u in (*urls[2:], url(5))]
        assert {(record.outcome, record.reason) for record in closed} == {(Outcome.BUDGET, reason)}
        assert (await crawl.domain()).begun == 2
        assert (await crawl.ledger.counts()).budgets == {reason: 4}

    async def test_neither_robots_txt_nor_a_retry_nor_a_lost_answer_is_a_page(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(max_host_pages=2, delay_s=0.0))
        await crawl.routed(url(1))
        assert isinstance(await crawl.ledger.knock(seat, url(1).id), Go)
        await crawl.ledger.leave(seat, [Leaving(id=url(1).id)])
        for _ in range(2):
            assert isinstance((await crawl.ledger.begin(seat, [url(1).id]))[0], Go)
        await crawl.ledger.leave(seat, [Leaving(id=url(1).id)])
        assert isinstance(await crawl.ledger.knock(seat, url(1).id), Go)

        assert (await crawl.domain()).begun == 1
        assert (await crawl.ledger.counts()).requests == 3

    async def test_what_a_dead_worker_had_begun_stays_counted(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(max_host_pages=2, delay_s=0.0))
        for _ in range(2):
            await crawl.fetching(seat, url(1))
            await crawl.advance(20)
            seat = await crawl.ledger.register("another")

        assert (await crawl.domain()).begun == 2
        assert await crawl.ledger.route([(url(1).id, 50)]) == [Unrouted.CLOSED]
        assert (await crawl.record(url(1))).reason == Budget.HOST_PAGES.used_up(2)

    async def test_links_to_a_host_without_pages_left_are_refused_and_never_known(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(max_host_pages=1, delay_s=0.0))
        await crawl.fetching(seat, url(1))

        new = await crawl.finish(seat, url(1), Outcome.DONE, links=[link(2), link(3), link(4, "b.example")])

        assert new == [link(4, "b.example").found(1, 0, url(1).id)]
        assert await crawl.ledger.records([url(2).id]) == [None]
        reason = Budget.HOST_PAGES.used_up(1)
        assert (await crawl.ledger.counts()).refused == {reason: 2}
        assert await crawl.ledger.refused() == [(reason, link(2).url)]
        for n in range(10, 20):  # however many more there are, what can't be asked for costs nothing
            await crawl.fetching(seat, url(n, f"c{n}.example"))
            await crawl.finish(seat, url(n, f"c{n}.example"), Outcome.DONE, links=[link(100 * n + m) for m in range(20)])
        counts = await crawl.ledger.counts()
        assert (counts.open, sum(counts.states.values())) == (1, 12)
        assert counts.refused == {reason: 202}

    async def test_the_pages_of_all_hosts_of_a_domain_have_one_budget(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(max_domain_pages=2, delay_s=0.0))
        sites = {"a.one.example": "one.example", "b.one.example": "one.example"}
        urls = [url(1, "a.one.example"), url(2, "b.one.example"), url(3, "a.one.example"), url(4, "one.example")]
        await crawl.ledger.add(urls, (), sites)
        await crawl.ledger.route([(u.id, 50) for u in urls])

        answers = await crawl.ledger.begin(seat, [u.id for u in urls])

        assert [isinstance(answer, Go) for answer in answers] == [True, True, False, False]
        closed = await crawl.record(urls[3])
        assert (closed.outcome, closed.reason) == (Outcome.BUDGET, Budget.DOMAIN_PAGES.used_up(2))
        site = await crawl.ledger.site("one.example")
        assert site == SiteRecord(name="one.example", hosts=3, begun=2, own=False)
        assert await crawl.ledger.site("two.example") is None
        refused = [link(7, "c.one.example"), link(8, "a.one.example")]
        closing = Closing(id=urls[0].id, outcome=Outcome.GONE, links=refused, sites={"c.one.example": "one.example"})
        assert await crawl.ledger.finish(seat, [closing]) == []

    async def test_seeds_own_hosts_and_domains_have_no_budget_of_pages(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(max_host_pages=1, max_domain_pages=1, delay_s=0.0))
        sites = {"www.one.example": "one.example", "c.one.example": "one.example"}
        await crawl.ledger.add([url(1, "www.one.example")], ["www.one.example"], sites)
        for n in range(1, 5):
            await crawl.fetching(seat, url(n, "www.one.example"))
            await crawl.finish(seat, url(n, "www.one.example"), Outcome.DONE)
        await crawl.fetching(seat, url(5, "www.one.example"))
        moved = Closing(
            id=url(5).id, outcome=Outcome.REDIRECT, target=link(6, "b.example"), scope_host="b.example", links=[link(20)]
        )
        await crawl.ledger.finish(seat, [moved])
        for n in (6, 7):
            await crawl.fetching(seat, url(n, "b.example"))
            await crawl.finish(seat, url(n, "b.example"), Outcome.DONE)

        assert (await crawl.domain("www.one.example")).begun == 5
        assert (await crawl.domain("b.example")).begun == 2, "a seed was moved there"
        await crawl.ledger.add([url(10, "c.one.example"), url(11, "c.one.example")], (), sites)
        await crawl.fetching(seat, url(10, "c.one.example"))
        assert await crawl.ledger.route([(url(11).id, 50)]) == [Unrouted.CLOSED], "another host of the domain is no seed's"

    async def test_a_domain_has_so_many_hosts_and_the_rest_is_refused(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(max_hosts=3))
        hosts = [f"h{n}.one.example" for n in range(50)]
        sites = dict.fromkeys(hosts, "one.example")
        await crawl.ledger.add([url(100, "a.example")], ["a.example"])
        await crawl.fetching(seat, url(100, "a.example"))

        links = [*(link(n, host) for n, host in enumerate(hosts)), link(60, hosts[0]), link(61, "two.example")]
        new = await crawl.ledger.finish(seat, [Closing(id=url(100).id, outcome=Outcome.DONE, links=links, sites=sites)])

        assert [u.domain for u in new] == [*hosts[:3], hosts[0], "two.example"], "further pages of those that are known"
        reason = Budget.HOSTS.used_up(3)
        counts = await crawl.ledger.counts()
        assert counts.refused == {reason: 47}
        assert counts.domains == 5
        late = url(70, "h99.one.example"), {"h99.one.example": "one.example"}
        assert await crawl.ledger.add([late[0]], (), late[1]) == []
        assert await crawl.ledger.add([late[0]], [late[0].domain], late[1]) == [late[0]], "what the operator names is entered"

    async def test_hosts_are_counted_where_their_domain_is_the_unit_of_politeness(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(max_hosts=2))
        await crawl.fetching(seat, url(100, "a.example"))
        links = [Link(link(n).id, f"http://h{n % 4}.one.example:8080/{n}", "one.example") for n in range(8)]  # each host twice

        new = await crawl.finish(seat, url(100, "a.example"), Outcome.DONE, links=links)

        assert [u.id for u in new] == [links[n].id for n in (0, 1, 4, 5)]
        site = await crawl.ledger.site("one.example")
        assert site is not None
        assert site.hosts == 2

    async def test_a_path_has_so_many_variants(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(max_variants=4, delay_s=0.0))
        await crawl.fetching(seat, url(100))
        family = b"8 bytes."
        variants = [link(n)._replace(family=family, combines=True) for n in range(10)]
        alone = [link(n)._replace(family=family) for n in range(10, 15)]
        others = [link(n) for n in range(15, 20)]

        new = await crawl.finish(seat, url(100), Outcome.DONE, links=[alone[0], *variants, *alone[1:], *others])

        # The path without a query is one, and a single parameter counts, but is never refused.
        assert [u.id for u in new] == [one.id for one in (alone[0], *variants[:2], *alone[1:], *others)]
        assert (await crawl.ledger.counts()).refused == {Budget.VARIANTS.used_up(4): 8}
        await crawl.fetching(seat, url(101))
        again = [variants[0], variants[5], link(30)._replace(family=b"another.", combines=True)]
        assert await crawl.finish(seat, url(101), Outcome.DONE, links=again) == [link(30).found(1, 0, url(101).id)]
        await crawl.fetching(seat, url(102))
        moved = Closing(id=url(102).id, outcome=Outcome.REDIRECT, target=variants[7])
        assert await crawl.ledger.finish(seat, [moved]) == [], "a redirect is no way around"

    async def test_one_setting_lifts_the_budgets_of_a_domain_or_a_host(self, harness: LedgerHarness) -> None:
        bounds = rules(
            max_host_pages=1, max_domain_pages=1, max_hosts=1, max_variants=2, delay_s=0.0, lifted=("one.example", "b.two.example")
        )
        crawl, (seat,) = await begun(harness, bounds)
        hosts = ["a.one.example", "b.one.example", "a.two.example", "b.two.example"]
        sites = {host: host[2:] for host in hosts}
        await crawl.fetching(seat, url(100))
        links = [
            link(10 * at + n, host)._replace(family=host.encode()[:8], combines=True)
            for at, host in enumerate(hosts)
            for n in range(3)
        ]

        new = await crawl.ledger.finish(seat, [Closing(id=url(100).id, outcome=Outcome.DONE, links=links, sites=sites)])

        assert [u.domain for u in new] == ["a.one.example"] * 3 + ["b.one.example"] * 3 + ["a.two.example"] + ["b.two.example"] * 3
        for u in new:
            await crawl.fetching(seat, u)
            await crawl.finish(seat, u)
        assert (await crawl.ledger.counts()).budgets == {}

    async def test_a_crawl_resumed_with_a_larger_budget_goes_on(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(max_host_pages=1, delay_s=0.0))
        await crawl.ledger.add([url(2)])
        await crawl.fetching(seat, url(1))
        await crawl.finish(seat, url(1), Outcome.DONE)
        await crawl.ledger.stop(CrawlOutcome.STOPPED)

        await crawl.ledger.resume(rules(max_host_pages=2, delay_s=0.0))

        seat = await crawl.ledger.register("another")
        await crawl.fetching(seat, url(2))
        assert (await crawl.domain()).begun == 2

    async def test_waiting_offers_the_best_and_some_of_the_oldest(self, harness: LedgerHarness) -> None:
        crawl, _ = await begun(harness)
        urls = [url(n) for n in range(40)]
        await crawl.ledger.add(urls)
        await crawl.ledger.rank([(u.id, 100 - n) for n, u in enumerate(urls)])

        offered = await crawl.ledger.waiting(8, idle=False)

        best = [(urls[n], 100 - n) for n in range(39, 33, -1)]
        assert offered[:6] == best
        assert {u for u, _ in offered[6:]} == set(urls[:2])

    async def test_what_was_offered_is_not_offered_again_at_once_unless_the_queues_are_empty(self, harness: LedgerHarness) -> None:
        crawl, _ = await begun(harness)
        await crawl.ledger.add([url(1), url(2)])
        assert len(await crawl.ledger.waiting(10, idle=False)) == 2

        assert await crawl.ledger.waiting(10, idle=False) == []
        assert len(await crawl.ledger.waiting(10, idle=True)) == 2
        await crawl.advance(16)
        assert len(await crawl.ledger.waiting(10, idle=False)) == 2

    async def test_a_worker_that_asks_is_told_all_that_it_holds(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        await crawl.fetching(seat, url(1))
        await crawl.routed(url(2))
        assert await crawl.ledger.held(seat) == [url(1), url(2)]

    async def test_out_links_are_kept_in_the_order_of_storing_for_who_wants_them(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(keep_outlinks=True, delay_s=0.0))
        for number in (1, 2, 3):
            await crawl.fetching(seat, url(number))
            outcome = Outcome.GONE if number == 2 else Outcome.DONE
            await crawl.finish(seat, url(number), outcome, links=[link(2**70 + number), link(1)])

        first, second = await crawl.ledger.outlinks(0, 10)

        assert [first[1], second[1]] == [url(1).id, url(3).id]
        assert first[2] == link(2**70 + 1).id + link(1).id
        assert await crawl.ledger.outlinks(first[0], 1) == [second]
        assert await crawl.ledger.outlinks(second[0], 1) == []

    async def test_stored_pages_are_told_in_the_order_of_storing(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(delay_s=0.0))
        assert await crawl.ledger.pages(0, 10) == []
        for number in (3, 2, 1):
            await crawl.fetching(seat, url(number))
            await crawl.finish(seat, url(number), Outcome.GONE if number == 2 else Outcome.DONE, links=[link(2**70 + number)])

        told = await crawl.ledger.pages(0, 10)

        assert [place for place, _ in told] == [1, 2]
        assert [record for _, record in told] == await crawl.ledger.records([url(3).id, url(1).id])
        assert all(record.facts is not None and record.facts.blob is not None for _, record in told)
        assert await crawl.ledger.pages(0, 1) == told[:1]
        assert await crawl.ledger.pages(1, 1) == told[1:]
        assert await crawl.ledger.pages(2, 10) == []
        assert await crawl.ledger.pages(0, 0) == []

    async def test_a_page_that_is_finished_twice_is_told_once_also_after_a_resume(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(delay_s=0.0))
        await crawl.fetching(seat, url(1))
        await crawl.finish(seat, url(1), Outcome.DONE, links=[link(2)])
        await crawl.finish(seat, url(1), Outcome.DONE, links=[link(2)])
        await crawl.ledger.resume(rules(delay_s=0.0), nobody_lives=True)

        assert [(place, record.url.id) for place, record in await crawl.ledger.pages(0, 10)] == [(1, url(1).id)]

    # --- Shared knowledge and reading ---

    async def test_robots_txt_is_known_to_all_until_it_is_too_old(self, harness: LedgerHarness) -> None:
        crawl, _ = await begun(harness)
        assert await crawl.ledger.robots("http://a.example") is None
        known = Robots("User-agent: *\nDisallow: /x\n")
        await crawl.ledger.know_robots("http://a.example", Robots(None, "deny all"), 10)
        await crawl.ledger.know_robots("http://a.example", known, 100)

        await crawl.advance(99)
        assert await crawl.ledger.robots("http://a.example") == known
        await crawl.advance(2)
        assert await crawl.ledger.robots("http://a.example") is None

    async def test_a_domains_rank_is_known_to_all_until_it_is_too_old(self, harness: LedgerHarness) -> None:
        crawl, _ = await begun(harness)
        asked = ["a.example", "b.example", "c.example", "a.example"]
        assert await crawl.ledger.known_ranks(asked) == {}
        await crawl.ledger.know_ranks({"a.example": 100, "b.example": 7}, 10)
        await crawl.ledger.know_ranks({"a.example": 0, "\N{SNOWMAN}": 50}, 100)
        await crawl.ledger.know_ranks({}, 100)

        assert await crawl.ledger.known_ranks(asked) == {"a.example": 0, "b.example": 7}
        await crawl.advance(99)
        assert await crawl.ledger.known_ranks([*asked, "\N{SNOWMAN}"]) == {"a.example": 0, "\N{SNOWMAN}": 50}
        await crawl.advance(2)
        assert await crawl.ledger.known_ranks(asked) == {}
        assert await crawl.ledger.known_ranks([]) == {}

    async def test_ranks_of_thousands_of_domains_are_known_at_once(self, harness: LedgerHarness) -> None:
        crawl, _ = await begun(harness)
        ranks = {f"{number}.example": number % 101 for number in range(5_000)}

        await crawl.ledger.know_ranks(ranks, 100)

        assert await crawl.ledger.known_ranks(list(ranks)) == ranks

    async def test_a_named_lease_has_one_holder_at_a_time(self, harness: LedgerHarness) -> None:
        crawl, _ = await begun(harness)
        assert await crawl.ledger.lease("rank", "one", 10)
        assert not await crawl.ledger.lease("rank", "two", 10)
        assert await crawl.ledger.lease("sweeper", "two", 10)
        await crawl.advance(8)
        assert await crawl.ledger.lease("rank", "one", 10), "its holder prolongs it"
        await crawl.advance(8)
        assert not await crawl.ledger.lease("rank", "two", 10)
        await crawl.advance(3)
        assert await crawl.ledger.lease("rank", "two", 10)

    async def test_a_named_lease_needs_no_crawl(self, harness: LedgerHarness) -> None:
        assert await harness.ledger.lease("sweeper", "a", 10)
        assert not await harness.ledger.lease("sweeper", "b", 10)

    async def test_a_note_takes_the_place_of_the_last_one_of_its_name(self, harness: LedgerHarness) -> None:
        crawl, _ = await begun(harness)
        assert await crawl.ledger.notes() == {}

        await crawl.ledger.note("worker 0", "{}")
        await crawl.ledger.note("worker 1", "a text with \N{SNOWMAN} and \n")
        await crawl.ledger.note("worker 0", '{"failures": 1}')

        assert await crawl.ledger.notes() == {"worker 0": '{"failures": 1}', "worker 1": "a text with \N{SNOWMAN} and \n"}

    async def test_refused_links_are_counted_and_some_are_kept_to_show(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(delay_s=0.0))
        for number in range(3):
            await crawl.fetching(seat, url(number))
            refused = [
                Refused("scope", 3, f"http://elsewhere.example/{number}"),
                Refused("scope", 1, "http://elsewhere.example/last"),
                Refused("depth", 1, "http://a.example/deep"),
            ]
            await crawl.ledger.finish(seat, [Closing(id=url(number).id, outcome=Outcome.GONE, refused=refused)])

        assert (await crawl.ledger.counts()).refused == {"scope": 12, "depth": 3}
        assert sorted(await crawl.ledger.refused()) == [
            ("depth", "http://a.example/deep"),
            ("scope", "http://elsewhere.example/0"),
            ("scope", "http://elsewhere.example/1"),
            ("scope", "http://elsewhere.example/2"),
            ("scope", "http://elsewhere.example/last"),
        ], "each once: what a site has on every page does not drive the rest out"

    async def test_of_refused_links_the_newest_are_kept(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness, rules(delay_s=0.0))
        for number in range(4):
            await crawl.fetching(seat, url(number))
            refused = [Refused("scope", 1, f"http://elsewhere.example/{number}/{each}") for each in range(1_000)]
            await crawl.ledger.finish(seat, [Closing(id=url(number).id, outcome=Outcome.GONE, refused=refused)])
            await crawl.advance(1)

        kept = await crawl.ledger.refused()
        assert len(kept) == 3_000
        assert {example.split("/")[3] for _, example in kept} == {"1", "2", "3"}
        assert (await crawl.ledger.counts()).refused == {"scope": 4_000}

    async def test_display_sees_domains_with_work_and_a_stalled_crawl_names_its_urls(self, harness: LedgerHarness) -> None:
        crawl, (seat,) = await begun(harness)
        a, b, c = url(1), url(2, "b.example"), url(3, "c.example")
        await crawl.fetching(seat, a, b)
        await crawl.ledger.add([c])
        await crawl.ledger.defer(seat, [Deferral(id=b.id, until_s=60)])

        assert [domain.name for domain in await crawl.ledger.domains(10)] == ["a.example", "b.example"]
        assert [record.url for record in await crawl.ledger.unfinished(10)] == [a, b, c]
        assert len(await crawl.ledger.unfinished(2)) == 2
        assert (await crawl.ledger.counts()).domains == 3
        assert await crawl.ledger.domain("nowhere.example") is None

    # --- The table ---

    @pytest.mark.parametrize(("state", "verb"), [(state, verb) for state in State for verb in Verb])
    async def test_no_verb_takes_a_step_that_is_not_in_the_table(self, harness: LedgerHarness, state: State, verb: Verb) -> None:
        crawl, (seat,) = await begun(harness, rules(poison_deaths=1))
        one = url(1)
        await _bring_to(crawl, seat, one, state)
        assert await crawl.state(one) is state

        await _apply(crawl, seat, one, verb)

        after = await crawl.state(one)
        allowed = STEPS.get((state, verb), frozenset())
        assert after is state or after in allowed
        if state is not State.CLOSED and (state, verb) in STEPS:
            assert after is not state, "a step of the table that this verb, called as it should be, takes"


async def _call(crawl: Crawl, seat: Seat, verb: str) -> None:
    """A worker's verb, as one would call it that has url(1) in flight and url(2) in hand."""
    ledger, one, two = crawl.ledger, url(1), url(2)
    match verb:
        case "add":
            await ledger.add([url(9)], ["b.example"], seat=seat)
        case "renew":
            await ledger.renew(seat)
        case "release":
            await ledger.release(seat)
        case "held":
            await ledger.held(seat)
        case "begin":
            await ledger.begin(seat, [one.id, two.id])
        case "knock":
            await ledger.knock(seat, two.id)
        case "leave":
            await ledger.leave(seat, [Leaving(id=one.id, visit=Visit(received_bytes=5, delay_s=9.0), until_s=60)])
        case "judge":
            await ledger.judge(seat, [Content(id=one.id, exact=b"x")])
        case "finish":
            await crawl.finish(seat, one, Outcome.DONE, links=[link(9)])
        case "defer":
            await ledger.defer(seat, [Deferral(id=one.id, until_s=60)])
        case "pass_up":
            await ledger.pass_up(seat, [PassedUp(id=two.id, outcome=Outcome.ROBOTS_DENIED)])
        case _:
            raise AssertionError(verb)


async def _everything(crawl: Crawl) -> tuple[object, ...]:
    """All that can be read of a crawl of url(1), url(2) and url(9)."""
    ledger = crawl.ledger
    records = await ledger.records([url(1).id, url(2).id, url(9).id])
    return (
        await ledger.crawl(),
        records,
        await ledger.counts(),
        await crawl.domain(),
        await ledger.workers(),
        await ledger.pages(0, 10),
    )


async def _bring_to(crawl: Crawl, seat: Seat, one: Url, state: State) -> None:
    await crawl.ledger.add([one])
    match state:
        case State.PARKED:
            await crawl.fetching(seat, one)
            await crawl.ledger.defer(seat, [Deferral(id=one.id, until_s=1)])
            await crawl.advance(1)
        case State.ROUTED:
            await crawl.routed(one)
        case State.FETCHING:
            await crawl.fetching(seat, one)
        case State.CLOSED:
            await crawl.fetching(seat, one)
            await crawl.finish(seat, one)
        case _:
            pass


async def _apply(crawl: Crawl, seat: Seat, one: Url, verb: Verb) -> None:
    ledger = crawl.ledger
    match verb:
        case Verb.ADD:
            await ledger.add([one])
        case Verb.ROUTE:
            await ledger.route([(one.id, 50)])
        case Verb.PROMOTE:
            await ledger.promote(10)
        case Verb.BEGIN:
            await ledger.begin(seat, [one.id])
        case Verb.KNOCK:
            await _hold_off(crawl, seat)
            await ledger.knock(seat, one.id)
        case Verb.FINISH:
            await crawl.finish(seat, one)
        case Verb.DEFER:
            await ledger.defer(seat, [Deferral(id=one.id)])
        case Verb.PASS_UP:
            await ledger.pass_up(seat, [PassedUp(id=one.id, outcome=Outcome.ROBOTS_DENIED)])
        case Verb.REAP:
            await crawl.advance(15)
            await ledger.reap()
        case Verb.RELEASE:
            await ledger.release(seat)
        case Verb.RESUME:
            await ledger.resume(rules())
        case Verb.SHED:
            await ledger.shed(0, 10)


async def _hold_off(crawl: Crawl, seat: Seat) -> None:
    """Another URL of the domain learns that it is to be left alone: a knock then parks what is ROUTED."""
    other = url(2)
    await crawl.ledger.add([other])
    await crawl.ledger.route([(other.id, 50)])
    await crawl.ledger.knock(seat, other.id)
    await crawl.ledger.leave(seat, [Leaving(id=other.id, until_s=60)])
