"""Frozen past its lease and thawed: whoever comes back so changes nothing any more, and goes on as somebody new.

SIGSTOP stands for a paused container, a machine that swaps, a suspended laptop.
"""

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from adapters.distributed.broker import RabbitBroker
from gossamer.messages import Found, Message, Ranked, Routed, Url, encode
from gossamer.parts import parts_folder
from gossamer.ports.broker import URLS, band_queue, worker_queue
from gossamer.records import CrawlStatus, UrlRecord, WorkerRecord
from gossamer.states import State
from gossamer.urls import domain_of, identity, url_id
from tests.system.engines import OnEngine
from tests.system.held_site import HeldSite, held_site
from tests.system.stack import Crawling, Stack, role_process, running_stack, until
from tests.system.web import PERFECT, Web, ended, synthetic_web, verdict

#: Not shorter: on a busy machine a worker that lives would fence itself.
LEASE_S = 6.0
PAGES = 300
FREELY = ("--allow-net", "127.0.0.0/8", "--delay", "0", "--max-bytes", "1GB", "--similarity", "off")
WORDS = (*FREELY, "--lease", f"{LEASE_S}s", "--module", "jsonl:path=pages.jsonl")
#: Whoever is held, or waited for, is given its time; and nobody is fetched alone because a worker seemed to have died of it.
HELD = (*WORDS, "--attempt-timeout", "250s", "--module-timeout", "250s", "--poison-deaths", "0")


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with running_stack() as stack:
        yield stack


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    folder = tmp_path_factory.mktemp("web")
    with synthetic_web(folder, "--sites", "10", "--pages", str(PAGES), "--latency-ms", "20") as web:
        yield web


@pytest.fixture
def web(served: Web) -> Web:
    served.reset()
    return served


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def stored(folder: Path) -> list[str]:
    """The pages in the output."""
    return sorted(json.loads(line)["url"] for line in (folder / "pages.jsonl").read_text().splitlines())


# --- Workers ---


class Scene:
    """A crawl of two workers, of which one is to be frozen over a page; another page, which is held, keeps the crawl going."""

    def __init__(self, site: HeldSite, stack: Stack, folder: Path) -> None:
        self.site, self.stack, self.folder, self.engine = site, stack, folder, OnEngine(stack)
        self.child = site.page(site.url("/child"))
        self.page = site.page(site.url("/frozen"), self.child)
        self.later = [site.page(site.url(host=host)) for host in range(2, 10)]
        self.kept_waiting = site.page(site.url(host=1), *self.later)
        self.home = site.page(site.url(), self.page, self.kept_waiting)
        site.hold(self.page, self.kept_waiting, *self.later)

    @contextmanager
    def crawling(self, *words: str) -> Iterator[Crawling]:
        with self.engine.crawling(self.folder, "--seed", self.home, *HELD, *words, "--workers", "2") as process:
            yield Crawling(self.stack, self.folder, process)

    def record(self, url: str) -> UrlRecord | None:
        (record,) = self.engine.ask(self.folder, lambda ledger: ledger.records([url_id(identity(url))]))
        return record

    def holder(self, url: str) -> WorkerRecord | None:
        """The worker that has it in flight."""
        record = self.record(url)
        workers = self.engine.ask(self.folder, lambda ledger: ledger.workers())
        return next((each for each in workers if record is not None and each.id == record.worker), None)

    def is_done(self, *urls: str) -> bool:
        records = [self.record(url) for url in urls]
        return all(record is not None and record.state is State.CLOSED for record in records)

    def successor(self, of: WorkerRecord) -> WorkerRecord | None:
        """The seat that its process has now, if that is a new one."""
        workers = self.engine.ask(self.folder, lambda ledger: ledger.workers())
        return next((each for each in workers if each.process == of.process and each.epoch > of.epoch), None)

    def publish_what_a_zombie_might(self, crawl: Crawling, unknown: str) -> None:
        """Hints in every queue at a page that is closed, and at one that was never added."""
        urls = [Url(url_id(identity(url)), url, domain_of(url)) for url in (self.page, unknown)]
        ranked = tuple((url, 0) for url in urls)
        messages: dict[str, Message] = {URLS: Found(tuple(urls)), band_queue(0): Ranked(ranked)}
        messages |= {worker_queue(each.id): Routed(ranked) for each in self.stack.ask(crawl.id, lambda ledger: ledger.workers())}

        async def publish(broker: RabbitBroker) -> None:
            for queue, message in messages.items():
                assert await broker.publish(queue, [encode(message)]) == 1

        self.stack.ask_broker(crawl.id, publish)

    def ends_well(self, crawl: Crawling, zombie: WorkerRecord, before: Sequence[UrlRecord | None], thawed_at: float) -> None:
        """The zombie has a new seat, works on it, and has left no trace of its old one."""
        until(lambda: self.successor(zombie) is not None, "it has registered again")
        unknown = self.site.page(self.site.url(host=10))
        self.publish_what_a_zombie_might(crawl, unknown)
        self.site.let_go(self.kept_waiting)

        def works() -> bool:
            new = self.successor(zombie)
            return new is not None and new.id in [holder.id for url in self.later if (holder := self.holder(url)) is not None]

        until(works, "it has work")
        self.site.let_go(*self.later)
        ran = ended(crawl.process, self.folder)

        urls = [self.home, self.page, self.child, self.kept_waiting, *self.later]
        assert (ran.code, ran.report["outcome"], ran.report["outcomes"]) == (0, "complete", {"done": len(urls)}), ran.said
        assert [self.record(url) for url in (self.page, self.child)] == before, "closed once, by another"
        assert stored(self.folder) == sorted(urls)
        assert self.site.most_at_once(thawed_at) == 1
        assert [each for each in self.site.asked if each.url.startswith(unknown)] == []


@pytest.fixture
def scene(stack: Stack, tmp_path: Path) -> Iterator[Scene]:
    with held_site(hosts=11) as site:
        yield Scene(site, stack, tmp_path)


def test_a_worker_frozen_while_a_request_is_in_flight_changes_nothing_any_more(scene: Scene) -> None:
    site = scene.site
    with scene.crawling() as crawl:
        until(lambda: site.held(scene.page) == 1 and site.held(scene.kept_waiting) == 1, "both pages are in flight")
        zombie = scene.holder(scene.page)
        assert zombie is not None
        with frozen(process_of(zombie)):
            site.hold_no_more(scene.page)
            until(lambda: scene.is_done(scene.page, scene.child), "another has taken over, and gone on")
            before = [scene.record(url) for url in (scene.page, scene.child)]
            site.let_go(scene.page)
            until(lambda: site.held(scene.page) == 0, "its answer lies ready")
            thawed_at = time.monotonic()

        scene.ends_well(crawl, zombie, before, thawed_at)

    assert site.times_asked(scene.page) > 1


PAUSE = """\
import os
import time
from gossamer import Module, Page

class Pause(Module):
    def visit(self, page: Page) -> None:
        if page.url.endswith("/frozen"):
            open("reached", "w").close()
            while not os.path.exists("go"):
                time.sleep(0.01)
"""


def test_a_worker_frozen_between_storing_a_page_and_closing_it_changes_nothing_any_more(scene: Scene) -> None:
    """Its blob is written and its line is ready: neither is the one that counts."""
    folder = scene.folder
    scene.site.let_go(scene.page)
    (folder / "pause.py").write_text(PAUSE)
    with scene.crawling("--module", "./pause.py") as crawl:
        until(lambda: (folder / "reached").exists() and scene.site.held(scene.kept_waiting) == 1, "a worker is about to close it")
        zombie = scene.holder(scene.page)
        assert zombie is not None
        with frozen(process_of(zombie)):
            (folder / "go").touch()
            until(lambda: scene.is_done(scene.page, scene.child), "another has taken over, and gone on")
            before = [scene.record(url) for url in (scene.page, scene.child)]
            thawed_at = time.monotonic()
        until(lambda: scene.successor(zombie) is not None, "it has registered again")
        parts = [part.read_text() for part in parts_folder(folder / "pages.jsonl").iterdir()]
        assert sum(part.count(f'"{scene.page}"') > 0 for part in parts) > 1, "both have a line for it"

        scene.ends_well(crawl, zombie, before, thawed_at)


def process_of(worker: WorkerRecord) -> int:
    return int(worker.process.split()[1])


def test_a_worker_that_can_not_reach_the_ledger_cuts_its_request_when_its_lease_is_over(scene: Scene) -> None:
    site = scene.site
    with scene.crawling() as crawl:
        until(lambda: site.held(scene.page) == 1, "the page is in flight")
        with frozen(scene.stack.redis.pid):
            (in_flight,) = [each for each in site.asked if each.url == scene.page and each.ended_at is None]
            asked = site.times_asked(scene.page)
            until(lambda: in_flight.cut, "it was cut")
            assert site.times_asked(scene.page) == asked, "and nobody asks for it while nobody can know whose it is"
        site.let_go(scene.page, scene.kept_waiting, *scene.later)
        ran = ended(crawl.process, scene.folder)

    assert (ran.code, ran.report["outcome"], ran.report["outcomes"]) == (0, "complete", {"done": 12}), ran.said
    assert len(stored(scene.folder)) == 12


# --- Frontiers ---


def test_a_frontier_that_another_has_stood_in_for_changes_nothing_when_it_comes_back(
    stack: Stack, web: Web, tmp_path: Path
) -> None:
    """It has hints in hand that were routed meanwhile, and holds itself for the owner of the rank."""
    engine = OnEngine(stack)
    with engine.crawling(tmp_path, "--seed", web.seeds[0], *WORDS, "--delay", "0.4") as process:
        crawl = Crawling(stack, tmp_path, process)
        crawl.until_stored(20)
        workers = crawl.workers()
        with role_process(stack, tmp_path, "frontier", "--crawl", crawl.id):
            with frozen(next(pid for pid in crawl.roles() if pid not in workers)):
                time.sleep(LEASE_S)  # it is the owner of the rank no more
                crawl.until_stored(stored_so_far(engine, tmp_path) + 10)
                assert stored_so_far(engine, tmp_path) < PAGES - 20, "there is work left for it"
            ran = ended(process, tmp_path)

    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "complete", PAGES), ran.said
    score = web.score()
    assert (verdict(score), score["most_in_flight"]) == (PERFECT, 1)
    assert len(set(stored(tmp_path))) == len(stored(tmp_path)) == PAGES


# --- Controllers ---


@pytest.mark.parametrize(
    ("budget", "outcome", "status"),
    [
        # Only a controller knows that all seeds are added.
        pytest.param(PAGES + 1, "complete", CrawlStatus.RUNNING, id="to the last page"),
        pytest.param(100, "page_budget", CrawlStatus.ENDED, id="to its budget"),
    ],
)
def test_a_crawl_goes_on_without_its_frozen_controller_and_ends_properly_when_that_comes_back(
    stack: Stack, web: Web, tmp_path: Path, budget: int, outcome: str, status: CrawlStatus
) -> None:
    engine, pages = OnEngine(stack), min(budget, PAGES)
    with engine.crawling(tmp_path, "--seed", web.seeds[0], *WORDS, "--max-pages", str(budget)) as process:
        crawl = Crawling(stack, tmp_path, process)
        crawl.until_stored(20)
        with frozen(process.pid):
            crawl.until_stored(pages)
            time.sleep(LEASE_S)
            until(lambda: engine.ask(tmp_path, lambda ledger: ledger.crawl()).status is status, f"the crawl is {status}")
        ran = ended(process, tmp_path)

    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, outcome, pages), ran.said
    score = web.score()
    assert (score["repeats"], score["forbidden"], score["wrong"], score["most_in_flight"]) == (0, 0, 0, 1)
    assert len(set(stored(tmp_path))) == len(stored(tmp_path)) == pages


# --- All in one process ---


def test_an_embedded_crawl_that_is_frozen_again_and_again_loses_nothing(web: Web, tmp_path: Path) -> None:
    """It is the only worker there is: it fences itself, and goes on."""
    engine = OnEngine(None)
    with engine.crawling(tmp_path, "--seed", web.seeds[0], *WORDS, "--lease", "2s", "--poison-deaths", "0") as process:
        for pages in (30, 100, 200):
            until(partial(has_stored, engine, tmp_path, pages), f"{pages} pages are stored")
            with frozen(process.pid):
                time.sleep(2.5)
        ran = ended(process, tmp_path)

    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "complete", PAGES), ran.said
    assert "fenced" in ran.said
    score = web.score()
    assert (score["missed"], score["forbidden"], score["wrong"]) == (0, 0, 0)
    assert len(set(stored(tmp_path))) == len(stored(tmp_path)) == PAGES


def has_stored(engine: OnEngine, folder: Path, pages: int) -> bool:
    return stored_so_far(engine, folder) >= pages


def stored_so_far(engine: OnEngine, folder: Path) -> int:
    counts = engine.counts(folder)
    return 0 if counts is None else counts.stored
