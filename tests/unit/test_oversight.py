"""Oversight: when a crawl that stands still is stalled, and when it only waits; by a clock that the test moves."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from adapters.wiring import Ports, open_embedded
from gossamer.answers import Go
from gossamer.clock import ManualClock
from gossamer.errors import BlobsUnavailable
from gossamer.ids import CrawlId, UrlId
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.pauses import Pauses
from gossamer.records import Closing, Deferral, Rules, Seat
from gossamer.settings import Fetching, Settings, Start
from gossamer.states import State
from services.controller.engines import Snapshot, Stop, oversight
from services.controller.engines.oversight import ALONE_S, LONG_LOOK_S, STALLED_S, WATCH_S, Oversight

SETTINGS = Settings(start=Start(seeds=("http://a.example/",)))
#: By the clock, from one look to the next.
STEP_S = 4.0
#: What this crawl is given until it is stalled: its slowest page besides.
SLOWEST_S = 2 * SETTINGS.fetching.attempt_timeout_s + (1 + len(SETTINGS.start.modules)) * SETTINGS.fetching.module_timeout_s
GIVEN_S = STALLED_S + SLOWEST_S


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oversight, "WATCH_S", 0.0)


class Crawl:
    """A crawl of one URL that nobody works on but the test."""

    def __init__(self, ports: Ports, clock: ManualClock) -> None:
        self.ports, self.ledger, self.clock = ports, ports.ledger, clock

    async def begin(self, settings: Settings = SETTINGS, ports: Ports | None = None) -> None:
        self.oversight = Oversight(settings, ports or self.ports, self.clock, ())
        await self.ledger.create(Rules(delay_s=0.0, lease_s=1e6))
        await self.oversight.begin(Stop())

    async def fetching(self) -> tuple[Seat, UrlId]:
        """Its URL, in flight with a worker that lives."""
        seat = await self.ledger.register("a process")
        (record,) = await self.ledger.unfinished(1)
        await self.ledger.route([(record.url.id, 50)])
        (answer,) = await self.ledger.begin(seat, [record.url.id])
        assert isinstance(answer, Go)
        return seat, record.url.id

    async def look_after(
        self, for_s: float, each_time: Callable[[Snapshot], object] = lambda snapshot: None
    ) -> tuple[CrawlOutcome | None, float]:
        """How it ended, None if it had not after `for_s`; and the time that this took."""
        stop, began = Stop(), self.clock.monotonic()

        def watch(snapshot: Snapshot) -> None:
            each_time(snapshot)
            self.clock.advance(STEP_S)
            if self.clock.monotonic() - began >= for_s:
                stop.now.set()

        crawl = await self.oversight.until_it_ends(watch, stop)
        return crawl.outcome, self.clock.monotonic() - began


@pytest.fixture
async def crawl(tmp_path: Path) -> AsyncIterator[Crawl]:
    clock = ManualClock()
    ports = await open_embedded(tmp_path, CrawlId("crawl"), clock)
    yield Crawl(ports, clock)
    await ports.close()


# --- How often it is looked at ---


@pytest.mark.parametrize(
    ("age_s", "expected_s"),
    [
        pytest.param(0.0, 0.02, id="one that has just begun may be over soon"),
        pytest.param(0.4, 0.1, id="its end is noticed within a quarter of its time"),
        pytest.param(3600.0, 0.25, id="nobody looks less often than the display wants"),
    ],
)
def test_the_end_of_a_short_crawl_is_seen_soon(age_s: float, expected_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oversight, "WATCH_S", WATCH_S)
    assert oversight.pause_s(age_s) == expected_s


# --- Stalled ---


async def test_a_crawl_in_which_nothing_moves_is_stalled_and_names_what_is_open(crawl: Crawl) -> None:
    await crawl.begin()
    await crawl.fetching()

    outcome, took_s = await crawl.look_after(2 * GIVEN_S)

    assert outcome is CrawlOutcome.STALLED
    assert GIVEN_S < took_s <= GIVEN_S + 3 * STEP_S
    ended = await crawl.oversight.ended(await crawl.ledger.crawl())
    assert ended.outcome is CrawlOutcome.STALLED
    assert [(record.url.url, record.state) for record in ended.stalled_on] == [("http://a.example/", State.FETCHING)]


async def test_a_crawl_without_a_worker_says_so_and_is_stalled_in_the_end(crawl: Crawl, caplog: pytest.LogCaptureFixture) -> None:
    await crawl.begin()

    outcome, took_s = await crawl.look_after(2 * GIVEN_S)

    assert (outcome, took_s > GIVEN_S) == (CrawlOutcome.STALLED, True)
    assert [each.getMessage() for each in caplog.records] == ["no worker is at work, with 1 URL open"]


async def test_a_crawl_whose_workers_come_late_says_that_they_are_there(crawl: Crawl, caplog: pytest.LogCaptureFixture) -> None:
    await crawl.begin()
    await crawl.look_after(2 * ALONE_S)
    await crawl.fetching()

    outcome, _ = await crawl.look_after(2 * ALONE_S)

    assert outcome is None
    assert [each.getMessage() for each in caplog.records][-1] == "1 worker at work again"


async def test_workers_that_take_a_moment_to_start_are_not_missed(crawl: Crawl, caplog: pytest.LogCaptureFixture) -> None:
    await crawl.begin()
    await crawl.look_after(ALONE_S - STEP_S)
    await crawl.fetching()
    await crawl.look_after(2 * ALONE_S)

    assert caplog.records == []


# --- What looks like it ---


async def test_a_process_that_was_frozen_is_not_stalled_when_it_comes_back(crawl: Crawl) -> None:
    """A suspended machine, a paused container: nothing moved because nobody could."""
    await crawl.begin()
    await crawl.fetching()
    looks = 0

    def freeze_at_the_third(_: Snapshot) -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            crawl.clock.advance(10 * GIVEN_S)

    outcome, _ = await crawl.look_after(10.9 * GIVEN_S, freeze_at_the_third)

    assert looks > 10, "it went on after that"
    assert outcome is None


async def test_time_that_a_server_was_waited_for_does_not_count(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    await crawl.begin()
    await crawl.fetching()
    counts = crawl.ledger.counts

    async def slowly() -> Any:
        crawl.clock.advance(LONG_LOOK_S)
        return await counts()

    monkeypatch.setattr(crawl.ledger, "counts", slowly)

    assert (await crawl.look_after(2 * GIVEN_S))[0] is None


async def test_a_host_that_asked_to_be_left_alone_for_long_is_waited_for(crawl: Crawl) -> None:
    await crawl.begin()
    seat, id = await crawl.fetching()
    await crawl.ledger.defer(seat, [Deferral(id=id, until_s=3 * GIVEN_S)])

    outcome, took_s = await crawl.look_after(8 * GIVEN_S)

    assert outcome is CrawlOutcome.STALLED, "it is due, and nobody promotes it"
    assert took_s > 4 * GIVEN_S


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(replace(SETTINGS, fetching=Fetching(attempt_timeout_s=3600)), id="a slow server"),
        pytest.param(
            Settings(start=replace(SETTINGS.start, modules=("noop", "noop")), fetching=Fetching(module_timeout_s=1800)),
            id="slow modules",
        ),
    ],
)
async def test_a_page_that_may_take_an_hour_is_given_an_hour(crawl: Crawl, settings: Settings) -> None:
    await crawl.begin(settings)
    await crawl.fetching()

    outcome, took_s = await crawl.look_after(4 * 3600)

    assert outcome is CrawlOutcome.STALLED
    assert took_s > 3600 + STALLED_S


async def test_a_blob_store_that_is_away_is_waited_for_and_named(crawl: Crawl, caplog: pytest.LogCaptureFixture) -> None:
    """The workers wait for it with their pages in hand."""

    async def away() -> None:
        raise BlobsUnavailable("the S3 server does not answer")

    await crawl.begin(ports=structs.replace(crawl.ports, checks={"s3": away}))
    await crawl.fetching()

    outcome, _ = await crawl.look_after(2.5 * GIVEN_S)

    assert outcome is None
    assert len(caplog.records) == 2, "said each time"
    assert caplog.records[0].getMessage().endswith("the S3 server does not answer")


async def test_a_broker_that_takes_no_messages_is_waited_for_and_named(
    crawl: Crawl, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is short of memory or disk: it answers, and blocks whoever publishes."""

    async def nothing_taken(queue: str, bodies: object) -> int:
        return 0

    await crawl.begin()
    await crawl.fetching()
    monkeypatch.setattr(crawl.ports.broker, "publish", nothing_taken)

    outcome, _ = await crawl.look_after(1.5 * GIVEN_S)

    assert outcome is None
    assert caplog.records[0].getMessage().endswith("the broker takes no messages")


async def test_a_queue_that_is_full_because_nobody_draws_from_it_is_no_excuse(crawl: Crawl) -> None:
    settings = replace(SETTINGS, frontier=replace(SETTINGS.frontier, queue_size=1))
    await crawl.begin(settings)  # the seed's hint fills it
    await crawl.fetching()

    assert (await crawl.look_after(2 * GIVEN_S))[0] is CrawlOutcome.STALLED


class Paused(Pauses):
    """Says that the store is away, until the test says otherwise."""

    away = True

    @property
    def reasons(self) -> tuple[str, ...]:
        return ("the blob store is away",) if self.away else ()


async def test_a_crawl_is_not_stalled_when_a_long_pause_is_over(crawl: Crawl) -> None:
    pauses = Paused(crawl.clock)
    await crawl.begin(ports=structs.replace(crawl.ports, pauses=pauses))
    await crawl.fetching()
    began = crawl.clock.monotonic()

    def over_in_the_end(_: Snapshot) -> None:
        pauses.away = crawl.clock.monotonic() - began < 3 * GIVEN_S

    outcome, took_s = await crawl.look_after(6 * GIVEN_S, over_in_the_end)

    assert outcome is CrawlOutcome.STALLED, "but when nothing moves from then on"
    assert took_s > 3.9 * GIVEN_S


async def test_a_crawl_that_moves_now_and_then_is_not_stalled(crawl: Crawl) -> None:
    await crawl.begin(replace(SETTINGS, start=Start(seeds=("http://a.example/", "http://b.example/"))))
    seat, id = await crawl.fetching()
    looks, finishing = 0, []

    def finish_late(_: Snapshot) -> None:
        nonlocal looks
        looks += 1
        if looks == int(0.9 * GIVEN_S / STEP_S):
            finishing.append(asyncio.create_task(crawl.ledger.finish(seat, [Closing(id=id, outcome=Outcome.GONE)])))

    outcome, took_s = await crawl.look_after(3 * GIVEN_S, finish_late)

    await asyncio.gather(*finishing)
    assert outcome is CrawlOutcome.STALLED
    assert took_s > 1.8 * GIVEN_S
