"""What a page's whole life costs in a ledger, in CPU time.

Route, begin, judge, finish with 60 links, for groups of pages as a crawl has them, over a ledger that knows many URLs already.
CPU is user + system of the whole process, the ledger's thread and the harness's loop included; what the pages are made of is made
before the clock starts. Medians of several rounds, since these machines are noisy. On Redis its own CPU and memory are told as
well; the goals are SQLite's.

    python -m bench.ledger [--known 300000] [--rounds 7] [--ledger redis://127.0.0.1:6379/0]
"""

import argparse
import asyncio
import hashlib
import platform
import random
import resource
import sqlite3
import statistics
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from adapters.distributed.ledger import RedisLedger, connect
from adapters.embedded.ledger import SqliteLedger
from gossamer.clock import SystemClock
from gossamer.ids import CrawlId, UrlId
from gossamer.messages import Link, Url
from gossamer.outcomes import Outcome
from gossamer.ports.blobs import BlobRef
from gossamer.ports.ledger import Ledger
from gossamer.records import Closing, Content, Facts, Rules, Seat, Visit

LINKS = 60
GROUP = 32
SITES = 1_000
BANDS = 16
#: (name, new links a page, near-duplicates on, goal in CPU-ms a page)
CASES = (
    ("2 of 60 links new, exact duplicates", 2, False, 0.35),
    ("10 of 60 links new, exact duplicates", 10, False, 0.60),
    ("2 of 60 links new, near-duplicates too", 2, True, None),
    ("10 of 60 links new, near-duplicates too", 10, True, None),
)


def link(number: int) -> Link:
    url = f"https://site{number % SITES}.example/section/{number // SITES}/article-{number}.html"
    return Link(UrlId(hashlib.blake2b(url.encode(), digest_size=16).digest()), url, f"site{number % SITES}.example")


def as_url(one: Link) -> Url:
    return Url(one.id, one.url, one.domain, 1)


def content(one: Link, near: bool, rng: random.Random) -> Content:
    exact = hashlib.sha256(one.id).digest()
    if not near:
        return Content(id=one.id, exact=exact)
    return Content(id=one.id, exact=exact, signature=rng.randbytes(512), bands=[rng.randbytes(8) for _ in range(BANDS)])


def closing(one: Link, links: Sequence[Link]) -> Closing:
    blob = BlobRef("00000000-segment.warc.gz", 123_456, 7_890, hashlib.sha256(one.id).digest())
    visit = Visit(received_bytes=6_800, since_start_s=0.05, answered=True)
    return Closing(id=one.id, outcome=Outcome.DONE, facts=Facts(status=200, blob=blob), visit=visit, links=links)


class Site:
    """A web without end: pages in order, each with links to known pages and to some that are new."""

    def __init__(self, known: int, new_links: int, near: bool, seed: int) -> None:
        self.known, self.new_links, self.near, self.rng = known, new_links, near, random.Random(seed)
        self.next_page = 0

    def group(self) -> tuple[list[Link], list[Content], list[Closing]]:
        pages = [link(n) for n in range(self.next_page, self.next_page + GROUP)]
        self.next_page += GROUP
        closings = []
        for page in pages:
            # Half of a page's links are its site's navigation: the same on every page of the site.
            site = self.rng.randrange(SITES)
            links = [link(site + SITES * k) for k in range(LINKS // 2)]
            links += [link(self.rng.randrange(self.known)) for _ in range(LINKS // 2 - self.new_links)]
            links += [link(self.known + k) for k in range(self.new_links)]
            self.known += self.new_links
            closings.append(closing(page, links))
        return pages, [content(page, self.near, self.rng) for page in pages], closings


async def live(ledger: Ledger, seat: Seat, group: tuple[list[Link], list[Content], list[Closing]]) -> None:
    pages, contents, closings = group
    await ledger.route([(page.id, 50) for page in pages])
    await ledger.begin(seat, [page.id for page in pages])
    await ledger.judge(seat, contents)
    await ledger.finish(seat, closings)


def cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


@dataclass(frozen=True, slots=True)
class Figures:
    """CPU-ms a page, one figure a round; bytes of the server's memory for each URL that was added at the start."""

    ours: list[float]
    servers: list[float]
    url_bytes: float


@dataclass(frozen=True, slots=True)
class Bench:
    """A fresh ledger, and what its server has used: CPU-seconds and bytes."""

    ledger: Ledger
    used: Callable[[], Awaitable[tuple[float, int]]]


@asynccontextmanager
async def on_sqlite() -> AsyncIterator[Bench]:
    async def used() -> tuple[float, int]:
        return 0.0, 0

    with tempfile.TemporaryDirectory() as folder:
        yield Bench(SqliteLedger(Path(folder) / "ledger.sqlite", SystemClock()), used)


@asynccontextmanager
async def on_redis(url: str) -> AsyncIterator[Bench]:
    client, crawl = connect(url), CrawlId(f"bench-{uuid4().hex}")

    async def used() -> tuple[float, int]:
        cpu, memory = await client.info("cpu"), await client.info("memory")
        return cpu["used_cpu_user_main_thread"] + cpu["used_cpu_sys_main_thread"], memory["used_memory"]

    yield Bench(RedisLedger(client, crawl), used)
    keys = [key async for key in client.scan_iter(match=f"gossamer:{{{crawl}}}:*", count=1000)]
    await client.delete(*keys)
    await client.aclose()


async def bench(server: str | None, known: int, rounds: int, pages: int, new_links: int, near: bool) -> Figures:
    async with on_sqlite() if server is None else on_redis(server) as opened:
        ledger = opened.ledger
        rules = Rules(
            max_pages=10**9,
            max_bytes=10**15,
            max_host_pages=10**9,
            max_domain_pages=10**9,
            delay_s=0.0,
            lease_s=3600.0,
            similarity=0.9 if near else None,
            queue_size=10**6,
        )
        await ledger.create(rules)
        seat = await ledger.register("bench")
        _, bytes_before = await opened.used()
        for start in range(0, known, 5_000):
            await ledger.add([as_url(link(n)) for n in range(start, min(start + 5_000, known))])
        _, bytes_after = await opened.used()
        site = Site(known, new_links, near, seed=7)
        ours, servers = [], []
        for _ in range(rounds):
            groups = [site.group() for _ in range(pages // GROUP)]
            server_before, _ = await opened.used()
            before = cpu_s()
            for group in groups:
                await live(ledger, seat, group)
            ours.append((cpu_s() - before) * 1000 / (len(groups) * GROUP))
            servers.append(((await opened.used())[0] - server_before) * 1000 / (len(groups) * GROUP))
        counts = await ledger.counts()
        assert counts.stored == rounds * (pages // GROUP) * GROUP, counts
        await ledger.close()
        return Figures(ours, servers, (bytes_after - bytes_before) / known)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--known", type=int, default=300_000, help="URLs that the ledger knows at the start (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pages", type=int, default=1_600, help="pages a round (default %(default)s)")
    parser.add_argument("--ledger", metavar="URL", help="redis://… for a Redis or Valkey (default: SQLite)")
    options = parser.parse_args()
    engine = options.ledger or f"SQLite {sqlite3.sqlite_version}"
    print(f"CPython {platform.python_version()}, {engine}, {options.known} URLs known, groups of {GROUP}")
    print(f"{'a page: route, begin, judge, finish':<42} {'CPU-ms':>7} {'range':>15} {'goal':>6} {'server':>7} {'B/URL':>6}")
    good = True
    for name, new_links, near, goal in CASES:
        figures = asyncio.run(bench(options.ledger, options.known, options.rounds, options.pages, new_links, near))
        median, server = statistics.median(figures.ours), statistics.median(figures.servers)
        good = good and (goal is None or median <= goal)
        spread = f"{min(figures.ours):.3f}-{max(figures.ours):.3f}"
        shown_goal = goal if goal is not None else "-"
        print(f"{name:<42} {median:>7.3f} {spread:>15} {shown_goal:>6} {server:>7.3f} {figures.url_bytes:>6.0f}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
