"""Crawls of a site whose pages only its sitemaps name, on both engines; and with deaths where one could lose a sitemap."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.crash import EXIT_CODE, VARIABLE
from gossamer.outcomes import Flag
from gossamer.urls import identity, url_id
from tests.system.sitemap_site import CAP, MOVED, PAGES, REQUESTS, SITEMAPS, Site, sitemap_site
from tests.system.stack import Stack, crawl_in, crawling, running_stack, until
from tests.system.web import FREELY, PATIENCE_S, REPORT, Ran, ended, run, start

WORDS = (*FREELY, "--max-page-bytes", str(CAP), "--scope", "host", "--module", "jsonl:path=pages.jsonl", "--state", "state")
ON_SERVERS = ("--engine", "external", "--workers", "2")
#: What was followed to its end, what was not, and why.
REFUSED = {"scope": 2, "file type": 1, "an index in an index of sitemaps": 1}


@pytest.fixture
def site() -> Iterator[Site]:
    with sitemap_site() as site:
        yield site


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with running_stack() as stack:
        yield stack


def pages(folder: Path, site: Site) -> list[str]:
    """Paths of what the module was shown."""
    urls = [json.loads(line)["url"] for line in (folder / "pages.jsonl").read_text().splitlines()]
    return sorted(url.removeprefix(site.home) for url in urls)


def all_is_found(ran: Ran, folder: Path, site: Site) -> None:
    """Every page once, and nothing else on the way."""
    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "complete", len(PAGES)), ran.said
    assert pages(folder, site) == sorted(PAGES)
    assert ran.report["refused"] == REFUSED
    assert set(site.asked) == REQUESTS, "neither the other host nor what lies past a bound"


def test_pages_that_only_sitemaps_name_are_crawled_completely(site: Site, tmp_path: Path) -> None:
    ran = run(tmp_path, "--seed", f"{site.home}/", "--sitemaps", *WORDS)

    all_is_found(ran, tmp_path, site)
    assert len(site.asked) == len(REQUESTS) == ran.report["requests"]
    assert ran.report["outcomes"] == {"done": len(PAGES) + len(SITEMAPS), "redirect": len(MOVED)}


def test_without_the_setting_no_sitemap_is_asked_for(site: Site, tmp_path: Path) -> None:
    ran = run(tmp_path, "--seed", f"{site.home}/", *WORDS)

    assert (ran.code, ran.report["pages"]) == (0, 1)
    assert site.asked == ["/robots.txt", "/"]


def test_servers_of_ones_own_find_the_same(stack: Stack, site: Site, tmp_path: Path) -> None:
    ran = run(tmp_path, "--seed", f"{site.home}/", "--sitemaps", *WORDS, *ON_SERVERS, environ=stack.environ)

    all_is_found(ran, tmp_path, site)
    assert len(site.asked) == len(REQUESTS)
    ids = {path: url_id(identity(site.home + path)) for path in SITEMAPS}
    records = stack.ask(crawl_in(tmp_path), lambda ledger: ledger.records(list(ids.values())))
    flags = {path: set(record.facts.flags) for path, record in zip(ids, records, strict=True) if record and record.facts}
    assert flags == {path: {Flag.SITEMAP} for path in SITEMAPS} | {"/long.xml": {Flag.SITEMAP, Flag.LINKS_CUT}}
    parents = {path: record.url.parent for path, record in zip(ids, records, strict=True) if record}
    assert parents["/list.txt"] == url_id(identity(f"{site.home}/")), "robots.txt was asked because of it"
    assert parents["/deep.xml"] == ids["/inner.xml"]


def test_a_seed_may_be_a_sitemap(site: Site, tmp_path: Path) -> None:
    ran = run(tmp_path, "--seed", f"{site.home}/pages.xml", "--sitemaps", "--max-depth", "1", *WORDS)

    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "complete", 8), ran.said
    assert set(site.asked) == {"/robots.txt", "/pages.xml", *(f"/page/{number}" for number in range(8))}


@pytest.mark.parametrize(
    ("depth", "asked"),
    [
        pytest.param("0", {"/robots.txt", "/"}, id="the seeds alone"),
        pytest.param("1", {"/robots.txt", "/"}, id="no sitemap whose pages would be too deep"),
        pytest.param(
            "2",
            {"/robots.txt", "/", "/moved.xml", "/index.xml", "/list.txt"} | {f"/list/{n}" for n in range(4)},
            id="none under an index either",
        ),
    ],
)
def test_sitemaps_count_as_clicks(site: Site, tmp_path: Path, depth: str, asked: set[str]) -> None:
    run(tmp_path, "--seed", f"{site.home}/", "--sitemaps", "--max-depth", depth, *WORDS)

    assert set(site.asked) == asked


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("worker.sitemaps:before", id="robots.txt is here, and nobody knows"),
        pytest.param("worker.sitemaps:after", id="the sitemaps are known, robots.txt is not"),
        pytest.param("worker.read:after:2", id="a sitemap is read"),
        pytest.param("worker.links:after:3", id="its links are sorted"),
        pytest.param("worker.finish:before:3", id="it is about to be closed"),
        pytest.param("worker.finish:after:3", id="it is closed, and its links have no hints"),
    ],
)
def test_a_death_in_between_loses_nothing(site: Site, tmp_path: Path, point: str) -> None:
    died = start(tmp_path, "--seed", f"{site.home}/", "--sitemaps", *WORDS, environ={VARIABLE: point})
    died.communicate(timeout=PATIENCE_S)
    assert died.returncode == EXIT_CODE

    ran = run(tmp_path, "resume", "--state", "state")

    all_is_found(ran, tmp_path, site)


def test_workers_that_are_killed_on_servers_lose_nothing(stack: Stack, site: Site, tmp_path: Path) -> None:
    words = ("--seed", f"{site.home}/", "--sitemaps", *WORDS, *ON_SERVERS, "--lease", "3s", "--report", REPORT)
    site.held = "/index.xml"
    with crawling(stack, tmp_path, *words) as crawl:
        until(lambda: site.held in site.asked, "the index is in flight")
        for worker in crawl.workers():
            os.kill(worker, signal.SIGKILL)
        site.go_on.set()

        all_is_found(ended(crawl.process, tmp_path), tmp_path, site)
