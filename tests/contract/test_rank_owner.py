"""The rank's owner, over every ledger: reads links, tells what waits where, and is one at a time."""

from collections.abc import AsyncIterator, Sequence

import pytest

from gossamer.clock import ManualClock
from gossamer.messages import Link, Url
from gossamer.outcomes import Outcome
from gossamer.records import Seat
from gossamer.testing.harness import LedgerHarness
from gossamer.testing.ledger import Crawl, begun, link, rules, url
from services.frontier.prioritizers.pagerank import Pagerank
from services.frontier.rank.owner import LEASE, Owner
from tests.contract.harnesses import LEDGERS

LEASE_S = 15.0


@pytest.fixture(params=LEDGERS)
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[LedgerHarness]:
    made = LEDGERS[request.param]()
    yield made
    await made.close()


def far(number: int) -> Link:
    """With an id whose beginning is its own: the rank tells URLs apart by it."""
    return link(number << 64)


def page_url(number: int) -> Url:
    """A page on a domain of its own, so that nothing waits for anything."""
    return url(number << 64, f"{number}.example")


def owner(crawl: Crawl, holder: str = "one") -> tuple[Owner, Pagerank]:
    prioritizer = Pagerank()
    return Owner(crawl.ledger, prioritizer, ManualClock(), holder, lease_s=LEASE_S), prioritizer


async def store(crawl: Crawl, seat: Seat, page: Url, links: Sequence[Link]) -> list[Url]:
    await crawl.fetching(seat, page)
    return await crawl.finish(seat, page, Outcome.DONE, links)


async def linked(crawl: Crawl, seat: Seat) -> list[Url]:
    """Ten URLs that wait, found by ten pages: the first by all of them, the last by one."""
    found: list[Url] = []
    for page in range(10):
        links = [far(100 + k) for k in range(10 - page)]
        found += await store(crawl, seat, page_url(page), links)
    return found


async def test_what_waits_and_what_is_parked_is_told_its_place(harness: LedgerHarness) -> None:
    crawl, (seat,) = await begun(harness, rules(keep_outlinks=True))
    found = await linked(crawl, seat)
    await crawl.ledger.route([(each.id, 1) for each in found[:4]])  # two of these are parked, of one domain

    while await owner(crawl)[0].turn():
        pass

    told = [(await crawl.record(each)).priority for each in found]
    assert told[:2] == [1, 1], "they are with a worker, and rank no more"
    assert told[2:] == sorted(told[2:])
    assert len(set(told[2:])) == 8


async def test_a_url_that_becomes_important_while_it_is_parked_is_promoted_first(harness: LedgerHarness) -> None:
    crawl, (seat,) = await begun(harness, rules(keep_outlinks=True))
    found = await linked(crawl, seat)
    await crawl.ledger.route([(each.id, 50) for each in found])
    ranking, _ = owner(crawl)
    await ranking.turn()
    for page in range(20, 40):  # the last one is linked to by everybody now
        await store(crawl, seat, page_url(page), [far(109)])

    await ranking.turn()

    await crawl.ledger.begin(seat, [found[0].id])
    await crawl.finish(seat, found[0])
    assert [routing.url for routing in await crawl.ledger.promote(1)] == [found[9]]


async def test_a_new_owner_comes_to_the_same(harness: LedgerHarness) -> None:
    crawl, (seat,) = await begun(harness, rules(keep_outlinks=True))
    first, by_first = owner(crawl)
    for page in range(10):
        await store(crawl, seat, page_url(page), [far(100 + k) for k in range(10 - page)])
        await first.turn()
    second, by_second = owner(crawl, "two")
    await second.turn()

    waiting = [far(100 + k).found(1) for k in range(10)]
    assert by_second(waiting) == by_first(waiting)


async def test_what_the_ledger_has_otherwise_is_noticed_and_told_again(harness: LedgerHarness) -> None:
    crawl, (seat,) = await begun(harness, rules(keep_outlinks=True))
    found = await linked(crawl, seat)
    ranking, _ = owner(crawl)
    await ranking.turn()
    right = (await crawl.record(found[9])).priority
    await crawl.ledger.rank([(found[9].id, 7)])  # a hint that came late

    await ranking.turn()

    assert (await crawl.record(found[9])).priority == right


async def test_there_is_one_owner_and_another_when_its_lease_is_over(harness: LedgerHarness) -> None:
    crawl, _ = await begun(harness, rules(keep_outlinks=True))
    assert await crawl.ledger.lease(LEASE, "one", LEASE_S)
    assert not await crawl.ledger.lease(LEASE, "two", LEASE_S)
    await crawl.advance(LEASE_S)
    assert await crawl.ledger.lease(LEASE, "two", LEASE_S)
