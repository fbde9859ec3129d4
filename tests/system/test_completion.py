"""A crawl is complete exactly when nothing is open: not a page sooner, and not a page later, whatever its last page does."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.crash import EXIT_CODE, VARIABLE
from gossamer.messages import Found, encode
from gossamer.outcomes import Outcome
from gossamer.ports.broker import URLS
from gossamer.records import CrawlRecord, CrawlStatus
from tests.system.engines import OnEngine
from tests.system.held_site import HeldSite, held_site
from tests.system.stack import Crawling, Stack, crawl_in, role_process, running_stack, until
from tests.system.web import PATIENCE_S, REPORT, ROOT, ended

#: Whoever is held is given its time.
FREELY = ("--allow-net", "127.0.0.0/8", "--delay", "0", "--similarity", "off", "--attempt-timeout", "250s", "--workers", "2")
WORDS = (*FREELY, "--module", "jsonl:path=pages.jsonl")
#: Where somebody has to be taken for dead, or must not be.
LEASE_S = 3.0
SOON = ("--lease", f"{LEASE_S}s")


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with running_stack() as stack:
        yield stack


@pytest.fixture(params=["embedded", "external"])
def engine(request: pytest.FixtureRequest) -> OnEngine:
    return OnEngine(None if request.param == "embedded" else request.getfixturevalue("stack"))


@pytest.fixture
def site() -> Iterator[HeldSite]:
    with held_site(hosts=13) as site:
        yield site


def stored(folder: Path) -> list[str]:
    """The pages in the output."""
    return sorted(json.loads(line)["url"] for line in (folder / "pages.jsonl").read_text().splitlines())


def the_crawl(engine: OnEngine, folder: Path) -> CrawlRecord:
    return engine.ask(folder, lambda ledger: ledger.crawl())


# --- The last page ---


def test_a_crawl_waits_for_its_slow_last_page_and_follows_the_link_on_it(engine: OnEngine, site: HeldSite, tmp_path: Path) -> None:
    after = site.page(site.url("/after"))
    last = site.page(site.url("/last"), after)
    home = site.page(site.url(), last)
    site.hold(last)
    with engine.crawling(tmp_path, "--seed", home, *WORDS, *SOON) as crawl:
        until(lambda: site.held(last) > 0 and engine.open_urls(tmp_path) == 1, "the last page is in flight")
        time.sleep(1.5 * LEASE_S)

        assert crawl.poll() is None
        assert the_crawl(engine, tmp_path).status is CrawlStatus.RUNNING
        site.let_go(last)
        ran = ended(crawl, tmp_path)

    assert (ran.code, ran.report["outcome"], ran.report["outcomes"]) == (0, "complete", {"done": 3}), ran.said
    assert stored(tmp_path) == sorted([home, last, after])


def test_a_worker_that_dies_on_the_last_page_leaves_it_to_another(stack: Stack, site: HeldSite, tmp_path: Path) -> None:
    after = site.page(site.url("/after"))
    last = site.page(site.url("/last"), after)
    home = site.page(site.url(), last)
    site.hold(last)
    engine = OnEngine(stack)
    with engine.crawling(tmp_path, "--seed", home, *WORDS, *SOON) as process:
        until(lambda: site.held(last) > 0 and engine.open_urls(tmp_path) == 1, "the last page is in flight")
        site.hold_no_more(last)
        os.kill(holder(Crawling(stack, tmp_path, process)), signal.SIGKILL)
        ran = ended(process, tmp_path)

    assert (ran.code, ran.report["outcome"], ran.report["outcomes"]) == (0, "complete", {"done": 3}), ran.said
    assert site.times_asked(last) > 1
    assert stored(tmp_path) == sorted([home, last, after])


def holder(crawl: Crawling) -> int:
    """The process that has the only open URL in flight; on a busy machine that may just be going from one to another."""
    found: list[int] = []

    def is_found() -> bool:
        (record,) = crawl.stack.ask(crawl.id, lambda ledger: ledger.unfinished(2))
        workers = crawl.stack.ask(crawl.id, lambda ledger: ledger.workers())
        found[:] = [int(each.process.split()[1]) for each in workers if each.id == record.worker]
        return bool(found)

    until(is_found, "somebody has it")
    return found[0]


def test_a_hint_that_is_left_in_a_queue_holds_no_end_up(stack: Stack, site: HeldSite, tmp_path: Path) -> None:
    last = site.page(site.url("/last"))
    home = site.page(site.url(), last)
    site.hold(last)
    engine = OnEngine(stack)
    with engine.crawling(tmp_path, "--seed", home, *WORDS) as process:
        until(lambda: site.held(last) > 0 and engine.open_urls(tmp_path) == 1, "the last page is in flight")
        crawl = Crawling(stack, tmp_path, process)
        workers = crawl.workers()
        frontier = next(pid for pid in crawl.roles() if pid not in workers)
        os.kill(frontier, signal.SIGSTOP)
        try:
            (record,) = engine.ask(tmp_path, lambda ledger: ledger.unfinished(1))
            hints = [encode(Found((record.url,)))] * 500  # more than a frozen frontier has room for
            assert stack.ask_broker(crawl.id, lambda broker: broker.publish(URLS, hints)) == len(hints)
            site.let_go(last)
            until(lambda: the_crawl(engine, tmp_path).status is CrawlStatus.ENDED, "the crawl is complete")
            assert stack.ask_broker(crawl.id, lambda broker: broker.depths())[URLS] > 0
        finally:
            os.kill(frontier, signal.SIGCONT)
        ran = ended(process, tmp_path)

    assert (ran.code, ran.report["outcome"], ran.report["outcomes"]) == (0, "complete", {"done": 2}), ran.said
    assert site.times_asked(last) == 1


# --- The controller at the end ---


def test_a_process_that_dies_before_it_says_complete_has_nothing_left_to_fetch(site: HeldSite, tmp_path: Path) -> None:
    engine, home = OnEngine(None), site.page(site.url())

    died = engine.run(tmp_path, "--seed", home, *WORDS, environ={VARIABLE: "worker.finish:after"})

    assert died.code == EXIT_CODE, died.said
    assert engine.open_urls(tmp_path) == 0
    asked = len(site.asked)
    ran = engine.resume(tmp_path)
    assert (ran.code, ran.report["outcome"], ran.report["outcomes"]) == (0, "complete", {"done": 1}), ran.said
    assert len(site.asked) == asked
    assert stored(tmp_path) == [home]


def test_a_controller_that_dies_before_it_says_complete_has_nothing_left_to_fetch(
    stack: Stack, site: HeldSite, tmp_path: Path
) -> None:
    last = site.page(site.url("/last"))
    home = site.page(site.url(), last)
    site.hold(last)
    engine = OnEngine(stack)
    with engine.crawling(tmp_path, "--seed", home, *WORDS) as process:
        until(lambda: site.held(last) > 0, "the last page is in flight")
        roles = Crawling(stack, tmp_path, process).roles()
        process.send_signal(signal.SIGSTOP)
        site.let_go(last)
        until(lambda: engine.open_urls(tmp_path) == 0, "all pages are in")
        assert the_crawl(engine, tmp_path).status is CrawlStatus.RUNNING
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in roles), "the roles have ended")

    asked = len(site.asked)
    ran = engine.resume(tmp_path)
    assert (ran.code, ran.report["outcome"], ran.report["outcomes"]) == (0, "complete", {"done": 2}), ran.said
    assert len(site.asked) == asked
    assert stored(tmp_path) == sorted([home, last])


def test_a_complete_crawl_that_is_resumed_is_complete_at_once(engine: OnEngine, site: HeldSite, tmp_path: Path) -> None:
    home = site.page(site.url(), site.page(site.url("/page")))
    assert engine.run(tmp_path, "--seed", home, *WORDS).report["outcome"] == "complete"
    asked = len(site.asked)

    ran = engine.resume(tmp_path)

    assert (ran.code, ran.report["outcome"], ran.report["outcomes"]) == (0, "complete", {"done": 2}), ran.said
    assert len(site.asked) == asked
    assert len(stored(tmp_path)) == 2


# --- Budgets, reached by four workers at once ---


def test_a_page_budget_reached_in_a_race_is_met_exactly(engine: OnEngine, site: HeldSite, tmp_path: Path) -> None:
    pages = [site.page(site.url(host=host)) for host in range(1, 13)]
    home = site.page(site.url(), *pages)
    site.hold(*pages)
    with engine.crawling(tmp_path, "--seed", home, *WORDS, "--workers", "4", "--max-pages", "6") as crawl:
        until(lambda: site.held(*pages) == 5, "all that the budget has room for is in flight")
        site.fail(*[each.url for each in site.asked if each.held][:2])
        site.let_go(*pages)
        ran = ended(crawl, tmp_path)

    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "page_budget", 6), ran.said
    assert site.most_held == 5
    assert ran.report["outcomes"] == {"done": 6, "gone": 2}, "whose places others took"
    assert engine.open_urls(tmp_path) == 5
    assert len(stored(tmp_path)) == 6


def test_a_byte_budget_reached_in_a_race_is_never_passed(engine: OnEngine, site: HeldSite, tmp_path: Path) -> None:
    """Each request reserves the most that it may receive, 46 KB here: four at once, and no fifth."""
    pages = [site.page(site.url(host=host), text=f"{host:02} " * 6_000) for host in range(1, 13)]
    home = site.page(site.url(), *pages)
    site.hold(*pages)
    sizes = ("--max-page-bytes", "30KB", "--max-bytes", "200KB")
    with engine.crawling(tmp_path, "--seed", home, *WORDS, "--workers", "4", *sizes) as crawl:
        until(lambda: site.held(*pages) == 4, "all that the budget has room for is in flight")
        site.let_go(*pages)
        ran = ended(crawl, tmp_path)

    assert (ran.code, ran.report["outcome"]) == (0, "byte_budget"), ran.said
    assert site.most_held == 4
    assert 150_000 < ran.report["bytes"] + ran.report["bytes_charged"] <= 200_000
    assert engine.open_urls(tmp_path) == len(pages) + 1 - ran.report["pages"]
    assert len(stored(tmp_path)) == ran.report["pages"]


# --- Crawls with little in them ---


def test_what_is_shed_is_counted_and_the_rest_is_complete(engine: OnEngine, site: HeldSite, tmp_path: Path) -> None:
    """While the only host is held, its other pages wait, and are too many."""
    pages = [site.page(site.url(f"/{number}")) for number in range(30)]
    first = site.page(site.url("/first"))
    home = site.page(site.url(), first, *pages)
    site.hold(first, *pages)
    with engine.crawling(tmp_path, "--seed", home, *WORDS, *SOON, "--delay", "1", "--max-open", "1") as crawl:
        until(lambda: outcomes(engine, tmp_path).get(Outcome.SHED, 0) > 0, "they are shed")
        site.let_go(first, *pages)
        ran = ended(crawl, tmp_path)

    assert (ran.code, ran.report["outcome"]) == (0, "complete"), ran.said
    assert ran.report["outcomes"].keys() == {"done", "shed"}
    assert sum(ran.report["outcomes"].values()) == 32
    assert len(stored(tmp_path)) == ran.report["outcomes"]["done"]


def outcomes(engine: OnEngine, folder: Path) -> dict[Outcome, int]:
    counts = engine.counts(folder)
    return {} if counts is None else counts.outcomes


def test_a_crawl_whose_only_seed_is_forbidden_has_failed(engine: OnEngine, site: HeldSite, tmp_path: Path) -> None:
    site.page(site.url("/robots.txt"), text="User-agent: *\nDisallow: /\n")

    ran = engine.run(tmp_path, "--seed", site.page(site.url()), *FREELY)

    assert (ran.code, ran.report["outcome"], ran.report["outcomes"]) == (5, "failed", {"robots_denied": 1}), ran.said
    assert engine.open_urls(tmp_path) == 0
    assert site.times_asked(site.url()) == 0


def test_a_crawl_whose_only_seed_can_not_be_reached_has_failed(engine: OnEngine, site: HeldSite, tmp_path: Path) -> None:
    nowhere = site.url().replace("127.0.4.1", "127.0.4.99")

    ran = engine.run(tmp_path, "--seed", nowhere, *FREELY, "--robots-wait", "0.1", "--domain-rest", "0.1")

    assert (ran.code, ran.report["outcome"], ran.report["outcomes"]) == (5, "failed", {"robots_denied": 1}), ran.said
    assert engine.open_urls(tmp_path) == 0


def test_of_seeds_that_say_the_same_one_is_stored_and_the_crawl_is_complete(
    engine: OnEngine, site: HeldSite, tmp_path: Path
) -> None:
    """All are in flight at once, so that each may be the first."""
    seeds = [site.page(site.url(host=host), text="<p>All of us say this.</p>") for host in range(4)]
    site.hold(*seeds)
    words = [word for seed in seeds for word in ("--seed", seed)]
    with engine.crawling(tmp_path, *words, *WORDS, "--workers", "4") as crawl:
        until(lambda: site.held(*seeds) == len(seeds), "all are in flight")
        site.let_go(*seeds)
        ran = ended(crawl, tmp_path)

    assert (ran.code, ran.report["outcome"]) == (0, "complete"), ran.said
    assert ran.report["outcomes"] == {"duplicate": 3, "done": 1}
    assert len(stored(tmp_path)) == 1


# --- Stalled ---

#: The command, with seconds for minutes.
HASTY = """
import sys
from services.controller.engines import oversight
oversight.STALLED_S = oversight.ALONE_S = 1.0
import controller
sys.exit(controller.main())
"""


def test_a_crawl_that_nobody_works_on_says_so_ends_as_stalled_and_can_be_resumed(
    stack: Stack, site: HeldSite, tmp_path: Path
) -> None:
    """No roles are there, as in a stack whose workers can't start."""
    home = site.page(site.url(), site.page(site.url("/page")))
    engine = OnEngine(stack)
    brief = ("--attempt-timeout", "5s", "--module", "noop", "--module-timeout", "2s")
    words = ("--seed", home, *engine.words, "--roles", "elsewhere", *FREELY, *brief, "--report", REPORT)
    environ = {**os.environ, **engine.environ, "PYTHONPATH": str(ROOT)}
    said = subprocess.run(
        [sys.executable, "-c", HASTY, *words], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=PATIENCE_S
    )

    assert said.returncode == 6, said
    assert "no worker is at work, with 1 URL open" in said.stderr
    assert "stalled, 1 URL still open" in said.stdout
    assert f"open      waiting {home}" in said.stdout

    crawl = crawl_in(tmp_path)
    with role_process(stack, tmp_path, "frontier", "--crawl", crawl), role_process(stack, tmp_path, "worker", "--crawl", crawl):
        ran = engine.resume(tmp_path)
    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "complete", 2), ran.said
