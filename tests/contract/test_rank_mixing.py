"""Ranks from outside reach what waits already: the live rank's owner mixes them in, over every ledger."""

from collections.abc import AsyncIterator

import pytest

from gossamer.clock import ManualClock
from gossamer.testing.harness import LedgerHarness
from gossamer.urls import url_id
from services.frontier.outside.mixing import Outside, mixed
from services.frontier.prioritizers.pagerank import Pagerank
from services.frontier.rank.owner import Owner
from tests.contract.harnesses import LEDGERS
from tests.contract.test_domain_ranks import crawled

WAITING = ["http://hub.example/more", "http://unseen.example/"]


@pytest.fixture(params=sorted(LEDGERS))
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[LedgerHarness]:
    made = LEDGERS[request.param]()
    yield made
    await made.close()


async def priorities(harness: LedgerHarness, outside: Outside | None) -> list[int]:
    """Of what waits, after the owner has read, looked and told."""
    clock = ManualClock()
    owner = Owner(harness.ledger, Pagerank(), clock, "one", lease_s=15.0, outside=outside)
    for _ in range(3):
        await owner.turn()
        clock.advance(3600)
    records = await harness.ledger.records([url_id(url) for url in WAITING])
    return [record.priority for record in records if record is not None]


async def test_what_waits_gets_the_mean_as_soon_as_it_is_known(harness: LedgerHarness) -> None:
    await crawled(harness.ledger)
    own = await priorities(harness, None)

    found = await priorities(harness, {"unseen.example": 0}.get)

    assert found == [own[0], mixed(own[1], 0)]
    assert found != own
