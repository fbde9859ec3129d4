"""The live rank by domain, as it is read off a ledger and told to other tools: over every ledger."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from gossamer.clock import ManualClock
from gossamer.errors import LedgerUnavailable
from gossamer.ids import CrawlId
from gossamer.messages import Link
from gossamer.outcomes import Outcome
from gossamer.ports.blobs import BlobRef
from gossamer.ports.ledger import Ledger
from gossamer.records import Closing, Facts, Rules
from gossamer.testing.harness import LedgerHarness
from gossamer.urls import domain_of, url_id
from services.frontier import domain_ranks
from services.frontier.api import DOMAINS_MAX, Live, application, main
from services.frontier.domain_ranks import DomainRank, DomainRanks, placed
from services.frontier.outside.answers import priorities
from tests.contract.harnesses import LEDGERS

STORED = Facts(status=200, blob=BlobRef("segment", 0, 1, bytes(32)))
#: Who links to whom: hub is linked to by all, leaf by nobody but the seed.
WEB = {
    "http://seed.example/": ["http://hub.example/", "http://www.leaf.example/"],
    "http://hub.example/": ["http://hub.example/more"],
    "http://www.leaf.example/": ["http://hub.example/", "http://unseen.example/"],
}


def link(url: str) -> Link:
    return Link(url_id(url), url, domain_of(url))


@pytest.fixture(params=sorted(LEDGERS))
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[LedgerHarness]:
    made = LEDGERS[request.param]()
    yield made
    await made.close()


async def crawled(ledger: Ledger) -> None:
    """A crawl that has fetched those pages."""
    await ledger.create(Rules(keep_outlinks=True, delay_s=0.0))
    seat = await ledger.register("one")
    await ledger.add([link("http://seed.example/").found()])
    for url, links in WEB.items():
        id = link(url).id
        await ledger.route([(id, 50)])
        await ledger.begin(seat, [id])
        await ledger.finish(seat, [Closing(id=id, outcome=Outcome.DONE, facts=STORED, links=[link(each) for each in links])])


@pytest.fixture
async def ledger(harness: LedgerHarness) -> Ledger:
    await crawled(harness.ledger)
    return harness.ledger


async def live_of(ledger: Ledger) -> Live:
    async def opening() -> tuple[CrawlId, Callable[[], Ledger]]:
        return CrawlId("c-1"), lambda: ledger

    live = Live(opening, ManualClock())
    await live.turn()
    live.reachable = True
    return live


def client_of(live: Live, key: str | None = None) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(application(live, key)), base_url="http://api")


async def test_a_domain_is_worth_what_its_urls_are_worth_together(ledger: Ledger) -> None:
    ranks = DomainRanks(ledger)
    await ranks.turn()
    assert list(ranks.by_domain) == ["hub.example", "unseen.example", "leaf.example", "seed.example"]
    assert ranks.by_domain["hub.example"] == DomainRank(1, 10.0)
    assert ranks.by_domain["seed.example"] == DomainRank(4, 0.0)


async def test_what_is_read_in_small_portions_comes_to_the_same(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = DomainRanks(ledger)
    await whole.turn()
    for name in ("PAGES_AT_ONCE", "RECORDS_AT_ONCE", "LOOKS_A_TURN"):
        monkeypatch.setattr(domain_ranks, name, 1)
    portions = DomainRanks(ledger)
    for _ in range(10):
        await portions.turn()
    assert portions.by_domain == whole.by_domain


async def test_it_answers_in_the_form_that_the_crawl_itself_reads(ledger: Ledger) -> None:
    async with client_of(await live_of(ledger)) as client:
        answer = await client.get("/api/v1.0/getPageRank", params={"domains[]": ["hub.example", "WWW.leaf.example", "no.example"]})
    assert answer.status_code == 200
    told = answer.json()
    assert told["response"][0] == {
        "status_code": 200,
        "error": "",
        "domain": "hub.example",
        "page_rank_integer": 10,
        "page_rank_decimal": 10.0,
        "rank": "1",
    }
    assert told["response"][2] == {
        "status_code": 404,
        "error": "Domain not found",
        "domain": "no.example",
        "page_rank_integer": 0,
        "page_rank_decimal": "",
        "rank": None,
    }
    assert priorities(answer.content, ["hub.example", "WWW.leaf.example", "no.example"]) == {
        "hub.example": 0,
        "WWW.leaf.example": 67,
        "no.example": 100,
    }


async def test_a_key_is_asked_for_when_there_is_one_and_health_needs_none(ledger: Ledger) -> None:
    live = await live_of(ledger)
    async with client_of(live, "the-key") as client:
        asked = {"domains[]": "hub.example"}
        assert (await client.get("/api/v1.0/getPageRank", params=asked)).status_code == 401
        wrong = await client.get("/api/v1.0/getPageRank", params=asked, headers={"API-OPR": "another"})
        assert wrong.status_code == 401
        right = await client.get("/api/v1.0/getPageRank", params=asked, headers={"API-OPR": "the-key"})
        assert right.status_code == 200
        health = await client.get("/health")
        assert (health.status_code, health.json()) == (
            200,
            {"alive": True, "crawl": "c-1", "domains": 4, "servers": {"ledger": "reachable"}},
        )
        live.reachable = False
        assert (await client.get("/health")).status_code == 503


# --- Without a ledger ---


def test_places_are_quantiles_and_all_hosts_of_a_domain_count() -> None:
    worth = {"a.example": 1.0, "www.b.example": 2.0, "docs.b.example": 1.0, "c.example": 2.0}
    assert placed(worth) == {"b.example": DomainRank(1, 10.0), "c.example": DomainRank(2, 5.0), "a.example": DomainRank(3, 0.0)}
    assert placed({"a.example": 1.0}) == {"a.example": DomainRank(1, 10.0)}
    assert placed({}) == {}


async def nothing() -> None:
    return None


@pytest.mark.parametrize("domains", [[], ["a.example"] * (DOMAINS_MAX + 1), ["x" * 254]])
async def test_too_many_too_few_and_too_long_ones_are_refused(domains: list[str]) -> None:
    async with client_of(Live(nothing, ManualClock())) as client:
        assert (await client.get("/api/v1.0/getPageRank", params={"domains[]": domains})).status_code == 422


async def test_the_docs_are_there() -> None:
    async with client_of(Live(nothing, ManualClock())) as client:
        described = json.loads((await client.get("/openapi.json")).content)
        assert set(described["paths"]) == {"/api/v1.0/getPageRank", "/health"}
        assert "API-OPR" in json.dumps(described)
        assert (await client.get("/docs")).status_code == 200


async def test_a_ledger_that_is_away_is_waited_for() -> None:
    answers: list[bool] = []

    async def opening() -> None:
        answers.append(live.reachable)
        if len(answers) == 2:
            raise LedgerUnavailable("away")
        if len(answers) == 4:
            raise StopAsyncIteration

    class Leaping(ManualClock):
        async def sleep(self, seconds: float) -> None:
            self.advance(seconds)

    live = Live(opening, Leaping())
    with pytest.raises(StopAsyncIteration):
        await live.run()
    assert answers == [False, True, False, True]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--state", "nowhere"], "services.frontier.api: --state nowhere: there is no crawl in it\n"),
        (
            ["--state", "x", "--address", "here"],
            "services.frontier.api: --address is 'here'; it takes HOST:PORT, as 127.0.0.1:8080\n",
        ),
        ([], "services.frontier.api: --engine external needs its servers: set GOSSAMER_RABBITMQ_URL, GOSSAMER_REDIS_URL"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words, {}) == 2
    assert capsys.readouterr().err.startswith(said)
