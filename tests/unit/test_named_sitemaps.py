"""Sitemaps that robots.txt names: entered once, in scope, on hosts that are known, and no more than a bound."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from adapters.embedded.ledger import SqliteLedger
from gossamer.clock import ManualClock
from gossamer.messages import Url
from gossamer.records import Rules
from gossamer.settings import Links as Limits
from gossamer.settings import Scope
from gossamer.urls import identity, url_id
from services.worker.links import Links
from services.worker.named_sitemaps import NAMED_MAX, NamedSitemaps

ORIGIN = "http://a.example.com"
LED = Url(url_id(identity(f"{ORIGIN}/x")), f"{ORIGIN}/x", "a.example.com", 3)


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    made = SqliteLedger(tmp_path / "ledger.sqlite", ManualClock())
    await made.create(Rules())
    await made.add([LED], ["a.example.com"])
    yield made
    await made.close()


async def named_sitemaps(ledger: SqliteLedger, announced: list[Url], scope: Scope = Scope.HOST) -> NamedSitemaps:
    async def announce(new: Sequence[Url]) -> None:
        announced.extend(new)

    seat = await ledger.register("a worker")
    return NamedSitemaps(ledger, seat, Links(ledger, Limits(scope=scope), (), str, by_domain=False), announce)


async def test_they_are_entered_as_links_of_the_url_that_led_there(ledger: SqliteLedger) -> None:
    announced: list[Url] = []
    named = await named_sitemaps(ledger, announced)

    await named.enter(LED, ORIGIN, [f"{ORIGIN}/sitemap.xml", "http://b.example.com/sitemap.xml"])

    (entered,) = announced
    assert (entered.url, entered.depth, entered.hop, entered.parent) == (f"{ORIGIN}/sitemap.xml", 4, 0, LED.id)
    (record,) = await ledger.records([entered.id])
    assert record is not None
    assert record.url == entered


async def test_entering_them_again_changes_nothing(ledger: SqliteLedger) -> None:
    announced: list[Url] = []
    named = await named_sitemaps(ledger, announced)

    for _ in range(2):
        await named.enter(LED, ORIGIN, [f"{ORIGIN}/sitemap.xml"])

    assert len(announced) == 1
    assert (await ledger.counts()).open == 2


async def test_one_robots_txt_names_no_more_than_a_bound(ledger: SqliteLedger) -> None:
    announced: list[Url] = []
    named = await named_sitemaps(ledger, announced, Scope.WEB)

    await named.enter(LED, ORIGIN, [f"{ORIGIN}/{number}.xml" for number in range(1_000)])

    assert len(announced) == NAMED_MAX


async def test_no_robots_txt_opens_a_new_domain(ledger: SqliteLedger) -> None:
    known = Url(url_id(identity("http://b.example.com/")), "http://b.example.com/", "b.example.com")
    await ledger.add([known])
    announced: list[Url] = []
    named = await named_sitemaps(ledger, announced, Scope.WEB)

    await named.enter(LED, ORIGIN, ["http://b.example.com/sitemap.xml", "http://c.example.com/sitemap.xml"])

    assert [each.url for each in announced] == ["http://b.example.com/sitemap.xml"]
