"""What the Redis ledger promises beyond the port: keys that end, scripts that come back, servers that are full, frozen, killed."""

import asyncio
import contextlib
import inspect
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from uuid import uuid4

import pytest
from redis.asyncio import Redis as Client
from redis.asyncio.connection import AbstractConnection

from adapters.distributed.ledger import RedisLedger, connect
from gossamer.answers import Fresh, Go
from gossamer.clock import ManualClock
from gossamer.errors import Fenced, LedgerUnavailable, NoCrawl, SettingsError
from gossamer.ids import CrawlId, Epoch, UrlId, WorkerId
from gossamer.messages import Link, Url
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.ports.blobs import BlobRef
from gossamer.ports.ledger import Ledger
from gossamer.records import (
    Closing,
    Content,
    CrawlStatus,
    Deferral,
    Facts,
    Leaving,
    PassedUp,
    Refused,
    Robots,
    Rules,
    Seat,
    Visit,
)
from gossamer.testing.invariants import broken_invariants
from tests.contract.harnesses import RedisHarness
from tests.servers import Redis

RULES = Rules(delay_s=0.5, request_bytes=100, keep_outlinks=True, similarity=0.9, poison_deaths=1, max_host_pages=9, max_variants=5)
PAGES = 60
#: The shards of ten hashes and sorted sets, and twenty keys that are single.
KEYS_MAX = 11 * 16 + 20


def link(number: int) -> Link:
    name = f"site{number % 7}.example"
    # Some are of a host that is no unit of politeness, some of a path with many variants.
    host = f"www{number % 3}.{name}" if number % 2 else name
    return Link(
        UrlId(number.to_bytes(2) * 8), f"http://{host}/{number}", name, b"variants" if number % 5 == 0 else b"", number % 5 == 0
    )


def url(number: int) -> Url:
    return link(number).found()


IDS = [link(number).id for number in range(PAGES)]


@pytest.fixture
async def harness() -> AsyncIterator[RedisHarness]:
    made = RedisHarness()
    yield made
    await made.close()


@pytest.fixture
def server() -> Iterator[Redis]:
    """One that may be killed."""
    with Redis() as started:
        yield started


@pytest.fixture
async def own(server: Redis) -> AsyncIterator[RedisHarness]:
    """A ledger on a server of its own."""
    made = RedisHarness(server.url)
    yield made
    await made.client.aclose()


async def crawl_on(harness: RedisHarness, rng: random.Random, steps: int) -> Seat:
    """A crawl as it comes: pages that are stored, fail, are alike, deferred and passed up; workers that die; the last seat."""
    ledger = harness.ledger
    await ledger.create(RULES)
    await ledger.add([url(number) for number in range(5)], [link(0).domain])
    seat = await ledger.register("one")
    for _ in range(steps):
        await harness.advance(rng.choice([0.1, 0.5, 1.0]))
        if rng.random() < 0.1:  # it dies, and perhaps was only slow
            await harness.advance(RULES.lease_s)
            seat = await ledger.register("one", rng.choice([None, seat]))
        await ledger.renew(seat)
        await ledger.route([(found.id, rng.randrange(101)) for found, _ in await ledger.waiting(5, idle=True)])
        await ledger.promote(5)
        await ledger.rank([(rng.choice(IDS), rng.randrange(101)) for _ in range(5)])
        held = await ledger.held(seat)
        await ledger.know_robots(
            rng.choice(held).domain if held else "nobody", Robots("User-agent: *\n" * 50), rng.choice([1, 100])
        )
        for one, answer in zip(held, await ledger.begin(seat, [one.id for one in held]), strict=True):
            if isinstance(answer, Go):
                await fetch(ledger, seat, one, rng)
        if held and rng.random() < 0.3:
            await ledger.knock(seat, held[0].id)
            await ledger.leave(seat, [Leaving(id=held[0].id, visit=Visit(received_bytes=10), until_s=rng.choice([None, 2.0]))])
            await ledger.pass_up(seat, [PassedUp(id=held[-1].id, outcome=Outcome.ROBOTS_DENIED, reason="Disallow: /")])
        await ledger.know_ranks({f"{rng.randrange(20)}.example": rng.randrange(101)}, rng.choice([1, 100]))
        await ledger.note("one", str(rng.random()))
        await ledger.shed(40, 2)
    return seat


async def fetch(ledger: Ledger, seat: Seat, one: Url, rng: random.Random) -> None:
    text = bytes([rng.randrange(20)])
    alike = Content(id=one.id, exact=rng.randbytes(4), signature=text * 40, bands=[text, rng.randbytes(2)])
    (judgement,) = await ledger.judge(seat, [alike])
    visit = Visit(received_bytes=50, answered=True)
    match rng.randrange(4):
        case 0:
            await ledger.defer(seat, [Deferral(id=one.id, until_s=rng.choice([None, 3.0]), reason="429", visit=visit)])
        case 1:
            failed = Visit(failed=Outcome.TIMEOUT)
            await ledger.finish(seat, [Closing(id=one.id, outcome=Outcome.TIMEOUT, visit=failed)])
        case 2 if isinstance(judgement, Fresh):
            facts = Facts(status=200, blob=BlobRef("segment", 0, 1, bytes(32)), title="Été\0☃")
            links = [link(rng.randrange(PAGES)) for _ in range(10)]
            refused = [Refused("scope", 3, "http://elsewhere.example/")]
            closing = Closing(id=one.id, outcome=Outcome.DONE, facts=facts, visit=visit, links=links, refused=refused)
            await ledger.finish(seat, [closing])
        case _:
            pass  # its worker dies with it, or it is begun again


# --- Keys ---


@pytest.mark.parametrize("seed", range(5))
async def test_every_key_ends_at_one_moment_which_is_never_far(harness: RedisHarness, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(4):
        await crawl_on(harness, rng, 10)
        keys = await harness.keys()
        assert len(keys) > 20
        ends = {await harness.client.pexpiretime(key) for key in keys}
        assert len(ends) == 1
        assert 0 < ends.pop() - time.time() * 1000 <= RULES.ttl_s * 1000 + 1000

    assert await broken_invariants(harness.ledger, IDS) == []


async def test_keeping_a_crawl_moves_the_end_of_every_key(harness: RedisHarness) -> None:
    await crawl_on(harness, random.Random(1), 40)
    keys = await harness.keys()
    for key in keys:
        await harness.client.pexpire(key, 5_000)

    await harness.ledger.keep()

    assert len({await harness.client.pexpiretime(key) for key in keys}) == 1
    assert min([await harness.client.pttl(key) for key in keys]) > RULES.ttl_s * 1000 - 5_000


async def test_a_crawl_has_few_keys_however_many_urls_it_knows(harness: RedisHarness) -> None:
    ledger = harness.ledger
    await ledger.create(Rules())
    await ledger.register("one")
    urls = [Url(UrlId(n.to_bytes(2) * 8), f"http://site{n % 900}.example/{n}", f"site{n % 900}.example") for n in range(5_000)]
    for start in range(0, len(urls), 1_000):
        added = await ledger.add(urls[start : start + 1_000])
        await ledger.route([(one.id, 50) for one in added])

    assert (await ledger.counts()).domains == 900
    assert len(await harness.keys()) <= KEYS_MAX


async def test_a_crawl_whose_time_is_over_is_gone_whole(harness: RedisHarness) -> None:
    ledger = harness.ledger
    await ledger.create(Rules(ttl_s=0.2))
    await ledger.add([url(1)], ["a.example"])
    seat = await ledger.register("one")
    await until(lambda: is_gone(harness))

    calls: list[Callable[[], Awaitable[object]]] = [
        ledger.crawl,
        ledger.counts,
        ledger.keep,
        ledger.notes,
        lambda: ledger.renew(seat),
        lambda: ledger.records([url(1).id]),
        lambda: ledger.add([url(2)]),
    ]
    for call in calls:
        with pytest.raises(NoCrawl):
            await call()
    assert await harness.keys() == []
    await ledger.create(RULES)
    assert (await ledger.counts()).open == 0
    assert (await ledger.crawl()).scope == frozenset()


async def test_a_named_lease_ends_by_itself(harness: RedisHarness) -> None:
    await harness.ledger.lease("sweeper", "one", 20)

    (key,) = await harness.keys()

    assert 0 < await harness.client.pttl(key) <= 20_000


async def test_two_crawls_on_one_server_do_not_see_each_other(harness: RedisHarness) -> None:
    other = RedisHarness()
    try:
        await harness.ledger.create(RULES)
        with pytest.raises(NoCrawl):
            await other.ledger.crawl()
        await other.ledger.create(RULES)
        await harness.ledger.add([url(1)], ["a.example"])
        await harness.ledger.note("worker 0", "text")
        await harness.ledger.lease("rank", "one", 10)

        assert await other.ledger.records([url(1).id]) == [None]
        assert (await other.ledger.crawl()).scope == frozenset()
        assert await other.ledger.notes() == {}
        assert await other.ledger.lease("rank", "two", 10)
        assert await other.ledger.add([url(1)]) == [url(1)]
    finally:
        await other.close()


# --- Round trips and scripts ---


def every_verb(ledger: Ledger, seat: Seat, one: Url) -> dict[str, Callable[[], Awaitable[object]]]:
    """Each verb of the port, called in a way that is always allowed."""
    return {
        "create": lambda: ledger.create(RULES),
        "add": lambda: ledger.add([one, url(2)], ["a.example"]),
        "route": lambda: ledger.route([(one.id, 50)]),
        "promote": lambda: ledger.promote(10),
        "waiting": lambda: ledger.waiting(10, idle=False),
        "rank": lambda: ledger.rank([(url(2).id, 40)]),
        "held": lambda: ledger.held(seat),
        "knock": lambda: ledger.knock(seat, one.id),
        "leave": lambda: ledger.leave(seat, [Leaving(id=one.id, until_s=0.0)]),
        "begin": lambda: ledger.begin(seat, [one.id]),
        "judge": lambda: ledger.judge(seat, [Content(id=one.id, exact=b"x", signature=b"sign", bands=[b"band"])]),
        "defer": lambda: ledger.defer(seat, [Deferral(id=one.id, until_s=1.0, reason="429")]),
        "finish": lambda: ledger.finish(seat, [Closing(id=one.id, outcome=Outcome.GONE, links=[link(3)])]),
        "pass_up": lambda: ledger.pass_up(seat, [PassedUp(id=one.id, outcome=Outcome.ROBOTS_DENIED)]),
        "outlinks": lambda: ledger.outlinks(0, 10),
        "shed": lambda: ledger.shed(100, 10),
        "robots": lambda: ledger.robots("http://a.example"),
        "know_robots": lambda: ledger.know_robots("http://a.example", Robots("text"), 10),
        "known_ranks": lambda: ledger.known_ranks(["a.example"]),
        "know_ranks": lambda: ledger.know_ranks({"a.example": 7}, 10),
        "lease": lambda: ledger.lease("rank", "one", 10),
        "note": lambda: ledger.note("one", "text"),
        "notes": ledger.notes,
        "crawl": ledger.crawl,
        "counts": ledger.counts,
        "workers": ledger.workers,
        "records": lambda: ledger.records([one.id]),
        "pages": lambda: ledger.pages(0, 10),
        "domain": lambda: ledger.domain(one.domain),
        "site": lambda: ledger.site(one.domain),
        "domains": lambda: ledger.domains(10),
        "unfinished": lambda: ledger.unfinished(10),
        "poisoned": lambda: ledger.poisoned(10),
        "refused": ledger.refused,
        "keep": ledger.keep,
        "renew": lambda: ledger.renew(seat),
        "reap": ledger.reap,
        "register": lambda: ledger.register("two"),
        "release": lambda: ledger.release(seat),
        "stop": lambda: ledger.stop(CrawlOutcome.STOPPED),
        "end": ledger.end,
        "resume": lambda: ledger.resume(RULES, nobody_lives=True),
    }


async def test_every_verb_is_one_round_trip(harness: RedisHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    send = AbstractConnection.send_packed_command

    async def counted(self: AbstractConnection, *args: object, **kwargs: object) -> None:
        sent.append(verb)
        await send(self, *args, **kwargs)  # type: ignore[arg-type]

    verbs = every_verb(harness.ledger, Seat(WorkerId(0), Epoch(0)), url(1))
    port = {name for name, _ in inspect.getmembers(Ledger, inspect.iscoroutinefunction)} - {"close"}
    assert verbs.keys() == port
    for call in verbs.values():  # every script is known to the server now
        with contextlib.suppress(Fenced, NoCrawl):
            await call()
    seat = await harness.ledger.register("one")
    monkeypatch.setattr(AbstractConnection, "send_packed_command", counted)

    for verb, call in every_verb(harness.ledger, seat, url(9)).items():  # noqa: B007  # `counted` reads it
        await call()

    assert sorted(sent) == sorted(port)


async def test_a_server_that_forgot_its_scripts_gets_them_again(harness: RedisHarness) -> None:
    rng = random.Random(2)
    for _ in range(3):
        await crawl_on(harness, rng, 5)
        await harness.client.script_flush()

    assert await broken_invariants(harness.ledger, IDS) == []


# --- Servers that are full, frozen, killed, away ---


async def test_a_full_server_is_an_outage_that_changes_nothing_and_passes(own: RedisHarness) -> None:
    rng = random.Random(3)
    seat = await crawl_on(own, rng, 20)
    routed, fetched = (Url(UrlId(bytes([n]) * 16), f"http://{n}.example/", f"{n}.example") for n in (200, 201))
    await own.ledger.add([routed, fetched, *(url(number) for number in range(PAGES))])
    ids = [*IDS, routed.id, fetched.id]
    assert await own.ledger.route([(routed.id, 0), (fetched.id, 0)]) == [seat.worker] * 2
    assert isinstance((await own.ledger.begin(seat, [fetched.id]))[0], Go)
    before = await dump(own)
    await own.client.config_set("maxmemory", 1)

    for one, changing in ((routed, {"knock", "begin", "pass_up"}), (fetched, {"leave", "judge", "defer", "finish"})):
        refused = set()
        for verb, call in every_verb(own.ledger, seat, one).items():
            if verb not in ("keep", "renew", "note", "release", "stop"):
                try:
                    await call()
                except LedgerUnavailable:
                    refused.add(verb)
        assert refused >= changing | {"add", "waiting", "register", "know_robots", "know_ranks", "lease", "resume"}
        assert await dump(own) == before, "what was refused left nothing behind, and what was not only read"

    # What needs no memory goes on: the crawl lives, nobody is taken for dead, and what is too much can be shed.
    await own.ledger.keep()
    await own.ledger.renew(seat)
    assert await own.ledger.shed(0, 3) == 3
    # And whoever watches is told, and can end it.
    await own.ledger.note("worker 0 1", "paused")
    assert (await own.ledger.notes())["worker 0 1"] == "paused"
    await own.ledger.stop(CrawlOutcome.STOPPED)
    assert (await own.ledger.crawl()).status is CrawlStatus.DRAINING
    await own.ledger.release(seat)
    assert await broken_invariants(own.ledger, ids) == []

    await own.client.config_set("maxmemory", 0)
    await own.ledger.resume(RULES)
    await crawl_on(own, rng, 20)
    assert await broken_invariants(own.ledger, ids) == []


async def test_the_check_tells_that_a_server_is_full(own: RedisHarness) -> None:
    ledger = RedisLedger(own.client, own.crawl)
    await ledger.check()
    await own.client.config_set("maxmemory", 1)
    try:
        with pytest.raises(LedgerUnavailable, match="out of memory") as full:
            await ledger.check()
    finally:
        await own.client.config_set("maxmemory", 0)

    assert full.value.full


async def test_what_was_answered_is_there_when_the_server_was_killed(server: Redis, own: RedisHarness) -> None:
    rng = random.Random(4)
    await crawl_on(own, rng, 20)
    before = await dump(own)

    server.kill()
    with pytest.raises(LedgerUnavailable):
        await own.ledger.counts()
    server.start()

    assert await dump(own) == before
    await crawl_on(own, rng, 20)
    assert await broken_invariants(own.ledger, IDS) == []


async def test_a_frozen_server_is_an_outage_and_answers_meet_their_questions_afterwards(server: Redis) -> None:
    client = Client.from_url(server.url, socket_timeout=0.2, retry=None)
    ledger = RedisLedger(client, CrawlId("frozen"), ManualClock())
    await ledger.create(RULES)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        with pytest.raises(LedgerUnavailable):
            await ledger.add([url(1)])
    finally:
        os.kill(server.pid, signal.SIGCONT)

    await until(lambda: answers(ledger))
    assert (await ledger.crawl()).rules == RULES
    assert await ledger.add([url(2)]) == [url(2)]
    await client.aclose()


async def test_a_caller_that_gives_up_leaves_no_answer_for_the_next_one(harness: RedisHarness) -> None:
    ledger = harness.ledger
    await ledger.create(RULES)
    for number in range(50):
        impatient = asyncio.create_task(ledger.add([url(number)]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        impatient.cancel()
        assert (await ledger.crawl()).rules == RULES
        assert await ledger.notes() == {}


async def test_a_server_that_is_away_is_an_outage() -> None:
    ledger = RedisLedger("redis://127.0.0.1:1/0", CrawlId("nowhere"))
    for call in (ledger.counts, ledger.check):
        with pytest.raises(LedgerUnavailable):
            await call()
    await ledger.close()


async def test_a_closed_ledger_says_so_and_closing_twice_is_harmless(harness: RedisHarness) -> None:
    ledger = RedisLedger(harness.client, harness.crawl)
    await ledger.close()
    await ledger.close()

    with pytest.raises(LedgerUnavailable):
        await ledger.counts()
    await harness.ledger.create(RULES)  # the client is its owner's to close


# --- Is the server fit? ---


async def test_a_server_that_evicts_is_refused(own: RedisHarness) -> None:
    ledger = RedisLedger(own.client, own.crawl)
    assert await ledger.check() == []
    for policy in ("allkeys-lru", "volatile-ttl"):
        await own.client.config_set("maxmemory-policy", policy)

        with pytest.raises(SettingsError, match=f"redis_url.*{policy}"):
            await ledger.check()


async def test_a_server_that_keeps_nothing_is_warned_about(own: RedisHarness) -> None:
    await own.client.config_set("appendonly", "no")

    (warning,) = await RedisLedger(own.client, own.crawl).check()

    assert "appendonly" in warning


async def test_a_server_that_does_not_tell_is_warned_about(server: Redis, own: RedisHarness) -> None:
    await own.client.execute_command("ACL", "SETUSER", "guest", "on", ">word", "~*", "+@all", "-info", "-config")  # type: ignore[no-untyped-call]
    guest = RedisLedger(as_user(server.url, "guest", "word"), own.crawl)

    warnings = await guest.check()

    assert len(warnings) == 2
    await guest.create(RULES)
    await guest.close()


async def test_a_server_that_forbids_what_a_verb_needs_is_a_matter_of_settings(server: Redis, own: RedisHarness) -> None:
    await own.client.execute_command("ACL", "SETUSER", "guest", "on", ">word", "~*", "+@all", "-@scripting")  # type: ignore[no-untyped-call]
    guest = RedisLedger(as_user(server.url, "guest", "word"), own.crawl)

    with pytest.raises(SettingsError, match="redis_url"):
        await guest.create(RULES)
    await guest.close()


async def test_a_wrong_password_is_said_without_showing_it(server: Redis) -> None:
    ledger = RedisLedger(as_user(server.url, "", "wrong"), CrawlId("nobodys"))

    with pytest.raises(LedgerUnavailable, match="does not let us in") as refused:
        await ledger.check()
    assert "wrong" not in str(refused.value).replace("invalid username-password", "").replace("WRONGPASS", "")
    await ledger.close()


async def test_a_database_that_is_not_there_is_a_matter_of_settings(server: Redis) -> None:
    ledger = RedisLedger(server.url.removesuffix("/0") + "/99", CrawlId("nobodys"))

    with pytest.raises(SettingsError, match="redis_url"):
        await ledger.check()
    await ledger.close()


@pytest.mark.parametrize("end", ["/0?decode_responses=true", "/x", "/0#x", "/0/1"])
def test_a_url_has_nothing_behind_the_database(end: str) -> None:
    with pytest.raises(SettingsError, match="redis_url"):
        connect(f"redis://:password@127.0.0.1:6379{end}")


def as_user(url: str, user: str, password: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{user}:{password}@{rest.rpartition('@')[2]}"


# --- Time and texts ---


async def test_without_a_clock_in_hand_time_is_the_servers_own(harness: RedisHarness) -> None:
    ledger = RedisLedger(harness.client, harness.crawl)
    await ledger.create(RULES)
    seat = await ledger.register("one")

    (worker,) = await ledger.workers()

    assert worker.lease_until == pytest.approx(time.time() + RULES.lease_s, abs=5)
    assert seat.epoch == pytest.approx(time.time() * 1e6, abs=5e6)
    assert (await ledger.crawl()).kept_until == pytest.approx(time.time() + RULES.ttl_s, abs=5)


async def test_a_clock_that_was_set_back_moves_no_lease(harness: RedisHarness) -> None:
    await harness.ledger.create(RULES)
    seat = await harness.ledger.register("one")
    late = RedisLedger(harness.client, harness.crawl, ManualClock(harness.now() - 3_600))

    assert [worker.id for worker in await late.workers()] == [seat.worker]
    again = await late.register("two")

    assert (again.worker, again.epoch > seat.epoch) == (1, True)
    assert {worker.lease_until for worker in await late.workers()} == {harness.now() + RULES.lease_s}


async def test_texts_come_back_as_they_were(harness: RedisHarness) -> None:
    ledger, odd = harness.ledger, "a\0b\r\n\N{SNOWMAN}\U0001f577 \x7f 'é\""
    one = Url(UrlId(bytes(16)), f"http://a.example/{odd}", "a.example", 300, 3, UrlId(b"\xff" * 16))
    await ledger.create(Rules(settings=odd, request_bytes=1))
    await ledger.add([one], [odd])
    seat = await ledger.register(odd)
    await ledger.route([(one.id, 50)])
    assert await ledger.held(seat) == [one]
    await ledger.begin(seat, [one.id])
    facts = Facts(title=odd, twin=UrlId(b"\x80" * 16), similarity=0.1, took_s=1.5)
    await ledger.finish(
        seat, [Closing(id=one.id, outcome=Outcome.DUPLICATE, reason=odd, facts=facts, refused=[Refused(odd, 2, odd)])]
    )
    await ledger.know_robots(odd, Robots(odd * 100, odd), 10)
    await ledger.note(odd, odd)

    (record,) = await ledger.records([one.id])
    assert record is not None
    assert (record.url, record.reason, record.facts) == (one, odd, facts)
    crawl = await ledger.crawl()
    assert (crawl.rules.settings, crawl.scope) == (odd, frozenset({odd}))
    assert [worker.process for worker in await ledger.workers()] == [odd]
    assert (await ledger.refused(), (await ledger.counts()).refused) == ([(odd, odd)], {odd: 2})
    assert await ledger.robots(odd) == Robots(odd * 100, odd)
    assert await ledger.notes() == {odd: odd}


async def test_a_text_that_no_server_can_hold_is_refused_and_changes_nothing(harness: RedisHarness) -> None:
    await harness.ledger.create(RULES)
    unwritable = Url(UrlId(bytes(16)), "http://a.example/\udce4", "a.example")

    with pytest.raises(UnicodeEncodeError):
        await harness.ledger.add([url(1), unwritable])

    assert (await harness.ledger.counts()).open == 0


async def test_a_ledger_opens_a_server_by_its_url_and_closes_what_it_opened(server: Redis) -> None:
    ledger = RedisLedger(server.url, CrawlId(uuid4().hex))
    await ledger.create(RULES)

    await ledger.close()

    client = connect(server.url)
    assert len(await client.client_list()) == 1
    await client.aclose()


# --- What tests wait for ---


async def dump(harness: RedisHarness) -> dict[str, object]:
    """Everything that the server holds of the crawl."""
    client, held = harness.client, dict[str, object]()
    for key in await harness.keys():
        match await client.type(key):
            case b"hash":
                held[key] = await client.hgetall(key)
            case b"zset":
                held[key] = await client.zrange(key, 0, -1, withscores=True)
            case b"list":
                held[key] = await client.lrange(key, 0, -1)
            case b"set":
                held[key] = await client.smembers(key)
            case _:
                held[key] = await client.get(key)
    return held


async def is_gone(harness: RedisHarness) -> bool:
    return await harness.keys() == []


async def answers(ledger: Ledger) -> bool:
    try:
        await ledger.counts()
    except LedgerUnavailable:
        return False
    return True


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(10):
        while not await is_so():  # noqa: ASYNC110  # a server has no events for us
            await asyncio.sleep(0.01)


async def test_a_call_that_is_cancelled_does_not_go_on(harness: RedisHarness) -> None:
    """At whatever moment: a driver that swallows a cancellation would leave its caller at work for ever."""
    await harness.ledger.create(RULES)
    rng = random.Random(5)
    for _ in range(300):
        calls = asyncio.create_task(call_again_and_again(harness.ledger))
        await asyncio.sleep(rng.random() * 0.001)
        calls.cancel()
        async with asyncio.timeout(10):
            await asyncio.wait((calls,))
        assert calls.cancelled()


async def test_a_call_that_is_cancelled_does_not_go_on_while_the_server_is_away(unused_tcp_port: int) -> None:
    """A driver that makes an error of a cancellation would have its caller try again."""
    rng, ledger = random.Random(6), RedisLedger(f"redis://127.0.0.1:{unused_tcp_port}/0", CrawlId("nobodys"))

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(close, "127.0.0.1", unused_tcp_port):
        for _ in range(200):
            calls = asyncio.create_task(call_whatever_happens(ledger))
            await asyncio.sleep(rng.random() * 0.002)
            calls.cancel()
            async with asyncio.timeout(10):
                await asyncio.wait((calls,))
            assert calls.cancelled()
    await ledger.close()


async def call_whatever_happens(ledger: Ledger) -> None:
    while True:
        with contextlib.suppress(LedgerUnavailable):
            await ledger.counts()


async def call_again_and_again(ledger: Ledger) -> None:
    while True:
        await ledger.counts()
