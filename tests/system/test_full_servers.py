"""Servers that are full: Redis out of memory, RabbitMQ with an alarm, S3 without room. The crawl waits, and loses nothing."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis as Client

from adapters.distributed.ledger import RedisLedger
from adapters.distributed.ledger_scripts import SHARDS
from gossamer.ids import CrawlId, UrlId
from gossamer.testing.invariants import broken_invariants
from tests.servers.full_s3 import FullS3
from tests.system.stack import Stack, crawl_in, running_stack, until
from tests.system.watched import Pages, Watched, lines, pages_of, watched
from tests.system.web import FREELY, Ran, Web, run, synthetic_web

#: A crawl of some seconds, so that it has a middle.
WORDS = ("--engine", "external", "--module", "jsonl:path=pages.jsonl", "--lease", "15s", *FREELY, "--delay", "0.2")
OUT_OF_MEMORY = "paused: Redis is out of memory"
NO_ROOM = "paused: S3 has no room"


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with running_stack() as stack:
        yield stack


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """Slow enough that there is a middle."""
    with synthetic_web(tmp_path_factory.mktemp("web"), "--sites", "10", "--pages", "200", "--latency-ms", "50") as web:
        yield web


@pytest.fixture
def web(served: Web) -> Web:
    served.reset()
    return served


@pytest.fixture(scope="module")
def undisturbed(served: Web, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Pages]:
    """In one process."""
    folder = tmp_path_factory.mktemp("undisturbed")
    ran = run(folder, "--seed", served.seeds[0], "--module", "jsonl:path=pages.jsonl", *FREELY)
    assert ran.code == 0, ran.said
    return ran, pages_of(folder / "pages.jsonl")


@pytest.fixture
def redis(stack: Stack) -> Iterator[Client]:
    with Client.from_url(stack.redis.url) as client:
        try:
            yield client
        finally:
            client.config_set("maxmemory", 0)


def same_result(crawl: Watched, stack: Stack, undisturbed: tuple[Ran, Pages], web: Web, *, may_repeat: bool = False) -> None:
    """It ends by itself, with each page and line of an undisturbed crawl, once, each page's blob, and a ledger that is whole."""
    ran, (reference, pages) = crawl.ended(), undisturbed
    assert (ran.code, ran.report.get("outcome")) == (0, "complete"), ran.said
    assert ran.report["outcomes"] == reference.report["outcomes"]
    output = crawl.folder / "pages.jsonl"
    assert pages_of(output) == pages
    assert len(lines(output)) == len(pages)
    assert "Traceback" not in ran.said
    score = web.score()
    assert (score["missed"], score["forbidden"], score["wrong"], score["most_in_flight"]) == (0, 0, 0, 1)
    assert score["repeats"] == 0 or may_repeat
    id = crawl_in(crawl.folder)
    assert stack.ask(id, lambda ledger: broken_invariants(ledger, known_ids(stack, id))) == []
    assert crawl.ask("export", "--warc", "pages.warc.gz").code == 0, "a page without its blob"


def until_its_middle(crawl: Watched, stack: Stack) -> None:
    crawl.until_stored(60, lambda: RedisLedger(stack.redis.url, crawl_in(crawl.folder)))


def known_ids(stack: Stack, crawl: CrawlId) -> list[UrlId]:
    with Client.from_url(stack.redis.url) as client:
        shards = [client.hkeys(f"gossamer:{{{crawl}}}:url:{shard}") for shard in range(SHARDS)]
    return [UrlId(id) for shard in shards for id in shard]


def is_running(crawl: Watched) -> None:
    status = crawl.ask("status")
    assert (status.code, "is running" in status.said) == (0, True), status.said


def test_a_redis_that_is_out_of_memory_pauses_the_crawl(
    stack: Stack, redis: Client, web: Web, undisturbed: tuple[Ran, Pages], tmp_path: Path
) -> None:
    with watched(tmp_path, "--seed", web.seeds[0], *WORDS, environ=stack.environ) as crawl:
        until_its_middle(crawl, stack)
        redis.config_set("maxmemory", 1)
        crawl.until_said(OUT_OF_MEMORY)
        is_running(crawl)
        redis.config_set("maxmemory", 0)
        crawl.until_said(f"was {OUT_OF_MEMORY}")

        same_result(crawl, stack, undisturbed, web)
    # As a rule once: five roles wait for it, and one of them says so. Their logs are read one after another.
    assert 1 <= crawl.said().count(f": {OUT_OF_MEMORY} (") < 6, crawl.said()


def test_a_redis_that_has_memory_now_and_then_tears_nothing(
    stack: Stack, redis: Client, web: Web, undisturbed: tuple[Ran, Pages], tmp_path: Path
) -> None:
    """Some verbs are refused, and others are not, at any moment of the crawl."""

    def squeezed() -> bool:
        for most in (1, 0):
            redis.config_set("maxmemory", most)
            time.sleep(0.05)
        return OUT_OF_MEMORY in crawl.said()

    with watched(tmp_path, "--seed", web.seeds[0], *WORDS, environ=stack.environ) as crawl:
        until_its_middle(crawl, stack)
        until(squeezed, "it is seen to be out of memory")

        same_result(crawl, stack, undisturbed, web)


def test_a_crawl_that_waits_for_memory_can_be_ended_and_resumed(
    stack: Stack, redis: Client, web: Web, undisturbed: tuple[Ran, Pages], tmp_path: Path
) -> None:
    with watched(tmp_path, "--seed", web.seeds[0], *WORDS, environ=stack.environ) as crawl:
        until_its_middle(crawl, stack)
        redis.config_set("maxmemory", 1)
        crawl.until_said(OUT_OF_MEMORY)
        crawl.process.send_signal(signal.SIGINT)
        ran = crawl.ended()
        assert ran.code == 130, ran.said
        assert "controller.py resume" in ran.said

        refused = watched_to_its_end(tmp_path, stack)
        assert (refused.code, refused.said) == (4, "controller.py: Redis is out of memory: more is used than maxmemory allows\n")
        redis.config_set("maxmemory", 0)

    with watched(tmp_path, "resume", environ=stack.environ) as resumed:
        same_result(resumed, stack, undisturbed, web, may_repeat=True)  # what was let go


def watched_to_its_end(folder: Path, stack: Stack) -> Ran:
    with watched(folder, "resume", environ=stack.environ) as crawl:
        return crawl.ended()


def test_a_broker_with_an_alarm_takes_no_hints_and_the_crawl_goes_on_after_it(
    stack: Stack, web: Web, undisturbed: tuple[Ran, Pages], tmp_path: Path
) -> None:
    with FullS3(stack.s3.url) as s3:
        environ = {**stack.environ, "GOSSAMER_S3_URL": s3.url}
        with watched(tmp_path, "--seed", web.seeds[0], *WORDS, environ=environ) as crawl:
            until_its_middle(crawl, stack)
            s3.refusal = (507, "InsufficientStorage")  # it must not come to its end before there is an alarm
            with stack.rabbitmq.short_of_memory():
                s3.refusal = None
                crawl.until_said("broker.blocked")
                is_running(crawl)
            crawl.until_said("broker.unblocked")

            same_result(crawl, stack, undisturbed, web)
    assert crawl.said().count("broker.blocked") < 6, "of six processes that notice, one says it"


def test_a_crawl_whose_broker_has_an_alarm_can_be_ended_and_resumed(
    stack: Stack, web: Web, undisturbed: tuple[Ran, Pages], tmp_path: Path
) -> None:
    """There is one from the start: no hint ever comes."""
    with stack.rabbitmq.short_of_memory(), watched(tmp_path, "--seed", web.seeds[0], *WORDS, environ=stack.environ) as crawl:
        crawl.until_said("broker.blocked")
        crawl.process.send_signal(signal.SIGINT)
        ran = crawl.ended()
        assert ran.code == 130, ran.said
        assert "controller.py resume" in ran.said

    with watched(tmp_path, "resume", environ=stack.environ) as resumed:
        same_result(resumed, stack, undisturbed, web)


def test_an_s3_without_room_pauses_the_crawl(stack: Stack, web: Web, undisturbed: tuple[Ran, Pages], tmp_path: Path) -> None:
    with FullS3(stack.s3.url) as s3:
        environ = {**stack.environ, "GOSSAMER_S3_URL": s3.url}
        with watched(tmp_path, "--seed", web.seeds[0], *WORDS, environ=environ) as crawl:
            until_its_middle(crawl, stack)
            for refusal in ((507, "InsufficientStorage"), (500, "InternalError"), (503, "SlowDown")):
                s3.refusal, before = refusal, s3.refused
                until(lambda before=before: s3.refused > before + 4, f"{refusal} is met")  # type: ignore[misc]
            crawl.until_said(NO_ROOM)
            is_running(crawl)
            s3.refusal = None
            crawl.until_said(f"was {NO_ROOM}")

            same_result(crawl, stack, undisturbed, web)
        assert 1 <= crawl.said().count(f": {NO_ROOM} (") < 6, crawl.said()


def test_a_crawl_that_waits_for_room_in_s3_can_be_ended_and_resumed(
    stack: Stack, web: Web, undisturbed: tuple[Ran, Pages], tmp_path: Path
) -> None:
    with FullS3(stack.s3.url) as s3:
        environ = {**stack.environ, "GOSSAMER_S3_URL": s3.url}
        with watched(tmp_path, "--seed", web.seeds[0], *WORDS, environ=environ) as crawl:
            until_its_middle(crawl, stack)
            s3.refusal = (507, "XMinioStorageFull")
            crawl.until_said(NO_ROOM)
            stopped = crawl.ask("stop")
            assert stopped.code == 0, stopped.said
            ran = crawl.ended()
            assert ran.code == 0, ran.said
            assert "controller.py resume" in ran.said
            s3.refusal = None

        with watched(tmp_path, "resume", environ=environ) as resumed:
            same_result(resumed, stack, undisturbed, web, may_repeat=True)  # what was let go
