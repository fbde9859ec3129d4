"""Traps in a crawl, on both engines: what each may cost, as their server counts it; and the healthy site beside them."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapters.wiring import Ports, Servers, open_embedded, open_external
from gossamer.budgets import Budget
from gossamer.clock import SystemClock
from gossamer.ids import CrawlId
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.records import Counts
from gossamer.settings import Settings, load
from services.controller.engines import Ended, Stop, beginning
from services.controller.engines.embedded import EmbeddedEngine
from tests.hostile.traps import HEALTHY, HEALTHY_PAGES, HOST_PAGES, HOSTS_MAX, TRAPS, Trap, Web, served
from tests.servers import rabbitmq_url, redis_url, s3_credentials, s3_url

PATIENCE_S = 120.0
FREELY = {"workers": "2", "delay": "0", "allow_net": ["127.0.0.0/8"], "max_bytes": "1GB"}


async def embedded(settings: Settings, crawl: CrawlId, folder: Path) -> Ports:
    return await open_embedded(folder, crawl, SystemClock())


async def external(settings: Settings, crawl: CrawlId, folder: Path) -> Ports:
    keys = s3_credentials()
    servers = Servers(rabbitmq_url(), redis_url(), s3_url(), keys.access_key, keys.secret_key)
    return open_external(servers, crawl, settings, SystemClock())


Open = Callable[[Settings, CrawlId, Path], Awaitable[Ports]]


async def crawl(web: Web, open_ports: Open, folder: Path, **flags: str | list[str]) -> Ended:
    """From the healthy site to the end of everything."""
    settings = load({**FREELY, "seed": [web.seed], **flags}, {}, None).settings
    id, clock = CrawlId(f"traps-{secrets.token_hex(4)}"), SystemClock()
    ports = await open_ports(settings, id, folder)
    await ports.ledger.create(beginning.rules(settings))
    engine = EmbeddedEngine(settings, id, ports, clock, beginning.Plugins((), ()), lambda: web.look_up)
    async with asyncio.timeout(PATIENCE_S):
        return await engine.run(lambda snapshot: None, Stop())


@dataclass(frozen=True, slots=True)
class Crawled:
    web: Web
    ended: Ended

    @property
    def counts(self) -> Counts:
        return self.ended.counts


@pytest.fixture(scope="module", params=[embedded, external], ids=["embedded", "external"])
def crawled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """All traps at once, with the budgets as they are by default, but for the one that only a tarpit uses up."""

    async def run() -> Crawled:
        async with served() as web:
            ended = await crawl(web, request.param, tmp_path_factory.mktemp("traps"), max_host_pages=str(HOST_PAGES))
            return Crawled(web, ended)

    return asyncio.run(run())


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.domain)
def test_a_trap_costs_no_more_than_it_may(crawled: Crawled, trap: Trap) -> None:
    assert crawled.web.requests(trap.domain) <= trap.most
    assert crawled.web.requests(trap.domain) > 0 or trap.most == 0, "it was met at all"


def test_the_healthy_site_beside_them_is_crawled_to_its_end(crawled: Crawled) -> None:
    asked = {target: count for (host, target), count in crawled.web.pages.items() if host == HEALTHY}

    assert asked == {f"/{number or ''}": 1 for number in range(HEALTHY_PAGES)}
    assert crawled.ended.record.outcome is CrawlOutcome.COMPLETE


def test_session_ids_in_urls_cost_one_request_a_page(crawled: Crawled) -> None:
    for domain in ("jsessionid.test", "aspnet.test", "parameter.test", "campaign.test"):
        assert crawled.web.requests(domain) == 5, domain


def test_endless_hosts_are_neither_asked_nor_looked_up(crawled: Crawled) -> None:
    assert len(crawled.web.hosts("wildcard.test")) == HOSTS_MAX
    assert sum(1 for name in crawled.web.looked_up if name.endswith("wildcard.test")) == HOSTS_MAX
    assert crawled.counts.refused[Budget.HOSTS.used_up(HOSTS_MAX)] > 0


def test_a_tarpit_takes_its_budget_and_nothing_more(crawled: Crawled) -> None:
    assert crawled.web.requests("tarpit.test") == HOST_PAGES
    reason = Budget.HOST_PAGES.used_up(HOST_PAGES)
    assert crawled.counts.budgets == {reason: crawled.counts.outcomes[Outcome.BUDGET]}, "each says which rule it was"
    assert crawled.counts.budgets[reason] > 0


def test_a_farm_of_near_duplicates_is_stored_once(crawled: Crawled) -> None:
    assert crawled.web.requests("farm.test") <= 11
    assert crawled.counts.outcomes[Outcome.DUPLICATE] > 0


def test_what_robots_txt_forbids_is_never_asked_for(crawled: Crawled) -> None:
    assert crawled.web.robots["forbidden.test"] == 1
    assert crawled.web.requests("forbidden.test") == 0


def test_nothing_is_left_open_behind(crawled: Crawled) -> None:
    assert crawled.counts.open == 0


async def test_budgets_bound_every_trap_though_no_page_is_taken_for_a_twin(tmp_path: Path) -> None:
    async with served() as web:
        ended = await crawl(web, embedded, tmp_path, similarity="off", max_host_pages="120")

    assert ended.record.outcome is CrawlOutcome.COMPLETE
    assert web.requests(HEALTHY) == HEALTHY_PAGES, "a seed's own host"
    assert {trap.domain: web.requests(trap.domain) for trap in TRAPS if web.requests(trap.domain) > 120} == {}
    assert web.requests("calendar.test") <= 100
    assert web.requests("almanac.test") == web.requests("farm.test") == 120


async def test_one_setting_lifts_the_budgets_for_a_domain(tmp_path: Path) -> None:
    async with served() as web:
        ended = await crawl(web, embedded, tmp_path, max_host_pages="10", lift=["tarpit.test"], max_pages="400")

    assert ended.record.outcome is CrawlOutcome.PAGE_BUDGET, "a tarpit that was let run"
    assert web.requests("tarpit.test") > 100
    assert web.requests("scattered.test") == 10


async def test_hosts_and_pages_of_a_domain_are_bounded_where_it_is_the_unit_of_politeness(tmp_path: Path) -> None:
    async with served() as web:
        flags = {"politeness": "domain", "max_hosts": "20", "max_host_pages": "5", "max_domain_pages": "60"}
        ended = await crawl(web, embedded, tmp_path, **flags)

    assert ended.record.outcome is CrawlOutcome.COMPLETE
    assert len(web.hosts("wildcard.test")) == 20
    assert web.requests("tarpit.test") == 60
    assert ended.counts.budgets.keys() == {Budget.DOMAIN_PAGES.used_up(60)}
    assert web.requests(HEALTHY) == HEALTHY_PAGES
