"""Whole crawls of the synthetic web, scored by what the web itself saw."""

import json
import random
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.states import State
from gossamer.urls import identity
from tests.system.web import FREELY, PATIENCE_S, PERFECT, Web, run, start, synthetic_web, verdict

PAGES = 1_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with synthetic_web(tmp_path_factory.mktemp("web"), "--sites", "20", "--pages", str(PAGES), "--seed", "1") as web:
        yield web


@pytest.fixture
def web(served: Web) -> Web:
    served.reset()
    return served


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_sixteen_workers_fetch_every_page_once_and_nothing_else(web: Web, tmp_path: Path) -> None:
    ran = run(tmp_path, "--seed", web.seeds[0], "--workers", "16", "--module", "jsonl:path=pages.jsonl", *FREELY)

    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "complete", PAGES)
    score = web.score()
    assert verdict(score) == PERFECT
    assert score["most_in_flight"] == 1
    assert ran.report["requests"] == score["requests"]
    assert len({line["id"] for line in lines(tmp_path / "pages.jsonl")}) == PAGES


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--workers", "1"), id="one worker"),
        pytest.param(("--workers", "4", "--queue-size", "20"), id="queues of twenty"),
    ],
)
def test_the_result_is_the_same_whatever_the_size_of_the_crawler(web: Web, tmp_path: Path, options: tuple[str, ...]) -> None:
    ran = run(tmp_path, "--seed", web.seeds[0], *options, *FREELY)

    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "complete", PAGES)
    assert verdict(web.score()) == PERFECT


def test_a_page_budget_is_met_exactly_and_a_resume_goes_on_from_there(web: Web, tmp_path: Path) -> None:
    module = ("--module", "jsonl:path=pages.jsonl")
    ran = run(tmp_path, "--seed", web.seeds[0], "--max-pages", "100", *module, *FREELY)

    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "page_budget", 100)
    assert len(lines(tmp_path / "pages.jsonl")) == 100

    ran = run(tmp_path, "resume", "--max-pages", "200")

    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "page_budget", 200)
    assert len({line["id"] for line in lines(tmp_path / "pages.jsonl")}) == 200
    assert web.score()["repeats"] == 0


def test_a_byte_budget_is_never_passed(web: Web, tmp_path: Path) -> None:
    ran = run(tmp_path, "--seed", web.seeds[0], "--delay", "0", "--allow-net", "127.0.0.0/8", "--max-bytes", "1MB")

    assert (ran.code, ran.report["outcome"]) == (0, "byte_budget")
    assert 0 < ran.report["bytes"] + ran.report["bytes_charged"] <= 1_000_000


def test_a_crawl_killed_ten_times_ends_with_the_same_pages(web: Web, tmp_path: Path) -> None:
    """The moment of a kill is a number of pages stored, read from the ledger's own file."""
    whole = tmp_path / "whole"
    whole.mkdir()
    run(whole, "--seed", web.seeds[0], "--module", "jsonl:path=pages.jsonl", *FREELY)
    expected = seen(whole / "pages.jsonl")
    web.reset()
    broken = tmp_path / "broken"
    broken.mkdir()
    moments, in_flight = random.Random(8), 0
    words: tuple[str, ...] = ("--seed", web.seeds[0], "--module", "jsonl:path=pages.jsonl", "--state", "state", *FREELY)
    for kill in range(10):
        process = start(broken, *words)
        wait_for(broken / "state" / "ledger.sqlite", stored=85 * kill + moments.randint(1, 80))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
        in_flight += ledger_doc(broken / "state" / "ledger.sqlite")["states"][State.FETCHING]
        words = ("resume", "--state", "state")

    ran = run(broken, *words)

    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "complete", PAGES)
    assert seen(broken / "pages.jsonl") == expected
    assert len(lines(broken / "pages.jsonl")) == PAGES
    score = web.score()
    assert (score["missed"], score["forbidden"], score["wrong"]) == (0, 0, 0)
    assert score["repeats"] <= in_flight, "only what was in flight at a kill is asked for twice"


def seen(path: Path) -> set[tuple[str, str, frozenset[str]]]:
    """Pages and links by identity: which of several spellings of a URL is found first is up to the order of the crawl."""
    return {(line["id"], line["sha256"], frozenset(identity(link) for link in line["links"])) for line in lines(path)}


def wait_for(file: Path, *, stored: int) -> None:
    """Until the crawl has so many pages, by its ledger."""
    while ledger_doc(file).get("stored", 0) < stored:
        pass


def ledger_doc(file: Path) -> dict[str, Any]:
    """The crawl's record as the file has it; empty if it has none yet."""
    try:
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10) as ledger:
            row = ledger.execute("SELECT doc FROM crawl").fetchone()
    except sqlite3.OperationalError:
        return {}  # not made yet
    doc: dict[str, Any] = {} if row is None else json.loads(row[0])
    return doc


def test_politeness_is_what_the_servers_saw(tmp_path: Path) -> None:
    with synthetic_web(tmp_path, "--sites", "6", "--pages", "30", "--latency-ms", "100") as web:
        ran = run(tmp_path, "--seed", web.seeds[0], "--allow-net", "127.0.0.0/8")

        score = web.score()
    assert (ran.code, ran.report["outcome"], verdict(score)) == (0, "complete", PERFECT)
    assert score["most_in_flight"] == 1
    gaps = [site["least_gap_with_robots_s"] for site in score["sites"]]
    assert min(gaps) >= 0.98, "one second, and 20 ms of jitter at the server"
    requests = [site["requests"] for site in score["sites"]]
    assert score["wall_s"] < 0.6 * sum(requests), "sites are fetched side by side"


def test_a_crawl_delay_is_kept(tmp_path: Path) -> None:
    with synthetic_web(tmp_path, "--sites", "3", "--pages", "6", "--crawl-delay", "3") as web:
        ran = run(tmp_path, "--seed", web.seeds[0], "--delay", "0.1", "--allow-net", "127.0.0.0/8")

        score = web.score()
    assert (ran.report["outcome"], verdict(score)) == ("complete", PERFECT)
    with_robots = [site["least_gap_with_robots_s"] for site in score["sites"] if site["robots_requests"] and site["requests"] > 2]
    assert with_robots
    assert min(with_robots) >= 2.98


def test_one_huge_site_takes_no_room_from_the_small_ones(tmp_path: Path) -> None:
    with synthetic_web(tmp_path, "--sizes", "2000,10*20") as web:
        (tmp_path / "seeds.txt").write_text("\n".join(web.seeds))
        run(tmp_path, "--seeds", "seeds.txt", "--max-pages", "400", *FREELY[2:], "--delay", "0.05")

        score = web.score()
    big, *small = sorted(score["sites"], key=lambda site: -site["truth"])
    assert all(site["pages"] == site["truth"] for site in small)
    last = max(small, key=lambda site: site["last_page_s"])
    of_big_by_then = last["others_then"] - sum(site["pages"] for site in small if site is not last)
    assert of_big_by_then <= 0.05 * big["truth"]
