"""The external engine: the same crawls on RabbitMQ, Redis and S3, the roles as processes, and all that may die dying."""

import asyncio
import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis as Client

from gossamer.ids import CrawlId
from gossamer.ports.broker import URLS
from gossamer.records import UrlRecord
from gossamer.states import State
from gossamer.urls import identity
from tests.servers import s3_client
from tests.system.stack import Crawling, Stack, crawl_in, crawling, is_gone, role_process, running_stack, until, worker_process
from tests.system.web import FREELY, PERFECT, REPORT, Ran, Web, ended, run, start, synthetic_web, verdict

PAGES = 1_000
ON_SERVERS = ("--engine", "external", "--state", "state")
JSONL = ("--module", "jsonl:path=pages.jsonl")
#: What dies is noticed in a second or two. Not shorter: on a busy machine a living worker would seem dead.
QUICK = ("--lease", "3s")


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with running_stack() as stack:
        yield stack


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with synthetic_web(tmp_path_factory.mktemp("web"), "--sites", "20", "--pages", str(PAGES), "--seed", "1") as web:
        yield web


@pytest.fixture
def web(served: Web) -> Web:
    served.reset()
    return served


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """For what takes its time: answers come after 20 ms, so that there is a middle in which something can die."""
    with synthetic_web(tmp_path_factory.mktemp("small"), "--sites", "10", "--pages", "300", "--latency-ms", "20") as web:
        yield web


@pytest.fixture
def small_web(small: Web) -> Web:
    small.reset()
    return small


@pytest.fixture(scope="module")
def embedded(served: Web, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, set[tuple[str, str, frozenset[str]]]]:
    """The same crawl in one process."""
    folder = tmp_path_factory.mktemp("embedded")
    ran = run(folder, "--seed", served.seeds[0], *JSONL, *FREELY)
    return ran, seen(folder)


@pytest.fixture(scope="module")
def small_pages(small: Web, tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, str, frozenset[str]]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    run(folder, "--seed", small.seeds[0], *JSONL, *FREELY)
    return seen(folder)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "pages.jsonl").read_text().splitlines()]


def seen(folder: Path) -> set[tuple[str, str, frozenset[str]]]:
    """Pages and links by identity: which of several spellings of a URL is found first is up to the order of the crawl."""
    return {(line["id"], line["sha256"], frozenset(identity(link) for link in line["links"])) for line in lines(folder)}


# --- The same result ---


@pytest.mark.parametrize("workers", [1, 4])
def test_the_result_is_the_embedded_engines(
    workers: int, stack: Stack, web: Web, embedded: tuple[Ran, set[tuple[str, str, frozenset[str]]]], tmp_path: Path
) -> None:
    web.reset()
    ran = run(tmp_path, "--seed", web.seeds[0], "--workers", str(workers), *JSONL, *FREELY, *ON_SERVERS, environ=stack.environ)

    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "complete", PAGES), ran.said
    score = web.score()
    assert verdict(score) == PERFECT
    assert score["most_in_flight"] == 1
    reference, pages = embedded
    assert ran.report["outcomes"] == reference.report["outcomes"]
    assert ran.report["requests"] == score["requests"]
    assert seen(tmp_path) == pages
    assert len(lines(tmp_path)) == PAGES


def test_queues_of_twenty_are_enough(stack: Stack, web: Web, tmp_path: Path) -> None:
    ran = run(tmp_path, "--seed", web.seeds[0], "--queue-size", "20", *FREELY, *ON_SERVERS, environ=stack.environ)

    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "complete", PAGES), ran.said
    assert verdict(web.score()) == PERFECT


def test_budgets_are_met_exactly_and_a_resume_goes_on_from_there(stack: Stack, web: Web, tmp_path: Path) -> None:
    ran = run(tmp_path, "--seed", web.seeds[0], "--max-pages", "100", *JSONL, *FREELY, *ON_SERVERS, environ=stack.environ)

    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "page_budget", 100), ran.said
    assert len(lines(tmp_path)) == 100

    ran = run(tmp_path, "resume", "--state", "state", "--max-pages", "200", environ=stack.environ)

    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "page_budget", 200), ran.said
    assert len({line["id"] for line in lines(tmp_path)}) == 200
    assert web.score()["repeats"] == 0


def test_a_byte_budget_is_never_passed(stack: Stack, web: Web, tmp_path: Path) -> None:
    words = ("--delay", "0", "--allow-net", "127.0.0.0/8", "--max-bytes", "1MB")
    ran = run(tmp_path, "--seed", web.seeds[0], *words, *ON_SERVERS, environ=stack.environ)

    assert (ran.code, ran.report["outcome"]) == (0, "byte_budget"), ran.said
    assert 0 < ran.report["bytes"] + ran.report["bytes_charged"] <= 1_000_000


def test_two_crawls_on_the_same_servers_do_not_see_each_other(stack: Stack, tmp_path: Path) -> None:
    with ExitStack() as opened:
        folders = [tmp_path / "one", tmp_path / "two"]
        for folder in folders:
            folder.mkdir()
        webs = [opened.enter_context(synthetic_web(folder, "--sites", "5", "--pages", "150")) for folder in folders]
        words = [("--seed", web.seeds[0], "--workers", "2", *JSONL, *FREELY, *ON_SERVERS, "--report", REPORT) for web in webs]
        started = [opened.enter_context(crawling(stack, folder, *each)) for folder, each in zip(folders, words, strict=True)]
        ran = [ended(each.process, each.folder) for each in started]

        assert [(each.code, each.report["outcome"], each.report["pages"]) for each in ran] == [(0, "complete", 150)] * 2
        assert [verdict(web.score()) for web in webs] == [PERFECT] * 2


# --- What is left behind ---


def test_every_key_ends_by_itself_and_queues_go_with_the_crawl(stack: Stack, small_web: Web, tmp_path: Path) -> None:
    with crawling(stack, tmp_path, "--seed", small_web.seeds[0], *JSONL, *FREELY, *ON_SERVERS, "--report", REPORT) as crawl:
        crawl.until_stored(50)
        during = keys(stack, crawl.id)
        assert depths(stack, crawl.id).keys() >= {URLS, "band.0", "band.9", "worker.0", "worker.3"}
        assert ended(crawl.process, tmp_path).code == 0

    after = keys(stack, crawl.id)
    for left_ms in (during, after):
        assert len(left_ms) > 10
        assert [key for key, left in left_ms.items() if not 0 < left <= 3_600_000] == []
    assert depths(stack, crawl.id) == {}


def keys(stack: Stack, crawl: CrawlId) -> dict[bytes, int]:
    """Every key of the crawl, with how long it has left."""

    async def walk() -> dict[bytes, int]:
        async with Client.from_url(stack.redis.url) as client:
            found = [key async for key in client.scan_iter(match=f"*{crawl}*", count=1000)]
            left_ms = [await client.pttl(key) for key in found]
            return {key: left for key, left in zip(found, left_ms, strict=True) if left != -2}  # ended meanwhile

    return asyncio.run(walk())


def depths(stack: Stack, crawl: CrawlId) -> dict[str, int]:
    return stack.ask_broker(crawl, lambda broker: broker.depths())


def test_what_a_crawl_stored_goes_when_its_time_is_over(stack: Stack, small_web: Web, tmp_path: Path) -> None:
    """The next crawl's frontier sweeps, or the one after it if that ends too soon. Twelve seconds stand for the hour."""
    short = ("--ttl", "12s", "--lease", "2s", "--max-pages", "20", *FREELY, *ON_SERVERS)

    def crawl(name: str) -> CrawlId:
        (folder := tmp_path / name).mkdir()
        assert run(folder, "--seed", small_web.seeds[0], *short, environ=stack.environ).code == 0
        return crawl_in(folder)

    first = crawl("first")
    assert blobs(stack, first)
    until(lambda: is_gone(stack, first), "the crawl's time is over")
    time.sleep(2)  # and its newest blob is as old, by the second

    for number in range(5):
        later = crawl(f"later-{number}")
        if not blobs(stack, first):
            break

    assert blobs(stack, first) == []
    assert blobs(stack, later)


def blobs(stack: Stack, crawl: CrawlId) -> list[str]:
    bucket = stack.s3.url.rpartition("/")[2]
    listed = s3_client(stack.s3.url.rpartition("/")[0], stack.s3.credentials).list_objects_v2(Bucket=bucket, Prefix=f"{crawl}/")
    return [each["Key"] for each in listed.get("Contents", [])]


# --- Servers that go and come back ---


@pytest.mark.parametrize("server", ["rabbitmq", "redis", "s3"])
def test_a_server_that_is_stopped_and_started_costs_nothing_but_time(
    server: str, stack: Stack, small_web: Web, small_pages: set[tuple[str, str, frozenset[str]]], tmp_path: Path
) -> None:
    with crawling(stack, tmp_path, "--seed", small_web.seeds[0], *JSONL, *FREELY, *ON_SERVERS, "--report", REPORT) as crawl:
        crawl.until_stored(60)
        getattr(stack, server).stop()
        time.sleep(1)  # long enough to be noticed by all
        getattr(stack, server).start()

        same_result(crawl, small_web, small_pages)


def test_a_broker_that_lost_everything_costs_nothing_but_time(
    stack: Stack, small_web: Web, small_pages: set[tuple[str, str, frozenset[str]]], tmp_path: Path
) -> None:
    with crawling(stack, tmp_path, "--seed", small_web.seeds[0], *JSONL, *FREELY, *ON_SERVERS, "--report", REPORT) as crawl:
        crawl.until_stored(60)
        stack.rabbitmq.kill()
        stack.rabbitmq.wipe()
        stack.rabbitmq.start()

        same_result(crawl, small_web, small_pages)


def stored(crawl: Crawling) -> int:
    return crawl.stack.ask(crawl.id, lambda ledger: ledger.counts()).stored


def same_result(crawl: Crawling, web: Web, pages: set[tuple[str, str, frozenset[str]]], *, may_repeat: int = 0) -> None:
    """It ends by itself, complete, with the pages of an undisturbed crawl."""
    ran = ended(crawl.process, crawl.folder)
    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "complete", len(pages)), ran.said
    assert seen(crawl.folder) == pages
    assert len(lines(crawl.folder)) == len(pages)
    score = web.score()
    assert (score["missed"], score["forbidden"], score["wrong"], score["most_in_flight"]) == (0, 0, 0, 1)
    assert score["repeats"] <= may_repeat


# --- Roles that die ---


@pytest.mark.parametrize("role", ["worker", "frontier"])
def test_a_role_that_is_killed_is_started_again_and_nothing_is_lost(
    role: str, stack: Stack, small_web: Web, small_pages: set[tuple[str, str, frozenset[str]]], tmp_path: Path
) -> None:
    words = ("--seed", small_web.seeds[0], *JSONL, *FREELY, *QUICK, *ON_SERVERS, "--report", REPORT)
    with crawling(stack, tmp_path, *words) as crawl:
        crawl.until_stored(60)
        workers = crawl.workers()
        victim = workers[0] if role == "worker" else next(pid for pid in crawl.roles() if pid not in workers)
        os.kill(victim, signal.SIGKILL)

        same_result(crawl, small_web, small_pages, may_repeat=16 if role == "worker" else 0)


def test_two_frontiers_share_a_crawl_and_the_death_of_either_loses_and_doubles_nothing(
    stack: Stack, small_web: Web, small_pages: set[tuple[str, str, frozenset[str]]], tmp_path: Path
) -> None:
    words = ("--seed", small_web.seeds[0], *JSONL, *FREELY, *QUICK, *ON_SERVERS, "--report", REPORT)
    with crawling(stack, tmp_path, *words) as crawl:
        crawl.until_stored(1)  # the first frontier owns the rank
        with role_process(stack, tmp_path, "frontier", "--crawl", crawl.id) as second:
            crawl.until_stored(60)
            workers = crawl.workers()
            os.kill(next(pid for pid in crawl.roles() if pid not in workers), signal.SIGKILL)
            before = stored(crawl)
            crawl.until_stored(before + 60)  # on goes the crawl, by the second, and by the first one's successor
            second.kill()
            second.wait()

            same_result(crawl, small_web, small_pages, may_repeat=0)


def test_the_worst_urls_are_shed_past_the_limit_and_counted(stack: Stack, small_web: Web, tmp_path: Path) -> None:
    words = ("--seed", small_web.seeds[0], *FREELY, *QUICK, *ON_SERVERS, "--delay", "0.2", "--max-open", "50")
    ran = run(tmp_path, *words, environ=stack.environ)

    assert (ran.code, ran.report["outcome"]) == (0, "complete")
    assert ran.report["outcomes"]["shed"] > 0


def test_a_controller_that_is_killed_leaves_a_crawl_that_can_be_resumed(
    stack: Stack, small_web: Web, small_pages: set[tuple[str, str, frozenset[str]]], tmp_path: Path
) -> None:
    with crawling(stack, tmp_path, "--seed", small_web.seeds[0], *JSONL, *FREELY, *QUICK, *ON_SERVERS) as crawl:
        crawl.until_stored(60)
        roles = crawl.roles()
        crawl.process.kill()
        crawl.process.communicate()
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in roles), "the roles have noticed, drained and ended")

    with crawling(stack, tmp_path, "resume", "--state", "state", "--report", REPORT) as resumed:
        same_result(resumed, small_web, small_pages, may_repeat=4 * 16)


def test_a_run_that_is_cut_off_beside_a_living_worker_loses_no_line(
    stack: Stack, small_web: Web, small_pages: set[tuple[str, str, frozenset[str]]], tmp_path: Path
) -> None:
    words = ("--seed", small_web.seeds[0], "--delay", "0.1", "--allow-net", "127.0.0.0/8", "--max-bytes", "1GB", *JSONL, *QUICK)
    with crawling(stack, tmp_path, *words, *ON_SERVERS, "--workers", "1") as crawl:
        crawl.until_stored(20)
        with worker_process(stack, tmp_path, crawl.id):
            until(lambda: len(crawl.workers()) == 2, "the other one is at work as well")
            crawl.until_stored(60)
            crawl.process.send_signal(signal.SIGINT)
            time.sleep(0.3)
            crawl.process.send_signal(signal.SIGINT)
            said = crawl.said()
            assert crawl.process.returncode == 130, said
            time.sleep(1)  # whatever it has in flight is stored meanwhile

    with crawling(stack, tmp_path, "resume", "--state", "state", "--report", REPORT) as resumed:
        same_result(resumed, small_web, small_pages, may_repeat=32)


def test_roles_end_though_the_ledger_is_away(stack: Stack, small_web: Web, tmp_path: Path) -> None:
    """The controller is killed, and the server gone: nobody must be left at work, or waiting, for ever."""
    words = ("--seed", small_web.seeds[0], "--delay", "0.2", "--allow-net", "127.0.0.0/8", *QUICK, *ON_SERVERS)
    with crawling(stack, tmp_path, *words) as crawl:
        crawl.until_stored(5)
        roles = crawl.roles()
        stack.redis.kill()
        try:
            crawl.process.kill()
            crawl.said()
            until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in roles), "the roles have ended")
        finally:
            stack.redis.start()


def test_ending_at_once_does_not_wait_for_a_ledger_that_is_away(stack: Stack, small_web: Web, tmp_path: Path) -> None:
    words = ("--seed", small_web.seeds[0], "--delay", "0.2", "--allow-net", "127.0.0.0/8", *JSONL, *QUICK, *ON_SERVERS)
    with crawling(stack, tmp_path, *words, "--report", REPORT) as crawl:
        crawl.until_stored(5)
        stack.redis.kill()
        try:
            crawl.process.send_signal(signal.SIGINT)
            time.sleep(1)
            crawl.process.send_signal(signal.SIGINT)
            ran = ended(crawl.process, tmp_path)
        finally:
            stack.redis.start()
        assert ran.code == 4, ran.said
        assert "resume" in ran.said.splitlines()[-1]

    with crawling(stack, tmp_path, "resume", "--state", "state", "--max-pages", "10001", "--report", REPORT) as resumed:
        resumed.until_stored(20)  # it goes on
        resumed.process.send_signal(signal.SIGINT)
        assert ended(resumed.process, tmp_path).report["outcome"] == "stopped"


# --- One worker for a domain, whoever comes and goes ---


def test_a_domain_is_never_with_two_workers_while_they_come_and_go(stack: Stack, tmp_path: Path) -> None:
    delay_s = 1.0
    words = ("--delay", str(delay_s), "--allow-net", "127.0.0.0/8", "--owner", "2s", *QUICK, *ON_SERVERS, "--workers", "2")
    with (
        synthetic_web(tmp_path, "--sites", "12", "--pages", "144", "--latency-ms", "20") as web,
        crawling(stack, tmp_path, "--seed", web.seeds[0], *words, "--report", REPORT) as crawl,
    ):
        crawl.until_stored(5)
        with worker_process(stack, tmp_path, crawl.id):
            with worker_process(stack, tmp_path, crawl.id), worker_process(stack, tmp_path, crawl.id):
                until(lambda: len(crawl.workers()) == 5, "five workers are at work")
                looks = look(crawl, until_stored=50)
            # Two were told to go, in the middle of their work.
            assert len(crawl.workers()) == 3
            looks += look(crawl, until_stored=100)
            ran = ended(crawl.process, tmp_path)
        score = web.score()

    assert (ran.code, ran.report["outcome"], verdict(score)) == (0, "complete", PERFECT), ran.said
    assert looks > 20
    assert score["most_in_flight"] == 1
    least = min(site["least_gap_with_robots_s"] for site in score["sites"])
    # The ledger spaces the beginnings of requests; what a busy machine puts between that and the wire is not in its hands.
    assert least >= delay_s - 0.25


def look(crawl: Crawling, *, until_stored: int) -> int:
    """Asks the ledger again and again who holds what, until so many pages are stored; how often it asked."""

    async def looking() -> int:
        from adapters.distributed.ledger import RedisLedger

        ledger, looks = RedisLedger(crawl.stack.redis.url, crawl.id), 0
        try:
            while (await ledger.counts()).stored < until_stored:
                assert_one_owner(await ledger.unfinished(10_000))
                looks += 1
        finally:
            await ledger.close()
        return looks

    return asyncio.run(looking())


def assert_one_owner(records: list[UrlRecord]) -> None:
    owners: dict[str, set[int]] = {}
    for record in records:
        if record.state in (State.ROUTED, State.FETCHING):
            assert record.worker is not None
            owners.setdefault(record.url.domain, set()).add(record.worker)
    assert {domain: workers for domain, workers in owners.items() if len(workers) > 1} == {}


# --- Roles that stay for the next crawl ---


def test_roles_elsewhere_serve_one_crawl_after_another(
    stack: Stack, small_web: Web, small_pages: set[tuple[str, str, frozenset[str]]], tmp_path: Path, unused_tcp_port: int
) -> None:
    """As in a stack of containers: the roles are there before any crawl is, and the controller says which one to serve."""
    settings = {"GOSSAMER_ENGINE": "external", "GOSSAMER_ROLES": "elsewhere", "GOSSAMER_LEASE": "3s", "GOSSAMER_DELAY": "0"}
    settings |= {"GOSSAMER_ALLOW_NET": "127.0.0.0/8", "GOSSAMER_MAX_BYTES": "1GB", "MODULE": "jsonl:path=pages.jsonl"}
    with (
        role_process(stack, tmp_path, "frontier"),
        role_process(stack, tmp_path, "worker", "--health", f"127.0.0.1:{unused_tcp_port}"),
        role_process(stack, tmp_path, "worker"),
    ):
        until(lambda: health(unused_tcp_port) == 200, "the worker waits for a crawl, and is well")
        with crawling(stack, tmp_path, "up", environ=settings) as idle:  # no SEED
            assert idle.process.stdout is not None
            assert "no SEED was given" in idle.process.stdout.readline()
            idle.process.terminate()
            idle.said()
            assert (idle.process.returncode, list((tmp_path / "crawls").glob("2*"))) == (0, [])
        for crawl in range(2):
            (tmp_path / "pages.jsonl").unlink(missing_ok=True)
            small_web.reset()
            with crawling(stack, tmp_path, "up", environ={**settings, "SEED": small_web.seeds[0], "HOSTNAME": str(crawl)}) as up:
                said = up.said()
                assert up.process.returncode == 0, said
            assert seen(tmp_path) == small_pages
            assert verdict(small_web.score()) == PERFECT
        assert health(unused_tcp_port) == 200


def health(port: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=20) as answer:
            return int(answer.status)
    except OSError:
        return 0


# --- Verbs, letters, and what is wrong ---


def test_status_and_stop_work_from_another_process(stack: Stack, small_web: Web, tmp_path: Path) -> None:
    words = ("--seed", small_web.seeds[0], "--allow-net", "127.0.0.0/8", *ON_SERVERS, "--report", REPORT)
    with crawling(stack, tmp_path, *words) as crawl:
        crawl.until_stored(2)
        status = asked(stack, tmp_path, "status")
        assert (status["status"], status["process"], len(status["workers"])) == ("running", crawl.process.pid, 4)

        stopped = start(tmp_path, "stop", "--state", "state", environ=stack.environ)
        said, _ = stopped.communicate(timeout=60)
        assert stopped.returncode == 0, said
        assert ended(crawl.process, tmp_path).report["outcome"] == "stopped"


def asked(stack: Stack, folder: Path, verb: str) -> dict[str, Any]:
    """What a verb answers, as JSON."""
    process = start(folder, verb, "--state", "state", "--json", environ=stack.environ)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    answer: dict[str, Any] = json.loads(said)
    return answer


def test_what_nobody_can_read_is_set_aside_and_listed(stack: Stack, small_web: Web, tmp_path: Path) -> None:
    words = ("--seed", small_web.seeds[0], "--delay", "0.1", "--allow-net", "127.0.0.0/8", *ON_SERVERS, "--report", REPORT)
    with crawling(stack, tmp_path, *words) as crawl:
        crawl.until_stored(2)
        rubbish = {queue: f"rubbish for {queue}".encode() for queue in (URLS, "band.3", "worker.1")}

        async def litter(broker: Any) -> None:
            for queue, body in rubbish.items():
                assert await broker.publish(queue, [body]) == 1

        stack.ask_broker(crawl.id, litter)

        def listed() -> set[tuple[str, str]]:
            return {(each["queue"], each["body"]) for each in asked(stack, tmp_path, "dead-letters")["messages"]}

        until(lambda: listed() == {(queue, body.decode()) for queue, body in rubbish.items()}, "all three are set aside")
        crawl.process.send_signal(signal.SIGINT)
        assert ended(crawl.process, tmp_path).report["outcome"] == "stopped"


KILLER = """\
import os
from gossamer import Module, Page

class Killer(Module):
    def visit(self, page: Page) -> None:
        if page.title is not None and page.url.endswith({path!r}):
            os._exit(1)
"""


def test_a_page_that_kills_its_worker_ends_as_poison_and_costs_no_other(stack: Stack, tmp_path: Path) -> None:
    with synthetic_web(tmp_path, "--sites", "3", "--pages", "30") as web:
        undisturbed = tmp_path / "undisturbed"
        undisturbed.mkdir()
        run(undisturbed, "--seed", web.seeds[0], *JSONL, *FREELY)
        path = sorted(line["url"] for line in lines(undisturbed))[7].partition("//")[2].partition("/")[2]
        (tmp_path / "killer.py").write_text(KILLER.format(path=path))
        words = ("--workers", "2", "--module", "./killer.py", *FREELY, "--lease", "2s", *ON_SERVERS)
        ran = run(tmp_path, "--seed", web.seeds[0], *words, environ=stack.environ)

    assert (ran.code, ran.report["outcome"]) == (0, "complete"), ran.said
    assert ran.report["outcomes"]["poison"] == 1
    (page,) = asked(stack, tmp_path, "dead-letters")["pages"]
    assert page["url"].endswith(path)
    assert page["deaths"] == 2


def test_a_server_that_is_not_there_is_said_in_one_line(stack: Stack, web: Web, tmp_path: Path) -> None:
    for variable, url in (
        ("GOSSAMER_RABBITMQ_URL", "amqp://u:hidden@127.0.0.1:9"),
        ("GOSSAMER_REDIS_URL", "redis://:hidden@127.0.0.1:9/0"),
        ("GOSSAMER_S3_URL", "http://127.0.0.1:9/pages"),
    ):
        process = start(tmp_path, "--seed", web.seeds[0], *FREELY, *ON_SERVERS, environ={**stack.environ, variable: url})
        said, _ = process.communicate(timeout=60)

        assert process.returncode == 4, said
        assert len(said.splitlines()) == 1, said
        assert "127.0.0.1:9" in said
        assert "hidden" not in said
    process = start(tmp_path, "--seed", web.seeds[0], *FREELY, *ON_SERVERS)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, len(said.splitlines())) == (2, 1), said
