"""The rank API from the crawl's side: what its answers mean, how it is asked, and what becomes of a bad one."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.embedded.ledger import SqliteLedger
from gossamer.clock import ManualClock
from gossamer.ports.ledger import Ledger
from gossamer.records import Rules
from services.frontier.outside import asking, client, known, sources
from services.frontier.outside.answers import Failed, Rubbish, priorities
from services.frontier.outside.asking import Asking
from services.frontier.outside.breaker import ASKED_FOR_MAX_S, FAILURES_MAX, LEFT_ALONE_S, Breaker
from services.frontier.outside.client import RankApi, retry_after_s
from services.frontier.outside.known import Known
from services.frontier.outside.mixing import mix_hosts, mixed
from services.frontier.outside.sources import Sources
from tests.rank_server import Mood, RankServer, rank_server

BAD = [mood for mood in Mood if mood is not Mood.FINE]
#: For those that never end: a request's deadline.
SHORT_S = 0.5
NEVER_ENDING = (Mood.HANGING, Mood.TRICKLING)


class LeapingClock(ManualClock):
    """Time passes while somebody sleeps, at once, and never else: an hour of pauses takes no time."""

    async def sleep(self, seconds: float) -> None:
        self.advance(max(seconds, 0))
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> LeapingClock:
    return LeapingClock()


@pytest.fixture
async def ledger(tmp_path: Path, clock: LeapingClock) -> AsyncIterator[Ledger]:
    made = SqliteLedger(tmp_path / "ledger.sqlite", clock)
    await made.create(Rules())
    yield made
    await made.close()


class Asker:
    """What a frontier has, against a real server."""

    def __init__(self, server: RankServer, ledger: Ledger, clock: ManualClock) -> None:
        self.api = RankApi(server.url, "the-key")
        self.known = Known(clock)
        self.priority = Sources({}, self.known)
        self.asking = Asking(self.api, self.known, ledger, clock)

    async def wants(self, *domains: str) -> list[int | None]:
        """Asks once for what is wanted; what is known then."""
        for domain in domains:
            self.priority(domain)
        await self.asking.find_out()
        return [self.priority(domain) for domain in domains]

    async def run_until(self, clock: ManualClock, until: float) -> None:
        """As `run` does, up to a moment of the clock."""
        running = asyncio.ensure_future(self.asking.run())
        while clock.monotonic() < until:
            await asyncio.sleep(0)
            if running.done():
                running.result()
        running.cancel()
        await asyncio.wait((running,))


@pytest.fixture
async def server() -> AsyncIterator[RankServer]:
    async with rank_server(good_example=9.1, fair_example=4.27) as made:
        yield made


@pytest.fixture
async def asker(server: RankServer, ledger: Ledger, clock: LeapingClock) -> AsyncIterator[Asker]:
    made = Asker(server, ledger, clock)
    yield made
    await made.api.close()


# --- Answers ---


def answer(*entries: dict[str, object], status: int = 200) -> bytes:
    return json.dumps({"status_code": status, "response": entries, "last_updated": "6th Nov 2026"}).encode()


@pytest.mark.parametrize(
    ("entry", "priority"),
    [
        ({"status_code": 200, "page_rank_decimal": 10}, 0),
        ({"status_code": 200, "page_rank_decimal": 4.27}, 57),
        ({"status_code": 200, "page_rank_decimal": 0}, 100),
        ({"status_code": 404, "page_rank_decimal": "", "rank": None, "error": "Domain not found"}, 100),
        ({"status_code": 404, "page_rank_decimal": 5.0}, 100),
        ({"status_code": 200, "page_rank_decimal": ""}, 100),
        ({"status_code": 200}, 100),
    ],
)
def test_a_better_rank_is_a_lower_priority_and_an_unknown_domain_is_last(entry: dict[str, object], priority: int) -> None:
    assert priorities(answer({**entry, "domain": "a.example"}), ["a.example"]) == {"a.example": priority}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"null",
        b"[]",
        b'{"status_code": 200}',
        b'{"status_code": 200, "response": {}}',
        b'{"status_code": 200, "response": [{"status_code": 200, "domain": "a.example", "page_rank_decimal": NaN}]}',
        b'{"status_code": 200, "response": [{"status_code": 200, "domain": "a.example", "page_rank_decimal": 1e999}]}',
        b'{"status_code": 200, "response": [{"status_code": 200, "domain": "a.example", "page_rank_decimal": true}]}',
        b"\xff\xfe",
        b'{"response":' * 2_000,
        answer({"status_code": 200, "domain": "a.example", "page_rank_decimal": 10.01}),
        answer({"status_code": 200, "domain": "a.example", "page_rank_decimal": -1}),
        answer({"status_code": 200, "domain": "a.example", "page_rank_decimal": "5"}),
        answer({"status_code": 500, "domain": "a.example", "page_rank_decimal": 5}),
        answer({"status_code": 200, "domain": 7, "page_rank_decimal": 5}),
        answer(status=429),
    ],
)
def test_whatever_is_not_in_the_form_is_rubbish(body: bytes) -> None:
    with pytest.raises(Rubbish) as rubbish:
        priorities(body, ["a.example"])
    assert str(rubbish.value).isprintable()


@given(st.binary(max_size=200))
def test_any_bytes_are_ranks_or_rubbish(body: bytes) -> None:
    with suppress(Rubbish):
        assert priorities(body, ["a.example"]) == {}


def test_domains_that_nobody_asked_for_are_passed_over() -> None:
    told = answer({"status_code": 200, "domain": "b.example", "page_rank_decimal": 5})
    assert priorities(told, ["a.example"]) == {}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("Wed, 18 Nov 2026 12:00:30 GMT", 30.0),
        ("Wed, 18 Nov 2026 11:00:00 GMT", 0.0),
        ("-7", None),
        ("7.5", None),
        ("soon", None),
        ("", None),
        ("9" * 400, None),
        ("\u0667", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str, seconds: float | None) -> None:
    assert retry_after_s(text, datetime(2026, 11, 18, 12, tzinfo=UTC)) == seconds


# --- One request ---


async def test_it_is_asked_in_the_form_of_open_pagerank_with_its_key_in_a_header(asker: Asker, server: RankServer) -> None:
    assert await asker.wants("good.example", "www.fair.example", "unknown.example") == [9, 57, 100]

    assert server.asked == [["good.example", "fair.example", "unknown.example"]]
    assert server.heads[0].startswith("GET /api/v1.0/getPageRank?domains%5B%5D=good.example&domains%5B%5D=fair.example&")
    assert "\r\napi-opr: the-key\r\n" in server.heads[0].lower()
    assert "the-key" not in server.heads[0].partition("\r\n")[0]


@pytest.mark.parametrize("mood", BAD)
async def test_whatever_goes_wrong_is_a_failure_in_our_own_words(
    server: RankServer, mood: Mood, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "REQUEST_S", SHORT_S if mood in NEVER_ENDING else 10.0)
    server.mood = mood
    api = RankApi(server.url, None)
    try:
        with pytest.raises(Failed) as failed:
            await api.ask(["a.example"])
    finally:
        await api.close()

    assert str(failed.value).startswith("it")
    assert failed.value.again == (mood not in (Mood.FORBIDDEN, Mood.ELSEWHERE))
    assert failed.value.retry_after_s == (7.0 if mood is Mood.OVERRUN else None)
    assert len(server.asked) == 1


async def test_a_port_where_nobody_listens_is_a_failure() -> None:
    async with rank_server() as gone:
        url = gone.url
    api = RankApi(url, None)
    with pytest.raises(Failed, match="it can't be reached"):
        await api.ask(["a.example"])
    await api.close()


async def test_proxies_of_the_environment_are_not_meant(server: RankServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.99:9")
    api = RankApi(server.url, None)
    assert await api.ask(["good.example"]) == {"good.example": 9}
    await api.close()


# --- The breaker ---


def test_after_five_failures_in_a_row_it_is_left_alone_for_a_minute() -> None:
    clock = ManualClock()
    breaker = Breaker(clock)
    for _ in range(FAILURES_MAX - 1):
        breaker.failed()
        assert (breaker.wait_s(), breaker.is_open) == (0.0, False)
    breaker.failed()
    assert (breaker.wait_s(), breaker.is_open) == (LEFT_ALONE_S, True)
    clock.advance(LEFT_ALONE_S)
    assert (breaker.wait_s(), breaker.is_open) == (0.0, True), "one may try"
    breaker.failed()
    assert breaker.wait_s() == LEFT_ALONE_S
    clock.advance(LEFT_ALONE_S)
    breaker.succeeded()
    assert (breaker.wait_s(), breaker.is_open, breaker.away_since) == (0.0, False, None)


def test_a_success_in_between_starts_the_count_again() -> None:
    breaker = Breaker(ManualClock())
    for _ in range(3):
        for _ in range(FAILURES_MAX - 1):
            breaker.failed()
        breaker.succeeded()
    assert not breaker.is_open


def test_it_is_left_alone_as_long_as_it_asks_for_and_no_longer_than_an_hour() -> None:
    clock = ManualClock()
    breaker = Breaker(clock)
    breaker.failed(7.0)
    assert breaker.wait_s() == 7.0
    breaker.failed(1e9)
    assert breaker.wait_s() == ASKED_FOR_MAX_S


def test_it_is_away_since_the_first_failure() -> None:
    clock = ManualClock(1000.0)
    breaker = Breaker(clock)
    breaker.failed()
    clock.advance(5)
    breaker.failed()
    assert breaker.away_since == 1000.0


# --- The loop ---


async def test_a_hundred_domains_are_asked_for_at_once_and_no_more(asker: Asker, server: RankServer) -> None:
    names = [f"{number}.example" for number in range(250)]
    for name in names:
        asker.priority(name)
    for _ in range(4):
        await asker.asking.find_out()

    assert [len(asked) for asked in server.asked] == [100, 100, 50]
    assert [name for asked in server.asked for name in asked] == names


async def test_long_names_make_small_batches_so_that_they_fit_into_a_url(asker: Asker, server: RankServer) -> None:
    names = [f"{number:03}{'x' * 60}.example" for number in range(150)]
    for name in names:
        asker.priority(name)
    for _ in range(4):
        await asker.asking.find_out()

    assert [name for asked in server.asked for name in asked] == names
    assert max(len(head.partition("\r\n")[0]) for head in server.heads) < 8_000


async def test_all_hosts_of_a_domain_are_asked_for_as_one_and_no_name_that_none_could_have(
    asker: Asker, server: RankServer
) -> None:
    hosts = ["good.example", "www.good.example", "a.b.good.example", "trap_1.good.example", "127.0.0.1", "_.x_y.example", "[::1]"]
    assert await asker.wants(*hosts) == [9, 9, 9, 9, 100, None, None]
    assert server.asked == [["good.example", "127.0.0.1"]]


async def test_a_domain_is_asked_for_once_whoever_asks(
    asker: Asker, server: RankServer, ledger: Ledger, clock: LeapingClock
) -> None:
    assert await asker.wants("good.example", "unknown.example") == [9, 100]
    assert await asker.wants("good.example", "www.good.example", "unknown.example") == [9, 9, 100]
    another = Asker(server, ledger, clock)
    assert await another.wants("good.example", "unknown.example") == [9, 100]
    await another.api.close()

    assert len(server.asked) == 1


async def test_what_is_a_day_old_is_asked_for_again_and_holds_until_the_answer(
    asker: Asker, server: RankServer, clock: LeapingClock
) -> None:
    await asker.wants("good.example")
    server.decimals = {"good.example": 2.0}

    clock.advance(asking.KEPT_S - 1)
    assert await asker.wants("good.example") == [9], "the ledger still knows it"
    clock.advance(known.FRESH_S + 1)
    assert asker.priority("good.example") == 9
    assert await asker.wants("good.example") == [80]
    assert len(server.asked) == 2


@pytest.mark.parametrize("mood", [mood for mood in BAD if mood not in (Mood.OVERRUN, Mood.FORBIDDEN, Mood.ELSEWHERE)])
async def test_it_is_tried_three_times_and_then_waits_for_its_next_turn(
    asker: Asker, server: RankServer, clock: LeapingClock, mood: Mood, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "REQUEST_S", SHORT_S if mood in NEVER_ENDING else 10.0)
    server.mood = mood
    began_s = clock.monotonic()

    assert await asker.wants("good.example") == [None]

    assert len(server.asked) == 3
    assert 0 < clock.monotonic() - began_s <= 2 * asking.LONGEST_PAUSE_S
    server.mood = Mood.FINE
    await asker.asking.find_out()
    assert asker.priority("good.example") == 9, "nothing of what was wanted is forgotten"


@pytest.mark.parametrize("mood", [Mood.FORBIDDEN, Mood.ELSEWHERE])
async def test_what_will_not_go_better_is_not_tried_again_at_once(asker: Asker, server: RankServer, mood: Mood) -> None:
    server.mood = mood
    assert await asker.wants("good.example") == [None]
    assert len(server.asked) == 1


async def test_an_overrun_api_is_left_alone_as_long_as_it_asks_for(asker: Asker, server: RankServer, clock: LeapingClock) -> None:
    server.mood = Mood.OVERRUN
    asker.priority("good.example")
    began_s = clock.monotonic()

    await asker.run_until(clock, began_s + 7.4)
    assert len(server.asked) == 1
    server.mood = Mood.FINE
    await asker.run_until(clock, began_s + 9)
    assert len(server.asked) == 2
    assert asker.priority("good.example") == 9


async def test_an_outage_of_an_hour_costs_one_request_a_minute_and_ends_by_itself(
    asker: Asker, server: RankServer, clock: LeapingClock, caplog: pytest.LogCaptureFixture
) -> None:
    server.mood = Mood.ERROR
    asker.priority("good.example")
    began_at, began_s = clock.now(), clock.monotonic()

    await asker.run_until(clock, began_s + 3600)

    assert FAILURES_MAX + 55 <= len(server.asked) <= FAILURES_MAX + 60
    note = asker.asking.note()
    assert note.asked == len(server.asked)
    assert note.away_since is not None
    assert began_at <= note.away_since < began_at + 2
    assert note.last == "it answers with status 500"
    server.mood = Mood.FINE
    await asker.run_until(clock, clock.monotonic() + 61)
    assert asker.priority("good.example") == 9
    assert asker.asking.note().away_since is None
    assert [record.getMessage() for record in caplog.records] == [
        "the rank API is away, and URLs are ranked without it: it answers with status 500",
        "the rank API is back",
    ]


def test_what_is_known_and_what_is_wanted_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "KNOWN_MAX", 3)
    monkeypatch.setattr(known, "WANTED_MAX", 5)
    kept = Known(ManualClock())
    for number in range(9):
        kept.priority(f"{number}.example")
    names = kept.take(100, 1_000)
    assert names == [f"{number}.example" for number in range(5)]
    assert kept.take(100, 1_000) == []

    kept.learn(names, dict.fromkeys(names[:4], 7))
    assert [kept.priority(name) for name in names] == [None, None, 7, 7, None]
    assert kept.ranked == 2


def test_the_file_is_asked_before_the_api_by_the_host_before_its_domain() -> None:
    known = Known(ManualClock())
    ask = Sources({"a.example": 10, "docs.a.example": 20, "www.b.example": 99}, known)

    found = [
        ask(host) for host in ("a.example", "www.a.example", "docs.a.example", "x.docs.a.example", "www.b.example", "c.example")
    ]

    assert found == [10, 10, 20, 10, None, None]
    assert known.take(10, 100) == ["b.example", "c.example"]
    assert Sources({"a.example": 10}, None)("b.example") is None


def test_names_at_hand_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "NAMES_MAX", 2)
    ask = Sources({"a.example": 10}, None)
    assert [ask(f"{number}.a.example") for number in range(5)] == [10] * 5
    assert len(ask._names) == 1


@pytest.mark.parametrize(("own", "outside", "expected"), [(0, 100, 50), (40, None, 40), (100, 100, 100), (0, 0, 0), (3, 4, 4)])
def test_the_priority_is_the_mean_and_without_a_rank_from_outside_the_crawls_own(
    own: int, outside: int | None, expected: int
) -> None:
    assert mixed(own, outside) == expected


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(-1, 2))))
def test_many_at_once_are_mixed_as_one_is(urls: list[tuple[int, int]]) -> None:
    hosts, ranks = ["a.example", "b.example", "c.example"], {"a.example": 0, "b.example": 100}
    own, host_of = np.array([own for own, _ in urls], np.uint8), np.array([host for _, host in urls], np.int32)

    found = mix_hosts(own, host_of, hosts, ranks.get)

    assert found.tolist() == [mixed(own, ranks.get(hosts[host]) if host >= 0 else None) for own, host in urls]
