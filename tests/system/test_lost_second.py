"""A power cut takes Redis's last second with it: what it had answered and not yet on the disk. The crawl mends itself.

Redis writes its log every second (`appendfsync everysec`); a `kill -9` loses nothing of it, a power cut what came after the last
write. Here the log is cut at a place where it once ended, a good deal more than a second back, perhaps in the middle of a command.
"""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis as Client

from gossamer.urls import identity
from tests.servers.server import missing
from tests.system.stack import Crawling, Stack, crawling, running_stack
from tests.system.web import FREELY, REPORT, Web, ended, run, synthetic_web

PAGES = 300
LOST = 40
JSONL = ("--module", "jsonl:path=pages.jsonl")
#: With a delay, so that there is a middle of the crawl in which something can be forgotten, on a slow machine too.
SLOWLY = (*FREELY, "--delay", "0.3")
ON_SERVERS = ("--engine", "external", "--state", "state", "--lease", "3s", "--workers", "2")


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with running_stack() as stack:
        yield stack


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with synthetic_web(tmp_path_factory.mktemp("web"), "--sites", "10", "--pages", str(PAGES), "--latency-ms", "20") as web:
        yield web


@pytest.fixture(scope="module")
def undisturbed(served: Web, tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, str, frozenset[str]]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    run(folder, "--seed", served.seeds[0], *JSONL, *FREELY)
    return pages(folder)


@pytest.fixture
def web(served: Web) -> Web:
    served.reset()
    return served


def test_a_redis_that_forgot_what_it_had_answered_costs_fetches_and_no_page(
    stack: Stack, web: Web, undisturbed: set[tuple[str, str, frozenset[str]]], tmp_path: Path
) -> None:
    """The roles live on, with URLs in hand that the ledger no longer gave them, and hints of URLs that it no longer knows."""
    with crawling(stack, tmp_path, "--seed", web.seeds[0], *JSONL, *SLOWLY, *ON_SERVERS, "--report", REPORT) as crawl:
        forget_the_last_pages(crawl)

        same_result(crawl, web, undisturbed)


def test_a_machine_that_lost_its_power_is_resumed(
    stack: Stack, web: Web, undisturbed: set[tuple[str, str, frozenset[str]]], tmp_path: Path
) -> None:
    """Everything dies at once; lines and pages of which the ledger knows nothing are left."""
    with crawling(stack, tmp_path, "--seed", web.seeds[0], *JSONL, *SLOWLY, *ON_SERVERS) as crawl:
        forget_the_last_pages(crawl, with_all_roles=True)

    with crawling(stack, tmp_path, "resume", "--state", "state", "--report", REPORT) as resumed:
        same_result(resumed, web, undisturbed)


def forget_the_last_pages(crawl: Crawling, *, with_all_roles: bool = False) -> None:
    """At least so many pages that were stored are so no longer."""
    crawl.until_stored(LOST)
    log = append_only_log(crawl.stack)
    bytes_kept = log.stat().st_size
    kept = stored(crawl)  # or fewer
    crawl.until_stored(kept + LOST)
    if with_all_roles:
        for pid in (crawl.process.pid, *crawl.roles()):
            os.kill(pid, signal.SIGKILL)
        crawl.said()
    crawl.stack.redis.kill()
    os.truncate(log, bytes_kept)
    crawl.stack.redis.start()
    if with_all_roles:
        assert 0 < stored(crawl) <= kept


def stored(crawl: Crawling) -> int:
    return crawl.stack.ask(crawl.id, lambda ledger: ledger.counts()).stored


def append_only_log(stack: Stack) -> Path:
    with Client.from_url(stack.redis.url) as client:
        settings: dict[str, str] = {**client.config_get("dir"), **client.config_get("appenddirname")}
    folder = Path(settings["dir"]) / settings["appenddirname"]
    if not folder.exists():
        missing("Redis whose log can be cut (this one runs in a container)", "apt-get install redis-server")
    (log,) = folder.glob("*.incr.aof")
    return log


def same_result(crawl: Crawling, web: Web, undisturbed: set[tuple[str, str, frozenset[str]]]) -> None:
    """Complete, by itself: every page, each once, and of the web nothing that was not asked for before."""
    ran = ended(crawl.process, crawl.folder)
    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "complete", PAGES), ran.said
    assert pages(crawl.folder) == undisturbed
    assert len(lines(crawl.folder)) == PAGES
    score = web.score()
    assert (score["missed"], score["forbidden"], score["wrong"]) == (0, 0, 0)
    assert score["repeats"] + score["repeats_tracking"] + score["repeats_order"] >= LOST, "or nothing was forgotten"


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "pages.jsonl").read_text().splitlines()]


def pages(folder: Path) -> set[tuple[str, str, frozenset[str]]]:
    """Pages and links by identity: which of several spellings of a URL is found first is up to the order of the crawl."""
    return {(line["id"], line["sha256"], frozenset(identity(link) for link in line["links"])) for line in lines(folder)}
