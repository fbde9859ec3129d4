"""What a page's whole life costs in the SQLite ledger, in CPU time.

Route, begin, judge, finish with 60 links, for groups of pages as a crawl has them, over a ledger that knows many URLs already.
CPU is user + system of the whole process, the ledger's thread and the harness's loop included; what the pages are made of is made
before the clock starts. Medians of several rounds, since these machines are noisy.

    python -m bench.ledger [--known 300000] [--rounds 7]
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
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from adapters.embedded.ledger import SqliteLedger
from gossamer.clock import SystemClock
from gossamer.ids import UrlId
from gossamer.messages import Link, Url
from gossamer.outcomes import Outcome
from gossamer.ports.blobs import BlobRef
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


async def live(ledger: SqliteLedger, seat: Seat, group: tuple[list[Link], list[Content], list[Closing]]) -> None:
    pages, contents, closings = group
    await ledger.route([(page.id, 50) for page in pages])
    await ledger.begin(seat, [page.id for page in pages])
    await ledger.judge(seat, contents)
    await ledger.finish(seat, closings)


def cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def measured(work: Callable[[], Awaitable[None]]) -> float:
    before = cpu_s()
    await work()
    return cpu_s() - before


async def bench(known: int, rounds: int, pages: int, new_links: int, near: bool) -> list[float]:
    """CPU-ms a page, one figure a round."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = SqliteLedger(Path(folder) / "ledger.sqlite", SystemClock())
        rules = Rules(
            max_pages=10**9, max_bytes=10**15, delay_s=0.0, lease_s=3600.0, similarity=0.9 if near else None, queue_size=10**6
        )
        await ledger.create(rules)
        seat = await ledger.register("bench")
        for start in range(0, known, 5_000):
            await ledger.add([as_url(link(n)) for n in range(start, min(start + 5_000, known))])
        site = Site(known, new_links, near, seed=7)
        figures = []
        for _ in range(rounds):
            groups = [site.group() for _ in range(pages // GROUP)]

            async def work(groups: list[tuple[list[Link], list[Content], list[Closing]]] = groups) -> None:
                for group in groups:
                    await live(ledger, seat, group)

            figures.append(await measured(work) * 1000 / (len(groups) * GROUP))
        counts = await ledger.counts()
        assert counts.stored == rounds * (pages // GROUP) * GROUP, counts
        await ledger.close()
        return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--known", type=int, default=300_000, help="URLs that the ledger knows at the start (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pages", type=int, default=1_600, help="pages a round (default %(default)s)")
    options = parser.parse_args()
    print(f"CPython {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {options.known} URLs known, groups of {GROUP}")
    print(f"{'a page: route, begin, judge, finish':<42} {'CPU-ms':>7} {'range':>15} {'goal':>6}")
    good = True
    for name, new_links, near, goal in CASES:
        figures = asyncio.run(bench(options.known, options.rounds, options.pages, new_links, near))
        median = statistics.median(figures)
        good = good and (goal is None or median <= goal)
        spread = f"{min(figures):.3f}-{max(figures):.3f}"
        print(f"{name:<42} {median:>7.3f} {spread:>15} {goal if goal is not None else '-':>6}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
