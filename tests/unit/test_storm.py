"""The storm's own parts: what is dealt, what passes a relay, what counts as impolite, and what is told in the end."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from tests.chaos.comparison import Difference, Kind
from tests.chaos.storm.deck import DECK, ONCE, Deed, Fault, Victim, deal
from tests.chaos.storm.manners import Breach, Frozen, Manners, Request, judge
from tests.chaos.storm.relay import Relay
from tests.chaos.storm.report import HEAD, Result, lines, table

# --- The deck ---


@pytest.mark.parametrize("duration_s", [1.0, 60.0, 600.0])
def test_every_kind_of_fault_comes_in_any_storm_and_the_broker_is_wiped_once(duration_s: float) -> None:
    dealt = deal(random.Random(1), duration_s)

    faults = Counter(each.fault for each in dealt)
    assert faults.keys() == {*DECK, ONCE}
    assert faults[ONCE] == 1
    assert [each.at_s for each in dealt] == sorted(each.at_s for each in dealt)
    assert dealt[0].at_s > 0
    assert dealt[-1].at_s < duration_s


def test_a_long_storm_deals_the_deck_several_times() -> None:
    assert len(deal(random.Random(1), 600.0)) == 4 * len(DECK) + 1


def test_the_same_seed_is_the_same_storm() -> None:
    assert deal(random.Random(5), 60.0) == deal(random.Random(5), 60.0)
    assert deal(random.Random(5), 60.0) != deal(random.Random(6), 60.0)


# --- The relay ---

PATIENCE_S = 60


@asynccontextmanager
async def echo_behind_a_relay() -> AsyncIterator[Relay]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data)
        writer.close()

    async with asyncio.timeout(PATIENCE_S), await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        async with Relay(f"tcp://user:password@{host}:{port}/path") as relay:
            assert relay.url.startswith("tcp://user:password@127.0.0.1:")
            assert relay.url.endswith("/path")
            yield relay


async def connected(relay: Relay) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", urlsplit(relay.url).port)


async def said(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, words: bytes) -> bytes:
    writer.write(words)
    return await reader.readexactly(len(words))


async def test_a_relay_passes_words_and_cuts_all_connections_at_once() -> None:
    async with echo_behind_a_relay() as relay:
        both = [await connected(relay) for _ in range(2)]
        assert [await said(*each, b"word") for each in both] == [b"word", b"word"]

        relay.cut()

        for reader, writer in both:
            assert await reader.read() == b""
            writer.close()
        reader, writer = await connected(relay)
        assert await said(reader, writer, b"again") == b"again"
        writer.close()


async def test_a_silenced_relay_holds_what_comes_and_passes_it_on_when_it_speaks() -> None:
    async with echo_behind_a_relay() as relay:
        reader, writer = await connected(relay)
        assert await said(reader, writer, b"before") == b"before"

        relay.silence()
        writer.write(b"held")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await reader.read(1)
        relay.speak()

        assert await reader.readexactly(4) == b"held"
        writer.close()


@pytest.mark.parametrize("status", [500, 507])
@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n", id="without a body"),
        pytest.param(b"PUT /a HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody", id="with its body"),
        pytest.param(
            b"PUT /a HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n", id="with a body that waits for a word"
        ),
    ],
)
async def test_a_relay_that_refuses_answers_in_the_servers_place(status: int, request_: bytes) -> None:
    async with echo_behind_a_relay() as relay:
        relay.refuse(status)
        reader, writer = await connected(relay)
        writer.write(request_)
        assert (await reader.read()).startswith(b"HTTP/1.1 %d " % status)
        writer.close()

        relay.refuse(None)
        reader, writer = await connected(relay)
        assert await said(reader, writer, b"word") == b"word"
        writer.close()


# --- Manners ---


def request(start: float, url: str = "http://a/1", took_s: float = 0.05) -> Request:
    return Request(start, start + took_s, url.split("/")[2], url)


def test_requests_a_delay_apart_are_polite_and_hosts_are_apart() -> None:
    manners = judge([request(0), request(1), request(1, "http://b/1"), request(2.02)], [], 1.0)

    assert manners == Manners(least_gap_s=1.0)


def test_a_gap_that_a_busy_machine_explains_is_counted_and_no_breach() -> None:
    manners = judge([request(0), request(0.9)], [], 1.0)

    assert (manners.breaches, manners.short, manners.least_gap_s) == ([], 1, 0.9)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(request(0), request(0.4, "http://a/2"), id="less than half of the delay"),
        pytest.param(request(0, took_s=3), request(2, "http://a/2"), id="two in flight"),
    ],
)
def test_what_no_shift_explains_is_a_breach(first: Request, second: Request) -> None:
    assert judge([second, first], [], 1.0).breaches == [Breach(first, second)]


def test_a_request_that_outlasts_several_later_ones_is_in_flight_beside_each() -> None:
    long, *others = request(0, took_s=5), request(1, "http://a/2"), request(2, "http://a/3")

    assert judge([long, *others], [], 1.0).breaches == [Breach(long, other) for other in others]


SLEEPER = Frozen(10.0, frozenset({"http://a/late"}))


def test_one_late_request_of_a_worker_that_was_frozen_is_told_apart() -> None:
    before, late, after = request(9.9), request(10.1, "http://a/late"), request(10.3, "http://a/2")

    manners = judge([before, late, after], [SLEEPER], 1.0)

    assert manners.breaches == []
    assert manners.frozen == [Breach(before, late), Breach(late, after)]


@pytest.mark.parametrize(
    "late",
    [
        pytest.param(request(10.1, "http://a/other"), id="one that it was never allowed"),
        pytest.param(request(9.8, "http://a/late"), id="one before it woke"),
        pytest.param(request(12.1, "http://a/late"), id="one long after it woke"),
    ],
)
def test_nothing_else_of_a_worker_that_was_frozen_is_excused(late: Request) -> None:
    assert len(judge([request(late.start - 0.1), late], [SLEEPER], 1.0).breaches) == 1


def test_a_second_late_request_for_the_same_url_is_not_excused() -> None:
    late = [request(10.1, "http://a/late"), request(10.3, "http://a/late")]

    manners = judge([request(9.9), *late, request(10.5, "http://a/3")], [SLEEPER], 1.0)

    assert len(manners.frozen) == 2
    assert len(manners.breaches) == 1


# --- The report ---

WELL = Result(seed=7, seconds=99.6, pages=300, done=Counter({Fault(Deed.KILL, Victim.REDIS): 2, ONCE: 1}))
BREACH = Breach(request(0), request(0.1))


def test_a_storm_in_which_nothing_was_lost_is_fine() -> None:
    assert WELL.is_fine
    assert list(lines(WELL, 1.0))[-1] == "nothing was lost"


@pytest.mark.parametrize(
    "result",
    [
        *(
            pytest.param(Result(seed=7, seconds=1, pages=1, done=Counter(), differences=[Difference(kind, "x")]), id=str(kind))
            for kind in Kind
        ),
        pytest.param(Result(seed=7, seconds=1, pages=1, done=Counter(), manners=Manners([BREACH])), id="impolite"),
        pytest.param(Result(seed=7, seconds=1, pages=1, done=Counter(), over_budget=1), id="over budget"),
        pytest.param(Result(seed=7, seconds=1, pages=1, done=Counter(), flaws=["a traceback"]), id="a flaw"),
        pytest.param(Result(seed=7, seconds=1, pages=1, done=Counter(), stuck=["a URL"]), id="it did not end"),
    ],
)
def test_anything_that_is_not_as_it_should_be_fails_the_storm(result: Result) -> None:
    assert not result.is_fine
    assert list(lines(result, 1.0))[-1] == "FAILED"


def test_a_crawl_that_did_not_end_does_not_claim_that_nothing_was_lost() -> None:
    stuck = Result(seed=7, seconds=1, pages=1, done=Counter(), stuck=["a URL", "another"])

    told = list(lines(stuck, 1.0))
    assert "it did not end, so nothing could be compared" in told
    assert "stuck: another" in told
    assert not any(line.startswith(("lost", "doubled", "impolite")) for line in told)
    assert list(table([stuck]))[-1].endswith("| unknown | unknown | unknown | unknown | 0 |")


def test_what_a_frozen_worker_may_do_is_told_and_fails_nothing() -> None:
    result = Result(seed=7, seconds=1, pages=1, done=Counter(), manners=Manners(frozen=[BREACH]))

    assert result.is_fine
    assert "late, by a frozen worker  1" in list(lines(result, 1.0))


def test_the_table_has_a_row_for_each_storm() -> None:
    head, rule, row = table([WELL])

    assert head == f"| {' | '.join(HEAD)} |"
    assert rule.count("---") == len(HEAD)
    assert row == "| 7 | 100 | 300 | 0, 0, 0, 0, 0, 2, 0 | 1 | 0, 0 | 0, 0 | 0, 0 | 0, 0 | 0 | 0 | 0 | 0 | 0 |"
